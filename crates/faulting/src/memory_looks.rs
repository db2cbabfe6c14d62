//! Receipts of pressure on memory: what a node uses, how often it met its limit, and how many of its processes the kernel
//! killed for it.
//!
//! Owns the looks and their judgement. All figures are the kernel's own counts of the node's group, not those of who set the
//! limit.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use history::{Receipt, Verdict};
use lab::memory_groups::MemoryMeter;
use platform::Vm;
use scenario::units::approximate_size;

use crate::process_looks::Onlooker;

/// Between two looks for the first time that the node meets its limit.
const GLANCE: Duration = Duration::from_millis(50);
/// How long that is looked for.
const MET_WITHIN: Duration = Duration::from_secs(5);
/// Both versions tell a group without a limit as a number near the largest.
const NO_LIMIT: u64 = 1 << 60;
/// A limit that holds may be exceeded by so much. Of `memory.max` the kernel says that under certain circumstances the usage may
/// go over the limit temporarily: an allocation that must not fail, as of a socket or of the kernel itself, is granted beyond it.
/// Such allocations are of a few pages; this is 256 pages of 4 KiB.
const MAY_EXCEED_BYTES: u64 = 1 << 20;
/// How long is looked on afterwards.
const AFTER: Duration = Duration::from_secs(2);

/// A node that is left so much memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Squeezed {
    pub(crate) node: String,
    pub(crate) left_bytes: u64,
    /// What it might use before the fault.
    pub(crate) limit_before_bytes: u64,
}

fn receipt(verdict: Verdict, what: String) -> Receipt {
    Receipt { verdict, evidence: vec![what] }
}

fn size(bytes: u64) -> String {
    match bytes {
        // More than any machine has: the kernel's word for no limit.
        NO_LIMIT.. => "none".to_owned(),
        bytes => approximate_size(bytes as f64),
    }
}

impl Squeezed {
    /// Whether the node begins to meet the limit that was asked for.
    pub(crate) fn look_at_effect(&self, vm: &Vm, began: Option<MemoryMeter>, over: &AtomicBool) -> Receipt {
        let started = Instant::now();
        let Some(began) = began else {
            return receipt(Verdict::Unknown, format!("the memory of {} could not be read", self.node));
        };
        loop {
            let now = vm.memory_meter();
            let seen = self.judge_effect(began, now, started.elapsed());
            let is_over = started.elapsed() >= MET_WITHIN || over.load(Ordering::Acquire);
            if is_over || seen.verdict == Verdict::Pass {
                return seen;
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn judge_effect(&self, began: MemoryMeter, now: Option<MemoryMeter>, after: Duration) -> Receipt {
        let (node, after_s) = (&self.node, after.as_secs_f64());
        let Some(now) = now else {
            return receipt(Verdict::Unknown, format!("the memory of {node} could not be read"));
        };
        let limit = size(now.limit_bytes);
        if now.limit_bytes > self.left_bytes {
            let asked = size(self.left_bytes);
            let what =
                format!("after {after_s:.1} s the memory limit of {node} is {limit}; {asked} was requested");
            return receipt(Verdict::Unknown, what);
        }
        if now.times_at_limit <= began.times_at_limit {
            let what = format!("{node} did not reach its memory limit for {after_s:.1} s");
            return receipt(Verdict::Unknown, what);
        }
        let used = size(began.used_bytes);
        receipt(Verdict::Pass, format!("{node} used {used}, may use {limit} now, and wanted more"))
    }

    /// What was counted all the time it stood.
    pub(crate) fn judge(&self, began: Option<MemoryMeter>, ended: Option<MemoryMeter>) -> Receipt {
        let node = &self.node;
        let (Some(began), Some(ended)) = (began, ended) else {
            return receipt(Verdict::Unknown, format!("the memory of {node} could not be read"));
        };
        // A node that was booted again counts from nothing in a group of the same name.
        if ended.times_at_limit < began.times_at_limit || ended.killed < began.killed {
            return receipt(Verdict::Unknown, format!("the memory counters of {node} were reset meanwhile"));
        }
        let (times, killed) = (ended.times_at_limit - began.times_at_limit, ended.killed - began.killed);
        let what = format!(
            "{node} used {} before the fault; limit {} requested, {} set; it used {} at the end, reached the limit {times} times, \
             and the kernel killed {killed} of its processes",
            size(began.used_bytes),
            size(self.left_bytes),
            size(ended.limit_bytes),
            size(ended.used_bytes),
        );
        match () {
            () if ended.limit_bytes >= began.used_bytes => receipt(Verdict::Fail, what),
            () if ended.used_bytes > ended.limit_bytes.saturating_add(MAY_EXCEED_BYTES) => {
                receipt(Verdict::Fail, what)
            }
            () if ended.limit_bytes > self.left_bytes => {
                receipt(Verdict::Unknown, format!("{what}; the limit never came down to what was requested"))
            }
            () if times == 0 => receipt(Verdict::Unknown, what),
            () => receipt(Verdict::Pass, what),
        }
    }

    /// Whether it may use more again, and its database answers.
    pub(crate) fn look_at_healing(
        &self,
        vm: &Vm,
        onlooker: Option<&Onlooker>,
        patience: Duration,
    ) -> Receipt {
        let began = vm.memory_meter();
        std::thread::sleep(AFTER);
        let mut seen = self.judge_healing(began, vm.memory_meter());
        let (verdict, what) = self.wait_for_answer(onlooker.map(|one| move || one.answers()), patience);
        seen.verdict = seen.verdict.and(verdict);
        seen.evidence.push(what);
        seen
    }

    /// Whether its database answers in time; `answers` is none where nobody can look.
    fn wait_for_answer(&self, answers: Option<impl Fn() -> bool>, patience: Duration) -> (Verdict, String) {
        let node = &self.node;
        let Some(answers) = answers else {
            let what = format!("there is no client to probe {node}, so whether it answers is unknown");
            return (Verdict::Unknown, what);
        };
        let started = Instant::now();
        while !answers() {
            if started.elapsed() >= patience {
                let waited = started.elapsed().as_secs_f64();
                return (Verdict::Unknown, format!("{node} does not answer {waited:.0} s after the fault"));
            }
            std::thread::sleep(GLANCE);
        }
        (Verdict::Pass, format!("{node} answers"))
    }

    fn judge_healing(&self, began: Option<MemoryMeter>, ended: Option<MemoryMeter>) -> Receipt {
        let node = &self.node;
        let (Some(began), Some(ended)) = (began, ended) else {
            let what = format!("the memory of {node} after the fault could not be read");
            return receipt(Verdict::Unknown, what);
        };
        let times = ended.times_at_limit.saturating_sub(began.times_at_limit);
        let what = format!("after healing {node} uses {} and hit no limit", size(ended.used_bytes));
        match () {
            () if times > 0 => {
                receipt(Verdict::Fail, format!("{node} still hit a memory limit {times} times after healing"))
            }
            () if ended.limit_bytes < self.limit_before_bytes => {
                let left = size(ended.limit_bytes);
                receipt(Verdict::Fail, format!("after healing {node} is still limited to {left}"))
            }
            () => receipt(Verdict::Pass, what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn meter(used: u64, limit: u64, times: u64, killed: u64) -> Option<MemoryMeter> {
        let (used_bytes, limit_bytes) = (used * MIB, limit * MIB);
        Some(MemoryMeter { used_bytes, limit_bytes, times_at_limit: times, killed })
    }

    fn squeezed() -> Squeezed {
        Squeezed { node: "n1".to_owned(), left_bytes: 60 * MIB, limit_before_bytes: MIB << 30 }
    }

    #[test]
    fn a_node_that_is_left_less_than_it_used_and_wants_more_is_squeezed() {
        let judged = |ended| squeezed().judge(meter(100, 1 << 30, 3, 0), ended).verdict;
        assert_eq!(judged(meter(60, 60, 9, 1)), Verdict::Pass);
        assert_eq!(judged(meter(80, 80, 9, 0)), Verdict::Unknown, "the limit never came down to 60 MiB");
        assert_eq!(judged(meter(60, 60, 3, 0)), Verdict::Unknown, "it never wanted more");
        assert_eq!(judged(meter(100, 1 << 30, 3, 0)), Verdict::Fail, "nothing was limited");
        assert_eq!(judged(meter(70, 60, 9, 0)), Verdict::Fail, "the limit does not hold");
        assert_eq!(judged(meter(10, 60, 0, 0)), Verdict::Unknown, "another boot");
        assert_eq!(judged(None), Verdict::Unknown);
    }

    #[test]
    fn a_limit_that_a_few_pages_of_the_kernels_own_exceed_holds_and_one_exceeded_by_more_does_not() {
        let judged = |over_bytes: u64| {
            let ended = meter(60, 60, 9, 1)
                .map(|meter| MemoryMeter { used_bytes: meter.limit_bytes + over_bytes, ..meter });
            squeezed().judge(meter(100, 1 << 30, 3, 0), ended).verdict
        };
        assert_eq!(judged(0), Verdict::Pass);
        assert_eq!(judged(16 * 4_096), Verdict::Pass);
        assert_eq!(judged(MAY_EXCEED_BYTES), Verdict::Pass);
        assert_eq!(judged(MAY_EXCEED_BYTES + 4_096), Verdict::Fail);
    }

    #[test]
    fn a_limit_that_is_met_before_it_came_down_to_what_was_asked_is_no_effect() {
        let began = meter(100, 1 << 30, 3, 0).expect("a meter");
        let judged = |now| squeezed().judge_effect(began, now, Duration::from_secs(1));
        assert_eq!(judged(meter(60, 60, 9, 0)).verdict, Verdict::Pass);
        assert_eq!(judged(meter(60, 60, 3, 0)).verdict, Verdict::Unknown, "it wanted no more");
        assert_eq!(judged(meter(100, 1 << 30, 9, 0)).verdict, Verdict::Unknown, "nothing was limited");
        assert_eq!(judged(None).verdict, Verdict::Unknown);
        let half_way = judged(meter(80, 80, 9, 0));
        assert_eq!(half_way.verdict, Verdict::Unknown, "{half_way:?}");
        assert!(half_way.evidence[0].contains("the memory limit of n1 is "), "{half_way:?}");
    }

    #[test]
    fn a_database_that_nobody_can_ask_is_not_said_to_answer() {
        let judged = |answers: Option<fn() -> bool>| squeezed().wait_for_answer(answers, Duration::ZERO).0;
        assert_eq!(judged(Some(|| true)), Verdict::Pass);
        assert_eq!(judged(Some(|| false)), Verdict::Unknown);
        assert_eq!(judged(None), Verdict::Unknown);
    }

    #[test]
    fn a_limit_that_is_still_met_or_still_there_has_not_healed() {
        let judged = |ended| squeezed().judge_healing(meter(60, 1 << 30, 9, 1), ended).verdict;
        assert_eq!(judged(meter(90, 1 << 30, 9, 1)), Verdict::Pass);
        assert_eq!(judged(meter(90, 1 << 30, 12, 1)), Verdict::Fail);
        assert_eq!(judged(meter(60, 60, 9, 1)), Verdict::Fail);
        assert_eq!(judged(meter(70, 80, 9, 1)), Verdict::Fail, "where the kernel stopped half way");
        assert_eq!(judged(None), Verdict::Unknown);
    }
}
