//! Components and the wires between them, in memory: what is sent arrives when a step says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use disk::mirror::{Acknowledge, Answer, Differences, Dirt, Frame, Incoming, Mirror, Next, Policy, Standing};
use disk::{
    Attributes, Change, Disk, Files, Flush, FolderStore, Kind, Limits, NewInode, OnDisk, ROOT, Refusal,
    RenameKind, Scope, Volume, ask,
};

const NOW: SystemTime = SystemTime::UNIX_EPOCH;
const LENGTH_BYTES: usize = 4;

/// What a component lies on.
pub type Below = OnDisk<FolderStore>;

/// A name in a directory: both by number.
pub type Place = (u8, u8);

/// One step.
#[derive(Debug, Clone)]
pub enum Step {
    Create(Place),
    MakeDirectory(Place),
    MakeLink(Place),
    Link(Place, Place),
    Remove(Place),
    Rename(Place, Place),
    Exchange(Place, Place),
    Write { place: Place, offset: u16, bytes: u16, fill: u8 },
    Cut { place: Place, size: u16 },
    PunchHole { place: Place, offset: u16, bytes: u16 },
    Mode(Place, u8),
    Extended(Place, u8),
    Sync(Place),
    SyncDirectory(u8),
    Deliver { peer: usize, frames: u8 },
    Break(usize),
    PeerPowerOff(usize),
    Connect(usize),
}

/// What one name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    inode: u64,
    kind: Kind,
    attributes: (u16, u32, u32),
    links: u32,
    extended: Vec<(OsString, Vec<u8>)>,
    pub content: Vec<u8>,
}

impl Found {
    pub fn without_number(self) -> Found {
        Found { inode: 0, ..self }
    }
}

pub struct Component {
    pub volume: Arc<Volume<Below>>,
    folder: tempfile::TempDir,
}

/// The way to one of the other components.
pub struct Wire {
    pub component: usize,
    connection: Option<u64>,
    frames: VecDeque<Frame>,
}

/// The components, the one that serves, and what must survive.
pub struct TestMirror {
    pub components: Vec<Component>,
    pub serving: usize,
    policy: Policy,
    pub mirror: Arc<Mirror<Below>>,
    pub wires: Vec<Wire>,
    pub differences: Differences,
    /// Decides which sectors of a torn last write survive; none where writes are not torn.
    chance: Option<u64>,
    /// A planted omission: what a power-off changed is not marked.
    forgets_what_was_lost: bool,
    /// For each file, by number: what it held at the last acknowledged sync, and all that it has held since.
    synced: BTreeMap<u64, Vec<Vec<u8>>>,
}

impl TestMirror {
    pub fn new(components: usize, acknowledge: Acknowledge, limits: Limits) -> TestMirror {
        let component = |_| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            Component { volume: volume_in(folder.path(), limits), folder }
        };
        let components: Vec<Component> = (0..components).map(component).collect();
        // Nobody is ever too slow here.
        let policy = Policy { acknowledge, buffer_bytes: 1 << 30, timeout: Duration::from_secs(3_600) };
        let lacking = vec![Dirt::new(); components.len() - 1];
        let mirror = Arc::new(Mirror::new(components[0].volume.clone(), policy, lacking, 0, None));
        let wires = wires_from(0, components.len());
        TestMirror {
            components,
            serving: 0,
            policy,
            mirror,
            wires,
            differences: Differences::default(),
            chance: None,
            forgets_what_was_lost: false,
            synced: BTreeMap::new(),
        }
    }

    /// The same with power-offs that tear the last write of every component that they take, by chance.
    pub fn tearing(self, seed: u64) -> TestMirror {
        TestMirror { chance: Some(seed), ..self }
    }

    /// The same with a planted omission: nobody hears what a power-off changed.
    pub fn forgetting_what_was_lost(self) -> TestMirror {
        TestMirror { forgets_what_was_lost: true, ..self }
    }

    pub fn bytes_copied(&self, peer: usize) -> u64 {
        self.mirror.state(peer).bytes_copied
    }

    /// Does one step; what the volume refuses is part of life.
    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Deliver { peer, frames } => {
                for _ in 0..*frames {
                    self.fetch(*peer);
                    self.deliver(*peer);
                }
            }
            Step::Break(peer) => self.break_wire(*peer),
            Step::PeerPowerOff(peer) => {
                self.break_wire(*peer);
                self.power_off(self.wires[*peer].component);
            }
            Step::Connect(peer) => self.connect(*peer),
            Step::Sync(place) => {
                let _ = number(self.mirror.as_ref(), *place).and_then(|number| self.sync(number));
                self.note();
            }
            Step::SyncDirectory(index) => {
                let _ = self.sync(directory(self.mirror.as_ref(), *index));
                self.note();
            }
            change => {
                let _ = carry_out(self.mirror.as_ref(), change);
                self.note();
            }
        }
    }

    fn power_off(&mut self, component: usize) {
        let mut lost = Dirt::new();
        let volume = &self.components[component].volume;
        match &mut self.chance {
            None => volume.power_off_of_component(None, &mut lost),
            Some(chance) => volume.power_off_of_component(Some(&mut || coin(chance)), &mut lost),
        }
        .expect("power off");
        if !self.forgets_what_was_lost {
            self.differences.lost(component, &lost);
        }
    }

    /// Syncs, while all wires that stand deliver.
    fn sync(&mut self, number: u64) -> Result<(), Refusal> {
        let mirror = self.mirror.clone();
        let syncing = std::thread::spawn(move || mirror.sync(number, Scope::All));
        while !syncing.is_finished() {
            self.let_all_deliver();
        }
        syncing.join().expect("no panic")?;
        if self.mirror.status(number)?.kind == Kind::File {
            self.synced.insert(number, vec![content(&self.components[self.serving].volume, number)]);
        }
        Ok(())
    }

    /// One frame over each wire that stands.
    pub fn let_all_deliver(&mut self) {
        for peer in 0..self.wires.len() {
            self.fetch(peer);
            self.deliver(peer);
        }
    }

    /// Notes what synced files hold now; those without a name need not survive any more.
    fn note(&mut self) {
        let volume = &self.components[self.serving].volume;
        self.synced.retain(|number, held| {
            let named = volume.status(*number).is_ok_and(|status| status.links > 0);
            if named {
                held.push(content(volume, *number));
            }
            named
        });
    }

    fn connect(&mut self, peer: usize) {
        let wire = &mut self.wires[peer];
        wire.frames.clear();
        let lost = self.differences.take_lost(wire.component);
        wire.connection = self.mirror.connect(peer, &lost);
    }

    fn break_wire(&mut self, peer: usize) {
        let wire = &mut self.wires[peer];
        wire.frames.clear();
        if let Some(connection) = wire.connection.take() {
            self.mirror.connection_broke(peer, connection);
        }
    }

    /// Puts the next frame on a wire.
    fn fetch(&mut self, peer: usize) {
        let Some(connection) = self.wires[peer].connection else { return };
        if let Next::Send(frame) = self.mirror.next(peer, connection, Duration::ZERO) {
            self.wires[peer].frames.push_back(frame);
        }
    }

    /// Lets the oldest frame of a wire arrive, and the answer to it. Returns whether there was one.
    fn deliver(&mut self, peer: usize) -> bool {
        let wire = &mut self.wires[peer];
        let (Some(frame), Some(connection)) = (wire.frames.pop_front(), wire.connection) else {
            return false;
        };
        let message = Incoming::read(&frame[LENGTH_BYTES..]).expect("a message");
        let volume = &self.components[wire.component].volume;
        message.carry_out(volume, None).unwrap_or_else(|error| panic!("{error}"));
        let answer = Answer { received: message.sequence(), applied: message.sequence() };
        self.mirror.answered(peer, connection, answer);
        true
    }

    /// Connects all and delivers until all are live.
    pub fn bring_together(&mut self) {
        for peer in 0..self.wires.len() {
            if self.wires[peer].connection.is_none() {
                self.connect(peer);
            }
            loop {
                self.fetch(peer);
                if !self.deliver(peer) {
                    break;
                }
            }
            assert_eq!(self.mirror.state(peer).standing, Standing::Live);
        }
    }

    /// The component that serves loses power, with it the node; another that is live takes over, if there is one.
    pub fn take_over(&mut self) {
        let live = (0..self.wires.len()).find(|peer| self.mirror.state(*peer).standing == Standing::Live);
        let Some(next) = live else { return };
        let component = self.wires[next].component;
        self.move_to(component);
        let found = snapshot(&self.components[component].volume);
        for (number, held) in &self.synced {
            let survived = found.values().find(|found| found.inode == *number);
            let survived = survived.unwrap_or_else(|| panic!("file {number} is gone"));
            let is_held = match self.chance {
                None => held.contains(&survived.content),
                // Of a torn write each sector is old or new by itself.
                Some(_) => is_made_of(&survived.content, held),
            };
            assert!(is_held, "file {number} holds what it never held since its sync");
        }
        self.synced.clear();
    }

    /// The same with the next component, whatever it lacks.
    pub fn take_over_by_force(&mut self) {
        self.move_to((self.serving + 1) % self.components.len());
        self.synced.clear();
    }

    fn move_to(&mut self, next: usize) {
        for peer in 0..self.wires.len() {
            // What has arrived is carried out.
            while self.deliver(peer) {}
        }
        let others: Vec<usize> = self.wires.iter().map(|wire| wire.component).collect();
        self.differences.ended(others.into_iter().zip(self.mirror.end()));
        // The node's death takes from every component what was not synced.
        for component in 0..self.components.len() {
            self.power_off(component);
        }
        self.serve_from(next);
    }

    /// Another component serves from here on; none of the others is connected.
    pub fn serve_from(&mut self, next: usize) {
        let wires = wires_from(next, self.components.len());
        let others: Vec<usize> = wires.iter().map(|wire| wire.component).collect();
        let lacking = self.differences.serve_from(next, &others);
        self.mirror = Arc::new(Mirror::new(
            self.components[next].volume.clone(),
            self.policy,
            lacking,
            self.differences.generation(),
            None,
        ));
        (self.serving, self.wires) = (next, wires);
    }

    pub fn check_equal(&self) {
        let all: Vec<_> = self.components.iter().map(|component| snapshot(&component.volume)).collect();
        for (number, other) in all.iter().enumerate() {
            for (path, found) in other {
                let serving = &all[self.serving][path];
                let differ = found.content.iter().zip(&serving.content).position(|(one, other)| one != other);
                if let Some(at) = differ {
                    let sizes = (found.content.len(), serving.content.len());
                    let bytes = (found.content[at], serving.content[at]);
                    panic!("component {number}, {path}: differs at {at}: {bytes:?} of {sizes:?}");
                }
            }
            assert_eq!(other, &all[self.serving], "component {number} against {}", self.serving);
            let numbers: BTreeSet<String> = std::fs::read_dir(self.components[number].folder.path())
                .expect("a folder")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            for found in other.values().filter(|found| found.kind == Kind::File) {
                assert!(numbers.contains(&found.inode.to_string()));
            }
        }
        // Equal also after a power-off: all of it is durable where it was copied, and synced where it was replicated.
    }
}

fn directory(first: &dyn Files, index: u8) -> u64 {
    let mut directories = vec![ROOT];
    let mut at = 0;
    while at < directories.len() {
        let listed = ask(first, |files| files.list(directories[at])).expect("a directory");
        for (_, number, kind) in listed.into_iter().skip(2) {
            if kind == Kind::Directory {
                directories.push(number);
            }
        }
        at += 1;
    }
    directories[usize::from(index) % directories.len()]
}

fn number(first: &dyn Files, place: Place) -> Result<u64, Refusal> {
    let (directory, name) = (directory(first, place.0), name(place.1));
    let number = ask(first, |files| files.look_up(directory, &name))?.inode;
    forget(first, number);
    Ok(number)
}

fn forget(first: &dyn Files, number: u64) {
    let forgotten = ask(first, |files| {
        files.forget(number, 1);
        Ok(())
    });
    forgotten.expect("nothing refuses that");
}

/// Does a step that changes something, as a mount does it.
pub fn carry_out(first: &dyn Files, step: &Step) -> Result<(), Refusal> {
    let attributes = Attributes::new(0o644, 7, 7, NOW);
    let make = |place: Place, new: &NewInode| {
        let (directory, name) = (directory(first, place.0), name(place.1));
        let made = ask(first, |files| files.make(directory, &name, new, attributes))?;
        forget(first, made.inode);
        Ok(())
    };
    let rename = |old: Place, new: Place, kind| {
        let (from, to) = (directory(first, old.0), directory(first, new.0));
        let (old, new) = (name(old.1), name(new.1));
        ask(first, |files| files.rename((from, &old), (to, &new), kind, NOW))
    };
    match *step {
        Step::Create(place) => make(place, &NewInode::File),
        Step::MakeDirectory(place) => make(place, &NewInode::Directory),
        Step::MakeLink(place) => make(place, &NewInode::SymbolicLink("elsewhere".into())),
        Step::Link(old, new) => {
            let number = number(first, old)?;
            let (directory, name) = (directory(first, new.0), name(new.1));
            ask(first, |files| files.link(number, directory, &name, NOW))?;
            forget(first, number);
            Ok(())
        }
        Step::Remove(place) => {
            let found = number(first, place)?;
            let is_directory = ask(first, |files| files.status(found))?.kind == Kind::Directory;
            let (directory, name) = (directory(first, place.0), name(place.1));
            ask(first, |files| files.remove(directory, &name, is_directory, NOW))
        }
        Step::Rename(old, new) => rename(old, new, RenameKind::Replace),
        Step::Exchange(old, new) => rename(old, new, RenameKind::Exchange),
        Step::Write { place, offset, bytes, fill } => {
            let (number, content) = (number(first, place)?, vec![fill; usize::from(bytes)]);
            ask(first, |files| files.write(number, u64::from(offset), &content, None, false, NOW))
        }
        Step::Cut { place, size } => {
            let change = Change { size: Some(u64::from(size)), ..Change::default() };
            let number = number(first, place)?;
            ask(first, |files| files.change(number, &change, NOW)).map(drop)
        }
        Step::PunchHole { place, offset, bytes } => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let number = number(first, place)?;
            ask(first, |files| files.allocate(number, mode, u64::from(offset), u64::from(bytes), NOW))
        }
        Step::Mode(place, mode) => {
            let change = Change { mode: Some(u32::from(mode)), ..Change::default() };
            let number = number(first, place)?;
            ask(first, |files| files.change(number, &change, NOW)).map(drop)
        }
        Step::Extended(place, value) => {
            let number = number(first, place)?;
            let value = [value];
            let value = (value[0] % 3 > 0).then_some(&value[..]);
            ask(first, |files| files.set_extended(number, OsStr::new("user.mark"), value, None, NOW))
        }
        Step::Sync(place) => {
            let number = number(first, place)?;
            ask(first, |files| files.sync(number, Scope::All))
        }
        Step::SyncDirectory(index) => {
            let number = directory(first, index);
            ask(first, |files| files.sync(number, Scope::All))
        }
        _ => Ok(()),
    }
}

/// An empty volume on a sound disk.
pub fn volume_in(folder: &Path, limits: Limits) -> Arc<Volume<Below>> {
    let store = OnDisk::new(FolderStore::new(folder, Flush::Pretended), Disk::alone("d"));
    Arc::new(Volume::new(store, limits, 0, 0, NOW))
}

/// A step of Knuth's linear congruential generator (MMIX), of which the upper bits are the better ones.
fn coin(state: &mut u64) -> bool {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 63 == 1
}

/// Whether content has the length of one of these and each sector of it is one of theirs in the same place.
fn is_made_of(content: &[u8], held: &[Vec<u8>]) -> bool {
    const SECTOR: usize = disk::SECTOR_BYTES as usize;
    let sector = |content: &[u8], at: usize| content.chunks(SECTOR).nth(at).map(<[u8]>::to_vec);
    let of_one = |(at, found): (usize, &[u8])| {
        // A sector may reach beyond the end of an older, shorter version.
        held.iter()
            .any(|held| sector(held, at).is_some_and(|of| of.starts_with(found) || found.starts_with(&of)))
    };
    held.iter().any(|held| held.len() == content.len()) && content.chunks(SECTOR).enumerate().all(of_one)
}

fn wires_from(serving: usize, components: usize) -> Vec<Wire> {
    let others = (0..components).filter(|component| *component != serving);
    others.map(|component| Wire { component, connection: None, frames: VecDeque::new() }).collect()
}

fn name(number: u8) -> OsString {
    format!("f{number}").into()
}

fn content(volume: &Volume<Below>, number: u64) -> Vec<u8> {
    let size = volume.status(number).expect("a file").size;
    let mut content = vec![0; usize::try_from(size).expect("small")];
    let read = volume.read(number, 0, &mut content).expect("read");
    assert_eq!(read as u64, size);
    content
}

/// Everything that a walk through a volume finds, by path.
pub fn snapshot(volume: &Volume<Below>) -> BTreeMap<String, Found> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![(String::new(), ROOT)];
    while let Some((path, directory)) = waiting.pop() {
        for (name, number, kind) in volume.list(directory).expect("a directory").into_iter().skip(2) {
            let status = volume.status(number).expect("an object");
            let path = format!("{path}/{}", name.display());
            assert!(path.len() < 1_000, "a circle of directories: {path}");
            if kind == Kind::Directory {
                waiting.push((path.clone(), number));
            }
            let content = match kind {
                Kind::File => content(volume, number),
                Kind::SymbolicLink => volume.target(number).expect("a target").into_encoded_bytes(),
                _ => Vec::new(),
            };
            let names = volume.list_extended(number).expect("names");
            let value = |name: OsString| (name.clone(), volume.extended(number, &name).expect("a value"));
            let extended = names.into_iter().map(value).collect();
            let of = status.attributes;
            let (attributes, links) = ((of.mode, of.user, of.group), status.links);
            all.insert(path, Found { inode: number, kind, attributes, links, extended, content });
        }
    }
    all
}
