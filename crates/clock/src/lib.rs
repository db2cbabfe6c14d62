//! A node's wall clock: what it shows, and programs that are made to read it.
//!
//! A program asks the kernel's vDSO for the time, a small library that the kernel maps into every process and whose address
//! it passes at the exec. A [`Clock`] has a stand-in for that library: it calls the real one and adds a [`Shift`], which it
//! reads from a page that is shared with whoever sets the clock. C libraries, Go's runtime, Java and Python all find the
//! stand-in where they would have found the real one; nothing else of the machine does.
//!
//! The kernel compares the deadline of a wait until a time of day with the machine's clock: a library that programs load waits
//! by the steady clock instead, for as long as the node's clock needs.
//!
//! Owns the stand-in, the shift, the filter that stops each exec, the short trace that maps the stand-in, and that library. Not
//! shifted: `CLOCK_MONOTONIC`, plain system calls, waits of programs that load no library, and what the kernel itself writes down.
//! x86-64 only.

mod error;
mod reading;
mod shift;

#[cfg(target_arch = "x86_64")]
mod code;
#[cfg(target_arch = "x86_64")]
mod filter;
#[cfg(target_arch = "x86_64")]
mod image;
#[cfg(target_arch = "x86_64")]
mod keeper;
#[cfg(target_arch = "x86_64")]
mod page;
#[cfg(target_arch = "x86_64")]
mod probe;
#[cfg(target_arch = "x86_64")]
mod real_vdso;
#[cfg(target_arch = "x86_64")]
mod start;
#[cfg(target_arch = "x86_64")]
mod tracee;
#[cfg(target_arch = "x86_64")]
pub mod waits;

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere;
#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::waits;

#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::{Clock, install, program as probe, start, take_listener, trial};
pub use error::ClockError;
#[cfg(target_arch = "x86_64")]
pub use filter::{install, take_listener};
#[cfg(target_arch = "x86_64")]
pub use keeper::Clock;
#[cfg(target_arch = "x86_64")]
pub use probe::program as probe;
pub use reading::Reading;
pub use shift::{Rate, Shift};
#[cfg(target_arch = "x86_64")]
pub use start::{start, trial};
