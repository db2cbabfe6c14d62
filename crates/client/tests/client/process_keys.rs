//! Client programs that speak keys and values: what they are asked and answer, and planted defects, each of which is found
//! out and never makes a success of what was open.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use client::key_value::{Found, Operation, REFUSED, Value};
use client::process::{GREETING_WITHIN, ProcessConnector, Sessions, Settings, Speaks, Starter};
use client::reactor::block_on;
use client::{Connected, Connector, Dialect, Endpoint, Session, SessionError};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::transactions;

const STUB: &str = include_str!("../stubs/keys.py");
const PYTHON: &str = "/usr/bin/python3";
const LONG: Duration = Duration::from_secs(60);
/// How long an answer is waited for that never comes.
const SHORT: Duration = Duration::from_millis(300);

/// The stub, told what to do by its driver's name, to two nodes; nothing, and said so, where there is no Python.
fn connector(test: &str, driver: &str, speaks: Speaks, timeout: Duration) -> Option<ProcessConnector> {
    if !Path::new(PYTHON).is_file() {
        eprintln!("skipped: {test}: no {PYTHON}");
        return None;
    }
    let starter: Starter = Arc::new(|socket: OwnedFd| {
        let output = socket.try_clone()?;
        let mut python = Command::new(PYTHON);
        python.args(["-I", "-c", STUB]).stdin(socket).stdout(output).stderr(Stdio::null()).spawn()
    });
    let settings = Settings {
        name: "stub".to_owned(),
        starter,
        driver: driver.to_owned(),
        folder: String::new(),
        log: None,
        patience: GREETING_WITHIN,
        accountant: None,
    };
    let sessions = Sessions {
        speaks,
        database: "d".to_owned(),
        user: String::new(),
        password: None,
        targets: BTreeMap::new(),
        takes_writes: None,
        timeout,
        connect_timeout: Duration::from_secs(20),
    };
    let node = |number: u8| Endpoint {
        node: format!("n{number}"),
        address: SocketAddr::from(([127, 0, 0, number], 1)).into(),
    };
    Some(ProcessConnector::new(vec![node(1), node(2)], settings, sessions, true))
}

async fn connect(connector: &ProcessConnector) -> Connected {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    connector.connect(&mut rng).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn transact(session: &mut Session, operations: Vec<Operation>) -> Answer {
    session.key_value().expect("keys and values").transact(operations).await
}

fn write(key: &str) -> Vec<Operation> {
    vec![Operation::Write { key: key.to_owned(), value: Value::Integer(1) }]
}

fn read(key: &str) -> Vec<Operation> {
    vec![Operation::Read { key: key.to_owned() }]
}

type Answer = Result<Vec<Found>, SessionError>;

/// What becomes of these operations, whether the session is broken then, and what ended the program.
fn asked(
    test: &str,
    operations: Vec<Operation>,
    timeout: Duration,
) -> Option<(Answer, bool, Option<String>)> {
    let connector = connector(test, "", Speaks::Keys, timeout)?;
    let told = block_on(async {
        let mut session = connect(&connector).await.session;
        let answer = transact(&mut session, operations).await;
        (answer, session.is_broken(), connector.failure())
    });
    Some(told.expect("an event loop"))
}

#[test]
fn a_program_that_keeps_its_keys_does_what_the_control_database_does() {
    let test = "a_program_that_keeps_its_keys_does_what_the_control_database_does";
    let Some(connector) = connector(test, "", Speaks::Keys, LONG) else { return };
    block_on(async {
        let mut session = connect(&connector).await.session;
        assert!(session.sql().is_err() && !session.in_transaction());
        let session = session.key_value().expect("keys and values");
        assert!(!session.rewrites_lists());
        transactions::do_what_the_control_database_does(session, 4).await;
        assert_eq!(connector.failure(), None);
    })
    .expect("an event loop");
}

#[test]
fn a_condition_that_is_not_met_is_definite_and_leaves_the_session_whole() {
    let operations = vec![
        Operation::Write { key: "a".to_owned(), value: Value::Integer(1) },
        Operation::Insert { key: "a".to_owned(), value: Value::Integer(2) },
    ];
    let test = "a_condition_that_is_not_met_is_definite_and_leaves_the_session_whole";
    let Some((answer, is_broken, failure)) = asked(test, operations, LONG) else { return };
    let error = answer.expect_err("refused");
    assert_eq!((error.definite, error.code.as_deref()), (true, Some(REFUSED)), "{error}");
    assert!(error.message.ends_with("step 1: something is there already"), "{error}");
    assert!(!is_broken && failure.is_none());
}

#[test]
fn an_error_is_as_definite_as_the_program_says_and_always_where_nothing_was_written() {
    let test = "an_error_is_as_definite_as_the_program_says";
    let check = |operations: Vec<Operation>, class, definite, code: &str| {
        let Some((answer, is_broken, failure)) = asked(test, operations, LONG) else { return };
        let error = answer.expect_err("nothing was acknowledged");
        let told = (error.class, error.definite, error.code.as_deref());
        assert_eq!(told, (class, definite, Some(code)), "{error}");
        assert_eq!(is_broken, class == ErrorClass::Timeout, "{error}");
        assert_eq!(failure, None);
    };
    check(write("stub/failed"), ErrorClass::Serialization, true, "112");
    check(write("stub/unknown"), ErrorClass::Timeout, false, "64");
    check(read("stub/unknown"), ErrorClass::Timeout, true, "64");
}

#[test]
fn a_transaction_that_is_not_answered_meets_its_time_limit_and_may_have_happened() {
    let test = "a_transaction_that_is_not_answered_meets_its_time_limit";
    for (operations, definite) in [(write("stub/silent"), false), (read("stub/silent"), true)] {
        let Some((answer, is_broken, failure)) = asked(test, operations, SHORT) else { return };
        let error = answer.expect_err("nothing was acknowledged");
        assert_eq!((error.class, error.definite), (ErrorClass::Timeout, definite), "{error}");
        assert!(is_broken && failure.is_none());
    }
}

#[test]
fn a_program_that_dies_leaves_its_transaction_unknown_and_ends_the_load() {
    let test = "a_program_that_dies_leaves_its_transaction_unknown_and_ends_the_load";
    let Some((answer, is_broken, failure)) = asked(test, write("stub/dies"), LONG) else { return };
    let error = answer.expect_err("nothing was acknowledged");
    assert_eq!((error.class, error.definite), (ErrorClass::Connection, false), "{error}");
    let told = "the client program stub ended (exit status: 9)";
    assert!(is_broken && failure.is_some_and(|failure| failure.contains(told)), "{error}");
}

#[test]
fn an_answer_to_other_operations_is_no_success_and_ends_the_session() {
    let test = "an_answer_to_other_operations_is_no_success_and_ends_the_session";
    for key in ["stub/others", "stub/elsewhere", "stub/page"] {
        let Some((answer, is_broken, failure)) = asked(test, write(key), LONG) else { return };
        let error = answer.expect_err("nothing was acknowledged");
        assert_eq!((error.class, error.definite), (ErrorClass::Other, false), "{key}: {error}");
        assert!(error.message.contains("the client program answered with"), "{key}: {error}");
        assert!(is_broken && failure.is_none(), "{key}");
    }
}

#[test]
fn a_session_that_is_broken_is_asked_nothing_more() {
    let test = "a_session_that_is_broken_is_asked_nothing_more";
    let Some(connector) = connector(test, "", Speaks::Keys, SHORT) else { return };
    block_on(async {
        let mut session = connect(&connector).await.session;
        transact(&mut session, write("stub/silent")).await.expect_err("silent");
        let error = transact(&mut session, write("a")).await.expect_err("not sent");
        assert!(error.definite && error.message.contains("the session is broken"), "{error}");
        // Another session of the same program is served.
        let mut other = connect(&connector).await.session;
        assert_eq!(transact(&mut other, read("a")).await, Ok(vec![Found::Value(None)]));
    })
    .expect("an event loop");
}

#[test]
fn a_node_that_takes_no_writes_by_the_programs_word_is_passed_over() {
    let test = "a_node_that_takes_no_writes_by_the_programs_word_is_passed_over";
    let Some(connector) = connector(test, "n2-leads", Speaks::Keys, LONG) else { return };
    let connected = block_on(async { connect(&connector).await }).expect("an event loop");
    assert_eq!(connected.node, "n2");
}

#[test]
fn a_program_that_writes_whole_lists_again_says_so_in_its_greeting() {
    let test = "a_program_that_writes_whole_lists_again_says_so_in_its_greeting";
    let Some(connector) = connector(test, "rewrites", Speaks::Keys, LONG) else { return };
    block_on(async {
        let mut session = connect(&connector).await.session;
        assert!(session.key_value().expect("keys and values").rewrites_lists());
    })
    .expect("an event loop");
}

#[test]
fn a_program_that_greets_as_another_kind_is_asked_nothing() {
    let test = "a_program_that_greets_as_another_kind_is_asked_nothing";
    let check = |driver: &str, speaks, told: &str| {
        let Some(connector) = connector(test, driver, speaks, LONG) else { return };
        let error = block_on(async {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            connector.connect(&mut rng).await.err().expect("no session").to_string()
        });
        let error = error.expect("an event loop");
        assert!(error.contains(told), "{error}");
        assert!(connector.failure().is_some_and(|failure| error.contains(&failure)), "{error}");
    };
    check("sql", Speaks::Keys, "the client program stub does not speak keys and values, by its own greeting");
    // It is not told of keys, and ends with an error of its own.
    check("", Speaks::Sql(Dialect::Standard), "the client program stub ended (exit status: 1)");
}
