//! A scenario's defect as the disk knows it.

use disk::{Corruption, Defect};
use scenario::DiskDefect;

/// A defect as the disk knows it; `seed` decides what is read wrongly.
pub(crate) fn made(defect: &DiskDefect, seed: u64) -> Defect {
    match defect {
        DiskDefect::Fail => Defect::Fail,
        DiskDefect::FailAfter { operations } => Defect::FailAfter(*operations),
        DiskDefect::Slow { by } => Defect::Slow(*by),
        DiskDefect::Stall => Defect::Stall,
        DiskDefect::Full => Defect::Full,
        DiskDefect::Corrupt { share, checksums } => {
            Defect::Corrupt(Corruption { share: *share, checksums: *checksums, seed })
        }
        DiskDefect::LoseFlush => Defect::LoseFlush,
        DiskDefect::ReadOnly => Defect::ReadOnly,
    }
}
