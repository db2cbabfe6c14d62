//! What `result.json` says of a fault.

use history::{Event, EventKind, Receipt, RecoveryStep, RunFacts, Verdict};
use measure::recovery::{Incomparable, SUSTAINED_SECONDS_MIN};
use serde::{Deserialize, Serialize};

use crate::lost_writes::LostWrites;

/// A limit that lies below this share of the baseline is told with its value: "95 %" would be wrong.
const LOWERED_SHARE: f64 = 0.9;

/// A fault: what was requested, what happened, what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultResult {
    /// Its kind: `power-off`.
    pub kind: String,
    /// What it was aimed at, as written.
    pub target: String,
    /// Paths of the hosts hit; of a fault of the network each way, `FROM -> TO`.
    pub hits: Vec<String>,
    /// Nodes that ran there.
    pub nodes: Vec<String>,
    /// When it was requested, or its wait for a leader ended.
    pub asked_s: f64,
    /// When it took effect, by its receipt; null if it never did.
    pub took_effect_s: Option<f64>,
    /// When it was healed; null when it was not.
    pub healed_s: Option<f64>,
    /// Evidence of effect, of what the volumes kept and lost, and of healing, together.
    pub receipt: Receipt,
    /// The lab lost data that a node had synced, so that what is missing says nothing about the database.
    #[serde(default)]
    pub lab_lost_synced: bool,
    /// The longest time without a success while operations were due, of all loads, until the next fault or the end of
    /// the loads; null if that is not known of each load.
    #[serde(default)]
    pub gap_s: Option<f64>,
    /// Whole seconds below 50 % of the baseline in the same stretch, of the load that has most; null as above.
    #[serde(default)]
    pub below_50_percent_s: Option<f64>,
    /// The same below 95 %.
    #[serde(default)]
    pub below_95_percent_s: Option<f64>,
    /// Whether the longest time without a success of any load was more than its baseline has, too.
    #[serde(default)]
    pub interrupted: Option<bool>,
    /// Times to recover, of the load that took longest.
    pub recovery_s: RecoveryResult,
    /// Seconds from its effect until another node led, in the time that counts for this fault; absent where none did. Where nodes
    /// elect their leader themselves, until a look every 200 ms saw it; a node that does not answer holds a look up for a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_leader_s: Option<f64>,
    /// End of the time that counts for this fault: the next fault, or the end of the loads.
    #[serde(default)]
    pub charged_until_s: Option<f64>,
    /// What it did to each load.
    #[serde(default)]
    pub loads: Vec<FaultLoadResult>,
    /// Missing operations, of all loads: what seconds below 95 % fell short of the baseline.
    pub lost_operations: Option<f64>,
    /// Acknowledged writes missing at the end that were acknowledged during this fault, or before it and during no other.
    pub lost_writes: Option<u64>,
    /// Whether that is only what is known: a check could not tell of all, so that there may be more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_writes_at_least: bool,
    /// Throughput during the fault, as a share of the baseline's, of the load with the lowest; null if that is not known of
    /// each load.
    pub throughput_ratio_during: Option<f64>,
    /// How a pod recovered from it, in the order of time, as far as it was seen; empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<RecoveryStep>,
}

impl FaultResult {
    /// Whether the baseline of any load is so uneven that its mean is chance.
    #[must_use]
    pub fn has_uneven_baseline(&self) -> bool {
        self.loads.iter().any(FaultLoadResult::has_uneven_baseline)
    }

    /// The lost writes that are laid to it; none where that could not be told.
    #[must_use]
    pub fn lost(&self) -> Option<LostWrites> {
        self.lost_writes.map(|count| LostWrites::of(count, self.lost_writes_at_least))
    }

    /// A fault of which nothing is known but that it was asked for.
    #[must_use]
    pub fn asked(kind: &str, target: &str, asked_s: f64) -> FaultResult {
        FaultResult {
            kind: kind.to_owned(),
            target: target.to_owned(),
            hits: Vec::new(),
            nodes: Vec::new(),
            asked_s,
            took_effect_s: None,
            healed_s: None,
            lab_lost_synced: false,
            receipt: Receipt { verdict: Verdict::Unknown, evidence: Vec::new() },
            gap_s: None,
            below_50_percent_s: None,
            below_95_percent_s: None,
            interrupted: None,
            recovery_s: RecoveryResult::default(),
            new_leader_s: None,
            charged_until_s: None,
            loads: Vec::new(),
            lost_operations: None,
            lost_writes: None,
            lost_writes_at_least: false,
            throughput_ratio_during: None,
            phases: Vec::new(),
        }
    }

    /// The ways that a fault of the network hit: each pair of paths, from and to.
    pub fn ways(&self) -> impl Iterator<Item = (&str, &str)> {
        self.hits.iter().filter_map(|hit| hit.split_once(" -> "))
    }

    /// What sustained recovery takes at least where the next fault or the end of the loads came before it: what relapsed
    /// in the last moments may have come back for good just then.
    pub fn sustained_at_least_s(&self) -> Option<f64> {
        let charged_s = self.charged_until_s? - self.took_effect_s?;
        Some((charged_s - SUSTAINED_SECONDS_MIN as f64).max(0.0))
    }
}

impl FaultLoadResult {
    /// Whether its baseline has a second below 50 % of its own mean, so that the mean is chance.
    #[must_use]
    pub fn has_uneven_baseline(&self) -> bool {
        matches!(self.incomparable, Some(Incomparable::UnevenBaseline { .. }))
    }

    /// The share of the baseline below which a second counted as below 95 %, where the baseline's own spread lowered it to less
    /// than [`LOWERED_SHARE`].
    #[must_use]
    pub fn lowered_limit_share(&self) -> Option<f64> {
        let share = self.below_95_percent_per_s? / self.baseline_per_s.filter(|per_s| *per_s > 0.0)?;
        (share < LOWERED_SHARE).then_some(share)
    }
}

/// A figure of all loads together; nothing where one of them is not known, or there is none.
pub fn of_all(
    loads: &[FaultLoadResult],
    figure: impl Fn(&FaultLoadResult) -> Option<f64>,
    join: fn(f64, f64) -> f64,
) -> Option<f64> {
    loads.iter().map(figure).collect::<Option<Vec<f64>>>()?.into_iter().reduce(join)
}

/// A fault by its kind and its target, with a word between them: the target of a disk fault begins with its kind.
#[must_use]
pub fn fault_name(kind: &str, between: &str, target: &str) -> String {
    match target.strip_prefix(kind) {
        Some(rest) if rest.starts_with(' ') => target.to_owned(),
        _ => format!("{kind}{between}{target}"),
    }
}

/// Seconds from `effect_s` until an event, before `end_s`, said that another node leads than before it.
#[must_use]
pub fn new_leader_s(facts: &RunFacts, events: &[Event], (effect_s, end_s): (f64, f64)) -> Option<f64> {
    let leaders = || {
        events.iter().filter_map(|event| match &event.kind {
            EventKind::Leader { node } => Some((event.t_s, node.as_str())),
            _ => None,
        })
    };
    let first = facts.site.nodes.iter().find(|node| node.role == "leader").map(|node| node.name.as_str());
    let before = leaders().rfind(|(t_s, _)| *t_s < effect_s).map(|(_, node)| node).or(first);
    let mut after = leaders().filter(|(t_s, _)| (effect_s..end_s).contains(t_s));
    after.find(|(_, node)| before != Some(*node)).map(|(t_s, _)| t_s - effect_s)
}

/// Times to recover, in seconds after the fault took effect; null when it never happened in the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// First operation sent after the fault that succeeded; time in which nothing was due is left out.
    pub first_success: Option<f64>,
    /// End of the first whole second with at least 95 % of the baseline's throughput, whatever followed.
    pub back_to_95_percent: Option<f64>,
    /// End of the last relapse before the next fault or the end of the loads; 0 if there was none.
    #[serde(default)]
    pub sustained: Option<f64>,
}

/// What a fault did to one load until the next fault or the end of the loads. Unknown values are null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultLoadResult {
    /// As the scenario names it.
    pub load: String,
    /// The longest time without a success against what was due.
    pub gap_s: Option<f64>,
    /// When that began.
    pub gap_from_s: Option<f64>,
    /// Whether it had not ended when the loads did: it may have gone on.
    #[serde(default)]
    pub gap_is_open: bool,
    /// The longest time without a success in the baseline.
    pub baseline_gap_s: Option<f64>,
    /// Whether it is more than the baseline has, too.
    pub interrupted: Option<bool>,
    /// Whole seconds below 50 % of the baseline.
    pub below_50_percent_s: Option<f64>,
    /// Whole seconds below 95 % of the baseline.
    pub below_95_percent_s: Option<f64>,
    /// Whether the last of these seconds below 50 % is the last second that counts for the fault: more may have followed.
    #[serde(default)]
    pub below_50_percent_at_end: bool,
    /// The same below 95 %.
    #[serde(default)]
    pub below_95_percent_at_end: bool,
    /// The throughput below which a second counted as below 95 %, which allows for the baseline's own spread.
    pub below_95_percent_per_s: Option<f64>,
    /// Successes a second in the baseline, on average.
    #[serde(default)]
    pub baseline_per_s: Option<f64>,
    /// Where seconds below 50 % and 95 % are not known: why, with `why` one of `no-baseline`, `idle-baseline`,
    /// `short-baseline`, `uneven-baseline`, `other-demand`, `no-whole-second`, `not-recorded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomparable: Option<Incomparable>,
    /// Times to recover.
    pub recovery_s: RecoveryResult,
    /// Missing operations.
    pub lost_operations: Option<f64>,
    /// Throughput during the fault, as a share of the baseline's.
    pub throughput_ratio_during: Option<f64>,
    /// Throughput in its slowest whole second, as a share of the baseline's.
    #[serde(default)]
    pub throughput_ratio_lowest: Option<f64>,
}

#[cfg(test)]
mod tests {
    use history::{NodeFacts, SiteFacts};

    use super::*;

    #[test]
    fn a_fault_is_named_once() {
        let check = |kind, target, expected: &str| assert_eq!(fault_name(kind, " of ", target), expected);
        check("power-off", "host: leader", "power-off of host: leader");
        check("disk", "disk dc1/a/h2/d1: fails", "disk dc1/a/h2/d1: fails");
        check("process", "processes on n1", "process of processes on n1");
    }

    #[test]
    fn a_new_leader_is_another_node_than_before_the_fault_and_comes_in_its_time() {
        let node = |name: &str, role: &str| NodeFacts {
            name: name.to_owned(),
            host: "dc1/a/h1".to_owned(),
            address: "10.2.0.1".to_owned(),
            role: role.to_owned(),
        };
        let nodes = vec![node("n1", "leader"), node("n2", "follower")];
        let facts = RunFacts { site: SiteFacts { nodes, ..SiteFacts::default() }, ..RunFacts::default() };
        let leads = |t_s, node: &str| Event { t_s, kind: EventKind::Leader { node: node.to_owned() } };
        let events = [leads(13.5, "n2"), leads(20.0, "n2"), leads(34.0, "n1")];
        let of = |effect_s, end_s| new_leader_s(&facts, &events, (effect_s, end_s));
        assert_eq!(of(10.0, 30.0), Some(3.5));
        assert_eq!(of(10.0, 13.0), None, "it came after the next fault");
        assert_eq!(of(15.0, 30.0), None, "n2 led before");
        assert_eq!(of(15.0, 40.0), Some(19.0));
    }

    #[test]
    fn a_figure_is_read_as_it_was_written_to_the_last_digit() {
        for share in [0.494_303_242_769_500_44, 2.940_589_326_999_999_6, 0.516_382_390_615_519_4] {
            let written =
                FaultResult { throughput_ratio_during: Some(share), ..FaultResult::asked("disk", "x", 1.0) };
            let text = serde_json::to_string(&written).expect("written");
            assert_eq!(serde_json::from_str::<FaultResult>(&text).expect("read"), written);
        }
    }
}
