//! From what a run has shown to `result.json`: the checks made, the figures drawn together, the verdict.
//!
//! Owns the order of it. Each part is a module.

use history::{AgentFacts, Event, EventKind, MigrationFacts, Operation, Verdict};
use results::{
    CheckResult, FailedRollbackResult, InterferenceResult, LabResult, LeadershipResult, LoadResult, RunResult,
};
use scenario::{Scenario, Takes};

use crate::agents::{Clocks, agents};
use crate::checks::{Checked, check_all, without_records};
use crate::expectations;
use crate::faults::{Lost, fault_results};
use crate::figures_in_doubt::doubt_figures;
use crate::loads::load_result;
use crate::losses_by_load;
use crate::placement::violations_of;
use crate::reasons::verdict;
use crate::shown::{LabShown, Planned, Shown};
use crate::warnings::all_warnings;

/// What the checks of a run say, with the loads and the agents that they were made for.
pub struct Checks {
    checked: Vec<Checked>,
    loads: Vec<LoadResult>,
    agents: Vec<AgentFacts>,
}

impl Checks {
    /// Makes every check that applies, none on a run that was interrupted. `events` are those of the run so far.
    #[must_use]
    pub fn make(planned: &Planned<'_>, shown: &Shown, events: &[Event]) -> Checks {
        let is_whole = shown.interrupted.is_none();
        let checked = if is_whole { check_all(planned, &Operation::clone) } else { Vec::new() };
        let loads: Vec<LoadResult> =
            planned.scenario.loads.iter().map(|load| load_result(load, planned, shown)).collect();
        let agents = agents(events);
        let clocks = Clocks::of(&agents);
        let widened = |operation: &Operation| clocks.widened(operation);
        let checked = by_clocks(checked, &clocks, &loads, || check_all(planned, &widened));
        let recorded = |check| without_records(check, &planned.facts.loads, &shown.ended_early);
        Checks { checked: checked.into_iter().map(recorded).collect(), loads, agents }
    }

    /// What they say, as events; the run tells them before its result is drawn.
    pub fn events(&self) -> impl Iterator<Item = EventKind> {
        self.checked.iter().map(|check| {
            let CheckResult { name, verdict, explanation, .. } = check.result.clone();
            EventKind::Check { name, verdict, explanation }
        })
    }
}

/// Draws everything together. `events` are those of the whole run; `unrecorded` is why their file is not complete, when it is
/// not.
#[must_use]
pub fn draw(
    planned: &Planned<'_>,
    shown: &Shown,
    checks: Checks,
    events: &[Event],
    unrecorded: Option<String>,
) -> RunResult {
    let Checks { checked, mut loads, agents } = checks;
    let scenario = planned.scenario;
    losses_by_load::tell(&checked, &mut loads);
    let (checks, lost): (Vec<CheckResult>, Vec<Vec<check::LostWrite>>) =
        checked.into_iter().map(|check| (check.result, check.lost)).unzip();
    let lost = Lost { count: results::losses::lost_writes(&checks), known: lost.concat() };
    let lab = shown.lab.as_ref();
    let (leaders_at_the_end, silent_at_the_end) = leaders_at_the_end(events);
    let mut result = RunResult {
        checks,
        faults: fault_results((planned, shown), &agents, &lost, events),
        lab: lab_result(planned, shown, (&loads, &agents), events),
        loads,
        volumes: lab.map(|lab| lab.volumes.clone()).unwrap_or_default(),
        links: shown.links.clone(),
        links_receipt: lab.and_then(|lab| lab.links.clone()),
        migrations: migrations(events),
        agents,
        leaders_at_the_end,
        silent_at_the_end,
        leadership: leadership(scenario, events, shown.ended_s),
        ..RunResult::blank(planned.facts.clone())
    };
    let evidence = paper::Evidence {
        timeline: &shown.recorded.timeline,
        events,
        faults: &shown.faults,
        ended_s: shown.ended_s,
        seed: result.facts.seed,
    };
    paper::add_predictions(&mut result, scenario, &evidence);
    result.reproduces = paper::reproduced(&result, scenario);
    result.expectations = expectations::judge(scenario, &result, shown.ended_s);
    doubt_figures(&mut result);
    let scheduled = scenario.faults().count();
    let interrupted = shown.interrupted.as_deref();
    (result.verdict, result.reasons) = verdict(&result, scheduled, interrupted, unrecorded);
    result
}

/// What the run cost, and what was seen of the lab, where there is one.
fn lab_result(
    planned: &Planned<'_>,
    shown: &Shown,
    (loads, agents): (&[LoadResult], &[AgentFacts]),
    events: &[Event],
) -> LabResult {
    let warnings = all_warnings(planned, shown, (loads, agents), events);
    let lab = shown.lab.as_ref();
    LabResult {
        boot_s: lab.map(|lab| lab.boot_s),
        from_snapshot: lab.is_some_and(|lab| lab.from_snapshot),
        nodes: u32::try_from(planned.facts.site.nodes.len()).unwrap_or(u32::MAX),
        cpu_seconds: shown.cpu_seconds.clone(),
        cpu_share_of_lab: lab.and_then(|lab| lab.cpu_share),
        cpu_share_without_lab: lab.and_then(|lab| lab.cpu_share_anyway),
        memory_bytes_max: lab.and_then(|lab| lab.memory_bytes_max),
        packets: lab.map(|lab| lab.packets.clone()).unwrap_or_default(),
        warnings,
        modelled_syncs: lab.and_then(|lab| lab.modelled_syncs.clone()),
        kernel_path: lab.and_then(|lab| lab.kernel_path.clone()),
        stalls: shown.stalls.clone(),
        interference: interference(shown),
        nothing_to_lose: lab.and_then(|lab| nothing_to_lose(planned.scenario, lab)),
        placement: violations_of(planned.scenario, events),
        failed_rollbacks: events.iter().filter_map(FailedRollbackResult::told_by).collect(),
    }
}

/// What checks say, as far as the clocks of several machines tell. `again` makes them on operations that are widened.
fn by_clocks(
    checked: Vec<Checked>,
    clocks: &Clocks,
    loads: &[LoadResult],
    again: impl FnOnce() -> Vec<Checked>,
) -> Vec<Checked> {
    if !clocks.are_several() {
        return checked;
    }
    let has_failed = checked.iter().any(|check| check.result.verdict == Verdict::Fail);
    let again = if has_failed { again() } else { Vec::new() };
    let judged = |check: Checked| {
        let again = again.iter().find(|again| again.result.name == check.result.name);
        clocks.judged(check, again, loads)
    };
    checked.into_iter().map(judged).collect()
}

fn migrations(events: &[Event]) -> Vec<MigrationFacts> {
    let facts = |event: &Event| match &event.kind {
        EventKind::Migration { facts } => Some(facts.as_ref().clone()),
        _ => None,
    };
    events.iter().filter_map(facts).collect()
}

/// The nodes that led at the final read and those that did not answer, where several may have led.
fn leaders_at_the_end(events: &[Event]) -> (Vec<String>, Vec<String>) {
    let told = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::LeadersAtTheEnd { nodes, silent } => Some((nodes.clone(), silent.clone())),
        _ => None,
    });
    told.unwrap_or_default()
}

/// How often the lead passed on, where the lab watches: of a cluster that exists nobody does.
fn leadership(scenario: &Scenario, events: &[Event], ended_s: f64) -> Option<LeadershipResult> {
    let engine = scenario.database.engine;
    if scenario.cluster.is_some() || engine.is_leaderless() || !engine.is_database() {
        return None;
    }
    match engine.elects() {
        true => LeadershipResult::of_electing(events),
        false => Some(LeadershipResult::of_promoted(events, ended_s)),
    }
}

fn interference(shown: &Shown) -> Vec<InterferenceResult> {
    let seen = shown.interference.iter().cloned();
    seen.map(|(t_s, interference)| InterferenceResult { t_s, interference }).collect()
}

/// Why the schedule's power-offs could lose nothing, although the scenario asks for volumes that do.
fn nothing_to_lose(scenario: &Scenario, lab: &LabShown) -> Option<String> {
    let why = lab.volumes_fell_back.as_ref()?;
    let mut faults = scenario.faults();
    faults.any(|fault| matches!(fault.action.takes(), Takes::Power(_))).then(|| {
        format!(
            "the volumes are plain directories, which lose nothing, because virtual disks are not available ({why}). \
             Allow this user to use /dev/fuse, or write `volumes: directory` if this is intended"
        )
    })
}
