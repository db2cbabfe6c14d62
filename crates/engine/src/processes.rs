//! One process a node: which was started where, in which of its boots, and how one is waited for and ended.
//!
//! Owns that record. What the process is told, and how it is asked whether it is ready, are the engines' business.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::process::{self, GLANCE, LOG_LINES};
use crate::{Command, EngineError, Node, ProcessId, Signal};

/// How long a process may take to be there.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(20);

/// The processes of one engine.
pub(crate) struct Processes {
    /// What the nodes' logs are called.
    log: &'static str,
    /// What a person calls the process.
    noun: &'static str,
    /// The process last started on each node, and in which of its boots.
    started: Mutex<BTreeMap<String, (u64, ProcessId)>>,
}

impl Processes {
    /// None yet.
    pub(crate) fn new(log: &'static str, noun: &'static str) -> Processes {
        Processes { log, noun, started: Mutex::default() }
    }

    /// The node's process of this boot.
    fn process(&self, node: &dyn Node) -> Option<ProcessId> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let last = started.get(node.name()).copied();
        last.filter(|(boot, _)| *boot == node.boot()).map(|(_, process)| process)
    }

    pub(crate) fn is_running(&self, node: &dyn Node) -> bool {
        self.process(node).is_some_and(|process| node.is_running(process))
    }

    /// Starts the node's process.
    pub(crate) fn start(&self, node: &dyn Node, command: &Command) -> Result<(), EngineError> {
        let name = node.name().to_owned();
        if self.is_running(node) {
            return Err(EngineError::Running { node: name });
        }
        let boot = node.boot();
        let process = node.spawn(command, self.log)?;
        self.started.lock().unwrap_or_else(PoisonError::into_inner).insert(name, (boot, process));
        Ok(())
    }

    /// Waits until `ready` returns no error. If the time is up before, the error has the last one.
    pub(crate) fn wait_ready(
        &self,
        node: &dyn Node,
        timeout: Duration,
        ready: impl Fn() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let deadline = Instant::now() + timeout;
        loop {
            // Asked first: a process that has ended since is not ready.
            let answer = ready();
            if !self.is_running(node) {
                let log = node.log_tail(self.log, LOG_LINES);
                return Err(EngineError::Exited { node: node.name().to_owned(), log });
            }
            let Err(unready) = answer else { return Ok(()) };
            if Instant::now() >= deadline {
                let what = format!("{} is not ready (asked last: {unready})", self.noun);
                return Err(self.not_ready(node, &what, timeout));
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Asks the process to end, and ends it where it does not within `timeout`.
    pub(crate) fn stop(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.stop_with(node, Signal::Terminate, timeout)
    }

    /// The same, asking with this signal.
    pub(crate) fn stop_with(
        &self,
        node: &dyn Node,
        signal: Signal,
        timeout: Duration,
    ) -> Result<(), EngineError> {
        let Some(process) = self.process(node) else { return Ok(()) };
        if process::end(node, process, signal, timeout)? {
            return Ok(());
        }
        Err(self.not_ready(node, &format!("{} has not ended", self.noun), timeout))
    }

    /// `what` was waited for in vain.
    pub(crate) fn not_ready(&self, node: &dyn Node, what: &str, waited: Duration) -> EngineError {
        process::not_ready(node, self.log, what, waited)
    }
}
