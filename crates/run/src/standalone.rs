//! A load alone, against a database that is already there: the same files as a run's, without a lab.
//!
//! Owns the order of it: tables (where asked for), load, final read, checks, result. No fault is made and nothing is
//! started, so that nothing is to be torn down.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use history::WARM_UP;
use history::{Event, EventKind, EventWriter, FirstError, PhaseFacts, RunFacts};
use load::{
    Batch, Clock, FINAL_READ_PATIENCE, Leadership, LoadPlan, MissingClients, OpenLoop, Refusals, here,
};
use measure::{Histogram, Timeline};
use results::{EndedEarly, RunResult, WarningResult};
use verdict::LoadAlone;

use crate::collector::{CollectorError, Files, append_to_history, recording};
use crate::directory::{DirectoryError, RunDirectory};
use crate::external::ROLE_PATIENCE;
use crate::leaders_at_the_end::read_between_looks;
use crate::preparation::facts_of_load;
use crate::supervise::INTERRUPTED;

/// How often an interruption is looked for while nothing else happens.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// What a load alone is asked to do.
#[derive(Debug)]
pub struct Standalone {
    /// The load. Its name is the run's.
    pub plan: LoadPlan,
    /// Options of its workload, for the record.
    pub options: BTreeMap<String, String>,
    /// What is left out of totals.
    pub warm_up: Duration,
    /// How long it is measured.
    pub length: Duration,
    /// Whether the workload's tables are made first, and the end is read and checked.
    pub makes_tables: bool,
    /// Folder under which the run directory is made.
    pub out: PathBuf,
    /// Holdfast's version.
    pub version: &'static str,
}

/// What can keep a load alone from doing its job.
#[derive(Debug, thiserror::Error)]
pub enum StandaloneError {
    /// The run directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// The server takes fewer sessions than the load has clients.
    #[error(
        "load {load}: the server accepts only {connected} of {clients} clients: {error}\n  raise \
         its max_connections above {clients}, with room for other users and for those that it reserves, or ask for \
         at most {connected} clients"
    )]
    ServerIsFull {
        load: String,
        /// Clients that had a session.
        connected: usize,
        /// Clients asked for.
        clients: usize,
        /// The server's words, with its code and address.
        error: String,
    },
    /// A file of the run directory.
    #[error(transparent)]
    Recording(#[from] CollectorError),
}

/// What is told while it goes on.
pub enum StandaloneNews<'a> {
    Step(String),
    /// The run directory.
    Directory(&'a Path),
    /// A second of the load.
    Second {
        second: u64,
        /// Seconds in all.
        of_s: u64,
        /// Transactions that succeeded in it.
        transactions: u64,
        /// Errors in it.
        errors: u64,
        /// Their 99th percentile, microseconds.
        us_p99: u64,
    },
}

/// How it ended.
#[derive(Debug)]
pub struct StandaloneEnd {
    /// The result, as it stands in the run directory.
    pub result: RunResult,
    /// The run directory.
    pub directory: PathBuf,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// What the load handed on.
#[derive(Default)]
struct Record {
    timeline: Timeline,
    lateness: Option<Histogram<u64>>,
    waiting: u64,
    first_errors: Vec<FirstError>,
    errors_after_end: u64,
}

/// Carries it out. `interrupted` is asked several times a second.
///
/// # Errors
/// When the tables cannot be made, the load cannot run or something cannot be written.
pub fn run_alone(
    asked: &Standalone,
    interrupted: &dyn Fn() -> bool,
    tell: &(dyn Fn(StandaloneNews<'_>) + Sync),
) -> Result<StandaloneEnd, StandaloneError> {
    let now = jiff::Timestamp::now();
    let plan = &asked.plan;
    let timestamp = now.strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
    // First of all: a database that is not there leaves no empty directory behind.
    let version = load::server_version(plan, here())?;
    let directory = RunDirectory::make(&asked.out, &plan.name, &timestamp)?;
    tell(StandaloneNews::Directory(directory.path()));
    let facts = facts(asked, &now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), version);
    write_event(&directory, &EventKind::RunStarted { facts: Box::new(facts.clone()) })?;
    if asked.makes_tables {
        tell(StandaloneNews::Step(format!("making the tables of {}", plan.workload.name())));
        load::prepare(plan, here(), &|line| tell(StandaloneNews::Step(line)))?;
    }
    let clock = Clock::set_later();
    let (sink, batches) = channel();
    let handle = load::start(plan.clone(), clock.clone(), here(), sink);
    let missing = let_clients_connect(&handle, plan, interrupted)?;
    let ticks = watch::busy_ticks();
    clock.set_zero(Instant::now());
    let zero = SystemTime::now();
    let mut files = Files::create(&directory, move || zero)?;
    let of_s = (asked.warm_up + asked.length).as_secs();
    let mut record = Record::default();
    let now_s = || clock.seconds().unwrap_or(0.0);
    let interrupted_s = listen(&batches, &handle, of_s, (interrupted, &now_s), |batch| {
        record.take(batch, plan, of_s, &mut files, tell)
    })?;
    let was_interrupted = interrupted_s.is_some();
    let ended_s = interrupted_s.unwrap_or_else(now_s).min(of_s as f64);
    let busy_share = watch::busy_since(ticks);
    let (cpu, ended_early) = match handle.join() {
        Ok(end) => (end.cpu.total(), None),
        Err(error) => (Duration::ZERO, Some(verdict::ended_early(&error))),
    };
    files.finish()?;
    tell_what_ended_it((&directory, plan), interrupted_s, ended_early.as_ref())?;
    if asked.makes_tables && !was_interrupted {
        read_the_end(plan, &clock, &directory)?;
    }
    let told = missing.iter().map(|missing| WarningResult {
        what: missing.what(),
        remedy: "its first figures are from fewer clients than configured; use fewer clients".to_owned(),
    });
    let alone = LoadAlone {
        plan,
        options: &asked.options,
        warm_up: asked.warm_up,
        makes_tables: asked.makes_tables,
        was_interrupted,
        ended_s,
        ended_early,
        cpu,
        busy_share,
        timeline: &record.timeline,
        lateness: record.lateness.as_ref(),
        waiting: record.waiting,
        first_errors: &record.first_errors,
        errors_after_end: record.errors_after_end,
    };
    let result = alone.judged(facts, directory.path(), told.collect());
    write_event(&directory, &EventKind::RunEnded { verdict: result.verdict })?;
    let text = serde_json::to_string_pretty(&result).map_err(recording(directory.path()))?;
    directory.write("result.json", &format!("{text}\n"))?;
    Ok(StandaloneEnd { result, directory: directory.path().to_owned(), interrupted: was_interrupted })
}

/// Tells that it was interrupted, and that it ended by itself before its time.
fn tell_what_ended_it(
    (directory, plan): (&RunDirectory, &LoadPlan),
    interrupted_s: Option<f64>,
    ended_early: Option<&EndedEarly>,
) -> Result<(), StandaloneError> {
    if let Some(interrupted_s) = interrupted_s {
        write_event_at(directory, interrupted_s, &EventKind::Interrupted { why: INTERRUPTED.to_owned() })?;
    }
    match ended_early {
        Some(EndedEarly { why, .. }) => {
            write_event(directory, &EventKind::LoadEnded { load: plan.name.clone(), why: why.clone() })
        }
        None => Ok(()),
    }
}

/// Waits until the clients have connected; who could not.
fn let_clients_connect(
    handle: &load::LoadHandle,
    plan: &LoadPlan,
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<MissingClients>, StandaloneError> {
    let missing = || load::missing_clients(handle, plan).into_iter().collect();
    let missing = load::await_clients(missing, |missing, wait| {
        std::thread::sleep(wait);
        interrupted() || missing.iter().any(MissingClients::is_for_a_full_server)
    });
    // Figures of fewer clients than were asked for would be those of another load.
    match missing.iter().find(|missing| missing.is_for_a_full_server()) {
        Some(MissingClients { load, connected, clients, error: Some((_, error)) }) if !interrupted() => {
            Err(StandaloneError::ServerIsFull {
                load: load.clone(),
                connected: *connected,
                clients: *clients,
                error: error.clone(),
            })
        }
        _ => Ok(missing),
    }
}

fn read_the_end(plan: &LoadPlan, clock: &Clock, directory: &RunDirectory) -> Result<(), StandaloneError> {
    let mut missed = None;
    let (operations, doubt) = read_between_looks(
        plan.protocol.reads_at_the_leader() && !plan.spreads,
        || leadership(plan),
        || {
            let read = load::recorded_final_read(plan, clock, Ok(here()), FINAL_READ_PATIENCE);
            missed = read.missed;
            read.operations
        },
    );
    append_to_history(directory, &operations)?;
    missed.into_iter().chain(doubt).try_for_each(|event| write_event(directory, &event))
}

/// Who leads of several servers of which one should. Of MySQL's nobody knows whether each takes writes.
fn leadership(plan: &LoadPlan) -> Leadership {
    let has_one_leader = plan.protocol.has_readable_standbys() && !plan.spreads;
    match has_one_leader && plan.endpoints.len() > 1 {
        true => load::leadership(plan, ROLE_PATIENCE, Refusals::OfNodes),
        false => Leadership::default(),
    }
}

/// Takes batches until the load has ended; tells it to stop after its time, or when it is interrupted. Returns when that was:
/// what is under way comes to its end after it.
fn listen(
    batches: &Receiver<Batch>,
    handle: &load::LoadHandle,
    of_s: u64,
    (interrupted, now_s): (&dyn Fn() -> bool, &dyn Fn() -> f64),
    mut take: impl FnMut(&Batch) -> Result<(), StandaloneError>,
) -> Result<Option<f64>, StandaloneError> {
    let mut interrupted_s = None;
    loop {
        match batches.recv_timeout(LOOK_AROUND) {
            Ok(batch) => {
                take(&batch)?;
                if batch.interval.second + 1 >= of_s {
                    handle.stop();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(interrupted_s),
        }
        if interrupted_s.is_none() && interrupted() {
            interrupted_s = Some(now_s());
            handle.stop();
        }
    }
}

impl Record {
    fn take(
        &mut self,
        batch: &Batch,
        plan: &LoadPlan,
        of_s: u64,
        files: &mut Files,
        tell: &(dyn Fn(StandaloneNews<'_>) + Sync),
    ) -> Result<(), StandaloneError> {
        let second = batch.interval.second;
        self.first_errors.extend(batch.first_errors.iter().cloned());
        files.write_history(batch)?;
        // After the end only what was in flight comes in.
        if second >= of_s {
            self.errors_after_end += batch.interval.error_count(plan.workload.transaction_name());
            return Ok(());
        }
        files.write_figures(batch)?;
        self.timeline.add(&batch.interval).map_err(recording(files.folder()))?;
        if let Some(OpenLoop { lateness, backlog }) = &batch.open_loop {
            let merged = self.lateness.get_or_insert_with(measure::interval::new_histogram);
            // It grows as it needs to, so that adding cannot fail.
            let _ = merged.add(lateness);
            self.waiting = *backlog;
        }
        let transaction = batch.interval.operations.get(plan.workload.transaction_name());
        tell(StandaloneNews::Second {
            second,
            of_s,
            transactions: transaction.map_or(0, measure::OperationInterval::count),
            errors: batch.interval.error_count(plan.workload.transaction_name()),
            us_p99: transaction.map_or(0, |measured| measured.histogram.value_at_quantile(0.99)),
        });
        Ok(())
    }
}

fn write_event(directory: &RunDirectory, kind: &EventKind) -> Result<(), StandaloneError> {
    write_event_at(directory, 0.0, kind)
}

fn write_event_at(directory: &RunDirectory, t_s: f64, kind: &EventKind) -> Result<(), StandaloneError> {
    let path = directory.file("events.jsonl");
    let file = File::options().create(true).append(true).open(path).map_err(recording(directory.path()))?;
    let event = Event { t_s, kind: kind.clone() };
    EventWriter::new(file).write(&event).map_err(recording(directory.path()))?;
    Ok(())
}

fn phases(asked: &Standalone) -> Vec<PhaseFacts> {
    let warm_s = asked.warm_up.as_secs_f64();
    let measured =
        PhaseFacts { name: "measured".to_owned(), from_s: warm_s, to_s: warm_s + asked.length.as_secs_f64() };
    let warm_up = PhaseFacts { name: WARM_UP.to_owned(), from_s: 0.0, to_s: warm_s };
    (warm_s > 0.0).then_some(warm_up).into_iter().chain([measured]).collect()
}

fn facts(asked: &Standalone, started_at: &str, engine_version: String) -> RunFacts {
    let plan = &asked.plan;
    RunFacts {
        holdfast: asked.version.to_owned(),
        scenario: plan.name.clone(),
        description: "a load without a lab, against an existing database".to_owned(),
        seed: plan.seed,
        started_at: started_at.to_owned(),
        engine: plan.protocol.name().to_owned(),
        engine_version,
        engine_settings: asked.options.clone(),
        machine: paper::facts_of_this_host(),
        loads: vec![facts_of_load(&plan.name, &*plan.workload, &plan.steps, "this machine".to_owned())],
        phases: phases(asked),
        is_external: true,
        ..RunFacts::default()
    }
}
