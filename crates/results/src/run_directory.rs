//! Reads a run directory, also one whose run was killed. With `matrix.rs` the only file here that does I/O.
//!
//! Damage is tolerated where something is left to tell, and always mentioned; it is never repaired by guessing.

use std::io;
use std::path::{Path, PathBuf};

use history::whole_file::{self, Link, WholeFileError};
use history::{Event, EventKind};

use crate::claim::held_to_its_parts;
use crate::derive;
use measure::TimelineRow;

use crate::hosts_csv::{self, HostRow};
use crate::links_csv::{self, LinkRow};
use crate::run::RunResult;
use crate::timeline_csv;

/// The longest file of a run directory that is read. A run directory may be a stranger's: its files are read where they are
/// regular files of its own, and no link in it is followed.
pub const LONGEST_FILE_BYTES: u64 = 256 << 20;

/// A resolved scenario longer than this is not put into the page.
const LONGEST_SCENARIO_BYTES: u64 = 256 * 1024;

/// Everything a report is made of.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    /// Where it was read from.
    pub path: PathBuf,
    /// The result: `result.json`, or else what the other files still tell.
    pub result: RunResult,
    /// Whether [`RunDirectory::result`] had to be derived because the run left none.
    pub is_derived: bool,
    /// Whether the run came to its end and judged. Not so where its result is derived, or was and has been written down since.
    pub has_ended: bool,
    /// What happened, in the order it happened.
    pub events: Vec<Event>,
    /// How each operation fared in each second.
    pub timeline: Vec<TimelineRow>,
    /// Whether lines amid those of the time line could not be read.
    pub is_timeline_damaged: bool,
    /// What each link did in each second.
    pub links: Vec<LinkRow>,
    /// What each host did in each second.
    pub hosts: Vec<HostRow>,
    /// The resolved scenario as the run wrote it down.
    pub scenario_yaml: Option<String>,
    /// What could not be read, one sentence each.
    pub notes: Vec<String>,
}

/// Why a run directory could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The directory is not there, or is no directory.
    #[error("{} is not a run directory: it is not there or not a directory", path.display())]
    NotADirectory {
        /// The path given.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error("{} could not be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The run told something, and ended before it told what it was: before its lab was built.
    #[error(
        "{} has nothing to report: the run ended before its lab was built{}", path.display(), because(words)
    )]
    EndedBeforeItsLab {
        /// The directory.
        path: PathBuf,
        /// Why it failed or was interrupted, where it came to say so.
        words: Vec<String>,
    },
    /// Neither a result nor any event, so that nothing is known of the run.
    #[error(
        "{} is not a run directory: it holds neither a readable result.json nor an events.jsonl that begins with \
         what the run was{}", path.display(), because(notes)
    )]
    NothingKnown {
        /// The directory.
        path: PathBuf,
        /// What was found wrong with its files.
        notes: Vec<String>,
    },
}

fn because(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// Reads a run directory. A run that was killed has no result: one is derived, whose verdict is `unknown`.
///
/// # Errors
/// When the directory is not there, a file in it cannot be read, or nothing in it says what the run was.
pub fn read(directory: &Path) -> Result<RunDirectory, ReadError> {
    if !directory.is_dir() {
        return Err(ReadError::NotADirectory { path: directory.to_owned() });
    }
    let mut notes = Vec::new();
    let recorded = match text_of(directory, "result.json", LONGEST_FILE_BYTES, &mut notes)? {
        None => None,
        Some(text) => match serde_json::from_str::<RunResult>(&text) {
            Ok(result) => Some(held_to_its_parts(result)),
            Err(error) => {
                notes.push(format!("result.json: not readable ({error})"));
                None
            }
        },
    };
    let events = match text_of(directory, "events.jsonl", LONGEST_FILE_BYTES, &mut notes)? {
        Some(text) => events(&text, &mut notes),
        None => {
            notes.push("events.jsonl is missing, so the events of the run are not shown".to_owned());
            Vec::new()
        }
    };
    let (timeline, is_timeline_damaged) =
        match text_of(directory, "timeline.csv", LONGEST_FILE_BYTES, &mut notes)? {
            Some(text) => {
                let mut timeline = timeline_csv::parse(&text);
                notes.append(&mut timeline.notes);
                (timeline.rows, timeline.is_damaged)
            }
            None => {
                notes.push("timeline.csv is missing, so the charts over time are not shown".to_owned());
                (Vec::new(), true)
            }
        };
    // A run that ended before its first load has none, and a site without links has nothing in it.
    let links = match text_of(directory, "links.csv", LONGEST_FILE_BYTES, &mut notes)? {
        Some(text) => links_csv::parse(&text, &mut notes),
        None => Vec::new(),
    };
    let hosts = match text_of(directory, "hosts.csv", LONGEST_FILE_BYTES, &mut notes)? {
        Some(text) => hosts_csv::parse(&text, &mut notes),
        None => Vec::new(),
    };
    let is_derived = recorded.is_none();
    let is_end = |event: &Event| matches!(event.kind, EventKind::RunEnded { .. });
    let has_ended = !is_derived && (events.is_empty() || events.iter().any(is_end));
    let result = match recorded.or_else(|| derive::result(&events, (&timeline, is_timeline_damaged))) {
        Some(result) => result,
        None => return Err(without_a_first_event(directory, &events, notes)),
    };
    // A longer one is no loss to the page: it is in the directory.
    let scenario_yaml = text_of(directory, "scenario.yaml", LONGEST_SCENARIO_BYTES, &mut Vec::new())?;
    Ok(RunDirectory {
        path: directory.to_owned(),
        result,
        is_derived,
        has_ended,
        events,
        timeline,
        is_timeline_damaged,
        links,
        hosts,
        scenario_yaml,
        notes,
    })
}

/// Why there is nothing to report where no event tells what the run was.
fn without_a_first_event(directory: &Path, events: &[Event], notes: Vec<String>) -> ReadError {
    let path = directory.to_owned();
    if events.is_empty() {
        return ReadError::NothingKnown { path, notes };
    }
    let words = events.iter().filter_map(|event| match &event.kind {
        EventKind::RunFailed { why } | EventKind::Interrupted { why } => Some(why.clone()),
        _ => None,
    });
    ReadError::EndedBeforeItsLab { path, words: words.collect() }
}

/// The result that a run left, and nothing else of its directory; none where it left none that can be read.
pub(crate) fn recorded_result(directory: &Path) -> Option<RunResult> {
    let text = text_of(directory, "result.json", LONGEST_FILE_BYTES, &mut Vec::new()).ok()??;
    serde_json::from_str(&text).ok().map(held_to_its_parts)
}

/// A file's text, bytes that are no UTF-8 replaced; none when it is not there, or is not a file to be read, which is noted.
fn text_of(
    directory: &Path,
    name: &str,
    longest_bytes: u64,
    notes: &mut Vec<String>,
) -> Result<Option<String>, ReadError> {
    let path = directory.join(name);
    match whole_file::read(&path, Link::Refused, longest_bytes) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.is_absence() => Ok(None),
        Err(WholeFileError::Io(source)) => Err(ReadError::File { path, source }),
        Err(refused) => {
            notes.push(format!("{name}: not read: {refused}"));
            Ok(None)
        }
    }
}

/// The events that can be read. A last line without its end was cut off by the run's death.
fn events(text: &str, notes: &mut Vec<String>) -> Vec<Event> {
    let mut events = Vec::new();
    let mut unreadable_lines = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let is_whole = line.ends_with('\n');
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Event>(line) {
            Ok(event) if event.t_s.is_finite() => events.push(event),
            _ if !is_whole => {
                notes.push(format!("events.jsonl: line {number}, the last, is cut off and was left out"));
            }
            _ => unreadable_lines.push(number),
        }
    }
    if let Some(first) = unreadable_lines.first() {
        let lines = unreadable_lines.len();
        notes.push(format!(
            "events.jsonl: {lines} unreadable line(s), the first at line {first}, were left out"
        ));
    }
    events
}
