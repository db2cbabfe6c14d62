//! Pressure on processors: a node is left a part of its processors, as if a neighbour on its host took the rest. What a look must see is in
//! `pressure_looks`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use faults::{Lie, Struck};
use history::FaultId;
use platform::{Holder, Vm};
use scenario::{Fault, PressureFault};

use super::{Faulting, StandingFault};
use crate::looks::beside::{doubt_healing, doubt_standing};
use crate::pressure_looks::{Meter, Pressed};

/// Pressure that stands. Dropping it ends it.
struct StandingPressure {
    vm: Arc<Vm>,
    holder: Holder,
    /// Whether something else limited the node when it began.
    had_others: bool,
    /// How often anything had begun to by then, this fault included.
    begun: u64,
    pressed: Pressed,
    /// When it began, as the node's meters stood.
    began: Option<Meter>,
    over: Arc<AtomicBool>,
}

impl StandingFault for StandingPressure {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, _: bool) {
        let ended = Meter::read(&self.vm);
        let (began, ended) = (self.began.as_ref(), ended.as_ref());
        let mut stood = self.pressed.judge(began, ended);
        let (has_others, begun) =
            (self.vm.has_other_holds_on_processors(self.holder), self.vm.holds_on_processors_begun());
        // One that came and went meanwhile left the node less for a while, and its throttling looks like this fault's.
        if self.had_others || has_others || begun > self.begun {
            doubt_standing(&mut stood, &self.pressed.node, "processors");
        }
        let pace = began.zip(ended).and_then(|(began, ended)| began.pace_until(ended));
        self.over.store(true, Ordering::Release);
        self.lift();
        let mended_s = faulting.mended_now(number);
        faulting.stood_teller()(number, stood);
        let (told, vm, pressed) = (faulting.healing_teller(), self.vm.clone(), self.pressed.clone());
        faulting.in_background(move || {
            let mut receipt = pressed.look_at_healing(&vm, pace);
            if has_others || vm.holds_on_processors_begun() > begun {
                doubt_healing(&mut receipt, &pressed.node, "processors");
            }
            told(number, mended_s, receipt);
        });
    }

    fn give_up(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

impl StandingPressure {
    fn lift(&self) {
        // A node that is off has no limit either.
        let _ = self.vm.hold_to_processors(self.holder, None);
    }
}

impl Drop for StandingPressure {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.lift();
    }
}

impl Faulting {
    /// Takes a share of a node's processors.
    pub(super) fn strike_pressure(
        &mut self,
        number: FaultId,
        fault: &Fault,
        action: &PressureFault,
        share: f64,
    ) {
        let target = format!("{} (processor {:.0} %)", action.node, share * 100.0);
        let mut record = self.record(fault, target);
        let Some(vm) = self.node_of(number, action.node) else {
            self.enter(number, &record);
            return self.nothing_answers(number, &record);
        };
        let host = self.datacentre.host_of(vm);
        record.struck = Struck::Nodes(vec![host.path.clone()]);
        (record.hits, record.vms) = (vec![host.name()], vec![vm]);
        self.enter(number, &record);
        let vm = self.datacentre.vms[vm].clone();
        let left = vm.processors() * (1.0 - share);
        let (holder, pressed) = (Holder::Fault(number), Pressed { node: vm.name().to_owned(), left });
        if !self.prevented
            && !self.datacentre.planted.contains(&Lie::NoPressure)
            && let Err(error) = vm.hold_to_processors(holder, Some(left))
        {
            self.events.warn(format!("pressure: {error}"), "look at `holdfast doctor` for control groups");
        }
        let effect_s = self.events.now_s();
        let (began, over) = (Meter::read(&vm), Arc::<AtomicBool>::default());
        let standing = StandingPressure {
            vm: vm.clone(),
            holder,
            had_others: vm.has_other_holds_on_processors(holder),
            begun: vm.holds_on_processors_begun(),
            pressed: pressed.clone(),
            began: began.clone(),
            over: over.clone(),
        };
        self.standing.insert(number, Box::new(standing));
        let told = self.teller();
        self.in_background(move || {
            told(number, Some(effect_s), pressed.look_at_effect(&vm, began.as_ref(), &over))
        });
    }
}
