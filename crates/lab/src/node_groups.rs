//! Control groups of nodes that are whole machines: one of the node's own in every hierarchy, below which its programs make groups
//! as they like.
//!
//! Owns the lab's folder in each hierarchy and the nodes' groups in it. What was made in them outlives the processes, so a node's
//! groups are removed with all below them before each boot, all of them on drop, and by the janitor or the next run after that.
//!
//! Sources: cgroups(7), Linux `Documentation/admin-guide/cgroup-v1/cpusets.rst`, `cgroup-v2.rst`.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::cgroup::{self, CgroupError, at, folder_name, make_locked};
use crate::hierarchies::{Hierarchy, Version, hierarchies};
use crate::protocol::{GroupHierarchy, GroupVersion};

/// How long the processes of an earlier boot may take to leave their groups.
const PATIENCE: Duration = Duration::from_secs(10);

/// The groups of one lab's nodes. Dropping it removes them.
#[derive(Debug)]
pub struct NodeGroups {
    held: Vec<HierarchyFolder>,
}

/// The lab's folder in one hierarchy.
#[derive(Debug)]
struct HierarchyFolder {
    hierarchy: Hierarchy,
    folder: PathBuf,
    /// Says that the lab lives: locked, see flock(2).
    _lock: fs::File,
}

impl NodeGroups {
    /// Makes the lab's folder in every hierarchy there is: those of version 1 where some of them have controllers, else that of
    /// version 2.
    ///
    /// # Errors
    /// When one of them does not allow it.
    pub fn make(run_name: &str) -> Result<NodeGroups, CgroupError> {
        let found = hierarchies();
        if found.is_empty() {
            return Err(CgroupError::Unavailable { tried: "no hierarchy is mounted".to_owned() });
        }
        let name = folder_name(&cgroup::name_for_nodes(run_name));
        let hold = |hierarchy: Hierarchy| -> Result<HierarchyFolder, CgroupError> {
            let folder = hierarchy.parent.join(&name);
            let lock = make_locked(&folder)?;
            prepare(&hierarchy, &folder)?;
            Ok(HierarchyFolder { hierarchy, folder, _lock: lock })
        };
        let mut groups = NodeGroups { held: Vec::new() };
        for hierarchy in found {
            // What was made so far goes with the value.
            groups.held.push(hold(hierarchy)?);
        }
        Ok(groups)
    }

    /// Makes a node's groups for its next boot, without what an earlier boot has left in them.
    ///
    /// # Errors
    /// When a file is refused, or what was left does not go.
    pub fn make_for(&self, node: &str) -> Result<Vec<GroupHierarchy>, CgroupError> {
        let make = |held: &HierarchyFolder| -> Result<GroupHierarchy, CgroupError> {
            let group = held.folder.join(node);
            remove_in_time(&group, PATIENCE)?;
            at(&group, fs::create_dir(&group))?;
            prepare(&held.hierarchy, &group)?;
            let version = match held.hierarchy.version {
                Version::One => GroupVersion::One,
                Version::Two => GroupVersion::Two,
            };
            let (name, options) = (held.hierarchy.name.clone(), held.hierarchy.options.clone());
            Ok(GroupHierarchy { version, name, options, group })
        };
        self.held.iter().map(make).collect()
    }
}

impl Drop for NodeGroups {
    fn drop(&mut self) {
        for held in &self.held {
            // What is left, because a process is still ending, is the janitor's.
            let _ = cgroup::remove(&held.folder);
        }
    }
}

/// What a new group must have before a process, or a group below it, can be in it.
fn prepare(hierarchy: &Hierarchy, group: &Path) -> Result<(), CgroupError> {
    let parent = group.parent().unwrap_or(Path::new("/"));
    match hierarchy.version {
        Version::One if hierarchy.has("cpuset") => {
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let above = parent.join(file);
                let value = at(&above, fs::read_to_string(&above))?;
                at(&group.join(file), fs::write(group.join(file), value.trim()))?;
            }
            let inherit = group.join("cgroup.clone_children");
            at(&inherit, fs::write(&inherit, "1"))
        }
        Version::One => Ok(()),
        // The lab's folder gets controllers to give on; a node's group gives them on itself, from inside.
        Version::Two => give_controllers_on(parent),
    }
}

fn give_controllers_on(group: &Path) -> Result<(), CgroupError> {
    let (there, control) = (group.join("cgroup.controllers"), group.join("cgroup.subtree_control"));
    for controller in at(&there, fs::read_to_string(&there))?.split_ascii_whitespace() {
        at(&control, fs::write(&control, format!("+{controller}")))?;
    }
    Ok(())
}

fn remove_in_time(group: &Path, patience: Duration) -> Result<(), CgroupError> {
    let deadline = Instant::now() + patience;
    while group.exists() {
        match cgroup::remove(group) {
            Ok(()) => break,
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_boot_left_in_its_groups_is_gone_at_the_next() {
        let name = format!("test-whole-{}", std::process::id());
        let groups = match NodeGroups::make(&name) {
            Ok(groups) => groups,
            Err(error) => {
                return eprintln!("skipped: what_a_boot_left_in_its_groups_is_gone_at_the_next: {error}");
            }
        };
        let first = groups.make_for("n1").expect("groups");
        assert!(!first.is_empty());
        for hierarchy in &first {
            fs::create_dir_all(hierarchy.group.join("kubepods/pod1/container")).expect("groups");
        }
        let second = groups.make_for("n1").expect("groups again");
        assert_eq!(first, second);
        assert!(second.iter().all(|hierarchy| !hierarchy.group.join("kubepods").exists()));
        drop(groups);
        assert!(first.iter().all(|hierarchy| !hierarchy.group.exists()));
    }
}
