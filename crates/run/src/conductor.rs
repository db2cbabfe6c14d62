//! The run itself: loads start, phases pass, faults strike and heal on time, loads stop, and the end is read.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use faults::Lie;
use faults::{Action, PlannedFault, PlannedPhase, timeline};
use history::{EventKind, EventSink, FaultId, Operation, PhaseFacts};
use load::{Clock, FINAL_READ_PATIENCE, LoadCpu, LoadHandle, PATIENCE_AFTER_A_MISS};
use results::EndedEarly;
use scenario::{Fault, Scenario};
use verdict::Shown;
use watch::{busy_since, busy_ticks};

use crate::chronicle::Chronicle;
use crate::collector::{Collector, CollectorError, append_to_history};
use crate::directory::RunDirectory;
use crate::lab_shown::lab_shown;
use crate::leaders_at_the_end::read_between_looks;
use crate::prepared::Prepared;
use crate::target::{Beginning, Found, PlaceError, TargetError, Underway};

/// How far ahead the clock's zero lies when every client has connected, so that all that looks on has begun.
const LEAD: Duration = Duration::from_millis(300);

/// How often faults that wait for their target are looked at.
const TAKE_UP_EVERY: Duration = Duration::from_millis(50);

/// What can go wrong while the run is under way.
#[derive(Debug, thiserror::Error)]
pub enum ConductorError {
    /// Recording.
    #[error(transparent)]
    Collector(#[from] CollectorError),
    #[error(transparent)]
    Chronicle(#[from] crate::chronicle::ChronicleError),
    /// What the target records.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A load's place.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

/// A run under way.
pub struct Conductor<'a> {
    pub scenario: &'a Scenario,
    pub seed: u64,
    /// Whether faults are announced only.
    pub prevented: bool,
    /// What was prepared.
    pub prepared: &'a Prepared,
    /// The run directory.
    pub directory: &'a RunDirectory,
    /// Where things are told.
    pub chronicle: &'a Arc<Chronicle>,
    /// The run's clock, its zero not yet set.
    pub clock: Clock,
    /// Asks the run to end early.
    pub interrupts: &'a Receiver<String>,
}

impl Conductor<'_> {
    /// Carries the schedule out.
    ///
    /// # Errors
    /// When recording fails; what the database or the faults do is never an error here.
    pub fn conduct(&self) -> Result<Shown, ConductorError> {
        let target = self.prepared.target();
        let collector = Collector::start(self.directory, &self.prepared.facts, self.chronicle.clone())?;
        let loads = Arc::new(Mutex::new(self.start_loads(&collector)?));
        let early = self.let_clients_connect(&lock(&loads));
        let zero = Instant::now() + LEAD;
        self.clock.set_zero(zero);
        self.chronicle.zero_is_known(zero)?;
        let mut underway = target.begin(self.beginning(zero, &loads))?;
        let early = early.or_else(|| wait_until(zero, self.interrupts));
        let used = target.usage(&lock(&loads), LoadCpu::default());
        let (ticks, began) = (busy_ticks(), Instant::now());
        let interrupted = early.or_else(|| self.follow_schedule(zero, underway.as_mut(), &collector));
        let mut interrupted = interrupted.map(|why| self.tell_interrupted(why));
        let under_load = target.usage(&lock(&loads), LoadCpu::default()).since(used);
        let (busy_share, own_share) = (busy_since(ticks), under_load.share_of_machine(began.elapsed()));
        let ended_s = recorded_until_s(&self.prepared.facts.phases, self.chronicle.now_s());
        underway.schedule_is_over()?;
        underway.heal_all(interrupted.is_some());
        let (load_cpu, ended_early) = self.stop_loads(&loads);
        underway.loads_have_ended();
        let faults = underway.settle(interrupted.is_some());
        let recorded = collector.finish()?;
        interrupted = interrupted.or_else(|| self.interrupted_since());
        if interrupted.is_none() {
            let is_at_the_leader =
                self.prepared.plans.iter().all(|plan| plan.protocol.reads_at_the_leader() && !plan.spreads);
            let look = || underway.leadership();
            let (read, event) = read_between_looks(is_at_the_leader, look, || self.read_the_end());
            event.into_iter().for_each(|event| self.chronicle.say(event));
            append_to_history(self.directory, &read)?;
            interrupted = self.interrupted_since();
        }
        let Found { watched, links, memory_bytes_max, volumes, recoveries } = underway.finish();
        let cpu_seconds = target.usage(&[], load_cpu).by_part();
        let run = storage::Run { facts: &self.prepared.facts, timeline: &recorded.timeline, ended_s };
        let lab = self.prepared.lab.as_ref();
        let cost = (under_load, memory_bytes_max);
        let lab = lab.map(|lab| lab_shown(lab, self.scenario, (run, &volumes), cost));
        Ok(Shown {
            recorded,
            faults,
            interrupted,
            cpu_seconds,
            busy_share,
            own_share,
            ended_s,
            ended_early,
            stalls: watched.stalls,
            interference: watched.interference,
            links,
            recoveries,
            lab,
        })
    }

    /// What the target learns as the clock's zero is known.
    fn beginning<'a>(&'a self, zero: Instant, loads: &'a Arc<Mutex<Vec<LoadHandle>>>) -> Beginning<'a> {
        let marked = loads.clone();
        let on_effect = Arc::new(move |fault: FaultId, at_s: f64| {
            for load in marked.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                load.mark_fault(fault, at_s);
            }
        });
        Beginning {
            scenario: self.scenario,
            seed: self.seed,
            prevented: self.prevented,
            directory: self.directory,
            chronicle: self.chronicle,
            zero,
            loads,
            load_names: self.prepared.plans.iter().map(|plan| plan.name.clone()).collect(),
            on_effect,
        }
    }

    fn start_loads(&self, collector: &Collector) -> Result<Vec<LoadHandle>, ConductorError> {
        let mut handles = Vec::new();
        for (plan, load) in self.prepared.plans.iter().zip(&self.scenario.loads) {
            let recorded = (&self.clock, collector.sink());
            handles.push(self.prepared.target().start_load((load, plan), recorded, self.chronicle)?);
        }
        Ok(handles)
    }

    /// Waits until the clients have connected, and tells of those that cannot. Why the run is to end early, if it is.
    fn let_clients_connect(&self, loads: &[LoadHandle]) -> Option<String> {
        let mut interrupted = None;
        let missing = || {
            loads
                .iter()
                .zip(&self.prepared.plans)
                .filter_map(|(load, plan)| load::missing_clients(load, plan))
                .collect()
        };
        let missing = load::await_clients(missing, |_, wait| {
            interrupted = wait_until(Instant::now() + wait, self.interrupts);
            interrupted.is_some()
        });
        for missing in missing {
            self.chronicle.warn(
                missing.what(),
                "its first figures are from fewer clients than configured; use fewer clients, or give the nodes more \
                 processors",
            );
        }
        interrupted
    }

    /// Does what is due when it is due. Returns why it ended early, if it did.
    fn follow_schedule(
        &self,
        zero: Instant,
        underway: &mut dyn Underway,
        collector: &Collector,
    ) -> Option<String> {
        let planned = planned(self.scenario);
        let faults: Vec<&Fault> = self.scenario.faults().collect();
        for timed in timeline(&planned) {
            if let Some(why) = wait_and_take_up(zero + timed.at, underway, self.interrupts) {
                return Some(why);
            }
            match timed.action {
                Action::Phase { phase } => {
                    underway.phase_is_over();
                    let phase = &self.scenario.schedule[phase];
                    let (name, for_s) = (phase.name.clone(), phase.length.as_secs_f64());
                    self.chronicle.say_at(timed.at.as_secs_f64(), EventKind::Phase { name, for_s });
                }
                Action::Strike { fault } => {
                    let asked = faults[fault.index()];
                    underway.strike(fault, asked);
                    let what = format!("{} active", asked.action.kind_name());
                    collector.scene().standing.insert(fault, what);
                }
                Action::Heal { fault } => {
                    underway.heal(fault);
                    collector.scene().standing.remove(&fault);
                }
                Action::End => {}
            }
        }
        None
    }

    /// Stops all loads. The CPU time they took, and how those ended that nobody had told to.
    fn stop_loads(&self, loads: &Mutex<Vec<LoadHandle>>) -> (LoadCpu, BTreeMap<String, EndedEarly>) {
        let handles = std::mem::take(&mut *lock(loads));
        for load in &handles {
            load.stop();
        }
        let mut used = LoadCpu::default();
        let mut ended_early = BTreeMap::new();
        for (load, plan) in handles.into_iter().zip(&self.prepared.plans) {
            match load.join() {
                Ok(end) => used += end.cpu,
                Err(error) => {
                    ended_early.insert(plan.name.clone(), verdict::ended_early(&error));
                }
            }
        }
        (used, ended_early)
    }

    /// Whether the run was asked to end since the schedule was over.
    fn interrupted_since(&self) -> Option<String> {
        self.interrupts.try_recv().ok().map(|why| self.tell_interrupted(why))
    }

    fn tell_interrupted(&self, why: String) -> String {
        self.chronicle.say(EventKind::Interrupted { why: why.clone() });
        why
    }

    fn read_the_end(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        if self.prepared.planted.contains(&Lie::NoFinalRead) {
            return operations;
        }
        let loads = || self.prepared.plans.iter().zip(&self.scenario.loads);
        // Each replica by itself first, for all loads: a read that several replicas answer may bring them into line.
        for (plan, load) in loads().filter(|(plan, _)| load::are_compared(plan)) {
            operations.extend(self.read_the_replicas(plan, load));
        }
        let mut patience = FINAL_READ_PATIENCE;
        for (plan, load) in loads() {
            self.chronicle.progress(format!("reading back what {} wrote", plan.name));
            let place = self.prepared.target().enter_place(load).map_err(|error| error.to_string());
            let read = load::recorded_final_read(plan, &self.clock, place, patience);
            operations.extend(read.operations);
            if let Some(event) = read.missed {
                patience = PATIENCE_AFTER_A_MISS;
                self.chronicle.say(event);
            }
        }
        operations
    }

    /// What each node holds, for the check that they hold the same.
    fn read_the_replicas(&self, plan: &load::LoadPlan, load: &scenario::Load) -> Vec<Operation> {
        self.chronicle.progress(format!("reading {} at every replica", plan.name));
        let read =
            self.prepared.target().enter_place(load).map_err(|error| error.to_string()).and_then(|place| {
                load::replica_reads(plan, &self.clock, place, FINAL_READ_PATIENCE)
                    .map_err(|error| error.to_string())
            });
        read.unwrap_or_else(|error| {
            let what = format!("{error}: the replicas could not be compared");
            self.chronicle.warn(what, "give the recovery phase more time; look at the nodes' logs");
            Vec::new()
        })
    }
}

fn lock(loads: &Mutex<Vec<LoadHandle>>) -> std::sync::MutexGuard<'_, Vec<LoadHandle>> {
    loads.lock().unwrap_or_else(PoisonError::into_inner)
}

fn planned(scenario: &Scenario) -> Vec<PlannedPhase> {
    let fault = |fault: &Fault| PlannedFault { at: fault.at, length: fault.length };
    let phase = |phase: &scenario::Phase| PlannedPhase {
        length: phase.length,
        faults: phase.faults.iter().map(fault).collect(),
    };
    scenario.schedule.iter().map(phase).collect()
}

/// The end of the seconds that are recorded: that of the last phase, however long what was due then has taken, or the moment at
/// which an earlier end stops the loads.
fn recorded_until_s(phases: &[PhaseFacts], stopped_s: f64) -> f64 {
    phases.last().map_or(stopped_s, |phase| stopped_s.min(phase.to_s))
}

/// Waits until `moment`; returns early, with the reason, when the run is asked to end.
fn wait_until(moment: Instant, interrupts: &Receiver<String>) -> Option<String> {
    match interrupts.recv_timeout(moment.saturating_duration_since(Instant::now())) {
        Ok(why) => Some(why),
        Err(RecvTimeoutError::Timeout) => None,
        // The watch on our input holds the other end for as long as this process lives.
        Err(RecvTimeoutError::Disconnected) => Some("the orders have ended".to_owned()),
    }
}

/// The same, and faults that wait for their target are struck meanwhile.
fn wait_and_take_up(
    moment: Instant,
    underway: &mut dyn Underway,
    interrupts: &Receiver<String>,
) -> Option<String> {
    loop {
        let now = Instant::now();
        let some_wait = now < moment && underway.take_up();
        let next = if some_wait { moment.min(now + TAKE_UP_EVERY) } else { moment };
        let interrupted = wait_until(next, interrupts);
        if interrupted.is_some() || next == moment {
            return interrupted;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use faults::FaultRecord;

    use super::*;

    /// A target with a fault that waits; whoever looks at it for the third time asks the run to end.
    struct Waits {
        looks: usize,
        order: Sender<String>,
    }

    impl Underway for Waits {
        fn strike(&mut self, _: FaultId, _: &Fault) {}

        fn take_up(&mut self) -> bool {
            self.looks += 1;
            if self.looks == 3 {
                self.order.send("the user".to_owned()).expect("somebody listens");
            }
            true
        }

        fn heal(&mut self, _: FaultId) {}

        fn schedule_is_over(&mut self) -> Result<(), TargetError> {
            Ok(())
        }

        fn heal_all(&mut self, _: bool) {}

        fn loads_have_ended(&mut self) {}

        fn settle(&mut self, _: bool) -> Vec<FaultRecord> {
            Vec::new()
        }

        fn leadership(&self) -> load::Leadership {
            load::Leadership::default()
        }

        fn finish(self: Box<Self>) -> Found {
            Found::default()
        }
    }

    #[test]
    fn a_fault_that_waits_is_looked_at_until_the_next_action_is_due_or_the_run_is_interrupted() {
        let (order, interrupts) = channel();
        let mut waits = Waits { looks: 0, order };
        let next = Instant::now() + Duration::from_secs(3600);
        assert_eq!(wait_and_take_up(next, &mut waits, &interrupts).as_deref(), Some("the user"));
        assert_eq!(waits.looks, 3);
        // What is due now may end its waiting: it is not struck just before.
        assert_eq!(wait_and_take_up(Instant::now(), &mut waits, &interrupts), None);
        assert_eq!(waits.looks, 3);
    }

    #[test]
    fn a_fault_that_took_long_to_heal_at_the_end_of_the_schedule_makes_the_record_no_longer() {
        let phase = |from_s, to_s| PhaseFacts { name: "fault".to_owned(), from_s, to_s };
        let phases = [phase(0.0, 5.0), phase(5.0, 35.0)];
        let until = |stopped_s| recorded_until_s(&phases, stopped_s);
        assert_eq!((until(35.0004), until(37.2), until(20.3)), (35.0, 35.0, 20.3));
    }
}
