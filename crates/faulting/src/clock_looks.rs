//! Receipts of clock faults: what programs on the node see of its clock, beside what they must see.
//!
//! Owns the looks and their judgement. The offset is read on the node by the probe, which takes the machine's time by plain
//! system calls just before and just after it asks for the node's, and by a program in C that came with the machine; neither
//! knows what was asked. A second node and the machine itself must have stayed as they were.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clock::{Reading, Shift};
use history::{FaultId, Receipt, Verdict};
use lab::ClockLook;
use lab::node_clock::machine_ns;
use platform::Vm;

/// How far a clock may be seen from what was asked, in nanoseconds.
const TOLERANCE_NS: i64 = 1_000_000;
/// A clock that runs away is looked at once it is so far away.
const SHOWN_NS: i64 = 100_000;
/// Between two looks at how far it is.
const GLANCE: Duration = Duration::from_millis(20);
/// So often is looked again where the machine was too busy to tell.
const ATTEMPTS: usize = 5;

/// A clock that is to be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongClock {
    /// The fault that made it so.
    pub(crate) fault: FaultId,
    /// By how much.
    pub(crate) shift: Shift,
}

/// Whoever looks.
#[derive(Clone)]
pub(crate) struct Onlooker {
    pub(crate) vm: Arc<Vm>,
    /// Another node, whose clock must stay as it is.
    pub(crate) other: Option<Arc<Vm>>,
}

/// What was seen before, and the machine's own clock then.
pub(crate) struct Before {
    seen: Receipt,
    machine: MachineClock,
    /// How often a time service had corrected the clock.
    corrections: u64,
}

/// The machine's wall clock beside its steady one: whoever sets the former moves it against the latter.
struct MachineClock {
    wall_ns: i64,
    steady: Instant,
}

impl MachineClock {
    fn now() -> MachineClock {
        MachineClock { wall_ns: machine_ns(), steady: Instant::now() }
    }

    /// How far the wall clock has moved beyond the time that has passed since.
    fn moved_ns(&self) -> i64 {
        let now = MachineClock::now();
        let passed = i64::try_from((now.steady - self.steady).as_nanos()).unwrap_or(i64::MAX);
        now.wall_ns - self.wall_ns - passed
    }
}

impl Onlooker {
    /// Before the fault: the clock shows what the others that stand leave it.
    pub(crate) fn look_before(&self, fault: FaultId) -> Before {
        let seen = self.look("before the fault", &self.vm, || self.without(fault), None);
        Before { seen, machine: MachineClock::now(), corrections: self.corrections() }
    }

    fn corrections(&self) -> u64 {
        self.vm.clock().map_or(0, |clock| clock.corrections())
    }

    fn without(&self, fault: FaultId) -> Shift {
        self.vm.clock().map_or(Shift::NONE, |clock| clock.without(fault.index()))
    }

    fn wrong(&self, wrong: &WrongClock) -> Shift {
        self.without(wrong.fault).and(wrong.shift)
    }

    /// As soon as it is far enough from what it was to tell.
    pub(crate) fn look_at_effect(&self, wrong: &WrongClock, before: Before, over: &AtomicBool) -> Receipt {
        while wrong.shift.offset_ns_at(machine_ns()).abs() < SHOWN_NS && !over.load(Ordering::Acquire) {
            std::thread::sleep(GLANCE);
        }
        let mut receipt = before.seen;
        let mut add = |more: Receipt| {
            receipt.verdict = receipt.verdict.and(more.verdict);
            receipt.evidence.extend(more.evidence);
        };
        if !over.load(Ordering::Acquire) {
            add(self.look("with the fault", &self.vm, || self.wrong(wrong), Some(wrong.shift)));
            if self.corrections() != before.corrections {
                let what = "the node's time service corrected the clock before it was measured".to_owned();
                add(Receipt { verdict: Verdict::Unknown, evidence: vec![what] });
            }
        }
        if let Some(other) = &self.other {
            let its_own = || other.clock().map_or(Shift::NONE, |clock| clock.shift());
            add(self.look("during the fault", other, its_own, None));
        }
        add(judge_machine(before.machine.moved_ns()));
        add(self.judge_misses());
        receipt
    }

    /// Just before it is set right.
    pub(crate) fn look_while_wrong(&self, wrong: &WrongClock) -> Receipt {
        self.look("before it was healed", &self.vm, || self.wrong(wrong), Some(wrong.shift))
    }

    /// After it was set right by such a step.
    pub(crate) fn look_at_healing(&self, wrong: &WrongClock, step_ns: i64) -> Receipt {
        let mut receipt = self.look("after the fault", &self.vm, || self.without(wrong.fault), None);
        receipt.evidence.insert(0, format!("corrected by a step of {}", milliseconds(-step_ns)));
        let misses = self.judge_misses();
        receipt.verdict = receipt.verdict.and(misses.verdict);
        receipt.evidence.extend(misses.evidence);
        receipt
    }

    /// Looks until the machine was quiet enough to tell, and nobody has set the clock meanwhile.
    fn look(&self, when: &str, vm: &Vm, expected: impl Fn() -> Shift, added: Option<Shift>) -> Receipt {
        let node = vm.name();
        let mut last = Receipt {
            verdict: Verdict::Unknown,
            evidence: vec![format!("{when}: the clock of {node} was not read")],
        };
        for _ in 0..ATTEMPTS {
            let shift = expected();
            let Ok(look) = vm.look_at_clock() else {
                let what =
                    format!("{when}: {node} has no power or does not answer, so its clock cannot be read");
                return Receipt { verdict: Verdict::Unknown, evidence: vec![what] };
            };
            if expected() != shift {
                continue;
            }
            last = judge(&format!("{when}: {node}"), &look, shift, added);
            if last.verdict != Verdict::Unknown {
                break;
            }
        }
        last
    }

    fn judge_misses(&self) -> Receipt {
        let misses = self.vm.clock().map(|clock| clock.misses()).unwrap_or_default();
        let verdict = if misses.is_empty() { Verdict::Pass } else { Verdict::Unknown };
        let evidence =
            misses.iter().map(|miss| format!("{}: does not use the node's clock: {miss}", self.vm.name()));
        Receipt { verdict, evidence: evidence.collect() }
    }
}

fn judge_machine(moved_ns: i64) -> Receipt {
    let what =
        format!("the machine's own clock moved by {} against its monotonic clock", milliseconds(moved_ns));
    let verdict = if moved_ns.abs() <= TOLERANCE_NS { Verdict::Pass } else { Verdict::Unknown };
    Receipt { verdict, evidence: vec![what] }
}

/// Holds a look against what the clock must show; `added` is what the fault has added to that.
fn judge(who: &str, look: &ClockLook, expected: Shift, added: Option<Shift>) -> Receipt {
    let reading = match &look.probe {
        Ok(reading) => reading,
        Err(why) => {
            let what = format!("{who}: the offset could not be read: {why}");
            return Receipt { verdict: Verdict::Unknown, evidence: vec![what] };
        }
    };
    // What shows the fault must tell it from none.
    let added_ns = added.map(|added| added.offset_ns_at(reading.before_ns).abs());
    let tolerance_ns = added_ns.map_or(TOLERANCE_NS, |added_ns| TOLERANCE_NS.min(added_ns / 2));
    let (asked, seen) = (asked_ns(reading, expected), reading.offset_ns());
    let middle_ns = |(least, most): (i64, i64)| least + (most - least) / 2;
    let mut verdict = compare(asked, seen, tolerance_ns);
    let mut evidence = vec![format!(
        "{who}: the clock is {} ± {:.1} us ahead of the machine's; expected {}",
        milliseconds(middle_ns(seen)),
        (seen.1 - seen.0) as f64 / 2e3,
        milliseconds(middle_ns(asked)),
    )];
    match &look.c_program {
        Ok(reading) => {
            let (asked, seen) = (asked_ns(reading, expected), reading.offset_ns());
            let sees = seen.0 <= asked.1 + TOLERANCE_NS && asked.0 - TOLERANCE_NS <= seen.1;
            let (least, most) = (milliseconds(seen.0), milliseconds(seen.1));
            evidence.push(format!("{who}: `date` shows it between {least} and {most} ahead"));
            verdict = verdict.and(if sees { Verdict::Pass } else { Verdict::Fail });
        }
        Err(why) => {
            evidence.push(format!(
                "{who}: `date` could not tell the time, so what programs in C see is not known: {why}"
            ));
            verdict = verdict.and(Verdict::Unknown);
        }
    }
    Receipt { verdict, evidence }
}

/// How far the clock must be while it was looked at.
fn asked_ns(reading: &Reading, expected: Shift) -> (i64, i64) {
    let ends = [expected.offset_ns_at(reading.before_ns), expected.offset_ns_at(reading.after_ns)];
    (ends[0].min(ends[1]), ends[0].max(ends[1]))
}

/// Whether what was seen is surely within the tolerance of what was asked, or surely not.
fn compare(asked: (i64, i64), seen: (i64, i64), tolerance_ns: i64) -> Verdict {
    let most_apart = (seen.1 - asked.0).max(asked.1 - seen.0);
    let least_apart = (seen.0 - asked.1).max(asked.0 - seen.1);
    if most_apart <= tolerance_ns {
        Verdict::Pass
    } else if least_apart > tolerance_ns {
        Verdict::Fail
    } else {
        Verdict::Unknown
    }
}

fn milliseconds(ns: i64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: i64 = 1_800_000_000_000_000_000;
    const SECOND_NS: i64 = 1_000_000_000;

    /// A look at a clock that programs without a C library see so far ahead, and programs in C so far.
    fn look(probe_ns: i64, c_program_ns: i64, width_ns: i64) -> ClockLook {
        let reading = |offset_ns, width_ns| Reading {
            before_ns: NOW_NS,
            shown_ns: NOW_NS + width_ns / 2 + offset_ns,
            after_ns: NOW_NS + width_ns,
        };
        ClockLook { probe: Ok(reading(probe_ns, width_ns)), c_program: Ok(reading(c_program_ns, 40_000_000)) }
    }

    fn verdict(look: &ClockLook, added: Shift) -> Verdict {
        judge("n1", look, added, Some(added)).verdict
    }

    #[test]
    fn a_clock_that_all_programs_see_where_it_must_be_is_shown() {
        let ahead = Shift::jump(5 * SECOND_NS);
        assert_eq!(verdict(&look(5 * SECOND_NS, 5 * SECOND_NS, 400), ahead), Verdict::Pass);
        assert_eq!(verdict(&look(5 * SECOND_NS + 900_000, 5 * SECOND_NS, 400), ahead), Verdict::Pass);
        assert_eq!(verdict(&look(5 * SECOND_NS + 1_100_000, 5 * SECOND_NS, 400), ahead), Verdict::Fail);
    }

    #[test]
    fn a_clock_that_only_some_programs_see_is_not_shown() {
        let ahead = Shift::jump(5 * SECOND_NS);
        assert_eq!(verdict(&look(0, 5 * SECOND_NS, 400), ahead), Verdict::Fail, "programs in C alone");
        assert_eq!(verdict(&look(5 * SECOND_NS, 0, 400), ahead), Verdict::Fail, "all but programs in C");
        assert_eq!(verdict(&look(0, 0, 400), ahead), Verdict::Fail, "none");
    }

    #[test]
    fn a_clock_that_did_not_move_is_told_from_one_that_moved_by_less_than_the_tolerance() {
        let little = Shift::jump(SHOWN_NS);
        assert_eq!(verdict(&look(SHOWN_NS, 0, 400), little), Verdict::Pass);
        assert_eq!(verdict(&look(0, 0, 400), little), Verdict::Fail);
    }

    #[test]
    fn a_look_that_took_long_tells_nothing() {
        let ahead = Shift::jump(5 * SECOND_NS);
        assert_eq!(verdict(&look(5 * SECOND_NS, 5 * SECOND_NS, 4_000_000), ahead), Verdict::Unknown);
        let blind = ClockLook { probe: Err("ended with 3".to_owned()), c_program: Err(String::new()) };
        assert_eq!(verdict(&blind, ahead), Verdict::Unknown);
        let seen = look(5 * SECOND_NS, 5 * SECOND_NS, 400);
        let by_the_probe_alone = ClockLook { c_program: Err("it is not there".to_owned()), ..seen };
        assert_eq!(verdict(&by_the_probe_alone, ahead), Verdict::Unknown);
    }

    #[test]
    fn a_machine_whose_own_clock_moved_is_no_measure() {
        assert_eq!(judge_machine(20_000).verdict, Verdict::Pass);
        assert_eq!(judge_machine(-5_000_000).verdict, Verdict::Unknown);
    }
}
