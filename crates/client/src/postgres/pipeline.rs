//! Several prepared statements in one flight, and what their answers say about the transactions among them.
//!
//! Owns the order of answers and the judgement of a flight as a whole; single answers are judged by the parent.

use std::future::poll_fn;
use std::time::Instant;

use super::PostgresClient;
use super::question::{SYNC, write_execution};
use super::verdict::{StatementKind, TransactionStatus};
use crate::sql::Execution;
use crate::{Rows, SessionError};

/// What the statements of a flight can do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flight {
    /// Whether any of it can become permanent.
    may_commit: bool,
    commits: usize,
    rollbacks: usize,
}

impl Flight {
    fn of(kinds: impl Iterator<Item = StatementKind> + Clone, status: TransactionStatus) -> Self {
        let count = |wanted| kinds.clone().filter(|kind| *kind == wanted).count();
        let (commits, rollbacks) = (count(StatementKind::Commit), count(StatementKind::Rollback));
        // Outside a block everything up to the first BEGIN becomes permanent at the end of the flight; a ROLLBACK leaves
        // the block, and what follows it is outside again.
        let begins_a_block = kinds.clone().next() == Some(StatementKind::Begin);
        let stays_in_a_block =
            (status != TransactionStatus::Idle || begins_a_block) && commits == 0 && rollbacks == 0;
        Self { may_commit: !stays_in_a_block, commits, rollbacks }
    }
}

impl PostgresClient {
    /// See [`crate::SqlSession::pipeline`].
    pub(super) async fn fly(
        &mut self,
        executions: &[Execution<'_>],
        answered: &mut dyn FnMut(usize, &Rows),
    ) -> Result<(), SessionError> {
        self.refuse_if_broken()?;
        let Some(kinds) = self.kinds(executions) else {
            return Err(self.not_sent(&"a statement was prepared on another session"));
        };
        if executions.is_empty() {
            return Ok(());
        }
        let flight = Flight::of(kinds.iter().copied(), self.status);
        let kind = if flight.commits > 0 { StatementKind::Commit } else { StatementKind::Single };
        self.begin(kind, Instant::now())?;
        for execution in executions {
            let Some(prepared) = self.statements.get(execution.statement.0) else { continue };
            let (piece, out) = (&mut self.piece, &mut self.wire.outgoing);
            write_execution(&prepared.opening, execution.parameters, piece, out);
        }
        self.wire.outgoing.extend_from_slice(&SYNC);
        let mut each = |place: usize, rows: &mut Rows| {
            answered(place, rows);
            rows.clear();
        };
        let ended = poll_fn(|context| self.poll_ready(context, &mut each)).await;
        let mut answer = std::mem::take(&mut self.answer);
        let committed_before =
            kinds.get(..answer.completed).unwrap_or_default().contains(&StatementKind::Commit);
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

#[cfg(test)]
mod tests {
    use super::StatementKind::*;
    use super::*;

    #[test]
    fn a_flight_is_harmless_only_where_it_stays_within_one_block() {
        let check = |kinds: &[StatementKind], idle: bool, open: bool| {
            let seen = [TransactionStatus::Idle, TransactionStatus::Open]
                .map(|status| Flight::of(kinds.iter().copied(), status).may_commit);
            assert_eq!(seen, [idle, open], "{kinds:?}");
        };
        check(&[Single, Single], true, false);
        check(&[Begin, Single], false, false);
        check(&[Begin, Single, Commit], true, true);
        check(&[Begin, Single, Rollback], true, true);
        check(&[Single, Begin], true, false);
        check(&[Begin, Rollback, Single], true, true);
    }
}
