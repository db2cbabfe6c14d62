//! From what the run has shown to `result.json`: the checks made, the figures drawn together, the verdict.
//!
//! Owns the order of it. Each part is a module.

mod agents;
mod checks;
mod damage;
mod ended_early;
mod faults;
mod loads;
mod mostly_errors;
mod placement;
mod verdict;
mod warnings;

use std::collections::BTreeMap;
use std::time::Duration;

use history::{Event, EventKind, MigrationFacts, Verdict};
use results::{
    CheckResult, FailedRollbackResult, InterferenceResult, LabResult, LoadResult, ModelledSyncsResult,
    RunResult, VolumeResult,
};
use scenario::{DiskSync, Scenario, Takes};

use self::agents::Clocks;
pub(crate) use self::checks::checks_of;
use self::checks::{Checked, check_all, check_widened};
use self::faults::{Lost, fault_results};
use self::loads::load_result;
pub(crate) use self::loads::{load_figures, with_demand};
pub(crate) use self::mostly_errors::mostly_errors;
use self::verdict::verdict;
use self::warnings::all_warnings;
use crate::chronicle::Chronicle;
use crate::conductor::Shown;
use crate::directory::RunDirectory;
use crate::expectations;
use crate::prepared::Prepared;
use history::EventSink;

/// Draws everything together.
#[must_use]
pub fn draw(
    scenario: &Scenario,
    prepared: &Prepared,
    shown: &Shown,
    directory: &RunDirectory,
    chronicle: &Chronicle,
) -> RunResult {
    let checked =
        if shown.interrupted.is_some() { Vec::new() } else { check_all(scenario, prepared, directory) };
    let loads: Vec<LoadResult> =
        scenario.loads.iter().map(|load| load_result(load, prepared, shown)).collect();
    let agents = self::agents::agents(&chronicle.events());
    let clocks = Clocks::of(&agents);
    let checked =
        by_clocks(checked, &clocks, &loads, || check_widened(scenario, prepared, directory, &clocks));
    let recorded = |check| checks::without_records(check, &prepared.facts.loads, &shown.ended_early);
    let checked: Vec<Checked> = checked.into_iter().map(recorded).collect();
    for check in &checked {
        let CheckResult { name, verdict, explanation, .. } = check.result.clone();
        chronicle.say(EventKind::Check { name, verdict, explanation });
    }
    let (checks, lost): (Vec<CheckResult>, Vec<Vec<check::LostWrite>>) =
        checked.into_iter().map(|check| (check.result, check.lost)).unzip();
    let lost = Lost { count: results::losses::lost_writes(&checks), known: lost.concat() };
    let faults = fault_results((prepared, shown), &agents, &lost);
    let modelled_syncs = modelled_syncs(scenario, prepared);
    let lab = LabResult {
        boot_s: prepared.lab.as_ref().map(|lab| lab.boot_s),
        from_snapshot: prepared.lab.as_ref().is_some_and(|lab| lab.from_snapshot),
        nodes: u32::try_from(prepared.facts.site.nodes.len()).unwrap_or(u32::MAX),
        cpu_seconds: shown.in_all.by_part(),
        cpu_share_of_lab: prepared.lab.as_ref().and_then(|_| shown.under_load.share_of_lab()),
        packets: packets(prepared),
        warnings: all_warnings(prepared, shown, (&loads, &agents), modelled_syncs.as_ref(), chronicle),
        modelled_syncs,
        stalls: shown.found.watched.stalls.clone(),
        interference: interference(shown),
        nothing_to_lose: nothing_to_lose(scenario, prepared),
        placement: self::placement::violations_of(scenario, &chronicle.events()),
        failed_rollbacks: failed_rollbacks(&chronicle.events()),
    };
    let events = chronicle.events();
    let mut result = RunResult {
        checks,
        faults,
        loads,
        volumes: volumes(prepared, shown),
        links: shown.found.links.clone(),
        links_receipt: prepared.lab.as_ref().and_then(|lab| lab.links.clone()),
        migrations: migrations(&events),
        agents,
        lab,
        ..RunResult::blank(prepared.facts.clone())
    };
    let evidence = paper::Evidence {
        timeline: &shown.recorded.timeline,
        events: &events,
        faults: &shown.faults,
        ended_s: shown.ended_s,
        seed: result.facts.seed,
    };
    paper::add_predictions(&mut result, scenario, &evidence);
    result.reproduces = paper::reproduced(&result, scenario);
    result.expectations = expectations::judge(scenario, &result, shown.ended_s);
    ended_early::doubt_figures(&mut result.expectations, &shown.ended_early);
    let scheduled = scenario.faults().count();
    let interrupted = shown.interrupted.as_deref();
    (result.verdict, result.reasons) = verdict(&result, scheduled, interrupted, chronicle.failure());
    result
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

fn failed_rollbacks(events: &[Event]) -> Vec<FailedRollbackResult> {
    let failed = |event: &Event| match &event.kind {
        EventKind::RollbackFailed { node, volume, why } => {
            let (node, volume, why) = (node.clone(), volume.clone(), why.clone());
            Some(FailedRollbackResult { t_s: event.t_s, node, volume, why })
        }
        _ => None,
    };
    events.iter().filter_map(failed).collect()
}

fn volumes(prepared: &Prepared, shown: &Shown) -> Vec<VolumeResult> {
    let run =
        storage::Run { facts: &prepared.facts, timeline: &shown.recorded.timeline, ended_s: shown.ended_s };
    let Some(lab) = &prepared.lab else { return Vec::new() };
    storage::results(lab.datacentre.vms.iter().map(|vm| vm.volume()), &shown.found.volumes, run)
}

/// What became of syncs on disks whose medium the scenario describes.
fn modelled_syncs(scenario: &Scenario, prepared: &Prepared) -> Option<ModelledSyncsResult> {
    let DiskSync::Modelled { latency, .. } = scenario.site.disks.sync else { return None };
    let syncs = prepared.lab.as_ref()?.datacentre.disks.modelled_syncs()?;
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Some(ModelledSyncsResult {
        count: syncs.count,
        asked_us: micros(latency),
        late_us_mean: syncs.late.as_secs_f64() * 1e6 / syncs.count.max(1) as f64,
        late_us_max: micros(syncs.late_most),
    })
}

fn interference(shown: &Shown) -> Vec<InterferenceResult> {
    let seen = shown.found.watched.interference.iter().cloned();
    seen.map(|(t_s, interference)| InterferenceResult { t_s, interference }).collect()
}

/// Why the schedule's power-offs could lose nothing, although the scenario asks for volumes that do.
fn nothing_to_lose(scenario: &Scenario, prepared: &Prepared) -> Option<String> {
    let why = prepared.lab.as_ref()?.volumes_fell_back.as_ref()?;
    let mut faults = scenario.faults();
    faults.any(|fault| matches!(fault.action.takes(), Takes::Power(_))).then(|| {
        format!(
            "the volumes are plain directories, which lose nothing, because virtual disks are not available ({why}). \
             Allow this user to use /dev/fuse, or write `volumes: directory` if this is intended"
        )
    })
}

/// What became of the network's packets; kinds that did not occur are left out.
fn packets(prepared: &Prepared) -> BTreeMap<String, u64> {
    let counters = prepared.lab.as_ref().and_then(|lab| lab.datacentre.fabric.counters().ok());
    let Some(counters) = counters else { return BTreeMap::new() };
    let kinds = [
        ("sent", counters.packets),
        ("delivered", counters.delivered_packets),
        ("duplicated", counters.duplicated_packets),
        ("fragments", counters.fragment_packets),
        ("answers", counters.answer_packets),
        ("blocked", counters.blocked_packets),
        ("lost", counters.lost_packets),
        ("corrupted", counters.corrupted_packets),
        ("overtaking", counters.overtaking_packets),
        ("queue_full", counters.queue_full_packets),
        ("too_big", counters.too_big_packets),
        ("no_such_address", counters.no_such_address_packets),
        ("power_lost", counters.port_gone_packets),
        ("refused", counters.refused_packets),
        ("malformed", counters.malformed_packets),
    ];
    kinds.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}
