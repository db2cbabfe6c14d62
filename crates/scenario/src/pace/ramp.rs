//! `ramp` of a load: clients or a rate that rise or fall evenly over a time, once the warm-up has ended.
//!
//! Owns reading and writing it and cutting it into steps. How it goes together with a load's other keys is `pace`'s.

use std::time::Duration;

use super::decode_rate;
use crate::decode::Decoder;
use crate::language::RAMP;
use crate::rejection::{Findings, Spanned};
use crate::resolved::{Ends, Ramp};
use crate::tree::{Node, Value};
use crate::units::{format_duration, format_rate};

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
