//! What is said between an agent and whoever commands it: orders one way, news the other, one JSON value a line.
//!
//! An agent speaks first. Everything secret travels in these lines, never on a command line.

use history::FaultId;
use serde::{Deserialize, Serialize};

use crate::batch_words::BatchWords;
use crate::plan_words::PlanWords;

/// The longest line that is read. A second of a busy load is some megabytes.
pub(crate) const LONGEST_LINE_BYTES: u64 = 256 << 20;

/// To an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Tell your clock.
    Ping {
        /// Comes back with the answer.
        number: u64,
    },
    /// Connect the clients of this load, and wait.
    Load {
        /// The load.
        plan: Box<PlanWords>,
    },
    /// The run's clock shows 0 when yours shows this: clients begin then.
    Begin {
        /// Nanoseconds on the agent's clock.
        zero_ns: u64,
    },
    /// A fault took effect: tell the first success after it.
    Mark {
        /// The fault to which the success is laid.
        fault: FaultId,
        /// When, seconds on the run's clock.
        at_s: f64,
    },
    /// Finish what is under way, tell the rest, and end the load.
    Stop,
}

/// From an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "kebab-case")]
pub(crate) enum News {
    /// It waits for orders.
    Ready {
        /// Holdfast's version there.
        holdfast: String,
    },
    /// What its clock shows when it was asked.
    Pong {
        /// As asked.
        number: u64,
        /// Nanoseconds.
        at_ns: u64,
    },
    /// It lives.
    Alive {
        /// Clients with a session.
        connected: usize,
        /// The first error that kept a client from connecting.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<Refusal>,
    },
    /// The order to begin was there this long after its moment.
    Begun {
        /// Nanoseconds; 0 when it was there in time.
        late_ns: u64,
    },
    /// Its load's thread, or the whole of it, stood still.
    Stalled {
        /// From this moment of its clock, nanoseconds.
        from_ns: u64,
        /// To this one.
        to_ns: u64,
    },
    /// A second of the load.
    Batch(Box<BatchWords>),
    /// The load cannot be done.
    Refused {
        /// The error's text, a clause without a full stop.
        why: String,
    },
    /// The load has ended, and everything it recorded was told.
    Ended {
        /// Why, when nobody had told it to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Whether all that its clients did was recorded.
        recorded: bool,
        /// CPU time that it took, microseconds.
        cpu_us: u64,
    },
}

/// What kept a client from connecting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The server's code, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// What was said.
    pub(crate) text: String,
}
