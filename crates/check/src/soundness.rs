//! Whether a history can be the record of anything at all: an operation ends after it began, and a client has one
//! operation at a time.
//!
//! Owns what makes a history contradict itself. Judges no database: no verdict follows from a history that does.

use std::collections::HashMap;

use history::Operation;

/// What makes a history contradict itself.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Contradiction {
    /// An operation ends before it began.
    #[error(
        "an operation of client {client} of load `{load}` ends at {completed_s} s, before it began at {invoked_s} s"
    )]
    EndsBeforeItBegan {
        load: String,
        client: u64,
        /// When it began, seconds.
        invoked_s: f64,
        /// When it ended, seconds.
        completed_s: f64,
    },
    /// A time is no number.
    #[error("an operation of client {client} of load `{load}` has a time that is not a number of seconds")]
    NoTime { load: String, client: u64 },
    /// A client began an operation before its last one had ended, or the lines of the file are out of order.
    #[error(
        "client {client} of load `{load}` began an operation at {invoked_s} s while its last one went on until \
         {busy_until_s} s; a client has one operation at a time"
    )]
    TwoAtOnce {
        load: String,
        client: u64,
        /// When the later line's operation began, seconds.
        invoked_s: f64,
        /// Until when the client was busy, seconds.
        busy_until_s: f64,
    },
}

/// Whether the times of one operation can be.
///
/// # Errors
/// When they cannot.
pub fn check_times(operation: &Operation) -> Result<(), Contradiction> {
    let Operation { load, client, invoked_s, completed_s, .. } = operation;
    let (load, client, invoked_s, completed_s) = (load.clone(), *client, *invoked_s, *completed_s);
    if !invoked_s.is_finite() || !completed_s.is_finite() {
        return Err(Contradiction::NoTime { load, client });
    }
    if completed_s < invoked_s {
        return Err(Contradiction::EndsBeforeItBegan { load, client, invoked_s, completed_s });
    }
    Ok(())
}

/// Follows a history in the order it was written.
#[derive(Debug, Default)]
pub struct Soundness {
    busy_until_s: HashMap<String, HashMap<u64, f64>>,
}

impl Soundness {
    /// Takes in the next operation.
    ///
    /// # Errors
    /// When it contradicts itself or those before it.
    pub fn observe(&mut self, operation: &Operation) -> Result<(), Contradiction> {
        check_times(operation)?;
        let Operation { load, client, invoked_s, completed_s, .. } = operation;
        if !self.busy_until_s.contains_key(load) {
            self.busy_until_s.insert(load.clone(), HashMap::new());
        }
        let Some(clients) = self.busy_until_s.get_mut(load) else { return Ok(()) };
        let busy_until_s = clients.entry(*client).or_insert(f64::NEG_INFINITY);
        if *invoked_s < *busy_until_s {
            return Err(Contradiction::TwoAtOnce {
                load: load.clone(),
                client: *client,
                invoked_s: *invoked_s,
                busy_until_s: *busy_until_s,
            });
        }
        *busy_until_s = *completed_s;
        Ok(())
    }
}
