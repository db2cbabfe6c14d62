//! How each figure came out over the repetitions of the same settings: median, nine of ten, worst, and which run that was.
//!
//! Owns which figures are shown, and the tables. Ranks are `measure`'s, the drawing is `dots`'. A run without a figure, such
//! as one that never recovered, ranks behind all that have it: where a rank falls on it, there is no value to tell.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use measure::{Better, Distribution};
use results::RunResult;
use results::losses::{self, LostWrites};
use results::matrix::{CellResult, DistributionResult, MatrixResult};

use super::dots::{Dot, Dots, Strip};
use super::quantity::{Quantity, Subject, all};
use super::text::{self, valued};
use super::{Comparison, Variant};
use crate::format;
use crate::markup::{cut, escape, plain};

/// Columns of a figure's name in the terminal, and of each value.
const NAME: usize = 44;
const VALUE: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Measured(Quantity),
    LostWrites,
    Errors,
}

impl Figure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Figure::Measured(quantity) => quantity.name(),
            Figure::LostWrites => "lost writes",
            Figure::Errors => "errors",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Figure::Measured(quantity) => quantity.word(),
            Figure::LostWrites => "lost_writes",
            Figure::Errors => "errors",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Figure::Measured(quantity) => quantity.unit(),
            Figure::LostWrites | Figure::Errors => "count",
        }
    }

    pub(super) fn better(self) -> Better {
        match self {
            Figure::Measured(quantity) => quantity.better(),
            Figure::LostWrites | Figure::Errors => Better::Smaller,
        }
    }

    /// The step in which it is told; 0 where it has none of its own.
    pub(super) fn resolution(self) -> f64 {
        match self {
            Figure::Measured(quantity) => quantity.resolution(),
            Figure::LostWrites | Figure::Errors => 0.0,
        }
    }

    pub(super) fn valued(self, value: f64) -> String {
        match self {
            Figure::Measured(quantity) => valued(quantity, value),
            Figure::LostWrites | Figure::Errors => format::figure(value),
        }
    }
}

/// A figure over runs.
struct Spread {
    /// What it is of, in words.
    of: String,
    figure: Figure,
    /// In each run that has one: the run's place among them, and the value.
    values: Vec<(usize, f64)>,
    /// Over all runs, those without a value the worst, without end; none where no run has one.
    told: Option<Distribution>,
    /// Whether a value is a lower bound; then every value shown is one.
    is_at_least: bool,
}

/// What is shown where a rank falls on a run without the figure.
const WITHOUT: &str = "none";

/// Behind all values.
fn behind_all(better: Better) -> f64 {
    match better {
        Better::Smaller => f64::INFINITY,
        Better::Larger => f64::NEG_INFINITY,
    }
}

/// A rank's value; none where it falls on a run without one.
fn there(rank: f64) -> Option<f64> {
    rank.is_finite().then_some(rank)
}

impl Spread {
    fn worst_run(&self) -> Option<usize> {
        self.told.map(|told| told.worst_at)
    }

    fn valued(&self, value: f64) -> String {
        let Some(value) = there(value) else { return WITHOUT.to_owned() };
        let valued = self.figure.valued(value);
        if self.is_at_least { format!("≥ {valued}") } else { valued }
    }

    fn median(&self) -> String {
        self.told.map_or_else(nothing, |told| self.valued(told.median))
    }

    fn nine_of_ten(&self) -> String {
        let value = self.told.and_then(|told| told.nine_of_ten);
        value.map_or_else(nothing, |value| self.valued(value))
    }

    fn worst(&self) -> String {
        self.told.map_or_else(nothing, |told| self.valued(told.worst))
    }
}

fn nothing() -> String {
    format::NOTHING.to_owned()
}

fn is_told(subject: &Subject, quantity: Quantity) -> bool {
    match subject {
        Subject::Load { phase: None, .. } => {
            matches!(quantity, Quantity::Throughput | Quantity::P50 | Quantity::P99)
        }
        Subject::Fault { .. } | Subject::Figure { .. } => true,
        Subject::Load { .. } | Subject::Operation { .. } => false,
    }
}

/// Errors of all loads of a run.
pub(super) fn errors(result: &RunResult) -> u64 {
    result.loads.iter().flat_map(|load| load.measured.errors.values()).sum()
}

fn spreads(runs: &[&RunResult]) -> Vec<Spread> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let spread = |of: String, figure: Figure, value: &dyn Fn(&RunResult) -> Option<f64>| {
        let values: Vec<Option<f64>> = runs.iter().map(|result| value(result)).collect();
        let missing = match figure {
            // So many are known to be lost.
            Figure::LostWrites => 0.0,
            _ => behind_all(figure.better()),
        };
        let ranked: Vec<f64> = values.iter().map(|value| value.unwrap_or(missing)).collect();
        let told = Distribution::of(&ranked, figure.better());
        let values: Vec<(usize, f64)> =
            values.into_iter().enumerate().filter_map(|(run, value)| Some((run, value?))).collect();
        let told = told.filter(|_| !values.is_empty());
        Spread { of, figure, values, told, is_at_least: false }
    };
    let mut spreads: Vec<Spread> = all(runs)
        .iter()
        .filter(|(subject, quantity)| is_told(subject, *quantity))
        .map(|(subject, quantity)| {
            spread(text::name(subject), Figure::Measured(*quantity), &|result| quantity.of(result, subject))
        })
        .collect();
    let of_run =
        |figure, value: &dyn Fn(&RunResult) -> Option<f64>| spread("the whole run".to_owned(), figure, value);
    let lost_writes = |result: &RunResult| losses::lost_writes(&result.checks);
    let lost = of_run(Figure::LostWrites, &|result| lost_writes(result).map(|lost| lost.known() as f64));
    let is_at_least =
        runs.iter().copied().any(|result| lost_writes(result).is_none_or(LostWrites::is_at_least));
    spreads.push(Spread { is_at_least, ..lost });
    spreads.push(of_run(Figure::Errors, &|result| Some(errors(result) as f64)));
    spreads
}

/// Of every cell of a matrix with two results or more. Those of runs that were cut short are none.
#[must_use]
pub fn of_matrix(matrix: &MatrixResult) -> Vec<DistributionResult> {
    let mut numbers: Vec<u32> = matrix.cells.iter().map(|run| run.cell).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let of_cell = |number: u32| {
        let mut runs: Vec<&CellResult> = matrix.cells.iter().filter(|run| run.cell == number).collect();
        runs.sort_by_key(|run| run.repetition);
        let with_result = runs.into_iter().filter_map(|run| Some((&run.run_dir, run.result.as_ref()?)));
        let made: Vec<(&PathBuf, &RunResult)> =
            with_result.filter(|(_, result)| result.ran_to_its_end()).collect();
        let results: Vec<&RunResult> = made.iter().map(|(_, result)| *result).collect();
        let told = |spread: Spread| DistributionResult {
            cell: number,
            of: spread.of.clone(),
            figure: spread.figure.word().to_owned(),
            unit: spread.figure.unit().to_owned(),
            runs: results.len(),
            runs_with_value: spread.values.len(),
            at_least: spread.is_at_least,
            median: spread.told.and_then(|told| there(told.median)),
            nine_of_ten: spread.told.and_then(|told| there(told.nine_of_ten?)),
            worst: spread.told.and_then(|told| there(told.worst)),
            worst_run_dir: spread.worst_run().map(|run| made[run].0.clone()),
        };
        spreads(&results).into_iter().map(told).collect::<Vec<_>>()
    };
    numbers.into_iter().flat_map(of_cell).collect()
}

/// The runs of a variant whose figures count.
fn counted(variant: &Variant) -> Vec<(&Path, &RunResult)> {
    variant.counted_runs().map(|run| (run.path.as_path(), &run.result)).collect()
}

fn of_variant(variant: &Variant) -> Vec<Spread> {
    spreads(&counted(variant).into_iter().map(|(_, result)| result).collect::<Vec<_>>())
}

/// The last name of a run's directory: `run-7`.
fn called(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Tables and dots for the page; empty where nothing was repeated.
pub(super) fn html(comparison: &Comparison) -> String {
    let of: Vec<(&Variant, Vec<Spread>)> =
        comparison.variants.iter().map(|variant| (variant, of_variant(variant))).collect();
    let mut html = dots(&of);
    for (variant, spreads) in of.iter().filter(|(_, spreads)| !spreads.is_empty()) {
        html.push_str(&table(variant, spreads, comparison.variants.len() > 1));
    }
    if !html.is_empty() {
        html.push_str(
            "<p class=\"note\">Nine of ten: at least nine of ten runs were this good or better; shown from ten runs \
             on. The worst throughput is the lowest. A run without a figure, such as one that did not recover, has \
             no dot and ranks behind all others: “none” where a rank falls on one.</p>",
        );
    }
    html
}

fn table(variant: &Variant, spreads: &[Spread], is_named: bool) -> String {
    let runs = counted(variant);
    let mut html = String::new();
    if is_named {
        let _ = write!(html, "<h3>{}</h3>", escape(&text::titled(&variant.name, &variant.label)));
    }
    html.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>Of<th>Figure<th class=\"n\">Runs<th class=\"n\">Median\
         <th class=\"n\">Nine of ten<th class=\"n\">Worst<th>Worst run</tr></thead><tbody>",
    );
    let mut before = None;
    for spread in spreads {
        let of = if before == Some(&spread.of) { String::new() } else { escape(&spread.of) };
        before = Some(&spread.of);
        let worst = spread.worst_run().map(|run| runs[run].0);
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{of}<td>{}<td class=\"n\">{} of {}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\
             <td title=\"{}\">{}</tr>",
            escape(spread.figure.name()),
            spread.values.len(),
            runs.len(),
            spread.median(),
            spread.nine_of_ten(),
            spread.worst(),
            escape(&worst.map(|path| path.display().to_string()).unwrap_or_default()),
            escape(&worst.map_or_else(nothing, called)),
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// What is drawn: how long each fault interrupted, and the throughput.
fn is_drawn(figure: Figure) -> bool {
    matches!(figure, Figure::Measured(Quantity::Gap | Quantity::Sustained | Quantity::Throughput))
}

fn dots(of: &[(&Variant, Vec<Spread>)]) -> String {
    let mut drawn: Vec<(&str, Figure)> = Vec::new();
    for spread in of.iter().flat_map(|(_, spreads)| spreads).filter(|spread| is_drawn(spread.figure)) {
        if !drawn.contains(&(spread.of.as_str(), spread.figure)) {
            drawn.push((&spread.of, spread.figure));
        }
    }
    let strip = |(variant, spreads): &(&Variant, Vec<Spread>), (of, figure): (&str, Figure)| {
        let spread = spreads.iter().find(|spread| spread.of == of && spread.figure == figure)?;
        let runs = counted(variant);
        let dot = |(run, value): &(usize, f64)| Dot {
            value: *value,
            title: format!("{}: {}", called(runs[*run].0), figure.valued(*value)),
        };
        let median = there(spread.told?.median);
        Some(Strip { name: variant.name.clone(), median, dots: spread.values.iter().map(dot).collect() })
    };
    let figure_of = |told: &(&str, Figure)| Dots {
        title: format!("{}: {}", told.0, told.1.name()),
        strips: of.iter().filter_map(|variant| strip(variant, *told)).collect(),
        tick: |value| format::figure(value),
        unit: told.1.unit(),
    };
    drawn.iter().map(|told| figure_of(told).html()).collect()
}

/// The same for the terminal.
pub(super) fn text(out: &mut String, comparison: &Comparison) {
    for variant in &comparison.variants {
        let (spreads, runs) = (of_variant(variant), counted(variant));
        if spreads.is_empty() {
            continue;
        }
        let of = if comparison.variants.len() > 1 { format!(", {}", variant.name) } else { String::new() };
        let heading = format!("over {} runs{of}", runs.len());
        let _ = writeln!(
            out,
            "\n{:<NAME$}{:>VALUE$}{:>VALUE$}{:>VALUE$}  in",
            plain(&cut(&heading, NAME - 1)),
            "median",
            "9 of 10",
            "worst"
        );
        let mut before = None;
        for spread in &spreads {
            if before != Some(&spread.of) {
                let _ = writeln!(out, "  {}", plain(&spread.of));
            }
            before = Some(&spread.of);
            let lacking = runs.len() - spread.values.len();
            let without = if lacking > 0 { format!(" ({lacking} without)") } else { String::new() };
            let _ = writeln!(
                out,
                "    {:<width$}{:>VALUE$}{:>VALUE$}{:>VALUE$}  {}",
                format!("{}{without}", spread.figure.name()),
                spread.median(),
                spread.nine_of_ten(),
                spread.worst(),
                plain(&spread.worst_run().map_or_else(nothing, |run| called(runs[run].0))),
                width = NAME - 4
            );
        }
    }
}
