//! A node's virtual disk beside the file system below it and beside libfuse's `passthrough_ll`, pair by pair: synced writes,
//! sequential writes and reads, CPU time of an operation, memory of a mount, PostgreSQL with pgbench.
//!
//! Owns what is compared with what. LazyFS, which loses what was not synced as a volume does, has no package anywhere; its
//! row says so.

mod database;
mod fio;
mod passthrough;
mod place;

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use disk::Flush;

use self::database::Database;
use self::fio::{Fio, Job};
use self::passthrough::Passthrough;
use self::place::Place;
use super::cpu_account::{adopt_orphans, cpu_of_descendants};
use super::table::{Goal, Row, conclude};

/// A mount may take so many megabytes.
const MEMORY_GOAL_MB: f64 = 5.0;
/// Of the peer's synced writes and sequential throughput at least so much.
const OF_PEER: f64 = 0.9;
/// Of the transactions on the file system below at least so many.
const OF_DATABASE_BELOW: f64 = 0.9;
/// A sequential write of so many megabytes a second will do whatever the peer has.
const WRITE_GOAL_MB_PER_S: f64 = 1000.0;
/// Mounts over which memory is measured.
const MOUNTS: usize = 20;
/// Pairs of short measurements of a database for each pair of the others: neighbours on the machine come and go.
const DATABASE_PAIRS: usize = 2;
/// What the file system below is called in the table.
const BELOW: &str = "the file system below";
/// Why there is no LazyFS.
const NO_LAZYFS: &str = "LazyFS: not to be had (Debian, pip and cargo have no package of it)";

/// What is measured inside the bench's own process, before any pair: fio, and the peer or why there is none.
struct Tools {
    fio: Fio,
    peer: anyhow::Result<Passthrough>,
}

/// One job on the three places.
#[derive(Debug, Clone, Copy)]
struct Measured {
    ours: Job,
    below: Option<Job>,
    peer: Option<Job>,
}

/// One measurement of a database.
#[derive(Debug, Clone, Copy)]
struct Transactions {
    per_s: f64,
    /// CPU of one: pgbench's, the server's, and that of who serves the place.
    cpu_us: f64,
    /// The last alone.
    serving_cpu_us: f64,
}

/// Measures and prints.
///
/// # Errors
/// When fio is missing or fails, or nothing can be mounted here.
pub fn run(pairs: usize, only_database: bool) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0, "nothing to measure: --pairs 0");
    if cfg!(debug_assertions) {
        return as_released(pairs, only_database);
    }
    place::enter_own_mounts().context("a mount namespace of one's own")?;
    adopt_orphans()?;
    let folder = place::folder()?;
    // A database's files belong to somebody else when this runs as root, and who serves them does too.
    place::open_to_all(folder.path())?;
    let tools = Tools {
        fio: Fio::find(&folder.path().join("fio"))?,
        peer: Passthrough::build(&folder.path().join("libfuse")),
    };
    let mut rows = Vec::new();
    if !only_database {
        rows.extend(fio_rows(&tools, pairs)?);
        let memory_mb = memory_mb(&tools.fio)?;
        rows.push(against_goal("memory of a mount after use", "MB", &[memory_mb], MEMORY_GOAL_MB));
    }
    rows.extend(database_rows(&tools, pairs)?);
    Ok(if conclude("disk", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same again, built as it is shipped: this process is the one that serves.
fn as_released(pairs: usize, only_database: bool) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--package", "xtask", "--", "bench", "disk", "--pairs"]);
    command.arg(pairs.to_string()).args(only_database.then_some("--only-database"));
    let status = command.status().context("start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn fio_rows(tools: &Tools, pairs: usize) -> anyhow::Result<Vec<Row>> {
    let peer = tools.peer_name();
    let (mut synced, mut pretended, mut write, mut read) = (vec![], vec![], vec![], vec![]);
    for pair in 0..pairs {
        eprintln!("pair {} of {pairs}", pair + 1);
        synced.push(tools.measure(fio::SYNCED, pair)?);
        let ours = tools.on_volume(fio::SYNCED, Flush::Pretended)?;
        pretended.push(Measured { ours, below: synced[pair].below, peer: None });
        write.push(tools.measure(fio::WRITE, pair)?);
        read.push(tools.measure(fio::READ, pair)?);
    }
    let iops = |job: &Job| job.operations_per_s;
    let cpu = |job: &Job| job.cpu_us_per_operation;
    let throughput = |job: &Job| job.mb_per_s;
    let below = |what: &str, unit, measured, figure| row(what, BELOW, unit, measured, figure, None);
    let beside = |what: &str, unit, measured, figure, goal| row(what, &peer, unit, measured, figure, goal);
    let of_peer = Some(Goal::RatioAtLeast(OF_PEER));
    // Either goal of the sequential write will do.
    let rates: Vec<f64> = write.iter().map(|measured: &Measured| measured.ours.mb_per_s).collect();
    let fast_enough = super::table::Spread::of(&rates).median >= WRITE_GOAL_MB_PER_S;
    Ok(vec![
        below("synced 4 KiB writes", "1/s", &synced, iops),
        beside("synced 4 KiB writes", "1/s", &synced, iops, of_peer),
        row("synced 4 KiB writes", NO_LAZYFS, "1/s", &without_peer(&synced), iops, None),
        below("synced 4 KiB write, CPU of fio and of serving", "us", &synced, cpu),
        beside("synced 4 KiB write, CPU of fio and of serving", "us", &synced, cpu, None),
        below("synced 4 KiB writes, on the volume not synced below", "1/s", &pretended, iops),
        below("sequential write of 512 MiB", "MB/s", &write, throughput),
        beside(
            "sequential write of 512 MiB (1000 MB/s would do too)",
            "MB/s",
            &write,
            throughput,
            if fast_enough { None } else { of_peer },
        ),
        below("sequential write, CPU for 1 MiB", "us", &write, cpu),
        beside("sequential write, CPU for 1 MiB", "us", &write, cpu, None),
        below("sequential read of 512 MiB", "MB/s", &read, throughput),
        beside("sequential read of 512 MiB", "MB/s", &read, throughput, of_peer),
        below("sequential read, CPU for 1 MiB", "us", &read, cpu),
        beside("sequential read, CPU for 1 MiB", "us", &read, cpu, None),
    ])
}

impl Tools {
    fn peer_name(&self) -> String {
        match &self.peer {
            Ok(peer) => format!("passthrough_ll {}", peer.version),
            Err(why) => format!("passthrough_ll: not to be had ({why:#})"),
        }
    }

    /// One job on the three places, who is first taking turns.
    fn measure(&self, job: &[&str], pair: usize) -> anyhow::Result<Measured> {
        let (mut ours, mut below, mut peer) = (None, None, None);
        for turn in 0..3 {
            if job[0] == fio::WRITE[0] {
                place::back_memory();
            }
            match (pair + turn) % 3 {
                0 => ours = Some(self.on_volume(job, Flush::Real)?),
                1 => below = Some(self.on_place(job, &Place::folder(process_owner())?)?),
                _ => {
                    if let Ok(passthrough) = &self.peer {
                        peer = Some(self.on_place(job, &Place::mirrored(passthrough, process_owner())?)?);
                    }
                }
            }
        }
        Ok(Measured { ours: ours.context("no turn was ours")?, below, peer })
    }

    fn on_volume(&self, job: &[&str], flush: Flush) -> anyhow::Result<Job> {
        self.on_place(job, &Place::volume(flush, process_owner())?)
    }

    fn on_place(&self, job: &[&str], place: &Place) -> anyhow::Result<Job> {
        let before = place.serving_cpu_s()?;
        let measured = self.fio.run(job, &place.path)?;
        Ok(measured.served_by(place.serving_cpu_s()? - before))
    }
}

fn process_owner() -> (u32, u32) {
    (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
}

/// Ours beside the file system below, or beside the peer when the row is named after anything else.
fn row(
    what: &str,
    beside: &str,
    unit: &str,
    measured: &[Measured],
    figure: fn(&Job) -> f64,
    goal: Option<Goal>,
) -> Row {
    let theirs = |measured: &Measured| if beside == BELOW { measured.below } else { measured.peer };
    let pairs: Vec<_> = measured
        .iter()
        .map(|measured| (Some(figure(&measured.ours)), theirs(measured).as_ref().map(figure)))
        .collect();
    Row::of_readings(what, beside, unit, &pairs, goal)
}

fn without_peer(measured: &[Measured]) -> Vec<Measured> {
    measured.iter().map(|measured| Measured { peer: None, ..*measured }).collect()
}

fn against_goal(what: &str, unit: &str, ours: &[f64], most: f64) -> Row {
    let pairs: Vec<_> = ours.iter().map(|ours| (Some(*ours), None)).collect();
    Row::of_readings(what, "no peer", unit, &pairs, Some(Goal::OursAtMost(most)))
}

/// TPC-B on a volume, on the file system below and on that as the peer shows it, in turn; all servers are up all the while.
fn database_rows(tools: &Tools, pairs: usize) -> anyhow::Result<Vec<Row>> {
    let facts = engine::registry::named("postgres")?;
    let installation = match facts.find(None) {
        Ok(found) => found,
        Err(_) => facts.install(&mut |step| eprintln!("{step}"))?,
    };
    let peer = tools.peer_name();
    eprintln!("PostgreSQL {}, on a volume, {BELOW}, {peer}", installation.version);
    let owner = database::owner();
    let mut databases = vec![
        Database::make(&installation, Place::volume(Flush::Real, owner)?)?,
        Database::make(&installation, Place::folder(owner)?)?,
    ];
    if let Ok(passthrough) = &tools.peer {
        databases.push(Database::make(&installation, Place::mirrored(passthrough, owner)?)?);
    }
    let mut measured = vec![Vec::new(); databases.len()];
    let pairs = pairs * DATABASE_PAIRS;
    for pair in 0..pairs {
        eprintln!("pgbench, pair {} of {pairs}", pair + 1);
        for turn in 0..databases.len() {
            let at = (pair + turn) % databases.len();
            measured[at].push(transactions(&databases[at])?);
        }
    }
    let row = |what: &str, beside: &str, unit: &str, figure: fn(&Transactions) -> f64, goal| {
        let theirs = measured.get(if beside == BELOW { 1 } else { 2 });
        let theirs = |pair: usize| theirs.and_then(|theirs| theirs.get(pair)).map(figure);
        let ours = measured[0].iter().enumerate();
        let pairs: Vec<_> = ours.map(|(pair, ours)| (Some(figure(ours)), theirs(pair))).collect();
        Row::of_readings(what, beside, unit, &pairs, goal)
    };
    let tpcb = "pgbench, TPC-B with 4 clients";
    let cpu = "the same, CPU of pgbench, server and serving";
    Ok(vec![
        row(tpcb, BELOW, "1/s", |one| one.per_s, Some(Goal::RatioAtLeast(OF_DATABASE_BELOW))),
        row(tpcb, &peer, "1/s", |one| one.per_s, None),
        row(cpu, BELOW, "us", |one| one.cpu_us, None),
        row(cpu, &peer, "us", |one| one.cpu_us, None),
        row("the same, CPU of serving", &peer, "us", |one| one.serving_cpu_us, None),
    ])
}

fn transactions(database: &Database) -> anyhow::Result<Transactions> {
    let place = database.place();
    let (descendants_before, serving_before) = (cpu_of_descendants()?.as_secs_f64(), place.serving_cpu_s()?);
    let (count, per_s) = database.transactions()?;
    let descendants_s = cpu_of_descendants()?.as_secs_f64() - descendants_before;
    let serving_s = place.serving_cpu_s()? - serving_before;
    // The peer is a process of its own, and among the descendants.
    let besides_s = if place.is_served_by_a_child() { 0.0 } else { serving_s };
    Ok(Transactions {
        per_s,
        cpu_us: (descendants_s + besides_s) * 1e6 / count,
        serving_cpu_us: serving_s * 1e6 / count,
    })
}

/// Megabytes that each of several mounts takes of this process, after fio has written to each.
fn memory_mb(fio: &Fio) -> anyhow::Result<f64> {
    let before = resident_kb()?;
    let mut mounts = Vec::new();
    for _ in 0..MOUNTS {
        let place = Place::volume(Flush::Pretended, process_owner())?;
        fio.run(fio::SOME_WORK, &place.path)?;
        mounts.push(place);
    }
    Ok((resident_kb()? - before).max(0.0) / 1e3 / MOUNTS as f64)
}

fn resident_kb() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number =
        line.and_then(|line| line.split_whitespace().next()).context("no RssAnon in /proc/self/status")?;
    Ok(number.parse()?)
}
