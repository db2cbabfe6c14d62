//! The whole of `result.json`, its expectations and its checks.

use std::collections::BTreeMap;

use history::{AgentFacts, FaultId, MigrationFacts, Receipt, RunFacts, Verdict, WARM_UP};
use serde::{Deserialize, Serialize};

use crate::fault::FaultResult;
use crate::lab::{LabResult, LinkResult};
use crate::leadership::LeadershipResult;
use crate::load::LoadResult;
use crate::prediction::PredictionResult;
use crate::volume::VolumeResult;

/// What the moments at which the same phase was planned to end and ended may differ by for their rounding, seconds.
const WITHIN_THE_END_S: f64 = 0.5;

/// The whole of `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Holdfast's version.
    pub holdfast: String,
    /// The scenario's name.
    pub scenario: String,
    /// What every random choice was drawn from; `--seed` makes them again.
    pub seed: u64,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// `pass`, `fail` or `unknown`; `reasons` say why.
    pub verdict: Verdict,
    /// Reasons for the verdict, one sentence each, most important first.
    pub reasons: Vec<String>,
    /// Each expectation of the scenario.
    pub expectations: Vec<ExpectationResult>,
    /// Each check.
    pub checks: Vec<CheckResult>,
    /// Each fault.
    pub faults: Vec<FaultResult>,
    /// Each load.
    pub loads: Vec<LoadResult>,
    /// Predicted beside measured.
    #[serde(default)]
    pub prediction: Vec<PredictionResult>,
    /// Conclusions from the figures, in sentences.
    #[serde(default)]
    pub explanations: Vec<String>,
    /// The published report that the scenario reproduces; without figures when it reproduces none.
    #[serde(default)]
    pub reproduces: ReproducedReport,
    /// In the order of the nodes.
    #[serde(default)]
    pub volumes: Vec<VolumeResult>,
    /// What each link of the site carried while loads ran.
    #[serde(default)]
    pub links: Vec<LinkResult>,
    /// Whether the site's links behaved as configured before the load; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links_receipt: Option<Receipt>,
    /// Live migrations, completed or not, in the order of their end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub migrations: Vec<MigrationFacts>,
    /// Agents: the load generator's processes on other machines, with what is known of their clocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFacts>,
    /// The nodes that led when the final state of the loads' data was read, where several did or may have done: it was read at
    /// one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders_at_the_end: Vec<String>,
    /// The nodes that did not say then whether they led: they took connections and gave no answer, or could not be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_at_the_end: Vec<String>,
    /// How often the lead passed on; absent where no node leads, and where nobody watched to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leadership: Option<LeadershipResult>,
    /// The lab itself.
    pub lab: LabResult,
    /// The run as planned and built.
    pub facts: RunFacts,
}

impl RunResult {
    /// Of a run that has shown nothing yet: as its facts say, everything else empty, the verdict unknown.
    #[must_use]
    pub fn blank(facts: RunFacts) -> RunResult {
        RunResult {
            holdfast: facts.holdfast.clone(),
            scenario: facts.scenario.clone(),
            seed: facts.seed,
            started_at: facts.started_at.clone(),
            verdict: Verdict::Unknown,
            reasons: Vec::new(),
            expectations: Vec::new(),
            checks: Vec::new(),
            faults: Vec::new(),
            loads: Vec::new(),
            prediction: Vec::new(),
            explanations: Vec::new(),
            reproduces: ReproducedReport::default(),
            volumes: Vec::new(),
            links: Vec::new(),
            links_receipt: None,
            migrations: Vec::new(),
            agents: Vec::new(),
            leaders_at_the_end: Vec::new(),
            silent_at_the_end: Vec::new(),
            leadership: None,
            lab: LabResult::default(),
            facts,
        }
    }

    /// The first fault that took effect when the loads had ended, and when: it shows nothing of them.
    #[must_use]
    pub fn fault_after_the_loads(&self) -> Option<(FaultId, f64)> {
        let end_s = self.facts.phases.last()?.to_s;
        let took_effect = |(number, fault): (FaultId, &FaultResult)| Some((number, fault.took_effect_s?));
        FaultId::of_each(&self.faults).filter_map(took_effect).find(|(_, at_s)| *at_s >= end_s)
    }

    /// Where the warm-up ends, seconds: nothing is judged before.
    #[must_use]
    pub fn judged_from_s(&self) -> f64 {
        let judged = self.facts.phases.iter().find(|phase| phase.name != WARM_UP);
        judged.map_or(0.0, |phase| phase.from_s)
    }

    /// From when on a load asked less than it was to, because it went on without an agent, seconds; none where it did not.
    #[must_use]
    pub fn asked_less_from_s(agents: &[AgentFacts], load: &str) -> Option<f64> {
        let lost = agents.iter().filter(|agent| agent.load == load).filter_map(|agent| agent.lost.as_ref());
        lost.filter(|lost| lost.went_on).map(|lost| lost.recorded_until_s.min(lost.at_s)).reduce(f64::min)
    }

    /// Whether the loads ran as long as the schedule has it: figures of a run that was cut short are not those of a whole one.
    #[must_use]
    pub fn ran_to_its_end(&self) -> bool {
        let Some(end_s) = self.facts.phases.last().map(|phase| phase.to_s) else { return true };
        let reached = |load: &LoadResult| {
            load.phases.last().is_some_and(|phase| phase.to_s + WITHIN_THE_END_S >= end_s)
        };
        self.loads.iter().all(reached)
    }
}

/// A published report's figures, to compare with the measured ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReproducedReport {
    /// The report's name: `FR-3`.
    pub report: String,
    /// Its figures beside this run's.
    pub figures: Vec<ReproducedFigure>,
    /// The rows of its table, where it raised its load step by step.
    #[serde(default)]
    pub reported_steps: Vec<ReproducedStep>,
    /// This run's phases with the same figures, where the report has steps; the two do not belong to each other row by row.
    #[serde(default)]
    pub measured_steps: Vec<ReproducedStep>,
}

/// A row of a table of steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReproducedStep {
    /// What the report, or this run's scenario, calls it.
    pub step: String,
    /// Its figures by name; null where the report does not state one or the run has none.
    pub figures: BTreeMap<String, Option<f64>>,
}

/// A figure of a published report beside this run's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReproducedFigure {
    /// Its name, the unit last.
    pub name: String,
    /// In the report.
    pub reported: f64,
    /// In this run; null when this run has no such figure.
    pub measured: Option<f64>,
    /// In the report's baseline, where the scenario states it.
    #[serde(default)]
    pub reported_baseline: Option<f64>,
    /// In this run's baseline.
    #[serde(default)]
    pub measured_baseline: Option<f64>,
}

/// An expectation and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpectationResult {
    /// Its name: `lost_writes`.
    pub name: String,
    /// What was wanted, as written: `< 30s`.
    pub wanted: String,
    /// What was measured, with its unit, and of which load, phase or fault where there are several: the worst of them.
    /// `nothing` when it was not measured.
    pub measured: String,
    /// `unknown` where too little was measured to tell.
    pub verdict: Verdict,
}

/// A check and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Its name: `ledger`, `tpcb-sums`.
    pub name: String,
    /// `unknown` where the history does not show enough.
    pub verdict: Verdict,
    /// The explanation: for a failure, a minimal story that a reader can verify.
    pub explanation: String,
    /// What the check proves if it passes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proves: String,
    /// What it does not prove, although a reader might think so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub does_not_prove: String,
    /// Writes acknowledged: the ledger's inserts, or TPC-B's transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<u64>,
    /// Acknowledged writes that are missing; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Ledger: rows that no client sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invented: Option<u64>,
    /// Writes without a definite answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indeterminate: Option<u64>,
    /// Further counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, i64>,
}

impl CheckResult {
    /// One without counts, with what the check of that name proves and does not prove.
    #[must_use]
    pub fn new(name: &str, verdict: Verdict, explanation: &str) -> Self {
        let registered = check::registry::find(name);
        CheckResult {
            name: name.to_owned(),
            verdict,
            explanation: explanation.to_owned(),
            proves: registered.map(|check| check.proves.to_owned()).unwrap_or_default(),
            does_not_prove: registered.map(|check| check.does_not_prove.to_owned()).unwrap_or_default(),
            acknowledged: None,
            lost: None,
            invented: None,
            indeterminate: None,
            counts: BTreeMap::new(),
        }
    }
}
