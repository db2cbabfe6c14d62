//! Tells who leads where nodes elect their leader themselves: each is asked by itself, inside, again and again.
//!
//! Owns the looks and what counts as another leader. Where the platform promotes, it tells so itself. What is said here is when
//! it was seen: up to a look later than it was so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use history::{EventKind, EventSink};

use crate::platform::Platform;

/// Between two looks. A node that does not answer holds one up for a second.
const INTERVAL: Duration = Duration::from_millis(200);

/// The running watch. Dropping it ends it.
pub struct LeaderWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LeaderWatch {
    /// Begins to look, where nodes elect.
    #[must_use]
    pub fn start(platform: Arc<Platform>, nodes_elect: bool, events: Arc<dyn EventSink>) -> LeaderWatch {
        if !nodes_elect {
            return LeaderWatch { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let told = events.clone();
        let thread = std::thread::Builder::new()
            .name("leaders".to_owned())
            .spawn(move || look(&stopped, &platform, events.as_ref()));
        if let Err(error) = &thread {
            told.warn(
                format!("who leads is not monitored: {error}"),
                "raise the limit of processes (`ulimit -u`)",
            );
        }
        LeaderWatch { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for LeaderWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It says what it sees when it sees it.
            let _ = thread.join();
        }
    }
}

fn look(stopped: &Receiver<()>, platform: &Platform, events: &dyn EventSink) {
    let mut leaders = Leaders { told: platform.leader().to_string(), last: BTreeSet::new() };
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if let Some(node) = leaders.take(platform.leaders_by_asking()) {
            events.say(EventKind::Leader { node });
        }
    }
}

/// Who led when it was looked last, and who was told to.
struct Leaders {
    told: String,
    last: BTreeSet<String>,
}

impl Leaders {
    /// Whom to tell of after a look at which these nodes said that they lead. An old leader that is cut off may still say so
    /// beside the new one; a leader that was silent for a look is no new one.
    fn take(&mut self, now: BTreeSet<String>) -> Option<String> {
        let fresh = now.difference(&self.last).find(|node| **node != self.told);
        let only_others = || now.first().filter(|_| !now.contains(&self.told));
        let new = fresh.or_else(only_others).cloned();
        self.last = now;
        if let Some(new) = &new {
            self.told.clone_from(new);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(looks: &[&[&str]], expected: &[&str]) {
        let mut leaders = Leaders { told: "n1".to_owned(), last: BTreeSet::new() };
        let told =
            looks.iter().filter_map(|look| leaders.take(look.iter().map(ToString::to_string).collect()));
        assert_eq!(told.collect::<Vec<_>>(), expected, "{looks:?}");
    }

    #[test]
    fn a_leader_is_told_once_and_not_again_after_it_was_silent() {
        check(&[&["n1"], &[], &["n1"], &["n1"]], &[]);
        check(&[&["n1"], &[], &["n2"], &["n2"], &[], &["n2"]], &["n2"]);
        check(&[&["n2"]], &["n2"]);
    }

    #[test]
    fn a_new_leader_is_told_beside_an_old_one_that_does_not_know() {
        check(&[&["n1"], &["n1", "n3"], &["n1", "n3"], &["n3"]], &["n3"]);
        check(&[&["n1"], &["n1", "n3"], &["n1"]], &["n3", "n1"]);
    }
}
