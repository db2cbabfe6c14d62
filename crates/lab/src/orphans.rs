//! Orphans of a node: processes that its init did not start and whose parent has ended, such as a server that was sent into the
//! background.
//!
//! Owns which of them stand, and of which a stranger's signal is certainly the end. Sends no signals itself.
//!
//! Databases end processes of their own: a parent its child, a script that cleans up what it left. So only SIGKILL counts,
//! and only of an orphan that had been one for a while: whoever starts a process and wants it gone does not wait until
//! nobody answers for it. What the lab has struck, what a process that the lab has signalled had started, and what a person's
//! shell has started do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::node_processes::{INIT, Stat, ancestors, is_of_a_visitor};

/// For how long an orphan must have been one: far longer than whoever lost it takes to tidy up.
const STANDS_AFTER: Duration = Duration::from_secs(2);

/// What is known of orphans.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    standing: BTreeMap<i32, Standing>,
    /// Processes whose end tells nothing of strangers.
    excused: BTreeSet<i32>,
}

#[derive(Debug)]
struct Standing {
    since: Instant,
    program: String,
}

impl Orphans {
    /// Takes a look at all processes of the node.
    pub(crate) fn look(&mut self, all: &BTreeMap<i32, Stat>, now: Instant) {
        self.excused.retain(|pid| all.contains_key(pid));
        self.excused.extend(all.keys().copied().filter(|pid| is_of_a_visitor(all, *pid)));
        let mut before = std::mem::take(&mut self.standing);
        for (pid, stat) in all.iter().filter(|(_, stat)| stat.parent == INIT) {
            let known = before.remove(pid);
            // One that had ended before it came to the init was its parent's to end.
            if known.is_some() || !stat.is_zombie {
                let since = known.map_or(now, |known| known.since);
                self.standing.insert(*pid, Standing { since, program: stat.program.clone() });
            }
        }
    }

    /// The lab ends these itself.
    pub(crate) fn excuse(&mut self, pids: &[i32]) {
        self.excused.extend(pids);
    }

    /// The lab signals this one: what it had started may be ended for that.
    pub(crate) fn excuse_family(&mut self, of: i32, all: &BTreeMap<i32, Stat>) {
        let is_of_family = |pid: &i32| ancestors(all, *pid).any(|ancestor| ancestor == of);
        self.excused.extend(all.keys().copied().filter(is_of_family));
    }

    /// A child of the init has ended and is about to be forgotten. Its program, where it was an orphan that certainly a stranger
    /// has killed.
    pub(crate) fn ended(&mut self, pid: i32, signal: Option<i32>, now: Instant) -> Option<String> {
        let standing = self.standing.remove(&pid);
        let is_excused = self.excused.remove(&pid);
        let standing = standing.filter(|of| now.saturating_duration_since(of.since) >= STANDS_AFTER)?;
        (signal == Some(libc::SIGKILL) && !is_excused).then_some(standing.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATRONI: i32 = 5;
    const SPAWNER: i32 = 6;
    const POSTMASTER: i32 = 7;
    const BACKEND: i32 = 8;

    fn stat(program: &str, parent: i32) -> Stat {
        Stat { program: program.to_owned(), is_stopped: false, is_zombie: false, parent }
    }

    /// A node on which a server is the child of `parent`.
    fn node(parent: i32) -> BTreeMap<i32, Stat> {
        BTreeMap::from([
            (INIT, stat("init", 0)),
            (PATRONI, stat("patroni", INIT)),
            (SPAWNER, stat("patroni", PATRONI)),
            (POSTMASTER, stat("postgres", parent)),
            (BACKEND, stat("postgres", POSTMASTER)),
        ])
    }

    /// What is known where the server has been an orphan for a while, and the moment.
    fn standing() -> (Orphans, Instant) {
        let (mut orphans, zero) = (Orphans::default(), Instant::now());
        orphans.look(&node(INIT), zero);
        orphans.look(&node(INIT), zero + STANDS_AFTER / 2);
        (orphans, zero + STANDS_AFTER)
    }

    #[test]
    fn a_server_in_the_background_that_a_stranger_kills_is_named_once() {
        let (mut orphans, now) = standing();
        let mut dead = node(INIT);
        dead.insert(POSTMASTER, Stat { is_zombie: true, ..stat("postgres", INIT) });
        // A look may come between its end and its reaping.
        orphans.look(&dead, now);
        assert_eq!(orphans.ended(POSTMASTER, Some(libc::SIGKILL), now).as_deref(), Some("postgres"));
        assert_eq!(orphans.ended(POSTMASTER, Some(libc::SIGKILL), now), None);
    }

    #[test]
    fn an_end_by_itself_or_by_a_signal_that_databases_send_tells_nothing() {
        for signal in [None, Some(libc::SIGTERM), Some(libc::SIGQUIT)] {
            let (mut orphans, now) = standing();
            assert_eq!(orphans.ended(POSTMASTER, signal, now), None, "{signal:?}");
        }
    }

    #[test]
    fn what_the_lab_struck_or_had_signalled_the_parent_of_tells_nothing() {
        let (mut orphans, now) = standing();
        orphans.excuse(&[PATRONI, POSTMASTER]);
        assert_eq!(orphans.ended(POSTMASTER, Some(libc::SIGKILL), now), None);
        let (mut orphans, now) = standing();
        orphans.excuse_family(PATRONI, &node(SPAWNER));
        assert_eq!(orphans.ended(POSTMASTER, Some(libc::SIGKILL), now), None);
        let (mut orphans, now) = standing();
        orphans.excuse_family(PATRONI, &node(INIT));
        let program = orphans.ended(POSTMASTER, Some(libc::SIGKILL), now);
        assert!(program.is_some(), "it is not of that family");
    }

    #[test]
    fn what_was_ended_soon_after_it_became_an_orphan_its_own_parent_may_have_ended() {
        let zero = Instant::now();
        let mut orphans = Orphans::default();
        orphans.look(&node(PATRONI), zero);
        orphans.look(&node(INIT), zero + STANDS_AFTER);
        let soon = zero + STANDS_AFTER + STANDS_AFTER / 2;
        assert_eq!(orphans.ended(POSTMASTER, Some(libc::SIGKILL), soon), None);
        let mut dead = node(INIT);
        dead.insert(POSTMASTER, Stat { is_zombie: true, ..stat("postgres", INIT) });
        let mut orphans = Orphans::default();
        orphans.look(&dead, zero);
        assert_eq!(orphans.ended(POSTMASTER, Some(libc::SIGKILL), zero + STANDS_AFTER), None);
    }

    #[test]
    fn what_a_persons_shell_left_behind_tells_nothing() {
        let zero = Instant::now();
        let mut orphans = Orphans::default();
        let mut visited = node(SPAWNER);
        visited.insert(SPAWNER, stat("sh", 0));
        orphans.look(&visited, zero);
        orphans.look(&node(INIT), zero);
        assert_eq!(orphans.ended(POSTMASTER, Some(libc::SIGKILL), zero + STANDS_AFTER), None);
        assert!(orphans.ended(PATRONI, Some(libc::SIGKILL), zero + STANDS_AFTER).is_some());
    }

    #[test]
    fn a_number_that_is_free_again_is_excused_no_more() {
        let (mut orphans, now) = standing();
        orphans.excuse(&[BACKEND]);
        let mut without = node(INIT);
        without.remove(&BACKEND);
        orphans.look(&without, now);
        let mut again = without;
        again.insert(BACKEND, stat("helper", INIT));
        orphans.look(&again, now);
        assert!(orphans.ended(BACKEND, Some(libc::SIGKILL), now + STANDS_AFTER).is_some());
    }
}
