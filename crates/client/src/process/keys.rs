//! A session of keys and values that a program holds for a client.
//!
//! Owns what its answers mean for a transaction. How it asks is `conversation`'s, the form of the lines `key_words`'.

use std::future::poll_fn;
use std::time::{Duration, Instant};

use control::transaction::{Found, Operation};
use history::ErrorClass;

use super::conversation::{Conversation, Reply};
use super::key_words::{KeyStep, found};
use super::words::{Refusal, What};
use crate::connection::{Connection, SessionError, SessionFuture};
use crate::frames::failure;
use crate::key_value::{KeyValueSession, REFUSED};

/// A session with one node.
pub struct ProcessKeys {
    conversation: Conversation,
    rewrites_lists: bool,
}

impl ProcessKeys {
    /// A session that is open. `rewrites_lists` is the program's word.
    pub(super) fn new(conversation: Conversation, rewrites_lists: bool) -> Self {
        Self { conversation, rewrites_lists }
    }

    async fn carry_out(&mut self, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
        self.conversation.refuse_if_broken()?;
        let steps: Vec<KeyStep<'_>> = operations.iter().map(KeyStep::from).collect();
        // One that only reads changes nothing, whatever becomes of it.
        let may_commit = operations.iter().any(Operation::writes);
        let timeout_ms = self.conversation.timeout_ms();
        let what = What::Transact { operations: &steps, timeout_ms };
        self.conversation.ask(what, may_commit, Instant::now());
        match poll_fn(|context| self.conversation.poll_reply(context)).await? {
            Reply::Whole(ok) => match found(&operations, ok.found) {
                Some(found) => Ok(found),
                None => Err(self.conversation.senseless("what was found by other operations")),
            },
            Reply::Refused(refusal) if refusal.step < operations.len() => Err(self.not_met(&refusal)),
            Reply::Refused(_) => Err(self.conversation.senseless("a step that was not asked for")),
            Reply::Page(_) => Err(self.conversation.senseless("pages nobody asked for")),
        }
    }

    fn not_met(&self, refusal: &Refusal) -> SessionError {
        let message = format!("{}: step {}: {}", self.conversation.peer, refusal.step, refusal.reason);
        let code = Some(REFUSED.to_owned());
        SessionError { code, ..failure(ErrorClass::Other, true, message) }
    }
}

impl KeyValueSession for ProcessKeys {
    fn transact(&mut self, operations: Vec<Operation>) -> SessionFuture<'_, Vec<Found>> {
        Box::pin(self.carry_out(operations))
    }

    fn rewrites_lists(&self) -> bool {
        self.rewrites_lists
    }
}

impl Connection for ProcessKeys {
    fn set_timeout(&mut self, timeout: Duration) {
        self.conversation.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.conversation.broken
    }
}
