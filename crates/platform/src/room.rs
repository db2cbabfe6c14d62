//! Whether this machine has what a scenario takes: the network's device, room where the run directory is, memory.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use paper::Needs;
use scenario::units::approximate_size;
use scenario::{Need, Scenario};

/// What this machine lacks.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    #[error("{device}: {why}; {remedy}; `holdfast doctor` tries all that a lab needs")]
    Device {
        /// Its path.
        device: &'static str,
        /// Why it cannot be used.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Control groups, which pressure needs.
    #[error(
        "`pressure` needs control groups, and none can be created here: {why}; run as root or with a delegated cpu \
         controller (see `holdfast doctor`), or remove `pressure` from the schedule"
    )]
    Groups {
        /// Why not.
        why: String,
    },
    /// The same for memory.
    #[error(
        "`pressure` on memory needs control groups that limit memory, and none can be created here: {why}; run as root or with a \
         delegated memory controller, or remove `memory` from the schedule"
    )]
    MemoryGroups {
        /// Why not.
        why: String,
    },
    /// Clocks of nodes' own.
    #[error(
        "clock faults need a separate wall clock for each node, which this machine does not allow: {why}; see \
         `holdfast doctor`, or remove `clock-` faults from the schedule"
    )]
    Clocks {
        /// Why not.
        why: String,
    },
    /// Room on a file system.
    #[error(
        "{}: about {} are needed, {} are free; remove old runs, use fewer nodes or a smaller scale, or choose \
         another folder with --out",
        folder.display(), approximate_size(*needed_bytes as f64), approximate_size(*free_bytes as f64)
    )]
    Disk {
        /// Where the run directory is to be made.
        folder: PathBuf,
        /// What the run takes.
        needed_bytes: u64,
        /// What there is.
        free_bytes: u64,
    },
}

/// Less memory is free than the run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortOfMemory {
    needed_bytes: u64,
    free_bytes: u64,
}

impl std::fmt::Display for ShortOfMemory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [needed, free] = [self.needed_bytes, self.free_bytes].map(|bytes| approximate_size(bytes as f64));
        write!(
            formatter,
            "memory may be short: about {needed} are needed and {free} are free; if nodes are killed, end other programs or \
             use fewer nodes or clients"
        )
    }
}

/// What there is of this machine; what cannot be read is absent.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Free bytes on the file system of a folder.
    pub disk_bytes: Option<u64>,
    /// Bytes of memory that are free, or can be had at once.
    pub memory_bytes: Option<u64>,
}

/// What is free where a folder is, or will be made.
#[must_use]
pub fn room(folder: &Path) -> Room {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let facts = absolute.ancestors().find_map(|place| statvfs(place).ok());
    let disk_bytes = facts.map(|facts| facts.blocks_available() * facts.fragment_size());
    Room { disk_bytes, memory_bytes: paper::meminfo_kib("MemAvailable").map(|kib| kib * 1024) }
}

/// Refuses a scenario for which there is no room. Memory that may be short is a warning: how much a database takes depends
/// on its settings.
///
/// # Errors
/// When a device, a fault or room on the disk cannot be had.
pub fn check(scenario: &Scenario, folder: &Path) -> Result<Option<ShortOfMemory>, RoomError> {
    let device = lab::machine::network_device();
    if let Err(why) = device.found {
        return Err(RoomError::Device { device: device.what, why, remedy: device.remedy });
    }
    can_have(scenario)?;
    compare(paper::needs(scenario), room(folder), folder)
}

/// Refuses faults that this machine does not allow.
///
/// # Errors
/// When the schedule asks for one that cannot be had.
pub fn can_have(scenario: &Scenario) -> Result<(), RoomError> {
    if needs(scenario, Need::ControlGroups) {
        lab::cgroup::available().map_err(|error| RoomError::Groups { why: error.to_string() })?;
    }
    if needs(scenario, Need::MemoryGroups) {
        lab::memory_groups::available()
            .map_err(|error| RoomError::MemoryGroups { why: error.to_string() })?;
    }
    if needs(scenario, Need::Clocks) {
        clock::trial().map_err(|error| RoomError::Clocks { why: error.to_string() })?;
    }
    Ok(())
}

/// Whether a fault of the schedule needs it.
#[must_use]
pub fn needs(scenario: &Scenario, need: Need) -> bool {
    let mut faults = scenario.faults();
    faults.any(|fault| fault.action.needs() == Some(need))
}

fn compare(needs: Needs, room: Room, folder: &Path) -> Result<Option<ShortOfMemory>, RoomError> {
    if let Some(free_bytes) = room.disk_bytes.filter(|free| *free < needs.disk_bytes) {
        let (folder, needed_bytes) = (folder.to_owned(), needs.disk_bytes);
        return Err(RoomError::Disk { folder, needed_bytes, free_bytes });
    }
    let short = room.memory_bytes.filter(|free| *free < needs.memory_bytes);
    Ok(short.map(|free_bytes| ShortOfMemory { needed_bytes: needs.memory_bytes, free_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_too_little_memory_are_told_with_what_is_needed() {
        let needs = Needs { disk_bytes: 3 << 30, memory_bytes: 1 << 30 };
        let told = |disk_bytes, memory_bytes| {
            compare(needs, Room { disk_bytes, memory_bytes }, Path::new("runs"))
                .map(|short| short.map_or_else(String::new, |short| short.to_string()))
                .map_err(|error| error.to_string())
        };
        assert_eq!(told(Some(3 << 30), Some(1 << 30)), Ok(String::new()));
        assert_eq!(told(None, None), Ok(String::new()), "what cannot be read refuses nothing");
        let disk = told(Some(700 << 20), None).expect_err("no room");
        assert!(disk.starts_with("runs: about 3.0 GiB are needed, 700 MiB are free"), "{disk}");
        let memory = told(None, Some(1 << 20)).expect("a warning");
        assert!(
            memory.starts_with("memory may be short: about 1.0 GiB are needed and 1.0 MiB are free"),
            "{memory}"
        );
    }

    #[test]
    fn room_is_found_for_folders_that_are_not_there_yet() {
        assert!(room(Path::new("not/there/yet")).disk_bytes > Some(0));
        assert!(room(Path::new("/proc/self")).memory_bytes > Some(0));
    }
}
