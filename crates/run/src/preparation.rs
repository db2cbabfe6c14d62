//! Everything between the orders and the first load: the scenario read again, the datacentre built, the database
//! made, the tables loaded.

mod containers;
mod error;
mod facts;
mod opening;
mod shares;

use std::sync::Arc;
use std::time::Instant;

use capabilities::Understands;
use engine::{Engine, Node};
use fabric::CaptureGuard;
use history::{EventKind, EventSink, RunFacts};
use load::{LoadCpu, LoadError, LoadPlan, OnThread};
use nix::sys::resource::{Resource, getrlimit};
use paper::RequestedNetwork;
use paper::network::{LinkRates, policy};
use platform::{BuildSettings, Datacentre, DatacentreError, VolumeContent, room};
use pods::Pods;
use scenario::{Need, Scenario};
use watch::Usage;
use watch::captures::{self, Captures};

pub use self::containers::timing;
pub use self::error::PreparationError;
use self::facts::facts;
pub(crate) use self::facts::{facts_of_load, planned};
pub(crate) use self::opening::upgrade;
use self::shares::{cpu_groups, limited_by, memory_groups, precedence, volumes};
use crate::chronicle::Chronicle;
use crate::client_programs;
use crate::directory::RunDirectory;
use crate::in_the_lab::{Lab, enter_place};
use crate::load_plans::{Access, plans};
use crate::orders::{Orders, VolumeOrders};
use crate::prepared::Prepared;
use crate::table_progress;

/// Descriptors for everything but the loads' sessions: hosts, nodes, volumes, files.
const OTHER_OPEN_FILES: u64 = 1_000;
/// Up to here nobody runs short of descriptors because of the loads.
const FEW_SESSIONS: u32 = 200;

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
    let Up { datacentre, engine, pods, captures, facts, plans, boot_s, volumes_fell_back, .. } =
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
        pods,
        boot_s,
        from_snapshot: orders.volumes == VolumeOrders::Return,
        links,
        volumes_fell_back,
        upgrade: upgrade(orders),
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
    pods: Option<Arc<Pods>>,
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
        let names: Vec<String> = scenario.database.nodes.ids().map(|node| node.to_string()).collect();
        directory.node_folders().leave_volumes_and_snapshots(&names).map_err(DatacentreError::from)?;
    }
    let on_nodes = containers::engine_on_nodes(scenario, orders)?;
    let settings = BuildSettings {
        folders: directory.node_folders(),
        users_mapped,
        programs: orders.shown_to_nodes(),
        // Containers have links wherever their pods are.
        follows_links: on_nodes.as_ref().is_none_or(|engine| engine.follows_links()),
        cpu_groups: cpu_groups.clone(),
        memory_groups: memory_groups(scenario, orders, cpu_groups.as_deref(), chronicle),
        clocks: room::needs(scenario, Need::Clocks),
        volumes,
        content: if is_return { VolumeContent::AtSnapshot } else { VolumeContent::Empty },
        containers: containers::containers(scenario, orders)?,
        seed: orders.seed,
        planted: &orders.planted,
    };
    let datacentre = Datacentre::build(scenario, &settings)?;
    let (engine, in_cluster) = containers::opened(on_nodes, scenario, orders, &datacentre)?;
    let captures = captures::begin(&orders.captures, scenario, &datacentre.fabric, directory.path())?;
    datacentre.let_people_in(engine.as_ref(), &settings)?;
    let limited = limited_by(cpu_groups.as_deref(), scenario);
    let mut facts = facts(
        scenario,
        orders,
        engine.as_ref(),
        &datacentre,
        (&limited, precedence(cpu_groups.as_deref()), volumes),
    )?;
    chronicle.say(EventKind::RunStarted { facts: Box::new(facts.clone()) });
    power_on(&datacentre, scenario, chronicle)?;
    let nodes: Vec<Arc<dyn Node>> = datacentre.vms.iter().map(|vm| vm.clone() as Arc<dyn Node>).collect();
    let cluster = if is_return { engine.resume(&nodes)? } else { engine.bootstrap(&nodes)? };
    let boot_s = began.elapsed().as_secs_f64();
    let pods = containers::pods(in_cluster.as_deref(), orders, (&datacentre, &settings.folders))?;
    facts.kubernetes = pods.as_ref().map(|pods| pods.facts().clone());
    let cpu_seconds = Usage::now(&datacentre, &[], LoadCpu::default()).by_part();
    chronicle.say(EventKind::LabUp { boot_s, cpu_seconds, from_snapshot: is_return });
    chronicle.progress(match scenario.database.engine.understands {
        Understands::Volume(_) => "the volumes are ready, without a database".to_owned(),
        _ => format!("{} {}: {}", engine.name(), engine.version(), roles(&cluster)),
    });
    let program =
        |load: &str| client_programs::for_load(load, scenario, orders, engine.as_ref(), &nodes, users_mapped);
    let access = Access::to_nodes(engine.as_ref(), &nodes);
    let plans = plans(scenario, (orders.seed, &orders.planted), &access, &program)?;
    for (plan, load) in plans.iter().zip(&scenario.loads).filter(|_| !is_return) {
        load_tables(plan, enter_place(&datacentre, load)?, chronicle)?;
    }
    Ok(Up { captures, nodes, datacentre, engine, pods, facts, plans, boot_s, volumes_fell_back })
}

/// Gives all nodes their power.
fn power_on(
    datacentre: &Datacentre,
    scenario: &Scenario,
    chronicle: &Chronicle,
) -> Result<(), DatacentreError> {
    datacentre.power_on_control()?;
    for (vm, host) in scenario.database.nodes.numbered() {
        datacentre.power_on_vm(vm, *host, false)?;
    }
    let in_words = |count: usize, one: &str, many: &str| report::counted(count as u64, one, many);
    let hosts = in_words(datacentre.hosts.len(), "host", "hosts");
    let nodes = in_words(datacentre.vms.len(), "node", "nodes");
    chronicle.progress(format!("{hosts} and {nodes} are up"));
    Ok(())
}

/// Makes what a load begins with, and tells how far it is.
///
/// # Errors
/// When the database refuses them.
pub(crate) fn load_tables(plan: &LoadPlan, place: OnThread, chronicle: &Chronicle) -> Result<(), LoadError> {
    chronicle.progress(format!("loading the data of {}", plan.name));
    let began = Instant::now();
    table_progress::told(&plan.name, |progress| load::prepare(plan, place, progress))?;
    let after_s = began.elapsed().as_secs_f64();
    chronicle.progress(format!("the data of {} is loaded after {after_s:.1} s", plan.name));
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
        several => format!("{leads}, {} follow", several.join(", ")),
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
