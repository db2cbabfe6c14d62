//! Last writes: every cell ends with a write that no acknowledged later write replaced, and that somebody made.
//!
//! A cell is whatever a workload writes as a whole: the value of a key, one field of a row. Every write of a run has a
//! number of its own, and the final read finds in each cell the number of the write it ended with. Held against the
//! history:
//! - a cell that ends with write A, although write B was sent after A had been acknowledged and was acknowledged itself:
//!   B is lost. With A still without a definite answer nothing follows: it may have taken effect last;
//! - a cell that is not there, or holds what was there before the first write, although a write to it was acknowledged:
//!   that write is lost;
//! - a number that no write to this cell had: invented;
//! - a write that was refused and is there anyway;
//! - where no write was asked for at all, a cell that does not hold what was there before.
//!
//! Of several writes lost from one cell only the last acknowledged one is counted: the others would have been replaced
//! by it. Reads are not judged here. Each load is compared with its own last complete read; where that finds writes of
//! another load in cells that both wrote, the two share a table (`shared`), and nothing is known. Time is that of sorting, memory some sixty bytes
//! for each write and cell.

mod shared;

use std::collections::BTreeMap;

use history::{Action, NO_WRITE, Operation, Outcome};

use crate::Check;
use crate::report::Report;
use crate::story::{Story, counted, is_or_are, with_examples};

/// The check's name.
pub const NAME: &str = "last-writes";

/// What a cell holds before the first write.
const LOADED: u64 = 0;

/// Judges a whole history.
#[must_use]
pub fn check<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Report {
    let mut check = Box::<LastWrites>::default();
    for operation in operations {
        check.observe(operation);
    }
    check.conclude()
}

/// A write to one cell.
#[derive(Debug, Clone, Copy)]
struct Write {
    cell: u64,
    value: u64,
    client: u64,
    invoked_s: f64,
    completed_s: f64,
    outcome: Outcome,
}

/// A read of everything, possibly still in parts.
#[derive(Debug, Default)]
struct FinalRead {
    began_s: f64,
    cells: Vec<(u64, u64)>,
}

/// One load.
#[derive(Debug, Default)]
struct Load {
    writes: Vec<Write>,
    acknowledged: usize,
    refused: usize,
    indeterminate: usize,
    open: Option<FinalRead>,
    read: Option<FinalRead>,
}

/// The check, to be fed operation by operation.
#[derive(Debug, Default)]
pub struct LastWrites {
    loads: BTreeMap<String, Load>,
}

impl Check for LastWrites {
    fn observe(&mut self, operation: &Operation) {
        match &operation.action {
            Action::CellsWrite { cells, value } => {
                let load = self.load(&operation.load);
                match operation.outcome {
                    Outcome::Ok => load.acknowledged += 1,
                    Outcome::Fail => load.refused += 1,
                    Outcome::Unknown => load.indeterminate += 1,
                }
                load.writes.extend(cells.iter().map(|cell| Write {
                    cell: *cell,
                    value: *value,
                    client: operation.client,
                    invoked_s: operation.invoked_s,
                    completed_s: operation.completed_s,
                    outcome: operation.outcome,
                }));
            }
            Action::CellsRead { cells, complete } => {
                self.load(&operation.load).read(operation, cells, *complete)
            }
            _ => {}
        }
    }

    fn conclude(mut self: Box<Self>) -> Report {
        let mut report = Report::new(NAME);
        let mut found = Findings::default();
        let sum = |pick: fn(&Load) -> usize| self.loads.values().map(pick).sum::<usize>();
        let (acknowledged, refused, indeterminate) =
            (sum(|load| load.acknowledged), sum(|load| load.refused), sum(|load| load.indeterminate));
        let mut invented = Vec::new();
        for (name, load) in &mut self.loads {
            load.judge(name, &mut found);
            invented.push((name.clone(), std::mem::take(&mut found.invented)));
        }
        for (name, invented) in invented {
            let (of_others, invented) = shared::set_apart(&self.loads, &name, invented);
            found.of_others += of_others.len();
            found.invented.extend(invented);
        }
        report.acknowledged = Some(acknowledged as u64);
        report.indeterminate = Some(indeterminate as u64);
        report.count("refused", refused);
        report.count("cells", found.cells);
        let judged = found.cells_were_read
            && found.unread.is_empty()
            && found.reused.is_empty()
            && found.of_others == 0;
        let told = |count: usize, judged: bool| (count > 0 || judged).then_some(count as u64);
        // What stands in the place of an invented value cannot be told.
        report.lost = told(found.lost.len(), judged && found.unjudged == 0 && found.invented.is_empty());
        report.invented = told(found.invented.len(), judged);
        let nobody_wrote = acknowledged + refused + indeterminate == 0 && found.cells > 0;
        let (story, otherwise) = match nobody_wrote {
            true => found.tell_of_reads_alone(),
            false => found.tell(acknowledged, indeterminate),
        };
        report.conclude(story, otherwise);
        report
    }
}

impl LastWrites {
    fn load(&mut self, name: &str) -> &mut Load {
        if !self.loads.contains_key(name) {
            self.loads.insert(name.to_owned(), Load::default());
        }
        self.loads.entry(name.to_owned()).or_default()
    }
}

impl Load {
    fn read(&mut self, operation: &Operation, cells: &[(u64, u64)], complete: bool) {
        if operation.outcome != Outcome::Ok {
            // What was read before it broke off is not everything, and whoever reads again begins anew.
            self.open = None;
            return;
        }
        let began = || FinalRead { began_s: operation.invoked_s, cells: Vec::new() };
        let open = self.open.get_or_insert_with(began);
        open.cells.extend_from_slice(cells);
        if complete {
            self.read = self.open.take();
        }
    }

    fn judge(&mut self, name: &str, found: &mut Findings) {
        let Some(mut read) = self.read.take() else {
            found.unread.push(name.to_owned());
            return;
        };
        found.cells_were_read = true;
        found.cells += read.cells.len();
        read.cells.sort_unstable();
        found
            .duplicated
            .extend(read.cells.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0));
        read.cells.dedup_by_key(|cell| cell.0);
        self.writes.sort_by(|one, other| {
            one.cell
                .cmp(&other.cell)
                .then(one.value.cmp(&other.value))
                .then(one.invoked_s.total_cmp(&other.invoked_s))
        });
        let twice = |pair: &&[Write]| (pair[0].cell, pair[0].value) == (pair[1].cell, pair[1].value);
        found.reused.extend(self.writes.windows(2).filter(twice).map(|pair| pair[0].value));
        let mut rest = read.cells.as_slice();
        for writes in self.writes.chunk_by(|one, other| one.cell == other.cell) {
            let cell = writes[0].cell;
            let before = rest.partition_point(|(other, _)| *other < cell);
            found.strangers(&rest[..before]);
            rest = &rest[before..];
            let holds = match rest.split_first() {
                Some(((other, value), after)) if *other == cell => {
                    rest = after;
                    Some(*value)
                }
                _ => None,
            };
            found.judge_cell(writes, holds, read.began_s);
        }
        found.strangers(rest);
    }
}

/// A write that is lost, and what stands in its place.
#[derive(Debug)]
struct Lost {
    write: Write,
    /// The number found; absent where the cell is not there.
    found: Option<u64>,
}

#[derive(Debug, Default)]
struct Findings {
    lost: Vec<Lost>,
    /// Acknowledged after the read that misses them had begun.
    unjudged: usize,
    invented: Vec<(u64, u64)>,
    /// Cells that hold a write of another load.
    of_others: usize,
    refused_but_there: Vec<Write>,
    duplicated: Vec<u64>,
    reused: Vec<u64>,
    unread: Vec<String>,
    cells: usize,
    cells_were_read: bool,
    indeterminate_there: usize,
}

impl Findings {
    /// Cells nobody wrote to: they must hold what was there before.
    fn strangers(&mut self, cells: &[(u64, u64)]) {
        self.invented.extend(cells.iter().filter(|(_, value)| *value != LOADED));
    }

    /// All writes to one cell, by number, and what it holds in the end.
    fn judge_cell(&mut self, writes: &[Write], holds: Option<u64>, began_s: f64) {
        let last = match holds {
            None | Some(LOADED) => None,
            Some(value) => match writes.binary_search_by(|write| write.value.cmp(&value)) {
                Ok(place) => Some(writes[place]),
                Err(_) => {
                    self.invented.push((writes[0].cell, value));
                    return;
                }
            },
        };
        match last.map(|write| write.outcome) {
            Some(Outcome::Fail) => self.refused_but_there.extend(last),
            Some(Outcome::Unknown) => self.indeterminate_there += 1,
            Some(Outcome::Ok) | None => {}
        }
        // When the write that is there can have taken effect at the latest.
        let latest_s = match last {
            None => f64::NEG_INFINITY,
            Some(write) if write.outcome == Outcome::Ok => write.completed_s,
            Some(_) => f64::INFINITY,
        };
        let replaced = writes
            .iter()
            .filter(|write| write.outcome == Outcome::Ok && write.invoked_s > latest_s)
            .max_by(|one, other| one.completed_s.total_cmp(&other.completed_s));
        match replaced {
            Some(write) if write.completed_s <= began_s => {
                self.lost.push(Lost { write: *write, found: holds })
            }
            Some(_) => self.unjudged += 1,
            None => {}
        }
    }

    fn tell_failures(&mut self, story: &mut Story) {
        self.lost.sort_by(|one, other| one.write.completed_s.total_cmp(&other.write.completed_s));
        if !self.lost.is_empty() {
            let count = self.lost.len();
            let claim = format!(
                "the last acknowledged write to {} {} lost",
                counted(count, "cell"),
                is_or_are(count)
            );
            story.miss(with_examples(&claim, &self.lost, |lost| {
                let Write { cell, value, client, completed_s, .. } = lost.write;
                let instead = match lost.found {
                    None => "the cell is not there at the end".to_owned(),
                    Some(LOADED) => "the cell holds what was there before the first write".to_owned(),
                    Some(other) => format!("the cell holds write {other}, which had ended before this one was sent"),
                };
                format!("write {value} to cell {cell} by client {client} was acknowledged at {completed_s:.3} s, and {instead}")
            }));
        }
        if !self.invented.is_empty() {
            let count = self.invented.len();
            let claim = format!(
                "{} {} a write that no client made",
                counted(count, "cell"),
                if count == 1 { "holds" } else { "hold" }
            );
            story.fail(with_examples(&claim, &self.invented, |(cell, value)| match *value {
                NO_WRITE => format!("a value that is no write's in cell {cell}"),
                value => format!("{value} in cell {cell}"),
            }));
        }
        if !self.refused_but_there.is_empty() {
            let count = self.refused_but_there.len();
            let claim = format!("{} refused and {} there anyway", counted(count, "write"), is_or_are(count));
            story.fail(with_examples(&claim, &self.refused_but_there, |write| {
                format!("write {} to cell {} by client {}", write.value, write.cell, write.client)
            }));
        }
        if !self.duplicated.is_empty() {
            let count = self.duplicated.len();
            let claim = format!("{} {} there more than once", counted(count, "cell"), is_or_are(count));
            story.fail(with_examples(&claim, &self.duplicated, u64::to_string));
        }
    }

    /// No write was ever asked for: then every cell must hold what was there before.
    fn tell_of_reads_alone(mut self) -> (Story, String) {
        let mut story = Story::default();
        self.tell_failures(&mut story);
        self.tell_unread(&mut story);
        let otherwise = format!(
            "nothing was written, and each of {} there in the end holds what it held at the start",
            counted(self.cells, "cell")
        );
        (story, otherwise)
    }

    fn tell_unread(&self, story: &mut Story) {
        if !self.cells_were_read {
            story.doubt("there is no complete final read, so it is not known what is there".into());
        } else if !self.unread.is_empty() {
            let claim = "no complete final read, so it is not known what is there, for load";
            story.doubt(with_examples(claim, &self.unread, String::clone));
        }
    }

    fn tell(mut self, acknowledged: usize, indeterminate: usize) -> (Story, String) {
        let mut story = Story::default();
        if !self.reused.is_empty() {
            let claim = format!(
                "{} used by more than one write to the same cell, so the history proves nothing",
                counted(self.reused.len(), "number")
            );
            story.doubt(with_examples(&claim, &self.reused, u64::to_string));
            return (story, String::new());
        }
        self.tell_failures(&mut story);
        if self.unjudged > 0 {
            let count = counted(self.unjudged, "cell");
            story.doubt(format!(
                "writes to {count} were acknowledged after the final read had begun, so it does not show them"
            ));
        }
        if self.of_others > 0 {
            story.doubt(format!(
                "loads share a table: {} with a write of another load than the one that read, so no order of them is known",
                match self.of_others {
                    1 => "1 cell ends".to_owned(),
                    count => format!("{count} cells end"),
                }
            ));
        }
        self.tell_unread(&mut story);
        if acknowledged == 0 {
            story.doubt("no write was acknowledged, so there was nothing to lose".into());
        }
        let otherwise = format!(
            "no acknowledged write of {acknowledged} is lost: each of {} ends with a write that no later acknowledged one \
             replaced; {indeterminate} writes had no definite answer, {} of those in the end",
            counted(self.cells, "cell"),
            match self.indeterminate_there {
                1 => "1 cell holds one".to_owned(),
                count => format!("{count} cells hold one"),
            },
        );
        (story, otherwise)
    }
}

#[cfg(test)]
mod tests;
