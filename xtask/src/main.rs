//! `cargo xtask`: the chores' command line. Says what was asked for and hands it on.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything that must hold: format, lints, tidiness, all tests. The last line counts them
    Test {
        /// Also the tests that are left out for their length
        #[arg(long)]
        all: bool,
        /// With `--all`, a part of them: 2/3 is the second of three
        #[arg(long, requires = "all")]
        part: Option<suite::part::Part>,
    },
    /// Only what is a matter of order: imports, sizes, names, words
    Tidy,
    /// Writes `docs/reference/` from the registries and the program's help
    Reference,
    /// `target/release-files/`: the program, man pages, completions, licences, bill of materials, checksums
    Release {
        /// What it is built for [default: static where that target is installed, else this machine]
        #[arg(long, value_name = "TRIPLE")]
        target: Option<String>,
    },
    /// Ours beside another's, measured in turn; prints a table and writes it under `target/bench/`
    Bench {
        /// Which
        #[command(subcommand)]
        bench: Bench,
    },
    /// The control database's flaws over many seeds: prints how often each was found, and writes `docs/flaws.md`
    Flaws {
        /// How many seeds each flaw is run with
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// How many seeds the scenario without a flaw is run with
        #[arg(long, default_value_t = 100)]
        seeds_without: u64,
        /// Only these; a wrong name lists them
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Lies planted in the lab, and honest runs, on a busy machine: prints how often each ended as it must, and writes their lines of
    /// `docs/lies.md`
    Lies {
        /// How often each lie is planted, and each scenario run without one
        #[arg(long, default_value_t = 20)]
        runs: u64,
        /// How many runs are under way at the same time
        #[arg(long, default_value_t = 2)]
        at_once: usize,
        /// Only these lies, or all of these scenarios; a wrong name lists them
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// What `holdfast check` says of failures beside real runs of them; writes `docs/survival.md`
    Survival {
        /// Only the cases of these scenarios; rows of the others stay
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// The first process of a node in a lab; started by the lab itself
    #[command(name = lab::node::INIT_SUBCOMMAND, hide = true)]
    NodeInit,
    /// Removes what a lab leaves; started by whoever starts the lab
    #[command(name = lab::janitor::JANITOR_SUBCOMMAND, hide = true)]
    LabJanitor {
        /// The run's name
        run_name: String,
        /// The run's folder
        run_directory: PathBuf,
    },
    /// The first process of a lab in which a bench measures or something is tried; started by these themselves
    #[command(name = lab::supervisor::SUPERVISOR_SUBCOMMAND, hide = true)]
    LabSupervisor,
    /// Every engine under the same faults, several runs each: makes the runs that are missing and writes docs/atlas/
    Atlas {
        /// Runs of each cell
        #[arg(long, default_value_t = 10)]
        runs: usize,
        /// Only these cells: ENGINE, FAULT or ENGINE/FAULT
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// No cell is begun after so many minutes; the next campaign goes on where this one was
        #[arg(long)]
        minutes: Option<u64>,
    },
    /// Scenarios drawn by chance, most of them killed, interrupted or starved: nothing may be left behind, nothing may panic, no verdict may
    /// be better than what was seen; writes docs/robustness.md and .json
    Campaign {
        /// How many runs
        #[arg(long, default_value_t = 200)]
        runs: u64,
        /// The seed of the first run; each further one has the next
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many runs are under way at the same time
        #[arg(long, default_value_t = 2)]
        at_once: usize,
        /// Only these treatments, without writing the pages; a wrong name lists them
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Inputs by chance for every parser, for the fabric's core and for volumes; the same number is the same input. With `cargo run --release -p xtask --
    /// fuzz` ten times as fast
    Fuzz {
        /// Inputs of each target
        #[arg(long, default_value_t = 100_000)]
        inputs: u64,
        /// The number of the first input
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Only these targets; a wrong name lists them
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Makes a cluster on this machine: one that exists, with the shipped scenario against it, or Kubernetes in a lab
    Try {
        /// Which
        #[command(subcommand)]
        cluster: Cluster,
    },
    /// Asks for the time again and again and prints what a call took; started by the bench itself
    #[command(name = xtask::bench::clock::CALLS_SUBCOMMAND, hide = true)]
    ClockCalls,
    /// One measuring program inside a place of that lab; started by the bench itself
    #[command(name = xtask::bench::fabric::INSTRUMENT_SUBCOMMAND, hide = true)]
    Instrument {
        /// What to do, as JSON
        job: String,
    },
}

#[derive(Debug, Subcommand)]
enum Cluster {
    /// Three PostgreSQL nodes reached by ssh, each in namespaces of its own; needs root, nftables and OpenSSH
    External {
        /// The scenario: external-postgres, or external-agents
        #[arg(long, default_value = "external-postgres", value_parser = xtask::trial::Shipped::named)]
        scenario: xtask::trial::Shipped,
        /// Further arguments of `holdfast run`, after `--`
        #[arg(last = true)]
        further: Vec<String>,
    },
    /// A Kubernetes cluster on four nodes of a lab, PostgreSQL on it, a pod deleted and a node without power; needs root, Go and
    /// Debian's packages
    Kubernetes {
        /// How long the cluster's parts wait for each other
        #[arg(long, value_enum, default_value = "short")]
        times: xtask::trial::kubernetes::Times,
        /// The program whose scenarios are run; default: this repository's, built optimised
        #[arg(long, value_name = "FILE")]
        holdfast: Option<std::path::PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// A node's virtual disk beside the file system below it, by fio and by PostgreSQL with pgbench
    Disk {
        /// How many times each is measured
        #[arg(long, default_value_t = 5)]
        pairs: usize,
        /// Only PostgreSQL
        #[arg(long)]
        only_database: bool,
    },
    /// The checkers beside porcupine, in CPU seconds and peak memory
    Check {
        /// How many times each is measured
        #[arg(long, default_value_t = 3)]
        times: usize,
    },
    /// Boot of the three-node lab beside the same cluster made by a shell script, in CPU seconds
    Lab {
        /// How many times each is measured
        #[arg(long, default_value_t = 7)]
        pairs: usize,
    },
    /// The same database under the same load in a lab and by a shell script: CPU, throughput, time for a hop
    Weight {
        /// How many times each is measured
        #[arg(long, default_value_t = 5)]
        pairs: usize,
        /// How many seconds each measurement takes
        #[arg(long, default_value_t = 15)]
        seconds: u32,
    },
    /// A node's clock beside the machine's: what a call costs, and what starting a program does
    Clock {
        /// How many times each is measured
        #[arg(long, default_value_t = 11)]
        pairs: usize,
    },
    /// The fabric beside a plain veth pair and beside toxiproxy: round trips, throughput, CPU, delays, rates, many hosts
    Fabric {
        /// How many times each is measured
        #[arg(long, default_value_t = 5)]
        pairs: usize,
        /// Only these measurements; a wrong name lists them
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// `holdfast check` and `holdfast predict`: time and memory, and their figures beside published ones
    Paper {
        /// How many times each is measured
        #[arg(long, default_value_t = 5)]
        times: usize,
    },
    /// The load generator beside pgbench, sysbench, go-ycsb and latte: client CPU for one transaction, transactions a second
    Load {
        /// How many times each is measured that a goal is held against; the others half as often
        #[arg(long, default_value_t = 5)]
        pairs: usize,
        /// How many seconds each measurement takes
        #[arg(long, default_value_t = 2)]
        seconds: u32,
        /// Only beside these: pgbench, sysbench, go-ycsb, sysbench-mysql, latte
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// 1,000 and 5,000 clients beside 300: what is left of the throughput, ours beside pgbench's
    LoadMany {
        /// How many times each is measured
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// How many seconds each measurement takes
        #[arg(long, default_value_t = 5)]
        seconds: u32,
    },
    /// The same load twice, pair by pair: how often the comparison calls a difference where there is none
    LoadAlike {
        /// How many pairs
        #[arg(long, default_value_t = 40)]
        pairs: usize,
        /// How long each side is measured
        #[arg(long, default_value_t = 10)]
        seconds: u32,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Test { all: false, .. } => suite::run(suite::Tests::First),
        Command::Test { all: true, part } => suite::run(suite::Tests::All(part)),
        Command::Tidy => {
            let found = xtask::tidy::check_repository(&xtask::repository_root())?;
            for violation in &found {
                println!("{violation}");
            }
            println!("{} violations", found.len());
            Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Reference => xtask::reference::write(&xtask::repository_root()).map(|()| ExitCode::SUCCESS),
        Command::Release { target } => xtask::release::run(target),
        Command::Bench { bench: Bench::Disk { pairs, only_database } } => {
            xtask::bench::disk::run(pairs, only_database)
        }
        Command::Bench { bench: Bench::Check { times } } => xtask::bench::check::run(times),
        Command::Bench { bench: Bench::Lab { pairs } } => xtask::bench::lab::run(pairs),
        Command::Bench { bench: Bench::Weight { pairs, seconds } } => {
            xtask::bench::weight::run(pairs, seconds)
        }
        Command::Bench { bench: Bench::Fabric { pairs, only } } => xtask::bench::fabric::run(pairs, &only),
        Command::Flaws { seeds, seeds_without, only } => {
            xtask::flaws::run(&xtask::flaws::Options { seeds, seeds_without, only })
        }
        Command::Bench { bench: Bench::Clock { pairs } } => xtask::bench::clock::run(pairs),
        Command::ClockCalls => xtask::bench::clock::calls().map(|()| ExitCode::SUCCESS),
        Command::Bench { bench: Bench::Paper { times } } => xtask::bench::paper::run(times),
        Command::Lies { runs, at_once, only } => {
            xtask::lies::run(&xtask::lies::Options { runs, at_once, only })
        }
        Command::Atlas { runs, only, minutes } => {
            xtask::atlas::run(&xtask::atlas::Options { runs, only, minutes })
        }
        Command::Try { cluster: Cluster::External { scenario, further } } => {
            xtask::trial::external(scenario, &further)
        }
        Command::Try { cluster: Cluster::Kubernetes { times, holdfast } } => {
            xtask::trial::kubernetes::run(times, holdfast)
        }
        Command::Campaign { runs, seed, at_once, only } => {
            xtask::campaign::run(&xtask::campaign::Options { runs, seed, at_once, only })
        }
        Command::Fuzz { inputs, first, only } => {
            xtask::fuzz::run(&xtask::fuzz::Options { inputs, first, only })
        }
        Command::Survival { only } => xtask::survival::run(&only),
        Command::LabSupervisor => xtask::first_process::main().map(|()| ExitCode::SUCCESS),
        Command::NodeInit => lab::init::main().map(|()| ExitCode::SUCCESS).map_err(anyhow::Error::from),
        Command::LabJanitor { run_name, run_directory } => {
            lab::janitor::main(&run_name, &run_directory)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Instrument { job } => xtask::bench::fabric::play(&job).map(|()| ExitCode::SUCCESS),
        Command::Bench { bench: Bench::Load { pairs, seconds, only } } => {
            xtask::bench::load::run(pairs, seconds, &only)
        }
        Command::Bench { bench: Bench::LoadMany { rounds, seconds } } => {
            xtask::bench::load_many::run(rounds, seconds)
        }
        Command::Bench { bench: Bench::LoadAlike { pairs, seconds } } => {
            xtask::bench::load_alike::run(pairs, seconds)
        }
    }
}
