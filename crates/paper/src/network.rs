//! The site's links and a fault's conditions as the fabric's rules, and in words.
//!
//! Owns the conversion; which rule takes precedence is the fabric's.

use fabric::{Path, Policy, Probability, QueueLimit, Rule, SharedLink, Span};
use scenario::Conditions;

/// Whether links are held to their rates. They are not while the database is set up: copying it to its standbys over a thin
/// link would take minutes and show nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRates {
    /// As the scenario has them.
    AsWritten,
    /// No link has one.
    Unlimited,
}

/// The site's links as rules.
#[must_use]
pub fn policy(site: &scenario::Site, rates: LinkRates) -> Policy {
    let with_rates = rates == LinkRates::AsWritten;
    let name = |link: &scenario::Link| format!("{} -> {}", link.from, link.to);
    let rule = |link: &scenario::Link| {
        let mut rule = conditions_rule(&link.from.path, &link.to.path, &link.conditions);
        rule.name = Some(name(link));
        rule.rate_bits_per_s = rule.rate_bits_per_s.filter(|_| with_rates);
        rule
    };
    // A link without a rate has nothing to wait for, but what it carries is counted as well.
    let counted = site.links.iter().filter(|link| link.conditions.rate_bits_per_s.is_none() || !with_rates);
    let counted = counted.map(|link| SharedLink {
        name: name(link),
        span: Span::Between { from: link.from.path.clone(), to: link.to.path.clone() },
        rate_bits_per_s: None,
        queue_limit: None,
        is_network_card: false,
    });
    let edges = site.edges.iter().flat_map(|edge| {
        let way = |way: &str, span| SharedLink {
            name: format!("{} {way}", edge.name),
            span,
            rate_bits_per_s: with_rates.then_some(edge.rate_bits_per_s),
            queue_limit: edge.queue.map(queue_limit),
            is_network_card: site.hosts.iter().any(|host| host.path() == edge.around.path),
        };
        [way("out", Span::OutOf(edge.around.path.clone())), way("in", Span::Into(edge.around.path.clone()))]
    });
    Policy { rules: site.links.iter().map(rule).collect(), links: edges.chain(counted).collect() }
}

/// Rules for conditions in one direction.
#[must_use]
pub fn conditions_rule(from: &Path, to: &Path, conditions: &Conditions) -> Rule {
    let probability = |ratio: Option<f64>| ratio.and_then(Probability::new);
    Rule {
        from: from.clone(),
        to: to.clone(),
        delay: conditions.delay,
        jitter: conditions.jitter.map(jitter),
        loss: probability(conditions.loss),
        duplicate: probability(conditions.duplicate),
        reorder: probability(conditions.reorder),
        corrupt: probability(conditions.corrupt),
        rate_bits_per_s: conditions.rate_bits_per_s,
        queue_limit: conditions.queue.map(queue_limit),
        mtu_bytes: conditions.mtu_bytes,
        ..Rule::default()
    }
}

/// How much waits for a rate.
#[must_use]
pub fn queue_limit(queue: scenario::Queue) -> QueueLimit {
    match queue {
        scenario::Queue::Bytes(bytes) => QueueLimit::Bytes(bytes),
        scenario::Queue::Packets(packets) => QueueLimit::Packets(packets),
    }
}

fn jitter(jitter: scenario::Jitter) -> fabric::Jitter {
    let distribution = match jitter.distribution {
        scenario::Distribution::Uniform => fabric::Distribution::Uniform,
        scenario::Distribution::Normal => fabric::Distribution::Normal,
        scenario::Distribution::Exponential => fabric::Distribution::Exponential,
        scenario::Distribution::Pareto => fabric::Distribution::Pareto,
    };
    fabric::Jitter { spread: jitter.spread, distribution }
}

/// Conditions as a person would say them: `delay 50 ms, rate 2 Mbit/s`.
#[must_use]
pub fn conditions_in_words(conditions: &Conditions) -> String {
    let mut words = Vec::new();
    if let Some(delay) = conditions.delay {
        words.push(format!("delay {} ms", delay.as_secs_f64() * 1e3));
    }
    if let Some(jitter) = conditions.jitter {
        words.push(format!("jitter {} ms", jitter.spread.as_secs_f64() * 1e3));
    }
    let ratios = [
        ("loss", conditions.loss),
        ("duplicates", conditions.duplicate),
        ("reordering", conditions.reorder),
        ("corruption", conditions.corrupt),
    ];
    for (name, ratio) in ratios {
        words.extend(ratio.map(|ratio| format!("{name} {} %", ratio * 100.0)));
    }
    let rate = conditions.rate_bits_per_s.map(scenario::units::approximate_bit_rate);
    words.extend(rate.map(|rate| format!("rate {rate}")));
    words.extend(conditions.queue.map(|queue| match queue {
        scenario::Queue::Bytes(bytes) => format!("queue {} KiB", bytes as f64 / 1024.0),
        scenario::Queue::Packets(packets) => format!("queue {packets} packets"),
    }));
    words.extend(conditions.mtu_bytes.map(|bytes| format!("MTU {bytes} bytes")));
    words.join(", ")
}
