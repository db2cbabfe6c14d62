//! The processes of a node as the lab sees them from outside: which there are, what each of their threads does, how much
//! CPU time they have used.
//!
//! Evidence for faults of processes. Shares nothing with the init that strikes them (`struck_processes`). Sources:
//! proc_pid_stat(5), proc_pid_task(5), proc_pid_status(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process, told from a later one of the same number by when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Its number as the lab sees it.
    pub pid: u32,
    /// When it began, in ticks since the machine did.
    pub began_ticks: u64,
}

/// What is seen of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The file name of its program, or of the script that it interprets.
    pub program: String,
    /// Its parent's number as the lab sees it.
    pub parent: u32,
    /// Whether the node's init is its parent.
    pub is_of_init: bool,
    /// The state of each thread: `S` sleeps, `R` runs, `D` waits for a disk, `T` was stopped.
    pub states: Vec<char>,
    /// CPU time that it has used, in ticks.
    pub cpu_ticks: u64,
}

impl Seen {
    /// Whether a signal has stopped every thread of it.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        !self.states.is_empty() && self.states.iter().all(|state| *state == 'T')
    }
}

/// The processes of a PID namespace and of those within it, as containers have them: without its init, those that have ended and are
/// not yet reaped, and those that came in from outside.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn look(pid_namespace: u64) -> io::Result<BTreeMap<Identity, Seen>> {
    let (mut init, mut parents) = (None, BTreeMap::new());
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let folder = entry.path();
        let is_here = fs::metadata(folder.join("ns/pid")).is_ok_and(|file| file.ino() == pid_namespace);
        if is_here && number_inside(&folder) == Some(1) {
            init = Some(pid);
        } else if let Some(fields) = fields(&folder) {
            // A process that ends while we look is not there.
            parents.insert(pid, fields.parent);
        }
    }
    // Whoever came in from outside has a parent that is outside.
    let is_inside = |pid: &u32| {
        let line = std::iter::successors(Some(*pid), |pid| parents.get(pid).copied());
        line.last() == init
    };
    let inside = parents.keys().copied().filter(is_inside);
    let seen = |pid: u32| {
        let (identity, seen) = seen(&Path::new("/proc").join(pid.to_string()), pid)?;
        Some((identity, Seen { is_of_init: Some(seen.parent) == init, ..seen }))
    };
    Ok(inside.filter_map(seen).collect())
}

/// The programs of all processes of the lab but its supervisor, to be asked there. Those that have ended and are not yet
/// reaped are left out.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn beside_the_supervisor() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let Some((_, seen)) = pid.filter(|pid| *pid != 1).and_then(|pid| seen(&entry.path(), pid)) {
            found.push(seen.program);
        }
    }
    found.sort();
    Ok(found)
}

/// A file, whatever its path is called where it is looked at from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// That of a file by its path, links followed.
    ///
    /// # Errors
    /// Whatever the file system answers.
    pub fn of(path: &Path) -> io::Result<FileIdentity> {
        fs::metadata(path).map(|file| FileIdentity { device: file.dev(), inode: file.ino() })
    }
}

/// The program that a process runs, and every file that it has open; none where it has ended.
#[must_use]
pub fn files_of(process: Identity) -> BTreeSet<FileIdentity> {
    let folder = PathBuf::from("/proc").join(process.pid.to_string());
    let open = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(folder.join("exe")).chain(open).filter_map(|path| FileIdentity::of(&path).ok()).collect()
}

/// The number that the innermost namespace has for a process.
fn number_inside(folder: &Path) -> Option<u32> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

fn fields(folder: &Path) -> Option<Fields> {
    Fields::of(&fs::read_to_string(folder.join("stat")).ok()?)
}

fn seen(folder: &Path, pid: u32) -> Option<(Identity, Seen)> {
    let fields = fields(folder)?;
    if matches!(fields.state, 'Z' | 'X') {
        return None;
    }
    let threads = fs::read_dir(folder.join("task")).ok()?.flatten();
    let state = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        Fields::of(&stat).map(|fields| fields.state)
    };
    let seen = Seen {
        program: program(folder)?,
        parent: fields.parent,
        is_of_init: false,
        states: threads.filter_map(state).collect(),
        cpu_ticks: fields.cpu_ticks,
    };
    Some((Identity { pid, began_ticks: fields.began_ticks }, seen))
}

/// The program's file name; of an interpreter that of its script.
fn program(folder: &Path) -> Option<String> {
    let executable = fs::read_link(folder.join("exe")).ok();
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = executable.and_then(name).unwrap_or_default();
    let interprets =
        ["python", "perl", "sh", "dash", "bash", "ruby"].iter().any(|known| name.starts_with(known));
    if !interprets {
        return Some(name);
    }
    let line = fs::read(folder.join("cmdline")).ok()?;
    let script = line.split(|byte| *byte == 0).nth(1).map(|word| String::from_utf8_lossy(word).into_owned());
    let script = script.filter(|script| script.starts_with('/'));
    Some(script.and_then(|script| script.rsplit('/').next().map(str::to_owned)).unwrap_or(name))
}

/// What a line of `/proc/PID/stat` tells.
#[derive(Debug, PartialEq, Eq)]
struct Fields {
    state: char,
    parent: u32,
    cpu_ticks: u64,
    began_ticks: u64,
}

impl Fields {
    fn of(line: &str) -> Option<Fields> {
        // A name may hold spaces and brackets.
        let (_, after) = line.rsplit_once(") ")?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        // The third field of the page is the first here.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Fields {
            state: fields.first()?.chars().next()?,
            parent: u32::try_from(number(4)?).ok()?,
            cpu_ticks: number(14)? + number(15)?,
            began_ticks: number(22)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_however_the_program_is_called() {
        let line = "7 (a) S (b) T 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 555 9 9";
        let expected = Fields { state: 'T', parent: 3, cpu_ticks: 30, began_ticks: 555 };
        assert_eq!(Fields::of(line), Some(expected));
        assert_eq!(Fields::of("7 (a) S 1"), None);
    }

    #[test]
    fn a_process_counts_as_stopped_when_each_of_its_threads_is() {
        let seen = |states: &str| Seen {
            program: String::new(),
            parent: 1,
            is_of_init: true,
            states: states.chars().collect(),
            cpu_ticks: 0,
        };
        assert!(seen("TTT").is_stopped());
        assert!(!seen("TST").is_stopped() && !seen("D").is_stopped() && !seen("").is_stopped());
    }
}
