//! What is known of a run before it begins, for its first event and its result.

use std::collections::BTreeMap;

use capabilities::Leadership;
use engine::Engine;
use history::{LoadFacts, PhaseFacts, RunFacts};
use load::Step;
use platform::Datacentre;
use scenario::units::{format_duration, format_size};
use scenario::{DiskSync, Failover, Scenario, Volumes};
use workload::Workload;

use super::error::PreparationError;
use crate::load_plans::{steps, workload_of};
use crate::orders::Orders;

fn volumes_in_words(volumes: Volumes) -> &'static str {
    match volumes {
        Volumes::Virtual => "virtual disks: a power-off loses unsynced data",
        Volumes::Torn => {
            "virtual disks: a power-off loses unsynced data and may leave the last write partial"
        }
        Volumes::Directory => "plain directories: a power-off loses no written data",
    }
}

/// What a sync costs, where it is not what the machine's own disk takes.
fn sync_in_words(sync: DiskSync) -> Option<String> {
    let DiskSync::Modelled { latency, at_once, bytes_per_second } = sync else { return None };
    let rate = bytes_per_second.map(|rate| format!(", {} a second", format_size(rate)));
    Some(format!(
        "syncs are modelled, not those of the machine's disk: {}, {at_once} at once{} on each disk",
        format_duration(latency),
        rate.unwrap_or_default()
    ))
}

pub(super) fn facts(
    scenario: &Scenario,
    orders: &Orders,
    engine: &dyn Engine,
    datacentre: &Datacentre,
    (limited, precedence, volumes): (&str, &str, Volumes),
) -> Result<RunFacts, PreparationError> {
    let mut engine_settings = engine.settings();
    let leadership = scenario.database.engine.leadership;
    engine_settings.insert("failover".to_owned(), failover_in_words(scenario.database.failover, leadership));
    if scenario.database.engine.is_database() {
        engine_settings.insert("isolation".to_owned(), engine.isolation().name().to_owned());
    }
    engine_settings.insert("found".to_owned(), orders.installation.origin.clone());
    if let Some(upgrade) = &orders.upgrade {
        engine_settings.insert("upgraded to".to_owned(), format!("{} ({})", upgrade.version, upgrade.origin));
    }
    let mut machine: BTreeMap<String, String> = orders.machine.clone();
    machine.insert(
        "cpu_limit".to_owned(),
        match scenario.database.cpus {
            Some(cpus) => format!("{cpus} per node, by {limited}"),
            None => "none".to_owned(),
        },
    );
    machine.insert("processors".to_owned(), precedence.to_owned());
    let sync = sync_in_words(scenario.site.disks.sync).filter(|_| volumes != Volumes::Directory);
    let volumes = [Some(volumes_in_words(volumes).to_owned()), sync];
    machine.insert("volumes".to_owned(), volumes.into_iter().flatten().collect::<Vec<_>>().join("; "));
    Ok(RunFacts {
        engine_version: engine.version(),
        engine_settings,
        machine,
        site: datacentre.facts(scenario),
        ..planned(scenario, orders)?
    })
}

/// What the scenario and the orders say of a run, whatever it runs on. The database's version, its settings and the site are
/// for the target to fill in.
///
/// # Errors
/// When a workload does not take its options.
pub(crate) fn planned(scenario: &Scenario, orders: &Orders) -> Result<RunFacts, PreparationError> {
    Ok(RunFacts {
        holdfast: orders.holdfast.clone(),
        scenario: scenario.name.clone(),
        description: scenario.about.description.clone(),
        seed: orders.seed,
        started_at: orders.started_at.clone(),
        engine: scenario.database.engine.name.to_owned(),
        machine: orders.machine.clone(),
        loads: loads_facts(scenario)?,
        phases: phases(scenario),
        planted: orders.planted.iter().map(|lie| lie.name().to_owned()).collect(),
        is_external: scenario.cluster.is_some(),
        ..RunFacts::default()
    })
}

/// What is known of each load before it starts.
fn loads_facts(scenario: &Scenario) -> Result<Vec<LoadFacts>, PreparationError> {
    scenario.loads.iter().map(|load| load_facts(load, &scenario.schedule)).collect()
}

fn load_facts(load: &scenario::Load, schedule: &[scenario::Phase]) -> Result<LoadFacts, PreparationError> {
    let workload = workload_of(load)?;
    Ok(facts_of_load(&load.name, &*workload, &steps(load, schedule), load.from.to_string()))
}

/// What is known of a load with this workload, what it asks and where its clients stand.
pub(crate) fn facts_of_load(name: &str, workload: &dyn Workload, steps: &[Step], from: String) -> LoadFacts {
    let rates = || steps.iter().filter_map(|step| step.rate_per_s);
    LoadFacts {
        name: name.to_owned(),
        workload: workload.name().to_owned(),
        clients: steps.iter().map(|step| step.clients).max().unwrap_or(0),
        rate_range_per_s: rates().reduce(f64::min).zip(rates().reduce(f64::max)).map(<[f64; 2]>::from),
        from,
        transaction: workload.transaction_name().to_owned(),
        statements: workload.statement_names().into_iter().map(str::to_owned).collect(),
    }
}

/// The schedule's phases, with their times.
fn phases(scenario: &Scenario) -> Vec<PhaseFacts> {
    let mut from_s = 0.0;
    let phase = |phase: &scenario::Phase| {
        let to_s = from_s + phase.length.as_secs_f64();
        let facts = PhaseFacts { name: phase.name.clone(), from_s, to_s };
        from_s = to_s;
        facts
    };
    scenario.schedule.iter().map(phase).collect()
}

fn failover_in_words(failover: Failover, leadership: Leadership) -> String {
    match failover {
        Failover::None | Failover::Promote { .. } if matches!(leadership, Leadership::Elected(_)) => {
            "the nodes elect another leader; a lost node restarts when its host returns".to_owned()
        }
        Failover::None if leadership == Leadership::Nobody => {
            "not needed: every node takes writes; a lost node restarts when its host returns".to_owned()
        }
        Failover::None => "none: a lost node restarts when its host returns".to_owned(),
        Failover::HaRestart { after } => {
            format!("the platform restarts a lost node on another host after {} s", after.as_secs_f64())
        }
        Failover::Promote { after } => {
            format!(
                "the most advanced standby is promoted {} s after the leader is lost",
                after.as_secs_f64()
            )
        }
    }
}
