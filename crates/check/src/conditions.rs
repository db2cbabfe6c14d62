//! Conditions: after everything, the data meets every condition its workload sets, and no acknowledged work is missing.
//!
//! The conditions were looked at in the database, all in one transaction; the final read tells how often each is violated.
//! Owns two checks, which differ in what they demand to have been looked at:
//! - `tpcc-conditions`: the twelve consistency conditions of clause 3.3.2 of the TPC-C standard, all of them; and, as the
//!   durability tests of its clause 3.5 have it, the order of every acknowledged New-Order, the history row of every acknowledged
//!   Payment, and none that nobody asked for (`tpcc_rows`). All loads are taken together: they work on the same tables;
//! - `script-conditions`: the conditions the user wrote down for a script of their own, at least one for each load. It says
//!   nothing of single transactions, whose meaning only the user knows.
//!
//! Both workloads record the same kinds of operations. Whose they are, the record of each load's final read tells.

use std::collections::{BTreeMap, BTreeSet};

use capabilities::workloads;
use history::{Action, ConditionFound, Operation, Outcome};

use crate::Check;
use crate::report::Report;
use crate::rows_read::{Found, Reading};
use crate::story::{Story, counted, is_or_are, with_examples};
use crate::tpcc_rows::{self, KINDS, Wanted};

/// The name of the check on TPC-C.
pub const TPCC: &str = "tpcc-conditions";
/// The name of the check on scripts.
pub const SCRIPT: &str = "script-conditions";

/// Conditions of TPC-C, told by the number their names begin with.
const TPCC_CONDITIONS: usize = 12;

/// Transactions of a load, by how they came out. Those that rolled back because they were asked to are left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Ended {
    acknowledged: i64,
    indeterminate: i64,
}

/// The final look of one load.
#[derive(Debug)]
struct Look {
    began_s: f64,
    conditions: Vec<ConditionFound>,
    counts: BTreeMap<String, i64>,
}

/// What was seen of one load.
#[derive(Debug)]
struct OfLoad {
    ended: Ended,
    last_acknowledged_s: f64,
    /// By kind of transaction, for those of TPC-C that leave a row.
    wanted: BTreeMap<&'static str, Wanted>,
    reading: Reading,
    look: Option<Look>,
    /// Its workload is one that this check does not judge.
    is_of_another_check: bool,
}

impl Default for OfLoad {
    fn default() -> Self {
        OfLoad {
            ended: Ended::default(),
            last_acknowledged_s: f64::NEG_INFINITY,
            wanted: BTreeMap::new(),
            reading: Reading::default(),
            look: None,
            is_of_another_check: false,
        }
    }
}

/// Either check, to be fed operation by operation.
#[derive(Debug)]
pub struct Conditions {
    name: &'static str,
    /// By load: scripts have conditions of their own.
    loads: BTreeMap<String, OfLoad>,
}

impl Conditions {
    /// The check on TPC-C.
    #[must_use]
    pub fn of_tpcc() -> Self {
        Self::new(TPCC)
    }

    /// The check on scripts.
    #[must_use]
    pub fn of_scripts() -> Self {
        Self::new(SCRIPT)
    }

    fn new(name: &'static str) -> Self {
        Conditions { name, loads: BTreeMap::new() }
    }
}

impl Check for Conditions {
    fn observe(&mut self, operation: &Operation) {
        let name = self.name;
        if !self.loads.contains_key(&operation.load) {
            self.loads.insert(operation.load.clone(), OfLoad::default());
        }
        let Some(of_load) = self.loads.get_mut(&operation.load) else { return };
        match &operation.action {
            Action::Transaction { name, rolled_back, .. } => {
                let ended = &mut of_load.ended;
                match operation.outcome {
                    Outcome::Ok if *rolled_back => {}
                    Outcome::Ok => ended.acknowledged += 1,
                    Outcome::Unknown => ended.indeterminate += 1,
                    Outcome::Fail => {}
                }
                let of_row = KINDS.iter().find(|(kind, ..)| *kind == name.as_ref());
                if let Some((kind, ..)) = of_row.filter(|_| !rolled_back) {
                    of_load.wanted.entry(kind).or_default().observe(operation);
                }
                if operation.outcome == Outcome::Ok {
                    of_load.last_acknowledged_s = of_load.last_acknowledged_s.max(operation.completed_s);
                }
            }
            Action::RowsRead { kind, rows, complete } => {
                of_load.reading.observe(operation.outcome, kind, rows, *complete);
            }
            Action::ConditionsRead { conditions, counts } if operation.outcome == Outcome::Ok => {
                let (conditions, counts) = (conditions.clone(), counts.clone());
                of_load.look = Some(Look { began_s: operation.invoked_s, conditions, counts });
            }
            Action::FinalRead { workload, .. } => {
                of_load.is_of_another_check = !workloads::is_judged_by(workload, name);
            }
            _ => {}
        }
    }

    fn conclude(mut self: Box<Self>) -> Report {
        self.loads.retain(|_, of_load| !of_load.is_of_another_check);
        let mut report = Report::new(self.name);
        let mut story = Story::default();
        let ended = || self.loads.values().map(|of_load| &of_load.ended);
        let sum = |pick: fn(&Ended) -> i64| ended().map(pick).sum::<i64>();
        let (acknowledged, indeterminate) =
            (sum(|ended| ended.acknowledged), sum(|ended| ended.indeterminate));
        report.counts.insert("transactions".into(), acknowledged);
        report.indeterminate = u64::try_from(indeterminate).ok();
        if acknowledged == 0 {
            story.doubt("no transaction was acknowledged, so nothing was tested".into());
        }
        let wanted: BTreeMap<&str, Wanted> =
            KINDS.into_iter().map(|(kind, ..)| (kind, self.take_wanted(kind))).collect();
        let last_acknowledged_s = self.last_acknowledged_s();
        let looks = self.looks();
        let latest = looks.iter().max_by(|(_, one), (_, other)| one.began_s.total_cmp(&other.began_s));
        let Some((load, look)) = latest else {
            story.doubt(
                "there is no final look at the conditions, so it is not known whether they hold".into(),
            );
            report.conclude(story, String::new());
            return report;
        };
        report.counts.extend(look.counts.iter().map(|(name, count)| (name.clone(), *count)));
        // Loads of TPC-C look at the same tables with the same conditions.
        let looked_at: usize = match self.name {
            TPCC => look.conditions.len(),
            _ => looks.values().map(|look| look.conditions.len()).sum(),
        };
        report.count("conditions", looked_at);
        report.count("conditions_violated", self.violated(&looks));
        for (load, look) in &looks {
            let of_load = if looks.len() > 1 { format!(" of load {load}") } else { String::new() };
            judge_conditions(look, &of_load, &mut story);
        }
        let mut rows = String::new();
        if self.name == TPCC {
            demand_all_twelve(look, &mut story);
            let found = self.loads[*load].reading.found();
            report.acknowledged = Some(wanted.values().map(Wanted::acknowledged).sum());
            // Rows of what was acknowledged since need not be in it.
            if last_acknowledged_s <= look.began_s {
                rows = judge_rows(&wanted, (look, found), &mut report, &mut story);
            }
        } else {
            demand_conditions_of_each(&looks, &mut story);
        }
        let first_began_s = looks.values().map(|look| look.began_s).fold(f64::INFINITY, f64::min);
        if last_acknowledged_s > first_began_s {
            story.doubt(format!(
                "the final look began at {first_began_s:.3} s, before the last acknowledgement at \
                 {last_acknowledged_s:.3} s"
            ));
        }
        let conditions = counted(looked_at, "condition");
        let transactions =
            counted(usize::try_from(acknowledged).unwrap_or_default(), "acknowledged transaction");
        report
            .conclude(story, format!("{conditions} looked at after {transactions}, none is violated{rows}"));
        report
    }
}

/// A violated condition is a failure, whoever violated it. `of_load` says whose it is, where that is not clear.
fn judge_conditions(look: &Look, of_load: &str, story: &mut Story) {
    for condition in look.conditions.iter().filter(|condition| condition.violations > 0) {
        let times = usize::try_from(condition.violations).unwrap_or(usize::MAX);
        let claim = format!("condition {}{of_load} has {}", condition.name, counted(times, "violation"));
        story.fail(with_examples(&claim, &condition.examples, String::clone));
    }
}

/// A condition that was not looked at may be violated.
fn demand_all_twelve(look: &Look, story: &mut Story) {
    let seen =
        |number: usize| look.conditions.iter().any(|condition| number_of(&condition.name) == Some(number));
    let missing: Vec<usize> = (1..=TPCC_CONDITIONS).filter(|number| !seen(*number)).collect();
    if !missing.is_empty() {
        let count = missing.len();
        let claim = format!("{} {} not looked at", counted(count, "condition"), is_or_are(count));
        story.doubt(with_examples(&claim, &missing, usize::to_string));
    }
}

/// What one script did to the data is not judged by the conditions of another.
fn demand_conditions_of_each(looks: &BTreeMap<&str, &Look>, story: &mut Story) {
    let without: Vec<&str> =
        looks.iter().filter(|(_, look)| look.conditions.is_empty()).map(|(load, _)| *load).collect();
    if without.is_empty() {
        return;
    }
    if without.len() == looks.len() {
        story.doubt("there are no conditions, so nothing is known about the data".into());
        return;
    }
    let claim = format!("{} without a condition", counted(without.len(), "script load"));
    let named = with_examples(&claim, &without, |load| (*load).to_owned());
    story.doubt(format!(
        "{named}. Nothing is known about the data there: write a query that must find no row under the load's \
         `options.conditions`"
    ));
}

fn number_of(name: &str) -> Option<usize> {
    name.split_once(':')?.0.parse().ok()
}

impl Conditions {
    /// The final look of each load that has one.
    fn looks(&self) -> BTreeMap<&str, &Look> {
        self.loads
            .iter()
            .filter_map(|(load, of_load)| Some((load.as_str(), of_load.look.as_ref()?)))
            .collect()
    }

    /// Conditions that are violated. Where loads look at the same ones, each counts once.
    fn violated(&self, looks: &BTreeMap<&str, &Look>) -> usize {
        let mut violated: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (load, look) in looks {
            let whose = if self.name == TPCC { "" } else { load };
            let wrong = look.conditions.iter().filter(|condition| condition.violations > 0);
            violated.extend(wrong.map(|condition| (whose, condition.name.as_str())));
        }
        violated.len()
    }

    fn last_acknowledged_s(&self) -> f64 {
        self.loads.values().map(|of_load| of_load.last_acknowledged_s).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Who asked for rows of this kind, in all loads.
    fn take_wanted(&mut self, kind: &str) -> Wanted {
        Wanted::together(self.loads.values_mut().filter_map(|of_load| of_load.wanted.remove(kind)))
    }
}

/// Holds the rows that transactions must have left against those that were acknowledged; tells what was found where
/// nothing is wrong.
fn judge_rows(
    wanted: &BTreeMap<&str, Wanted>,
    (look, rows): (&Look, &Found),
    report: &mut Report,
    story: &mut Story,
) -> String {
    let (mut lost, mut invented, mut open, mut differ) = (0, 0, false, 0);
    let mut told = String::new();
    for (kind, count, what) in KINDS {
        let Some(there) = look.counts.get(count) else {
            story.doubt(format!("the {what}s were not counted"));
            open = true;
            continue;
        };
        let found = rows.get(kind);
        let compared = tpcc_rows::compare((kind, what), &wanted[kind], found, *there, story);
        lost = u64::saturating_add(lost, compared.lost);
        invented = u64::saturating_add(invented, compared.invented);
        open |= compared.is_open;
        differ += usize::from(compared.loaded_differ);
        told.push_str(&compared.told);
    }
    report.count("kinds_of_loaded_rows_that_differ", differ);
    report.lost = (lost > 0 || !open).then_some(lost);
    report.invented = (invented > 0 || !open).then_some(invented);
    told
}

/// Judges a whole history of TPC-C.
#[must_use]
pub fn check_tpcc<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Report {
    let mut check = Box::new(Conditions::of_tpcc());
    operations.into_iter().for_each(|operation| check.observe(operation));
    check.conclude()
}

#[cfg(test)]
mod tests {
    use history::{ErrorClass, Verdict};

    use super::*;

    fn operation(action: Action, invoked_s: f64, outcome: Outcome) -> Operation {
        Operation {
            load: "tpcc".to_owned(),
            client: 1,
            action,
            invoked_s,
            completed_s: invoked_s + 0.5,
            outcome,
            error: (outcome != Outcome::Ok).then_some(ErrorClass::Connection),
            node: None,
        }
    }

    /// `NEW-ORDER`, with `?` behind it without a definite answer, with `!` refused, with `~` rolled back as asked for.
    fn transactions(words: &str) -> Vec<Operation> {
        let transaction = |(place, word): (usize, &str)| {
            let (name, mark) = match word.find(['?', '!', '~']) {
                Some(at) => word.split_at(at),
                None => (word, ""),
            };
            let outcome = match mark {
                "?" => Outcome::Unknown,
                "!" => Outcome::Fail,
                _ => Outcome::Ok,
            };
            let action =
                Action::Transaction { name: name.to_owned().into(), rolled_back: mark == "~", row: None };
            operation(action, place as f64, outcome)
        };
        words.split_whitespace().enumerate().map(transaction).collect()
    }

    fn look(conditions: usize, violated: &[usize], counts: [i64; 2]) -> Operation {
        let condition = |number: usize| ConditionFound {
            name: format!("{number}: it holds"),
            violations: u64::from(violated.contains(&number)) * 4,
            examples: violated
                .iter()
                .filter(|one| **one == number)
                .map(|_| format!("row of {number}"))
                .collect(),
        };
        let conditions = (1..=conditions).map(condition).collect();
        let counts = [("orders".to_owned(), counts[0]), ("payments".to_owned(), counts[1])].into();
        operation(Action::ConditionsRead { conditions, counts }, 100.0, Outcome::Ok)
    }

    #[track_caller]
    fn judged(words: &str, look: Option<Operation>, verdict: Verdict, lost: Option<u64>, told: &str) {
        let mut history = transactions(words);
        history.extend(look);
        let report = check_tpcc(&history);
        assert_eq!((report.verdict, report.lost), (verdict, lost), "{}", report.explanation);
        assert!(report.explanation.contains(told), "{}", report.explanation);
    }

    #[test]
    fn all_twelve_hold_and_every_acknowledged_row_is_there() {
        judged(
            "NEW-ORDER PAYMENT DELIVERY",
            Some(look(12, &[], [1, 1])),
            Verdict::Pass,
            Some(0),
            "12 conditions",
        );
        // Rolled back as its input wanted: no order.
        judged("NEW-ORDER NEW-ORDER~ PAYMENT!", Some(look(12, &[], [1, 0])), Verdict::Pass, Some(0), "");
    }

    #[test]
    fn each_violated_condition_fails_with_an_example() {
        for number in 1..=12 {
            let told = format!("condition {number}: it holds has 4 violations: row of {number}");
            judged("NEW-ORDER", Some(look(12, &[number], [1, 0])), Verdict::Fail, Some(0), &told);
        }
    }

    #[test]
    fn a_condition_that_was_not_looked_at_leaves_doubt() {
        judged(
            "NEW-ORDER",
            Some(look(11, &[], [1, 0])),
            Verdict::Unknown,
            Some(0),
            "1 condition is not looked at: 12",
        );
        judged("NEW-ORDER", None, Verdict::Unknown, None, "no final look");
        judged("", Some(look(12, &[], [0, 0])), Verdict::Unknown, Some(0), "no transaction was acknowledged");
    }

    #[test]
    fn acknowledged_work_that_left_no_row_is_lost() {
        judged("NEW-ORDER NEW-ORDER", Some(look(12, &[], [1, 0])), Verdict::Fail, Some(1), "at least 1 of 2");
        judged("PAYMENT", Some(look(12, &[], [0, 0])), Verdict::Fail, Some(1), "they left 0 history rows");
        judged("PAYMENT", Some(look(12, &[], [0, 2])), Verdict::Fail, Some(0), "1 more than");
    }

    #[test]
    fn what_has_no_definite_answer_may_be_there_or_not_but_may_hide_a_loss() {
        judged("PAYMENT PAYMENT?", Some(look(12, &[], [0, 2])), Verdict::Pass, Some(0), "");
        judged("PAYMENT PAYMENT?", Some(look(12, &[], [0, 1])), Verdict::Pass, None, "");
        judged("PAYMENT PAYMENT?", Some(look(12, &[], [0, 0])), Verdict::Fail, Some(1), "");
    }

    #[test]
    fn a_script_is_judged_by_the_conditions_there_are_and_needs_one() {
        let check = |look: Operation, verdict: Verdict| {
            let mut check = Box::new(Conditions::of_scripts());
            transactions("mine").iter().chain([&look]).for_each(|operation| check.observe(operation));
            let report = check.conclude();
            assert_eq!(
                (report.name, report.verdict, report.lost),
                (SCRIPT, verdict, None),
                "{}",
                report.explanation
            );
        };
        check(look(1, &[], [0, 0]), Verdict::Pass);
        check(look(1, &[1], [0, 0]), Verdict::Fail);
        check(look(0, &[], [0, 0]), Verdict::Unknown);
    }

    #[test]
    fn conditions_of_each_load_of_scripts_are_judged_and_not_those_of_the_last_alone() {
        let check = |of_first: Operation, of_second: Operation, verdict: Verdict, told: &str| {
            let mut check = Box::new(Conditions::of_scripts());
            let looks = [
                Operation { load: "orders".to_owned(), ..of_first },
                Operation { load: "stock".to_owned(), ..of_second },
            ];
            transactions("mine").iter().chain(&looks).for_each(|operation| check.observe(operation));
            let report = check.conclude();
            assert_eq!(report.verdict, verdict, "{}", report.explanation);
            assert!(report.explanation.contains(told), "{}", report.explanation);
        };
        let (holds, broken, none) =
            (|| look(2, &[], [0, 0]), || look(2, &[1], [0, 0]), || look(0, &[], [0, 0]));
        check(holds(), holds(), Verdict::Pass, "4 conditions");
        let of_orders = "condition 1: it holds of load orders has 4 violations";
        check(broken(), holds(), Verdict::Fail, of_orders);
        check(holds(), broken(), Verdict::Fail, "of load stock");
        let of_stock = "1 script load without a condition: stock";
        check(holds(), none(), Verdict::Unknown, of_stock);
        check(broken(), none(), Verdict::Fail, of_stock);
        check(none(), none(), Verdict::Unknown, "there are no conditions");
    }

    /// What a check says of a load of each workload, at once, with these final looks. The script was looked at last.
    fn of_a_mix(mut check: Conditions, of_tpcc: Option<Operation>, of_script: Option<Operation>) -> Report {
        let mine = |operation: Operation| Operation { load: "mine".to_owned(), ..operation };
        let mut history = transactions("NEW-ORDER");
        // Kinds of a script are what its user calls them.
        history.extend(transactions("NEW-ORDER NEW-ORDER").into_iter().map(mine));
        history.extend(of_tpcc);
        history.extend(of_script.map(|look| Operation { invoked_s: 200.0, ..mine(look) }));
        let end = |workload: &str| {
            let (nodes, why) = (Vec::new(), String::new());
            let action = Action::FinalRead { workload: workload.to_owned(), nodes, why };
            operation(action, 201.0, Outcome::Ok)
        };
        history.extend([end("tpcc"), mine(end("script"))]);
        history.iter().for_each(|operation| check.observe(operation));
        Box::new(check).conclude()
    }

    #[test]
    fn conditions_of_one_workload_are_not_looked_at_because_those_of_the_other_were() {
        let script = |of_tpcc, of_script| of_a_mix(Conditions::of_scripts(), of_tpcc, of_script).verdict;
        let all_twelve = || Some(look(12, &[], [1, 0]));
        assert_eq!(script(all_twelve(), Some(look(0, &[], [0, 0]))), Verdict::Unknown);
        assert_eq!(script(all_twelve(), None), Verdict::Unknown);
        assert_eq!(script(all_twelve(), Some(look(1, &[], [0, 0]))), Verdict::Pass);
        assert_eq!(script(Some(look(12, &[3], [1, 0])), Some(look(1, &[], [0, 0]))), Verdict::Pass);
        let tpcc = |of_tpcc, of_script| of_a_mix(Conditions::of_tpcc(), of_tpcc, of_script).verdict;
        let many = || Some(look(12, &[1], [1, 0]));
        assert_eq!(tpcc(None, many()), Verdict::Unknown);
        assert_eq!(tpcc(Some(look(11, &[], [1, 0])), many()), Verdict::Unknown);
        assert_eq!(tpcc(all_twelve(), many()), Verdict::Pass, "its orders are counted without the script's");
        assert_eq!(tpcc(Some(look(12, &[], [0, 0])), many()), Verdict::Fail);
    }
}
