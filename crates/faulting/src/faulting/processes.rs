//! Process faults: the processes of a node's database are killed, stopped for a time, or restarted; the node stays. What a
//! look must see is in `process_looks`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use faults::{Lie, ReceiptOf, Role, Struck, pick};
use history::{FaultId, NodeId, Receipt, Verdict};
use platform::Holder;
use scenario::{Fault, NodeTarget, ProcessDeed, ProcessFault};

use super::{Faulting, StandingFault, lock};
use crate::process_looks::{Before, Onlooker, StopWatch, Table, gone, restarted_in_order};

/// How long it may take until a database is seen to answer again, its recovery and a boot of its VM included.
pub(super) const ANSWER_AFTER: Duration = Duration::from_secs(90);
/// The same where the run is to end.
const IN_A_HURRY: Duration = Duration::from_secs(3);

/// A process fault that stands. Dropping it lets stopped processes go on.
struct StandingProcesses {
    how: ProcessDeed,
    holder: Holder,
    onlooker: Onlooker,
    before: Arc<Before>,
    /// Looks on while processes stand still.
    watch: Option<StopWatch>,
    /// Set once the fault is over: whoever watches a leader that does not answer gives up when it does.
    over: Arc<AtomicBool>,
}

impl StandingFault for StandingProcesses {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, in_a_hurry: bool) {
        let patience = if in_a_hurry { IN_A_HURRY } else { ANSWER_AFTER };
        match self.how {
            ProcessDeed::Kill { restart_after: None } => faulting.leave_dead(number, *self),
            ProcessDeed::Kill { .. } => faulting.start_again(number, *self, patience),
            ProcessDeed::Stop => faulting.let_go_on(number, *self, patience),
            // It was started again as soon as it had ended.
            ProcessDeed::Restart => {}
        }
    }

    fn stopped(&self) -> Option<(NodeId, &Table)> {
        matches!(self.how, ProcessDeed::Stop).then_some((self.onlooker.node, &self.before.targets))
    }

    fn give_up(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(watch) = self.watch.take() {
            drop(watch.finish());
            self.onlooker.vm.resume_processes(self.holder);
        }
    }
}

impl Drop for StandingProcesses {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Faulting {
    /// Strikes a node's processes.
    pub(super) fn strike_processes(&mut self, number: FaultId, fault: &Fault, action: &ProcessFault) {
        let vm = self.node_of(number, action.node);
        let mut record = self.record(fault, target_in_words(action));
        let onlooker = vm.and_then(|vm| {
            let address = self.platform.client_address(vm);
            let only = action.only.as_ref().map(|only| only.program.clone());
            Onlooker::new(&self.datacentre, (vm, address), only, self.longest_delay)
        });
        let (Some(vm), Some(onlooker)) = (vm, onlooker) else {
            self.enter(number, &record);
            return self.nothing_answers(number, &record);
        };
        let host = self.datacentre.host_of(vm);
        let ends = !matches!(action.how, ProcessDeed::Stop);
        record.struck = Struck::Processes { host: host.path.clone(), all: action.only.is_none(), ends };
        (record.hits, record.vms) = (vec![host.name()], vec![vm]);
        self.enter(number, &record);
        let before = Arc::new(onlooker.look_before());
        if before.targets.is_empty() {
            return self.nothing_answers(number, &record);
        }
        let over = Arc::<AtomicBool>::default();
        let mut standing = StandingProcesses {
            how: action.how,
            holder: Holder::Fault(number),
            onlooker: onlooker.clone(),
            before: before.clone(),
            watch: None,
            over,
        };
        let effect_s = self.strike_them((number, vm), action, &standing.over);
        match action.how {
            ProcessDeed::Kill { .. } => {
                let told = self.teller();
                self.in_background(move || told(number, Some(effect_s), gone(&onlooker, &before)));
            }
            ProcessDeed::Stop => standing.watch = self.watch_them_stand_still(number, effect_s, &standing),
            ProcessDeed::Restart => self.look_at_restart(number, effect_s, &standing),
        }
        self.standing.insert(number, Box::new(standing));
    }

    /// Does what is to be done to the processes; when.
    fn strike_them(
        &self,
        (number, vm): (FaultId, NodeId),
        action: &ProcessFault,
        over: &Arc<AtomicBool>,
    ) -> f64 {
        let holder = Holder::Fault(number);
        let only = action.only.as_ref().map(|only| only.program.clone());
        if !self.prevented {
            self.platform.processes_struck(vm, over.clone());
            let planted = &self.datacentre.planted;
            let signal = match action.how {
                ProcessDeed::Kill { .. } => {
                    let at_most = planted.contains(&Lie::KillNothing).then_some(0);
                    Some((libc::SIGKILL, at_most))
                }
                ProcessDeed::Stop => Some((libc::SIGSTOP, planted.contains(&Lie::StopMainOnly).then_some(1))),
                ProcessDeed::Restart => None,
            };
            match signal {
                Some((signal, at_most)) => {
                    let struck = self.datacentre.vms[vm].strike_processes(holder, signal, (only, at_most));
                    if let Err(error) = struck {
                        self.events.warn(
                            format!("process fault: {error}"),
                            "the node lost its power during the fault, or its disk does not answer",
                        );
                    }
                }
                None => {
                    let name = action.only.as_ref().map(|only| only.name.clone());
                    self.platform.restart_processes(vm, name);
                }
            }
        }
        self.events.now_s()
    }

    /// Watches stopped processes. The first look makes the receipt of the effect; the later ones are added when the fault ends.
    fn watch_them_stand_still(
        &mut self,
        number: FaultId,
        effect_s: f64,
        standing: &StandingProcesses,
    ) -> Option<StopWatch> {
        let told = self.teller();
        let watch = StopWatch::start(&standing.onlooker, &standing.before, move |receipt| {
            told(number, Some(effect_s), receipt);
        });
        watch
            .map_err(|error| {
                self.events.warn(format!("stopped processes are not monitored: {error}"), "raise `ulimit -u`")
            })
            .ok()
    }

    /// A restart in order is looked at as a whole: the old processes end, new ones come.
    fn look_at_restart(&mut self, number: FaultId, effect_s: f64, standing: &StandingProcesses) {
        let (onlooker, before, over) =
            (standing.onlooker.clone(), standing.before.clone(), standing.over.clone());
        let (told, healed, records, events) = (
            self.teller(),
            self.healing_teller_over_the_network(),
            self.records.clone(),
            self.events.clone(),
        );
        self.in_background(move || {
            told(number, Some(effect_s), restarted_in_order(&onlooker, &before));
            let receipt = onlooker.look_at_return(&before, ANSWER_AFTER);
            over.store(true, Ordering::Release);
            let mended_s = events.now_s();
            lock(&records).of(number).mended_s = Some(mended_s);
            healed(number, mended_s, receipt);
        });
    }

    /// Killed processes stay dead: that they are is looked at when the fault's time is over.
    fn leave_dead(&mut self, number: FaultId, standing: StandingProcesses) {
        let receipt = standing.onlooker.look_at_the_dead(&standing.before);
        lock(&self.records).of(number).receipts.push((ReceiptOf::Healing, receipt));
    }

    /// The service manager's time has come.
    fn start_again(&mut self, number: FaultId, standing: StandingProcesses, patience: Duration) {
        let mended_s = self.may_run_again(number, &standing);
        let told = self.healing_teller_over_the_network();
        let (onlooker, before) = (standing.onlooker.clone(), standing.before.clone());
        self.in_background(move || told(number, mended_s, onlooker.look_at_return(&before, patience)));
    }

    /// The fault is over, and the platform may count on the processes again.
    fn may_run_again(&mut self, number: FaultId, standing: &StandingProcesses) -> f64 {
        let mended_s = self.mended_now(number);
        standing.over.store(true, Ordering::Release);
        if !self.prevented {
            self.platform.processes_may_run(standing.onlooker.node);
        }
        mended_s
    }

    /// Stopped processes go on.
    fn let_go_on(&mut self, number: FaultId, mut standing: StandingProcesses, patience: Duration) {
        let stood = standing.watch.take().map_or_else(unwatched, StopWatch::finish);
        self.stood_teller()(number, stood);
        let last = standing.onlooker.targets_now(&standing.before);
        standing.onlooker.vm.resume_processes(standing.holder);
        let mended_s = self.may_run_again(number, &standing);
        let told = self.healing_teller_over_the_network();
        let other = self.still_stopped_by(&standing);
        let (onlooker, before) = (standing.onlooker.clone(), standing.before.clone());
        self.in_background(move || {
            let mut receipt = onlooker.look_at_waking(&before, &last.unwrap_or_default(), patience);
            if let (Some(other), Verdict::Fail) = (other, receipt.verdict) {
                receipt.verdict = Verdict::Unknown;
                let other = other.ordinal();
                let what = format!("fault {other} kept some of them stopped when this fault was healed");
                receipt.evidence.push(what);
            }
            told(number, mended_s, receipt);
        });
    }

    /// Another fault that keeps processes stopped which this one had stopped.
    fn still_stopped_by(&self, standing: &StandingProcesses) -> Option<FaultId> {
        let (vm, targets) = (standing.onlooker.node, &standing.before.targets);
        let same =
            |(of, theirs): (NodeId, &Table)| of == vm && theirs.keys().any(|one| targets.contains_key(one));
        self.standing.iter().find(|(_, other)| other.stopped().is_some_and(same)).map(|(number, _)| *number)
    }

    /// The node that is meant now, if it has power.
    pub(super) fn node_of(&self, number: FaultId, target: NodeTarget) -> Option<NodeId> {
        let on = self.datacentre.vms_on();
        let role = match target {
            NodeTarget::Named(vm) => return on.contains(&vm).then_some(vm),
            NodeTarget::Leader => Role::Leader,
            NodeTarget::AFollower => Role::AFollower,
            NodeTarget::Random => Role::Random,
        };
        pick(role, self.leader(), &on, self.seed, number)
    }
}

/// What is known of stopped processes that nobody could watch: their first look alone does not show that they stayed so.
fn unwatched() -> Receipt {
    let what = "throughout the fault: the stopped processes were not observed".to_owned();
    Receipt { verdict: Verdict::Unknown, evidence: vec![what] }
}

/// A target as the report has it: `leader (kill, etcd alone)`.
fn target_in_words(fault: &ProcessFault) -> String {
    let only = fault.only.as_ref().map(|only| format!(", {} alone", only.name)).unwrap_or_default();
    format!("{} ({}{only})", fault.node, fault.how.word())
}
