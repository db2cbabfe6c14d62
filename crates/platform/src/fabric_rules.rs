//! Rules as the fabric is given them: as they are, but for a lie that a test has planted.

use fabric::{Block, Policy, Probability, QueueLimit, Rule};
use faults::{Lie, Planted};
use paper::network::{LinkRates, policy};
use scenario::Site;

/// Rules as the fabric is given them: as they are, but for a lie that a test has planted.
#[must_use]
pub fn for_fabric(mut rules: Vec<Rule>, planted: &Planted) -> Vec<Rule> {
    for rule in &mut rules {
        if planted.contains(&Lie::DelayShort) {
            rule.delay = rule.delay.map(|delay| delay.mul_f64(0.9));
        }
        if planted.contains(&Lie::RateDouble) {
            rule.rate_bits_per_s = rule.rate_bits_per_s.map(|rate| rate * 2);
        }
        if planted.contains(&Lie::RateHalf) {
            rule.rate_bits_per_s = rule.rate_bits_per_s.map(|rate| rate / 2);
        }
        let half = |share: Option<Probability>, lie: Lie| match planted.contains(&lie) {
            true => share.and_then(|share| Probability::new(share.value() / 2.0)),
            false => share,
        };
        rule.loss = half(rule.loss, Lie::LossHalf);
        rule.duplicate = half(rule.duplicate, Lie::DuplicatesHalf);
        rule.corrupt = half(rule.corrupt, Lie::CorruptionHalf);
        rule.reorder = half(rule.reorder, Lie::ReorderHalf);
        if let (Some(jitter), true) = (&mut rule.jitter, planted.contains(&Lie::JitterHalf)) {
            jitter.spread /= 2;
        }
        if planted.contains(&Lie::QueueDouble) {
            rule.queue_limit = rule.queue_limit.map(twice);
        }
        if planted.contains(&Lie::LargePackets) {
            rule.mtu_bytes = None;
        }
        if let Some(block) = rule.block.take_if(|_| planted.contains(&Lie::LeakPackets)) {
            rule.loss = Probability::new(if block == Block::Open { 0.0 } else { 0.98 });
        }
    }
    rules
}

fn twice(limit: QueueLimit) -> QueueLimit {
    match limit {
        QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes * 2),
        QueueLimit::Packets(packets) => QueueLimit::Packets(packets * 2),
    }
}

/// The site's links as the fabric is given them.
pub(crate) fn policy_for_fabric(site: &Site, rates: LinkRates, planted: &Planted) -> Policy {
    let Policy { rules, links } = policy(site, rates);
    Policy { rules: for_fabric(rules, planted), links }
}
