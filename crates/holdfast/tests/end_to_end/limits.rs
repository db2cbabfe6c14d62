//! CPU limits: there while the run lasts, gone after it.

use std::path::{Path, PathBuf};

use crate::holdfast::{Desk, SMALL, arguments};
use crate::traces::Before;
use crate::turns::beside_others;

fn limits_of(pid: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("holdfast-") && name.ends_with(&format!("-{pid}")) {
                    found.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}

fn processes_in(group: &Path) -> usize {
    std::fs::read_to_string(group.join("cgroup.procs")).expect("cgroup.procs").lines().count()
}

#[test]
fn a_cpu_limit_holds_every_node_while_the_run_lasts_and_is_gone_after_it() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_cpu_limit_holds_every_node") else { return };
    let doctor = desk.run(&["doctor"]);
    if !doctor.stdout.lines().any(|line| line.starts_with("ok") && line.contains("CPU limits")) {
        eprintln!(
            "skipped: a_cpu_limit_holds_every_node: this user may make no control group that limits CPU"
        );
        return;
    }
    let before = Before::look(&desk);
    let limited = ["--set", "database.cpus=0.5", "--set", "schedule=[{ phase: baseline, for: 3s }]"];
    let running = desk.start(&arguments(&[&SMALL, &limited]));
    let pid = running.pid();
    assert!(running.says("phase baseline"));
    let is_the_labs = |group: &PathBuf| group.to_string_lossy().contains("/holdfast-lab-");
    let (lab, groups): (Vec<PathBuf>, Vec<PathBuf>) = limits_of(pid).into_iter().partition(is_the_labs);
    assert_eq!((lab.len(), groups.len()), (1, 1), "{lab:?} {groups:?}");
    assert!(processes_in(&lab[0]) > 0, "the lab is not in its own group");
    for node in ["n1", "n2"] {
        let group = groups[0].join(node);
        // The node's init and the database's processes.
        assert!(processes_in(&group) > 3, "{node} has {} processes in its group", processes_in(&group));
        let (quota, period) = quota_of(&group);
        assert_eq!(quota * 2, period);
    }
    let limit = running.wait().ends_with(0).result()["facts"]["machine"]["cpu_limit"].to_string();
    assert!(limit.contains("0.5 per node, by control groups"), "{limit}");
    before.nothing_is_left(&[pid]);
}

fn quota_of(group: &Path) -> (u64, u64) {
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    match std::fs::read_to_string(group.join("cpu.max")) {
        Ok(both) => {
            both.trim().split_once(' ').map(|(quota, period)| (number(quota), number(period))).expect("two")
        }
        Err(_) => {
            let read = |name: &str| number(&std::fs::read_to_string(group.join(name)).expect(name));
            (read("cpu.cfs_quota_us"), read("cpu.cfs_period_us"))
        }
    }
}
