//! The words a run is recorded in: operations with their outcomes, events of the run, facts about the site.
//!
//! Owns the vocabulary and its form on disk. Judges nothing: that is `check`'s and `measure`'s work.

pub mod agent;
pub mod edn;
pub mod event;
pub mod event_log;
pub mod event_sink;
pub mod facts;
pub mod fault_id;
pub mod key;
pub mod kubernetes;
pub mod leadership;
pub mod lines;
pub mod migration;
pub mod operation;
pub mod place_id;
pub mod platform_action;
pub mod reader;
mod seconds;
pub mod step;
pub mod vigil;
pub mod visible;
pub mod whole_file;
pub mod writer;

pub use agent::{AgentFacts, AgentLoss, ClockFacts, ClockOffset};
pub use event::{Event, EventKind, Receipt, ReceiptVerdict, RoundTrip};
pub use event_log::{EventLog, EventWriteError, EventWriter, read_events};
pub use event_sink::EventSink;
pub use facts::{
    BASELINE, EdgeFacts, HostFacts, LinkFacts, LoadFacts, NodeFacts, PhaseFacts, RunFacts, SiteFacts, WARM_UP,
};
pub use fault_id::FaultId;
pub use key::Key;
pub use kubernetes::{KubernetesFacts, PodFacts, PodVolumeFacts, RecoveryPhase, RecoveryStep};
pub use leadership::LeadersAtOnce;
pub use lines::ReadError;
pub use migration::{MigratedConnections, MigrationFacts, MigrationRound};
pub use operation::{
    Action, ConditionFound, ErrorClass, ErrorCounts, FirstError, LEDGER_SEQUENCE_BITS, NO_WRITE, Operation,
    Outcome, TOO_MANY_CONNECTIONS,
};
pub use place_id::{Each, HostId, NodeId, PerHost, PerNode, PlaceId};
pub use platform_action::PlatformAction;
pub use reader::HistoryReader;
pub use step::Step;
pub use vigil::{Deed, Interference, LabPart, Stall};
pub use writer::{HistoryWriter, LEDGER_READ_VALUES_MAX, WriteError};

/// How a run, a check, an expectation or a receipt came out. On doubt, [`Verdict::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything asked was shown to hold.
    Pass,
    /// It could not be shown either way.
    Unknown,
    /// Something asked was shown not to hold.
    Fail,
}

impl Verdict {
    /// The verdict of several taken together: one failure fails, else one doubt leaves doubt.
    #[must_use]
    pub fn and(self, other: Verdict) -> Verdict {
        self.max(other)
    }

    /// The process exit code that scripts rely on: 0 pass, 1 fail, 2 unknown.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Pass => 0,
            Verdict::Fail => 1,
            Verdict::Unknown => 2,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Verdict::Pass => "pass",
            Verdict::Unknown => "unknown",
            Verdict::Fail => "fail",
        })
    }
}
