//! What this machine allows a lab to do, with the exact remedy for what is missing. Made for `holdfast doctor`;
//! every finding is an attempt, not a guess from a version number.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use nix::libc::dev_t;
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::makedev;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::cgroup;
use crate::ipv6::has_ipv6;
use crate::memory_groups;
use crate::mounts::{Below, attribute, set_attributes};
use crate::routing;

/// One thing a lab needs or profits from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was tried.
    pub what: &'static str,
    /// Whether a lab cannot do without.
    pub needed: bool,
    /// What was found: `Ok` says what is there, `Err` why it is not.
    pub found: Result<String, String>,
    /// What to do where it is missing.
    pub remedy: &'static str,
}

/// The device that a lab's network cannot do without.
#[must_use]
pub fn network_device() -> Finding {
    Finding {
        what: "/dev/net/tun",
        needed: true,
        found: try_device("/dev/net/tun", makedev(10, 200)),
        remedy: "`sudo modprobe tun && sudo chmod 0666 /dev/net/tun` (lasting: a udev rule \
                 `KERNEL==\"tun\", MODE=\"0666\"`); in a container: `--device /dev/net/tun`",
    }
}

/// Tries everything.
#[must_use]
pub fn findings() -> Vec<Finding> {
    vec![
        Finding {
            what: "user namespaces",
            needed: true,
            found: try_in_a_child(CloneFlags::CLONE_NEWUSER, || Ok(()))
                .map(|()| "a user namespace can be created".to_owned()),
            remedy: "Ubuntu 23.10 and later: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`; older \
                     Debian: `sudo sysctl kernel.unprivileged_userns_clone=1`; everywhere: \
                     `sudo sysctl user.max_user_namespaces=15000`; in a container: run it with a seccomp profile that \
                     allows unshare (for instance `--security-opt seccomp=unconfined`)",
        },
        Finding {
            what: "mount, network, PID, UTS and IPC namespaces",
            needed: true,
            found: try_in_a_child(
                CloneFlags::CLONE_NEWUSER
                    | CloneFlags::CLONE_NEWNS
                    | CloneFlags::CLONE_NEWNET
                    | CloneFlags::CLONE_NEWPID
                    | CloneFlags::CLONE_NEWUTS
                    | CloneFlags::CLONE_NEWIPC,
                || Ok(()),
            )
            .map(|()| "all kinds can be created".to_owned()),
            remedy: "a kernel with CONFIG_NET_NS, CONFIG_PID_NS, CONFIG_UTS_NS and CONFIG_IPC_NS, which every \
                     distribution's kernel has; in a container see `user namespaces`",
        },
        Finding {
            what: "mounts without links",
            needed: true,
            found: try_in_a_child(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS, || {
                set_attributes(Path::new("/"), attribute::NO_LINKS, 0, Below::Untouched)
            })
            .map(|()| "may be made".to_owned()),
            remedy: "Linux 5.14 or newer (mount_setattr with MOUNT_ATTR_NOSYMFOLLOW); in a container see `user namespaces`",
        },
        network_device(),
        Finding {
            what: "IPv6",
            needed: false,
            found: if has_ipv6() {
                Ok("the kernel knows it".to_owned())
            } else {
                Err("the kernel knows no IPv6".to_owned())
            },
            remedy: "only needed for `site.ip: 6`: boot without `ipv6.disable=1`",
        },
        Finding {
            what: "/dev/fuse",
            needed: false,
            found: try_device("/dev/fuse", makedev(10, 229)),
            remedy: "without it volumes lose nothing at a power-off: `sudo modprobe fuse && sudo chmod 0666 /dev/fuse`",
        },
        pairs_of_interfaces(),
        clocks(),
        cpu_limits(),
        memory_limits(),
    ]
}

fn pairs_of_interfaces() -> Finding {
    let namespaces = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET;
    Finding {
        what: "pairs of interfaces",
        needed: false,
        found: try_in_a_child(namespaces, routing::try_pair).map(|()| "a veth pair can be made".to_owned()),
        remedy: "only needed for `site.network: { path: kernel }`: `sudo modprobe veth`",
    }
}

fn cpu_limits() -> Finding {
    Finding {
        what: "CPU limits",
        needed: false,
        found: cgroup::available().map_err(|error| error.to_string()),
        remedy: "only needed for `cpus`: run as root, or in a systemd user session whose `cpu` \
                 controller is delegated (`systemd-run --user --scope -p Delegate=yes`)",
    }
}

fn memory_limits() -> Finding {
    Finding {
        what: "memory limits",
        needed: false,
        found: memory_groups::available()
            .map(|()| "control groups".to_owned())
            .map_err(|error| error.to_string()),
        remedy: "only needed for `pressure: { memory: ... }`: run as root, or delegate the `memory` controller",
    }
}

/// Whether nodes may have wall clocks of their own.
fn clocks() -> Finding {
    Finding {
        what: "clocks of nodes",
        needed: false,
        found: clock::trial()
            .map(|()| "a program can have its own clock".to_owned())
            .map_err(|error| error.to_string()),
        remedy: "only needed for clock faults: seccomp with user notification, and ptrace of one's own children \
                 (`kernel.yama.ptrace_scope` below 3; in a container a seccomp profile that allows both); x86-64",
    }
}

/// Numbers of devices: Linux, Documentation/admin-guide/devices.txt.
fn try_device(path: &str, number: dev_t) -> Result<String, String> {
    let opened = fs::OpenOptions::new().read(true).write(true).open(path);
    let is_it = |file: &fs::File| {
        let facts = file.metadata()?;
        Ok::<bool, io::Error>(facts.file_type().is_char_device() && facts.rdev() == number)
    };
    match opened.and_then(|file| is_it(&file)) {
        Ok(true) => Ok("may be opened".to_owned()),
        Ok(false) => Err("is another file than the device".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Tries in a child, which takes the namespaces with it as it ends, to make them and then to do something in them.
fn try_in_a_child(kinds: CloneFlags, then: impl FnOnce() -> io::Result<()>) -> Result<(), String> {
    let attempt = || {
        unshare(kinds)?;
        then()
    };
    // SAFETY: the child makes system calls, allocates at most a few paths and buffers (the C library sees to its locks at a fork)
    // and leaves by _exit.
    match unsafe { fork() } {
        Err(error) => Err(error.to_string()),
        Ok(ForkResult::Child) => {
            let code = attempt().map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0);
            // SAFETY: _exit only ends this process.
            unsafe { libc::_exit(code) }
        }
        Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, 0)) => Ok(()),
            Ok(WaitStatus::Exited(_, code)) => Err(io::Error::from_raw_os_error(code).to_string()),
            other => Err(format!("the attempt ended as {other:?}")),
        },
    }
}
