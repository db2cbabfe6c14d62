//! A database's process on a node, whatever its engine: how it is ended, and what is said of one waited for in vain.
//!
//! Owns no processes: which was started where, and with what, is the engines' business.

use std::time::{Duration, Instant};

use crate::{EngineError, Node, ProcessId, Signal};

/// How often a node is asked again.
pub(crate) const GLANCE: Duration = Duration::from_millis(10);

/// How long a process may take to end that was not asked.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// Lines of a log that an error carries.
pub(crate) const LOG_LINES: usize = 12;

/// Asks the process to end with the signal `ask`, and kills it where it has not ended within `timeout`; whether it has
/// ended then.
pub(crate) fn end(
    node: &dyn Node,
    process: ProcessId,
    ask: Signal,
    timeout: Duration,
) -> Result<bool, EngineError> {
    for (signal, patience) in [(ask, timeout), (Signal::Kill, KILL_PATIENCE)] {
        node.signal(process, signal)?;
        let deadline = Instant::now() + patience;
        while node.is_running(process) && Instant::now() < deadline {
            std::thread::sleep(GLANCE);
        }
        if !node.is_running(process) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What to say of something that did not come about in time; `log` is what the process writes to.
pub(crate) fn not_ready(node: &dyn Node, log: &str, what: &str, waited: Duration) -> EngineError {
    let tail = node.log_tail(log, LOG_LINES);
    let log = if tail.is_empty() { String::new() } else { format!("; its log ends:\n{tail}") };
    EngineError::NotReady { node: node.name().to_owned(), what: what.to_owned(), waited, log }
}
