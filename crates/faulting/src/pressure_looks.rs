//! Receipts of pressure: what a node used of the processors, and how often the kernel held it up.
//!
//! Owns the looks and their judgement. CPU time is read from `/proc` by PID namespace, what was held up from the kernel's own
//! count; neither from who set the limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use history::{Receipt, Verdict};
use lab::accounting::use_by_pid_namespace;
use platform::Vm;

/// Between two looks for the first time that the node is held up.
const GLANCE: Duration = Duration::from_millis(50);
/// How long that is looked for.
const HELD_UP_WITHIN: Duration = Duration::from_secs(5);
/// How long is looked on afterwards,
const AFTER: Duration = Duration::from_secs(2);
/// and how often, as long as the node needs too little to show anything.
const LOOKS_AFTER: usize = 3;
/// So often a limit that still stood would hold the node up while it is looked on; then it is shown that it does not.
const DUE_MIN: f64 = 5.0;
/// With less time nothing is shown: the limit holds by periods of 100 ms.
const LEAST: Duration = Duration::from_secs(1);
/// What a node may be seen to use above its limit: ticks of 10 ms, periods, and its init, which reaps.
const ABOVE: f64 = 1.1;
const ABOVE_PROCESSORS: f64 = 0.05;
/// The kernel counts a limit in microseconds of a period, and takes none of less than 1 ms.
const LEAST_LIMIT: f64 = 0.01;
const ROUNDED_BY: f64 = 1e-4;
/// A node that needs this share of what it used under the pressure does as much as then: no two times are alike.
const AS_MUCH: f64 = 0.8;

/// A node's meters at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Meter {
    at: Instant,
    pid_namespace: u64,
    used: Duration,
    /// Periods in which the kernel held the node up, and how long in all.
    held_up: u64,
    held_up_for: Duration,
    /// How many processors the kernel holds the node to; none where to none.
    limit: Option<f64>,
}

impl Meter {
    /// None where the node is off, or is in no group.
    pub(crate) fn read(vm: &Vm) -> Option<Meter> {
        let pid_namespace = vm.pid_namespace()?;
        let held = vm.held_up()?;
        let used = use_by_pid_namespace().ok()?.get(&pid_namespace)?.cpu;
        let (held_up, held_up_for, limit) = (held.periods, held.time, vm.held_to_processors());
        Some(Meter { at: Instant::now(), pid_namespace, used, held_up, held_up_for, limit })
    }
}

/// What a node did between two readings of its meters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// How many processors it used,
    processors: f64,
    /// and how often the kernel held it up.
    held_up_per_s: f64,
}

impl Meter {
    /// None over no time, and where the node was booted meanwhile.
    pub(crate) fn pace_until(&self, ended: &Meter) -> Option<Pace> {
        let time_s = ended.at.duration_since(self.at).as_secs_f64();
        (time_s > 0.0 && self.pid_namespace == ended.pid_namespace).then(|| Pace {
            processors: ended.used.saturating_sub(self.used).as_secs_f64() / time_s,
            held_up_per_s: ended.held_up.saturating_sub(self.held_up) as f64 / time_s,
        })
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
                && self.is_limit_of(now)
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

    /// Whether the kernel holds the node to what is to be left to it, or to less, and not to a limit of its own, which may be
    /// little more.
    fn is_limit_of(&self, meter: &Meter) -> bool {
        meter.limit.is_some_and(|limit| limit <= self.left.max(LEAST_LIMIT) + ROUNDED_BY)
    }

    /// What was used all the time it stood.
    pub(crate) fn judge(&self, began: Option<&Meter>, ended: Option<&Meter>) -> Receipt {
        let node = &self.node;
        let receipt = |verdict, what: String| Receipt { verdict, evidence: vec![what] };
        let (Some(began), Some(ended)) = (began, ended) else {
            return receipt(Verdict::Unknown, format!("the CPU time of {node} could not be read"));
        };
        // The kernel may give out a namespace's number again; the counters of another boot begin anew.
        let Some(times) =
            ended.held_up.checked_sub(began.held_up).filter(|_| began.pid_namespace == ended.pid_namespace)
        else {
            return receipt(Verdict::Unknown, format!("{node} was booted again meanwhile"));
        };
        let time = ended.at.duration_since(began.at);
        let used = ended.used.saturating_sub(began.used).as_secs_f64() / time.as_secs_f64().max(f64::EPSILON);
        let held = ended.held_up_for.saturating_sub(began.held_up_for);
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
            () if times == 0 => {
                receipt(Verdict::Unknown, format!("{what}: the node never used its full share"))
            }
            () if !self.is_limit_of(began) || !self.is_limit_of(ended) => {
                receipt(Verdict::Unknown, format!("{what}; the fault's limit was not in force all the time"))
            }
            () => receipt(Verdict::Pass, what),
        }
    }

    /// Whether it may use more again; `pressed` is what it did while it was pressed.
    pub(crate) fn look_at_healing(&self, vm: &Vm, pressed: Option<Pace>) -> Receipt {
        // The period in which the limit was lifted may still hold it up.
        std::thread::sleep(LEAST / 4);
        let mut began = Meter::read(vm);
        let mut looks = 0;
        loop {
            std::thread::sleep(AFTER);
            let ended = Meter::read(vm);
            let receipt = self.judge_healing(pressed, began.as_ref(), ended.as_ref());
            looks += 1;
            if receipt.verdict != Verdict::Unknown || looks == LOOKS_AFTER {
                return receipt;
            }
            began = ended;
        }
    }

    fn judge_healing(&self, pressed: Option<Pace>, began: Option<&Meter>, ended: Option<&Meter>) -> Receipt {
        let node = &self.node;
        let receipt = |verdict, what: String| Receipt { verdict, evidence: vec![what] };
        let (Some(began), Some(ended)) = (began, ended) else {
            let what = format!("the CPU time of {node} after the fault could not be read");
            return receipt(Verdict::Unknown, what);
        };
        if began.pid_namespace != ended.pid_namespace {
            return receipt(Verdict::Unknown, format!("{node} was booted again after the fault"));
        }
        let time_s = ended.at.duration_since(began.at).as_secs_f64().max(f64::EPSILON);
        let used = ended.used.saturating_sub(began.used).as_secs_f64() / time_s;
        let times = ended.held_up.saturating_sub(began.held_up);
        let what = format!(
            "afterwards {node} used {used:.2} processors in {time_s:.1} s and was throttled {times} times"
        );
        // A node that uses less than under the pressure may need no more.
        let as_before = pressed.filter(|pace| used >= pace.processors * AS_MUCH);
        let due = as_before.map_or(0.0, |pace| pace.held_up_per_s * time_s);
        match () {
            // A limit of its own may hold it up as well, above what was left to it.
            () if used > self.left * ABOVE + ABOVE_PROCESSORS => receipt(Verdict::Pass, what),
            // Steady work may fit into a limit that is still there.
            () if self.is_limit_of(ended) => {
                receipt(Verdict::Fail, format!("{what}; the limit is still in force"))
            }
            () if times > 0 && ended.limit.is_some() => {
                receipt(Verdict::Unknown, format!("{what}, possibly by its own limit"))
            }
            () if times > 0 => receipt(Verdict::Fail, what),
            () if due >= DUE_MIN => {
                receipt(Verdict::Pass, format!("{what}; at the fault's rate it would be {due:.0} times"))
            }
            () => {
                let told = "too little work to show that the pressure ended; keep a load on it afterwards";
                receipt(Verdict::Unknown, format!("{what}: {told}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meters after so many seconds: CPU time used in milliseconds, times held up.
    fn meters(seconds: u64, used_ms: u64, held_up: u64) -> (Meter, Meter) {
        let at = Instant::now();
        let began = Meter {
            at,
            pid_namespace: 1,
            used: Duration::ZERO,
            held_up: 0,
            held_up_for: Duration::ZERO,
            limit: Some(0.4),
        };
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
        let lifted = with_limit(&ended, None);
        let seen = pressed.judge_healing(None, Some(&began), Some(&lifted)).verdict;
        assert_eq!(seen, healed, "{used_ms} {held_up}");
    }

    #[test]
    fn a_node_that_uses_what_it_is_left_and_is_held_up_is_pressed_and_one_that_uses_more_is_not() {
        check(10, 4_000, 90, Verdict::Pass, Verdict::Fail);
        check(10, 9_000, 0, Verdict::Fail, Verdict::Pass);
        check(10, 9_000, 40, Verdict::Fail, Verdict::Pass);
        check(10, 1_000, 0, Verdict::Unknown, Verdict::Unknown);
        check(0, 0, 0, Verdict::Unknown, Verdict::Unknown);
    }

    #[test]
    fn a_node_that_a_limit_of_its_own_holds_up_is_not_pressed() {
        let pressed = Pressed { node: "n1".to_owned(), left: 0.4 };
        let (began, ended) = meters(10, 3_000, 40);
        let judged = |at_first, at_last| {
            let (began, ended) = (with_limit(&began, at_first), with_limit(&ended, at_last));
            pressed.judge(Some(&began), Some(&ended)).verdict
        };
        assert_eq!(judged(Some(0.4), Some(0.4)), Verdict::Pass);
        assert_eq!(judged(Some(2.0), Some(2.0)), Verdict::Unknown, "its own");
        assert_eq!(
            judged(Some(0.44), Some(0.44)),
            Verdict::Unknown,
            "its own, of which a tenth was to be taken"
        );
        assert_eq!(judged(None, None), Verdict::Unknown, "none");
        assert_eq!(judged(Some(0.4), Some(2.0)), Verdict::Unknown, "it was lifted before its time");
    }

    fn with_limit(meter: &Meter, limit: Option<f64>) -> Meter {
        Meter { limit, ..meter.clone() }
    }

    #[test]
    fn an_idle_node_does_not_show_that_the_pressure_has_gone() {
        let pressed = Pressed { node: "n1".to_owned(), left: 0.4 };
        let judged = |pace: Option<Pace>, used_ms: u64, held_up: u64| {
            let (began, ended) = meters(2, used_ms, held_up);
            pressed.judge_healing(pace, Some(&began), Some(&with_limit(&ended, None))).verdict
        };
        let (began, ended) = meters(10, 3_000, 90);
        let often = began.pace_until(&ended);
        assert_eq!(often, Some(Pace { processors: 0.3, held_up_per_s: 9.0 }));
        assert_eq!(judged(often, 0, 0), Verdict::Unknown, "it does nothing");
        assert_eq!(judged(often, 400, 0), Verdict::Unknown, "it does less than under the pressure");
        assert_eq!(judged(often, 590, 0), Verdict::Pass, "it does as much, as far as two times are alike");
        assert_eq!(judged(often, 700, 0), Verdict::Pass, "under the pressure it was held up for so much");
        assert_eq!(judged(often, 700, 3), Verdict::Fail);
        assert_eq!(judged(often, 1_500, 0), Verdict::Pass);
        let (began, ended) = meters(10, 3_000, 2);
        assert_eq!(judged(began.pace_until(&ended), 700, 0), Verdict::Unknown, "it was hardly ever held up");
        assert_eq!(judged(None, 700, 0), Verdict::Unknown);
    }

    #[test]
    fn a_limit_that_the_kernel_still_has_is_found_out_and_a_limit_of_the_nodes_own_is_none_of_the_faults() {
        let pressed = Pressed { node: "n1".to_owned(), left: 0.4 };
        let pace = Some(Pace { processors: 0.3, held_up_per_s: 9.0 });
        let judged = |held_up: u64, limit: Option<f64>| {
            let (began, ended) = meters(2, 700, held_up);
            pressed.judge_healing(pace, Some(&began), Some(&with_limit(&ended, limit))).verdict
        };
        assert_eq!(judged(0, Some(0.4)), Verdict::Fail, "its work fits into it now");
        assert_eq!((judged(0, Some(0.5)), judged(0, None)), (Verdict::Pass, Verdict::Pass));
        assert_eq!(judged(3, Some(0.5)), Verdict::Unknown, "its own may have held it up");
        assert_eq!(judged(3, None), Verdict::Fail);
    }

    #[test]
    fn a_node_whose_meters_belong_to_another_boot_shows_nothing() {
        let pressed = Pressed { node: "n1".to_owned(), left: 0.4 };
        let (began, ended) = meters(10, 4_000, 90);
        let ended = Meter { pid_namespace: 2, ..ended };
        assert_eq!(pressed.judge(Some(&began), Some(&ended)).verdict, Verdict::Unknown);
        assert_eq!(pressed.judge(None, Some(&ended)).verdict, Verdict::Unknown);
        assert_eq!(began.pace_until(&ended), None);
        let healed = |began: Option<&Meter>| pressed.judge_healing(None, began, Some(&ended)).verdict;
        assert_eq!((healed(Some(&began)), healed(None)), (Verdict::Unknown, Verdict::Unknown));
    }
}
