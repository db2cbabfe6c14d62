//! TPC-B's tables in MySQL's SQL and in the standard's, and for databases that only speak PostgreSQL's protocol.
//!
//! Owns their definitions and their loading. Keys are part of a table from the beginning: InnoDB's tables lie in the order
//! of their primary key, Galera wants one, and so do databases that split tables by it.

use std::io::Write as _;

use client::{BulkLoad, Dialect, SessionError, SqlSession};

use super::{ACCOUNTS_PER_BRANCH, SCALE_OF_BIG_ACCOUNTS, TELLERS_PER_BRANCH};
use crate::dialect::analyse;
use crate::loading::Loading;
use crate::workload::refused;

/// Makes the tables and loads them.
pub(super) async fn create_and_load(
    session: &mut (dyn SqlSession + '_),
    scale: u32,
    progress: &dyn Fn(String),
) -> Result<(), SessionError> {
    let of_accounts = if scale >= SCALE_OF_BIG_ACCOUNTS { "bigint" } else { "int" };
    let (number, account, text, key) = match session.dialect() {
        Dialect::Mysql => ("int", of_accounts, "char", "id bigint AUTO_INCREMENT PRIMARY KEY, "),
        // Clients' numbers have 64 bits, and a key that is compared with another type is not looked up in some databases.
        Dialect::Standard => ("bigint", "bigint", "varchar", "id bigint PRIMARY KEY, "),
        _ => ("int", of_accounts, "char", ""),
    };
    let tables = [
        (
            "pgbench_history",
            format!(
                "{key}tid {number}, bid {number}, aid {account}, delta {number}, mtime timestamp(6), filler {text}(22)"
            ),
        ),
        (
            "pgbench_tellers",
            format!("tid {number} PRIMARY KEY, bid {number}, tbalance {number}, filler {text}(84)"),
        ),
        (
            "pgbench_accounts",
            format!("aid {account} PRIMARY KEY, bid {number}, abalance {number}, filler {text}(84)"),
        ),
        ("pgbench_branches", format!("bid {number} PRIMARY KEY, bbalance {number}, filler {text}(88)")),
    ];
    for (table, columns) in &tables {
        session.batch(&format!("DROP TABLE IF EXISTS {table}")).await?;
        session.batch(&format!("CREATE TABLE {table} ({columns})")).await?;
    }
    let branches = u64::from(scale);
    let zero = |number: u64, _: u64| format!("{number}\t0\n");
    load(session, ("pgbench_branches", "bid, bbalance"), branches, 1, zero, progress).await?;
    let of_branch = |number: u64, branch: u64| format!("{number}\t{branch}\t0\n");
    let tellers = ("pgbench_tellers", "tid, bid, tbalance");
    load(session, tellers, TELLERS_PER_BRANCH * branches, TELLERS_PER_BRANCH, of_branch, progress).await?;
    let accounts = ("pgbench_accounts", "aid, bid, abalance");
    load(session, accounts, ACCOUNTS_PER_BRANCH * branches, ACCOUNTS_PER_BRANCH, of_branch, progress).await?;
    for (table, _) in &tables {
        analyse(session, table).await?;
    }
    Ok(())
}

/// Loads rows from 1 on, each by its number and its branch's, of which each has so many.
async fn load(
    session: &mut (dyn SqlSession + '_),
    (table, columns): (&'static str, &str),
    rows: u64,
    of_each_branch: u64,
    line: impl Fn(u64, u64) -> String,
    progress: &dyn Fn(String),
) -> Result<(), SessionError> {
    let mut next = 0..rows;
    let loading = Loading::begin(table, rows, progress);
    let mut fill = |lines: &mut Vec<u8>| {
        for index in loading.next_rows(&mut next, 1_000) {
            // Writing into memory cannot fail.
            let _ = lines.write_all(line(index + 1, index / of_each_branch + 1).as_bytes());
        }
        !next.is_empty()
    };
    let loaded = session.load(BulkLoad { table, columns, is_new: true }, &mut fill).await?;
    if loaded == rows {
        Ok(())
    } else {
        Err(refused(format!("{loaded} rows of {table} were loaded instead of {rows}")))
    }
}
