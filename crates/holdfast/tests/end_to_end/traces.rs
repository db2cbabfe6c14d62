//! What a run leaves on the machine: processes, mounts, interfaces, control groups, files outside its directory.
//!
//! Looks only at what the kernel lists, never at what the program believes. All that a desk's runs make carries the
//! desk's mark, or can be told by the process number of the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::holdfast::Desk;

/// How long the lab may take to vanish.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the janitor may take to remove what it has found: a thousand files for each node, on whatever disk.
const JANITOR_PATIENCE: Duration = Duration::from_secs(20);

/// The machine before the runs of a desk.
pub struct Before {
    mark: String,
    folder: PathBuf,
    interfaces: BTreeSet<String>,
}

impl Before {
    /// As the machine is now.
    pub fn look(desk: &Desk) -> Before {
        Before {
            mark: desk.mark(),
            folder: desk.path().to_owned(),
            interfaces: names_in(Path::new("/sys/class/net")),
        }
    }

    /// Asserts that within moments nothing is left of the runs whose outer processes had these numbers, but run
    /// directories without volumes.
    #[track_caller]
    pub fn nothing_is_left(&self, outer_pids: &[u32]) {
        let killed = Instant::now();
        loop {
            let left = self.left(outer_pids);
            if left.is_empty() {
                return;
            }
            let is_being_removed = left.iter().all(|one| is_the_janitors(one));
            let patience = if is_being_removed { JANITOR_PATIENCE } else { PATIENCE };
            assert!(killed.elapsed() < patience, "left behind:\n  {}", left.join("\n  "));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// All that is left now, one line each.
    pub fn left(&self, outer_pids: &[u32]) -> Vec<String> {
        let mut left = processes(&self.mark);
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
        left.extend(
            mounts.lines().filter(|line| line.contains(&self.mark)).map(|line| format!("mount {line}")),
        );
        let interfaces = names_in(Path::new("/sys/class/net"));
        left.extend(interfaces.difference(&self.interfaces).map(|name| format!("interface {name}")));
        for pid in outer_pids {
            let suffix = format!("-{pid}");
            let is_ours = |name: &str| name.starts_with("holdfast-") && name.ends_with(&suffix);
            left.extend(folders_named(Path::new("/sys/fs/cgroup"), &is_ours));
        }
        left.extend(
            names_in(&self.folder.join("temporary")).into_iter().map(|name| format!("temporary file {name}")),
        );
        left.extend(shared_files_of(outer_pids));
        left.extend(self.left_on_the_desk());
        left
    }

    /// Everything on the desk that was not there at first and lies in no run directory; and volumes in those.
    fn left_on_the_desk(&self) -> Vec<String> {
        let at_first = ["holdfast", "scenarios", "temporary", "runs"];
        let names = names_in(&self.folder).into_iter();
        let mut left: Vec<String> = names.filter(|name| !at_first.contains(&name.as_str())).collect();
        let out = self.folder.join("runs");
        left.extend(
            names_in(&out)
                .into_iter()
                .filter(|name| name.starts_with('.'))
                .map(|name| format!("runs/{name}")),
        );
        for run in run_directories(&self.folder) {
            if run.join("volumes").exists() {
                left.push(format!("volumes in {}", run.display()));
            }
        }
        left
    }
}

fn is_the_janitors(left: &str) -> bool {
    left.starts_with("volumes ") || left.starts_with("process ") && left.contains(" lab-janitor ")
}

/// Files named after us and one of these processes, in folders that all programs share.
fn shared_files_of(outer_pids: &[u32]) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        let is_of_a_run = |name: &String| {
            name.contains("holdfast") && outer_pids.iter().any(|pid| name.contains(&pid.to_string()))
        };
        let names = names_in(Path::new(folder)).into_iter().filter(is_of_a_run);
        found.extend(names.map(|name| format!("shared file {folder}/{name}")));
    }
    found
}

/// All run directories of a desk, by name.
pub fn run_directories(desk: &Path) -> Vec<PathBuf> {
    let out = desk.join("runs");
    let mut found = Vec::new();
    for scenario in names_in(&out).into_iter().filter(|name| name != "latest" && !name.starts_with('.')) {
        found.extend(names_in(&out.join(&scenario)).into_iter().map(|name| out.join(&scenario).join(name)));
    }
    found
}

/// Processes that run a program of this mark, name it, stand in it, or have a piece of it in their view of the file
/// system, as the nodes of a lab do. The tests' own process and its threads are none.
pub fn processes(mark: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    names_in(Path::new("/proc"))
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own)
        .filter_map(|pid| {
            let process = Path::new("/proc").join(&pid);
            let link = |name: &str| fs::read_link(process.join(name)).map(|path| path.display().to_string());
            let file = |name: &str| {
                fs::read(process.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            let command = file("cmdline").unwrap_or_default().replace('\0', " ");
            let traces = [link("exe").unwrap_or_default(), link("cwd").unwrap_or_default(), command.clone()];
            let ours = traces.iter().any(|trace| trace.contains(mark))
                || file("mountinfo").unwrap_or_default().contains(mark);
            ours.then(|| format!("process {pid} {}: {command}", file("comm").unwrap_or_default().trim()))
        })
        .collect()
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn folders_named(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if wanted(&entry.file_name().to_string_lossy()) {
                found.push(format!("control group {}", entry.path().display()));
            }
            found.extend(folders_named(&entry.path(), wanted));
        }
    }
    found
}
