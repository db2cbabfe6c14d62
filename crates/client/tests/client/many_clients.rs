//! Many clients that connect at once: how many attempts are in flight, and whom they ask.
//!
//! The servers are slow on purpose and count who waits. A real one is asked by the end-to-end tests.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use client::postgres::{Encryption, PostgresConnector, Settings};
use client::reactor::{block_on, sleep, spawn};
use client::{ConnectError, Connected, Connector, Endpoint};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::slow_server::{Manner, SlowServer};

const CLIENTS: usize = 300;
/// The bound of `client::leader_search`, and one for whoever searches.
const MOST_AT_A_NODE: usize = 65;
/// Starting a session.
const QUICK: Duration = Duration::from_millis(1);

fn connector(endpoints: Vec<Endpoint>, connect_timeout: Duration) -> Rc<PostgresConnector> {
    let settings = Settings {
        database: "postgres".into(),
        user: "postgres".into(),
        password: None,
        encryption: Encryption::Never,
        is_compatible: false,
        timeout: Duration::from_secs(60),
        connect_timeout,
    };
    Rc::new(PostgresConnector::new(endpoints, settings))
}

type Ends = Vec<Result<Connected, ConnectError>>;

/// Lets so many clients connect at once, each once; how it ended for each.
async fn all_connect(connector: &Rc<PostgresConnector>, clients: usize) -> Ends {
    let ends: Rc<RefCell<Ends>> = Rc::default();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (connector, ends) = (Rc::clone(connector), Rc::clone(&ends));
            spawn(async move {
                let mut rng = ChaCha8Rng::seed_from_u64(client as u64);
                let end = connector.connect(&mut rng).await;
                ends.borrow_mut().push(end);
            })
        })
        .collect();
    while ends.borrow().len() < clients {
        sleep(Duration::from_millis(2)).await;
    }
    drop(tasks);
    ends.take()
}

/// The nodes of those who found one, and what failed for anybody.
fn told(ends: &Ends) -> (usize, Vec<String>) {
    let found = ends.iter().filter(|end| end.as_ref().is_ok_and(|connected| connected.node == "n1")).count();
    let failures = ends.iter().flat_map(|end| match end {
        Ok(connected) => connected.failed_attempts.iter().map(|failed| format!("{failed:?}")).collect(),
        Err(error) => vec![error.to_string()],
    });
    (found, failures.collect())
}

#[test]
fn attempts_in_flight_are_bounded_and_one_client_searches_for_all() {
    let leader = SlowServer::start(Manner::Leads(QUICK));
    let standbys = [0, 1].map(|_| SlowServer::start(Manner::Follows(QUICK)));
    block_on(async {
        let endpoints = vec![standbys[0].endpoint("n2"), leader.endpoint("n1"), standbys[1].endpoint("n3")];
        let ends = all_connect(&connector(endpoints, Duration::from_secs(60)), CLIENTS).await;
        assert_eq!(told(&ends), (CLIENTS, Vec::new()));
    })
    .expect("an event loop");
    assert!(leader.most_waiting() <= MOST_AT_A_NODE, "{} waited at the leader", leader.most_waiting());
    for standby in &standbys {
        let asked = standby.accepted();
        assert!(asked < CLIENTS / 10, "a standby was asked {asked} times by {CLIENTS} clients");
    }
}

#[test]
fn clients_of_a_leader_that_fell_silent_follow_the_one_that_finds_another() {
    let old = SlowServer::start(Manner::Leads(QUICK));
    let new = SlowServer::start(Manner::Follows(QUICK));
    block_on(async {
        let connector = connector(vec![old.endpoint("n2"), new.endpoint("n1")], Duration::from_secs(3_600));
        assert_eq!(
            all_connect(&connector, 1).await[0].as_ref().map(|end| end.node.clone()).ok(),
            Some("n2".into())
        );
        let before = old.accepted();
        old.becomes(Manner::Silent);
        new.becomes(Manner::Leads(QUICK));
        // Nobody waits for the time limit of an hour.
        let ends = all_connect(&connector, CLIENTS).await;
        assert_eq!(told(&ends), (CLIENTS, Vec::new()));
        let asked = old.accepted() - before;
        assert!(asked <= MOST_AT_A_NODE, "the silent leader was asked {asked} times");
    })
    .expect("an event loop");
    assert!(new.most_waiting() <= MOST_AT_A_NODE, "{} waited at the new leader", new.most_waiting());
}

#[test]
fn a_search_that_was_not_needed_leaves_no_session_at_the_leader() {
    // Longer than its head start: it is searched elsewhere as well, and answers after all.
    let leader = SlowServer::start(Manner::Leads(Duration::from_millis(400)));
    block_on(async {
        let connector = connector(vec![leader.endpoint("n1")], Duration::from_secs(60));
        let mut sessions = all_connect(&connector, 1).await;
        sessions.extend(all_connect(&connector, 3).await);
        assert_eq!(told(&sessions), (4, Vec::new()));
        assert!(leader.accepted() > 4, "nobody searched, so that this shows nothing");
        let patience = Instant::now() + Duration::from_secs(20);
        while leader.held() != 4 {
            assert!(Instant::now() < patience, "{} connections of 4 clients", leader.held());
            sleep(Duration::from_millis(10)).await;
        }
    })
    .expect("an event loop");
}

#[test]
fn time_limits_grow_until_a_slow_server_is_in_time() {
    let slow = Duration::from_millis(400);
    let server = SlowServer::start(Manner::Leads(slow));
    block_on(async {
        let connector = connector(vec![server.endpoint("n1")], slow / 5);
        let mut failures = Vec::new();
        for _ in 0..20 {
            match all_connect(&connector, 1).await.remove(0) {
                Ok(_) => break,
                Err(error) => failures.extend(error.failed_attempts),
            }
        }
        // 80 ms and 160 ms, each with up to a quarter more, are too short; 640 ms would do, were this machine not busy.
        assert!((2..20).contains(&failures.len()), "{failures:?}");
        assert!(failures.iter().all(|failure| failure.error.class == ErrorClass::Connection), "{failures:?}");
        assert!(failures[0].error.message.contains("no connection within"), "{failures:?}");
    })
    .expect("an event loop");
}

#[test]
fn a_server_that_is_full_says_so_to_each_client_and_is_not_taken_for_lost() {
    let leader = SlowServer::start(Manner::Leads(QUICK));
    let standby = SlowServer::start(Manner::Follows(QUICK));
    block_on(async {
        let connector =
            connector(vec![leader.endpoint("n1"), standby.endpoint("n2")], Duration::from_secs(60));
        let first = all_connect(&connector, 1).await;
        leader.becomes(Manner::Full);
        let asked = standby.accepted();
        for end in all_connect(&connector, 20).await {
            let error = end.err().expect("refused");
            let is_full = |failed: &client::FailedAttempt| failed.error.code.as_deref() == Some("53300");
            assert!(error.failed_attempts.iter().all(is_full), "{error}");
            assert!(error.to_string().contains("sorry, too many clients already"), "{error}");
        }
        let asked = standby.accepted() - asked;
        assert!(asked < 10, "a standby was asked {asked} times while the leader was known");
        drop(first);
    })
    .expect("an event loop");
}
