//! What is asked of the network between two places at a moment: the site's links, and the faults that stand over them.
//!
//! On paper only, by the fabric's own rules of precedence; what the network really does is measured elsewhere.

use std::time::Duration;

use fabric::overlay::{Crossing, Overlay, Treatment};
use fabric::{Policy, QueueLimit, Rule};

/// The network as asked for.
#[derive(Default)]
pub struct RequestedNetwork {
    overlay: Overlay,
}

/// The narrowest link of a way, and what else limits the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Narrowest {
    /// What it carries.
    pub rate_bits_per_s: u64,
    /// How much waits before it.
    pub room: QueueLimit,
    /// The slowest of the links that limit the way before it: packets come no faster than that.
    pub before_bits_per_s: Option<u64>,
    /// How long all other links that limit the way take to send one bit; nothing where there are none.
    pub others_s_per_bit: f64,
}

impl Narrowest {
    /// The only link that limits a way.
    #[must_use]
    pub fn alone(rate_bits_per_s: u64, room: QueueLimit) -> Narrowest {
        Narrowest { rate_bits_per_s, room, before_bits_per_s: None, others_s_per_bit: 0.0 }
    }

    /// Whether other links limit the way as well.
    #[must_use]
    pub fn is_in_series(&self) -> bool {
        self.others_s_per_bit > 0.0
    }
}

impl RequestedNetwork {
    /// The site's links with these faults over them, the later ones over the earlier.
    #[must_use]
    pub fn new(policy: Policy, faults: impl IntoIterator<Item = Rule>) -> RequestedNetwork {
        let mut overlay = Overlay::default();
        overlay.set_policy(policy);
        overlay.impose(faults.into_iter().collect());
        RequestedNetwork { overlay }
    }

    /// All that happens to packets from one place to another.
    #[must_use]
    pub fn treatment(&self, from: &[String], to: &[String]) -> Treatment {
        self.overlay.treatment(from, to)
    }

    /// How long the rates of a way take to send a packet of so many bytes.
    #[must_use]
    pub fn sending(&self, from: &[String], to: &[String], bytes: usize) -> Duration {
        let crossings = self.treatment(from, to).crossings;
        let rates = crossings.iter().filter_map(|crossing| {
            self.overlay.links.look_at(crossing.link).and_then(fabric::link::Link::rate_bits_per_s)
        });
        Duration::from_secs_f64(rates.map(|rate| bytes as f64 * 8.0 / rate as f64).sum())
    }

    /// The link that limits what goes from one place to another; `None` where nothing does. Of equally slow ones it is the
    /// first: what has left it never waits for the others.
    #[must_use]
    pub fn narrowest(&self, from: &[String], to: &[String]) -> Option<Narrowest> {
        let limits = self.limits(from, to);
        let (place, (_, link)) =
            limits.iter().enumerate().min_by_key(|(_, (_, link))| link.rate_bits_per_s)?;
        let others = limits.iter().enumerate().filter(|(other, _)| *other != place);
        Some(Narrowest {
            before_bits_per_s: limits[..place].iter().map(|(_, before)| before.rate_bits_per_s).min(),
            others_s_per_bit: others.map(|(_, (_, other))| 1.0 / other.rate_bits_per_s as f64).sum(),
            ..*link
        })
    }

    /// The number of that link.
    #[must_use]
    pub fn narrowest_link(&self, from: &[String], to: &[String]) -> Option<usize> {
        let limits = self.limits(from, to);
        limits.iter().min_by_key(|(_, link)| link.rate_bits_per_s).map(|(number, _)| *number)
    }

    /// How long packets from one place to another are delayed behind the link with this number, if they cross it.
    #[must_use]
    pub fn delay_behind(&self, link: usize, from: &[String], to: &[String]) -> Option<Duration> {
        let treatment = self.treatment(from, to);
        let crosses = treatment.crossings.iter().any(|crossing| crossing.link == link);
        crosses.then(|| Duration::from_nanos(treatment.delay_ns))
    }

    /// The links that limit a way, by number, in the order in which packets cross them.
    fn limits(&self, from: &[String], to: &[String]) -> Vec<(usize, Narrowest)> {
        let limiting = |crossing: &Crossing| {
            let link = self.overlay.links.look_at(crossing.link)?;
            let room = link.room(crossing.queue_limit)?;
            Some((crossing.link, Narrowest::alone(link.rate_bits_per_s()?, room)))
        };
        self.treatment(from, to).crossings.iter().filter_map(limiting).collect()
    }
}
