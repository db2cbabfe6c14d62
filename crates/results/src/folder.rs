//! The run directories below a folder, and what each of them is, in short. Reads only what a list needs of each.
//!
//! A folder may be a stranger's: no link in it is followed, and no more than so many folders are looked into.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::run::RunResult;
use crate::run_directory::{self, ReadError};

/// How deep below the folder run directories are looked for: `FOLDER/SCENARIO/RUN`, and a matrix' cells below that.
const DEEPEST: usize = 4;
/// Folders that are looked into at most.
const MOST_FOLDERS: usize = 20_000;
/// A run that wrote nothing for so long, and left no result, is over.
const SILENT_FOR: Duration = Duration::from_secs(15);

/// What the files of a run directory are called, any of which makes a folder one.
const RUN_FILES: [&str; 2] = ["result.json", "events.jsonl"];

/// A run directory below a folder.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// Its path from the folder on, with `/` between names: `redis/2026-11-22T20-56-24Z`.
    pub name: String,
    /// How far it is.
    pub state: State,
    /// Its result; what its other files tell where it has none. None where nothing can be read.
    pub result: Option<RunResult>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has left a result.
    Ended,
    /// It has none, and wrote something a moment ago.
    UnderWay,
    /// It has none, and writes nothing any more.
    Abandoned,
}

/// The run directories of a folder, and whether there were too many folders to look into all.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    /// By name; those that could be looked into.
    pub directories: Vec<(String, PathBuf)>,
    /// Whether some were left out.
    pub is_cut: bool,
}

/// Finds run directories. What cannot be looked into holds none.
#[must_use]
pub fn find(folder: &Path) -> Folder {
    let mut found = Folder::default();
    let mut pending = vec![(folder.to_owned(), String::new(), 0)];
    let mut looked_into = 0;
    while let Some((path, name, depth)) = pending.pop() {
        if looked_into == MOST_FOLDERS {
            found.is_cut = true;
            break;
        }
        looked_into += 1;
        if depth > 0 && RUN_FILES.iter().any(|file| is_file(&path.join(file))) {
            found.directories.push((name, path));
            continue;
        }
        if depth == DEEPEST {
            continue;
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            // The type is of the entry itself: a link is no folder.
            let Ok(true) = entry.file_type().map(|kind| kind.is_dir()) else { continue };
            let Ok(last) = entry.file_name().into_string() else { continue };
            let name = if name.is_empty() { last } else { format!("{name}/{last}") };
            pending.push((entry.path(), name, depth + 1));
        }
    }
    found.directories.sort();
    found
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

impl Found {
    /// Reads what a list needs of a run directory.
    #[must_use]
    pub fn read(name: &str, path: &Path, now: SystemTime) -> Found {
        let found = |state, result| Found { path: path.to_owned(), name: name.to_owned(), state, result };
        if let Some(result) = run_directory::recorded_result(path) {
            return found(State::Ended, Some(result));
        }
        let written = last_written(path);
        let is_silent = written.is_none_or(|at| now.duration_since(at).is_ok_and(|since| since > SILENT_FOR));
        let state = if is_silent { State::Abandoned } else { State::UnderWay };
        let derived: Result<_, ReadError> = run_directory::read(path);
        found(state, derived.ok().map(|run| run.result))
    }
}

/// When something of it was written last, as far as its files tell.
#[must_use]
pub fn last_written(run_directory: &Path) -> Option<SystemTime> {
    let files = ["result.json", "events.jsonl", "timeline.csv"];
    let at = |file: &str| fs::symlink_metadata(run_directory.join(file)).ok()?.modified().ok();
    files.into_iter().filter_map(at).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        find(folder).directories.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn run_directories_are_found_by_their_files_and_not_through_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |path: &str, file: &str| {
            let directory = folder.path().join(path);
            fs::create_dir_all(&directory).expect("made");
            fs::write(directory.join(file), "{}").expect("written");
        };
        make("redis/one", "result.json");
        make("redis/two", "events.jsonl");
        make("matrix/2026/cell", "result.json");
        make("too/deep/for/a/run", "result.json");
        make("other", "notes.txt");
        // Below a run directory nothing is looked for.
        make("redis/one/captures", "result.json");
        std::os::unix::fs::symlink(folder.path().join("redis"), folder.path().join("latest"))
            .expect("a link");
        assert_eq!(names(folder.path()), ["matrix/2026/cell", "redis/one", "redis/two"]);
        // The folder itself is looked into, whatever lies in it.
        make("", "result.json");
        assert_eq!(names(folder.path()).len(), 3);
    }

    #[test]
    fn a_run_without_a_result_is_under_way_until_it_has_been_silent_for_a_while() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("events.jsonl"), "").expect("written");
        let state = |later: Duration| Found::read("x", folder.path(), SystemTime::now() + later).state;
        assert_eq!(state(Duration::ZERO), State::UnderWay);
        assert_eq!(state(SILENT_FOR * 2), State::Abandoned);
        // What is no result is none.
        fs::write(folder.path().join("result.json"), "{").expect("written");
        assert_eq!(state(SILENT_FOR * 2), State::Abandoned);
    }
}
