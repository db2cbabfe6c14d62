//! VMs on their way to a host: who waits for a place, and the places given to those that are still booting.
//!
//! Owns that record. The choice is `placement`'s, carrying it out `starting`'s.

use std::collections::BTreeMap;

use placement::Left;

/// VMs on their way.
#[derive(Debug, Default)]
pub(crate) struct Placing {
    /// Those that are off and wait for a host, by what they have left behind.
    pub(crate) waiting: BTreeMap<usize, Left>,
    /// Those that boot on a host.
    pub(crate) booting: BTreeMap<usize, usize>,
}

/// Where a VM may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// On the best host, given what it has left behind.
    Anywhere(Left),
    /// On the host it ran on last.
    Home,
}
