//! A control group for each node's processor time, where this user may make them: version 1's `cpu` hierarchy or version 2.
//!
//! A limit of processors is kept by it. It is made without a limit too: the kernel shares the processors between groups, and
//! what is in none between sessions, of which every PostgreSQL backend is one. A thousand backends that end at a power-off
//! would otherwise each have as much of the processors as the whole lab.
//!
//! The lab itself goes first: the supervisor, with all its threads, is in a group of a hundred times the weight of others. The kernel
//! divides a group's weight among the processors by where the group was busy lately. A group that works a little everywhere, as a lab
//! does, has next to no weight on a processor that a database fills, and once it has worked there it is not due again for
//! seconds. Sessions are groups too, so the lab needs one whose weight is still large when divided.
//!
//! Owns one folder per lab in the hierarchy, named after the run, and one inside it per node. A control group
//! outlives its processes, so the folder is removed on drop and, after a SIGKILL, by the janitor, or by the next run: the
//! lab has its folder locked for as long as it lives. The lab's own group is a folder beside it, removed likewise.
//!
//! Sources: Linux `Documentation/scheduler/sched-bwc.rst`, `Documentation/admin-guide/cgroup-v2.rst`, `kernel/sched/fair.c`
//! (`calc_group_shares`, `place_entity`); sched(7) on autogroups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::hierarchies::{Controller, Version, candidates, hierarchies};

/// Length of the period over which a limit holds, microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;

/// What the lab's own group is given: the most that version 2 knows, a hundred times what a group has that nobody asked more for.
const LAB_WEIGHT_OF_VERSION_2: &str = "10000";
/// The same in version 1, which counts 1024 where version 2 counts 100.
const LAB_WEIGHT_OF_VERSION_1: &str = "102400";

/// What the names of our folders begin with.
const NAME_PREFIX: &str = "holdfast-";

/// What can go wrong with a group.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// No hierarchy in which this user may limit CPU.
    #[error("no control group that this user may limit CPU in: {tried}")]
    Unavailable {
        /// Each place tried and why not.
        tried: String,
    },
    /// No hierarchy in which this user may limit memory.
    #[error("no control group that this user may limit memory in: {tried}")]
    NoMemory {
        /// Each place tried and why not.
        tried: String,
    },
    /// A file was refused.
    #[error("control group {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

pub(crate) fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, CgroupError> {
    result.map_err(|source| CgroupError::File { path: path.to_owned(), source })
}

/// The control groups of one lab's nodes. Dropping it removes them.
#[derive(Debug)]
pub struct CpuGroups {
    folder: PathBuf,
    version: Version,
    /// Says that the lab lives: locked, see flock(2).
    _lock: fs::File,
    /// The group of the lab itself; none before the lab is in it.
    lab: Option<LabGroup>,
}

/// The group that the lab itself is in. Dropping it removes it once the lab has left or ended.
#[derive(Debug)]
struct LabGroup {
    folder: PathBuf,
    _lock: fs::File,
}

impl Drop for LabGroup {
    fn drop(&mut self) {
        // As long as the supervisor is in it, it stays, and is the janitor's.
        let _ = remove(&self.folder);
    }
}

impl CpuGroups {
    /// Makes the lab's folder in the first hierarchy that allows it.
    ///
    /// # Errors
    /// When none does; the error says what was tried.
    pub fn make(run_name: &str) -> Result<CpuGroups, CgroupError> {
        let mut tried = Vec::new();
        for (version, parent) in candidates(Controller::Cpu) {
            match CpuGroups::make_in(version, &parent, run_name) {
                Ok(limits) => return Ok(limits),
                Err(error) => tried.push(error.to_string()),
            }
        }
        let tried = if tried.is_empty() { "no hierarchy is mounted".to_owned() } else { tried.join("; ") };
        Err(CgroupError::Unavailable { tried })
    }

    fn make_in(version: Version, parent: &Path, run_name: &str) -> Result<CpuGroups, CgroupError> {
        if version == Version::Two {
            let control = parent.join("cgroup.subtree_control");
            let enabled = at(&control, fs::read_to_string(&control))?;
            if !enabled.split_ascii_whitespace().any(|name| name == "cpu") {
                at(&control, fs::write(&control, "+cpu"))?;
            }
        }
        let folder = parent.join(folder_name(run_name));
        let lock = make_locked(&folder)?;
        let limits = CpuGroups { folder, version, _lock: lock, lab: None };
        if version == Version::Two {
            let control = limits.folder.join("cgroup.subtree_control");
            at(&control, fs::write(&control, "+cpu"))?;
        }
        Ok(limits)
    }

    /// Moves the calling process, with all its threads, into a group that outweighs every other a hundred times. Groups of
    /// version 1 that it makes afterwards would be inside that group.
    ///
    /// # Errors
    /// When a file of the control group is refused.
    pub fn put_the_lab_first(&mut self, run_name: &str) -> Result<(), CgroupError> {
        let folder = self.folder.with_file_name(folder_name(&name_for_lab(run_name)));
        let lab = LabGroup { _lock: make_locked(&folder)?, folder };
        let weight = match self.version {
            Version::One => ("cpu.shares", LAB_WEIGHT_OF_VERSION_1),
            Version::Two => ("cpu.weight", LAB_WEIGHT_OF_VERSION_2),
        };
        for (file, content) in [weight, ("cgroup.procs", "0")] {
            let path = lab.folder.join(file);
            at(&path, fs::write(&path, content))?;
        }
        self.lab = Some(lab);
        Ok(())
    }

    /// Whether the lab goes before all other programs of this machine.
    #[must_use]
    pub fn is_the_lab_first(&self) -> bool {
        self.lab.is_some()
    }

    /// Puts a process, and all it starts from now on, into the node's group, and holds the group to so many CPUs where they
    /// are limited.
    ///
    /// # Errors
    /// When a file of the control group is refused.
    pub fn hold(&self, node: &str, pid: u32, cpus: Option<f64>) -> Result<(), CgroupError> {
        let folder = self.make_group(node)?;
        if cpus.is_some() {
            self.hold_to(node, cpus)?;
        }
        let processes = folder.join("cgroup.procs");
        at(&processes, fs::write(&processes, pid.to_string()))
    }

    /// The node's group, without a limit: the file that a process writes `0` to when it wants to be in it.
    ///
    /// A process that moves itself holds nobody up. One that is moved by another has all of the machine's processes wait
    /// with starting and ending others until the kernel knows that none is doing so (`cgroup_threadgroup_rwsem`), which takes
    /// long on a busy machine.
    ///
    /// # Errors
    /// When the group cannot be made.
    pub fn entrance(&self, node: &str) -> Result<PathBuf, CgroupError> {
        let folder = self.make_group(node)?;
        // Version 2 has no such file for one thread of another group; its file for whole processes does as well.
        Ok(folder.join(if self.version == Version::One { "tasks" } else { "cgroup.procs" }))
    }

    fn make_group(&self, node: &str) -> Result<PathBuf, CgroupError> {
        make_group_in(&self.folder, node)
    }

    /// The lab's folder, where it is in a hierarchy of version 2.
    pub(crate) fn folder_of_version_2(&self) -> Option<&Path> {
        (self.version == Version::Two).then_some(self.folder.as_path())
    }

    /// Changes what a node's group is held to; nothing where absent.
    ///
    /// # Errors
    /// When a file of the control group is refused.
    pub fn hold_to(&self, node: &str, cpus: Option<f64>) -> Result<(), CgroupError> {
        let quota_us = cpus.map(|cpus| ((cpus * PERIOD_US as f64).round().max(1_000.0) as u64).to_string());
        let settings = match self.version {
            Version::One => vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", quota_us.unwrap_or_else(|| "-1".to_owned())),
            ],
            Version::Two => {
                vec![("cpu.max", format!("{} {PERIOD_US}", quota_us.as_deref().unwrap_or("max")))]
            }
        };
        for (file, value) in settings {
            let path = self.folder.join(node).join(file);
            at(&path, fs::write(&path, value))?;
        }
        Ok(())
    }

    /// How often, and for how long in all, the kernel has held a node's group up because of a limit. None where it does not
    /// say.
    #[must_use]
    pub fn held_up(&self, node: &str) -> Option<HeldUp> {
        HeldUp::parse(&fs::read_to_string(self.folder.join(node).join("cpu.stat")).ok()?)
    }

    /// How many processors a node's group is held to, by the kernel's own word. None where there is no limit, or nothing is said.
    #[must_use]
    pub fn held_to(&self, node: &str) -> Option<f64> {
        let text = |file: &str| fs::read_to_string(self.folder.join(node).join(file)).ok();
        match self.version {
            Version::One => processors_in(&text("cpu.cfs_quota_us")?, &text("cpu.cfs_period_us")?),
            Version::Two => {
                let limit = text("cpu.max")?;
                let (quota, period) = limit.trim().split_once(' ')?;
                processors_in(quota, period)
            }
        }
    }

    /// Where the groups are, for the report.
    #[must_use]
    pub fn describe(&self) -> String {
        let version = if self.version == Version::One { 1 } else { 2 };
        format!("control groups version {version}")
    }
}

/// What a quota in each period comes to; none where it is `-1` or `max`, each version's word for no limit.
fn processors_in(quota_us: &str, period_us: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    Some(f64::from(number(quota_us)?) / f64::from(number(period_us)?.max(1)))
}

/// The folder of a node's group below that of its lab.
pub(crate) fn make_group_in(lab: &Path, node: &str) -> Result<PathBuf, CgroupError> {
    let folder = lab.join(node);
    match fs::create_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => at(&folder, Err(error)),
        _ => Ok(folder),
    }
}

/// What a limit has cost a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldUp {
    /// Periods in which it had used up what it may.
    pub periods: u64,
    /// How long its threads waited for the next one, added up over processors.
    pub time: Duration,
}

impl HeldUp {
    /// Version 1 counts in nanoseconds, version 2 in microseconds.
    fn parse(text: &str) -> Option<HeldUp> {
        let value = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
        };
        let nanos = value("throttled_time").map(Duration::from_nanos);
        let time = nanos.or_else(|| value("throttled_usec").map(Duration::from_micros))?;
        Some(HeldUp { periods: value("nr_throttled")?, time })
    }
}

impl Drop for CpuGroups {
    fn drop(&mut self) {
        // What is left, because a process is still ending, is the janitor's.
        let _ = remove(&self.folder);
    }
}

/// Removes the control groups of a run, wherever they are; waits up to `patience` for their processes to end.
///
/// # Errors
/// When a folder is still there at the end.
pub fn remove_all(run_name: &str, patience: Duration) -> Result<(), CgroupError> {
    let deadline = Instant::now() + patience;
    let names = [run_name, &name_for_nodes(run_name), &name_for_lab(run_name)].map(folder_name);
    for folder in all_candidates().iter().flat_map(|parent| names.iter().map(move |name| parent.join(name))) {
        while folder.exists() {
            match remove(&folder) {
                Ok(()) => break,
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
    Ok(())
}

/// What a run is called where the groups of nodes that are whole machines are meant: they are in the same hierarchies as others of
/// the run, with a lock of their own.
pub(crate) fn name_for_nodes(run_name: &str) -> String {
    format!("nodes-{run_name}")
}

/// What a run is called where the group of its lab is meant.
fn name_for_lab(run_name: &str) -> String {
    format!("lab-{run_name}")
}

/// Removes the control groups of labs that are gone and whose janitors were killed. Waits until `deadline` for those that
/// are ending: their processes are still in the groups.
pub(crate) fn remove_abandoned(deadline: Instant) {
    for parent in all_candidates() {
        let entries = fs::read_dir(&parent).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME_PREFIX)) {
            while !is_settled(&entry.path()) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Removes a lab's folder if the lab is gone. False when it may become removable in a moment. What is somebody else's, and
/// what belongs to a lab that lives, stays.
fn is_settled(folder: &Path) -> bool {
    let Ok(lock) = fs::File::open(folder) else { return true };
    if lock.try_lock().is_err() {
        return starter_lives(folder);
    }
    match remove(folder) {
        Err(CgroupError::File { source, .. }) => source.kind() != io::ErrorKind::ResourceBusy,
        _ => true,
    }
}

/// A run's name ends with the number of the process that started it. A lab ends with that process.
fn starter_lives(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let number = name.rsplit('-').next().and_then(|number| number.parse::<u32>().ok());
    number.is_none_or(crate::entrance::is_running)
}

/// Makes a folder and locks it. Between the two it looks abandoned to another run that is just starting; then it is made
/// again.
pub(crate) fn make_locked(folder: &Path) -> Result<fs::File, CgroupError> {
    loop {
        at(folder, fs::create_dir(folder))?;
        let Ok(lock) = fs::File::open(folder) else { continue };
        at(folder, lock.lock())?;
        if folder.exists() {
            return Ok(lock);
        }
    }
}

/// Whether this user may limit CPU here, and how, for `holdfast doctor`.
///
/// # Errors
/// When not; the error says what was tried.
pub fn available() -> Result<String, CgroupError> {
    CpuGroups::make(&format!("doctor-{}", std::process::id())).map(|limits| limits.describe())
}

pub(crate) fn folder_name(run_name: &str) -> String {
    format!("{NAME_PREFIX}{run_name}")
}

/// Removes a group with all groups below it.
pub(crate) fn remove(folder: &Path) -> Result<(), CgroupError> {
    for entry in at(folder, fs::read_dir(folder))?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    at(folder, fs::remove_dir(folder))
}

/// The same of every controller, each folder once.
fn all_candidates() -> Vec<PathBuf> {
    let both = [Controller::Cpu, Controller::Memory].map(candidates);
    let mut folders: Vec<PathBuf> = both.into_iter().flatten().map(|(_, parent)| parent).collect();
    folders.extend(hierarchies().into_iter().map(|hierarchy| hierarchy.parent));
    folders.sort();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_limit_cost_is_read_in_the_units_of_each_version() {
        let expected = HeldUp { periods: 7, time: Duration::from_micros(42) };
        assert_eq!(HeldUp::parse("nr_periods 9\nnr_throttled 7\nthrottled_time 42000\n"), Some(expected));
        let second = "usage_usec 5\nnr_periods 9\nnr_throttled 7\nthrottled_usec 42\n";
        assert_eq!(HeldUp::parse(second), Some(expected));
        assert_eq!(HeldUp::parse("usage_usec 5\n"), None);
    }

    #[test]
    fn a_limit_is_read_in_the_words_of_each_version() {
        assert_eq!(processors_in("50000\n", "100000\n"), Some(0.5));
        assert_eq!(processors_in("-1\n", "100000\n"), None);
        assert_eq!(processors_in("max", "100000"), None);
    }

    #[test]
    fn groups_are_removed_when_their_lab_is_gone_and_not_before() {
        let name = format!("test-abandoned-{}", std::process::id());
        let Ok(living) = CpuGroups::make(&format!("{name}-living")) else {
            eprintln!(
                "skipped: groups_are_removed_when_their_lab_is_gone: no control group may be made here"
            );
            return;
        };
        let abandoned = living.folder.with_file_name(folder_name(&name));
        fs::create_dir(&abandoned).expect("a group");
        fs::create_dir(abandoned.join("n1")).expect("a group");
        remove_abandoned(Instant::now());
        assert!(!abandoned.exists());
        assert!(living.folder.exists());
        let folder = living.folder.clone();
        drop(living);
        assert!(!folder.exists());
    }

    #[test]
    fn a_group_of_a_lab_that_is_ending_is_removed_when_its_last_process_has_ended() {
        let name = format!("test-ending-{}", std::process::id());
        let Ok(living) = CpuGroups::make(&format!("{name}-living")) else {
            eprintln!("skipped: a_group_of_a_lab_that_is_ending: no control group may be made here");
            return;
        };
        let mut starter = std::process::Command::new("true").spawn().expect("a process");
        let ending = living.folder.with_file_name(folder_name(&format!("{name}-{}", starter.id())));
        starter.wait().expect("it ends");
        let lock = make_locked(&ending).expect("a group");
        fs::create_dir(ending.join("n1")).expect("a group");
        let mut node = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        fs::write(ending.join("n1/cgroup.procs"), node.id().to_string()).expect("held");
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| remove_abandoned(Instant::now() + Duration::from_secs(60)));
            let is_waiting = || {
                std::thread::sleep(Duration::from_millis(60));
                ending.exists() && !removal.is_finished()
            };
            assert!(is_waiting(), "its lock is held");
            drop(lock);
            assert!(is_waiting(), "it has a process");
            let _ = (node.kill(), node.wait());
            removal.join().expect("it ends");
        });
        assert!(!ending.exists() && living.folder.exists());
    }

    #[test]
    fn a_process_is_in_its_nodes_group_with_a_limit_or_without_one() {
        let Ok(groups) = CpuGroups::make(&format!("test-held-{}", std::process::id())) else {
            eprintln!("skipped: a_process_is_in_its_nodes_group: no control group may be made here");
            return;
        };
        for (node, cpus) in [("n1", None), ("n2", Some(0.5))] {
            let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
            groups.hold(node, child.id(), cpus).expect("held");
            let held = fs::read_to_string(groups.folder.join(node).join("cgroup.procs")).expect("read");
            let _ = (child.kill(), child.wait());
            assert_eq!(held.trim(), child.id().to_string());
            assert_eq!(groups.held_to(node), cpus);
        }
    }

    /// A process of its own moves: this one, with the other tests, stays where it is.
    #[test]
    fn a_lab_that_is_put_first_outweighs_others_a_hundred_times_and_leaves_nothing_behind() {
        const INSIDE: &str = "HOLDFAST_TEST_IS_PUT_FIRST";
        let name = "cgroup::tests::a_lab_that_is_put_first_outweighs_others_a_hundred_times_and_leaves_nothing_behind";
        if let Ok(run_name) = std::env::var(INSIDE) {
            let mut groups = CpuGroups::make(&run_name).expect("groups");
            groups.put_the_lab_first(&run_name).expect("a group");
            let group = groups.lab.as_ref().expect("a group").folder.clone();
            let read = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
            assert!(read("cgroup.procs").lines().any(|line| line == std::process::id().to_string()));
            let weights = [read("cpu.shares"), read("cpu.weight")];
            let wanted = [LAB_WEIGHT_OF_VERSION_1, LAB_WEIGHT_OF_VERSION_2];
            assert!(
                weights.iter().zip(wanted).any(|(weight, wanted)| weight.trim() == wanted),
                "{weights:?}"
            );
            let entrance = groups.entrance("n1").expect("a group");
            assert!(
                !entrance.starts_with(&group),
                "a node is in the lab's own group: {}",
                entrance.display()
            );
            return;
        }
        let run_name = format!("test-first-{}", std::process::id());
        let Ok(groups) = CpuGroups::make(&run_name) else {
            eprintln!("skipped: a_lab_that_is_put_first: no control group may be made here");
            return;
        };
        let group = groups.folder.with_file_name(folder_name(&name_for_lab(&run_name)));
        drop(groups);
        let mut inside = std::process::Command::new("/proc/self/exe");
        let ended = inside.args(["--exact", name]).env(INSIDE, &run_name).output().expect("a process");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        // Its last process was in it when it ended; a test beside this one may sweep it up first.
        remove_all(&run_name, Duration::from_secs(60)).expect("removed");
        assert!(!group.exists());
    }

    #[test]
    fn a_process_that_moves_itself_is_in_the_group_with_all_it_starts_and_its_parent_is_not() {
        let Ok(groups) = CpuGroups::make(&format!("test-entrance-{}", std::process::id())) else {
            eprintln!("skipped: a_process_that_moves_itself: no control group may be made here");
            return;
        };
        let entrance = groups.entrance("n1").expect("a group");
        let script = format!("echo 0 > {}; sleep 60 & echo $!; wait", entrance.display());
        let mut shell = std::process::Command::new("sh")
            .args(["-c", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a process");
        let mut grandchild = String::new();
        let told = shell.stdout.take().expect("its output");
        io::BufRead::read_line(&mut io::BufReader::new(told), &mut grandchild).expect("read");
        let held = fs::read_to_string(groups.folder.join("n1").join("cgroup.procs")).expect("read");
        let grandchild: i32 = grandchild.trim().parse().expect("a number");
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(grandchild), nix::sys::signal::SIGKILL);
        let _ = (shell.kill(), shell.wait());
        let held: Vec<&str> = held.lines().collect();
        assert!(held.contains(&shell.id().to_string().as_str()), "{held:?}");
        assert!(held.contains(&grandchild.to_string().as_str()), "{held:?}");
        assert!(!held.contains(&std::process::id().to_string().as_str()), "{held:?}");
    }
}
