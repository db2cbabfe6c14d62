//! `ramp` of a load: clients or a rate that rise or fall evenly over a time, once the warm-up has ended.
//!
//! Owns reading and writing it and cutting it into steps. How it goes together with a load's other keys is `pace`'s.

use std::time::Duration;

use crate::decode::Decoder;
use crate::language::RAMP;
use crate::pace::decode_rate;
use crate::rejection::{Findings, Spanned};
use crate::resolved::{Ends, Ramp};
use crate::tree::{Node, Value};
use crate::units::{format_duration, format_rate};

/// The most steps one ramp is cut into, and the least time between two of them: the curve they make is smooth beside what
/// a second of a load tells.
const MOST_STEPS: u32 = 1000;
const LEAST_STEP: Duration = Duration::from_millis(100);

/// Reads it.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<Spanned<Ramp>> {
    let record = decoder.record(node, &RAMP)?;
    let over = record.get("over").and_then(|node| decoder.duration(node, "the time of the ramp", "s"));
    let ends = decode_ends(record.get("from")?, record.get("to")?, decoder);
    let over = over?;
    if over.value.is_zero() {
        let help = "write a time such as 60s, or use `sweep` for steps";
        decoder.findings.add("too-small", over.at, "a ramp over no time is a step", "no time", help);
        return None;
    }
    Some(Spanned { value: Ramp { ends: ends?, over: over.value }, at: over.at })
}

fn decode_ends(from: &Node, to: &Node, decoder: &mut Decoder) -> Option<Ends> {
    let is_rate = |node: &Node| matches!(&node.value, Value::Scalar { text, .. } if text.contains('/'));
    let (ends, at) = match (is_rate(from), is_rate(to)) {
        (true, true) => {
            let from_per_s = decode_rate(from, "the ramp's first rate", decoder);
            let to_per_s = decode_rate(to, "the ramp's last rate", decoder)?;
            (Ends::Rate { from_per_s: from_per_s?.value, to_per_s: to_per_s.value }, to_per_s.at)
        }
        (false, false) => {
            let mut clients = |node, what| {
                let count = decoder.count(node, what, 1, 100_000)?;
                Some(Spanned { value: u32::try_from(count.value).ok()?, at: count.at })
            };
            let from = clients(from, "the ramp's first number of clients");
            let to = clients(to, "the ramp's last number of clients")?;
            (Ends::Clients { from: from?.value, to: to.value }, to.at)
        }
        _ => {
            let message = "a ramp goes from a rate to a rate, or from a number of clients to another";
            let help = "write `from: 10, to: 200` for clients, or `from: 100/s, to: 2000/s` for a rate";
            decoder.findings.add("contradiction", to.at, message, "not the same kind as `from`", help);
            return None;
        }
    };
    let is_flat = match ends {
        Ends::Clients { from, to } => from == to,
        Ends::Rate { from_per_s, to_per_s } => (from_per_s - to_per_s).abs() < f64::EPSILON * to_per_s,
    };
    if is_flat {
        let help = "write another value, or leave `ramp` out";
        decoder.findings.add("contradiction", at, "the ramp ends where it begins", "the same again", help);
        return None;
    }
    Some(ends)
}

/// Refuses a ramp that ends after the run.
pub(crate) fn check(ramp: &Spanned<Ramp>, measured: Duration, findings: &mut Findings) {
    let over = ramp.value.over;
    if over > measured {
        findings.add(
            "ramp-longer-than-run",
            ramp.at,
            format!(
                "the ramp takes {} and the run has {} after its warm-up",
                format_duration(over),
                format_duration(measured)
            ),
            "too long",
            "make it shorter, or the schedule longer",
        );
    }
}

/// The line of it, as the language reads it.
pub(crate) fn written(ramp: &Ramp) -> String {
    let (from, to) = match ramp.ends {
        Ends::Clients { from, to } => (from.to_string(), to.to_string()),
        Ends::Rate { from_per_s, to_per_s } => (format_rate(from_per_s), format_rate(to_per_s)),
    };
    format!("ramp: {{ from: {from}, to: {to}, over: {} }}", format_duration(ramp.over))
}

impl Ramp {
    /// Whether it makes the loop an open one.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.ends, Ends::Rate { .. })
    }

    /// From when, how many clients, at what rate, for a ramp that begins at `begins`.
    pub(crate) fn steps(&self, begins: Duration, clients: u32) -> Vec<(Duration, u32, Option<f64>)> {
        let room = u32::try_from(self.over.as_millis() / LEAST_STEP.as_millis()).unwrap_or(MOST_STEPS);
        let pieces = |changes: u32| changes.min(room).clamp(1, MOST_STEPS);
        match self.ends {
            Ends::Clients { from, to } => {
                let count = pieces(from.abs_diff(to));
                let at = |place: u32| f64::from(place) / f64::from(count) * (f64::from(to) - f64::from(from));
                // Between two counts of u32, so that the cast keeps the value.
                let step = |place| {
                    (begins + self.over * place / count, (f64::from(from) + at(place)).round() as u32, None)
                };
                std::iter::once((Duration::ZERO, from, None)).chain((1..=count).map(step)).collect()
            }
            Ends::Rate { from_per_s, to_per_s } => {
                let count = pieces(MOST_STEPS);
                // Each piece has the rate of its middle, so that as much falls due as under an even slope.
                let step = |place: u32| {
                    let share = (f64::from(place) + 0.5) / f64::from(count);
                    let per_s = from_per_s + (to_per_s - from_per_s) * share;
                    (begins + self.over * place / count, clients, Some(per_s))
                };
                let before = (!begins.is_zero()).then_some((Duration::ZERO, clients, Some(from_per_s)));
                let after = (begins + self.over, clients, Some(to_per_s));
                before.into_iter().chain((0..count).map(step)).chain([after]).collect()
            }
        }
    }
}
