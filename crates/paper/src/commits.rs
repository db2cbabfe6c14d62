//! What the transactions of each load wait for on the network, phase by phase.
//!
//! Owns the distances, taken from the site's links and the faults that stand over a whole phase; the arithmetic is
//! `model`'s.

use std::time::Duration;

use capabilities::Commit;
use fabric::Jitter;
use history::{NodeId, PhaseFacts};
use model::cost::{Delays, Engine, Kind, Transaction, TransactionCost, cost, leaders_by_cost};
use rand_chacha::ChaCha8Rng;
use scenario::{Load, Scenario};

use crate::deployment::acknowledgements;
use crate::phase_network::requested_during;

/// Where the scenario gives no seed: what is sampled on paper must not change from call to call.
const SEED: u64 = 1;

/// One load.
pub struct CommitCost {
    /// The load's name.
    pub load: String,
    /// Phases with the same network together, in order of the first of each; or why there is no figure.
    pub phases: Result<Vec<PhaseCost>, NotComputed>,
}

impl CommitCost {
    /// The phases; none where there is no figure.
    pub fn computed(&self) -> &[PhaseCost] {
        self.phases.as_deref().unwrap_or_default()
    }
}

/// Why nothing is said of a load's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotComputed {
    /// They are of several kinds, of which chance draws one at a time.
    SeveralKinds,
    /// The engine's client reads what a transaction writes on, and writes if nobody else has: how often depends on conflicts.
    ReadsFirst,
}

/// Phases with the same network.
pub struct PhaseCost {
    pub names: Vec<String>,
    /// Whether its network is the same for its whole length; if not, there is no one figure, and all else is empty.
    pub steady: bool,
    /// What the engine's transaction waits for; `None` when it waits for ever.
    pub cost: Option<TransactionCost>,
    /// What the same transaction waits for on an engine with a Raft group for each tablet or range; `None` where the
    /// engine has a Raft group itself.
    pub on_raft: Option<TransactionCost>,
    /// Another node whose leadership would cost this load less, and the mean of its transactions then, in milliseconds.
    pub better_leader: Option<(NodeId, f64)>,
}

pub(crate) fn of_loads(scenario: &Scenario) -> Vec<CommitCost> {
    // Without a leader, what a request waits for depends on which node coordinates it and which hold the row.
    if !scenario.database.engine.is_database() || scenario.database.engine.is_leaderless() {
        return Vec::new();
    }
    scenario.loads.iter().filter_map(|load| of_load(scenario, load)).collect()
}

fn of_load(scenario: &Scenario, load: &Load) -> Option<CommitCost> {
    let workload = workload::configured(&load.workload, &load.options).ok()?;
    let transaction = match transaction(scenario, workload.as_ref()) {
        Ok(transaction) => transaction,
        Err(why) => return Some(CommitCost { load: load.name.clone(), phases: Err(why) }),
    };
    let seed = scenario.seed.unwrap_or(SEED);
    let mut networks: Vec<(Option<Matrix>, Vec<String>)> = Vec::new();
    for phase in phases_of(scenario) {
        let matrix = Matrix::of(scenario, load, &phase);
        match networks.iter_mut().find(|(known, _)| *known == matrix) {
            Some((_, names)) => names.push(phase.name),
            None => networks.push((matrix, vec![phase.name])),
        }
    }
    let phases = networks
        .into_iter()
        .map(|(matrix, names)| of_phases(names, &transaction, matrix.as_ref(), seed))
        .collect();
    Some(CommitCost { load: load.name.clone(), phases: Ok(phases) })
}

/// A load's transaction as the scenario's engine carries it out.
pub(crate) fn transaction(
    scenario: &Scenario,
    workload: &dyn workload::Workload,
) -> Result<Transaction, NotComputed> {
    let acknowledgements = acknowledgements(scenario);
    let (engine, statements) = match scenario.database.engine.commit {
        Commit::AtEachRequest { reads_first } if reads_first.contains(&workload.name()) => {
            return Err(NotComputed::ReadsFirst);
        }
        Commit::AtEachRequest { .. } if reads_and_writes_by_chance(workload) => {
            return Err(NotComputed::SeveralKinds);
        }
        Commit::AtEachRequest { .. } => (Engine::AtEachRequest(acknowledgements), requests(workload)),
        Commit::AtEnd => {
            let statements = one_transaction(workload).ok_or(NotComputed::SeveralKinds)?;
            (Engine::AtCommit(acknowledgements), statements)
        }
    };
    Ok(Transaction { nodes: scenario.database.nodes.len(), leader: NodeId::FIRST, engine, statements })
}

/// Whether chance draws among its operations and nothing says which of them write.
fn reads_and_writes_by_chance(workload: &dyn workload::Workload) -> bool {
    !workload.facts().kinds.is_empty() && workload.facts().writes.is_empty()
}

/// What is asked of a database without SQL: some statements, or each transaction at once.
fn requests(workload: &dyn workload::Workload) -> Vec<(String, Kind)> {
    let named = |place: usize| workload.statements().get(place);
    let several: Vec<(String, Kind)> = workload
        .requests(false)
        .into_iter()
        .filter_map(named)
        .map(|statement| (statement.name.to_string(), Kind::of_sql(&statement.sql, false)))
        .collect();
    if several.is_empty() {
        return vec![(workload.transaction_name().to_owned(), Kind::WriteAndCommit)];
    }
    several
}

/// The statements as one transaction; `None` where they are those of several, of which chance draws one at a time.
fn one_transaction(workload: &dyn workload::Workload) -> Option<Vec<(String, Kind)>> {
    let statements = workload.statements();
    if let [only] = statements {
        // Timed as the transaction that it is.
        return Some(vec![(workload.transaction_name().to_owned(), Kind::of_sql(&only.sql, true))]);
    }
    let kinds: Vec<Kind> = statements.iter().map(|statement| Kind::of_sql(&statement.sql, false)).collect();
    let count = |kind: Kind| kinds.iter().filter(|one| **one == kind).count();
    let whole = kinds.first() == Some(&Kind::Begin)
        && kinds.last() == Some(&Kind::Commit)
        && count(Kind::Begin) == 1
        && count(Kind::Commit) == 1;
    let named = statements.iter().map(|statement| statement.name.to_string());
    whole.then(|| named.zip(kinds.iter().copied()).collect())
}

fn of_phases(names: Vec<String>, transaction: &Transaction, matrix: Option<&Matrix>, seed: u64) -> PhaseCost {
    let Some(matrix) = matrix else {
        return PhaseCost { names, steady: false, cost: None, on_raft: None, better_leader: None };
    };
    let ours = cost(transaction, matrix, seed);
    let raft = Transaction { engine: Engine::AtEachWrite, ..transaction.clone() };
    let on_raft = cost(&raft, matrix, seed).filter(|_| matches!(transaction.engine, Engine::AtCommit(_)));
    let better_leader =
        leaders_by_cost(transaction, matrix, seed).first().copied().filter(|(node, mean_ms)| {
            // Less than a hundredth is no reason to move a leader.
            let now_ms = ours.as_ref().map(|cost| cost.total_ms.mean);
            *node != transaction.leader && now_ms.is_some_and(|now_ms| *mean_ms < 0.99 * now_ms)
        });
    PhaseCost { names, steady: true, on_raft, cost: ours, better_leader }
}

fn phases_of(scenario: &Scenario) -> Vec<PhaseFacts> {
    let mut begins = Duration::ZERO;
    let mut phases = Vec::new();
    for phase in &scenario.schedule {
        let ends = begins + phase.length;
        phases.push(PhaseFacts {
            name: phase.name.clone(),
            from_s: begins.as_secs_f64(),
            to_s: ends.as_secs_f64(),
        });
        begins = ends;
    }
    phases
}

/// Delays and their jitter between the nodes, and the clients as the last.
#[derive(PartialEq)]
struct Matrix(Vec<Vec<(u64, Option<Jitter>)>>);

impl Matrix {
    /// `None` when they change within the phase.
    fn of(scenario: &Scenario, load: &Load, phase: &PhaseFacts) -> Option<Matrix> {
        let (asked, paths) = requested_during(scenario, load, phase)?;
        let row = |from: &Vec<String>| {
            paths.iter().map(|to| asked.treatment(from, to)).map(|way| (way.delay_ns, way.jitter)).collect()
        };
        Some(Matrix(paths.iter().map(row).collect()))
    }
}

impl Delays for Matrix {
    fn draw_ns(&self, from: usize, to: usize, random: &mut ChaCha8Rng) -> u64 {
        match self.0.get(from).and_then(|row| row.get(to)) {
            Some((delay_ns, Some(jitter))) => jitter.draw_ns(*delay_ns, random),
            Some((delay_ns, None)) => *delay_ns,
            None => 0,
        }
    }

    fn vary(&self) -> bool {
        self.0.iter().flatten().any(|(_, jitter)| jitter.is_some())
    }
}
