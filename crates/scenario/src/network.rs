//! What links, network faults and partitions have in common: two ends, and what happens to packets between them.
//!
//! Owns reading these and which conditions make sense together; what the ends mean is looked up elsewhere.

use std::time::Duration;

use crate::decode::{Decoder, Record};
use crate::language::JITTER;
use crate::rejection::{Spanned, Spot};
use crate::resolved::{Conditions, Distribution, Jitter, Queue};
use crate::tree::{Node, Value};
use crate::units::{format_bit_rate, format_duration, format_percent, format_size};

/// Longest delay, and most that is added to one.
const MOST_DELAY: Duration = Duration::from_secs(10);
/// Least and most that a link with a rate carries, in bits a second.
const LEAST_RATE: u64 = 1_000;
const MOST_RATE: u64 = 1_000_000_000_000;
/// The receipt of a fault fills its queue; the database waits meanwhile, so long at most,
const FILLED_MAX: Duration = Duration::from_millis(500);
/// with so many datagrams of this size.
const FILLED_MAX_PACKETS: u64 = 4_000;
const FILLING_BYTES: u64 = 1_260;
/// A smaller queue has no room for a full packet.
const LEAST_QUEUE: u64 = 1_500;
const MOST_QUEUE: u64 = 1 << 30;
const MOST_QUEUE_PACKETS: u64 = 1_000_000;
/// What IPv6 needs of every link (RFC 8200, section 5), and what the lab's interfaces have.
const LEAST_MTU: u32 = 1_280;
const MOST_MTU: u32 = 1_500;

/// Two ends as written.
pub(crate) struct EndsDocument {
    /// From, to.
    pub(crate) ends: [Spanned<String>; 2],
    /// Whether the way back is meant too.
    pub(crate) both_ways: bool,
}

/// What the conditions belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// A link, which says all there is.
    Link,
    /// A fault, under which links go on as they are.
    Fault,
}

/// Reads `between`, or `from` and `to`.
pub(crate) fn decode_ends(record: &Record<'_>, decoder: &mut Decoder) -> Option<EndsDocument> {
    let between =
        record.get("between").and_then(|node| decoder.list(node, "`between`", 2).map(|items| (node, items)));
    let ends = match between {
        Some((_, [one, other])) => [decoder.text(one, "a place"), decoder.text(other, "a place")],
        Some((node, items)) => {
            decoder.findings.add(
                "too-large",
                node.at,
                format!("`between` names {} places; it takes two", items.len()),
                "too many",
                "write one entry for each pair",
            );
            [None, None]
        }
        None => ["from", "to"].map(|end| record.get(end).and_then(|node| decoder.text(node, "a place"))),
    };
    let [one, other] = ends;
    Some(EndsDocument { ends: [one?, other?], both_ways: record.get("between").is_some() })
}

/// Reads what happens between two ends.
pub(crate) fn decode_conditions(record: &Record<'_>, of: Of, decoder: &mut Decoder) -> Conditions {
    let delay = record.get("delay").and_then(|node| decode_delay(node, decoder));
    let jitter = record.get("jitter").and_then(|node| decode_jitter(node, decoder));
    let mut share = |name| record.get(name).and_then(|node| decode_share(name, node, decoder));
    let [loss, duplicate, reorder, corrupt] = ["loss", "duplicate", "reorder", "corrupt"].map(&mut share);
    let rate_bits_per_s = record.get("rate").and_then(|node| decode_rate(node, decoder));
    let queue = record.get("queue").and_then(|node| decode_queue(node, decoder));
    let mtu_bytes = record.get("mtu").and_then(|node| decode_mtu(node, decoder));
    let needs = [
        ("jitter", "delay", "there is no delay to vary", true),
        ("reorder", "delay", "without a delay no packet can be overtaken", of == Of::Link),
        ("queue", "rate", "without a rate no packet waits in a queue", of == Of::Link),
    ];
    for (name, needed, why, applies) in needs {
        if let (true, Some(at), None) = (applies, record.key_at(name), record.get(needed)) {
            decoder.findings.add(
                "missing-key",
                at,
                format!("`{name}` needs `{needed}`: {why}"),
                format!("without `{needed}`"),
                format!("add `{needed}`, or remove `{name}`"),
            );
        }
    }
    if let (Of::Fault, Some(rate), Some(queue), Some(at)) =
        (of, rate_bits_per_s, queue, record.key_at("queue"))
    {
        check_filling(rate, queue, at, decoder);
    }
    if let (Of::Fault, Some(at)) = (of, record.key_at("loss").filter(|_| loss == Some(1.0))) {
        check_nothing_hidden(record, at, decoder);
    }
    if let (Some(delay), Some(jitter)) = (delay, &jitter) {
        check_jitter(delay, jitter, decoder);
    }
    let jitter = jitter.map(|jitter| jitter.value);
    Conditions { delay, jitter, loss, duplicate, reorder, corrupt, rate_bits_per_s, queue, mtu_bytes }
}

/// A queue that is never seen full has no receipt.
fn check_filling(rate_bits_per_s: u64, queue: Queue, at: Spot, decoder: &mut Decoder) {
    let packets = match queue {
        Queue::Bytes(bytes) => bytes / FILLING_BYTES,
        Queue::Packets(packets) => packets,
    };
    let takes =
        Duration::from_secs_f64(packets as f64 * (FILLING_BYTES * 8) as f64 / rate_bits_per_s.max(1) as f64);
    let is_refused_already = packets > MOST_QUEUE / FILLING_BYTES;
    if is_refused_already || takes <= FILLED_MAX && packets <= FILLED_MAX_PACKETS {
        return;
    }
    let most = (rate_bits_per_s as f64 * FILLED_MAX.as_secs_f64()) as u64 / (FILLING_BYTES * 8);
    let smaller = match most.min(FILLED_MAX_PACKETS) {
        0 => "raise the rate".to_owned(),
        most => format!("write `{most} packets` or fewer"),
    };
    decoder.findings.add(
        "no-receipt",
        at,
        format!(
            "the evidence for a queue is to fill it, and this one takes {packets} packets and {:.1} s, in which the \
             database waits",
            takes.as_secs_f64()
        ),
        "too long to fill",
        format!("{smaller}, or give the queue to a link of the site, which needs no receipt"),
    );
}

/// Where nothing arrives, nothing else is seen.
fn check_nothing_hidden(record: &Record<'_>, at: Spot, decoder: &mut Decoder) {
    let others = ["delay", "jitter", "duplicate", "reorder", "corrupt", "rate", "queue", "mtu"];
    if let Some(hidden) = others.into_iter().find(|name| record.get(name).is_some()) {
        decoder.findings.add(
            "no-receipt",
            at,
            format!("with a loss of 100% no packet arrives, so there is no evidence for `{hidden}`"),
            "hides all else",
            format!("remove `{hidden}`, or write a smaller loss"),
        );
    }
}

fn decode_delay(node: &Node, decoder: &mut Decoder) -> Option<Duration> {
    let delay = decoder.duration(node, "the delay", "ms")?;
    if delay.value > MOST_DELAY {
        decoder.findings.add(
            "too-large",
            delay.at,
            "a delay of more than 10s is not supported",
            "too long",
            "write 10s or less; to cut two places off from each other is a fault, not a delay",
        );
    }
    Some(delay.value)
}

fn decode_jitter(node: &Node, decoder: &mut Decoder) -> Option<Spanned<Jitter>> {
    let (distribution, node) = match node.value {
        Value::Map(_) => {
            let record = decoder.record(node, &JITTER)?;
            let (name, entry) = record.first_of(JITTER.exactly_one_of)?;
            let distribution = match name {
                "normal" => Distribution::Normal,
                "exponential" => Distribution::Exponential,
                "pareto" => Distribution::Pareto,
                _ => Distribution::Uniform,
            };
            (distribution, &entry.value)
        }
        _ => (Distribution::Uniform, node),
    };
    let spread = decoder.duration(node, "the jitter", "ms")?;
    if spread.value > MOST_DELAY {
        too_much_jitter(spread.at, "a jitter of more than 10s".to_owned(), MOST_DELAY, decoder);
    }
    Some(Spanned { value: Jitter { spread: spread.value, distribution }, at: spread.at })
}

/// A packet cannot arrive before it was sent. What is only ever added to the delay may be of any size.
fn check_jitter(delay: Duration, jitter: &Spanned<Jitter>, decoder: &mut Decoder) {
    let Jitter { spread, distribution } = jitter.value;
    let below = match distribution {
        Distribution::Exponential => Duration::ZERO,
        // netem's table begins two thirds of the spread below the delay.
        Distribution::Pareto => spread * 2 / 3,
        Distribution::Uniform | Distribution::Normal => spread,
    };
    if below <= delay || spread > MOST_DELAY {
        return;
    }
    let (spread, of) = (format_duration(spread), format_duration(delay));
    let message =
        format!("a jitter of {spread} around a delay of {of}: packets would arrive before they are sent");
    too_much_jitter(jitter.at, message, delay, decoder);
}

fn too_much_jitter(at: Spot, message: String, most: Duration, decoder: &mut Decoder) {
    let help = format!("write {} or less", format_duration(most));
    decoder.findings.add("too-large", at, message, "too much", help);
}

fn decode_share(name: &str, node: &Node, decoder: &mut Decoder) -> Option<f64> {
    let share = decoder.percent(node, &format!("`{name}`"))?;
    if share.value > 1.0 {
        decoder.findings.add(
            "too-large",
            share.at,
            format!("`{name}` of {} is more than all packets", format_percent(share.value)),
            "more than all",
            "write 100% or less",
        );
    }
    Some(share.value)
}

/// Reads a rate.
pub(crate) fn decode_rate(node: &Node, decoder: &mut Decoder) -> Option<u64> {
    let rate = decoder.bit_rate(node, "the rate")?;
    if rate.value < LEAST_RATE {
        decoder.findings.add(
            "too-small",
            rate.at,
            format!("a rate of less than {} is too low", format_bit_rate(LEAST_RATE)),
            "too little",
            format!(
                "write {} or more; to cut two places off from each other is a fault, not a rate",
                format_bit_rate(LEAST_RATE)
            ),
        );
    }
    if rate.value > MOST_RATE {
        decoder.findings.add(
            "too-large",
            rate.at,
            format!("a rate of more than {} has no effect here", format_bit_rate(MOST_RATE)),
            "too much",
            "remove the rate: a link without one has no limit",
        );
    }
    Some(rate.value)
}

/// Reads a queue's limit: bytes or packets.
pub(crate) fn decode_queue(node: &Node, decoder: &mut Decoder) -> Option<Queue> {
    if let Value::Scalar { text, .. } = &node.value
        && let Some(number) = text.strip_suffix("packets")
    {
        return decode_packets(number.trim_end(), node.at, decoder).map(Queue::Packets);
    }
    let queue = decoder.size(node, "the queue", "KiB")?;
    if queue.value < LEAST_QUEUE {
        decoder.findings.add(
            "too-small",
            queue.at,
            format!("a queue of {} has no room for a full packet", format_size(queue.value)),
            "too small",
            format!("write {} or more", format_size(LEAST_QUEUE)),
        );
    }
    if queue.value > MOST_QUEUE {
        decoder.findings.add(
            "too-large",
            queue.at,
            format!("a queue of more than {} never fills here", format_size(MOST_QUEUE)),
            "too large",
            format!("write {} or less", format_size(MOST_QUEUE)),
        );
    }
    Some(Queue::Bytes(queue.value))
}

fn decode_packets(number: &str, at: Spot, decoder: &mut Decoder) -> Option<u64> {
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    match number.parse::<u64>() {
        Ok(packets) if is_number && (1..=MOST_QUEUE_PACKETS).contains(&packets) => Some(packets),
        _ => {
            decoder.findings.add(
                "bad-number",
                at,
                format!("a queue has room for 1 to {MOST_QUEUE_PACKETS} packets"),
                "not such a number",
                "write a whole number of packets, as in `100 packets`, or a size, as in `64KiB`",
            );
            None
        }
    }
}

fn decode_mtu(node: &Node, decoder: &mut Decoder) -> Option<u32> {
    let mtu = decoder.size(node, "the mtu", "B")?;
    match u32::try_from(mtu.value) {
        Ok(bytes) if (LEAST_MTU..=MOST_MTU).contains(&bytes) => Some(bytes),
        _ => {
            decoder.findings.add(
                if mtu.value < u64::from(LEAST_MTU) { "too-small" } else { "too-large" },
                mtu.at,
                format!("an mtu of {}", format_size(mtu.value)),
                "not possible here",
                format!(
                    "write {LEAST_MTU}B to {MOST_MTU}B: IPv6 needs {LEAST_MTU}, and no interface here sends more than {MOST_MTU}"
                ),
            );
            None
        }
    }
}

/// A queue's limit as it is written.
pub(crate) fn queue_written(queue: Queue) -> String {
    match queue {
        Queue::Bytes(bytes) => format_size(bytes),
        Queue::Packets(packets) => format!("{packets} packets"),
    }
}

/// Conditions as further keys of a map, each with a comma before it.
pub(crate) fn written(conditions: &Conditions) -> String {
    given(conditions).map(|(name, value)| format!(", {name}: {value}")).collect()
}

/// The conditions that are given, each by its key and as it is written.
pub(crate) fn given(conditions: &Conditions) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let Conditions { delay, jitter, loss, duplicate, reorder, corrupt, rate_bits_per_s, queue, mtu_bytes } =
        *conditions;
    let jitter_written = |jitter: Jitter| {
        let spread = format_duration(jitter.spread);
        match jitter.distribution {
            Distribution::Uniform => spread,
            Distribution::Normal => format!("{{ normal: {spread} }}"),
            Distribution::Exponential => format!("{{ exponential: {spread} }}"),
            Distribution::Pareto => format!("{{ pareto: {spread} }}"),
        }
    };
    let all = [
        ("delay", delay.map(format_duration)),
        ("jitter", jitter.map(jitter_written)),
        ("loss", loss.map(format_percent)),
        ("duplicate", duplicate.map(format_percent)),
        ("reorder", reorder.map(format_percent)),
        ("corrupt", corrupt.map(format_percent)),
        ("rate", rate_bits_per_s.map(format_bit_rate)),
        ("queue", queue.map(queue_written)),
        ("mtu", mtu_bytes.map(|bytes| format_size(u64::from(bytes)))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?)))
}
