//! What a run left on the machine, by what the kernel lists: all of a run's files and processes carry its mark.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lab may take to vanish: the janitor removes a thousand files for each node, on whatever disk.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is left when it had its time; empty as soon as nothing is.
pub(super) fn left(mark: &str, folder: &Path, program: u32) -> Vec<String> {
    let ended = Instant::now();
    loop {
        let left = left_now(mark, folder, program);
        if left.is_empty() || ended.elapsed() > PATIENCE {
            return left;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn left_now(mark: &str, folder: &Path, program: u32) -> Vec<String> {
    let mut left: Vec<String> =
        processes(mark).into_iter().map(|(pid, what)| format!("process {pid}: {what}")).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    left.extend(mounts_of(&mounts, mark).map(|line| format!("mount {line}")));
    let suffix = format!("-{program}");
    groups(
        Path::new("/sys/fs/cgroup"),
        &|name| name.starts_with("holdfast-") && name.ends_with(&suffix),
        &mut left,
    );
    left.extend(names_in(&folder.join("temporary")).into_iter().map(|name| format!("temporary file {name}")));
    for scenario in names_in(&folder.join("runs")) {
        if scenario.starts_with('.') {
            left.push(format!("runs/{scenario}"));
        }
        for run in names_in(&folder.join("runs").join(&scenario)) {
            let volumes = folder.join("runs").join(&scenario).join(run).join("volumes");
            if volumes.exists() {
                left.push(volumes.display().to_string());
            }
        }
    }
    left
}

/// The supervisors of the runs with this mark: the one outside, and the first process inside.
pub(super) fn supervisors(mark: &str) -> Vec<i32> {
    let all = processes(mark).into_iter();
    all.filter(|(_, what)| what.contains("lab-supervisor")).map(|(pid, _)| pid).collect()
}

/// Processes that run a program of this mark, name it, or have a piece of it in their view of the file system.
fn processes(mark: &str) -> Vec<(i32, String)> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let numbers = names_in(Path::new("/proc")).into_iter().filter_map(|name| name.parse().ok());
    let of_mark = |pid: i32| {
        let process = Path::new("/proc").join(pid.to_string());
        let text = |name: &str| {
            fs::read(process.join(name))
                .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
                .unwrap_or_default()
        };
        let link = |name: &str| {
            fs::read_link(process.join(name)).map(|path| path.display().to_string()).unwrap_or_default()
        };
        let command = text("cmdline");
        let is_ours = [&command, &link("exe"), &link("cwd")].iter().any(|trace| trace.contains(mark))
            || mounts_of(&text("mountinfo"), mark).next().is_some();
        is_ours.then(|| (pid, command.trim_end().to_owned()))
    };
    numbers.filter(|pid| *pid != own).filter_map(of_mark).collect()
}

/// The lines of mounts that come from a run with this mark, or lie in one. What the campaign itself mounted for the runs is none.
fn mounts_of<'a>(mounts: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    let own = format!("/{mark}/runs");
    let is_a_runs = move |line: &&str| {
        line.contains(mark) && line.split(' ').nth(4).is_none_or(|point| !point.ends_with(&own))
    };
    mounts.lines().filter(is_a_runs)
}

fn groups(folder: &Path, wanted: &dyn Fn(&str) -> bool, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if wanted(&entry.file_name().to_string_lossy()) {
                found.push(format!("control group {}", entry.path().display()));
            }
            groups(&entry.path(), wanted, found);
        }
    }
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
