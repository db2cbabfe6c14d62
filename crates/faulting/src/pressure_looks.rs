//! Receipts of pressure: what a node used of the processors, and how often the kernel held it up.
//!
//! Owns the looks and their judgement. CPU time is read from `/proc` by PID namespace, what was held up from the kernel's own
//! count; neither from who set the limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use history::{Receipt, Verdict};
use lab::accounting::cpu_time_by_pid_namespace;
use platform::Vm;

/// Between two looks for the first time that the node is held up.
const GLANCE: Duration = Duration::from_millis(50);
/// How long that is looked for.
const HELD_UP_WITHIN: Duration = Duration::from_secs(5);
/// How long is looked on afterwards.
const AFTER: Duration = Duration::from_secs(2);
/// With less time nothing is shown: the limit holds by periods of 100 ms.
const LEAST: Duration = Duration::from_secs(1);
/// What a node may be seen to use above its limit: ticks of 10 ms, periods, and its init, which reaps.
const ABOVE: f64 = 1.1;
const ABOVE_PROCESSORS: f64 = 0.05;

/// A node's meters at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Meter {
    at: Instant,
    pid_namespace: u64,
    used: Duration,
    /// Periods in which the kernel held the node up, and how long in all.
    held_up: u64,
    held_up_for: Duration,
}

impl Meter {
    /// None where the node is off, or is in no group.
    pub(crate) fn read(vm: &Vm) -> Option<Meter> {
        let pid_namespace = vm.pid_namespace()?;
        let held = vm.held_up()?;
        let used = *cpu_time_by_pid_namespace().ok()?.get(&pid_namespace)?;
        Some(Meter { at: Instant::now(), pid_namespace, used, held_up: held.periods, held_up_for: held.time })
    }
}

/// A node that is left so many processors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pressed {
    pub(crate) node: String,
    pub(crate) left: f64,
}

impl Pressed {
    /// Whether the kernel begins to hold the node up.
    pub(crate) fn look_at_effect(&self, vm: &Vm, began: Option<&Meter>, over: &AtomicBool) -> Receipt {
        let started = Instant::now();
        loop {
            let now = Meter::read(vm);
            if let (Some(began), Some(now)) = (began, &now)
                && now.held_up > began.held_up
            {
                let (node, left) = (&self.node, self.left);
                let what =
                    format!("{node} has {left:.2} processors left, and the kernel throttles it beyond that");
                return Receipt { verdict: Verdict::Pass, evidence: vec![what] };
            }
            if started.elapsed() >= HELD_UP_WITHIN || over.load(Ordering::Acquire) {
                let what =
                    format!("{} was not throttled for {:.1} s", self.node, started.elapsed().as_secs_f64());
                return Receipt { verdict: Verdict::Unknown, evidence: vec![what] };
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// What was used all the time it stood.
    pub(crate) fn judge(&self, began: Option<&Meter>, ended: Option<&Meter>) -> Receipt {
        let node = &self.node;
        let receipt = |verdict, what: String| Receipt { verdict, evidence: vec![what] };
        let (Some(began), Some(ended)) = (began, ended) else {
            return receipt(Verdict::Unknown, format!("the CPU time of {node} could not be read"));
        };
        if began.pid_namespace != ended.pid_namespace {
            return receipt(Verdict::Unknown, format!("{node} was booted again meanwhile"));
        }
        let time = ended.at.duration_since(began.at);
        let used = ended.used.saturating_sub(began.used).as_secs_f64() / time.as_secs_f64().max(f64::EPSILON);
        let (times, held) =
            (ended.held_up - began.held_up, ended.held_up_for.saturating_sub(began.held_up_for));
        let what = format!(
            "in {:.1} s {node} used {used:.2} of the {:.2} processors left to it; the kernel throttled it {times} \
             times, for {:.1} s in total",
            time.as_secs_f64(),
            self.left,
            held.as_secs_f64()
        );
        match () {
            () if time < LEAST => receipt(Verdict::Unknown, format!("{what}; too short to judge")),
            () if used > self.left * ABOVE + ABOVE_PROCESSORS => receipt(Verdict::Fail, what),
            () if times == 0 => receipt(Verdict::Unknown, format!("{what}: it never needed more")),
            () => receipt(Verdict::Pass, what),
        }
    }

    /// Whether it may use more again.
    pub(crate) fn look_at_healing(&self, vm: &Vm) -> Receipt {
        // The period in which the limit was lifted may still hold it up.
        std::thread::sleep(LEAST / 4);
        let began = Meter::read(vm);
        std::thread::sleep(AFTER);
        let (Some(began), Some(ended)) = (began, Meter::read(vm)) else {
            let what = format!("the CPU time of {} after the fault could not be read", self.node);
            return Receipt { verdict: Verdict::Unknown, evidence: vec![what] };
        };
        self.judge_healing(&began, &ended)
    }

    fn judge_healing(&self, began: &Meter, ended: &Meter) -> Receipt {
        let time_s = ended.at.duration_since(began.at).as_secs_f64().max(f64::EPSILON);
        let used = ended.used.saturating_sub(began.used).as_secs_f64() / time_s;
        let times = ended.held_up.saturating_sub(began.held_up);
        let node = &self.node;
        let what = format!(
            "afterwards {node} used {used:.2} processors in {time_s:.1} s and was throttled {times} times"
        );
        // A limit of its own may hold it up as well, above what was left to it.
        let verdict = if times == 0 || used > self.left * ABOVE + ABOVE_PROCESSORS {
            Verdict::Pass
        } else {
            Verdict::Fail
        };
        Receipt { verdict, evidence: vec![what] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meters after so many seconds: CPU time used in milliseconds, times held up.
    fn meters(seconds: u64, used_ms: u64, held_up: u64) -> (Meter, Meter) {
        let at = Instant::now();
        let began =
            Meter { at, pid_namespace: 1, used: Duration::ZERO, held_up: 0, held_up_for: Duration::ZERO };
        let ended = Meter {
            at: at + Duration::from_secs(seconds),
            used: Duration::from_millis(used_ms),
            held_up,
            held_up_for: Duration::from_millis(held_up * 50),
            ..began.clone()
        };
        (began, ended)
    }

    fn check(seconds: u64, used_ms: u64, held_up: u64, expected: Verdict, healed: Verdict) {
        let pressed = Pressed { node: "n1".to_owned(), left: 0.4 };
        let (began, ended) = meters(seconds, used_ms, held_up);
        assert_eq!(pressed.judge(Some(&began), Some(&ended)).verdict, expected, "{used_ms} {held_up}");
        assert_eq!(pressed.judge_healing(&began, &ended).verdict, healed, "{used_ms} {held_up}");
    }

    #[test]
    fn a_node_that_uses_what_it_is_left_and_is_held_up_is_pressed_and_one_that_uses_more_is_not() {
        check(10, 4_000, 90, Verdict::Pass, Verdict::Fail);
        check(10, 9_000, 0, Verdict::Fail, Verdict::Pass);
        check(10, 9_000, 40, Verdict::Fail, Verdict::Pass);
        check(10, 1_000, 0, Verdict::Unknown, Verdict::Pass);
        check(0, 0, 0, Verdict::Unknown, Verdict::Pass);
    }

    #[test]
    fn a_node_whose_meters_belong_to_another_boot_shows_nothing() {
        let pressed = Pressed { node: "n1".to_owned(), left: 0.4 };
        let (began, ended) = meters(10, 4_000, 90);
        let ended = Meter { pid_namespace: 2, ..ended };
        assert_eq!(pressed.judge(Some(&began), Some(&ended)).verdict, Verdict::Unknown);
        assert_eq!(pressed.judge(None, Some(&ended)).verdict, Verdict::Unknown);
    }
}
