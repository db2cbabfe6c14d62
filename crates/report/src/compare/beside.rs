//! A published report's figures beside those of the compared runs.
//!
//! Owns which of them there are and their table; where they come from is the runs' business.

use std::fmt::Write;

use super::text::{names_width, titled};
use super::{Comparison, Variant};
use crate::format;
use crate::markup::{cut, escape, plain};

/// Columns of a figure's name in the terminal, and of each value.
const NAME: usize = 34;
const VALUE: usize = 14;

/// One figure of one variant.
struct VariantFigure<'c> {
    report: &'c str,
    variant: &'c Variant,
    figure: &'c str,
    reported: f64,
    /// Mean over the variant's runs; none where no run has it.
    measured: Option<f64>,
}

/// Every figure, ordered by its name so that its variants stand below each other.
fn told(comparison: &Comparison) -> Vec<VariantFigure<'_>> {
    let mut told = Vec::new();
    for variant in &comparison.variants {
        let counted = || variant.runs.iter().filter(|run| run.left_out.is_none());
        // Runs of one variant are of one scenario: the first says what was published.
        let Some(first) = counted().next() else { continue };
        for published in &first.result.reproduces.figures {
            let of = |figures: &'_ [results::ReproducedFigure]| {
                figures.iter().find(|figure| figure.name == published.name).and_then(|figure| figure.measured)
            };
            let seen: Vec<f64> = counted().filter_map(|run| of(&run.result.reproduces.figures)).collect();
            told.push(VariantFigure {
                report: &first.result.reproduces.report,
                variant,
                figure: &published.name,
                reported: published.reported,
                measured: (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64),
            });
        }
    }
    let place = |figure: &str| told.iter().position(|other| other.figure == figure);
    let order: Vec<Option<usize>> = told.iter().map(|one| place(one.figure)).collect();
    let mut numbered: Vec<(Option<usize>, VariantFigure<'_>)> = order.into_iter().zip(told).collect();
    numbered.sort_by_key(|(first_seen, _)| *first_seen);
    numbered.into_iter().map(|(_, one)| one).collect()
}

fn measured(told: &VariantFigure<'_>) -> String {
    told.measured.map_or_else(|| "not measured".to_owned(), format::figure)
}

/// A table for the page; empty when nothing was published.
pub(super) fn html(comparison: &Comparison) -> String {
    let told = told(comparison);
    let Some(first) = told.first() else { return String::new() };
    let mut html = format!(
        "<div class=\"scroll\"><table><thead><tr><th>Figure<th>Settings<th class=\"n\">{}<th class=\"n\">These runs</tr>\
         </thead><tbody>",
        escape(first.report)
    );
    for one in &told {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td>{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(one.figure),
            escape(&titled(&one.variant.name, &one.variant.label)),
            escape(&format::figure(one.reported)),
            escape(&measured(one))
        );
    }
    html.push_str(
        "</tbody></table></div><p class=\"note\">Absolute speeds depend on the report’s hardware; only the \
         comparison of settings carries over.</p>",
    );
    html
}

/// The same for the terminal.
pub(super) fn text(out: &mut String, comparison: &Comparison) {
    let told = told(comparison);
    let Some(first) = told.first() else { return };
    let heading = format!("beside {}", first.report);
    let name_width = 2 + names_width(comparison).max(2);
    let report = cut(first.report, VALUE);
    let _ = writeln!(
        out,
        "\n{:<NAME$}{:>name_width$}{:>VALUE$}{:>VALUE$}",
        plain(&heading),
        "",
        plain(&report),
        "these runs"
    );
    for one in &told {
        let _ = writeln!(
            out,
            "  {:<width$}{:>name_width$}{:>VALUE$}{:>VALUE$}",
            plain(&cut(one.figure, NAME - 2)),
            plain(&one.variant.name),
            format::figure(one.reported),
            measured(one),
            width = NAME - 2
        );
    }
}
