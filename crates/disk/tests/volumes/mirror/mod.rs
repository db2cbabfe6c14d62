//! Random operations on a mirrored volume, with connections that break, components that lose power and others that take
//! over in between. In the end all components are equal, and nothing whose sync was acknowledged is lost.

mod moving;
mod test_mirror;
mod unreadable;

use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use disk::mirror::Acknowledge;
use disk::{Defect, Files, Limits, ROOT, Refusal, Scope, ask};

use moving::Pair;
use test_mirror::{Step, TestMirror};

fn place() -> impl Strategy<Value = (u8, u8)> {
    (0..3u8, 0..5u8)
}

fn change() -> impl Strategy<Value = Step> {
    let size = 0..30_000u16;
    prop_oneof![
        4 => place().prop_map(Step::Create),
        2 => place().prop_map(Step::MakeDirectory),
        1 => place().prop_map(Step::MakeLink),
        2 => (place(), place()).prop_map(|(old, new)| Step::Link(old, new)),
        3 => place().prop_map(Step::Remove),
        4 => (place(), place()).prop_map(|(old, new)| Step::Rename(old, new)),
        1 => (place(), place()).prop_map(|(one, other)| Step::Exchange(one, other)),
        8 => (place(), size.clone(), 1..9_000u16, any::<u8>())
            .prop_map(|(place, offset, bytes, fill)| Step::Write { place, offset, bytes, fill }),
        2 => (place(), size.clone()).prop_map(|(place, size)| Step::Cut { place, size }),
        1 => (place(), size, 1..9_000u16)
            .prop_map(|(place, offset, bytes)| Step::PunchHole { place, offset, bytes }),
        1 => (place(), any::<u8>()).prop_map(|(place, mode)| Step::Mode(place, mode)),
        1 => (place(), any::<u8>()).prop_map(|(place, value)| Step::Extended(place, value)),
        4 => place().prop_map(Step::Sync),
        1 => (0..3u8).prop_map(Step::SyncDirectory),
    ]
}

fn step(peers: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => change(),
        6 => (0..peers, 1..12u8).prop_map(|(peer, frames)| Step::Deliver { peer, frames }),
        1 => (0..peers).prop_map(Step::Break),
        1 => (0..peers).prop_map(Step::PeerPowerOff),
        3 => (0..peers).prop_map(Step::Connect),
    ]
}

/// In each round components begin equal, take the steps, and one that has every acknowledged sync takes over.
fn are_equal_after_take_overs(mut test_mirror: TestMirror, rounds: &[Vec<Step>]) {
    for steps in rounds {
        test_mirror.bring_together();
        steps.iter().for_each(|step| test_mirror.take(step));
        test_mirror.take_over();
    }
    test_mirror.bring_together();
    test_mirror.check_equal();
}

/// In each round components take the steps, and another takes over whatever it lacks.
fn are_equal_after_forced_take_overs(mut test_mirror: TestMirror, rounds: &[Vec<Step>]) {
    for steps in rounds {
        steps.iter().for_each(|step| test_mirror.take(step));
        test_mirror.take_over_by_force();
    }
    test_mirror.bring_together();
    test_mirror.check_equal();
}

fn any_acknowledge() -> impl Strategy<Value = Acknowledge> {
    prop_oneof![Just(Acknowledge::Sync), Just(Acknowledge::Semi), Just(Acknowledge::Async)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn components_are_equal_in_the_end_whatever_broke_in_between(
        acknowledge in any_acknowledge(),
        steps in prop::collection::vec(step(2), 1..120),
    ) {
        let mut test_mirror = TestMirror::new(3, acknowledge, Limits::default());
        for step in &steps {
            test_mirror.take(step);
        }
        test_mirror.bring_together();
        test_mirror.check_equal();
    }

    #[test]
    fn components_that_write_back_by_themselves_are_equal_in_the_end_too(
        steps in prop::collection::vec(step(1), 1..120),
    ) {
        let mut test_mirror = TestMirror::new(2, Acknowledge::Async, Limits { blocks_max: 2, operations_max: 3 });
        for step in &steps {
            test_mirror.take(step);
        }
        test_mirror.bring_together();
        test_mirror.check_equal();
    }

    #[test]
    fn a_component_that_takes_over_has_every_sync_that_was_acknowledged(
        rounds in prop::collection::vec(prop::collection::vec(step(2), 1..50), 1..4),
    ) {
        are_equal_after_take_overs(TestMirror::new(3, Acknowledge::Sync, Limits::default()), &rounds);
    }

    #[test]
    fn components_that_tear_their_last_writes_are_equal_in_the_end_and_keep_every_acknowledged_sync(
        seed in any::<u64>(),
        rounds in prop::collection::vec(prop::collection::vec(step(2), 1..50), 1..4),
    ) {
        are_equal_after_take_overs(TestMirror::new(3, Acknowledge::Sync, Limits::default()).tearing(seed), &rounds);
    }

    #[test]
    fn components_that_tear_are_equal_after_one_took_over_by_force_too(
        seed in any::<u64>(),
        rounds in prop::collection::vec(prop::collection::vec(step(2), 1..50), 1..4),
    ) {
        are_equal_after_forced_take_overs(TestMirror::new(3, Acknowledge::Async, Limits::default()).tearing(seed), &rounds);
    }

    #[test]
    fn components_are_equal_after_one_took_over_by_force_that_lacked_something(
        rounds in prop::collection::vec(prop::collection::vec(step(2), 1..50), 1..4),
    ) {
        are_equal_after_forced_take_overs(TestMirror::new(3, Acknowledge::Async, Limits::default()), &rounds);
    }
}

proptest! {
    // Each step is a thread's, beside one that lets what is sent arrive.
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn service_moves_off_a_disk_that_refuses_and_no_operation_notices(
        acknowledge in any_acknowledge(),
        rounds in prop::collection::vec((prop::collection::vec(change(), 1..40), 0..30u64), 1..4),
    ) {
        let mut pair = Pair::new(TestMirror::new(3, acknowledge, Limits::default()));
        for (steps, operations) in &rounds {
            pair.take_on_failing_disk(steps, *operations);
        }
        pair.check();
    }

    #[test]
    fn service_moves_off_a_disk_that_refuses_what_the_volume_writes_back_by_itself(
        steps in prop::collection::vec(change(), 1..60),
        operations in 0..60u64,
    ) {
        let limits = Limits { blocks_max: 2, operations_max: 3 };
        let mut pair = Pair::new(TestMirror::new(2, Acknowledge::Async, limits));
        pair.take_on_failing_disk(&steps, operations);
        pair.check();
    }
}

#[test]
fn service_moves_once_and_the_component_that_failed_catches_up_afterwards() {
    let mut pair = Pair::new(TestMirror::new(2, Acknowledge::Sync, Limits::default()));
    let write = |fill| Step::Write { place: (0, 1), offset: 100, bytes: 5_000, fill };
    let before = [Step::Create((0, 1)), write(1), Step::Sync((0, 1))];
    assert_eq!(pair.take_on_failing_disk(&before, u64::MAX), 0);
    assert_eq!(pair.take_on_failing_disk(&[write(2), write(3), Step::Sync((0, 1))], 1), 1);
    assert_eq!(pair.test_mirror.serving, 1);
    pair.check();
}

#[test]
fn what_is_written_while_service_moves_is_written_once_and_not_lost() {
    let failing = [0, 7, 40, 95].map(Defect::FailAfter);
    for defect in failing.into_iter().chain([Defect::Full; 12]) {
        let mut pair = Pair::new(TestMirror::new(2, Acknowledge::Async, Limits::default()));
        assert_eq!(pair.write_at_once(4, 100, defect), 1, "{defect:?}");
        pair.test_mirror.bring_together();
        pair.test_mirror.check_equal();
    }
}

#[test]
fn what_is_looked_up_and_opened_while_service_moves_is_open_at_the_next() {
    let mut test_mirror = TestMirror::new(2, Acknowledge::Sync, Limits::default());
    test_mirror.take(&Step::Create((0, 0)));
    test_mirror.bring_together();
    let [first, next] = [0, 1].map(|component: usize| test_mirror.components[component].volume.clone());
    let (name, _, _) = first.list(ROOT).expect("a directory").pop().expect("a file");
    let mirror = test_mirror.mirror.clone();
    mirror.hold_changes();
    next.take_over_from(&first);
    let opened = std::thread::scope(|scope| {
        let opened = scope.spawn(|| {
            let found = ask(mirror.as_ref(), |files| files.look_up(ROOT, &name))?;
            ask(mirror.as_ref(), |files| files.open(found.inode)).map(|()| found.inode)
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!opened.is_finished(), "it waits until service has moved");
        mirror.move_to(next.clone());
        opened.join().expect("no panic").expect("opened")
    });
    next.remove(ROOT, &name, false, SystemTime::UNIX_EPOCH).expect("removed");
    next.sync(ROOT, Scope::All).expect("synced");
    mirror.forget(opened, 1);
    assert_eq!(next.read(opened, 0, &mut [0]), Ok(0), "it is open");
    mirror.release(opened);
    assert_eq!(next.read(opened, 0, &mut [0]), Err(Refusal::ESTALE));
}

#[test]
fn a_component_that_is_reached_again_and_again_and_never_catches_up_is_missed_since_it_was_last_live() {
    let mut test_mirror = TestMirror::new(2, Acknowledge::Sync, Limits::default());
    test_mirror.bring_together();
    assert_eq!(test_mirror.mirror.missed_for(0), None);
    test_mirror.take(&Step::Break(0));
    let first = test_mirror.mirror.now();
    test_mirror.take(&Step::Create((0, 0)));
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(5));
        test_mirror.take(&Step::Connect(0));
        assert_eq!(test_mirror.mirror.missed_for(0), None);
        test_mirror.take(&Step::Break(0));
    }
    let asked = test_mirror.mirror.now();
    assert!(test_mirror.mirror.missed_for(0) >= Some(asked - first));
    test_mirror.bring_together();
    let live = test_mirror.mirror.now();
    test_mirror.take(&Step::Break(0));
    let missed = test_mirror.mirror.missed_for(0).expect("away");
    assert!(missed <= test_mirror.mirror.now() - live, "{missed:?}");
}

#[test]
fn after_an_absence_only_what_changed_is_copied() {
    let mut test_mirror = TestMirror::new(2, Acknowledge::Sync, Limits::default());
    for file in 0..4 {
        test_mirror.take(&Step::Create((0, file)));
        for part in 0..3 {
            let offset = part * 9_000;
            test_mirror.take(&Step::Write { place: (0, file), offset, bytes: 9_000, fill: file + 1 });
        }
    }
    test_mirror.bring_together();
    let before = test_mirror.bytes_copied(0);
    assert!(before >= 4 * 27_000, "{before}");
    test_mirror.take(&Step::Break(0));
    test_mirror.take(&Step::Write { place: (0, 2), offset: 10_000, bytes: 100, fill: 9 });
    test_mirror.bring_together();
    test_mirror.check_equal();
    let copied = test_mirror.bytes_copied(0) - before;
    assert!((100..10_000).contains(&copied), "{copied}");
}

#[test]
fn what_was_cut_off_does_not_come_back_when_the_file_grows_again() {
    let mut test_mirror = TestMirror::new(2, Acknowledge::Sync, Limits::default());
    test_mirror.take(&Step::Connect(0));
    test_mirror.take(&Step::Create((0, 0)));
    test_mirror.take(&Step::Write { place: (0, 0), offset: 856, bytes: 3_976, fill: 1 });
    test_mirror.take(&Step::Sync((0, 0)));
    test_mirror.take(&Step::Cut { place: (0, 0), size: 4_831 });
    test_mirror.take(&Step::Connect(0));
    test_mirror.take(&Step::Write { place: (0, 0), offset: 20_419, bytes: 8_453, fill: 28 });
    test_mirror.bring_together();
    test_mirror.check_equal();
}

/// Both components have a file durable, then it is written over on both, and the power tears that on both, each in its way.
fn torn_on_both(mut test_mirror: TestMirror) {
    test_mirror.take(&Step::Connect(0));
    test_mirror.take(&Step::Create((0, 0)));
    test_mirror.take(&Step::Write { place: (0, 0), offset: 0, bytes: 30_000, fill: 1 });
    test_mirror.take(&Step::Sync((0, 0)));
    test_mirror.take(&Step::Write { place: (0, 0), offset: 0, bytes: 30_000, fill: 2 });
    test_mirror.take(&Step::Deliver { peer: 0, frames: 9 });
    test_mirror.take_over();
    test_mirror.bring_together();
    test_mirror.check_equal();
}

#[test]
fn what_tearing_did_on_either_component_is_overwritten_by_the_one_that_serves() {
    for seed in 0..20 {
        torn_on_both(TestMirror::new(2, Acknowledge::Sync, Limits::default()).tearing(seed));
    }
}

#[test]
#[should_panic(expected = "differs at")]
fn components_would_stay_different_if_what_tearing_did_were_not_marked() {
    torn_on_both(
        TestMirror::new(2, Acknowledge::Sync, Limits::default()).tearing(1).forgetting_what_was_lost(),
    );
}
