//! Who asks each part of the lab for its signs of life: one thread for each part that may keep somebody waiting.
//!
//! Nobody waits for these threads: one that asks a part which never answers ends with the lab.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric::Fabric;
use history::{Deed, LabPart, NodeId};
use lab::StoppedProcess;
use platform::Datacentre;
use platform::Vm;

use super::sign::Sign;
use super::{DISK_LIMIT, LIMIT, LOOK, Part, Shared};

/// How often the machine's disk is asked to sync a few bytes.
const SYNC_EVERY: Duration = Duration::from_millis(500);
/// Of many nodes each is asked so much less often, so that asking costs the same.
const NODES_ASKED_PER_LOOK: usize = 16;

/// What a watcher does on its thread until the vigil is over.
type Watcher = Box<dyn FnOnce(&Shared, &Sign) + Send>;

/// Starts all watchers: of a lab, where there is one.
pub(super) fn start(
    datacentre: Option<&Arc<Datacentre>>,
    directory: &Path,
    shared: &Arc<Shared>,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut watch = |name: LabPart, limit: Duration, watcher: Watcher| {
        let sign = Arc::new(Sign::new());
        let (theirs, shared) = (sign.clone(), shared.clone());
        let body = move || watcher(&shared, &theirs);
        // A part that nobody asks gives no sign, and counts as one that stood still all the time.
        let _ = std::thread::Builder::new().name("sign of life".to_owned()).spawn(body);
        parts.push(Part { name, sign, limit });
    };
    // Without volumes on it the machine's disk holds up nothing that is measured.
    let Some(datacentre) = datacentre else { return parts };
    let every = LOOK * u32::try_from(1 + datacentre.vms.len() / NODES_ASKED_PER_LOOK).unwrap_or(u32::MAX);
    for of_lab in OfLab::all(datacentre.vms.ids()) {
        let watcher: Watcher = match of_lab {
            OfLab::Fabric => {
                let fabric = datacentre.fabric.clone();
                Box::new(move |shared, sign| ask_fabric(shared, sign, &fabric))
            }
            OfLab::MachineDisk => {
                let file = unnamed_file(directory);
                Box::new(move |shared, sign| sync_disk(shared, sign, file))
            }
            OfLab::Volume(vm) => {
                let vm = datacentre.vms[vm].clone();
                Box::new(move |shared, sign| watch_volume(shared, sign, &vm, every))
            }
            OfLab::Init(number) => {
                let (vm, node) = (datacentre.vms[number].clone(), number.to_string());
                Box::new(move |shared, sign| ask_init(shared, sign, &vm, &node, every))
            }
        };
        watch(of_lab.name(), of_lab.limit(every), watcher);
    }
    parts
}

/// A part of a lab that has a watcher of its own. The supervisor's and the loads' signs come without one.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfLab {
    Fabric,
    MachineDisk,
    Volume(NodeId),
    Init(NodeId),
}

impl OfLab {
    /// All that are watched in a lab of these nodes.
    pub(super) fn all(nodes: impl IntoIterator<Item = NodeId>) -> Vec<OfLab> {
        let of_nodes = nodes.into_iter().flat_map(|node| [OfLab::Volume(node), OfLab::Init(node)]);
        [OfLab::Fabric, OfLab::MachineDisk].into_iter().chain(of_nodes).collect()
    }

    pub(super) fn name(self) -> LabPart {
        match self {
            OfLab::Fabric => LabPart::Fabric,
            OfLab::MachineDisk => LabPart::MachineDisk,
            OfLab::Volume(number) => LabPart::Volume { node: number.to_string() },
            OfLab::Init(number) => LabPart::Init { node: number.to_string() },
        }
    }

    /// How long it may be silent, where nodes are asked so often.
    fn limit(self, every: Duration) -> Duration {
        match self {
            OfLab::Fabric => LIMIT,
            OfLab::MachineDisk | OfLab::Volume(_) => DISK_LIMIT,
            OfLab::Init(_) => LIMIT + every,
        }
    }
}

fn ask_fabric(shared: &Shared, sign: &Sign, fabric: &Fabric) {
    while !shared.is_over() {
        // A fabric that is gone gives no sign any more.
        if fabric.counters().is_ok() {
            sign.give();
        }
        std::thread::sleep(LOOK);
    }
}

/// A file on the file system of the volumes that no name leads to and that goes with its descriptor (open(2), O_TMPFILE);
/// where that file system knows none, one whose name is gone at once.
fn unnamed_file(folder: &Path) -> io::Result<File> {
    let unnamed = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    unnamed.or_else(|_| {
        let path = folder.join(".sign-of-life");
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    })
}

fn sync_disk(shared: &Shared, sign: &Sign, file: io::Result<File>) {
    // Without one the disk gives no sign.
    let Ok(mut file) = file else { return };
    while !shared.is_over() {
        let synced = file.rewind().and_then(|()| file.write_all(b"alive")).and_then(|()| file.sync_data());
        match synced {
            Ok(()) => sign.give(),
            // A full disk is another matter, and is told by whoever needs the space.
            Err(_) => sign.excuse(),
        }
        std::thread::sleep(SYNC_EVERY);
    }
}

fn watch_volume(shared: &Shared, sign: &Sign, vm: &Vm, every: Duration) {
    while !shared.is_over() {
        tell_of_volume(sign, vm.longest_request());
        std::thread::sleep(every);
    }
}

/// A volume lives as long as the oldest work at it is young.
fn tell_of_volume(sign: &Sign, under_way: Option<Duration>) {
    match under_way {
        Some(under_way) if under_way > DISK_LIMIT / 2 => {}
        Some(_) => sign.give(),
        None => sign.excuse(),
    }
}

fn ask_init(shared: &Shared, sign: &Sign, vm: &Vm, node: &str, every: Duration) {
    let _ = vm.take_unasked_ends();
    while !shared.is_over() {
        let beat = vm.beat();
        tell_of_init(sign, beat.as_ref().map(|beat| beat.waited_for_volume), || vm.has_ended_by_itself());
        let seen = beat.map_or_else(Vec::new, |beat| beat.stopped);
        shared.while_watching(|stopped| {
            note_unasked_ends(shared, vm);
            note_stopped(shared, node, stopped.entry(node.to_owned()).or_default(), &seen);
        });
        std::thread::sleep(every);
    }
}

/// What an init's answer tells, if there is one, and whether it waited for its volume: a node without power owes none. An init
/// that has ended by itself was to give one, and gives none any more.
fn tell_of_init(sign: &Sign, answered: Option<bool>, has_ended: impl Fn() -> bool) {
    match answered {
        Some(waited_for_volume) => {
            if waited_for_volume {
                sign.excuse();
            }
            sign.give();
        }
        None if has_ended() => {}
        None => sign.excuse(),
    }
}

/// Notes the processes of a node that have ended unasked since this was done last.
pub(super) fn note_unasked_ends(shared: &Shared, vm: &Vm) {
    for end in vm.take_unasked_ends() {
        let (deed, is_of_a_fault) = match end.signal {
            Some(signal) => (Deed::Killed { signal }, is_of_a_fault(signal, vm.expects_kills())),
            None => (Deed::Ended, false),
        };
        shared.note(vm.name(), end.program, deed, is_of_a_fault);
    }
}

/// Whether a fault explains that this signal ended a process: for want of memory the kernel kills, and sends no other.
pub(super) fn is_of_a_fault(signal: i32, expects_kills: bool) -> bool {
    expects_kills && signal == libc::SIGKILL
}

/// Notes the processes that stood still until now and do so no more.
pub(super) fn note_stopped(
    shared: &Shared,
    node: &str,
    stopped: &mut BTreeMap<StoppedProcess, Instant>,
    seen: &[StoppedProcess],
) {
    stopped.retain(|process, since| {
        let still = seen.contains(process);
        if !still {
            let deed = Deed::Stopped { for_s: since.elapsed().as_secs_f64() };
            shared.note(node, process.program.clone(), deed, false);
        }
        still
    });
    for process in seen {
        stopped.entry(process.clone()).or_insert_with(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fabric_the_machines_disk_and_each_nodes_volume_and_init_are_watched() {
        let named: Vec<LabPart> =
            OfLab::all([NodeId::FIRST, NodeId::new(1)]).into_iter().map(OfLab::name).collect();
        let volume = |node: &str| LabPart::Volume { node: node.to_owned() };
        let init = |node: &str| LabPart::Init { node: node.to_owned() };
        let of_nodes = [volume("n1"), init("n1"), volume("n2"), init("n2")];
        assert_eq!(named, [&[LabPart::Fabric, LabPart::MachineDisk][..], &of_nodes].concat());
    }

    #[test]
    fn want_of_memory_explains_a_kill_and_no_other_signal_whoever_tells_of_it() {
        assert!(is_of_a_fault(libc::SIGKILL, true) && !is_of_a_fault(libc::SIGKILL, false));
        assert!(!is_of_a_fault(libc::SIGSEGV, true) && !is_of_a_fault(libc::SIGABRT, true));
    }

    #[test]
    fn an_init_that_ended_though_nobody_took_its_power_gives_no_sign_any_more() {
        let sign = Sign::new();
        let before = sign.latest();
        tell_of_init(&sign, None, || true);
        assert_eq!((sign.latest(), sign.excused_until()), (before, before));
        tell_of_init(&sign, Some(false), || false);
        assert!(sign.latest() > before && sign.excused_until() == before);
        tell_of_init(&sign, None, || false);
        assert!(sign.excused_until() > before, "without power it owes none");
    }

    #[test]
    fn a_volume_whose_oldest_work_does_not_end_gives_no_sign_any_more() {
        let sign = Sign::new();
        let before = sign.latest();
        tell_of_volume(&sign, Some(DISK_LIMIT));
        assert_eq!((sign.latest(), sign.excused_until()), (before, before));
        tell_of_volume(&sign, Some(LOOK));
        assert!(sign.latest() > before && sign.excused_until() == before);
        tell_of_volume(&sign, None);
        assert!(sign.excused_until() > before);
    }
}
