//! The checks there are.
//!
//! Owns what each proves and does not prove: one entry each. Which of them judge a workload is the workload's to say, in
//! `capabilities`.

use capabilities::workloads;

use crate::list_append::{Level, ListAppend};
use crate::{Check, bank, conditions, convergence, last_writes, ledger, list_append, register, tpcb};

/// A check there is.
pub struct RegisteredCheck {
    /// Its name, as in `result.json` and on the command line.
    pub name: &'static str,
    /// What it demands, one line.
    pub doc: &'static str,
    /// What is shown when it passes.
    pub proves: &'static str,
    /// What it does not prove, although a reader might think so.
    pub does_not_prove: &'static str,
    /// The actions that it looks at, by name; it passes over all others.
    pub actions: &'static [&'static str],
    /// Begins one.
    pub begin: fn() -> Box<dyn Check>,
}

impl RegisteredCheck {
    /// Whether it judges the history of a load of this workload.
    #[must_use]
    pub fn judges(&self, workload: &str) -> bool {
        workloads::is_judged_by(workload, self.name)
    }

    /// The workloads whose histories it judges; none where it judges loads of which every replica was read.
    pub fn workloads(&self) -> impl Iterator<Item = &'static str> {
        workloads::NAMES.iter().copied().filter(move |workload| self.judges(workload))
    }

    /// Whether it takes in what clients of this workload did: the workloads that it judges, and the registers whose replicas
    /// are compared.
    #[must_use]
    pub fn takes_in(&self, workload: &str) -> bool {
        self.judges(workload) || (self.name == convergence::NAME && workload == register::NAME)
    }
}

/// The checks that know each write by itself: which of them is missing, and which nobody sent.
pub const KNOWING_EACH_WRITE: [&str; 3] = [ledger::NAME, last_writes::NAME, conditions::TPCC];

/// Every check, by name.
pub const CHECKS: &[RegisteredCheck] = &[
    RegisteredCheck {
        name: bank::NAME,
        doc: "transfers between accounts neither make nor lose money, nor overdraw where that is forbidden",
        proves: "Every acknowledged read of all accounts, at any time of the run, found the same total, each \
            account once, and none overdrawn where that is forbidden. The last read found the accounts as the \
            acknowledged transfers left them, with some choice of those that had no definite answer.",
        does_not_prove: "That reads are fresh: a read of an old but consistent state passes. That transfers keep \
            to any isolation level in what they themselves read; list-append judges that.",
        actions: &["bank-setup", "bank-transfer", "bank-read"],
        begin: || Box::<bank::Bank>::default(),
    },
    RegisteredCheck {
        name: convergence::NAME,
        doc: "all replicas end with the same values, and no client sees a register go back in time",
        proves: "After the faults every replica held the same, for each register a value that was written and that \
            no client had seen replaced. During the run no client saw a register go back in time, nor did the \
            clients disagree about the order of the values.",
        does_not_prove: "That a read sees the newest acknowledged write (linearizability): replicas may lag during \
            the run. Which of several writes wins, unless a client read one after it had read or written the \
            other: an acknowledged write that loses is not reported as lost, even against an older one.",
        actions: &["register-read", "register-write", "register-compare-and-set", "replica-read"],
        begin: || Box::<convergence::Convergence>::default(),
    },
    RegisteredCheck {
        name: last_writes::NAME,
        doc: "every key or field ends with a client's write that no later acknowledged write replaced",
        proves: "At the end every cell (a key, or a field of a row) holds a write that a client sent, and no \
            acknowledged write to that cell was sent after it had ended: no acknowledged write is lost.",
        does_not_prove: "Anything about what reads returned during the run, or about isolation. That an \
            overwritten value was ever stored: of several writes to one cell only the last counts. That a row \
            which was loaded before the run and not written since is still there.",
        actions: &["cells-write", "cells-read"],
        begin: || Box::<last_writes::LastWrites>::default(),
    },
    RegisteredCheck {
        name: ledger::NAME,
        doc: "at the end every acknowledged insert exists once, and no other row",
        proves: "After the faults every row was read back: each acknowledged insert exists once, and no row exists \
                 that no client sent or that was refused.",
        does_not_prove: "Anything about what reads returned during the run, or about isolation: only the rows at \
            the end are judged.",
        actions: &["ledger-insert", "ledger-read", "unrecorded"],
        begin: || Box::<ledger::Ledger>::default(),
    },
    RegisteredCheck {
        name: list_append::NAME,
        doc: "reads of lists satisfy the claimed isolation level, or the strictest one if none is claimed",
        proves: "All that acknowledged transactions read and appended, during the run and at the end, fits the \
            claimed isolation level: no aborted, intermediate, invented or future data was read, and no cycle of \
            transactions contradicts the level. The final read, where there was one, found every acknowledged append.",
        does_not_prove: "Isolation of predicate reads (ranges, phantoms): transactions read lists by key. Levels \
            stronger than the one claimed, unless the explanation names them.",
        actions: &["append-transaction", "final-read"],
        begin: || Box::new(ListAppend::claiming(Level::STRICT_SERIALIZABLE)),
    },
    RegisteredCheck {
        name: register::NAME,
        doc: "every key behaves as one register, on which each operation acts between its beginning and its end",
        proves: "Every key was linearizable: for each there is an order of all its reads, writes and \
            compare-and-sets, during the run and at the end, that explains every answer and keeps to real time. So \
            no acknowledged read was stale, and no acknowledged write was lost that a later read could have \
            found.",
        does_not_prove: "Anything across keys: each is judged by itself. That a write which no read followed is \
            still there.",
        actions: &["register-read", "register-write", "register-compare-and-set"],
        begin: || Box::<register::Register>::default(),
    },
    RegisteredCheck {
        name: conditions::SCRIPT,
        doc: "the conditions of a user's script hold at the end",
        proves: "The conditions written beside the script held in one transaction after the faults.",
        does_not_prove: "Anything that the conditions do not say. What single transactions read during the run is \
            not recorded, so isolation is not judged, and a lost transaction is found only if it breaks a \
            condition.",
        actions: &["transaction", "conditions-read", "final-read"],
        begin: || Box::new(conditions::Conditions::of_scripts()),
    },
    RegisteredCheck {
        name: tpcb::NAME,
        doc: "accounts, tellers, branches and history add up to the same, and no acknowledged transaction is missing",
        proves: "At the end the balances of accounts, tellers and branches and the deltas in the history table \
            have the same sum, and the history holds every acknowledged transaction and none that was neither \
            acknowledged nor left without an answer.",
        does_not_prove: "Which transaction is missing: transactions are told apart by their amounts only, and a lost \
            one is hidden behind one without an answer that had the same amount, which one of 10,001 has. Anything \
            about what reads returned during the run, or about isolation beyond the sums.",
        actions: &["tpcb-transaction", "tpcb-read", "rows-read"],
        begin: || Box::<tpcb::TpcbSums>::default(),
    },
    RegisteredCheck {
        name: conditions::TPCC,
        doc: "the twelve consistency conditions of TPC-C hold, and no acknowledged order or payment is missing",
        proves: "At the end the twelve consistency conditions of TPC-C hold. Each acknowledged order and payment is there, \
            each known by its number, customer and amount, and none that nobody asked for.",
        does_not_prove: "Anything about what single transactions read during the run; isolation is judged only as far as it \
            breaks a condition. That each acknowledged delivery is there, beyond what the conditions say of it.",
        actions: &["transaction", "rows-read", "conditions-read", "final-read"],
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
    CHECKS.iter().filter(move |check| check.judges(workload))
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

    #[test]
    fn every_check_says_what_it_proves_and_those_of_whole_histories_that_they_prove_it_of_the_run() {
        for check in CHECKS {
            assert!(!check.proves.is_empty() && !check.does_not_prove.is_empty(), "{}", check.name);
        }
        for name in [bank::NAME, list_append::NAME, register::NAME] {
            let proves = find(name).expect("listed").proves;
            let is_of_run =
                ["during the run", "at any time of the run"].iter().any(|of| proves.contains(*of));
            assert!(is_of_run, "{name}: {proves}");
        }
    }

    #[test]
    fn every_check_that_a_workload_names_is_there_and_only_that_of_replicas_is_named_by_none() {
        for name in workloads::NAMES {
            let facts = workloads::workload(name).expect("listed");
            assert!(
                !facts.checks.is_empty() && facts.checks.iter().all(|name| find(name).is_some()),
                "{name}"
            );
        }
        let without: Vec<&str> = CHECKS
            .iter()
            .filter(|check| check.workloads().next().is_none())
            .map(|check| check.name)
            .collect();
        assert_eq!(without, [convergence::NAME]);
    }
}
