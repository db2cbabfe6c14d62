//! What of the machine a VM has: processors, and memory where a fault may take it.
//!
//! Owns which control groups that is. Limits are set by `processes`.

use std::path::PathBuf;
use std::sync::Arc;

use lab::cgroup::CpuGroups;
use lab::memory_groups::MemoryGroups;

/// What of the machine's processors a VM has.
#[derive(Debug, Clone)]
pub struct CpuShare {
    /// The lab's control groups.
    pub groups: Arc<CpuGroups>,
    /// CPUs the node may use, where they are limited.
    pub cpus: Option<f64>,
}

impl CpuShare {
    /// How the node's processes get into a group of their own that has no limit; one with a limit holds the init, and so all
    /// that it starts. None where that cannot be: nothing but the lab's own ease depends on it.
    pub(crate) fn entrance(&self, node: &str) -> Option<PathBuf> {
        if self.cpus.is_some() { None } else { self.groups.entrance(node).ok() }
    }
}

/// What of the machine a VM has.
#[derive(Debug, Clone, Default)]
pub struct Shares {
    /// Of its processors; none where there are no control groups.
    pub cpu: Option<CpuShare>,
    /// The control groups of its memory, where a fault may take it.
    pub memory: Option<Arc<MemoryGroups>>,
}
