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
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const ONE: PortId = PortId(1);
    const TWO: PortId = PortId(2);
    const THREE: PortId = PortId(3);

    fn address(port: PortId) -> IpAddr {
        IpAddr::from([10, 0, 0, port.0 as u8])
    }

    fn pair(from: PortId, to: PortId) -> Pair {
        Pair { from, to: address(to) }
    }

    /// Routes as a place's kernel would keep them, and what it refuses.
    #[derive(Debug, Clone, Default)]
    struct Routes(Arc<Mutex<Kept>>);

    #[derive(Debug, Default)]
    struct Kept {
        past: BTreeSet<IpAddr>,
        refuses_open: bool,
        refuses_close: bool,
        refuses_shut: bool,
        is_shut: bool,
    }

    impl Routes {
        fn past(&self) -> Vec<IpAddr> {
            self.0.lock().expect("no panic").past.iter().copied().collect()
        }

        fn is_shut(&self) -> bool {
            self.0.lock().expect("no panic").is_shut
        }
    }

    fn answer(refuses: bool) -> io::Result<()> {
        if refuses { Err(io::Error::other("refused")) } else { Ok(()) }
    }

    impl Bypass for Routes {
        fn open(&mut self, to: &[IpAddr]) -> io::Result<()> {
            let mut kept = self.0.lock().expect("no panic");
            answer(kept.refuses_open)?;
            kept.past.extend(to);
            Ok(())
        }

        fn close(&mut self, to: &[IpAddr]) -> io::Result<()> {
            let mut kept = self.0.lock().expect("no panic");
            answer(kept.refuses_close)?;
            kept.past.retain(|address| !to.contains(address));
            Ok(())
        }

        fn shut(&mut self) -> io::Result<()> {
            let mut kept = self.0.lock().expect("no panic");
            answer(kept.refuses_shut)?;
            kept.past.clear();
            kept.is_shut = true;
            Ok(())
        }
    }

    /// Three places, each with a way past; all pairs of those that are able are free.
    fn three() -> (Bypasses, [Routes; 3]) {
        let mut bypasses = Bypasses::default();
        let routes = [ONE, TWO, THREE].map(|port| {
            let routes = Routes::default();
            bypasses.add(port, vec![address(port)], Box::new(routes.clone()));
            routes
        });
        (bypasses, routes)
    }

    fn all_of(able: &BTreeSet<PortId>) -> BTreeSet<Pair> {
        let from_it = |from: &PortId| {
            let from = *from;
            able.iter().filter(move |to| **to != from).map(move |to| pair(from, *to)).collect::<Vec<_>>()
        };
        able.iter().flat_map(from_it).collect()
    }

    #[test]
    fn only_what_changes_is_told() {
        let now = BTreeSet::from([pair(ONE, TWO), pair(ONE, THREE), pair(TWO, ONE)]);
        let wanted = BTreeSet::from([pair(ONE, TWO), pair(TWO, THREE), pair(TWO, ONE)]);
        let change = Change::between(&now, &wanted);
        assert_eq!(change.close, BTreeMap::from([(ONE, vec![address(THREE)])]));
        assert_eq!(change.open, BTreeMap::from([(TWO, vec![address(THREE)])]));
        assert_eq!(Change::between(&now, &now), Change::default());
    }

    #[test]
    fn a_pair_goes_through_the_fabric_for_as_long_as_something_is_asked_of_it() {
        let (mut bypasses, routes) = three();
        bypasses.settle(all_of).expect("told");
        assert_eq!(routes[0].past(), [address(TWO), address(THREE)]);
        let without = |able: &BTreeSet<PortId>| {
            let mut pairs = all_of(able);
            pairs.remove(&pair(ONE, TWO));
            pairs
        };
        bypasses.settle(without).expect("told");
        assert_eq!(routes[0].past(), [address(THREE)]);
        assert_eq!(routes[1].past(), [address(ONE), address(THREE)], "the way back is another pair");
        bypasses.settle(all_of).expect("told");
        let ways = bypasses.ways(|port| Some(vec![port.0.to_string()]));
        assert_eq!((ways.past.len(), ways.through.len()), (6, 0));
        assert_eq!((ways.moved_to_fabric, ways.moved_to_kernel, ways.places_lost), (1, 7, 0));
    }

    #[test]
    fn a_place_that_cannot_be_told_is_shut_and_nobody_sends_past_the_fabric_to_it() {
        for by_open in [true, false] {
            let (mut bypasses, routes) = three();
            bypasses.settle(all_of).expect("told");
            let mut kept = routes[1].0.lock().expect("no panic");
            (kept.refuses_open, kept.refuses_close) = (by_open, !by_open);
            drop(kept);
            bypasses.settle(|_| BTreeSet::new()).expect("told or shut");
            bypasses.settle(all_of).expect("told or shut");
            assert!(routes[1].is_shut(), "refuses to open: {by_open}");
            assert_eq!(routes[0].past(), [address(THREE)], "refuses to open: {by_open}");
            assert_eq!(bypasses.ways(|_| Some(Path::new())).places_lost, 1);
        }
    }

    #[test]
    fn what_can_neither_be_told_nor_be_shut_is_an_error() {
        let (mut bypasses, routes) = three();
        bypasses.settle(all_of).expect("told");
        let mut kept = routes[1].0.lock().expect("no panic");
        (kept.refuses_close, kept.refuses_shut) = (true, true);
        drop(kept);
        assert!(bypasses.settle(|_| BTreeSet::new()).is_err());
        assert!(routes[0].past().is_empty() && routes[2].past().is_empty(), "the others do as they are told");
        // Nor is it forgotten with its port.
        bypasses.forget(TWO);
        for _ in 0..2 {
            assert!(bypasses.settle(|_| BTreeSet::new()).is_err(), "its routes are still there");
        }
        assert_eq!(routes[1].past(), [address(ONE), address(THREE)]);
        let ways = bypasses.ways(|_| Some(Path::new()));
        assert_eq!((ways.places_lost, ways.places_unshut), (1, 1));
        routes[1].0.lock().expect("no panic").refuses_shut = false;
        bypasses.settle(|_| BTreeSet::new()).expect("shut at last");
        assert!(routes[1].is_shut() && routes[1].past().is_empty());
        assert_eq!(bypasses.ways(|_| Some(Path::new())).places_unshut, 1, "it happened all the same");
    }

    #[test]
    fn the_last_place_is_shut_again_although_no_other_is_left() {
        let mut bypasses = Bypasses::default();
        let routes = Routes::default();
        bypasses.add(ONE, vec![address(ONE)], Box::new(routes.clone()));
        let mut kept = routes.0.lock().expect("no panic");
        (kept.refuses_open, kept.refuses_shut) = (true, true);
        drop(kept);
        assert!(bypasses.settle(|_| BTreeSet::from([pair(ONE, TWO)])).is_err());
        assert!(bypasses.settle(all_of).is_err() && !bypasses.is_empty());
        routes.0.lock().expect("no panic").refuses_shut = false;
        bypasses.settle(all_of).expect("shut at last");
        assert!(routes.is_shut() && bypasses.is_empty());
    }

    #[test]
    fn a_port_that_is_gone_is_in_no_pair() {
        let (mut bypasses, routes) = three();
        bypasses.settle(all_of).expect("told");
        let without_two =
            |able: &BTreeSet<PortId>| all_of(&able.iter().copied().filter(|port| *port != TWO).collect());
        bypasses.settle(without_two).expect("told");
        bypasses.forget(TWO);
        assert_eq!(routes[0].past(), [address(THREE)]);
        assert!(routes[1].past().is_empty(), "what it still says goes where nobody listens");
        assert_eq!(bypasses.ways(|port| Some(vec![port.0.to_string()])).past.len(), 2);
    }
}
