//! `cargo xtask try kubernetes`: a real cluster in a lab, PostgreSQL on it, and scenarios of `target: kubernetes` run against it: pods
//! deleted, a node without power, a node cut off.
//!
//! Owns what is done outside of the lab: its programs, its folder, its janitor, and that nothing of it is left. What is built
//! inside is `ground`'s, what is done there `story`'s.

mod agents;
mod claims;
mod machine;
mod runs;
mod story;
mod switch;
mod trial_lab;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use engine::Installation;
use kubernetes_lab::Timing;
use lab::janitor::{self, Janitor};
use lab::supervisor::{self, Entered};
use serde::{Deserialize, Serialize};

/// How many nodes run pods.
const WORKERS: u8 = 3;

/// How long the cluster's parts wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Times {
    /// A lost node is known after 8 seconds.
    Short,
    /// As Kubernetes is shipped: after 50, and its pods go after 5 minutes.
    Shipped,
}

impl Times {
    fn timing(self) -> Timing {
        match self {
            Times::Short => Timing::SHORT,
            Times::Shipped => Timing::AS_SHIPPED,
        }
    }
}

/// What the lab's first process is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What the run's control groups are called after.
    run_name: String,
    /// Its folder.
    run_directory: PathBuf,
    /// The folder of the cluster's programs.
    programs: PathBuf,
    /// The folder of PostgreSQL's programs, which every node sees.
    postgres: PathBuf,
    /// The program whose scenarios are run.
    holdfast: PathBuf,
    /// How long parts wait.
    times: Times,
    /// Chaos Mesh's definitions, or why they could not be downloaded.
    definitions: Result<Vec<PathBuf>, String>,
}

/// Builds the lab, tells the story with this program or with one that is built for it, and removes all of it.
///
/// # Errors
/// When this machine lacks what it takes, or a step of the story fails. The logs are kept then.
pub fn run(times: Times, holdfast: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let postgres = ground_of_the_machine()?;
    let holdfast = match holdfast {
        Some(file) => fs::canonicalize(&file).with_context(|| format!("{}", file.display()))?,
        None => crate::program::build()?,
    };
    let cache = engine::installation::cache_directory(|name| std::env::var_os(name))?;
    let programs = kubernetes_lab::install(&cache, &mut |step| println!("{step}"))?;
    let target = crate::target_directory();
    fs::create_dir_all(&target).with_context(|| format!("make {}", target.display()))?;
    let folder =
        tempfile::Builder::new().prefix("try-kubernetes-").tempdir_in(&target).context("a folder")?;
    let order = Order {
        run_name: format!("try-kubernetes-{}", std::process::id()),
        run_directory: folder.path().to_owned(),
        programs: programs.root().to_owned(),
        postgres: postgres.bin,
        holdfast,
        times,
        definitions: claims::definitions(folder.path()).map_err(|error| format!("{error:#}")),
    };
    match in_a_lab(&order) {
        Ok(()) => {
            folder.close().context("remove the folder of the run")?;
            println!("removed: processes, namespaces, control groups, volumes");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error.context(format!("logs are in {}", folder.keep().join("logs").display()))),
    }
}

/// Whether a cluster can be tried at once: what lacks otherwise.
///
/// # Errors
/// What this machine lacks; that the cluster's programs are not in the cache, where building them takes minutes.
pub fn is_ready() -> anyhow::Result<()> {
    ground_of_the_machine()?;
    let cache = engine::installation::cache_directory(|name| std::env::var_os(name))?;
    let is_built = kubernetes_lab::installed(&cache).is_some();
    ensure!(is_built, "its programs are not in the cache; `cargo xtask try kubernetes` builds them");
    Ok(())
}

/// What a cluster needs of the machine, but for its programs. Pods run the machine's own PostgreSQL, from folders that a node sees of
/// the machine.
fn ground_of_the_machine() -> anyhow::Result<Installation> {
    ensure!(
        nix::unistd::geteuid().is_root(),
        "nodes that start containers need control groups of their own, which root alone may make: run it as root"
    );
    let found = engine::registry::named("postgres")?.find(None)?;
    ensure!(
        found.bin.starts_with("/usr"),
        "pods run PostgreSQL from the machine's /usr, and this one is in {}: install your distribution's",
        found.bin.display()
    );
    Ok(found)
}

fn in_a_lab(order: &Order) -> anyhow::Result<()> {
    let log_path = janitor::log_path(&order.run_directory);
    fs::create_dir_all(log_path.parent().unwrap_or(&order.run_directory))?;
    let log = File::create(&log_path).with_context(|| format!("make {}", log_path.display()))?;
    // Dropped last, when the lab has ended: it removes volumes and control groups.
    let janitor = Janitor::start(&order.run_name, &order.run_directory).context("start the janitor")?;
    let mut lab = supervisor::launch(log)?;
    let orders = lab.stdin.as_mut().context("the lab's input")?;
    writeln!(orders, "{}", serde_json::to_string(order)?)?;
    for line in BufReader::new(lab.stdout.take().context("the lab's output")?).lines() {
        println!("{}", line?);
    }
    let status = lab.wait()?;
    drop(janitor);
    if !status.success() {
        bail!("in the lab ({status}): {}", end_of(&log_path));
    }
    Ok(())
}

/// The last of what the lab's first process said.
fn end_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// The life of the lab's first process, once it has entered the lab and read its order.
///
/// # Errors
/// When the lab cannot be built or a step of the story fails.
pub fn inside(order: &Order, entered: Entered) -> anyhow::Result<()> {
    ensure!(entered.users_mapped, "nodes that start containers are only in a lab made by root");
    supervisor::watch_orders(|_| {}, || std::process::exit(255))?;
    let trial_lab = trial_lab::TrialLab::make(order)?;
    story::tell(&trial_lab, order)
}
