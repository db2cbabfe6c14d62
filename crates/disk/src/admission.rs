//! Asking a disk to let an operation through where a lock is held that others need: nobody waits for a disk with one.
//!
//! Owns how an operation is done in two turns: one that finds out what it would wait for, and one that has waited. What a
//! disk does to it is for `medium`.

use std::cell::Cell;

use crate::medium::Access;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// The disk is asked, and waited for.
    Waiting,
    /// What has to ask is not done.
    Finding,
    /// The disk has been asked.
    Asked,
}

thread_local! {
    static MANNER: Cell<Manner> = const { Cell::new(Manner::Waiting) };
    static WANTED: Cell<Option<Access>> = const { Cell::new(None) };
}

/// What came of a turn.
pub(crate) enum Turn<T> {
    /// The operation was done, or refused.
    Over(T),
    /// Nothing was done: the disk is to be asked first.
    Asks(Access),
}

/// What becomes of an operation's question to a disk on which something is wrong.
pub(crate) enum Question {
    /// It is put, and the answer waited for.
    Put,
    /// It has been.
    WasPut,
    /// It is not, and the operation ends here.
    Ends,
}

/// Does an operation, once with `was_asked` false, and once more after the disk was asked where it has to be. The operation
/// must ask before it changes anything, as all of a volume do.
pub(crate) fn in_turn<T>(was_asked: bool, operation: impl FnOnce() -> T) -> Turn<T> {
    let before = MANNER.replace(if was_asked { Manner::Asked } else { Manner::Finding });
    WANTED.set(None);
    let done = operation();
    MANNER.set(before);
    WANTED.take().map_or(Turn::Over(done), Turn::Asks)
}

/// An operation comes to where it asks.
pub(crate) fn question(access: Access) -> Question {
    match MANNER.get() {
        Manner::Waiting => Question::Put,
        Manner::Asked => Question::WasPut,
        Manner::Finding => {
            WANTED.set(Some(access));
            Question::Ends
        }
    }
}
