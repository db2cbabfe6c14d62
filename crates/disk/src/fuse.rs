//! The kernel's requests, turned into calls of a volume, and its answers turned back.
//!
//! The only file that speaks FUSE and, with the mount's time of day, the only one that reads a clock. Every request passes the power's gate first: when
//! the power is off it gets `EIO`, so that no process waits for a dead disk.
//!
//! The kernel checks permissions itself (`default_permissions`) and may keep names, attributes and pages for as long as
//! it likes: nobody else changes the volume while it is mounted.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLockReadGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};

use crate::Refusal;
use crate::attributes::{Attributes, Change, Kind, Status};
use crate::block_log::BLOCK_BYTES;
use crate::cpu::CpuTime;
use crate::files::Files;
use crate::power::Power;
use crate::store::Seek;
use crate::succession::ask;
use crate::tree::RenameKind;
use crate::volume::{NewInode, Scope};
use crate::waits::{Waits, Work};

/// How long the kernel may keep names and attributes.
const KEEP: Duration = Duration::from_secs(3600);
/// Bytes of one write request at most: what the kernel allows by default, and each thread keeps a buffer of.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// A name in a listing, with what it leads to.
type Listed = (OsString, u64, Kind);

/// The clock that files are stamped by; the machine's where it is not set.
pub(crate) type TimeOfDay = OnceLock<Box<dyn Fn() -> SystemTime + Send + Sync>>;

/// A volume as one mount serves it.
pub(crate) struct Served {
    pub(crate) volume: Arc<dyn Files>,
    pub(crate) power: Arc<Power>,
    pub(crate) cpu: Arc<CpuTime>,
    /// Under way now.
    requests: Arc<Waits>,
    time_of_day: Arc<TimeOfDay>,
    listings: Mutex<BTreeMap<u64, Arc<Vec<Listed>>>>,
    next_listing: AtomicU64,
}

/// A request under way, while there is power.
struct UnderWay<'a> {
    _power: RwLockReadGuard<'a, ()>,
    _work: Work,
}

impl Served {
    pub(crate) fn new(
        volume: Arc<dyn Files>,
        power: Arc<Power>,
        cpu: Arc<CpuTime>,
        requests: Arc<Waits>,
        time_of_day: Arc<TimeOfDay>,
    ) -> Served {
        let (listings, next_listing) = (Mutex::default(), AtomicU64::new(1));
        Served { volume, power, cpu, requests, time_of_day, listings, next_listing }
    }

    /// What files are stamped with.
    fn now(&self) -> SystemTime {
        self.time_of_day.get().map_or_else(SystemTime::now, |now| now())
    }

    fn pass(&self) -> Result<UnderWay<'_>, Refusal> {
        self.cpu.follow();
        let power = self.power.pass().ok_or(Refusal::EIO)?;
        Ok(UnderWay { _power: power, _work: self.requests.work() })
    }

    /// Asks whatever serves at the moment, if there is power.
    fn ask<T>(&self, operation: impl FnMut(&dyn Files) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let _power = self.pass()?;
        ask(self.volume.as_ref(), operation)
    }

    fn listings(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Vec<Listed>>>> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new: &NewInode,
        mode: u32,
    ) -> Result<Status, Refusal> {
        let attributes = Attributes::new(mode, request.uid(), request.gid(), self.now());
        self.ask(|files| files.make(parent.0, name, new, attributes))
    }
}

fn errno(refusal: Refusal) -> Errno {
    Errno::from_i32(refusal as i32)
}

fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::SymbolicLink => FileType::Symlink,
        Kind::Pipe => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
    }
}

fn attributes_of(status: &Status) -> FileAttr {
    FileAttr {
        ino: INodeNo(status.inode),
        size: status.size,
        blocks: status.sectors,
        atime: status.attributes.accessed,
        mtime: status.attributes.modified,
        ctime: status.attributes.changed,
        crtime: SystemTime::UNIX_EPOCH,
        kind: file_type(status.kind),
        perm: status.attributes.mode,
        nlink: status.links,
        uid: status.attributes.user,
        gid: status.attributes.group,
        rdev: status.device,
        // A few thousand.
        blksize: BLOCK_BYTES as u32,
        flags: 0,
    }
}

fn answer_entry(result: Result<Status, Refusal>, reply: ReplyEntry) {
    match result {
        Ok(status) => reply.entry(&KEEP, &attributes_of(&status), Generation(0)),
        Err(refusal) => reply.error(errno(refusal)),
    }
}

fn answer_attributes(result: Result<Status, Refusal>, reply: ReplyAttr) {
    match result {
        Ok(status) => reply.attr(&KEEP, &attributes_of(&status)),
        Err(refusal) => reply.error(errno(refusal)),
    }
}

fn answer_empty(result: Result<(), Refusal>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(refusal) => reply.error(errno(refusal)),
    }
}

fn answer_extended(result: Result<Vec<u8>, Refusal>, size: u32, reply: ReplyXattr) {
    match result {
        // The kernel limits values and lists to 64 KiB.
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(refusal) => reply.error(errno(refusal)),
    }
}

fn moment(time: Option<TimeOrNow>, now: SystemTime) -> Option<SystemTime> {
    time.map(|time| match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => now,
    })
}

/// What a write with these flags of its opening makes durable (open(2)): `O_SYNC` contains the bit of `O_DSYNC`.
fn write_through(flags: i32) -> Option<Scope> {
    match flags & libc::O_SYNC {
        libc::O_SYNC => Some(Scope::All),
        0 => None,
        _ => Some(Scope::Data),
    }
}

impl Filesystem for Served {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without this the kernel asks for an extended attribute before every write. A kernel that does not know it is
        // slower and does the same.
        let _ = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2);
        // What is refused here is set to the nearest value that is not.
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer_entry(self.ask(|files| files.look_up(parent.0, name)), reply);
    }

    fn forget(&self, _request: &Request, number: INodeNo, times: u64) {
        // After a power-off the volume has forgotten by itself, and may be mounted anew.
        let _ = self.ask(|files| {
            files.forget(number.0, times);
            Ok(())
        });
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        answer_attributes(self.ask(|files| files.status(number.0)), reply);
    }

    fn setattr(
        &self,
        _request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _altered: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let now = self.now();
        let (accessed, modified) = (moment(accessed, now), moment(modified, now));
        let change = Change { mode, user, group, size, accessed, modified };
        answer_attributes(self.ask(|files| files.change(number.0, &change, now)), reply);
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        match self.ask(|files| files.target(number.0)) {
            Ok(target) => reply.data(target.as_encoded_bytes()),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let new = match mode & libc::S_IFMT {
            0 | libc::S_IFREG => NewInode::File,
            libc::S_IFIFO => NewInode::Device(Kind::Pipe, 0),
            libc::S_IFSOCK => NewInode::Device(Kind::Socket, 0),
            libc::S_IFCHR => NewInode::Device(Kind::CharacterDevice, device),
            libc::S_IFBLK => NewInode::Device(Kind::BlockDevice, device),
            _ => return reply.error(Errno::EINVAL),
        };
        answer_entry(self.make(request, parent, name, &new, mode & !umask), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        answer_entry(self.make(request, parent, name, &NewInode::Directory, mode & !umask), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.ask(|files| files.remove(parent.0, name, false, self.now()));
        answer_empty(removed, reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.ask(|files| files.remove(parent.0, name, true, self.now()));
        answer_empty(removed, reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let new = NewInode::SymbolicLink(target.as_os_str().to_owned());
        answer_entry(self.make(request, parent, name, &new, 0o777), reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let kind = match flags.bits() {
            0 => RenameKind::Replace,
            libc::RENAME_NOREPLACE => RenameKind::KeepExisting,
            libc::RENAME_EXCHANGE => RenameKind::Exchange,
            _ => return reply.error(Errno::EINVAL),
        };
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        let renamed = self.ask(|files| files.rename(from, to, kind, self.now()));
        answer_empty(renamed, reply);
    }

    fn link(&self, _request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.ask(|files| files.link(number.0, parent.0, name, self.now()));
        answer_entry(linked, reply);
    }

    fn open(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.ask(|files| files.open(number.0)) {
            Ok(()) => reply.opened(FileHandle(number.0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.make(request, parent, name, &NewInode::File, mode & !umask);
        let opened = made.and_then(|status| {
            let opened = self.ask(|files| files.open(status.inode));
            // The kernel does not know of it then, and would never forget it.
            opened.inspect_err(|_| self.forget(request, INodeNo(status.inode), 1)).map(|()| status)
        });
        match opened {
            Ok(status) => {
                let (handle, flags) = (FileHandle(status.inode), FopenFlags::FOPEN_KEEP_CACHE);
                reply.created(&KEEP, &attributes_of(&status), Generation(0), handle, flags);
            }
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        thread_local! {
            static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        BUFFER.with_borrow_mut(|buffer| {
            let wanted = size as usize;
            if buffer.len() < wanted {
                buffer.resize(wanted, 0);
            }
            match self.ask(|files| files.read(number.0, offset, &mut buffer[..wanted])) {
                Ok(read) => reply.data(&buffer[..read]),
                Err(refusal) => reply.error(errno(refusal)),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        content: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let unprivileged = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let (through, now) = (write_through(flags.0), self.now());
        match self.ask(|files| files.write(number.0, offset, content, through, unprivileged, now)) {
            // A request has at most a megabyte.
            Ok(()) => reply.written(content.len() as u32),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn release(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let _ = self.ask(|files| {
            files.release(number.0);
            Ok(())
        });
        reply.ok();
    }

    fn flush(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // Nothing is held back until a close; the kernel does not ask again.
        reply.error(Errno::ENOSYS);
    }

    fn fsync(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let scope = if data_only { Scope::Data } else { Scope::All };
        answer_empty(self.ask(|files| files.sync(number.0, scope)), reply);
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        answer_empty(self.ask(|files| files.sync(number.0, Scope::All)), reply);
    }

    fn opendir(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.ask(|files| files.open(number.0)) {
            Ok(()) => {
                let handle = self.next_listing.fetch_add(1, Ordering::Relaxed);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let known = self.listings().get(&handle.0).cloned();
        let listing = match (known, offset) {
            (Some(listing), 1..) => listing,
            // From the beginning: as it is now, also after rewinddir(3).
            _ => match self.ask(|files| files.list(number.0)) {
                Ok(listing) => {
                    let listing = Arc::new(listing);
                    self.listings().insert(handle.0, listing.clone());
                    listing
                }
                Err(refusal) => return reply.error(errno(refusal)),
            },
        };
        for (index, (name, number, kind)) in listing.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(*number), index as u64 + 1, file_type(*kind), name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.listings().remove(&handle.0);
        let _ = self.ask(|files| {
            files.release(number.0);
            Ok(())
        });
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        match self.ask(|files| files.space()) {
            Ok(space) => reply.statfs(
                space.blocks,
                space.blocks_free,
                space.blocks_available,
                space.objects,
                space.objects_free,
                space.block_bytes,
                255,
                space.block_bytes,
            ),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }

    fn setxattr(
        &self,
        _request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let must_exist = match flags {
            libc::XATTR_CREATE => Some(false),
            libc::XATTR_REPLACE => Some(true),
            _ => None,
        };
        let now = self.now();
        let set = self.ask(|files| files.set_extended(number.0, name, Some(value), must_exist, now));
        answer_empty(set, reply);
    }

    fn getxattr(&self, _request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer_extended(self.ask(|files| files.extended(number.0, name)), size, reply);
    }

    fn listxattr(&self, _request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.ask(|files| files.list_extended(number.0));
        let joined = names.map(|names| {
            names.iter().flat_map(|name| name.as_encoded_bytes().iter().chain(&[0])).copied().collect()
        });
        answer_extended(joined, size, reply);
    }

    fn removexattr(&self, _request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.ask(|files| files.set_extended(number.0, name, None, Some(true), self.now()));
        answer_empty(removed, reply);
    }

    fn fallocate(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocated = self.ask(|files| files.allocate(number.0, mode, offset, bytes, self.now()));
        answer_empty(allocated, reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let to = match whence {
            libc::SEEK_DATA => Seek::Data,
            libc::SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(from) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        match self.ask(|files| files.seek(number.0, from, to)) {
            // Within a file's size, which is signed.
            Ok(found) => reply.offset(found as i64),
            Err(refusal) => reply.error(errno(refusal)),
        }
    }
}
