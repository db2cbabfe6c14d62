//! The checks there are.
//!
//! Owns their names and which workloads they apply to: one entry each.

use crate::{Check, ledger, tpcb};

/// A check there is.
pub struct RegisteredCheck {
    /// Its name, as in `result.json` and on the command line.
    pub name: &'static str,
    /// What it demands, one line.
    pub doc: &'static str,
    /// The workloads whose histories it judges.
    pub workloads: &'static [&'static str],
    /// Begins one.
    pub begin: fn() -> Box<dyn Check>,
}

/// Every check, by name.
pub const CHECKS: &[RegisteredCheck] = &[
    RegisteredCheck {
        name: ledger::NAME,
        doc: "every acknowledged insert is there at the end, once, and nothing that nobody asked for",
        workloads: &["ledger"],
        begin: || Box::<ledger::Ledger>::default(),
    },
    RegisteredCheck {
        name: tpcb::NAME,
        doc: "accounts, tellers, branches and history add up to the same, and no acknowledged transaction is missing",
        workloads: &["tpcb"],
        begin: || Box::<tpcb::TpcbSums>::default(),
    },
];

/// The check of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static RegisteredCheck> {
    CHECKS.iter().find(|check| check.name == name)
}

/// The checks that apply to a workload.
pub fn for_workload(workload: &str) -> impl Iterator<Item = &'static RegisteredCheck> {
    CHECKS.iter().filter(move |check| check.workloads.contains(&workload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_found_by_name_and_by_workload() {
        for check in CHECKS {
            assert_eq!(find(check.name).map(|found| found.doc), Some(check.doc));
            assert_eq!((check.begin)().conclude().name, check.name);
            assert_eq!(
                (check.begin)().conclude().verdict,
                history::Verdict::Unknown,
                "nothing seen proves nothing"
            );
        }
        assert!(find("no-such-check").is_none());
        assert_eq!(for_workload("tpcb").map(|check| check.name).collect::<Vec<_>>(), ["tpcb-sums"]);
        assert!(CHECKS.is_sorted_by_key(|check| check.name));
    }
}
