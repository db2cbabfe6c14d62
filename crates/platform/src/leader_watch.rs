//! Tells who leads where nodes elect their leader themselves: each is asked by itself, inside, again and again.
//!
//! Owns the looks and what counts as another leader, as the same one again, or as two at once. Where the platform promotes, it tells so
//! itself. What is said here is when it was seen: up to a look later than it was so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::Roles;
use history::{EventKind, EventSink, LeadersAtOnce};

use crate::platform::Platform;

/// Between two looks. A node that does not answer holds one up for a second.
const INTERVAL: Duration = Duration::from_millis(200);
/// Shorter times without a leader are not reported, seconds: one slow node delays a look by as much.
const WORTH_TELLING_S: f64 = 1.5;

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
    let began = Instant::now();
    let now_s = || began.elapsed().as_secs_f64();
    let mut leaders = Leaders::from(platform.leader().to_string());
    let mut at_once = AtOnce::default();
    let mut told = Told::default();
    let tell = |seen: Option<LeadersAtOnce>| {
        seen.into_iter().for_each(|seen| events.say(EventKind::LeadersAtOnce { seen }));
    };
    let mut changes = 0;
    loop {
        let at_s = now_s();
        let look = Look::of(platform.roles());
        let is_first = told.last_s.is_none();
        told.take(&look, at_s);
        tell(at_once.take(&look, at_s));
        if let Some(seen) = leaders.take(look.leaders, at_s) {
            // Who led before the loads began has not changed under them.
            changes += u64::from(!is_first && matches!(seen, EventKind::Leader { .. }));
            events.say(seen);
        }
        if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    tell(at_once.end(at_once.is_now));
    if let Some(longest_pause_s) = told.longest_pause_s(now_s()) {
        events.say(EventKind::LeadersMonitored { changes, longest_pause_s });
    }
}

/// What the nodes said when they were asked once.
#[derive(Debug, Default)]
struct Look {
    leaders: BTreeSet<String>,
    silent: BTreeSet<String>,
}

impl Look {
    fn of(roles: Roles) -> Look {
        Look { leaders: roles.leaders.into_iter().collect(), silent: roles.silent.into_keys().collect() }
    }
}

/// When it was known who leads, or that nobody does, seconds.
#[derive(Default)]
struct Told {
    last_s: Option<f64>,
    longest_pause_s: f64,
}

impl Told {
    /// Where nobody says that it leads, one that is silent may.
    fn take(&mut self, look: &Look, at_s: f64) {
        if look.leaders.is_empty() && !look.silent.is_empty() {
            return;
        }
        // Before the first answer it was not known either.
        self.longest_pause_s = self.longest_pause_s.max(at_s - self.last_s.unwrap_or(0.0));
        self.last_s = Some(at_s);
    }

    /// Nothing where it was never known.
    fn longest_pause_s(&self, end_s: f64) -> Option<f64> {
        Some(self.longest_pause_s.max(end_s - self.last_s?))
    }
}

/// Several nodes that said that they lead, until at most one did.
#[derive(Default)]
struct AtOnce {
    /// All that did meanwhile; nobody where one leads.
    nodes: BTreeSet<String>,
    /// Those of the last look that saw several.
    last: BTreeSet<String>,
    from_s: f64,
    to_s: f64,
    /// Between the answers of one look the lead may have passed from one to another: the same two in the next look tell.
    is_sure: bool,
    /// Whether the last look saw several.
    is_now: bool,
}

impl AtOnce {
    /// What to tell after a look: those before, of whom at most one still leads. One that is silent may still do so.
    fn take(&mut self, look: &Look, at_s: f64) -> Option<LeadersAtOnce> {
        if look.leaders.len() > 1 {
            if self.nodes.is_empty() {
                self.from_s = at_s;
            }
            self.is_sure |= look.leaders.intersection(&self.last).count() > 1;
            self.nodes.extend(look.leaders.iter().cloned());
            self.last.clone_from(&look.leaders);
            (self.to_s, self.is_now) = (at_s, true);
            return None;
        }
        if self.is_sure && !self.nodes.is_disjoint(&look.silent) {
            self.is_now = false;
            return None;
        }
        let told = self.end(false);
        *self = AtOnce::default();
        told
    }

    fn end(&self, to_the_end: bool) -> Option<LeadersAtOnce> {
        let nodes = || self.nodes.iter().cloned().collect();
        self.is_sure.then(|| LeadersAtOnce { nodes: nodes(), for_s: self.to_s - self.from_s, to_the_end })
    }
}

/// Who led when it was looked last, and who was told to.
struct Leaders {
    told: String,
    last: BTreeSet<String>,
    /// All that have led.
    known: BTreeSet<String>,
    /// Since when no node has said that it leads, where one had.
    none_since_s: Option<f64>,
}

impl Leaders {
    fn from(told: String) -> Leaders {
        Leaders { known: BTreeSet::from([told.clone()]), told, last: BTreeSet::new(), none_since_s: None }
    }

    /// What to tell after a look at which these nodes said that they lead. An old leader that is cut off, or comes back, may say so
    /// beside the new one; a leader that was silent for a look is no new one, and for longer it leads again.
    fn take(&mut self, now: BTreeSet<String>, at_s: f64) -> Option<EventKind> {
        let new = match now.contains(&self.told) {
            true => now.difference(&self.known).next(),
            false => now.difference(&self.last).next().or(now.first()),
        };
        let new = new.cloned();
        let without_s = match now.is_empty() {
            true => {
                self.none_since_s = self.none_since_s.or((!self.last.is_empty()).then_some(at_s));
                None
            }
            false => self.none_since_s.take().map(|since_s| at_s - since_s),
        };
        self.known.extend(now.iter().cloned());
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
        let mut leaders = Leaders::from("n1".to_owned());
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

    /// Leaders and those that are silent.
    type Said<'a> = (&'a [&'a str], &'a [&'a str]);

    fn look((leaders, silent): &Said) -> Look {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Look { leaders: names(leaders), silent: names(silent) }
    }

    #[test]
    fn nodes_that_lead_at_once_are_told_when_it_is_over_or_the_run_is() {
        let told = |looks: &[Said]| -> Vec<String> {
            let mut at_once = AtOnce::default();
            let take = |(at_s, said): (usize, &Said)| at_once.take(&look(said), at_s as f64);
            let during: Vec<LeadersAtOnce> = looks.iter().enumerate().filter_map(take).collect();
            during.into_iter().chain(at_once.end(at_once.is_now)).map(|seen| seen.to_string()).collect()
        };
        let both = "n1 and n2 said that they led at the same time, for";
        let (one, other, two): (Said, Said, Said) = ((&["n1"], &[]), (&["n2"], &[]), (&["n1", "n2"], &[]));
        assert_eq!(told(&[one, two, two, two, other]), [format!("{both} 2.0 s")]);
        assert_eq!(told(&[two, two]), [format!("{both} 1.0 s, and still did when the run ended")]);
        // One of them did not answer once, and then said so again.
        let silent: Said = (&["n2"], &["n1"]);
        assert_eq!(told(&[two, two, silent, two, other]), [format!("{both} 3.0 s")]);
        assert_eq!(told(&[two, two, silent]), [format!("{both} 1.0 s")]);
        // What one look saw is no more because one of the two is silent then.
        assert_eq!(told(&[two, silent, two, other]), Vec::<String>::new());
        // Others join.
        let three: Said = (&["n1", "n2", "n3"], &[]);
        assert_eq!(told(&[two, three, other]).len(), 1);
        // The lead passed on while they were asked.
        assert_eq!(told(&[one, two, other]), Vec::<String>::new());
        assert_eq!(told(&[one, one, (&[], &[])]), Vec::<String>::new());
    }

    #[test]
    fn who_leads_is_not_known_while_nobody_says_so_and_somebody_is_silent() {
        let pause_s = |looks: &[Said], end_s: f64| {
            let mut told = Told::default();
            looks.iter().enumerate().for_each(|(at_s, said)| told.take(&look(said), at_s as f64));
            told.longest_pause_s(end_s)
        };
        let (leads, nobody, silent): (Said, Said, Said) = ((&["n1"], &["n2"]), (&[], &[]), (&[], &["n1"]));
        assert_eq!(pause_s(&[leads, leads, nobody, leads], 4.0), Some(1.0));
        assert_eq!(pause_s(&[leads, silent, silent, silent, leads], 5.0), Some(4.0));
        assert_eq!(pause_s(&[leads, silent, silent], 7.0), Some(7.0));
        assert_eq!(pause_s(&[silent, silent, silent, leads], 4.0), Some(3.0));
        assert_eq!(pause_s(&[silent, silent], 2.0), None);
    }

    #[test]
    fn a_new_leader_is_told_beside_an_old_one_that_does_not_know() {
        check(&[&["n1"], &["n1", "n3"], &["n1", "n3"], &["n3"]], &["n3"]);
        check(&[&["n1"], &["n1", "n3"], &["n1"]], &["n3", "n1"]);
        // The old one does not answer once; it comes back for a moment.
        check(&[&["n1"], &["n1", "n3"], &["n3"], &["n1", "n3"], &["n3"]], &["n3"]);
        check(&[&["n1"], &[], &["n2"], &["n1", "n2"], &["n2"]], &["n2"]);
    }
}
