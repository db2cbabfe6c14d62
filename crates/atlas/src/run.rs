//! What the atlas keeps of a run.

use std::collections::BTreeMap;

use history::Verdict;
use results::losses::{self, LostWrites};
use results::{LoadResult, RunResult};
use serde::{Deserialize, Serialize};

/// One run of a cell: what is kept of its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub seed: u64,
    /// Holdfast's version.
    pub holdfast: String,
    /// The database's version; empty where a run was kept without it.
    #[serde(default)]
    pub engine_version: String,
    /// The machine, as in a run's facts: `cpu`, `cores`, `memory_bytes`, `kernel`, `volumes` ...
    #[serde(default)]
    pub machine: BTreeMap<String, String>,
    pub verdict: Verdict,
    /// Why it is what it is; empty when it passed.
    pub reasons: Vec<String>,
    /// Whether the longest time without a success was longer than before the fault.
    pub interrupted: Option<bool>,
    /// The longest time without a success, of all loads.
    pub gap_s: Option<f64>,
    /// Whether it had not ended when the loads did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gap_is_open: bool,
    /// From the fault's effect to the first success.
    #[serde(default)]
    pub first_success_s: Option<f64>,
    /// From the fault's effect to 95 % of the baseline's throughput.
    #[serde(default)]
    pub back_to_95_percent_s: Option<f64>,
    /// From the fault's effect until the platform had made another node the leader.
    #[serde(default)]
    pub new_leader_s: Option<f64>,
    /// Until throughput was at 95 % of the baseline for good.
    pub sustained_s: Option<f64>,
    /// Whether a load's throughput could not be held against its baseline, so that a time that is missing is not known to be
    /// `never`; none where a run was kept without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_incomparable: Option<bool>,
    /// Of the checks that count lost writes.
    pub acknowledged_writes: Option<u64>,
    /// Acknowledged writes that are missing.
    pub lost_writes: Option<u64>,
    /// Whether these are only those that are known: a check could not tell of all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_writes_at_least: bool,
    /// Of all loads, by class.
    pub errors: BTreeMap<String, u64>,
    /// Each check's verdict.
    pub checks: BTreeMap<String, Verdict>,
    /// Each load before the fault.
    #[serde(default)]
    pub loads: Vec<LoadFigures>,
    /// Doubts about the measurement, such as a busy machine; none where a run was kept without them.
    #[serde(default)]
    pub warnings: Option<usize>,
    /// From the start of the lab until the database accepted a write; none where it began with a snapshot of another run's volumes, or
    /// was kept without it.
    #[serde(default)]
    pub boot_s: Option<f64>,
    /// CPU time of everything, the lab included.
    pub cpu_s: f64,
    /// That of the nodes' processes alone.
    #[serde(default)]
    pub database_cpu_s: Option<f64>,
    /// The most memory that these held at once while loads ran, bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
}

/// How a load fared in the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    pub name: String,
    /// Transactions a second.
    pub throughput_per_s: f64,
    /// Median latency of a transaction, microseconds.
    pub latency_p50_us: u64,
    /// 99th percentile.
    pub latency_p99_us: u64,
}

impl LoadFigures {
    /// Those of a load's baseline; none where there is none, or nothing succeeded in it.
    #[must_use]
    pub fn of(load: &LoadResult) -> Option<LoadFigures> {
        let baseline = load.baseline()?;
        let measured = &baseline.measured;
        (measured.transactions > 0).then(|| LoadFigures {
            name: load.name.clone(),
            throughput_per_s: measured.throughput_per_s,
            latency_p50_us: measured.latency_us.p50,
            latency_p99_us: measured.latency_us.p99,
        })
    }
}

impl Run {
    /// Its lost writes; none where that could not be told.
    #[must_use]
    pub fn lost(&self) -> Option<LostWrites> {
        self.lost_writes.map(|count| LostWrites::of(count, self.lost_writes_at_least))
    }

    /// Whether a time to recover that is missing is known never to have come within the run.
    #[must_use]
    pub fn never_recovered(&self) -> bool {
        self.gap_is_open || self.is_incomparable == Some(false)
    }

    /// What a result says. The fault of an atlas run is its first; a run without one has nothing to tell of it.
    #[must_use]
    pub fn of(result: &RunResult) -> Run {
        let fault = result.faults.first();
        let mut errors = BTreeMap::new();
        for (class, count) in result.loads.iter().flat_map(|load| &load.measured.errors) {
            *errors.entry(class.clone()).or_default() += count;
        }
        let counting: Vec<Option<u64>> =
            losses::counting_lost_writes(&result.checks).map(|check| check.acknowledged).collect();
        let lost = losses::lost_writes(&result.checks);
        Run {
            seed: result.seed,
            holdfast: result.holdfast.clone(),
            engine_version: result.facts.engine_version.clone(),
            machine: result.facts.machine.clone(),
            verdict: result.verdict,
            reasons: if result.verdict == Verdict::Pass { Vec::new() } else { result.reasons.clone() },
            interrupted: fault.and_then(|fault| fault.interrupted),
            gap_s: fault.and_then(|fault| fault.gap_s),
            gap_is_open: fault.is_some_and(|fault| fault.loads.iter().any(|load| load.gap_is_open)),
            first_success_s: fault.and_then(|fault| fault.recovery_s.first_success),
            back_to_95_percent_s: fault.and_then(|fault| fault.recovery_s.back_to_95_percent),
            new_leader_s: fault.and_then(|fault| fault.new_leader_s),
            sustained_s: fault.and_then(|fault| fault.recovery_s.sustained),
            is_incomparable: fault.map(|fault| fault.loads.iter().any(|load| load.incomparable.is_some())),
            acknowledged_writes: counting
                .into_iter()
                .collect::<Option<Vec<u64>>>()
                .and_then(|counts| (!counts.is_empty()).then(|| counts.into_iter().sum())),
            lost_writes: lost.map(LostWrites::known),
            lost_writes_at_least: lost.is_some_and(LostWrites::is_at_least),
            errors,
            checks: result.checks.iter().map(|check| (check.name.clone(), check.verdict)).collect(),
            loads: result.loads.iter().filter_map(LoadFigures::of).collect(),
            warnings: Some(result.lab.warnings.len()),
            boot_s: result.lab.boot_s,
            cpu_s: result.lab.cpu_seconds.values().sum(),
            database_cpu_s: result.lab.cpu_seconds.get("database").copied(),
            memory_bytes: result.lab.memory_bytes_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use history::RunFacts;
    use results::{CheckResult, PhaseResult};
    use serde_json::json;

    use super::*;

    fn facts() -> RunFacts {
        RunFacts {
            holdfast: "0.1.0".to_owned(),
            scenario: "atlas-etcd-leader-off".to_owned(),
            seed: 3,
            engine: "etcd".to_owned(),
            engine_version: "3.4.23".to_owned(),
            machine: [("cores".to_owned(), "2".to_owned())].into(),
            ..RunFacts::default()
        }
    }

    fn load(name: &str, errors: &[(&str, u64)]) -> LoadResult {
        let mut load = LoadResult { name: name.to_owned(), ..LoadResult::default() };
        load.measured.errors = errors.iter().map(|(class, count)| ((*class).to_owned(), *count)).collect();
        let mut baseline = PhaseResult { name: history::BASELINE.to_owned(), ..PhaseResult::default() };
        baseline.measured.transactions = 80;
        baseline.measured.throughput_per_s = 10.0;
        (baseline.measured.latency_us.p50, baseline.measured.latency_us.p99) = (900, 4_000);
        load.phases = vec![baseline];
        load
    }

    fn result() -> RunResult {
        let mut result = RunResult::blank(facts());
        result.verdict = Verdict::Fail;
        result.reasons = vec!["2 acknowledged writes are lost".to_owned()];
        let fault = json!({
            "kind": "power-off", "target": "host: leader", "hits": [], "nodes": [], "asked_s": 11.0, "took_effect_s": 11.1,
            "healed_s": 21.0, "receipt": { "verdict": "pass", "evidence": [] }, "gap_s": 8.25, "interrupted": true,
            "new_leader_s": 3.5,
            "recovery_s": { "first_success": 8.5, "back_to_95_percent": null, "sustained": 9.5 },
            "lost_operations": null, "lost_writes": 2, "throughput_ratio_during": null,
        });
        result.faults = vec![serde_json::from_value(fault).expect("a fault")];
        result.checks = vec![
            CheckResult::new("append", Verdict::Pass, ""),
            CheckResult {
                acknowledged: Some(100),
                lost: Some(2),
                ..CheckResult::new("ledger", Verdict::Fail, "")
            },
        ];
        result.loads =
            vec![load("ledger", &[("timeout", 4)]), load("append", &[("timeout", 1), ("refused", 2)])];
        (result.lab.boot_s, result.lab.memory_bytes_max) = (Some(2.5), Some(90_000_000));
        result.lab.cpu_seconds = [("database".to_owned(), 10.0), ("disk".to_owned(), 2.5)].into();
        result
    }

    #[test]
    fn a_run_is_what_its_result_says_and_errors_are_added_over_loads() {
        let run = Run::of(&result());
        assert_eq!((run.seed, run.verdict, run.reasons.len()), (3, Verdict::Fail, 1));
        assert_eq!((run.gap_s, run.first_success_s, run.sustained_s), (Some(8.25), Some(8.5), Some(9.5)));
        assert_eq!((run.back_to_95_percent_s, run.new_leader_s), (None, Some(3.5)));
        assert_eq!((run.acknowledged_writes, run.lost_writes, run.cpu_s), (Some(100), Some(2), 12.5));
        assert_eq!(
            (run.boot_s, run.database_cpu_s, run.memory_bytes),
            (Some(2.5), Some(10.0), Some(90_000_000))
        );
        assert_eq!(run.errors, BTreeMap::from([("refused".to_owned(), 2), ("timeout".to_owned(), 5)]));
        assert_eq!((run.engine_version.as_str(), run.machine["cores"].as_str()), ("3.4.23", "2"));
        assert_eq!((run.loads.len(), run.loads[0].latency_p99_us), (2, 4_000));
    }

    #[test]
    fn a_run_without_a_fault_or_a_count_says_nothing_of_them() {
        let mut result = result();
        (result.faults, result.checks) = (Vec::new(), Vec::new());
        result.loads[0].phases.clear();
        let run = Run::of(&result);
        assert_eq!((run.interrupted, run.gap_s, run.lost_writes), (None, None, None));
        assert_eq!((run.acknowledged_writes, run.loads.len()), (None, 1));
    }

    #[test]
    fn losses_of_which_a_check_could_not_tell_all_are_kept_as_the_least() {
        assert!(!Run::of(&result()).lost_writes_at_least);
        let mut result = result();
        let of = |name: &str, lost| CheckResult {
            acknowledged: Some(100),
            lost,
            ..CheckResult::new(name, Verdict::Unknown, "")
        };
        result.checks = vec![of("tpcb-sums", Some(3)), of("last-writes", None)];
        let run = Run::of(&result);
        assert_eq!((run.lost_writes, run.lost_writes_at_least), (Some(3), true));
    }

    #[test]
    fn a_run_that_was_kept_before_there_were_loads_and_versions_is_still_read() {
        let text = r#"{"seed":1,"holdfast":"0.1.0","verdict":"pass","reasons":[],"interrupted":true,"gap_s":2.0,"sustained_s":3.0,
            "acknowledged_writes":5,"lost_writes":0,"errors":{},"checks":{"ledger":"pass"},"cpu_s":1.0}"#;
        let run: Run = serde_json::from_str(text).expect("a run");
        assert!(run.engine_version.is_empty() && run.loads.is_empty() && run.machine.is_empty());
        assert_eq!(run.warnings, None, "nobody knows of any, which is not to have had none");
        assert_eq!((run.boot_s, run.database_cpu_s, run.memory_bytes), (None, None, None));
    }
}
