//! How the fabric runs, whatever it carries.

use std::time::Duration;

/// How the fabric runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Where chance begins: the same seed and the same packets meet the same fates.
    pub seed: u64,
    /// How long to look for packets without sleeping: a shorter way for them, for a processor that is never idle.
    pub busy_poll: Duration,
}
