//! What happened during a run, one JSON line each (`events.jsonl`), in the order it happened.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AgentFacts, FaultId, Interference, LeadersAtOnce, MigrationFacts, PlatformAction, RunFacts, Stall,
    Verdict,
};

/// Whether a receipt shows what it was asked to show.
pub type ReceiptVerdict = Verdict;

/// Independent evidence that a fault took effect, or that it healed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// `pass`: shown; `fail`: shown not to be so; `unknown`: could not be determined.
    pub verdict: ReceiptVerdict,
    /// What was looked at and what was seen, one sentence each, with figures.
    pub evidence: Vec<String>,
}

impl Receipt {
    /// Leaves it in doubt, and says why, where it is a failure that something else may explain.
    pub fn doubt_failure(&mut self, may_be_explained: bool, why: impl FnOnce() -> String) {
        if may_be_explained && self.verdict == ReceiptVerdict::Fail {
            self.verdict = ReceiptVerdict::Unknown;
            self.evidence.push(why());
        }
    }
}

/// The round trip between two places: what was asked of the network and what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Where it begins and ends.
    pub from: String,
    /// Where it turns.
    pub to: String,
    /// The sum of the delays both ways that the scenario asks for, microseconds.
    pub asked_us: u64,
    /// The median measured, microseconds; null when no answer came.
    pub measured_us: Option<u64>,
    /// Whether a partition is asked for between the two, one way or both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// One event, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds on the run's clock (0 = first load; boot is before, so negative).
    pub t_s: f64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// First line of every run.
    RunStarted {
        /// All that is known beforehand.
        facts: Box<RunFacts>,
    },
    /// A step of preparation, for a person to read.
    Progress {
        /// What is being done.
        what: String,
    },
    /// The lab and the database are up.
    LabUp {
        /// Wall seconds from the start of the lab to the database's first quorum write.
        boot_s: f64,
        /// CPU seconds spent by then, by part.
        cpu_seconds: BTreeMap<String, f64>,
        /// Whether the nodes' volumes were returned to a snapshot, and the database started again from it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_snapshot: bool,
    },
    /// Round trips between nodes and clients' places, measured from inside.
    RoundTrips {
        /// At which moment: `before the load`, or a fault's number and what it was about to show.
        occasion: String,
        /// Every pair measured.
        pairs: Vec<RoundTrip>,
    },
    /// A phase begins.
    Phase {
        /// As the schedule names it: `baseline`.
        name: String,
        /// Its planned length, seconds.
        for_s: f64,
    },
    /// A fault was asked for.
    FaultAsked {
        /// Its number in the run, from 0.
        fault: FaultId,
        /// The word of a scenario: `power-off`.
        kind: String,
        /// What it was aimed at, as written: `host: leader`.
        target: String,
        /// What that turned out to be: paths of the hosts hit.
        hits: Vec<String>,
        /// Nodes that ran there.
        nodes: Vec<String>,
    },
    /// A fault took effect, or its receipt says it did not.
    FaultTookEffect {
        /// As it was asked for.
        fault: FaultId,
        /// What shows it, or shows that it did not.
        receipt: Receipt,
    },
    /// A fault was healed.
    FaultHealed {
        /// As it was asked for.
        fault: FaultId,
        /// What shows it, or shows that something is left of it.
        receipt: Receipt,
    },
    /// Marks that were written on a node's volume before a power-off were looked for after it.
    Canary {
        /// The power-off's number.
        fault: FaultId,
        /// What they show of what the volume kept and lost.
        receipt: Receipt,
    },
    /// A node stopped being there.
    NodeDown {
        /// As `n1`.
        node: String,
        /// Path of the host that it ran on.
        host: String,
    },
    /// A node is there (again).
    NodeUp {
        /// As `n1`.
        node: String,
        /// Path of the host that it runs on now.
        host: String,
    },
    /// A node has moved to another host while it ran, or was to and has not.
    Migration {
        /// All that is known of it.
        facts: Box<MigrationFacts>,
    },
    /// The platform or an operator acted.
    Platform {
        /// What it did.
        action: PlatformAction,
        /// The node it concerns.
        node: String,
        /// What was done, for a person to read.
        what: String,
    },
    /// A node's volume is served from a component on another host now.
    VolumeMoved {
        /// Whose volume it is; it may run elsewhere than either component.
        node: String,
        /// Path of the host whose component serves.
        host: String,
        /// Why service moved, for a person to read.
        why: String,
    },
    /// Another node takes the writes now.
    Leader {
        /// The new leader.
        node: String,
    },
    /// The node that led before leads again, and for some time nobody did.
    LeaderAgain {
        /// The old leader.
        node: String,
        /// For so many seconds no node said that it led, to a look.
        without_s: f64,
    },
    /// Several nodes said that they led, and do so no more, or the run has ended.
    LeadersAtOnce {
        /// Who, and for how long.
        seen: LeadersAtOnce,
    },
    /// Nodes that elect were asked who leads until the loads had ended.
    LeadersMonitored {
        /// Times that another node came to lead since the first answer.
        changes: u64,
        /// Longest time in which it was not known who leads, or that nobody does, seconds: what changed and changed back in it was
        /// not seen.
        longest_pause_s: f64,
    },
    /// The first operation that was sent after a fault took effect and succeeded.
    FirstSuccess {
        /// The fault's number.
        fault: FaultId,
        /// As the scenario names it.
        load: String,
        /// Seconds after the fault took effect.
        after_s: f64,
    },
    /// A doubt about the measurement.
    Warning {
        /// What is doubtful.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A load ended though nobody told it to: a defect of the load generator, not of the database.
    LoadEnded {
        /// As the scenario names it.
        load: String,
        /// The load generator's error, one line that names the load.
        why: String,
    },
    /// An agent is lost: the process on another machine that did a part of a load.
    AgentLost {
        /// As the scenario names it.
        agent: String,
        /// The load that it did a part of.
        load: String,
        /// How it showed.
        why: String,
    },
    /// An agent's part in the run, when its load has ended.
    Agent {
        /// All that is known of it.
        facts: Box<AgentFacts>,
    },
    /// The final read of a load's data did not happen.
    FinalReadMissed {
        /// The load whose writes stay unread.
        load: String,
        /// The nodes that were asked.
        nodes: Vec<String>,
        /// Why it did not happen.
        why: String,
    },
    /// Several nodes led or may have led, each when it was asked by itself, when the final state of the loads' data was read.
    LeadersAtTheEnd {
        /// The names of those that said so, in order.
        nodes: Vec<String>,
        /// The names of those that did not answer, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        silent: Vec<String>,
    },
    /// A node has lost its power, and what was not synced could not be taken back from its volume: the content is in doubt.
    RollbackFailed {
        /// Whose volume it is.
        node: String,
        /// Its volume, or the component of it, for a person to read.
        volume: String,
        /// What the lab's own disk answered.
        why: String,
    },
    /// Parts of the lab stood still, from this event's time on.
    LabStall {
        /// Which, and for how long.
        stall: Stall,
    },
    /// Somebody outside the schedule stopped or killed a process of a node.
    Interference {
        /// What was done.
        interference: Interference,
    },
    /// A check has been made.
    Check {
        /// As `holdfast list checks` has it.
        name: String,
        /// Whether the history passes it.
        verdict: Verdict,
        /// What it saw, as the report tells it.
        explanation: String,
    },
    /// The run was interrupted (a signal), or could not go on.
    Interrupted {
        /// What interrupted it, a clause without a full stop.
        why: String,
    },
    /// The lab, or the process of a run on a cluster that exists, could not do its job. There is no result.
    RunFailed {
        /// The error with its causes, one line.
        why: String,
    },
    /// Last line of a run that ended in order.
    RunEnded {
        /// Of the run as a whole; the exit code follows from it.
        verdict: Verdict,
    },
}
