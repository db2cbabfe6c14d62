//! What a probe of a disk must see while a fault stands, and once it is healed, whatever else stands on the disk. Pure: looks
//! at nothing itself. What defects do together is in `foreseen`.

use std::time::Duration;

use disk::{DefectEffects, Seen, Tried};
use history::Verdict;
use scenario::DiskDefect;

use super::foreseen::{WRONG_BLOCKS, delay, explains, quickest};

/// Blocks that a probe reads of a disk that is not said to read wrongly.
const BLOCKS: u64 = 100;
/// How long a probe waits for a disk that ought to answer, beside what it is said to take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long blocks of a slow disk are read, where none is said to be wrong.
const READING: Duration = Duration::from_millis(500);
/// How long a disk must be silent.
const SILENCE: Duration = Duration::from_millis(400);

/// A defect of a disk, among all others that stand on it or on the cache disk before it.
#[derive(Debug, Clone, PartialEq)]
pub struct StackedDefect {
    /// The others, in the order in which they were imposed.
    others: Vec<DiskDefect>,
    /// All of them with this one, in its place.
    with: Vec<DiskDefect>,
}

/// What a look shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Whether it shows what it should.
    pub verdict: Verdict,
    /// What was seen, and what follows.
    pub told: String,
    /// What may show more.
    pub next: Next,
}

/// What is worth doing after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Done,
    /// A further look: the disk, or the machine, was only slow.
    LookAgain,
    /// A further look when something else stands on the disk.
    WaitForChange,
}

impl StackedDefect {
    /// A defect between those imposed before it and those imposed after it.
    #[must_use]
    pub fn new(earlier: &[DiskDefect], defect: &DiskDefect, later: &[DiskDefect]) -> StackedDefect {
        // A disk that fails after so many operations is looked at when it has failed.
        let defect = match defect {
            DiskDefect::FailAfter { .. } => DiskDefect::Fail,
            defect => defect.clone(),
        };
        let with = [earlier, std::slice::from_ref(&defect), later].concat();
        StackedDefect { others: [earlier, later].concat(), with }
    }

    /// How long the others hold an operation up; nothing where it is not answered at all.
    #[must_use]
    pub fn delay_of_others(&self) -> Option<Duration> {
        delay(&self.others)
    }

    /// How long each operation of a look is given and how many blocks it reads, so that the defect shows while it stands, or
    /// that it is gone.
    #[must_use]
    pub fn effort(&self, stands: bool) -> (Duration, u64) {
        let expected = if stands { &self.with } else { &self.others };
        let patience = if expected.contains(&DiskDefect::Stall) { SILENCE } else { PATIENCE };
        let not_stalling: Vec<DiskDefect> =
            self.with.iter().filter(|defect| **defect != DiskDefect::Stall).cloned().collect();
        let slow = delay(&not_stalling).unwrap_or_default();
        // At most 20,000: the language knows no smaller share than one in a thousand.
        let wrong = self.with.iter().filter_map(|defect| match defect {
            DiskDefect::Corrupt { share, .. } => Some((WRONG_BLOCKS / share).ceil() as u64),
            _ => None,
        });
        let blocks = match wrong.max() {
            Some(blocks) => blocks.max(BLOCKS),
            // A look that takes long may outlast the fault.
            None if slow.is_zero() => BLOCKS,
            None => ((READING.as_secs_f64() / slow.as_secs_f64()) as u64).clamp(1, BLOCKS),
        };
        (patience + slow, blocks)
    }

    /// Whether a disk is as the others alone leave it; where there are none, whether it is sound.
    #[must_use]
    pub fn is_as_before(&self, disk: &str, seen: &Seen) -> Judged {
        let verdict = if explains(&self.others, seen) { Verdict::Pass } else { Verdict::Fail };
        self.judged(verdict, "", disk, seen)
    }

    /// Whether a disk behaves as it was told to, and did not before.
    #[must_use]
    pub fn took_effect(&self, disk: &str, before: Option<&Seen>, seen: &Seen) -> Judged {
        let (with, without) = (explains(&self.with, seen), explains(&self.others, seen));
        let was_as_slow = || {
            let slow = delay(&self.with);
            before.and_then(quickest).zip(slow).is_some_and(|(quickest, slow)| quickest >= slow)
        };
        match (with, without) {
            (true, true) if !self.slows() => self.hidden(disk, seen),
            (true, true) if was_as_slow() => self.judged(Verdict::Unknown, WAS_AS_SLOW, disk, seen),
            // A machine that is slow itself makes every disk as slow.
            (true, true) if before.is_none() => self.judged(Verdict::Unknown, NOT_SEEN_BEFORE, disk, seen),
            (true, _) => self.judged(Verdict::Pass, "", disk, seen),
            (false, _) => self.judged(Verdict::Fail, "", disk, seen),
        }
    }

    /// Whether this defect is gone, and nothing seen that the others do not explain.
    #[must_use]
    pub fn is_gone(&self, disk: &str, seen: &Seen) -> Judged {
        let (with, without) = (explains(&self.with, seen), explains(&self.others, seen));
        match (with, without) {
            (true, true) if !self.slows() => self.hidden(disk, seen),
            (true, true) => {
                let judged = self.judged(Verdict::Fail, STILL_AS_SLOW, disk, seen);
                Judged { next: Next::LookAgain, ..judged }
            }
            (false, true) => self.judged(Verdict::Pass, "", disk, seen),
            (_, false) => self.judged(Verdict::Fail, "", disk, seen),
        }
    }

    /// Whether the disk takes longer with this defect than with the others alone.
    fn slows(&self) -> bool {
        delay(&self.with) > delay(&self.others)
    }

    fn hidden(&self, disk: &str, seen: &Seen) -> Judged {
        Judged { next: Next::WaitForChange, ..self.judged(Verdict::Unknown, ALIKE, disk, seen) }
    }

    fn judged(&self, verdict: Verdict, why: &str, disk: &str, seen: &Seen) -> Judged {
        let mut told = in_words(disk, seen);
        if !self.others.is_empty() {
            let others: Vec<String> = self.others.iter().map(defect_in_words).collect();
            told.push_str(&format!("; beside this fault it {}", others.join(", ")));
        }
        if !why.is_empty() {
            told.push_str(&format!("; {why}"));
        }
        Judged { verdict, told, next: Next::Done }
    }
}

const ALIKE: &str = "no evidence: the fault makes no difference that the probe can measure";
const WAS_AS_SLOW: &str = "it was equally slow before the fault";
const NOT_SEEN_BEFORE: &str = "its latency before the fault was not measured";
const STILL_AS_SLOW: &str = "it is still as slow as during the fault";

/// A defect as a person would say it.
#[must_use]
pub fn defect_in_words(defect: &DiskDefect) -> String {
    match defect {
        DiskDefect::Fail => "fails".to_owned(),
        DiskDefect::FailAfter { operations } => format!("fails after {operations} operations"),
        DiskDefect::Slow { by } => format!("is {} ms slower", by.as_secs_f64() * 1e3),
        DiskDefect::Stall => "stalls".to_owned(),
        DiskDefect::Full => "is full".to_owned(),
        DiskDefect::Corrupt { share, checksums } => {
            let noticed = if *checksums { "and detects it" } else { "and does not detect it" };
            format!("returns wrong data for {} % of its blocks {noticed}", share * 100.0)
        }
        DiskDefect::LoseFlush => "loses flushes".to_owned(),
        DiskDefect::ReadOnly => "is read-only".to_owned(),
    }
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
        words.push(format!("{} of {} blocks read returned wrong data", seen.blocks_wrong, seen.blocks_read));
    }
    if seen.reads_refused > 0 {
        words.push(format!("{} of {} reads were refused", seen.reads_refused, seen.blocks_read));
    }
    match seen.survived {
        Some(true) => words.push("synced data survived a power-off of the probe".to_owned()),
        Some(false) => words.push("synced data was lost at a power-off of the probe".to_owned()),
        None => {}
    }
    format!("probe of disk {disk}: {}", words.join(", "))
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// What a volume, or a component of one, met while a fault stood.
#[must_use]
pub fn defect_effects_in_words(what: &str, met: &DefectEffects) -> String {
    if met.asked == 0 {
        return format!("{what} was not used during the fault");
    }
    let parts: Vec<String> = [
        (met.refused, "refused"),
        (met.held_up, "held up"),
        (met.flushes_lost, "syncs acknowledged but not durable"),
        (met.corrupted, "blocks returned with wrong data"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    let parts = if parts.is_empty() { "the fault affected none".to_owned() } else { parts.join(", ") };
    format!("of {} operations on {what} during the fault: {parts}", met.asked)
}

/// Why more became durable on a volume than a disk that loses flushes would have kept.
#[must_use]
pub fn kept_more_in_words(defect: &DiskDefect, what: &str, met: &DefectEffects) -> Option<String> {
    (*defect == DiskDefect::LoseFlush && met.kept_more > 0).then(|| {
        format!(
            "{what} kept more than the fault allows, {} times: more waited for a sync than a volume remembers, or a copy caught up",
            met.kept_more
        )
    })
}

#[cfg(test)]
mod tests {
    use disk::Refusal;

    use super::*;

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
        let (reads_refused, blocks_read) = match tried {
            Tried::Refused(..) => (1000, 1000),
            Tried::NoAnswer(_) => (0, 0),
            Tried::Done(_) => (0, 1000),
        };
        Seen {
            overwrite: tried,
            append: tried,
            sync: tried,
            read: tried,
            reads_refused,
            blocks_read,
            blocks_wrong: 0,
            survived: None,
        }
    }

    fn alone(defect: &DiskDefect) -> StackedDefect {
        StackedDefect::new(&[], defect, &[])
    }

    /// A defect has a receipt from what shows it, has none from a sound disk, and what shows it is no healed disk.
    fn check(defect: DiskDefect, shown: Seen) {
        let among = alone(&defect);
        let effect = |seen: &Seen| among.took_effect("d1", Some(&sound()), seen).verdict;
        assert_eq!(effect(&shown), Verdict::Pass, "{defect:?} {shown:?}");
        assert_eq!(effect(&sound()), Verdict::Fail, "{defect:?}");
        assert_eq!(among.is_gone("d1", &shown).verdict, Verdict::Fail, "{defect:?}");
        assert_eq!(among.is_gone("d1", &sound()).verdict, Verdict::Pass, "{defect:?}");
        assert_eq!(among.is_as_before("d1", &sound()).verdict, Verdict::Pass);
        assert_eq!(among.is_as_before("d1", &shown).verdict, Verdict::Fail, "{defect:?}");
    }

    #[test]
    fn every_defect_is_told_from_a_sound_disk() {
        let eio = Tried::Refused(Refusal::EIO, TOOK);
        check(DiskDefect::Fail, all(eio));
        check(DiskDefect::FailAfter { operations: 3 }, all(eio));
        check(DiskDefect::Stall, all(Tried::NoAnswer(TOOK)));
        check(DiskDefect::Full, Seen { append: Tried::Refused(Refusal::ENOSPC, TOOK), ..sound() });
        let erofs = Tried::Refused(Refusal::EROFS, TOOK);
        let read_only = Seen { overwrite: erofs, append: erofs, sync: erofs, survived: None, ..sound() };
        check(DiskDefect::ReadOnly, read_only);
        check(DiskDefect::LoseFlush, Seen { survived: Some(false), ..sound() });
        let corrupt = |checksums| DiskDefect::Corrupt { share: 0.02, checksums };
        check(corrupt(false), Seen { blocks_wrong: 19, ..sound() });
        check(corrupt(true), Seen { reads_refused: 24, ..sound() });
        check(corrupt(true), Seen { reads_refused: 24, read: eio, ..sound() });
    }

    #[test]
    fn what_is_only_half_of_a_defect_is_no_receipt() {
        let refused = |defect: DiskDefect, seen: Seen| {
            let judged = alone(&defect).took_effect("d1", Some(&sound()), &seen);
            assert_eq!(judged.verdict, Verdict::Fail, "{defect:?} {seen:?}");
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

    /// All four operations take so many milliseconds.
    fn taking(millis: u64) -> Seen {
        let tried = Tried::Done(Duration::from_millis(millis));
        Seen { overwrite: tried, append: tried, sync: tried, read: tried, ..sound() }
    }

    #[test]
    fn a_slow_disk_is_one_on_which_everything_takes_so_long_and_did_not_before() {
        let among = alone(&DiskDefect::Slow { by: Duration::from_millis(20) });
        let effect = |before, seen| among.took_effect("d1", Some(&before), &seen).verdict;
        assert_eq!(effect(taking(2), taking(21)), Verdict::Pass);
        assert_eq!(effect(taking(2), taking(19)), Verdict::Fail);
        assert_eq!(effect(taking(21), taking(21)), Verdict::Unknown);
        let nobody_looked = |seen: Seen| among.took_effect("d1", None, &seen);
        assert_eq!(nobody_looked(taking(21)).verdict, Verdict::Unknown, "the machine may be as slow");
        assert_eq!(nobody_looked(taking(19)).verdict, Verdict::Fail);
        let read = Tried::Done(TOOK);
        assert_eq!(among.is_gone("d1", &Seen { read, ..taking(40) }).verdict, Verdict::Pass);
        let stays = among.is_gone("d1", &taking(20));
        assert_eq!((stays.verdict, stays.next), (Verdict::Fail, Next::LookAgain));
    }

    #[test]
    fn a_look_at_a_slow_disk_reads_little_unless_wrong_blocks_are_to_be_found() {
        let slow = |millis| DiskDefect::Slow { by: Duration::from_millis(millis) };
        let corrupt = DiskDefect::Corrupt { share: 0.02, checksums: false };
        assert_eq!(alone(&slow(100)).effort(true), (PATIENCE + Duration::from_millis(100), 5));
        assert_eq!(alone(&slow(2_000)).effort(true).1, 1);
        assert_eq!(alone(&DiskDefect::Full).effort(true), (PATIENCE, BLOCKS));
        assert_eq!(StackedDefect::new(&[slow(100)], &corrupt, &[]).effort(true).1, 1_000);
        assert_eq!(alone(&DiskDefect::Stall).effort(true), (SILENCE, BLOCKS));
        assert_eq!(alone(&DiskDefect::Stall).effort(false), (PATIENCE, BLOCKS));
    }

    #[test]
    fn what_cannot_be_told_apart_is_unknown_and_the_reason_says_so() {
        let slow = |millis| DiskDefect::Slow { by: Duration::from_millis(millis) };
        let eio = Tried::Refused(Refusal::EIO, TOOK);
        for (other, healed, seen) in [
            (DiskDefect::Fail, DiskDefect::Fail, all(eio)),
            (DiskDefect::Fail, DiskDefect::Full, all(eio)),
            (DiskDefect::Stall, DiskDefect::Fail, all(Tried::NoAnswer(TOOK))),
            (slow(20), slow(10), taking(20)),
            (DiskDefect::LoseFlush, DiskDefect::LoseFlush, Seen { survived: Some(false), ..sound() }),
        ] {
            let among = StackedDefect::new(std::slice::from_ref(&other), &healed, &[]);
            for judged in [among.is_gone("d1", &seen), among.took_effect("d1", Some(&sound()), &seen)] {
                assert_eq!(judged.verdict, Verdict::Unknown, "{other:?} {healed:?}");
                assert!(judged.told.contains("no difference that the probe can measure"), "{}", judged.told);
            }
        }
    }

    #[test]
    fn a_disk_that_is_to_fail_later_explains_a_sound_one_and_a_dead_one_and_nothing_else() {
        let (later, slow) =
            (DiskDefect::FailAfter { operations: 9 }, DiskDefect::Slow { by: Duration::from_millis(5) });
        let among = StackedDefect::new(&[later], &slow, &[]);
        let refused = |millis| all(Tried::Refused(Refusal::EIO, Duration::from_millis(millis)));
        for (seen, expected) in [
            (taking(2), Verdict::Pass),
            (refused(2), Verdict::Pass),
            (refused(6), Verdict::Fail),
            (all(Tried::NoAnswer(TOOK)), Verdict::Fail),
        ] {
            assert_eq!(among.is_gone("d1", &seen).verdict, expected, "{seen:?}");
        }
    }

    #[test]
    fn the_evidence_is_told_in_words() {
        let seen = Seen { append: Tried::Refused(Refusal::ENOSPC, TOOK), ..sound() };
        let told = "probe of disk r1/h1/d1: a write done in 2.00 ms, an append refused with ENOSPC after 2.00 ms, a sync done \
                    in 2.00 ms, a read done in 2.00 ms, synced data survived a power-off of the probe";
        assert_eq!(alone(&DiskDefect::Full).took_effect("r1/h1/d1", None, &seen).told, told);
        let slow = DiskDefect::Slow { by: Duration::from_millis(1) };
        let beside = StackedDefect::new(&[slow, DiskDefect::LoseFlush], &DiskDefect::Full, &[]);
        let both = beside.is_gone("r1/h1/d1", &seen).told;
        assert_eq!(both, format!("{told}; beside this fault it is 1 ms slower, loses flushes"));
        let met = DefectEffects { asked: 7, refused: 2, flushes_lost: 1, ..DefectEffects::default() };
        let told = "of 7 operations on the volume of n1 during the fault: 2 refused, 1 syncs acknowledged but not durable";
        assert_eq!(defect_effects_in_words("the volume of n1", &met), told);
        let met = DefectEffects { kept_more: 2, ..met };
        let doubt = |defect: DiskDefect| kept_more_in_words(&defect, "the volume of n1", &met);
        assert!(
            doubt(DiskDefect::LoseFlush)
                .is_some_and(|told| told.contains("kept more than the fault allows, 2 times"))
        );
        assert_eq!(doubt(DiskDefect::Full), None);
        assert_eq!(
            defect_effects_in_words("the volume of n1", &DefectEffects::default()),
            "the volume of n1 was not used during the fault"
        );
    }
}
