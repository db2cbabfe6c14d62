//! The ledger: every acknowledged insert is there at the end, once, and nothing that nobody asked for.
//!
//! Each load is compared with its own last complete read. Inserts without a definite answer may be there or
//! not. The time taken is that of sorting the inserts; the memory, some hundred bytes for each.

use std::collections::{BTreeMap, BTreeSet};

use history::{Action, LEDGER_SEQUENCE_BITS, Operation, Outcome};

use crate::Check;
use crate::report::{LostWrite, Report};
use crate::story::{Story, counted, is_or_are, with_examples};

/// The check's name.
pub const NAME: &str = "ledger";

/// Judges a whole history.
#[must_use]
pub fn check<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Report {
    let mut ledger = Box::<Ledger>::default();
    for operation in operations {
        ledger.observe(operation);
    }
    ledger.conclude()
}

/// An insert, its names replaced by numbers to keep it small.
#[derive(Debug, Clone, Copy)]
struct Insert {
    value: u64,
    load: usize,
    client: u64,
    node: Option<usize>,
    invoked_s: f64,
    completed_s: f64,
    outcome: Outcome,
}

/// A read of everything, possibly still in parts.
#[derive(Debug, Default, Clone)]
struct FinalRead {
    began_s: f64,
    values: Vec<u64>,
}

/// The reads of one load.
#[derive(Debug, Default)]
struct Reads {
    /// Parts read so far of a read that is not complete.
    open: Option<FinalRead>,
    /// The last read that was complete.
    complete: Option<FinalRead>,
}

/// Names by number.
#[derive(Debug, Default)]
struct Names {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    fn number_of(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

/// The ledger check, to be fed operation by operation.
#[derive(Debug, Default)]
pub struct Ledger {
    inserts: Vec<Insert>,
    reads: BTreeMap<usize, Reads>,
    /// Clients whose last inserts are not recorded, from the first to before the last number.
    unrecorded: Vec<(u64, u64)>,
    loads: Names,
    nodes: Names,
}

impl Check for Ledger {
    fn observe(&mut self, operation: &Operation) {
        match &operation.action {
            Action::LedgerInsert { value } => {
                let insert = Insert {
                    value: *value,
                    load: self.loads.number_of(&operation.load),
                    client: operation.client,
                    node: operation.node.as_deref().map(|node| self.nodes.number_of(node)),
                    invoked_s: operation.invoked_s,
                    completed_s: operation.completed_s,
                    outcome: operation.outcome,
                };
                self.inserts.push(insert);
            }
            Action::LedgerRead { values, complete } => {
                let load = self.loads.number_of(&operation.load);
                self.reads.entry(load).or_default().observe(operation, values, *complete);
            }
            Action::Unrecorded { workload, first_client, clients } if workload == NAME => {
                self.unrecorded.push((*first_client, first_client.saturating_add(u64::from(*clients))));
            }
            _ => {}
        }
    }

    fn conclude(mut self: Box<Self>) -> Report {
        // By value, so that reads can be held against them; a value used twice then stands side by side.
        self.inserts.sort_by(|one, other| {
            one.value.cmp(&other.value).then(one.invoked_s.total_cmp(&other.invoked_s))
        });
        let mut findings = Findings::default();
        let loads: BTreeSet<usize> =
            self.inserts.iter().map(|insert| insert.load).chain(self.reads.keys().copied()).collect();
        for load in loads {
            let read = self.reads.get_mut(&load).and_then(|reads| reads.complete.take());
            match read {
                Some(read) => self.compare(load, read, &mut findings),
                None => findings.unread.push(load),
            }
        }
        self.tell(findings)
    }
}

impl Reads {
    fn observe(&mut self, operation: &Operation, values: &[u64], complete: bool) {
        if operation.outcome != Outcome::Ok {
            // What was read before it broke off is not everything, and whoever reads again begins anew.
            self.open = None;
            return;
        }
        let began = || FinalRead { began_s: operation.invoked_s, values: Vec::new() };
        let open = self.open.get_or_insert_with(began);
        open.values.extend_from_slice(values);
        if complete {
            self.complete = self.open.take();
        }
    }
}

/// What was found, each as values in order or as inserts in order of their acknowledgement.
#[derive(Debug, Default)]
struct Findings {
    lost: Vec<Insert>,
    /// Acknowledged after the read that misses them had begun.
    unjudged: Vec<Insert>,
    refused_but_there: Vec<Insert>,
    // Loads that share a table find the same ones there.
    invented: BTreeSet<u64>,
    /// Not recorded, and of a client whose last inserts are not.
    unrecorded_there: BTreeSet<u64>,
    duplicated: BTreeSet<u64>,
    indeterminate_there: usize,
    /// Loads without a complete read.
    unread: Vec<usize>,
    any_read: bool,
}

impl Ledger {
    /// Holds the inserts of a load against its final read.
    fn compare(&self, load: usize, mut read: FinalRead, findings: &mut Findings) {
        findings.any_read = true;
        read.values.sort_unstable();
        let repeats = read.values.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        findings.duplicated.extend(repeats);
        read.values.dedup();

        let there = |value: u64| read.values.binary_search(&value).is_ok();
        for insert in self.inserts.iter().filter(|insert| insert.load == load) {
            match (insert.outcome, there(insert.value)) {
                (Outcome::Ok, true) | (Outcome::Fail, false) | (Outcome::Unknown, false) => {}
                (Outcome::Ok, false) if insert.completed_s <= read.began_s => findings.lost.push(*insert),
                (Outcome::Ok, false) => findings.unjudged.push(*insert),
                (Outcome::Fail, true) => findings.refused_but_there.push(*insert),
                (Outcome::Unknown, true) => findings.indeterminate_there += 1,
            }
        }
        // Loads may share a table: what any of them asked for is not invented.
        let asked = |value: &u64| self.inserts.binary_search_by(|insert| insert.value.cmp(value)).is_ok();
        let (unrecorded, invented): (Vec<u64>, Vec<u64>) = read
            .values
            .iter()
            .filter(|value| !asked(value))
            .partition(|value| self.may_be_unrecorded(**value));
        findings.unrecorded_there.extend(unrecorded);
        findings.invented.extend(invented);
    }

    /// Whether a row may be one that a client inserted after its record ends.
    fn may_be_unrecorded(&self, value: u64) -> bool {
        let client = value >> LEDGER_SEQUENCE_BITS;
        self.unrecorded.iter().any(|(first, end)| (*first..*end).contains(&client))
    }

    /// Values that more than one insert used.
    fn reused(&self) -> Vec<u64> {
        let same = |pair: &&[Insert]| pair[0].value == pair[1].value;
        let reused: BTreeSet<u64> = self.inserts.windows(2).filter(same).map(|pair| pair[0].value).collect();
        reused.into_iter().collect()
    }

    fn with_outcome(&self, outcome: Outcome) -> usize {
        self.inserts.iter().filter(|insert| insert.outcome == outcome).count()
    }

    fn node(&self, insert: &Insert) -> Option<String> {
        insert.node.and_then(|node| self.nodes.names.get(node).cloned())
    }

    fn load(&self, load: usize) -> String {
        self.loads.names.get(load).cloned().unwrap_or_default()
    }

    fn lost_write(&self, insert: &Insert) -> LostWrite {
        LostWrite {
            value: insert.value,
            load: self.load(insert.load),
            client: insert.client,
            invoked_s: insert.invoked_s,
            completed_s: insert.completed_s,
            node: self.node(insert),
        }
    }

    /// `insert 4711 by client 3 was acknowledged at 20.114 s by n1`, with another verb where another fits.
    fn sentence(&self, insert: &Insert, verb: &str) -> String {
        let by_node = self.node(insert).map_or(String::new(), |node| format!(" by {node}"));
        let Insert { value, client, completed_s, .. } = insert;
        format!("insert {value} by client {client} was {verb} at {completed_s:.3} s{by_node}")
    }

    fn tell(&self, mut findings: Findings) -> Report {
        let by_time = |one: &Insert, other: &Insert| {
            one.completed_s.total_cmp(&other.completed_s).then(one.value.cmp(&other.value))
        };
        findings.lost.sort_by(by_time);
        findings.unjudged.sort_by(by_time);
        findings.refused_but_there.sort_by(by_time);
        let reused = self.reused();
        let (acknowledged, indeterminate) =
            (self.with_outcome(Outcome::Ok), self.with_outcome(Outcome::Unknown));

        let mut report = Report::new(NAME);
        report.acknowledged = Some(acknowledged as u64);
        report.indeterminate = Some(indeterminate as u64);
        report.count("refused", self.with_outcome(Outcome::Fail));
        report.count("reused", reused.len());
        if findings.any_read {
            report.count("duplicated", findings.duplicated.len());
            report.count("refused_but_there", findings.refused_but_there.len());
            report.count("indeterminate_there", findings.indeterminate_there);
            if !self.unrecorded.is_empty() {
                report.count("unrecorded_there", findings.unrecorded_there.len());
            }
        }
        // What was found is found; that nothing was found says something only when everything could be
        // judged. Of a history that proves nothing, neither is said.
        if reused.is_empty() {
            let judged = findings.any_read && findings.unread.is_empty();
            let told = |count: usize, judged: bool| (count > 0 || judged).then_some(count as u64);
            report.lost = told(findings.lost.len(), judged && findings.unjudged.is_empty());
            report.invented = told(findings.invented.len(), judged);
            report.lost_examples = findings.lost.iter().map(|insert| self.lost_write(insert)).collect();
        }
        let (story, otherwise) = self.judge(&findings, &reused, acknowledged, indeterminate);
        report.conclude(story, otherwise);
        report
    }

    fn judge(
        &self,
        found: &Findings,
        reused: &[u64],
        acknowledged: usize,
        indeterminate: usize,
    ) -> (Story, String) {
        let mut story = Story::default();
        if !reused.is_empty() {
            // What became of a value cannot be told from what became of its namesake: nothing here can be
            // judged.
            let claim = format!(
                "{} used by more than one insert, so the history proves nothing",
                counted(reused.len(), "number")
            );
            story.doubt(with_examples(&claim, reused, u64::to_string));
            return (story, String::new());
        }
        self.tell_failures(found, acknowledged, &mut story);
        if !found.unjudged.is_empty() {
            let count = found.unjudged.len();
            let claim = format!(
                "{} acknowledged after the final read had begun, so it does not show whether they are there",
                counted(count, "insert")
            );
            story.doubt(with_examples(&claim, &found.unjudged, |insert| {
                self.sentence(insert, "acknowledged")
            }));
        }
        if !found.any_read {
            story.doubt("there is no complete final read, so it is not known what is there".into());
        } else if !found.unread.is_empty() {
            let claim = "no complete final read, so it is not known what is there, for load";
            story.doubt(with_examples(claim, &found.unread, |load| self.load(*load)));
        }
        if acknowledged == 0 {
            story.doubt("no insert was acknowledged, so there was nothing to lose".into());
        }
        let unanswered = match indeterminate {
            0 => "every insert got a definite answer".to_owned(),
            _ => format!(
                "of {} without a definite answer {} happened",
                counted(indeterminate, "insert"),
                found.indeterminate_there
            ),
        };
        let (inserts, are) = (counted(acknowledged, "acknowledged insert"), is_or_are(acknowledged));
        let rest = match self.unrecorded.is_empty() {
            true => "nothing else is there".to_owned(),
            false => format!(
                "of clients whose records were lost with their process {} there that may be theirs; nothing else is there",
                format_args!(
                    "{} {}",
                    counted(found.unrecorded_there.len(), "further row"),
                    is_or_are(found.unrecorded_there.len())
                )
            ),
        };
        (story, format!("all of {inserts} {are} there at the end, once; {unanswered}; {rest}"))
    }

    fn tell_failures(&self, found: &Findings, acknowledged: usize, story: &mut Story) {
        if !found.lost.is_empty() {
            let count = found.lost.len();
            let claim = format!("{count} of {acknowledged} acknowledged inserts {} lost", is_or_are(count));
            story.miss(with_examples(&claim, &found.lost, |insert| {
                format!("{} and is not there at the end", self.sentence(insert, "acknowledged"))
            }));
        }
        if !found.invented.is_empty() {
            let count = found.invented.len();
            let claim =
                format!("{} {} there that no client inserted", counted(count, "number"), is_or_are(count));
            story.fail(with_examples(&claim, &found.invented, u64::to_string));
        }
        if !found.refused_but_there.is_empty() {
            let count = found.refused_but_there.len();
            let claim = format!("{} refused and {} there anyway", counted(count, "insert"), is_or_are(count));
            story.fail(with_examples(&claim, &found.refused_but_there, |insert| {
                format!("{} and is there at the end", self.sentence(insert, "refused"))
            }));
        }
        if !found.duplicated.is_empty() {
            let count = found.duplicated.len();
            let claim = format!("{} {} there more than once", counted(count, "number"), is_or_are(count));
            story.fail(with_examples(&claim, &found.duplicated, u64::to_string));
        }
    }
}

#[cfg(test)]
mod tests {
    use history::Verdict;

    use super::*;

    const OF_THREE: u64 = 3 << LEDGER_SEQUENCE_BITS;
    const OF_FIVE: u64 = 5 << LEDGER_SEQUENCE_BITS;

    fn operation(client: u64, action: Action, outcome: Outcome, at_s: f64) -> Operation {
        let (load, error, node) = ("l".to_owned(), None, None);
        Operation { load, client, action, invoked_s: at_s, completed_s: at_s + 0.5, outcome, error, node }
    }

    /// Clients 3 and 4 stood on a machine that was lost; client 5 stood elsewhere.
    fn judged(values: &[u64]) -> Report {
        let insert = |client, value| operation(client, Action::LedgerInsert { value }, Outcome::Ok, 1.0);
        let lost = |workload: &str, first_client| {
            let workload = workload.to_owned();
            operation(99, Action::Unrecorded { workload, first_client, clients: 2 }, Outcome::Unknown, 2.0)
        };
        let read = Action::LedgerRead { values: values.to_vec(), complete: true };
        check(&[
            insert(3, OF_THREE),
            insert(5, OF_FIVE),
            lost(NAME, 3),
            // Clients of other workloads insert nothing.
            lost("bank", 5),
            operation(100, read, Outcome::Ok, 9.0),
        ])
    }

    #[test]
    fn rows_that_may_be_of_clients_whose_records_are_lost_are_not_invented_and_all_others_are() {
        let passed = judged(&[OF_THREE, OF_THREE + 1, OF_FIVE]);
        assert_eq!(passed.verdict, Verdict::Pass, "{}", passed.explanation);
        assert!(passed.explanation.contains("1 further row is there"), "{}", passed.explanation);
        let invented = judged(&[OF_THREE, OF_FIVE, OF_FIVE + 1]);
        assert_eq!((invented.verdict, invented.invented), (Verdict::Fail, Some(1)));
        let lost = judged(&[OF_FIVE]);
        assert_eq!((lost.verdict, lost.lost), (Verdict::Fail, Some(1)), "what was acknowledged stays judged");
        // What is missing may be where nobody looked; what is there twice, or of nobody, is there.
        let only_misses = [&[OF_FIVE][..], &[OF_FIVE, OF_FIVE], &[OF_FIVE, OF_FIVE + 1]]
            .map(|values| judged(values).only_misses);
        assert_eq!((passed.only_misses, only_misses), (false, [true, false, false]));
    }

    #[test]
    fn a_row_of_nobody_in_a_table_that_two_loads_share_is_told_once() {
        let of_load = |load: &str, client, action, invoked_s| Operation {
            load: load.to_owned(),
            ..operation(client, action, Outcome::Ok, invoked_s)
        };
        let read = || Action::LedgerRead { values: vec![OF_THREE, OF_FIVE, OF_FIVE + 1], complete: true };
        let report = check(&[
            of_load("a", 3, Action::LedgerInsert { value: OF_THREE }, 1.0),
            of_load("b", 5, Action::LedgerInsert { value: OF_FIVE }, 1.0),
            of_load("a", 100, read(), 9.0),
            of_load("b", 101, read(), 9.0),
        ]);
        assert_eq!((report.verdict, report.invented), (Verdict::Fail, Some(1)), "{}", report.explanation);
    }
}
