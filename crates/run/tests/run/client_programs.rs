//! Client programs that ship, with real drivers on a real PostgreSQL: they answer as our own client does, and loads run on
//! them with nothing lost. Programs and drivers are those of the guide, installed as a run installs them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use capabilities::file::{ClientProgram as Written, Scope};
use client::process::{ProcessConnector, Sessions, Settings, Speaks, TakesWrites, Target};
use client::{Connector as _, Dialect, Rows, Session, SessionError, SqlSession, SqlValue};
use engine::client_program::install_driver;
use load::{ClientProgram, LoadPlan, Protocol, prepare};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::program;
use crate::real_loads::server::{self, Server};
use crate::real_loads::{self, here, wait};

const PATRONI: &str = include_str!("../../../../engines/patroni.yaml");
const OWN_CLIENT: &str = "client: { protocol: postgres, user: postgres, database: postgres }\n";
const GUIDE: &str = include_str!("../../../../docs/guide/client-programs.md");

/// A program with its driver.
struct Program {
    written: &'static Written,
    settings: Settings,
}

/// A program as the guide writes it into an engine file; `None`, with a word on the test's output, where its driver is not to
/// be had. Drivers stay between runs of the tests.
fn of_the_guide(block: usize) -> Option<Program> {
    let client = GUIDE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).nth(block);
    let text = PATRONI.replace(OWN_CLIENT, client.expect("a block of the guide"));
    let engine =
        capabilities::file::read("guide", &text).unwrap_or_else(|error| panic!("{:?}", error.problems()));
    let written = engine.file.and_then(|file| file.client_program.as_ref()).expect("a client program");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let folder = match install_driver(written, &cache, &mut |_| {}) {
        Ok(folder) => folder.expect("a driver that is installed").display().to_string(),
        Err(error) => {
            eprintln!("skipped: a driver is not to be had: {error}");
            return None;
        }
    };
    Some(Program { written, settings: program::settings(written, &folder) })
}

fn dbapi() -> Option<Program> {
    of_the_guide(0)
}

fn jdbc() -> Option<Program> {
    of_the_guide(1)
}

fn takes_writes() -> TakesWrites {
    TakesWrites { query: "SELECT pg_is_in_recovery()".to_owned(), is: vec!["f".to_owned()] }
}

impl Program {
    fn connector(&self, servers: &[(&str, &Server)]) -> ProcessConnector {
        let sessions = Sessions {
            speaks: Speaks::Sql(Dialect::Postgres),
            database: "postgres".to_owned(),
            user: "postgres".to_owned(),
            password: None,
            targets: self.targets(servers),
            takes_writes: Some(takes_writes()),
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(60),
        };
        let endpoints = servers.iter().map(|(node, server)| server.endpoint(node)).collect();
        ProcessConnector::new(endpoints, self.settings.clone(), sessions, false)
    }

    fn targets(&self, servers: &[(&str, &Server)]) -> BTreeMap<String, Target> {
        servers.iter().map(|(node, server)| ((*node).to_owned(), self.target(server))).collect()
    }

    /// As the engine fills it in for a node.
    fn target(&self, server: &Server) -> Target {
        let mut scope = Scope::default();
        let known = [
            ("node.address", server.address().ip().to_string()),
            ("ports.client", server.address().port().to_string()),
        ];
        scope.values.extend(known.map(|(name, value)| (name.to_owned(), value)));
        let options = self.written.options.iter();
        let options = options.map(|(name, value)| (name.clone(), value.filled(&scope))).collect();
        Target { url: self.written.url.filled(&scope), options }
    }

    fn plan(&self, workload: &str, clients: u32, servers: &[(&str, &Server)]) -> LoadPlan {
        let program = ClientProgram {
            settings: self.settings.clone(),
            speaks: Speaks::Sql(Dialect::Postgres),
            targets: self.targets(servers),
            takes_writes: Some(takes_writes()),
            prepare: Vec::new(),
        };
        let plan = real_loads::plan(workload, &BTreeMap::new(), clients, servers);
        LoadPlan { protocol: Protocol::Process, program: Some(program), ..plan }
    }
}

async fn session(connector: &ProcessConnector) -> Session {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    loop {
        match connector.connect(&mut rng).await {
            Ok(connected) => return connected.session,
            Err(error) => assert!(error.failed_attempts.is_empty(), "{error}"),
        }
    }
}

/// What an answer says: cells as text with the number of rows touched, or an error's class, code and definiteness.
fn told(answer: &Result<Rows, SessionError>) -> String {
    match answer {
        Ok(rows) => {
            let cells = |row| {
                let texts = (0..4).map(|column| rows.text(row, column).map(str::to_owned));
                format!("{:?}", texts.collect::<Vec<_>>())
            };
            format!("{} {}", rows.affected(), (0..rows.len()).map(cells).collect::<String>())
        }
        Err(error) => format!("{} {:?} {}", error.class.name(), error.code, error.definite),
    }
}

/// What both are asked, one after the other.
const QUESTIONS: &[(&str, &[SqlValue<'_>])] = &[
    (
        "INSERT INTO asked VALUES ($1, $2)",
        &[SqlValue::Integer(1), SqlValue::Text("it's 100 %s \\ ? :1 \u{fc}")],
    ),
    ("INSERT INTO asked VALUES ($1, $2)", &[SqlValue::Integer(i64::MAX), SqlValue::Null]),
    ("INSERT INTO asked VALUES ($1, $2)", &[SqlValue::Integer(1), SqlValue::Text("again")]),
    ("SELECT n, t, n = $1, NULL FROM asked WHERE n >= $1 ORDER BY n", &[SqlValue::Integer(1)]),
    ("SELECT sum(n), count(*), '%', '?' FROM asked", &[]),
    ("UPDATE asked SET t = $2 WHERE n < $1", &[SqlValue::Integer(-1), SqlValue::Text("nobody")]),
    ("UPDATE asked SET t = t || $2 WHERE n = $1", &[SqlValue::Integer(1), SqlValue::Text("")]),
    ("SELECT nothing FROM asked", &[]),
    ("SELEKT", &[]),
    ("SELECT 1 / (n - $1) FROM asked WHERE n = $1", &[SqlValue::Integer(1)]),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", &[]),
    ("SELECT current_setting('transaction_isolation')", &[]),
    ("DELETE FROM asked", &[]),
    ("SELECT 1", &[]),
    ("ROLLBACK", &[]),
    ("BEGIN", &[]),
    ("DELETE FROM asked WHERE n = $1", &[SqlValue::Integer(1)]),
    ("ROLLBACK", &[]),
    ("SELECT count(*) FROM asked", &[]),
    ("BEGIN", &[]),
    ("DELETE FROM asked WHERE n = $1", &[SqlValue::Integer(1)]),
    ("END", &[]),
    ("SELECT count(*) FROM asked", &[]),
    ("SELECT '\\x00ff'::bytea, 1.50, true, 'x'::char(3)", &[]),
];

async fn answers(session: &mut (dyn SqlSession + '_)) -> Vec<String> {
    session
        .batch("DROP TABLE IF EXISTS asked; CREATE TABLE asked (n bigint PRIMARY KEY, t text)")
        .await
        .expect("a table");
    let mut answers = Vec::new();
    for (sql, parameters) in QUESTIONS {
        let answer = match session.prepare(&[sql]).await {
            Ok(prepared) => session.execute(prepared[0], parameters).await,
            Err(error) => Err(error),
        };
        answers.push(format!("{sql}: {} {}", told(&answer), session.in_transaction()));
    }
    answers
}

fn answers_as_our_own(program: Option<Program>) {
    let (Some(program), Some(programs)) = (program, server::programs()) else { return };
    wait(async {
        let server = Server::start(&programs, &["fsync=off"]).await;
        let ours = answers(&mut server.client().await).await;
        let connector = program.connector(&[("n1", &server)]);
        let theirs = answers(session(&connector).await.sql().expect("SQL")).await;
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
    });
}

#[test]
fn dbapi_answers_as_our_own_client_does() {
    answers_as_our_own(dbapi());
}

/// Conflicts, lost connections and nodes that take no writes.
fn tells_what_went_wrong(program: Option<Program>) {
    let (Some(program), Some(programs)) = (program, server::programs()) else { return };
    wait(async {
        let mut leader = Server::start(&programs, &["fsync=off"]).await;
        let standby = Server::standby_of(&leader).await;
        let connector = program.connector(&[("n2", &standby), ("n1", &leader)]);
        let (mut one, mut other) = (session(&connector).await, session(&connector).await);
        let (one, other) = (one.sql().expect("SQL"), other.sql().expect("SQL"));
        one.batch("CREATE TABLE t (n int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)")
            .await
            .expect("a table");
        for session in [&mut *one, &mut *other] {
            session.batch("BEGIN ISOLATION LEVEL SERIALIZABLE").await.expect("begun");
            session.batch("SELECT v FROM t").await.expect("read");
        }
        one.batch("UPDATE t SET v = 1; COMMIT").await.expect("committed");
        let conflict = other.batch("UPDATE t SET v = 2").await.expect_err("a conflict");
        assert_eq!(told(&Err(conflict)), "serialization Some(\"40001\") true");
        assert!(other.in_transaction());
        let refused = other.batch("COMMIT").await.expect_err("it would roll back and say nothing");
        assert!(refused.definite, "{refused}");
        other.batch("ROLLBACK").await.expect("rolled back");
        assert_eq!(other.batch("SELECT v FROM t").await.expect("read").integer(0, 0), Some(1));
        other.batch("BEGIN; UPDATE t SET v = 3").await.expect("under way");
        leader.kill_postmaster();
        let lost = other.batch("COMMIT").await.expect_err("nobody answers");
        assert!(!lost.definite && other.is_broken(), "{lost}");
        let lost = one.batch("SELECT v FROM t").await.expect_err("nobody answers");
        assert!(one.is_broken(), "{lost}");
        assert_eq!(connector.failure(), None, "the program goes on");
    });
}

#[test]
fn jdbc_answers_as_our_own_client_does() {
    answers_as_our_own(jdbc());
}

#[test]
fn dbapi_tells_conflicts_from_lost_connections_and_passes_standbys_over() {
    tells_what_went_wrong(dbapi());
}

#[test]
fn jdbc_tells_conflicts_from_lost_connections_and_passes_standbys_over() {
    tells_what_went_wrong(jdbc());
}

/// A load of a workload whose tables are made.
fn began(program: &Program, workload: &str, server: &Server) -> LoadPlan {
    let plan = program.plan(workload, 4, &[("n1", server)]);
    prepare(&plan, here(), &|_| {}).unwrap_or_else(|error| panic!("{workload}: {error}"));
    plan
}

fn keeps_what_it_acknowledged(program: Option<Program>) {
    let (Some(program), Some(programs)) = (program, server::programs()) else { return };
    let server = wait(Server::start(&programs, &["fsync=off", "max_wal_size=4GB"]));
    let plan = began(&program, "ledger", &server);
    real_loads::ledger_holds(&real_loads::run_well(&plan, 300, &[]), &real_loads::read(&plan));
    let plan = began(&program, "tpcb", &server);
    real_loads::tpcb_holds(&real_loads::run_well(&plan, 300, &[]), &real_loads::read(&plan));
    // What a program wrote our own client reads alike.
    let own = LoadPlan { protocol: Protocol::Postgres, program: None, ..plan.clone() };
    assert_eq!(real_loads::read(&own), real_loads::read(&plan));
}

/// The other workloads that SQL carries.
fn carries_workloads(program: Option<Program>) {
    let (Some(program), Some(programs)) = (program, server::programs()) else { return };
    let server = wait(Server::start(&programs, &["fsync=off", "max_wal_size=4GB"]));
    let plan = began(&program, "bank", &server);
    real_loads::bank_holds(&real_loads::run_until(&plan, 200, &[]), &real_loads::read(&plan));
    let plan = began(&program, "kv", &server);
    real_loads::cells_are_those_written(&real_loads::run_well(&plan, 200, &[]), &real_loads::read(&plan));
    for workload in ["append", "register", "ycsb", "iot"] {
        let plan = began(&program, workload, &server);
        let done = real_loads::run_until(&plan, 100, &[]);
        let succeeded = done.operations.iter().filter(|one| one.outcome == history::Outcome::Ok).count();
        assert!(succeeded >= 50, "{workload}: {:?}", done.operations.iter().find_map(|one| one.error));
        assert!(!real_loads::read(&plan).is_empty(), "{workload}");
    }
}

#[test]
fn loads_run_by_dbapi_and_nothing_acknowledged_is_missing() {
    keeps_what_it_acknowledged(dbapi());
}

#[test]
#[ignore = "second tier: six workloads, each with three programs"]
fn dbapi_carries_the_workloads_of_sql() {
    carries_workloads(dbapi());
}

#[test]
fn loads_run_by_jdbc_and_nothing_acknowledged_is_missing() {
    keeps_what_it_acknowledged(jdbc());
}

#[test]
#[ignore = "second tier: six workloads, each with three programs"]
fn jdbc_carries_the_workloads_of_sql() {
    carries_workloads(jdbc());
}

#[test]
fn a_load_whose_program_cannot_load_its_driver_says_so_at_once() {
    let (Some(program), Some(programs)) = (dbapi(), server::programs()) else { return };
    let server = wait(Server::start(&programs, &["fsync=off"]));
    let settings = Settings { driver: "no.such.driver".to_owned(), ..program.settings };
    let plan = Program { settings, ..program }.plan("ledger", 1, &[("n1", &server)]);
    let error = prepare(&plan, here(), &|_| {}).expect_err("no driver").to_string();
    let told = "the client program dbapi cannot serve: ModuleNotFoundError: No module named 'no'";
    assert!(error.contains(told), "{error}");
}
