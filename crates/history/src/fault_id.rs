//! Which fault of a run is meant: its place in the schedule, as events, records and results have it.
//!
//! Owns the two ways in which it is counted: files and lists count faults from 0, people from 1. It has no `Display`, so that
//! each text says which of the two it means.

use serde::{Deserialize, Serialize};

/// A fault of a run, by its place in the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FaultId(usize);

impl FaultId {
    /// The first of the schedule.
    pub const FIRST: FaultId = FaultId(0);

    /// The fault at this place in the schedule, from 0.
    #[must_use]
    pub const fn new(index: usize) -> FaultId {
        FaultId(index)
    }

    /// Its place in the schedule and in every list of all faults, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }

    /// How people count it: from 1.
    #[must_use]
    pub const fn ordinal(self) -> usize {
        self.0 + 1
    }

    /// All faults of a run, which stand in the order of the schedule, each with what it is.
    pub fn of_each<F>(faults: impl IntoIterator<Item = F>) -> impl Iterator<Item = (FaultId, F)> {
        faults.into_iter().enumerate().map(|(index, fault)| (FaultId(index), fault))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_fault_is_a_plain_number_in_files_as_a_value_and_as_a_key() {
        let faults = BTreeMap::from([(FaultId::new(7), FaultId::new(0))]);
        let text = serde_json::to_string(&faults).expect("JSON");
        assert_eq!(text, "{\"7\":0}");
        assert_eq!(serde_json::from_str::<BTreeMap<FaultId, FaultId>>(&text).expect("faults"), faults);
    }

    #[test]
    fn the_first_fault_of_a_schedule_is_the_first_of_every_list_and_people_call_it_1() {
        let counted = FaultId::of_each(["power-off", "network"]);
        let counted: Vec<_> = counted.map(|(id, kind)| (id.index(), id.ordinal(), kind)).collect();
        assert_eq!(counted, [(0, 1, "power-off"), (1, 2, "network")]);
    }
}
