//! Random operations with syncs and power-offs in between, on a volume and on a model of what must and what may have
//! survived. The model knows the rules that the crate's first page promises, not how they are kept.

mod expectation;
mod model;
mod random;
mod returning;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::SystemTime;

use disk::{Attributes, Flush, FolderStore, Limits, NewInode, ROOT, Scope, Volume};
use proptest::prelude::*;

use model::{Model, Snapshot};
use random::{Step, steps};

/// A volume in a folder that goes with it.
struct TestVolume {
    volume: Arc<Volume<FolderStore>>,
    folder: tempfile::TempDir,
}

fn test_volume(limits: Limits) -> TestVolume {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = FolderStore::new(folder.path(), Flush::Pretended);
    let volume = Volume::new(store, limits, 0, 0, SystemTime::UNIX_EPOCH);
    TestVolume { volume: Arc::new(volume), folder }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_synced_is_there_after_a_power_off_and_what_was_not_is_as_it_was_or_as_it_became(
        steps in steps(60)
    ) {
        let test_volume = test_volume(Limits::default());
        let mut model = Model::new(&test_volume.volume);
        for step in &steps {
            model.take(step);
        }
        model.take(&Step::PowerOff);
    }

    #[test]
    fn without_any_sync_a_power_off_brings_back_exactly_what_was_durable(
        before in steps(30), after in steps(30)
    ) {
        let test_volume = test_volume(Limits::default());
        let mut model = Model::new(&test_volume.volume);
        for step in before.iter().filter(|step| !matches!(step, Step::PowerOff)) {
            model.take(step);
        }
        test_volume.volume.take_all_as_durable();
        let durable = Snapshot::of(&test_volume.volume);
        let mut model = Model::new(&test_volume.volume);
        for step in after.iter().filter(|step| !step.syncs()) {
            model.take(step);
        }
        test_volume.volume.power_off(None).expect("taken back");
        prop_assert_eq!(Snapshot::of(&test_volume.volume), durable);
    }

    #[test]
    fn beyond_its_limits_a_volume_still_keeps_what_was_synced(steps in steps(80)) {
        let test_volume = test_volume(Limits { blocks_max: 2, operations_max: 3 });
        let mut model = Model::new(&test_volume.volume);
        model.writes_back = true;
        for step in &steps {
            model.take(step);
        }
        model.take(&Step::PowerOff);
    }

    #[test]
    fn nothing_is_left_in_the_store_that_no_name_leads_to(steps in steps(60)) {
        let test_volume = test_volume(Limits::default());
        let mut model = Model::new(&test_volume.volume);
        for step in &steps {
            model.take(step);
        }
        test_volume.volume.power_off(None).expect("taken back");
        let named = Snapshot::of(&test_volume.volume).files();
        let stored = std::fs::read_dir(test_volume.folder.path()).expect("a folder").count();
        prop_assert_eq!(stored, named);
    }
}

/// A file named `name` with `content`, open.
fn file(volume: &Volume<FolderStore>, name: &str, content: &[u8]) -> u64 {
    let attributes = Attributes::new(0o644, 0, 0, SystemTime::UNIX_EPOCH);
    let number = volume.make(ROOT, name.as_ref(), &NewInode::File, attributes).expect("made").inode;
    volume.open(number).expect("open");
    volume.write(number, 0, content, None, false, SystemTime::UNIX_EPOCH).expect("written");
    number
}

fn content(volume: &Volume<FolderStore>, name: &str) -> Option<Vec<u8>> {
    let status = volume.look_up(ROOT, name.as_ref()).ok()?;
    let mut buffer = vec![0; 1 << 20];
    let read = volume.read(status.inode, 0, &mut buffer).expect("read");
    buffer.truncate(read);
    Some(buffer)
}

/// What is left of the file `f` holding `durable`, when `change` was done to it and the power went.
fn check(durable: &[u8], change: impl FnOnce(&Volume<FolderStore>, u64), expected: Option<&[u8]>) {
    let test_volume = test_volume(Limits::default());
    let number = file(&test_volume.volume, "f", durable);
    test_volume.volume.take_all_as_durable();
    change(&test_volume.volume, number);
    test_volume.volume.power_off(None).expect("taken back");
    assert_eq!(content(&test_volume.volume, "f").as_deref(), expected);
}

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

#[test]
fn an_overwritten_byte_is_taken_back_and_after_fdatasync_is_not() {
    check(b"old", |volume, f| volume.write(f, 0, b"N", None, false, NOW).expect("written"), Some(b"old"));
    let synced = |volume: &Volume<FolderStore>, f| {
        volume.write(f, 0, b"N", None, false, NOW).expect("written");
        volume.sync(f, Scope::Data).expect("synced");
    };
    check(b"old", synced, Some(b"Nld"));
}

#[test]
fn a_write_through_is_durable_and_what_follows_it_is_not() {
    let change = |volume: &Volume<FolderStore>, f| {
        volume.write(f, 0, b"S", Some(Scope::Data), false, NOW).expect("written");
        volume.write(f, 1, b"T", None, false, NOW).expect("written");
    };
    check(b"old", change, Some(b"Sld"));
}

#[test]
fn a_cut_is_taken_back_with_what_was_cut_off() {
    let cut = |volume: &Volume<FolderStore>, f| {
        let change = disk::Change { size: Some(1), ..disk::Change::default() };
        volume.change(f, &change, NOW).expect("cut");
    };
    let long: Vec<u8> = (0..20_000u32).map(|index| index as u8).collect();
    check(&long, cut, Some(&long));
}

#[test]
fn a_removed_file_is_back_unless_its_directory_was_synced() {
    let remove =
        |volume: &Volume<FolderStore>, _| volume.remove(ROOT, "f".as_ref(), false, NOW).expect("removed");
    check(b"old", remove, Some(b"old"));
    let synced = |volume: &Volume<FolderStore>, f| {
        remove(volume, f);
        volume.sync(ROOT, Scope::All).expect("synced");
    };
    check(b"old", synced, None);
}

#[test]
fn a_file_renamed_over_another_is_there_whole_or_not_at_all() {
    let rename = |sync_content: bool, sync_directory: bool| {
        move |volume: &Volume<FolderStore>, _| {
            let new = file(volume, "new", b"new");
            if sync_content {
                volume.sync(new, Scope::All).expect("synced");
            }
            volume
                .rename((ROOT, "new".as_ref()), (ROOT, "f".as_ref()), disk::RenameKind::Replace, NOW)
                .expect("renamed");
            if sync_directory {
                volume.sync(ROOT, Scope::All).expect("synced");
            }
        }
    };
    check(b"old", rename(true, true), Some(b"new"));
    check(b"old", rename(true, false), Some(b"old"));
    // The mistake of many programs: the new name is durable, the content behind it is not.
    check(b"old", rename(false, true), Some(b""));
}

#[test]
fn a_new_file_is_lost_without_a_sync_and_found_after_one() {
    for (scope, expected) in [(None, None), (Some(Scope::Data), Some(b"x".to_vec()))] {
        let test_volume = test_volume(Limits::default());
        let number = file(&test_volume.volume, "g", b"x");
        if let Some(scope) = scope {
            test_volume.volume.sync(number, scope).expect("synced");
        }
        let lost = test_volume.volume.power_off(None).expect("taken back");
        assert_eq!(content(&test_volume.volume, "g"), expected);
        assert_eq!(lost.operations, u64::from(scope.is_none()), "{lost:?}");
    }
}

#[test]
fn modes_and_extended_attributes_are_taken_back_and_after_fsync_are_not() {
    for sync in [false, true] {
        let test_volume = test_volume(Limits::default());
        let number = file(&test_volume.volume, "f", b"");
        test_volume.volume.take_all_as_durable();
        let change = disk::Change { mode: Some(0o600), ..disk::Change::default() };
        test_volume.volume.change(number, &change, NOW).expect("changed");
        test_volume.volume.set_extended(number, "user.a".as_ref(), Some(b"1"), None, NOW).expect("set");
        if sync {
            test_volume.volume.sync(number, Scope::All).expect("synced");
        }
        test_volume.volume.power_off(None).expect("taken back");
        let mode = test_volume.volume.status(number).expect("there").attributes.mode;
        let extended = test_volume.volume.list_extended(number).expect("there");
        let expected = if sync { (0o600, vec![OsString::from("user.a")]) } else { (0o644, Vec::new()) };
        assert_eq!((mode, extended), expected);
    }
}

#[test]
fn of_a_torn_last_write_each_sector_is_old_or_new_by_the_coin() {
    let test_volume = test_volume(Limits::default());
    let number = file(&test_volume.volume, "f", &[b'o'; 8192]);
    test_volume.volume.take_all_as_durable();
    test_volume.volume.write(number, 0, &[b'x'; 4096], None, false, NOW).expect("written");
    test_volume.volume.write(number, 4096, &[b'n'; 4096], None, false, NOW).expect("written");
    let mut throws = 0;
    let mut coin = || {
        throws += 1;
        throws % 3 == 0
    };
    let lost = test_volume.volume.power_off(Some(&mut coin)).expect("taken back");
    let content = content(&test_volume.volume, "f").expect("there");
    let sectors: Vec<u8> = content.chunks(512).map(|sector| sector[0]).collect();
    assert_eq!(sectors, *b"oooooooooonoonoo");
    assert!(content.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    assert_eq!(lost.sectors_survived, 2);
}
