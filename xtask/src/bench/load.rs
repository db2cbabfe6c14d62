//! Client CPU for one transaction: our generator beside pgbench, in turn, pair by pair, on the same PostgreSQL.
//!
//! Both are children of this process, and the kernel's account of a child that has been waited for is the yardstick
//! (getrusage(2)): all its threads, start to end. Our side keeps full histograms of every statement, pgbench its averages.
//! The server runs on loopback with fsync off, as an ordinary user when we are root.

use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::cpu_account::cpu_of_reaped_children;
use super::load_server::Server;
use super::table::{Row, conclude};

/// Scale of the TPC-B tables.
const SCALE: &str = "10";
/// The most memory our side may have used, megabytes.
const PEAK_GOAL_MB: f64 = 15.0;

/// One comparison.
struct Subject<'a> {
    what: &'static str,
    clients: u32,
    /// Our options beside clients, time and place.
    ours: &'a [&'a str],
    /// pgbench's.
    theirs: &'a [&'a str],
    goal: Option<f64>,
}

const TPCB: &[&str] = &["--workload", "tpcb", "--scale", SCALE, "--no-history"];
const TPCB_CHECKED: &[&str] = &["--workload", "tpcb", "--scale", SCALE];
/// pgbench's own script, in its own language, on its own tables.
const SELECT: &[&str] =
    &["--workload", "script", "--option", "scripts.0.builtin=select-only", "--scale", SCALE, "--no-history"];
/// Ten statements in one flight.
const PIPELINE: &str = "\\set a1 random(1, 100000 * :scale)
\\startpipeline
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
SELECT abalance FROM pgbench_accounts WHERE aid = :a1;
\\endpipeline
";

const SUBJECTS: &[Subject<'static>] = &[
    Subject {
        what: "TPC-B, 1 connection",
        clients: 1,
        ours: TPCB,
        theirs: &["-M", "prepared"],
        goal: Some(0.85),
    },
    Subject { what: "TPC-B, 8 connections", clients: 8, ours: TPCB, theirs: &["-M", "prepared"], goal: None },
    Subject {
        what: "TPC-B, 64 connections",
        clients: 64,
        ours: TPCB,
        theirs: &["-M", "prepared"],
        goal: Some(0.70),
    },
    Subject {
        what: "TPC-B, 64 connections, every operation kept",
        clients: 64,
        ours: TPCB_CHECKED,
        theirs: &["-M", "prepared"],
        goal: None,
    },
    Subject {
        what: "point select, 1 connection",
        clients: 1,
        ours: SELECT,
        theirs: &["-M", "prepared", "-S"],
        goal: None,
    },
    Subject {
        what: "point select, 64 connections",
        clients: 64,
        ours: SELECT,
        theirs: &["-M", "prepared", "-S"],
        goal: Some(0.80),
    },
];

/// What one side did.
#[derive(Debug, Clone, Copy)]
struct Side {
    transactions: f64,
    cpu: Duration,
}

impl Side {
    fn us_per_transaction(self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.transactions
    }
}

/// Measures and prints.
///
/// # Errors
/// When a side does not do its job.
pub fn run(pairs: usize, seconds: u32) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0 && seconds > 0, "nothing to measure: --pairs 0 or --seconds 0");
    let holdfast = super::build_holdfast()?;
    let bin = engine::registry::named("postgres")?.find(None).context("PostgreSQL")?.bin;
    let server = Server::start(&bin)?;
    server.pgbench(&["-i", "-q", "-s", SCALE])?;
    let script = server.folder.path().join("pipeline.sql");
    fs::write(&script, PIPELINE).with_context(|| format!("write {}", script.display()))?;
    let (option, file) = (format!("scripts.0.text={PIPELINE}"), script.display().to_string());
    let pipelined = ["--workload", "script", "--option", &option, "--scale", SCALE, "--no-history"];
    let theirs = ["-M", "prepared", "-f", &file];
    let pipelined = Subject {
        what: "pipeline of ten selects, 64 connections",
        clients: 64,
        ours: &pipelined,
        theirs: &theirs,
        goal: Some(1.0),
    };
    let mut rows = Vec::new();
    let mut throughput = Vec::new();
    for subject in SUBJECTS.iter().chain([&pipelined]) {
        let mut measured = Vec::new();
        for pair in 0..pairs {
            // Who goes first takes turns, so that what one leaves behind favours neither.
            let (ours, theirs) = if pair % 2 == 0 {
                let ours = server.ours(&holdfast, subject, seconds)?;
                (ours, server.theirs(subject, seconds)?)
            } else {
                let theirs = server.theirs(subject, seconds)?;
                (server.ours(&holdfast, subject, seconds)?, theirs)
            };
            println!(
                "{}: ours {:.2} us, pgbench {:.2} us, ratio {:.2}",
                subject.what,
                ours.us_per_transaction(),
                theirs.us_per_transaction(),
                ours.us_per_transaction() / theirs.us_per_transaction()
            );
            measured.push((ours, theirs));
        }
        let cpu: Vec<(f64, f64)> = measured
            .iter()
            .map(|(ours, theirs)| (ours.us_per_transaction(), theirs.us_per_transaction()))
            .collect();
        rows.push(Row::of_pairs(subject.what, "pgbench", "us", &cpu, subject.goal));
        let per_s: Vec<(f64, f64)> = measured
            .iter()
            .map(|(ours, theirs)| {
                (ours.transactions / f64::from(seconds), theirs.transactions / f64::from(seconds))
            })
            .collect();
        throughput.push(Row::of_pairs(
            &format!("{}, throughput", subject.what),
            "pgbench",
            "/s",
            &per_s,
            None,
        ));
    }
    rows.append(&mut throughput);
    rows.push(server.peak_row(&holdfast, seconds)?);
    // Columns that are empty, and why.
    for peer in ["sysbench", "go-ycsb"] {
        println!("{peer}: not measured here; {}", absence(peer));
    }
    Ok(if conclude("load", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn absence(program: &str) -> String {
    let on_path = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).exists()));
    if on_path {
        "it is installed, but this bench drives pgbench only".to_owned()
    } else {
        "it is not installed".to_owned()
    }
}

impl Server {
    fn ours(&self, holdfast: &Path, subject: &Subject<'_>, seconds: u32) -> anyhow::Result<Side> {
        let (clients, length) = (subject.clients.to_string(), format!("{seconds}s"));
        let before = cpu_of_reaped_children()?;
        let arguments = [subject.ours, &["--clients", &clients, "--for", &length]].concat();
        let result = self.holdfast(holdfast, &arguments)?;
        let cpu = cpu_of_reaped_children()?.saturating_sub(before);
        let load = &result["loads"][0];
        ensure!(
            load["errors"].as_object().is_some_and(serde_json::Map::is_empty),
            "errors: {}",
            load["errors"]
        );
        let transactions = load["transactions"].as_f64().context("transactions")?;
        ensure!(transactions > 0.0, "no transaction succeeded");
        Ok(Side { transactions, cpu })
    }

    fn theirs(&self, subject: &Subject<'_>, seconds: u32) -> anyhow::Result<Side> {
        let (clients, length) = (subject.clients.to_string(), seconds.to_string());
        let before = cpu_of_reaped_children()?;
        let said = self.pgbench(&[&["-n", "-c", &clients, "-T", &length], subject.theirs].concat())?;
        let cpu = cpu_of_reaped_children()?.saturating_sub(before);
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix("number of transactions actually processed: "))
            .context("pgbench's number of transactions")?;
        let transactions: f64 = line.split('/').next().unwrap_or_default().trim().parse()?;
        ensure!(transactions > 0.0, "pgbench: no transaction succeeded");
        Ok(Side { transactions, cpu })
    }

    /// The largest resident size of our generator at 64 connections.
    fn peak_row(&self, holdfast: &Path, seconds: u32) -> anyhow::Result<Row> {
        let length = format!("{seconds}s");
        let arguments = [TPCB, &["--clients", "64", "--for", &length]].concat();
        let out = self.folder.path().join("runs");
        let mut child =
            self.command(holdfast, &arguments, &out).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
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
