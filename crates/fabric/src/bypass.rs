//! Ways past the fabric: the kernel's own path, for pairs of places of which nothing is asked.
//!
//! Owns which pairs go past and what has to be told when that changes. How a place's kernel is told is the business of
//! whoever hands in a [`Bypass`]; nothing else here does I/O. On doubt a pair goes through the fabric.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io;
use std::net::IpAddr;

use crate::policy::Path;
use crate::router::{Pair, PortId};

/// A place's own way past the fabric, closed to begin with. Only what the place sends is its business.
pub trait Bypass: Debug + Send {
    /// From now on what the place sends to these addresses goes past the fabric.
    ///
    /// # Errors
    /// When that is refused. Some of it may go past then.
    fn open(&mut self, to: &[IpAddr]) -> io::Result<()>;

    /// From now on what the place sends to these addresses goes through the fabric.
    ///
    /// # Errors
    /// When that is refused. Some of it may still go past then.
    fn close(&mut self, to: &[IpAddr]) -> io::Result<()>;

    /// From now on nothing goes past the fabric, for good; what comes to the place does not either.
    ///
    /// # Errors
    /// When that is refused.
    fn shut(&mut self) -> io::Result<()>;
}

/// Which way packets go, and how often that has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ways {
    /// Pairs of places, the sender first, whose packets go past the fabric now, all of them.
    pub past: Vec<(Path, Path)>,
    /// Pairs of places that have a way past the fabric and do not go there.
    pub through: Vec<(Path, Path)>,
    /// How often a pair has gone from the kernel's path to the fabric, each address by itself,
    pub moved_to_fabric: u64,
    /// and how often from the fabric to the kernel's path.
    pub moved_to_kernel: u64,
    /// How often a place's way past the fabric has failed: everything to it and from it goes through the fabric since.
    pub places_lost: u64,
    /// How often one that had failed could not be shut at once: something may have gone past the fabric that must not.
    pub places_unshut: u64,
    /// The longest that a change of ways took, during which nothing was carried, microseconds.
    pub longest_change_us: u64,
}

/// What has to be told, by sender, when other pairs go past the fabric than before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// What goes through it from now on.
    pub close: BTreeMap<PortId, Vec<IpAddr>>,
    /// What goes past it from now on.
    pub open: BTreeMap<PortId, Vec<IpAddr>>,
}

impl Change {
    /// From the pairs that go past the fabric now to those that may.
    #[must_use]
    pub fn between(now: &BTreeSet<Pair>, wanted: &BTreeSet<Pair>) -> Change {
        Change { close: by_sender(now.difference(wanted)), open: by_sender(wanted.difference(now)) }
    }
}

fn by_sender<'a>(pairs: impl Iterator<Item = &'a Pair>) -> BTreeMap<PortId, Vec<IpAddr>> {
    let mut by_sender: BTreeMap<PortId, Vec<IpAddr>> = BTreeMap::new();
    for pair in pairs {
        by_sender.entry(pair.from).or_default().push(pair.to);
    }
    by_sender
}

#[derive(Debug)]
struct Port {
    addresses: Vec<IpAddr>,
    bypass: Box<dyn Bypass>,
}

/// The bypasses of all ports that have one, and the pairs that go past the fabric now.
#[derive(Debug, Default)]
pub struct Bypasses {
    ports: BTreeMap<PortId, Port>,
    /// Ways that have failed and could not be shut: what goes there nobody decides. Tried again whenever something changes.
    unshut: BTreeMap<PortId, Box<dyn Bypass>>,
    open: BTreeSet<Pair>,
    moved_to_fabric: u64,
    moved_to_kernel: u64,
    places_lost: u64,
    places_unshut: u64,
}

impl Bypasses {
    /// A port has a way past the fabric.
    pub fn add(&mut self, port: PortId, addresses: Vec<IpAddr>, bypass: Box<dyn Bypass>) {
        self.ports.insert(port, Port { addresses, bypass });
    }

    /// Whether no place has a way past the fabric, and none is still to be shut.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.unshut.is_empty()
    }

    /// A port is gone, and its bypass with it. Pairs of it have been closed before; one that could not be shut is still to be.
    pub fn forget(&mut self, port: PortId) {
        self.ports.remove(&port);
        self.open.retain(|pair| pair.from != port);
    }

    /// Lets the pairs go past the fabric that may, of ports that can, and no others. A port that refuses is shut, and all of its
    /// pairs go through the fabric from then on.
    ///
    /// # Errors
    /// When a port can neither be told nor be shut, now or since before: pairs of it may go past the fabric that must not.
    pub fn settle(
        &mut self,
        mut unconditioned: impl FnMut(&BTreeSet<PortId>) -> BTreeSet<Pair>,
    ) -> io::Result<()> {
        let mut all_shut = self.shut_again();
        // Each turn loses a port or is the last.
        while !self.ports.is_empty() {
            let able = self.ports.keys().copied().collect();
            let refusing = self.tell(Change::between(&self.open, &unconditioned(&able)));
            if refusing.is_empty() {
                break;
            }
            for port in refusing {
                all_shut = all_shut.and(self.lose(port));
            }
        }
        all_shut
    }

    /// Tells every port what has changed; those that refuse. What is to be closed comes first.
    fn tell(&mut self, change: Change) -> Vec<PortId> {
        let mut refusing = Vec::new();
        for (from, to) in change.close {
            let closed = self.ports.get_mut(&from).is_some_and(|port| port.bypass.close(&to).is_ok());
            if !closed {
                refusing.push(from);
                continue;
            }
            self.moved_to_fabric += to.len() as u64;
            for to in to {
                self.open.remove(&Pair { from, to });
            }
        }
        if !refusing.is_empty() {
            // Without them other pairs are to be opened.
            return refusing;
        }
        for (from, to) in change.open {
            let opened = self.ports.get_mut(&from).is_some_and(|port| port.bypass.open(&to).is_ok());
            if !opened {
                refusing.push(from);
                continue;
            }
            self.moved_to_kernel += to.len() as u64;
            self.open.extend(to.into_iter().map(|to| Pair { from, to }));
        }
        refusing
    }

    /// Shuts a port that does not do as it is told.
    fn lose(&mut self, port: PortId) -> io::Result<()> {
        self.open.retain(|pair| pair.from != port);
        let Some(mut lost) = self.ports.remove(&port) else { return Ok(()) };
        self.places_lost += 1;
        let shut = lost.bypass.shut();
        if shut.is_err() {
            self.places_unshut += 1;
            self.unshut.insert(port, lost.bypass);
        }
        shut
    }

    /// Shuts what could not be shut before; the first error where that is still so.
    fn shut_again(&mut self) -> io::Result<()> {
        let mut all_shut = Ok(());
        self.unshut.retain(|_, bypass| {
            let shut = bypass.shut();
            let is_open = shut.is_err();
            if all_shut.is_ok() {
                all_shut = shut;
            }
            is_open
        });
        all_shut
    }

    /// Which way packets go. `place` says where a port is; who is gone is left out.
    #[must_use]
    pub fn ways(&self, place: impl Fn(PortId) -> Option<Path>) -> Ways {
        let mut ways = Ways {
            moved_to_fabric: self.moved_to_fabric,
            moved_to_kernel: self.moved_to_kernel,
            places_lost: self.places_lost,
            places_unshut: self.places_unshut,
            ..Ways::default()
        };
        for from in self.ports.keys().copied() {
            for (to, receiver) in self.ports.iter().filter(|(to, _)| **to != from) {
                let (Some(source), Some(destination)) = (place(from), place(*to)) else { continue };
                let goes_past = |to: &IpAddr| self.open.contains(&Pair { from, to: *to });
                let all_past = receiver.addresses.iter().all(goes_past);
                let pairs = if all_past { &mut ways.past } else { &mut ways.through };
                pairs.push((source, destination));
            }
        }
        ways.past.sort();
        ways.through.sort();
        ways
    }
}

#[cfg(test)]
mod tests;
