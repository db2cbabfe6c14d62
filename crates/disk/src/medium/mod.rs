//! What is wrong with the disks of one group, what an operation on one of them meets because of it, and what syncs take on a
//! medium that is described.
//!
//! Pure: waits for nothing, reads no clock and draws no chance of its own. Who waits is `disk`; which content an operation
//! reads or writes is the store's business. Of several defects that stand at once an operation meets all: it takes the
//! longest delay, and then the first refusal.

mod corruption;
mod delay;
mod refusal;
mod service;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Refusal;

pub use corruption::Corruption;
pub(crate) use service::Service;
pub use service::SyncTimes;

/// Something wrong with a disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Defect {
    /// Every operation is refused with `EIO`.
    Fail,
    /// As [`Defect::Fail`], once this many operations have been done. A lab's own probes are not counted.
    FailAfter(u64),
    /// Every operation takes this much longer.
    Slow(Duration),
    /// No operation is answered until the defect is cleared.
    Stall,
    /// What needs more room is refused with `ENOSPC`; what lies there may be overwritten.
    Full,
    /// Some of the blocks read are wrong.
    Corrupt(Corruption),
    /// A sync is answered as done, and nothing has become durable.
    LoseFlush,
    /// Whatever would change the disk is refused with `EROFS`.
    ReadOnly,
}

/// What an operation does to a disk, as far as defects tell operations apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// It reads.
    Read,
    /// It changes what lies there, or gives room back.
    Change,
    /// It needs more room.
    Grow,
    /// It asks for durability.
    Sync,
}

/// How an operation is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It is done.
    Truly,
    /// It is answered as done and nothing comes of it.
    InAppearance,
}

/// How long an operation waits before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delay {
    /// So long since it came.
    For(Duration),
    /// Until something changes.
    UntilCleared,
}

/// Which disks of a group a defect concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// One capacity disk, by its number in the group.
    One(usize),
    /// All: the cache disk in front of them has it.
    Group,
}

impl Reach {
    fn includes(self, disk: Reach) -> bool {
        self == Reach::Group || self == disk
    }
}

#[derive(Debug)]
struct Standing {
    reach: Reach,
    defect: Defect,
    /// Operations counted, or blocks drawn for.
    count: u64,
}

/// The defects of a group of disks.
#[derive(Debug, Default)]
pub(crate) struct Medium {
    standing: BTreeMap<u64, Standing>,
    next: u64,
}

impl Medium {
    /// A defect begins. Returns the number by which it is cleared.
    pub(crate) fn impose(&mut self, reach: Reach, defect: Defect) -> u64 {
        self.next += 1;
        self.standing.insert(self.next, Standing { reach, defect, count: 0 });
        self.next
    }

    /// A defect ends.
    pub(crate) fn clear(&mut self, number: u64) {
        self.standing.remove(&number);
    }

    /// Whether nothing is wrong with any disk of the group.
    pub(crate) fn is_sound(&self) -> bool {
        self.standing.is_empty()
    }

    fn of(&mut self, disk: Reach) -> impl Iterator<Item = &mut Standing> {
        self.standing.values_mut().filter(move |standing| standing.reach.includes(disk))
    }

    /// How long an operation waits that came now.
    pub(crate) fn delay(&mut self, disk: Reach) -> Delay {
        self.of(disk)
            .map(|standing| delay::of(&standing.defect))
            .fold(Delay::For(Duration::ZERO), delay::longer)
    }

    /// What becomes of an operation that has waited. `counts` is false for those of the lab's own probes.
    ///
    /// # Errors
    /// What it is refused with.
    pub(crate) fn judge(&mut self, disk: Reach, access: Access, counts: bool) -> Result<Admitted, Refusal> {
        let mut admitted = Admitted::Truly;
        for standing in self.of(disk) {
            refusal::judge(&standing.defect, &mut standing.count, access, counts)?;
            if standing.defect == Defect::LoseFlush && access == Access::Sync {
                admitted = Admitted::InAppearance;
            }
        }
        Ok(admitted)
    }

    /// Whether there is no room, as far as a program can ask.
    pub(crate) fn is_full(&mut self, disk: Reach) -> bool {
        self.of(disk).any(|standing| standing.defect == Defect::Full)
    }

    /// What was read is on its way out: makes some of it wrong. Returns how many blocks.
    ///
    /// # Errors
    /// `EIO` where a checksum shows that a block is wrong; the content is then not to be handed out.
    pub(crate) fn corrupt(&mut self, disk: Reach, content: &mut [u8]) -> Result<u64, Refusal> {
        let mut wrong = 0;
        for standing in self.of(disk) {
            if let Defect::Corrupt(corruption) = standing.defect {
                wrong += corruption.strike(&mut standing.count, content)?;
            }
        }
        Ok(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each kind of operation gets from disk 0 of a group, read, change, grow, sync in turn: `ok`, `as if`, or the
    /// refusal.
    fn check(defects: &[(Reach, Defect)], expected: [&str; 4]) {
        let mut medium = Medium::default();
        for (reach, defect) in defects {
            medium.impose(*reach, *defect);
        }
        let found = [Access::Read, Access::Change, Access::Grow, Access::Sync].map(|access| {
            match medium.judge(Reach::One(0), access, true) {
                Ok(Admitted::Truly) => "ok".to_owned(),
                Ok(Admitted::InAppearance) => "as if".to_owned(),
                Err(refusal) => format!("{refusal:?}"),
            }
        });
        assert_eq!(found, expected, "{defects:?}");
    }

    #[test]
    fn each_defect_refuses_what_it_should_and_nothing_else() {
        let one = Reach::One(0);
        check(&[], ["ok"; 4]);
        check(&[(one, Defect::Fail)], ["EIO"; 4]);
        check(&[(one, Defect::FailAfter(2))], ["ok", "ok", "EIO", "EIO"]);
        check(&[(one, Defect::Slow(Duration::from_secs(1)))], ["ok"; 4]);
        check(&[(one, Defect::Full)], ["ok", "ok", "ENOSPC", "ok"]);
        check(&[(one, Defect::ReadOnly)], ["ok", "EROFS", "EROFS", "EROFS"]);
        check(&[(one, Defect::LoseFlush)], ["ok", "ok", "ok", "as if"]);
        check(&[(one, Defect::LoseFlush), (one, Defect::Full)], ["ok", "ok", "ENOSPC", "as if"]);
    }

    #[test]
    fn a_disk_has_its_own_defects_and_those_of_the_cache_disk_before_it_but_no_neighbours() {
        check(&[(Reach::One(1), Defect::Fail)], ["ok"; 4]);
        check(&[(Reach::Group, Defect::Fail)], ["EIO"; 4]);
        check(
            &[(Reach::Group, Defect::LoseFlush), (Reach::One(1), Defect::Fail)],
            ["ok", "ok", "ok", "as if"],
        );
    }

    #[test]
    fn the_longest_delay_counts_and_a_stall_is_longer_than_any() {
        let mut medium = Medium::default();
        let slow = |millis| Defect::Slow(Duration::from_millis(millis));
        assert_eq!(medium.delay(Reach::One(0)), Delay::For(Duration::ZERO));
        medium.impose(Reach::One(0), slow(20));
        medium.impose(Reach::Group, slow(50));
        assert_eq!(medium.delay(Reach::One(0)), Delay::For(Duration::from_millis(50)));
        let stall = medium.impose(Reach::Group, Defect::Stall);
        assert_eq!(medium.delay(Reach::One(0)), Delay::UntilCleared);
        medium.clear(stall);
        assert_eq!(medium.delay(Reach::One(1)), Delay::For(Duration::from_millis(50)));
    }

    #[test]
    fn operations_of_probes_are_refused_like_all_others_but_do_not_count() {
        let mut medium = Medium::default();
        medium.impose(Reach::Group, Defect::FailAfter(1));
        for _ in 0..5 {
            assert_eq!(medium.judge(Reach::One(0), Access::Sync, false), Ok(Admitted::Truly));
        }
        assert_eq!(medium.judge(Reach::One(0), Access::Sync, true), Ok(Admitted::Truly));
        assert_eq!(medium.judge(Reach::One(0), Access::Sync, false), Err(Refusal::EIO));
    }

    #[test]
    fn what_is_cleared_is_gone() {
        let mut medium = Medium::default();
        let number = medium.impose(Reach::One(0), Defect::Fail);
        assert!(!medium.is_sound());
        medium.clear(number);
        assert!(medium.is_sound());
        assert_eq!(medium.judge(Reach::One(0), Access::Grow, true), Ok(Admitted::Truly));
    }
}
