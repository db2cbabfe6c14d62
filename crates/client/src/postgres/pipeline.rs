//! Several prepared statements in one flight, and what their answers say about the transactions among them.
//!
//! Owns the order of answers and the judgement of a flight as a whole; single answers are judged by the parent.

use std::future::poll_fn;
use std::time::Instant;

use super::PostgresClient;
use super::question::{SYNC, write_execution};
use crate::sql::Execution;
use crate::statement_kind::{Flight, StatementKind, TransactionStatus};
use crate::{Rows, SessionError};

impl PostgresClient {
    /// See [`crate::SqlSession::pipeline`].
    pub(super) async fn fly(
        &mut self,
        executions: &[Execution<'_>],
        answered: &mut dyn FnMut(usize, &Rows),
    ) -> Result<(), SessionError> {
        self.line.refuse_if_broken()?;
        let Some(kinds) = self.kinds(executions) else {
            return Err(self.line.not_sent(&"a statement was prepared on another session"));
        };
        if executions.is_empty() {
            return Ok(());
        }
        let flight = Flight::of(kinds.iter().copied(), self.status);
        // Before CockroachDB 22.1 each of them was then a transaction of its own (its pull requests 74242 and 76792).
        let are_apart = self.is_compatible
            && self.status == TransactionStatus::Idle
            && kinds.first() != Some(&StatementKind::Begin);
        let kind = if flight.commits > 0 { StatementKind::Commit } else { StatementKind::Single };
        self.begin(kind, Instant::now())?;
        for execution in executions {
            let Some(prepared) = self.statements.get(execution.statement.0) else { continue };
            let (piece, out) = (&mut self.piece, &mut self.line.wire.outgoing);
            write_execution(&prepared.opening, execution.parameters, piece, out);
        }
        self.line.wire.outgoing.extend_from_slice(&SYNC);
        let mut each = |place: usize, rows: &mut Rows| {
            answered(place, rows);
            rows.clear();
        };
        let ended = poll_fn(|context| self.poll_ready(context, &mut each)).await;
        let mut answer = std::mem::take(&mut self.answer);
        let before = kinds.get(..answer.completed).unwrap_or_default();
        let committed_before = before.contains(&StatementKind::Commit) || (are_apart && !before.is_empty());
        let rolled_back = answer.rolled_back && flight.rollbacks == 0 && flight.commits > 0;
        // Judged as a statement of its own kind would be, but for the two cases in which a flight differs: something
        // before the refused statement may have been committed, and a rollback may be what was asked for.
        answer.rolled_back = false;
        match self.finish(ended, kind, flight.may_commit, answer) {
            Err(error) => Err(SessionError { definite: error.definite && !committed_before, ..error }),
            Ok(_) if rolled_back => Err(self.rolled_back(flight.commits == 1)),
            Ok(_) => Ok(()),
        }
    }

    fn kinds(&self, executions: &[Execution<'_>]) -> Option<Vec<StatementKind>> {
        executions.iter().map(|each| Some(self.statements.get(each.statement.0)?.kind)).collect()
    }
}
