//! What is asked of the network between two places at a moment: the site's links, and the faults that stand over them.
//!
//! On paper only, by the fabric's own rules of precedence; what the network really does is measured elsewhere.

use std::time::Duration;

use fabric::overlay::{Overlay, Treatment};
use fabric::{Policy, QueueLimit, Rule};

/// The network as asked for.
#[derive(Default)]
pub struct Asked {
    overlay: Overlay,
}

/// The narrowest link of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Narrowest {
    /// What it carries.
    pub rate_bits_per_s: u64,
    /// How much waits before it.
    pub room: QueueLimit,
}

impl Asked {
    /// The site's links with these faults over them, the later ones over the earlier.
    #[must_use]
    pub fn new(policy: Policy, faults: impl IntoIterator<Item = Rule>) -> Asked {
        let mut overlay = Overlay::default();
        overlay.set_policy(policy);
        overlay.impose(faults.into_iter().collect());
        Asked { overlay }
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

    /// The link that limits what goes from one place to another; `None` where nothing does.
    #[must_use]
    pub fn narrowest(&self, from: &[String], to: &[String]) -> Option<Narrowest> {
        let crossings = self.treatment(from, to).crossings;
        let rated = crossings.iter().filter_map(|crossing| {
            let link = self.overlay.links.look_at(crossing.link)?;
            let room = link.room(crossing.queue_limit)?;
            Some(Narrowest { rate_bits_per_s: link.rate_bits_per_s()?, room })
        });
        rated.min_by_key(|link| link.rate_bits_per_s)
    }
}
