//! Other machines than x86-64: there are no clocks, and everything that would need one says so.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use crate::error::ClockError;
use crate::shift::Shift;

/// A clock: there is none.
#[derive(Debug)]
pub enum Clock {}

#[allow(clippy::missing_errors_doc, reason = "the same as on x86-64, where it is said")]
impl Clock {
    /// As on x86-64.
    pub fn in_file(_: &Path, _: &Path) -> Result<Clock, ClockError> {
        Err(ClockError::Architecture)
    }

    /// As on x86-64.
    #[must_use]
    pub fn shift(&self) -> Shift {
        match *self {}
    }

    /// As on x86-64.
    pub fn set(&self, _: Shift) {
        match *self {}
    }

    /// As on x86-64.
    pub fn leave_out_static_programs(&self) {
        match *self {}
    }

    /// As on x86-64.
    #[must_use]
    pub fn programs_given(&self) -> u64 {
        match *self {}
    }

    /// As on x86-64.
    #[must_use]
    pub fn misses(&self) -> Vec<String> {
        match *self {}
    }

    /// As on x86-64.
    pub fn keep(self: &Arc<Clock>, _: OwnedFd) -> Result<(), ClockError> {
        match **self {}
    }
}

/// Always refused.
///
/// # Errors
/// Always.
pub fn install() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Always refused.
///
/// # Errors
/// Always.
pub fn take_listener(_: u32, _: RawFd) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Always refused.
///
/// # Errors
/// Always.
pub fn start(clock: &Arc<Clock>, _: &mut Command) -> Result<Child, ClockError> {
    match **clock {}
}

/// Always refused.
///
/// # Errors
/// Always.
pub fn trial() -> Result<(), ClockError> {
    Err(ClockError::Architecture)
}

/// No program.
#[must_use]
pub fn program() -> Vec<u8> {
    Vec::new()
}

/// As on x86-64.
pub mod waits {
    use std::path::Path;

    /// No library.
    #[must_use]
    pub fn library() -> &'static [u8] {
        &[]
    }

    /// As on x86-64.
    pub const PRELOAD: &str = "LD_PRELOAD";

    /// As on x86-64.
    #[must_use]
    pub fn preload(_: &Path, already: Option<&str>) -> String {
        already.unwrap_or_default().to_owned()
    }
}
