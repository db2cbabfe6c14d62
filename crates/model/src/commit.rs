//! What a commit waits for: the round trip to as many standbys as must acknowledge it.
//!
//! A database with one write-ahead log (PostgreSQL) waits once per transaction, at COMMIT: the log is streamed while the
//! transaction runs, and only the commit record is waited for. Source: PostgreSQL documentation, "Synchronous
//! Replication" (`synchronous_standby_names`).

use std::time::Duration;

/// How many standbys must acknowledge a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgements {
    None,
    /// Any so many.
    Any(usize),
    /// Every one.
    All,
}

/// How long a packet takes from one place to another, by their numbers.
pub trait Distances {
    /// How long a packet is under way.
    fn one_way(&self, from: usize, to: usize) -> Duration;

    /// There and back.
    fn round_trip(&self, from: usize, to: usize) -> Duration {
        self.one_way(from, to) + self.one_way(to, from)
    }
}

/// How long the network makes a commit on `leader` wait for its standbys; `None` when there are not enough of them, and
/// a commit waits for ever.
#[must_use]
pub fn commit_wait(
    leader: usize,
    standbys: &[usize],
    wanted: Acknowledgements,
    distances: &impl Distances,
) -> Option<Duration> {
    let wanted = match wanted {
        Acknowledgements::None => 0,
        Acknowledgements::Any(count) => count,
        Acknowledgements::All => standbys.len(),
    };
    if wanted == 0 {
        return Some(Duration::ZERO);
    }
    let mut round_trips: Vec<Duration> =
        standbys.iter().map(|standby| distances.round_trip(leader, *standby)).collect();
    round_trips.sort_unstable();
    // The k-th fastest answer is the one that completes the quorum.
    round_trips.get(wanted - 1).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Milliseconds one way, by row and column.
    struct Table(Vec<Vec<u64>>);

    impl Distances for Table {
        fn one_way(&self, from: usize, to: usize) -> Duration {
            Duration::from_millis(self.0[from][to])
        }
    }

    fn check(wanted: Acknowledgements, expected_ms: Option<u64>) {
        let table = Table(vec![vec![0, 50, 10], vec![0, 0, 0], vec![20, 0, 0]]);
        let found = commit_wait(0, &[1, 2], wanted, &table);
        assert_eq!(found, expected_ms.map(Duration::from_millis), "{wanted:?}");
    }

    #[test]
    fn a_commit_waits_for_as_many_of_the_nearest_as_it_must() {
        check(Acknowledgements::None, Some(0));
        check(Acknowledgements::Any(1), Some(30));
        check(Acknowledgements::Any(2), Some(50));
        check(Acknowledgements::All, Some(50));
    }

    #[test]
    fn a_quorum_larger_than_the_cluster_is_waited_for_for_ever() {
        check(Acknowledgements::Any(3), None);
    }

    proptest! {
        #[test]
        fn waiting_for_one_more_is_never_faster(delays in proptest::collection::vec(0u64..1000, 1..8)) {
            let standbys: Vec<usize> = (1..=delays.len()).collect();
            let mut rows = vec![vec![0; delays.len() + 1]; delays.len() + 1];
            rows[0][1..].copy_from_slice(&delays);
            let table = Table(rows);
            let waits: Vec<_> = (0..=delays.len())
                .map(|count| commit_wait(0, &standbys, Acknowledgements::Any(count), &table))
                .collect();
            prop_assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert_eq!(waits.last().copied().flatten(), delays.iter().max().map(|ms| Duration::from_millis(*ms)));
        }
    }
}
