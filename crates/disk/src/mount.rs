//! A volume's place in a node: the mount, made by ourselves with mount(2), and the thread that serves it.
//!
//! Owns the order of birth and death. The mount is made on the thread that has the node's fresh mount namespace; it is
//! served from ordinary threads of the lab, because a thread that stays in a node's namespaces would keep them alive. It
//! ends when the last user of the node's mount namespace does. Until then it answers, after [`Mount::power_off`] with
//! `EIO`, so that nobody ever waits for it.
//!
//! **The serving process must never use the mount itself.** If it is killed in the midst of that, one of its threads
//! waits for an answer that none of its other threads will give, and the device is not closed before all have ended.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Once};
use std::time::{Duration, SystemTime};

use fuser::{Config, Session, SessionACL};
use nix::mount::MsFlags;
use nix::sched::{CloneFlags, unshare};

use crate::cpu::CpuTime;
use crate::files::Files;
use crate::fuse::{Served, TimeOfDay};
use crate::power::Power;
use crate::turns;
use crate::waits::Waits;

/// The device by which the kernel speaks to a file system in user space.
const DEVICE: &str = "/dev/fuse";
/// What mount tables call it.
const NAME: &str = "holdfast";
/// Threads of one mount: one may wait for the machine's disk and another for the lock while the third goes on.
const THREADS: usize = 3;

/// What can go wrong with a mount.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The device could not be opened.
    #[error("{DEVICE}: {0}")]
    Device(io::Error),
    /// The kernel refused the mount.
    #[error("mount {path}: {source}")]
    Mount {
        /// Where.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// No thread was to be had.
    #[error("start the thread that serves a volume: {0}")]
    Thread(io::Error),
    /// The thread that should serve it is gone.
    #[error("mount {path}: nobody is there to serve it")]
    NotServed {
        /// Where.
        path: PathBuf,
    },
}

/// A volume about to be mounted: to be taken to the thread that has the mount namespace.
#[derive(Debug)]
pub struct MountPoint {
    device: SyncSender<OwnedFd>,
}

/// A volume as mounted for one boot of its node.
pub struct Mount {
    power: Arc<Power>,
    cpu: Arc<CpuTime>,
    requests: Arc<Waits>,
    time_of_day: Arc<TimeOfDay>,
    /// Whether operations may wait for the disk.
    interrupt: Box<dyn Fn(bool) + Send + Sync>,
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mount").field("power", &self.power).field("cpu", &self.cpu).finish_non_exhaustive()
    }
}

/// Starts serving a volume that is going to be mounted once.
///
/// # Errors
/// When no thread is to be had.
pub fn prepare(volume: Arc<dyn Files>) -> Result<(MountPoint, Mount), MountError> {
    keep_buffers_out_of_the_heap();
    let (device, opened) = sync_channel(1);
    let disk = volume.clone();
    let interrupt = Box::new(move |interrupted| disk.interrupt(interrupted));
    let (power, cpu, requests) = (Arc::default(), Arc::default(), Arc::default());
    let mount = Mount { power, cpu, requests, time_of_day: Arc::default(), interrupt };
    let (power, cpu, requests) = (mount.power.clone(), mount.cpu.clone(), mount.requests.clone());
    let served = Served::new(volume, power, cpu, requests, mount.time_of_day.clone());
    let serve = move || serve(served, &opened);
    std::thread::Builder::new().name("disk".to_owned()).spawn(serve).map_err(MountError::Thread)?;
    Ok((MountPoint { device }, mount))
}

fn serve(served: Served, opened: &Receiver<OwnedFd>) {
    // Nobody mounted it.
    let Ok(device) = opened.recv() else { return };
    turns::be_short();
    let mut config = Config::default();
    config.n_threads = Some(THREADS);
    // A mount that went away while it was being greeted, or was ended by the kernel, has no users to tell.
    if let Ok(session) = Session::from_fd(served, device, SessionACL::All, config) {
        let _ = session.run();
    }
}

/// Serves a volume to a program that writes requests to the other end of `requests` as a kernel does to its device, until that asks
/// for the end. For tests of the requests themselves: no kernel has looked at them.
///
/// # Errors
/// When a request has no head, the other end is gone, or answering one panicked.
pub fn serve_unmounted(volume: Arc<dyn Files>, requests: OwnedFd) -> io::Result<()> {
    let served = Served::new(volume, Arc::default(), Arc::default(), Arc::default(), Arc::default());
    Session::from_fd(served, requests, SessionACL::All, Config::default())?.run()
}

impl MountPoint {
    /// Mounts the volume over a folder, in the mount namespace of the calling thread.
    ///
    /// # Errors
    /// When the device cannot be opened or the kernel refuses.
    pub fn mount_over(self, folder: &Path) -> Result<(), MountError> {
        let device = mount_over(folder)?;
        self.device.send(device).map_err(|_| MountError::NotServed { path: folder.to_owned() })
    }
}

/// Whether volumes can be mounted here: mounts one over `folder`, in a namespace that goes at once.
///
/// # Errors
/// What stands in the way.
pub fn try_out(folder: &Path) -> Result<(), MountError> {
    let refused = |source: io::Error| MountError::Mount { path: folder.to_owned(), source };
    let attempt = || -> Result<(), MountError> {
        unshare(CloneFlags::CLONE_NEWNS).map_err(|error| refused(error.into()))?;
        let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
        nix::mount::mount(None::<&str>, "/", None::<&str>, slave, None::<&str>)
            .map_err(|error| refused(error.into()))?;
        mount_over(folder).map(drop)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("disk".to_owned()).spawn_scoped(scope, attempt);
        let thread = thread.map_err(MountError::Thread)?;
        thread.join().unwrap_or_else(|_| Err(refused(io::Error::other("the attempt panicked"))))
    })
}

/// Mounts over a folder and returns the device on which requests will come.
fn mount_over(folder: &Path) -> Result<OwnedFd, MountError> {
    let device = OpenOptions::new().read(true).write(true).open(DEVICE).map_err(MountError::Device)?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other",
        device.as_raw_fd()
    );
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOATIME;
    nix::mount::mount(Some(NAME), folder, Some("fuse"), flags, Some(options.as_str()))
        .map_err(|error| MountError::Mount { path: folder.to_owned(), source: error.into() })?;
    Ok(device.into())
}

impl Mount {
    /// Files are stamped by this clock from now on. The first that is given stays.
    pub fn stamp_by(&self, now: impl Fn() -> SystemTime + Send + Sync + 'static) {
        let _ = self.time_of_day.set(Box::new(now));
    }

    /// The power is off: from here on every request gets `EIO`, at once, and none is under way any more.
    pub fn power_off(&self) {
        self.power.cut(|| (self.interrupt)(true));
        // None gets as far as the disk any more; the volume's next boot finds it as it is.
        (self.interrupt)(false);
    }

    /// How long the oldest request has been under way; zero where none is.
    #[must_use]
    pub fn longest_request(&self) -> Duration {
        self.requests.longest()
    }

    /// CPU time of the threads that serve it.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        self.cpu.total()
    }
}

/// Each serving thread has a buffer of 16 MiB, of which it touches little. By default the C library learns from the
/// first one freed to take the next from its heap, where all of it is zeroed by touching it: 4 MiB a mount become 50.
fn keep_buffers_out_of_the_heap() {
    static ONCE: Once = Once::new();
    #[cfg(target_env = "gnu")]
    ONCE.call_once(|| {
        // SAFETY: mallopt(3) takes two numbers. This one says from which size on memory is mapped on its own.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20) };
    });
    #[cfg(not(target_env = "gnu"))]
    ONCE.call_once(|| ());
}
