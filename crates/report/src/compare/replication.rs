//! What synchronous replication of the storage cost each operation: settings with mirrored volumes beside the same settings
//! without, in storage round trips: a sync's way to the other components, being made durable there, and the answer's way back.
//!
//! Owns which settings are the same but for that, and the table. How long a sync waited is the runs' business.

use std::fmt::Write;

use measure::Sampling;

use super::text::titled;
use super::{Comparison, Quantity, Subject, Variant};
use crate::format;
use crate::markup::{cut, escape, plain};
use results::{RunResult, SyncsResult};

/// Settings that say how the storage is made.
const STORAGE: &str = "database.storage";
/// Columns of an operation's name in the terminal, and of each value.
const NAME: usize = 34;
const VALUE: usize = 16;

/// One operation with and without.
struct Cost<'c> {
    operation: String,
    without: &'c Variant,
    with: &'c Variant,
    /// Medians, microseconds: the mean over the runs of each.
    without_us: f64,
    with_us: f64,
    /// The difference in storage round trips, and its interval of 99 % where there are runs enough.
    round_trips: Option<(f64, Option<(f64, f64)>)>,
    /// One storage round trip, microseconds: what a sync waited for the others beyond its own disk, the median.
    storage_us: f64,
    /// One round trip between the hosts without any work at its ends, microseconds.
    network_us: Option<f64>,
}

/// The syncs of the volume that had most of them: that of the node that takes the writes.
fn syncs(result: &RunResult) -> Option<&SyncsResult> {
    let synchronous = result
        .volumes
        .iter()
        .filter(|volume| volume.replicas > 1 && matches!(volume.acknowledge.as_str(), "sync" | "semi"));
    synchronous.filter_map(|volume| volume.syncs.as_ref()).max_by_key(|syncs| syncs.count)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn counted(variant: &Variant) -> impl Iterator<Item = &RunResult> {
    variant.counted_runs().map(|run| &run.result)
}

/// Whether a variant's volumes have one component each.
fn is_alone(variant: &Variant) -> bool {
    let mut volumes = counted(variant).flat_map(|result| &result.volumes).peekable();
    volumes.peek().is_some() && volumes.all(|volume| volume.replicas <= 1)
}

/// Pairs of variants that differ in their storage alone, the first of them without replication.
fn pairs(comparison: &Comparison) -> Vec<(usize, usize)> {
    let told = |path: &str| path == "description" || path.starts_with("reproduces.") || path == "name";
    let others = comparison.differing.iter().filter(|of| !of.path.starts_with(STORAGE) && !told(&of.path));
    let others: Vec<_> = others.collect();
    let alike = |one: usize, other: usize| others.iter().all(|of| of.values.get(one) == of.values.get(other));
    let variants = &comparison.variants;
    let numbers = 0..variants.len();
    let mirrored = numbers.clone().filter(|with| counted(&variants[*with]).any(|run| syncs(run).is_some()));
    let beside = |with: usize| {
        let mut alone = numbers.clone().filter(|without| is_alone(&variants[*without]));
        alone.find(|without| alike(*without, with)).map(|without| (without, with))
    };
    mirrored.filter_map(beside).collect()
}

fn costs(comparison: &Comparison) -> Vec<Cost<'_>> {
    let mut costs = Vec::new();
    for (without, with) in pairs(comparison) {
        let variants = &comparison.variants;
        let waits = || counted(&variants[with]).filter_map(syncs);
        let Some(storage_us) = mean(waits().map(|syncs| syncs.beyond_us_p50 as f64)) else { continue };
        let network_us = mean(waits().filter_map(|syncs| syncs.round_trip_us).map(|us| us as f64));
        for row in comparison.rows.iter().filter(|row| row.quantity == Quantity::P50) {
            let Subject::Operation { load, operation } = &row.subject else { continue };
            let (first, second) = (&row.cells[without], &row.cells[with]);
            let (Some(without_us), Some(with_us)) = (first.mean(), second.mean()) else { continue };
            let judged =
                measure::compare(&first.values, &second.values, Sampling::Runs, 0.0, costs.len() as u64);
            let in_round_trips = |difference_us: f64| (storage_us > 0.0).then(|| difference_us / storage_us);
            let ends = in_round_trips((judged.low - 1.0) * without_us)
                .zip(in_round_trips((judged.high - 1.0) * without_us))
                .filter(|(low, high)| low.is_finite() && high.is_finite());
            costs.push(Cost {
                operation: format!("{load}, {operation}"),
                without: &variants[without],
                with: &variants[with],
                without_us,
                with_us,
                round_trips: in_round_trips(with_us - without_us).map(|of| (of, ends)),
                storage_us,
                network_us,
            });
        }
    }
    costs
}

fn in_round_trips(cost: &Cost<'_>) -> String {
    match cost.round_trips {
        None => format::NOTHING.to_owned(),
        Some((of, None)) => format!("{of:.2}"),
        Some((of, Some((low, high)))) => format!("{of:.2} ({low:.2} to {high:.2})"),
    }
}

/// A table for the page; empty where no two settings differ in that alone.
pub(super) fn html(comparison: &Comparison) -> String {
    let costs = costs(comparison);
    if costs.is_empty() {
        return String::new();
    }
    let mut html = "<p>Settings with an additional synchronous component, compared with the same settings without it. A sync goes to all components at once, so it should cost one storage round trip (network there and back plus the remote sync), unless the local disk is slower. A read should cost nothing.</p>\
                    <div class=\"scroll\"><table><thead><tr><th>Operation<th>Without<th>With<th class=\"n\">Median without\
                    <th class=\"n\">Median with<th class=\"n\">Difference<th class=\"n\">One storage round trip\
                    <th class=\"n\">Difference in these<th class=\"n\">Network alone</tr></thead><tbody>"
        .to_owned();
    for cost in &costs {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\
             <td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(&cost.operation),
            escape(&cost.without.name),
            escape(&titled(&cost.with.name, &cost.with.label)),
            format::latency(cost.without_us),
            format::latency(cost.with_us),
            format::latency_or_zero(cost.with_us - cost.without_us),
            format::latency_or_zero(cost.storage_us),
            in_round_trips(cost),
            cost.network_us.map_or(format::NOTHING.to_owned(), format::latency),
        );
    }
    html.push_str(
        "</tbody></table></div><p class=\"note\">In brackets: the interval of 99 %, where there are two runs or more of each. \
         A storage round trip is the median of what syncs waited for the copy beyond their own disk; the network alone is the \
         shortest round trip that the kernel saw between the hosts, without any work at its ends.</p>",
    );
    html
}

/// The same for the terminal.
pub(super) fn text(out: &mut String, comparison: &Comparison) {
    let costs = costs(comparison);
    if costs.is_empty() {
        return;
    }
    let pair = |cost: &Cost<'_>| plain(&format!("{} to {}", cost.without.name, cost.with.name)).into_owned();
    let pair_width = costs.iter().map(|cost| pair(cost).chars().count()).max().unwrap_or(0).max(8);
    let _ = writeln!(
        out,
        "\n{:<NAME$}{:>pair_width$}{:>VALUE$}{:>VALUE$}{:>24}",
        "what replication cost", "", "difference", "one round trip", "in these"
    );
    for cost in &costs {
        let pair = pair(cost);
        let _ = writeln!(
            out,
            "  {:<width$}{pair:>pair_width$}{:>VALUE$}{:>VALUE$}{:>24}",
            plain(&cut(&cost.operation, NAME - 2)),
            format::latency_or_zero(cost.with_us - cost.without_us),
            format::latency_or_zero(cost.storage_us),
            in_round_trips(cost),
            width = NAME - 2
        );
    }
}
