//! The peer: libfuse's example `passthrough_ll`, built from the distribution's own development package.
//!
//! Owns the building and the mounting. It is given a device that is mounted already, so that no `fusermount3` is needed.

use std::fs::{self, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::bench::cpu_account::cpu_of_process;
use crate::bench::packages;

/// What holds the example's source, and the library to build it with.
const PACKAGES: &[&str] = &["libfuse3-dev"];

/// The program as built.
#[derive(Debug)]
pub struct Passthrough {
    program: PathBuf,
    /// The library's version.
    pub version: String,
}

impl Passthrough {
    /// Builds it in `folder`.
    ///
    /// # Errors
    /// When its package cannot be had, or the compiler refuses.
    pub fn build(folder: &Path) -> anyhow::Result<Passthrough> {
        eprintln!("building passthrough_ll");
        let root = packages::unpack(PACKAGES, false, folder)?.root;
        let library = find(&root, "libfuse3.a").context("no libfuse3.a in libfuse3-dev")?;
        let source = find(&root, "passthrough_ll.c").context("no passthrough_ll.c in libfuse3-dev")?;
        let facts = find(&root, "fuse3.pc").context("no fuse3.pc in libfuse3-dev")?;
        let facts = fs::read_to_string(facts)?;
        let version = facts.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap_or("unknown");
        let program = folder.join("passthrough_ll");
        let mut command = Command::new("cc");
        command.args(["-O2", "-D_FILE_OFFSET_BITS=64", "-I"]).arg(root.join("usr/include/fuse3"));
        command.arg(source).arg("-o").arg(&program).arg(library).args(["-lpthread", "-ldl"]);
        packages::run(&mut command)?;
        // Whoever runs it reaches it.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        Ok(Passthrough { program, version: version.to_owned() })
    }

    /// Mounts `source` once more, over `place`, served by a process of `owner`'s.
    ///
    /// # Errors
    /// When the kernel refuses, or the program does not start.
    pub fn mount(&self, source: &Path, place: &Path, owner: (u32, u32)) -> anyhow::Result<Mirrored> {
        let device: OwnedFd =
            OpenOptions::new().read(true).write(true).open("/dev/fuse").context("/dev/fuse")?.into();
        let (number, user, group) = (device.as_raw_fd(), nix::unistd::geteuid(), nix::unistd::getegid());
        let options = format!("fd={number},rootmode=40000,user_id={user},group_id={group},allow_other");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOATIME;
        mount(Some("passthrough_ll"), place, Some("fuse"), flags, Some(options.as_str()))
            .with_context(|| format!("mount {}", place.display()))?;
        // The program is to inherit it; nothing else is started before it is closed here.
        fcntl(&device, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let mut command = Command::new(&self.program);
        // Its own default, -1, the library refuses with a complaint; it has ten threads at most.
        command.args(["-f", "-o", "max_idle_threads=10", "-o"]).arg(format!("source={}", source.display()));
        command.arg(format!("/dev/fd/{number}")).stdin(Stdio::null());
        if nix::unistd::geteuid().is_root() {
            // What is made through it belongs to whom the program runs as.
            command.uid(owner.0).gid(owner.1);
        }
        let started = command.spawn().context("start passthrough_ll");
        drop(device);
        Ok(Mirrored { served_by: started?, place: place.to_owned() })
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries
        .filter_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => find(&entry.path(), name),
            Ok(_) => (entry.file_name() == name).then(|| entry.path()),
            Err(_) => None,
        })
        .next()
}

/// A folder as the peer shows it, until this is dropped.
#[derive(Debug)]
pub struct Mirrored {
    served_by: Child,
    place: PathBuf,
}

impl Mirrored {
    /// CPU seconds of the program so far.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cpu_s(&self) -> anyhow::Result<f64> {
        let used = cpu_of_process(self.served_by.id()).context("passthrough_ll is gone")?;
        Ok(used.as_secs_f64())
    }
}

impl Drop for Mirrored {
    fn drop(&mut self) {
        // It ends when nobody has it mounted any more; killed, it lets go what still waits for it.
        let _ = umount2(&self.place, MntFlags::MNT_DETACH);
        let _ = self.served_by.kill();
        let _ = self.served_by.wait();
    }
}
