//! TPC-B as pgbench runs it by default: its tables, its data, its seven statements.
//!
//! Follows `pgbench -i` (PostgreSQL 15: generate on the client, vacuum, primary keys) and the built-in script
//! `tpcb-like`, so that a figure from here can be laid beside one from pgbench. How it is asked where there is no SQL
//! stands in `provisional`.

mod keyed;
mod provisional;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::rc::Rc;

use capabilities::workloads::{self, WorkloadFacts};
use client::{BulkLoad, Dialect, Rows, Session, SessionError, SessionFuture, SqlSession, SqlValue};
use history::Action;
use rand::RngExt;

use crate::dialect::beginning_of_read;
use crate::loading::Loading;
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

const ACCOUNTS_PER_BRANCH: u64 = 100_000;
const TELLERS_PER_BRANCH: u64 = 10;
const LARGEST_DELTA: i64 = 5_000;

/// From this scale on account numbers need 64 bits, as pgbench has it.
const SCALE_OF_BIG_ACCOUNTS: u32 = 20_000;

/// Bits of a history row's key that hold the client's own count.
const SEQUENCE_BITS: u32 = 40;

/// Names of the statements.
const TIMED: &[&str] = workloads::TPCB.timed.names();

/// See the module.
pub struct Tpcb;

impl Workload for Tpcb {
    /// On PostgreSQL; 100,000 accounts of a scale take most of it.
    fn loaded_bytes(&self, scale: u32) -> u64 {
        u64::from(scale) * (15 << 20)
    }

    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::TPCB
    }

    fn statements(&self) -> &[Statement] {
        static STATEMENTS: [Statement; 7] = [
            Statement::fixed(TIMED[0], "BEGIN"),
            Statement::fixed(TIMED[1], "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2"),
            Statement::fixed(TIMED[2], "SELECT abalance FROM pgbench_accounts WHERE aid = $1"),
            Statement::fixed(TIMED[3], "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2"),
            Statement::fixed(TIMED[4], "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2"),
            Statement::fixed(
                TIMED[5],
                "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
                      VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
            )
            .and_in_the_standard(
                "INSERT INTO pgbench_history (id, tid, bid, aid, delta, mtime) \
                      VALUES ($5, $1, $2, $3, $4, LOCALTIMESTAMP)",
            ),
            Statement::fixed(TIMED[6], "END"),
        ];
        &STATEMENTS
    }

    fn requests(&self, sql: bool) -> Vec<usize> {
        if sql { (0..self.statements().len()).collect() } else { provisional::REQUESTS.to_vec() }
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(_) = setup.session {
                // A balance that was never written counts as 0, which is what pgbench's tables begin with.
                return Ok(());
            }
            create_and_load(setup.session.sql()?, setup.scale.max(1), setup.progress).await
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let scale = i64::from(client.scale.max(1));
        let rng = &mut client.rng;
        // In the script's order, so that a seed means the same transactions for ever.
        let account = rng.random_range(1..=ACCOUNTS_PER_BRANCH.cast_signed() * scale);
        let branch = rng.random_range(1..=scale);
        let teller = rng.random_range(1..=TELLERS_PER_BRANCH.cast_signed() * scale);
        let delta = rng.random_range(-LARGEST_DELTA..=LARGEST_DELTA);
        client.sequence += 1;
        let numbers = [account, branch, teller, delta];
        let own = (client.client, client.sequence.cast_signed());
        Request { numbers, ..Request::detailed(Action::TpcbTransaction { delta }, 0, own) }
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(session) = attempt.session {
                let own: Rc<(u64, i64)> = request.details()?;
                return provisional::perform(session.as_mut(), attempt.observer, *own, request.numbers).await;
            }
            let [account, branch, teller, delta] = request.numbers.map(SqlValue::Integer);
            let own: Rc<(u64, i64)> = request.details()?;
            let id = SqlValue::Integer(history_key(*own));
            attempt.run(0, &[]).await?;
            let rows = attempt.run(1, &[delta, account]).await?;
            one_row(rows.affected(), "account", request.numbers[0])?;
            let rows = attempt.run(2, &[account]).await?;
            one_row(rows.len() as u64, "account", request.numbers[0])?;
            let rows = attempt.run(3, &[delta, teller]).await?;
            one_row(rows.affected(), "teller", request.numbers[2])?;
            let rows = attempt.run(4, &[delta, branch]).await?;
            one_row(rows.affected(), "branch", request.numbers[1])?;
            let values = [teller, branch, account, delta, id];
            // Where rows of the history have a key, it is ours to give.
            let has_key = attempt.session.sql()?.dialect() == Dialect::Standard;
            let of_history = if has_key { values.as_slice() } else { &values[..4] };
            let rows = attempt.run(5, of_history).await?;
            one_row(rows.affected(), "history row of account", request.numbers[0])?;
            attempt.run(6, &[]).await?;
            Ok(())
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let session = match session {
                Session::KeyValue(session) => return provisional::read(session.as_mut()).await,
                other => other.sql()?,
            };
            let query = "SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts), \
                         (SELECT coalesce(sum(tbalance), 0) FROM pgbench_tellers), \
                         (SELECT coalesce(sum(bbalance), 0) FROM pgbench_branches), \
                         (SELECT coalesce(sum(delta), 0) FROM pgbench_history), \
                         (SELECT count(*) FROM pgbench_history)";
            session.batch(beginning_of_read(session.dialect())).await?;
            let sums = session.batch(query).await?;
            let amounts = session.batch("SELECT delta, count(*) FROM pgbench_history GROUP BY delta").await?;
            session.batch("COMMIT").await?;
            let sum = |column| {
                sums.integer(0, column)
                    .ok_or_else(|| refused(format!("sum {column} of the TPC-B tables is unreadable")))
            };
            let history_rows = u64::try_from(sum(4)?)
                .map_err(|_| refused("number of history rows is negative".to_owned()))?;
            let read = Action::TpcbRead {
                accounts: sum(0)?,
                tellers: sum(1)?,
                branches: sum(2)?,
                history: sum(3)?,
                history_rows,
            };
            Ok(vec![amounts_read(by_amount(&amounts)?), read])
        })
    }
}

/// How often each amount is there, from an answer with a row for each.
fn by_amount(amounts: &Rows) -> Result<BTreeMap<i64, u64>, SessionError> {
    let of_row = |row| {
        let amount = amounts.integer(row, 0)?;
        Some((amount, u64::try_from(amounts.integer(row, 1)?).ok()?))
    };
    let unreadable = || refused("the amounts of the TPC-B history are unreadable".to_owned());
    (0..amounts.len()).map(|row| of_row(row).ok_or_else(unreadable)).collect()
}

/// What the final read tells of the amounts.
fn amounts_read(amounts: BTreeMap<i64, u64>) -> Action {
    let rows = amounts.into_iter().map(|(amount, count)| (amount.to_string(), count)).collect();
    Action::RowsRead { kind: Action::TPCB_AMOUNTS.into(), rows, complete: true }
}

/// The key of a row of the history: the client's number stands above its own count.
fn history_key((client, sequence): (u64, i64)) -> i64 {
    (client << SEQUENCE_BITS).cast_signed() | sequence
}

/// A row that is missing or there twice means damaged tables: the transaction is not carried on with.
fn one_row(count: u64, what: &str, number: i64) -> Result<(), SessionError> {
    if count == 1 { Ok(()) } else { Err(refused(format!("{what} {number} is there {count} times"))) }
}

pub(crate) async fn create_and_load(
    session: &mut (dyn SqlSession + '_),
    scale: u32,
    progress: &dyn Fn(String),
) -> Result<(), SessionError> {
    if session.dialect() != Dialect::Postgres || !session.keeps_dead_rows() {
        return keyed::create_and_load(session, scale, progress).await;
    }
    const TABLES: [&str; 4] = ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];
    let number = if scale >= SCALE_OF_BIG_ACCOUNTS { "bigint" } else { "int" };
    let tables = TABLES.join(", ");
    session.batch(&format!("DROP TABLE IF EXISTS {tables}")).await?;
    for create in [
        format!(
            "CREATE TABLE pgbench_history (tid int, bid int, aid {number}, delta int, mtime timestamp, filler char(22))"
        ),
        "CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) \
         WITH (fillfactor = 100)"
            .to_owned(),
        format!(
            "CREATE TABLE pgbench_accounts (aid {number} NOT NULL, bid int, abalance int, filler char(84)) \
             WITH (fillfactor = 100)"
        ),
        "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor = 100)"
            .to_owned(),
    ] {
        session.batch(&create).await?;
    }
    // Emptied in the transaction that loads, which is what lets the rows be written frozen.
    session.batch("BEGIN").await?;
    session.batch(&format!("TRUNCATE TABLE {tables}")).await?;
    let branches = u64::from(scale);
    session
        .batch(&format!(
            "INSERT INTO pgbench_branches (bid, bbalance) SELECT number, 0 FROM generate_series(1, {branches}) number"
        ))
        .await?;
    session
        .batch(&format!(
            "INSERT INTO pgbench_tellers (tid, bid, tbalance) \
             SELECT number, (number - 1) / {TELLERS_PER_BRANCH} + 1, 0 \
             FROM generate_series(1, {}) number",
            TELLERS_PER_BRANCH * branches
        ))
        .await?;
    let accounts = ACCOUNTS_PER_BRANCH * branches;
    let mut next = 0..accounts;
    let loading = Loading::begin("pgbench_accounts", accounts, progress);
    let mut fill = |lines: &mut Vec<u8>| {
        for index in loading.next_rows(&mut next, 1_000) {
            // Writing into memory cannot fail.
            let _ = writeln!(lines, "{}\t{}\t0\t", index + 1, index / ACCOUNTS_PER_BRANCH + 1);
        }
        !next.is_empty()
    };
    let load = BulkLoad { table: "pgbench_accounts", columns: "", is_new: true };
    let loaded = session.load(load, &mut fill).await?;
    if loaded != accounts {
        return Err(refused(format!("{loaded} accounts were loaded instead of {accounts}")));
    }
    session.batch("COMMIT").await?;
    progress(format!("{accounts} rows of pgbench_accounts are loaded; statistics and keys are made"));
    make_statistics_and_keys(session).await
}

async fn make_statistics_and_keys(session: &mut (dyn SqlSession + '_)) -> Result<(), SessionError> {
    for table in ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"] {
        session.batch(&format!("VACUUM ANALYZE {table}")).await?;
    }
    for (table, key) in [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), ("pgbench_accounts", "aid")]
    {
        session.batch(&format!("ALTER TABLE {table} ADD PRIMARY KEY ({key})")).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn client(seed: u64, scale: u32) -> ClientState {
        ClientState::new(0, scale, ChaCha8Rng::seed_from_u64(seed))
    }

    #[test]
    fn draws_stay_within_the_ranges_of_the_script_and_reach_both_ends() {
        let mut state = client(7, 2);
        let draws: Vec<[i64; 4]> = (0..200_000).map(|_| Tpcb.draw(&mut state).numbers).collect();
        let check = |place: usize, lowest: i64, highest: i64, slack: i64| {
            let seen = draws.iter().map(|numbers| numbers[place]);
            let (min, max) = (seen.clone().min().expect("draws"), seen.max().expect("draws"));
            assert!((lowest..=lowest + slack).contains(&min), "{place}: {min}");
            assert!((highest - slack..=highest).contains(&max), "{place}: {max}");
        };
        check(0, 1, 200_000, 20);
        check(1, 1, 2, 0);
        check(2, 1, 20, 0);
        check(3, -5_000, 5_000, 0);
    }

    #[test]
    fn the_same_seed_draws_the_same_transactions() {
        let draws = |seed| {
            let mut state = client(seed, 1);
            (0..50).map(|_| Tpcb.draw(&mut state).numbers).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }
}
