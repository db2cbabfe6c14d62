//! TPC-B on a database of keys and values, statement by statement.
//!
//! Each statement that writes is a request of its own, which puts down a provisional record; END finds all four in place
//! and makes them one transaction, or none of it happens. So every one of these five waits for whatever a write waits
//! for, as on databases that replicate each write of a transaction by itself (YugabyteDB documentation, "Distributed
//! transactions": provisional records). BEGIN asks nothing, and the SELECT is answered with the update before it.

use std::collections::BTreeMap;
use std::time::Instant;

use client::SessionError;
use client::key_value::{KeyValueSession, Operation, Value};
use history::Action;

use super::amounts_read;
use crate::key_value::{contended, entries, senseless};
use crate::workload::{StatementObserver, refused};

/// Statements that are a request each, by their places among all statements.
pub(super) const REQUESTS: [usize; 5] = [1, 3, 4, 5, END];
const END: usize = 6;

const ACCOUNTS: &str = "tpcb/accounts/";
const TELLERS: &str = "tpcb/tellers/";
const BRANCHES: &str = "tpcb/branches/";
const HISTORY: &str = "tpcb/history/";

/// What a record holds once its transaction has ended.
const ENDED: i64 = 0;

fn record(client: u64, statement: usize) -> String {
    format!("tpcb/provisional/{client}/{statement}")
}

/// Carries out a transaction of `client`, whose `number` no other transaction of it has.
pub(super) async fn perform(
    session: &mut dyn KeyValueSession,
    observer: &mut dyn StatementObserver,
    (client, number): (u64, i64),
    [account, branch, teller, delta]: [i64; 4],
) -> Result<(), SessionError> {
    let add = |key: String| Operation::Add { key, amount: delta, floor: None };
    let mut end = vec![
        add(format!("{ACCOUNTS}{account}")),
        add(format!("{TELLERS}{teller}")),
        add(format!("{BRANCHES}{branch}")),
        if session.rewrites_lists() {
            Operation::Insert { key: format!("{HISTORY}{client}/{number}"), value: Value::Integer(delta) }
        } else {
            Operation::Append { key: format!("{HISTORY}{client}"), element: delta }
        },
    ];
    for statement in REQUESTS.into_iter().filter(|statement| *statement != END) {
        let key = record(client, statement);
        let mut operations = vec![Operation::Write { key: key.clone(), value: Value::Integer(number) }];
        if statement == REQUESTS[0] {
            operations.push(Operation::Read { key: format!("{ACCOUNTS}{account}") });
        }
        let expected = Some(Value::Integer(number));
        end.push(Operation::CompareAndSet { key, expected, new: Value::Integer(ENDED) });
        let begun = Instant::now();
        let answered = session.transact(operations).await;
        tell(observer, statement, begun, &answered);
        // Without END nothing of it happens, whatever becomes of this record.
        answered.map_err(|error| SessionError { definite: true, ..error })?;
    }
    let begun = Instant::now();
    let answered = contended(session, end).await;
    tell(observer, END, begun, &answered);
    answered.map(drop)
}

/// What became of a statement.
fn tell<T>(
    observer: &mut dyn StatementObserver,
    statement: usize,
    begun: Instant,
    answered: &Result<T, SessionError>,
) {
    match answered {
        Ok(_) => observer.answered(statement, begun.elapsed()),
        Err(error) => observer.failed(statement, error),
    }
}

/// The sums and the history's amounts at one moment: all is read in one transaction.
pub(super) async fn read(session: &mut dyn KeyValueSession) -> Result<Vec<Action>, SessionError> {
    let scan = |prefix: &str| Operation::Scan { prefix: prefix.to_owned(), after: None, limit: u32::MAX };
    let found = session.transact([ACCOUNTS, TELLERS, BRANCHES, HISTORY].map(scan).to_vec()).await?;
    let [accounts, tellers, branches, history] = found.as_slice() else {
        return Err(senseless(found.first()));
    };
    let sum = |found| -> Result<i64, SessionError> {
        entries(Some(found))?.iter().try_fold(0_i64, |sum, (key, value)| match value {
            Value::Integer(number) => Ok(sum.saturating_add(*number)),
            Value::List(_) | Value::Text(_) | Value::Foreign(_) => {
                Err(refused(format!("{key} does not hold a balance")))
            }
        })
    };
    let (mut history_sum, mut history_rows) = (0_i64, 0);
    let mut amounts: BTreeMap<i64, u64> = BTreeMap::new();
    for (key, value) in entries(Some(history))? {
        let deltas = match value {
            Value::List(deltas) => deltas.as_slice(),
            Value::Integer(delta) => std::slice::from_ref(delta),
            Value::Text(_) | Value::Foreign(_) => {
                return Err(refused(format!("{key} does not hold a row's delta")));
            }
        };
        for delta in deltas {
            history_sum = history_sum.saturating_add(*delta);
            *amounts.entry(*delta).or_default() += 1;
        }
        history_rows += deltas.len() as u64;
    }
    let read = Action::TpcbRead {
        accounts: sum(accounts)?,
        tellers: sum(tellers)?,
        branches: sum(branches)?,
        history: history_sum,
        history_rows,
    };
    Ok(vec![amounts_read(amounts), read])
}
