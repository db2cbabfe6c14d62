//! Whether the final state of each load was read, and whether all that its clients did is recorded.
//!
//! Owns what a missing final read does to a check: whatever the check found in the operations that it saw, the data at
//! the end of the run was not looked at, so the check cannot pass. And what missing operations do: most checks then know
//! neither way. The ledger's does, because a row tells by its number whose it is.

use std::collections::{BTreeMap, BTreeSet};

use history::{Action, Operation, Outcome, Verdict};

use crate::report::Report;
use crate::{ledger, registry};

/// Follows a history for the records of final reads.
#[derive(Debug, Default)]
pub struct FinalReads {
    /// Loads whose final state must have been read, with their workload.
    wanted: BTreeMap<String, String>,
    read: BTreeSet<String>,
    /// What is to be said of loads that were not read, by load and workload.
    missed: BTreeMap<(String, String), String>,
    /// Loads of which more may be at nodes that were not read, with their workload.
    in_part: BTreeMap<String, String>,
    /// Loads of which some clients' last operations are not recorded, with their workload.
    unrecorded: BTreeMap<String, String>,
}

impl FinalReads {
    /// Demands a final read of each of these loads, given as name and workload.
    #[must_use]
    pub fn demanded_of(loads: impl IntoIterator<Item = (String, String)>) -> Self {
        FinalReads { wanted: loads.into_iter().collect(), ..FinalReads::default() }
    }

    /// Takes in the next operation.
    pub fn observe(&mut self, operation: &Operation) {
        if let Action::Unrecorded { workload, .. } = &operation.action {
            self.unrecorded.insert(operation.load.clone(), workload.clone());
        }
        let Action::FinalRead { workload, nodes, why } = &operation.action else { return };
        let Operation { load, invoked_s, completed_s, .. } = operation;
        if operation.outcome == Outcome::Ok {
            self.read.insert(load.clone());
            if !why.is_empty() {
                let told = format!("what was read of load {load} in the end may not be all: {why}");
                self.missed.insert((load.clone(), workload.clone()), told);
                self.in_part.insert(load.clone(), workload.clone());
            }
            return;
        }
        let told = format!(
            "the final state of load {load} was not read ({} asked for {:.0} s: {why}). Give the recovery phase more \
             time, or look at the nodes' logs",
            asked(nodes),
            completed_s - invoked_s
        );
        self.missed.insert((load.clone(), workload.clone()), told);
    }

    /// What the check says once it is known which loads were read in the end.
    #[must_use]
    pub fn judge(&self, report: Report) -> Report {
        let check = registry::find(report.name);
        let judges = |workload: &str| check.is_some_and(|check| check.judges(workload));
        let takes_in = |workload: &str| check.is_some_and(|check| check.takes_in(workload));
        let unrecorded = self.unrecorded.iter().find(|(_, workload)| takes_in(workload));
        if let Some((load, _)) = unrecorded.filter(|_| report.name != ledger::NAME) {
            return without_records(report, load);
        }
        let missed =
            self.missed.iter().filter(|((_, workload), _)| judges(workload)).map(|(_, told)| told.clone());
        let silent = self.wanted.iter().filter(|(load, workload)| {
            judges(workload)
                && !self.read.contains(*load)
                && !self.missed.contains_key(&((*load).clone(), (*workload).clone()))
        });
        let silent = silent.map(|(load, _)| {
            format!("the final state of load {load} was not read: the history contains no attempt to read it")
        });
        let doubts: Vec<String> = missed.chain(silent).collect();
        if doubts.is_empty() {
            return report;
        }
        let explanation = format!("{}. What was seen before: {}", doubts.join(". "), report.explanation);
        if self.in_part.values().any(|workload| judges(workload)) && report.only_misses {
            // Of what nobody wrote, nothing was seen where it was read: that says nothing of where it was not.
            return withdrawn(report, explanation);
        }
        // None that is known of is not none.
        let [lost, invented] = [report.lost, report.invented].map(|count| count.filter(|count| *count > 0));
        Report { verdict: report.verdict.and(Verdict::Unknown), explanation, lost, invented, ..report }
    }
}

/// What a check says of a load in which the last operations of some clients are missing: the database may hold what they
/// wrote, and what anybody read may be that.
fn without_records(report: Report, load: &str) -> Report {
    let explanation = format!(
        "the last operations of some clients of load {load} are not recorded, because the process that had them was \
         lost; what they wrote cannot be told from what nobody wrote. What is recorded: {}",
        report.explanation
    );
    withdrawn(report, explanation)
}

/// What was counted is not told, nor which writes it was.
fn withdrawn(report: Report, explanation: String) -> Report {
    let (lost, invented, lost_examples) = (None, None, Vec::new());
    Report { verdict: Verdict::Unknown, explanation, lost, invented, lost_examples, ..report }
}

fn asked(nodes: &[String]) -> String {
    match nodes {
        [] => "nobody was".to_owned(),
        [node] => format!("{node} was"),
        several => format!("{} were", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bank, convergence, register};

    fn read(load: &str, workload: &str, outcome: Outcome) -> Operation {
        let why = if outcome == Outcome::Ok { "" } else { "no node takes writes: n1: connection refused" };
        Operation {
            load: load.to_owned(),
            client: 7,
            action: Action::FinalRead {
                workload: workload.to_owned(),
                nodes: vec!["n1".to_owned()],
                why: why.to_owned(),
            },
            invoked_s: 20.0,
            completed_s: 80.0,
            outcome,
            error: None,
            node: None,
        }
    }

    fn judged(reads: &[Operation], wanted: &[(&str, &str)], verdict: Verdict) -> (Verdict, String) {
        let mut report = Report::new(register::NAME);
        report.verdict = verdict;
        report.explanation = "all is well".to_owned();
        judged_report(reads, wanted, report)
    }

    fn judged_report(reads: &[Operation], wanted: &[(&str, &str)], report: Report) -> (Verdict, String) {
        let wanted = wanted.iter().map(|(load, workload)| ((*load).to_owned(), (*workload).to_owned()));
        let mut final_reads = FinalReads::demanded_of(wanted);
        for read in reads {
            final_reads.observe(read);
        }
        let report = final_reads.judge(report);
        (report.verdict, report.explanation)
    }

    #[test]
    fn where_operations_are_not_recorded_most_checks_say_nothing_and_the_ledgers_speaks_for_itself() {
        let action = Action::Unrecorded { workload: "register".to_owned(), first_client: 4, clients: 2 };
        let lost = Operation { action, ..read("r", "register", Outcome::Unknown) };
        let recorded = [lost.clone(), read("r", "register", Outcome::Ok)];
        let (verdict, told) = judged(&recorded, &[("r", "register")], Verdict::Fail);
        assert!(verdict == Verdict::Unknown && told.contains("clients of load r are not recorded"), "{told}");
        let (verdict, _) = judged(&recorded[1..], &[("r", "register")], Verdict::Fail);
        assert_eq!(verdict, Verdict::Fail);
        // What replicas hold and clients read may be what nobody recorded.
        let mut final_reads = FinalReads::default();
        final_reads.observe(&lost);
        let report = Report { verdict: Verdict::Fail, ..Report::new(convergence::NAME) };
        assert_eq!(final_reads.judge(report).verdict, Verdict::Unknown);
        let action = Action::Unrecorded { workload: "ledger".to_owned(), first_client: 4, clients: 2 };
        let mut final_reads = FinalReads::default();
        final_reads.observe(&Operation { action, ..lost });
        let report = Report { verdict: Verdict::Pass, ..Report::new(ledger::NAME) };
        assert_eq!(final_reads.judge(report).verdict, Verdict::Pass);
    }

    #[test]
    fn a_final_read_that_failed_leaves_the_checks_of_its_load_in_doubt_and_says_what_was_not_read() {
        let failed = [read("r", "register", Outcome::Fail)];
        let (verdict, told) = judged(&failed, &[("r", "register")], Verdict::Pass);
        assert_eq!(verdict, Verdict::Unknown);
        assert_eq!(
            told,
            "the final state of load r was not read (n1 was asked for 60 s: no node takes writes: n1: connection \
             refused). Give the recovery phase more time, or look at the nodes' logs. What was seen before: all is well"
        );
        // A history that somebody else judges says so by itself.
        assert_eq!(judged(&failed, &[], Verdict::Pass).0, Verdict::Unknown);
        // What was shown not to hold stays shown.
        assert_eq!(judged(&failed, &[], Verdict::Fail).0, Verdict::Fail);
    }

    #[test]
    fn what_was_read_at_one_of_two_leaders_shows_no_pass_and_not_that_nothing_is_lost() {
        let why = "n1 and n2 led at once".to_owned();
        let (nodes, workload) = (vec!["n1".to_owned(), "n2".to_owned()], ledger::NAME.to_owned());
        let action = Action::FinalRead { workload, nodes, why };
        let read = Operation { action, ..read("l", ledger::NAME, Outcome::Ok) };
        let mut final_reads = FinalReads::default();
        final_reads.observe(&read);
        let with = |verdict, lost| Report {
            verdict,
            lost: Some(lost),
            invented: Some(0),
            only_misses: lost > 0,
            ..Report::new(ledger::NAME)
        };
        let judged = final_reads.judge(with(Verdict::Pass, 0));
        assert_eq!((judged.verdict, judged.lost, judged.invented), (Verdict::Unknown, None, None));
        let told = "what was read of load l in the end may not be all: n1 and n2 led at once. What was seen";
        assert!(judged.explanation.starts_with(told), "{}", judged.explanation);
        // The other leader may have what is missing at this one; a row that is there twice, or that nobody wrote, is there.
        let judged = final_reads.judge(with(Verdict::Fail, 3));
        assert_eq!((judged.verdict, judged.lost), (Verdict::Unknown, None));
        let judged = final_reads.judge(Report { only_misses: false, ..with(Verdict::Fail, 3) });
        assert_eq!((judged.verdict, judged.lost), (Verdict::Fail, Some(3)));
    }

    #[test]
    fn a_bank_whose_final_read_failed_says_that_first_whatever_its_check_lacked() {
        let failed = [read("b", bank::NAME, Outcome::Fail)];
        let mut report = Report::new(bank::NAME);
        report.verdict = Verdict::Unknown;
        report.explanation = "no read was acknowledged".to_owned();
        let (verdict, told) = judged_report(&failed, &[("b", bank::NAME)], report);
        assert_eq!(verdict, Verdict::Unknown);
        assert!(told.starts_with("the final state of load b was not read"), "{told}");
        assert!(told.ends_with("What was seen before: no read was acknowledged"), "{told}");
    }

    #[test]
    fn a_load_of_whose_final_read_the_history_is_silent_was_not_read() {
        let (verdict, told) = judged(&[], &[("r", "register")], Verdict::Pass);
        assert_eq!(verdict, Verdict::Unknown);
        assert!(told.contains("load r was not read"), "{told}");
    }

    #[test]
    fn a_final_read_that_happened_and_one_of_another_workload_leave_a_check_as_it_is() {
        let reads = [read("r", "register", Outcome::Ok), read("b", bank::NAME, Outcome::Fail)];
        let wanted = [("r", "register"), ("b", "bank")];
        assert_eq!(judged(&reads, &wanted, Verdict::Pass), (Verdict::Pass, "all is well".to_owned()));
    }
}
