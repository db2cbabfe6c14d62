//! Prediction beside measurement: what was said on paper, what the run showed, and whether the two agree within noise.
//!
//! Owns what agreement is. What is compared stands in `statements` (what the network adds to each statement) and
//! `survival` (what faults leave, how soon, and which writes).

mod statements;
mod survival;

use faults::FaultRecord;
use history::Event;
use measure::{Estimate, Timeline};
use results::{PredictionResult, Relation, RunResult};
use scenario::Scenario;

use crate::capacity::{self, Capacity};

/// The model speaks of the network alone. Between it and a client stand schedulers and timers, which a hundredth part of
/// each side does not tell from it: a difference of so much is none, however sure it is.
const TOLERANCE: f64 = 0.03;

/// What a run left to compare predictions with.
pub struct Evidence<'a> {
    /// Latencies and counts by the second.
    pub timeline: &'a Timeline,
    /// What happened.
    pub events: &'a [Event],
    pub faults: &'a [FaultRecord],
    /// When the loads were told to stop.
    pub ended_s: f64,
    /// For the intervals.
    pub seed: u64,
}

/// Adds predictions to a result, and sentences about them.
pub fn add_predictions(result: &mut RunResult, scenario: &Scenario, evidence: &Evidence<'_>) {
    let (mut rows, mut sentences) = statements::of_loads(result, scenario, evidence);
    rows.extend(survival::of_faults(result, scenario, evidence));
    sentences.extend(in_all(&rows));
    let counts = |load: &str, operation: &str| evidence.timeline.throughput(load, operation);
    let swept = |found: &Capacity| {
        let load = scenario.loads.iter().find(|load| load.name == found.load);
        load.is_some_and(|load| load.pace.sweep.is_some())
    };
    let capacities = capacity::of_result(result, counts, evidence.seed);
    sentences.extend(capacities.iter().filter(|found| swept(found)).map(more_clients));
    result.prediction.extend(rows);
    result.explanations.extend(sentences);
}

/// What more clients would have given, with 95 % intervals.
fn more_clients(found: &Capacity) -> String {
    let Capacity { load, fit, .. } = found;
    let (contention, twice) = (fit.contention(), fit.at(2.0 * fit.count_max));
    let peak = fit.peak();
    let peak = if peak.value.is_finite() {
        format!("it would peak at {:.0} clients (no less than {:.0})", peak.value, peak.low)
    } else {
        "no peak is seen".to_owned()
    };
    format!(
        "By the universal scalability law over {} phases of {load}, {:.1} % of its work is serial ({:.1} to \
         {:.1} %); {peak}, and twice the measured maximum of clients would give {:.0} a second ({:.0} to {:.0}).",
        found.points.len(),
        contention.value * 100.0,
        contention.low * 100.0,
        contention.high * 100.0,
        twice.value,
        twice.low,
        twice.high
    )
}

/// How many agree, and which do not.
fn in_all(rows: &[PredictionResult]) -> Option<String> {
    let judged = rows.iter().filter(|row| row.agrees.is_some()).count();
    if judged == 0 {
        return None;
    }
    let against: Vec<String> =
        rows.iter().filter(|row| row.agrees == Some(false)).map(|row| row.name.clone()).collect();
    let nearly: Vec<String> =
        rows.iter().filter(|row| row.agrees_within.is_some()).map(|row| row.name.clone()).collect();
    let nearly = match nearly.len() {
        0 => String::new(),
        count => format!(
            " The interval of {count} excludes the prediction, by less than the tolerance: {}.",
            nearly.join("; ")
        ),
    };
    Some(match against.len() {
        0 => format!(
            "Of {} predictions {judged} can be judged, and all agree with the run.{nearly}",
            rows.len()
        ),
        count => format!(
            "Of {} predictions {judged} can be judged; {count} differ from the run beyond noise: {}.{nearly}",
            rows.len(),
            against.join("; ")
        ),
    })
}

/// A figure beside its measurement: they agree when the interval reaches what was predicted, give or take `slack`.
fn figure(
    name: String,
    unit: &str,
    predicted: f64,
    measured: Option<Estimate>,
    slack: f64,
) -> PredictionResult {
    let tolerance = slack.max(predicted.abs() * TOLERANCE);
    let reaches = |within: f64| {
        measured.map(|found| found.low <= predicted + within && predicted - within <= found.high)
    };
    let agrees = reaches(tolerance);
    PredictionResult {
        name,
        predicted,
        measured: measured.map(|found| found.mean),
        unit: unit.to_owned(),
        relation: Relation::Equal,
        low: measured.map(|found| found.low),
        high: measured.map(|found| found.high),
        agrees,
        agrees_within: (agrees == Some(true) && reaches(0.0) == Some(false)).then_some(tolerance),
        predicted_in_words: None,
        measured_in_words: measured.is_none().then(|| "too few seconds to judge".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(predicted: f64, (low, high): (f64, f64), slack: f64, expected: bool) {
        let found = Estimate { mean: f64::midpoint(low, high), low, high };
        let row = figure("a".to_owned(), "ms", predicted, Some(found), slack);
        assert_eq!(row.agrees, Some(expected), "{row:?}");
    }

    #[test]
    fn a_prediction_agrees_when_the_interval_reaches_it_or_nearly() {
        check(50.0, (49.0, 51.0), 0.0, true);
        check(50.0, (51.0, 52.0), 0.0, true);
        check(50.0, (51.6, 52.0), 0.0, false);
        check(50.0, (40.0, 48.0), 0.0, false);
        check(0.0, (0.1, 0.2), 0.5, true);
        check(0.0, (0.6, 0.7), 0.5, false);
        let within = |(low, high): (f64, f64)| {
            let found = Estimate { mean: f64::midpoint(low, high), low, high };
            figure("a".to_owned(), "ms", 50.0, Some(found), 0.0).agrees_within
        };
        assert_eq!(
            [within((49.0, 51.0)), within((51.0, 52.0)), within((51.6, 52.0))],
            [None, Some(1.5), None]
        );
        assert_eq!(figure("a".to_owned(), "ms", 1.0, None, 0.0).agrees, None);
    }

    #[test]
    fn what_differs_is_named_and_what_cannot_be_judged_is_not_counted() {
        let row =
            |name: &str, agrees| PredictionResult { name: name.to_owned(), agrees, ..Default::default() };
        assert_eq!(in_all(&[row("a", None)]), None);
        let told = in_all(&[row("a", Some(true)), row("b", None)]).expect("one is judged");
        assert_eq!(told, "Of 2 predictions 1 can be judged, and all agree with the run.");
        let near = PredictionResult { agrees_within: Some(1.0), ..row("a", Some(true)) };
        let told = in_all(&[near]).expect("one is judged");
        assert_eq!(
            told,
            "Of 1 predictions 1 can be judged, and all agree with the run. The interval of 1 excludes the prediction, by less \
             than the tolerance: a."
        );
        let told = in_all(&[row("a", Some(false)), row("b", Some(true))]).expect("two are judged");
        assert_eq!(told, "Of 2 predictions 2 can be judged; 1 differ from the run beyond noise: a.");
    }
}
