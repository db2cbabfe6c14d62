//! What nodes get of the machine: groups for processors and memory, and the kind of their volumes.

use std::sync::Arc;

use history::EventSink;
use lab::cgroup::CpuGroups;
use lab::memory_groups::MemoryGroups;
use scenario::{Need, Scenario, Volumes};

use crate::chronicle::Chronicle;
use crate::directory::RunDirectory;
use crate::orders::Orders;

/// What holds nodes to their share of the processors, in words.
pub(super) fn limited_by(groups: Option<&CpuGroups>, scenario: &Scenario) -> String {
    let groups = groups.filter(|_| scenario.database.cpus.is_some());
    groups.map_or_else(|| "none".to_owned(), CpuGroups::describe)
}

/// Which programs go first where the machine is full, in words.
pub(super) fn precedence(groups: Option<&CpuGroups>) -> &'static str {
    match groups.is_some_and(CpuGroups::is_the_lab_first) {
        true => "the lab goes before its nodes and before other programs",
        false => "the lab has no precedence: nodes that fill the processors may hold it up",
    }
}

/// Where none may be made, only a limit that was asked for is missed. Where one may be, the lab has one as well.
pub(super) fn cpu_groups(
    scenario: &Scenario,
    orders: &Orders,
    chronicle: &Chronicle,
) -> Option<Arc<CpuGroups>> {
    match CpuGroups::make(&orders.run_name) {
        Ok(mut groups) => {
            if let Err(error) = groups.put_the_lab_first(&orders.run_name) {
                chronicle.warn(
                    format!("the lab does not go before other programs of this machine: {error}"),
                    "a full machine may hold the lab up, which leaves the verdict unknown; see `holdfast doctor`",
                );
            }
            Some(Arc::new(groups))
        }
        Err(_) if scenario.database.cpus.is_none() => None,
        Err(error) => {
            chronicle.warn(
                format!("the nodes' CPU limit does not hold: {error}"),
                "run as root or with a delegated cpu controller (see `holdfast doctor`), or leave `cpus` out",
            );
            None
        }
    }
}

/// Only where a fault takes memory: a group counts every page.
pub(super) fn memory_groups(
    scenario: &Scenario,
    orders: &Orders,
    cpu_groups: Option<&CpuGroups>,
    chronicle: &Chronicle,
) -> Option<Arc<MemoryGroups>> {
    if !platform::room::needs(scenario, Need::MemoryGroups) {
        return None;
    }
    let made = MemoryGroups::make(&orders.run_name, cpu_groups);
    let told = |error| {
        chronicle.warn(format!("no memory can be taken from nodes: {error}"), "see `holdfast doctor`");
    };
    made.map(Arc::new).map_err(told).ok()
}

/// What volumes will be: what the scenario asks for, where it is to be had; else plain directories, and why.
pub(super) fn volumes(
    scenario: &Scenario,
    directory: &RunDirectory,
    chronicle: &Chronicle,
) -> (Volumes, Option<String>) {
    let asked = scenario.database.volumes;
    if asked == Volumes::Directory {
        return (asked, None);
    }
    let Err(error) = disk::try_out(directory.path()) else { return (asked, None) };
    chronicle.warn(
        format!("volumes are plain directories, so a power-off does not lose unsynced data: {error}"),
        "allow this user to use /dev/fuse (see `holdfast doctor`), or write `volumes: directory`",
    );
    (Volumes::Directory, Some(error.to_string()))
}
