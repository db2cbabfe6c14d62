//! The control database's client against one real node of it, served by a thread of this process until the process ends.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use client::control::ControlConnector;
use client::key_value::{Found, Operation, REFUSED, Value};
use client::reactor::sleep;
use client::{Connected, Connector, Endpoint};
use control::replica::Acknowledgements;
use control::server::{Node, serve};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::answers::wait;

const PATIENCE: Duration = Duration::from_secs(5);

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("its address")
}

/// A node of a cluster of its own, or, with a peer that never answers, one that can never lead.
fn started(folder: &tempfile::TempDir, peer: Option<SocketAddr>) -> SocketAddr {
    let listen = free_address();
    let node = Node {
        name: "n1".to_owned(),
        listen,
        peers: peer.into_iter().map(|address| ("n2".to_owned(), address)).collect::<BTreeMap<_, _>>(),
        volume: folder.path().to_owned(),
        socket_directory: folder.path().to_owned(),
        acknowledgements: Acknowledgements::Followers(1),
        flaw: None,
        seed: 7,
    };
    std::thread::spawn(move || serve(&node).map(|never| match never {}));
    listen
}

async fn connected(address: SocketAddr) -> Connected {
    let endpoint = Endpoint { node: "n1".to_owned(), address: address.into() };
    let connector = ControlConnector::new(vec![endpoint], PATIENCE, PATIENCE);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match connector.connect(&mut rng).await {
            Ok(connected) => return connected,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_transaction_happens_whole_or_not_at_all_and_says_which() {
    wait(async {
        let folder = tempfile::tempdir().expect("a folder");
        let Connected { mut session, node, .. } = connected(started(&folder, None)).await;
        assert_eq!(node, "n1");
        let refusal = session.sql().err().expect("no SQL");
        assert!(refusal.definite && refusal.message.ends_with("keys and values, not of SQL"), "{refusal}");
        let session = session.key_value().expect("a session of keys and values");
        let key = || "k".to_owned();
        let add = |amount| Operation::Add { key: key(), amount, floor: Some(0) };
        assert_eq!(session.transact(vec![add(5)]).await, Ok(vec![Found::Done]));
        let both = vec![add(3), add(-9)];
        let error = session.transact(both).await.expect_err("below the floor");
        assert_eq!(
            (error.class, error.definite, error.code.as_deref()),
            (ErrorClass::Other, true, Some(REFUSED))
        );
        let read = session.transact(vec![Operation::Read { key: key() }]).await;
        assert_eq!(read, Ok(vec![Found::Value(Some(Value::Integer(5)))]), "the first step was taken back");
    });
}

#[test]
fn a_node_that_cannot_lead_is_passed_over() {
    wait(async {
        let folder = tempfile::tempdir().expect("a folder");
        let address = started(&folder, Some(free_address()));
        let endpoint = Endpoint { node: "n1".to_owned(), address: address.into() };
        let connector = ControlConnector::new(vec![endpoint], PATIENCE, PATIENCE);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let error = connector.connect(&mut rng).await.map(|_| ()).expect_err("nobody leads");
            // Until it listens, it cannot be reached.
            if error.read_only_nodes == ["n1"] {
                return;
            }
            assert!(Instant::now() < deadline, "{error}");
            sleep(Duration::from_millis(20)).await;
        }
    });
}
