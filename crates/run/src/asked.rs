//! What is asked of the network between two places at a moment: the site's links, and the faults that stand over them.
//!
//! On paper only, by the fabric's own rules of precedence; what the network really does is measured elsewhere.

use std::time::Duration;

use fabric::overlay::Overlay;
use fabric::{Policy, Rule};

/// The network as asked for.
#[derive(Default)]
pub struct Asked {
    overlay: Overlay,
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

    /// How long a packet takes from one place to another.
    #[must_use]
    pub fn one_way(&self, from: &[String], to: &[String]) -> Duration {
        Duration::from_nanos(self.overlay.treatment(from, to).delay_ns)
    }
}
