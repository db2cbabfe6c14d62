//! What more clients or nodes would give, as text: the law's numbers, and what was measured beside it. No number without
//! its interval.

use model::capacity::Estimate;
use paper::capacity::Capacity;

/// Multiples of the largest count measured that are told besides.
const BEYOND: [f64; 2] = [2.0, 4.0];

/// One load, line by line.
pub fn capacity(found: &Capacity) -> Vec<String> {
    let Capacity { load, by, points, fit } = found;
    let (one, several) = (by.name().trim_end_matches('s'), by.name());
    let mut lines = vec![
        format!(
            "Capacity of {load} by {several}: the universal scalability law over {} measurements",
            points.len()
        ),
        format!("  one {one} gives {}; brackets show the 95 % interval", per_s(fit.one_per_s())),
        format!(
            "  contention {}, coherency {}; the fit is within {:.1} %",
            percent(fit.contention()),
            percent(fit.coherency()),
            fit.residual * 100.0
        ),
        peak(found),
        String::new(),
        format!("  {several:>10}{:>14}   by the law", "measured"),
    ];
    let mut sorted = points.clone();
    sorted.sort_by(|one, other| one.count.total_cmp(&other.count));
    for point in &sorted {
        lines.push(format!("  {:>10}{:>12.1}/s   {}", point.count, point.per_s, per_s(fit.at(point.count))));
    }
    for count in BEYOND.map(|times| times * fit.count_max) {
        lines.push(format!("  {count:>10}{:>14}   {}", "beyond", per_s(fit.at(count))));
    }
    lines
}

fn peak(found: &Capacity) -> String {
    let (fit, several) = (&found.fit, found.by.name());
    let Estimate { value, low, high } = fit.peak();
    if !value.is_finite() {
        return format!("  no peak was found; it would be at {low:.0} {several} or more");
    }
    let high = if high.is_finite() { format!("{high:.0}") } else { "none at all".to_owned() };
    format!("  most at {value:.0} {several} ({low:.0} to {high}): {}", per_s(fit.at(value)))
}

fn per_s(estimate: Estimate) -> String {
    format!("{:.1}/s ({:.1} to {:.1})", estimate.value, estimate.low, estimate.high)
}

fn percent(estimate: Estimate) -> String {
    let Estimate { value, low, high } = estimate;
    format!("{:.3} % ({:.3} to {:.3})", value * 100.0, low * 100.0, high * 100.0)
}
