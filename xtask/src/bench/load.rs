//! Client CPU for one transaction and transactions a second: our generator beside pgbench, sysbench and go-ycsb, in turn,
//! pair by pair, on the same PostgreSQL; beside sysbench on the same MariaDB, and beside
//! latte on the same node of Cassandra.
//!
//! Owns what is compared with what, and the goals; how a side is run and counted is `load_sides`'. Our side keeps full
//! histograms of every statement, the others what they keep. The server runs on loopback with fsync off, as an ordinary
//! user when we are root.

use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::load_cassandra::{Cassandra, CqlOperations, KEYS, latte_name};
use super::load_mysql::MariaDb;
use super::load_ours::Served;
use super::load_peers::{Sysbench, go_ycsb, go_ycsb_name};
use super::load_server::{SESSIONS, Server};
use super::load_sides::{Length, Peer, SYSBENCH_ROWS, Side, YCSB_RECORDS};
use super::table::{Goal, Row, conclude};

/// Scale of the TPC-B tables: as many branches as clients at most, because pgbench's transactions otherwise wait for each
/// other's branches most of the time, and what is compared is waiting.
const SCALE: &str = "64";
/// The most memory our side may have used, megabytes.
const PEAK_GOAL_MB: f64 = 15.0;
/// Transactions a second, ours by pgbench's, that count as the same; what is missing to one is noise.
const SAME_PER_S: f64 = 0.95;
/// The largest ratio of CPU time to sysbench's, on MySQL.
const MYSQL_GOAL: f64 = 0.7;
/// The largest ratio of CPU time to latte's with as many connections, on Cassandra.
const CQL_GOAL: f64 = 1.0;

/// One comparison.
struct Subject<'a> {
    what: &'a str,
    clients: u32,
    /// Our options beside clients, time and place.
    ours: &'a [&'a str],
    peer: Peer<'a>,
    peer_name: &'a str,
    /// The largest ratio of CPU time.
    goal: Option<f64>,
    /// Whether transactions a second are to be the same.
    is_as_fast: bool,
}

const TPCB: &[&str] = &["--workload", "tpcb", "--scale", SCALE, "--no-history"];
const TPCB_CHECKED: &[&str] = &["--workload", "tpcb", "--scale", SCALE];
/// pgbench's own script, in its own language, on its own tables.
const SELECT: &[&str] =
    &["--workload", "script", "--option", "scripts.0.builtin=select-only", "--scale", SCALE, "--no-history"];
/// The workload made for single keys, on a table of its own.
const KV: &[&str] = &["--workload", "kv", "--option", "read=100%", "--option", "preload=100000"];
const KV_READ: &[&str] =
    &["--workload", "kv", "--option", "read=100%", "--option", "preload=100000", "--no-history"];
const PREPARED: &[&str] = &["-M", "prepared"];
const PREPARED_SELECT: &[&str] = &["-M", "prepared", "-S"];
/// Ten statements in one flight.
const FLIGHT: usize = 10;

/// What is held against pgbench; the pipeline comes beside.
fn of_pgbench() -> Vec<Subject<'static>> {
    let subject = |what, clients, ours, theirs, goal, is_as_fast| Subject {
        what,
        clients,
        ours,
        peer: Peer::Pgbench(theirs),
        peer_name: "pgbench",
        goal,
        is_as_fast,
    };
    vec![
        subject("TPC-B, 1 connection", 1, TPCB, PREPARED, Some(0.85), true),
        subject("TPC-B, 8 connections", 8, TPCB, PREPARED, None, true),
        subject("TPC-B, 64 connections", 64, TPCB, PREPARED, Some(0.70), true),
        subject("TPC-B, 64 connections, every operation kept", 64, TPCB_CHECKED, PREPARED, None, false),
        subject("point select, 1 connection", 1, SELECT, PREPARED_SELECT, None, true),
        subject("point select, 8 connections", 8, SELECT, PREPARED_SELECT, None, true),
        subject("point select, 64 connections", 64, SELECT, PREPARED_SELECT, Some(0.80), true),
        subject("point select by kv, 64 connections", 64, KV_READ, PREPARED_SELECT, Some(0.80), false),
    ]
}

/// Parts of the bench, each named after the tool that it compares with.
const PARTS: [&str; 5] = ["pgbench", "sysbench", "go-ycsb", "sysbench-mysql", "latte"];

/// Measures and prints; only these parts, or all where none is named.
///
/// # Errors
/// When a side does not do its job, or there is no part of that name.
pub fn run(pairs: usize, seconds: u32, only: &[String]) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0 && seconds > 0, "nothing to measure: --pairs 0 or --seconds 0");
    if let Some(unknown) = only.iter().find(|name| !PARTS.contains(&name.as_str())) {
        bail!("no part of the bench is called {unknown:?}; there are {}", PARTS.join(", "));
    }
    let is_asked = |part: &str| only.is_empty() || only.iter().any(|name| name == part);
    let holdfast = crate::program::build()?;
    let bin = engine::registry::named("postgres")?.find(None).context("PostgreSQL")?.bin;
    let server = Server::start(&bin, SESSIONS)?;
    server.pgbench(&["-i", "-q", "-s", SCALE])?;
    server.holdfast(&holdfast, &[KV, &["--prepare", "--for", "1s"]].concat())?;
    let bench = Bench { server: &server, holdfast: &holdfast, pairs, seconds };
    let mut measured = Measured::default();
    for part in PARTS.into_iter().filter(|part| is_asked(part)) {
        bench.part(part, &mut measured)?;
    }
    let Measured { mut cpu, mut per_s, mut little } = measured;
    cpu.append(&mut per_s);
    cpu.append(&mut little);
    if is_asked("pgbench") {
        cpu.push(server.peak_row(&holdfast, seconds)?);
    }
    Ok(if conclude("load", &cpu)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Rows, by what they are of.
#[derive(Default)]
struct Measured {
    cpu: Vec<Row>,
    per_s: Vec<Row>,
    /// Of starting and ending.
    little: Vec<Row>,
}

/// What all comparisons share.
struct Bench<'a> {
    server: &'a Server,
    holdfast: &'a Path,
    pairs: usize,
    seconds: u32,
}

impl Bench<'_> {
    fn part(&self, part: &str, measured: &mut Measured) -> anyhow::Result<()> {
        match part {
            "sysbench" => self.compare_sysbench(measured),
            "go-ycsb" => self.compare_go_ycsb(measured),
            "sysbench-mysql" => self.compare_sysbench_on_mysql(measured),
            "latte" => self.compare_latte(measured),
            _ => {
                of_pgbench().iter().try_for_each(|subject| self.compare(subject, measured))?;
                self.compare_pipelines(measured)
            }
        }
    }

    fn compare(&self, subject: &Subject<'_>, measured: &mut Measured) -> anyhow::Result<()> {
        let served: &dyn Served = match subject.peer {
            Peer::SysbenchOn(server, _) => server,
            Peer::LatteOn(node, ..) => node,
            _ => self.server,
        };
        let ours = |length| served.ours(self.holdfast, subject.ours, subject.clients, length);
        let theirs = |length| self.server.theirs(subject.peer, subject.clients, length);
        let little = (ours(Length::Little)?, theirs(Length::Little)?);
        let length = Length::Seconds(self.seconds);
        let mut sides = Vec::new();
        // What no goal is held against gets by with fewer.
        let is_judged = subject.goal.is_some() || subject.is_as_fast;
        let pairs = if is_judged { self.pairs } else { self.pairs.div_ceil(2) };
        for pair in 0..pairs {
            // Who goes first takes turns, so that what one leaves behind favours neither.
            let both = if pair % 2 == 0 {
                let ours = ours(length)?;
                (ours, theirs(length)?)
            } else {
                let theirs = theirs(length)?;
                (ours(length)?, theirs)
            };
            let (us, them) = (both.0.us_per_transaction(little.0), both.1.us_per_transaction(little.1));
            let (what, name, ratio) = (subject.what, subject.peer_name, us / them);
            println!("{what}: ours {us:.2} us, {name} {them:.2} us, ratio {ratio:.2}");
            sides.push(both);
        }
        measured.add(subject, little, &sides);
        Ok(())
    }

    fn compare_pipelines(&self, measured: &mut Measured) -> anyhow::Result<()> {
        let select = "SELECT abalance FROM pgbench_accounts WHERE aid = :a1;\n".repeat(FLIGHT);
        let text = format!("\\set a1 random(1, 100000 * :scale)\n\\startpipeline\n{select}\\endpipeline\n");
        let script = self.server.folder.path().join("pipeline.sql");
        fs::write(&script, &text).with_context(|| format!("write {}", script.display()))?;
        let (option, file) = (format!("scripts.0.text={text}"), script.display().to_string());
        let subject = Subject {
            what: "pipeline of ten selects, 64 connections",
            clients: 64,
            ours: &["--workload", "script", "--option", &option, "--scale", SCALE, "--no-history"],
            peer: Peer::Pgbench(&["-M", "prepared", "-f", &file]),
            peer_name: "pgbench",
            goal: Some(1.0),
            is_as_fast: false,
        };
        self.compare(&subject, measured)
    }

    /// The same statement on sysbench's own table.
    fn compare_sysbench(&self, measured: &mut Measured) -> anyhow::Result<()> {
        let what = "point select, 64 connections, beside sysbench";
        let sysbench = match Sysbench::find() {
            Ok(sysbench) => sysbench,
            Err(reason) => {
                measured.without_peer(what, "sysbench", &reason);
                return Ok(());
            }
        };
        self.server.prepare_sysbench(&sysbench)?;
        let option = point_select_of_sysbench();
        let subject = Subject {
            what,
            clients: 64,
            ours: &["--workload", "script", "--option", &option, "--no-history"],
            peer: Peer::Sysbench(&sysbench),
            peer_name: "sysbench",
            goal: None,
            is_as_fast: false,
        };
        self.compare(&subject, measured)
    }

    /// The same on a MariaDB, in MySQL's protocol.
    fn compare_sysbench_on_mysql(&self, measured: &mut Measured) -> anyhow::Result<()> {
        let what = |clients: u32| match clients {
            1 => "MySQL point select, 1 connection".to_owned(),
            many => format!("MySQL point select, {many} connections"),
        };
        let both = Sysbench::find().and_then(|sysbench| Ok((MariaDb::start()?, sysbench)));
        let (server, sysbench) = match both {
            Ok(both) => both,
            Err(reason) => {
                measured.without_peer(&what(64), "sysbench, or MariaDB,", &reason);
                return Ok(());
            }
        };
        server.prepare_sysbench(&sysbench)?;
        let option = point_select_of_sysbench();
        for (clients, goal) in [(1, None), (8, None), (64, Some(MYSQL_GOAL))] {
            let subject = Subject {
                what: &what(clients),
                clients,
                ours: &["--workload", "script", "--option", &option, "--no-history"],
                peer: Peer::SysbenchOn(&server, &sysbench),
                peer_name: "sysbench, mysql",
                goal,
                is_as_fast: false,
            };
            self.compare(&subject, measured)?;
        }
        Ok(())
    }

    /// Reads and writes by key on a node of Cassandra: beside latte with as many connections, and with the single one that it
    /// has by itself, on which many requests share a system call.
    fn compare_latte(&self, measured: &mut Measured) -> anyhow::Result<()> {
        let node = match Cassandra::start(self.holdfast) {
            Ok(node) => node,
            Err(reason) => {
                measured.without_peer("CQL read by key, 64 connections", "latte, or Cassandra,", &reason);
                return Ok(());
            }
        };
        let keys = [format!("keys={KEYS}"), format!("preload={KEYS}")];
        for (asked, share, name) in
            [(CqlOperations::Reads, "read=100%", "read"), (CqlOperations::Writes, "read=0%", "write")]
        {
            let ours =
                ["--workload", "kv", "--option", share, "--option", "order=sequential", "--no-history"];
            let ours = [&ours[..], &["--option", &keys[0], "--option", &keys[1]]].concat();
            for (connections, goal) in [(64, Some(CQL_GOAL)), (1, None)] {
                let peer_name = latte_name(connections);
                let subject = Subject {
                    what: &format!("CQL {name} by key, 64 connections"),
                    clients: 64,
                    ours: &ours,
                    peer: Peer::LatteOn(&node, asked, connections),
                    peer_name: &peer_name,
                    goal,
                    is_as_fast: false,
                };
                self.compare(&subject, measured)?;
            }
        }
        Ok(())
    }

    /// Workload C on both sides, each on its own table of the same size.
    fn compare_go_ycsb(&self, measured: &mut Measured) -> anyhow::Result<()> {
        let (what, name) = ("YCSB workload C, 64 connections", go_ycsb_name());
        let program = match go_ycsb() {
            Ok(program) => program,
            Err(reason) => {
                measured.without_peer(what, &name, &reason);
                return Ok(());
            }
        };
        let records = format!("records={YCSB_RECORDS}");
        let options = ["--workload", "ycsb", "--option", "workload=c", "--option", &records];
        self.server.holdfast(self.holdfast, &[&options[..], &["--prepare", "--for", "1s"]].concat())?;
        self.server.prepare_go_ycsb(&program)?;
        let reading = [&options[..], &["--no-history"]].concat();
        let subject = Subject {
            what,
            clients: 64,
            ours: &reading,
            peer: Peer::GoYcsb(&program),
            peer_name: &name,
            goal: None,
            is_as_fast: false,
        };
        self.compare(&subject, measured)
    }
}

/// The statement of sysbench's test, as a script of ours.
fn point_select_of_sysbench() -> String {
    format!("scripts.0.text=\\set id random(1, {SYSBENCH_ROWS})\nSELECT c FROM sbtest1 WHERE id = :id;")
}

impl Measured {
    fn add(&mut self, subject: &Subject<'_>, little: (Side, Side), sides: &[(Side, Side)]) {
        let (what, name) = (subject.what, subject.peer_name);
        let cpu: Vec<(f64, f64)> = sides
            .iter()
            .map(|(ours, theirs)| (ours.us_per_transaction(little.0), theirs.us_per_transaction(little.1)))
            .collect();
        self.cpu.push(Row::of_pairs(what, name, "us", &cpu, subject.goal));
        let per_s: Vec<_> =
            sides.iter().map(|(ours, theirs)| (Some(ours.per_s), Some(theirs.per_s))).collect();
        let goal = subject.is_as_fast.then_some(Goal::RatioAtLeast(SAME_PER_S));
        self.per_s.push(Row::of_readings(&format!("{what}, throughput"), name, "/s", &per_s, goal));
        let ms = |side: Side| side.cpu.as_secs_f64() * 1e3;
        let little = [(ms(little.0), ms(little.1))];
        self.little.push(Row::of_pairs(&format!("{what}, start and end"), name, "ms", &little, None));
    }

    /// A row that says why there are no figures.
    fn without_peer(&mut self, what: &str, name: &str, reason: &anyhow::Error) {
        println!("{what}: {name} cannot be had: {reason:#}");
        let peer = format!("{name} cannot be had: {reason:#}").replace(['|', '\n'], " ");
        self.cpu.push(Row::of_readings(what, &peer, "us", &[], None));
    }
}

impl Server {
    /// The largest resident size of our generator at 64 connections.
    fn peak_row(&self, holdfast: &Path, seconds: u32) -> anyhow::Result<Row> {
        let length = format!("{seconds}s");
        let arguments = [TPCB, &["--clients", "64", "--for", &length]].concat();
        let mut command = self.command(holdfast, &arguments, &self.runs());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut peak_kb = 0.0_f64;
        // The high-water mark only grows; it is gone with the process, so that it is read again and again.
        while child.try_wait()?.is_none() {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let figure = mark.and_then(|mark| mark.split_whitespace().next()?.parse().ok());
            peak_kb = peak_kb.max(figure.unwrap_or(0.0));
            std::thread::sleep(Duration::from_millis(20));
        }
        ensure!(peak_kb > 0.0, "no high-water mark was seen");
        let pairs = [(peak_kb / 1e3, PEAK_GOAL_MB)];
        Ok(Row::of_pairs("peak memory, 64 connections", "the goal", "MB", &pairs, Some(1.0)))
    }
}
