//! What the SQL of databases says differently, where several workloads need it.
//!
//! Owns these few forms. What only one workload says stands with the workload, both forms side by side.

use client::{Dialect, Rows, SessionError, SqlSession};

/// Gathers what the planner needs to know of a table that was just loaded.
pub(crate) async fn analyse(session: &mut (dyn SqlSession + '_), table: &str) -> Result<(), SessionError> {
    let question = match session.dialect() {
        Dialect::Postgres if session.keeps_dead_rows() => format!("VACUUM ANALYZE {table}"),
        Dialect::Postgres => format!("ANALYZE {table}"),
        Dialect::Mysql => format!("ANALYZE TABLE {table}"),
        // It plans nothing; the standard has no word for it.
        Dialect::Cql | Dialect::Standard => return Ok(()),
    };
    session.batch(&question).await.map(drop)
}

/// Begins a transaction that sees one moment and writes nothing.
pub(crate) fn beginning_of_read(dialect: Dialect) -> &'static str {
    match dialect {
        // CQL has no transactions: what needs one never gets here.
        Dialect::Postgres | Dialect::Cql => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        Dialect::Standard => "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        Dialect::Mysql => {
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT"
        }
    }
}

/// Asks for what is there now. Outside of a transaction some databases answer a query from a snapshot of the past
/// (Apache Ignite 3 documentation, "Transactions": read-only ones).
pub(crate) async fn look_now(session: &mut (dyn SqlSession + '_), query: &str) -> Result<Rows, SessionError> {
    match session.dialect() {
        Dialect::Standard => look_in_a_transaction(session, query).await,
        _ => session.batch(query).await,
    }
}

/// Asks in a transaction that only reads.
async fn look_in_a_transaction(
    session: &mut (dyn SqlSession + '_),
    query: &str,
) -> Result<Rows, SessionError> {
    session.batch(beginning_of_read(session.dialect())).await?;
    let rows = session.batch(query).await?;
    session.batch("COMMIT").await?;
    Ok(rows)
}

/// Begins a transaction at an isolation level, `serializable`, in PostgreSQL's SQL, in MySQL's, where it is two statements,
/// and in the standard's.
pub(crate) fn beginning(level: &str) -> (String, String, String) {
    let level = level.replace('-', " ").to_uppercase();
    (
        format!("BEGIN ISOLATION LEVEL {level}"),
        format!("SET TRANSACTION ISOLATION LEVEL {level}; START TRANSACTION"),
        format!("START TRANSACTION ISOLATION LEVEL {level}"),
    )
}

/// Whether an insert-or-update of so many rows wrote them all. MySQL counts a row that was there twice. Cassandra tells
/// only that a statement was carried out.
pub(crate) fn has_written(dialect: Dialect, affected: u64, rows: u64) -> bool {
    match dialect {
        Dialect::Postgres | Dialect::Standard => affected == rows,
        Dialect::Mysql => (rows..=rows * 2).contains(&affected),
        Dialect::Cql => affected == 1,
    }
}
