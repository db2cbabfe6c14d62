//! The filter that lets a keeper know of every exec: installed once by the first process of a node, inherited by all others.
//!
//! It asks about execve and execveat alone; the kernel lets every other system call through by a table (seccomp(2), cache of
//! allowed calls), without running the filter. Sources: seccomp(2), seccomp_unotify(2), linux/filter.h.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// `AUDIT_ARCH_X86_64` of linux/audit.h.
const ARCHITECTURE: u32 = 0xc000_003e;
/// Where the architecture and the call's number are in `struct seccomp_data`.
const ARCHITECTURE_AT: u32 = 4;
const NUMBER_AT: u32 = 0;

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

fn load(at: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at)
}

/// Skips so many instructions where the loaded word is this one, so many where not.
fn compare(word: u32, same: u8, other: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, same, other, word)
}

fn answer(with: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, with)
}

/// Installs the filter for the calling process, which must have one thread, and all that it starts from now on. Returns the
/// listener. Until somebody answers at the listener, or it is closed, no program can be started.
///
/// The process must have been denied new privileges or be root of its user namespace. Makes system calls only, so it may run
/// between fork and exec.
///
/// # Errors
/// When the kernel refuses.
pub fn install() -> io::Result<OwnedFd> {
    let mut program = [
        load(ARCHITECTURE_AT),
        compare(ARCHITECTURE, 0, 3),
        load(NUMBER_AT),
        compare(libc::SYS_execve as u32, 2, 0),
        compare(libc::SYS_execveat as u32, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_USER_NOTIF),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let basic = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // A kernel older than 5.19 does not know the first: there a signal may interrupt an exec, which the kernel begins again.
    for flags in [basic | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, basic] {
        // SAFETY: the filter is copied by the kernel before the call returns.
        let listener = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        if listener >= 0 {
            // SAFETY: a descriptor that the kernel has just made for us.
            return Ok(unsafe { OwnedFd::from_raw_fd(listener as RawFd) });
        }
    }
    Err(io::Error::last_os_error())
}

/// Takes a listener out of the process that has installed the filter, which the caller must be allowed to trace.
///
/// # Errors
/// When the process is gone or may not be traced.
pub fn take_listener(process: u32, number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: these calls take no pointers; the descriptors that they return are ours.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, process, 0);
        if process < 0 {
            return Err(io::Error::last_os_error());
        }
        let process = OwnedFd::from_raw_fd(process as RawFd);
        let listener =
            libc::syscall(libc::SYS_pidfd_getfd, std::os::fd::AsRawFd::as_raw_fd(&process), number, 0);
        if listener < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(listener as RawFd))
    }
}
