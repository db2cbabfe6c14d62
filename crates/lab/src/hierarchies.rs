//! Which hierarchies of control groups this machine has mounted, and where in each of them this process may make groups.
//!
//! Owns the reading of the kernel's two lists of them. What is made there, others decide. Source: cgroups(7).

use std::fs;
use std::path::{Path, PathBuf};

/// A version of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// A hierarchy as it is mounted, with the folder below which groups may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: Version,
    /// Its folder's name below that of all hierarchies; empty for version 2.
    pub(crate) name: String,
    /// The options of a mount that is of the same hierarchy.
    pub(crate) options: String,
    pub(crate) parent: PathBuf,
}

impl Hierarchy {
    /// Whether it has this controller, in version 1.
    pub(crate) fn has(&self, controller: &str) -> bool {
        self.options.split(',').any(|option| option == controller)
    }
}

/// Every hierarchy of version 1, where some of them have controllers; else that of version 2.
pub(crate) fn hierarchies() -> Vec<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    hierarchies_in(&mounts, &groups)
}

fn hierarchies_in(mounts: &str, groups: &str) -> Vec<Hierarchy> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, mount_point, kind, options, ..] = fields[..] else { continue };
        let mount_point = Path::new(mount_point);
        if kind == "cgroup2" {
            let own = group_of("", groups).unwrap_or("/");
            let own_folder = mount_point.join(own.trim_start_matches('/'));
            // Beside the group that we are in: version 2 wants no processes beside groups.
            let beside = own_folder.parent().filter(|parent| parent.starts_with(mount_point));
            let parent = beside.unwrap_or(mount_point).to_owned();
            let (name, options) = (String::new(), String::new());
            second.push(Hierarchy { version: Version::Two, name, options, parent });
        } else if kind == "cgroup" {
            let Some((options, own)) = of_version_1(options, groups) else { continue };
            let name = mount_point.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let parent = mount_point.join(own.trim_start_matches('/'));
            first.push(Hierarchy { version: Version::One, name, options, parent });
        }
    }
    second.truncate(1);
    if first.iter().any(|hierarchy| hierarchy.has("memory")) { first } else { second }
}

/// The options that say which hierarchy a mount is of, and this process's group in it.
fn of_version_1<'a>(options: &str, groups: &'a str) -> Option<(String, &'a str)> {
    if let Some(named) = options.split(',').find(|option| option.starts_with("name=")) {
        return Some((format!("none,{named}"), group_of(named, groups)?));
    }
    // The kernel lists the controllers of a hierarchy in one order in both files; what else is there are options.
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = !controllers.is_empty()
            && controllers.split(',').all(|name| options.split(',').any(|option| option == name));
        is_it.then(|| (controllers.to_owned(), path))
    })
}

/// The group in the hierarchy that is listed with these controllers.
fn group_of<'a>(listed: &str, groups: &'a str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        (controllers == listed).then_some(path)
    })
}

/// What a hierarchy of version 1 is of; in version 2 one has them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Cpu,
    Memory,
}

impl Controller {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Controller::Cpu => "cpu",
            Controller::Memory => "memory",
        }
    }
}

/// Folders under which a lab's folder may be made, the most promising first.
pub(crate) fn candidates(controller: Controller) -> Vec<(Version, PathBuf)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    candidates_in(&mounts, &groups, controller)
}

fn candidates_in(mounts: &str, groups: &str, controller: Controller) -> Vec<(Version, PathBuf)> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, mount_point, kind, options, ..] = fields[..] else { continue };
        let version = match kind {
            "cgroup" if options.split(',').any(|option| option == controller.name()) => Version::One,
            "cgroup2" => Version::Two,
            _ => continue,
        };
        let own = own_group(version, groups, controller).unwrap_or_else(|| "/".to_owned());
        let own_folder = Path::new(mount_point).join(own.trim_start_matches('/'));
        match version {
            Version::One => found.push((version, own_folder)),
            // Version 2 wants no processes beside child groups, so ours goes beside the group we are in.
            Version::Two => {
                if let Some(parent) = own_folder.parent().filter(|parent| parent.starts_with(mount_point)) {
                    found.push((version, parent.to_owned()));
                }
                found.push((version, PathBuf::from(mount_point)));
            }
        }
    }
    found.dedup();
    found
}

fn own_group(version: Version, groups: &str, controller: Controller) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let matches = match version {
            Version::One => controllers.split(',').any(|name| name == controller.name()),
            Version::Two => controllers.is_empty(),
        };
        matches.then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hierarchy_of_version_1_is_found_by_what_it_is_mounted_with() {
        let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                      cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let groups = "4:memory:/user\n3:cpu,cpuacct:/user/7\n1:name=systemd:/\n0::/x/y\n";
        let hierarchy = |name: &str, options: &str, parent: &str| Hierarchy {
            version: Version::One,
            name: name.to_owned(),
            options: options.to_owned(),
            parent: PathBuf::from(parent),
        };
        let expected = [
            hierarchy("cpu,cpuacct", "cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/user/7"),
            hierarchy("memory", "memory", "/sys/fs/cgroup/memory/user"),
            hierarchy("systemd", "none,name=systemd", "/sys/fs/cgroup/systemd/"),
        ];
        assert_eq!(hierarchies_in(mounts, groups), expected);
    }

    #[test]
    fn version_2_is_taken_where_version_1_has_no_controllers() {
        let found = hierarchies_in("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "0::/user.slice/shell.scope\n");
        let parent = PathBuf::from("/sys/fs/cgroup/user.slice");
        let (name, options) = (String::new(), String::new());
        assert_eq!(found, [Hierarchy { version: Version::Two, name, options, parent }]);
        assert_eq!(hierarchies_in("proc /proc proc rw 0 0\nbroken", ""), []);
    }

    fn check(mounts: &str, groups: &str, expected: &[&str]) {
        let found = candidates_in(mounts, groups, Controller::Cpu);
        let found: Vec<String> = found.into_iter().map(|(_, path)| path.display().to_string()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_cpu_hierarchy_of_version_1_is_found_in_our_own_group() {
        check(
            "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0",
            "3:cpu,cpuacct:/user/7\n0::/x",
            &["/sys/fs/cgroup/cpu,cpuacct/user/7"],
        );
    }

    #[test]
    fn in_version_2_the_folder_goes_beside_our_own_group() {
        check(
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
            "0::/user.slice/app.slice/shell.scope",
            &["/sys/fs/cgroup/user.slice/app.slice", "/sys/fs/cgroup"],
        );
    }

    #[test]
    fn a_machine_without_control_groups_has_no_candidates() {
        check("proc /proc proc rw 0 0\nbroken", "", &[]);
    }
}
