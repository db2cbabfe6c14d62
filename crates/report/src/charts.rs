//! Throughput, latency and errors over time, as figures of the page. Each is drawn twice, for wide and for narrow screens.

use std::fmt::Write;

use crate::chart::{Geometry, Panel};
use crate::format;
use crate::marks::{self, Marks};
use crate::markup::escape;
use crate::run_directory::RunDirectory;
use crate::scale::Scale;
use crate::series::{self, LoadSeries, Point};

const WIDE: f64 = 1060.0;
const NARROW: f64 = 420.0;

/// One curve or one layer of bars.
struct Curve {
    name: String,
    /// A class of the style sheet, `c0` to `c5`: its colour.
    class: String,
    points: Vec<Point>,
}

/// How curves are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// A stepped line with the area below it.
    Area,
    /// A stepped line.
    Line,
    /// Bars, one upon the other.
    Stack,
}

/// Everything a figure says.
struct Figure {
    id: String,
    title: String,
    caption: String,
    unit_note: &'static str,
    manner: Manner,
    scale: Scale,
    tick: fn(f64) -> String,
    value: fn(f64) -> String,
    plot_height: f64,
    curves: Vec<Curve>,
    /// A dashed line, for the baseline.
    reference: Option<f64>,
}

/// All charts over time, or a sentence that says why there are none.
pub(crate) fn over_time(run: &RunDirectory) -> String {
    let loads = series::by_load(run);
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
        None => html.push_str(
            "<p class=\"no-errors\"><strong>Errors.</strong> No error in any second of this run.</p>",
        ),
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

/// The recording ends with the last row, or, for a run that ended in order, with its last phase: loads that stood
/// still to the end leave no rows, and that is zero, not a gap.
fn recorded_until(run: &RunDirectory, loads: &[LoadSeries]) -> u64 {
    let last_row = series::recorded_until(loads);
    if run.is_derived {
        return last_row;
    }
    let last_event_s = run.events.iter().map(|event| event.t_s).fold(0.0, f64::max);
    let phases_end_s = marks::phases(&run.result).iter().map(|phase| phase.to_s).fold(0.0, f64::max);
    // Rounded down: a second that was only begun is not a measured second.
    last_row.max(last_event_s.min(phases_end_s).min(crate::timeline_csv::LATEST_SECOND as f64) as u64)
}

fn baseline_per_s(run: &RunDirectory, load: &str) -> Option<f64> {
    let load = run.result.loads.iter().find(|result| result.name == load)?;
    let phase = load.phases.iter().find(|phase| phase.name == "baseline")?;
    (phase.throughput_per_s > 0.0 && phase.throughput_per_s.is_finite()).then_some(phase.throughput_per_s)
}

fn throughput(run: &RunDirectory, load: &LoadSeries, index: usize, until: u64) -> Figure {
    let points = load.throughput(until);
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
        "transaction" | "insert" | "read" | "update" => format!("{operation}s"),
        other => format!("“{other}”"),
    }
}

fn latency(load: &LoadSeries, index: usize, until: u64) -> Option<Figure> {
    let curves: Vec<Curve> = ["p50", "p95", "p99"]
        .iter()
        .enumerate()
        .map(|(which, name)| Curve {
            name: (*name).to_owned(),
            class: format!("c{which}"),
            points: load.percentile(which, until),
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

fn errors(loads: &[LoadSeries], until: u64) -> Option<Figure> {
    let mut curves = Vec::new();
    for load in loads {
        for (points, what) in [
            (load.errors(until), plural(&load.transaction)),
            (load.other_errors(until), "attempts to connect".to_owned()),
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
        caption: "failures per second, one load upon the other".to_owned(),
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

impl Figure {
    fn html(&self, marks: &Marks) -> String {
        let mut html = format!(
            "<figure><figcaption><strong>{}</strong> <span>{}{}{}</span>",
            escape(&self.title),
            escape(&self.caption),
            if self.unit_note.is_empty() { "" } else { "; " },
            self.unit_note
        );
        if self.curves.len() > 1 || self.manner == Manner::Stack {
            html.push_str("<span class=\"key\">");
            for curve in &self.curves {
                let _ =
                    write!(html, "<span><i class=\"{}\"></i>{}</span> ", curve.class, escape(&curve.name));
            }
            html.push_str("</span>");
        }
        html.push_str("</figcaption>");
        for (width, class) in [(WIDE, "wide"), (NARROW, "narrow")] {
            let id = format!("{}-{class}", self.id);
            let panel = Panel {
                id: &id,
                width,
                plot_height: self.plot_height,
                scale: self.scale,
                tick: self.tick,
                marks,
                description: format!("{}: {}", self.title, self.caption),
            };
            let _ =
                write!(html, "<div class=\"{class}\">{}</div>", panel.svg(|geometry| self.curves(geometry)));
        }
        html.push_str("</figure>");
        html
    }

    fn curves(&self, geometry: &Geometry) -> String {
        let mut svg = String::new();
        match self.manner {
            Manner::Stack => svg.push_str(&self.stack(geometry)),
            // The highest percentile first, so that the median lies on top of it.
            manner => self.curves.iter().rev().for_each(|curve| svg.push_str(&line(geometry, curve, manner))),
        }
        if let Some(value) = self.reference {
            let y = geometry.y(value);
            let _ = write!(
                svg,
                "<line class=\"reference\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                geometry.left,
                geometry.left + geometry.plot_width
            );
        }
        svg.push_str(&self.tooltips(geometry));
        svg
    }

    fn stack(&self, geometry: &Geometry) -> String {
        let mut below = std::collections::BTreeMap::new();
        let mut svg = String::new();
        for curve in &self.curves {
            for point in curve.points.iter().filter(|point| point.value > 0.0) {
                let base = below.entry(point.from_s as u64).or_insert(0.0);
                let (from, to) = (geometry.x(point.from_s), geometry.x(point.to_s));
                let (bottom, top) = (geometry.y(*base), geometry.y(*base + point.value));
                *base += point.value;
                let _ = write!(
                    svg,
                    "<rect class=\"bar {}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    curve.class,
                    from + 0.4,
                    (to - from - 0.8).max(0.6),
                    bottom - top
                );
            }
        }
        svg
    }

    /// Invisible columns, a point wide, that tell the values on hovering.
    fn tooltips(&self, geometry: &Geometry) -> String {
        let mut lines: std::collections::BTreeMap<u64, (f64, Vec<String>)> =
            std::collections::BTreeMap::new();
        for curve in &self.curves {
            for point in curve.points.iter().filter(|point| self.manner != Manner::Stack || point.value > 0.0)
            {
                let entry = lines.entry(point.from_s as u64).or_insert((point.to_s, Vec::new()));
                entry.1.push(format!("{}: {}", curve.name, (self.value)(point.value)));
            }
        }
        let mut svg = String::new();
        for (from, (to_s, lines)) in lines {
            let (left, right) = (geometry.x(from as f64), geometry.x(to_s));
            let _ = write!(
                svg,
                "<rect class=\"probe\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} to {} s\n{}</title></rect>",
                geometry.top,
                right - left,
                geometry.plot_height,
                from,
                to_s,
                escape(&lines.join("\n"))
            );
        }
        svg
    }
}

/// A stepped line, broken where a second is missing.
fn line(geometry: &Geometry, curve: &Curve, manner: Manner) -> String {
    let mut svg = String::new();
    for stretch in curve.points.chunk_by(|one, other| other.from_s <= one.to_s) {
        let Some(first) = stretch.first() else { continue };
        let mut path = String::new();
        for (index, point) in stretch.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let y = geometry.y(point.value);
            let _ =
                write!(path, "{command}{:.1} {y:.1}H{:.1}", geometry.x(point.from_s), geometry.x(point.to_s));
        }
        if manner == Manner::Area {
            let bottom = geometry.bottom();
            let from = geometry.x(first.from_s);
            let _ = write!(svg, "<path class=\"area {}\" d=\"{path}V{bottom:.1}H{from:.1}Z\"/>", curve.class);
            svg.push_str(&spread(geometry, curve, stretch));
        }
        let _ = write!(svg, "<path class=\"curve {}\" d=\"{path}\"/>", curve.class);
    }
    svg
}

/// The band between the lowest and the highest second of thinned points.
fn spread(geometry: &Geometry, curve: &Curve, stretch: &[Point]) -> String {
    let mut svg = String::new();
    for point in
        stretch.iter().filter(|point| point.highest > point.lowest && point.to_s - point.from_s > 1.0)
    {
        let (top, bottom) = (geometry.y(point.highest), geometry.y(point.lowest));
        let (from, to) = (geometry.x(point.from_s), geometry.x(point.to_s));
        let _ = write!(
            svg,
            "<rect class=\"spread {}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            curve.class,
            to - from,
            bottom - top
        );
    }
    svg
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
