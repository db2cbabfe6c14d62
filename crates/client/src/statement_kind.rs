//! What a statement can do to the transaction it runs in.
//!
//! Pure: looks at first words and states. Everything here leans to "may have happened".

/// What a statement can do to the transaction it runs in, judged by its first words alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// Opens a transaction; commits nothing.
    Begin,
    /// Ends a transaction by committing it.
    Commit,
    /// Ends a transaction by throwing it away.
    Rollback,
    /// Commits by itself when it runs outside a transaction block.
    Single,
    /// Several statements at once, or text that cannot be told: may commit at any time.
    Several,
}

/// The server's own view of the session, from its last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionStatus {
    /// Outside a transaction block.
    Idle,
    /// In one.
    Open,
    /// In one that has failed and can only be rolled back.
    Failed,
}

impl StatementKind {
    /// The kind of the statement(s) in `sql`.
    pub(crate) fn of(sql: &str) -> Self {
        let sql = sql.trim().trim_end_matches(';');
        // A comment could hide the first word and a semicolon inside a literal is not worth a parser: both are
        // taken for the worst case.
        if sql.contains(';') || sql.starts_with("--") || sql.starts_with("/*") {
            return StatementKind::Several;
        }
        let mut words = sql.split_whitespace().map(str::to_ascii_lowercase);
        let first = words.next().unwrap_or_default();
        let of_prepared = words.next().is_some_and(|word| word == "prepared");
        match first.as_str() {
            "begin" | "start" => StatementKind::Begin,
            "commit" | "end" | "prepare" => StatementKind::Commit,
            "rollback" | "abort" if !of_prepared => StatementKind::Rollback,
            _ => StatementKind::Single,
        }
    }

    /// Whether running it in `status` can make anything permanent.
    pub(crate) fn may_commit(self, status: TransactionStatus) -> bool {
        match self {
            StatementKind::Begin | StatementKind::Rollback => false,
            StatementKind::Commit => status != TransactionStatus::Failed,
            StatementKind::Single => status == TransactionStatus::Idle,
            StatementKind::Several => true,
        }
    }
}

/// What the statements of a flight can do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flight {
    /// Whether any of it can become permanent.
    pub(crate) may_commit: bool,
    pub(crate) commits: usize,
    pub(crate) rollbacks: usize,
}

impl Flight {
    /// Of these kinds, sent together in this state.
    pub(crate) fn of(kinds: impl Iterator<Item = StatementKind> + Clone, status: TransactionStatus) -> Self {
        let count = |wanted| kinds.clone().filter(|kind| *kind == wanted).count();
        let (commits, rollbacks) = (count(StatementKind::Commit), count(StatementKind::Rollback));
        // Outside a block everything up to the first BEGIN becomes permanent at the end of the flight; a ROLLBACK leaves
        // the block, and what follows it is outside again.
        let begins_a_block = kinds.clone().next() == Some(StatementKind::Begin);
        let stays_in_a_block =
            (status != TransactionStatus::Idle || begins_a_block) && commits == 0 && rollbacks == 0;
        let may_hold_a_commit = count(StatementKind::Several) > 0;
        Self { may_commit: !stays_in_a_block || may_hold_a_commit, commits, rollbacks }
    }
}

#[cfg(test)]
mod tests {
    use super::StatementKind::*;
    use super::TransactionStatus::*;
    use super::*;

    #[test]
    fn a_statement_commits_only_where_the_protocol_lets_it() {
        let check = |sql: &str, expected_kind, idle, open, failed| {
            let kind = StatementKind::of(sql);
            assert_eq!(kind, expected_kind, "{sql}");
            let seen = [Idle, Open, Failed].map(|status| kind.may_commit(status));
            assert_eq!(seen, [idle, open, failed], "{sql}");
        };
        check("BEGIN", Begin, false, false, false);
        check("start transaction isolation level serializable", Begin, false, false, false);
        check(" end ;", Commit, true, true, false);
        check("COMMIT", Commit, true, true, false);
        check("PREPARE TRANSACTION 'x'", Commit, true, true, false);
        check("ROLLBACK", Rollback, false, false, false);
        check("ROLLBACK PREPARED 'x'", Single, true, false, false);
        check("INSERT INTO t VALUES (1)", Single, true, false, false);
        check("/* hello */ COMMIT", Several, true, true, true);
        check("BEGIN; INSERT INTO t VALUES (1); COMMIT", Several, true, true, true);
        check("", Single, true, false, false);
    }

    #[test]
    fn a_flight_is_harmless_only_where_it_stays_within_one_block() {
        let check = |kinds: &[StatementKind], idle: bool, open: bool| {
            let seen = [Idle, Open].map(|status| Flight::of(kinds.iter().copied(), status).may_commit);
            assert_eq!(seen, [idle, open], "{kinds:?}");
        };
        check(&[Single, Single], true, false);
        check(&[Begin, Single], false, false);
        check(&[Begin, Single, Commit], true, true);
        check(&[Begin, Single, Rollback], true, true);
        check(&[Single, Begin], true, false);
        check(&[Begin, Rollback, Single], true, true);
        check(&[Begin, Several], true, true);
    }
}
