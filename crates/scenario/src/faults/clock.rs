//! What faults of a node's wall clock have in common: whose clock, how it goes wrong, how that is read, written and refused.
//!
//! Each kind has a file of its own beside this one.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::receipts::OfAllFaults;
use super::targets::{ElectedRole, NodeTarget, Surroundings};
use super::{Aim, Facts, FaultAction, Form, Need, Takes, Written};
use crate::decode::{Decoder, Record};
use crate::language::{Field, OwnShape, Shape, no_keys, no_tables, required};
use crate::rejection::{Findings, Spanned, Spot};
use crate::units::{duration, format_duration, format_percent, percent};

/// A receipt tells offsets from none above this; with less a clock is right.
const LEAST_SHOWN_NS: f64 = 100_000.0;
/// A receipt is exact to 1 ms: less is not worth a jump.
const LEAST_JUMP: Duration = Duration::from_millis(10);
/// Ten years: beyond that programs meet other limits than those of a clock that is wrong.
const MOST_JUMP: Duration = Duration::from_secs(3650 * 86_400);
const BILLION: f64 = 1e9;

/// The key that every kind has.
pub(super) const OF_NODE: Field = required(
    "node",
    NODE_OR_ALL,
    "the node: by name (n1), or by role: leader, a-follower, random; `all`: every node at once, as when all ask the same wrong \
     time server",
);
/// Every node.
const ALL: &str = "all";
const NODE_OR_ALL: Shape = Shape::Own(&OwnShape {
    holds: || "a node (n1), a role: leader, a-follower, random; or all".to_owned(),
    schema: || json!({ "type": "string" }),
    keys: no_keys,
    tables: no_tables,
});

/// A number with a unit and, perhaps, a minus before it.
pub(super) const SIGNED_DURATION: Shape = Shape::Own(&OwnShape {
    holds: || "a duration, with a minus for back (5s, -300ms)".to_owned(),
    schema: || signed("(us|ms|s|m|h)"),
    keys: no_keys,
    tables: no_tables,
});
pub(super) const SIGNED_PERCENT: Shape = Shape::Own(&OwnShape {
    holds: || "a percentage, with a minus for slower (50%, -20%)".to_owned(),
    schema: || signed("%"),
    keys: no_keys,
    tables: no_tables,
});
pub(super) const PARTS_PER_MILLION: Shape = Shape::Own(&OwnShape {
    holds: || "parts per million, with a minus for slower (200ppm, -50ppm)".to_owned(),
    schema: || signed("ppm"),
    keys: no_keys,
    tables: no_tables,
});

fn signed(unit: &str) -> Value {
    json!({ "type": "string", "pattern": format!(r"^-?[0-9]+(\.[0-9]+)?{unit}$") })
}

/// Whose clock goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockTarget {
    /// One node's.
    Node(NodeTarget),
    /// That of every node that has power then.
    All,
}

impl fmt::Display for ClockTarget {
    /// As it is written in a scenario.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockTarget::Node(node) => node.fmt(f),
            ClockTarget::All => f.write_str(ALL),
        }
    }
}

/// A node's wall clock goes wrong, or all nodes'. Only what shows the time of day is touched, not what measures how time passes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockFault {
    /// Whose.
    pub node: ClockTarget,
    /// How.
    pub deviation: ClockDeviation,
}

/// How a clock goes wrong. It is right until then, as far as no other fault has changed it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockDeviation {
    /// It is set forward.
    Ahead(Duration),
    /// It is set back.
    Behind(Duration),
    /// It runs faster by so many millionths; slower when less than zero.
    Drift(f64),
    /// It runs faster by this share; slower when less than zero.
    Race(f64),
    /// It stands still.
    Stop,
}

impl ClockDeviation {
    /// How far it is set, in nanoseconds.
    #[must_use]
    pub fn jump_ns(self) -> i64 {
        let ns = |by: Duration| i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        match self {
            ClockDeviation::Ahead(by) => ns(by),
            ClockDeviation::Behind(by) => -ns(by),
            ClockDeviation::Drift(_) | ClockDeviation::Race(_) | ClockDeviation::Stop => 0,
        }
    }

    /// How much faster it runs, in billionths.
    #[must_use]
    pub fn parts_per_billion(self) -> i64 {
        match self {
            ClockDeviation::Ahead(_) | ClockDeviation::Behind(_) => 0,
            ClockDeviation::Drift(parts_per_million) => (parts_per_million * 1e3).round() as i64,
            ClockDeviation::Race(share) => (share * BILLION).round() as i64,
            ClockDeviation::Stop => -1_000_000_000,
        }
    }

    /// How far it is from the true time when it has gone wrong for so long.
    #[must_use]
    pub fn offset_ns_after(self, stands: Duration) -> f64 {
        self.jump_ns() as f64 + self.parts_per_billion() as f64 * stands.as_secs_f64()
    }

    /// Which way it goes wrong, however far; empty where there is only one.
    fn form(self) -> &'static str {
        match self {
            ClockDeviation::Ahead(_) => "ahead",
            ClockDeviation::Behind(_) => "behind",
            ClockDeviation::Drift(rate) | ClockDeviation::Race(rate) if rate < 0.0 => "slow",
            ClockDeviation::Drift(_) | ClockDeviation::Race(_) => "fast",
            ClockDeviation::Stop => "",
        }
    }

    /// As it stands in a scenario; empty where there is nothing to say.
    #[must_use]
    pub fn written(self) -> String {
        let sign = |value: f64| if value < 0.0 { "-" } else { "" };
        match self {
            ClockDeviation::Ahead(by) => format!("by: {}", format_duration(by)),
            ClockDeviation::Behind(by) => format!("by: -{}", format_duration(by)),
            ClockDeviation::Drift(rate) => format!("rate: {rate}ppm"),
            ClockDeviation::Race(by) => format!("by: {}{}", sign(by), format_percent(by.abs())),
            ClockDeviation::Stop => String::new(),
        }
    }
}

impl Facts for ClockFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        match self.node {
            ClockTarget::Node(node) => node.elected().into_iter().collect(),
            ClockTarget::All => Vec::new(),
        }
    }

    fn takes(&self) -> Takes<'_> {
        Takes::Time(self)
    }

    fn form(&self) -> Option<Form<'_>> {
        let aim = match self.node {
            ClockTarget::Node(node) => Aim::Node(node),
            ClockTarget::All => Aim::AllNodes,
        };
        Some(Form::new(self.deviation.form(), aim))
    }

    fn written(&self) -> String {
        match self.deviation {
            ClockDeviation::Stop => format!("node: {}", self.node),
            deviation => format!("node: {}, {}", self.node, deviation.written()),
        }
    }

    fn needs(&self) -> Option<Need> {
        Some(Need::Clocks)
    }
}

/// A clock fault as written.
pub(super) struct Document {
    node: Spanned<String>,
    deviation: Spanned<ClockDeviation>,
    make: fn(ClockFault) -> FaultAction,
}

/// Reads what a kind has in common with the others.
pub(super) fn document(
    record: &Record<'_>,
    deviation: Option<Spanned<ClockDeviation>>,
    make: fn(ClockFault) -> FaultAction,
    decoder: &mut Decoder,
) -> Option<Box<dyn Written>> {
    let node = record.get("node").and_then(|node| decoder.text(node, "a node"));
    Some(Box::new(Document { node: node?, deviation: deviation?, make }))
}

/// A value with a sign: whether it is below zero, and the rest read as `read` does.
fn with_sign<T>(
    written: &Spanned<String>,
    what: &str,
    decoder: &mut Decoder,
    read: impl Fn(&str) -> Result<T, yaml::units::UnitError>,
) -> Option<(bool, T)> {
    let (minus, rest) = match written.value.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written.value.as_str()),
    };
    match read(rest) {
        Ok(value) => Some((minus, value)),
        Err(error) => {
            decoder.unit(&error, written.at, what);
            None
        }
    }
}

/// `5s` or `-5s`.
pub(super) fn jump(record: &Record<'_>, decoder: &mut Decoder) -> Option<Spanned<ClockDeviation>> {
    let written = record.get("by").and_then(|node| decoder.text(node, "`by`"))?;
    let (minus, by) = with_sign(&written, "`by`", decoder, |text| duration(text, "s"))?;
    if by < LEAST_JUMP {
        let message = format!("a clock that jumps by {}", format_duration(by));
        decoder.findings.add("too-small", written.at, message, "too little to matter", "write 10ms or more");
    } else if by > MOST_JUMP {
        let message = "`by` is more than ten years";
        decoder.findings.add("too-large", written.at, message, "too far", "write 87600h or less");
    }
    let value = if minus { ClockDeviation::Behind(by) } else { ClockDeviation::Ahead(by) };
    Some(Spanned { value, at: written.at })
}

/// `200ppm` or `-200ppm`.
pub(super) fn drift(record: &Record<'_>, decoder: &mut Decoder) -> Option<Spanned<ClockDeviation>> {
    let written = record.get("rate").and_then(|node| decoder.text(node, "`rate`"))?;
    let number = written.value.strip_suffix("ppm").and_then(|number| number.trim().parse::<f64>().ok());
    let Some(parts) = number.filter(|parts| parts.is_finite()) else {
        let message = format!("`rate`: `{}` is no number of parts per million", written.value);
        decoder.findings.add("bad-unit", written.at, message, "this quantity", "write it as `200ppm`");
        return None;
    };
    if !(10.0..=10_000.0).contains(&parts.abs()) {
        let message = format!("a clock that drifts by {parts}ppm");
        let help = "write 10ppm to 10000ppm, faster or slower; `clock-race` goes beyond";
        decoder.findings.add("out-of-range", written.at, message, "not a drift", help);
    }
    Some(Spanned { value: ClockDeviation::Drift(parts), at: written.at })
}

/// `50%` or `-20%`.
pub(super) fn race(record: &Record<'_>, decoder: &mut Decoder) -> Option<Spanned<ClockDeviation>> {
    let written = record.get("by").and_then(|node| decoder.text(node, "`by`"))?;
    let (minus, share) = with_sign(&written, "`by`", decoder, percent)?;
    let most = if minus { 0.99 } else { 10.0 };
    if !(0.01..=most).contains(&share) {
        let message = format!("a clock that races by {}", written.value);
        let help = "write 1% to 1000%, or -1% to -99% for a slow one; use `clock-drift` for less and `clock-stop` to stop it";
        decoder.findings.add("out-of-range", written.at, message, "not a race", help);
    }
    let value = ClockDeviation::Race(if minus { -share } else { share });
    Some(Spanned { value, at: written.at })
}

impl Written for Document {
    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let node = match self.node.value.as_str() {
            ALL => ClockTarget::All,
            _ => ClockTarget::Node(around.node(&self.node, findings)?),
        };
        Some((self.make)(ClockFault { node, deviation: self.deviation.value }))
    }

    fn check_receipt(
        &self,
        _: &FaultAction,
        stands: Duration,
        _: (&Surroundings<'_>, OfAllFaults),
        findings: &mut Findings,
    ) {
        let offset_ns = self.deviation.value.offset_ns_after(stands).abs();
        if offset_ns < LEAST_SHOWN_NS {
            let message = format!(
                "in {} the clock drifts by {:.0} us, too little to measure",
                format_duration(stands),
                offset_ns / 1e3
            );
            let help = "make the fault longer or the rate higher: at least 100 us can be measured";
            findings.add("no-receipt", self.deviation.at, message, "too slow", help);
        }
    }
}
