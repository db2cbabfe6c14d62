//! What a probe of a disk must see while a fault stands, and once it is healed. Pure: looks at nothing itself.

use std::time::Duration;

use disk::{Met, Seen, Tried};
use history::Verdict;
use scenario::DiskDefect;

/// Blocks that a probe reads of a disk that is not said to read wrongly.
const BLOCKS: u64 = 100;
/// Wrong blocks to be expected among those read.
const WRONG_BLOCKS: f64 = 20.0;
/// The share of wrong blocks may be off by this factor: with 20 expected, chance alone stays within.
const SHARE_FACTOR: f64 = 3.0;

/// How many blocks to read so that the defect shows.
#[must_use]
pub fn blocks_to_read(defect: &DiskDefect) -> u64 {
    match defect {
        // At most 20,000: the language knows no smaller share than one in a thousand.
        DiskDefect::Corrupt { share, .. } => ((WRONG_BLOCKS / share).ceil() as u64).max(BLOCKS),
        _ => BLOCKS,
    }
}

/// Whether a disk behaves as it was told to.
#[must_use]
pub fn took_effect(disk: &str, defect: &DiskDefect, seen: &Seen) -> (Verdict, String) {
    let is = |as_asked: bool| if as_asked { Verdict::Pass } else { Verdict::Fail };
    let all = [seen.overwrite, seen.append, seen.sync, seen.read];
    let refused =
        |tried: Tried, number: i32| matches!(tried, Tried::Refused(refusal, _) if refusal as i32 == number);
    let done = |tried: Tried| matches!(tried, Tried::Done(_));
    let verdict = match defect {
        DiskDefect::Fail | DiskDefect::FailAfter { .. } => {
            is(all.iter().all(|tried| refused(*tried, libc::EIO)))
        }
        DiskDefect::Slow { by } => {
            is(all.iter().all(|tried| matches!(tried, Tried::Done(took) if took >= by)))
        }
        DiskDefect::Stall => is(all.iter().all(|tried| matches!(tried, Tried::NoAnswer(_)))),
        DiskDefect::Full => is(done(seen.overwrite) && refused(seen.append, libc::ENOSPC) && done(seen.read)),
        DiskDefect::ReadOnly => {
            is([seen.overwrite, seen.append].iter().all(|tried| refused(*tried, libc::EROFS))
                && done(seen.read))
        }
        DiskDefect::LoseFlush => is(done(seen.sync) && seen.survived == Some(false)),
        DiskDefect::Corrupt { share, checksums } => {
            let (wanted, other) = match checksums {
                false => (seen.blocks_wrong, seen.reads_refused),
                true => (seen.reads_refused, seen.blocks_wrong),
            };
            let expected = share * seen.blocks_read as f64;
            let ratio = wanted as f64 / expected;
            is(other == 0 && wanted > 0 && (1.0 / SHARE_FACTOR..=SHARE_FACTOR).contains(&ratio))
        }
    };
    (verdict, in_words(disk, seen))
}

/// Whether a disk is as it was: everything is done, nothing read wrongly, and what was synced outlives a power-off.
#[must_use]
pub fn is_sound(disk: &str, seen: &Seen) -> (Verdict, String) {
    let all = [seen.overwrite, seen.append, seen.sync, seen.read];
    let sound = all.iter().all(|tried| matches!(tried, Tried::Done(_)))
        && (seen.blocks_wrong, seen.reads_refused, seen.survived) == (0, 0, Some(true));
    (if sound { Verdict::Pass } else { Verdict::Fail }, in_words(disk, seen))
}

fn in_words(disk: &str, seen: &Seen) -> String {
    let one = |what: &str, tried: Tried| match tried {
        Tried::Done(took) => format!("{what} done in {}", millis(took)),
        Tried::Refused(refusal, took) => format!("{what} refused with {refusal:?} after {}", millis(took)),
        Tried::NoAnswer(waited) => format!("{what} not answered within {}", millis(waited)),
    };
    let mut words = vec![
        one("a write", seen.overwrite),
        one("an append", seen.append),
        one("a sync", seen.sync),
        one("a read", seen.read),
    ];
    if seen.blocks_wrong > 0 {
        words.push(format!(
            "{} of {} blocks read were not what had been written",
            seen.blocks_wrong, seen.blocks_read
        ));
    }
    if seen.reads_refused > 0 {
        words.push(format!("{} of {} reads were refused", seen.reads_refused, seen.blocks_read));
    }
    match seen.survived {
        Some(true) => words.push("what was synced outlived a power-off of the probe".to_owned()),
        Some(false) => words.push("what was synced was gone after a power-off of the probe".to_owned()),
        None => {}
    }
    format!("probe of disk {disk}: {}", words.join(", "))
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// What a node's volume met while a fault stood.
#[must_use]
pub fn met_in_words(node: &str, met: &Met) -> String {
    if met.asked == 0 {
        return format!("the volume of {node} was not used meanwhile");
    }
    let parts: Vec<String> = [
        (met.refused, "refused"),
        (met.held_up, "held up"),
        (met.flushes_lost, "syncs answered and not done"),
        (met.corrupted, "blocks read wrongly"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    let parts = if parts.is_empty() { "none was touched by the fault".to_owned() } else { parts.join(", ") };
    format!("of {} operations on the volume of {node} meanwhile: {parts}", met.asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::Refusal;

    const TOOK: Duration = Duration::from_millis(2);

    /// What a probe of a disk sees on which nothing is wrong.
    fn sound() -> Seen {
        let done = Tried::Done(TOOK);
        Seen {
            overwrite: done,
            append: done,
            sync: done,
            read: done,
            blocks_read: 1000,
            blocks_wrong: 0,
            reads_refused: 0,
            survived: Some(true),
        }
    }

    fn all(tried: Tried) -> Seen {
        Seen { overwrite: tried, append: tried, sync: tried, read: tried, survived: None, ..sound() }
    }

    /// A defect has a receipt from what shows it, has none from a sound disk, and what shows it is no healed disk.
    fn check(defect: DiskDefect, shown: Seen) {
        assert_eq!(took_effect("d1", &defect, &shown).0, Verdict::Pass, "{defect:?} {shown:?}");
        assert_eq!(took_effect("d1", &defect, &sound()).0, Verdict::Fail, "{defect:?}");
        assert_eq!(is_sound("d1", &shown).0, Verdict::Fail, "{defect:?}");
        assert_eq!(is_sound("d1", &sound()).0, Verdict::Pass);
    }

    #[test]
    fn every_defect_is_told_from_a_sound_disk() {
        let eio = Tried::Refused(Refusal::EIO, TOOK);
        check(DiskDefect::Fail, all(eio));
        check(DiskDefect::FailAfter { operations: 3 }, all(eio));
        check(DiskDefect::Stall, all(Tried::NoAnswer(TOOK)));
        check(DiskDefect::Full, Seen { append: Tried::Refused(Refusal::ENOSPC, TOOK), ..sound() });
        let erofs = Tried::Refused(Refusal::EROFS, TOOK);
        check(DiskDefect::ReadOnly, Seen { overwrite: erofs, append: erofs, sync: erofs, ..sound() });
        check(DiskDefect::LoseFlush, Seen { survived: Some(false), ..sound() });
        let corrupt = |checksums| DiskDefect::Corrupt { share: 0.02, checksums };
        check(corrupt(false), Seen { blocks_wrong: 19, ..sound() });
        check(corrupt(true), Seen { reads_refused: 24, ..sound() });
    }

    #[test]
    fn what_is_only_half_of_a_defect_is_no_receipt() {
        let refused = |defect: DiskDefect, seen: Seen| {
            assert_eq!(took_effect("d1", &defect, &seen).0, Verdict::Fail, "{defect:?} {seen:?}");
        };
        let eio = Tried::Refused(Refusal::EIO, TOOK);
        refused(DiskDefect::Fail, Seen { read: Tried::Done(TOOK), ..all(eio) });
        refused(DiskDefect::Fail, all(Tried::Refused(Refusal::EROFS, TOOK)));
        refused(DiskDefect::Stall, Seen { read: Tried::Done(TOOK), ..all(Tried::NoAnswer(TOOK)) });
        let by = Duration::from_millis(2) + Duration::from_nanos(1);
        refused(DiskDefect::Slow { by }, sound());
        refused(DiskDefect::Corrupt { share: 0.02, checksums: false }, Seen { blocks_wrong: 3, ..sound() });
        refused(DiskDefect::Corrupt { share: 0.02, checksums: true }, Seen { blocks_wrong: 20, ..sound() });
    }

    #[test]
    fn a_slow_disk_is_one_on_which_everything_takes_so_long() {
        let by = Duration::from_millis(2);
        assert_eq!(took_effect("d1", &DiskDefect::Slow { by }, &sound()).0, Verdict::Pass);
    }

    #[test]
    fn the_evidence_is_told_in_words() {
        let seen = Seen { append: Tried::Refused(Refusal::ENOSPC, TOOK), ..sound() };
        assert_eq!(
            took_effect("r1/h1/d1", &DiskDefect::Full, &seen).1,
            "probe of disk r1/h1/d1: a write done in 2.00 ms, an append refused with ENOSPC after 2.00 ms, a sync done in \
             2.00 ms, a read done in 2.00 ms, what was synced outlived a power-off of the probe"
        );
        let met = Met { asked: 7, refused: 2, flushes_lost: 1, ..Met::default() };
        let told = "of 7 operations on the volume of n1 meanwhile: 2 refused, 1 syncs answered and not done";
        assert_eq!(met_in_words("n1", &met), told);
        assert_eq!(met_in_words("n1", &Met::default()), "the volume of n1 was not used meanwhile");
    }
}
