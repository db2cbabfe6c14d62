//! Network faults whose receipt could not be had, as far as the scenario makes that certain.
//!
//! What the receipts of a run need is measured by `run`; the figures here are its own, on the safe side: what is refused has
//! no receipt, and what is not refused may still turn out to have none.

use std::time::Duration;

use super::{FaultTarget, NetworkFault};
use crate::rejection::{Findings, Spot};
use crate::resolved::{Conditions, Edge, Link, Place};
use crate::units::{format_duration, format_percent};

/// Where nothing takes so long, packets that take no delay are not told from the others.
const OVERTAKEN_MIN: Duration = Duration::from_millis(2);
/// Below this rate a datagram takes time to be sent.
const SENT_AT_ONCE_BITS_PER_S: u64 = 10_000_000;
/// Datagrams that are sent in a second at most on a machine that is busy,
const DATAGRAMS_PER_S: f64 = 2_500.0;
/// of so many bits at least,
const DATAGRAM_BITS: f64 = 480.0;
/// which take this share of what the fault's own rate carries,
pub const SHARE_OF_RATE: f64 = 0.05;
/// and in all.
const DATAGRAMS_MAX: f64 = 20_000.0;
/// With so many expected to meet a fate, next to none is no chance.
const EXPECTED_MIN: f64 = 10.0;

/// A share of packets as written.
pub(crate) struct Share {
    pub(crate) name: &'static str,
    pub(crate) at: Spot,
}

impl Share {
    fn of(&self, conditions: &Conditions) -> Option<f64> {
        match self.name {
            "loss" => conditions.loss,
            "duplicate" => conditions.duplicate,
            "reorder" => conditions.reorder,
            _ => conditions.corrupt,
        }
    }
}

/// What delays and limits packets, besides the fault itself.
#[derive(Clone, Copy)]
pub(crate) struct Network<'s> {
    pub(crate) links: &'s [Link],
    pub(crate) edges: &'s [Edge],
}

/// What all faults of the schedule do to packets that take time.
#[derive(Clone, Copy, Default)]
pub(crate) struct OfAllFaults {
    pub(crate) longest_delay: Duration,
    pub(crate) slowest_bits_per_s: Option<u64>,
}

impl OfAllFaults {
    /// Of faults of the network with these.
    pub(crate) fn of<'f>(conditions: impl Iterator<Item = &'f Conditions>) -> OfAllFaults {
        conditions.fold(OfAllFaults::default(), OfAllFaults::and)
    }

    fn and(self, conditions: &Conditions) -> OfAllFaults {
        let rates = [self.slowest_bits_per_s, conditions.rate_bits_per_s];
        OfAllFaults {
            longest_delay: self.longest_delay.max(conditions.delay.unwrap_or_default()),
            slowest_bits_per_s: rates.into_iter().flatten().min(),
        }
    }
}

/// Refuses shares of packets that nothing can show while the fault stands for so long.
pub(crate) fn check(
    shares: &[Share],
    NetworkFault { directions, conditions }: &NetworkFault,
    stands: Duration,
    (network, all): (Network<'_>, OfAllFaults),
    findings: &mut Findings,
) {
    for share in shares {
        if let Some(value) = share.of(conditions) {
            check_share(share, value, conditions, stands, findings);
        }
        if share.name == "reorder"
            && !directions.iter().any(|way| network.may_be_overtaken(way, conditions, all))
        {
            let help = match conditions.delay {
                Some(_) => "write a `delay` of 3ms or more, or remove `reorder`",
                None => {
                    "add `delay: 3ms`, give the link between these places that delay, or remove `reorder`"
                }
            };
            findings.add(
                "no-receipt",
                share.at,
                format!(
                    "no packet takes {} on this path, so overtaking packets cannot be distinguished",
                    format_duration(OVERTAKEN_MIN)
                ),
                "nothing to overtake",
                help,
            );
        }
    }
}

fn check_share(
    share: &Share,
    value: f64,
    conditions: &Conditions,
    stands: Duration,
    findings: &mut Findings,
) {
    let rare = value.min(1.0 - value);
    if rare <= 0.0 {
        return;
    }
    let of_rate = conditions.rate_bits_per_s.map(|rate| rate as f64 * SHARE_OF_RATE / DATAGRAM_BITS);
    let per_s = of_rate.unwrap_or(DATAGRAMS_PER_S).min(DATAGRAMS_PER_S);
    let needed = (EXPECTED_MIN / rare).ceil();
    let sent = (stands.as_secs_f64() * per_s).min(DATAGRAMS_MAX);
    if needed <= sent {
        return;
    }
    // Rounded up, so that what is written passes.
    let enough_ten_thousandths = (EXPECTED_MIN / sent * 1e4).ceil();
    let enough = enough_ten_thousandths / 1e4;
    let written = if value <= 0.5 {
        format!("write {} or more", format_percent(enough))
    } else {
        format!("write {} or less", format_percent((1e4 - enough_ten_thousandths) / 1e4))
    };
    let needs = Duration::from_secs((needed / per_s).ceil() as u64);
    let (message, help) = if needed > DATAGRAMS_MAX {
        (format!("{DATAGRAMS_MAX} datagrams, the most that are sent, are too few"), written)
    } else {
        let longer = format!("make the fault last {} or longer", format_duration(needs));
        let help = if enough < 0.5 { format!("{longer}, or {written}") } else { longer };
        let stands = format_duration(stands);
        (format!("{sent:.0} datagrams, all that can be sent in {stands}, are too few"), help)
    };
    let told = format!("{message} to show `{}: {}`", share.name, format_percent(value));
    let label = if value <= 0.5 { "too rare for evidence" } else { "the rest is too rare for evidence" };
    findings.add("no-receipt", share.at, told, label, help);
}

impl Network<'_> {
    /// Whether any packet from one end to the other may take long enough.
    fn may_be_overtaken(
        &self,
        (from, to): &(FaultTarget, FaultTarget),
        conditions: &Conditions,
        all: OfAllFaults,
    ) -> bool {
        let meets = |target: &FaultTarget, place: &Place| match target {
            FaultTarget::Place(end) => end.overlaps(place),
            _ => true,
        };
        let on_way = |link: &&Link| meets(from, &link.from) && meets(to, &link.to);
        let of_links = || self.links.iter().filter(on_way).filter_map(|link| link.conditions.delay).max();
        let own = conditions.delay.or_else(of_links).unwrap_or_default();
        let rates = self.links.iter().filter_map(|link| link.conditions.rate_bits_per_s);
        let rates =
            rates.chain(self.edges.iter().map(|edge| edge.rate_bits_per_s)).chain(all.slowest_bits_per_s);
        own.max(all.longest_delay) >= OVERTAKEN_MIN
            || rates.min().is_some_and(|rate| rate < SENT_AT_ONCE_BITS_PER_S)
    }
}
