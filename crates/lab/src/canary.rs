//! Marks on a node's volume that show after a power-off what was lost: written and looked for by the node's init, through
//! the mount, like everything that a database writes.
//!
//! Owns which marks there are, their content, and how each looks before and after its change. What a volume must keep and
//! must lose is for whoever asks. They lie in a hidden folder of their own; no link is followed.
//! A write through a mount of `disk` reaches its volume before it returns; [`Mark::Mapped`] stays in the kernel's memory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use serde::{Deserialize, Serialize};

/// The folder, at the root of the volume.
pub const FOLDER: &str = ".holdfast-canary";
/// The file whose blocks are marks.
pub const FILE: &str = "marks";
const BLOCK_BYTES: usize = 4_096;
/// The smallest piece of a torn write that is whole.
const SECTOR_BYTES: usize = 512;
const LINE_BYTES: usize = 64;
/// Where what is appended begins.
const APPENDED_AT: usize = 4 * BLOCK_BYTES;
/// The marks of which a copy of the volume is looked at begin the file.
pub const KEPT_BYTES: usize = BLOCK_BYTES;

/// What an init is asked to do with the marks. The numbers are nonces: marks of another boot or another power-off are not
/// mistaken for these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "canary", rename_all = "kebab-case")]
pub enum Order {
    /// Write the marks as they are before any change, durably. Those of earlier boots go.
    Prepare { boot: u64 },
    /// Make the changes: first those that are synced, then those that are not.
    Plant {
        /// Of the boot whose marks are changed, which they can be once.
        boot: u64,
        /// Of the power-off that follows.
        fault: u64,
        /// Whether changes are synced as well. A sync may wait, and the power-off with it.
        syncs: bool,
    },
    /// Make one more, not synced, for the volume's copies on hosts whose power is about to be cut; the node's stays on.
    PlantForCopies {
        boot: u64,
        /// Of the power-off that follows.
        fault: u64,
    },
    /// Tell how they look.
    Look {
        /// As planted.
        boot: u64,
        /// As planted.
        fault: u64,
    },
}

/// A change on the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// A block written and synced at boot.
    Kept,
    /// A block overwritten and synced.
    Synced,
    /// A file made, its folder synced.
    SyncedName,
    /// A file renamed, its folder synced.
    SyncedRename,
    /// A block overwritten, not synced.
    Overwritten,
    /// A block overwritten in memory that is mapped from the file, not synced.
    Mapped,
    /// Bytes appended, not synced.
    Appended,
    /// A file made, not synced.
    Created,
    /// A file renamed, not synced.
    Renamed,
    /// A file removed, not synced.
    Removed,
}

impl Mark {
    /// Whether its change is synced before the power-off.
    #[must_use]
    pub fn is_synced(self) -> bool {
        matches!(self, Mark::Kept | Mark::Synced | Mark::SyncedName | Mark::SyncedRename)
    }
}

/// How a mark looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// As before its change.
    Before,
    After,
    /// Some of its sectors as before, these many as after: a write that was torn.
    Torn {
        /// Sectors that look as after the change.
        after: usize,
        /// Sectors in all.
        of: usize,
    },
    Neither,
}

/// How all of them look.
pub type Marks = BTreeMap<Mark, Seen>;

/// Does it on the volume whose root this is. Returns how the marks look as JSON, where that was asked for.
pub(crate) fn obey(root: &File, order: Order) -> io::Result<String> {
    match order {
        Order::Prepare { boot } => prepare(root, boot).map(|()| String::new()),
        Order::Plant { boot, fault, syncs } => plant(root, boot, fault, syncs).map(|()| String::new()),
        Order::PlantForCopies { boot, fault } => {
            make(&open_folder(root)?, &for_copies(boot, fault)).map(|_| String::new())
        }
        Order::Look { boot, fault } => {
            serde_json::to_string(&look(root, boot, fault)?).map_err(io::Error::other)
        }
    }
}

/// Names of the folder: each holds a nonce, so that none of another boot or power-off is taken for it.
struct Names {
    /// Renamed durably from here to there.
    synced_rename: [String; 2],
    synced: String,
    created: String,
    /// Renamed from here to there.
    renamed: [String; 2],
    removed: String,
}

impl Names {
    fn new(boot: u64, fault: u64) -> Names {
        let of_boot = |what: &str| format!("{what}-{boot:016x}");
        let of_fault = |what: &str| format!("{what}-{boot:016x}-{fault:016x}");
        Names {
            synced_rename: [of_boot("early"), of_fault("late")],
            synced: of_fault("synced"),
            created: of_fault("created"),
            renamed: [of_boot("home"), of_fault("away")],
            removed: of_boot("removed"),
        }
    }
}

fn for_copies(boot: u64, fault: u64) -> String {
    format!("for-copies-{boot:016x}-{fault:016x}")
}

/// How the marks of [`Order::PlantForCopies`] look on a copy that has these names in [`FOLDER`] and begins [`FILE`] so. What was
/// synced at boot came before the other.
#[must_use]
pub fn on_copy<'a>(
    names: impl IntoIterator<Item = &'a OsStr>,
    begins: &[u8],
    boot: u64,
    fault: u64,
) -> Marks {
    let for_copies = for_copies(boot, fault);
    let is_there = names.into_iter().any(|name| name == for_copies.as_str());
    let kept = if begins == block(boot, 0) { Seen::After } else { Seen::Neither };
    let created = if is_there { Seen::After } else { Seen::Before };
    BTreeMap::from([(Mark::Kept, kept), (Mark::Created, created)])
}

/// Content that no other mark has, nor any other piece of this one.
fn content(nonce: u64, at: usize, bytes: usize) -> Vec<u8> {
    let width = LINE_BYTES - 1;
    let lines = (at..at + bytes).step_by(LINE_BYTES);
    lines.flat_map(|at| format!("{:<width$}\n", format!("{nonce:016x} {at}")).into_bytes()).collect()
}

fn block(nonce: u64, number: usize) -> Vec<u8> {
    content(nonce, number * BLOCK_BYTES, BLOCK_BYTES)
}

fn open(folder: &impl AsFd, name: &str, flags: OFlag) -> io::Result<File> {
    // What is no ordinary file must not keep an init waiting.
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    Ok(File::from(openat(folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?))
}

fn open_folder(root: &File) -> io::Result<File> {
    open(root, FOLDER, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
}

fn make(folder: &File, name: &str) -> io::Result<File> {
    open(folder, name, OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL)
}

fn prepare(root: &File, boot: u64) -> io::Result<()> {
    match mkdirat(root, FOLDER, Mode::S_IRWXU) {
        Ok(()) | Err(nix::Error::EEXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = open_folder(root)?;
    for name in names_in(&folder)? {
        unlinkat(&folder, name.as_str(), UnlinkatFlags::NoRemoveDir)?;
    }
    let file = make(&folder, FILE)?;
    file.write_all_at(&content(boot, 0, APPENDED_AT), 0)?;
    file.sync_all()?;
    let names = Names::new(boot, 0);
    for name in [&names.synced_rename[0], &names.renamed[0], &names.removed] {
        make(&folder, name)?;
    }
    folder.sync_all()?;
    root.sync_all()
}

fn plant(root: &File, boot: u64, fault: u64, syncs: bool) -> io::Result<()> {
    let (folder, names) = (open_folder(root)?, Names::new(boot, fault));
    // Closing a file, or ending a mapping of it, has the kernel write back what it holds of it. This one stays open for as
    // long as the init lives, which is not long.
    let file = ManuallyDrop::new(open(&folder, FILE, OFlag::O_RDWR)?);
    if syncs {
        file.write_all_at(&block(fault, 1), BLOCK_BYTES as u64)?;
        file.sync_all()?;
        make(&folder, &names.synced)?;
        rename(&folder, &names.synced_rename)?;
        folder.sync_all()?;
    }
    write_mapped(&file, 3, &block(fault, 3))?;
    file.write_all_at(&content(fault, APPENDED_AT, LINE_BYTES), APPENDED_AT as u64)?;
    make(&folder, &names.created)?;
    rename(&folder, &names.renamed)?;
    unlinkat(&folder, names.removed.as_str(), UnlinkatFlags::NoRemoveDir)?;
    // Where these marks are written before a fault, they are the copies' as well.
    make(&folder, &for_copies(boot, fault))?;
    // Last, so that it is what a power-off tears, unless something is written after it.
    file.write_all_at(&block(fault, 2), 2 * BLOCK_BYTES as u64)
}

fn rename(folder: &File, [from, to]: &[String; 2]) -> io::Result<()> {
    Ok(renameat(folder, from.as_str(), folder, to.as_str())?)
}

/// Overwrites a block by the memory that is mapped from it. The mapping stays.
fn write_mapped(file: &File, number: usize, content: &[u8]) -> io::Result<()> {
    // So that the page is in memory, and to touch it asks nothing of the disk.
    file.read_exact_at(&mut [0; BLOCK_BYTES], (number * BLOCK_BYTES) as u64)?;
    let length = NonZeroUsize::new(content.len().min(BLOCK_BYTES)).ok_or(io::ErrorKind::InvalidInput)?;
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    let offset = (number * BLOCK_BYTES) as libc::off_t;
    // SAFETY: a new mapping, shared with nobody who relies on its content, of a block that the file has.
    unsafe {
        let mapped = mmap(None, length, protection, MapFlags::MAP_SHARED, file, offset)?;
        std::ptr::copy_nonoverlapping(content.as_ptr(), mapped.as_ptr().cast::<u8>(), length.get());
    }
    Ok(())
}

fn look(root: &File, boot: u64, fault: u64) -> io::Result<Marks> {
    let folder = match open_folder(root) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(nothing()),
        Err(error) => return Err(error),
    };
    let present = names_in(&folder)?;
    let is_there = |name: &String| present.contains(name);
    let file = is_there(&FILE.to_owned()).then(|| open(&folder, FILE, OFlag::O_RDONLY)).transpose()?;
    let bytes = file.map_or_else(|| Ok(Vec::new()), |file| read(&file))?;
    let names = Names::new(boot, fault);
    let made = |name| if is_there(name) { Seen::After } else { Seen::Before };
    let renamed = |[from, to]: &[String; 2]| match (is_there(from), is_there(to)) {
        (true, false) => Seen::Before,
        (false, true) => Seen::After,
        _ => Seen::Neither,
    };
    let overwritten = |number: usize| {
        let now = bytes.get(number * BLOCK_BYTES..(number + 1) * BLOCK_BYTES);
        now.map_or(Seen::Neither, |now| compare(now, &block(boot, number), &block(fault, number)))
    };
    let kept = if bytes.starts_with(&block(boot, 0)) { Seen::After } else { Seen::Neither };
    let appended = match bytes.get(APPENDED_AT..) {
        Some([]) => Seen::Before,
        Some(now) if now == content(fault, APPENDED_AT, LINE_BYTES) => Seen::After,
        _ => Seen::Neither,
    };
    let removed = match (is_there(&names.removed), kept) {
        (true, _) => Seen::Before,
        // Marks of this boot are here, and this one is not.
        (false, Seen::After) => Seen::After,
        (false, _) => Seen::Neither,
    };
    Ok(BTreeMap::from([
        (Mark::Kept, kept),
        (Mark::Synced, overwritten(1)),
        (Mark::SyncedName, made(&names.synced)),
        (Mark::SyncedRename, renamed(&names.synced_rename)),
        (Mark::Overwritten, overwritten(2)),
        (Mark::Mapped, overwritten(3)),
        (Mark::Appended, appended),
        (Mark::Created, made(&names.created)),
        (Mark::Renamed, renamed(&names.renamed)),
        (Mark::Removed, removed),
    ]))
}

/// How marks look of which there is nothing at all.
fn nothing() -> Marks {
    use Mark::{
        Appended, Created, Kept, Mapped, Overwritten, Removed, Renamed, Synced, SyncedName, SyncedRename,
    };
    let lost = [Kept, Synced, SyncedRename, Overwritten, Mapped, Appended, Renamed, Removed];
    let lost = lost.into_iter().map(|mark| (mark, Seen::Neither));
    lost.chain([SyncedName, Created].into_iter().map(|mark| (mark, Seen::Before))).collect()
}

fn compare(now: &[u8], before: &[u8], after: &[u8]) -> Seen {
    let mut sectors_after = 0;
    let sectors = |bytes: &'_ [u8]| bytes.chunks(SECTOR_BYTES).map(<[u8]>::to_vec).collect::<Vec<_>>();
    for ((now, before), after) in sectors(now).iter().zip(sectors(before)).zip(sectors(after)) {
        match now {
            now if *now == after => sectors_after += 1,
            now if *now == before => {}
            _ => return Seen::Neither,
        }
    }
    match (sectors_after, now.len() / SECTOR_BYTES) {
        (0, _) => Seen::Before,
        (all, of) if all == of => Seen::After,
        (after, of) => Seen::Torn { after, of },
    }
}

/// No more than the file has when nothing is wrong with it, and a little beyond.
fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; APPENDED_AT + 2 * LINE_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn names_in(folder: &File) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: u64 = 7;
    const FAULT: u64 = 80;

    fn seen(marks: &Marks, is_synced: bool) -> Vec<Seen> {
        marks.iter().filter(|(mark, _)| mark.is_synced() == is_synced).map(|(_, seen)| *seen).collect()
    }

    #[test]
    fn before_and_after_are_told_apart_for_every_mark_and_never_taken_for_those_of_another_power_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = File::open(folder.path()).expect("open");
        assert!(!look(&root, BOOT, FAULT).expect("looked").values().any(|seen| *seen == Seen::After));
        prepare(&root, BOOT).expect("prepared");
        let before = look(&root, BOOT, FAULT).expect("looked");
        assert_eq!(before[&Mark::Kept], Seen::After);
        assert!(before.iter().all(|(mark, seen)| *mark == Mark::Kept || *seen == Seen::Before), "{before:?}");
        plant(&root, BOOT, FAULT, true).expect("planted");
        let after = look(&root, BOOT, FAULT).expect("looked");
        assert!(after.values().all(|seen| *seen == Seen::After), "{after:?}");
        let mut of_another = look(&root, BOOT, FAULT + 1).expect("looked");
        assert_eq!(
            of_another.remove(&Mark::Removed),
            Some(Seen::After),
            "one of a boot's marks is removed once"
        );
        assert!(seen(&of_another, false).iter().all(|seen| *seen != Seen::After), "{of_another:?}");
        prepare(&root, BOOT + 1).expect("prepared anew");
        let after = look(&root, BOOT, FAULT).expect("looked");
        assert!(!after.values().any(|seen| *seen == Seen::After), "{after:?}");
        assert!(look(&root, BOOT + 1, FAULT).is_ok_and(|marks| marks == before));
    }

    #[test]
    fn the_mark_for_copies_is_told_by_its_name_and_leaves_the_others_as_they_were() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = File::open(folder.path()).expect("open");
        prepare(&root, BOOT).expect("prepared");
        let before = look(&root, BOOT, FAULT).expect("looked");
        let seen = |fault| {
            let names = names_in(&open_folder(&root).expect("open")).expect("names");
            let file = std::fs::read(folder.path().join(FOLDER).join(FILE)).expect("read");
            let marks = on_copy(names.iter().map(OsStr::new), &file[..KEPT_BYTES], BOOT, fault);
            (marks[&Mark::Kept], marks[&Mark::Created])
        };
        assert_eq!(seen(FAULT), (Seen::After, Seen::Before));
        obey(&root, Order::PlantForCopies { boot: BOOT, fault: FAULT }).expect("planted");
        assert_eq!(seen(FAULT), (Seen::After, Seen::After));
        assert_eq!(seen(FAULT + 1), (Seen::After, Seen::Before), "that of another power-off");
        assert_eq!(look(&root, BOOT, FAULT).expect("looked"), before);
        plant(&root, BOOT, FAULT + 2, true).expect("planted");
        assert_eq!(seen(FAULT + 2), (Seen::After, Seen::After), "planted with all others");
        assert_eq!(on_copy([], &[0; KEPT_BYTES], BOOT, FAULT)[&Mark::Kept], Seen::Neither);
    }

    #[test]
    fn a_torn_block_is_told_by_its_sectors_and_foreign_content_is_neither() {
        let (before, after) = (block(BOOT, 2), block(FAULT, 2));
        assert_eq!(compare(&before, &before, &after), Seen::Before);
        assert_eq!(compare(&after, &before, &after), Seen::After);
        let torn = [&after[..SECTOR_BYTES], &before[SECTOR_BYTES..]].concat();
        assert_eq!(compare(&torn, &before, &after), Seen::Torn { after: 1, of: 8 });
        assert_eq!(compare(&vec![0; BLOCK_BYTES], &before, &after), Seen::Neither);
        // Sectors that have changed places.
        let moved = [&before[SECTOR_BYTES..], &before[..SECTOR_BYTES]].concat();
        assert_eq!(compare(&moved, &before, &after), Seen::Neither);
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_or_of_a_mark_is_not_followed() {
        let (folder, elsewhere) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another"));
        let root = File::open(folder.path()).expect("open");
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(FOLDER)).expect("a link");
        assert!(prepare(&root, BOOT).is_err());
        std::fs::remove_file(folder.path().join(FOLDER)).expect("removed");
        prepare(&root, BOOT).expect("prepared");
        let (marks, target) = (folder.path().join(FOLDER).join(FILE), elsewhere.path().join("target"));
        std::fs::write(&target, vec![0; 8 * BLOCK_BYTES]).expect("written");
        std::fs::remove_file(&marks).expect("removed");
        std::os::unix::fs::symlink(&target, &marks).expect("a link");
        assert!(plant(&root, BOOT, FAULT, true).is_err() && look(&root, BOOT, FAULT).is_err());
        assert_eq!(std::fs::read(&target).expect("read"), vec![0; 8 * BLOCK_BYTES]);
    }
}
