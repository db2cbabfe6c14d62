//! What a mount serves: the operations of a file system, as a volume does them itself, a mirror does them on its own
//! component and passes them on, and a node does them from afar.
//!
//! Owns only which operations there are; each says at its home what it does and with what it is refused.

use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use crate::Refusal;
use crate::attributes::{Attributes, Change, Kind, Status};
use crate::store::{Seek, Space, Store};
use crate::tree::RenameKind;
use crate::volume::{NewInode, Scope, Volume};

/// Operations that a file system has and a volume carries out itself, each stated once.
macro_rules! operations {
    ($(fn $name:ident(&self $(, $given:ident: $of:ty)*) $(-> $answer:ty)?;)*) => {
        /// A file system that can be mounted. Every method is that of [`Volume`] with the same name, with the same refusals.
        #[expect(clippy::missing_errors_doc, reason = "each is documented at `Volume`")]
        pub trait Files: Send + Sync + 'static {
            $(fn $name(&self $(, $given: $of)*) $(-> $answer)?;)*
            /// From here on nobody waits, those included who do now: they get `EIO`. Until it is called with `false`; a mirror
            /// that was interrupted serves no more.
            fn interrupt(&self, interrupted: bool);
            /// What serves in its place, where service has moved.
            fn next(&self) -> Option<&dyn Files> {
                None
            }
            /// An operation was refused: whether there is now a [`Files::next`], which it is to be asked of. Waits until that
            /// is decided.
            fn moves_on(&self, refusal: Refusal) -> bool {
                let _ = refusal;
                false
            }
        }

        impl<S: Store> Files for Volume<S> {
            $(fn $name(&self $(, $given: $of)*) $(-> $answer)? {
                Volume::$name(self $(, $given)*)
            })*
            fn interrupt(&self, interrupted: bool) {
                self.store.interrupt(interrupted);
            }
        }
    };
}

operations! {
    fn look_up(&self, directory: u64, name: &OsStr) -> Result<Status, Refusal>;
    fn forget(&self, number: u64, times: u64);
    fn status(&self, number: u64) -> Result<Status, Refusal>;
    fn change(&self, number: u64, change: &Change, now: SystemTime) -> Result<Status, Refusal>;
    fn make(&self, directory: u64, name: &OsStr, new: &NewInode, attributes: Attributes) -> Result<Status, Refusal>;
    fn link(&self, number: u64, directory: u64, name: &OsStr, now: SystemTime) -> Result<Status, Refusal>;
    fn remove(&self, directory: u64, name: &OsStr, is_directory: bool, now: SystemTime) -> Result<(), Refusal>;
    fn rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), kind: RenameKind, now: SystemTime) -> Result<(), Refusal>;
    fn target(&self, number: u64) -> Result<OsString, Refusal>;
    fn list(&self, directory: u64) -> Result<Vec<(OsString, u64, Kind)>, Refusal>;
    fn extended(&self, number: u64, name: &OsStr) -> Result<Vec<u8>, Refusal>;
    fn list_extended(&self, number: u64) -> Result<Vec<OsString>, Refusal>;
    fn set_extended(
        &self, number: u64, name: &OsStr, value: Option<&[u8]>, must_exist: Option<bool>, now: SystemTime
    ) -> Result<(), Refusal>;
    fn space(&self) -> Result<Space, Refusal>;
    fn open(&self, number: u64) -> Result<(), Refusal>;
    fn release(&self, number: u64);
    fn read(&self, number: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Refusal>;
    fn write(
        &self, number: u64, offset: u64, content: &[u8], through: Option<Scope>, by_unprivileged: bool, now: SystemTime
    ) -> Result<(), Refusal>;
    fn allocate(&self, number: u64, mode: i32, offset: u64, bytes: u64, now: SystemTime) -> Result<(), Refusal>;
    fn seek(&self, number: u64, offset: u64, to: Seek) -> Result<u64, Refusal>;
    fn sync(&self, number: u64, scope: Scope) -> Result<(), Refusal>;
}
