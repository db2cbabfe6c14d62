//! MySQL's client against a real MariaDB: what is acknowledged, what is refused, what cannot be known. And against a
//! make-believe server: methods of authentication and errors that a lone MariaDB has not.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use client::mysql::{MysqlClient, MysqlConnector, Settings};
use client::{
    BulkLoad, Connection, Connector, Endpoint, Execution, Rows, SessionError, SqlSession, SqlValue,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::answers::{told, wait};
use crate::mariadb_server::{self, PASSWORD, Server, settings};

/// Prepares and runs one statement.
async fn run(client: &mut MysqlClient, sql: &str) -> Result<Rows, SessionError> {
    let prepared = client.prepare(&[sql]).await?;
    client.execute(prepared[0], &[]).await
}

#[test]
fn values_travel_both_ways_and_bulk_loads_arrive() {
    wait(async {
        let Some(server) = Server::here("values_travel_both_ways_and_bulk_loads_arrive", &[]).await else {
            return;
        };
        let mut client = server.client().await;
        client.batch("CREATE TABLE t (a bigint, b text)").await.expect("table");
        let select = "SELECT a, b FROM t ORDER BY a";
        let prepared = client.prepare(&["INSERT INTO t VALUES ($1, $2)", select]).await.expect("prepared");
        let strange = "it's \\ \"quoted\"\n\tünd 🦀";
        let texts = [SqlValue::Null, SqlValue::Text(strange), SqlValue::Text("")];
        for (number, text) in [i64::MIN, 7, i64::MAX].into_iter().zip(texts) {
            let rows = client.execute(prepared[0], &[SqlValue::Integer(number), text]).await.expect("insert");
            assert_eq!(rows.affected(), 1);
        }
        let expected = [(Some(i64::MIN), None), (Some(7), Some(strange)), (Some(i64::MAX), Some(""))];
        let binary = client.execute(prepared[1], &[]).await.expect("select");
        let text = client.batch(select).await.expect("select");
        for rows in [binary, text] {
            let seen: Vec<_> = (0..rows.len()).map(|row| (rows.integer(row, 0), rows.text(row, 1))).collect();
            assert_eq!((seen.as_slice(), rows.affected()), (expected.as_slice(), 3));
        }
        // Both forms of an answer give the same text, whatever the type.
        let kinds = "SELECT CAST(1.50 AS decimal(5,2)), CAST('2020-01-02 03:04:05.5' AS datetime(1)), 2.5e0, \
                     CAST(255 AS unsigned), date '2020-01-02', CAST(-3 AS signed), x'41'";
        let (text, binary) = (client.batch(kinds).await, run(&mut client, kinds).await);
        let cells = |rows: Rows| (0..7).map(|cell| rows.text(0, cell).map(str::to_owned)).collect::<Vec<_>>();
        let (text, binary) = (cells(text.expect("text")), cells(binary.expect("binary")));
        assert_eq!(text[1].as_deref().map(|time| time.trim_end_matches('0')), Some("2020-01-02 03:04:05.5"));
        assert_eq!(
            binary[1].as_deref().map(|time| time.trim_end_matches('0')),
            Some("2020-01-02 03:04:05.5")
        );
        assert_eq!((text[0].as_deref(), &text[2..]), (Some("1.50"), &binary[2..]));

        let mut number = 0;
        let mut fill = |lines: &mut Vec<u8>| {
            lines.extend_from_slice(format!("{number}\trow '{number}' \\\\\n").as_bytes());
            number += 1;
            number < 30_000
        };
        let load = BulkLoad { table: "t", columns: "a, b", is_new: false };
        assert_eq!(client.load(load, &mut fill).await.expect("loaded"), 30_000);
        let counted =
            client.batch("SELECT count(*), sum(a) FROM t WHERE b = concat('row ''', a, ''' \\\\')").await;
        let counted = counted.expect("counted");
        assert_eq!((counted.text(0, 0), counted.text(0, 1)), (Some("30000"), Some("449985000")));

        let (mut pages, mut sum) = (Vec::new(), 0);
        let mut page = |rows: &Rows| {
            pages.push(rows.len());
            sum += (0..rows.len()).filter_map(|row| rows.integer(row, 0)).sum::<i64>();
            Ok(())
        };
        let query = "SELECT a FROM t WHERE a BETWEEN 0 AND 29999 AND b <> ''";
        client.read_table(query, 8_000, &mut page).await.expect("read");
        assert_eq!((pages, sum), (vec![8_000, 8_000, 8_000, 6_001], 449_985_000 + 7));
        let large = client.batch("SELECT repeat('x', 3000000)").await.expect("large row");
        assert_eq!(large.text(0, 0).map(str::len), Some(3_000_000));
    });
}

#[test]
fn a_server_that_commits_nothing_by_itself_is_told_to() {
    wait(async {
        let Some(server) = Server::here("a_server_that_commits_nothing_by_itself_is_told_to", &[]).await
        else {
            return;
        };
        let mut admin = server.client().await;
        admin.batch("CREATE TABLE t (a bigint)").await.expect("table");
        admin.batch("SET GLOBAL autocommit = 0").await.expect("set");
        let mut client = server.client().await;
        client.batch("INSERT INTO t VALUES (1)").await.expect("inserted");
        assert!(!client.in_transaction());
        assert_eq!(admin.batch("SELECT a FROM t").await.expect("read").len(), 1);
    });
}

#[test]
fn every_failure_says_whether_the_transaction_may_have_happened() {
    wait(async {
        let test = "every_failure_says_whether_the_transaction_may_have_happened";
        let Some(mut server) = Server::here(test, &["--innodb-lock-wait-timeout=1"]).await else { return };
        let mut client = server.client().await;
        client
            .batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
            .await
            .expect("table");
        assert_eq!(told(run(&mut client, "INSERT INTO t VALUES (1)").await), "other definite 1062");
        assert_eq!(told(run(&mut client, "SELECT nothing").await), "other definite 1054");
        assert_eq!(told(client.prepare(&["SELECT 1", "SELEKT", "SELECT 2"]).await), "other definite 1064");
        assert_eq!(told(run(&mut client, "SELECT 1").await), "ok", "nothing of it is left");
        assert!(!client.is_broken() && !client.in_transaction());

        // An error leaves the transaction open, and a rollback ends it.
        client.batch("BEGIN").await.expect("begin");
        assert_eq!(told(run(&mut client, "INSERT INTO t VALUES (1)").await), "other definite 1062");
        assert!(client.in_transaction());
        client.batch("ROLLBACK").await.expect("rolled back");
        assert!(!client.in_transaction());

        // A deadlock rolls one of the two back; the other's lock is free then.
        let mut other = server.client().await;
        for (session, row) in [(&mut client, 1), (&mut other, 2)] {
            session.batch("BEGIN").await.expect("begin");
            session.batch(&format!("SELECT a FROM t WHERE a = {row} FOR UPDATE")).await.expect("locked");
        }
        let (first, second) = tokio::join!(
            client.batch("SELECT a FROM t WHERE a = 2 FOR UPDATE"),
            other.batch("SELECT a FROM t WHERE a = 1 FOR UPDATE")
        );
        let mut results = [told(first), told(second)];
        results.sort();
        assert_eq!(results, ["ok", "serialization definite 1213"]);
        for session in [&mut client, &mut other] {
            session.batch("ROLLBACK").await.expect("rolled back");
        }

        // A lock that is not had in time.
        client.batch("BEGIN; UPDATE t SET a = a WHERE a = 1").await.expect("locked");
        assert_eq!(told(run(&mut other, "DELETE FROM t WHERE a = 1").await), "serialization definite 1205");
        client.batch("COMMIT").await.expect("committed");

        // No answer in time: unknown where it may commit by itself, definite within a transaction.
        let mut hasty = server.impatient_client(Duration::from_millis(300)).await;
        assert_eq!(told(run(&mut hasty, "DO SLEEP(600)").await), "timeout unknown ");
        assert!(hasty.is_broken());
        assert_eq!(told(hasty.batch("SELECT 1").await), "connection definite ");
        let mut hasty = server.impatient_client(Duration::from_millis(300)).await;
        hasty.batch("BEGIN").await.expect("begin");
        assert_eq!(told(run(&mut hasty, "DO SLEEP(600)").await), "timeout definite ");

        // The server is lost: definite before the commit was sent, unknown after it.
        let mut victim = server.client().await;
        victim.batch("BEGIN; INSERT INTO t VALUES (7)").await.expect("inserted");
        let mut committing = server.client().await;
        committing.batch("BEGIN; INSERT INTO t VALUES (8)").await.expect("inserted");
        server.kill();
        assert_eq!(told(victim.batch("INSERT INTO t VALUES (9)").await), "connection definite ");
        assert_eq!(told(committing.batch("COMMIT").await), "connection unknown ");
        assert!(victim.is_broken() && committing.is_broken());
    });
}

#[test]
fn a_flight_is_answered_in_order_and_stops_at_the_first_that_is_refused() {
    wait(async {
        let Some(server) = Server::here("a_flight_is_answered_in_order", &[]).await else { return };
        let mut client = server.client().await;
        client.batch("CREATE TABLE t (a int PRIMARY KEY, b text)").await.expect("table");
        let sql =
            ["INSERT INTO t VALUES ($1, $2)", "SELECT b FROM t WHERE a = $1", "BEGIN", "COMMIT", "ROLLBACK"];
        let ids = client.prepare(&sql).await.expect("prepared");
        let [insert, select, begin, commit, rollback] = ids.try_into().expect("five");
        let (one, two) =
            ([SqlValue::Integer(1), SqlValue::Text("it's")], [SqlValue::Integer(2), SqlValue::Null]);
        let with = |statement, parameters| Execution { statement, parameters };
        async fn fly(
            client: &mut MysqlClient,
            flight: &[Execution<'_>],
        ) -> (String, Vec<(usize, Option<String>)>) {
            let mut answered = Vec::new();
            let mut each =
                |place: usize, rows: &Rows| answered.push((place, rows.text(0, 0).map(str::to_owned)));
            let result = client.pipeline(flight, &mut each).await;
            (told(result), answered)
        }
        let seen = fly(&mut client, &[with(insert, &one), with(select, &one[..1])]).await;
        assert_eq!(seen, ("ok".to_owned(), vec![(0, None), (1, Some("it's".to_owned()))]));
        assert!(!client.in_transaction());
        // Outside a block it is one transaction: the first insert is taken back with the second.
        let seen = fly(&mut client, &[with(insert, &two), with(insert, &one), with(select, &one[..1])]).await;
        assert_eq!(seen, ("other definite 1062".to_owned(), vec![(0, None)]));
        assert!(!client.in_transaction() && !client.is_broken());
        assert_eq!(client.batch("SELECT count(*) FROM t").await.expect("counted").integer(0, 0), Some(1));
        // A block of its own: what was committed in it stays, and so the error is no longer definite.
        let flight = [with(begin, &[]), with(insert, &two), with(commit, &[]), with(insert, &one)];
        assert_eq!(fly(&mut client, &flight).await.0, "other unknown 1062");
        let flight = [with(begin, &[]), with(insert, &one)];
        assert_eq!(fly(&mut client, &flight).await.0, "other definite 1062");
        assert!(client.in_transaction(), "the block stands, as after any error of a statement");
        assert_eq!(fly(&mut client, &[with(rollback, &[])]).await.0, "ok");
        assert_eq!(client.batch("SELECT count(*) FROM t").await.expect("counted").integer(0, 0), Some(2));
    });
}

async fn connected_to(endpoints: Vec<Endpoint>, settings: Settings) -> Result<String, String> {
    let connector = MysqlConnector::new(endpoints, settings);
    let connected = connector.connect(&mut ChaCha8Rng::seed_from_u64(1)).await;
    connected.map(|connected| connected.node).map_err(|error| error.to_string())
}

#[test]
fn a_node_that_takes_no_writes_is_passed_over_and_clients_are_spread_where_any_does() {
    if !mariadb_server::is_here("a_node_that_takes_no_writes_is_passed_over") {
        return;
    }
    wait(async {
        let (reader, writer) = (Server::start(&["--read-only=1"]).await, Server::start(&[]).await);
        let endpoints = || vec![reader.endpoint("n1"), writer.endpoint("n2")];
        let patient = || settings(Duration::from_secs(60));
        assert_eq!(connected_to(endpoints(), patient()).await.as_deref(), Ok("n2"));
        let alone = connected_to(vec![reader.endpoint("n1")], patient()).await;
        assert_eq!(alone, Err("no node takes writes: n1: read-only".to_owned()));

        let of_password = |password: &str| Settings { password: Some(password.into()), ..patient() };
        let error = connected_to(endpoints(), of_password("falsch")).await.expect_err("denied");
        assert!(error.contains("1045 (28000)") && !error.contains("falsch"), "{error}");
        let stranger = Settings { user: "stranger".into(), ..patient() };
        let error = connected_to(endpoints(), stranger).await.expect_err("denied");
        assert!(error.contains("1698 (28000)"), "its method needs a Unix socket: {error}");
        assert!(!format!("{:?}", patient()).contains(PASSWORD));

        reader.client().await.batch("SET GLOBAL read_only = 0").await.expect("set");
        let spread = MysqlConnector::spread(endpoints(), patient());
        let mut nodes = Vec::new();
        for _ in 0..4 {
            nodes.push(spread.connect(&mut ChaCha8Rng::seed_from_u64(1)).await.expect("connected").node);
        }
        assert_eq!(nodes, ["n1", "n2", "n1", "n2"]);
        reader.client().await.batch("SET GLOBAL read_only = 1").await.expect("set");
        let next = spread.connect(&mut ChaCha8Rng::seed_from_u64(1)).await.expect("connected");
        assert_eq!((next.node.as_str(), next.failed_attempts.len()), ("n2", 0));
    });
}

/// A packet of this number.
fn packet(number: u8, content: &[u8]) -> Vec<u8> {
    [&[u8::try_from(content.len()).expect("short"), 0, 0, number], content].concat()
}

/// A greeting that asks for `caching_sha2_password`, with all that the client wants of a server.
fn greeting() -> Vec<u8> {
    let capabilities = 0x00AF_FFFF_u32.to_le_bytes();
    let content = [
        &b"\x0a8.0.36\0"[..],
        &[1, 0, 0, 0],
        b"12345678\0",
        &capabilities[..2],
        &[0x2D, 2, 0],
        &capabilities[2..],
        &[21],
        &[0; 10],
        b"901234567890\0",
        b"caching_sha2_password\0",
    ]
    .concat();
    packet(0, &content)
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// A server that says these things, each in answer to a packet of the client's, and then hangs up.
fn stub(answers: Vec<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(&greeting());
            for answer in answers {
                if heard(&mut stream).is_err() || stream.write_all(&answer).is_err() {
                    return;
                }
            }
            let _ = heard(&mut stream);
        }
    });
    address
}

fn heard(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut content = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8];
    stream.read_exact(&mut content).map(|()| content)
}

fn refusal(code: u16, state: &str) -> Vec<u8> {
    packet(1, &[&[0xFF][..], &code.to_le_bytes(), b"#", state.as_bytes(), b"so it is"].concat())
}

#[test]
fn a_password_that_the_server_remembers_opens_a_session_and_errors_at_commit_are_told_apart() {
    let fast = || vec![[packet(2, &[1, 3]), packet(3, OK)].concat()];
    let committed = |answer: Vec<u8>| {
        wait(async {
            let in_transaction: &[u8] = &[0, 0, 0, 3, 0, 0, 0];
            let answers = [fast(), vec![packet(1, in_transaction)], vec![answer]].concat();
            let client = MysqlClient::connect(stub(answers), &settings(Duration::from_secs(5))).await;
            let mut client = client.unwrap_or_else(|error| panic!("{error}"));
            client.batch("BEGIN").await.expect("begun");
            assert!(client.in_transaction());
            told(client.batch("COMMIT").await)
        })
    };
    assert_eq!(committed(packet(1, OK)), "ok");
    // Galera: failed certification; the node left its group before; and while the commit was under way.
    assert_eq!(committed(refusal(1213, "40001")), "serialization definite 1213");
    assert_eq!(committed(refusal(1047, "08S01")), "read-only definite 1047");
    assert_eq!(committed(refusal(1180, "HY000")), "other unknown 1180");
    assert_eq!(committed(refusal(1053, "08S01")), "connection unknown 1053");
    assert_eq!(committed(refusal(1317, "70100")), "other unknown 1317");
    assert_eq!(committed(vec![]), "timeout unknown ");
    assert_eq!(committed(packet(1, &[0xFB])), "connection unknown ");
    assert_eq!(committed(packet(1, &[0xFF, 1])), "connection unknown ");
    // Hung up in the middle of an answer.
    assert_eq!(committed(vec![7, 0, 0, 1, 0]), "timeout unknown ");

    let login = |answers: Vec<Vec<u8>>| {
        wait(async {
            let error = MysqlClient::connect(stub(answers), &settings(Duration::from_secs(5))).await.err();
            let error = error.expect("no session");
            (told::<()>(Err(error.clone())), error.message)
        })
    };
    let switch = [&[0xFE][..], b"mysql_clear_password\0", b""].concat();
    let (refused, message) = login(vec![packet(2, &switch)]);
    assert_eq!(refused, "other definite ");
    assert!(
        message.contains("mysql_clear_password is not supported, only mysql_native_password"),
        "{message}"
    );
    assert_eq!(login(vec![refusal(1040, "08004")]).0, "connection definite 1040");
    assert_eq!(login(vec![packet(2, &[0x77])]).0, "connection definite ");
}
