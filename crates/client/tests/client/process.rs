//! Client programs with planted defects: what breaks the protocol is found out, has an error of its own, and what was open
//! is nobody's success.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use client::process::{
    Accountant, GREETING_WITHIN, ProcessConnector, Sessions, Settings, Speaks, Starter, TakesWrites,
};
use client::reactor::block_on;
use client::{ConnectError, Connector, Dialect, Endpoint, Rows, Session, SessionError};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const GREETS: &str = r#"read line; echo '{"ask":0,"ok":{"protocol":1}}'; "#;
const OPENS: &str = r#"read line; echo '{"ask":1,"ok":{}}'; "#;
const FOR_EVER: &str = "while read line; do :; done";

fn settings(script: &str) -> Settings {
    let script = script.to_owned();
    let starter: Starter = Arc::new(move |socket: OwnedFd| {
        let output = socket.try_clone()?;
        Command::new("sh").arg("-c").arg(&script).stdin(socket).stdout(output).stderr(Stdio::null()).spawn()
    });
    Settings {
        name: "planted".to_owned(),
        starter,
        driver: String::new(),
        folder: String::new(),
        log: None,
        patience: GREETING_WITHIN,
        accountant: None,
    }
}

fn sessions(timeout: Duration) -> Sessions {
    Sessions {
        speaks: Speaks::Sql(Dialect::Postgres),
        database: "d".to_owned(),
        user: "u".to_owned(),
        password: None,
        targets: BTreeMap::new(),
        takes_writes: None,
        timeout,
        connect_timeout: Duration::from_secs(20),
    }
}

fn connector(settings: Settings, sessions: Sessions) -> ProcessConnector {
    let node = |number: u8| Endpoint {
        node: format!("n{number}"),
        address: SocketAddr::from(([127, 0, 0, number], 1)).into(),
    };
    ProcessConnector::new(vec![node(1), node(2)], settings, sessions, true)
}

async fn connect(connector: &ProcessConnector) -> Result<Session, ConnectError> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    connector.connect(&mut rng).await.map(|connected| connected.session)
}

/// What becomes of a statement that commits by itself, and of the program, where that is this script behind its greeting and
/// one opened session.
fn asked(script: &str, timeout: Duration) -> (Result<Rows, SessionError>, Option<String>) {
    let script = format!("{GREETS}{OPENS}{script}");
    block_on(async {
        let connector = connector(settings(&script), sessions(timeout));
        let mut session = connect(&connector).await.expect("a session");
        let answer = session.sql().expect("SQL").batch("INSERT INTO t VALUES (1)").await;
        assert_eq!(session.is_broken(), answer.is_err());
        (answer, connector.failure())
    })
    .expect("an event loop")
}

const LONG: Duration = Duration::from_secs(60);

fn check_unknown(script: &str, class: ErrorClass, told: &str, of_program: Option<&str>) {
    let (answer, failure) = asked(script, LONG);
    let error = answer.expect_err("nothing was acknowledged");
    assert_eq!((error.class, error.definite), (class, false), "{error}");
    assert!(error.message.contains(told), "{error}");
    match (&failure, of_program) {
        (Some(failure), Some(told)) => assert!(failure.contains(told), "{failure}"),
        (None, None) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_brings_its_rows_and_their_number() {
    let script =
        r#"read line; echo '{"ask":2,"ok":{"results":[{"rows":[[7,"x",null]],"affected":1}]}}'; cat >&2"#;
    let (answer, failure) = asked(script, LONG);
    let rows = answer.expect("answered");
    assert_eq!((rows.integer(0, 0), rows.text(0, 1), rows.text(0, 2)), (Some(7), Some("x"), None));
    assert_eq!((rows.len(), rows.affected(), failure), (1, 1, None));
}

#[test]
fn what_a_program_says_to_be_unknown_is_unknown_and_what_failed_is_definite() {
    let unknown = r#"read line; echo '{"ask":2,"unknown":{"class":"timeout","code":"57014","text":"gave up"}}'; cat >&2"#;
    check_unknown(unknown, ErrorClass::Timeout, "57014 gave up", None);
    let failed = r#"read line; echo '{"ask":2,"failed":{"class":"read-only","text":"a standby"}}'; cat >&2"#;
    let script = format!("{GREETS}{OPENS}{failed}");
    let error = block_on(async {
        let connector = connector(settings(&script), sessions(LONG));
        let mut session = connect(&connector).await.expect("a session");
        session.sql().expect("SQL").batch("INSERT INTO t VALUES (1)").await.expect_err("refused")
    });
    let error = error.expect("an event loop");
    assert_eq!((error.class, error.definite), (ErrorClass::ReadOnly, true), "{error}");
}

#[test]
fn within_a_block_an_unknown_outcome_is_definite_because_nothing_was_committed() {
    let script = format!(
        r#"{GREETS}{OPENS}read line; echo '{{"ask":2,"ok":{{"results":[{{}}]}}}}'; read line; exit 7"#
    );
    block_on(async {
        let connector = connector(settings(&script), sessions(LONG));
        let mut session = connect(&connector).await.expect("a session");
        let session = session.sql().expect("SQL");
        session.batch("BEGIN").await.expect("begun");
        assert!(session.in_transaction());
        let error = session.batch("INSERT INTO t VALUES (1)").await.expect_err("gone");
        assert!(error.definite && session.is_broken(), "{error}");
    })
    .expect("an event loop");
}

#[test]
fn a_program_that_writes_garbage_is_asked_nothing_more() {
    let told = "wrote what is no message of the protocol: it is done";
    check_unknown("read line; echo it is done; cat >&2", ErrorClass::Connection, told, Some(told));
    let two = r#"read line; echo '{"ask":2,"ok":{},"failed":{"class":"other","text":"x"}}'; cat >&2"#;
    let told = "is no message";
    check_unknown(two, ErrorClass::Connection, told, Some(told));
    let unknown_key = r#"read line; echo '{"ask":2,"ok":{"rows":[[1]]}}'; cat >&2"#;
    check_unknown(unknown_key, ErrorClass::Connection, told, Some(told));
}

#[test]
fn a_program_that_dies_is_told_with_its_exit_code() {
    let told = "ended (exit status: 3)";
    check_unknown("read line; exit 3", ErrorClass::Connection, told, Some(told));
    let killed = "ended (signal: 9 (SIGKILL))";
    check_unknown("read line; kill -9 $$", ErrorClass::Connection, killed, Some(killed));
}

#[test]
fn half_a_line_is_no_answer() {
    let script = r#"read line; printf '{"ask":2,"ok":{}}'; exit 0"#;
    check_unknown(script, ErrorClass::Connection, "ended (exit status: 0)", Some("ended"));
}

#[test]
fn a_line_without_end_is_given_up() {
    let told = "wrote a line longer than 67108864 bytes";
    check_unknown("read line; exec cat /dev/zero", ErrorClass::Connection, told, Some(told));
}

#[test]
fn a_question_that_is_not_answered_meets_its_time_limit_and_the_program_goes_on() {
    let (answer, failure) = asked(FOR_EVER, Duration::from_millis(200));
    let error = answer.expect_err("nothing was acknowledged");
    assert_eq!((error.class, error.definite, failure), (ErrorClass::Timeout, false, None), "{error}");
}

#[test]
fn a_second_answer_ends_the_program_and_the_first_stands() {
    let script = format!(
        r#"{GREETS}{OPENS}read line; a='{{"ask":2,"ok":{{"results":[{{"affected":1}}]}}}}'; echo "$a"; echo "$a"; cat >&2"#
    );
    block_on(async {
        let connector = connector(settings(&script), sessions(LONG));
        let mut session = connect(&connector).await.expect("a session");
        let session = session.sql().expect("SQL");
        assert_eq!(session.batch("INSERT INTO t VALUES (1)").await.expect("answered").affected(), 1);
        let error = session.batch("INSERT INTO t VALUES (2)").await.expect_err("not served any more");
        assert!(!error.definite, "{error}");
        let told = "answered question 2, which is not open";
        assert!(connector.failure().is_some_and(|failure| failure.contains(told)), "{error}");
    })
    .expect("an event loop");
}

#[test]
fn a_late_answer_to_a_question_that_was_given_up_does_no_harm() {
    let script = format!(
        r#"{GREETS}{OPENS}read line; read close; echo '{{"ask":2,"ok":{{}}}}'; read line; echo '{{"ask":3,"ok":{{}}}}'; cat >&2"#
    );
    block_on(async {
        let connector = connector(settings(&script), sessions(Duration::from_millis(300)));
        let mut session = connect(&connector).await.expect("a session");
        session.sql().expect("SQL").batch("INSERT INTO t VALUES (1)").await.expect_err("given up");
        drop(session);
        connect(&connector).await.map(drop).expect("another session");
        assert_eq!(connector.failure(), None);
    })
    .expect("an event loop");
}

fn cannot_serve(settings: Settings) -> String {
    let error = block_on(async {
        let connector = connector(settings, sessions(LONG));
        let error = connect(&connector).await.err().expect("no session").to_string();
        assert_eq!(connector.failure().map(|failure| error.contains(&failure)), Some(true), "{error}");
        error
    });
    error.expect("an event loop")
}

#[test]
fn a_program_that_cannot_serve_says_so_before_any_session() {
    let check = |script: &str, told: &str| {
        let error = cannot_serve(settings(script));
        assert!(error.contains(told), "{error}");
    };
    let refuses =
        r#"read line; echo '{"ask":0,"failed":{"class":"other","text":"no module named x"}}'; cat >&2"#;
    check(refuses, "cannot serve: no module named x");
    check(
        r#"read line; echo '{"ask":0,"ok":{"protocol":2}}'; cat >&2"#,
        "speaks version 2 of the protocol, not 1",
    );
    check("exit 1", "ended (exit status: 1)");
    let missing: Starter = Arc::new(|_| Command::new("/no/such/program").spawn());
    let error = cannot_serve(Settings { starter: missing, ..settings("") });
    assert!(error.contains("could not be started: No such file"), "{error}");
    let silent = Settings { patience: Duration::from_millis(200), ..settings(FOR_EVER) };
    let error = cannot_serve(silent);
    assert!(error.contains("did not greet within 200 ms"), "{error}");
}

#[test]
fn the_last_words_of_a_program_are_quoted() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    std::fs::write(&log, "first\nImportError: no driver\n\n").expect("written");
    let error = cannot_serve(Settings { log: Some(log), ..settings("exit 1") });
    assert!(error.contains("ended (exit status: 1): ImportError: no driver"), "{error}");
}

/// Counts what it is told.
#[derive(Default)]
struct Seen(AtomicU32, AtomicU32);

impl Accountant for Seen {
    fn begins(&self, process: u32) {
        self.0.store(process, Ordering::Release);
    }

    fn ends(&self, process: u32) {
        // Its number is still its own.
        assert!(std::path::Path::new(&format!("/proc/{process}")).exists());
        self.1.store(process, Ordering::Release);
    }
}

#[test]
fn a_program_ends_with_its_connector_whatever_it_does_and_is_accounted_for() {
    let seen = Arc::new(Seen::default());
    let deaf = format!("trap '' TERM HUP INT; {GREETS}{OPENS}while :; do sleep 1000 <&- >&-; done");
    let settings = Settings { accountant: Some(Arc::clone(&seen) as _), ..settings(&deaf) };
    block_on(async {
        let connector = connector(settings, sessions(LONG));
        connect(&connector).await.map(drop).expect("a session");
    })
    .expect("an event loop");
    let (begun, ended) = (seen.0.load(Ordering::Acquire), seen.1.load(Ordering::Acquire));
    assert!(begun > 0 && begun == ended);
    assert!(!std::path::Path::new(&format!("/proc/{begun}")).exists());
}

#[test]
fn a_program_that_ends_by_itself_is_accounted_for_before_its_number_is_free() {
    let seen = Arc::new(Seen::default());
    let settings = Settings { accountant: Some(Arc::clone(&seen) as _), ..settings("exit 1") };
    cannot_serve(settings);
    let (begun, ended) = (seen.0.load(Ordering::Acquire), seen.1.load(Ordering::Acquire));
    assert!(begun > 0 && begun == ended);
}

#[test]
fn a_node_that_takes_no_writes_is_passed_over() {
    let answers = |ask: u32, told: &str| {
        format!(r#"read line; echo '{{"ask":{ask},"ok":{{"results":[{{"rows":[["{told}"]]}}]}}}}'; "#)
    };
    let opens = |ask: u32| format!(r#"read line; echo '{{"ask":{ask},"ok":{{}}}}'; "#);
    // The first session is closed before the second is opened.
    let script =
        format!("{GREETS}{OPENS}{}read close; {}{}{FOR_EVER}", answers(2, "F"), opens(3), answers(4, "T"));
    let question = TakesWrites { query: "SELECT writes()".to_owned(), is: vec!["t".to_owned()] };
    let sessions = Sessions { takes_writes: Some(question), ..sessions(LONG) };
    let node = block_on(async {
        let connector = connector(settings(&script), sessions);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        connector.connect(&mut rng).await.map(|connected| connected.node)
    });
    assert_eq!(node.expect("an event loop"), Ok("n2".to_owned()));
}
