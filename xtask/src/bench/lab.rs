//! Boot of a three-node lab beside the same PostgreSQL cluster made by a shell script on loopback.
//!
//! Both are measured from the start of the first process to the first acknowledged quorum write, in turn, pair by pair.
//! The lab's own account (`lab-up` in `events.jsonl`) stands beside the kernel's: the two must tell the same story.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use engine::Installation;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::cpu_account::{adopt_orphans, cpu_of_descendants, cpu_of_reaped_children, end_all, reap_all};
use super::shell_cluster;
use super::table::{Row, conclude};

/// At most so many times the script's CPU time.
const GOAL: f64 = 1.25;

/// The site of the shipped scenarios. One load, because a scenario needs one; it has not begun when the lab is up.
const SCENARIO: &str = "\
name: boot
site:
  regions: { dc1: { zones: { a: { racks: { r1: { hosts: 2 }, r2: { hosts: 2 }, r3: { hosts: 1 } } } } } }
database:
  engine: postgres
  nodes: 3
  leader: r1/h1
  replication: { synchronous: any 1 }
loads:
  - { workload: ledger, clients: 1, from: dc1 }
schedule:
  - { phase: baseline, for: 30s }
expect:
  lost_writes: 0
";

/// What the terminal says when the lab and its database are up.
const LAB_IS_UP: &str = "the lab is ready after";

/// One boot.
#[derive(Debug, Clone, Copy)]
struct Boot {
    /// From the first process to the first quorum write.
    wall: Duration,
    /// Of every process until then, as the kernel counts it.
    cpu: Duration,
    /// The same by another way: for the lab its own account, for the script its account after the end.
    cpu_otherwise: Duration,
}

/// Measures and prints.
///
/// # Errors
/// When a side does not come up.
pub fn run(pairs: usize) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0, "nothing to measure: --pairs 0");
    adopt_orphans()?;
    let holdfast = crate::program::build()?;
    let facts = engine::registry::named("postgres")?;
    let installation = match facts.find(None) {
        Ok(found) => found,
        Err(_) => facts.install(&mut |step| println!("{step}"))?,
    };
    println!("PostgreSQL {}, {} pairs", installation.version, pairs);
    let mut boots = Vec::new();
    for pair in 0..pairs {
        // Who goes first takes turns, so that what one leaves behind in the machine's caches favours neither.
        let (lab, script) = if pair % 2 == 0 {
            let lab = boot_lab(&holdfast)?;
            (lab, boot_script(&installation)?)
        } else {
            let script = boot_script(&installation)?;
            (boot_lab(&holdfast)?, script)
        };
        let seconds = |time: Duration| time.as_secs_f64();
        println!(
            "lab: cpu {:.2} s (by its own account {:.2}), wall {:.2} s; script: cpu {:.2} s (to its end {:.2}), wall {:.2} s; \
             ratio {:.2}",
            seconds(lab.cpu),
            seconds(lab.cpu_otherwise),
            seconds(lab.wall),
            seconds(script.cpu),
            seconds(script.cpu_otherwise),
            seconds(script.wall),
            seconds(lab.cpu) / seconds(script.cpu),
        );
        boots.push((lab, script));
    }
    let rows = rows(&boots);
    Ok(if conclude("lab", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn rows(boots: &[(Boot, Boot)]) -> Vec<Row> {
    fn pairs(boots: &[(Boot, Boot)], of: impl Fn(Boot, Boot) -> (Duration, Duration)) -> Vec<(f64, f64)> {
        let seconds = |(ours, theirs): (Duration, Duration)| (ours.as_secs_f64(), theirs.as_secs_f64());
        boots.iter().map(|(lab, script)| seconds(of(*lab, *script))).collect()
    }
    let script = "shell script on loopback";
    vec![
        Row::of_pairs(
            "boot of three nodes, CPU",
            script,
            "s",
            &pairs(boots, |lab, script| (lab.cpu, script.cpu)),
            Some(GOAL),
        ),
        Row::of_pairs(
            "boot of three nodes, wall",
            script,
            "s",
            &pairs(boots, |lab, script| (lab.wall, script.wall)),
            None,
        ),
        Row::of_pairs(
            "the lab's own account of its boot",
            "the kernel's account",
            "s",
            &pairs(boots, |lab, _| (lab.cpu_otherwise, lab.cpu)),
            None,
        ),
    ]
}

fn boot_lab(holdfast: &Path) -> anyhow::Result<Boot> {
    let folder = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
    let scenario = folder.path().join("boot.yaml");
    fs::write(&scenario, SCENARIO)?;
    let out = folder.path().join("runs");
    let mut command = Command::new(holdfast);
    command.arg("run").arg(&scenario).arg("--out").arg(&out).args(["--seed", "1"]);
    let (wall, cpu) = measured(&mut command, LAB_IS_UP, |child| {
        // As Ctrl-C: heal, tear down, leave.
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).context("interrupt the lab")
    })?;
    let cpu_otherwise = own_account(&out.join("boot"))?;
    Ok(Boot { wall, cpu, cpu_otherwise })
}

fn boot_script(installation: &Installation) -> anyhow::Result<Boot> {
    let folder = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
    let before = cpu_of_reaped_children()?;
    let mut script = shell_cluster::command(installation, folder.path())?.script;
    let (wall, cpu) = measured(&mut script, shell_cluster::UP, |child| {
        drop(child.stdin.take());
        Ok(())
    })?;
    let cpu_otherwise = cpu_of_reaped_children()?.saturating_sub(before);
    Ok(Boot { wall, cpu, cpu_otherwise })
}

/// Wall and CPU time until the child says its word. Ends it by `end`, and waits until all it started is gone.
fn measured(
    command: &mut Command,
    word: &str,
    end: impl FnOnce(&mut Child) -> anyhow::Result<()>,
) -> anyhow::Result<(Duration, Duration)> {
    let taken = until_word(command, word, end);
    if taken.is_err() {
        end_all()?;
    }
    reap_all();
    taken
}

fn until_word(
    command: &mut Command,
    word: &str,
    end: impl FnOnce(&mut Child) -> anyhow::Result<()>,
) -> anyhow::Result<(Duration, Duration)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let before = cpu_of_descendants()?;
    let began = Instant::now();
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().with_context(|| format!("start {program}"))?;
    let mut lines = BufReader::new(child.stdout.take().context("the child's output")?).lines();
    let mut said = Vec::new();
    let taken = loop {
        match lines.next() {
            Some(Ok(line)) if line.contains(word) => {
                break (began.elapsed(), cpu_of_descendants()?.saturating_sub(before));
            }
            Some(Ok(line)) => said.push(line),
            Some(Err(error)) => bail!("read what {program} says: {error}"),
            None => bail!("{program} ended before it said `{word}`; it said:\n{}", said.join("\n")),
        }
    };
    end(&mut child)?;
    // What it still says must not fill the pipe.
    lines.for_each(drop);
    Ok(taken)
}

/// What the lab itself says its boot cost, all parts together.
fn own_account(runs: &Path) -> anyhow::Result<Duration> {
    let run =
        fs::read_dir(runs).with_context(|| format!("read {}", runs.display()))?.next().context("a run")??;
    let events = fs::read_to_string(run.path().join("events.jsonl"))?;
    let up = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|event| event["event"] == "lab-up")
        .context("no lab-up in events.jsonl")?;
    let parts = up["cpu_seconds"].as_object().context("no cpu_seconds in lab-up")?;
    Ok(Duration::from_secs_f64(parts.values().filter_map(Value::as_f64).sum()))
}
