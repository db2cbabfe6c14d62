//! etcd's client against a make-believe node: what is known of a transaction whatever becomes of its answer, and the search
//! for the leader. What transactions do is tested with a real one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use client::etcd::EtcdConnector;
use client::key_value::{Found, Operation, REFUSED, Value};
use client::{ConnectError, Connected, Connector, Endpoint, SessionError};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::answers::wait;
use crate::etcd_server::Server;
use crate::transactions;

const PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer is waited for that never comes.
const SHORT: Duration = Duration::from_millis(300);

const LEADS: &str = r#"{"header":{"member_id":"7"},"leader":"7"}"#;
const FOLLOWS: &str = r#"{"header":{"member_id":"7"},"leader":"8"}"#;

/// What the node does with a question.
#[derive(Clone, Copy, PartialEq)]
enum Reaction {
    /// Answers, every byte by itself.
    Answers(u16, &'static str),
    HangsUp,
    IsSilent,
}

use Reaction::{Answers, HangsUp, IsSilent};

/// A node that does these things in turn, whoever asks whatever.
fn node(reactions: Vec<Reaction>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        let mut left = reactions.into_iter();
        while let Ok((mut stream, _)) = listener.accept() {
            while question(&mut stream) {
                match left.next() {
                    Some(Answers(status, body)) => answer(&mut stream, status, body),
                    Some(HangsUp) | None => break,
                    Some(IsSilent) => std::thread::sleep(PATIENCE),
                }
            }
        }
    });
    address
}

/// Reads a whole question; false at the end of the connection.
fn question(stream: &mut TcpStream) -> bool {
    let (mut text, mut byte) = (Vec::new(), [0]);
    loop {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return false;
        }
        text.push(byte[0]);
        let text = String::from_utf8_lossy(&text);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
        if body.len() == length.parse::<usize>().expect("a number") {
            return true;
        }
    }
}

/// In chunks, as Go answers with a status that is none of success.
fn answer(stream: &mut TcpStream, status: u16, body: &str) {
    let (first, second) = body.split_at(body.len() / 2);
    let text = format!(
        "HTTP/1.1 {status} x\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\nA: b\r\n\r\n",
        first.len(),
        second.len()
    );
    stream.set_nodelay(true).expect("a socket");
    for byte in text.bytes() {
        if stream.write_all(&[byte]).is_err() {
            return;
        }
    }
}

fn connect(nodes: &[(&str, SocketAddr)]) -> Result<Connected, ConnectError> {
    let endpoint = |(node, address): &(&str, SocketAddr)| Endpoint {
        node: (*node).to_owned(),
        address: (*address).into(),
    };
    let connector = EtcdConnector::new(nodes.iter().map(endpoint).collect(), PATIENCE, PATIENCE);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    wait(async { connector.connect(&mut rng).await })
}

/// What becomes of a transaction on a node that leads and then reacts so, and whether the session is broken then.
fn transacted(
    reactions: &[Reaction],
    operations: Vec<Operation>,
) -> (Result<Vec<Found>, SessionError>, bool) {
    let address = node([&[Answers(200, LEADS)], reactions].concat());
    let timeout = if reactions.contains(&IsSilent) { SHORT } else { PATIENCE };
    wait(async {
        let endpoint = Endpoint { node: "n1".to_owned(), address: address.into() };
        let connector = EtcdConnector::new(vec![endpoint], timeout, PATIENCE);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut connected = connector.connect(&mut rng).await.unwrap_or_else(|error| panic!("{error}"));
        let session = connected.session.key_value().expect("a session of keys and values");
        let result = session.transact(operations).await;
        (result, connected.session.is_broken())
    })
}

fn insert() -> Vec<Operation> {
    vec![Operation::Insert { key: "k".to_owned(), value: Value::Integer(1) }]
}

fn append() -> Vec<Operation> {
    vec![Operation::Append { key: "k".to_owned(), element: 1 }]
}

#[test]
fn thousands_of_transactions_on_etcd_do_what_the_control_database_does() {
    let test = "thousands_of_transactions_on_etcd_do_what_the_control_database_does";
    let Some(server) = Server::here(test) else { return };
    wait(async {
        let connector = EtcdConnector::new(vec![server.endpoint("n1")], PATIENCE, PATIENCE);
        let connected = connector.connect(&mut ChaCha8Rng::seed_from_u64(1)).await;
        let mut session = connected.unwrap_or_else(|error| panic!("{error}")).session;
        let session = session.key_value().expect("keys and values");
        transactions::do_what_the_control_database_does(session, 20).await;
    });
}

#[test]
fn the_node_that_leads_is_found_and_those_passed_over_are_named() {
    let leader = node(vec![Answers(200, LEADS)]);
    let found = connect(&[("n1", node(vec![Answers(200, FOLLOWS)])), ("n2", leader)]);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((found.node.as_str(), found.failed_attempts.len()), ("n2", 0));
    let nodes = [("n1", node(vec![Answers(200, FOLLOWS)])), ("n2", node(vec![HangsUp]))];
    let error = connect(&nodes).map(|_| ()).expect_err("nobody leads");
    assert_eq!((error.read_only_nodes, error.failed_attempts.len()), (vec!["n1".to_owned()], 1));
}

#[test]
fn an_insert_is_acknowledged_refused_or_left_open_as_its_answer_says() {
    let done = r#"{"succeeded":true,"responses":[{"response_put":{}}]}"#;
    assert_eq!(transacted(&[Answers(200, done)], insert()), (Ok(vec![Found::Done]), false));

    let there =
        r#"{"responses":[{"response_range":{"kvs":[{"key":"aw==","mod_revision":"3","value":"MQ=="}]}}]}"#;
    let (refused, broken) = transacted(&[Answers(200, there)], insert());
    let refused = refused.expect_err("it is there already");
    assert_eq!((refused.code.as_deref(), refused.definite, broken), (Some(REFUSED), true, false));

    let check = |reaction: Reaction, class: ErrorClass, is_broken: bool| {
        let (result, broken) = transacted(&[reaction], insert());
        let error = result.expect_err("no answer");
        assert_eq!((error.class, error.definite, broken), (class, false, is_broken), "{error}");
    };
    check(HangsUp, ErrorClass::Connection, true);
    check(IsSilent, ErrorClass::Timeout, true);
    check(Answers(503, r#"{"message":"etcdserver: leader changed","code":14}"#), ErrorClass::ReadOnly, false);
    // Acknowledged, but with nothing put: nothing definite can be said of it.
    check(Answers(200, r#"{"succeeded":true,"responses":[]}"#), ErrorClass::Other, true);
    check(Answers(200, "{}}"), ErrorClass::Other, true);
}

#[test]
fn a_transaction_that_reads_first_is_tried_again_until_nobody_came_between() {
    let read = Answers(200, r#"{"succeeded":true,"responses":[{"response_range":{}}]}"#);
    let met = Answers(200, "{}");
    let done = Answers(200, r#"{"succeeded":true,"responses":[{"response_put":{}}]}"#);
    assert_eq!(transacted(&[read, met, read, met, read, done], append()), (Ok(vec![Found::Done]), false));
    let (result, _) = transacted(&[read, met].repeat(10), append());
    let error = result.expect_err("always somebody");
    assert_eq!((error.class, error.definite), (ErrorClass::Serialization, true));
    // Nothing that changes anything had been asked.
    let (result, _) = transacted(&[HangsUp], append());
    assert!(result.is_err_and(|error| error.definite));
    let (result, _) = transacted(&[read, HangsUp], append());
    assert!(result.is_err_and(|error| !error.definite));
}
