//! The session keyring of the lab's processes: their own, and not that of the login which started the lab.
//!
//! A session keyring outlives every change of user and of namespaces, and whoever has it may take keys out of it and, where a key
//! says so, read them. Sources: session-keyring(7), keyctl(2).

use std::io;

/// `KEYCTL_JOIN_SESSION_KEYRING` of linux/keyctl.h.
const JOIN_SESSION_KEYRING: libc::c_int = 1;

/// Gives the calling thread, and all that it starts, a new session keyring.
///
/// # Errors
/// When the kernel refuses. A kernel without keyrings, and a container whose profile forbids them to all in it, have nothing that
/// could be taken.
pub(crate) fn leave_the_logins() -> io::Result<()> {
    // SAFETY: no name is given, so the call takes no pointer.
    let joined =
        unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    let error = io::Error::last_os_error();
    match joined {
        -1 if !matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Err(error),
        _ => Ok(()),
    }
}
