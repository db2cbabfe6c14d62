//! A node's own clock in a lab: seen by its programs, not by another node's, and kept over a power-off.

use std::sync::Arc;

use clock::{Rate, Shift};
use lab::node_clock::machine_ns;
use lab::{ClockLook, Node, NodeClock};

use crate::test_lab::{TestLab, shell};

const SECOND_NS: i64 = 1_000_000_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// What both programs on a node see is what the clock was set to, and no program was left without it.
fn shows(node: &Node, clock: &NodeClock, shift: Shift) {
    let look = ClockLook::from_inside(node).expect("a look");
    let (probe, c_program) = (look.probe.expect("the probe"), look.c_program.expect("date"));
    for reading in [probe, c_program] {
        let (least_ns, most_ns) = reading.offset_ns();
        let (from_ns, to_ns) = (shift.offset_ns_at(reading.before_ns), shift.offset_ns_at(reading.after_ns));
        let seen = least_ns - MILLISECOND_NS <= to_ns && from_ns <= most_ns + MILLISECOND_NS;
        assert!(seen, "must be {from_ns}..{to_ns}, is {least_ns}..{most_ns}");
    }
    assert_eq!(clock.misses(), Vec::<String>::new());
}

pub fn a_node_has_a_clock_of_its_own(test_lab: &TestLab) {
    if let Err(why) = clock::trial() {
        return eprintln!("skipped: a_node_has_a_clock_of_its_own_from_boot_to_boot: {why}");
    }
    let clock = |name| Arc::new(NodeClock::make(name).expect("a clock"));
    let (one, other) = (clock("n1"), clock("n2"));
    let (n1, _) = test_lab.boot_by("n1", 1, Some(one.clone()));
    let (n2, _) = test_lab.boot_by("n2", 2, Some(other.clone()));
    shows(&n1, &one, Shift::NONE);
    let loaded = shell(&n1, "cat /proc/self/maps");
    assert!(loaded.contains("/run/node/clock/waits.so"), "the library of waits is loaded: {loaded}");
    let jump = Shift::jump(-5 * SECOND_NS);
    let race = Shift::running_away(Rate { parts_per_billion: 500_000_000 }, machine_ns());
    one.impose(0, jump);
    one.impose(1, race);
    shows(&n1, &one, jump.and(race));
    shows(&n2, &other, Shift::NONE);
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do date +%s & done; wait";
    one.lift(1);
    let before_s = machine_ns() / SECOND_NS;
    for line in shell(&n1, script).lines() {
        let shown_s: i64 = line.parse().expect("seconds");
        let after_s = machine_ns() / SECOND_NS;
        assert!((before_s - 5..=after_s - 5).contains(&shown_s), "{shown_s} in {before_s}..{after_s}");
    }
    n1.power_off();
    let (n1, _) = test_lab.boot_by("n1", 3, Some(one.clone()));
    shows(&n1, &one, jump);
    one.lift(0);
    shows(&n1, &one, Shift::NONE);
}
