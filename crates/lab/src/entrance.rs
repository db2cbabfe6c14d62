//! How a person finds a way into a lab that is up: a small file in the run directory says which process is the lab, and
//! small files inside the lab say where each place is.
//!
//! Owns these files and the opening of namespaces. What happens inside is `shell`'s business. The files inside lie in
//! the lab's own memory and go with it; the one in the run directory is removed by whoever started the lab, or by the
//! janitor, and says nothing any more once its process is gone.
//!
//! Who may enter, the kernel decides (ptrace(2), access mode checks; user_namespaces(7)): whoever could trace the lab.
//! Beyond that the file must belong to the caller, so that nobody, root least of all, is led into a place that somebody
//! else has prepared.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::furnishing::Limits;
use crate::protocol::ShownPrograms;
use crate::supervisor::LAB_FOLDER;

/// Name of the file in the run directory.
const LAB_FILE: &str = "lab.json";
/// Folder of the places' files in the lab. A place's names are folders in it; none of them has a dot.
const ENTRANCES: &str = "entrances";
/// Name of a place's file.
const PLACE_FILE: &str = "entrance.json";

/// What can go wrong on the way in.
#[derive(Debug, thiserror::Error)]
pub enum EntranceError {
    /// There is no lab.
    #[error("no lab is up in {run_directory}")]
    NoLab {
        /// Where it was looked for.
        run_directory: PathBuf,
    },
    /// The lab belongs to somebody else.
    #[error("the lab in {run_directory} belongs to user {owner}; only that user may enter it")]
    NotYours {
        run_directory: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// The lab has no such place.
    #[error("the lab has no node `{place}`; it has {known}")]
    Unknown {
        /// What was asked for.
        place: String,
        /// What there is, in words.
        known: String,
    },
    /// The lab is just being built.
    #[error("the lab in {run_directory} is still being built")]
    BeingBuilt { run_directory: PathBuf },
    /// The node has no power.
    #[error("{place} has no power now")]
    NoPower {
        /// The node.
        place: String,
    },
    /// A file of the lab's could not be read or written, or a namespace could not be opened.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, EntranceError> {
    result.map_err(|source| EntranceError::File { path: path.to_owned(), source })
}

/// What the lab's file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LabFile {
    /// Where the lab is: the supervisor's process that stays outside its PID namespace.
    supervisor: Process,
    /// Who started it. The lab ends with it.
    starter: Process,
}

/// One process, and no later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    number: u32,
    /// When it started, in clock ticks since the machine did: process numbers are used again.
    born_ticks: u64,
}

impl Process {
    fn now(number: u32) -> Result<Process, EntranceError> {
        let born_ticks = at(&PathBuf::from(format!("/proc/{number}")), born_ticks(number))?;
        Ok(Process { number, born_ticks })
    }

    fn lives(self) -> bool {
        born_ticks(self.number).is_ok_and(|born_ticks| born_ticks == self.born_ticks)
    }
}

/// A place of a lab, as written by the lab for those who want in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrance {
    /// How it is entered; none without power.
    pub inside: Option<Inside>,
    /// The environment of a shell in it.
    pub environment: BTreeMap<String, String>,
    /// Whether the user numbers above 0 are mapped.
    pub users_mapped: bool,
}

/// How a place is entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Inside {
    /// Through its init: a node's namespaces of every kind.
    Node {
        /// Process number of its init in the lab.
        init: u32,
        /// The inode of its PID namespace: shows that the number still means that init.
        pid_namespace: u64,
    },
    /// Through its network namespace, all that a host or a place of clients has. The rest is made for the visitor.
    Network {
        /// The descriptor by which the lab's first process holds it.
        descriptor: RawFd,
        /// The database's programs, where they do not lie among the machine's.
        programs: Vec<ShownPrograms>,
        /// Names and their addresses for `/etc/hosts`.
        names: BTreeMap<String, Vec<IpAddr>>,
    },
}

/// Says in the run directory that the lab of this supervisor is up, and that the calling process has started it.
///
/// # Errors
/// When the supervisor is gone or the file cannot be written.
pub fn announce(run_directory: &Path, supervisor: u32) -> Result<(), EntranceError> {
    let (supervisor, starter) = (Process::now(supervisor)?, Process::now(std::process::id())?);
    write_whole(&run_directory.join(LAB_FILE), &LabFile { supervisor, starter })
}

/// Whether the starter of the lab that was announced here lives: then it tidies up itself. `false` where it is gone and the lab is
/// ending, or has ended; none where none was announced.
pub(crate) fn starter_lives(run_directory: &Path) -> Option<bool> {
    let file = File::open(run_directory.join(LAB_FILE)).ok()?;
    let lab: LabFile = serde_json::from_reader(file).ok()?;
    Some(lab.starter.lives())
}

/// Takes back what [`announce`] said, where it did.
///
/// # Errors
/// When the file is there and cannot be removed.
pub(crate) fn withdraw(run_directory: &Path) -> Result<(), EntranceError> {
    let path = run_directory.join(LAB_FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => at(&path, Err(error)),
        _ => Ok(()),
    }
}

/// Inside the lab: says how a place is entered from now on.
///
/// # Errors
/// When the file cannot be written.
pub fn open(place: &str, entrance: &Entrance) -> Result<(), EntranceError> {
    let folder = Path::new(LAB_FOLDER).join(ENTRANCES).join(place);
    at(&folder, fs::create_dir_all(&folder))?;
    write_whole(&folder.join(PLACE_FILE), entrance)
}

/// Nobody ever reads half of it.
fn write_whole(path: &Path, content: &impl Serialize) -> Result<(), EntranceError> {
    let text = at(path, serde_json::to_string(content).map_err(io::Error::other))?;
    let unfinished = path.with_extension("unfinished");
    at(&unfinished, fs::write(&unfinished, text))?;
    at(path, fs::rename(&unfinished, path))
}

/// Whether there is a process of this number that has not ended.
pub(crate) fn is_running(process: u32) -> bool {
    born_ticks(process).is_ok()
}

/// The 22nd field of `/proc/PID/stat` (proc_pid_stat(5)). The second, the name in parentheses, may hold anything.
///
/// A process that has ended and was not yet waited for (state `Z`) is none.
fn born_ticks(process: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start()).unwrap_or_default();
    if after_name.starts_with('Z') {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended"));
    }
    let field = after_name.split_whitespace().nth(19).and_then(|text| text.parse().ok());
    field.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no start time"))
}

/// A lab that is up, seen from outside.
#[derive(Debug)]
pub struct Lab {
    run_directory: PathBuf,
    process: u32,
}

/// A place whose namespaces are open: whatever becomes of the place, these are its own.
#[derive(Debug)]
pub struct Door {
    pub place: String,
    /// As the lab wrote it.
    pub entrance: Entrance,
    pub(crate) user: OwnedFd,
    pub(crate) limits: Limits,
    pub(crate) pid: OwnedFd,
    pub(crate) mount: OwnedFd,
    pub(crate) network: OwnedFd,
    /// Host name and shared memory: a node has its own.
    pub(crate) others: Vec<OwnedFd>,
}

impl Lab {
    /// The lab of a run directory.
    ///
    /// # Errors
    /// [`EntranceError::NoLab`] when there is none or it is gone, [`EntranceError::NotYours`] when it is not the caller's.
    pub fn find(run_directory: &Path) -> Result<Lab, EntranceError> {
        let no_lab = || EntranceError::NoLab { run_directory: run_directory.to_owned() };
        let path = run_directory.join(LAB_FILE);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(no_lab()),
            other => at(&path, other)?,
        };
        let owner = at(&path, file.metadata())?.uid();
        if owner != nix::unistd::geteuid().as_raw() {
            return Err(EntranceError::NotYours { run_directory: run_directory.to_owned(), owner });
        }
        let lab: LabFile = at(&path, serde_json::from_reader(file).map_err(io::Error::other))?;
        if !lab.supervisor.lives() {
            return Err(no_lab());
        }
        Ok(Lab { run_directory: run_directory.to_owned(), process: lab.supervisor.number })
    }

    /// A path as the lab sees it.
    fn seen(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        PathBuf::from(format!("/proc/{}/root", self.process)).join(path.strip_prefix("/").unwrap_or(path))
    }

    fn folder(&self) -> PathBuf {
        self.seen(LAB_FOLDER).join(ENTRANCES)
    }

    /// Every place by name, nodes and others.
    ///
    /// # Errors
    /// [`EntranceError::BeingBuilt`] when there is none yet.
    pub fn places(&self) -> Result<Vec<String>, EntranceError> {
        let folder = self.folder();
        let mut places = Vec::new();
        match list(&folder, "", &mut places) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(EntranceError::BeingBuilt { run_directory: self.run_directory.clone() })
            }
            other => {
                at(&folder, other)?;
                places.sort();
                Ok(places)
            }
        }
    }

    /// Opens the way into a place.
    ///
    /// # Errors
    /// [`EntranceError::Unknown`] when the lab has no such place, [`EntranceError::NoPower`] when it cannot be entered now.
    pub fn door(&self, place: &str) -> Result<Door, EntranceError> {
        let places = self.places()?;
        if !places.iter().any(|known| known == place) {
            return Err(EntranceError::Unknown { place: place.to_owned(), known: in_words(&places) });
        }
        let path = self.folder().join(place).join(PLACE_FILE);
        let file = at(&path, File::open(&path))?;
        let entrance: Entrance = at(&path, serde_json::from_reader(file).map_err(io::Error::other))?;
        let no_power = || EntranceError::NoPower { place: place.to_owned() };
        let lab = PathBuf::from(format!("/proc/{}/ns", self.process));
        let user = namespace(&lab.join("user"))?;
        let limits = self.seen("/proc/sys/user");
        let limits = at(&limits, Limits::open(&limits))?;
        let place = place.to_owned();
        match entrance.inside.clone().ok_or_else(no_power)? {
            Inside::Node { init, pid_namespace } => {
                let node = self.seen(format!("/proc/{init}/ns"));
                let pid = namespace(&node.join("pid")).map_err(|_| no_power())?;
                let still_it =
                    at(&node, File::from(at(&node, pid.try_clone())?).metadata())?.ino() == pid_namespace;
                let open = |kind: &str| namespace(&node.join(kind)).map_err(|_| no_power());
                let (mount, network, others) = (open("mnt")?, open("net")?, vec![open("uts")?, open("ipc")?]);
                let door = Door { place, entrance, user, limits, pid, mount, network, others };
                if still_it { Ok(door) } else { Err(no_power()) }
            }
            Inside::Network { descriptor, .. } => Ok(Door {
                network: namespace(&self.seen(format!("/proc/1/fd/{descriptor}")))?,
                pid: namespace(&lab.join("pid_for_children"))?,
                mount: namespace(&lab.join("mnt"))?,
                others: Vec::new(),
                place,
                entrance,
                user,
                limits,
            }),
        }
    }
}

fn namespace(path: &Path) -> Result<OwnedFd, EntranceError> {
    at(path, File::open(path)).map(OwnedFd::from)
}

fn list(folder: &Path, name: &str, places: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let own = entry.file_name().to_string_lossy().into_owned();
        if own == PLACE_FILE {
            places.push(name.to_owned());
        } else if entry.file_type()?.is_dir() {
            let below = if name.is_empty() { own } else { format!("{name}/{own}") };
            list(&entry.path(), &below, places)?;
        }
    }
    Ok(())
}

/// The nodes; of the others some, and how many more.
fn in_words(places: &[String]) -> String {
    const MOST: usize = 12;
    let (others, nodes): (Vec<_>, Vec<_>) = places.iter().partition(|place| place.contains('/'));
    let listed = |names: &[&String]| {
        let shown: Vec<&str> = names.iter().take(MOST).map(|name| name.as_str()).collect();
        let more = names.len().saturating_sub(MOST);
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{tail}", shown.join(", "))
    };
    if others.is_empty() {
        return listed(&nodes);
    }
    format!("{}, and without a database {}", listed(&nodes), listed(&others))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: Option<&str>, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some(text) = file {
            fs::write(folder.path().join(LAB_FILE), text).expect("a file");
        }
        let found = Lab::find(folder.path()).map(|lab| format!("lab {}", lab.process));
        let told = found.unwrap_or_else(|error| error.to_string());
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn a_file_whose_process_is_gone_is_no_lab() {
        let us = std::process::id();
        let born = born_ticks(us).expect("our own birth");
        let of = |number: u32, born_ticks: u64| {
            let supervisor = Process { number, born_ticks };
            serde_json::to_string(&LabFile { supervisor, starter: supervisor }).expect("JSON")
        };
        check(None, "no lab is up in /");
        check(Some(&of(us, born)), &format!("lab {us}"));
        check(Some(&of(us, born + 1)), "no lab is up in /");
        check(Some(&of(u32::MAX, 1)), "no lab is up in /");
        check(Some("{"), "/");
    }

    #[test]
    fn what_is_announced_is_found_until_it_is_withdrawn() {
        let folder = tempfile::tempdir().expect("a folder");
        announce(folder.path(), std::process::id()).expect("announced");
        assert!(Lab::find(folder.path()).is_ok());
        withdraw(folder.path()).expect("withdrawn");
        withdraw(folder.path()).expect("nothing left to withdraw");
        assert!(matches!(Lab::find(folder.path()), Err(EntranceError::NoLab { .. })));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn the_message_names_every_node_and_some_of_the_rest() {
        let places = ["n1", "n2", "dc1/a/h1"].map(str::to_owned);
        assert_eq!(in_words(&places), "n1, n2, and without a database dc1/a/h1");
        let many: Vec<String> = (1..=14).map(|number| format!("n{number}")).collect();
        assert!(in_words(&many).ends_with("n12 and 2 more"));
    }
}
