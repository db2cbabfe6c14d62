//! Clock faults: a node's wall clock goes wrong, or every node's, and is set right in one step. What a look must see is in `clock_looks`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clock::{Rate, Shift};
use faults::Struck;
use history::{FaultId, NodeId, Receipt, Verdict};
use lab::node_clock::machine_ns;
use scenario::{ClockFault, ClockTarget, Fault};

use super::{Faulting, StandingFault};
use crate::clock_looks::{Onlooker, WrongClock};

/// Clocks that are wrong. Dropping it sets them right.
struct StandingClock {
    /// Of each node.
    onlookers: Vec<Onlooker>,
    wrong: WrongClock,
    over: Arc<AtomicBool>,
}

impl StandingFault for StandingClock {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, _: bool) {
        self.over.store(true, Ordering::Release);
        let stood = together(self.onlookers.iter().map(|onlooker| onlooker.look_while_wrong(&self.wrong)));
        let steps_ns: Vec<i64> = self.onlookers.iter().map(|onlooker| self.set_right(onlooker)).collect();
        let mended_s = faulting.mended_now(number);
        faulting.stood_teller()(number, stood);
        let (told, onlookers, wrong) =
            (faulting.healing_teller(), self.onlookers.clone(), self.wrong.clone());
        faulting.in_background(move || {
            let looks = onlookers.iter().zip(steps_ns);
            let healed = looks.map(|(onlooker, step_ns)| onlooker.look_at_healing(&wrong, step_ns));
            told(number, mended_s, together(healed));
        });
    }

    fn give_up(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

impl StandingClock {
    /// Sets a clock right. Returns by how much it was ahead.
    fn set_right(&self, onlooker: &Onlooker) -> i64 {
        let Some(clock) = onlooker.vm.clock() else { return 0 };
        let ahead_ns = || clock.shift().offset_ns_at(machine_ns());
        let before_ns = ahead_ns();
        clock.lift(self.wrong.fault.index());
        before_ns - ahead_ns()
    }
}

impl Drop for StandingClock {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.onlookers.iter().for_each(|onlooker| _ = self.set_right(onlooker));
    }
}

/// All of them as one.
fn together(receipts: impl Iterator<Item = Receipt>) -> Receipt {
    let none = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
    receipts.fold(none, |mut all, more| {
        all.verdict = all.verdict.and(more.verdict);
        all.evidence.extend(more.evidence);
        all
    })
}

impl Faulting {
    /// Lets a node's clock go wrong.
    pub(super) fn strike_clock(&mut self, number: FaultId, fault: &Fault, action: &ClockFault) {
        let deviation = action.deviation;
        let words = Some(deviation.written()).filter(|words| !words.is_empty());
        let words = words.map(|words| format!(" ({words})")).unwrap_or_default();
        let mut record = self.record(fault, format!("{}{words}", action.node));
        let vms = match action.node {
            ClockTarget::Node(node) => self.node_of(number, node).into_iter().collect(),
            ClockTarget::All => self.datacentre.vms_on(),
        };
        if vms.is_empty() {
            self.enter(number, &record);
            return self.nothing_answers(number, &record);
        }
        let hosts = vms.iter().map(|vm| self.datacentre.host_of(*vm));
        record.struck = Struck::Nodes(hosts.clone().map(|host| host.path.clone()).collect());
        record.hits = hosts.map(|host| host.name()).collect();
        record.vms.clone_from(&vms);
        self.enter(number, &record);
        let other = self.datacentre.vms_on().into_iter().find(|other| !vms.contains(other));
        let other = other.map(|other| self.datacentre.vms[other].clone());
        let onlooker = |vm: &NodeId| Onlooker { vm: self.datacentre.vms[*vm].clone(), other: other.clone() };
        let onlookers: Vec<Onlooker> = vms.iter().map(onlooker).collect();
        let before: Vec<_> = onlookers.iter().map(|onlooker| onlooker.look_before(number)).collect();
        let (true_ns, effect_s) = (machine_ns(), self.events.now_s());
        let rate = Rate { parts_per_billion: deviation.parts_per_billion() };
        let shift = Shift::jump(deviation.jump_ns()).and(Shift::running_away(rate, true_ns));
        let clocks = onlookers.iter().filter_map(|onlooker| onlooker.vm.clock());
        if !self.prevented {
            clocks.for_each(|clock| clock.impose(number.index(), shift));
        }
        let (wrong, over) = (WrongClock { fault: number, shift }, Arc::<AtomicBool>::default());
        let standing =
            StandingClock { onlookers: onlookers.clone(), wrong: wrong.clone(), over: over.clone() };
        self.standing.insert(number, Box::new(standing));
        let told = self.teller();
        self.in_background(move || {
            let looks = onlookers.iter().zip(before);
            let seen = looks.map(|(onlooker, before)| onlooker.look_at_effect(&wrong, before, &over));
            told(number, Some(effect_s), together(seen));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_all_nodes_are_shown_only_where_each_is() {
        let one = |verdict, what: &str| Receipt { verdict, evidence: vec![what.to_owned()] };
        let shown = together([one(Verdict::Pass, "n1"), one(Verdict::Pass, "n2")].into_iter());
        assert_eq!((shown.verdict, shown.evidence.len()), (Verdict::Pass, 2));
        let missed = together([one(Verdict::Pass, "n1"), one(Verdict::Fail, "n2")].into_iter());
        assert_eq!(missed.verdict, Verdict::Fail);
    }
}
