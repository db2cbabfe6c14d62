//! What a place sees of the machine: its own processes, `/run`, shared memory, names, and the folders shown to it; and as
//! whom its processes run.
//!
//! Owns the mounts inside fresh namespaces. Whoever calls has made those, for a node's boot or for a person's shell.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::mount::{MsFlags, mount};

use crate::protocol::{HOME, LOGS, MAKING, NODE_USER, NodeSetUp, PROGRAMS, SOCKETS, VOLUME};

/// A step was refused.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub struct FurnishingError {
    /// The step, with its path.
    pub step: String,
    /// Why.
    pub source: io::Error,
}

fn take<T, E: Into<io::Error>>(step: impl Into<String>, result: Result<T, E>) -> Result<T, FurnishingError> {
    result.map_err(|source| FurnishingError { step: step.into(), source: source.into() })
}

/// What a place gets.
#[derive(Debug)]
pub(crate) struct Furnishing<'a> {
    /// Its host name.
    pub(crate) name: &'a str,
    /// Folders outside, by where they are shown.
    pub(crate) shown: Vec<(&'static str, &'a Path)>,
    /// Names and their addresses for `/etc/hosts`.
    pub(crate) names: &'a BTreeMap<String, Vec<IpAddr>>,
    /// Whether the user numbers above 0 are mapped.
    pub(crate) users_mapped: bool,
}

impl<'a> Furnishing<'a> {
    /// A node's.
    pub(crate) fn of_node(set_up: &'a NodeSetUp) -> Furnishing<'a> {
        let mut shown: Vec<(&'static str, &Path)> =
            vec![(VOLUME, &set_up.volume), (SOCKETS, &set_up.sockets), (LOGS, &set_up.logs)];
        shown.extend(set_up.making.as_deref().map(|making| (MAKING, making)));
        shown.extend(set_up.programs.as_deref().map(|programs| (PROGRAMS, programs)));
        Furnishing { name: &set_up.name, shown, names: &set_up.names, users_mapped: set_up.users_mapped }
    }
}

/// Furnishes the calling process's mount, PID and UTS namespaces, which must be fresh.
pub(crate) fn furnish(furnishing: &Furnishing<'_>) -> Result<(), FurnishingError> {
    const NONE: Option<&str> = None;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    take("make mounts private", mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE))?;
    // Opened before a fresh /run covers the place where some of them lie.
    let opened: Result<Vec<_>, _> =
        furnishing.shown.iter().map(|(inside, outside)| Ok((*inside, open_folder(outside)?))).collect();
    let opened = opened?;
    take("mount /proc", mount(Some("proc"), "/proc", Some("proc"), quiet | MsFlags::MS_NOEXEC, NONE))?;
    take("mount /run", mount(Some("run"), "/run", Some("tmpfs"), quiet, Some("mode=755")))?;
    take("mount /dev/shm", mount(Some("shm"), "/dev/shm", Some("tmpfs"), quiet, Some("mode=1777")))?;
    for (inside, outside) in opened {
        take(inside, fs::create_dir_all(inside))?;
        let source = format!("/proc/self/fd/{}", outside.as_raw_fd());
        let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
        take(format!("mount {inside}"), mount(Some(source.as_str()), inside, NONE, bind, NONE))?;
    }
    take(HOME, fs::create_dir_all(HOME))?;
    if furnishing.users_mapped {
        take(HOME, std::os::unix::fs::chown(HOME, Some(NODE_USER), Some(NODE_USER)))?;
    }
    write_names(furnishing.names)?;
    take("set host name", nix::unistd::sethostname(furnishing.name))
}

fn write_names(names: &BTreeMap<String, Vec<IpAddr>>) -> Result<(), FurnishingError> {
    let users =
        format!("root:x:0:0:root:/root:/bin/sh\nnode:x:{NODE_USER}:{NODE_USER}:node:{HOME}:/bin/sh\n");
    let groups = format!("root:x:0:\nnode:x:{NODE_USER}:\n");
    let mut hosts = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for (name, addresses) in names {
        for address in addresses {
            hosts.push_str(&format!("{address} {name}\n"));
        }
    }
    for (file, content) in [("passwd", users), ("group", groups), ("hosts", hosts)] {
        cover(file, &content)?;
    }
    Ok(())
}

fn open_folder(path: &Path) -> Result<OwnedFd, FurnishingError> {
    let text = take("path", CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other))?;
    // SAFETY: the path is a live, terminated string; the descriptor returned is ours alone.
    let descriptor = unsafe { libc::open(text.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) };
    if descriptor < 0 {
        return take(format!("open {}", path.display()), Err(io::Error::last_os_error()));
    }
    // SAFETY: just opened, checked, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Puts a file of the place's own over one in `/etc`, where the machine has it.
fn cover(file: &str, content: &str) -> Result<(), FurnishingError> {
    let (own, target) = (format!("/run/{file}"), format!("/etc/{file}"));
    take(format!("write {own}"), fs::write(&own, content))?;
    if Path::new(&target).exists() {
        let covered =
            mount(Some(own.as_str()), target.as_str(), None::<&str>, MsFlags::MS_BIND, None::<&str>);
        take(format!("mount {target}"), covered)?;
    }
    Ok(())
}

/// Makes the calling process, root of the lab's user namespace, the ordinary user that a node's processes run as. It may
/// run between fork and exec: makes system calls and plain file writes only.
pub(crate) fn become_node_user(users_mapped: bool) -> io::Result<()> {
    use nix::sched::{CloneFlags, unshare};
    use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
    if users_mapped {
        let (user, group) = (Uid::from_raw(NODE_USER), Gid::from_raw(NODE_USER));
        setgroups(&[])?;
        setresgid(group, group, group)?;
        setresuid(user, user, user)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        fs::write("/proc/self/uid_map", format!("{NODE_USER} 0 1"))?;
        fs::write("/proc/self/gid_map", format!("{NODE_USER} 0 1"))?;
    }
    Ok(())
}
