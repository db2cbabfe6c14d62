//! Why a machine, or a node, has no clock of its own.

use std::io;

/// Why there is no clock.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The machine is of another kind.
    #[error("clocks of nodes are made on x86-64 only")]
    Architecture,
    /// The kernel gives programs no vDSO.
    #[error("the kernel gives programs no vDSO (boot option `vdso=0`?)")]
    NoVdso,
    /// It is not made as expected.
    #[error("the kernel's vDSO has no {0}")]
    VdsoWithout(&'static str),
    /// The tables or the code have grown.
    #[error("the stand-in's {part} takes {bytes} bytes, {room} are there")]
    NoRoom {
        /// What does not fit.
        part: &'static str,
        /// How much it is.
        bytes: usize,
        /// How much there may be.
        room: usize,
    },
    /// A file, a filter or a thread was refused.
    #[error("{step}: {source}")]
    Step {
        /// What was being done.
        step: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A program did not see what the clock was set to.
    #[error("a program that should have seen a clock 10 days ahead {0}")]
    NotSeen(String),
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) fn step<T>(step: impl Into<String>, result: io::Result<T>) -> Result<T, ClockError> {
    result.map_err(|source| ClockError::Step { step: step.into(), source })
}
