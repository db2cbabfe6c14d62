//! The tables of figures: each load by phase, and each of its statements by phase against the baseline.

use std::collections::BTreeSet;
use std::fmt::Write;

use history::{BASELINE, WARM_UP};
use measure::interval::CONNECT;
use measure::warnings::Percentile;

use crate::first_errors;
use crate::format;
use crate::markup::escape;
use crate::sweep_curve;
use results::{LatencyUs, LoadResult, OperationResult, PhaseResult, RunResult};

/// Marks a percentile beyond which fewer than ten samples lie.
const FEW_BEYOND: &str = "<sup>†</sup>";
/// What the mark means.
const FEW_BEYOND_NOTE: &str = "<p class=\"note\"><sup>†</sup> Too few samples: fewer than ten are beyond this percentile, so it is little \
    more than the maximum. p95 needs 200 samples, p99 1,000, p99.9 10,000.</p>";

/// Phases side by side in a table of statements: more would be cut off on paper.
const MOST_PHASES: usize = 3;

/// A figure that exceeds 100 % where a run is short.
pub(crate) const EFFICIENCY: &str = "efficiency_percent";
/// What it says then.
pub(crate) const EFFICIENCY_ABOVE_100: &str = "<p class=\"note\">An efficiency above 100 % is possible in a short run, because the \
    standard’s pauses limit only the mean rate over hours. Without these pauses (<code>pauses: off</code>) there is no limit, and the \
    figure has no meaning.</p>";

/// Both tables for each load.
pub(crate) fn loads(result: &RunResult) -> String {
    if result.loads.is_empty() {
        return "<p>No load of this run left figures.</p>".to_owned();
    }
    let tables = |load: &LoadResult| {
        let percentiles = by_phase(load)
            + &statement_rates(result, load)
            + &sweep_curve::figure(load)
            + &standard(load)
            + &by_statement(result, load);
        let note = if percentiles.contains(FEW_BEYOND) { FEW_BEYOND_NOTE } else { "" };
        percentiles + note + &errors_by_operation(load) + &first_errors(load)
    };
    result.loads.iter().map(tables).collect()
}

/// The first error of each class, in the words of whoever raised it.
fn first_errors(load: &LoadResult) -> String {
    if load.first_errors.is_empty() {
        return String::new();
    }
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>First error of its class<th>Code<th class=\"n\">At<th>Node\
                    <th>Message</tr></thead><tbody>"
        .to_owned();
    for error in &load.first_errors {
        let hint =
            first_errors::hint(error).map_or_else(String::new, |hint| format!("<br><strong>{hint}</strong>"));
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td>{}<td class=\"n\">{}<td>{}<td class=\"errors\">{}{hint}</tr>",
            error.class.name(),
            escape(error.code.as_deref().unwrap_or(format::NOTHING)),
            format::seconds(error.at_s),
            escape(error.node.as_deref().unwrap_or(format::NOTHING)),
            escape(&error.text),
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// The figures that the workload defines: TPC-C's, the throughput of each pass of rawio.
fn standard(load: &LoadResult) -> String {
    if load.measured.figures.is_empty() {
        return String::new();
    }
    let phases: Vec<&PhaseResult> = load
        .phases
        .iter()
        .filter(|phase| phase.name != WARM_UP && !phase.measured.figures.is_empty())
        .collect();
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"standard\"><thead><tr><th>Figures of {}<th class=\"n\">Whole load",
        escape(&load.workload)
    );
    for phase in &phases {
        let _ = write!(html, "<th class=\"n\">{}", escape(&phase.name));
    }
    html.push_str("</tr></thead><tbody>");
    for (key, value) in &load.measured.figures {
        let (name, unit) = match (key.strip_suffix("_percent"), key.strip_suffix("_mb_per_s")) {
            (Some(name), _) => (name, " %"),
            (_, Some(name)) => (name, " MB/s"),
            _ => (key.as_str(), ""),
        };
        let name = name.replace('_', " ");
        let _ = write!(html, "<tr><th scope=\"row\">{}<td class=\"n\">{value:.1}{unit}", escape(&name));
        for phase in &phases {
            let told = phase.measured.figures.get(key).map(|value| format!("{value:.1}{unit}"));
            let _ = write!(html, "<td class=\"n\">{}", told.as_deref().unwrap_or(format::NOTHING));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    if load.measured.figures.get(EFFICIENCY).is_some_and(|percent| *percent > 100.0) {
        html.push_str(EFFICIENCY_ABOVE_100);
    }
    html
}

fn is_reference(phase: &PhaseResult) -> bool {
    phase.name == BASELINE
}

/// Errors by class, in words.
pub(crate) fn errors(errors: &std::collections::BTreeMap<String, u64>) -> String {
    let written: Vec<String> = errors
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(class, errors)| format!("{} {class}", format::count(*errors)))
        .collect();
    if written.is_empty() { "0".to_owned() } else { written.join(", ") }
}

/// A percentile of so many samples, marked where too few lie beyond it.
fn high(percentile: Percentile, latency: &LatencyUs, samples: u64) -> String {
    let value_us = match percentile {
        Percentile::P95 => latency.p95,
        Percentile::P99 => latency.p99,
        Percentile::P99_9 => latency.p99_9,
    };
    let mark = if value_us > 0 && samples < percentile.samples_needed() { FEW_BEYOND } else { "" };
    format!("{}{mark}", format::latency(value_us as f64))
}

/// How a load was driven; from the lowest to the highest step where it was swept.
fn drive(load: &LoadResult) -> String {
    let of_phase = |phase: &PhaseResult| [phase.measured.clients, phase.measured.clients_least];
    let clients = || load.phases.iter().flat_map(of_phase).flatten().chain(load.measured.clients);
    let range = |phase: &PhaseResult| phase.measured.rate_range_per_s.unwrap_or_default();
    let known = |rate: &f64| *rate > 0.0;
    let rates = || {
        let means =
            load.phases.iter().filter_map(|phase| phase.measured.rate_per_s).chain(load.measured.rate_per_s);
        means.chain(load.phases.iter().flat_map(range)).filter(known)
    };
    let (slowest, fastest) = (rates().min_by(f64::total_cmp), rates().max_by(f64::total_cmp));
    match (clients().min(), clients().max(), slowest.zip(fastest)) {
        (Some(fewest), Some(most), _) if fewest < most => format!("closed loop, {fewest} to {most} clients"),
        (Some(clients), ..) => {
            format!("closed loop, {}", format::counted(u64::from(clients), "client", "clients"))
        }
        (None, _, Some((slowest, fastest))) if slowest < fastest => {
            format!("open loop, {} to {} due", format::rate(slowest), format::rate(fastest))
        }
        (None, _, Some((per_s, _))) => format!("open loop, {} due", format::rate(per_s)),
        (None, _, None) => String::new(),
    }
}

fn by_phase(load: &LoadResult) -> String {
    let drive = drive(load);
    let mut html = format!(
        "<h3>{} <small>{}{}{}</small></h3><div class=\"scroll\"><table><thead><tr><th>Phase\
         <th class=\"n\">Transactions<th class=\"n\">Throughput<th class=\"n\">vs baseline<th class=\"n\">Mean<th class=\"n\">p50\
         <th class=\"n\">p90<th class=\"n\">p95<th class=\"n\">p99<th class=\"n\">p99.9<th class=\"n\">Longest<th>Errors</tr></thead><tbody>",
        escape(&load.name),
        escape(&load.workload),
        if drive.is_empty() { "" } else { ", " },
        drive
    );
    // What was asked changes from phase to phase: then each row says what it was.
    let sweeps = load.phases.iter().any(|phase| pace_of(phase) != pace_of(&load.phases[0]));
    let reference =
        load.phases.iter().find(|phase| is_reference(phase)).map(|phase| phase.measured.throughput_per_s);
    for phase in &load.phases {
        let change = match reference {
            Some(base) if !is_reference(phase) && phase.name != WARM_UP => {
                format::change_percent(phase.measured.throughput_per_s, base)
                    .unwrap_or_else(|| format::NOTHING.to_owned())
            }
            _ => String::new(),
        };
        let pace = if sweeps { pace_of(phase) } else { String::new() };
        let span = format!(
            "{pace}{} – {}",
            format::seconds(phase.from_s).trim_end_matches("\u{a0}s"),
            format::seconds(phase.to_s)
        );
        row(
            &mut html,
            &phase.name,
            &span,
            phase.measured.transactions,
            phase.measured.throughput_per_s,
            &change,
            &phase.measured.latency_us,
            &phase.measured.errors,
        );
    }
    html.push_str("</tbody><tfoot>");
    row(
        &mut html,
        "all but warm-up",
        "",
        load.measured.transactions,
        load.measured.throughput_per_s,
        "",
        &load.measured.latency_us,
        &load.measured.errors,
    );
    html.push_str("</tfoot></table></div>");
    html
}

/// What was asked in a phase, from the least to the most where it changed within.
fn pace_of(phase: &PhaseResult) -> String {
    let clients = phase.measured.clients.map(|most| format::counted(u64::from(most), "client", "clients"));
    match (clients, phase.measured.clients_least, phase.measured.rate_per_s, phase.measured.rate_range_per_s)
    {
        (Some(most), Some(least), ..) => format!("{least} to {most}, "),
        (Some(clients), ..) => format!("{clients}, "),
        (.., Some([least, most])) => format!("{} to {} due, ", format::rate(least), format::rate(most)),
        (.., Some(per_s), None) => format!("{} due, ", format::rate(per_s)),
        _ => String::new(),
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "a row is its cells; a struct of them would only say the same twice"
)]
fn row(
    html: &mut String,
    name: &str,
    span: &str,
    transactions: u64,
    throughput_per_s: f64,
    change: &str,
    latency: &LatencyUs,
    error_counts: &std::collections::BTreeMap<String, u64>,
) {
    let _ = write!(
        html,
        "<tr><th scope=\"row\">{} <small>{span}</small><td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{change}\
         <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\
         <td class=\"errors\">{}</tr>",
        escape(name),
        format::count(transactions),
        format::rate(throughput_per_s),
        format::latency(latency.mean),
        format::latency(latency.p50 as f64),
        format::latency(latency.p90 as f64),
        high(Percentile::P95, latency, transactions),
        high(Percentile::P99, latency, transactions),
        high(Percentile::P99_9, latency, transactions),
        format::latency(latency.max as f64),
        error_cell(error_counts)
    );
}

/// How many statements the database answered a second, as one sentence; empty where a transaction has no statements of its own.
fn statement_rates(result: &RunResult, load: &LoadResult) -> String {
    let facts = result.facts.loads.iter().find(|facts| facts.name == load.name);
    let Some(statements) = facts.map(|facts| &facts.statements).filter(|statements| !statements.is_empty())
    else {
        return String::new();
    };
    let rate = |phase: &PhaseResult| {
        let counts = statements.iter().filter_map(|name| phase.measured.operations.get(name));
        let count: u64 = counts.map(|operation| operation.count).sum();
        let length_s = phase.to_s - phase.from_s;
        (length_s > 0.0).then(|| format!("{} {}", escape(&phase.name), format::rate(count as f64 / length_s)))
    };
    let phases = load.phases.iter().filter(|phase| phase.name != WARM_UP);
    let rates: Vec<String> = phases.filter_map(rate).collect();
    if rates.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">Statements: {}.</p>", rates.join(", "))
    }
}

/// Errors in a table: their number, and below it their classes.
fn error_cell(counts: &std::collections::BTreeMap<String, u64>) -> String {
    let sum = counts.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    if sum == 0 {
        return "0".to_owned();
    }
    let classes: Vec<(&String, &u64)> = counts.iter().filter(|(_, count)| **count > 0).collect();
    let detail: String = match classes.as_slice() {
        [(class, _)] => format!(" <small>{}</small>", escape(class)),
        classes => classes
            .iter()
            .map(|(class, count)| format!(" <small>{} {}</small>", format::count(**count), escape(class)))
            .collect(),
    };
    format!("{}{detail}", format::count(sum))
}

/// Statements in their order within the transaction, then the transaction, then whatever else was measured.
fn rows_of(result: &RunResult, load: &LoadResult, phases: &[&PhaseResult]) -> Vec<String> {
    let measured: BTreeSet<&String> = phases
        .iter()
        .flat_map(|phase| &phase.measured.operations)
        .filter(|(_, operation)| operation.count > 0)
        .map(|(name, _)| name)
        .collect();
    let facts = result.facts.loads.iter().find(|facts| facts.name == load.name);
    let planned = facts.map(|facts| facts.statements.iter().chain([&facts.transaction]).collect::<Vec<_>>());
    let planned = planned.unwrap_or_default();
    let known = planned.iter().copied().filter(|name| measured.contains(name));
    let others = measured.iter().copied().filter(|name| !planned.contains(name));
    known.chain(others).cloned().collect()
}

fn by_statement(result: &RunResult, load: &LoadResult) -> String {
    let phases: Vec<&PhaseResult> = load.phases.iter().filter(|phase| phase.name != WARM_UP).collect();
    let names = rows_of(result, load, &phases);
    if names.is_empty() {
        return String::new();
    }
    let reference = phases.iter().copied().find(|phase| is_reference(phase));
    let transaction =
        result.facts.loads.iter().find(|facts| facts.name == load.name).map(|facts| &facts.transaction);
    let table = |phases: &[&PhaseResult]| statements(&names, transaction, phases, reference);
    phases.chunks(MOST_PHASES).map(table).collect()
}

/// Statements in a few phases, each phase beside the reference.
fn statements(
    names: &[String],
    transaction: Option<&String>,
    phases: &[&PhaseResult],
    reference: Option<&PhaseResult>,
) -> String {
    let mut html =
        "<div class=\"scroll\"><table class=\"statements\"><thead><tr><th rowspan=\"2\">Statement".to_owned();
    for phase in phases {
        let columns = if is_reference(phase) || reference.is_none() { 3 } else { 4 };
        let _ = write!(html, "<th class=\"group\" colspan=\"{columns}\">{}", escape(&phase.name));
    }
    html.push_str("</tr><tr>");
    for phase in phases {
        html.push_str("<th class=\"n first\">Count<th class=\"n\">Mean<th class=\"n\">p99");
        if !is_reference(phase) && reference.is_some() {
            html.push_str("<th class=\"n\">Δ mean");
        }
    }
    html.push_str("</tr></thead><tbody>");
    for name in names {
        let class = if Some(name) == transaction { " class=\"total\"" } else { "" };
        let _ = write!(html, "<tr{class}><th scope=\"row\">{}", escape(name));
        let base = reference.and_then(|phase| phase.measured.operations.get(name));
        for phase in phases {
            let operation = phase.measured.operations.get(name);
            cells(&mut html, operation);
            if !is_reference(phase) && reference.is_some() {
                let _ = write!(html, "<td class=\"n delta\">{}", delta(operation, base));
            }
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

fn cells(html: &mut String, operation: Option<&OperationResult>) {
    let Some(operation) = operation.filter(|operation| operation.count > 0) else {
        let _ =
            write!(html, "<td class=\"n first\">0<td class=\"n\">{0}<td class=\"n\">{0}", format::NOTHING);
        return;
    };
    let _ = write!(
        html,
        "<td class=\"n first\">{}<td class=\"n\">{}<td class=\"n\">{}",
        format::count(operation.count),
        format::latency(operation.latency_us.mean),
        high(Percentile::P99, &operation.latency_us, operation.count)
    );
}

/// The difference of means, absolute and in percent of the baseline's.
fn delta(operation: Option<&OperationResult>, base: Option<&OperationResult>) -> String {
    let mean =
        |operation: &OperationResult| (operation.latency_us.mean > 0.0).then_some(operation.latency_us.mean);
    match (operation.and_then(mean), base.and_then(mean)) {
        (Some(mean), Some(base)) => {
            let percent = format::change_percent(mean, base).unwrap_or_default();
            format!("{} <small>{percent}</small>", format::latency_difference(mean - base))
        }
        _ => format::NOTHING.to_owned(),
    }
}

/// Clients that connect in the warm-up and stay connected are not in the figures: no number says that better than a zero.
fn succeeded(name: &str, operation: &OperationResult) -> String {
    if name == CONNECT && operation.count == 0 {
        return format!("{} <small>connected before</small>", format::NOTHING);
    }
    format::count(operation.count)
}

/// What failed and what was tried again, of each operation that had any of it; empty where none had.
fn errors_by_operation(load: &LoadResult) -> String {
    let failed = |operation: &OperationResult| !operation.errors.is_empty() || operation.retries > 0;
    let rows: Vec<_> = load.measured.operations.iter().filter(|(_, operation)| failed(operation)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut html = "<div class=\"scroll\"><table class=\"operation-errors\"><thead><tr><th>Operation<th class=\"n\">Succeeded\
                    <th class=\"errors\">Errors<th class=\"errors\">Without a definite answer\
                    <th class=\"n\">Retried</tr></thead><tbody>"
        .to_owned();
    for (name, operation) in rows {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td class=\"n\">{}<td class=\"errors\">{}<td class=\"errors\">{}<td class=\"n\">{}</tr>",
            escape(name),
            succeeded(name, operation),
            error_cell(&operation.errors),
            error_cell(&operation.errors_indefinite),
            format::count(operation.retries)
        );
    }
    html.push_str(
        "</tbody></table></div><p class=\"note\">Errors are counted for the transaction and again for its type and \
         statement. Retried: ended with a serialization failure or a deadlock and was retried; errors of a retry are \
         counted with its statement.</p>",
    );
    html
}
