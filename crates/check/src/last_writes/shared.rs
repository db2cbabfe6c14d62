//! Writes of one load that are found where another load reads its own.
//!
//! Owns telling them from writes that nobody made. No two clients of a run have a number in common, so no two loads have a
//! write's number in common either: a load's number in another's read says that the two share a table. In a cell that the
//! reader never wrote, and where the other put it, such a number says nothing of the reader's writes: it is the other's to judge.

use std::collections::{BTreeMap, BTreeSet};

use super::Load;

/// Pairs of a cell and the number found in it, or the other way round.
type Numbers = Vec<(u64, u64)>;

/// First those of other loads than `reader` that stand where they may have replaced its own, then those of nobody.
pub(super) fn set_apart(loads: &BTreeMap<String, Load>, reader: &str, found: Numbers) -> (Numbers, Numbers) {
    let wanted: BTreeSet<u64> = found.iter().map(|(_, value)| *value).collect();
    let of_another = |(name, load): (&String, &Load)| {
        let writes = load.writes.iter().filter(|write| name != reader && wanted.contains(&write.value));
        writes.map(|write| (write.value, write.cell)).collect::<Numbers>()
    };
    let mut of_others: Numbers =
        if wanted.is_empty() { Numbers::new() } else { loads.iter().flat_map(of_another).collect() };
    of_others.sort_unstable();
    let is_own = |cell: u64| {
        let writes = loads.get(reader).map_or(&[][..], |load| &load.writes);
        // Judged, and so in the order of their cells.
        writes.binary_search_by_key(&cell, |write| write.cell).is_ok()
    };
    let is_anothers =
        |(cell, value): &(u64, u64)| !is_own(*cell) && of_others.binary_search(&(*value, *cell)).is_ok();
    let found = found.into_iter().filter(|found| !is_anothers(found));
    found.partition(|(_, value)| of_others.binary_search_by_key(value, |(value, _)| *value).is_ok())
}
