//! Pressure on memory: a node may use less than it uses, as if a neighbour on its host took the rest. What a look must see is
//! in `memory_looks`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use faults::{Lie, Struck};
use history::{FaultId, NodeId};
use lab::memory_groups::MemoryMeter;
use platform::{Holder, Vm};
use scenario::{Fault, PressureFault};

use super::processes::ANSWER_AFTER;
use super::{Faulting, StandingFault};
use crate::looks::beside::{doubt_healing, doubt_standing};
use crate::memory_looks::Squeezed;
use crate::process_looks::Onlooker;

/// Between two attempts to lower a limit that the kernel did not let go as far as wanted.
const AGAIN: Duration = Duration::from_millis(100);

/// Pressure that stands. Dropping it ends it.
struct StandingSqueeze {
    vm: Arc<Vm>,
    node: NodeId,
    holder: Holder,
    /// Whether something else limited the node when it began.
    had_others: bool,
    /// How often anything had begun to by then, this fault included.
    begun: u64,
    squeezed: Squeezed,
    began: Option<MemoryMeter>,
    /// Whoever looks whether the database answers; none where no clients stand anywhere.
    onlooker: Option<Onlooker>,
    over: Arc<AtomicBool>,
}

impl StandingFault for StandingSqueeze {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, _: bool) {
        let mut stood = self.squeezed.judge(self.began, self.vm.memory_meter());
        let (has_others, begun) =
            (self.vm.has_other_holds_on_memory(self.holder), self.vm.holds_on_memory_begun());
        if self.had_others || has_others || begun > self.begun {
            doubt_standing(&mut stood, &self.squeezed.node, "memory");
        }
        self.over.store(true, Ordering::Release);
        self.lift();
        let mended_s = faulting.mended_now(number);
        faulting.stood_teller()(number, stood);
        if !faulting.prevented {
            // What the kernel has ended for good is started again.
            faulting.platform.processes_may_run(self.node);
        }
        let (told, vm, squeezed) = (faulting.healing_teller(), self.vm.clone(), self.squeezed.clone());
        let onlooker = self.onlooker.clone();
        faulting.in_background(move || {
            let mut receipt = squeezed.look_at_healing(&vm, onlooker.as_ref(), ANSWER_AFTER);
            if has_others || vm.holds_on_memory_begun() > begun {
                doubt_healing(&mut receipt, &squeezed.node, "memory");
            }
            told(number, mended_s, receipt);
        });
    }

    fn give_up(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

impl StandingSqueeze {
    fn lift(&self) {
        // A node that is off has no limit either.
        let _ = self.vm.hold_to_memory(self.holder, None);
    }
}

impl Drop for StandingSqueeze {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.lift();
    }
}

impl Faulting {
    /// Takes a share of a node's memory.
    pub(super) fn squeeze(&mut self, number: FaultId, fault: &Fault, action: &PressureFault, share: f64) {
        let target = format!("{} (memory {:.0} %)", action.node, share * 100.0);
        let mut record = self.record(fault, target);
        let Some(node) = self.node_of(number, action.node) else {
            self.enter(number, &record);
            return self.nothing_answers(number, &record);
        };
        let host = self.datacentre.host_of(node);
        record.struck = Struck::Nodes(vec![host.path.clone()]);
        (record.hits, record.vms) = (vec![host.name()], vec![node]);
        self.enter(number, &record);
        let vm = self.datacentre.vms[node].clone();
        let address = self.platform.client_address(node);
        let onlooker = Onlooker::new(&self.datacentre, (node, address), None, self.longest_delay);
        let holder = Holder::Fault(number);
        let had_others = vm.has_other_holds_on_memory(holder);
        let began = vm.memory_meter();
        let used_bytes = began.map_or(0, |meter| meter.used_bytes);
        let squeezed = Squeezed {
            node: vm.name().to_owned(),
            left_bytes: (used_bytes as f64 * (1.0 - share)) as u64,
            limit_before_bytes: began.map_or(0, |meter| meter.limit_bytes),
        };
        let over = Arc::<AtomicBool>::default();
        let effect_s = self.events.now_s();
        let imposes = !self.prevented && !self.datacentre.planted.contains(&Lie::NoPressure);
        if imposes && began.is_some() {
            self.platform.processes_struck(node, over.clone());
            self.keep_lowering(&vm, (holder, squeezed.left_bytes), &over);
        }
        let standing = StandingSqueeze {
            vm: vm.clone(),
            node,
            holder,
            had_others,
            begun: vm.holds_on_memory_begun(),
            squeezed: squeezed.clone(),
            began,
            onlooker,
            over: over.clone(),
        };
        self.standing.insert(number, Box::new(standing));
        let told = self.teller();
        self.in_background(move || told(number, Some(effect_s), squeezed.look_at_effect(&vm, began, &over)));
    }

    /// Lowers the limit until the fault is over: what the kernel cannot take back now it may take back, or kill for, later.
    fn keep_lowering(&mut self, vm: &Arc<Vm>, (holder, bytes): (Holder, u64), over: &Arc<AtomicBool>) {
        if let Err(error) = vm.hold_to_memory(holder, Some(bytes)) {
            let what = format!("pressure on memory: {error}");
            return self.events.warn(what, "look at `holdfast doctor` for control groups");
        }
        let (vm, over) = (vm.clone(), over.clone());
        self.in_background(move || {
            while !over.load(Ordering::Acquire) {
                std::thread::sleep(AGAIN);
                let is_reached = vm.memory_meter().is_none_or(|meter| meter.limit_bytes <= bytes);
                // Once it has been lifted it is not lowered any more, however late this thread is. One that lost its power
                // meanwhile has nothing to be lowered.
                if !is_reached && vm.hold_to_memory_again(holder).is_err() {
                    return;
                }
            }
        });
    }
}
