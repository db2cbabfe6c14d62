//! The checks of a run, made on its history as it stands in the run directory.
//!
//! Owns which checks apply and at which level. What a check proves is `check`'s business.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use check::FinalReads;
use check::list_append::{self, Isolation, Level, ListAppend, Order};
use check::registry;
use history::{HistoryReader, LoadFacts, Operation, Verdict};
use results::{CheckResult, EndedEarly, RunResult};
use scenario::Scenario;

use crate::shown::Planned;

/// The workload whose history is held against an isolation level.
const APPEND: &str = capabilities::workloads::APPEND.name;

/// The check made for one load, with the writes it found lost.
pub(crate) struct Checked {
    pub(crate) result: CheckResult,
    pub(crate) lost: Vec<check::LostWrite>,
}

impl Checked {
    /// Takes back what it says: nothing follows from it, neither way. `so_far` introduces what it said.
    pub(crate) fn taken_back(mut self, why: &str, so_far: &str) -> Checked {
        self.lost.clear();
        let result = &mut self.result;
        result.verdict = Verdict::Unknown;
        (result.lost, result.invented) = (None, None);
        result.explanation = format!("{why}. {so_far}: {}", result.explanation);
        self
    }
}

/// Every check that applies to a load, made on the history as it stands in the run directory: what is judged is what
/// anybody can judge again. A check sees all loads, because they may share their tables. `seen_as` is how checks see an
/// operation of the file.
pub(crate) fn check_all(planned: &Planned<'_>, seen_as: &dyn Fn(&Operation) -> Operation) -> Vec<Checked> {
    // Every replica was read for itself.
    let compared = planned.plans.iter().any(load::are_compared).then_some(check::convergence::NAME);
    let claimed = claimed(planned.isolation, planned.scenario);
    check_history((&planned.facts.loads, compared), claimed, planned.directory, seen_as)
}

/// The checks that apply to a load alone, with these options on a PostgreSQL that nobody configured for us, made on the
/// history in the run directory.
pub(crate) fn checks_of(
    result: &RunResult,
    options: &BTreeMap<String, String>,
    directory: &Path,
) -> Vec<CheckResult> {
    let isolation = begun_at(options).unwrap_or(Isolation::ReadCommitted);
    let loads = &result.facts.loads;
    let ended = result.loads.iter().filter_map(|load| Some((load.name.clone(), load.ended_early.clone()?)));
    let ended = ended.collect();
    let claimed = Level { isolation, order: Order::Any };
    check_history((loads, None), claimed, directory, &Operation::clone)
        .into_iter()
        .map(|checked| without_records(checked, loads, &ended).result)
        .collect()
}

/// What a database claims of the transactions of these loads, in the checker's words. Loads over lists share them, so the
/// weakest level that any of them begins at is what holds for all.
fn claimed(isolation: capabilities::Isolation, scenario: &Scenario) -> Level {
    let by_default = match isolation {
        capabilities::Isolation::ReadCommitted => Isolation::ReadCommitted,
        capabilities::Isolation::SnapshotIsolation => Isolation::Snapshot,
        capabilities::Isolation::Serializable => Isolation::Serializable,
    };
    let begun_at = |load: &scenario::Load| begun_at(&load.options).unwrap_or(by_default);
    let judged = scenario.loads.iter().filter(|load| load.workload == APPEND);
    let isolation = judged.map(begun_at).min().unwrap_or(by_default);
    let in_real_time = scenario.database.engine.keeps_real_time_order;
    let order = if in_real_time { Order::RealTime } else { Order::Any };
    Level { isolation, order }
}

/// The level that the option `isolation` has transactions begin at.
fn begun_at(options: &BTreeMap<String, String>) -> Option<Isolation> {
    match options.get("isolation").map(String::as_str) {
        Some("read-committed") => Some(Isolation::ReadCommitted),
        Some("repeatable-read") => Some(Isolation::Snapshot),
        Some("serializable") => Some(Isolation::Serializable),
        _ => None,
    }
}

fn check_history(
    (loads, further): (&[LoadFacts], Option<&str>),
    level: Level,
    directory: &Path,
    seen_as: &dyn Fn(&Operation) -> Operation,
) -> Vec<Checked> {
    let applies = |registered: &registry::RegisteredCheck| {
        further == Some(registered.name) || loads.iter().any(|load| registered.judges(&load.workload))
    };
    let wanted = loads.iter().map(|load| (load.name.clone(), load.workload.clone()));
    let mut final_reads = FinalReads::demanded_of(wanted);
    let mut checks: Vec<Box<dyn check::Check>> = registry::CHECKS
        .iter()
        .filter(|registered| applies(registered))
        .map(|registered| match registered.name {
            list_append::NAME => Box::new(ListAppend::claiming(level)),
            _ => (registered.begin)(),
        })
        .collect();
    let broken = feed(&mut checks, &mut final_reads, directory, seen_as).err();
    let conclude =
        |check: Box<dyn check::Check>| checked(final_reads.judge(check.conclude()), broken.as_deref());
    checks.into_iter().map(conclude).collect()
}

fn feed(
    checks: &mut [Box<dyn check::Check>],
    final_reads: &mut FinalReads,
    directory: &Path,
    seen_as: &dyn Fn(&Operation) -> Operation,
) -> Result<(), String> {
    let file = File::open(directory.join("history.jsonl.zst")).map_err(|error| error.to_string())?;
    // A record that contradicts itself is our fault, and nothing follows from it about the database.
    let mut soundness = check::Soundness::default();
    for operation in HistoryReader::new(BufReader::new(file)).map_err(|error| error.to_string())? {
        let operation = operation.map_err(|error| error.to_string())?;
        soundness.observe(&operation).map_err(|contradiction| contradiction.to_string())?;
        final_reads.observe(&operation);
        let operation = seen_as(&operation);
        for check in checks.iter_mut() {
            check.observe(&operation);
        }
    }
    Ok(())
}

fn checked(report: check::Report, broken: Option<&str>) -> Checked {
    let result = CheckResult {
        acknowledged: report.acknowledged,
        lost: report.lost,
        invented: report.invented,
        indeterminate: report.indeterminate,
        counts: report.counts,
        ..CheckResult::new(report.name, report.verdict, &report.explanation)
    };
    let checked = Checked { result, lost: report.lost_examples };
    // What was not read may be the write that a read found.
    match broken {
        Some(broken) => {
            let why = format!("the history could not be read to its end: {broken}");
            checked.taken_back(&why, "What was read")
        }
        None => checked,
    }
}

/// Takes back what a check says of a load whose last operations are not recorded: the database may hold what they wrote.
pub(crate) fn without_records(
    checked: Checked,
    loads: &[LoadFacts],
    ended: &BTreeMap<String, EndedEarly>,
) -> Checked {
    let is_judged = |load: &&LoadFacts| {
        registry::find(&checked.result.name).is_some_and(|check| check.takes_in(&load.workload))
    };
    let is_missing = |load: &&LoadFacts| ended.get(&load.name).is_some_and(|ended| !ended.recorded);
    let Some(load) = loads.iter().filter(is_judged).find(is_missing) else { return checked };
    let why = format!(
        "the last operations of load {} are not recorded, so nothing can be concluded about the database",
        load.name
    );
    checked.taken_back(&why, "What is recorded")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(recorded: bool) -> BTreeMap<String, EndedEarly> {
        BTreeMap::from([("l".to_owned(), EndedEarly { why: "a panic".to_owned(), recorded })])
    }

    fn failed() -> Checked {
        let ledger = CheckResult::new(check::ledger::NAME, Verdict::Fail, "1 row was never inserted");
        let result = CheckResult { lost: Some(0), invented: Some(1), ..ledger };
        Checked { result, lost: Vec::new() }
    }

    fn load(workload: &str) -> LoadFacts {
        LoadFacts {
            name: "l".to_owned(),
            workload: workload.to_owned(),
            clients: 1,
            rate_range_per_s: None,
            from: "dc1".to_owned(),
            transaction: "insert".to_owned(),
            statements: Vec::new(),
        }
    }

    #[test]
    fn a_history_that_cannot_be_read_to_its_end_proves_nothing_neither_way() {
        let report = check::Report { verdict: Verdict::Fail, invented: Some(1), ..check::ledger::check(&[]) };
        let whole = checked(report.clone(), None).result;
        assert_eq!((whole.verdict, whole.invented), (Verdict::Fail, Some(1)));
        let torn = checked(report, Some("line 7: the file ends within the line")).result;
        assert_eq!((torn.verdict, torn.invented), (Verdict::Unknown, None));
        let told = "the history could not be read to its end: line 7: the file ends within the line. What was read: ";
        assert!(torn.explanation.starts_with(told), "{}", torn.explanation);
    }

    #[test]
    fn a_check_blames_nobody_for_operations_that_the_load_did_not_record() {
        let judged = |load: LoadFacts, recorded| without_records(failed(), &[load], &ended(recorded)).result;
        let doubtful = judged(load("ledger"), false);
        assert_eq!((doubtful.verdict, doubtful.invented), (Verdict::Unknown, None));
        assert!(doubtful.explanation.contains("load l are not recorded"), "{}", doubtful.explanation);
        // What is recorded is judged, and so are other workloads.
        assert_eq!(judged(load("ledger"), true).verdict, Verdict::Fail);
        assert_eq!(judged(load("bank"), false).verdict, Verdict::Fail);
    }
}
