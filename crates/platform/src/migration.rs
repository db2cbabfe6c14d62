//! Live migration on paper: how many rounds of copying it takes until what is left can be sent while the VM stands still, and
//! where to.
//!
//! A pure core. Memory is copied while the VM runs; what it dirties meanwhile is copied again, round by round (pre-copy: Clark et
//! al., Live Migration of Virtual Machines, NSDI 2005). What is measured comes in as arguments; carrying it out is `migrating`'s
//! business.

use std::time::Duration;

/// What a migration must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The VM's memory: no round copies more.
    pub(crate) memory_bytes: u64,
    /// How long the last round may take, which the VM stands still for.
    pub(crate) last_round: Duration,
    /// Rounds of copying before it is given up.
    pub(crate) max_rounds: u32,
}

/// A round of copying, as it went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Round {
    /// What was copied.
    pub(crate) bytes: u64,
    /// How long that took.
    pub(crate) took: Duration,
    /// What the VM dirtied meanwhile.
    pub(crate) dirtied_bytes: u64,
}

/// What comes after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another round, of so many bytes.
    Copy(u64),
    /// So little is left that the VM can be stopped for it.
    SwitchOver(u64),
    /// So much is still left, and there are no more rounds.
    DoesNotConverge(u64),
}

/// The rounds so far.
#[derive(Debug)]
pub(crate) struct Precopy {
    bounds: Bounds,
    pub(crate) rounds: Vec<Round>,
}

impl Precopy {
    /// None yet. The first copies all of the memory.
    pub(crate) fn new(bounds: Bounds) -> Precopy {
        Precopy { bounds, rounds: Vec::new() }
    }

    /// A round is over.
    pub(crate) fn after(&mut self, round: Round) -> Next {
        self.rounds.push(round);
        let left = round.dirtied_bytes.min(self.bounds.memory_bytes);
        let enough = self.bytes_in(self.bounds.last_round);
        if left == 0 || left as f64 <= enough {
            return Next::SwitchOver(left);
        }
        let count = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
        if count >= self.bounds.max_rounds { Next::DoesNotConverge(left) } else { Next::Copy(left) }
    }

    /// All that was copied.
    pub(crate) fn bytes(&self) -> u64 {
        self.rounds.iter().map(|round| round.bytes).sum()
    }

    /// How long all of it took.
    pub(crate) fn took(&self) -> Duration {
        self.rounds.iter().map(|round| round.took).sum()
    }

    /// How much would be copied in a time, at the rate of all rounds together.
    fn bytes_in(&self, time: Duration) -> f64 {
        let took_s = self.took().as_secs_f64();
        if took_s > 0.0 { self.bytes() as f64 / took_s * time.as_secs_f64() } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn bounds(memory_bytes: u64, max_rounds: u32) -> Bounds {
        Bounds { memory_bytes, last_round: Duration::from_millis(300), max_rounds }
    }

    /// Rounds over a link of that rate with a VM that dirties so many bytes a second, to their end.
    fn run(bounds: Bounds, link: f64, dirty: impl Fn(usize) -> f64) -> (Precopy, Next) {
        let mut precopy = Precopy::new(bounds);
        let mut bytes = bounds.memory_bytes;
        loop {
            let took = Duration::from_secs_f64(bytes as f64 / link);
            let dirtied_bytes = (dirty(precopy.rounds.len()) * took.as_secs_f64()) as u64;
            match precopy.after(Round { bytes, took, dirtied_bytes }) {
                Next::Copy(next) => bytes = next,
                end => return (precopy, end),
            }
        }
    }

    #[test]
    fn a_vm_that_rests_is_copied_once_and_one_that_writes_faster_than_the_link_never_converges() {
        let (resting, end) = run(bounds(512 * MIB, 10), 100e6, |_| 0.0);
        assert_eq!((resting.rounds.len(), end), (1, Next::SwitchOver(0)));
        let (writing, end) = run(bounds(512 * MIB, 10), 100e6, |_| 200e6);
        assert_eq!((writing.rounds.len(), end), (10, Next::DoesNotConverge(512 * MIB)));
        assert_eq!(writing.bytes(), 10 * 512 * MIB);
    }

    #[test]
    fn each_round_copies_what_was_dirtied_in_the_one_before() {
        // A tenth of the link's rate: 1000, 100, 10 MB; 10 MB take 0.1 s.
        let (precopy, end) = run(bounds(1_000_000_000, 10), 100e6, |_| 10e6);
        let bytes: Vec<u64> = precopy.rounds.iter().map(|round| round.bytes).collect();
        assert_eq!(
            (bytes.as_slice(), end),
            (&[1_000_000_000, 100_000_000][..], Next::SwitchOver(10_000_000))
        );
    }

    proptest! {
        /// However the dirty rate changes, it ends within its rounds, copies no more than the memory in any, and stops the VM
        /// only for what the link carries in the time allowed.
        #[test]
        fn it_ends_and_keeps_its_bounds(
            memory_mib in 1_u64..100_000,
            link in 1e5..1e10_f64,
            max_rounds in 1_u32..40,
            dirty in prop::collection::vec(0.0..2e10_f64, 1..40),
        ) {
            let bounds = bounds(memory_mib * MIB, max_rounds);
            let (precopy, end) = run(bounds, link, |round| dirty[round % dirty.len()]);
            prop_assert!(!precopy.rounds.is_empty() && precopy.rounds.len() <= max_rounds as usize);
            prop_assert!(precopy.rounds.iter().all(|round| round.bytes <= bounds.memory_bytes));
            prop_assert_eq!(precopy.rounds[0].bytes, bounds.memory_bytes);
            match end {
                Next::SwitchOver(left) => prop_assert!(left as f64 <= link * 0.3 * 1.001 + 1.0),
                Next::DoesNotConverge(left) => {
                    prop_assert!(left <= bounds.memory_bytes);
                    prop_assert_eq!(precopy.rounds.len(), max_rounds as usize);
                }
                Next::Copy(_) => prop_assert!(false, "it did not end"),
            }
        }

        /// A VM that dirties less than half of what the link carries converges, in as many rounds as it takes to halve.
        #[test]
        fn it_converges_when_the_link_is_twice_as_fast(
            memory_mib in 1_u64..100_000,
            link in 1e6..1e10_f64,
            share in 0.0..0.5_f64,
        ) {
            let bounds = bounds(memory_mib * MIB, 64);
            let (precopy, end) = run(bounds, link, |_| link * share);
            prop_assert!(matches!(end, Next::SwitchOver(_)), "{end:?} after {} rounds", precopy.rounds.len());
            prop_assert!(precopy.bytes() <= 2 * bounds.memory_bytes);
        }
    }
}
