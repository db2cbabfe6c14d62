//! What passes between the outer process and the lab's supervisor: orders in, news out; JSON, one message a line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use history::{Event, Verdict};
use serde::{Deserialize, Serialize};

use crate::planted::Planted;

/// Everything the supervisor needs, sent as its first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// Holdfast's version.
    pub holdfast: String,
    /// The resolved scenario as YAML.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The run directory, absolute.
    pub run_directory: PathBuf,
    /// Name of the run, unique on this machine while it lasts.
    pub run_name: String,
    /// The database's programs.
    pub installation: InstallationOrders,
    /// Facts about the machine.
    pub machine: BTreeMap<String, String>,
    /// Faults are announced but not carried out: shows that a run whose faults have no effect is not passed.
    pub prevent_faults: bool,
    /// Lies planted by a test; empty in every honest run.
    #[serde(default)]
    pub planted: Planted,
    /// Leave the lab up at the end until told to stop.
    pub keep: bool,
    /// What packets are to be written down of, by name.
    #[serde(default)]
    pub captures: Vec<String>,
}

/// The database's programs, as found outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallationOrders {
    /// The folder of its programs.
    pub bin: PathBuf,
    /// Its version.
    pub version: String,
    /// How it was come by, in words.
    pub origin: String,
    /// Where its libraries are, when they are not found by themselves.
    pub library_path: Option<PathBuf>,
    /// The folder that holds all of it.
    pub root: PathBuf,
    /// Whether nodes must be shown that folder under another path, because their user cannot reach it.
    pub shown: bool,
}

/// The line that asks a run to end early, in order.
pub const INTERRUPT: &str = "interrupt";

/// What the supervisor says while it works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "kebab-case")]
pub enum News {
    /// Something happened; it stands in `events.jsonl` as well.
    Event {
        /// What.
        #[serde(flatten)]
        event: Event,
    },
    /// How the loads are doing, once a second.
    Pulse(Pulse),
    /// The lab is kept up for a person to look around.
    Kept {
        /// The nodes that have power.
        nodes: Vec<String>,
        /// Hosts, and places where clients stand.
        others: Vec<String>,
    },
    /// The run is over and its result written.
    Finished {
        /// Its verdict.
        verdict: Verdict,
    },
    /// The lab could not do its job.
    Failed {
        /// Why.
        why: String,
    },
}

/// How the loads are doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pulse {
    /// The second just over.
    pub t_s: u64,
    /// Seconds the whole schedule takes.
    pub of_s: u64,
    /// The phase.
    pub phase: String,
    /// Faults standing, in words.
    pub standing: Vec<String>,
    /// Each load.
    pub loads: Vec<LoadPulse>,
}

/// How one load is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPulse {
    /// Its name.
    pub load: String,
    /// Transactions in that second.
    pub transactions: u64,
    /// Errors in that second.
    pub errors: u64,
    /// 99th percentile of the transaction's latency in that second, microseconds.
    pub p99_us: u64,
}
