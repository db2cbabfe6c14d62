//! Reads that go to another node than writes, on a real leader with a real standby: who answers what.

use std::time::Duration;

use client::postgres::{ReadEngines, Reads};
use client::{Connector, SqlSession, SqlValue, StatementId};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::answers::wait;
use crate::server::{self, Server, settings};

const SQL: [&str; 4] = [
    "INSERT INTO t VALUES ($1)",
    "SELECT pg_is_in_recovery()::text",
    "UPDATE t SET a = a + 1",
    "SELECT pg_is_in_recovery()::text FROM t LIMIT 1 FOR UPDATE",
];

/// Whether a query was answered by a node that follows, and by which node where that is not the leader.
async fn asked(session: &mut dyn SqlSession, statement: StatementId) -> (bool, Option<String>) {
    let rows = session.execute(statement, &[]).await.expect("answered");
    (rows.text(0, 0) == Some("true"), session.read_at().map(str::to_owned))
}

#[test]
fn queries_go_to_a_replica_and_everything_else_to_the_leader() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let leader = Server::start(&programs, &[]).await;
        leader.client().await.batch("CREATE TABLE t (a bigint)").await.expect("table");
        let standby = Server::standby_of(&leader).await;
        let endpoints = vec![leader.endpoint("n1"), standby.endpoint("n2")];
        let connector = ReadEngines::new(endpoints, settings(Duration::from_secs(60)), Reads::Replicas);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut connected = connector.connect(&mut rng).await.expect("a leader and a replica");
        assert_eq!(connected.node, "n1");
        let session = connected.session.sql().expect("SQL");
        // Prepared in two goes, so that places at the two nodes drift apart.
        let first = session.prepare(&SQL[..1]).await.expect("prepared");
        let rest = session.prepare(&SQL[1..]).await.expect("prepared");
        session.execute(first[0], &[SqlValue::Integer(7)]).await.expect("the leader takes it");
        assert_eq!(session.read_at(), None);
        assert_eq!(asked(session, rest[0]).await, (true, Some("n2".to_owned())));
        session.execute(rest[1], &[]).await.expect("the leader takes it");
        assert_eq!(asked(session, rest[2]).await, (false, None), "what locks is for the leader");
        session.batch("BEGIN").await.expect("a block");
        assert!(session.in_transaction());
        assert_eq!(asked(session, rest[0]).await, (false, None), "a block is of one node");
        session.batch("COMMIT").await.expect("committed");
        assert_eq!(asked(session, rest[0]).await, (true, Some("n2".to_owned())));
        assert!(!session.is_broken());
    });
}

#[test]
fn readers_are_given_out_in_turn_and_without_a_replica_there_is_no_session() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let leader = Server::start(&programs, &[]).await;
        let mut standby = Server::standby_of(&leader).await;
        let endpoints = || vec![leader.endpoint("n1"), standby.endpoint("n2")];
        let any = ReadEngines::new(endpoints(), settings(Duration::from_secs(60)), Reads::Any);
        let replicas = ReadEngines::new(endpoints(), settings(Duration::from_secs(60)), Reads::Replicas);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut readers = Vec::new();
        for _ in 0..4 {
            let mut connected = any.connect(&mut rng).await.expect("a session");
            let session = connected.session.sql().expect("SQL");
            let prepared = session.prepare(&SQL[1..2]).await.expect("prepared");
            readers.push(asked(session, prepared[0]).await.1);
        }
        let n2 = || Some("n2".to_owned());
        assert_eq!(readers, [None, n2(), None, n2()], "the leader and the replica in turn");
        let mut orphan = replicas.connect(&mut rng).await.expect("a session");
        let session = orphan.session.sql().expect("SQL");
        let prepared = session.prepare(&SQL[1..2]).await.expect("prepared");
        standby.kill_postmaster();
        // The reader ends as soon as it sees that its postmaster is gone; until then it may answer.
        let error = loop {
            if let Err(error) = session.execute(prepared[0], &[]).await {
                break error;
            }
        };
        assert!(error.definite && orphan.session.is_broken(), "a read leaves nothing in doubt: {error:?}");
        let error = replicas.connect(&mut rng).await.err().expect("no replica");
        assert_eq!(
            error.failed_attempts.iter().map(|failed| failed.node.as_str()).collect::<Vec<_>>(),
            ["n2"]
        );
        assert!(any.connect(&mut rng).await.is_ok(), "any node: the leader is one");
    });
}
