//! What the site's links carried: a table, and over time how busy those with a rate were and what they dropped.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::charts;
use crate::figure::{Curve, Figure, Manner};
use crate::format;
use crate::marks;
use crate::markup::escape;
use crate::scale::Scale;
use results::LinkResult;
use results::LinkRow;
use results::RunDirectory;
use scenario::units::approximate_bit_rate;

/// Curves of one chart; the busiest links have them.
const MOST_CURVES: usize = 6;
/// Links of the table; a large site has thousands.
const MOST_LINKS: usize = 60;

/// The whole section; empty when the site has no links.
pub(crate) fn section(run: &RunDirectory) -> String {
    let links = links_of(run);
    if links.is_empty() {
        return String::new();
    }
    let until = charts::recorded_until(run, &results::by_load(&run.result, &run.timeline));
    let marks = marks::of(run, until as f64);
    let figures = [utilisation(&links, &run.links, until), dropped(&links, &run.links, until)];
    let mut html: String = figures.into_iter().flatten().map(|figure| figure.html(&marks)).collect();
    html.push_str(&table(&links));
    html
}

/// From the result, or of a run that left none from its rows. The busiest first.
fn links_of(run: &RunDirectory) -> Vec<LinkResult> {
    let mut links = run.result.links.clone();
    if links.is_empty() {
        let mut by_name: BTreeMap<&str, LinkResult> = BTreeMap::new();
        for row in &run.links {
            let link = by_name.entry(&row.link).or_default();
            link.name.clone_from(&row.link);
            link.packets = link.packets.saturating_add(row.packets);
            link.bytes = link.bytes.saturating_add(row.bytes);
            link.dropped_packets = link.dropped_packets.saturating_add(row.dropped_packets);
            link.waiting_bytes_max = link.waiting_bytes_max.max(row.waiting_bytes);
            if let Some(share) = row.utilisation {
                link.utilisation_max = Some(link.utilisation_max.unwrap_or_default().max(share));
            }
        }
        links = by_name.into_values().collect();
    }
    let busy = |link: &LinkResult| link.utilisation_max.unwrap_or_default();
    links.sort_by(|a, b| busy(b).total_cmp(&busy(a)).then(b.bytes.cmp(&a.bytes)));
    links
}

fn table(links: &[LinkResult]) -> String {
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>Link, one way<th class=\"n\">Rate<th class=\"n\">Carried\
                    <th class=\"n\">Packets<th class=\"n\">Busy<th class=\"n\">Busiest second<th class=\"n\">Dropped\
                    <th class=\"n\">Most waiting</tr></thead><tbody>"
        .to_owned();
    let share = |share: Option<f64>| share.map_or_else(String::new, format::percent);
    for link in links.iter().take(MOST_LINKS) {
        let rate = link.rate_bits_per_s.map_or_else(|| "no limit".to_owned(), approximate_bit_rate);
        let waiting = if link.rate_bits_per_s.is_some() || link.waiting_bytes_max > 0 {
            format::bytes(link.waiting_bytes_max)
        } else {
            String::new()
        };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td class=\"n\">{rate}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\
             <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{waiting}</tr>",
            escape(&link.name),
            format::bytes(link.bytes),
            format::count(link.packets),
            share(link.utilisation),
            share(link.utilisation_max),
            format::counted(link.dropped_packets, "packet", "packets"),
        );
    }
    html.push_str("</tbody></table></div>");
    if links.len() > MOST_LINKS {
        let left = format::counted((links.len() - MOST_LINKS) as u64, "link", "links");
        let _ = write!(html, "<p class=\"note\">{left} more in result.json.</p>");
    }
    html
}

fn utilisation(links: &[LinkResult], rows: &[LinkRow], until: u64) -> Option<Figure> {
    let rated = links.iter().filter(|link| link.utilisation_max.is_some_and(|share| share > 0.0));
    let curves = curves(rated, rows, until, |row| row.utilisation.unwrap_or_default() * 100.0);
    (!curves.is_empty()).then(|| Figure {
        id: "links".to_owned(),
        title: "How busy the links were".to_owned(),
        caption: "share of each second in which a link was sending; at 100 % packets wait".to_owned(),
        unit_note: "",
        manner: Manner::Line,
        scale: Scale::linear(100.0),
        tick: percent,
        value: percent,
        plot_height: 150.0,
        curves,
        reference: None,
    })
}

fn dropped(links: &[LinkResult], rows: &[LinkRow], until: u64) -> Option<Figure> {
    let dropping = links.iter().filter(|link| link.dropped_packets > 0);
    let curves = curves(dropping, rows, until, |row| row.dropped_packets as f64);
    let mut totals: BTreeMap<u64, f64> = BTreeMap::new();
    for point in curves.iter().flat_map(|curve| &curve.points) {
        *totals.entry(point.from_s as u64).or_default() += point.value;
    }
    (!curves.is_empty()).then(|| Figure {
        id: "dropped".to_owned(),
        title: "Packets dropped by full queues".to_owned(),
        caption: "packets per second, links stacked".to_owned(),
        unit_note: "",
        manner: Manner::Stack,
        scale: Scale::linear(totals.values().copied().fold(0.0, f64::max)),
        tick: |value| format::count(value.round() as u64),
        value: format::rate,
        plot_height: 110.0,
        curves,
        reference: None,
    })
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

fn curves<'l>(
    links: impl Iterator<Item = &'l LinkResult>,
    rows: &[LinkRow],
    until: u64,
    value: impl Fn(&LinkRow) -> f64,
) -> Vec<Curve> {
    let names = links.take(MOST_CURVES).map(|link| link.name.as_str());
    charts::by_name(names, until, |name| {
        rows.iter().filter(|row| row.link == name).map(|row| (row.second, value(row))).collect()
    })
}
