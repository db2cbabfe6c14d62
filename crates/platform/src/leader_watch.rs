//! Tells who leads where nodes elect their leader themselves: each is asked by itself, inside, again and again.
//!
//! Owns the looks and what counts as another leader, as the same one again, or as two at once. Where the platform promotes, it tells so
//! itself. What is said here is when it was seen: up to a look later than it was so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use history::{EventKind, EventSink};

use crate::platform::Platform;

/// Between two looks. A node that does not answer holds one up for a second.
const INTERVAL: Duration = Duration::from_millis(200);
/// Shorter times without a leader are not reported, seconds: one slow node delays a look by as much.
const WORTH_TELLING_S: f64 = 1.5;

/// What helps against two leaders.
const FENCE: &str =
    "have the old leader fenced before another is promoted; without it clients may write to both";

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
    let mut leaders = Leaders { told: platform.leader().to_string(), ..Leaders::default() };
    let mut at_once = AtOnce::default();
    let warn = |what: Option<String>| what.into_iter().for_each(|what| events.warn(what, FENCE));
    let began = Instant::now();
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let at_s = began.elapsed().as_secs_f64();
        let now = platform.leaders_by_asking();
        warn(at_once.take(&now, at_s));
        if let Some(seen) = leaders.take(now, at_s) {
            events.say(seen);
        }
    }
    warn(at_once.end(", and still did when the run ended"));
}

/// Several nodes that said that they lead, for as long as these and no others did.
#[derive(Default)]
struct AtOnce {
    nodes: BTreeSet<String>,
    from_s: f64,
    to_s: f64,
}

impl AtOnce {
    /// What to tell after a look: those before, who do not all lead any more.
    fn take(&mut self, now: &BTreeSet<String>, at_s: f64) -> Option<String> {
        if *now == self.nodes {
            self.to_s = at_s;
            return None;
        }
        let told = self.end("");
        *self = AtOnce { nodes: now.clone(), from_s: at_s, to_s: at_s };
        told
    }

    /// Between the answers of one look the lead may have passed from one to another: two looks tell.
    fn end(&self, how: &str) -> Option<String> {
        let length_s = self.to_s - self.from_s;
        if self.nodes.len() < 2 || length_s <= 0.0 {
            return None;
        }
        let nodes: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
        Some(format!("{} said that they led at the same time, for {length_s:.1} s{how}", nodes.join(" and ")))
    }
}

/// Who led when it was looked last, and who was told to.
#[derive(Default)]
struct Leaders {
    told: String,
    last: BTreeSet<String>,
    /// Since when no node has said that it leads, where one had.
    none_since_s: Option<f64>,
}

impl Leaders {
    /// What to tell after a look at which these nodes said that they lead. An old leader that is cut off may still say so
    /// beside the new one; a leader that was silent for a look is no new one, and for longer it leads again.
    fn take(&mut self, now: BTreeSet<String>, at_s: f64) -> Option<EventKind> {
        let fresh = now.difference(&self.last).find(|node| **node != self.told);
        let only_others = || now.first().filter(|_| !now.contains(&self.told));
        let new = fresh.or_else(only_others).cloned();
        let without_s = match now.is_empty() {
            true => {
                self.none_since_s = self.none_since_s.or((!self.last.is_empty()).then_some(at_s));
                None
            }
            false => self.none_since_s.take().map(|since_s| at_s - since_s),
        };
        self.last = now;
        if let Some(new) = new {
            self.told.clone_from(&new);
            return Some(EventKind::Leader { node: new });
        }
        let without_s = without_s.filter(|without_s| *without_s >= WORTH_TELLING_S)?;
        Some(EventKind::LeaderAgain { node: self.told.clone(), without_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks, a second after each other.
    fn check(looks: &[&[&str]], expected: &[&str]) {
        let mut leaders = Leaders { told: "n1".to_owned(), ..Leaders::default() };
        let look = |(at_s, look): (usize, &&[&str])| {
            let seen = leaders.take(look.iter().map(ToString::to_string).collect(), at_s as f64)?;
            Some(match seen {
                EventKind::Leader { node } => node,
                EventKind::LeaderAgain { node, without_s } => format!("{node} after {without_s}"),
                other => format!("{other:?}"),
            })
        };
        let told: Vec<String> = looks.iter().enumerate().filter_map(look).collect();
        assert_eq!(told, expected, "{looks:?}");
    }

    #[test]
    fn a_leader_is_told_once_and_not_again_after_it_was_silent_for_a_look() {
        check(&[&["n1"], &[], &["n1"], &["n1"]], &[]);
        check(&[&["n1"], &[], &["n2"], &["n2"], &[], &["n2"]], &["n2"]);
        check(&[&["n2"]], &["n2"]);
    }

    #[test]
    fn a_leader_that_was_gone_for_longer_and_whom_nobody_replaced_leads_again() {
        check(&[&["n1"], &[], &[], &[], &["n1"], &["n1"]], &["n1 after 3"]);
        check(&[&["n1"], &[], &[], &["n2"], &[], &[], &["n2"]], &["n2", "n2 after 2"]);
        // Nobody had led yet.
        check(&[&[], &[], &["n1"]], &[]);
    }

    #[test]
    fn nodes_that_lead_at_once_are_told_when_it_is_over_or_the_run_is() {
        let told = |looks: &[&[&str]]| -> Vec<String> {
            let mut at_once = AtOnce::default();
            let take = |(at_s, look): (usize, &&[&str])| {
                at_once.take(&look.iter().map(ToString::to_string).collect(), at_s as f64)
            };
            let during: Vec<String> = looks.iter().enumerate().filter_map(take).collect();
            during.into_iter().chain(at_once.end(", to the end")).collect()
        };
        let both = "n1 and n2 said that they led at the same time, for";
        assert_eq!(
            told(&[&["n1"], &["n1", "n2"], &["n1", "n2"], &["n1", "n2"], &["n2"]]),
            [format!("{both} 2.0 s")]
        );
        assert_eq!(told(&[&["n1", "n2"], &["n1", "n2"]]), [format!("{both} 1.0 s, to the end")]);
        // The lead passed on while they were asked.
        assert_eq!(told(&[&["n1"], &["n1", "n2"], &["n2"]]), Vec::<String>::new());
        assert_eq!(told(&[&["n1"], &["n1"], &[]]), Vec::<String>::new());
    }

    #[test]
    fn a_new_leader_is_told_beside_an_old_one_that_does_not_know() {
        check(&[&["n1"], &["n1", "n3"], &["n1", "n3"], &["n3"]], &["n3"]);
        check(&[&["n1"], &["n1", "n3"], &["n1"]], &["n3", "n1"]);
    }
}
