//! List-append: transactions that append to lists and read them whole, held against an isolation level.
//!
//! After Kingsbury and Alvaro, "Elle" (2020). Every value names its append and every list tells the order of its appends,
//! so what was read tells who came before whom; a circle of that is an anomaly. This file owns how the verdict and the
//! story come about: `record` keeps a history while it goes by, `versions` infers who wrote what in which order,
//! `graph` who must come before whom, `cycles` which levels that rules out, `lost` what is not there at the end, `tell` puts
//! it into words.

mod cycles;
mod graph;
pub mod level;
mod lost;
mod record;
mod tell;
mod versions;

use history::{Action, Operation, Outcome, Verdict};

pub use level::{Isolation, Level, Order, UnknownLevel};

use crate::Check;
use crate::report::Report;
use crate::story::{Story, counted, is_or_are, with_examples};
use cycles::{Cycle, Cycles};
use graph::Graph;
use lost::Lost;
use record::Record;
use tell::Teller;
use versions::Versions;

/// The check's name.
pub const NAME: &str = "list-append";

/// The workload whose final read asks for every list.
const WORKLOAD: &str = capabilities::workloads::APPEND.name;

/// The count of kinds of anomaly that were found, those that the level claimed allows among them.
pub const ANOMALIES: &str = "anomalies";

/// Judges a whole history against a level.
#[must_use]
pub fn check<'a>(operations: impl IntoIterator<Item = &'a Operation>, claimed: Level) -> Report {
    let mut check = Box::new(ListAppend::claiming(claimed));
    for operation in operations {
        check.observe(operation);
    }
    check.conclude()
}

/// The list-append check, to be fed operation by operation.
#[derive(Debug)]
pub struct ListAppend {
    record: Record,
    claimed: Level,
}

impl ListAppend {
    /// One that holds the history against this level.
    #[must_use]
    pub fn claiming(claimed: Level) -> Self {
        ListAppend { record: Record::default(), claimed }
    }
}

/// Something found, with the weakest level that forbids it.
struct Anomaly {
    name: String,
    breaks: Level,
    count: usize,
    told: String,
}

impl Check for ListAppend {
    fn observe(&mut self, operation: &Operation) {
        match &operation.action {
            Action::AppendTransaction { steps } => self.record.observe(operation, steps),
            Action::FinalRead { workload, .. }
                if workload == WORKLOAD && operation.outcome == Outcome::Ok =>
            {
                self.record.final_reads.insert(operation.load.clone(), operation.invoked_s);
            }
            _ => {}
        }
    }

    fn conclude(mut self: Box<Self>) -> Report {
        let places = self.record.put_in_order();
        let mut report = self.counts();
        if let Some(contradiction) = &self.record.contradiction {
            let mut story = Story::default();
            story.doubt(format!("the history contradicts itself, so it proves nothing: {contradiction}"));
            report.conclude(story, String::new());
            return report;
        }
        let versions = Versions::of(&self.record, &places);
        let graph = Graph::of(&self.record, &versions);
        let cycles = cycles::find(&graph, &self.record.transactions, &versions.unseen);
        drop(graph);
        let teller = Teller { record: &self.record, versions: &versions, places: &places };
        let mut anomalies = single_anomalies(&teller);
        anomalies.extend(cycles.found.iter().map(|cycle| cycle_anomaly(cycle, &teller)));
        self.tell(&teller, &cycles, &anomalies, &mut report);
        tell_lost(&lost::find(&self.record, &versions.reused, self.claimed), &teller, &mut report);
        report
    }
}

impl ListAppend {
    fn counts(&self) -> Report {
        let with = |outcome| self.record.transactions.iter().filter(|one| one.outcome == outcome).count();
        let mut report = Report::new(NAME);
        report.acknowledged = Some(with(Outcome::Ok) as u64);
        report.indeterminate = Some(with(Outcome::Unknown) as u64);
        report.count("refused", with(Outcome::Fail));
        report.count("keys", self.record.keys.len());
        report
    }

    fn tell(&self, teller: &Teller<'_>, cycles: &Cycles, anomalies: &[Anomaly], report: &mut Report) {
        for anomaly in anomalies {
            report.count(&anomaly.name, anomaly.count);
        }
        report.count(ANOMALIES, anomalies.len());
        report.count("cyclic_groups", cycles.groups as usize);
        report.count("values_used_twice", teller.versions.reused.len());
        let doubts = self.doubts(teller.versions, cycles);
        let verdict_at = |level: &Level| {
            let is_forbidden = |anomaly: &Anomaly| level.implies(anomaly.breaks);
            if cycles.ruled_out.contains(level) || anomalies.iter().any(is_forbidden) {
                return Verdict::Fail;
            }
            let is_in_doubt = doubts.iter().any(|doubt| doubt.levels.contains(level));
            if is_in_doubt { Verdict::Unknown } else { Verdict::Pass }
        };
        let names = |verdict| -> Vec<String> {
            strongest(|level| verdict_at(level) == verdict).iter().map(Level::to_string).collect()
        };
        report.strongest_levels = names(Verdict::Pass);

        let mut story = Story::default();
        let (broken, tolerated): (Vec<&Anomaly>, Vec<&Anomaly>) =
            anomalies.iter().partition(|anomaly| self.claimed.implies(anomaly.breaks));
        for anomaly in &broken {
            story.fail(format!(
                "{} is claimed, but there is {}: {}",
                self.claimed, anomaly.name, anomaly.told
            ));
        }
        if cycles.ruled_out.contains(&self.claimed) && broken.is_empty() {
            // Every level that is ruled out has a cycle to show; should that ever fail, the verdict must not.
            story.fail(format!("{} is claimed, but the order of transactions has cycles", self.claimed));
        }
        for doubt in doubts.iter().filter(|doubt| doubt.levels.contains(&self.claimed)) {
            story.doubt(doubt.told.clone());
        }
        let otherwise = format!(
            "{} over {} keep to {}",
            counted(report.acknowledged.unwrap_or(0) as usize, "acknowledged transaction"),
            counted(self.record.keys.len(), "list"),
            self.claimed
        );
        let (verdict, mut explanation) = story.conclude(otherwise);
        if !tolerated.is_empty() {
            let names: Vec<&str> = tolerated.iter().map(|anomaly| anomaly.name.as_str()).collect();
            explanation +=
                &format!("; {} does not forbid what else was found: {}", self.claimed, names.join(", "));
        }
        let undecided = names(Verdict::Unknown);
        explanation += &match report.strongest_levels.as_slice() {
            [] if undecided.is_empty() => "; not even read-uncommitted is possible".to_owned(),
            [] => String::new(),
            levels => format!("; the strongest level this history allows is {}", levels.join(" or ")),
        };
        if verdict != Verdict::Unknown && !undecided.is_empty() {
            let why: Vec<&str> = doubts
                .iter()
                .filter(|doubt| doubt.levels.iter().any(|level| verdict_at(level) == Verdict::Unknown))
                .map(|doubt| doubt.told.as_str())
                .collect();
            explanation += &format!("; {} could not be decided: {}", undecided.join(" or "), why.join("; "));
        }
        (report.verdict, report.explanation) = (verdict, explanation);
    }

    /// What keeps levels from being shown to hold, whatever else was found.
    fn doubts(&self, versions: &Versions, cycles: &Cycles) -> Vec<Doubt> {
        let key = |key: &u32| self.record.keys.key(*key).to_string();
        let mut doubts = Vec::new();
        if !versions.reused.is_empty() {
            let count = versions.reused.len();
            let claim = format!(
                "{} appended to one list more than once and {} ignored, because the append that a read saw is \
                 ambiguous",
                counted(count, "value"),
                was_or_were(count)
            );
            let mut reused: Vec<(String, i64)> =
                versions.reused.iter().map(|(list, value)| (key(list), *value)).collect();
            reused.sort_unstable();
            let told = with_examples(&claim, &reused, |(key, value)| format!("{value} of key {key}"));
            doubts.push(Doubt { levels: Level::all().collect(), told });
        }
        let incompatible = self.record.incompatible();
        if !incompatible.is_empty() {
            let claim = "reads disagree about the order of appends, so the order is unknown, for key";
            let is_weakest = |level: &Level| level.isolation == Isolation::ReadUncommitted;
            let told = with_examples(claim, &incompatible, key);
            doubts.push(Doubt { levels: Level::all().filter(is_weakest).collect(), told });
        }
        if !cycles.undecided.is_empty() {
            let claim = "the order of several appends that were never read is unknown and their transactions form cycles, so snapshot isolation is undecided, for key";
            let told = with_examples(claim, &cycles.undecided_lists, key);
            doubts.push(Doubt { levels: cycles.undecided.clone(), told });
        }
        if !self.record.has_read_values {
            let told = "no acknowledged transaction read a value, so nothing was shown".to_owned();
            doubts.push(Doubt { levels: Level::all().collect(), told });
        }
        doubts
    }
}

/// What is not there at the end is lost, whatever level is claimed and holds.
fn tell_lost(lost: &[Lost], teller: &Teller<'_>, report: &mut Report) {
    if lost.is_empty() {
        return;
    }
    report.only_misses = report.verdict != Verdict::Fail;
    let (acknowledged, unanswered): (Vec<Lost>, Vec<Lost>) = lost.iter().partition(|one| one.is_acknowledged);
    let mut tell = |lost: &[Lost], what: &str, (which, how): (&str, &str)| {
        if lost.is_empty() {
            return;
        }
        let (appends, are) = (counted(lost.len(), what), is_or_are(lost.len()));
        let claim = format!("{appends}{which} {are} not there at the end{how}");
        let told = with_examples(&claim, lost, |one| teller.told_lost(one));
        report.explanation = format!("{told}. {}", report.explanation);
    };
    let seen = ", although reads saw something of the same transaction";
    tell(&unanswered, "append", (" without a definite answer", seen));
    tell(&acknowledged, "acknowledged append", ("", ""));
    if !unanswered.is_empty() {
        report.count("lost appends without an answer", unanswered.len());
    }
    if !acknowledged.is_empty() {
        let mut writers: Vec<u32> = acknowledged.iter().map(|one| one.writer).collect();
        writers.dedup();
        report.lost = Some(writers.len() as u64);
        report.count("lost appends", acknowledged.len());
    }
    report.verdict = Verdict::Fail;
}

/// What keeps levels from being shown to hold.
struct Doubt {
    levels: Vec<Level>,
    told: String,
}

fn was_or_were(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Of these levels those that no other of them implies, strongest isolation first.
fn strongest(is_one: impl Fn(&Level) -> bool) -> Vec<Level> {
    let levels: Vec<Level> = Level::all().filter(|level| is_one(level)).collect();
    let is_surpassed = |level: &Level| levels.iter().any(|other| other != level && other.implies(*level));
    levels.iter().rev().filter(|level| !is_surpassed(level)).copied().collect()
}

fn cycle_anomaly(cycle: &Cycle, teller: &Teller<'_>) -> Anomaly {
    let suffix = match cycle.order {
        Order::Any => "",
        Order::Session => "-process",
        Order::RealTime => "-realtime",
    };
    Anomaly {
        name: format!("{}{suffix}", cycle.class.name()),
        breaks: cycle.breaks(),
        count: 1,
        told: teller.told_cycle(cycle),
    }
}

/// What is wrong with single reads and lists.
fn single_anomalies(teller: &Teller<'_>) -> Vec<Anomaly> {
    let Teller { record, versions, .. } = teller;
    let mut found = Vec::new();
    let mut add = |name: &str, isolation, count: usize, examples: &[String]| {
        if count > 0 {
            let told = match count - examples.len() {
                0 => examples.join("; "),
                more => format!("{}; and {more} more", examples.join("; ")),
            };
            let breaks = Level { isolation, order: Order::Any };
            found.push(Anomaly { name: name.to_owned(), breaks, count, told });
        }
    };
    let told = |seen: &versions::Examples, tell: &dyn Fn(&versions::Seen) -> String| {
        (seen.count, seen.examples.iter().map(tell).collect::<Vec<String>>())
    };
    let duplicates: Vec<String> =
        versions.duplicated.iter().take(5).map(|one| teller.told_duplicate(one)).collect();
    add("duplicate elements", Isolation::ReadUncommitted, versions.duplicated.len(), &duplicates);
    let (count, examples) = told(&versions.invented, &|seen| teller.told_invented(seen));
    add("invented elements", Isolation::ReadUncommitted, count, &examples);
    let (count, examples) = told(&versions.out_of_order, &|seen| teller.told_out_of_order(seen));
    add("appends out of order", Isolation::ReadUncommitted, count, &examples);
    let incompatible = record.incompatible();
    let examples: Vec<String> =
        incompatible.iter().take(5).map(|key| teller.told_incompatible(*key)).collect();
    add("incompatible orders", Isolation::ReadCommitted, incompatible.len(), &examples);
    let (count, examples) = told(&versions.aborted, &|seen| teller.told_aborted(seen));
    add("G1a", Isolation::ReadCommitted, count, &examples);
    let (count, examples) = told(&versions.intermediate, &|seen| teller.told_intermediate(seen));
    add("G1b", Isolation::ReadCommitted, count, &examples);
    let (count, examples) = told(&versions.dirty_updates, &|seen| teller.told_dirty_update(seen));
    add("dirty update", Isolation::ReadCommitted, count, &examples);
    let (count, examples) = told(&versions.future, &|seen| teller.told_future(seen));
    add("future read", Isolation::ReadCommitted, count, &examples);
    let updates = &versions.lost_updates;
    let examples: Vec<String> =
        updates.iter().take(5).map(|update| teller.told_lost_update(update)).collect();
    add("lost update", Isolation::Snapshot, updates.len(), &examples);
    let examples: Vec<String> =
        record.disagreements.iter().map(|one| teller.told_disagreement(one)).collect();
    add("internal inconsistency", Isolation::Snapshot, record.disagreement_count, &examples);
    found
}
