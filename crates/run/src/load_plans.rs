//! The loads of a scenario as plans for the generator: workload, steps, endpoints, consistency, planted defects.
//!
//! Owns the way from the scenario's words to `load`'s. Starts nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, EngineError, Node};
use faults::{Lie, Planted};
use load::{Defects, Endpoint, LoadPlan, Step};
use scenario::Scenario;
use workload::{ConfigurationError, Workload};

use crate::client_numbers::first_clients;
use crate::client_programs;
use crate::orders::Orders;

/// The workload whose inserts can be dropped or invented.
const LEDGER: &str = "ledger";
/// How long an attempt to connect may take at first.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_000);

/// A workload that does not take the options its load gives it.
#[derive(Debug)]
pub struct Misconfigured {
    /// The load.
    pub load: String,
    /// Why.
    pub source: ConfigurationError,
}

/// Why there are no plans.
#[derive(Debug)]
pub enum PlanError {
    /// A workload does not take its options.
    Misconfigured(Misconfigured),
    /// The engine does not know its nodes.
    Engine(EngineError),
}

impl From<Misconfigured> for PlanError {
    fn from(error: Misconfigured) -> Self {
        PlanError::Misconfigured(error)
    }
}

impl From<EngineError> for PlanError {
    fn from(error: EngineError) -> Self {
        PlanError::Engine(error)
    }
}

/// The loads of a run, in the scenario's order, against the database's nodes.
///
/// # Errors
/// When a workload does not take its options, or the engine does not know its nodes.
pub fn plans(
    scenario: &Scenario,
    orders: &Orders,
    engine: &dyn Engine,
    nodes: &[Arc<dyn Node>],
    users_mapped: bool,
) -> Result<Vec<LoadPlan>, PlanError> {
    let known: Vec<engine::Endpoint> = nodes.iter().map(|node| engine.endpoint(node.as_ref())).collect();
    let endpoints: Vec<Endpoint> = known
        .iter()
        .map(|endpoint| Endpoint {
            node: endpoint.node.clone(),
            address: SocketAddr::new(endpoint.address, endpoint.port).into(),
        })
        .collect();
    let (database, user) =
        known.first().map(|endpoint| (endpoint.database.clone(), endpoint.user.clone())).unwrap_or_default();
    let first_clients =
        first_clients(scenario.loads.iter().map(|load| most_clients(load, &scenario.schedule)));
    let plan = |(number, (load, first_client)): (usize, (&scenario::Load, u64))| {
        Ok(LoadPlan {
            name: load.name.clone(),
            workload: workload_of(load)?,
            steps: steps(load, scenario),
            arrival: match load.pace.arrival {
                scenario::Arrival::Constant => load::Arrival::Constant,
                scenario::Arrival::Poisson => load::Arrival::Poisson,
            },
            think_time: match load.pace.think_time {
                scenario::ThinkTime::None => load::ThinkTime::None,
                scenario::ThinkTime::Constant(pause) => load::ThinkTime::Constant(pause),
                scenario::ThinkTime::Exponential(mean) => load::ThinkTime::Exponential(mean),
            },
            first_client,
            keeps_history: true,
            scale: load.scale,
            seed: orders.seed,
            protocol: scenario.database.engine.protocol,
            wait: wait(scenario, load),
            spreads: scenario.database.engine.is_leaderless(),
            program: client_programs::for_load(&load.name, scenario, orders, engine, nodes, users_mapped)?,
            consistency: consistency(load),
            reads: match load.reads {
                scenario::Reads::Leader => client::postgres::Reads::Leader,
                scenario::Reads::Replicas => client::postgres::Reads::Replicas,
                scenario::Reads::Any => client::postgres::Reads::Any,
            },
            endpoints: endpoints.clone(),
            database: database.clone(),
            user: user.clone(),
            password: None,
            encryption: load::Encryption::Never,
            timeout: load.timeout,
            connect_timeout: CONNECT_TIMEOUT,
            defects: defects(number, scenario, &orders.planted),
        })
    };
    scenario.loads.iter().zip(first_clients).enumerate().map(plan).collect()
}

/// By how many nodes a load's clients are to be answered.
fn consistency(load: &scenario::Load) -> load::Consistency {
    use client::cql::Consistency as Asked;
    use scenario::ConsistencyLevel as Level;
    let asked = |level| match level {
        Level::One => Asked::One,
        Level::LocalOne => Asked::LocalOne,
        Level::Quorum => Asked::Quorum,
        Level::LocalQuorum => Asked::LocalQuorum,
        Level::All => Asked::All,
        Level::Serial => Asked::Serial,
    };
    let scenario::Consistency { reads, writes, timestamps } = load.consistency;
    let timestamps = match timestamps {
        scenario::Timestamps::Client => client::cql::Timestamps::Client,
        scenario::Timestamps::Coordinator => client::cql::Timestamps::Coordinator,
    };
    load::Consistency { reads: reads.map(asked), writes: writes.map(asked), timestamps }
}

/// How many replicas must have a write before it is acknowledged, where it is the client that sees to that.
fn wait(scenario: &Scenario, load: &scenario::Load) -> Option<load::Wait> {
    let replicas = match scenario.database.synchronous {
        scenario::Synchronous::Off => return None,
        scenario::Synchronous::Any(count) => count,
        scenario::Synchronous::All => u32::try_from(scenario.database.nodes.len()).ok()?.saturating_sub(1),
    };
    // It has to be over while the client still waits for its answer.
    Some(load::Wait { replicas, timeout: load.timeout / 2 })
}

/// The defects to be planted in a load, by its number: each in one load of the run.
fn defects(number: usize, scenario: &Scenario, planted: &Planted) -> Defects {
    let first_ledger = scenario.loads.iter().position(|load| load.workload == LEDGER);
    let in_first = |lie: Lie| number == 0 && planted.contains(&lie);
    let in_ledger = |lie: Lie| Some(number) == first_ledger && planted.contains(&lie);
    Defects {
        panics: in_first(Lie::LoadPanic),
        dies: in_first(Lie::LoadDies),
        drops_insert: in_ledger(Lie::DroppedInsert),
        invents_insert: in_ledger(Lie::InventedInsert),
    }
}

fn steps(load: &scenario::Load, scenario: &Scenario) -> Vec<Step> {
    let step = |(from, clients, rate_per_s): (Duration, u32, Option<f64>)| Step {
        from_s: from.as_secs_f64(),
        clients,
        rate_per_s,
    };
    load.steps(&scenario.schedule).into_iter().map(step).collect()
}

/// The most clients a load has at once.
#[must_use]
pub fn most_clients(load: &scenario::Load, schedule: &[scenario::Phase]) -> u32 {
    load.steps(schedule).iter().map(|step| step.1).max().unwrap_or(load.clients)
}

/// A load's workload with its options.
///
/// # Errors
/// When it does not take them.
pub fn workload_of(load: &scenario::Load) -> Result<Arc<dyn Workload>, Misconfigured> {
    workload::configured(&load.workload, &load.options)
        .map_err(|source| Misconfigured { load: load.name.clone(), source })
}
