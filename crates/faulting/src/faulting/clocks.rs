//! Clock faults: a node's wall clock goes wrong, and is set right in one step. What a look must see is in `clock_looks`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clock::{Rate, Shift};
use faults::Struck;
use lab::node_clock::machine_ns;
use scenario::{ClockFault, Fault};

use super::{Faulting, StandingFault};
use crate::clock_looks::{Onlooker, WrongClock};

/// A clock that is wrong. Dropping it sets it right.
struct StandingClock {
    onlooker: Onlooker,
    wrong: WrongClock,
    over: Arc<AtomicBool>,
}

impl StandingFault for StandingClock {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: usize, _: bool) {
        self.over.store(true, Ordering::Release);
        let stood = self.onlooker.look_while_wrong(&self.wrong);
        let wrong_ns = self.offset_ns();
        self.set_right();
        let step_ns = wrong_ns - self.offset_ns();
        let mended_s = faulting.mended_now(number);
        faulting.stood_teller()(number, stood);
        let (told, onlooker, wrong) = (faulting.healing_teller(), self.onlooker.clone(), self.wrong.clone());
        faulting.in_background(move || told(number, mended_s, onlooker.look_at_healing(&wrong, step_ns)));
    }

    fn give_up(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

impl StandingClock {
    /// How far ahead the clock is.
    fn offset_ns(&self) -> i64 {
        self.onlooker.vm.clock().map_or(0, |clock| clock.shift().offset_ns_at(machine_ns()))
    }

    fn set_right(&self) {
        if let Some(clock) = self.onlooker.vm.clock() {
            clock.lift(self.wrong.fault);
        }
    }
}

impl Drop for StandingClock {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.set_right();
    }
}

impl Faulting {
    /// Lets a node's clock go wrong.
    pub(super) fn strike_clock(&mut self, number: usize, fault: &Fault, action: &ClockFault) {
        let deviation = action.deviation;
        let words = Some(deviation.written()).filter(|words| !words.is_empty());
        let words = words.map(|words| format!(" ({words})")).unwrap_or_default();
        let mut record = self.record(fault, format!("{}{words}", action.node));
        let Some(vm) = self.node_of(number, action.node) else {
            self.enter(number, &record);
            return self.nothing_answers(number, &record);
        };
        let host = &self.datacentre.hosts[self.datacentre.vms[vm].host()];
        record.struck = Struck::Node(host.path.clone());
        (record.hits, record.vms) = (vec![host.name()], vec![vm]);
        self.enter(number, &record);
        let other = self.datacentre.vms_on().into_iter().find(|other| *other != vm);
        let other = other.map(|other| self.datacentre.vms[other].clone());
        let onlooker = Onlooker { vm: self.datacentre.vms[vm].clone(), other };
        let before = onlooker.look_before(number);
        let (true_ns, effect_s) = (machine_ns(), self.events.now_s());
        let rate = Rate { parts_per_billion: deviation.parts_per_billion() };
        let shift = Shift::jump(deviation.jump_ns()).and(Shift::running_away(rate, true_ns));
        if let (Some(clock), false) = (onlooker.vm.clock(), self.prevented) {
            clock.impose(number, shift);
        }
        let (wrong, over) = (WrongClock { fault: number, shift }, Arc::<AtomicBool>::default());
        let standing = StandingClock { onlooker: onlooker.clone(), wrong: wrong.clone(), over: over.clone() };
        self.standing.insert(number, Box::new(standing));
        let told = self.teller();
        self.in_background(move || {
            told(number, Some(effect_s), onlooker.look_at_effect(&wrong, before, &over));
        });
    }
}
