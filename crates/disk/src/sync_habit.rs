//! Whether the writes of a file are each followed by a sync, as those of a database's log are.
//!
//! Pure: a guess from what the file has seen. A store that is told of it can begin with its work while the sync is still
//! on its way; nothing that a volume promises depends on the guess being right.

/// Writes between two syncs at most: a log's buffer may end within a record, which then takes two.
const WRITES_MAX: u8 = 2;
/// Syncs in a row with so few writes before them, before the next is expected.
const SYNCS_MIN: u8 = 3;

/// What one file has seen lately.
#[derive(Debug, Default)]
pub(crate) struct SyncHabit {
    writes: u8,
    syncs: u8,
}

impl SyncHabit {
    /// The file is written. Returns whether a sync is to be expected at once.
    pub(crate) fn written(&mut self) -> bool {
        self.writes = self.writes.saturating_add(1);
        self.syncs >= SYNCS_MIN && self.writes <= WRITES_MAX
    }

    pub(crate) fn synced(&mut self) {
        match std::mem::take(&mut self.writes) {
            // Says nothing: there is nothing to sync.
            0 => {}
            1..=WRITES_MAX => self.syncs = self.syncs.saturating_add(1),
            _ => self.syncs = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> SyncHabit {
        let mut habit = SyncHabit::default();
        for _ in 0..SYNCS_MIN {
            assert!(!habit.written());
            habit.synced();
        }
        habit
    }

    #[test]
    fn a_file_that_is_synced_after_each_write_is_expected_to_be_once_it_has_been_a_few_times() {
        let mut habit = log();
        for _ in 0..1000 {
            assert!(habit.written());
            habit.synced();
        }
    }

    #[test]
    fn a_file_that_is_written_again_and_again_is_not_expected_to_be_synced() {
        let mut habit = log();
        let expected: Vec<bool> = (0..300).map(|_| habit.written()).collect();
        assert_eq!(expected.iter().filter(|expected| **expected).count(), usize::from(WRITES_MAX));
        habit.synced();
        assert!(!habit.written());
    }

    #[test]
    fn syncs_without_a_write_are_no_habit() {
        let mut habit = SyncHabit::default();
        for _ in 0..10 {
            habit.synced();
        }
        assert!(!habit.written());
    }
}
