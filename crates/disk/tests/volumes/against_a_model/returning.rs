//! A volume returns to its snapshot byte by byte, whatever was done to it since and however that ended; and a return that
//! does not is refused.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use disk::{
    Attributes, Change, Flush, FolderStore, Kind, Limits, NewInode, ROOT, RenameKind, SnapshotError, Status,
    Volume,
};
use proptest::prelude::*;

use super::model::Model;
use super::random::{Step, steps};

/// All there is of a volume, by path: what stat(2) tells but for the room taken, extended attributes, content.
type Whole = BTreeMap<String, (Status, BTreeMap<OsString, Vec<u8>>, Vec<u8>)>;

fn whole(volume: &Volume<FolderStore>) -> Whole {
    let mut found = Whole::new();
    let mut waiting = vec![(String::new(), ROOT)];
    while let Some((path, number)) = waiting.pop() {
        let mut status = volume.status(number).expect("an object");
        status.sectors = 0;
        let extended = volume.list_extended(number).expect("an object");
        let extended = extended.into_iter().map(|name| {
            let value = volume.extended(number, &name).expect("a value");
            (name, value)
        });
        let content = match status.kind {
            Kind::Directory => {
                for (name, child, _) in volume.list(number).expect("a directory").into_iter().skip(2) {
                    waiting.push((format!("{path}/{}", name.display()), child));
                }
                Vec::new()
            }
            Kind::SymbolicLink => volume.target(number).expect("a link").into_encoded_bytes(),
            Kind::File => {
                let mut content = vec![0; status.size as usize];
                assert_eq!(volume.read(number, 0, &mut content), Ok(content.len()));
                content
            }
            _ => Vec::new(),
        };
        found.insert(path, (status, extended.collect(), content));
    }
    found
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Gives every object of a volume times, an owner and extended attributes.
fn mark(volume: &Volume<FolderStore>, by: u64) {
    for (status, ..) in whole(volume).into_values() {
        let (accessed, modified) = (Some(at(by + 1)), Some(at(by + 2)));
        let change = Change { user: Some(by as u32), accessed, modified, ..Change::default() };
        volume.change(status.inode, &change, at(by + 3)).expect("changed");
        let value = by.to_le_bytes();
        volume.set_extended(status.inode, "user.mark".as_ref(), Some(&value), None, at(by + 4)).expect("set");
    }
}

/// Makes what is neither a file nor a directory.
fn make_others(volume: &Volume<FolderStore>, by: u64) {
    let attributes = Attributes::new(0o640, 3, 4, at(by));
    let link = NewInode::SymbolicLink(format!("to-{by}").into());
    volume.make(ROOT, format!("link-{by}").as_ref(), &link, attributes).expect("made");
    let pipe = NewInode::Device(Kind::Pipe, 0);
    volume.make(ROOT, format!("pipe-{by}").as_ref(), &pipe, attributes).expect("made");
}

/// Folders of a volume and of its snapshot.
struct TestVolume {
    store: tempfile::TempDir,
    snapshot: tempfile::TempDir,
    limits: Limits,
}

impl TestVolume {
    fn new(limits: Limits) -> TestVolume {
        let folder = || tempfile::tempdir().expect("a temporary folder");
        TestVolume { store: folder(), snapshot: folder(), limits }
    }

    fn store(&self) -> FolderStore {
        FolderStore::new(self.store.path(), Flush::Pretended)
    }

    fn fresh(&self) -> Volume<FolderStore> {
        Volume::new(self.store(), self.limits, 0, 0, SystemTime::UNIX_EPOCH)
    }

    fn returned(&self) -> Result<Volume<FolderStore>, SnapshotError> {
        Volume::at_snapshot(self.store(), self.limits, self.snapshot.path())
    }

    fn blocks(&self) -> PathBuf {
        self.snapshot.path().join("blocks")
    }
}

/// Does the steps to a volume and its model.
fn take(volume: &Volume<FolderStore>, limits: Limits, steps: &[Step]) {
    let mut model = Model::new(volume);
    model.writes_back = limits != Limits::default();
    for step in steps {
        model.take(step);
    }
}

/// Does `before`, takes a snapshot, and returns to it from each round; a round ends with a power-off, or in the midst.
fn check(limits: Limits, before: &[Step], rounds: &[(Vec<Step>, bool)]) {
    let test_volume = TestVolume::new(limits);
    let mut volume = test_volume.fresh();
    take(&volume, limits, before);
    mark(&volume, 10);
    volume.take_snapshot(test_volume.snapshot.path()).expect("taken");
    let remembered = whole(&volume);
    for (number, (steps, loses_power)) in (2..).zip(rounds) {
        take(&volume, limits, steps);
        make_others(&volume, number);
        mark(&volume, 10 * number);
        if *loses_power {
            volume.power_off(None).expect("taken back");
        }
        drop(volume);
        volume = test_volume.returned().expect("returned");
        assert_eq!(whole(&volume), remembered);
        let files = remembered.values().filter(|(status, ..)| status.kind == Kind::File);
        let numbers: std::collections::BTreeSet<u64> = files.map(|(status, ..)| status.inode).collect();
        assert_eq!(fs::read_dir(test_volume.store.path()).expect("a folder").count(), numbers.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_since_a_volume_returns_to_its_snapshot_byte_by_byte(
        before in steps(40), rounds in prop::collection::vec((steps(50), any::<bool>()), 1..4)
    ) {
        check(Limits::default(), &before, &rounds);
    }

    #[test]
    fn it_does_so_too_where_more_is_changed_than_is_remembered_for_a_power_off(
        before in steps(40), rounds in prop::collection::vec((steps(50), any::<bool>()), 1..3)
    ) {
        check(Limits { blocks_max: 1, operations_max: 2 }, &before, &rounds);
    }
}

/// A file `f` of three blocks.
fn file_of_three_blocks(volume: &Volume<FolderStore>) -> u64 {
    let attributes = Attributes::new(0o644, 0, 0, at(0));
    let number = volume.make(ROOT, "f".as_ref(), &NewInode::File, attributes).expect("made").inode;
    volume.write(number, 0, &[7; 3 * 4096], None, false, at(0)).expect("written");
    number
}

/// A ground whose volume had a block of `f` overwritten since the snapshot.
fn overwritten() -> (TestVolume, u64) {
    let test_volume = TestVolume::new(Limits::default());
    let volume = test_volume.fresh();
    let number = file_of_three_blocks(&volume);
    volume.take_snapshot(test_volume.snapshot.path()).expect("taken");
    volume.write(number, 4096, &[8; 100], None, false, at(1)).expect("written");
    (test_volume, number)
}

/// That a return is refused once `defect` was planted.
fn is_refused(defect: impl FnOnce(&TestVolume, u64)) -> String {
    let (test_volume, number) = overwritten();
    defect(&test_volume, number);
    test_volume.returned().map(drop).expect_err("a defect was planted").to_string()
}

fn flip(file: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(file).expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("a byte");
    file.write_all_at(&[!byte[0]], offset).expect("written");
}

#[test]
fn a_return_that_lacks_a_block_or_has_another_one_is_refused() {
    let object = |test_volume: &TestVolume, number: u64| test_volume.store.path().join(number.to_string());
    let differs = "differs from the snapshot after the return";
    // A block that nobody kept: changed past the volume.
    assert!(is_refused(|test_volume, number| flip(&object(test_volume, number), 9_000)).contains(differs));
    // Kept, and lost or damaged before the return.
    let none = is_refused(|test_volume, _| drop(File::create(test_volume.blocks()).expect("emptied")));
    assert!(none.contains(differs), "{none}");
    assert!(is_refused(|test_volume, _| flip(&test_volume.blocks(), 30)).contains(differs));
    let half = |test_volume: &TestVolume, _| {
        let blocks = OpenOptions::new().write(true).open(test_volume.blocks()).expect("a file");
        blocks.set_len(100).expect("cut");
    };
    assert!(is_refused(half).contains("failed to fill whole buffer"));
    // A block of no file, and one behind the file's end.
    assert!(is_refused(|test_volume, _| flip(&test_volume.blocks(), 0)).contains("lies outside of it"));
    assert!(is_refused(|test_volume, _| flip(&test_volume.blocks(), 12)).contains("lies outside of it"));
    // The file itself, and the names.
    let gone =
        is_refused(|test_volume, number| fs::remove_file(object(test_volume, number)).expect("removed"));
    assert!(gone.contains("No such file"), "{gone}");
    let names = |test_volume: &TestVolume| test_volume.snapshot.path().join("names");
    assert!(
        is_refused(|test_volume, _| fs::remove_file(names(test_volume)).expect("removed"))
            .contains("no snapshot")
    );
    assert!(
        is_refused(|test_volume, _| fs::write(names(test_volume), [1]).expect("cut"))
            .contains("not a snapshot")
    );
}

#[test]
fn links_and_pipes_come_back_and_those_made_since_are_gone() {
    let test_volume = TestVolume::new(Limits::default());
    let volume = test_volume.fresh();
    make_others(&volume, 1);
    mark(&volume, 1);
    volume.take_snapshot(test_volume.snapshot.path()).expect("taken");
    let remembered = whole(&volume);
    assert_eq!(remembered["/link-1"].2, b"to-1");
    volume.remove(ROOT, "link-1".as_ref(), false, at(2)).expect("removed");
    volume
        .rename((ROOT, "pipe-1".as_ref()), (ROOT, "pipe".as_ref()), RenameKind::Replace, at(2))
        .expect("renamed");
    make_others(&volume, 2);
    drop(volume);
    assert_eq!(whole(&test_volume.returned().expect("returned")), remembered);
}

#[test]
fn a_return_that_was_broken_off_is_made_again() {
    let (test_volume, number) = overwritten();
    let blocks = fs::read(test_volume.blocks()).expect("read");
    drop(test_volume.returned().expect("returned"));
    // Broken off after the last block was written back: the blocks are there still.
    fs::write(test_volume.blocks(), blocks).expect("written");
    let volume = test_volume.returned().expect("returned");
    let mut content = vec![0; 3 * 4096];
    assert_eq!(volume.read(number, 0, &mut content), Ok(content.len()));
    assert_eq!(content, [7; 3 * 4096]);
}
