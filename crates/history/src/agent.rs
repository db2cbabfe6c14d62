//! What is known of an agent, the load generator on another machine: whose clients it had, and how far its clock can be trusted.

use serde::{Deserialize, Serialize};

/// How far an agent's clock was ahead of the conductor's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// So much, microseconds; both clocks count from the start of their machine. Negative where it was behind.
    pub ahead_us: f64,
    /// More or less at most so much, microseconds.
    pub uncertainty_us: f64,
}

/// An agent's clock over a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// Before the run. The agent's times are on the conductor's clock by this.
    pub before: Option<ClockOffset>,
    /// After the run; absent where the agent could not be asked any more.
    pub after: Option<ClockOffset>,
    /// How far the agent's times may be off, microseconds; absent where nobody knows.
    pub off_by_at_most_us: Option<f64>,
}

/// An agent that was lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentLoss {
    /// When that was noticed, seconds on the run's clock.
    pub at_s: f64,
    /// Until when its operations are recorded, seconds.
    pub recorded_until_s: f64,
    /// How it showed.
    pub why: String,
    /// Whether the run went on without it, as the scenario says.
    pub went_on: bool,
}

/// An agent's part in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Its name in the scenario.
    pub agent: String,
    /// The machine, as its way names it.
    pub host: String,
    /// The load that it did a part of.
    pub load: String,
    /// The number of its first client.
    pub first_client: u64,
    /// The most clients it had at once.
    pub clients: u32,
    /// How far its clock is from that of the machine which conducted the run.
    pub clock: ClockFacts,
    /// How long after the others it began, seconds.
    pub late_s: f64,
    /// CPU time of its load, seconds; absent where it did not tell.
    pub cpu_s: Option<f64>,
    /// Present when it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<AgentLoss>,
}
