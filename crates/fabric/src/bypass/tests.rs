//! Which pairs go past the fabric, and what happens where a place's kernel refuses.

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
