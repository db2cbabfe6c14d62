//! What more clients or nodes would give, from what runs have measured: their phases as points of `model`'s law.
//!
//! Owns which phases count: those without a fault and beside warm-up, of closed loops. The law and its uncertainty are
//! `model`'s.

use std::collections::BTreeSet;
use std::path::PathBuf;

use history::WARM_UP;
use model::capacity::{CapacityError as LawError, Fit, Point, fit};
use results::{LoadResult, PhaseResult, RunResult};

/// What there is more or less of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    Clients,
    /// Nodes of the database.
    Nodes,
}

impl By {
    /// Its word for several.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            By::Clients => "clients",
            By::Nodes => "nodes",
        }
    }
}

/// One load over several counts.
#[derive(Debug, Clone)]
pub struct Capacity {
    /// The load's name.
    pub load: String,
    /// What was counted.
    pub by: By,
    /// What was measured.
    pub points: Vec<Point>,
    /// The law.
    pub fit: Fit,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// A run directory.
    #[error(transparent)]
    Read(#[from] results::ReadError),
    /// No phase counts.
    #[error(
        "no phase of these runs can be used: only closed-loop phases without a fault count, and not {WARM_UP}"
    )]
    NoPhases,
    /// More than one thing changed.
    #[error(
        "load {load} was measured with different numbers of clients and of nodes; choose one: `--by clients` or \
         `--by nodes`"
    )]
    BothVary { load: String },
    /// Too little was measured.
    #[error("load {load}, by {}: {source}", by.name())]
    Law {
        load: String,
        /// What was counted.
        by: By,
        /// What its figures lack for a law.
        source: LawError,
    },
}

/// A phase of some run.
struct Measured {
    load: String,
    clients: u32,
    nodes: u32,
    per_s: f64,
    error: f64,
}

/// Reads runs and tells of each of their loads, by name.
///
/// # Errors
/// When a directory cannot be read, or a load was measured at too few counts.
pub fn of_runs(directories: &[PathBuf], by: Option<By>, seed: u64) -> Result<Vec<Capacity>, CapacityError> {
    let mut measured = Vec::new();
    for directory in directories {
        let run = results::read(directory)?;
        let counts = |load: &str, operation: &str| {
            let rows = run.timeline.iter().filter(|row| row.load == load && row.operation == operation);
            rows.map(|row| (row.second, row.count)).collect::<Vec<(u64, u64)>>()
        };
        measured.extend(phases(&run.result, counts));
    }
    of_phases(&measured, by, seed)
}

/// Of one run: what is told of its loads with a sweep, where enough was measured.
pub(crate) fn of_result(
    result: &RunResult,
    counts: impl Fn(&str, &str) -> Vec<(u64, u64)>,
    seed: u64,
) -> Vec<Capacity> {
    of_phases(&phases(result, counts), Some(By::Clients), seed).unwrap_or_default()
}

fn of_phases(measured: &[Measured], by: Option<By>, seed: u64) -> Result<Vec<Capacity>, CapacityError> {
    let loads: BTreeSet<&str> = measured.iter().map(|one| one.load.as_str()).collect();
    if loads.is_empty() {
        return Err(CapacityError::NoPhases);
    }
    loads.into_iter().map(|load| of_load(load, measured, by, seed)).collect()
}

fn of_load(load: &str, measured: &[Measured], by: Option<By>, seed: u64) -> Result<Capacity, CapacityError> {
    let own: Vec<&Measured> = measured.iter().filter(|one| one.load == load).collect();
    let clients: BTreeSet<u32> = own.iter().map(|one| one.clients).collect();
    let nodes: BTreeSet<u32> = own.iter().map(|one| one.nodes).collect();
    let by = match by {
        Some(by) => by,
        None if clients.len() > 1 && nodes.len() > 1 => {
            return Err(CapacityError::BothVary { load: load.to_owned() });
        }
        None if nodes.len() > 1 => By::Nodes,
        None => By::Clients,
    };
    let point = |one: &&Measured| Point {
        count: f64::from(if by == By::Clients { one.clients } else { one.nodes }),
        per_s: one.per_s,
        error: one.error,
    };
    let points: Vec<Point> = own.iter().map(point).collect();
    let fit =
        fit(&points, seed).map_err(|source| CapacityError::Law { load: load.to_owned(), by, source })?;
    Ok(Capacity { load: load.to_owned(), by, points, fit })
}

/// The phases of a run that count; `counts` gives an operation's successes by second.
fn phases(result: &RunResult, counts: impl Fn(&str, &str) -> Vec<(u64, u64)>) -> Vec<Measured> {
    let undisturbed = |phase: &&PhaseResult| {
        let stands = |fault: &results::FaultResult| {
            fault.asked_s < phase.to_s && fault.healed_s.is_none_or(|healed_s| healed_s > phase.from_s)
        };
        // Where clients came and went within a phase, its throughput is of no number of them.
        phase.measured.clients_least.is_none() && phase.name != WARM_UP && !result.faults.iter().any(stands)
    };
    let of_load = |load: &LoadResult| {
        let facts = result.facts.loads.iter().find(|facts| facts.name == load.name);
        let series = facts.map(|facts| counts(&load.name, &facts.transaction)).unwrap_or_default();
        let of_phase = |phase: &PhaseResult| {
            // Clients come and go in the first second of a phase.
            let within =
                |second: &u64| *second as f64 > phase.from_s + 0.5 && (*second as f64) < phase.to_s - 0.5;
            let seconds: Vec<f64> =
                series.iter().filter(|(second, _)| within(second)).map(|(_, count)| *count as f64).collect();
            let spread = mean_and_error(&seconds);
            Some(Measured {
                load: load.name.clone(),
                clients: phase.measured.clients?,
                nodes: result.lab.nodes,
                per_s: spread.map_or(phase.measured.throughput_per_s, |(mean, _)| mean),
                error: spread.map_or(0.0, |(_, error)| error),
            })
        };
        load.phases.iter().filter(undisturbed).filter_map(of_phase).collect::<Vec<Measured>>()
    };
    result.loads.iter().flat_map(of_load).collect()
}

/// The mean of some seconds and its standard error as a share of it; `None` where there is none. How phases differ from
/// each other beyond that is seen in what the law leaves over.
fn mean_and_error(seconds: &[f64]) -> Option<(f64, f64)> {
    let count = seconds.len() as f64;
    let mean = seconds.iter().sum::<f64>() / count;
    if seconds.len() < 2 || mean <= 0.0 {
        return None;
    }
    let variance = seconds.iter().map(|second| (second - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some((mean, (variance / count).sqrt() / mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(load: &str, clients: u32, nodes: u32) -> Measured {
        let per_s = f64::from(clients * nodes) * 100.0 / (1.0 + 0.1 * f64::from(clients));
        Measured { load: load.to_owned(), clients, nodes, per_s, error: 0.01 }
    }

    #[test]
    fn what_varies_is_what_is_told_by_and_if_both_do_somebody_must_say() {
        let by_clients: Vec<Measured> = (1..=6).map(|clients| measured("a", clients, 3)).collect();
        assert_eq!(of_phases(&by_clients, None, 1).expect("enough")[0].by, By::Clients);
        let by_nodes: Vec<Measured> = (1..=6).map(|nodes| measured("a", 4, nodes)).collect();
        assert_eq!(of_phases(&by_nodes, None, 1).expect("enough")[0].by, By::Nodes);
        let both: Vec<Measured> = (1..=6).map(|count| measured("a", count, count)).collect();
        assert!(matches!(of_phases(&both, None, 1), Err(CapacityError::BothVary { .. })));
        assert!(of_phases(&both, Some(By::Nodes), 1).is_ok());
    }

    #[test]
    fn too_little_is_refused_with_the_load_named() {
        let few: Vec<Measured> = (1..=3).map(|clients| measured("a", clients, 3)).collect();
        let told = of_phases(&few, None, 1).expect_err("too few").to_string();
        assert!(told.starts_with("load a, by clients: 3 measurements are too few"), "{told}");
        assert!(matches!(of_phases(&[], None, 1), Err(CapacityError::NoPhases)));
    }
}
