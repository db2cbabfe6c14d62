//! Attributes of mounts, set where they stand: read-only, without links, devices or set-user programs.
//!
//! Owns one system call, mount_setattr(2) of Linux 5.12; `NOSYMFOLLOW` among its attributes is of 5.14. What is mounted
//! where, others decide.

use std::ffi::CString;
use std::io;
use std::path::Path;

/// Attributes of a mount, as bits of `MOUNT_ATTR_` in `linux/mount.h`.
pub(crate) mod attribute {
    /// Nothing is written through it.
    pub(crate) const READ_ONLY: u64 = 0x1;
    /// Programs on it run as whoever starts them.
    pub(crate) const NO_SET_USER: u64 = 0x2;
    /// Devices on it are nothing but names.
    pub(crate) const NO_DEVICES: u64 = 0x4;
    /// No program on it can be started.
    pub(crate) const NO_PROGRAMS: u64 = 0x8;
    /// No symbolic link on it is followed.
    pub(crate) const NO_LINKS: u64 = 0x0020_0000;
}

/// What lies below a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// Stays as it is.
    Untouched,
    /// Gets the same attributes.
    Alike,
}

/// As the kernel reads it.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Adds attributes to the mount at `path` and takes others away.
///
/// # Errors
/// What the kernel says: `ENOSYS` or `EINVAL` where it is too old.
pub(crate) fn set_attributes(path: &Path, add: u64, take_away: u64, below: Below) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other)?;
    let attributes = MountAttributes { set: add, clear: take_away, propagation: 0, user_namespace: 0 };
    let flags = if below == Below::Alike { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a live, terminated string; the attributes are a live value of the size said.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
