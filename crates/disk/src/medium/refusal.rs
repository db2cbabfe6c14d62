//! Defects that refuse operations: a dead disk, one that dies later, a full one, one that cannot be written.

use super::{Access, Defect};
use crate::Refusal;

/// Whether a defect lets an operation through. `count` is the operations it has counted so far.
///
/// A sync of a disk that cannot be written is refused as well: what it should make durable never reached the disk.
///
/// # Errors
/// What the operation is refused with.
pub(super) fn judge(defect: &Defect, count: &mut u64, access: Access, counts: bool) -> Result<(), Refusal> {
    match (defect, access) {
        (Defect::Fail, _) => Err(Refusal::EIO),
        (Defect::FailAfter(operations), _) if *count >= *operations => Err(Refusal::EIO),
        (Defect::FailAfter(_), _) => {
            *count += u64::from(counts);
            Ok(())
        }
        (Defect::Full, Access::Grow) => Err(Refusal::ENOSPC),
        (Defect::ReadOnly, Access::Change | Access::Grow | Access::Sync) => Err(Refusal::EROFS),
        _ => Ok(()),
    }
}
