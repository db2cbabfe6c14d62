//! The mirrored volumes: where their components were, what went over the wire, what they had left to copy over time.

use std::fmt::Write;

use crate::catch_ups;
use crate::charts;
use crate::figure::{Curve, Figure, Manner};
use crate::format;
use crate::marks;
use crate::markup::escape;
use crate::scale::Scale;
use crate::series::Point;
use results::RunDirectory;
use results::VolumeResult;

/// Curves of one chart.
const MOST_CURVES: usize = 6;
/// Components of the table.
const MOST_ROWS: usize = 60;

/// The whole section; empty when nothing is mirrored.
pub(crate) fn section(run: &RunDirectory) -> String {
    let mirrored: Vec<&VolumeResult> = run
        .result
        .volumes
        .iter()
        .filter(|volume| volume.replicas > 1 || !volume.components.is_empty())
        .collect();
    let Some(first) = mirrored.first() else { return String::new() };
    let until = charts::recorded_until(run, &results::by_load(&run.result, &run.timeline));
    let marks = marks::of(run, until as f64);
    let mut html = format!("<p>{}</p>", escape(&in_words(first)));
    for figure in [left(&mirrored, until), lag(&mirrored, until)].into_iter().flatten() {
        html.push_str(&figure.html(&marks));
    }
    html.push_str(&catch_ups::section(&mirrored));
    html.push_str(&table(&mirrored));
    html.push_str(&syncs(&mirrored));
    html.push_str(&openings(&mirrored));
    let openings = mirrored.iter().flat_map(|volume| volume.openings.iter().map(|of| (&volume.node, of)));
    for (node, opening) in openings.clone() {
        if let Some(why) = &opening.moved {
            let (node, from) = (escape(node), escape(&opening.component));
            let _ = write!(
                html,
                "<p><strong>Moved:</strong> {}; the volume of {node} was served from {from} from then on, while {node} ran.</p>",
                escape(why)
            );
        }
    }
    for (volume, opening) in
        mirrored.iter().flat_map(|volume| volume.openings.iter().map(move |of| (volume, of)))
    {
        let Some(lost_after_s) = opening.lost_after_s else { continue };
        let _ = write!(
            html,
            "<p><strong>Out of reach:</strong> the volume of {}, open on {}, counted as lost when {}, which served \
             it, was unreachable for {}: its I/O failed, and the node was switched off.</p>",
            escape(&volume.node),
            escape(&opening.host),
            escape(&opening.component),
            format::seconds(lost_after_s)
        );
    }
    let openings = mirrored.iter().flat_map(|volume| &volume.openings);
    for told in openings.filter_map(|opening| opening.forced.as_ref()) {
        let _ = write!(html, "<p><strong>By force:</strong> {}.</p>", escape(told));
    }
    html
}

fn in_words(volume: &VolumeResult) -> String {
    let acknowledged = match volume.acknowledge.as_str() {
        "sync" => "it is durable on every live component",
        "semi" => "it is durable on the node's own component and received by every live one",
        _ => "it is durable on the node's own component; the others follow",
    };
    format!(
        "Each volume has {} of class {}, on different hosts; their replication traffic crosses the network. \
         A sync is acknowledged when {acknowledged}.",
        format::counted(u64::from(volume.replicas), "component", "components"),
        volume.class
    )
}

fn table(volumes: &[&VolumeResult]) -> String {
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>Volume of<th>Component on<th>In the end\
                    <th class=\"n\">Sent as new changes<th class=\"n\">Sent to catch up<th class=\"n\">Still missing</tr></thead><tbody>"
        .to_owned();
    let rows = volumes.iter().flat_map(|volume| volume.components.iter().map(|of| (&volume.node, of)));
    for (node, component) in rows.take(MOST_ROWS) {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(node),
            escape(&component.host),
            escape(&component.role),
            format::bytes(component.replicated_bytes),
            format::bytes(component.copied_bytes),
            format::bytes(component.bytes_left),
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// What mirroring cost each sync.
fn syncs(volumes: &[&VolumeResult]) -> String {
    let mut rows = String::new();
    for volume in volumes.iter().take(MOST_ROWS) {
        let Some(syncs) = &volume.syncs else { continue };
        let round_trip =
            syncs.round_trip_us.map_or(format::NOTHING.to_owned(), |us| format::latency(us as f64));
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\
             <td class=\"n\">{}<td class=\"n\">{round_trip}</tr>",
            escape(&volume.node),
            format::count(syncs.count),
            format::latency(syncs.here_us_p50 as f64),
            format::latency(syncs.here_us_p99 as f64),
            format::latency_or_zero(syncs.beyond_us_p50 as f64),
            format::latency_or_zero(syncs.beyond_us_p99 as f64),
        );
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<p>Cost of mirroring per sync. A sync goes to the primary copy's disk and to the other components at the same time; the table separates the wait for its own disk from the additional wait for the others.</p><div class=\"scroll\"><table><thead><tr><th>Volume of\
         <th class=\"n\">Syncs<th class=\"n\">Own disk, median<th class=\"n\">99th percentile<th class=\"n\">Additional wait, median\
         <th class=\"n\">99th percentile<th class=\"n\">Shortest round trip between the hosts</tr></thead><tbody>{rows}</tbody>\
         </table></div>"
    )
}

/// What was asked over the network, where a volume was open on a host without a component of it.
fn openings(volumes: &[&VolumeResult]) -> String {
    let asked = volumes.iter().flat_map(|volume| {
        let openings = volume.openings.iter();
        openings
            .flat_map(move |opening| opening.asked.iter().map(move |asked| (&volume.node, opening, asked)))
    });
    let mut rows = String::new();
    for (node, opening, asked) in asked.take(MOST_ROWS) {
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{}<td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(node),
            escape(&opening.host),
            escape(&opening.component),
            escape(&asked.work),
            format::count(asked.count),
            format::latency(asked.latency_us_p50 as f64),
            format::latency(asked.latency_us_p99 as f64),
        );
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<p>A host without an up-to-date component opened the volume over the network, so each request and its answer crossed the network.</p><div class=\"scroll\"><table><thead><tr><th>Volume of<th>Open on<th>Served from<th>Requests\
         <th class=\"n\">How many<th class=\"n\">Median<th class=\"n\">99th percentile</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

/// One value for each second: the last that was seen up to its end and is not older than `oldest_s` then, and none before
/// the first or after the last.
fn by_second(seen: &[(f64, f64)], until: u64, oldest_s: f64) -> Vec<Point> {
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return Vec::new() };
    let seconds = first.0.max(0.0) as u64..=(last.0 as u64).min(until.saturating_sub(1));
    seconds
        .filter_map(|second| {
            let (from_s, to_s) = (second as f64, (second + 1) as f64);
            let (seen_s, value) = *seen.iter().rev().find(|(t_s, _)| *t_s < to_s)?;
            if to_s - seen_s > oldest_s {
                return None;
            }
            Some(Point { from_s, to_s, value, lowest: value, highest: value })
        })
        .collect()
}

fn curves<'v>(
    volumes: &[&'v VolumeResult],
    until: u64,
    oldest_s: f64,
    seen: impl Fn(&'v VolumeResult) -> Vec<(f64, f64)>,
) -> Vec<Curve> {
    volumes
        .iter()
        .map(|volume| (volume, by_second(&seen(volume), until, oldest_s)))
        .filter(|(_, points)| points.iter().any(|point| point.value > 0.0))
        .take(MOST_CURVES)
        .enumerate()
        .map(|(index, (volume, points))| Curve {
            name: volume.node.clone(),
            class: format!("c{index}"),
            points,
        })
        .collect()
}

fn highest(curves: &[Curve]) -> f64 {
    curves.iter().flat_map(|curve| &curve.points).map(|point| point.value).fold(0.0, f64::max)
}

/// The unit whose round multiples are round in words too, for an axis up to so many bytes; and such a multiple in words.
fn unit_of(most_bytes: u64) -> (f64, fn(f64) -> String) {
    const KIB: f64 = 1024.0;
    const MIB: f64 = 1024.0 * KIB;
    const GIB: f64 = 1024.0 * MIB;
    match most_bytes as f64 {
        most if most >= GIB => (GIB, |value| format::bytes((value * GIB).round() as u64)),
        most if most >= MIB => (MIB, |value| format::bytes((value * MIB).round() as u64)),
        most if most >= KIB => (KIB, |value| format::bytes((value * KIB).round() as u64)),
        _ => (1.0, |value| format::bytes(value.round() as u64)),
    }
}

fn left(volumes: &[&VolumeResult], until: u64) -> Option<Figure> {
    let most = volumes.iter().flat_map(|volume| &volume.resync).map(|sample| sample.bytes_left).max();
    let (unit_bytes, told) = unit_of(most.unwrap_or_default());
    // Samples are taken when something changes.
    let curves = curves(volumes, until, f64::INFINITY, |volume| {
        volume.resync.iter().map(|sample| (sample.t_s, sample.bytes_left as f64 / unit_bytes)).collect()
    });
    (!curves.is_empty()).then(|| Figure {
        id: "resync".to_owned(),
        title: "Left to copy".to_owned(),
        caption:
            "data that components missed while they were away, in total, at the end of each second; it grows \
                  while they are away and falls while they catch up"
                .to_owned(),
        unit_note: "",
        manner: Manner::Line,
        scale: Scale::linear(highest(&curves)),
        tick: told,
        value: told,
        plot_height: 150.0,
        curves,
        reference: None,
    })
}

fn lag(volumes: &[&VolumeResult], until: u64) -> Option<Figure> {
    if volumes.iter().all(|volume| volume.acknowledge == "sync") {
        return None;
    }
    // Sampled once a second, and not while no live component has anything to confirm.
    let curves = curves(volumes, until, 1.5, |volume| {
        volume.lag.iter().map(|sample| (sample.t_s, sample.lag_s * 1e6)).collect()
    });
    (!curves.is_empty()).then(|| Figure {
        id: "lag".to_owned(),
        title: "How far the copy was behind".to_owned(),
        caption: "age of the oldest change the slowest live component has not confirmed; no line without one"
            .to_owned(),
        unit_note: "",
        manner: Manner::Line,
        scale: Scale::linear(highest(&curves)),
        tick: format::latency_or_zero,
        value: format::latency_or_zero,
        plot_height: 110.0,
        curves,
        reference: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seen: &[(f64, f64)], until: u64, oldest_s: f64, expected: &[(f64, f64)]) {
        let found: Vec<(f64, f64)> =
            by_second(seen, until, oldest_s).iter().map(|point| (point.from_s, point.value)).collect();
        assert_eq!(found, expected, "{seen:?}");
    }

    #[test]
    fn each_second_shows_what_was_seen_last() {
        let always = f64::INFINITY;
        check(&[], 10, always, &[]);
        check(&[(2.2, 5.0), (2.9, 7.0), (4.1, 0.0)], 10, always, &[(2.0, 7.0), (3.0, 7.0), (4.0, 0.0)]);
        check(&[(2.2, 5.0), (30.0, 7.0)], 4, always, &[(2.0, 5.0), (3.0, 5.0)]);
    }

    #[test]
    fn a_second_long_after_the_last_sample_shows_nothing() {
        let seen = [(0.99, 0.0), (2.0, 3.0), (7.0, 4.0)];
        check(&seen, 9, 1.5, &[(0.0, 0.0), (1.0, 0.0), (2.0, 3.0), (7.0, 4.0)]);
    }

    #[test]
    fn the_ticks_of_an_axis_in_bytes_are_round() {
        let ticks = |most_bytes: u64| -> Vec<String> {
            let (unit_bytes, told) = unit_of(most_bytes);
            let scale = Scale::linear(most_bytes as f64 / unit_bytes);
            scale.ticks().into_iter().map(|tick| told(tick).replace('\u{a0}', " ")).collect()
        };
        assert_eq!(ticks(1_469_600), ["0 B", "512 KiB", "1.0 MiB", "1.5 MiB"]);
        assert_eq!(ticks(54_433), ["0 B", "20.0 KiB", "40.0 KiB", "60.0 KiB"]);
    }
}
