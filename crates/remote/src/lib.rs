//! Faults on machines that exist, each made of four commands: what strikes, what undoes it, what shows that it stands, and
//! what shows that it is gone.
//!
//! Owns the files that hold such commands ([`command_file`]), the ways to run them on a machine ([`transport`]; [`channel`] for a
//! program that is spoken to for long), what makes
//! sure that they are undone ([`journal`], [`timer`], [`heal`]) and what was seen of them ([`receipt`]). The files, their
//! parameters and quoting are pure. Which machines there are, and when what is struck, is the caller's.

pub mod channel;
pub mod command_file;
pub mod heal;
pub mod journal;
pub mod language;
pub mod looks;
pub mod parameter;
pub mod permit;
pub mod quoting;
mod read;
pub mod receipt;
mod shipped;
pub mod strike;
pub mod timer;
pub mod transport;

pub use channel::Channel;
pub use command_file::{CommandFile, FillError, Filled};
pub use journal::Journal;
pub use permit::Permit;
pub use read::read;
pub use receipt::Receipt;
pub use shipped::{named, shipped};
pub use transport::{Reach, Transport};
