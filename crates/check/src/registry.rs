//! The checks there are.
//!
//! Owns their names and which workloads they apply to: one entry each.

use crate::list_append::{Level, ListAppend};
use crate::{Check, bank, conditions, convergence, last_writes, ledger, list_append, register, tpcb};

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
        name: bank::NAME,
        doc: "transfers between accounts neither make nor lose money, nor overdraw where that is forbidden",
        workloads: &["bank"],
        begin: || Box::<bank::Bank>::default(),
    },
    RegisteredCheck {
        name: convergence::NAME,
        doc: "all replicas hold the same in the end, and no client sees a register go back in time",
        workloads: &["convergence"],
        begin: || Box::<convergence::Convergence>::default(),
    },
    RegisteredCheck {
        name: last_writes::NAME,
        doc: "every key or field ends with a write that somebody made and no acknowledged later write replaced",
        workloads: &["ycsb", "kv", "iot"],
        begin: || Box::<last_writes::LastWrites>::default(),
    },
    RegisteredCheck {
        name: ledger::NAME,
        doc: "every acknowledged insert is there at the end, once, and nothing that nobody asked for",
        workloads: &["ledger"],
        begin: || Box::<ledger::Ledger>::default(),
    },
    RegisteredCheck {
        name: list_append::NAME,
        doc: "what transactions read of lists keeps to the isolation level claimed; without a claim, the strictest",
        workloads: &["append"],
        begin: || Box::new(ListAppend::claiming(Level::STRICT_SERIALIZABLE)),
    },
    RegisteredCheck {
        name: register::NAME,
        doc: "every key behaves as one register, on which each operation acts between its beginning and its end",
        workloads: &["register", "rawio"],
        begin: || Box::<register::Register>::default(),
    },
    RegisteredCheck {
        name: conditions::SCRIPT,
        doc: "the conditions written down beside a script of the user's own hold in the end",
        workloads: &["script"],
        begin: || Box::new(conditions::Conditions::of_scripts()),
    },
    RegisteredCheck {
        name: tpcb::NAME,
        doc: "accounts, tellers, branches and history add up to the same, and no acknowledged transaction is missing",
        workloads: &["tpcb"],
        begin: || Box::<tpcb::TpcbSums>::default(),
    },
    RegisteredCheck {
        name: conditions::TPCC,
        doc: "the twelve consistency conditions of TPC-C hold, and no acknowledged order or payment is missing",
        workloads: &["tpcc"],
        begin: || Box::new(conditions::Conditions::of_tpcc()),
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
