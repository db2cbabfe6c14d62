//! What a probe of a disk must meet by the defects that stand on it, and whether what it met is that. Pure.
//!
//! Of several defects an operation takes the longest delay and then the first refusal, in the order in which they were
//! imposed: that is how disks behave here (`disk`, on the first page of `medium`). What the faults' maker believes to stand
//! goes in; what the probe saw decides.

use std::time::Duration;

use disk::{Seen, Tried};
use scenario::DiskDefect;

/// With so many wrong blocks to be expected, their count is within [`SHARE_FACTOR`] of it, whatever chance does.
pub const WRONG_BLOCKS: f64 = 20.0;
/// With so many to be expected, there is at least one.
const WRONG_BLOCKS_FEW: f64 = 8.0;
/// The share of wrong blocks may be off by this factor.
const SHARE_FACTOR: f64 = 3.0;

/// What operations of a probe meet: overwrite, append, sync and read in turn.
#[derive(Debug, Clone, PartialEq)]
struct Foreseen {
    /// How long each takes at least; nothing where none is answered.
    delay: Option<Duration>,
    /// What each is refused with.
    refusals: [Option<i32>; 4],
    /// Share of the blocks read that are wrong.
    wrong: f64,
    /// Share of the reads that are refused because a checksum tells.
    noticed: f64,
    loses_flushes: bool,
}

/// How long every operation takes at least; nothing where none is answered.
#[must_use]
pub fn delay(defects: &[DiskDefect]) -> Option<Duration> {
    if defects.contains(&DiskDefect::Stall) {
        return None;
    }
    let slow = |defect: &DiskDefect| if let DiskDefect::Slow { by } = defect { Some(*by) } else { None };
    Some(defects.iter().filter_map(slow).max().unwrap_or_default())
}

/// The quickest answer; nothing where there was none.
#[must_use]
pub fn quickest(seen: &Seen) -> Option<Duration> {
    let answered = |tried: Tried| match tried {
        Tried::Done(took) | Tried::Refused(_, took) => Some(took),
        Tried::NoAnswer(_) => None,
    };
    [seen.overwrite, seen.append, seen.sync, seen.read].into_iter().filter_map(answered).min()
}

/// Whether what was seen is what these defects do, imposed in this order. A disk that takes longer than they say may be on a
/// machine that does.
#[must_use]
pub fn explains(defects: &[DiskDefect], seen: &Seen) -> bool {
    // One that fails later has failed by now, or not.
    let Some(later) = defects.iter().position(|defect| matches!(defect, DiskDefect::FailAfter { .. })) else {
        return fits(&foreseen(defects), seen);
    };
    let (mut failed, mut not_yet) = (defects.to_vec(), defects.to_vec());
    failed[later] = DiskDefect::Fail;
    not_yet.remove(later);
    explains(&failed, seen) || explains(&not_yet, seen)
}

fn refusals(defect: &DiskDefect) -> [Option<i32>; 4] {
    let (eio, erofs) = (Some(libc::EIO), Some(libc::EROFS));
    match defect {
        DiskDefect::Fail => [eio; 4],
        DiskDefect::Full => [None, Some(libc::ENOSPC), None, None],
        DiskDefect::ReadOnly => [erofs, erofs, erofs, None],
        _ => [None; 4],
    }
}

fn foreseen(defects: &[DiskDefect]) -> Foreseen {
    let (mut right, mut unnoticed) = (1.0, 1.0);
    let mut refused = [None; 4];
    for defect in defects {
        for (first, refusal) in refused.iter_mut().zip(refusals(defect)) {
            *first = first.or(refusal);
        }
        match defect {
            DiskDefect::Corrupt { share, checksums: true } => unnoticed *= 1.0 - share,
            DiskDefect::Corrupt { share, checksums: false } => right *= 1.0 - share,
            _ => {}
        }
    }
    Foreseen {
        delay: delay(defects),
        refusals: refused,
        wrong: unnoticed * (1.0 - right),
        noticed: 1.0 - unnoticed,
        loses_flushes: defects.contains(&DiskDefect::LoseFlush),
    }
}

fn fits(foreseen: &Foreseen, seen: &Seen) -> bool {
    let all = [seen.overwrite, seen.append, seen.sync, seen.read];
    let Some(delay) = foreseen.delay else {
        return all.iter().all(|tried| matches!(tried, Tried::NoAnswer(_)));
    };
    let as_foreseen = |(number, tried): (usize, &Tried)| match (tried, foreseen.refusals[number]) {
        (Tried::Done(took), None) => *took >= delay,
        (Tried::Refused(refusal, took), Some(wanted)) => *refusal as i32 == wanted && *took >= delay,
        // The last of them reads, and may meet a block of which a checksum tells.
        (Tried::Refused(refusal, _), None) => {
            number == 3 && foreseen.noticed > 0.0 && *refusal as i32 == libc::EIO
        }
        _ => false,
    };
    let [overwrite, _, sync, read] = foreseen.refusals;
    let read_as_foreseen = match read {
        Some(_) => (seen.reads_refused, seen.blocks_wrong) == (seen.blocks_read, 0),
        None => {
            is_share(seen.blocks_wrong, foreseen.wrong, seen.blocks_read)
                && is_share(seen.reads_refused, foreseen.noticed, seen.blocks_read)
        }
    };
    let survived = match (overwrite, sync) {
        (None, None) => Some(!foreseen.loses_flushes),
        _ => None,
    };
    all.iter().enumerate().all(as_foreseen) && read_as_foreseen && seen.survived == survived
}

/// Whether so many of all may be this share of them.
fn is_share(count: u64, share: f64, of: u64) -> bool {
    if share <= 0.0 {
        return count == 0;
    }
    let (count, expected) = (count as f64, share * of as f64);
    let least = match expected {
        WRONG_BLOCKS.. => expected / SHARE_FACTOR,
        WRONG_BLOCKS_FEW.. => 1.0,
        _ => 0.0,
    };
    least <= count && count <= expected.max(WRONG_BLOCKS_FEW) * SHARE_FACTOR
}
