//! Which charts over time a report has, and what each shows: throughput and latency per load, errors of all.
//!
//! `figure` draws them.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::figure::{Curve, Figure, Manner};
use crate::format;
use crate::marks::{self, Marks, ShadeKind};
use crate::markup::escape;
use crate::scale::Scale;
use crate::series;
use results::{LoadSeconds, RunDirectory};

/// All charts over time, or a sentence that says why there are none.
pub(crate) fn over_time(run: &RunDirectory) -> String {
    let loads = results::by_load(&run.result, &run.timeline);
    if loads.is_empty() {
        return "<p>No second of this run was recorded, so there is nothing to draw.</p>".to_owned();
    }
    let until = recorded_until(run, &loads);
    let marks = marks::of(run, until as f64);
    let mut html = String::new();
    for (index, load) in loads.iter().enumerate() {
        html.push_str(&throughput(run, load, index, until).html(&marks));
        if let Some(figure) = latency(load, index, until) {
            html.push_str(&figure.html(&marks));
        }
    }
    match errors(&loads, until) {
        Some(figure) => html.push_str(&figure.html(&marks)),
        None => html.push_str("<p class=\"no-errors\"><strong>Errors.</strong> No error in this run.</p>"),
    }
    let shaded = |kind| marks.shades.iter().any(|shade| shade.kind == kind);
    if shaded(ShadeKind::Stall) {
        html.push_str(
            "<p class=\"note\">Shaded grey: parts of the lab stalled. Do not attribute these seconds to the database.</p>",
        );
    }
    if shaded(ShadeKind::Gap) {
        html.push_str(
            "<p class=\"note\">Shaded red: the longest time after a fault without a success of a load while \
             operations were due.</p>",
        );
    }
    if shaded(ShadeKind::CatchUp) {
        html.push_str(
            "<p class=\"note\">Shaded blue: components of mirrored volumes catch up with changes they missed.</p>",
        );
    }
    html.push_str(&legend_of_moments(&marks));
    let per_point = series::seconds_per_point(until);
    if per_point > 1 {
        let _ = write!(
            html,
            "<p class=\"note\">This run is too long to draw every second. Each point stands for {per_point} seconds: throughput \
             and errors are their mean (the pale band spans the lowest and the highest second), a percentile is the \
             highest of its seconds.</p>"
        );
    }
    html
}

/// One curve for each name, of the seconds and values that `of` has for it. Each point is the mean of its seconds.
pub(crate) fn by_name<'n>(
    names: impl Iterator<Item = &'n str>,
    until: u64,
    of: impl Fn(&str) -> Vec<(u64, f64)>,
) -> Vec<Curve> {
    let width = series::seconds_per_point(until);
    let curve = |(index, name): (usize, &str)| {
        let mut by_point: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (second, value) in of(name).into_iter().filter(|(second, _)| *second < until) {
            by_point.entry(second / width).or_default().push(value);
        }
        let point = |(index, values): (u64, Vec<f64>)| series::Point {
            from_s: (index * width) as f64,
            to_s: ((index + 1) * width).min(until) as f64,
            value: values.iter().sum::<f64>() / values.len() as f64,
            lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
            highest: values.iter().copied().fold(0.0, f64::max),
        };
        let points = by_point.into_iter().map(point).collect();
        Curve { name: name.to_owned(), class: format!("c{index}"), points }
    };
    names.enumerate().map(curve).collect()
}

/// The recording ends with the last row, or, for a run that ended in order, with its last phase: loads that stood
/// still to the end leave no rows, and that is zero, not a gap.
pub(crate) fn recorded_until(run: &RunDirectory, loads: &[LoadSeconds]) -> u64 {
    let last_row = results::recorded_until(loads);
    if !run.has_ended {
        return last_row;
    }
    let last_event_s = run.events.iter().map(|event| event.t_s).fold(0.0, f64::max);
    let phases_end_s = marks::phases(&run.result).iter().map(|phase| phase.to_s).fold(0.0, f64::max);
    // Rounded down: a second that was only begun is not a measured second.
    last_row.max(last_event_s.min(phases_end_s).min(results::LATEST_SECOND as f64) as u64)
}

fn baseline_per_s(run: &RunDirectory, load: &str) -> Option<f64> {
    let load = run.result.loads.iter().find(|result| result.name == load)?;
    let phase = load.baseline()?;
    (phase.measured.throughput_per_s > 0.0 && phase.measured.throughput_per_s.is_finite())
        .then_some(phase.measured.throughput_per_s)
}

fn throughput(run: &RunDirectory, load: &LoadSeconds, index: usize, until: u64) -> Figure {
    let points = series::throughput(load, until);
    let reference = baseline_per_s(run, &load.name);
    let highest = points.iter().map(|point| point.highest).fold(reference.unwrap_or(0.0), f64::max);
    let baseline = match reference {
        Some(per_s) => format!("; dashed: the baseline's mean, {}", format::rate(per_s)),
        None => String::new(),
    };
    Figure {
        id: format!("throughput-{index}"),
        title: format!("Throughput of {}", load.name),
        caption: format!("successful {} per second{baseline}", plural(&load.transaction)),
        unit_note: "",
        manner: Manner::Area,
        scale: Scale::linear(highest),
        tick: rate_tick,
        value: format::rate,
        plot_height: 170.0,
        curves: vec![Curve { name: load.name.clone(), class: "c0".to_owned(), points }],
        reference,
    }
}

fn plural(operation: &str) -> String {
    match operation {
        "transaction" | "operation" | "insert" | "read" | "update" => format!("{operation}s"),
        other => format!("“{other}”"),
    }
}

fn latency(load: &LoadSeconds, index: usize, until: u64) -> Option<Figure> {
    let curves: Vec<Curve> = ["p50", "p95", "p99"]
        .iter()
        .enumerate()
        .map(|(which, name)| Curve {
            name: (*name).to_owned(),
            class: format!("c{which}"),
            points: series::percentile(load, which, until),
        })
        .collect();
    let values = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.value);
    let highest = values().fold(0.0, f64::max);
    let lowest = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    if highest <= 0.0 {
        return None;
    }
    let scale = Scale::for_latencies(lowest, highest);
    Some(Figure {
        id: format!("latency-{index}"),
        title: format!("Latency of {}", load.name),
        caption: format!(
            "of the {} that succeeded in each second; no line where none did",
            plural(&load.transaction)
        ),
        unit_note: if scale.is_logarithmic() { "logarithmic scale" } else { "" },
        manner: Manner::Line,
        scale,
        tick: latency_tick,
        value: format::latency,
        plot_height: 190.0,
        curves,
        reference: None,
    })
}

fn errors(loads: &[LoadSeconds], until: u64) -> Option<Figure> {
    let mut curves = Vec::new();
    for load in loads {
        for (points, what) in [
            (series::errors(load, until), plural(&load.transaction)),
            (series::other_errors(load, until), "attempts to connect".to_owned()),
        ] {
            if points.iter().any(|point| point.value > 0.0) {
                let class = format!("c{}", curves.len() % 6);
                curves.push(Curve { name: format!("{}: {what}", load.name), class, points });
            }
        }
    }
    let mut totals = std::collections::BTreeMap::new();
    for point in curves.iter().flat_map(|curve| &curve.points) {
        *totals.entry(point.from_s as u64).or_insert(0.0) += point.value;
    }
    let highest = totals.values().copied().fold(0.0, f64::max);
    (!curves.is_empty()).then(|| Figure {
        id: "errors".to_owned(),
        title: "Errors".to_owned(),
        caption: "failures per second, loads stacked".to_owned(),
        unit_note: "",
        manner: Manner::Stack,
        scale: Scale::linear(highest),
        tick: rate_tick,
        value: format::rate,
        plot_height: 120.0,
        curves,
        reference: None,
    })
}

fn rate_tick(value: f64) -> String {
    if value >= 1000.0 || value.fract().abs() < 1e-9 {
        format::count(value.round() as u64)
    } else {
        format!("{value:.2}").trim_end_matches('0').to_owned()
    }
}

fn latency_tick(value: f64) -> String {
    let (scaled, unit) = match value {
        0.0 => return "0".to_owned(),
        value if value < 1e3 => (value, "µs"),
        value if value < 1e6 => (value / 1e3, "ms"),
        value => (value / 1e6, "s"),
    };
    let written = format!("{scaled:.2}");
    format!("{} {unit}", written.trim_end_matches('0').trim_end_matches('.'))
}

fn legend_of_moments(marks: &Marks) -> String {
    if marks.moments.is_empty() {
        return String::new();
    }
    let mut html = "<ol class=\"moments\">".to_owned();
    for moment in &marks.moments {
        let _ = write!(html, "<li><b>{}</b> {}</li>", format::seconds(moment.t_s), escape(&moment.what));
    }
    html.push_str("</ol>");
    if marks.unmarked > 0 {
        let _ = write!(
            html,
            "<p class=\"note\">{} later moments are in the list of events only.</p>",
            marks.unmarked
        );
    }
    html
}
