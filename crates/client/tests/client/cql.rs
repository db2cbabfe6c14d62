//! CQL's client against a make-believe server: what each answer says of a write, who is shown a password, and where a client
//! goes when its node is lost. And against a real Cassandra: what is written, read back and refused.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use client::cql::{Consistency, CqlClient, CqlConnector, Settings, Timestamps};
use client::{
    BulkLoad, Connected, Connection as _, Connector as _, Dialect, Endpoint, Execution, Rows, Session,
    SessionError, SqlSession as _, SqlValue,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::answers::{told_with_session as told, wait};
use crate::cassandra_server::Server;

const SHORT: Duration = Duration::from_millis(200);

fn settings(timeout: Duration) -> Settings {
    Settings {
        keyspace: "holdfast".to_owned(),
        replicas: None,
        user: String::new(),
        password: None,
        reads: Consistency::Quorum,
        reads_otherwise: None,
        writes: Consistency::Quorum,
        timestamps: Timestamps::Client,
        timeout,
        connect_timeout: Duration::from_secs(5),
    }
}

const READY: (u8, &[u8]) = (0x02, &[]);
/// A keyspace was chosen; nobody looks at its name.
const CHOSEN: (u8, &[u8]) = (0x08, &[0, 0, 0, 3, 0, 0]);
const VOID: (u8, &[u8]) = (0x08, &[0, 0, 0, 1]);
/// A statement of no parameters that answers with no rows: its identifier, then what both would be like.
const PREPARED: &[u8] = &[0, 0, 0, 4, 0, 1, b'p', 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];

/// A server of CQL that answers what is executed as it is told.
#[derive(Clone, Copy)]
struct Script {
    /// What it says to a beginning.
    greeting: (u8, &'static [u8]),
    /// What it says to a user and a password.
    login: (u8, &'static [u8]),
    /// What it says to a statement that is run; where there is nothing, it hangs up.
    answer: Option<(u8, &'static [u8])>,
}

impl Script {
    fn start(self, node: &str) -> Endpoint {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address: SocketAddr = listener.local_addr().expect("its address");
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                std::thread::spawn(move || self.talk(&mut stream));
            }
        });
        Endpoint { node: node.to_owned(), address: address.into() }
    }

    fn talk(self, stream: &mut TcpStream) -> std::io::Result<()> {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head)?;
            let [version, _, s, t, operation, length @ ..] = head;
            assert_eq!(version, 4);
            let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).expect("short")];
            stream.read_exact(&mut body)?;
            let (kind, content) = match operation {
                0x01 => self.greeting,
                0x0F if body == b"\0\0\0\x0a\0me\0geheim" => self.login,
                0x0F => (0x00, &[0, 0, 1, 0, 0, 2, b'n', b'o'][..]),
                0x07 => CHOSEN,
                0x09 => (0x08, PREPARED),
                _ => match self.answer {
                    Some(answer) => answer,
                    None => return Ok(()),
                },
            };
            let length = u32::try_from(content.len()).expect("short").to_be_bytes();
            stream.write_all(&[&[0x84, 0, s, t, kind][..], &length, content].concat())?;
        }
    }
}

fn answering(answer: Option<(u8, &'static [u8])>) -> Script {
    Script { greeting: READY, login: (0x10, &[0xFF; 4]), answer }
}

async fn connect(endpoints: Vec<Endpoint>, settings: Settings) -> Result<Connected, String> {
    let connector = CqlConnector::new(endpoints, settings);
    connector.connect(&mut ChaCha8Rng::seed_from_u64(1)).await.map_err(|error| error.to_string())
}

async fn run(session: &mut Session, cql: &str) -> Result<Rows, SessionError> {
    let session = session.sql()?;
    let prepared = session.prepare(&[cql]).await?;
    session.execute(prepared[0], &[]).await
}

const WRITE: &str = "INSERT INTO t (k) VALUES (1)";
const CONDITIONAL: &str = "INSERT INTO t (k) VALUES (1) IF NOT EXISTS";
const READ: &str = "SELECT k FROM t";

#[test]
fn every_answer_says_whether_the_write_may_have_happened() {
    const UNAVAILABLE: &[u8] = &[0, 0, 0x10, 0, 0, 1, b'x', 0, 4, 0, 0, 0, 2, 0, 0, 0, 1];
    const OVERLOADED: &[u8] = &[0, 0, 0x10, 1, 0, 1, b'x'];
    const STARTING: &[u8] = &[0, 0, 0x10, 2, 0, 1, b'x'];
    const LATE: &[u8] =
        &[0, 0, 0x11, 0, 0, 1, b'x', 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 6, b'S', b'I', b'M', b'P', b'L', b'E'];
    const SYNTAX: &[u8] = &[0, 0, 0x20, 0, 0, 1, b'x'];
    const UNPREPARED: &[u8] = &[0, 0, 0x25, 0, 0, 1, b'x', 0, 1, b'p'];
    const DEFECT: &[u8] = &[0, 0, 0, 0, 0, 1, b'x'];
    let check = |cql: &str, answer: Option<(u8, &'static [u8])>, expected: &str| {
        let seen = wait(async {
            let connected = connect(vec![answering(answer).start("n1")], settings(SHORT)).await;
            let mut session = connected.unwrap_or_else(|error| panic!("{error}")).session;
            let result = run(&mut session, cql).await;
            told(result, session.is_broken())
        });
        assert_eq!(seen, expected, "{cql}");
    };
    check(WRITE, Some(VOID), "ok");
    check(WRITE, Some((0, UNAVAILABLE)), "other definite 0x1000");
    check(CONDITIONAL, Some((0, UNAVAILABLE)), "other unknown 0x1000");
    check(WRITE, Some((0, OVERLOADED)), "other definite 0x1001");
    check(CONDITIONAL, Some((0, OVERLOADED)), "other unknown 0x1001");
    check(WRITE, Some((0, STARTING)), "connection definite 0x1002 broken");
    check(WRITE, Some((0, LATE)), "timeout unknown 0x1100");
    check(READ, Some((0, LATE)), "timeout definite 0x1100");
    check(WRITE, Some((0, SYNTAX)), "other definite 0x2000");
    check(WRITE, Some((0, UNPREPARED)), "other definite 0x2500 broken");
    check(WRITE, Some((0, DEFECT)), "other unknown 0x0000");
    check(WRITE, Some((0, &LATE[..9])), "connection unknown  broken");
    check(WRITE, None, "connection unknown  broken");
    check(READ, None, "connection definite  broken");
    // No end of a frame, an answer that is none, and one that is no frame.
    check(WRITE, Some((0x08, &[0, 0, 0, 9])), "connection unknown  broken");
    check(WRITE, Some((0x0C, &[])), "connection unknown  broken");
}

#[test]
fn an_answer_that_never_comes_or_is_another_requests_leaves_the_write_open() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = silent.local_addr().expect("its address");
    std::thread::spawn(move || {
        let (mut stream, _) = silent.accept().expect("a client");
        let mut head = [0; 9];
        for (stream_number, kind, content) in [(0, 2, &[][..]), (0, 8, PREPARED), (7, 8, VOID.1)] {
            stream.read_exact(&mut head).expect("a head");
            let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut body = vec![0; usize::try_from(length).expect("short")];
            stream.read_exact(&mut body).expect("a body");
            let length = u32::try_from(content.len()).expect("short").to_be_bytes();
            let frame = [&[0x84, 0, 0, stream_number, kind][..], &length, content].concat();
            stream.write_all(&frame).expect("sent");
        }
        let _ = stream.read(&mut head);
    });
    wait(async {
        let settings = Settings { keyspace: String::new(), ..settings(SHORT) };
        let mut client = CqlClient::connect(address, &settings).await.expect("connected");
        let prepared = client.prepare(&[WRITE]).await.expect("prepared");
        let of_another = client.execute(prepared[0], &[]).await;
        assert_eq!(told(of_another, client.is_broken()), "connection unknown  broken");
        let again = client.execute(prepared[0], &[]).await;
        assert_eq!(told(again, true), "connection definite  broken", "nothing is asked of a broken session");
    });
}

#[test]
fn a_node_is_asked_for_its_own_copy_at_node_local_and_for_its_keyspace_at_one() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let asked = |(kind, content): (u8, &[u8])| {
            let mut head = [0; 9];
            stream.read_exact(&mut head).expect("a head");
            let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut body = vec![0; usize::try_from(length).expect("short")];
            stream.read_exact(&mut body).expect("a body");
            let length = u32::try_from(content.len()).expect("short").to_be_bytes();
            let frame = [&[0x84, 0, head[2], head[3], kind][..], &length, content].concat();
            stream.write_all(&frame).expect("sent");
            body
        };
        [READY, CHOSEN, (0x08, PREPARED), VOID].map(asked)
    });
    wait(async {
        let settings = Settings { reads: Consistency::NodeLocal, ..settings(Duration::from_secs(5)) };
        let endpoint = Endpoint { node: "n1".to_owned(), address: address.into() };
        let mut session = connect(vec![endpoint], settings).await.expect("connected").session;
        run(&mut session, READ).await.expect("read");
    });
    let [_, chosen, _, read] = server.join().expect("all was asked");
    let statement = b"\0\0\0\x0eUSE \"holdfast\"";
    assert_eq!(chosen.strip_prefix(&statement[..]), Some(&[0, 1, 0][..]), "USE is refused at other levels");
    assert_eq!(read, b"\0\x01p\0\x0b\0");
}

#[test]
fn a_node_that_says_again_and_again_that_it_cannot_serve_is_left_for_the_next() {
    const UNAVAILABLE: &[u8] = &[0, 0, 0x10, 0, 0, 1, b'x', 0, 4, 0, 0, 0, 2, 0, 0, 0, 1];
    wait(async {
        let cut_off = answering(Some((0, UNAVAILABLE))).start("n1");
        let other = answering(Some(VOID)).start("n2");
        let gone = TcpListener::bind(("127.0.0.1", 0)).and_then(|gone| gone.local_addr()).expect("a port");
        let gone = Endpoint { node: "n0".to_owned(), address: gone.into() };
        let connector = CqlConnector::new(vec![gone, cut_off, other], settings(SHORT));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let Ok(Connected { mut session, node, failed_attempts }) = connector.connect(&mut rng).await else {
            panic!("two answer")
        };
        assert_eq!((node.as_str(), failed_attempts.len()), ("n1", 1), "one that is gone is passed over");
        let prepared = session.sql().expect("SQL").prepare(&[WRITE]).await.expect("prepared");
        for is_left in [false, false, true] {
            let refused = session.sql().expect("SQL").execute(prepared[0], &[]).await;
            assert_eq!((refused.is_err(), session.is_broken()), (true, is_left));
        }
        let mut nodes = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let connected = connector.connect(&mut rng).await.unwrap_or_else(|error| panic!("{error}"));
            nodes.insert(connected.node);
        }
        assert_eq!(nodes.into_iter().collect::<Vec<_>>(), ["n1", "n2"], "clients are spread");
    });
}

#[test]
fn a_password_is_shown_to_those_who_ask_for_one_in_a_known_way_only() {
    const PASSWORD: (u8, &[u8]) = (0x03, b"\0\x2forg.apache.cassandra.auth.PasswordAuthenticator");
    const OTHER: (u8, &[u8]) = (0x03, b"\0\x0fcom.example.SPY");
    let attempt = |greeting, password: Option<&str>| {
        let endpoint = Script { greeting, ..answering(Some(VOID)) }.start("n1");
        let settings = Settings {
            user: "me".to_owned(),
            password: password.map(Into::into),
            ..settings(Duration::from_secs(5))
        };
        wait(async { connect(vec![endpoint], settings).await.map(|_| ()) })
    };
    assert_eq!(attempt(PASSWORD, Some("geheim")), Ok(()));
    let refused = attempt(PASSWORD, Some("verborgen")).expect_err("refused");
    assert!(refused.contains("0x0100") && !refused.contains("verborgen"), "{refused}");
    assert!(attempt(PASSWORD, None).is_err());
    let refused = attempt(OTHER, Some("geheim")).expect_err("refused");
    assert!(refused.contains("com.example.SPY is not supported"), "{refused}");
}

#[test]
#[ignore = "boots a Cassandra: a quarter of a minute"]
fn rows_travel_both_ways_and_conditions_hold_on_a_real_cassandra() {
    let Some(servers) = Server::start(1, "rows_travel_both_ways_and_conditions_hold") else { return };
    wait(async {
        let settings = Settings { replicas: Some(3), ..settings(Duration::from_secs(60)) };
        let endpoints: Vec<Endpoint> = servers.iter().map(Server::endpoint).collect();
        let mut session = connect(endpoints, settings).await.expect("connected").session;
        let session = session.sql().expect("SQL");
        assert_eq!(session.dialect(), Dialect::Cql);
        values_travel(session).await;
        bulk_rows_arrive_page_by_page(session).await;
        conditions_hold(session).await;
        let nothing = session.pipeline(&[] as &[Execution<'_>], &mut |_, _| {}).await;
        assert_eq!(told(nothing, session.is_broken()), "other definite ");
        let refused = session.batch("SELEC k FROM t").await;
        assert_eq!(told(refused, session.is_broken()), "other definite 0x2000");
        let refused = session.batch("INSERT INTO t (nothing) VALUES (1)").await;
        assert_eq!(told(refused, session.is_broken()), "other definite 0x2200");
        session.batch("DROP TABLE t").await.expect("dropped");
    });
}

async fn values_travel(session: &mut dyn client::SqlSession) {
    let columns = "k bigint PRIMARY KEY, i int, d double, b boolean, u uuid, at timestamp, t text, v blob";
    session.batch(&format!("CREATE TABLE t ({columns})")).await.expect("a table");
    let insert = "INSERT INTO t (k, i, d, b, u, at, t, v) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let select = "SELECT k, i, d, b, u, at, t, v FROM t WHERE k = $1";
    let prepared = session.prepare(&[insert, select]).await.expect("prepared");
    let id = "00112233-4455-6677-8899-aabbccddeeff";
    let values = [
        SqlValue::Integer(i64::MIN),
        SqlValue::Integer(-5),
        SqlValue::Text("2.5"),
        SqlValue::Text("true"),
        SqlValue::Text(id),
        SqlValue::Text("1577836800000"),
        SqlValue::Text("it's ü\t\\ 🦀"),
        SqlValue::Null,
    ];
    let written = session.execute(prepared[0], &values).await.expect("written");
    assert_eq!(written.affected(), 1);
    let rows = session.execute(prepared[1], &values[..1]).await.expect("read");
    let expected = [
        Some("-9223372036854775808"),
        Some("-5"),
        Some("2.5"),
        Some("true"),
        Some(id),
        Some("1577836800000"),
        Some("it's ü\t\\ 🦀"),
        None,
    ];
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|cell| rows.text(0, cell)), expected);
    assert!(session.execute(prepared[1], &[SqlValue::Integer(0)]).await.expect("read").is_empty());
    let misfit = session.execute(prepared[1], &[SqlValue::Text("no number")]).await;
    assert_eq!(told(misfit, session.is_broken()), "other definite ");
}

async fn bulk_rows_arrive_page_by_page(session: &mut dyn client::SqlSession) {
    session.batch("CREATE TABLE many (k bigint PRIMARY KEY, t text)").await.expect("a table");
    let mut numbers = 0..5_000;
    let mut fill = |lines: &mut Vec<u8>| {
        for number in numbers.by_ref().take(70) {
            lines.extend_from_slice(format!("{number}\trow\\\\{number}\n").as_bytes());
        }
        !numbers.is_empty()
    };
    let load = BulkLoad { table: "many", columns: "k, t", is_new: true };
    assert_eq!(session.load(load, &mut fill).await.expect("loaded"), 5_000);
    for (page_rows, expected) in
        [(2_500, vec![2_500, 2_500, 0]), (4_500, vec![4_500, 500]), (9_000, vec![5_000])]
    {
        let (mut pages, mut keys) = (Vec::new(), std::collections::BTreeSet::new());
        let mut page = |rows: &Rows| {
            pages.push(rows.len());
            for row in 0..rows.len() {
                let key = rows.integer(row, 0).expect("a key");
                assert_eq!(rows.text(row, 1).map(str::to_owned), Some(format!("row\\{key}")));
                assert!(keys.insert(key), "{key} twice");
            }
            Ok(())
        };
        session.read_table("SELECT k, t FROM many", page_rows, &mut page).await.expect("read");
        assert_eq!((pages, keys.len()), (expected, 5_000));
    }
}

async fn conditions_hold(session: &mut dyn client::SqlSession) {
    session.batch("CREATE TABLE register (k int PRIMARY KEY, v int)").await.expect("a table");
    let made = session.batch("INSERT INTO register (k, v) VALUES (1, 5) IF NOT EXISTS").await.expect("made");
    let again =
        session.batch("INSERT INTO register (k, v) VALUES (1, 6) IF NOT EXISTS").await.expect("asked");
    assert_eq!((made.affected(), again.affected()), (1, 0));
    let set = "UPDATE register SET v = $1 WHERE k = 1 IF v = $2";
    let prepared = session.prepare(&[set]).await.expect("prepared");
    for (new, expected, affected) in [(7, 5, 1), (8, 5, 0), (9, 7, 1)] {
        let values = [SqlValue::Integer(new), SqlValue::Integer(expected)];
        let rows = session.execute(prepared[0], &values).await.expect("asked");
        assert_eq!(rows.affected(), affected, "{new}");
    }
    let read = session.batch("SELECT v FROM register WHERE k = 1").await.expect("read");
    assert_eq!(read.integer(0, 0), Some(9));
}
