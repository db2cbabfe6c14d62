//! What `result.json` says of the nodes' volumes.

use serde::{Deserialize, Serialize};

/// A node's volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VolumeResult {
    /// `n1` is the first.
    pub node: String,
    /// Mirrored components.
    pub replicas: u32,
    /// Bytes left to copy, over time.
    pub resync: Vec<ResyncResult>,
    /// When a sync is acknowledged: `sync`, `semi`, `async`; empty where the volume is not mirrored.
    #[serde(default)]
    pub acknowledge: String,
    /// Its storage class.
    #[serde(default)]
    pub class: String,
    /// Its components at the end.
    #[serde(default)]
    pub components: Vec<ComponentResult>,
    /// How far the furthest live component was behind, in each second.
    #[serde(default)]
    pub lag: Vec<LagResult>,
    /// Bytes copied while loads ran, so that components caught up.
    #[serde(default)]
    pub copied_bytes: u64,
    /// Syncs while loads ran; none where it is not mirrored, or there were none.
    #[serde(default)]
    pub syncs: Option<SyncsResult>,
    /// Each time that a component caught up while loads ran.
    #[serde(default)]
    pub catch_ups: Vec<CatchUpResult>,
    /// How it was opened, boot by boot, and each time service moved; the last one still open in the end.
    #[serde(default)]
    pub openings: Vec<OpeningResult>,
}

/// Syncs of a mirrored volume: how long each took where the volume is served, and how long it then waited for the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncsResult {
    /// How many were acknowledged.
    pub count: u64,
    /// Until the serving component had made it durable, microseconds: median.
    pub here_us_p50: u64,
    /// The 99th percentile of that.
    pub here_us_p99: u64,
    /// From then until it was acknowledged, microseconds: mean.
    pub beyond_us_mean: f64,
    /// The median of that.
    pub beyond_us_p50: u64,
    /// The 99th percentile of that.
    pub beyond_us_p99: u64,
    /// The shortest round trip between the hosts of the serving component and of the furthest other, microseconds, as the
    /// kernel saw it on their connection.
    pub round_trip_us: Option<u64>,
}

/// One time that a component caught up with what had changed while it was away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CatchUpResult {
    /// Path of the component's host.
    pub component: String,
    /// From when, to a tenth of a second.
    pub from_s: f64,
    /// To when.
    pub to_s: f64,
    /// Until it was complete, or the run ended.
    pub copied_bytes: u64,
    /// Whether it was up to date in the end.
    pub complete: bool,
    /// Latencies of the loads' transactions during the catch-up; absent if it took less than a second.
    pub loads: Vec<MeanwhileResult>,
}

/// A load's transactions while something else went on: over the seconds of which at least half lies within that, and the one in
/// which it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeanwhileResult {
    /// As the scenario names it.
    pub load: String,
    /// How many seconds.
    pub seconds: u64,
    /// Transactions that succeeded in them.
    pub transactions: u64,
    /// Their median, microseconds; zero where none succeeded.
    pub latency_us_p50: u64,
    /// Their 99th percentile.
    pub latency_us_p99: u64,
    /// The median in the baseline; absent without one, or where nothing succeeded in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_us_p50: Option<u64>,
    /// The 99th percentile in the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_us_p99: Option<u64>,
}

/// A mirrored volume as it was open for one boot of its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpeningResult {
    /// Path of the node's host.
    pub host: String,
    /// Path of the host of the component that served; another than the node's where the volume was open over the network.
    pub component: String,
    /// What was asked over the network, by kind; nothing where both hosts are the same.
    pub asked: Vec<RequestsResult>,
    /// How often a connection between the two broke, or could not be had.
    pub broken: u64,
    /// What was given up, where the component was promoted by force: a sentence.
    #[serde(default)]
    pub forced: Option<String>,
    /// Why service moved to the component while the node ran: a sentence.
    #[serde(default)]
    pub moved: Option<String>,
    /// How long the component's host had not been reached when the volume counted as lost on the node's host, and the node was
    /// switched off; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_after_s: Option<f64>,
}

/// Requests of one kind over the network, each with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestsResult {
    /// What they did: `read`, `write`, `sync`, or `names` for names and attributes.
    pub work: String,
    /// How many were answered.
    pub count: u64,
    /// How long they took, microseconds: there, being carried out, and back.
    pub latency_us_mean: f64,
    /// Their median.
    pub latency_us_p50: u64,
    /// Their 99th percentile.
    pub latency_us_p99: u64,
}

/// A component of a mirrored volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComponentResult {
    /// Path of its host.
    pub host: String,
    /// Its state at the end: `serving`, `live`, `catching up`, `away`, `given up`, `idle`.
    pub role: String,
    /// Bytes sent to it as changes.
    pub replicated_bytes: u64,
    /// Bytes sent to it to catch up.
    pub copied_bytes: u64,
    /// Bytes it lacks.
    pub bytes_left: u64,
}

/// How far a component was behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LagResult {
    /// When.
    pub t_s: f64,
    /// Bytes under way to it.
    pub bytes: u64,
    /// Age of the oldest of them.
    pub lag_s: f64,
}

/// Bytes left to copy at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResyncResult {
    /// When.
    pub t_s: f64,
    /// Not yet copied at that moment.
    pub bytes_left: u64,
}
