//! The comparison for the terminal: plain text of at most 100 columns as long as there are not too many words in a label.

use std::fmt::Write;

use measure::Finding;

use super::quantity::LATENCIES;
use super::{
    Basis, Cell, Comparison, Quantity, Row, Subject, Variant, atlas, beside, distributions, replication,
};
use crate::format;
use crate::markup::{cut, plain};

/// Longest label of a variant.
const LABEL: usize = 64;
/// Longest name of a table.
const HEADING: usize = 100;
/// Columns of the first column, and of the others.
const FIRST_MIN: usize = 24;
/// The first column holds "against" and a name, where that leaves the others within 100 columns.
const AGAINST: usize = 13;
const FIRST_MOST: usize = 35;
const OTHER: usize = 13;

/// Variants, figures side by side, what differs beyond noise.
#[must_use]
pub fn text(comparison: &Comparison) -> String {
    let mut out = format!("{}\n", plain(&comparison.title));
    for variant in &comparison.variants {
        let runs = format::counted(variant.runs.len() as u64, "run", "runs");
        let _ =
            writeln!(out, "  {:<64}  {runs}, {}", plain(&cut(&listed(variant), LABEL)), variant.verdict());
        if let Some(reason) = variant.reason() {
            let _ = writeln!(out, "      {}", plain(&cut(reason, HEADING - 6)));
        }
    }
    for (subject, rows) in subjects(comparison) {
        let latencies = LATENCIES.into_iter().filter(|_| !matches!(subject, Subject::Fault { .. }));
        let quantities: Vec<Quantity> = match subject {
            Subject::Load { .. } => std::iter::once(Quantity::Throughput).chain(latencies).collect(),
            Subject::Operation { .. } => latencies.collect(),
            Subject::Figure { .. } => vec![Quantity::Figure],
            Subject::Fault { .. } => vec![Quantity::FirstSuccess, Quantity::BackTo95Percent],
        };
        table(&mut out, comparison, subject, &quantities, &rows);
    }
    distributions::text(&mut out, comparison);
    beside::text(&mut out, comparison);
    replication::text(&mut out, comparison);
    atlas::text(&mut out, comparison);
    let (looked_for, found) = comparison.counts();
    let _ = write!(out, "\n{}\n", plain(&summary(comparison, looked_for, found)));
    for note in &comparison.notes {
        let _ = writeln!(out, "- {}", plain(note));
    }
    out
}

/// A variant in the list above the tables: letters stand in a column of their own.
fn listed(variant: &Variant) -> String {
    if variant.name == variant.label {
        variant.name.clone()
    } else {
        format!("{:<3} {}", variant.name, variant.label)
    }
}

/// A variant's name and what distinguishes it, unless the name says it.
pub(super) fn titled(name: &str, label: &str) -> String {
    if name == label { name.to_owned() } else { format!("{name} {label}") }
}

/// Columns for the variants' names.
pub(super) fn names_width(comparison: &Comparison) -> usize {
    comparison.variants.iter().map(|variant| variant.name.chars().count()).max().unwrap_or(0)
}

/// Rows by what they are of, in their order.
pub(super) fn subjects(comparison: &Comparison) -> Vec<(&Subject, Vec<&Row>)> {
    let mut subjects: Vec<(&Subject, Vec<&Row>)> = Vec::new();
    for row in &comparison.rows {
        match subjects.iter_mut().find(|(subject, _)| **subject == row.subject) {
            Some((_, rows)) => rows.push(row),
            None => subjects.push((&row.subject, vec![row])),
        }
    }
    subjects
}

/// What a subject is called.
pub(super) fn name(subject: &Subject) -> String {
    match subject {
        Subject::Load { load, phase: None } => format!("{load}, all but warm-up"),
        Subject::Load { load, phase: Some(phase) } => format!("{load}, phase {phase}"),
        Subject::Operation { load, operation } => format!("{load}, {operation}"),
        Subject::Figure { load, figure } => format!("{load}, {figure}"),
        Subject::Fault { number, name } => format!("fault {}, {name}", number.ordinal()),
    }
}

/// A value with its unit.
pub(super) fn valued(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Throughput => format::rate(value),
        Quantity::Figure => format::figure(value),
        _ if quantity.unit() == "s" => format::seconds(value),
        _ => format::latency(value),
    }
}

/// How a value differs from the reference's, and whether that is more than noise.
pub(super) fn change(cell: &Cell) -> Option<(String, Finding)> {
    let difference = cell.difference?;
    let finding = difference.measured.finding;
    let percent = format::change_percent(difference.measured.ratio, 1.0);
    Some((percent.unwrap_or_else(|| format::NOTHING.to_owned()), finding))
}

/// How many differences are shown, and how many false alarms to expect among them.
pub(super) fn summary(comparison: &Comparison, looked_for: usize, found: usize) -> String {
    if let [only] = &comparison.variants[..] {
        if only.runs.len() == 1 {
            return "One run.".to_owned();
        }
        return format!("{} of the same settings.", format::counted(only.runs.len() as u64, "run", "runs"));
    }
    let against = match comparison.has_one_reference() {
        true => format!("Against {}", comparison.variants[0].name),
        false => "Each against the earlier cell that differs least".to_owned(),
    };
    if looked_for == 0 {
        return format!("{against}: nothing could be compared.");
    }
    let alarms = (looked_for as f64 * 0.01).ceil();
    let plural = if alarms > 1.0 { "s" } else { "" };
    if comparison.variants.iter().all(|variant| variant.runs.len() == 1) {
        return format!(
            "{against}: {found} of {looked_for} differences are more than {:.0} % and than the seconds of the two runs vary. \
             Whether a second run would show them again is unknown: there is one of each.",
            measure::compare::BETWEEN_RUNS * 100.0
        );
    }
    format!(
        "{against}: {found} of {looked_for} differences are beyond noise (99 % each; expect about {alarms:.0} \
         false alarm{plural})."
    )
}

fn table(
    out: &mut String,
    comparison: &Comparison,
    subject: &Subject,
    quantities: &[Quantity],
    rows: &[&Row],
) {
    let names = names_width(comparison);
    let first_column = FIRST_MIN.max(names + 2).max((names + AGAINST).min(FIRST_MOST));
    let heading = name(subject);
    let heading = plain(&heading);
    // A long name has a line of its own.
    if heading.chars().count() < first_column {
        let _ = write!(out, "\n{heading:<first_column$}");
    } else {
        let _ = write!(out, "\n{}\n{:first_column$}", cut(&heading, HEADING), "");
    }
    for quantity in quantities {
        let _ = write!(out, "{:>OTHER$}", quantity.name());
    }
    out.push('\n');
    let cells = |index: usize| -> Vec<Option<&Cell>> {
        let of = |quantity: &Quantity| {
            rows.iter().find(|row| row.quantity == *quantity).map(|row| &row.cells[index])
        };
        quantities.iter().map(of).collect()
    };
    for (index, variant) in comparison.variants.iter().enumerate() {
        let _ = write!(out, "  {:<width$}", plain(&variant.name), width = first_column - 2);
        for (quantity, cell) in quantities.iter().zip(cells(index)) {
            let value = cell.and_then(Cell::mean).map(|value| valued(*quantity, value));
            let _ = write!(out, "{:>OTHER$}", value.as_deref().unwrap_or(format::NOTHING));
        }
        out.push('\n');
        if index == variant.reference {
            continue;
        }
        // Names of a matrix's cells often differ at their ends alone, so that a long one has a line of its own.
        let width = first_column - 4;
        let against = cut(&format!("against {}", comparison.variants[variant.reference].name), HEADING - 4);
        let _ = write!(out, "    {:<width$}", plain(&against));
        if against.chars().count() > width {
            let _ = write!(out, "\n{:first_column$}", "");
        }
        for cell in cells(index) {
            let told = match cell.and_then(change) {
                Some((percent, Finding::Larger | Finding::Smaller)) => percent,
                Some((_, Finding::Noise)) => "noise".to_owned(),
                Some((_, Finding::Unknown)) => "not judged".to_owned(),
                None => String::new(),
            };
            let _ = write!(out, "{told:>OTHER$}");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
}

/// On what grounds a difference was judged, in words.
pub(super) fn grounds(basis: Basis) -> String {
    match basis {
        Basis::Runs { first, second } => format!("{first} and {second} runs"),
        Basis::Seconds => "the seconds of one run each".to_owned(),
        Basis::Nothing => "too little data to judge".to_owned(),
    }
}
