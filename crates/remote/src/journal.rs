//! What is undone after a crash: a file of the run directory, on disk before anything is struck.
//!
//! Owns the file and its records. One line each, synced before the call returns. Whoever has it open to write holds its lock:
//! a run that still goes on is not undone from beside.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use history::whole_file::{self, Link, WholeFileError};
use serde::{Deserialize, Serialize};

use crate::command_file::{Command, Look};
use crate::looks::Seen;
use crate::receipt::Claim;
use crate::timer::{Timer, TimerEnd};
use crate::transport::Reach;

/// Its name in the run directory.
pub const FILE: &str = "remote.jsonl";
/// The longest that is read.
const LONGEST_BYTES: u64 = 64 << 20;
/// How long its lock is waited for.
const LOCK: Duration = Duration::from_secs(2);

/// A line of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Which fault, as in [`crate::Filled::id`].
    pub fault: String,
    /// What.
    #[serde(flatten)]
    pub step: Step,
}

/// What happened to a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// It will be struck, and how it is undone. Whatever follows, it may stand from here on.
    Intent(Intent),
    /// The timer on the machine waits.
    Armed,
    /// It was not struck after all: nothing would have undone it.
    NotStruck,
    /// What the strike said of itself.
    Struck {
        /// That.
        claims: Vec<Claim>,
    },
    /// What was seen while it stood.
    Stood {
        /// That.
        seen: Vec<Seen>,
    },
    /// What the undoing said of itself.
    Undone {
        /// That.
        claims: Vec<Claim>,
    },
    /// What was seen afterwards: it is gone.
    Gone {
        /// That.
        seen: Vec<Seen>,
    },
    /// The timer ended. After this and [`Step::Gone`] nothing is left to do.
    TimerEnded {
        /// How.
        end: TimerEnd,
    },
}

/// All that is needed to undo a fault, by somebody who knows nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The fault's name.
    pub name: String,
    /// The member's name.
    pub member: String,
    /// How its machine is reached.
    pub reach: Reach,
    /// How long the strike's commands may go on after whoever gave them is gone.
    pub strike_within: Duration,
    /// What undoes it.
    pub undo: Vec<Command>,
    /// What shows that it is gone.
    pub gone: Vec<Look>,
    /// The timer on the machine.
    pub timer: Timer,
}

/// Why there is no journal to read or to write.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system refuses it, or it is no such file as is read.
        source: WholeFileError,
    },
    /// Somebody writes it.
    #[error("{}: the run, or another `holdfast heal`, is still at work on it; wait for it or end it", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else could have written the commands in it.
    #[error("{}: it belongs to another user, or others may write to it: its commands are not run", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A line is no record.
    #[error("{}: line {line} cannot be read; what it says is not undone: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it as JSON.
        source: serde_json::Error,
    },
}

/// A journal that is open to write.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Several faults may be struck at once; a record is written as a whole.
    file: Mutex<File>,
}

impl Journal {
    /// Begins the journal of a run, or goes on with it after a crash.
    ///
    /// # Errors
    /// When it cannot be made, is not ours, or somebody else writes it.
    pub fn open(run_directory: &Path) -> Result<Journal, JournalError> {
        let path = run_directory.join(FILE);
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.uid() != nix::unistd::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            return Err(JournalError::NotOurs { path });
        }
        match locked(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Its name must be on disk as well.
        File::open(run_directory).and_then(|folder| folder.sync_all()).map_err(failed)?;
        // A record that a crash cut short was never on disk as a whole, so that nobody acted on it.
        let text = contents(&file, &path)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok(Journal { path, file: Mutex::new(file) })
    }

    /// What it holds, by the file whose owner and mode were looked at: its path may lead elsewhere by now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self) -> Result<Read, JournalError> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(entries(&self.path, &contents(&file, &self.path)?))
    }

    /// Writes a record, and returns once it is on disk.
    ///
    /// # Errors
    /// When it is not.
    pub fn write(&self, fault: &str, step: Step) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let record = Record { fault: fault.to_owned(), step };
        let mut line = serde_json::to_string(&record).map_err(|error| failed(error.into()))?;
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = file.metadata().map_err(failed)?.len();
        // Where a record was cut short and could not be taken back, the next begins a line of its own all the same.
        let mut last = [b'\n'];
        if whole > 0 {
            file.read_exact_at(&mut last, whole - 1).map_err(failed)?;
        }
        if last != [b'\n'] {
            line.insert(0, '\n');
        }
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|error| {
            let _ = file.set_len(whole);
            failed(error)
        })
    }
}

/// All that is in an open file.
fn contents(mut file: &File, path: &Path) -> Result<Vec<u8>, JournalError> {
    let failed = |source| JournalError::Io { path: path.to_owned(), source };
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LONGEST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST_BYTES {
        let source = WholeFileError::TooLong { most_bytes: LONGEST_BYTES };
        return Err(JournalError::Unreadable { path: path.to_owned(), source });
    }
    Ok(bytes)
}

/// Takes the lock. A program that was killed while it started another keeps it for as long as that takes.
fn locked(file: &File) -> Result<(), TryLockError> {
    let deadline = Instant::now() + LOCK;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK / 50),
            done => return done,
        }
    }
}

/// A fault of a journal, with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its eight digits.
    pub fault: String,
    /// How it is undone.
    pub intent: Intent,
    /// Whether its strike is known to have ended, or never to have begun.
    pub is_struck: bool,
    /// Whether it was seen to be gone.
    pub is_gone: bool,
    /// Whether its timer is known to have ended.
    pub is_disarmed: bool,
}

impl Entry {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_gone && self.is_disarmed
    }
}

/// A journal as it was read.
#[derive(Debug, Default)]
pub struct Read {
    /// Its faults, in the order of their strikes.
    pub entries: Vec<Entry>,
    /// Lines that are no records, each as an error. The last one is left out if a crash cut it short: what it would have
    /// said had not been synced, so that nothing had been done yet.
    pub damaged: Vec<JournalError>,
}

/// Reads the journal of a run; none where there is no such file.
///
/// # Errors
/// When it is there and cannot be read.
pub fn read(run_directory: &Path) -> Result<Option<Read>, JournalError> {
    let path = run_directory.join(FILE);
    let bytes = match whole_file::read(&path, Link::Refused, LONGEST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.is_absence() => return Ok(None),
        Err(source) => return Err(JournalError::Unreadable { path, source }),
    };
    Ok(Some(entries(&path, &bytes)))
}

fn entries(path: &Path, bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_whole = line.ends_with(b"\n");
        let record = match serde_json::from_slice::<Record>(line) {
            Ok(record) => record,
            Err(_) if !is_whole => continue,
            Err(source) => {
                read.damaged.push(JournalError::Damaged { path: path.to_owned(), line: number + 1, source });
                continue;
            }
        };
        let entry = at.get(&record.fault).and_then(|index| read.entries.get_mut(*index));
        match (record.step, entry) {
            (Step::Intent(intent), None) => {
                at.insert(record.fault.clone(), read.entries.len());
                let fault = record.fault;
                let entry = Entry { fault, intent, is_struck: false, is_gone: false, is_disarmed: false };
                read.entries.push(entry);
            }
            (Step::Struck { .. }, Some(entry)) => entry.is_struck = true,
            (Step::NotStruck, Some(entry)) => (entry.is_struck, entry.is_gone) = (true, true),
            (Step::Gone { .. }, Some(entry)) => entry.is_gone = true,
            (Step::TimerEnded { .. }, Some(entry)) => entry.is_disarmed = true,
            _ => {}
        }
    }
    read
}
