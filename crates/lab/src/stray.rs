//! A process that is in a node's namespaces and does not die with it: a lie that tests plant, to show that the evidence of a
//! power-off finds it.
//!
//! Owns only its birth. It is outside the node's PID namespace, so that the kernel does not end it with the init; it ends
//! with the lab.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, setns};

/// Starts one in the node whose init has this process number.
///
/// # Errors
/// When the node's namespaces cannot be entered.
pub fn start(init: u32) -> io::Result<()> {
    let namespaces = ["net", "mnt"].map(|kind| File::open(format!("/proc/{init}/ns/{kind}")));
    let [network, mounts] = namespaces;
    let (network, mounts) = (network?, mounts?);
    let mut command = Command::new("sleep");
    command.arg("infinity").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let enter = move || {
        setns(&network, CloneFlags::CLONE_NEWNET)?;
        setns(&mounts, CloneFlags::CLONE_NEWNS)?;
        Ok(())
    };
    // SAFETY: between fork and exec the child makes system calls only. The standard library forks where there is something
    // to run, so that the child has one thread and may change its mount namespace.
    unsafe { command.pre_exec(enter) };
    // PID 1 of the lab reaps what nobody waits for, or ends with it.
    command.spawn().map(drop)
}
