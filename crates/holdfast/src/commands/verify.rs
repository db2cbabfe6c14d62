//! `holdfast verify`: one check on one history, ours or Jepsen's.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use check::list_append::{self, Level, ListAppend};
use check::{CHECKS, Check, FinalReads, RegisteredCheck, Soundness, registry};
use history::edn::{EdnHistory, Model, Remarks};
use history::whole_file::{self, Link};
use history::{HistoryReader, Operation};

use crate::exit::Exit;
use crate::printed;

/// Processes named by texts that are told.
const NAMED_MAX: usize = 5;
/// How a final read went: every check of the load counts on it.
const FINAL_READ: &str = "final-read";
/// The operation that says that others are missing, which every check is told of.
const UNRECORDED: &str = "unrecorded";
/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Judges the history and shows the verdict with its story, and what of the history was read and passed over.
pub fn verify(model: &str, level: Option<&str>, path: &Path) -> Result<Exit, Exit> {
    let registered = registry::find(model).ok_or_else(|| unknown_model(model))?;
    let mut check = begin(registered, level)?;
    let is_standard_input = path.as_os_str() == STANDARD_INPUT;
    let name = if is_standard_input { "standard input".to_owned() } else { path.display().to_string() };
    let told = |what: String| Exit::wrong(anyhow::anyhow!("history {name}: {what}"));
    let source: Box<dyn Read> = match is_standard_input {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(whole_file::open(path, Link::Followed).map_err(|error| told(error.to_string()))?),
    };
    let mut reader = BufReader::with_capacity(1 << 16, source);
    let has_mark = pass_over_mark(&mut reader).map_err(|error| told(error.to_string()))?;
    let mut fed = Fed::default();
    if is_edn(path, &mut reader).map_err(|error| told(error.to_string()))? {
        let model: Model = model.parse().map_err(Exit::wrong)?;
        let mut operations = EdnHistory::new(reader, model);
        fed.feed(check.as_mut(), &mut operations, EdnHistory::line).map_err(told)?;
        fed.remark(operations.remarks());
    } else {
        let mut operations = HistoryReader::new(reader).map_err(|error| told(error.to_string()))?;
        fed.feed(check.as_mut(), &mut operations, HistoryReader::line).map_err(told)?;
    }
    let report = fed.final_reads.judge(check.conclude());
    printed!("{}: {}", report.name, report.verdict);
    printed!("{}", report.explanation);
    let counts = [("acknowledged", report.acknowledged), ("without an answer", report.indeterminate)];
    let counts = counts.into_iter().filter_map(|(name, count)| Some(format!("{name} {}", count?)));
    let further = report.counts.iter().map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
    printed!("{}", counts.chain(further).collect::<Vec<_>>().join(", "));
    printed!("{}", fed.told(registered));
    if has_mark {
        printed!("the byte-order mark at the start is ignored");
    }
    for remark in fed.remarks {
        printed!("{remark}");
    }
    Ok(Exit::Verdict(report.verdict))
}

/// Takes a byte-order mark off the beginning; says whether there was one.
fn pass_over_mark(reader: &mut impl BufRead) -> std::io::Result<bool> {
    let beginning = reader.fill_buf()?;
    if beginning.starts_with(b"\xFF\xFE") || beginning.starts_with(b"\xFE\xFF") {
        return Err(std::io::Error::other("it is in UTF-16; write it in UTF-8"));
    }
    let has_mark = beginning.starts_with("\u{FEFF}".as_bytes());
    if has_mark {
        reader.consume("\u{FEFF}".len());
    }
    Ok(has_mark)
}

fn unknown_model(model: &str) -> Exit {
    let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    Exit::wrong(anyhow::anyhow!("`{model}` is not a model; models are {}", names.join(", ")))
}

fn begin(registered: &RegisteredCheck, level: Option<&str>) -> Result<Box<dyn Check>, Exit> {
    match level {
        None => Ok((registered.begin)()),
        Some(level) if registered.name == list_append::NAME => {
            let level: Level = level.parse().map_err(Exit::wrong)?;
            Ok(Box::new(ListAppend::claiming(level)))
        }
        Some(_) => Err(Exit::wrong(anyhow::anyhow!(
            "`--level` is for {}, which judges an isolation level; leave it out for {}",
            list_append::NAME,
            registered.name
        ))),
    }
}

/// By the file's name, else by its beginning: a line of ours begins with `{"`, or is compressed.
fn is_edn(path: &Path, reader: &mut impl BufRead) -> std::io::Result<bool> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("edn") => return Ok(true),
        Some("jsonl" | "json" | "zst") => return Ok(false),
        _ => {}
    }
    let text: Vec<u8> =
        reader.fill_buf()?.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(2).collect();
    Ok(matches!(text.as_slice(), [b'{', second] if *second != b'"')
        || matches!(text.first(), Some(b'[' | b';' | b'#')))
}

/// What came out of a history while it was read.
#[derive(Default)]
struct Fed {
    final_reads: FinalReads,
    /// Operations by the name of their action.
    read: BTreeMap<&'static str, u64>,
    remarks: Vec<String>,
}

impl Fed {
    /// Feeds the check to the end of the history, or says what is wrong with the history, and in which line.
    fn feed<O, E>(
        &mut self,
        check: &mut dyn Check,
        operations: &mut O,
        line: impl Fn(&O) -> u64,
    ) -> Result<(), String>
    where
        O: Iterator<Item = Result<Operation, E>>,
        E: std::fmt::Display,
    {
        let mut soundness = Soundness::default();
        while let Some(operation) = operations.next() {
            let operation = operation.map_err(|error| error.to_string())?;
            soundness
                .observe(&operation)
                .map_err(|contradiction| format!("line {}: {contradiction}", line(operations)))?;
            *self.read.entry(operation.action.name()).or_default() += 1;
            self.final_reads.observe(&operation);
            check.observe(&operation);
        }
        Ok(())
    }

    /// What was not taken as it stands in EDN.
    fn remark(&mut self, remarks: &Remarks) {
        if remarks.of_no_client > 0 {
            self.remarks.push(format!(
                "skipped {} events of processes that are not clients, such as the nemesis",
                remarks.of_no_client
            ));
        }
        if remarks.back_in_time > 0 {
            self.remarks.push(format!(
                "times go backwards {} times, first on line {}; the order of the events is used, not their times",
                remarks.back_in_time, remarks.first_back_in_time_line
            ));
        }
        if !remarks.named.is_empty() {
            let first = remarks.named.iter().take(NAMED_MAX);
            let mut told: Vec<String> =
                first.map(|(name, client)| format!("\"{name}\" is client {client}")).collect();
            if remarks.named.len() > NAMED_MAX {
                told.push(format!("and {} more", remarks.named.len() - NAMED_MAX));
            }
            self.remarks.push(format!("processes have text names: {}", told.join(", ")));
        }
    }

    /// `read 5 operations; skipped 2 that register does not judge: ledger-insert 2`.
    fn told(&self, registered: &RegisteredCheck) -> String {
        let count: u64 = self.read.values().sum();
        if count == 0 {
            return "read 0 operations: the history is empty".to_owned();
        }
        let passed_over: Vec<(&str, u64)> = self
            .read
            .iter()
            .map(|(name, count)| (*name, *count))
            .filter(|(name, _)| {
                ![FINAL_READ, UNRECORDED].contains(name) && !registered.actions.contains(name)
            })
            .collect();
        let passed_over_count: u64 = passed_over.iter().map(|(_, count)| count).sum();
        if passed_over_count == 0 {
            return format!("read {count} operations");
        }
        let by_name: Vec<String> =
            passed_over.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let mut told = format!(
            "read {count} operations; skipped {passed_over_count} that {} does not judge: {}",
            registered.name,
            by_name.join(", ")
        );
        if passed_over_count == count {
            let judges =
                |check: &&RegisteredCheck| passed_over.iter().any(|(name, _)| check.actions.contains(name));
            let others: Vec<String> =
                CHECKS.iter().filter(judges).map(|check| format!("--model {}", check.name)).collect();
            told += &format!(". No operation is left; for this history use {}", others.join(" or "));
        }
        told
    }
}
