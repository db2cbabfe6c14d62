//! Each expectation of the scenario compared with what was measured.
//!
//! Owns which measurements an expectation is about and how they are judged together. It must hold for each load, phase and
//! fault that its scope leaves open; of several the worst is told. What was not measured is `unknown`, unless the run
//! shows that the bound can no longer hold.

mod reading;

use history::{AgentFacts, Verdict};
use results::{ExpectationResult, RunResult};
use scenario::quantity::{self, Unit};
use scenario::resolved::Comparison;
use scenario::{Expectation, Scenario};

use self::reading::{Measured, Reading};

/// Seconds that two decimals show.
const SHOWN_S: f64 = 0.005;
/// What stands in the place of a value that was not measured.
const NOTHING: &str = "nothing";

/// Judges all. `ended_s` is when the loads were told to stop.
#[must_use]
pub fn judge(scenario: &Scenario, result: &RunResult, ended_s: f64) -> Vec<ExpectationResult> {
    let judge = |expectation: &Expectation| {
        let is_length = unit_of(expectation) == Unit::Seconds;
        let open = if is_length { left_open_by_clocks(expectation, result) } else { 0.0 };
        let readings = reading::readings(expectation, scenario, result, ended_s);
        let (verdict, worst) = worst(&readings, (expectation, open));
        let mut judged = ExpectationResult {
            name: expectation.name.clone(),
            wanted: expectation.wanted.clone(),
            measured: worst
                .map_or_else(|| NOTHING.to_owned(), |worst| in_words(worst, (expectation, open), &readings)),
            verdict,
        };
        if is_length {
            doubt_times_of_a_lost_agent(&mut judged, (expectation, result));
        }
        judged
    };
    scenario.expect.iter().map(judge).collect()
}

/// The agents whose clocks told what is expected: those of its load, or of all loads where it names none. Faults are told by this
/// machine's clock.
fn agents_of<'r>(expectation: &Expectation, result: &'r RunResult) -> Vec<&'r AgentFacts> {
    let is_of = |agent: &&AgentFacts| expectation.load.as_ref().is_none_or(|load| *load == agent.load);
    result.agents.iter().filter(is_of).collect()
}

/// How far a length of time may be off, seconds: it lies between two moments, which the clocks of two agents may have told.
fn left_open_by_clocks(expectation: &Expectation, result: &RunResult) -> f64 {
    let agents = agents_of(expectation, result).into_iter();
    let off_us = agents.filter_map(|agent| agent.clock.off_by_at_most_us);
    2.0 * off_us.fold(0.0, f64::max) / 1e6
}

/// A length of time rests on clocks, of which one was not compared to the end.
fn doubt_times_of_a_lost_agent(
    judged: &mut ExpectationResult,
    (expectation, result): (&Expectation, &RunResult),
) {
    let is_open = |agent: &&AgentFacts| agent.lost.is_some() && agent.clock.off_by_at_most_us.is_none();
    let Some(agent) = agents_of(expectation, result).into_iter().find(is_open) else { return };
    judged.verdict = Verdict::Unknown;
    judged.measured.push_str(&format!(
        ", but agent {} was lost and its clock not compared with this machine's to the end",
        agent.agent
    ));
}

fn unit_of(expectation: &Expectation) -> Unit {
    quantity::entry_of(expectation.quantity).map_or(Unit::Number, |entry| entry.unit)
}

/// How an expectation came out, and the reading that decided. What holds for one value that is left open and not for another
/// is not known.
fn worst<'r>(
    readings: &'r [Reading],
    (expectation, open): (&Expectation, f64),
) -> (Verdict, Option<&'r Reading>) {
    let judged = |reading: &Reading| {
        let verdict =
            |off: f64| compare(reading.measured.moved(off), expectation.comparison, expectation.bound);
        let (least, most) = (verdict(-open), verdict(open));
        if least == most { least } else { Verdict::Unknown }
    };
    let worst = readings.iter().max_by(|one, other| {
        let severity = judged(one).cmp(&judged(other));
        severity
            .then_with(|| badness(one.measured, expectation).total_cmp(&badness(other.measured, expectation)))
    });
    // Nothing to read is nothing shown.
    (worst.map_or(Verdict::Unknown, judged), worst)
}

/// The larger, the further from what is wanted.
fn badness(measured: Measured, expectation: &Expectation) -> f64 {
    let value = match measured {
        Measured::TooFew { .. } | Measured::Incomparable(_) | Measured::Untold => return f64::INFINITY,
        Measured::Value(value) | Measured::OfFew { value, .. } | Measured::Beyond(value) => value,
    };
    match expectation.comparison {
        Comparison::Less | Comparison::AtMost => value,
        Comparison::Greater | Comparison::AtLeast => -value,
        Comparison::Equal => (value - expectation.bound).abs(),
    }
}

fn compare(measured: Measured, comparison: Comparison, bound: f64) -> Verdict {
    let holds = |holds: bool| if holds { Verdict::Pass } else { Verdict::Fail };
    match measured {
        Measured::TooFew { .. } | Measured::Incomparable(_) | Measured::Untold => Verdict::Unknown,
        Measured::Value(value) => holds(match comparison {
            Comparison::Equal => (value - bound).abs() <= f64::EPSILON * bound.abs().max(1.0),
            Comparison::Less => value < bound,
            Comparison::AtMost => value <= bound,
            Comparison::Greater => value > bound,
            Comparison::AtLeast => value >= bound,
        }),
        // What holds for a few may be chance.
        Measured::OfFew { value, .. } => match compare(Measured::Value(value), comparison, bound) {
            Verdict::Fail => Verdict::Fail,
            _ => Verdict::Unknown,
        },
        Measured::Beyond(least) => match comparison {
            Comparison::Less if least >= bound => Verdict::Fail,
            Comparison::AtMost | Comparison::Equal if least > bound => Verdict::Fail,
            Comparison::Greater if least > bound => Verdict::Pass,
            Comparison::AtLeast if least >= bound => Verdict::Pass,
            _ => Verdict::Unknown,
        },
    }
}

/// A measurement with its unit, and where it is of where there are several.
fn in_words(reading: &Reading, (expectation, open): (&Expectation, f64), all: &[Reading]) -> String {
    let unit = unit_of(expectation);
    let words = match reading.measured {
        Measured::TooFew { operations, needed } => {
            let (operations, needed) = (report::with_thousands(operations), report::with_thousands(needed));
            format!("{NOTHING}: {operations} operations, {needed} needed")
        }
        Measured::OfFew { value, operations, needed } => {
            let (operations, needed) = (report::with_thousands(operations), report::with_thousands(needed));
            format!("{}, of {operations} operations, {needed} needed", with_unit(value, unit))
        }
        Measured::Incomparable(why) => format!("{NOTHING}: {}", report::incomparable(&why)),
        Measured::Untold => NOTHING.to_owned(),
        Measured::Value(value) if open >= SHOWN_S => {
            format!("{} ± {}", with_unit(value, unit), with_unit(open, unit))
        }
        Measured::Value(value) => with_unit(value, unit),
        Measured::Beyond(value) => format!("at least {}", with_unit(value, unit)),
    };
    if all.len() > 1 { format!("{words} ({})", reading.place) } else { words }
}

fn with_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => report::with_thousands(value.max(0.0).round() as u64),
        Unit::Number => format!("{value:.1}"),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Microseconds => format!("{:.2} ms", value / 1e3),
        Unit::PerSecond => format!("{value:.1}/s"),
        Unit::Ratio | Unit::Share => format!("{:.1} %", value * 100.0),
    }
}

#[cfg(test)]
pub(crate) mod tests;
