//! The model: for each name what it may mean after a power-off, for each file what it must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use disk::{Attributes, Change, FolderStore, Kind, NewInode, ROOT, RenameKind, Scope, Volume};

use super::random::{Place, Step};

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

/// Everything that a walk through a volume finds, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<String, Found>);

/// What one name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub inode: u64,
    pub is_directory: bool,
    pub mode: u16,
    pub links: u32,
    pub content: Vec<u8>,
}

impl Snapshot {
    pub fn of(volume: &Volume<FolderStore>) -> Snapshot {
        let mut found = BTreeMap::new();
        let mut waiting = vec![(String::new(), ROOT)];
        while let Some((path, directory)) = waiting.pop() {
            for (name, number, kind) in volume.list(directory).expect("a directory").into_iter().skip(2) {
                let status = volume.status(number).expect("an object");
                let path = format!("{path}/{}", name.display());
                assert!(path.len() < 1000, "a circle of directories: {path}");
                let is_directory = kind == Kind::Directory;
                if is_directory {
                    waiting.push((path.clone(), number));
                }
                let content = if is_directory { Vec::new() } else { read(volume, number, status.size) };
                let (mode, links) = (status.attributes.mode, status.links);
                found.insert(path, Found { inode: number, is_directory, mode, links, content });
            }
        }
        let snapshot = Snapshot(found);
        snapshot.check_links();
        snapshot
    }

    /// Files, each once.
    pub fn files(&self) -> usize {
        let files = self.0.values().filter(|found| !found.is_directory);
        files.map(|found| found.inode).collect::<BTreeSet<u64>>().len()
    }

    fn check_links(&self) {
        let mut names: BTreeMap<u64, u32> = BTreeMap::new();
        for found in self.0.values() {
            *names.entry(found.inode).or_default() += 1;
        }
        for (path, found) in &self.0 {
            let below = self.0.iter().filter(|(other, child)| {
                child.is_directory && other.rsplit_once('/').is_some_and(|(parent, _)| parent == path)
            });
            let expected = if found.is_directory { 2 + below.count() as u32 } else { names[&found.inode] };
            assert_eq!(found.links, expected, "links of {path}");
            assert!(!found.is_directory || names[&found.inode] == 1, "directory {path} has several names");
        }
    }
}

fn read(volume: &Volume<FolderStore>, number: u64, size: u64) -> Vec<u8> {
    let mut content = vec![0; size as usize];
    let read = volume.read(number, 0, &mut content).expect("read");
    assert_eq!(read, content.len(), "content ends before its size");
    content
}

#[derive(Debug, Default)]
struct FileModel {
    live: Vec<u8>,
    /// As last synced, and every content since, oldest first.
    since_sync: Vec<Vec<u8>>,
    /// Has a name that must be found again.
    must_be_found: bool,
    /// Was ever given a second name, or lost one: then it may be found often or never.
    names_changed: bool,
}

/// The model of one volume.
pub struct Model<'a> {
    volume: &'a Volume<FolderStore>,
    /// What each name may mean: the last is what it means now.
    names: BTreeMap<(u64, OsString), Vec<Option<u64>>>,
    directories: Vec<u64>,
    files: BTreeMap<u64, FileModel>,
    /// Whether the volume may make durable what nobody synced.
    pub writes_back: bool,
}

impl<'a> Model<'a> {
    /// A model of a volume of which everything is durable.
    pub fn new(volume: &'a Volume<FolderStore>) -> Model<'a> {
        let mut model = Model {
            volume,
            names: BTreeMap::new(),
            directories: vec![ROOT],
            files: BTreeMap::new(),
            writes_back: false,
        };
        model.read_again();
        model
    }

    fn read_again(&mut self) {
        self.names.clear();
        self.files.clear();
        self.directories = vec![ROOT];
        let mut next = 0;
        while let Some(directory) = self.directories.get(next).copied() {
            next += 1;
            for (name, number, kind) in self.volume.list(directory).expect("a directory").into_iter().skip(2)
            {
                self.names.insert((directory, name), vec![Some(number)]);
                if kind == Kind::Directory {
                    self.directories.push(number);
                    continue;
                }
                let size = self.volume.status(number).expect("a file").size;
                let live = read(self.volume, number, size);
                let linked = self.files.contains_key(&number);
                let since_sync = vec![live.clone()];
                let file = FileModel { live, since_sync, must_be_found: true, names_changed: linked };
                self.files.insert(number, file);
            }
        }
    }

    fn place(&self, (directory, name): Place) -> (u64, OsString) {
        let directory = self.directories[directory as usize % self.directories.len()];
        (directory, OsString::from(format!("n{name}")))
    }

    fn meaning(&self, place: &(u64, OsString)) -> Option<u64> {
        self.names.get(place).and_then(|meanings| meanings.last().copied().flatten())
    }

    fn file_at(&self, place: Place) -> Option<u64> {
        self.meaning(&self.place(place)).filter(|number| self.files.contains_key(number))
    }

    fn set(&mut self, place: (u64, OsString), meaning: Option<u64>) {
        self.names.entry(place).or_insert_with(|| vec![None]).push(meaning);
    }

    /// A directory that is gone is not chosen any more.
    fn leave(&mut self, number: Option<u64>) {
        if let Some(number) = number {
            self.directories.retain(|directory| *directory != number);
            if let Some(file) = self.files.get_mut(&number) {
                file.names_changed = true;
            }
        }
    }

    /// Does the step on both and compares.
    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Create(place) => self.create(*place, &NewInode::File),
            Step::MakeDirectory(place) => self.create(*place, &NewInode::Directory),
            Step::Link(old, new) => self.link(*old, *new),
            Step::Remove(place) => self.remove(*place),
            Step::Rename(old, new) => self.rename(*old, *new, RenameKind::Replace),
            Step::Exchange(one, other) => self.rename(*one, *other, RenameKind::Exchange),
            Step::Write { place, offset, bytes, fill, through } => {
                self.write(*place, *offset, *bytes, *fill, *through);
            }
            Step::Cut { place, size } => self.cut(*place, *size),
            Step::PunchHole { place, offset, bytes } => self.punch(*place, *offset, *bytes),
            Step::Mode(place, mode) => {
                if let Some(number) = self.meaning(&self.place(*place)) {
                    let change = Change { mode: Some(u32::from(*mode)), ..Change::default() };
                    self.volume.change(number, &change, NOW).expect("changed");
                }
            }
            Step::Sync(place) => self.sync(*place, Scope::All),
            Step::SyncData(place) => self.sync(*place, Scope::Data),
            Step::SyncDirectory(number) => self.sync_directory(*number),
            Step::PowerOff => self.power_off(),
        }
    }

    fn create(&mut self, place: Place, new: &NewInode) {
        let place = self.place(place);
        let attributes = Attributes::new(0o755, 0, 0, NOW);
        let made = self.volume.make(place.0, &place.1, new, attributes);
        assert_eq!(made.is_ok(), self.meaning(&place).is_none(), "create {place:?}: {made:?}");
        let Ok(status) = made else { return };
        self.volume.forget(status.inode, 1);
        match new {
            NewInode::Directory => self.directories.push(status.inode),
            _ => {
                let file = FileModel { since_sync: vec![Vec::new()], ..FileModel::default() };
                self.files.insert(status.inode, file);
            }
        }
        self.set(place, Some(status.inode));
    }

    fn link(&mut self, old: Place, new: Place) {
        let Some(number) = self.file_at(old) else { return };
        let place = self.place(new);
        let linked = self.volume.link(number, place.0, &place.1, NOW);
        assert_eq!(linked.is_ok(), self.meaning(&place).is_none(), "link {place:?}: {linked:?}");
        if linked.is_ok() {
            self.volume.forget(number, 1);
            self.set(place, Some(number));
            if let Some(file) = self.files.get_mut(&number) {
                file.names_changed = true;
            }
        }
    }

    fn remove(&mut self, place: Place) {
        let place = self.place(place);
        let Some(number) = self.meaning(&place) else { return };
        let is_directory = self.directories.contains(&number);
        let full = is_directory && self.volume.list(number).expect("a directory").len() > 2;
        let removed = self.volume.remove(place.0, &place.1, is_directory, NOW);
        assert_eq!(removed.is_ok(), !full, "remove {place:?}: {removed:?}");
        if removed.is_ok() {
            self.set(place, None);
            self.leave(Some(number));
        }
    }

    fn rename(&mut self, old: Place, new: Place, kind: RenameKind) {
        let (old, new) = (self.place(old), self.place(new));
        let renamed = self.volume.rename((old.0, &old.1), (new.0, &new.1), kind, NOW);
        if renamed.is_err() {
            return;
        }
        let (moved, target) = (self.meaning(&old), self.meaning(&new));
        assert!(moved.is_some(), "renamed {old:?}, which is not there");
        if moved == target {
            return;
        }
        match kind {
            RenameKind::Exchange => self.set(old, target),
            _ => {
                self.set(old, None);
                self.leave(target);
            }
        }
        self.set(new, moved);
    }

    fn changed(&mut self, number: u64, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(file) = self.files.get_mut(&number) {
            change(&mut file.live);
            file.since_sync.push(file.live.clone());
        }
    }

    fn write(&mut self, place: Place, offset: u16, bytes: u16, fill: u8, through: bool) {
        let Some(number) = self.file_at(place) else { return };
        let (offset, content) = (offset as usize, vec![fill; bytes as usize]);
        let scope = through.then_some(Scope::Data);
        self.volume.write(number, offset as u64, &content, scope, false, NOW).expect("written");
        self.changed(number, |live| {
            live.resize(live.len().max(offset + content.len()), 0);
            live[offset..offset + content.len()].copy_from_slice(&content);
        });
        if through {
            self.is_synced(number, Scope::Data);
        }
    }

    fn cut(&mut self, place: Place, size: u16) {
        let Some(number) = self.file_at(place) else { return };
        let change = Change { size: Some(u64::from(size)), ..Change::default() };
        self.volume.change(number, &change, NOW).expect("cut");
        self.changed(number, |live| live.resize(size as usize, 0));
    }

    fn punch(&mut self, place: Place, offset: u16, bytes: u16) {
        let Some(number) = self.file_at(place) else { return };
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.volume.allocate(number, mode, u64::from(offset), u64::from(bytes), NOW).expect("punched");
        self.changed(number, |live| {
            let end = live.len().min(offset as usize + bytes as usize);
            let start = end.min(offset as usize);
            live[start..end].fill(0);
        });
    }

    fn sync(&mut self, place: Place, scope: Scope) {
        let Some(number) = self.file_at(place) else { return };
        self.volume.sync(number, scope).expect("synced");
        self.is_synced(number, scope);
    }

    fn is_synced(&mut self, number: u64, scope: Scope) {
        let Some(file) = self.files.get_mut(&number) else { return };
        let has_another_size = file.since_sync.first().is_none_or(|synced| synced.len() != file.live.len());
        file.since_sync = vec![file.live.clone()];
        // fdatasync promises a name to a file that has none yet. Another sync may have given it an earlier one, by what
        // it depended on: then that one is enough. A size that was written back is durable, with the names of that time.
        if scope == Scope::All || has_another_size && !self.writes_back {
            for meanings in self.names.values_mut().filter(|meanings| meanings.last() == Some(&Some(number)))
            {
                meanings.drain(..meanings.len() - 1);
            }
        }
        file.must_be_found = true;
    }

    fn sync_directory(&mut self, number: u8) {
        let directory = self.directories[number as usize % self.directories.len()];
        self.volume.sync(directory, Scope::All).expect("synced");
        for ((_, _), meanings) in self.names.iter_mut().filter(|((within, _), _)| *within == directory) {
            meanings.drain(..meanings.len() - 1);
            if let Some(file) = meanings[0].and_then(|number| self.files.get_mut(&number)) {
                file.must_be_found = true;
            }
        }
    }

    fn power_off(&mut self) {
        self.volume.power_off(None).expect("taken back");
        let found = Snapshot::of(self.volume);
        let mut directories = vec![ROOT];
        directories.extend(found.0.values().filter(|found| found.is_directory).map(|found| found.inode));
        for directory in &directories {
            self.check_names(*directory);
        }
        for (number, file) in &self.files {
            let names: Vec<_> = found.0.iter().filter(|(_, found)| found.inode == *number).collect();
            if !file.names_changed {
                assert!(names.len() <= 1, "file {number} has several names: {names:?}");
                assert!(!file.must_be_found || names.len() == 1, "file {number} was durable and is lost");
            }
            for (path, found) in names {
                let as_synced = found.content == file.since_sync[0];
                let as_written_back = self.writes_back && file.since_sync.contains(&found.content);
                assert!(as_synced || as_written_back, "content of {path} is not what was synced");
            }
        }
        self.read_again();
    }

    fn check_names(&self, directory: u64) {
        let meanings = |name: &OsStr| self.names.get(&(directory, name.to_owned()));
        let here: BTreeMap<OsString, u64> = self
            .volume
            .list(directory)
            .expect("a directory")
            .into_iter()
            .skip(2)
            .map(|(name, number, _)| (name, number))
            .collect();
        for (name, number) in &here {
            let may = meanings(name).is_some_and(|meanings| meanings.contains(&Some(*number)));
            assert!(may, "{} in {directory} means {number}, never meant that", name.display());
        }
        for ((_, name), meanings) in
            self.names.range((directory, OsString::new())..(directory + 1, OsString::new()))
        {
            let may_be_missing = meanings.contains(&None);
            assert!(may_be_missing || here.contains_key(name), "{} in {directory} is lost", name.display());
        }
    }
}
