//! Everything between the orders and the first load: the scenario read again, the datacentre built, the database
//! made, the tables loaded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use capabilities::Leadership;
use engine::{Configuration, Engine, EngineError, Installation, Node, Origin};
use fabric::CaptureGuard;
use history::{EventKind, EventSink, LoadFacts, PhaseFacts, RunFacts};
use lab::cgroup::CpuGroups;
use lab::memory_groups::MemoryGroups;
use lab::protocol::PROGRAMS;
use load::{LoadCpu, LoadError, LoadPlan, OnThread};
use nix::sys::resource::{Resource, getrlimit};
use paper::RequestedNetwork;
use paper::network::{LinkRates, policy};
use platform::{BuildSettings, Datacentre, DatacentreError, VolumeContent};
use scenario::units::{format_duration, format_size};
use scenario::{DiskSync, Failover, Need, Scenario, Synchronous, Volumes, node_name};
use workload::ConfigurationError;

use crate::captures::{self, CaptureError, Captures};
use crate::chronicle::Chronicle;
use crate::client_programs;
use crate::directory::RunDirectory;
use crate::in_the_lab::{Lab, enter_place};
use crate::load_plans::{Access, Misconfigured, PlanError, most_clients, plans, workload_of};
use crate::orders::{InstallationOrders, Orders, VolumeOrders};
use crate::prepared::Prepared;
use crate::script_files::{self, MisnamedFile};
use crate::table_progress;
use crate::target::PlaceError;
use crate::usage::Usage;

/// Descriptors for everything but the loads' sessions: hosts, nodes, volumes, files.
const OTHER_OPEN_FILES: u64 = 1_000;
/// Up to here nobody runs short of descriptors because of the loads.
const FEW_SESSIONS: u32 = 200;

/// What can go wrong before the first load starts.
#[derive(Debug, thiserror::Error)]
pub enum PreparationError {
    /// The datacentre.
    #[error("datacentre: {0}")]
    Datacentre(#[from] DatacentreError),
    /// A capture.
    #[error("capture: {0}")]
    Capture(#[from] CaptureError),
    /// The database.
    #[error("database: {0}")]
    Engine(#[from] EngineError),
    /// A load's tables, or its place.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// A load's namespace could not be copied.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A workload cannot be had as the scenario asks for it.
    #[error("load {load}: {source}")]
    Workload {
        /// The load.
        load: String,
        /// Why.
        source: ConfigurationError,
    },
    /// More sockets are needed than this process may have open.
    #[error(
        "{sessions} client sessions need {needed} open files, and the limit is {most}: raise it (`ulimit -Hn \
         {needed}`, or LimitNOFILE of the service), or use fewer clients"
    )]
    OpenFiles {
        /// The loads' sessions.
        sessions: u32,
        /// Descriptors needed.
        needed: u64,
        /// Descriptors allowed.
        most: u64,
    },
    /// The volumes are no virtual disks, of which there could be snapshots.
    #[error("snapshots need virtual disks, which are not available: {why}")]
    NoSnapshots {
        /// Why not.
        why: String,
    },
    /// A script's file.
    #[error(transparent)]
    ScriptFile(#[from] MisnamedFile),
}

impl From<Misconfigured> for PreparationError {
    fn from(Misconfigured { load, source }: Misconfigured) -> Self {
        PreparationError::Workload { load, source }
    }
}

impl From<PlanError> for PreparationError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Misconfigured(error) => error.into(),
            PlanError::Engine(error) => error.into(),
        }
    }
}

impl PreparationError {
    /// The same as a rejection with a caret, where it is about a value of the scenario.
    #[must_use]
    pub fn rejection(
        &self,
        source: &scenario::Source,
        overrides: &[(String, String)],
    ) -> Option<scenario::Rejection> {
        match self {
            PreparationError::ScriptFile(misnamed) => misnamed.pointed_at(source, overrides),
            _ => None,
        }
    }
}

/// Opens the engine over the installation found outside.
pub(crate) fn open_engine(scenario: &Scenario, orders: &Orders) -> Result<Arc<dyn Engine>, EngineError> {
    let configuration = Configuration {
        synchronous: match scenario.database.synchronous {
            Synchronous::Off => engine::Synchronous::Off,
            Synchronous::Any(count) => engine::Synchronous::Any(count),
            Synchronous::All => engine::Synchronous::All,
        },
        settings: scenario.database.settings.clone(),
        port: scenario.database.engine.client_port,
        copies: scenario.database.copies,
        places: scenario.database.nodes.iter().map(|host| place(&scenario.site.hosts[*host])).collect(),
        max_connections: scenario.max_connections(),
    };
    let opened = engine::registry::of(scenario.database.engine)?
        .open(as_nodes_see(&orders.installation), configuration)?;
    Ok(Arc::from(opened))
}

fn place(host: &scenario::Host) -> engine::NodePlace {
    engine::NodePlace {
        region: host.region.clone(),
        zone: host.zone.clone(),
        // Racks of several zones may have the same name.
        rack: host.rack.as_ref().map_or_else(|| host.zone.clone(), |rack| format!("{}-{rack}", host.zone)),
        host: host.name.clone(),
    }
}

/// The installation under the path by which nodes reach it.
fn as_nodes_see(orders: &InstallationOrders) -> Installation {
    let base = if orders.is_one_program() { &orders.bin } else { &orders.root };
    let seen = |path: &Path| match path.strip_prefix(base) {
        Ok(inside) if orders.shown => Path::new(PROGRAMS).join(inside),
        _ => path.to_owned(),
    };
    Installation {
        bin: seen(&orders.bin),
        version: orders.version.clone(),
        origin: Origin::Explicit,
        library_path: orders.library_path.as_deref().map(seen),
        root: seen(&orders.root),
        programs: orders.programs.iter().map(|(name, path)| (name.clone(), seen(path))).collect(),
    }
}

/// Builds everything.
///
/// # Errors
/// When a part cannot be made; what was made is removed.
pub fn prepare(
    scenario: &Scenario,
    orders: &Orders,
    users_mapped: bool,
    chronicle: &Chronicle,
) -> Result<Prepared, PreparationError> {
    let Up { datacentre, engine, captures, facts, plans, boot_s, volumes_fell_back, .. } =
        bring_up(scenario, orders, users_mapped, chronicle)?;
    datacentre.take_volumes_as_durable();
    datacentre.hold_to_rates(&scenario.site)?;
    let asked = RequestedNetwork::new(policy(&scenario.site, LinkRates::Unlimited), []);
    let pairs = faulting::matrix(&faulting::stations(&datacentre), &asked);
    chronicle.say(EventKind::RoundTrips { occasion: "before the load".to_owned(), pairs });
    let datacentre = Arc::new(datacentre);
    let links = faulting::look_at_links(&datacentre, &scenario.site);
    let isolation = engine.isolation();
    let captures = Arc::new(Captures::new(captures));
    let planted = orders.planted.clone();
    let lab = Lab {
        captures,
        datacentre,
        engine,
        boot_s,
        from_snapshot: orders.volumes == VolumeOrders::Return,
        links,
        volumes_fell_back,
        planted: planted.clone(),
    };
    Ok(Prepared::in_the_lab(lab, plans, facts, (planted, isolation)))
}

/// Builds everything, ends the database in order and remembers the nodes' volumes with the loads' tables on them.
///
/// # Errors
/// As [`prepare`]; when the database does not end in order, or the volumes cannot be remembered.
pub(crate) fn remember(
    scenario: &Scenario,
    orders: &Orders,
    users_mapped: bool,
    chronicle: &Chronicle,
) -> Result<(), PreparationError> {
    let up = bring_up(scenario, orders, users_mapped, chronicle)?;
    up.engine.rest(&up.nodes)?;
    up.datacentre.take_snapshots(&RunDirectory::at(orders.run_directory.clone()).node_folders())?;
    chronicle.progress("the database has ended in order, and snapshots of its volumes are taken".to_owned());
    Ok(())
}

/// A database that is up, with the loads' tables.
struct Up {
    // Order matters: captures are ended before the network they are of.
    captures: Vec<CaptureGuard>,
    nodes: Vec<Arc<dyn Node>>,
    datacentre: Datacentre,
    engine: Arc<dyn Engine>,
    facts: RunFacts,
    plans: Vec<LoadPlan>,
    boot_s: f64,
    volumes_fell_back: Option<String>,
}

fn bring_up(
    scenario: &Scenario,
    orders: &Orders,
    users_mapped: bool,
    chronicle: &Chronicle,
) -> Result<Up, PreparationError> {
    let began = Instant::now();
    let is_return = orders.volumes == VolumeOrders::Return;
    check_open_files(scenario, getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(_, hard)| hard))?;
    let directory = RunDirectory::at(orders.run_directory.clone());
    let cpu_groups = cpu_groups(scenario, orders, chronicle);
    let (volumes, volumes_fell_back) = volumes(scenario, &directory, chronicle);
    if let (Some(why), true) = (&volumes_fell_back, orders.volumes != VolumeOrders::New) {
        return Err(PreparationError::NoSnapshots { why: why.clone() });
    }
    if is_return {
        let names: Vec<String> = (0..scenario.database.nodes.len()).map(node_name).collect();
        directory.node_folders().leave_volumes_and_snapshots(&names).map_err(DatacentreError::from)?;
    }
    let engine = open_engine(scenario, orders)?;
    let settings = BuildSettings {
        folders: directory.node_folders(),
        users_mapped,
        programs: orders.installation.shown_to_nodes(),
        follows_links: engine.follows_links(),
        cpu_groups: cpu_groups.clone(),
        memory_groups: memory_groups(scenario, orders, cpu_groups.as_deref(), chronicle),
        clocks: crate::room::needs(scenario, Need::Clocks),
        volumes,
        content: if is_return { VolumeContent::AtSnapshot } else { VolumeContent::Empty },
        seed: orders.seed,
        planted: &orders.planted,
    };
    let datacentre = Datacentre::build(scenario, &settings)?;
    let captures = captures::begin(&orders.captures, scenario, &datacentre.fabric, &directory)?;
    datacentre.let_people_in(engine.as_ref(), &settings)?;
    let limited = limited_by(cpu_groups.as_deref(), scenario);
    let facts = facts(scenario, orders, engine.as_ref(), &datacentre, (&limited, volumes))?;
    chronicle.say(EventKind::RunStarted { facts: Box::new(facts.clone()) });
    for (vm, host) in scenario.database.nodes.iter().enumerate() {
        datacentre.power_on_vm(vm, *host, false)?;
    }
    let (hosts, count) = (datacentre.hosts.len(), datacentre.vms.len());
    chronicle.progress(format!("{hosts} hosts and {count} nodes are up"));
    let nodes: Vec<Arc<dyn Node>> = datacentre.vms.iter().map(|vm| vm.clone() as Arc<dyn Node>).collect();
    let cluster = if is_return { engine.resume(&nodes)? } else { engine.bootstrap(&nodes)? };
    let boot_s = began.elapsed().as_secs_f64();
    let cpu_seconds = Usage::now(&datacentre, &[], LoadCpu::default()).by_part();
    chronicle.say(EventKind::LabUp { boot_s, cpu_seconds, from_snapshot: is_return });
    chronicle.progress(format!("{} {}: {}", engine.name(), engine.version(), roles(&cluster)));
    let program =
        |load: &str| client_programs::for_load(load, scenario, orders, engine.as_ref(), &nodes, users_mapped);
    let access = Access::to_nodes(engine.as_ref(), &nodes);
    let plans = plans(scenario, (orders.seed, &orders.planted), &access, &program)?;
    for (plan, load) in plans.iter().zip(&scenario.loads).filter(|_| !is_return) {
        load_tables(plan, enter_place(&datacentre, load)?, chronicle)?;
    }
    Ok(Up { captures, nodes, datacentre, engine, facts, plans, boot_s, volumes_fell_back })
}

/// Makes the tables of a load, and tells how far it is.
///
/// # Errors
/// When the database refuses them.
pub(crate) fn load_tables(plan: &LoadPlan, place: OnThread, chronicle: &Chronicle) -> Result<(), LoadError> {
    chronicle.progress(format!("loading the tables of {}", plan.name));
    let began = Instant::now();
    table_progress::told(&plan.name, |progress| load::prepare(plan, place, progress))?;
    let after_s = began.elapsed().as_secs_f64();
    chronicle.progress(format!("the tables of {} are loaded after {after_s:.1} s", plan.name));
    Ok(())
}

/// Who leads and who follows, in words.
fn roles(cluster: &engine::Cluster) -> String {
    let Some(leader) = &cluster.leader else {
        return format!("{} take writes, and none leads", cluster.followers.join(", "));
    };
    let leads = format!("{leader} leads");
    match cluster.followers.as_slice() {
        [] => leads,
        [one] => format!("{leads}, {one} follows"),
        several => format!("{leads}, {} follow", several.join(" and ")),
    }
}

/// Every session of a load is a socket of this process.
///
/// # Errors
/// When this process may not have so many.
pub(crate) fn check_open_files(scenario: &Scenario, most: u64) -> Result<(), PreparationError> {
    let sessions = scenario.sessions();
    let needed = u64::from(sessions).saturating_add(OTHER_OPEN_FILES);
    if needed <= most || sessions < FEW_SESSIONS {
        return Ok(());
    }
    Err(PreparationError::OpenFiles { sessions, needed, most })
}

/// What holds nodes to their share of the processors, in words.
fn limited_by(groups: Option<&CpuGroups>, scenario: &Scenario) -> String {
    let groups = groups.filter(|_| scenario.database.cpus.is_some());
    groups.map_or_else(|| "none".to_owned(), CpuGroups::describe)
}

/// Where none may be made, only a limit that was asked for is missed.
fn cpu_groups(scenario: &Scenario, orders: &Orders, chronicle: &Chronicle) -> Option<Arc<CpuGroups>> {
    match CpuGroups::make(&orders.run_name) {
        Ok(groups) => Some(Arc::new(groups)),
        Err(_) if scenario.database.cpus.is_none() => None,
        Err(error) => {
            chronicle.warn(
                format!("the nodes' CPU limit does not hold: {error}"),
                "run as root or with a delegated cpu controller (see `holdfast doctor`), or leave `cpus` out",
            );
            None
        }
    }
}

/// Only where a fault takes memory: a group counts every page.
fn memory_groups(
    scenario: &Scenario,
    orders: &Orders,
    cpu_groups: Option<&CpuGroups>,
    chronicle: &Chronicle,
) -> Option<Arc<MemoryGroups>> {
    if !crate::room::needs(scenario, Need::MemoryGroups) {
        return None;
    }
    let made = MemoryGroups::make(&orders.run_name, cpu_groups);
    let told = |error| {
        chronicle.warn(format!("no memory can be taken from nodes: {error}"), "see `holdfast doctor`");
    };
    made.map(Arc::new).map_err(told).ok()
}

/// What volumes will be: what the scenario asks for, where it is to be had; else plain directories, and why.
fn volumes(
    scenario: &Scenario,
    directory: &RunDirectory,
    chronicle: &Chronicle,
) -> (Volumes, Option<String>) {
    let asked = scenario.database.volumes;
    if asked == Volumes::Directory {
        return (asked, None);
    }
    let Err(error) = disk::try_out(directory.path()) else { return (asked, None) };
    chronicle.warn(
        format!("volumes are plain directories, so a power-off does not lose unsynced data: {error}"),
        "allow this user to use /dev/fuse (see `holdfast doctor`), or write `volumes: directory`",
    );
    (Volumes::Directory, Some(error.to_string()))
}

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

fn facts(
    scenario: &Scenario,
    orders: &Orders,
    engine: &dyn Engine,
    datacentre: &Datacentre,
    (limited, volumes): (&str, Volumes),
) -> Result<RunFacts, PreparationError> {
    let mut engine_settings = engine.settings();
    let leadership = scenario.database.engine.leadership;
    engine_settings.insert("failover".to_owned(), failover_in_words(scenario.database.failover, leadership));
    engine_settings.insert("isolation".to_owned(), engine.isolation().name().to_owned());
    engine_settings.insert("found".to_owned(), orders.installation.origin.clone());
    let mut machine: BTreeMap<String, String> = orders.machine.clone();
    machine.insert(
        "cpu_limit".to_owned(),
        match scenario.database.cpus {
            Some(cpus) => format!("{cpus} per node, by {limited}"),
            None => "none".to_owned(),
        },
    );
    let sync = sync_in_words(scenario.site.disks.sync).filter(|_| volumes != Volumes::Directory);
    let volumes = [Some(volumes_in_words(volumes).to_owned()), sync];
    machine.insert("volumes".to_owned(), volumes.into_iter().flatten().collect::<Vec<_>>().join("; "));
    let loads = loads_facts(scenario)?;
    Ok(RunFacts {
        holdfast: orders.holdfast.clone(),
        scenario: scenario.name.clone(),
        description: scenario.description.clone(),
        seed: orders.seed,
        started_at: orders.started_at.clone(),
        engine: engine.name().to_owned(),
        engine_version: engine.version(),
        engine_settings,
        machine,
        site: datacentre.facts(scenario),
        loads,
        phases: phases(scenario),
        planted: orders.planted.iter().map(|lie| lie.name().to_owned()).collect(),
        is_external: false,
    })
}

/// Whether every load's workload takes its options: what the scenario language cannot see by itself, such as shares that
/// do not add up or a script that cannot be read.
///
/// Scripts that stand in files, whose paths begin at `folder`, are read into the scenario first.
///
/// # Errors
/// Of the first load that cannot be had, or whose file cannot be read.
pub fn check_workloads(scenario: &mut Scenario, folder: &Path) -> Result<(), PreparationError> {
    let files = script_files::read_into_scenario(scenario, folder)?;
    for load in &scenario.loads {
        workload_of(load).map_err(|Misconfigured { load, source }| match files.get(&load) {
            Some(files) => Misconfigured { source: files.name_file_in(source), load },
            None => Misconfigured { load, source },
        })?;
    }
    Ok(())
}

/// What is known of each load before it starts.
///
/// # Errors
/// When a workload does not take its options.
pub(crate) fn loads_facts(scenario: &Scenario) -> Result<Vec<LoadFacts>, PreparationError> {
    scenario.loads.iter().map(|load| load_facts(load, &scenario.schedule)).collect()
}

fn load_facts(load: &scenario::Load, schedule: &[scenario::Phase]) -> Result<LoadFacts, PreparationError> {
    let workload = workload_of(load)?;
    Ok(LoadFacts {
        name: load.name.clone(),
        workload: load.workload.clone(),
        clients: most_clients(load, schedule),
        from: load.from.to_string(),
        transaction: workload.transaction_name().to_owned(),
        statements: workload.statement_names().into_iter().map(str::to_owned).collect(),
    })
}

/// The schedule's phases, with their times.
pub(crate) fn phases(scenario: &Scenario) -> Vec<PhaseFacts> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every workload's options by their defaults, as the scenario language has them.
    fn defaults(workload: &str) -> BTreeMap<String, String> {
        let options = scenario::catalogue::options(workload).into_iter();
        options.filter_map(|option| Some((option.name.to_owned(), option.default?.to_owned()))).collect()
    }

    #[test]
    fn the_language_and_the_workloads_know_each_other_and_their_options() {
        let known: std::collections::BTreeSet<&str> =
            workload::all().iter().map(|workload| workload.name()).collect();
        assert_eq!(known, scenario::catalogue::WORKLOADS.iter().copied().collect());
        for name in known {
            workload::configured(name, &defaults(name)).unwrap_or_else(|error| panic!("{error}"));
            for option in scenario::catalogue::options(name).iter().filter(|option| option.default.is_some())
            {
                // Whoever does not know the option says so; whoever knows it finds nothing wrong but the value.
                let nonsense = [(option.name.to_owned(), "?".to_owned())].into();
                let told = workload::configured(name, &nonsense).err().expect("refused").to_string();
                assert!(told.contains("cannot be \"?\""), "{told}");
            }
        }
    }

    #[test]
    fn the_language_and_the_control_database_know_the_same_flaws() {
        let flaws = control::flaw::FLAWS.iter().map(|(_, name, _)| *name);
        let known: Vec<&str> = std::iter::once("none").chain(flaws).collect();
        let control = capabilities::named(engine::control::NAME).expect("the engine");
        let capabilities::SettingForm::OneOf { name: "flaw", values } = control.settings else {
            panic!("{:?}", control.settings)
        };
        assert_eq!(values, known);
    }

    #[test]
    fn the_levels_of_the_language_are_those_that_transactions_begin_at() {
        for name in ["append", "bank"] {
            let begun = |level: &str| {
                let workload =
                    workload::configured(name, &[("isolation".to_owned(), level.to_owned())].into())?;
                let begins = |statement: &&workload::Statement| statement.sql.starts_with("BEGIN");
                let begin = workload.statements().iter().find(begins).map(|found| found.sql.to_string());
                Ok::<_, workload::ConfigurationError>(begin.unwrap_or_default())
            };
            assert_eq!(begun("repeatable-read").as_deref(), Ok("BEGIN ISOLATION LEVEL REPEATABLE READ"));
            assert!(begun("chaos").is_err());
        }
    }

    #[test]
    fn every_workload_has_a_check() {
        for workload in workload::all() {
            assert!(check::registry::for_workload(workload.name()).count() > 0, "{}", workload.name());
        }
    }
}
