//! The client program for Python's drivers with a driver that keeps Python's other threads waiting, as that of Ignite does: each
//! session has a process of its own, and what the driver raises is told apart. The driver is planted; it speaks to nobody.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use client::process::{ProcessConnector, Sessions, Settings, Speaks};
use client::reactor::block_on;
use client::{Connector as _, Dialect, Endpoint, Session, SessionError};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::program;

/// What it is asked in place of SQL: to hold Python's lock for an hour, to raise something, to end its process, to refuse
/// that statements commit by themselves from now on, to tell whether they do. It knows one isolation level.
const DRIVER: &str = r#"
import ctypes, os
paramstyle = "qmark"
class Error(Exception): pass
class DatabaseError(Error): pass
class OperationalError(DatabaseError): pass
class IntegrityError(DatabaseError): pass
class ProgrammingError(DatabaseError): pass
class InTransaction(ProgrammingError):
    sqlstate = "25001"
class Cursor:
    def __init__(self, connection):
        self.connection, self.description, self.rowcount = connection, None, 1
    def execute(self, sql, parameters):
        words = sql.split(" ", 2)
        if words[0] == "HOLD":
            ctypes.PyDLL(None).sleep(3600)
        elif words[0] == "RAISE":
            raise globals()[words[1]](words[2])
        elif words[0] == "END-ITSELF":
            os._exit(3)
        elif words[0] == "SET":
            if words[2] != "ISOLATION LEVEL SERIALIZABLE":
                raise ProgrammingError("no such level")
            self.connection.level = words[2]
        elif words[0] == "STICK":
            self.connection.sticks = True
        self.description = [("told",)]
    def fetchall(self):
        return [(self.connection.told(),)]
    def close(self): pass
class Connection:
    def __init__(self):
        self.is_on, self.commits, self.sticks, self.level = True, 0, False, ""
    @property
    def autocommit(self):
        return self.is_on
    @autocommit.setter
    def autocommit(self, wanted):
        if self.sticks:
            raise InTransaction("not within a transaction")
        self.is_on = wanted
    def told(self):
        return f"{self.autocommit} {self.commits}{self.level}"
    def cursor(self):
        return Cursor(self)
    def commit(self):
        self.commits, self.level = self.commits + 1, ""
    def rollback(self):
        self.level = ""
    def close(self): pass
def connect(**options):
    return Connection()
"#;

/// Ignite's, whose sessions have a process each.
const IGNITES: &str = "pyignite_dbapi";

fn connector(folder: &Path, driver: &str) -> ProcessConnector {
    std::fs::write(folder.join(format!("{driver}.py")), DRIVER).expect("a file");
    let engine = capabilities::named("ignite").and_then(|engine| engine.file).expect("an engine that ships");
    let written = engine.client_program.as_ref().expect("a client program");
    let settings = program::settings(written, &folder.display().to_string());
    let settings = Settings { driver: driver.to_owned(), ..settings };
    let sessions = Sessions {
        speaks: Speaks::Sql(Dialect::Standard),
        database: String::new(),
        user: String::new(),
        password: None,
        targets: BTreeMap::new(),
        takes_writes: None,
        timeout: Duration::from_secs(120),
        connect_timeout: Duration::from_secs(60),
    };
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
    ProcessConnector::new(vec![Endpoint { node: "n1".to_owned(), address }], settings, sessions, true)
}

async fn session(connector: &ProcessConnector) -> Session {
    let connected = connector.connect(&mut ChaCha8Rng::seed_from_u64(1)).await;
    connected.unwrap_or_else(|error| panic!("{error}")).session
}

async fn ask(session: &mut Session, sql: &str) -> Result<String, SessionError> {
    let rows = session.sql()?.batch(sql).await?;
    Ok(rows.text(0, 0).unwrap_or_default().to_owned())
}

/// Runs the test in an event loop, if there is a Python.
fn with_driver(test: &str, body: impl AsyncFnOnce(&ProcessConnector)) {
    with_driver_named(IGNITES, test, body);
}

fn with_driver_named(driver: &str, test: &str, body: impl AsyncFnOnce(&ProcessConnector)) {
    if !["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join("python3").is_file())
    {
        eprintln!("skipped: {test}: no python3");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let connector = connector(folder.path(), driver);
    block_on(async { body(&connector).await }).expect("an event loop");
}

#[test]
fn a_session_whose_driver_holds_pythons_lock_keeps_no_other_waiting() {
    with_driver("a_session_whose_driver_holds_pythons_lock_keeps_no_other_waiting", async |connector| {
        let mut held = session(connector).await;
        let hold = held.sql().expect("SQL").prepare(&["HOLD"]).await.expect("prepared");
        held.sql().expect("SQL").ask(hold[0], &[], Instant::now()).expect("asked");
        let mut other = session(connector).await;
        assert_eq!(ask(&mut other, "TELL").await.expect("answered"), "True 0");
        // Closed in the midst.
        drop(held);
        assert_eq!(ask(&mut other, "TELL").await.expect("answered"), "True 0");
        assert_eq!(connector.failure(), None);
    });
}

#[test]
fn a_driver_without_a_statement_for_it_begins_and_ends_transactions_itself() {
    with_driver(
        "a_driver_without_a_statement_for_it_begins_and_ends_transactions_itself",
        async |connector| {
            let mut session = session(connector).await;
            let within = async |session: &mut Session, end: &str| {
                ask(session, "START TRANSACTION ISOLATION LEVEL SERIALIZABLE").await.expect("begun");
                let told = ask(session, "TELL").await.expect("answered");
                ask(session, end).await.expect("ended");
                told
            };
            assert_eq!(within(&mut session, "COMMIT").await, "False 0");
            assert_eq!(ask(&mut session, "TELL").await.expect("answered"), "True 1");
            assert_eq!(within(&mut session, "ROLLBACK").await, "False 1");
            assert_eq!(ask(&mut session, "TELL").await.expect("answered"), "True 1");
        },
    );
}

#[test]
fn a_transaction_that_the_driver_begins_has_the_level_that_is_asked_for_or_a_stricter_one_or_is_refused() {
    let test = "a_transaction_that_the_driver_begins_has_the_level_that_is_asked_for_or_a_stricter_one_or_is_refused";
    with_driver_named("planted", test, async |connector| {
        let mut session = session(connector).await;
        for level in ["SERIALIZABLE", "REPEATABLE READ"] {
            ask(&mut session, &format!("START TRANSACTION ISOLATION LEVEL {level}")).await.expect("begun");
            let told = ask(&mut session, "TELL").await.expect("answered");
            assert_eq!(told, "False 0ISOLATION LEVEL SERIALIZABLE", "{level}");
            ask(&mut session, "ROLLBACK").await.expect("ended");
        }
        let begun = ask(&mut session, "START TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
        let error = begun.expect_err("it knows no such level");
        assert_eq!((error.class, error.definite), (ErrorClass::Other, true), "{error}");
        assert_eq!(ask(&mut session, "TELL").await.expect("answered"), "True 0", "no transaction is open");
    });
}

#[test]
fn an_error_behind_a_commit_that_was_acknowledged_does_not_say_that_nothing_was_committed() {
    with_driver(
        "an_error_behind_a_commit_that_was_acknowledged_does_not_say_that_nothing_was_committed",
        async |connector| {
            let mut session = session(connector).await;
            ask(&mut session, "START TRANSACTION ISOLATION LEVEL SERIALIZABLE").await.expect("begun");
            ask(&mut session, "STICK").await.expect("answered");
            let error = ask(&mut session, "COMMIT").await.expect_err("it cannot go on");
            assert_eq!((error.class, error.definite), (ErrorClass::Connection, false), "{error}");
        },
    );
}

#[test]
fn errors_of_ignite_are_definite_only_where_its_messages_say_so() {
    with_driver("errors_of_ignite_are_definite_only_where_its_messages_say_so", async |connector| {
        let check = async |raised: &str, class: ErrorClass, definite: bool| {
            let mut session = session(connector).await;
            let error = ask(&mut session, &format!("RAISE {raised}")).await.expect_err("raised");
            assert_eq!((error.class, error.definite), (class, definite), "{error}");
        };
        let lock =
            "DatabaseError x.SqlException: Failed to acquire a lock due to a possible deadlock [locker=1]";
        check(lock, ErrorClass::Serialization, true).await;
        let lease = "DatabaseError x.TransactionException: Primary replica has expired, transaction will be rolled back";
        check(lease, ErrorClass::Serialization, true).await;
        check(
            "DatabaseError x.SqlException: Failed to process replica request [1]",
            ErrorClass::Other,
            false,
        )
        .await;
        check("ProgrammingError x.SqlException: Failed to parse query: y", ErrorClass::Other, true).await;
        check("ProgrammingError x.SqlException: Division by zero", ErrorClass::Other, false).await;
        check("IntegrityError x.SqlException: PK unique constraint is violated", ErrorClass::Other, true)
            .await;
        check("IntegrityError of another kind", ErrorClass::Other, false).await;
        let cut_off = "OperationalError Can not receive a message from the server due to connection error";
        check(cut_off, ErrorClass::Connection, false).await;
    });
}

#[test]
fn a_driver_that_ends_its_process_ends_its_session_alone() {
    with_driver("a_driver_that_ends_its_process_ends_its_session_alone", async |connector| {
        let mut other = session(connector).await;
        let mut session = session(connector).await;
        let error = ask(&mut session, "END-ITSELF").await.expect_err("nobody answers");
        assert_eq!((error.class, error.definite), (ErrorClass::Connection, false), "{error}");
        assert_eq!(ask(&mut other, "TELL").await.expect("answered"), "True 0");
        assert_eq!(connector.failure(), None);
    });
}
