//! The PostgreSQL client against a real server: what is acknowledged, what is refused, what cannot be known.

use std::time::Duration;

use client::postgres::{PostgresClient, PostgresConnector, Settings};
use client::reactor::sleep;
use client::{
    BulkLoad, Connection, Connector, Endpoint, Execution, SessionError, SqlSession, SqlValue, StatementId,
};
use history::ErrorClass;
use rand::{Rng, TryRng};

use crate::answers::{told, wait};
use crate::server::{self, Server, settings};

/// Chance that is none: the tests need an order, not a random one.
struct Counting(u32);

impl TryRng for Counting {
    type Error = std::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        Ok(self.0)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(u64::from(self.next_u32()) << 32 | u64::from(self.next_u32()))
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill(7);
        Ok(())
    }
}

/// Prepares and runs one statement.
async fn run(client: &mut PostgresClient, sql: &str) -> Result<client::Rows, SessionError> {
    let prepared = client.prepare(&[sql]).await?;
    client.execute(prepared[0], &[]).await
}

#[test]
fn values_travel_both_ways_and_bulk_loads_arrive() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let server = Server::start(&programs, &[]).await;
        let mut client = PostgresClient::connect_unix(&server.socket(), &settings(Duration::from_secs(60)))
            .await
            .expect("socket");
        client.batch("CREATE TABLE t (a bigint, b text)").await.expect("table");
        let prepared = client
            .prepare(&["INSERT INTO t VALUES ($1, $2)", "SELECT a, b FROM t ORDER BY a"])
            .await
            .expect("prepared");
        for (number, text) in
            [(i64::MIN, SqlValue::Null), (7, SqlValue::Text("sieben'\\")), (i64::MAX, SqlValue::Text(""))]
        {
            let rows = client.execute(prepared[0], &[SqlValue::Integer(number), text]).await.expect("insert");
            assert_eq!(rows.affected(), 1);
        }
        let rows = client.execute(prepared[1], &[]).await.expect("select");
        let seen: Vec<_> = (0..rows.len()).map(|row| (rows.integer(row, 0), rows.text(row, 1))).collect();
        let expected = [(Some(i64::MIN), None), (Some(7), Some("sieben'\\")), (Some(i64::MAX), Some(""))];
        assert_eq!(seen, expected);

        let mut number = 0;
        let mut fill = |lines: &mut Vec<u8>| {
            lines.extend_from_slice(format!("{number}\trow {number}\n").as_bytes());
            number += 1;
            number < 30_000
        };
        assert_eq!(
            client
                .load(BulkLoad { table: "t", columns: "a, b", is_new: false }, &mut fill)
                .await
                .expect("copy"),
            30_000
        );
        let rows = client
            .batch("SELECT count(*), sum(a) FROM t WHERE b LIKE 'row %'; SET search_path = public")
            .await;
        assert_eq!(rows.expect("count").text(0, 1), Some("449985000"));

        let mut bad = |lines: &mut Vec<u8>| {
            lines.extend_from_slice(b"1\tone\nnot a number\ttwo\n");
            false
        };
        let refused = client
            .load(BulkLoad { table: "t", columns: "a, b", is_new: false }, &mut bad)
            .await
            .expect_err("bad line");
        assert_eq!((refused.definite, refused.code.as_deref()), (true, Some("22P02")));
        assert!(!client.is_broken());
        assert_eq!(client.batch("SELECT count(*) FROM t").await.expect("alive").integer(0, 0), Some(30_003));
        let large = client.batch("SELECT repeat('x', 3000000)").await.expect("large row");
        assert_eq!(large.text(0, 0).map(str::len), Some(3_000_000));
    });
}

#[test]
fn every_failure_says_whether_the_transaction_may_have_happened() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let server = Server::start(&programs, &[]).await;
        let mut client = server.client().await;
        client.batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)").await.expect("table");

        assert_eq!(told(run(&mut client, "INSERT INTO t VALUES (1)").await), "other definite 23505");
        assert_eq!(told(run(&mut client, "SELECT nothing").await), "other definite 42703");
        assert!(!client.is_broken() && !client.in_transaction());

        // A commit of a failed transaction is answered with a rollback.
        client.batch("BEGIN").await.expect("begin");
        assert_eq!(told(run(&mut client, "INSERT INTO t VALUES (1)").await), "other definite 23505");
        assert!(client.in_transaction());
        assert_eq!(told(client.batch("COMMIT").await), "other definite ");
        assert!(!client.in_transaction() && !client.is_broken());

        // A serialization failure that shows at the commit itself.
        let mut other = server.client().await;
        for session in [&mut client, &mut other] {
            session.batch("BEGIN ISOLATION LEVEL SERIALIZABLE").await.expect("begin");
            session.batch("SELECT sum(a) FROM t").await.expect("read");
        }
        client.batch("INSERT INTO t VALUES (10)").await.expect("insert");
        other.batch("INSERT INTO t VALUES (11)").await.expect("insert");
        client.batch("COMMIT").await.expect("first commits");
        assert_eq!(told(run(&mut other, "COMMIT").await), "serialization definite 40001");

        // No answer in time: unknown where it may commit by itself, definite within a transaction.
        let mut hasty = server.impatient_client(Duration::from_millis(200)).await;
        assert_eq!(told(run(&mut hasty, "SELECT pg_sleep(600)").await), "timeout unknown ");
        assert!(hasty.is_broken());
        assert_eq!(
            told(hasty.batch("SELECT 1").await),
            "connection definite ",
            "a broken session asks nothing"
        );
        let mut hasty = server.impatient_client(Duration::from_millis(200)).await;
        hasty.batch("BEGIN").await.expect("begin");
        assert_eq!(told(run(&mut hasty, "SELECT pg_sleep(600)").await), "timeout definite ");

        // The server ends the session: definite before the commit was sent, unknown after an autocommitting statement.
        for (open, expected) in
            [("BEGIN", "connection definite 57P01"), ("SELECT 1", "connection unknown 57P01")]
        {
            let mut victim = server.client().await;
            victim.batch(open).await.expect("open");
            client
                .batch(&format!("SELECT pg_terminate_backend({})", victim.process_id()))
                .await
                .expect("terminate");
            assert_eq!(told(run_raw(&mut victim).await), expected);
            assert!(victim.is_broken());
        }
    });
}

#[test]
fn a_flight_is_answered_in_order_and_judged_as_the_transactions_it_holds() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let server = Server::start(&programs, &[]).await;
        let mut client = server.client().await;
        client.batch("CREATE TABLE t (a int PRIMARY KEY)").await.expect("table");
        let statements =
            ["INSERT INTO t VALUES ($1)", "SELECT count(*) FROM t", "BEGIN", "COMMIT", "SELECT 1 / 0"];
        let ids = client.prepare(&statements).await.expect("prepared");
        let [insert, count, begin, commit, fail] = [0, 1, 2, 3, 4].map(|index| ids[index]);
        let one = |number| [SqlValue::Integer(number)];
        let mut check =
            async |flight: &[(StatementId, i64)], expected: &str, answers: &[Option<i64>], rows: i64| {
                let numbers: Vec<_> = flight.iter().map(|(_, number)| one(*number)).collect();
                let executions: Vec<Execution<'_>> = flight
                    .iter()
                    .zip(&numbers)
                    .map(|((statement, _), number)| Execution {
                        statement: *statement,
                        parameters: if *statement == insert { number } else { &[] },
                    })
                    .collect();
                let mut seen = Vec::new();
                let result = client
                    .pipeline(&executions, &mut |place, rows| {
                        assert_eq!(place, seen.len());
                        seen.push(rows.integer(0, 0));
                    })
                    .await;
                assert_eq!(told(result.map(|()| client::Rows::default())), expected, "{flight:?}");
                assert_eq!(seen, answers, "{flight:?}");
                assert!(!client.is_broken() && !client.in_transaction());
                let left = client.batch("SELECT count(*) FROM t").await.expect("count").integer(0, 0);
                assert_eq!(left, Some(rows), "{flight:?}");
            };
        check(&[(insert, 1), (count, 0), (insert, 2), (count, 0)], "ok", &[None, Some(1), None, Some(2)], 2)
            .await;
        // Outside a block a flight is one transaction, and one refusal undoes it all.
        check(&[(insert, 3), (fail, 0), (insert, 4)], "other definite 22012", &[None], 2).await;
        check(&[(begin, 0), (insert, 5), (commit, 0)], "ok", &[None, None, None], 3).await;
        // What was committed before the refusal happened.
        check(
            &[(begin, 0), (insert, 6), (commit, 0), (fail, 0)],
            "other unknown 22012",
            &[None, None, None],
            4,
        )
        .await;
        check(&[], "ok", &[], 4).await;
    });
}

/// A statement that needs no preparing round trip of its own.
async fn run_raw(client: &mut PostgresClient) -> Result<client::Rows, SessionError> {
    client.simple_query("INSERT INTO t VALUES (99)").await
}

#[test]
fn a_commit_whose_wait_for_a_standby_was_cut_short_is_not_acknowledged() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let server = Server::start(&programs, &["synchronous_standby_names=ANY 1 (nobody)"]).await;
        let mut watcher = server.client().await;
        watcher.batch("SET synchronous_commit = local").await.expect("local");
        watcher.batch("CREATE TABLE t (a int)").await.expect("table");

        for (function, expected) in
            [("pg_cancel_backend", "other unknown 01000"), ("pg_terminate_backend", "connection unknown ")]
        {
            for autocommit in [true, false] {
                let mut writer = server.client().await;
                let last = if autocommit { "INSERT INTO t VALUES (1)" } else { "END" };
                let prepared = writer.prepare(&[last]).await.expect("prepared");
                if !autocommit {
                    writer.batch("BEGIN").await.expect("begin");
                    writer.batch("INSERT INTO t VALUES (2)").await.expect("insert");
                }
                let pid = writer.process_id();
                let (seen, ()) = tokio::join!(
                    writer.execute(prepared[0], &[]),
                    act_on_waiting_commit(&mut watcher, function, pid),
                );
                // A terminated server session says nothing at all any more.
                assert_eq!(told(seen), expected, "{function}, autocommit {autocommit}");
                assert_eq!(writer.is_broken(), function == "pg_terminate_backend");
            }
        }
        // And yet it happened: exactly why "failed" would have been wrong.
        let rows = watcher.batch("SELECT count(*) FROM t").await.expect("count");
        assert_eq!(rows.integer(0, 0), Some(4));
    });
}

/// Waits until the backend waits for its standby, then calls `function` on it.
async fn act_on_waiting_commit(watcher: &mut PostgresClient, function: &str, pid: i32) {
    loop {
        let waiting = format!(
            "SELECT {function}(pid) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'SyncRep'"
        );
        if !watcher.batch(&waiting).await.expect("watch").is_empty() {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_standby_is_passed_over_and_a_dead_node_is_told_of() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let leader = Server::start(&programs, &[]).await;
        leader.client().await.batch("CREATE TABLE t (a int)").await.expect("table");
        let mut standby = Server::standby_of(&leader).await;

        let endpoints = vec![standby.endpoint("n2"), leader.endpoint("n1")];
        let connector = PostgresConnector::new(endpoints, settings(Duration::from_secs(60)));
        let mut rng = Counting(1);
        for _ in 0..8 {
            let connected = connector.connect(&mut rng).await.expect("leader found");
            assert_eq!(connected.node, "n1");
            assert_eq!(connected.failed_attempts, []);
        }
        let only_standby =
            PostgresConnector::new(vec![standby.endpoint("n2")], settings(Duration::from_secs(60)));
        let error = only_standby.connect(&mut rng).await.err().expect("no leader");
        assert_eq!(error.to_string(), "no node takes writes: n2: read-only");

        let mut reader = standby.client().await;
        assert_eq!(told(reader.batch("INSERT INTO t VALUES (1)").await), "read-only definite 25006");

        standby.kill_postmaster();
        let error = only_standby.connect(&mut rng).await.err().expect("nobody there");
        assert_eq!(
            (error.failed_attempts.len(), error.failed_attempts[0].error.class),
            (1, ErrorClass::Connection)
        );
    });
}

#[test]
fn a_node_that_never_answers_does_not_keep_the_leader_from_being_found() {
    wait(async {
        let Some(programs) = server::programs() else { return };
        let leader = Server::start(&programs, &[]).await;
        // Takes connections and says nothing: waited for one after another, each would cost its whole time limit.
        let silent: Vec<_> =
            (0..4).map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let mut endpoints: Vec<_> = silent
            .iter()
            .enumerate()
            .map(|(number, listener)| Endpoint {
                node: format!("silent-{number}"),
                address: listener.local_addr().expect("an address").into(),
            })
            .collect();
        endpoints.push(leader.endpoint("n1"));
        let forever =
            Settings { connect_timeout: Duration::from_secs(3_600), ..settings(Duration::from_secs(60)) };
        let connector = PostgresConnector::new(endpoints, forever);
        let mut rng = Counting(1);
        for _ in 0..4 {
            let connected = connector.connect(&mut rng).await.expect("leader found");
            assert_eq!((connected.node.as_str(), connected.failed_attempts.len()), ("n1", 0));
        }
    });
}

#[test]
fn a_password_is_proved_by_scram_and_a_wrong_one_refused() {
    wait(async {
        a_password_is_proved("scram-sha-256").await;
    });
}

#[test]
fn a_password_is_proved_by_md5_and_a_wrong_one_refused() {
    wait(async {
        a_password_is_proved("md5").await;
    });
}

async fn a_password_is_proved(method: &str) {
    let Some(programs) = server::programs() else { return };
    let server = Server::start(&programs, &[&format!("password_encryption={method}")]).await;
    server.client().await.batch("CREATE ROLE r LOGIN PASSWORD 'geheim'").await.expect("role");
    server.write_access_rules(&format!("host all r all {method}\nhost all postgres all trust\n"));
    server.client().await.batch("SELECT pg_reload_conf()").await.expect("reload");
    let connect = async |password: Option<&str>| {
        let settings = Settings {
            user: "r".into(),
            password: password.map(Into::into),
            ..settings(Duration::from_secs(60))
        };
        PostgresClient::connect_tcp(server.address(), &settings)
            .await
            .map(|_| ())
            .map_err(|error| error.message)
    };
    // The reload is asynchronous: until it has happened, everything is trusted.
    while connect(None).await.is_ok() {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(connect(Some("geheim")).await, Ok(()));
    let wrong = connect(Some("falsch")).await.expect_err("wrong password");
    assert!(wrong.contains("28P01"), "{wrong}");
    let none = connect(None).await.expect_err("no password");
    assert!(none.ends_with("server asks for the password of r and none is given"), "{none}");
}
