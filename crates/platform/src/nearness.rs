//! How far apart places of the site are, for the platform's choice among equals.
//!
//! Owns the site's delays without any fault: what a fault does to a way is no reason to prefer another node.

use std::time::Duration;

use paper::RequestedNetwork;
use paper::network::{LinkRates, policy};

/// The site's delays.
pub struct Nearness(RequestedNetwork);

impl Nearness {
    /// Of a site.
    pub(crate) fn of(site: &scenario::Site) -> Nearness {
        Nearness(RequestedNetwork::new(policy(site, LinkRates::Unlimited), []))
    }

    /// The delays of the way there and back.
    pub(crate) fn round_trip(&self, from: &[String], to: &[String]) -> Duration {
        let one_way = |from, to| Duration::from_nanos(self.0.treatment(from, to).delay_ns);
        one_way(from, to) + one_way(to, from)
    }
}
