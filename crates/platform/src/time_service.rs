//! The time service of each node: compares the node's wall clock with the true time now and then, and corrects it.
//!
//! Owns when it looks and how it corrects. What the clock is made of is `lab`'s. It is a perfect service: the true time is the
//! machine's own, and no network lies between.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use clock::Rate;
use history::{EventKind, PlatformAction};
use lab::node_clock::machine_ns;
use scenario::{ClockCorrection, TimeService};

use crate::platform::Platform;
use crate::vm::Vm;

/// A clock that is off by less is right. Above what the time of a look may differ by.
const RIGHT_NS: i64 = 1_000_000;
/// How fast a clock is slewed: the default of chrony's `maxslewrate`, 83,333 ppm (chrony.conf(5)).
const SLEW_PARTS_PER_BILLION: i64 = 83_333_000;
/// It ends at most so long after the platform.
const GLANCE: Duration = Duration::from_millis(100);
/// Corrections are told at most so often.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// The service of one node.
struct Keeper {
    platform: Weak<Platform>,
    vm: Arc<Vm>,
    service: TimeService,
    /// Since when it has seen the clock wrong.
    wrong_since: Option<Instant>,
    slews: bool,
    told: Option<Instant>,
}

impl Platform {
    /// Starts the service on each node that has a clock of its own.
    pub(crate) fn keep_time(self: &Arc<Self>, service: TimeService) {
        for vm in self.datacentre.vms.iter().filter(|vm| vm.clock().is_some()) {
            let platform = Arc::downgrade(self);
            let mut keeper =
                Keeper { platform, vm: vm.clone(), service, wrong_since: None, slews: false, told: None };
            let started =
                std::thread::Builder::new().name("time service".to_owned()).spawn(move || keeper.keep());
            if let Err(error) = started {
                self.trouble(&format!("start the time service of {}", vm.name()), &error.to_string());
            }
        }
    }
}

impl Keeper {
    fn keep(&mut self) {
        let mut next = self.service.poll;
        while self.wait(next) {
            next = self.look();
        }
    }

    /// False when the platform is gone, or begins nothing any more.
    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if self.platform.upgrade().is_none_or(|platform| platform.state().stopping) {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(GLANCE));
        }
    }

    /// Compares the clock and corrects it where it must be. Returns how long until the next look.
    fn look(&mut self) -> Duration {
        let vm = self.vm.clone();
        let Some(clock) = vm.clock() else { return self.service.poll };
        let wrong_ns = clock.shift().offset_ns_at(machine_ns());
        if wrong_ns.abs() < RIGHT_NS || !vm.is_on() {
            if std::mem::take(&mut self.slews) {
                clock.slew(Rate::default());
            }
            self.wrong_since = None;
            return self.service.poll;
        }
        let since = *self.wrong_since.get_or_insert_with(Instant::now);
        let unnoticed = self.service.notice.saturating_sub(since.elapsed());
        if !unnoticed.is_zero() {
            return unnoticed.min(self.service.poll);
        }
        match self.service.how {
            ClockCorrection::Step => {
                clock.step();
                self.tell("steps", wrong_ns);
                self.wrong_since = None;
                self.service.poll
            }
            ClockCorrection::Slew => {
                let parts_per_billion = -wrong_ns.signum() * SLEW_PARTS_PER_BILLION;
                clock.slew(Rate { parts_per_billion });
                self.tell("slews", wrong_ns);
                self.slews = true;
                time_to_slew(wrong_ns).min(self.service.poll)
            }
        }
    }

    fn tell(&mut self, how: &str, wrong_ns: i64) {
        let Some(platform) = self.platform.upgrade() else { return };
        if self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let node = self.vm.name().to_owned();
        let (seconds, side) = (wrong_ns.abs() as f64 / 1e9, if wrong_ns > 0 { "ahead" } else { "behind" });
        let what = format!("the time service of {node} {how} the clock, which is {seconds:.3} s {side}");
        platform.events.say(EventKind::Platform { action: PlatformAction::TimeService, node, what });
    }
}

/// How long a clock is slewed until it is right, where nothing else changes it.
fn time_to_slew(wrong_ns: i64) -> Duration {
    let ns = i128::from(wrong_ns.unsigned_abs()) * 1_000_000_000 / i128::from(SLEW_PARTS_PER_BILLION);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_5_s_wrong_is_slewed_for_a_minute() {
        assert_eq!(time_to_slew(5_000_000_000).as_secs(), 60);
        assert_eq!(time_to_slew(-5_000_000_000).as_secs(), 60);
        assert_eq!(time_to_slew(0), Duration::ZERO);
    }
}
