//! Writes of one load that are found where another load reads its own.
//!
//! Owns telling them from writes that nobody made. No two clients of a run have a number in common, so no two loads have a
//! write's number in common either: a load's number in another's read says that the two share a table.

use std::collections::{BTreeMap, BTreeSet};

use super::Load;

/// Cells and the numbers found in them: first those of other loads than `reader`, then those of nobody.
pub(super) fn set_apart(
    loads: &BTreeMap<String, Load>,
    reader: &str,
    found: Vec<(u64, u64)>,
) -> (Vec<(u64, u64)>, Vec<(u64, u64)>) {
    let wanted: BTreeSet<u64> = found.iter().map(|(_, value)| *value).collect();
    let mut of_others: BTreeSet<u64> = BTreeSet::new();
    if !wanted.is_empty() {
        for (_, load) in loads.iter().filter(|(name, _)| name.as_str() != reader) {
            let values = load.writes.iter().map(|write| write.value);
            of_others.extend(values.filter(|value| wanted.contains(value)));
        }
    }
    found.into_iter().partition(|(_, value)| of_others.contains(value))
}
