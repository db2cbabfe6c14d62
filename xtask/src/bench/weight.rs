//! What the lab costs the database in it: the same three nodes of PostgreSQL under the same load, in a lab and as a shell
//! script makes them on loopback and plain directories, in turn, pair by pair.
//!
//! Owns the loads, the stretch that is measured and the goals. The load generator is ours on both sides and counts on
//! both, so that the difference is the lab: network, disks, processes that watch. CPU time is that of every process on
//! either side, by the kernel's account.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use engine::Installation;
use serde_json::Value;
use tempfile::TempDir;

use super::cpu_account::{adopt_orphans, cpu_of_descendants, end_all, reap_all};
use super::shell_cluster::{self, Cluster};
use super::table::{Goal, Row, conclude};

/// Seconds before those that are measured: sessions, caches.
const WARM_UP_S: u32 = 5;
/// Network hops of one insert that a standby acknowledges: to the primary, to the standby, and back twice.
const HOPS_OF_AN_INSERT: f64 = 4.0;
/// At least so much of the script's throughput.
const THROUGHPUT_GOAL: f64 = 0.90;
/// At most so many microseconds more for each hop.
const HOP_US_GOAL: f64 = 25.0;

/// Where the data lie, on either side.
struct Media {
    /// What the lab's disks do at a sync: `site.disks.sync`.
    sync: &'static str,
    /// The folder of all data, of either side; the machine's temporary folder when absent.
    folder: Option<&'static str>,
    /// The way of the lab's packets: `site.network.path`.
    path: &'static str,
    name: &'static str,
    /// At most so many times the script's CPU time for a transaction.
    cpu_goal: f64,
}

const MEDIA: [Media; 4] = [
    Media { name: "syncs cost nothing", ..AT_NO_COST },
    Media { name: "syncs cost nothing, kernel's path", path: "kernel", ..AT_NO_COST },
    Media { name: "syncs of the machine's disk", ..ON_DISK },
    Media { name: "syncs of the machine's disk, kernel's path", path: "kernel", ..ON_DISK },
];
const AT_NO_COST: Media =
    Media { sync: "modelled", folder: Some("/dev/shm"), path: "fabric", name: "", cpu_goal: 1.15 };
const ON_DISK: Media = Media { sync: "machine", folder: None, path: "fabric", name: "", cpu_goal: 1.35 };

impl Media {
    fn make_folder(&self) -> anyhow::Result<TempDir> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("holdfast-bench-");
        let made = match self.folder {
            Some(parent) => folder.tempdir_in(parent),
            None => folder.tempdir(),
        };
        made.context("a folder")
    }
}

/// A load, as a scenario and as `holdfast load` write it.
struct Load {
    workload: &'static str,
    scale: u32,
    clients: u32,
    rate_per_s: Option<u32>,
}

/// As many transactions as there can be.
const SATURATING: Load = Load { workload: "tpcb", scale: 5, clients: 8, rate_per_s: None };
/// One insert at a time, mostly.
const PACED: Load = Load { workload: "ledger", scale: 1, clients: 16, rate_per_s: Some(200) };

/// What one side did in the stretch that is measured.
#[derive(Debug, Clone, Copy)]
struct Side {
    cpu_us_per_transaction: f64,
    transactions_per_s: f64,
    latency_us_p50: f64,
}

/// Measures and prints.
///
/// # Errors
/// When a side does not do its job.
pub fn run(pairs: usize, seconds: u32) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0 && seconds > 0, "nothing to measure: --pairs 0 or --seconds 0");
    ensure!(
        seconds.is_multiple_of(5),
        "`holdfast load` tells of every fifth second: --seconds 10, 15, 20 ..."
    );
    adopt_orphans()?;
    let holdfast = crate::program::build()?;
    let installation = engine::registry::named("postgres")?.find(None).context("PostgreSQL")?;
    println!("PostgreSQL {}, {pairs} pairs of {seconds} s", installation.version);
    let bench = Bench { holdfast: &holdfast, installation: &installation, seconds };
    let mut rows = Vec::new();
    for media in &MEDIA {
        let saturating = bench.pairs(pairs, media, &SATURATING)?;
        let paced = bench.pairs(pairs, media, &PACED)?;
        rows.extend(rows_of(media, &saturating, &paced));
    }
    Ok(if conclude("weight", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn rows_of(media: &Media, saturating: &[(Side, Side)], paced: &[(Side, Side)]) -> Vec<Row> {
    let script = "shell script on loopback";
    let row = |what: &str, unit: &str, pairs: &[(Side, Side)], of: fn(Side) -> f64, goal: Option<Goal>| {
        let readings: Vec<_> =
            pairs.iter().map(|(lab, script)| (Some(of(*lab)), Some(of(*script)))).collect();
        Row::of_readings(&format!("{what}, {}", media.name), script, unit, &readings, goal)
    };
    let added: Vec<_> = paced
        .iter()
        .map(|(lab, script)| (Some((lab.latency_us_p50 - script.latency_us_p50) / HOPS_OF_AN_INSERT), None))
        .collect();
    let cpu = |side: Side| side.cpu_us_per_transaction;
    vec![
        row("CPU of a TPC-B transaction", "us", saturating, cpu, Some(Goal::RatioAtMost(media.cpu_goal))),
        row(
            "TPC-B of 8 clients",
            "/s",
            saturating,
            |side| side.transactions_per_s,
            Some(Goal::RatioAtLeast(THROUGHPUT_GOAL)),
        ),
        row("CPU of an insert at 200/s", "us", paced, cpu, None),
        row("an insert at 200/s, p50", "us", paced, |side| side.latency_us_p50, None),
        Row::of_readings(
            &format!("added to each of its {HOPS_OF_AN_INSERT} hops, {}", media.name),
            "no peer",
            "us",
            &added,
            Some(Goal::OursAtMost(HOP_US_GOAL)),
        ),
    ]
}

struct Bench<'a> {
    holdfast: &'a Path,
    installation: &'a Installation,
    seconds: u32,
}

impl Bench<'_> {
    /// Lab and script, in turn. Who goes first changes from pair to pair.
    fn pairs(&self, pairs: usize, media: &Media, load: &Load) -> anyhow::Result<Vec<(Side, Side)>> {
        (0..pairs)
            .map(|pair| {
                let (lab, script) = if pair % 2 == 0 {
                    let lab = self.in_a_lab(media, load)?;
                    (lab, self.by_a_script(media, load)?)
                } else {
                    let script = self.by_a_script(media, load)?;
                    (self.in_a_lab(media, load)?, script)
                };
                println!("{}, {}: lab {lab:.0?}; script {script:.0?}", load.workload, media.name);
                Ok((lab, script))
            })
            .collect()
    }

    fn in_a_lab(&self, media: &Media, load: &Load) -> anyhow::Result<Side> {
        let folder = media.make_folder()?;
        let scenario = folder.path().join("weight.yaml");
        fs::write(&scenario, scenario_text(media, load, self.seconds))?;
        let out = folder.path().join("runs");
        let mut command = Command::new(self.holdfast);
        command.arg("run").arg(&scenario).arg("--out").arg(&out).args(["--seed", "1"]);
        let cpu = cpu_between(&mut command, "phase measured for", "phase rest for");
        reap_all();
        side(&out.join("weight"), cpu?)
    }

    fn by_a_script(&self, media: &Media, load: &Load) -> anyhow::Result<Side> {
        let folder = media.make_folder()?;
        let Cluster { mut script, port } = shell_cluster::command(self.installation, folder.path())?;
        let mut cluster = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start sh")?;
        let measured = await_cluster(&mut cluster).and_then(|()| self.load_on(port, (media, load)));
        // The end of its input ends the cluster.
        drop(cluster.stdin.take());
        if measured.is_err() {
            end_all()?;
        }
        reap_all();
        measured
    }

    fn load_on(&self, port: u16, (media, load): (&Media, &Load)) -> anyhow::Result<Side> {
        // Its run directory lies on what the lab's lies on.
        let out = media.make_folder()?;
        let mut command = Command::new(self.holdfast);
        command.args(["load", "--workload", load.workload, "--prepare", "--seed", "1"]);
        command.args(["--url", &format!("postgres://holdfast@127.0.0.2:{port}/postgres")]);
        command.args(["--clients", &load.clients.to_string(), "--scale", &load.scale.to_string()]);
        command.args(["--warm-up", &format!("{WARM_UP_S}s"), "--for", &format!("{}s", self.seconds)]);
        if let Some(rate) = load.rate_per_s {
            command.args(["--rate", &format!("{rate}/s")]);
        }
        command.arg("--out").arg(out.path());
        let of_s = WARM_UP_S + self.seconds;
        let begin = format!(" {WARM_UP_S} s of {of_s}:");
        let cpu = cpu_between(&mut command, &begin, &format!(" {of_s} s of {of_s}:"))?;
        side(out.path(), cpu)
    }
}

/// The site of the shipped scenarios, without a fault.
fn scenario_text(media: &Media, load: &Load, seconds: u32) -> String {
    let Load { workload, scale, clients, rate_per_s } = load;
    let rate = rate_per_s.map(|rate| format!(", rate: {rate}/s")).unwrap_or_default();
    format!(
        "\
name: weight
site:
  regions: {{ dc1: {{ zones: {{ a: {{ racks: {{ r1: {{ hosts: 2 }}, r2: {{ hosts: 2 }}, r3: {{ hosts: 1 }} }} }} }} }} }}
  disks: {{ sync: {sync} }}
  network: {{ path: {path} }}
database:
  engine: postgres
  nodes: 3
  leader: r1/h1
  replication: {{ synchronous: any 1 }}
loads:
  - {{ workload: {workload}, scale: {scale}, clients: {clients}{rate}, from: dc1 }}
schedule:
  - {{ phase: warm-up, for: {WARM_UP_S}s }}
  - {{ phase: measured, for: {seconds}s }}
  - {{ phase: rest, for: 2s }}
expect:
  errors: 0
",
        sync = media.sync,
        path = media.path,
    )
}

/// CPU time of every process between two lines of what the program says. It ends by itself.
fn cpu_between(command: &mut Command, begin: &str, end: &str) -> anyhow::Result<Duration> {
    let program = command.get_program().to_string_lossy().into_owned();
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().with_context(|| format!("start {program}"))?;
    let (mut began, mut ended, mut said) = (None, None, Vec::new());
    for line in BufReader::new(child.stdout.take().context("the child's output")?).lines() {
        let line = line.with_context(|| format!("read what {program} says"))?;
        if began.is_none() && line.contains(begin) {
            began = Some(cpu_of_descendants()?);
        } else if ended.is_none() && line.contains(end) {
            ended = Some(cpu_of_descendants()?);
        }
        said.push(line);
    }
    let complaint = std::io::read_to_string(child.stderr.take().context("the child's errors")?)?;
    child.wait().with_context(|| format!("wait for {program}"))?;
    let measured = began.zip(ended).map(|(began, ended)| ended.saturating_sub(began));
    measured.with_context(|| {
        format!("{program} did not say {begin:?} and {end:?}:\n{}\n{complaint}", said.join("\n"))
    })
}

fn await_cluster(cluster: &mut Child) -> anyhow::Result<()> {
    let output = cluster.stdout.as_mut().context("the script's output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).context("read what the script says")?;
    ensure!(line.trim_end() == shell_cluster::UP, "the script's cluster did not come up: it said {line:?}");
    Ok(())
}

/// The figures of the measured phase of the only run below a folder.
fn side(runs: &Path, cpu: Duration) -> anyhow::Result<Side> {
    let path = result_below(runs)?;
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let result: Value = serde_json::from_str(&text).with_context(|| format!("read {}", path.display()))?;
    let load = &result["loads"][0];
    let errors = &load["errors"];
    ensure!(errors.as_object().is_some_and(serde_json::Map::is_empty), "errors: {errors}");
    let phases = load["phases"].as_array().context("phases")?;
    let measured = phases.iter().find(|phase| !matches!(phase["name"].as_str(), Some("warm-up" | "rest")));
    let measured = measured.context("the phase that is measured")?;
    let number = |value: &Value, what: &'static str| value.as_f64().context(what);
    let transactions = number(&measured["transactions"], "transactions")?;
    ensure!(transactions > 0.0, "no transaction succeeded");
    Ok(Side {
        cpu_us_per_transaction: cpu.as_secs_f64() * 1e6 / transactions,
        transactions_per_s: number(&measured["throughput_per_s"], "throughput_per_s")?,
        latency_us_p50: number(&measured["latency_us"]["p50"], "latency_us.p50")?,
    })
}

fn result_below(folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
            let entry = entry?;
            if entry.file_name() == "result.json" {
                return Ok(entry.path());
            }
            // Not through links: `latest` is one.
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    anyhow::bail!("no result.json below {}", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenarios_of_the_bench_are_sound() {
        for media in &MEDIA {
            for load in [&SATURATING, &PACED] {
                let text = scenario_text(media, load, 20);
                let source = scenario::Source { name: "weight".to_owned(), text };
                scenario::parse(&source, &[]).unwrap_or_else(|rejection| panic!("{rejection}"));
            }
        }
    }

    #[test]
    fn the_figures_are_those_of_the_measured_phase_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("weight/2026-01-01T00-00-00Z");
        fs::create_dir_all(&run).expect("made");
        let phase = |name: &str, transactions: u32| {
            serde_json::json!({ "name": name, "transactions": transactions, "throughput_per_s": transactions / 10,
                "latency_us": { "p50": 700 } })
        };
        let phases = [phase("warm-up", 5), phase("measured", 1_000), phase("rest", 7)];
        let result = serde_json::json!({ "loads": [{ "errors": {}, "phases": phases }] });
        fs::write(run.join("result.json"), result.to_string()).expect("written");
        let side = side(folder.path(), Duration::from_secs(2)).expect("figures");
        let figures = [side.cpu_us_per_transaction, side.transactions_per_s, side.latency_us_p50];
        assert_eq!(figures, [2_000.0, 100.0, 700.0]);
        let failed = serde_json::json!({ "loads": [{ "errors": { "timeout": 1 }, "phases": phases }] });
        fs::write(run.join("result.json"), failed.to_string()).expect("written");
        assert!(super::side(folder.path(), Duration::from_secs(2)).is_err(), "errors are no figures");
    }

    #[test]
    fn cpu_time_counts_between_the_two_lines_and_a_missing_line_is_an_error() {
        let script = "echo a; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo b";
        let mut shell = Command::new("/bin/sh");
        let cpu = cpu_between(shell.args(["-c", script]), "a", "b").expect("both lines");
        assert!(cpu >= Duration::from_millis(10), "{cpu:?}");
        let mut shell = Command::new("/bin/sh");
        let error = cpu_between(shell.args(["-c", "echo a; echo wrong >&2"]), "a", "b").expect_err("no end");
        assert!(error.to_string().contains("wrong"), "{error}");
    }
}
