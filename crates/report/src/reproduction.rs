//! A published report's figures beside this run's, as the report's own table has them: baseline, result, what changed.
//!
//! Owns the table and what a change of a figure is: points for a percentage, a share for all else. The figures stand in the result.

use std::fmt::Write;

use results::{ReproducedFigure, ReproducedReport, ReproducedStep};

use crate::format::{self, figure};
use crate::markup::escape;
use crate::tables::{EFFICIENCY, EFFICIENCY_ABOVE_100};

/// What is in a latency's name.
const LATENCY: &str = "latency";

/// The section with its title; nothing where nothing was published. `load` is the load whose figures they are, where there are
/// several.
pub(crate) fn section(reproduced: &ReproducedReport, load: Option<&str>) -> Option<(String, String)> {
    if reproduced.figures.is_empty() && reproduced.reported_steps.is_empty() {
        return None;
    }
    let report = escape(&reproduced.report);
    let mut html = figures(reproduced) + &steps(reproduced);
    if let Some(load) = load {
        let _ = write!(html, "<p class=\"note\">This run: figures of load {}.</p>", escape(load));
    }
    html.push_str(
        "<p class=\"note\">Absolute speeds depend on the report's hardware; only ratios, changes and the order of \
         events carry over.</p>",
    );
    let is_short = |row: &ReproducedFigure| {
        let mut ours = [row.measured_baseline, row.measured].into_iter().flatten();
        row.name == EFFICIENCY && ours.any(|percent| percent > 100.0)
    };
    if reproduced.figures.iter().any(is_short) {
        html.push_str(EFFICIENCY_ABOVE_100);
    }
    Some((format!("Beside {report}"), html))
}

/// The table of single figures; empty where none was published.
fn figures(reproduced: &ReproducedReport) -> String {
    if reproduced.figures.is_empty() {
        return String::new();
    }
    let report = escape(&reproduced.report);
    let has_baseline = reproduced.figures.iter().any(|figure| figure.reported_baseline.is_some());
    let heads = if has_baseline {
        format!(
            "<tr><th rowspan=\"2\">Figure<th class=\"n\" colspan=\"3\">{report}<th class=\"n\" colspan=\"3\">This run</tr><tr>{0}{0}</tr>",
            "<th class=\"n\">Baseline<th class=\"n\">Result<th class=\"n\">Change"
        )
    } else {
        format!("<tr><th>Figure<th class=\"n\">{report}<th class=\"n\">This run</tr>")
    };
    let mut html = format!("<div class=\"scroll\"><table><thead>{heads}</thead><tbody>");
    for row in &reproduced.figures {
        let _ = write!(html, "<tr><th scope=\"row\">{}", escape(&row.name));
        for cell in cells(row, has_baseline) {
            let _ = write!(html, "<td class=\"n\">{}", escape(&cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// The report's table of steps, and below it this run's phases; empty where the report has none.
fn steps(reproduced: &ReproducedReport) -> String {
    let Some(first) = reproduced.reported_steps.first() else { return String::new() };
    let mut names: Vec<&String> = first.figures.keys().collect();
    // As such tables are printed: how much, then how long it took.
    names.sort_by_key(|name| name.contains(LATENCY));
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>Step".to_owned();
    for name in &names {
        let _ = write!(html, "<th class=\"n\">{}", escape(name));
    }
    html.push_str("</tr></thead><tbody>");
    let mut row = |whose: &str, step: &ReproducedStep| {
        let _ = write!(html, "<tr><th scope=\"row\">{}: {}", escape(whose), escape(&step.step));
        for name in &names {
            let value = step.figures.get(*name).copied().flatten();
            let _ =
                write!(html, "<td class=\"n\">{}", value.map_or_else(|| format::NOTHING.to_owned(), figure));
        }
        html.push_str("</tr>");
    };
    reproduced.reported_steps.iter().for_each(|step| row(&reproduced.report, step));
    reproduced.measured_steps.iter().for_each(|step| row("This run", step));
    html.push_str("</tbody></table></div>");
    html
}

fn cells(row: &ReproducedFigure, has_baseline: bool) -> Vec<String> {
    let told = |value: Option<f64>| value.map_or_else(|| "not measured".to_owned(), figure);
    if !has_baseline {
        return vec![figure(row.reported), told(row.measured)];
    }
    let published = |value: Option<f64>| value.map_or_else(|| format::NOTHING.to_owned(), figure);
    vec![
        published(row.reported_baseline),
        figure(row.reported),
        change(&row.name, row.reported_baseline, Some(row.reported)),
        published(row.measured_baseline),
        told(row.measured),
        change(&row.name, row.measured_baseline, row.measured),
    ]
}

/// From a baseline to a result: in points where both are percentages, else as a share of the baseline.
fn change(name: &str, from: Option<f64>, to: Option<f64>) -> String {
    let Some((from, to)) = from.zip(to) else { return format::NOTHING.to_owned() };
    if name.ends_with("_percent") {
        let sign = if to < from { "\u{2212}" } else { "+" };
        return format!("{sign}{:.1} points", (to - from).abs());
    }
    format::change_percent(to, from).unwrap_or_else(|| format::NOTHING.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, reported: [Option<f64>; 2], measured: [Option<f64>; 2]) -> ReproducedFigure {
        ReproducedFigure {
            name: name.to_owned(),
            reported: reported[1].expect("a figure"),
            reported_baseline: reported[0],
            measured: measured[1],
            measured_baseline: measured[0],
        }
    }

    fn beside(report: &str, figures: Vec<ReproducedFigure>) -> ReproducedReport {
        ReproducedReport { report: report.to_owned(), figures, ..ReproducedReport::default() }
    }

    #[test]
    fn a_table_of_steps_has_the_reports_rows_first_and_throughput_before_latencies() {
        let step = |step: &str, per_s, p99| ReproducedStep {
            step: step.to_owned(),
            figures: [("latency_us_p99".to_owned(), p99), ("throughput_per_s".to_owned(), per_s)].into(),
        };
        let reproduced = ReproducedReport {
            reported_steps: vec![step("150 threads", Some(90_703.0), Some(6_552.0))],
            measured_steps: vec![step("4-clients", Some(822.0), None)],
            ..beside("FR-2", Vec::new())
        };
        let (title, html) = section(&reproduced, None).expect("a section");
        assert_eq!(title, "Beside FR-2");
        let mut rest = html.as_str();
        for part in [
            "throughput_per_s",
            "latency_us_p99",
            "FR-2: 150 threads",
            "90,703",
            "6,552",
            "This run: 4-clients",
            "822",
            format::NOTHING,
        ] {
            let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part} is not next in {html}"));
            rest = after;
        }
    }

    #[test]
    fn a_table_with_a_baseline_tells_the_change_on_both_sides() {
        let figures = vec![
            row("efficiency_percent", [Some(97.6), Some(96.4)], [Some(90.0), Some(90.5)]),
            row("latency_ms_p90", [Some(28.5), Some(104.9)], [Some(10.0), Some(40.0)]),
            row("throughput_lowest_percent", [None, Some(55.0)], [None, None]),
        ];
        let (title, html) = section(&beside("FR-1", figures), None).expect("a section");
        assert_eq!(title, "Beside FR-1");
        assert!(!html.contains("above 100 %"), "{html}");
        for part in ["\u{2212}1.2 points", "+0.5 points", "+268", "+300", "not measured", "colspan"] {
            assert!(html.contains(part), "{part} is not in {html}");
        }
    }

    #[test]
    fn without_a_baseline_there_are_two_columns_and_without_figures_nothing() {
        let figures = vec![row("tps", [None, Some(18.87)], [Some(90.0), Some(19.0)])];
        let (_, html) = section(&beside("FR-3", figures), None).expect("a section");
        assert!(html.contains("18.9") && !html.contains("Change"), "{html}");
        assert_eq!(section(&ReproducedReport::default(), None), None);
        let short = vec![row("efficiency_percent", [Some(97.6), Some(96.4)], [Some(149.0), Some(93.0)])];
        let (_, html) = section(&beside("FR-1", short), Some("tpcb")).expect("a section");
        assert!(html.contains("above 100 % is possible in a short run"), "{html}");
        assert!(html.contains("This run: figures of load tpcb."), "{html}");
    }
}
