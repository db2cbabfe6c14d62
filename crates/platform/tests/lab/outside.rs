//! Tests that look at a lab from the machine: it ends with its supervisor, however that ends, and leaves nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use lab::janitor::{self, Janitor};

use crate::inside::STAND;
use crate::start;

/// Name and test.
pub const TESTS: &[(&str, fn())] = &[
    ("a_lab_dies_with_the_process_outside_it", || dies(End::KillOutermost)),
    ("a_lab_dies_with_its_first_process", || dies(End::KillInnermost)),
    ("a_lab_dies_when_nobody_holds_its_input_any_more", || dies(End::HangUp)),
    ("the_janitor_waits_for_the_lab_and_removes_its_volumes", the_janitor_waits),
];

/// How long the kernel may take to end a few processes.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy)]
enum End {
    KillOutermost,
    KillInnermost,
    HangUp,
}

/// A lab that stands, and all its processes with the moments they began.
fn standing(folder: &Path) -> (Child, BTreeMap<u32, String>) {
    let mut lab = start(folder, STAND);
    let mut said = String::new();
    BufReader::new(lab.stdout.as_mut().expect("output")).read_line(&mut said).expect("a line");
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert_eq!(said, "up\n", "{log}");
    let processes = descendants(lab.id());
    // The supervisor's two, and of each node its init and the shell; what the shell starts may come a moment later.
    assert!(processes.len() >= 6, "the search finds the lab: {processes:?}");
    (lab, processes)
}

/// A process's parent, and the moment it began, which tells it from a later one of the same number.
fn parent_and_birth(pid: u32) -> Option<(u32, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    Some((fields.get(1)?.parse().ok()?, (*fields.get(19)?).to_owned()))
}

/// A process and all below it.
fn descendants(root: u32) -> BTreeMap<u32, String> {
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: BTreeMap<u32, (u32, String)> =
        pids.filter_map(|pid| Some((pid, parent_and_birth(pid)?))).collect();
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    found.insert(root, all[&root].1.clone());
    loop {
        let more: Vec<(u32, String)> = all
            .iter()
            .filter(|(pid, (parent, _))| found.contains_key(parent) && !found.contains_key(*pid))
            .map(|(pid, (_, birth))| (*pid, birth.clone()))
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

fn dies(end: End) {
    let folder = tempfile::Builder::new().prefix("holdfast-lab-").tempdir().expect("a folder");
    let (mut lab, processes) = standing(folder.path());
    match end {
        End::KillOutermost => lab.kill().expect("killed"),
        End::KillInnermost => {
            let root = lab.id();
            let child = |pid: &&u32| parent_and_birth(**pid).is_some_and(|(parent, _)| parent == root);
            let first = *processes.keys().find(child).expect("PID 1 of the lab");
            // SAFETY: kill(2) takes no pointers; the process is our lab's, found a moment ago.
            assert_eq!(unsafe { libc::kill(first.cast_signed(), libc::SIGKILL) }, 0);
        }
        End::HangUp => drop(lab.stdin.take()),
    }
    lab.wait().expect("waited for");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let is_same =
            |(pid, birth): &(&u32, &String)| parent_and_birth(**pid).is_some_and(|now| now.1 == **birth);
        let left: Vec<&u32> = processes.iter().filter(is_same).map(|(pid, _)| pid).collect();
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let name = folder.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert!(!mounts.contains(&name), "{mounts}");
}

/// The janitor must not be done while a process that could still make files is alive.
fn the_janitor_waits() {
    let folder = tempfile::Builder::new().prefix("holdfast-lab-").tempdir().expect("a folder");
    let log = janitor::log_path(folder.path());
    let volume = janitor::volumes_path(folder.path()).join("n1");
    std::fs::create_dir_all(log.parent().expect("a parent")).expect("a folder");
    let lab = std::fs::File::create(&log).expect("a log");
    lab.try_lock().expect("a lock");
    let janitor = Janitor::start("the-janitor-waits", folder.path()).expect("a janitor");
    std::thread::scope(|scope| {
        let gone = scope.spawn(move || drop(janitor));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!gone.is_finished(), "it did not wait for the lab");
        // The last thing a dying lab does.
        std::fs::create_dir_all(&volume).expect("a volume");
        std::fs::write(volume.join("file"), "late").expect("a file");
        drop(lab);
        gone.join().expect("the janitor ends");
    });
    assert!(!janitor::volumes_path(folder.path()).exists());
    assert!(log.exists(), "the log stays");
}
