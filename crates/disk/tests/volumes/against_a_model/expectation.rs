//! Which stores are told that a sync is to be expected, and when.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use disk::{
    Attributes, Defect, Disk, Flush, FolderStore, Limits, NewInode, Object, OnDisk, ROOT, Scope, Seek, Space,
    Store, Volume,
};

/// A store that counts how often a sync was to be expected.
struct Listening {
    store: FolderStore,
    expected: Arc<AtomicU64>,
}

struct ListeningObject {
    object: <FolderStore as Store>::Object,
    expected: Arc<AtomicU64>,
}

impl Store for Listening {
    type Object = ListeningObject;

    fn create(&self, number: u64) -> io::Result<ListeningObject> {
        Ok(ListeningObject { object: self.store.create(number)?, expected: self.expected.clone() })
    }

    fn open(&self, number: u64) -> io::Result<ListeningObject> {
        Ok(ListeningObject { object: self.store.open(number)?, expected: self.expected.clone() })
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        self.store.remove(number)
    }

    fn space(&self) -> io::Result<Space> {
        self.store.space()
    }
}

impl Object for ListeningObject {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.object.read(offset, buffer)
    }

    fn write(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        self.object.write(offset, content)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.object.set_size(size)
    }

    fn size(&self) -> io::Result<u64> {
        self.object.size()
    }

    fn sync(&self, data_only: bool) -> io::Result<()> {
        self.object.sync(data_only)
    }

    fn expect_sync(&self, offset: u64, bytes: u64) {
        self.expected.fetch_add(1, Ordering::Relaxed);
        self.object.expect_sync(offset, bytes);
    }

    fn allocate(&self, mode: i32, offset: u64, bytes: u64) -> io::Result<()> {
        self.object.allocate(mode, offset, bytes)
    }

    fn seek(&self, offset: u64, to: Seek) -> io::Result<u64> {
        self.object.seek(offset, to)
    }

    fn sectors(&self) -> io::Result<u64> {
        self.object.sectors()
    }
}

/// A volume with one file, on a disk that has a defect if one is named.
struct TestVolume {
    volume: Volume<OnDisk<Listening>>,
    file: u64,
    expected: Arc<AtomicU64>,
    disk: Disk,
    _folder: tempfile::TempDir,
}

fn test_volume() -> TestVolume {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let expected = Arc::<AtomicU64>::default();
    let store = Listening { store: FolderStore::new(folder.path(), Flush::Real), expected: expected.clone() };
    let disk = Disk::alone("d1");
    let now = SystemTime::UNIX_EPOCH;
    let volume = Volume::new(OnDisk::new(store, disk.clone()), Limits::default(), 0, 0, now);
    let attributes = Attributes::new(0o600, 0, 0, now);
    let file = volume.make(ROOT, "log".as_ref(), &NewInode::File, attributes).expect("made").inode;
    volume.open(file).expect("opened");
    TestVolume { volume, file, expected, disk, _folder: folder }
}

impl TestVolume {
    /// Writes, and syncs after every `each`-th write. Returns how often a sync was to be expected meanwhile.
    fn expected_in(&self, writes: u64, each: u64, through: Option<Scope>) -> u64 {
        let before = self.expected.load(Ordering::Relaxed);
        for number in 1..=writes {
            let content = [number as u8; 8192];
            let now = SystemTime::UNIX_EPOCH;
            self.volume.write(self.file, number * 6000, &content, through, false, now).expect("written");
            if number % each == 0 {
                self.volume.sync(self.file, Scope::Data).expect("synced");
            }
        }
        self.expected.load(Ordering::Relaxed) - before
    }
}

#[test]
fn a_store_is_told_to_expect_the_sync_of_a_file_that_has_been_synced_after_each_write() {
    let test_volume = test_volume();
    assert!((90..100).contains(&test_volume.expected_in(100, 1, None)));
    // Two at most before it shows that the habit has changed.
    assert!(test_volume.expected_in(100, 50, None) <= 2);
}

#[test]
fn a_store_is_not_told_of_syncs_by_writes_that_are_synced_themselves_nor_on_a_disk_that_is_not_sound() {
    let test_volume = test_volume();
    assert_eq!(test_volume.expected_in(20, 1, Some(Scope::Data)), 0);
    assert!(test_volume.expected_in(20, 1, None) > 0);
    let _defect = test_volume.disk.impose(Defect::LoseFlush);
    assert_eq!(test_volume.expected_in(20, 1, None), 0);
}

#[test]
fn what_a_store_has_begun_to_write_is_taken_back_at_a_power_off_like_everything_that_was_not_synced() {
    let test_volume = test_volume();
    assert!(test_volume.expected_in(20, 1, None) > 0);
    let expected = test_volume.expected.load(Ordering::Relaxed);
    let now = SystemTime::UNIX_EPOCH;
    test_volume.volume.write(test_volume.file, 20 * 6000, &[99; 8192], None, false, now).expect("written");
    assert_eq!(test_volume.expected.load(Ordering::Relaxed), expected + 1, "the store has begun");
    test_volume.volume.power_off(None).expect("taken back");
    let mut content = [0; 8192];
    assert_eq!(test_volume.volume.read(test_volume.file, 20 * 6000, &mut content), Ok(8192));
    assert_eq!(content, [20; 8192]);
}
