//! The ground under the tests: namespaces of their own, folders that go, volumes mounted, processes inside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use disk::{Disk, Flush, FolderStore, Limits, Lost, Mount, OnDisk, Volume};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// First argument of this program when it is started again inside.
pub const INSIDE: &str = "inside";

/// Takes this process, which must have one thread, into a mount namespace of its own in which it may mount.
pub fn enter() -> Result<(), String> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let refused = |step: &str, error: &dyn std::fmt::Display| format!("{step}: {error}");
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS).map_err(|error| refused("new mount namespace", &error))?;
    } else {
        let kinds = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
        unshare(kinds).map_err(|error| refused("new user namespace", &error))?;
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("0 {user} 1")),
            ("gid_map", format!("0 {group} 1")),
        ] {
            fs::write(format!("/proc/self/{file}"), text).map_err(|error| refused(file, &error))?;
        }
    }
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(|error| refused("private mounts", &error))?;
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .map_err(|error| refused("/dev/fuse", &error))?;
    Ok(())
}

/// A volume and the place where it is mounted.
pub struct Mounted {
    pub disk: Disk,
    pub volume: Arc<Volume<OnDisk<FolderStore>>>,
    pub mount: Mount,
    pub place: PathBuf,
    /// A folder on the file system of the store.
    pub beside: PathBuf,
    _folders: tempfile::TempDir,
}

impl Mounted {
    pub fn new() -> Mounted {
        let folders = tempfile::tempdir().expect("a temporary folder");
        let (store, place) = (folders.path().join("store"), folders.path().join("mounted"));
        fs::create_dir(&store).expect("made");
        let beside = folders.path().join("beside");
        fs::create_dir(&place).expect("made");
        fs::create_dir(&beside).expect("made");
        let disk = Disk::alone("d1");
        let store = OnDisk::new(FolderStore::new(&store, Flush::Pretended), disk.clone());
        let volume = Arc::new(Volume::new(store, Limits::default(), 0, 0, SystemTime::now()));
        let mount = mounted(&volume, &place);
        Mounted { disk, volume, mount, place, beside, _folders: folders }
    }

    /// The power goes and comes back: the same volume, mounted anew. `between` is done when the mount answers no more.
    pub fn lose_power(&mut self, between: impl FnOnce()) -> Lost {
        self.mount.power_off();
        between();
        let lost = self.volume.power_off(None).expect("taken back");
        unmount(&self.place).expect("unmounted");
        self.mount = mounted(&self.volume, &self.place);
        lost
    }
}

fn mounted(volume: &Arc<Volume<OnDisk<FolderStore>>>, place: &Path) -> Mount {
    let (point, mount) = disk::prepare(volume.clone()).expect("served");
    point.mount_over(place).expect("mounted");
    mount
}

fn unmount(place: &Path) -> io::Result<()> {
    Ok(umount2(place, MntFlags::MNT_DETACH)?)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Where it stays mounted, it goes with the namespace.
        let _ = unmount(&self.place);
    }
}

/// Starts this program again to do `check` in `folder`.
pub fn start(check: &str, folder: &Path) -> Child {
    let mut command = Command::new("/proc/self/exe");
    command.arg(INSIDE).arg(check).arg(folder).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
}

/// Does `check` in `folder`, in a process of its own.
pub fn run(check: &str, folder: &Path) -> Result<String, String> {
    let output = start(check, folder).wait_with_output().expect("waited");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        // What could not be tested is said there.
        eprint!("{}", said(&output.stderr));
        Ok(said(&output.stdout))
    } else {
        Err(format!("{}{}", said(&output.stdout), said(&output.stderr)))
    }
}
