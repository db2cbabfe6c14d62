//! What a place sees of the machine, and as whom its processes run.
//!
//! Owns the mounts inside fresh namespaces and the file system that a place has for its root: the machine's programs
//! and settings, read-only; a few devices; its own processes, memory and names; and the folders shown to it. Homes,
//! the run directory, other nodes' volumes, sockets of the machine's services and everything else are not there.
//! Where the place has a system of its own, it sees that instead of the machine's programs and settings. Whoever
//! calls has made the namespaces, for a node's boot or for a person's shell.
//!
//! Sources: mount_namespaces(7), pivot_root(2), mount_setattr(2), user_namespaces(7), prctl(2) PR_SET_NO_NEW_PRIVS.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open, openat};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;

use crate::mounts::{Below, attribute, set_attributes};
use crate::protocol::{
    CLOCK, DISK, HOME, MAKING, NODE_USER, NodeSetUp, SOCKETS, ShownPrograms, VOLUME, WholeMachine,
};

mod system;
mod whole_machine;

/// Where the new root is put together, before it becomes the root.
const ROOT: &str = "/run";
/// What of the machine's files a place sees, read-only: programs, libraries, settings, and what processors there are.
pub const MACHINE_FOLDERS: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/gnu/store",
    PROCESSORS,
];
/// What processors there are.
const PROCESSORS: &str = "/sys/devices/system";
/// Devices that any program may expect, and no others.
pub const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links that programs expect.
const LINKS: [(&str, &str); 7] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
    ("/var/run", "/run"),
    ("/var/tmp", "/tmp"),
];
/// Who may make how many user namespaces below the one that asks; each namespace has its own.
const LIMITS: &str = "/proc/sys/user";
/// What of `/proc` controls the whole machine: its settings, its keys of last resort (`Documentation/admin-guide/sysrq.rst`), its
/// interrupts, its buses and its drivers.
const MACHINE_CONTROLS: [&str; 9] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/mtrr",
    "/proc/scsi",
    "/proc/dynamic_debug",
];
const NONE: Option<&str> = None;

/// A step was refused.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub struct FurnishingError {
    /// The step, with its path.
    pub step: String,
    /// What the operating system answered.
    pub source: io::Error,
}

fn take<T, E: Into<io::Error>>(step: impl Into<String>, result: Result<T, E>) -> Result<T, FurnishingError> {
    result.map_err(|source| FurnishingError { step: step.into(), source: source.into() })
}

/// Something outside that is shown inside.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    inside: PathBuf,
    outside: &'a Path,
    /// Attributes of the mount that are set and taken away.
    attributes: (u64, u64),
}

impl<'a> Shown<'a> {
    fn writable(inside: &str, outside: &'a Path, more: u64, without: u64) -> Shown<'a> {
        let attributes = (attribute::NO_SET_USER | attribute::NO_DEVICES | more, without);
        Shown { inside: inside.into(), outside, attributes }
    }

    /// Programs, in a folder or in one file, to be read and run.
    pub(crate) fn programs(inside: &Path, outside: &'a Path) -> Shown<'a> {
        let add = attribute::READ_ONLY | attribute::NO_SET_USER | attribute::NO_DEVICES;
        Shown { inside: inside.to_owned(), outside, attributes: (add, 0) }
    }
}

/// What a place gets.
#[derive(Debug)]
pub(crate) struct Furnishing<'a> {
    /// Its host name.
    pub(crate) name: &'a str,
    /// The folder of the system that it sees in place of the machine's, where it has one.
    pub(crate) system: Option<&'a Path>,
    /// What of the outside is shown to it.
    pub(crate) shown: Vec<Shown<'a>>,
    /// Names and their addresses for `/etc/hosts`.
    pub(crate) names: &'a BTreeMap<String, Vec<IpAddr>>,
    /// Whether the user numbers above 0 are mapped.
    pub(crate) users_mapped: bool,
    /// What it has beside that, where its processes are root of the lab.
    pub(crate) whole_machine: Option<&'a WholeMachine>,
}

impl<'a> Furnishing<'a> {
    /// A node's.
    pub(crate) fn of_node(set_up: &'a NodeSetUp) -> Furnishing<'a> {
        let (links, no_links) = match set_up.follows_links {
            true => (0, attribute::NO_LINKS),
            false => (attribute::NO_LINKS, 0),
        };
        let sockets = attribute::NO_PROGRAMS | attribute::NO_LINKS;
        let mut shown = vec![
            Shown::writable(VOLUME, &set_up.volume, links, no_links),
            Shown::writable(SOCKETS, &set_up.sockets, sockets, 0),
        ];
        shown.extend(set_up.making.as_deref().map(|making| Shown::writable(MAKING, making, links, no_links)));
        shown.extend(set_up.programs.iter().map(|shown| Shown::programs(&shown.inside, &shown.outside)));
        let disk = set_up.whole_machine.as_ref().map(|machine| machine.disk.as_path());
        shown.extend(disk.map(|disk| Shown::writable(DISK, disk, 0, attribute::NO_LINKS)));
        shown.extend(set_up.clock.as_deref().map(|clock| Shown::programs(Path::new(CLOCK), clock)));
        Furnishing {
            name: &set_up.name,
            system: set_up.programs.iter().find_map(ShownPrograms::whole_system),
            shown,
            names: &set_up.names,
            users_mapped: set_up.users_mapped,
            whole_machine: set_up.whole_machine.as_ref(),
        }
    }
}

/// Furnishes the calling process's mount, PID and UTS namespaces, which must be fresh, and makes the result its root.
/// Returns what [`become_node_user`] needs.
pub(crate) fn furnish(furnishing: &Furnishing<'_>) -> Result<Limits, FurnishingError> {
    take("keep mounts here", mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE))?;
    let limits = take(LIMITS, Limits::open(Path::new(LIMITS)))?;
    // Opened before the new root covers the place where some of them lie.
    let opened: Result<Vec<_>, _> = furnishing
        .shown
        .iter()
        .map(|shown| Ok((shown, take(shown.outside.display().to_string(), open_path(shown.outside))?)))
        .collect();
    let opened = opened?;
    let system = furnishing.system.map(|folder| take(folder.display().to_string(), open_path(folder)));
    let system = system.transpose()?;
    mount_memory("", "mode=755")?;
    match &system {
        Some(folder) => system::show_system(folder)?,
        None => show_the_machine()?,
    }
    show_processes()?;
    make_devices()?;
    furnishing.whole_machine.map_or(Ok(()), whole_machine::furnish)?;
    for folder in ["/tmp", HOME] {
        mount_memory(folder, "mode=1777")?;
    }
    if furnishing.users_mapped {
        let home = new(HOME);
        take(HOME, std::os::unix::fs::chown(&home, Some(NODE_USER), Some(NODE_USER)))?;
        take(HOME, fs::set_permissions(&home, fs::Permissions::from_mode(0o755)))?;
    }
    for (shown, outside) in opened {
        show(shown, &outside)?;
    }
    write_names(furnishing.names)?;
    for (link, target) in LINKS {
        make_parent_of(link)?;
        take(link, symlink(target, new(link)))?;
    }
    restrict("", attribute::READ_ONLY, Below::Untouched)?;
    make_it_the_root()?;
    // What the machine mounts from now on below a folder that is shown would be there too, and writable.
    take("take no more mounts", mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE))?;
    furnishing.whole_machine.map_or(Ok(()), |_| whole_machine::share_mounts())?;
    take("set host name", nix::unistd::sethostname(furnishing.name))?;
    Ok(limits)
}

/// A path of the new root as long as it is not the root yet.
fn new(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    Path::new(ROOT).join(path.strip_prefix("/").unwrap_or(path))
}

fn make_folder(path: impl AsRef<Path>) -> Result<(), FurnishingError> {
    let path = path.as_ref();
    take(path.display().to_string(), fs::create_dir_all(new(path)))
}

fn make_parent_of(path: impl AsRef<Path>) -> Result<(), FurnishingError> {
    path.as_ref().parent().map_or(Ok(()), make_folder)
}

fn restrict(path: impl AsRef<Path>, attributes: u64, below: Below) -> Result<(), FurnishingError> {
    let path = path.as_ref();
    let step = format!("attributes of the mount of /{}", path.display().to_string().trim_start_matches('/'));
    take(step, set_attributes(&new(path), attributes, 0, below))
}

/// A file system in memory, gone with the namespace.
fn mount_memory(path: &str, options: &str) -> Result<(), FurnishingError> {
    make_folder(path)?;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    take(format!("mount {path}"), mount(Some("tmpfs"), &new(path), Some("tmpfs"), quiet, Some(options)))
}

fn bind(source: &Path, path: impl AsRef<Path>) -> Result<(), FurnishingError> {
    let path = path.as_ref();
    let kind = MsFlags::MS_BIND | MsFlags::MS_REC;
    take(format!("mount {}", path.display()), mount(Some(source), &new(path), NONE, kind, NONE))
}

fn show_the_machine() -> Result<(), FurnishingError> {
    MACHINE_FOLDERS.iter().map(Path::new).try_for_each(|folder| show_read_only(folder, folder))
}

/// Shows a folder or a file, if it is there, for programs to be read and run. A link stays one.
fn show_read_only(outside: &Path, inside: &Path) -> Result<(), FurnishingError> {
    let own = attribute::READ_ONLY | attribute::NO_SET_USER | attribute::NO_DEVICES;
    let step = || inside.display().to_string();
    let Ok(found) = fs::symlink_metadata(outside) else { return Ok(()) };
    make_parent_of(inside)?;
    if found.is_symlink() {
        let target = take(step(), fs::read_link(outside))?;
        return take(step(), symlink(target, new(inside)));
    }
    if found.is_dir() {
        make_folder(inside)?;
    } else {
        take(step(), fs::write(new(inside), ""))?;
    }
    bind(outside, inside)?;
    restrict(inside, own, Below::Alike)
}

fn show_processes() -> Result<(), FurnishingError> {
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    make_folder("/proc")?;
    take("mount /proc", mount(Some("proc"), &new("/proc"), Some("proc"), quiet, NONE))?;
    // What a namespace's own root may set there, an ordinary user's nodes could: to the kernel that is the same user.
    for control in MACHINE_CONTROLS.map(Path::new) {
        if new(control).exists() {
            bind(&new(control), control)?;
            restrict(control, attribute::READ_ONLY, Below::Alike)?;
        }
    }
    Ok(())
}

fn make_devices() -> Result<(), FurnishingError> {
    make_folder("/dev")?;
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        take(path.display().to_string(), fs::write(new(&path), ""))?;
        bind(&path, &path)?;
    }
    mount_memory("/dev/shm", "mode=1777")?;
    make_folder("/dev/pts")?;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    take("mount /dev/pts", mount(Some("devpts"), &new("/dev/pts"), Some("devpts"), quiet, options))
}

fn show(shown: &Shown<'_>, outside: &OwnedFd) -> Result<(), FurnishingError> {
    let step = || shown.inside.display().to_string();
    let source = PathBuf::from(format!("/proc/self/fd/{}", outside.as_raw_fd()));
    if take(step(), fs::metadata(&source))?.is_dir() {
        make_folder(&shown.inside)?;
    } else {
        make_parent_of(&shown.inside)?;
        take(step(), fs::write(new(&shown.inside), ""))?;
    }
    bind(&source, &shown.inside)?;
    let (add, take_away) = shown.attributes;
    let set = set_attributes(&new(&shown.inside), add, take_away, Below::Alike);
    take(format!("attributes of the mount of {}", step()), set)
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

/// Puts a file of the place's own over one in `/etc`, where it sees one.
fn cover(file: &str, content: &str) -> Result<(), FurnishingError> {
    let (own, target) = (format!("/run/{file}"), format!("/etc/{file}"));
    take(format!("write {own}"), fs::write(new(&own), content))?;
    if new(&target).exists() {
        bind(&new(&own), &target)?;
        restrict(&target, attribute::READ_ONLY, Below::Untouched)?;
    }
    Ok(())
}

/// The machine's own root goes, with all that is not shown.
fn make_it_the_root() -> Result<(), FurnishingError> {
    take("enter the new root", nix::unistd::chdir(ROOT))?;
    take("make it the root", nix::unistd::pivot_root(".", "."))?;
    take("leave the old root", umount2(".", MntFlags::MNT_DETACH))?;
    take("enter the root", nix::unistd::chdir("/"))
}

fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// The folder in which each user namespace finds its own limits, opened where it may be written to.
#[derive(Debug)]
pub(crate) struct Limits(OwnedFd);

impl Limits {
    pub(crate) fn open(folder: &Path) -> io::Result<Limits> {
        open_path(folder).map(Limits)
    }

    /// Lets nobody make a user namespace below the caller's, whose root the caller must be: a program that is root
    /// somewhere reaches parts of the kernel that are closed to others.
    pub(crate) fn forbid_user_namespaces(&self) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let file = openat(&self.0, "max_user_namespaces", flags, Mode::empty())?;
        nix::unistd::write(file, b"0")?;
        Ok(())
    }
}

/// Makes the calling process, root of the lab's user namespace, the ordinary user that a node's processes run as, who
/// cannot become anybody else. It may run between fork and exec: makes system calls and plain file writes only.
pub(crate) fn become_node_user(users_mapped: bool, limits: &Limits) -> io::Result<()> {
    use nix::sched::{CloneFlags, unshare};
    use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
    nix::sys::prctl::set_no_new_privs()?;
    if users_mapped {
        let (user, group) = (Uid::from_raw(NODE_USER), Gid::from_raw(NODE_USER));
        setgroups(&[])?;
        setresgid(group, group, group)?;
        setresuid(user, user, user)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        fs::write("/proc/self/uid_map", format!("{NODE_USER} 0 1"))?;
        fs::write("/proc/self/gid_map", format!("{NODE_USER} 0 1"))?;
        limits.forbid_user_namespaces()?;
    }
    Ok(())
}
