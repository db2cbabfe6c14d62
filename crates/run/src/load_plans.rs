//! The loads of a scenario as plans for the generator: workload, steps, endpoints, consistency, planted defects.
//!
//! Owns the way from the scenario's words to `load`'s. Starts nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, EngineError, Node};
use faults::{Lie, Planted};
use load::{ClientProgram, Defects, Encryption, Endpoint, LoadPlan, Password, Step, first_clients};
use scenario::Scenario;
use workload::{ConfigurationError, Workload};

/// The workload whose inserts can be dropped or invented.
const LEDGER: &str = "ledger";
/// How long an attempt to connect may take at first.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_000);

/// A workload that does not take the options its load gives it.
#[derive(Debug)]
pub struct Misconfigured {
    pub load: String,
    /// The option that is wrong, and with what.
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

/// How clients get a session.
pub struct Access {
    /// Every node that may take the writes now or later.
    pub endpoints: Vec<Endpoint>,
    /// The database's name.
    pub database: String,
    /// The user's name.
    pub user: String,
    /// The user's password, for servers that ask.
    pub password: Option<Password>,
    /// Whether sessions are encrypted.
    pub encryption: Encryption,
    /// How long an attempt to connect may take at first.
    pub connect_timeout: Duration,
}

impl Access {
    /// To nodes of the lab.
    #[must_use]
    pub fn to_nodes(engine: &dyn Engine, nodes: &[Arc<dyn Node>]) -> Access {
        let known: Vec<engine::Endpoint> = nodes.iter().map(|node| engine.endpoint(node.as_ref())).collect();
        let endpoint = |endpoint: &engine::Endpoint| Endpoint {
            node: endpoint.node.clone(),
            address: SocketAddr::new(endpoint.address, endpoint.port).into(),
        };
        let first = known.first().map(|endpoint| (endpoint.database.clone(), endpoint.user.clone()));
        let (database, user) = first.unwrap_or_default();
        Access {
            endpoints: known.iter().map(endpoint).collect(),
            database,
            user,
            password: None,
            encryption: Encryption::Never,
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

/// The loads of a run, in the scenario's order. `program` gives the one that speaks for a load's clients, where one does.
///
/// # Errors
/// When a workload does not take its options, or the engine does not know its nodes.
pub fn plans(
    scenario: &Scenario,
    (seed, planted): (u64, &Planted),
    access: &Access,
    program: &dyn Fn(&str) -> Result<Option<ClientProgram>, EngineError>,
) -> Result<Vec<LoadPlan>, PlanError> {
    let first_clients =
        first_clients(scenario.loads.iter().map(|load| most_clients(load, &scenario.schedule)));
    let plan = |(number, (load, first_client)): (usize, (&scenario::Load, u64))| {
        Ok(LoadPlan {
            name: load.name.clone(),
            workload: workload_of(load)?,
            steps: steps(load, &scenario.schedule),
            arrival: match load.pace.arrival {
                scenario::Arrival::Constant => load::Arrival::Constant,
                scenario::Arrival::Poisson => load::Arrival::Poisson,
            },
            part: load::Part::default(),
            think_time: match load.pace.think_time {
                scenario::ThinkTime::None => load::ThinkTime::None,
                scenario::ThinkTime::Constant(pause) => load::ThinkTime::Constant(pause),
                scenario::ThinkTime::Exponential(mean) => load::ThinkTime::Exponential(mean),
            },
            first_client,
            keeps_history: true,
            scale: load.scale,
            seed,
            protocol: scenario.database.engine.protocol,
            wait: wait(scenario, load),
            spreads: scenario.database.engine.is_leaderless(),
            program: program(&load.name)?,
            consistency: consistency(load, &scenario.database),
            reads: match load.reads {
                scenario::Reads::Leader => load::Reads::Leader,
                scenario::Reads::Replicas => load::Reads::Replicas,
                scenario::Reads::Any => load::Reads::Any,
            },
            endpoints: access.endpoints.clone(),
            database: access.database.clone(),
            user: access.user.clone(),
            password: access.password.clone(),
            encryption: access.encryption.clone(),
            timeout: load.timeout,
            connect_timeout: access.connect_timeout,
            defects: defects(number, scenario, planted),
        })
    };
    scenario.loads.iter().zip(first_clients).enumerate().map(plan).collect()
}

/// By how many nodes a load's clients are to be answered, and whether each node can be compared with the others.
fn consistency(load: &scenario::Load, database: &scenario::Database) -> load::Consistency {
    use client::cql::Consistency as CqlConsistency;
    use scenario::ConsistencyLevel as Level;
    let asked = |level| match level {
        Level::One => CqlConsistency::One,
        Level::LocalOne => CqlConsistency::LocalOne,
        Level::Quorum => CqlConsistency::Quorum,
        Level::LocalQuorum => CqlConsistency::LocalQuorum,
        Level::All => CqlConsistency::All,
        Level::Serial => CqlConsistency::Serial,
    };
    let scenario::Consistency { reads, writes, timestamps } = load.consistency;
    let timestamps = match timestamps {
        scenario::Timestamps::Client => client::cql::Timestamps::Client,
        scenario::Timestamps::Coordinator => client::cql::Timestamps::Coordinator,
    };
    load::Consistency {
        reads: reads.map(asked),
        writes: writes.map(asked),
        timestamps,
        compares_copies: database.engine.answers_for_itself && database.copies > 1,
    }
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

/// What a load asks, from when on.
pub(crate) fn steps(load: &scenario::Load, schedule: &[scenario::Phase]) -> Vec<Step> {
    let step = |(from, clients, rate_per_s): (Duration, u32, Option<f64>)| Step {
        from_s: from.as_secs_f64(),
        clients,
        rate_per_s,
    };
    load.steps(schedule).into_iter().map(step).collect()
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
