//! What happens, told as it happens: a line in `events.jsonl` and the same as news to the outer process.
//!
//! Until the first load starts, the run's clock has no zero: events stand with seconds since the lab's birth, and
//! are rewritten with their negative times the moment the zero is known.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use history::{Event, EventKind, EventSink, FaultId};
use load::Clock;

use crate::directory::RunDirectory;
use crate::orders::News;

/// Name of the file.
pub const EVENTS_FILE: &str = "events.jsonl";

/// What can go wrong in telling.
#[derive(Debug, thiserror::Error)]
pub enum ChronicleError {
    #[error("{path}: {source}")]
    File {
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

#[derive(Debug)]
struct State {
    file: File,
    events: Vec<Event>,
    /// The first failure to write, told once more at the end.
    failure: Option<String>,
}

/// The teller. Shared by all threads of the supervisor.
#[derive(Debug)]
pub struct Chronicle {
    born: Instant,
    clock: Clock,
    directory: RunDirectory,
    state: Mutex<State>,
}

impl Chronicle {
    /// Begins to tell, into a fresh file.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn begin(directory: &RunDirectory, clock: Clock) -> Result<Chronicle, ChronicleError> {
        let path = directory.file(EVENTS_FILE);
        let file = File::create(&path).map_err(|source| ChronicleError::File { path, source })?;
        let state = State { file, events: Vec::new(), failure: None };
        Ok(Chronicle { born: Instant::now(), clock, directory: directory.clone(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock's zero is known: gives everything told so far its time before it.
    ///
    /// # Errors
    /// When the file cannot be rewritten.
    pub fn zero_is_known(&self, zero: Instant) -> Result<(), ChronicleError> {
        let path = self.directory.file(EVENTS_FILE);
        let failed = |source| ChronicleError::File { path: path.clone(), source };
        let born_s = -zero.saturating_duration_since(self.born).as_secs_f64();
        let mut state = self.state();
        let unfinished = self.directory.file(&format!(".{EVENTS_FILE}.unfinished"));
        let mut file = File::create(&unfinished).map_err(failed)?;
        for event in &mut state.events {
            event.t_s = ((event.t_s + born_s) * 1e6).round() / 1e6;
            append(&mut file, event).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        std::fs::rename(&unfinished, &path).map_err(failed)?;
        File::open(self.directory.path()).and_then(|folder| folder.sync_all()).map_err(failed)?;
        state.file = file;
        Ok(())
    }

    /// Everything told so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.state().events.clone()
    }

    /// Whether a fault was told to be over, by the schedule or by itself.
    #[must_use]
    pub fn is_over(&self, fault: FaultId) -> bool {
        is_over(&self.state().events, fault)
    }

    /// Why the file is not complete, when it is not.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }
}

impl EventSink for Chronicle {
    /// Since the lab's birth while the clock has no zero.
    fn now_s(&self) -> f64 {
        self.clock.seconds().unwrap_or_else(|| self.born.elapsed().as_secs_f64())
    }

    /// From the lab's birth while the clock has no zero.
    fn seconds_at(&self, moment: Instant) -> f64 {
        let since_birth = || moment.saturating_duration_since(self.born).as_secs_f64();
        self.clock.seconds_at(moment).unwrap_or_else(since_birth)
    }

    fn take(&self, event: Event) {
        let mut state = self.state();
        if let Err(error) = append(&mut state.file, &event) {
            state.failure.get_or_insert_with(|| format!("{EVENTS_FILE}: {error}"));
        }
        state.events.push(event.clone());
        drop(state);
        news(&News::Event { event });
    }
}

fn is_over(events: &[Event], fault: FaultId) -> bool {
    let told =
        |kind: &EventKind| matches!(kind, EventKind::FaultHealed { fault: healed, .. } if *healed == fault);
    events.iter().any(|event| told(&event.kind))
}

fn append(file: &mut File, event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_string(event).map_err(io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// Tells the outer process. One that is gone misses it; the watch on our input ends us then.
pub fn news(news: &News) {
    if let Ok(line) = serde_json::to_string(news) {
        let mut stdout = io::stdout().lock();
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    }
}

#[cfg(test)]
mod tests {
    use history::{Receipt, Verdict};

    use super::*;

    #[test]
    fn a_fault_is_over_when_it_itself_was_told_to_be() {
        let receipt = || Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        let took_effect = EventKind::FaultTookEffect { fault: FaultId::FIRST, receipt: receipt() };
        let healed = EventKind::FaultHealed { fault: FaultId::new(1), receipt: receipt() };
        let events = [Event { t_s: 1.0, kind: took_effect }, Event { t_s: 2.0, kind: healed }];
        assert!(!is_over(&events, FaultId::FIRST));
        assert!(is_over(&events, FaultId::new(1)));
    }
}
