//! What a node has whose processes are root of the lab: one that starts containers, as a Kubernetes node does.
//!
//! Owns its own memory for `/run`, its view of `/sys` and of its control groups, and its way with the kernel's settings: those
//! of the network are its own, those of the whole machine are private files that it may write to, and the rest stays read-only.
//! To the kernel this root is the user who made the lab, so what it could change of the machine is closed here, not by who it is.
//!
//! Sources: cgroup_namespaces(7), sysfs(5), Linux `Documentation/admin-guide/cgroup-v1/cgroups.rst` and `cgroup-v2.rst`.

use std::fs;
use std::path::Path;

use nix::mount::{MsFlags, mount};

use super::{FurnishingError, NONE, bind, make_folder, mount_memory, new, take};
use crate::mounts::{Below, attribute, set_attributes};
use crate::protocol::{GroupHierarchy, GroupVersion, WholeMachine};

/// Where programs look for control groups.
const GROUPS: &str = "/sys/fs/cgroup";
/// Settings of the network, of which each network namespace has its own.
const NETWORK_SETTINGS: &str = "/proc/sys/net";
/// Where the private files lie that cover settings of the machine.
const OWN_SETTINGS: &str = "/run/node/settings";
/// In version 2 a group has processes or groups below it, never both: the node's first processes are in this one.
const FIRST_PROCESSES: &str = "init";

/// The parts that come before anything is shown in `/run`.
pub(super) fn furnish(machine: &WholeMachine) -> Result<(), FurnishingError> {
    mount_memory("/run", "mode=755")?;
    mount_memory("/var/log", "mode=755")?;
    show_settings(machine)?;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    make_folder("/sys")?;
    let read_only = quiet | MsFlags::MS_RDONLY;
    take("mount /sys", mount(Some("sysfs"), &new("/sys"), Some("sysfs"), read_only, NONE))?;
    show_groups(&machine.hierarchies, quiet)
}

/// Mounts that a container's start makes are seen by the node and by other containers, as on any machine. To be called when the
/// new root is the root.
pub(super) fn share_mounts() -> Result<(), FurnishingError> {
    take("share mounts", mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SHARED, NONE))
}

fn show_settings(machine: &WholeMachine) -> Result<(), FurnishingError> {
    bind(&new(NETWORK_SETTINGS), NETWORK_SETTINGS)?;
    let writable = set_attributes(&new(NETWORK_SETTINGS), 0, attribute::READ_ONLY, Below::Alike);
    take("attributes of the mount of /proc/sys/net", writable)?;
    make_folder(OWN_SETTINGS)?;
    for (name, value) in &machine.own_settings {
        let setting = Path::new("/proc/sys").join(name);
        // What this kernel does not have, nobody there can ask for.
        if !new(&setting).exists() {
            continue;
        }
        let file = Path::new(OWN_SETTINGS).join(name.replace('/', "."));
        take(file.display().to_string(), fs::write(new(&file), format!("{value}\n")))?;
        bind(&new(&file), &setting)?;
    }
    Ok(())
}

fn show_groups(hierarchies: &[GroupHierarchy], quiet: MsFlags) -> Result<(), FurnishingError> {
    if hierarchies.iter().all(|hierarchy| hierarchy.version == GroupVersion::One) {
        let mounted = mount(Some("tmpfs"), &new(GROUPS), Some("tmpfs"), quiet, Some("mode=755"));
        take(format!("mount {GROUPS}"), mounted)?;
    }
    for hierarchy in hierarchies {
        match hierarchy.version {
            GroupVersion::One => show_hierarchy(hierarchy, quiet)?,
            GroupVersion::Two => {
                let mounted = mount(Some("cgroup2"), &new(GROUPS), Some("cgroup2"), quiet, NONE);
                take(format!("mount {GROUPS}"), mounted)?;
                make_room_for_groups()?;
            }
        }
    }
    Ok(())
}

/// One of version 1, under the name that the machine has it by, and under that of each of its controllers.
fn show_hierarchy(hierarchy: &GroupHierarchy, quiet: MsFlags) -> Result<(), FurnishingError> {
    let folder = Path::new(GROUPS).join(&hierarchy.name);
    take(folder.display().to_string(), fs::create_dir_all(new(&folder)))?;
    let options = Some(hierarchy.options.as_str());
    let mounted = mount(Some("cgroup"), &new(&folder), Some("cgroup"), quiet, options);
    take(format!("mount {}", folder.display()), mounted)?;
    for controller in hierarchy.name.split(',').filter(|controller| *controller != hierarchy.name) {
        let link = Path::new(GROUPS).join(controller);
        take(link.display().to_string(), std::os::unix::fs::symlink(&hierarchy.name, new(&link)))?;
    }
    Ok(())
}

/// Moves the node's first process out of the node's own group, and lets groups below that have all controllers there are.
fn make_room_for_groups() -> Result<(), FurnishingError> {
    let group = Path::new(GROUPS);
    let first = new(group.join(FIRST_PROCESSES));
    take("make the group of the first processes", fs::create_dir_all(&first))?;
    take("enter the group of the first processes", fs::write(first.join("cgroup.procs"), "0"))?;
    let controllers = fs::read_to_string(new(group.join("cgroup.controllers")));
    for controller in take("controllers of the node's group", controllers)?.split_ascii_whitespace() {
        let control = new(group.join("cgroup.subtree_control"));
        take(format!("controller {controller}"), fs::write(control, format!("+{controller}")))?;
    }
    Ok(())
}
