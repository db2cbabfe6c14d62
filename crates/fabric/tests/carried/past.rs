//! Ways past the running fabric: what becomes of commands when a place's kernel keeps the routes that it was told to remove.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use fabric::{Block, Bypass, Fabric, FabricError, Policy, Rule, Tap};

use crate::{Place, crosses, interface};

/// The routes of a place, as its kernel keeps them.
#[derive(Debug, Clone, Default)]
struct Routes(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    past: BTreeSet<IpAddr>,
    /// Whether it refuses everything.
    is_stuck: bool,
}

impl Routes {
    fn past(&self) -> usize {
        self.0.lock().expect("no panic").past.len()
    }

    /// From now on it refuses everything.
    fn stick(&self) {
        self.0.lock().expect("no panic").is_stuck = true;
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<IpAddr>)) -> io::Result<()> {
        let mut kept = self.0.lock().expect("no panic");
        if kept.is_stuck {
            return Err(io::Error::other("refused"));
        }
        change(&mut kept.past);
        Ok(())
    }
}

impl Bypass for Routes {
    fn open(&mut self, to: &[IpAddr]) -> io::Result<()> {
        self.change(|past| past.extend(to))
    }

    fn close(&mut self, to: &[IpAddr]) -> io::Result<()> {
        self.change(|past| past.retain(|address| !to.contains(address)))
    }

    fn shut(&mut self) -> io::Result<()> {
        self.change(BTreeSet::clear)
    }
}

fn place_past(fabric: &Fabric, name: &str, last: u8) -> (Place, Routes) {
    let (inside, outside) = interface();
    let address = Ipv4Addr::new(10, 0, 0, last);
    let routes = Routes::default();
    let (path, way_past) = (vec![name.to_owned()], Box::new(routes.clone()));
    let port = fabric.attach_with_bypass(path, vec![address.into()], outside, way_past).expect("attached");
    (Place { port, inside, address }, routes)
}

fn blocked(from: &str) -> Rule {
    Rule { from: vec![from.to_owned()], block: Some(Block::BlackHole), ..Rule::default() }
}

fn places_unshut(fabric: &Fabric) -> u64 {
    fabric.ways().expect("ways").places_unshut
}

#[test]
fn a_fault_is_refused_for_as_long_as_something_may_go_past_it() {
    let fabric = Fabric::start().expect("a fabric");
    let [(_one, one), (_two, two)] = [("a", 1), ("b", 2)].map(|(name, last)| place_past(&fabric, name, last));
    assert_eq!((one.past(), two.past(), places_unshut(&fabric)), (1, 1, 0));
    one.stick();
    for _ in 0..2 {
        let refused = fabric.impose(blocked("a"));
        assert!(matches!(refused, Err(FabricError::Bypass(_))), "{refused:?}");
    }
    assert_eq!((one.past(), places_unshut(&fabric)), (1, 1));
}

#[test]
fn a_place_joins_although_another_can_neither_be_told_nor_shut() {
    let fabric = Fabric::start().expect("a fabric");
    let [(one, routes), (_two, _)] = [("a", 1), ("b", 2)].map(|(name, last)| place_past(&fabric, name, last));
    routes.stick();
    assert!(fabric.impose(blocked("a")).is_err());
    let (three, _) = place_past(&fabric, "c", 3);
    assert!(crosses(&fabric, &one, &three) && crosses(&fabric, &three, &one));
    assert_eq!(places_unshut(&fabric), 1, "it is told of all the same");
}

#[test]
fn a_fault_is_lifted_although_a_place_can_neither_be_told_nor_shut() {
    let fabric = Fabric::start().expect("a fabric");
    let [(one, routes), (two, _)] = [("a", 1), ("b", 2)].map(|(name, last)| place_past(&fabric, name, last));
    let guard = fabric.impose(blocked("a")).expect("imposed");
    assert!(routes.past() == 0 && !crosses(&fabric, &one, &two));
    routes.stick();
    guard.lift().expect("lifted");
    assert!(crosses(&fabric, &one, &two));
    assert_eq!(places_unshut(&fabric), 1);
}

#[test]
fn a_place_that_cannot_be_moved_stays_where_it_is() {
    let fabric = Fabric::start().expect("a fabric");
    let [(one, routes), (two, _)] = [("a", 1), ("b", 2)].map(|(name, last)| place_past(&fabric, name, last));
    fabric.set_policy(Policy { rules: vec![blocked("x")], links: vec![] }).expect("set");
    routes.stick();
    assert!(fabric.relocate(one.port, vec!["x".to_owned()]).is_err());
    assert!(crosses(&fabric, &one, &two), "the rules of its old place are its own");
    assert!(fabric.ways().expect("ways").past.is_empty(), "nobody sends past the fabric to it");
}

#[test]
fn a_capture_that_cannot_see_all_packets_is_not_blamed_on_its_file() {
    let fabric = Fabric::start().expect("a fabric");
    let [(_one, routes), (_two, _)] =
        [("a", 1), ("b", 2)].map(|(name, last)| place_past(&fabric, name, last));
    routes.stick();
    let refused = fabric.capture(Tap::Node("a".to_owned()), tempfile::tempfile().expect("a file"));
    assert!(matches!(refused, Err(FabricError::Bypass(_))), "{refused:?}");
}
