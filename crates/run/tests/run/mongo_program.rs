//! The client program for MongoDB with a planted driver (`planted_pymongo`), which is as strict about commands as a replica set:
//! its transactions do what the control database does, and what goes wrong is told apart. It speaks to nobody.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use client::key_value::{Found, Operation, REFUSED, Value};
use client::process::{ProcessConnector, Sessions, Speaks, Target};
use client::reactor::block_on;
use client::{Connector as _, Endpoint, Session, SessionError};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{program, transactions};

const DRIVER: [(&str, &str); 4] = [
    ("__init__.py", include_str!("../planted_pymongo/__init__.py")),
    ("errors.py", include_str!("../planted_pymongo/errors.py")),
    ("read_concern.py", include_str!("../planted_pymongo/read_concern.py")),
    ("write_concern.py", include_str!("../planted_pymongo/write_concern.py")),
];
const PYTHONS: [&str; 3] = ["/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3"];

/// The program as its engine names it, with the planted driver in this folder, to two nodes of which the second leads.
fn connector(folder: &Path, options: &[(&str, &str)]) -> ProcessConnector {
    std::fs::create_dir(folder.join("pymongo")).expect("a folder");
    for (name, text) in DRIVER {
        std::fs::write(folder.join("pymongo").join(name), text).expect("a file");
    }
    let engine = capabilities::named("mongodb").and_then(|engine| engine.file).expect("an engine that ships");
    let written = engine.client_program.as_ref().expect("a client program");
    let settings = program::settings(written, &folder.display().to_string());
    let options: BTreeMap<String, String> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let target = |node: &str| (node.to_owned(), Target { url: String::new(), options: options.clone() });
    let sessions = Sessions {
        speaks: Speaks::Keys,
        database: "holdfast".to_owned(),
        user: String::new(),
        password: None,
        targets: ["n1", "n2"].map(target).into_iter().collect(),
        takes_writes: None,
        timeout: Duration::from_secs(120),
        connect_timeout: Duration::from_secs(60),
    };
    let endpoint = |number: u8| Endpoint {
        node: format!("n{number}"),
        address: SocketAddr::from(([127, 0, 0, number], 27017)).into(),
    };
    ProcessConnector::new(vec![endpoint(1), endpoint(2)], settings, sessions, false)
}

/// Runs the test in an event loop, if there is a Python.
fn with_driver(test: &str, options: &[(&str, &str)], body: impl AsyncFnOnce(&ProcessConnector)) {
    if !PYTHONS.iter().any(|path| Path::new(path).is_file()) {
        eprintln!("skipped: {test}: no python3");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let connector = connector(folder.path(), options);
    block_on(async { body(&connector).await }).expect("an event loop");
}

async fn session(connector: &ProcessConnector) -> Session {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    loop {
        match connector.connect(&mut rng).await {
            Ok(connected) => {
                assert_eq!(connected.node, "n2", "the one that leads");
                return connected.session;
            }
            // The one that leads had not answered yet.
            Err(error) => assert!(error.failed_attempts.is_empty(), "{error}"),
        }
    }
}

async fn transact(session: &mut Session, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
    session.key_value()?.transact(operations).await
}

fn append(key: &str) -> Operation {
    Operation::Append { key: key.to_owned(), element: 1 }
}

fn read(key: &str) -> Operation {
    Operation::Read { key: key.to_owned() }
}

#[test]
fn transactions_on_mongodb_do_what_the_control_database_does() {
    with_driver("transactions_on_mongodb_do_what_the_control_database_does", &[], async |connector| {
        let mut session = session(connector).await;
        let session = session.key_value().expect("keys and values");
        assert!(session.rewrites_lists(), "a document is written again with each element");
        transactions::do_what_the_control_database_does(session, 4).await;
        assert_eq!(connector.failure(), None);
    });
}

#[test]
fn a_read_of_one_key_has_the_read_concern_that_was_asked_for() {
    let test = "a_read_of_one_key_has_the_read_concern_that_was_asked_for";
    with_driver(test, &[("read_concern", "majority")], async |connector| {
        // The planted driver refuses a read outside of a transaction that is not linearizable.
        let mut session = session(connector).await;
        transact(&mut session, vec![append("a")]).await.expect("written");
        let list = Found::Value(Some(Value::List(vec![1])));
        assert_eq!(transact(&mut session, vec![read("a")]).await, Ok(vec![list]));
    });
    with_driver(test, &[("read_concern", "local")], async |connector| {
        let connected = connector.connect(&mut ChaCha8Rng::seed_from_u64(1)).await;
        let error = connected.err().expect("no session").to_string();
        assert!(error.contains("read_concern is linearizable or majority, not local"), "{error}");
    });
}

#[test]
fn keys_that_are_read_or_written_together_are_one_command() {
    let test = "keys_that_are_read_or_written_together_are_one_command";
    with_driver(test, &[], async |connector| {
        let mut session = session(connector).await;
        let mut commands = async |operations: Vec<Operation>| {
            let told = transact(&mut session, operations).await.expect("done");
            let count = transact(&mut session, vec![read("commands")]).await.expect("counted");
            let [Found::Value(Some(Value::Integer(count)))] = count.as_slice() else { panic!("{count:?}") };
            (told, *count)
        };
        let text = |number: u32| Value::Text(format!("{number} \"text\""));
        let write = |number: u32| Operation::Write { key: format!("w/{number}"), value: text(number) };
        let (_, before) = commands(vec![read("w/1")]).await;
        let (told, after) = commands((1..=5).map(write).collect()).await;
        assert_eq!((told, after - before), (vec![Found::Done; 5], 2), "one, and the one that counts");
        // More than one batch, in another order, one twice and one that is not there.
        let keys = ["w/5", "w/1", "w/9", "w/3", "w/2", "w/1"];
        let (told, after_reading) = commands(keys.map(read).to_vec()).await;
        let value = |number: u32| Found::Value(Some(text(number)));
        assert_eq!(told, [value(5), value(1), Found::Value(None), value(3), value(2), value(1)]);
        assert!(after_reading - after <= 4, "one for each batch, and the one that counts");
        assert_eq!(connector.failure(), None);
    });
}

#[test]
fn an_error_of_mongodb_is_definite_only_where_nothing_can_have_been_written() {
    let test = "an_error_of_mongodb_is_definite_only_where_nothing_can_have_been_written";
    with_driver(test, &[], async |connector| {
        let check = async |operations: Vec<Operation>, class: ErrorClass, definite: bool| {
            let mut session = session(connector).await;
            let told = format!("{operations:?}");
            let error = transact(&mut session, operations).await.expect_err("planted");
            assert_eq!((error.class, error.definite), (class, definite), "{told}: {error}");
        };
        let alone = |key: &str| vec![append(key)];
        check(alone("error/10107"), ErrorClass::ReadOnly, true).await;
        check(alone("error/13436"), ErrorClass::ReadOnly, true).await;
        check(alone("error/112"), ErrorClass::Serialization, true).await;
        check(alone("error/189"), ErrorClass::ReadOnly, false).await;
        check(alone("error/11602"), ErrorClass::ReadOnly, false).await;
        check(alone("error/91"), ErrorClass::Connection, false).await;
        check(alone("error/4711"), ErrorClass::Other, false).await;
        // It was written, and is not on a majority; whatever the code, which would be definite elsewhere.
        check(alone("concern/64"), ErrorClass::Timeout, false).await;
        check(alone("concern/10107"), ErrorClass::ReadOnly, false).await;
        check(alone("raise/AutoReconnect"), ErrorClass::Connection, false).await;
        check(alone("raise/NetworkTimeout"), ErrorClass::Timeout, false).await;
        check(alone("raise/ServerSelectionTimeoutError"), ErrorClass::Connection, true).await;
        // A read writes nothing.
        check(vec![read("error/11602")], ErrorClass::ReadOnly, true).await;
        assert_eq!(connector.failure(), None);
    });
}

#[test]
fn before_its_commit_every_error_of_a_transaction_is_definite_and_at_it_only_an_abort() {
    let test = "before_its_commit_every_error_of_a_transaction_is_definite";
    with_driver(test, &[], async |connector| {
        let check = async |key: &str, class: ErrorClass, definite: bool, is_there: bool| {
            let mut session = session(connector).await;
            let other = format!("beside/{key}");
            let both = vec![append(&other), append(key)];
            let error = transact(&mut session, both).await.expect_err("planted");
            assert_eq!((error.class, error.definite), (class, definite), "{key}: {error}");
            let mut session = self::session(connector).await;
            let found = transact(&mut session, vec![read(&other)]).await.expect("read");
            assert_eq!(found != [Found::Value(None)], is_there, "{key}");
        };
        check("error/11602", ErrorClass::ReadOnly, true, false).await;
        check("error/251", ErrorClass::Serialization, true, false).await;
        check("raise/AutoReconnect", ErrorClass::Connection, true, false).await;
        check("commit/aborted", ErrorClass::Serialization, true, false).await;
        check("commit/unknown", ErrorClass::Timeout, false, true).await;
        check("commit/lost", ErrorClass::Connection, false, true).await;
    });
}

#[test]
fn a_step_whose_condition_is_not_met_undoes_those_before_it() {
    with_driver("a_step_whose_condition_is_not_met_undoes_those_before_it", &[], async |connector| {
        let mut session = session(connector).await;
        let written = Operation::Write { key: "n".to_owned(), value: Value::Integer(1) };
        transact(&mut session, vec![written]).await.expect("written");
        let refused = vec![append("list"), append("n")];
        let error = transact(&mut session, refused).await.expect_err("a number is no list");
        assert_eq!((error.definite, error.code.as_deref()), (true, Some(REFUSED)), "{error}");
        assert!(error.message.ends_with("step 1: no list is there"), "{error}");
        assert_eq!(transact(&mut session, vec![read("list")]).await, Ok(vec![Found::Value(None)]));
    });
}
