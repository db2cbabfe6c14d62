//! One load: its thread, its clients as tasks on it, and what it hands on every second.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::process::Accountant;
use client::reactor;
use history::{FaultId, FirstError, Operation};
use measure::{Histogram, Interval, Wait};
use tokio::sync::watch;

use crate::client_loop::{run_client, stopped};
use crate::clock::Clock;
use crate::defects::BAD_END_S;
use crate::dispatch::dispatch;
use crate::first_success::FirstSuccess;
use crate::muster::Muster;
use crate::pace::{Arrivals, Step};
use crate::plan::{LoadError, LoadPlan, OnThread};
use crate::shared::{Shared, clients_of};
use crate::thread_cpu::{LoadCpu, ProgramCpu, ThreadCpu};

/// The stream of chance (see `LoadPlan::chance`) that spreads an open loop's operations.
const ARRIVALS: u64 = 3;

/// How often a load's event loop gives a sign of life.
const BEAT: Duration = Duration::from_millis(100);

/// What a load recorded in one second of the run's clock.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Latencies and errors by operation.
    pub interval: Interval,
    /// The operations that ended in it, in that order.
    pub history: Vec<Operation>,
    /// How long nothing succeeded though something was due: the longest wait that ended in this second, and every one
    /// longer than [`measure::waits::KEPT_ABOVE_S`].
    pub waits: Vec<Wait>,
    /// How long nothing succeeded, whether or not something was due; by the same rule. Only needed where several processes
    /// record one load.
    pub quiet: Vec<Wait>,
    /// Faults whose marks were taken in with this second, by number.
    pub marked: Vec<FaultId>,
    /// The first success after each fault marked, where it is now known.
    pub first_success: Vec<FirstSuccess>,
    /// Absent in a closed loop.
    pub open_loop: Option<OpenLoop>,
    /// The first error of each class that had not occurred before in this load.
    pub first_errors: Vec<FirstError>,
    /// Why the load ends with this batch, though nobody told it to.
    pub failure: Option<String>,
}

/// How well an open loop kept its rate in one second.
#[derive(Debug, Clone)]
pub struct OpenLoop {
    /// How long after they were due operations were sent that found a free connection, microseconds: the generator's
    /// own lateness.
    pub lateness: Histogram<u64>,
    /// Operations that were due at the second's end and waited for a free connection.
    pub backlog: u64,
}

/// How a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadEnd {
    /// CPU time that it spent.
    pub cpu: LoadCpu,
}

/// A load under way. Dropping it stops the load without waiting for it.
#[derive(Debug)]
pub struct LoadHandle {
    name: String,
    /// Or why there is none.
    thread: Result<JoinHandle<Result<(), LoadError>>, LoadError>,
    stop: watch::Sender<bool>,
    controls: Arc<Controls>,
}

/// What the load's thread and its handle share.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    cpu: ThreadCpu,
    /// Of the program that speaks for the clients, where one does.
    program_cpu: Arc<ProgramCpu>,
    pub(crate) muster: Arc<Muster>,
    /// Faults marked since the last tick: number and moment, seconds.
    marks: Mutex<Vec<(FaultId, f64)>>,
    /// When the event loop came round last.
    beat: Mutex<Option<Instant>>,
    /// Stretches in which a process that does a part of the load elsewhere stood still, since the last look.
    stalls: Mutex<Vec<(Instant, Instant)>>,
}

impl Controls {
    /// The event loop lives.
    pub(crate) fn give_sign(&self) {
        *self.beat.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Faults marked since the last call.
    pub(crate) fn take_marks(&self) -> Vec<(FaultId, f64)> {
        std::mem::take(&mut *self.marks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A process that does a part of the load elsewhere stood still.
    pub(crate) fn stalled(&self, from: Instant, to: Instant) {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).push((from, to));
    }

    fn cpu(&self) -> LoadCpu {
        LoadCpu { thread: self.cpu.spent(), program: self.program_cpu.spent() }
    }
}

/// Starts a load on a thread of its own. `on_thread` runs there first. The clock's zero becomes now unless it is
/// set already or left to others. Whatever keeps the load from starting is told by [`LoadHandle::join`].
pub fn start(mut plan: LoadPlan, clock: Clock, on_thread: OnThread, sink: Sender<Batch>) -> LoadHandle {
    let (stop, stop_seen) = watch::channel(false);
    let controls = Arc::new(Controls::default());
    if let Some(program) = &mut plan.program {
        program.settings.accountant = Some(Arc::clone(&controls.program_cpu) as Arc<dyn Accountant>);
    }
    let name = plan.name.clone();
    let theirs = Arc::clone(&controls);
    let body = move || on_own_thread(plan, &clock, on_thread, sink, stop_seen, theirs);
    on_a_thread(name, (stop, controls), body)
}

/// Starts the thread of a load, whatever it does there.
pub(crate) fn on_a_thread(
    name: String,
    (stop, controls): (watch::Sender<bool>, Arc<Controls>),
    job: impl FnOnce() -> Result<(), LoadError> + Send + 'static,
) -> LoadHandle {
    let theirs = Arc::clone(&controls);
    let body = move || {
        theirs.cpu.begin();
        let ended = job();
        theirs.cpu.end();
        ended
    };
    let thread = std::thread::Builder::new()
        .name("load".to_owned())
        .spawn(body)
        .map_err(|source| LoadError::Thread { load: name.clone(), what: "starting its thread", source });
    LoadHandle { name, thread, stop, controls }
}

impl LoadHandle {
    /// Tells the clients to finish their current operation and end. What is still in flight when the load's timeout
    /// has passed is recorded as unknown. Does not wait: see [`LoadHandle::join`].
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits for the end. A load that was not told to stop ends only by an error.
    ///
    /// # Errors
    /// What kept the load from starting or ended it.
    pub fn join(self) -> Result<LoadEnd, LoadError> {
        match self.thread?.join() {
            Ok(Ok(())) => Ok(LoadEnd { cpu: self.controls.cpu() }),
            Ok(Err(error)) => Err(error),
            // Panics are caught where the load runs; one that comes here came while it was winding up.
            Err(_) => Err(LoadError::RecordsLost { load: self.name }),
        }
    }

    /// Whether the load's thread has ended, by an error or after a stop.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().map_or(true, JoinHandle::is_finished)
    }

    /// How far its clients have come with connecting.
    #[must_use]
    pub fn muster(&self) -> &Muster {
        &self.controls.muster
    }

    /// Asks for the first success of an operation sent at `at_s` or later (seconds on the run's clock, which may be
    /// up to a minute ago); a later batch tells it, within 0.5 ms.
    pub fn mark_fault(&self, fault: FaultId, at_s: f64) {
        self.controls.marks.lock().unwrap_or_else(PoisonError::into_inner).push((fault, at_s));
    }

    /// When the load's event loop gave a sign of life last; none before it has begun.
    #[must_use]
    pub fn last_beat(&self) -> Option<Instant> {
        *self.controls.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stretches in which a process that does a part of this load elsewhere stood still, each told once.
    #[must_use]
    pub fn take_stalls(&self) -> Vec<(Instant, Instant)> {
        std::mem::take(&mut *self.controls.stalls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// CPU time that the load has spent so far.
    #[must_use]
    pub fn cpu(&self) -> LoadCpu {
        self.controls.cpu()
    }
}

fn on_own_thread(
    plan: LoadPlan,
    clock: &Clock,
    on_thread: OnThread,
    sink: Sender<Batch>,
    stop: watch::Receiver<bool>,
    controls: Arc<Controls>,
) -> Result<(), LoadError> {
    plan.check()?;
    let load = plan.name.clone();
    let failed = |what| {
        let load = load.clone();
        move |source| LoadError::Thread { load, what, source }
    };
    on_thread().map_err(failed("putting its thread into its place"))?;
    clock.load_starts();
    let shared = Rc::new(Shared::new(plan, clock.clone(), Arc::clone(&controls.muster)));
    let generate = || reactor::block_on(generate(Rc::clone(&shared), &sink, stop, &controls));
    // What a panic leaves is looked at only to be handed on.
    let ended = match catch_unwind(AssertUnwindSafe(generate)) {
        Ok(Ok(ended)) => return ended,
        Ok(Err(source)) => failed("running its event loop")(source),
        Err(panic) => LoadError::Panicked { load: load.clone(), message: message_of(panic.as_ref()) },
    };
    wind_up(&shared, &sink, &controls, Some(&ended));
    Err(ended)
}

/// What a panic said.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("without a message").to_owned()
}

/// Runs the load to its end, and hands on the rest of what it recorded, however it ended.
async fn generate(
    shared: Rc<Shared>,
    sink: &Sender<Batch>,
    stop: watch::Receiver<bool>,
    controls: &Arc<Controls>,
) -> Result<(), LoadError> {
    let ended = keep_going(&shared, sink, stop, controls).await;
    shared.close_all();
    wind_up(&shared, sink, controls, ended.as_ref().err());
    ended
}

/// Records what is still in flight as unknown and what is still waited for as open, and hands on the last batch. No client
/// runs any more.
fn wind_up(shared: &Shared, sink: &Sender<Batch>, controls: &Controls, failure: Option<&LoadError>) {
    shared.abandon_all();
    // The word to stop reaches receivers one after another. All clients may have heard it and ended before the load did.
    shared.end_waits();
    hand_on(shared, sink, controls, failure);
}

/// Gives signs of life for as long as the event loop goes round.
async fn beat(controls: Arc<Controls>) {
    loop {
        controls.give_sign();
        reactor::sleep(BEAT).await;
    }
}

/// Keeps the clients going and hands on a batch at every whole second.
async fn keep_going(
    shared: &Rc<Shared>,
    sink: &Sender<Batch>,
    mut stop: watch::Receiver<bool>,
    controls: &Arc<Controls>,
) -> Result<(), LoadError> {
    let beating = reactor::spawn(beat(Arc::clone(controls)));
    let clients: Vec<_> = (0..usize::try_from(shared.plan.most_clients()).unwrap_or(usize::MAX))
        .map(|place| reactor::spawn(run_client(Rc::clone(shared), place, stop.clone())))
        .collect();
    let zero = tokio::select! {
        biased;
        zero = shared.clock.known_zero() => zero,
        // Nothing was asked; what failed until then is handed on all the same.
        () = stopped(&mut stop) => Instant::now(),
    };
    // An open loop hands out operations as they become due, until the load is told to stop.
    let mut dispatcher = shared.is_open.then(|| {
        let arrivals = Arrivals::new(&shared.plan.steps, shared.plan.arrival, shared.plan.part);
        let rng = shared.plan.chance(shared.plan.first_client, ARRIVALS);
        reactor::spawn(dispatch(Rc::clone(shared), zero, arrivals, rng))
    });
    let mut steps = shared.plan.steps.iter().skip(1).peekable();
    let mut listened_to = true;
    let mut deadline: Option<Instant> = None;
    loop {
        let next_tick = zero + Duration::from_secs(shared.second.get() + 1);
        let next_step = steps.peek().map_or(next_tick, |step| moment_of(zero, step));
        let last_moment = deadline.unwrap_or(next_tick);
        tokio::select! {
            biased;
            () = stopped(&mut stop), if deadline.is_none() => {
                shared.stopping.set(true);
                shared.end_waits();
                drop(dispatcher.take());
                deadline = Some(Instant::now() + shared.plan.timeout);
            }
            () = shared.all_done() => break,
            () = reactor::sleep_until(last_moment), if deadline.is_some_and(|moment| moment <= next_tick) => {
                break;
            }
            () = reactor::sleep_until(next_step), if steps.peek().is_some() => {
                shared.put_to_work(clients_of(steps.next()));
            }
            () = reactor::sleep_until(next_tick) => {
                listened_to &= hand_on(shared, sink, controls, None);
                if shared.plan.defects.dies && shared.seconds(next_tick) >= BAD_END_S {
                    return Err(LoadError::Planted { load: shared.plan.name.clone() });
                }
                if let Some(why) = shared.connector.failure() {
                    return Err(LoadError::Program { load: shared.plan.name.clone(), why });
                }
                if !listened_to && deadline.is_none() {
                    // Nobody takes what is recorded any more: the run is over.
                    shared.stopping.set(true);
                    deadline = Some(Instant::now());
                }
            }
        }
    }
    drop(clients);
    drop(beating);
    Ok(())
}

fn moment_of(zero: Instant, step: &Step) -> Instant {
    let after = Duration::try_from_secs_f64(step.from_s).unwrap_or_default();
    zero.checked_add(after).unwrap_or(zero)
}

/// Sends one second's batch; false when nobody takes it. `failure` is why it is the last, though nobody said so.
fn hand_on(shared: &Shared, sink: &Sender<Batch>, controls: &Controls, failure: Option<&LoadError>) -> bool {
    let mut successes = shared.successes.borrow_mut();
    let waits = shared.take_waits();
    successes.nothing_was_due(&waits.idle);
    let marks = controls.take_marks();
    for (fault, at_s) in &marks {
        successes.mark(*fault, *at_s);
    }
    let first_success = successes.take_answered();
    let interval = shared.recorder.borrow_mut().take(shared.second.replace(shared.second.get() + 1));
    let open_loop = shared
        .is_open
        .then(|| OpenLoop { lateness: shared.take_lateness(), backlog: shared.queue.backlog() as u64 });
    let batch = Batch {
        interval,
        history: shared.take_history(),
        waits: waits.waits,
        quiet: waits.quiet,
        marked: marks.into_iter().map(|(fault, _)| fault).collect(),
        first_success,
        open_loop,
        first_errors: shared.take_first_errors(),
        failure: failure.map(ToString::to_string),
    };
    sink.send(batch).is_ok()
}
