//! A volume as it is mounted on a host that holds no component of it: every operation is asked of the host of the one that serves.
//!
//! Owns turning operations into requests and answers back; a [`Carrier`] brings them there. What the kernel keeps of names,
//! attributes and pages it keeps as of any volume, because nobody else changes it while it is mounted: only what it asks for
//! crosses the network.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::SystemTime;

use crate::Refusal;
use crate::attributes::{Attributes, Change, Kind, Status};
use crate::files::Files;
use crate::mirror::operation::New;
use crate::mirror::request::{Answer, Answered, Request};
use crate::store::{Seek, Space};
use crate::succession::{MOVED, Succession};
use crate::tree::RenameKind;
use crate::volume::{NewInode, Scope};
use crate::waits::elsewhere;

/// What a request does, for whoever measures how long each takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Content is read.
    Read,
    /// Content is written.
    Write,
    /// Something is made durable.
    Sync,
    /// Names and attributes.
    Names,
}

/// Brings requests to the host of the component that serves, and answers back: each is carried out once, however often it had
/// to be sent.
pub trait Carrier: Send + Sync + 'static {
    /// Brings one request there, and returns its answer.
    ///
    /// # Errors
    /// `EIO` once it is interrupted.
    fn carry(&self, work: Work, request: &[u8]) -> Result<Vec<u8>, Refusal>;

    /// From here on nobody waits, those included who do now.
    fn interrupt(&self);
}

/// A volume that is served on another host.
#[derive(Debug)]
pub struct Remote<C> {
    carrier: C,
    succession: Succession,
}

impl<C: Carrier> Remote<C> {
    /// The volume behind a carrier.
    #[must_use]
    pub fn new(carrier: C) -> Remote<C> {
        Remote { carrier, succession: Succession::default() }
    }

    /// What brings requests to the component and its answers back.
    #[must_use]
    pub fn carrier(&self) -> &C {
        &self.carrier
    }

    /// From here on `next` is asked, also by whoever is waiting here once [`Carrier::interrupt`] was called.
    pub fn move_to(&self, next: Arc<dyn Files>) {
        self.succession.set(next);
    }

    fn ask(&self, work: Work, request: &Request<'_>) -> Result<Answered, Refusal> {
        let request = postcard::to_allocvec(request).map_err(|_| Refusal::EIO)?;
        let answer = elsewhere(|| self.carrier.carry(work, &request))?;
        let answer: Answer = postcard::from_bytes(&answer).map_err(|_| Refusal::EIO)?;
        answer.map_err(Refusal::from_raw)
    }

    fn status_of(&self, request: &Request<'_>) -> Result<Status, Refusal> {
        match self.ask(Work::Names, request)? {
            Answered::Status(status) => Ok(status),
            _ => Err(Refusal::EIO),
        }
    }

    fn bytes_of(&self, work: Work, request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
        match self.ask(work, request)? {
            Answered::Bytes(bytes) => Ok(bytes),
            _ => Err(Refusal::EIO),
        }
    }

    fn do_it(&self, work: Work, request: &Request<'_>) -> Result<(), Refusal> {
        match self.ask(work, request)? {
            Answered::Nothing => Ok(()),
            _ => Err(Refusal::EIO),
        }
    }
}

impl<C: Carrier> Files for Remote<C> {
    fn look_up(&self, directory: u64, name: &OsStr) -> Result<Status, Refusal> {
        self.status_of(&Request::LookUp { directory, name: name.as_bytes() })
    }

    fn forget(&self, number: u64, times: u64) {
        // Whoever cannot be told any more serves no more.
        let _ = self.do_it(Work::Names, &Request::Forget { number, times });
    }

    fn status(&self, number: u64) -> Result<Status, Refusal> {
        self.status_of(&Request::Status(number))
    }

    fn change(&self, number: u64, change: &Change, now: SystemTime) -> Result<Status, Refusal> {
        self.status_of(&Request::Change { number, change: *change, now })
    }

    fn make(
        &self,
        directory: u64,
        name: &OsStr,
        new: &NewInode,
        attributes: Attributes,
    ) -> Result<Status, Refusal> {
        let (name, new) = (name.as_bytes(), New::of(new));
        self.status_of(&Request::Make { directory, name, new, attributes })
    }

    fn link(&self, number: u64, directory: u64, name: &OsStr, now: SystemTime) -> Result<Status, Refusal> {
        self.status_of(&Request::Link { number, directory, name: name.as_bytes(), now })
    }

    fn remove(
        &self,
        directory: u64,
        name: &OsStr,
        is_directory: bool,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let name = name.as_bytes();
        self.do_it(Work::Names, &Request::Remove { directory, name, is_directory, now })
    }

    fn rename(
        &self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        kind: RenameKind,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let (directory, name) = (from.0, from.1.as_bytes());
        let (new_directory, new_name) = (to.0, to.1.as_bytes());
        self.do_it(Work::Names, &Request::Rename { directory, name, new_directory, new_name, kind, now })
    }

    fn target(&self, number: u64) -> Result<OsString, Refusal> {
        self.bytes_of(Work::Names, &Request::Target(number)).map(OsString::from_vec)
    }

    fn list(&self, directory: u64) -> Result<Vec<(OsString, u64, Kind)>, Refusal> {
        match self.ask(Work::Names, &Request::List(directory))? {
            Answered::Names(names) => {
                let own = |(name, number, kind)| (OsString::from_vec(name), number, kind);
                Ok(names.into_iter().map(own).collect())
            }
            _ => Err(Refusal::EIO),
        }
    }

    fn extended(&self, number: u64, name: &OsStr) -> Result<Vec<u8>, Refusal> {
        self.bytes_of(Work::Names, &Request::Extended { number, name: name.as_bytes() })
    }

    fn list_extended(&self, number: u64) -> Result<Vec<OsString>, Refusal> {
        match self.ask(Work::Names, &Request::ListExtended(number))? {
            Answered::Words(names) => Ok(names.into_iter().map(OsString::from_vec).collect()),
            _ => Err(Refusal::EIO),
        }
    }

    fn set_extended(
        &self,
        number: u64,
        name: &OsStr,
        value: Option<&[u8]>,
        must_exist: Option<bool>,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let name = name.as_bytes();
        self.do_it(Work::Names, &Request::SetExtended { number, name, value, must_exist, now })
    }

    fn space(&self) -> Result<Space, Refusal> {
        match self.ask(Work::Names, &Request::Space)? {
            Answered::Space(space) => Ok(space),
            _ => Err(Refusal::EIO),
        }
    }

    fn open(&self, number: u64) -> Result<(), Refusal> {
        self.do_it(Work::Names, &Request::Open(number))
    }

    fn release(&self, number: u64) {
        // Whoever cannot be told any more serves no more.
        let _ = self.do_it(Work::Names, &Request::Release(number));
    }

    fn read(&self, number: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Refusal> {
        let bytes = u32::try_from(buffer.len()).map_err(|_| Refusal::EINVAL)?;
        let content = self.bytes_of(Work::Read, &Request::Read { number, offset, bytes })?;
        let room = buffer.get_mut(..content.len()).ok_or(Refusal::EIO)?;
        room.copy_from_slice(&content);
        Ok(content.len())
    }

    fn write(
        &self,
        number: u64,
        offset: u64,
        content: &[u8],
        through: Option<Scope>,
        by_unprivileged: bool,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let request = Request::Write { number, offset, content, through, by_unprivileged, now };
        self.do_it(Work::Write, &request)
    }

    fn allocate(
        &self,
        number: u64,
        mode: i32,
        offset: u64,
        bytes: u64,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.do_it(Work::Write, &Request::Allocate { number, mode, offset, bytes, now })
    }

    fn seek(&self, number: u64, offset: u64, to: Seek) -> Result<u64, Refusal> {
        match self.ask(Work::Names, &Request::Seek { number, offset, to })? {
            Answered::Offset(offset) => Ok(offset),
            _ => Err(Refusal::EIO),
        }
    }

    fn sync(&self, number: u64, scope: Scope) -> Result<(), Refusal> {
        self.do_it(Work::Sync, &Request::Sync { number, scope })
    }

    fn interrupt(&self, interrupted: bool) {
        if interrupted {
            self.carrier.interrupt();
        }
        if let Some(next) = self.succession.next() {
            next.interrupt(interrupted);
        }
    }

    fn next(&self) -> Option<&dyn Files> {
        self.succession.next()
    }

    fn moves_on(&self, refusal: Refusal) -> bool {
        matches!(refusal, MOVED | Refusal::EIO) && self.succession.next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::answer;
    use crate::store::{Flush, FolderStore};
    use crate::tree::ROOT;
    use crate::volume::{Limits, Volume};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    /// Both hosts in one process.
    struct Loopback(Arc<Volume<FolderStore>>);

    impl Carrier for Loopback {
        fn carry(&self, _: Work, request: &[u8]) -> Result<Vec<u8>, Refusal> {
            Ok(answer(self.0.as_ref(), request))
        }
        fn interrupt(&self) {}
    }

    fn test_remote() -> (tempfile::TempDir, Arc<Volume<FolderStore>>, Remote<Loopback>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = FolderStore::new(folder.path(), Flush::Pretended);
        let volume = Arc::new(Volume::new(store, Limits::default(), 0, 0, NOW));
        let remote = Remote::new(Loopback(volume.clone()));
        (folder, volume, remote)
    }

    #[test]
    fn what_is_done_from_afar_is_done_on_the_volume_and_seen_the_same_from_both() {
        let (_folder, volume, remote) = test_remote();
        let attributes = Attributes::new(0o644, 7, 7, NOW);
        let name = |text: &'static str| OsStr::new(text);
        let made = remote.make(ROOT, name("a"), &NewInode::File, attributes).expect("made");
        remote.open(made.inode).expect("opened");
        remote.write(made.inode, 3, b"content", Some(Scope::Data), false, NOW).expect("written");
        let link = NewInode::SymbolicLink("a".into());
        let link = remote.make(ROOT, name("l"), &link, attributes).expect("made");
        remote.set_extended(made.inode, name("user.x"), Some(b"y"), None, NOW).expect("set");
        remote.rename((ROOT, name("a")), (ROOT, name("b")), RenameKind::Replace, NOW).expect("renamed");
        remote.link(made.inode, ROOT, name("c"), NOW).expect("linked");
        remote.remove(ROOT, name("c"), false, NOW).expect("removed");
        remote.allocate(made.inode, 0, 0, 8_192, NOW).expect("allocated");
        remote.sync(ROOT, Scope::All).expect("synced");
        let mut buffer = [9; 100];
        let read = remote.read(made.inode, 0, &mut buffer).expect("read");
        assert_eq!((read, &buffer[..10]), (100, &b"\0\0\0content"[..]));
        let near: &dyn Files = volume.as_ref();
        assert_eq!(remote.status(made.inode), near.status(made.inode));
        assert_eq!(remote.list(ROOT), near.list(ROOT));
        assert_eq!(remote.target(link.inode).expect("a target"), "a");
        assert_eq!(remote.extended(made.inode, name("user.x")), Ok(b"y".to_vec()));
        assert_eq!(remote.list_extended(made.inode), near.list_extended(made.inode));
        assert_eq!(remote.seek(made.inode, 0, Seek::Data), near.seek(made.inode, 0, Seek::Data));
        assert_eq!(remote.space().map(|space| space.block_bytes), near.space().map(|of| of.block_bytes));
        // What was not synced when the power went is gone there as well.
        remote.write(made.inode, 0, b"later", None, false, NOW).expect("written");
        volume.power_off(None).expect("power off");
        let found = remote.look_up(ROOT, name("b")).expect("there");
        let read = remote.read(found.inode, 0, &mut buffer).expect("read");
        assert_eq!(&buffer[..read.min(10)], &b"\0\0\0content"[..]);
    }

    #[test]
    fn a_refusal_keeps_its_number_and_nonsense_is_refused() {
        let (_folder, volume, remote) = test_remote();
        assert_eq!(remote.look_up(ROOT, OsStr::new("nobody")).map(drop), Err(Refusal::ENOENT));
        assert_eq!(remote.list(77).map(drop), volume.list(77).map(drop));
        let refused: Answer =
            postcard::from_bytes(&answer(volume.as_ref(), &[250, 1, 2])).expect("an answer");
        assert_eq!(refused, Err(Refusal::EIO as i32));
    }
}
