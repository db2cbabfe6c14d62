//! Bounds on differences between variants, for pipelines: whether one is exceeded, is not, or cannot be told.
//!
//! Owns the names of subjects and the judgement. The words of an expression are the program's; the statistics are
//! `measure`'s.

use history::Verdict;
use measure::Finding;
use results::Doubt;

use super::text::{grounds, name as name_of};
use super::{Basis, Cell, Comparison, Row, Run, Subject, Variant, atlas};
use crate::format;

/// How far a figure may move from the first variant's, and to which side: above for a positive number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A share of the first variant's figure: 0.2 for `> +20%`.
    Share(f64),
    /// In the figure's own unit.
    Absolute(f64),
}

/// A difference that is not acceptable.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// A load, a load and one of its phases or operations, or a fault; none for every load as a whole and every fault. `atlas`,
    /// or that and a load or fault, where the figures are held against the atlas'.
    pub scope: Option<String>,
    /// Name of the quantity, or of a workload's figure.
    pub quantity: String,
    pub bound: Bound,
}

/// Why a gate fits these runs nowhere.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GateError {
    /// All runs are of the same settings.
    #[error("all runs have the same settings and count as repetitions, so no difference can be judged")]
    OneVariant,
    /// No subject of this name.
    #[error("there is no load, phase, operation or fault `{scope}` in these runs")]
    NoScope {
        /// As written.
        scope: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The subject has no such figure.
    #[error("there is no quantity `{quantity}` to compare")]
    NoQuantity {
        /// As written.
        quantity: String,
        /// Those that there are.
        known: Vec<String>,
    },
}

/// What was found about one figure of one variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Fail when the bound is exceeded, pass when it was shown not to be.
    pub verdict: Verdict,
    /// The figures and the reason.
    pub explanation: String,
}

/// Judges every figure that the gate names, in every variant that is held against another; beside an atlas, in every variant.
/// Runs that show nothing are doubts of their own: a bound that is not exceeded is not shown to be kept. Nor is one shown to be
/// exceeded by figures that are not the database's alone.
///
/// # Errors
/// When it names none.
pub fn judge(comparison: &Comparison, gate: &Gate) -> Result<Vec<Judged>, GateError> {
    let mut judged = match atlas::judge(comparison, gate) {
        Some(of_atlas) => of_atlas?,
        None => of_variants(comparison, gate)?,
    };
    judged.extend(doubts(comparison));
    Ok(judged)
}

/// Each run whose verdict is unknown and each cell of a matrix that left no result, with the reason.
fn doubts(comparison: &Comparison) -> Vec<Judged> {
    let doubt = |explanation: String| Judged { verdict: Verdict::Unknown, explanation };
    let mut doubts = Vec::new();
    for variant in &comparison.variants {
        for run in variant.runs.iter().filter(|run| run.result.verdict == Verdict::Unknown) {
            let why = run.left_out.as_deref().or(run.result.reasons.first().map(String::as_str));
            let (name, path) = (&variant.name, run.path.display());
            let why = why.unwrap_or("its result gives no reason");
            doubts.push(doubt(format!("{name}, {path}: the run itself is unknown: {why}")));
        }
    }
    doubts.extend(comparison.missing.iter().map(|missing| doubt(missing.sentence())));
    doubts
}

fn of_variants(comparison: &Comparison, gate: &Gate) -> Result<Vec<Judged>, GateError> {
    if comparison.variants.len() < 2 {
        // The other side may be what left no result.
        return if comparison.missing.is_empty() { Err(GateError::OneVariant) } else { Ok(Vec::new()) };
    }
    let in_scope: Vec<&Row> = comparison.rows.iter().filter(|row| gate.has(row)).collect();
    if let (true, Some(scope)) = (in_scope.is_empty(), &gate.scope) {
        let known = distinct(comparison.rows.iter().filter_map(scope_of));
        return Err(GateError::NoScope { scope: scope.clone(), known });
    }
    let named: Vec<&Row> = in_scope.iter().copied().filter(|row| word(row) == gate.quantity).collect();
    if named.is_empty() {
        let known = distinct(in_scope.into_iter().map(|row| word(row).to_owned()));
        return Err(GateError::NoQuantity { quantity: gate.quantity.clone(), known });
    }
    Ok(named.iter().flat_map(|row| of_row(comparison, row, gate.bound)).collect())
}

impl Gate {
    fn has(&self, row: &Row) -> bool {
        match (&self.scope, &row.subject) {
            (None, Subject::Load { phase, .. }) => phase.is_none(),
            (None, subject) => !matches!(subject, Subject::Operation { .. }),
            (Some(scope), Subject::Fault { number, .. }) => *scope == format!("fault-{}", number.ordinal()),
            (Some(scope), _) => scope_of(row).as_ref() == Some(scope),
        }
    }
}

/// What an expression calls a row's subject.
fn scope_of(row: &Row) -> Option<String> {
    Some(match &row.subject {
        Subject::Load { load, phase: None } | Subject::Figure { load, .. } => load.clone(),
        Subject::Load { load, phase: Some(phase) } => format!("{load}.{phase}"),
        Subject::Operation { load, operation } => format!("{load}.{operation}"),
        Subject::Fault { number, .. } => format!("fault-{}", number.ordinal()),
    })
}

fn word(row: &Row) -> &str {
    match &row.subject {
        Subject::Figure { figure, .. } => figure,
        _ => row.quantity.word(),
    }
}

pub(super) fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

fn of_row(comparison: &Comparison, row: &Row, bound: Bound) -> Vec<Judged> {
    let variants = comparison.variants.iter().zip(&row.cells);
    // Runs that are left out are held against nothing, and yet they were made: they may have died of what is asked for.
    let made: Vec<(&Variant, &Cell)> = variants.collect();
    let figure = match &row.subject {
        Subject::Figure { .. } => name_of(&row.subject),
        subject => format!("{}: {}", name_of(subject), row.quantity.word()),
    };
    let of_variant = |((variant, cell), against): (&(&Variant, &Cell), usize)| {
        let (reference, first) = made[against];
        // A mean over the runs that have a value says nothing of those that have none: they may never have recovered.
        let missing = (variant.runs.len() - cell.values.len()) + (reference.runs.len() - first.values.len());
        let in_doubt =
            [*variant, reference].iter().flat_map(|variant| &variant.runs).filter(is_in_doubt).count();
        let (verdict, why) = match missing {
            0 => match of_cell(first, cell, bound, row.quantity.resolution()) {
                (Verdict::Fail, why) if in_doubt > 0 => {
                    let figures = format::counted(in_doubt as u64, "run's figures are", "runs' figures are");
                    (Verdict::Unknown, format!("{why}, and {figures} not the database's alone"))
                }
                judged => judged,
            },
            _ => (
                Verdict::Unknown,
                format!("{} no such figure", format::counted(missing as u64, "run has", "runs have")),
            ),
        };
        let explanation = format!("{figure}, {} against {}: {why}", variant.name, reference.name);
        Judged { verdict, explanation }
    };
    let references = comparison.variants.iter().map(|variant| variant.reference);
    let held = made.iter().zip(references).enumerate().filter(|(index, (_, against))| index != against);
    held.map(|(_, held)| of_variant(held)).collect()
}

/// Whether a run's figures may be those of something else than the database.
fn is_in_doubt(run: &&Run) -> bool {
    run.result.doubts().iter().any(Doubt::is_of_figures)
}

/// Exceeded: the difference is shown, and the figure lies beyond the bound. Not exceeded: the interval of 99 % ends before
/// the bound. Between the two it is `unknown`. A figure that is measured in steps of `resolution` may be off by as much, in the same
/// direction in every run, so that the interval is that much wider.
pub(super) fn of_cell(first: &Cell, cell: &Cell, bound: Bound, resolution: f64) -> (Verdict, String) {
    let unknown = |why: &str| (Verdict::Unknown, why.to_owned());
    let (Some(difference), Some(reference)) = (cell.difference, first.mean()) else {
        return unknown("no valid run has this figure");
    };
    let measured = difference.measured;
    let (Basis::Runs { .. }, true) = (difference.basis, measured.finding != Finding::Unknown) else {
        return match difference.basis {
            Basis::Seconds => unknown("single runs; repeat each at least three times"),
            _ if first.values.len() < measure::compare::RUNS_MIN
                || cell.values.len() < measure::compare::RUNS_MIN =>
            {
                unknown("single runs; repeat each at least three times")
            }
            _ => unknown("these figures have no ratio"),
        };
    };
    let limit = match bound {
        Bound::Share(share) => 1.0 + share,
        Bound::Absolute(by) => 1.0 + by / reference,
    };
    // Nothing falls below 0: such a bound would hold for a figure of 0, too.
    if limit <= 0.0 {
        return unknown("the bound is no smaller than the reference figure, so nothing can exceed it");
    }
    let is_above = limit > 1.0;
    let step = resolution / reference;
    let (low, high) = (measured.low - step, measured.high + step);
    let (is_shown, is_beyond, is_within) = if is_above {
        (measured.finding == Finding::Larger, measured.ratio - step > limit, high <= limit)
    } else {
        (measured.finding == Finding::Smaller, measured.ratio + step < limit, low >= limit)
    };
    let percent =
        |ratio: f64| format::change_percent(ratio, 1.0).unwrap_or_else(|| format::NOTHING.to_owned());
    let seen = format!(
        "{} (99 % interval {} to {}; {})",
        percent(measured.ratio),
        percent(low),
        percent(high),
        grounds(difference.basis)
    );
    match (is_shown && is_beyond, is_within) {
        (true, _) => (Verdict::Fail, format!("{seen}: beyond the bound")),
        (false, true) => (Verdict::Pass, format!("{seen}: within the bound")),
        (false, false) => {
            (Verdict::Unknown, format!("{seen}: too much noise to decide; repeat each more often"))
        }
    }
}
