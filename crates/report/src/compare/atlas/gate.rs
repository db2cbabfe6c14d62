//! Bounds on how far a figure may be from the atlas': `atlas.gap > +50%`.
//!
//! A bound is judged by several runs on each side, as between variants. Where the two are not comparable, the cell has too few
//! runs or the figure is the machine's, nothing is decided.

use history::Verdict;
use measure::Sampling;

use super::figures::{Figure, Stands};
use super::{Against, AtlasComparison, SCOPE, words};
use crate::compare::distributions::Figure as Kind;
use crate::compare::gate::{Gate, GateError, Judged, distinct, of_cell};
use crate::compare::{Basis, Cell, Comparison, Difference, Quantity};
use crate::format;

/// Judges every figure that the gate names, of every variant; none where the gate is not about the atlas.
///
/// # Errors
/// When it names none.
pub(in crate::compare) fn judge(
    comparison: &Comparison,
    gate: &Gate,
) -> Option<Result<Vec<Judged>, GateError>> {
    let beside = comparison.beside_atlas.as_ref()?;
    let written = gate.scope.as_deref()?;
    let scope = match written.strip_prefix(SCOPE)? {
        "" => None,
        rest => Some(rest.strip_prefix('.')?),
    };
    Some(of_scope(comparison, beside, scope, gate))
}

fn of_scope(
    comparison: &Comparison,
    beside: &AtlasComparison,
    scope: Option<&str>,
    gate: &Gate,
) -> Result<Vec<Judged>, GateError> {
    let (mut judged, mut scopes, mut quantities) = (Vec::new(), Vec::new(), Vec::new());
    for standing in &beside.standings {
        let fault = standing.fault.as_ref().map(|(number, _)| format!("fault-{}", number.ordinal()));
        let of = super::text::heading(comparison, standing.variant, standing.fault.as_ref());
        let against = match &standing.beside {
            Ok(against) => against,
            Err(_) if scope.is_some_and(|scope| is_of_another_fault(scope, fault.as_deref())) => continue,
            Err(why) => {
                scopes.extend(fault);
                let explanation = format!("{of}: {}", words::nothing(why, &beside.name));
                judged.push(Judged { verdict: Verdict::Unknown, explanation });
                continue;
            }
        };
        if !against.obstacles.of_loads.is_empty() && is_of_a_load(&gate.quantity) {
            let explanation =
                format!("{of}: the loads differ from the atlas', so {} is not compared", gate.quantity);
            judged.push(Judged { verdict: Verdict::Unknown, explanation });
        }
        for figure in &against.figures {
            let own = figure.load.clone().or_else(|| fault.clone()).unwrap_or_default();
            let is_in_scope = scope.is_none_or(|scope| scope == own);
            scopes.push(own);
            let Kind::Measured(quantity) = figure.kind else { continue };
            if !is_in_scope {
                continue;
            }
            quantities.push(quantity.word().to_owned());
            if quantity.word() == gate.quantity {
                let (verdict, why) = match left_out(comparison, standing.variant) {
                    0 => of_figure(against, figure, gate),
                    // They may have died of what is asked for.
                    runs => {
                        let runs = format::counted(runs as u64, "run was", "runs were");
                        (Verdict::Unknown, format!("{runs} left out"))
                    }
                };
                let explanation = format!("{of}, {}: {why}", words::name(figure));
                judged.push(Judged { verdict, explanation });
            }
        }
    }
    if !judged.is_empty() {
        return Ok(judged);
    }
    let (scope, quantity) = (gate.scope.clone().unwrap_or_default(), gate.quantity.clone());
    match quantities.is_empty() {
        true => {
            let named = scopes.into_iter().map(|own| format!("{SCOPE}.{own}"));
            let known = distinct(std::iter::once(SCOPE.to_owned()).chain(named));
            Err(GateError::NoScope { scope, known })
        }
        false => Err(GateError::NoQuantity { quantity, known: distinct(quantities.into_iter()) }),
    }
}

/// How many of a variant's runs say nothing of any figure.
fn left_out(comparison: &Comparison, variant: usize) -> usize {
    comparison.variants.get(variant).map_or(0, |variant| variant.runs.len() - variant.counted())
}

/// Whether a scope names a fault, and not this one. Where none is known, nobody knows that it is another.
fn is_of_another_fault(scope: &str, fault: Option<&str>) -> bool {
    scope.starts_with("fault-") && fault.is_some_and(|fault| fault != scope)
}

fn is_of_a_load(quantity: &str) -> bool {
    [Quantity::Throughput, Quantity::P50, Quantity::P99].iter().any(|of| of.word() == quantity)
}

fn of_figure(against: &Against, figure: &Figure, gate: &Gate) -> (Verdict, String) {
    let unknown = |why: &str| (Verdict::Unknown, why.to_owned());
    match figure.stands {
        Stands::NotComparable => return unknown("the run and the atlas are not comparable"),
        Stands::TooFew => return unknown("the atlas has too few runs"),
        Stands::Unsaid => return unknown("not all runs have the figure"),
        Stands::Ranked(_) | Stands::Means(_) => {}
    }
    if figure.is_of_the_machine() && !against.is_same_machine() {
        return unknown("the machines differ, and this figure depends on the machine");
    }
    let values =
        |seen: &[super::figures::Seen]| -> Vec<f64> { seen.iter().filter_map(|seen| seen.value()).collect() };
    let (theirs, ours) = (values(&figure.theirs), values(&figure.ours));
    if ours.len() < figure.ours.len() || theirs.len() < figure.theirs.len() {
        return unknown("some runs have no value");
    }
    let measured = match figure.stands {
        Stands::Means(means) => means,
        _ => measure::compare(&theirs, &ours, Sampling::Runs, figure.kind.resolution(), 0),
    };
    let basis = Basis::Runs { first: theirs.len(), second: ours.len() };
    let reference = Cell { values: theirs, difference: None };
    let cell = Cell { values: ours, difference: Some(Difference { measured, basis }) };
    of_cell(&reference, &cell, gate.bound, figure.kind.resolution())
}
