//! `holdfast verify`: one check on one history, ours or Jepsen's.

use std::io::{BufRead, BufReader};
use std::path::Path;

use check::list_append::{self, Level, ListAppend};
use check::{CHECKS, Check, FinalReads, RegisteredCheck, Soundness, registry};
use history::edn::{EdnHistory, Model};
use history::whole_file::{self, Link};
use history::{HistoryReader, Operation};

use crate::exit::Exit;
use crate::printed;

/// Judges the history and shows the verdict with its story.
pub fn verify(model: &str, level: Option<&str>, path: &Path) -> Result<Exit, Exit> {
    let registered = registry::find(model).ok_or_else(|| unknown_model(model))?;
    let mut check = begin(registered, level)?;
    let told = |what: String| Exit::wrong(anyhow::anyhow!("history {}: {what}", path.display()));
    let file = whole_file::open(path, Link::Followed).map_err(|error| told(error.to_string()))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let final_reads = if is_edn(path, &mut reader).map_err(|error| told(error.to_string()))? {
        let model: Model = model.parse().map_err(Exit::wrong)?;
        let mut operations = EdnHistory::new(reader, model);
        feed(check.as_mut(), &mut operations, EdnHistory::line).map_err(told)?
    } else {
        let mut operations = HistoryReader::new(reader).map_err(|error| told(error.to_string()))?;
        feed(check.as_mut(), &mut operations, HistoryReader::line).map_err(told)?
    };
    let report = final_reads.judge(check.conclude());
    printed!("{}: {}", report.name, report.verdict);
    printed!("{}", report.explanation);
    let counts = [("acknowledged", report.acknowledged), ("without an answer", report.indeterminate)];
    let counts = counts.into_iter().filter_map(|(name, count)| Some(format!("{name} {}", count?)));
    let further = report.counts.iter().map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
    printed!("{}", counts.chain(further).collect::<Vec<_>>().join(", "));
    Ok(Exit::Verdict(report.verdict))
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
            "`--level` is for {}, whose histories are held against an isolation level; leave it out for {}",
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

/// Feeds the check to the end of the history, or says what is wrong with the history, and in which line.
fn feed<O, E>(
    check: &mut dyn Check,
    operations: &mut O,
    line: impl Fn(&O) -> u64,
) -> Result<FinalReads, String>
where
    O: Iterator<Item = Result<Operation, E>>,
    E: std::fmt::Display,
{
    let (mut soundness, mut final_reads) = (Soundness::default(), FinalReads::default());
    while let Some(operation) = operations.next() {
        let operation = operation.map_err(|error| error.to_string())?;
        soundness
            .observe(&operation)
            .map_err(|contradiction| format!("line {}: {contradiction}", line(operations)))?;
        final_reads.observe(&operation);
        check.observe(&operation);
    }
    Ok(final_reads)
}
