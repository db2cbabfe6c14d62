//! How much a load asks: a rate, how operations are spread, think time, a sweep over the phases or a ramp.
//!
//! Owns reading these keys of a load, holding them against each other and against the schedule, and writing them.

mod ramp;

use crate::decode::Decoder;
use crate::language::{ARRIVALS, SWEEP, THINK_TIME};
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::pace::WARM_UP;
use crate::resolved::{Arrival, Pace, Ramp, Sweep, ThinkTime};
use crate::scenario::Phase;
use crate::tree::{Node, Value};
use crate::units::{format_duration, format_rate};

/// The highest rate one generator is asked for, operations a second.
const HIGHEST_RATE_PER_S: f64 = 1_000_000.0;

/// These keys as written.
#[derive(Default)]
pub(crate) struct PaceDocument {
    rate_per_s: Option<Spanned<f64>>,
    arrival: Option<Spanned<&'static str>>,
    think_time: Option<Spanned<ThinkTime>>,
    sweep: Option<Spanned<Sweep>>,
    ramp: Option<Spanned<Ramp>>,
}

/// A key of the load by its name.
type Keys<'n> = dyn Fn(&'static str) -> Option<&'n Node> + 'n;

/// Reads the keys.
pub(crate) fn decode(key: &Keys<'_>, decoder: &mut Decoder) -> PaceDocument {
    PaceDocument {
        rate_per_s: key("rate").and_then(|node| decode_rate(node, "the rate", decoder)),
        arrival: key("arrival").and_then(|node| decoder.word(node, "arrival", ARRIVALS)),
        think_time: key("think_time").and_then(|node| decode_think_time(node, decoder)),
        sweep: key("sweep").and_then(|node| decode_sweep(node, decoder)),
        ramp: key("ramp").and_then(|node| ramp::decode(node, decoder)),
    }
}

pub(crate) fn decode_rate(node: &Node, what: &str, decoder: &mut Decoder) -> Option<Spanned<f64>> {
    let rate = decoder.rate(node, what)?;
    if rate.value > 0.0 && rate.value <= HIGHEST_RATE_PER_S {
        return Some(rate);
    }
    let message = format!("{what} is not above 0/s and at most {HIGHEST_RATE_PER_S}/s");
    decoder.findings.add("out-of-range", rate.at, message, "this rate", "write a rate such as 2000/s");
    None
}

fn decode_think_time(node: &Node, decoder: &mut Decoder) -> Option<Spanned<ThinkTime>> {
    if !matches!(node.value, Value::Map(_)) {
        let pause = decoder.duration(node, "the think time", "ms")?;
        return Some(Spanned { value: ThinkTime::Constant(pause.value), at: pause.at });
    }
    let record = decoder.record(node, &THINK_TIME)?;
    let mean = record.get("exponential").and_then(|node| decoder.duration(node, "the mean", "ms"))?;
    Some(Spanned { value: ThinkTime::Exponential(mean.value), at: mean.at })
}

fn decode_sweep(node: &Node, decoder: &mut Decoder) -> Option<Spanned<Sweep>> {
    let record = decoder.record(node, &SWEEP)?;
    let at = node.head;
    if let Some(node) = record.get("clients") {
        let items = decoder.list(node, "the sweep's clients", 2)?;
        let clients: Option<Vec<u32>> = items
            .iter()
            .map(|item| {
                let count = decoder.count(item, "the number of clients", 1, 100_000)?;
                u32::try_from(count.value).ok()
            })
            .collect();
        return Some(Spanned { value: Sweep::Clients(clients?), at });
    }
    let items = decoder.list(record.get("rate")?, "the sweep's rates", 2)?;
    let rates: Option<Vec<f64>> =
        items.iter().map(|item| Some(decode_rate(item, "the rate", decoder)?.value)).collect();
    Some(Spanned { value: Sweep::Rate(rates?), at })
}

impl PaceDocument {
    /// Holds the keys against each other and against the schedule.
    pub(crate) fn resolve(self, schedule: &[Phase], findings: &mut Findings) -> Pace {
        let sweeps_rate = matches!(&self.sweep, Some(Spanned { value: Sweep::Rate(_), .. }));
        let ramps_rate = self.ramp.as_ref().is_some_and(|ramp| ramp.value.is_open());
        let is_open = self.rate_per_s.is_some() || sweeps_rate || ramps_rate;
        let mut refuse = |at: Spot, message: &str, help: &str| {
            findings.add("contradiction", at, message, "does not go together", help);
        };
        if let (Some(rate), true) = (&self.rate_per_s, sweeps_rate) {
            refuse(
                rate.at,
                "the load has a rate and sweeps its rate",
                "leave `rate` out: the sweep gives it",
            );
        }
        if let (Some(rate), true) = (&self.rate_per_s, ramps_rate) {
            refuse(
                rate.at,
                "the load has a rate and a ramp of its rate",
                "leave `rate` out: the ramp gives it",
            );
        }
        if let (Some(sweep), Some(_)) = (&self.sweep, &self.ramp) {
            refuse(
                sweep.at,
                "the load has a sweep and a ramp",
                "leave one of them out, or make two loads of it",
            );
        }
        if let (Some(arrival), false) = (&self.arrival, is_open) {
            let help = "add `rate: 2000/s`, or leave `arrival` out";
            refuse(arrival.at, "operations of a closed loop are not spread: each follows an answer", help);
        }
        if let (Some(think), true) = (&self.think_time, is_open) {
            let help = "leave `think_time` out, or the rate";
            refuse(think.at, "clients of an open loop do not think: operations are due at their rate", help);
        }
        let steps = schedule.iter().filter(|phase| phase.name != WARM_UP).count();
        if let Some(sweep) = &self.sweep
            && sweep.value.len() != steps
        {
            let values = sweep.value.len();
            findings.add(
                "sweep-and-phases",
                sweep.at,
                format!("the sweep has {values} values and the schedule has {steps} phases after warm-up"),
                "one value for each phase",
                format!("write {steps} values, or as many phases after the warm-up as there are values, in the same order"),
            );
        }
        if let Some(ramp) = &self.ramp {
            let measured = schedule.iter().filter(|phase| phase.name != WARM_UP).map(|phase| phase.length);
            ramp::check(ramp, measured.sum(), findings);
        }
        Pace {
            rate_per_s: self.rate_per_s.map(|rate| rate.value),
            arrival: match self.arrival {
                Some(Spanned { value: "poisson", .. }) => Arrival::Poisson,
                _ => Arrival::Constant,
            },
            think_time: self.think_time.map_or(ThinkTime::None, |think| think.value),
            sweep: self.sweep.map(|sweep| sweep.value),
            ramp: self.ramp.map(|ramp| ramp.value),
        }
    }
}

/// The lines of these keys, as the language reads them.
pub(crate) fn written(pace: &Pace) -> Vec<String> {
    let mut lines = Vec::new();
    let is_open = pace.rate_per_s.is_some()
        || matches!(pace.sweep, Some(Sweep::Rate(_)))
        || pace.ramp.is_some_and(|ramp| ramp.is_open());
    lines.extend(pace.rate_per_s.map(|rate| format!("rate: {}", format_rate(rate))));
    if is_open {
        let arrival = if pace.arrival == Arrival::Poisson { "poisson" } else { "constant" };
        lines.push(format!("arrival: {arrival}"));
    }
    match pace.think_time {
        ThinkTime::None => {}
        ThinkTime::Constant(pause) => lines.push(format!("think_time: {}", format_duration(pause))),
        ThinkTime::Exponential(mean) => {
            lines.push(format!("think_time: {{ exponential: {} }}", format_duration(mean)));
        }
    }
    lines.extend(pace.sweep.as_ref().map(|sweep| match sweep {
        Sweep::Clients(clients) => {
            let values: Vec<String> = clients.iter().map(u32::to_string).collect();
            format!("sweep: {{ clients: [{}] }}", values.join(", "))
        }
        Sweep::Rate(rates) => {
            let values: Vec<String> = rates.iter().copied().map(format_rate).collect();
            format!("sweep: {{ rate: [{}] }}", values.join(", "))
        }
    }));
    lines.extend(pace.ramp.as_ref().map(ramp::written));
    lines
}
