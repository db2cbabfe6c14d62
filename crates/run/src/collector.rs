//! Takes what the loads record, second by second: into the files of the run directory, which are whole up to the
//! last second whatever happens, and into the time line from which the result is made.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use history::{EventKind, EventSink, FaultId, Operation, PhaseFacts, RunFacts};
use load::{Batch, FirstSuccess};
use verdict::{OpenLoopRecord, Recorded};

use crate::chronicle::{Chronicle, news};
use crate::directory::RunDirectory;
use crate::orders::{LoadPulse, News, Pulse};

/// How much of the history may be lost to a SIGKILL.
const HISTORY_FLUSH_S: u64 = 1;

/// What can go wrong in collecting.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// A file of the run directory.
    #[error("{path}: {source}")]
    File {
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Something could not be written or kept.
    #[error("{}: the run could not be recorded: {why}; if the disk is full, free space there, or choose another folder \
             with --out", folder.display())]
    Recording {
        /// The run directory.
        folder: PathBuf,
        /// The error's text.
        why: String,
    },
    /// The thread that records could not be started.
    #[error("the thread that records could not be started: {0}; raise the limit of processes (`ulimit -u`)")]
    Thread(#[source] io::Error),
    /// The thread panicked.
    #[error("recording thread panicked")]
    Panicked,
}

/// What the terminal shows beside the loads' figures; the conductor keeps it up to date.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// Faults standing, in words.
    pub standing: BTreeMap<FaultId, String>,
}

/// The running collector.
pub struct Collector {
    sender: Sender<Batch>,
    scene: Arc<Mutex<Scene>>,
    thread: JoinHandle<Result<Recorded, CollectorError>>,
}

/// The files of a run directory that loads fill.
pub(crate) struct Files {
    folder: PathBuf,
    csv: measure::csv::CsvWriter<BufWriter<File>>,
    hlog: measure::hlog::HlogWriter<BufWriter<File>>,
    history: history::HistoryWriter<BufWriter<File>>,
}

impl Collector {
    /// Opens the files and waits for batches.
    ///
    /// # Errors
    /// When a file cannot be made.
    pub fn start(
        directory: &RunDirectory,
        facts: &RunFacts,
        chronicle: Arc<Chronicle>,
    ) -> Result<Collector, CollectorError> {
        let clock = chronicle.clone();
        let started_at = move || SystemTime::now() - Duration::from_secs_f64(clock.now_s().max(0.0));
        let files = Files::create(directory, started_at)?;
        let (sender, batches) = channel();
        let scene = Arc::new(Mutex::new(Scene::default()));
        let shown = scene.clone();
        let transactions: BTreeMap<String, String> =
            facts.loads.iter().map(|load| (load.name.clone(), load.transaction.clone())).collect();
        let end_s = facts.phases.last().map_or(0.0, |phase| phase.to_s);
        let phases = facts.phases.clone();
        let shown = Shown { scene: shown, phases, transactions, pulses: BTreeMap::new() };
        let thread = std::thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || collect(&batches, files, shown, end_s, &chronicle))
            .map_err(CollectorError::Thread)?;
        Ok(Collector { sender, scene, thread })
    }

    /// Where loads send what they record.
    #[must_use]
    pub fn sink(&self) -> Sender<Batch> {
        self.sender.clone()
    }

    /// What the terminal shows beside the figures.
    pub fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every load has hung up, closes the files and hands over what was recorded.
    ///
    /// # Errors
    /// When something could not be written or kept: the files are not complete then.
    pub fn finish(self) -> Result<Recorded, CollectorError> {
        drop(self.sender);
        self.thread.join().map_err(|_| CollectorError::Panicked)?
    }
}

impl Files {
    /// The run directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a second's figures.
    pub(crate) fn write_figures(&mut self, batch: &Batch) -> Result<(), CollectorError> {
        self.csv.write(&batch.interval).map_err(recording(&self.folder))?;
        self.hlog.write(&batch.interval).map_err(recording(&self.folder))
    }

    /// Writes a second's operations, and sees to it that they are in the file.
    pub(crate) fn write_history(&mut self, batch: &Batch) -> Result<(), CollectorError> {
        for operation in &batch.history {
            self.history.write(operation).map_err(recording(&self.folder))?;
        }
        self.history.flush().map_err(recording(&self.folder))
    }

    /// Ends the files.
    pub(crate) fn finish(self) -> Result<(), CollectorError> {
        let mut file = self.history.finish().map_err(recording(&self.folder))?;
        file.flush().map_err(recording(&self.folder))
    }

    /// Empty files. `started_at` tells, once the run's clock goes, when it stood at 0.
    pub(crate) fn create(
        directory: &RunDirectory,
        started_at: impl FnOnce() -> SystemTime + Send + 'static,
    ) -> Result<Files, CollectorError> {
        let open = |name: &str| {
            let path = directory.file(name);
            match File::create(&path) {
                Ok(file) => Ok((path, BufWriter::new(file))),
                Err(source) => Err(CollectorError::File { path, source }),
            }
        };
        let (path, file) = open("timeline.csv")?;
        let csv =
            measure::csv::CsvWriter::new(file).map_err(|source| CollectorError::File { path, source })?;
        let (_, file) = open("timeline.hlog")?;
        let hlog = measure::hlog::HlogWriter::new(file, started_at);
        let (_, file) = open("history.jsonl.zst")?;
        let folder = directory.path().to_owned();
        let history = history::HistoryWriter::new(file).map_err(recording(&folder))?;
        Ok(Files { folder, csv, hlog, history })
    }
}

/// What could not be recorded in a run directory.
pub(crate) fn recording<E: std::fmt::Display>(folder: &Path) -> impl Fn(E) -> CollectorError {
    move |error| CollectorError::Recording { folder: folder.to_owned(), why: error.to_string() }
}

/// The terminal's side: the loads' figures of a second, gathered until all have told theirs.
struct Shown {
    scene: Arc<Mutex<Scene>>,
    phases: Vec<PhaseFacts>,
    /// The operation that counts, by load.
    transactions: BTreeMap<String, String>,
    pulses: BTreeMap<u64, BTreeMap<String, LoadPulse>>,
}

impl Shown {
    fn take(&mut self, batch: &Batch, chronicle: &Chronicle) {
        let second = batch.interval.second;
        let pulse = pulse_of(batch, &self.transactions);
        let loads = self.pulses.entry(second).or_default();
        loads.insert(pulse.load.clone(), pulse);
        if loads.len() < self.transactions.len() {
            return;
        }
        let loads = self.pulses.remove(&second).unwrap_or_default().into_values().collect();
        let scene = self.scene.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Some end by themselves, before the schedule heals them.
        let active = scene.standing.into_iter().filter(|(fault, _)| !chronicle.is_over(*fault));
        let standing = active.map(|(_, what)| what).collect();
        // The second's own phase: the next one may have begun since.
        let is_over = |phase: &&PhaseFacts| phase.to_s <= second as f64;
        let phase = self.phases.iter().find(|phase| !is_over(phase)).or(self.phases.last());
        let phase = phase.map(|phase| phase.name.clone()).unwrap_or_default();
        let of_s = self.phases.last().map_or(0, |phase| phase.to_s as u64);
        news(&News::Pulse(Pulse { t_s: second, of_s, phase, standing, loads }));
    }
}

fn collect(
    batches: &Receiver<Batch>,
    mut files: Files,
    mut shown: Shown,
    end_s: f64,
    chronicle: &Chronicle,
) -> Result<Recorded, CollectorError> {
    let mut recorded = Recorded::default();
    let mut flushed_second = 0;
    while let Ok(batch) = batches.recv() {
        let second = batch.interval.second;
        // After the last phase only what was in flight comes in: history, but not a second to be measured.
        if (second as f64) < end_s {
            files.write_figures(&batch)?;
            recorded.timeline.add(&batch.interval).map_err(recording(&files.folder))?;
            take_open_loop(&mut recorded, &batch);
            shown.take(&batch, chronicle);
        } else if let Some(transaction) = shown.transactions.get(&batch.interval.load) {
            let errors = recorded.errors_after_end.entry(batch.interval.load.clone()).or_default();
            *errors += batch.interval.error_count(transaction);
        }
        recorded.waits.entry(batch.interval.load.clone()).or_default().extend(&batch.waits);
        for operation in &batch.history {
            files.history.write(operation).map_err(recording(&files.folder))?;
        }
        for first in batch.first_success {
            let (load, FirstSuccess { fault, at_s, after_s }) = (batch.interval.load.clone(), first);
            recorded.first_success.push((load.clone(), first));
            chronicle.say_at(at_s, EventKind::FirstSuccess { fault, load, after_s });
        }
        if !batch.first_errors.is_empty() {
            let load = batch.interval.load.clone();
            recorded.first_errors.entry(load).or_default().extend(batch.first_errors);
        }
        if let Some(why) = batch.failure {
            let load = batch.interval.load;
            // The live line waits for no more word of it.
            shown.transactions.remove(&load);
            chronicle.say(EventKind::LoadEnded { load, why });
        }
        if second >= flushed_second + HISTORY_FLUSH_S {
            files.history.flush().map_err(recording(&files.folder))?;
            flushed_second = second;
        }
    }
    files.finish()?;
    Ok(recorded)
}

fn take_open_loop(recorded: &mut Recorded, batch: &Batch) {
    let Some(open_loop) = &batch.open_loop else { return };
    let new = || OpenLoopRecord { lateness: measure::interval::new_histogram(), waiting_at_end: 0 };
    let record = recorded.open_loops.entry(batch.interval.load.clone()).or_insert_with(new);
    // Both grow as they need to, so that adding cannot fail.
    let _ = record.lateness.add(&open_loop.lateness);
    record.waiting_at_end = open_loop.backlog;
}

fn pulse_of(batch: &Batch, transactions: &BTreeMap<String, String>) -> LoadPulse {
    let load = batch.interval.load.clone();
    let name = transactions.get(&load).map_or("", String::as_str);
    let errors = batch.interval.error_count(name);
    let transaction = batch.interval.operations.get(name);
    let (count, p99_us) = transaction.map_or((0, 0), |measured| {
        (measured.count(), if measured.count() == 0 { 0 } else { measured.histogram.value_at_quantile(0.99) })
    });
    // In a closed loop a client that does nothing waits for an answer, or rests between two of its operations.
    let nothing_due = batch.open_loop.as_ref().is_some_and(|open_loop| open_loop.backlog == 0);
    LoadPulse { load, transactions: count, errors, p99_us, nothing_due }
}

/// Appends operations that were not recorded by a load, the final reads, to the history file.
///
/// # Errors
/// When the file cannot be written.
pub fn append_to_history(directory: &RunDirectory, operations: &[Operation]) -> Result<(), CollectorError> {
    let path = directory.file("history.jsonl.zst");
    let file = File::options()
        .append(true)
        .open(&path)
        .map_err(|source| CollectorError::File { path: path.clone(), source })?;
    let folder = directory.path();
    let mut writer = history::HistoryWriter::new(BufWriter::new(file)).map_err(recording(folder))?;
    for operation in operations {
        writer.write(operation).map_err(recording(folder))?;
    }
    writer
        .finish()
        .map_err(recording(folder))?
        .flush()
        .map_err(|source| CollectorError::File { path, source })
}
