//! Redis' client against real servers: what a transaction does, which node is a primary, what replicas acknowledged. And
//! against a make-believe one: what is known of a transaction whatever becomes of its answer.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use client::key_value::{Found, Operation, Value};
use client::redis::{RedisConnector, Settings, TOO_FEW_REPLICAS, Wait};
use client::{ConnectError, Connected, Connector, Endpoint, Session, SessionError};
use history::ErrorClass;
use nix::sys::signal::Signal;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::answers::{told_with_session, wait};
use crate::redis_server::Server;
use crate::transactions;

const PATIENCE: Duration = Duration::from_secs(20);
/// How long an answer is waited for that never comes.
const SHORT: Duration = Duration::from_millis(300);

async fn connect(
    endpoints: Vec<Endpoint>,
    settings: Settings,
    timeout: Duration,
) -> Result<Connected, ConnectError> {
    let connector = RedisConnector::with(settings, endpoints, timeout, PATIENCE);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    connector.connect(&mut rng).await
}

async fn session_with(server: &Server, settings: Settings) -> Session {
    let connected = connect(vec![server.endpoint("n1")], settings, PATIENCE).await;
    connected.unwrap_or_else(|error| panic!("{error}")).session
}

async fn transact(session: &mut Session, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
    session.key_value().expect("keys and values").transact(operations).await
}

fn key(name: &str) -> String {
    format!("t/{name}")
}

fn write(name: &str, value: i64) -> Vec<Operation> {
    vec![Operation::Write { key: key(name), value: Value::Integer(value) }]
}

fn read(name: &str) -> Vec<Operation> {
    vec![Operation::Read { key: key(name) }]
}

#[test]
fn thousands_of_transactions_do_what_the_control_database_does() {
    let Some(server) = Server::here("thousands_of_transactions_do_what_the_control_database_does", &[])
    else {
        return;
    };
    wait(async {
        let mut session = session_with(&server, Settings::default()).await;
        let session = session.key_value().expect("keys and values");
        transactions::do_what_the_control_database_does(session, 20).await;
    });
}

#[test]
fn a_replica_is_passed_over_and_one_that_was_a_primary_says_so_and_ends_the_session() {
    let Some(primary) = Server::here("a_replica_is_passed_over", &[]) else { return };
    let replica = Server::replica_of(&primary, &[]);
    replica.wait_for_info("replication", "master_link_status:up");
    wait(async {
        let endpoints = || vec![replica.endpoint("n1"), primary.endpoint("n2")];
        let connected = connect(endpoints(), Settings::default(), PATIENCE).await;
        let Connected { mut session, node, .. } = connected.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(node, "n2");
        let alone = connect(vec![replica.endpoint("n1")], Settings::default(), PATIENCE).await;
        assert_eq!(alone.err().expect("no primary").read_only_nodes, ["n1"]);
        transact(&mut session, write("k", 1)).await.expect("written");

        // They change places, as at a failover.
        replica.cli(&["REPLICAOF", "NO", "ONE"]);
        primary.cli(&["REPLICAOF", "127.0.0.1", &replica.address().port().to_string()]);
        let error = transact(&mut session, write("k", 2)).await.expect_err("a replica now");
        let told = (error.class, error.definite, error.code.as_deref());
        assert_eq!(told, (ErrorClass::ReadOnly, true, Some("READONLY")), "{error}");
        assert!(session.is_broken(), "the primary is to be looked for elsewhere");
        let connected = connect(endpoints(), Settings::default(), PATIENCE).await;
        let connected = connected.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(connected.node, "n1");
    });
}

#[test]
fn a_write_that_too_few_replicas_had_in_time_is_indefinite_and_has_happened() {
    let Some(primary) = Server::here("a_write_that_too_few_replicas_had", &[]) else { return };
    let replica = Server::replica_of(&primary, &[]);
    replica.wait_for_info("replication", "master_link_status:up");
    let settings =
        |replicas, timeout| Settings { wait: Some(Wait { replicas, timeout }), ..Settings::default() };
    wait(async {
        let mut session = session_with(&primary, settings(1, PATIENCE)).await;
        transact(&mut session, write("k", 1)).await.expect("the replica has it");
        let mut session = session_with(&primary, settings(1, SHORT)).await;
        replica.signal(Signal::SIGSTOP);
        let error = transact(&mut session, write("k", 2)).await.expect_err("nobody else has it");
        let told = (error.class, error.definite, error.code.as_deref());
        assert_eq!(told, (ErrorClass::Timeout, false, Some(TOO_FEW_REPLICAS)), "{error}");
        assert!(!session.is_broken());
        let found = transact(&mut session, read("k")).await;
        assert_eq!(found, Ok(vec![Found::Value(Some(Value::Integer(2)))]), "a read waits for nobody");
        let refused = vec![Operation::Insert { key: key("k"), value: Value::Integer(3) }];
        let error = transact(&mut session, refused).await.expect_err("there already");
        assert!(error.definite, "what was refused wrote nothing that could be lost: {error}");
        replica.signal(Signal::SIGCONT);
    });
}

#[test]
fn a_primary_that_its_replicas_have_left_takes_no_writes_where_it_is_told_so() {
    let Some(server) = Server::here("a_primary_that_its_replicas_have_left", &[]) else { return };
    wait(async {
        for operations in [write("k", 1), vec![Operation::Add { key: key("n"), amount: 1, floor: None }]] {
            server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
            let mut session = session_with(&server, Settings::default()).await;
            server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
            let error = transact(&mut session, operations).await.expect_err("no replica");
            let told = (error.class, error.definite, error.code.as_deref());
            assert_eq!(told, (ErrorClass::ReadOnly, true, Some("NOREPLICAS")), "{error}");
            assert!(session.is_broken());
        }
        assert_eq!(server.cli(&["DBSIZE"]), "0", "nothing was written");
        let error = connect(vec![server.endpoint("n1")], Settings::default(), PATIENCE).await;
        let error = error.err().expect("it takes no writes, and is passed over");
        assert_eq!(error.read_only_nodes, ["n1"]);
    });
}

#[test]
fn a_password_is_asked_for_and_shown_to_nobody() {
    let acl = ["--requirepass", "geheim", "--user", "me", "on", ">verborgen", "~*", "&*", "+@all"];
    let Some(server) = Server::here("a_password_is_asked_for_and_shown_to_nobody", &acl) else { return };
    let settings = |user: Option<&str>, password: Option<&str>| Settings {
        user: user.map(str::to_owned),
        password: password.map(Into::into),
        wait: None,
    };
    wait(async {
        let told = async |settings: Settings| {
            assert!(!format!("{settings:?}").contains("geheim"), "{settings:?}");
            match connect(vec![server.endpoint("n1")], settings, PATIENCE).await {
                Ok(_) => "connected".to_owned(),
                Err(error) => error.failed_attempts[0].error.code.clone().unwrap_or_default(),
            }
        };
        assert_eq!(told(settings(None, Some("geheim"))).await, "connected");
        assert_eq!(told(settings(Some("me"), Some("verborgen"))).await, "connected");
        assert_eq!(told(settings(Some("me"), Some("geheim"))).await, "WRONGPASS");
        assert_eq!(told(settings(None, None)).await, "NOAUTH");
    });
}

const ROLE: &str = "*1\r\n$6\r\nmaster\r\n";
const LOADED: &str = "$3\r\n5f2\r\n";
const DONE: &str = "*2\r\n$9\r\ncommitted\r\n$4\r\ndone\r\n";

/// A node that leads, and answers every later piece of a conversation with `answer`; where there is none, it hangs up.
fn stub(answer: Option<&'static str>) -> Endpoint {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address: SocketAddr = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = talk(&mut stream, answer);
        }
    });
    Endpoint { node: "n1".to_owned(), address: address.into() }
}

fn talk(stream: &mut TcpStream, answer: Option<&str>) -> std::io::Result<()> {
    let (mut space, mut asked) = (vec![0; 64 << 10], Vec::new());
    loop {
        let count = stream.read(&mut space)?;
        if count == 0 {
            return Ok(());
        }
        asked.extend_from_slice(&space[..count]);
        let text = String::from_utf8_lossy(&asked).into_owned();
        if text.contains("SCRIPT") && text.ends_with("nobody\r\n") {
            stream.write_all(format!("{ROLE}{LOADED}:0\r\n").as_bytes())?;
        } else if text.contains("EVALSHA") {
            match answer {
                Some(answer) => stream.write_all(answer.as_bytes())?,
                None => return Ok(()),
            }
        } else {
            continue;
        }
        asked.clear();
    }
}

#[test]
fn every_answer_says_whether_the_transaction_may_have_happened() {
    let told = |answer: Option<&'static str>, settings: Settings| {
        wait(async {
            let connected = connect(vec![stub(answer)], settings, SHORT).await;
            let mut session = connected.unwrap_or_else(|error| panic!("{error}")).session;
            let result = transact(&mut session, write("k", 1)).await;
            told_with_session(result, session.is_broken())
        })
    };
    let check = |answer: Option<&'static str>, expected: &str| {
        assert_eq!(told(answer, Settings::default()), expected, "{answer:?}");
    };
    check(Some(DONE), "ok");
    check(Some("-LOADING Redis is loading the dataset in memory\r\n"), "connection definite LOADING broken");
    check(Some("-MASTERDOWN Link with MASTER is down\r\n"), "read-only definite MASTERDOWN broken");
    check(Some("-CLUSTERDOWN The cluster is down\r\n"), "read-only definite CLUSTERDOWN broken");
    check(Some("-MOVED 3999 10.0.0.2:6379\r\n"), "read-only definite MOVED broken");
    check(Some("-BUSY Redis is busy running a script.\r\n"), "other definite BUSY");
    check(Some("-ERR something\r\n"), "other unknown ERR");
    check(None, "connection unknown  broken");
    check(Some(""), "timeout unknown  broken");
    check(Some("*2\r\n$9\r\ncommitted\r\n"), "timeout unknown  broken");
    check(Some("*1\r\n$9\r\ncommitted\r\n"), "other unknown  broken");
    check(Some("HTTP/1.1 400 Bad Request\r\n"), "other unknown  broken");

    let waiting = || Settings {
        wait: Some(Wait { replicas: 2, timeout: Duration::from_millis(50) }),
        ..Settings::default()
    };
    let check = |answer: &'static str, expected: &str| {
        assert_eq!(told(Some(answer), waiting()), expected, "{answer:?}");
    };
    check("*2\r\n$9\r\ncommitted\r\n$4\r\ndone\r\n:2\r\n", "ok");
    check("*2\r\n$9\r\ncommitted\r\n$4\r\ndone\r\n:1\r\n", "timeout unknown WAIT");
    // Written, and then told to follow another: the code alone would be definite.
    check("*2\r\n$9\r\ncommitted\r\n$4\r\ndone\r\n-READONLY x\r\n", "read-only unknown READONLY broken");
    check("*2\r\n$9\r\ncommitted\r\n$4\r\ndone\r\n-UNBLOCKED x\r\n", "other unknown UNBLOCKED");
    check("-READONLY x\r\n:0\r\n", "read-only definite READONLY broken");
}
