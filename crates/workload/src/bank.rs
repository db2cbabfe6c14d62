//! A bank: money moves between a few accounts, and everybody looks at all of them.
//!
//! Owns the accounts and the transfers. Option: `isolation`, of the transfers. Whether money was made or lost is the bank check's to judge.

use std::collections::BTreeMap;

use capabilities::workloads::{self, WorkloadFacts};
use client::key_value::{Operation, Value};
use client::{Session, SessionError, SessionFuture, SqlValue};
use history::{Action, ErrorClass, Key};
use rand::RngExt;

use crate::dialect::look_now;
use crate::key_value::{contended, entries, senseless};
use crate::options::{ConfigurationError, Options};
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

/// How many accounts there are.
const ACCOUNTS: i64 = 8;
/// What each holds at first.
const OPENING_BALANCE: i64 = 1_000;
/// The most that one transfer moves.
const LARGEST_AMOUNT: i64 = 20;

const READ: usize = 0;
const TRANSFER: usize = 1;
const PREFIX: &str = "bank/";

/// Names of the statements.
const TIMED: &[&str] = workloads::BANK.timed.names();

/// See the module.
pub struct Bank {
    statements: [Statement; 5],
}

impl Bank {
    /// The workload with these options.
    ///
    /// # Errors
    /// When an option is not its own or does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("bank", given);
        let begin = options.begin()?;
        options.finish()?;
        let statements = [
            Statement::fixed(TIMED[0], "SELECT account, balance FROM holdfast_bank"),
            begin,
            Statement::fixed(
                TIMED[2],
                "UPDATE holdfast_bank SET balance = balance - $1 WHERE account = $2 AND balance >= $1",
            ),
            Statement::fixed(TIMED[3], "UPDATE holdfast_bank SET balance = balance + $1 WHERE account = $2"),
            Statement::fixed(TIMED[4], "END"),
        ];
        Ok(Bank { statements })
    }
}

impl Workload for Bank {
    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::BANK
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(session) = setup.session {
                let value = Value::Integer(OPENING_BALANCE);
                let open = |account| Operation::Write { key: key_name(account), value: value.clone() };
                session.transact((0..ACCOUNTS).map(open).collect()).await?;
                return Ok(());
            }
            let session = setup.session.sql()?;
            session.batch("DROP TABLE IF EXISTS holdfast_bank").await?;
            let create = "CREATE TABLE holdfast_bank (account bigint PRIMARY KEY, balance bigint NOT NULL)";
            session.batch(create).await?;
            let rows: Vec<String> =
                (0..ACCOUNTS).map(|account| format!("({account}, {OPENING_BALANCE})")).collect();
            session.batch(&format!("INSERT INTO holdfast_bank VALUES {}", rows.join(", "))).await?;
            Ok(())
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        client.sequence += 1;
        if client.rng.random_range(0..2) == 0 {
            return Request::plain(Action::BankRead { balances: Vec::new() }, READ, [0; 4]);
        }
        let from = client.rng.random_range(0..ACCOUNTS);
        let to = (from + client.rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = client.rng.random_range(1..=LARGEST_AMOUNT);
        let action = Action::BankTransfer { from: Key::Number(from), to: Key::Number(to), amount };
        Request::plain(action, TRANSFER, [from, to, amount, 0])
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Action::BankRead { balances } = &mut request.action {
                *balances = if let Session::KeyValue(session) = attempt.session {
                    let found = session.transact(vec![scan()]).await?;
                    accounts(entries(found.first())?)?
                } else {
                    accounts_of(&attempt.run(0, &[]).await?)?
                };
                return Ok(());
            }
            let [from, to, amount, _] = request.numbers;
            if let Session::KeyValue(session) = attempt.session {
                let transfer = vec![
                    Operation::Add { key: key_name(from), amount: -amount, floor: Some(0) },
                    Operation::Add { key: key_name(to), amount, floor: None },
                ];
                contended(session.as_mut(), transfer).await?;
                return Ok(());
            }
            let numbers = [SqlValue::Integer(amount), SqlValue::Integer(from)];
            attempt.run(1, &[]).await?;
            if attempt.run(2, &numbers).await?.affected() != 1 {
                // The generator rolls it back.
                let message = format!("account {from} holds less than {amount}");
                return Err(SessionError { class: ErrorClass::Serialization, ..refused(message) });
            }
            let rows = attempt.run(3, &[SqlValue::Integer(amount), SqlValue::Integer(to)]).await?;
            if rows.affected() != 1 {
                return Err(refused(format!("account {to} is there {} times", rows.affected())));
            }
            attempt.run(4, &[]).await?;
            Ok(())
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let balances = if let Session::KeyValue(session) = session {
                let found = session.transact(vec![scan()]).await?;
                accounts(entries(found.first())?)?
            } else {
                accounts_of(&look_now(session.sql()?, "SELECT account, balance FROM holdfast_bank").await?)?
            };
            let opened = (0..ACCOUNTS).map(|account| (Key::Number(account), OPENING_BALANCE)).collect();
            let setup = Action::BankSetup { balances: opened, may_be_negative: false };
            Ok(vec![setup, Action::BankRead { balances }])
        })
    }
}

fn key_name(account: i64) -> String {
    format!("{PREFIX}{account}")
}

fn scan() -> Operation {
    // One more than there ought to be: one that is too many must be seen.
    let limit = u32::try_from(ACCOUNTS).unwrap_or(u32::MAX).saturating_add(1);
    Operation::Scan { prefix: PREFIX.to_owned(), after: None, limit }
}

fn accounts(entries: &[(String, Value)]) -> Result<Vec<(Key, i64)>, SessionError> {
    let account = |(key, value): &(String, Value)| {
        let number = key.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
        match (number, value) {
            (Some(number), Value::Integer(balance)) => Ok((Key::Number(number), *balance)),
            _ => Err(senseless(None)),
        }
    };
    entries.iter().map(account).collect()
}

fn accounts_of(rows: &client::Rows) -> Result<Vec<(Key, i64)>, SessionError> {
    let account = |row| match (rows.integer(row, 0), rows.integer(row, 1)) {
        (Some(account), Some(balance)) => Ok((Key::Number(account), balance)),
        _ => Err(refused(format!("account row {row} cannot be read"))),
    };
    (0..rows.len()).map(account).collect()
}
