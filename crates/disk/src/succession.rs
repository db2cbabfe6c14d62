//! What serves after something else: a mount goes on from another component while programs have files open on it.
//!
//! Owns the chain from what was mounted to what serves at the moment, and asking along it. When service moves, and what
//! must have reached the next before it does, is for `mirror`.

use std::sync::{Arc, OnceLock};

use crate::Refusal;
use crate::files::Files;

/// What an operation is refused with that came to a component after service had moved from it: it was not carried out
/// there, and is to be asked of the next. No program gets to see it.
pub const MOVED: Refusal = Refusal::EREMCHG;

/// The one that serves next, once there is one.
#[derive(Default)]
pub(crate) struct Succession(OnceLock<Arc<dyn Files>>);

impl Succession {
    /// From here on this one serves. The first that is named stays.
    pub(crate) fn set(&self, next: Arc<dyn Files>) {
        let _ = self.0.set(next);
    }

    pub(crate) fn next(&self) -> Option<&dyn Files> {
        self.0.get().map(AsRef::as_ref)
    }
}

impl std::fmt::Debug for Succession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Succession({})", if self.0.get().is_some() { "moved" } else { "stays" })
    }
}

/// Asks what serves at the moment, from `first` on; where service moves because of what it answers, or meanwhile, the next
/// one.
///
/// # Errors
/// What the last that was asked refuses the operation with.
pub fn ask<T>(
    first: &dyn Files,
    mut operation: impl FnMut(&dyn Files) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let mut files = first;
    loop {
        while let Some(next) = files.next() {
            files = next;
        }
        match operation(files) {
            Err(refusal) if files.moves_on(refusal) => {}
            Err(MOVED) => return Err(Refusal::EIO),
            answered => return answered,
        }
    }
}
