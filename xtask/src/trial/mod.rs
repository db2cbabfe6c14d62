//! `cargo xtask try`: a cluster that exists, made on this machine, and the shipped scenario against it as against any other; or a
//! Kubernetes cluster in a lab ([`kubernetes`]).
//!
//! Owns the order of the former. What a machine is made of is [`machine`]'s.

pub mod kubernetes;
mod machine;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};
use engine::Installation;
use nix::sched::{CloneFlags, unshare};

use crate::program;
use machine::{Machine, NOBODY, said};

/// Programs that the machines are made with, or that the scenario's faults use.
const PROGRAMS: &str = "ip nft nsenter ping pgrep pkill setpriv setsid ssh ssh-keygen sshd timeout unshare";
const MACHINES: usize = 3;

/// A shipped scenario for a cluster that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shipped {
    /// Faults of the members.
    Postgres,
    /// A load spread over agents on the members' machines.
    Agents,
}

impl Shipped {
    /// The scenario of this name.
    ///
    /// # Errors
    /// When none is called so.
    pub fn named(name: &str) -> Result<Shipped, String> {
        [Shipped::Postgres, Shipped::Agents]
            .into_iter()
            .find(|shipped| shipped.name() == name)
            .ok_or_else(|| "there are external-postgres and external-agents".to_owned())
    }

    /// As the command line calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Shipped::Postgres => "external-postgres",
            Shipped::Agents => "external-agents",
        }
    }

    /// What of it is not known before the machines are.
    fn settings(self, holdfast: &Path) -> Vec<String> {
        let agents: &[&str] = if self == Shipped::Agents { &["a1", "a2", "a3"] } else { &[] };
        let program = |agent: &&str| {
            ["--set".to_owned(), format!("cluster.agents.{agent}.program={}", holdfast.display())]
        };
        agents.iter().flat_map(program).collect()
    }
}

/// Three PostgreSQL nodes with an sshd each, and a scenario with `further` arguments of `holdfast run`.
/// Ends with the run's exit code.
///
/// # Errors
/// When this machine lacks what it takes.
pub fn external(shipped: Shipped, further: &[String]) -> anyhow::Result<ExitCode> {
    needs()?;
    let holdfast = program::build()?;
    on_three_machines(&holdfast, shipped, further).map(ExitCode::from)
}

/// Whether this machine has what the machines are made of.
///
/// # Errors
/// When not; the error says what is missing.
pub fn needs() -> anyhow::Result<()> {
    ensure!(
        nix::unistd::geteuid().is_root(),
        "sshd works for root alone in a namespace without a user namespace: run it as root"
    );
    let missing: Vec<&str> =
        PROGRAMS.split(' ').filter(|program| machine::path_of(program).is_none()).collect();
    ensure!(
        missing.is_empty(),
        "not on this machine: {}; on Debian and Ubuntu: apt install iproute2 nftables iputils-ping procps openssh-server \
         openssh-client util-linux",
        missing.join(", ")
    );
    Ok(())
}

/// The same with this program; the exit code of its run.
///
/// # Errors
/// When the machines cannot be made.
pub fn on_three_machines(holdfast: &Path, shipped: Shipped, further: &[String]) -> anyhow::Result<u8> {
    let postgres = postgres()?;
    // The clients' network namespace is this thread's: nothing of the machine's own network changes.
    std::thread::scope(|scope| {
        let apart = scope.spawn(|| in_namespaces(&postgres.bin, (holdfast, shipped), further));
        apart.join().unwrap_or_else(|_| bail!("the thread in the clients' namespace panicked"))
    })
}

fn postgres() -> anyhow::Result<Installation> {
    let engine = engine::registry::named("postgres")?;
    let found = engine.find(None).or_else(|_| engine.install(&mut |step| println!("{step}")))?;
    let readable = Command::new("setpriv")
        .args(NOBODY)
        .arg("test")
        .arg("-x")
        .arg(found.bin.join("postgres"))
        .status()?;
    ensure!(
        readable.success(),
        "{}: an ordinary user cannot enter it, and PostgreSQL does not run as root: install PostgreSQL from the distribution",
        found.bin.display()
    );
    Ok(found)
}

fn in_namespaces(programs: &Path, run: (&Path, Shipped), further: &[String]) -> anyhow::Result<u8> {
    unshare(CloneFlags::CLONE_NEWNET).context("a network namespace")?;
    said("ip", &["link", "set", "lo", "up"])?;
    // Of this namespace: machines reach each other through it.
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("ip_forward")?;
    let folder = tempfile::Builder::new().prefix("holdfast-try-").tempdir().context("a folder")?;
    said("chmod", &["755", &folder.path().display().to_string()])?;
    let ssh_config = machine::make_keys(folder.path(), MACHINES)?;
    let mut machines = Vec::new();
    for number in 1..=MACHINES {
        println!("machine db{number} at {}", machine::address(number));
        machines.push(Machine::start(folder.path(), number, &ssh_config)?);
    }
    let (leader, standbys) = machines.split_first().context("a machine")?;
    leader.make_database(programs)?;
    for standby in standbys {
        standby.follow(leader, programs)?;
    }
    leader.wait_for_a_standby()?;
    println!("PostgreSQL runs on {MACHINES} machines; db1 leads, commits wait for one standby");
    let code = self::run(run, &ssh_config, further);
    drop(machines);
    code
}

fn run((holdfast, shipped): (&Path, Shipped), ssh_config: &Path, further: &[String]) -> anyhow::Result<u8> {
    let root = crate::repository_root();
    let scenario: PathBuf = root.join(format!("scenarios/{}.yaml", shipped.name()));
    let status = Command::new(holdfast)
        .arg("run")
        .arg(&scenario)
        .args(["--yes-break", shipped.name(), "--set"])
        .arg(format!("cluster.ssh-config={}", ssh_config.display()))
        .args(shipped.settings(holdfast))
        .args(further)
        .current_dir(&root)
        .status()
        .context("holdfast run")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}
