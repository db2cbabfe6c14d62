//! The curve of a sweep: throughput and latency of a load against what was asked of it, step by step.
//!
//! Draws nothing where the phases asked for fewer than three different things, or changed what they asked within.

use std::fmt::Write;

use history::WARM_UP;

use crate::chart::{CHARACTER_WIDTH, push_grid, push_tick};
use crate::format;
use crate::markup::escape;
use crate::scale::Scale;
use results::{LoadResult, PhaseResult};

const FEWEST_STEPS: usize = 3;
const FONT: f64 = 12.0;
const PLOT_HEIGHT: f64 = 150.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 10.0;
/// Below a plot: the steps' numbers and what they count.
const FOOT: f64 = 42.0;

/// One step: what was asked, and what came of it.
struct Step {
    asked: f64,
    throughput_per_s: f64,
    latency_us_p50: f64,
    latency_us_p99: f64,
}

/// What a sweep changes.
#[derive(Clone, Copy, PartialEq)]
enum SweepAxis {
    Clients,
    Rate,
}

/// One line in a plot.
struct Curve {
    name: &'static str,
    class: &'static str,
    values: Vec<f64>,
}

/// The figure of a load's sweep; empty where the load does not sweep.
pub(crate) fn figure(load: &LoadResult) -> String {
    let Some((asked, steps)) = steps(load) else { return String::new() };
    let of = match asked {
        SweepAxis::Clients => "clients",
        SweepAxis::Rate => "rate",
    };
    let mut html = format!(
        "<figure><figcaption><strong>Throughput and latency of {} against its {of}</strong> \
         <span>one point for each step; latency of what succeeded</span><span class=\"key\"><span><i class=\"c0\"></i>\
         throughput</span> <span><i class=\"c1\"></i>p50</span> <span><i class=\"c2\"></i>p99</span></span></figcaption>",
        escape(&load.name)
    );
    for (width, class) in [(940.0, "wide"), (420.0, "narrow")] {
        let _ = write!(
            html,
            "<div class=\"{class}\">{}{}</div>",
            throughput(asked, &steps, width),
            latency(asked, &steps, width)
        );
    }
    html.push_str("</figure>");
    html
}

fn steps(load: &LoadResult) -> Option<(SweepAxis, Vec<Step>)> {
    let asked = if load.phases.iter().any(|phase| phase.measured.clients.is_some()) {
        SweepAxis::Clients
    } else {
        SweepAxis::Rate
    };
    let of_phase = |phase: &PhaseResult| match asked {
        SweepAxis::Clients if phase.measured.clients_least.is_none() => phase.measured.clients.map(f64::from),
        SweepAxis::Rate if phase.measured.rate_range_per_s.is_none() => phase.measured.rate_per_s,
        _ => None,
    };
    let step = |phase: &PhaseResult| {
        let asked = of_phase(phase).filter(|asked| *asked > 0.0)?;
        Some(Step {
            asked,
            throughput_per_s: phase.measured.throughput_per_s,
            latency_us_p50: phase.measured.latency_us.p50 as f64,
            latency_us_p99: phase.measured.latency_us.p99 as f64,
        })
    };
    let mut steps: Vec<Step> =
        load.phases.iter().filter(|phase| phase.name != WARM_UP).filter_map(step).collect();
    steps.sort_by(|one, other| one.asked.total_cmp(&other.asked));
    let mut different: Vec<f64> = steps.iter().map(|step| step.asked).collect();
    different.dedup();
    (different.len() >= FEWEST_STEPS).then_some((asked, steps))
}

fn throughput(asked: SweepAxis, steps: &[Step], width: f64) -> String {
    let values: Vec<f64> = steps.iter().map(|step| step.throughput_per_s).collect();
    let scale = Scale::linear(values.iter().copied().fold(0.0, f64::max));
    let curve = Curve { name: "throughput", class: "c0", values };
    plot(asked, steps, width, scale, format::rate, &[curve])
}

fn latency(asked: SweepAxis, steps: &[Step], width: f64) -> String {
    let curves = [
        Curve { name: "p50", class: "c1", values: steps.iter().map(|step| step.latency_us_p50).collect() },
        Curve { name: "p99", class: "c2", values: steps.iter().map(|step| step.latency_us_p99).collect() },
    ];
    let values = || curves.iter().flat_map(|curve| &curve.values).copied();
    let highest = values().fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    let lowest = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    plot(asked, steps, width, Scale::for_latencies(lowest, highest), format::latency_or_zero, &curves)
}

fn plot(
    asked: SweepAxis,
    steps: &[Step],
    width: f64,
    scale: Scale,
    written: fn(f64) -> String,
    curves: &[Curve],
) -> String {
    let (first, last) = (steps[0].asked, steps[steps.len() - 1].asked);
    let across = Scale::for_latencies(first, last);
    let plot_width = width - LEFT - RIGHT;
    let x = |asked: f64| LEFT + across.share(asked) * plot_width;
    let y = |value: f64| TOP + (1.0 - scale.share(value)) * PLOT_HEIGHT;
    let unit = match asked {
        SweepAxis::Clients => "clients",
        SweepAxis::Rate => "due per second",
    };
    let bottom = TOP + PLOT_HEIGHT;
    let names: Vec<&str> = curves.iter().map(|curve| curve.name).collect();
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width:.0} {:.0}\" role=\"img\" aria-label=\"{} against {unit}\">",
        bottom + FOOT,
        names.join(" and ")
    );
    for tick in scale.ticks() {
        push_grid(&mut svg, (LEFT, width - RIGHT), y(tick), &written(tick));
    }
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{LEFT:.1}\" x2=\"{0:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/>\
         <text class=\"tick\" x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"end\">{unit}</text>",
        width - RIGHT,
        bottom + 34.0
    );
    svg.push_str(&step_labels(steps, &x, bottom));
    for curve in curves {
        svg.push_str(&drawn(curve, steps, &x, &y, written));
    }
    svg.push_str("</svg>");
    svg
}

/// The number of each step below the axis, but for those that would cover the one before.
fn step_labels(steps: &[Step], x: &impl Fn(f64) -> f64, bottom: f64) -> String {
    let mut svg = String::new();
    let mut free_from = 0.0;
    for step in steps {
        let label = format::figure(step.asked);
        let half = label.chars().count() as f64 * FONT * CHARACTER_WIDTH / 2.0;
        let x = x(step.asked);
        if x - half < free_from {
            continue;
        }
        free_from = x + half + 6.0;
        push_tick(&mut svg, x, bottom, "middle", &label);
    }
    svg
}

fn drawn(
    curve: &Curve,
    steps: &[Step],
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
    written: fn(f64) -> String,
) -> String {
    let mut path = String::new();
    let mut points = String::new();
    for (step, value) in steps.iter().zip(&curve.values) {
        let (x, y) = (x(step.asked), y(*value));
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
        let _ = write!(
            points,
            "<circle class=\"{}\" fill=\"currentColor\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\"><title>{}: {} {}</title></circle>",
            curve.class,
            format::figure(step.asked),
            curve.name,
            escape(&written(*value))
        );
    }
    format!("<path class=\"curve {}\" d=\"{path}\"/>{points}", curve.class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{LatencyUs, LoadFigures};

    fn phase(name: &str, clients: u32, throughput_per_s: f64) -> PhaseResult {
        let latency_us = LatencyUs { p50: 800, p99: 2000, ..LatencyUs::default() };
        let measured =
            LoadFigures { clients: Some(clients), throughput_per_s, latency_us, ..LoadFigures::default() };
        PhaseResult { name: name.to_owned(), measured, ..PhaseResult::default() }
    }

    fn load(phases: Vec<PhaseResult>) -> LoadResult {
        LoadResult { name: "tpcb".to_owned(), phases, ..LoadResult::default() }
    }

    #[test]
    fn a_sweep_over_clients_is_drawn_with_a_point_for_each_step_and_curve() {
        let phases = vec![
            phase("warm-up", 1, 900.0),
            phase("one", 1, 1000.0),
            phase("four", 4, 2500.0),
            phase("sixteen", 16, 3000.0),
        ];
        let html = figure(&load(phases));
        assert_eq!(
            html.matches("<circle").count(),
            2 * 3 * 3,
            "two widths, three curves, three steps: {html}"
        );
        assert!(html.contains("against its clients") && html.contains(">16</text>"), "{html}");
    }

    #[test]
    fn a_load_that_asks_the_same_in_all_phases_has_no_curve() {
        let same = vec![phase("one", 8, 1.0), phase("two", 8, 2.0), phase("three", 8, 3.0)];
        assert_eq!(figure(&load(same)), "");
        let two = vec![phase("one", 1, 1.0), phase("two", 8, 2.0)];
        assert_eq!(figure(&load(two)), "");
    }
}
