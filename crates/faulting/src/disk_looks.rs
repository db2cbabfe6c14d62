//! Looking at disks through their probes, and the receipt that comes of it. Owns how often and for how long; what must be
//! seen is in `looks`.

pub(crate) mod defect;
mod foreseen;
pub(crate) mod imposed;
pub(crate) mod judge;

use std::collections::BTreeMap;
use std::time::Duration;

use disk::{Disk, Seen};
use history::{Receipt, Verdict};
use scenario::DiskDefect;
use storage::HostDisks;

use crate::disk_looks::imposed::{Changes, ImposedDefects, Place};
use crate::disk_looks::judge::{Judged, Next, StackedDefect};

/// Looks at one disk at most, where faults come and go meanwhile or the machine is slow.
const LOOKS_MAX: usize = 5;
/// Between two glances at whether what hides a fault is gone.
const GLANCE: Duration = Duration::from_millis(20);
/// Where operations are held up for longer, nobody looks before a further fault: it would come late.
const DELAY_BEFORE_MAX: Duration = Duration::from_millis(10);

/// Whether to wait no longer for what hides a fault, told whether anything has changed.
type GivesUp<'a> = &'a dyn Fn(bool) -> bool;

/// What is looked at, and because of which fault.
#[derive(Clone)]
pub(crate) struct Subject {
    /// The disks.
    pub(crate) probed: Vec<Disk>,
    /// The fault's defect,
    pub(crate) defect: DiskDefect,
    /// and its place among all.
    pub(crate) place: Place,
}

/// What was seen of each disk before a fault, and what that shows.
pub(crate) struct Before {
    seen: BTreeMap<String, Seen>,
    pub(crate) receipt: Receipt,
}

impl Subject {
    /// A look before the fault: the disk must be as those leave it that stand already. A short one, because the fault waits for
    /// it; where that cannot be had, there is none.
    pub(crate) fn look_before(&self, disks: &HostDisks, imposed: &ImposedDefects) -> Before {
        let receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        let mut before = Before { seen: BTreeMap::new(), receipt };
        for disk in &self.probed {
            let (among, _) = imposed.among(disk.name(), Place::NEXT, &self.defect);
            if among.delay_of_others().is_none_or(|delay| delay > DELAY_BEFORE_MAX) {
                continue;
            }
            let (patience, _) = among.effort(false);
            let judged = match disks.look(disk, patience, 1, false) {
                Ok(None) => continue,
                Ok(Some(seen)) => {
                    before.seen.insert(disk.name().to_owned(), seen);
                    among.is_as_before(disk.name(), &seen)
                }
                Err(why) => unknown(why),
            };
            take(&mut before.receipt, judged);
        }
        before
    }

    /// A look while the fault is meant to stand. One that another hides is looked at again when that is gone, unless it
    /// `gives_up` before.
    pub(crate) fn look_at_effect(
        &self,
        disks: &HostDisks,
        imposed: &ImposedDefects,
        (before, gives_up): (&Before, GivesUp<'_>),
    ) -> Receipt {
        self.look((disks, imposed), true, gives_up, |among, disk, seen| {
            among.took_effect(disk, before.seen.get(disk), seen)
        })
    }

    /// A look when it has been cleared. What another hides is looked at again when that is gone, unless it
    /// `gives_up` before.
    pub(crate) fn look_at_healing(
        &self,
        disks: &HostDisks,
        imposed: &ImposedDefects,
        gives_up: GivesUp<'_>,
    ) -> Receipt {
        self.look((disks, imposed), false, gives_up, StackedDefect::is_gone)
    }

    fn look(
        &self,
        (disks, imposed): (&HostDisks, &ImposedDefects),
        stands: bool,
        gives_up: GivesUp<'_>,
        judge: impl Fn(&StackedDefect, &str, &Seen) -> Judged,
    ) -> Receipt {
        let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        for disk in &self.probed {
            let name = disk.name();
            let mut judged = unknown(String::new());
            let mut looks = 0;
            while looks < LOOKS_MAX {
                looks += 1;
                let (among, changes) = imposed.among(name, self.place, &self.defect);
                let (patience, blocks) = among.effort(stands);
                judged = match disks.look(disk, patience, blocks, true) {
                    Ok(_) if imposed.changes(name) != changes => {
                        unknown(format!("faults on disk {name} changed while it was being probed"))
                    }
                    Ok(Some(seen)) => judge(&among, name, &seen),
                    Ok(None) => unknown(format!("disk {name} could not be probed")),
                    Err(why) => Judged { next: Next::Done, ..unknown(why) },
                };
                match judged.next {
                    Next::Done => break,
                    Next::LookAgain => {}
                    Next::WaitForChange => {
                        if !waits_for_change(imposed, (name, changes), gives_up) {
                            break;
                        }
                        looks = 0;
                    }
                }
            }
            take(&mut receipt, judged);
        }
        receipt
    }
}

/// Whether something else stands on a disk than when that had changed so often, in the end.
fn waits_for_change(imposed: &ImposedDefects, (disk, seen): (&str, Changes), gives_up: GivesUp<'_>) -> bool {
    loop {
        let has_changed = imposed.changes(disk) != seen;
        if gives_up(has_changed) {
            return false;
        }
        if has_changed {
            return true;
        }
        std::thread::sleep(GLANCE);
    }
}

fn unknown(told: String) -> Judged {
    Judged { verdict: Verdict::Unknown, told, next: Next::LookAgain }
}

fn take(receipt: &mut Receipt, judged: Judged) {
    receipt.verdict = receipt.verdict.and(judged.verdict);
    receipt.evidence.push(judged.told);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use disk::DefectGuard;

    use super::defect::made;
    use super::*;

    /// How often two looks are repeated that a busy machine has left half open.
    const REPEATED: usize = 5;

    /// One of each kind.
    fn kinds() -> [DiskDefect; 8] {
        let corrupt = |checksums| DiskDefect::Corrupt { share: 0.5, checksums };
        let by = Duration::from_millis(10);
        [
            DiskDefect::Fail,
            DiskDefect::Slow { by },
            DiskDefect::Stall,
            DiskDefect::Full,
            DiskDefect::ReadOnly,
            DiskDefect::LoseFlush,
            corrupt(false),
            corrupt(true),
        ]
    }

    fn name(defect: &DiskDefect) -> &'static str {
        match defect {
            DiskDefect::Fail | DiskDefect::FailAfter { .. } => "fail",
            DiskDefect::Slow { .. } => "slow",
            DiskDefect::Stall => "stall",
            DiskDefect::Full => "full",
            DiskDefect::ReadOnly => "read-only",
            DiskDefect::LoseFlush => "lose-flush",
            DiskDefect::Corrupt { checksums: false, .. } => "corrupt",
            DiskDefect::Corrupt { checksums: true, .. } => "noticed",
        }
    }

    /// A host with two disks behind a cache disk, and what stands on them.
    struct DiskBench {
        disks: HostDisks,
        imposed: ImposedDefects,
        _folder: tempfile::TempDir,
    }

    impl DiskBench {
        fn new() -> DiskBench {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let asked = scenario::Disks { capacity: 2, groups: 1, cache: true, ..Default::default() };
            let disks = HostDisks::new(&["h".to_owned()], asked, folder.path().to_owned());
            DiskBench { disks, imposed: ImposedDefects::default(), _folder: folder }
        }

        /// Imposes a defect, or, as a planted failure to, only says so.
        fn strike(
            &self,
            disk: &str,
            defect: &DiskDefect,
            truly: bool,
        ) -> (Subject, Before, Option<DefectGuard>) {
            let (disk, behind) = self.disks.named(disk).expect("a disk");
            let struck: BTreeSet<String> = behind.iter().map(|disk| disk.name().to_owned()).collect();
            let mut subject = Subject { probed: behind, defect: defect.clone(), place: Place::NEXT };
            let before = subject.look_before(&self.disks, &self.imposed);
            let impose = || truly.then(|| disk.impose(made(defect, 1)));
            let (place, guard) = self.imposed.impose(defect, &struck, impose);
            subject.place = place;
            (subject, before, guard)
        }

        fn heal(&self, subject: &Subject, guard: Option<DefectGuard>) -> Receipt {
            self.imposed.clear(subject.place, || drop(guard));
            subject.look_at_healing(&self.disks, &self.imposed, &|_| true)
        }
    }

    /// What is seen of a second fault beneath, or beside, a first one: that it took effect, that it is gone, and, as a planted
    /// failure to heal, that it is not.
    fn second_of(first: &DiskDefect, second: &DiskDefect) -> (Verdict, Option<Verdict>, Verdict) {
        let bench = DiskBench::new();
        let (_first, _, _standing) = bench.strike("h/c1", first, true);
        let (subject, before, guard) = bench.strike("h/d1", second, true);
        assert_eq!(before.receipt.verdict, Verdict::Pass, "{:?}", before.receipt);
        let effect = subject.look_at_effect(&bench.disks, &bench.imposed, (&before, &|_| true)).verdict;
        // Waiting for each operation of a disk that stays silent takes long, and is tried elsewhere.
        let stays = (second != &DiskDefect::Stall || first == &DiskDefect::Stall).then(|| {
            bench.imposed.clear(subject.place, || ());
            subject.look_at_healing(&bench.disks, &bench.imposed, &|_| true).verdict
        });
        (effect, stays, bench.heal(&subject, guard).verdict)
    }

    #[test]
    fn of_two_faults_on_one_disk_each_has_its_receipts_unless_they_cannot_be_told_apart() {
        let pairs: Vec<(DiskDefect, DiskDefect)> =
            kinds().into_iter().flat_map(|first| kinds().map(|second| (first.clone(), second))).collect();
        let seen: Vec<_> = std::thread::scope(|scope| {
            let looked = |(first, second): &(DiskDefect, DiskDefect)| second_of(first, second);
            let threads: Vec<_> = pairs.iter().map(|pair| scope.spawn(move || looked(pair))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut hidden = Vec::new();
        for ((first, second), mut seen) in pairs.iter().zip(seen) {
            // A busy machine may leave one of two looks open: then they are repeated, without the other pairs beside them.
            let is_half_open = |(effect, _, gone): (Verdict, Option<Verdict>, Verdict)| {
                (effect == Verdict::Unknown) != (gone == Verdict::Unknown)
            };
            for _ in 0..REPEATED {
                if is_half_open(seen) {
                    seen = second_of(first, second);
                }
            }
            let (effect, stays, gone) = seen;
            let told = format!("{} beneath {}", name(second), name(first));
            if (effect, gone) == (Verdict::Unknown, Verdict::Unknown) {
                assert!(stays.is_none_or(|stays| stays == Verdict::Unknown), "{told}: {stays:?}");
                hidden.push(told);
            } else {
                assert_eq!((effect, gone), (Verdict::Pass, Verdict::Pass), "{told}");
                assert!(stays.is_none_or(|stays| stays == Verdict::Fail), "{told}: {stays:?}");
            }
        }
        // A dead or silent disk hides all, and what does the same hides what does no more.
        assert_eq!(
            hidden,
            [
                "fail beneath fail",
                "full beneath fail",
                "read-only beneath fail",
                "lose-flush beneath fail",
                "corrupt beneath fail",
                "noticed beneath fail",
                "slow beneath slow",
                "fail beneath stall",
                "slow beneath stall",
                "stall beneath stall",
                "full beneath stall",
                "read-only beneath stall",
                "lose-flush beneath stall",
                "corrupt beneath stall",
                "noticed beneath stall",
                "full beneath full",
                "full beneath read-only",
                "read-only beneath read-only",
                "lose-flush beneath read-only",
                "lose-flush beneath lose-flush",
                "corrupt beneath corrupt",
                "noticed beneath noticed",
            ]
        );
    }

    #[test]
    fn a_fault_that_another_hides_has_its_receipts_once_that_one_is_gone() {
        let bench = DiskBench::new();
        let (first, _, over_it) = bench.strike("h/c1", &DiskDefect::Fail, true);
        let (subject, before, guard) = bench.strike("h/d1", &DiskDefect::Full, true);
        let (disks, imposed) = (&bench.disks, &bench.imposed);
        let effect = std::thread::scope(|scope| {
            let looking = scope.spawn(|| subject.look_at_effect(disks, imposed, (&before, &|_| false)));
            assert_eq!(bench.heal(&first, over_it).verdict, Verdict::Pass);
            looking.join().expect("no panic")
        });
        assert_eq!(effect.verdict, Verdict::Pass, "{effect:?}");
        assert_eq!(bench.heal(&subject, guard).verdict, Verdict::Pass);
    }

    #[test]
    fn a_fault_that_is_only_announced_has_no_receipt_whatever_stands_beside_it() {
        for second in [DiskDefect::Full, DiskDefect::LoseFlush, DiskDefect::Fail] {
            let bench = DiskBench::new();
            let by = Duration::from_millis(2);
            let (_first, _, _standing) = bench.strike("h/c1", &DiskDefect::Slow { by }, true);
            let (subject, before, _) = bench.strike("h/d1", &second, false);
            let looked = subject.look_at_effect(&bench.disks, &bench.imposed, (&before, &|_| true));
            assert_eq!(looked.verdict, Verdict::Fail, "{looked:?}");
        }
    }
}
