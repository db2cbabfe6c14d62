//! What the hosts did over time: the processors that their nodes used, the memory that they held, and what their disks made durable.

use std::collections::BTreeMap;

use crate::charts;
use crate::figure::{Curve, Figure, Manner};
use crate::marks;
use crate::scale::Scale;
use results::{HostRow, RunDirectory};

/// Curves of one chart; the busiest hosts have them.
const MOST_CURVES: usize = 6;

/// The whole section; empty where nothing was recorded.
pub(crate) fn section(run: &RunDirectory) -> String {
    if run.hosts.is_empty() {
        return String::new();
    }
    let until = charts::recorded_until(run, &results::by_load(&run.result, &run.timeline));
    let marks = marks::of(run, until as f64);
    let figures = [
        figure(
            ("processors", "Processors used", "by the nodes of each host"),
            |value| format!("{value:.2}"),
            curves(&run.hosts, until, |row| row.processors),
        ),
        figure(
            ("memory", "Memory", "held by the processes of each host's nodes"),
            bytes,
            curves(&run.hosts, until, |row| row.memory_bytes.unwrap_or(0) as f64),
        ),
        figure(
            ("durable", "Written to disk", "what syncs made durable on each host's disks, a second"),
            bytes_per_s,
            curves(&run.hosts, until, |row| row.durable_bytes as f64),
        ),
        figure(
            ("syncs", "Syncs", "answered by each host's disks, a second"),
            crate::format::rate,
            curves(&run.hosts, until, |row| row.syncs as f64),
        ),
        figure(
            ("read", "Read from disk", "a second; what is in the kernel's memory is not read from the disk"),
            bytes_per_s,
            curves(&run.hosts, until, |row| row.read_bytes as f64),
        ),
    ];
    let mut html: String = figures.into_iter().flatten().map(|figure| figure.html(&marks)).collect();
    let hosts =
        run.hosts.iter().map(|row| row.host.as_str()).collect::<std::collections::BTreeSet<_>>().len();
    if hosts > MOST_CURVES && !html.is_empty() {
        html.push_str("<p class=\"note\">Each chart has its six busiest hosts; hosts.csv has all.</p>");
    }
    html
}

fn bytes_per_s(value: f64) -> String {
    format!("{}/s", bytes(value))
}

/// In the unit that keeps small values apart: on an idle disk all of an axis would be `0.0 MB/s`.
fn bytes(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value < 999.5 => return format!("{value:.0} B"),
        value if value < 999_950.0 => (value / 1e3, "kB"),
        value => (value / 1e6, "MB"),
    };
    let written = format!("{scaled:.1}");
    format!("{} {unit}", written.trim_end_matches(".0"))
}

/// The busiest hosts; none where every host did nothing all the time.
fn curves(rows: &[HostRow], until: u64, value: impl Fn(&HostRow) -> f64) -> Vec<Curve> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        *sums.entry(&row.host).or_default() += value(row);
    }
    let mut busiest: Vec<(&str, f64)> = sums.into_iter().filter(|(_, sum)| *sum > 0.0).collect();
    busiest.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    busiest.truncate(MOST_CURVES);
    // In the order of their names, so that a host has its colour in every chart as far as it can be.
    busiest.sort_by_key(|(name, _)| *name);
    charts::by_name(busiest.into_iter().map(|(name, _)| name), until, |name| {
        rows.iter().filter(|row| row.host == name).map(|row| (row.second, value(row))).collect()
    })
}

fn figure(
    (id, title, caption): (&str, &str, &str),
    told: fn(f64) -> String,
    curves: Vec<Curve>,
) -> Option<Figure> {
    let highest =
        curves.iter().flat_map(|curve| &curve.points).map(|point| point.highest).fold(0.0, f64::max);
    (!curves.is_empty()).then(|| Figure {
        id: format!("hosts-{id}"),
        title: title.to_owned(),
        caption: caption.to_owned(),
        unit_note: "",
        manner: Manner::Line,
        scale: Scale::linear(highest),
        tick: told,
        value: told,
        plot_height: 110.0,
        curves,
        reference: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(second: u64, host: &str, processors: f64) -> HostRow {
        HostRow {
            second,
            host: host.to_owned(),
            processors,
            read_bytes: 0,
            durable_bytes: 0,
            syncs: 0,
            memory_bytes: None,
        }
    }

    #[test]
    fn rates_of_a_disk_stay_apart_however_idle_it_is() {
        let ticks = [0.0, 500.0, 2_000.0, 500_000.0, 1_000_000.0, 1_500_000.0, 40_000_000.0].map(bytes_per_s);
        assert_eq!(ticks, ["0 B/s", "500 B/s", "2 kB/s", "500 kB/s", "1 MB/s", "1.5 MB/s", "40 MB/s"]);
    }

    #[test]
    fn the_busiest_hosts_have_curves_and_a_chart_in_which_nothing_happens_is_left_out() {
        let rows: Vec<HostRow> = (0..8)
            .flat_map(|host| (0..3).map(move |second| row(second, &format!("h{host}"), f64::from(host))))
            .collect();
        let drawn = curves(&rows, 3, |row| row.processors);
        let names: Vec<&str> = drawn.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(names, ["h2", "h3", "h4", "h5", "h6", "h7"]);
        assert_eq!(drawn[5].points.len(), 3);
        assert!(curves(&rows, 3, |row| row.syncs as f64).is_empty());
    }
}
