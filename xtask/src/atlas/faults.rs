//! The faults of the atlas, the same for every engine. A fault more is one entry more.

use super::engines::EngineSetting;

/// A fault in the atlas.
#[derive(Debug)]
pub(super) struct FaultSetting {
    /// Its name in files and cells.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// As a scenario has it. `LEADER` and `FOLLOWER` are where the leader and a follower are, `NODE` is the leader's node, `DISK`
    /// its disk; on an engine without a leader the first node stands for the leader, the second for the follower.
    written: &'static str,
}

impl FaultSetting {
    /// As the scenario of that engine has it.
    pub(super) fn on(&self, engine: &EngineSetting) -> String {
        let (leader, follower, node, disk) = if engine.has_leader {
            ("leader", "a-follower", "leader", "of: leader")
        } else {
            ("dc1/a/r1/h1", "dc1/b/r2/h1", "n1", "disk: dc1/a/r1/h1/d1")
        };
        let of_node =
            self.written.replace("LEADER", leader).replace("FOLLOWER", follower).replace("NODE", node);
        of_node.replace("DISK", disk)
    }
}

pub(super) static FAULTS: [FaultSetting; 13] = [
    FaultSetting {
        name: "leader-off",
        title: "The leader's host loses power for 10 s",
        written: "{ power-off: { host: LEADER }, for: 10s }",
    },
    FaultSetting {
        name: "follower-off",
        title: "A follower's host loses power for 10 s",
        written: "{ power-off: { host: FOLLOWER }, for: 10s }",
    },
    FaultSetting {
        name: "all-off",
        title: "All hosts lose power for 4 s",
        written: "{ power-off: { region: dc1 }, for: 4s }",
    },
    FaultSetting {
        name: "leader-isolated",
        title: "The leader is cut off from all else for 10 s",
        written: "{ partition: { isolate: LEADER }, for: 10s }",
    },
    FaultSetting {
        name: "one-way-partition",
        title: "Nothing that the first node sends reaches the other two for 10 s",
        written: "{ partition: { from: dc1/a, to: dc1/b }, for: 10s }",
    },
    FaultSetting {
        name: "delay",
        title: "What the first node sends to the other two takes 50 ms more for 10 s",
        written: "{ network: { from: dc1/a, to: dc1/b, delay: 50ms }, for: 10s }",
    },
    FaultSetting {
        name: "disk-fails",
        title: "The leader's disk fails for 10 s",
        written: "{ disk: { DISK, how: fail }, for: 10s }",
    },
    FaultSetting {
        name: "disk-stalls",
        title: "The leader's disk does not answer for 5 s",
        written: "{ disk: { DISK, how: stall }, for: 5s }",
    },
    FaultSetting {
        name: "process-killed",
        title: "The leader's processes are killed, and started again after 1 s",
        written: "{ process: { of: NODE, how: kill } }",
    },
    FaultSetting {
        name: "process-stopped",
        title: "The leader's processes stand still for 10 s",
        written: "{ process: { of: NODE, how: stop }, for: 10s }",
    },
    FaultSetting {
        name: "clock-ahead",
        title: "The leader's wall clock is 5 s ahead for 10 s",
        written: "{ clock-jump: { node: NODE, by: 5s }, for: 10s }",
    },
    FaultSetting {
        name: "clock-behind",
        title: "The leader's wall clock is 5 s behind for 10 s",
        written: "{ clock-jump: { node: NODE, by: -5s }, for: 10s }",
    },
    FaultSetting {
        name: "migration",
        title: "The leader moves live to another host",
        written: "{ migrate: { of: NODE, memory: 128MiB } }",
    },
];
