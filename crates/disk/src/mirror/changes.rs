//! Every operation of a mount, done on the component that serves and recorded for the others in the same order.
//!
//! Owns what each change touches and what is said of it. Waiting and who is told are `serving`'s.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::MutexGuard;
use std::time::SystemTime;

use crate::Refusal;
use crate::admission::{self, Turn};
use crate::attributes::{Attributes, Change, Kind, Status};
use crate::files::Files;
use crate::mirror::operation::{New, Operation};
use crate::mirror::peers::Mark;
use crate::mirror::serving::{Mirror, Order, begin, frame_of};
use crate::mirror::sync_times::SyncTime;
use crate::store::{Seek, Space, Store};
use crate::tree::RenameKind;
use crate::volume::{NewInode, Scope, Volume, refusal};

/// Bytes that a change takes beside its content, for the buffer's account.
const CHANGE_BYTES: u64 = 64;

impl<S: Store> Mirror<S> {
    /// Makes a change here and records it. What may be half done is in doubt. A disk that keeps it waiting is waited for
    /// without the order.
    fn change_and_record<'a, T>(
        &self,
        marks: impl Fn(&Volume<S>) -> Vec<Mark>,
        change: impl Fn(&Volume<S>) -> Result<T, Refusal>,
        (operation, may_be_half_done): (impl FnOnce(&T) -> (Operation<'a>, Vec<Mark>), bool),
    ) -> Result<T, Refusal> {
        let mut was_asked = false;
        let (mut order, marks, done) = loop {
            let order = self.with_room()?;
            let marks = marks(&self.volume);
            match admission::in_turn(was_asked, || change(&self.volume)) {
                Turn::Over(done) => break (order, marks, done),
                Turn::Asks(access) => {
                    drop(order);
                    self.volume.store().admit(access)?;
                    was_asked = true;
                }
            }
        };
        match done {
            Ok(done) => {
                let (operation, further) = operation(&done);
                self.record(order, [marks, further].concat(), operation);
                Ok(done)
            }
            Err(refusal) => {
                self.note_refused(&mut order, marks, refusal, may_be_half_done);
                Err(refusal)
            }
        }
    }

    fn record(&self, mut order: MutexGuard<'_, Order>, marks: Vec<Mark>, operation: Operation<'_>) {
        let bytes = match &operation {
            Operation::Write { content, .. } => CHANGE_BYTES + content.len() as u64,
            _ => CHANGE_BYTES,
        };
        order.peers.record(&marks, (bytes, self.now()), frame_of(operation));
        let anybody = order.peers.any_connected();
        drop(order);
        if anybody {
            self.to_send.notify_all();
        }
    }

    fn note_refused(&self, order: &mut Order, marks: Vec<Mark>, refusal: Refusal, may_be_half_done: bool) {
        let undecided = self.is_of_the_disk(refusal);
        if undecided {
            marks.iter().for_each(|mark| mark.mark_in(&mut order.refused.0));
        }
        // What has no content, or is not there, is refused before anything changes.
        let changed_nothing = matches!(
            refusal,
            Refusal::EISDIR
                | Refusal::EINVAL
                | Refusal::ESTALE
                | Refusal::ENOENT
                | Refusal::EOPNOTSUPP
                | Refusal::EFBIG
        );
        match (may_be_half_done && !changed_nothing, undecided) {
            (false, _) => {}
            (true, true) => order.refused.1.extend(marks),
            (true, false) => order.peers.doubt(&marks, self.now(), begin),
        }
    }

    /// Keeps service from moving. What is known and open here goes to the next as it was then: what came in between, it would
    /// not know.
    fn while_it_serves(&self) -> Result<MutexGuard<'_, Order>, Refusal> {
        self.wait_until(|order| !order.is_handing_over)
    }

    /// Asks the next where service has moved, else its own volume, also when service is over.
    fn let_go(&self, gone: impl Fn(&dyn Files)) {
        let order = self.while_it_serves();
        match self.succession.next() {
            Some(next) if order.is_err() => gone(next),
            _ => gone(self.volume.as_ref()),
        }
    }

    /// Records a sync without waiting for what it asks. Returns its number.
    fn record_sync(&self, number: u64, scope: Scope) -> Result<u64, Refusal> {
        let mut order = self.while_it_serves()?;
        let now = self.now();
        let operation = Operation::Sync { number, scope };
        let sequence = order.peers.record(&[], (CHANGE_BYTES, now), frame_of(operation));
        drop(order);
        self.to_send.notify_all();
        Ok(sequence)
    }
}

/// The range by which a file's size changes.
fn stretch(number: u64, old: Option<u64>, new: u64) -> Mark {
    let old = old.unwrap_or(new);
    Mark::Content(number, old.min(new), old.max(new))
}

/// An object that may lose its last name, and with it its content, which another that comes to serve may still have.
fn whole(number: u64) -> Mark {
    Mark::Content(number, 0, u64::MAX)
}

/// The range that a write changes: beyond the file's end, what lies between becomes zeros, and another may hold there what
/// was before the file was cut.
fn reach<S: Store>(volume: &Volume<S>, number: u64, offset: u64, end: u64) -> Mark {
    Mark::Content(number, volume.size_of(number).map_or(offset, |size| offset.min(size)), end)
}

impl<S: Store> Files for Mirror<S> {
    fn look_up(&self, directory: u64, name: &OsStr) -> Result<Status, Refusal> {
        let _order = self.while_it_serves()?;
        self.volume.look_up(directory, name)
    }

    fn forget(&self, number: u64, times: u64) {
        self.let_go(|files| files.forget(number, times));
    }

    fn status(&self, number: u64) -> Result<Status, Refusal> {
        self.volume.status(number)
    }

    fn change(&self, number: u64, change: &Change, now: SystemTime) -> Result<Status, Refusal> {
        self.change_and_record(
            |volume| match change.size {
                Some(size) => vec![stretch(number, volume.size_of(number), size)],
                None => vec![Mark::Object(number)],
            },
            |volume| volume.change(number, change, now),
            (|_| (Operation::Change { number, change: *change, now }, Vec::new()), change.size.is_some()),
        )
    }

    fn make(
        &self,
        directory: u64,
        name: &OsStr,
        new: &NewInode,
        attributes: Attributes,
    ) -> Result<Status, Refusal> {
        self.change_and_record(
            |_| vec![Mark::Object(directory)],
            |volume| volume.make(directory, name, new, attributes),
            (
                |made: &Status| {
                    let (number, name, new) = (made.inode, name.as_bytes(), New::of(new));
                    let operation = Operation::Make { directory, name, number, new, attributes };
                    (operation, vec![Mark::Object(number)])
                },
                false,
            ),
        )
    }

    fn link(&self, number: u64, directory: u64, name: &OsStr, now: SystemTime) -> Result<Status, Refusal> {
        self.change_and_record(
            |_| vec![Mark::Object(directory), Mark::Object(number)],
            |volume| volume.link(number, directory, name, now),
            (|_| (Operation::Link { number, directory, name: name.as_bytes(), now }, Vec::new()), false),
        )
    }

    fn remove(
        &self,
        directory: u64,
        name: &OsStr,
        is_directory: bool,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.change_and_record(
            |volume| {
                let removed = volume.number_of(directory, name).map(whole);
                [Some(Mark::Object(directory)), removed].into_iter().flatten().collect()
            },
            |volume| volume.remove(directory, name, is_directory, now),
            (
                |()| {
                    let name = name.as_bytes();
                    (Operation::Remove { directory, name, is_directory, now }, Vec::new())
                },
                false,
            ),
        )
    }

    fn rename(
        &self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        kind: RenameKind,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.change_and_record(
            |volume| {
                let moved = volume.number_of(from.0, from.1);
                let replaced = volume.number_of(to.0, to.1).map(whole);
                let objects = [Some(from.0), Some(to.0), moved].into_iter().flatten().map(Mark::Object);
                objects.chain(replaced).collect()
            },
            |volume| volume.rename(from, to, kind, now),
            (
                |()| {
                    let (directory, name) = (from.0, from.1.as_bytes());
                    let (new_directory, new_name) = (to.0, to.1.as_bytes());
                    let operation = Operation::Rename { directory, name, new_directory, new_name, kind, now };
                    (operation, Vec::new())
                },
                false,
            ),
        )
    }

    fn target(&self, number: u64) -> Result<OsString, Refusal> {
        self.volume.target(number)
    }

    fn list(&self, directory: u64) -> Result<Vec<(OsString, u64, Kind)>, Refusal> {
        self.volume.list(directory)
    }

    fn extended(&self, number: u64, name: &OsStr) -> Result<Vec<u8>, Refusal> {
        self.volume.extended(number, name)
    }

    fn list_extended(&self, number: u64) -> Result<Vec<OsString>, Refusal> {
        self.volume.list_extended(number)
    }

    fn set_extended(
        &self,
        number: u64,
        name: &OsStr,
        value: Option<&[u8]>,
        must_exist: Option<bool>,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.change_and_record(
            |_| vec![Mark::Object(number)],
            |volume| volume.set_extended(number, name, value, must_exist, now),
            (
                |()| {
                    let name = name.as_bytes();
                    (Operation::SetExtended { number, name, value, now }, Vec::new())
                },
                false,
            ),
        )
    }

    fn space(&self) -> Result<Space, Refusal> {
        self.volume.space()
    }

    fn open(&self, number: u64) -> Result<(), Refusal> {
        let _order = self.while_it_serves()?;
        self.volume.open(number)
    }

    fn release(&self, number: u64) {
        self.let_go(|files| files.release(number));
    }

    fn read(&self, number: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Refusal> {
        self.volume.read(number, offset, buffer)
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
        let end = offset.checked_add(content.len() as u64).ok_or(Refusal::EFBIG)?;
        if let Some(log) = &self.extents {
            log.note(number, offset, content.len() as u64).map_err(|error| refusal(&error))?;
        }
        self.change_and_record(
            |volume| vec![reach(volume, number, offset, end)],
            |volume| volume.write(number, offset, content, None, by_unprivileged, now),
            (
                |()| {
                    let operation = Operation::Write { number, offset, content, by_unprivileged, now };
                    (operation, Vec::new())
                },
                true,
            ),
        )?;
        let Some(scope) = through else { return Ok(()) };
        self.sync(number, scope)?;
        self.volume.note_synced_with_write(number);
        Ok(())
    }

    fn allocate(
        &self,
        number: u64,
        mode: i32,
        offset: u64,
        bytes: u64,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let end = offset.checked_add(bytes).ok_or(Refusal::EFBIG)?;
        self.change_and_record(
            |volume| vec![reach(volume, number, offset, end)],
            |volume| volume.allocate(number, mode, offset, bytes, now),
            (|()| (Operation::Allocate { number, mode, offset, bytes, now }, Vec::new()), true),
        )
    }

    fn seek(&self, number: u64, offset: u64, to: Seek) -> Result<u64, Refusal> {
        self.volume.seek(number, offset, to)
    }

    fn sync(&self, number: u64, scope: Scope) -> Result<(), Refusal> {
        if self.volume.is_synced_with_write(number, scope) {
            return Ok(());
        }
        // Said before it is done here, so that both happen at once; what comes in between is covered here as well.
        let began = self.now();
        let sequence = self.record_sync(number, scope)?;
        self.volume.sync(number, scope)?;
        let here = self.now().saturating_sub(began);
        self.wait_until(|order| order.peers.is_acknowledged(sequence)).map(drop)?;
        let beyond = self.now().saturating_sub(began + here);
        self.sync_times.note(SyncTime { here, beyond });
        Ok(())
    }

    fn interrupt(&self, interrupted: bool) {
        self.volume.interrupt(interrupted);
        if interrupted {
            self.stop_waiting();
        }
        if let Some(next) = self.succession.next() {
            next.interrupt(interrupted);
        }
    }

    fn next(&self) -> Option<&dyn Files> {
        self.succession.next()
    }

    fn moves_on(&self, refusal: Refusal) -> bool {
        self.hands_over_because_of(refusal)
    }
}
