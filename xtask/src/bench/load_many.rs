//! Many clients: what is left of the throughput of 300 clients at 1,000 and at 5,000, ours beside pgbench's, in turn, on the
//! same PostgreSQL with the same statement; and ours beside a server that does nothing.
//!
//! Owns the numbers of clients and the statement. A server with a process for each session loses throughput with many of
//! them whoever asks; pgbench shows how much of the loss is the server's, a server without work what the load generator keeps.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, ensure};

use super::load_idle_server::IdleServer;
use super::load_ours::Served;
use super::load_server::Server;
use super::load_sides::{Length, Peer};
use super::table::{Goal, Row, conclude};

/// What the others are compared with.
const FEW_CLIENTS: u32 = 300;
const MANY_CLIENTS: [u32; 2] = [1_000, 5_000];
/// The share of the throughput of few clients that is left, ours by pgbench's: at least so much.
const SHARE_GOAL: f64 = 0.9;
/// Sessions of the server beside the clients'.
const FURTHER_SESSIONS: u32 = 100;
const TABLE: &str = "DROP TABLE IF EXISTS many;\nCREATE TABLE many (k int PRIMARY KEY, v bigint NOT NULL);\n\
                     INSERT INTO many SELECT k, 0 FROM generate_series(1, 100000) k;\n";
const STATEMENT: &str = "\\set k random(1, 100000)\nUPDATE many SET v = v + 1 WHERE k = :k;\n";

/// Measures and prints.
///
/// # Errors
/// When a side does not do its job.
pub fn run(rounds: usize, seconds: u32) -> anyhow::Result<ExitCode> {
    ensure!(rounds > 0 && seconds > 0, "nothing to measure: --rounds 0 or --seconds 0");
    let holdfast = crate::program::build()?;
    let bin = engine::registry::named("postgres")?.find(None).context("PostgreSQL")?.bin;
    let most = MANY_CLIENTS.into_iter().max().unwrap_or(FEW_CLIENTS);
    let server = Server::start(&bin, most + FURTHER_SESSIONS)?;
    let file = |name: &str, text: &str| -> anyhow::Result<String> {
        let path = server.folder.path().join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path.display().to_string())
    };
    let (table, statement) = (file("table.sql", TABLE)?, file("statement.sql", STATEMENT)?);
    server.pgbench(&["-n", "-t", "1", "-f", &table])?;
    let option = format!("scripts.0.text={STATEMENT}");
    let ours = ["--workload", "script", "--option", &option, "--no-history"];
    let theirs = ["-M", "prepared", "-j", "2", "-f", &statement];
    // Ours and pgbench's, by number of clients. pgbench may not get all its sessions.
    let both = |clients: u32| -> anyhow::Result<(f64, Option<f64>)> {
        let length = Length::Seconds(seconds);
        let ours = server.ours(&holdfast, &ours, clients, length)?.per_s;
        let theirs = server.theirs(Peer::Pgbench(&theirs), clients, length).map(|side| side.per_s);
        match &theirs {
            Ok(theirs) => println!("{clients} clients: ours {ours:.0}/s, pgbench {theirs:.0}/s"),
            Err(why) => println!("{clients} clients: ours {ours:.0}/s, pgbench none: {why:#}"),
        }
        Ok((ours, theirs.ok()))
    };
    let idle = IdleServer::start(server.folder.path().join("runs-beside-idle"))?;
    let beside_idle = |clients: u32| -> anyhow::Result<f64> {
        let per_s = idle.ours(&holdfast, &ours, clients, Length::Seconds(seconds))?.per_s;
        println!("{clients} clients: ours beside a server that does nothing {per_s:.0}/s");
        Ok(per_s)
    };
    let mut found = Found::default();
    for _ in 0..rounds {
        let (few, few_beside_idle) = (both(FEW_CLIENTS)?, beside_idle(FEW_CLIENTS)?);
        for (number, clients) in MANY_CLIENTS.into_iter().enumerate() {
            let many = both(clients)?;
            let of_pgbench = many.1.zip(few.1).map(|(many, few)| many / few);
            found.shares[number].push((Some(many.0 / few.0), of_pgbench));
            found.per_s[number].push((Some(many.0), many.1));
            found.beside_idle[number].push((Some(beside_idle(clients)? / few_beside_idle), None));
        }
    }
    Ok(if conclude("load-many", &found.rows())? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Ours and the peer's, round by round, for each of [`MANY_CLIENTS`].
type Readings = [Vec<(Option<f64>, Option<f64>)>; MANY_CLIENTS.len()];

/// The readings of all rounds.
#[derive(Default)]
struct Found {
    /// What is left of the throughput of few clients,
    shares: Readings,
    /// the throughput itself,
    per_s: Readings,
    /// and what is left beside a server that does nothing.
    beside_idle: Readings,
}

impl Found {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (number, clients) in MANY_CLIENTS.into_iter().enumerate() {
            let share = format!("throughput of {clients} clients by that of {FEW_CLIENTS}");
            let goal = Some(Goal::RatioAtLeast(SHARE_GOAL));
            rows.push(Row::of_readings(&share, "pgbench", "", &self.shares[number], goal));
            let what = format!("throughput of {clients} clients");
            rows.push(Row::of_readings(&what, "pgbench", "/s", &self.per_s[number], None));
            let what = format!("{share}, beside a server that does nothing");
            rows.push(Row::of_readings(&what, "none", "", &self.beside_idle[number], None));
        }
        rows
    }
}
