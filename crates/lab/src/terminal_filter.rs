//! The filter that keeps programs of a visit from typing at the caller's terminal.
//!
//! Whatever has that terminal open as its own may put characters into its input (`TIOCSTI`) or paste what is selected at a
//! console (`TIOCLINUX`), and the caller's shell would read them once the visit is over. Sources: ioctl_tty(2), ioctl_console(2),
//! seccomp(2), linux/filter.h.

use std::io;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// `TIOCLINUX` of linux/tty.h.
const PASTE: u32 = 0x541c;
/// Calls from this number on are those of x32 on x86-64, and none elsewhere.
const OTHER_CALLS: u32 = 0x4000_0000;
/// Where the call's number, its architecture and the low half of its second argument are in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const REQUEST_AT: u32 = 24;

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

fn load(at: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at)
}

/// Skips so many instructions where the loaded word compares so with this one, so many where not.
fn jump(comparison: u32, word: u32, yes: u8, no: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, yes, no, word)
}

fn answer(with: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, with)
}

/// Installs the filter for the calling process, which must have one thread and have been denied new privileges, and all that it
/// starts. Programs of another architecture, whose calls have other numbers, cannot make any.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn install() -> io::Result<()> {
    let mut program = [
        load(ARCHITECTURE_AT),
        jump(libc::BPF_JEQ, ARCHITECTURE, 0, 7),
        load(NUMBER_AT),
        jump(libc::BPF_JGE, OTHER_CALLS, 5, 0),
        jump(libc::BPF_JEQ, libc::SYS_ioctl as u32, 0, 3),
        load(REQUEST_AT),
        jump(libc::BPF_JEQ, libc::TIOCSTI as u32, 2, 0),
        jump(libc::BPF_JEQ, PASTE, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    // SAFETY: the filter is copied by the kernel before the call returns.
    match unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
