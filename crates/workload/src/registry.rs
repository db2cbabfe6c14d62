//! The workloads there are, one line each.

use crate::workload::Workload;
use crate::{ledger, tpcb};

/// Every workload, in the order they are listed to people.
#[must_use]
pub fn all() -> &'static [&'static dyn Workload] {
    &[&tpcb::Tpcb, &ledger::Ledger]
}

/// The workload with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Workload> {
    all().iter().copied().find(|workload| workload.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_found_by_its_own_name_and_no_other() {
        for workload in all() {
            let found = by_name(workload.name()).expect("listed");
            assert_eq!(found.name(), workload.name());
            assert!(!workload.summary().is_empty() && !workload.statements().is_empty());
        }
        assert!(by_name("tpc-b").is_none());
    }

    #[test]
    fn statement_names_are_given_only_where_a_transaction_has_several() {
        let check = |name: &str, transaction: &str, expected: &[&str]| {
            let workload = by_name(name).expect("listed");
            assert_eq!(workload.transaction_name(), transaction);
            assert_eq!(workload.statement_names(), expected, "{name}");
        };
        check("ledger", "insert", &[]);
        let tpcb = [
            "BEGIN",
            "UPDATE accounts",
            "SELECT accounts",
            "UPDATE tellers",
            "UPDATE branches",
            "INSERT history",
            "END",
        ];
        check("tpcb", "transaction", &tpcb);
    }
}
