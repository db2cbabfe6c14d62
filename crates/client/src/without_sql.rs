//! Sessions with something that speaks no SQL, as the load generator holds them.
//!
//! Owns refusing SQL. What a session speaks instead is its own.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::Rows;
use crate::key_value::KeyValueSession;
use crate::session::{Execution, SessionError, SessionFuture, SqlSession, SqlValue, StatementId};
use crate::volume::VolumeSession;

/// A session that speaks something else.
pub(crate) trait NoSql: 'static {
    /// What a statement is refused with.
    fn no_sql(&self) -> SessionError;

    /// It speaks of keys and values.
    fn key_value(&mut self) -> Option<&mut dyn KeyValueSession> {
        None
    }

    /// It reads and writes a volume.
    fn volume(&mut self) -> Option<&mut dyn VolumeSession> {
        None
    }

    /// How long every later answer is waited for.
    fn set_timeout(&mut self, timeout: Duration);

    /// Whether the session can be used no more.
    fn is_broken(&self) -> bool;
}

/// Statements can be prepared, since what is timed has their names and a workload that speaks both languages has some, but
/// none can be run.
pub(crate) struct WithoutSql<S>(pub(crate) S);

impl<S: NoSql> SqlSession for WithoutSql<S> {
    fn key_value(&mut self) -> Option<&mut dyn KeyValueSession> {
        self.0.key_value()
    }

    fn volume(&mut self) -> Option<&mut dyn VolumeSession> {
        self.0.volume()
    }

    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>> {
        Box::pin(async move { Ok((0..statements.len()).map(StatementId).collect()) })
    }

    fn ask(&mut self, _: StatementId, _: &[SqlValue<'_>], _: Instant) -> Result<(), SessionError> {
        Err(self.0.no_sql())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        Poll::Ready(Err(self.0.no_sql()))
    }

    fn batch<'a>(&'a mut self, _: &'a str) -> SessionFuture<'a, Rows> {
        Box::pin(async move { Err(self.0.no_sql()) })
    }

    fn pipeline<'a>(
        &'a mut self,
        _: &'a [Execution<'a>],
        _: &'a mut dyn FnMut(usize, &Rows),
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move { Err(self.0.no_sql()) })
    }

    fn copy_in<'a>(
        &'a mut self,
        _: &'a str,
        _: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> SessionFuture<'a, u64> {
        Box::pin(async move { Err(self.0.no_sql()) })
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.0.set_timeout(timeout);
    }

    fn is_broken(&self) -> bool {
        self.0.is_broken()
    }

    fn in_transaction(&self) -> bool {
        false
    }
}
