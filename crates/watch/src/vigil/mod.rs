//! Watches the lab itself while loads run: does every part of it live, and does anybody else touch the nodes' processes?
//!
//! Every part gives signs of life against the machine's monotonic clock: the supervisor, the fabric's thread, the machine's
//! disk below the volumes, the threads that serve each volume, each node's init, each load's thread. A stretch without a
//! sign is a [`Stall`]: figures from that time are not the database's. Owns the watching; what it means for the verdict
//! is `verdict`'s.

mod beats;
mod processor_wait;
mod sign;
mod watchers;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::{Engine, Killed};
use faults::{Lie, Planted};
use history::{Deed, EventKind, Interference, LabPart, Stall};
use history::{EventSink, PerNode};
use lab::StoppedProcess;
use load::LoadHandle;
use nix::time::{ClockId, clock_gettime};
use platform::Datacentre;
use platform::Vm;

use self::beats::{Beats, Gap, joined};
use self::processor_wait::{ProcessorWait, Withheld};
use self::sign::Sign;
/// How often the signs are looked at, and how often most parts give one.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// A part is silent for longer: it stood still. Far above what a thread waits for a processor on a busy machine, far below
/// what a recovery takes.
const LIMIT: Duration = Duration::from_millis(500);
/// The same for parts that wait for the machine's disk, whose syncs may be slow on a sound machine.
const DISK_LIMIT: Duration = Duration::from_millis(1_500);
/// When a planted panic of the watch comes, seconds on the run's clock.
const PANICS_AT_S: f64 = 2.0;
/// Gaps are told when no other has come for this long: parts that stood still together end at slightly different moments.
const TOGETHER: Duration = Duration::from_millis(1_000);

/// What the vigil saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watched {
    /// Stretches in which parts of the lab stalled, in order.
    pub stalls: Vec<Stall>,
    /// What strangers did to processes of nodes, with the moment on the run's clock, seconds.
    pub interference: Vec<(f64, Interference)>,
}

impl Watched {
    /// Adds what others saw of strangers, with the moments on the run's clock, seconds, and tells it.
    pub fn add_interference(
        &mut self,
        seen: Vec<(f64, Interference)>,
        is_expected: bool,
        chronicle: &dyn EventSink,
    ) {
        for (at_s, interference) in seen {
            let interference = Interference { expected: is_expected, ..interference };
            chronicle.say_at(at_s, EventKind::Interference { interference: interference.clone() });
            self.interference.push((at_s, interference));
        }
        self.interference.sort_by(|(one_s, _), (other_s, _)| one_s.total_cmp(other_s));
    }

    /// Adds a stall that others saw, and tells it.
    pub fn add_stall(&mut self, stall: Stall, chronicle: &dyn EventSink) {
        chronicle.say_at(stall.from_s, EventKind::LabStall { stall: stall.clone() });
        self.stalls.push(stall);
        self.stalls.sort_by(|one, other| one.from_s.total_cmp(&other.from_s));
    }
}

/// What the watchers share.
pub(crate) struct Shared {
    pub(crate) ended: AtomicBool,
    pub(crate) chronicle: Arc<dyn EventSink>,
    pub(crate) interference: Mutex<Vec<(f64, Interference)>>,
    /// Processes that strangers have stopped and that stand still, by node, and since when.
    stopped: Mutex<BTreeMap<String, BTreeMap<StoppedProcess, Instant>>>,
    /// Whether the scenario says that strangers may be at work.
    interference_expected: bool,
}

impl Shared {
    pub(crate) fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Does something with the processes that stand still, unless the watch is over: whoever ends it has taken them by then, and
    /// what is noted later nobody reads.
    pub(crate) fn while_watching(
        &self,
        work: impl FnOnce(&mut BTreeMap<String, BTreeMap<StoppedProcess, Instant>>),
    ) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_over() {
            work(&mut stopped);
        }
    }

    /// Records what nobody of the run did to a program on a node, and tells it. `is_of_a_fault`: the kernel did, for a fault.
    pub(crate) fn note(&self, node: &str, program: String, deed: Deed, is_of_a_fault: bool) {
        let (node, expected) = (node.to_owned(), self.interference_expected || is_of_a_fault);
        let interference = Interference { node, program, deed, expected };
        let t_s = self.chronicle.now_s();
        self.chronicle.say_at(t_s, EventKind::Interference { interference: interference.clone() });
        self.interference.lock().unwrap_or_else(PoisonError::into_inner).push((t_s, interference));
    }
}

/// What is watched.
pub struct Watch<'a> {
    /// The datacentre, and the engine, whose log may tell of processes that nobody else saw end; none for a cluster that
    /// exists, of which nothing is the lab's.
    pub lab: Option<(&'a Arc<Datacentre>, Arc<dyn Engine>)>,
    /// The run directory.
    pub directory: &'a Path,
    /// Where stalls and interference are told.
    pub chronicle: Arc<dyn EventSink>,
    pub loads: Arc<Mutex<Vec<LoadHandle>>>,
    /// Their names, in the same order.
    pub load_names: Vec<String>,
    /// Whether the scenario says that strangers may stop and kill processes of nodes.
    pub interference_expected: bool,
    /// Lies planted by a test; empty in every honest run.
    pub planted: &'a Planted,
}

/// The watch under way. Dropping it ends it.
pub struct Vigil {
    shared: Arc<Shared>,
    looker: Option<JoinHandle<Vec<Stall>>>,
    logs: Option<Logs>,
}

/// The logs of a lab's nodes.
struct Logs {
    engine: Arc<dyn Engine>,
    vms: PerNode<Arc<Vm>>,
    /// The killed processes that each node's logs had told of when the watch began.
    killed_before: Vec<Vec<Killed>>,
}

impl Logs {
    fn of(datacentre: &Datacentre, engine: Arc<dyn Engine>) -> Logs {
        let vms = datacentre.vms.clone();
        let killed_before = vms.iter().map(|vm| engine.killed_by_signals(vm.as_ref())).collect();
        Logs { engine, vms, killed_before }
    }
}

impl Vigil {
    /// Begins to watch. A part whose watcher cannot be started is told as a warning.
    #[must_use]
    pub fn start(watch: Watch<'_>) -> Vigil {
        let Watch { lab, directory, chronicle, loads, load_names, .. } = watch;
        let shared = Arc::new(Shared {
            ended: AtomicBool::new(false),
            chronicle,
            interference: Mutex::default(),
            stopped: Mutex::default(),
            interference_expected: watch.interference_expected,
        });
        let datacentre = lab.as_ref().map(|(datacentre, _)| *datacentre);
        let parts = watchers::start(datacentre, directory, &shared);
        let logs = lab.map(|(datacentre, engine)| Logs::of(datacentre, engine));
        let theirs = shared.clone();
        let panics_at_s = watch.planted.contains(&Lie::VigilPanic).then_some(PANICS_AT_S);
        let look = move || Looker::new(theirs, parts, loads, load_names).look(panics_at_s);
        let looker = match watch.planted.contains(&Lie::NoVigil) {
            true => Err(io::Error::other("planted")),
            false => std::thread::Builder::new().name("vigil".to_owned()).spawn(look),
        };
        if let Err(error) = &looker {
            let what = format!("stalls of the lab are not detected: {error}");
            shared.chronicle.warn(what, "raise the limit of processes (`ulimit -u`)");
        }
        Vigil { shared, looker: looker.ok(), logs }
    }

    /// Ends the watch.
    #[must_use]
    pub fn finish(mut self) -> Watched {
        self.shared.ended.store(true, Ordering::Release);
        self.note_the_last();
        self.note_killed_in_logs();
        let watched = self.looker.take().and_then(|looker| looker.join().ok());
        let stalls = watched.unwrap_or_else(|| vec![self.unwatched()]);
        let mut interference = self.shared.interference.lock().unwrap_or_else(PoisonError::into_inner);
        Watched { stalls, interference: std::mem::take(&mut interference) }
    }
}

impl Vigil {
    /// A watch that could not begin, or panicked, has shown nothing: the whole run counts as not watched.
    fn unwatched(&self) -> Stall {
        let to_s = self.shared.chronicle.now_s();
        let stall = Stall::of(vec![LabPart::Watch], 0.0, to_s);
        self.shared.chronicle.say_at(0.0, EventKind::LabStall { stall: stall.clone() });
        stall
    }

    /// What the watchers would tell at their next look, which nobody waits for: what was killed since their last one, and what
    /// still stands still.
    fn note_the_last(&self) {
        let mut stopped = self.shared.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        for vm in self.logs.iter().flat_map(|logs| &logs.vms) {
            watchers::note_unasked_ends(&self.shared, vm);
        }
        for (node, mut stopped) in std::mem::take(&mut *stopped) {
            watchers::note_stopped(&self.shared, &node, &mut stopped, &[]);
        }
    }

    fn note_killed_in_logs(&self) {
        let Some(Logs { engine, vms, killed_before }) = &self.logs else { return };
        for (vm, before) in vms.iter().zip(killed_before) {
            for killed in new_since(before.clone(), engine.killed_by_signals(vm.as_ref())) {
                let deed = Deed::Killed { signal: killed.signal };
                let is_of_a_fault = watchers::is_of_a_fault(killed.signal, vm.expects_kills());
                self.shared.note(engine::Node::name(vm.as_ref()), killed.program, deed, is_of_a_fault);
            }
        }
    }
}

/// Those of `now` that were not there `before`. A node has several logs, so that a new one may stand before an old one.
fn new_since(mut before: Vec<Killed>, now: Vec<Killed>) -> Vec<Killed> {
    let is_new = |killed: &Killed| match before.iter().position(|old| old == killed) {
        Some(at) => {
            before.swap_remove(at);
            false
        }
        None => true,
    };
    now.into_iter().filter(is_new).collect()
}

impl Drop for Vigil {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
    }
}

/// A part that somebody watches.
pub(crate) struct Part {
    pub(crate) name: LabPart,
    pub(crate) sign: Arc<Sign>,
    pub(crate) limit: Duration,
}

/// Why the thread that looks did not look.
struct OwnGap {
    ended: Instant,
    /// How long it waited for a processor.
    waited: Option<Duration>,
    /// How much the hypervisor withheld meanwhile, of all processors.
    withheld: Option<Duration>,
}

/// The thread that looks at the signs.
struct Looker {
    shared: Arc<Shared>,
    parts: Vec<(Part, Beats)>,
    loads: Arc<Mutex<Vec<LoadHandle>>>,
    load_names: Vec<String>,
    load_beats: BTreeMap<usize, Beats>,
    own: Beats,
    processor_wait: ProcessorWait,
    withheld: Withheld,
    /// What is known of each gap of this thread itself.
    own_gaps: Vec<OwnGap>,
    /// How far the clock that counts suspensions is ahead of the one that does not.
    suspended: Duration,
    gaps: Vec<(LabPart, Gap)>,
    stalls: Vec<Stall>,
}

impl Looker {
    fn new(
        shared: Arc<Shared>,
        parts: Vec<Part>,
        loads: Arc<Mutex<Vec<LoadHandle>>>,
        load_names: Vec<String>,
    ) -> Looker {
        let now = Instant::now();
        let parts = parts.into_iter().map(|part| {
            let beats = Beats::new(part.limit, now);
            (part, beats)
        });
        Looker {
            shared,
            parts: parts.collect(),
            loads,
            load_names,
            load_beats: BTreeMap::new(),
            own: Beats::new(LIMIT, now),
            processor_wait: ProcessorWait::default(),
            withheld: Withheld::default(),
            own_gaps: Vec::new(),
            suspended: suspended(),
            gaps: Vec::new(),
            stalls: Vec::new(),
        }
    }

    fn look(mut self, panics_at_s: Option<f64>) -> Vec<Stall> {
        loop {
            let over = self.shared.is_over();
            assert!(panics_at_s.is_none_or(|at_s| self.shared.chronicle.now_s() < at_s), "planted");
            self.look_once(over);
            let newest = self.gaps.iter().map(|(_, gap)| gap.to).max();
            if newest.is_some_and(|newest| over || newest.elapsed() > TOGETHER) {
                self.tell();
            }
            if over {
                return self.stalls;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Looks at every part once. At the end a part that is still silent has stood still until now.
    fn look_once(&mut self, over: bool) {
        let now = Instant::now();
        let (waited, withheld) = (self.processor_wait.since_last(), self.withheld.since_last());
        if let Some(gap) = self.own.take(now) {
            self.own_gaps.push(OwnGap { ended: gap.to, waited, withheld });
            self.gaps.push((LabPart::Supervisor, gap));
        }
        for (part, beats) in &mut self.parts {
            beats.excuse(part.sign.excused_until());
            let beat = if over { now } else { part.sign.latest() };
            self.gaps.extend(beats.take(beat).map(|gap| (part.name.clone(), gap)));
        }
        let loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, (load, name)) in loads.iter().zip(&self.load_names).enumerate() {
            let part = || LabPart::Load { load: name.clone() };
            let elsewhere = load.take_stalls().into_iter().map(|(from, to)| (part(), Gap { from, to }));
            self.gaps.extend(elsewhere);
            // A load that has ended says why elsewhere.
            let Some(beat) = load.last_beat().filter(|_| !load.is_finished()) else { continue };
            let beats = self.load_beats.entry(number).or_insert_with(|| Beats::new(LIMIT, beat));
            self.gaps.extend(beats.take(beat).map(|gap| (part(), gap)));
        }
        drop(loads);
        self.look_for_a_suspension(now, suspended());
    }

    /// A machine that sleeps stops the monotonic clock, so that no part is late by it (clock_gettime(2), CLOCK_BOOTTIME).
    fn look_for_a_suspension(&mut self, now: Instant, suspended: Duration) {
        let slept = suspended.saturating_sub(self.suspended);
        self.suspended = suspended;
        if slept > LIMIT {
            let t_s = self.seconds_at(now);
            let stall = Stall::of(vec![LabPart::Machine], t_s, t_s);
            self.record(Stall { length_s: slept.as_secs_f64(), ..stall });
        }
    }

    /// Tells the gaps found so far, those that overlap as one.
    fn tell(&mut self) {
        let own_gaps = std::mem::take(&mut self.own_gaps);
        for (parts, gap) in joined(std::mem::take(&mut self.gaps)) {
            let (from_s, to_s) = (self.seconds_at(gap.from), self.seconds_at(gap.to));
            // None of this thread's own gaps is in a stall of another part.
            let sum = |figure: fn(&OwnGap) -> Option<Duration>| {
                let during = own_gaps.iter().filter(|own| (gap.from..=gap.to).contains(&own.ended));
                during.filter_map(figure).reduce(|one, other| one + other).map(|sum| sum.as_secs_f64())
            };
            self.record(Stall {
                waited_for_processor_s: sum(|own| own.waited),
                processors_withheld_s: sum(|own| own.withheld),
                ..Stall::of(parts, from_s, to_s)
            });
        }
    }

    fn record(&mut self, stall: Stall) {
        self.shared.chronicle.say_at(stall.from_s, EventKind::LabStall { stall: stall.clone() });
        self.stalls.push(stall);
    }

    fn seconds_at(&self, moment: Instant) -> f64 {
        self.shared.chronicle.seconds_at(moment)
    }
}

fn suspended() -> Duration {
    let read = |clock| clock_gettime(clock).map(Duration::from).unwrap_or_default();
    read(ClockId::CLOCK_BOOTTIME).saturating_sub(read(ClockId::CLOCK_MONOTONIC))
}

#[cfg(test)]
mod tests;
