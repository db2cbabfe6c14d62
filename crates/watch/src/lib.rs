//! What watches a run while loads run: whether the lab lives and strangers touch it, what links and hosts do, what it all
//! costs in CPU time, and the packets that somebody wants written down.
//!
//! Owns the looking, and the files that are filled by it. Changes nothing of what it looks at; what follows from what was
//! seen is `verdict`'s business.

mod busy_share;
pub mod captures;
mod each_second;
mod file_watch;
mod host_watch;
mod link_watch;
pub mod totals;
mod usage;
mod vigil;

pub use busy_share::{busy_since, busy_ticks};
pub use file_watch::WatchError;
pub use host_watch::HostWatch;
pub use link_watch::LinkWatch;
pub use usage::Usage;
pub use vigil::{Vigil, Watch, Watched};
