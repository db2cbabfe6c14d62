//! Live migrations: whom they mean, what is filled in, how they are written again.

use std::time::Duration;

use history::NodeId;
use scenario::{FaultAction, MigrationFault, NodeTarget, Scenario};

use crate::reading::{read_and_written, with_fault};

fn read(fault: &str) -> Scenario {
    let text = with_fault("postgres", "60s", fault);
    read_and_written(&text).unwrap_or_else(|problems| panic!("{fault}: {problems:?}"))
}

fn migration(fault: &str) -> MigrationFault {
    match &read(fault).schedule[1].faults[0].action {
        FaultAction::Migrate(fault) => fault.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_said_is_the_platforms_choice() {
    let plain = migration("{ migrate: { of: leader } }");
    assert_eq!((plain.node, plain.to, plain.memory_bytes), (NodeTarget::Leader, None, None));
    assert!(!plain.moves_anyway && !plain.has_guest_clock);
    assert_eq!((plain.stun, plain.max_rounds), (Duration::ZERO, 30));
}

#[test]
fn everything_that_is_said_is_read_and_written_again() {
    let whole = migration(
        "{ migrate: { of: n2, to: dc1/a/h4, memory: 1.5GiB, stun: 250ms, max-rounds: 5, not-converging: stun, clock: guest } }",
    );
    assert_eq!(whole.node, NodeTarget::Named(NodeId::new(1)));
    assert_eq!(whole.to.map(|to| to.to_string()).as_deref(), Some("dc1/a/h4"));
    assert_eq!(whole.memory_bytes, Some(3 << 29));
    assert!(whole.moves_anyway && whole.has_guest_clock);
    assert_eq!((whole.stun, whole.max_rounds), (Duration::from_millis(250), 5));
}

#[test]
fn a_migration_is_over_by_itself_and_strikes_again_and_again() {
    let faults = read("{ migrate: { of: random }, at: 5s, every: 20s }").schedule[1].faults.clone();
    assert_eq!(faults.iter().map(|fault| fault.at.as_secs()).collect::<Vec<_>>(), [5, 25, 45]);
    assert!(faults.iter().all(|fault| fault.length.is_none()));
}
