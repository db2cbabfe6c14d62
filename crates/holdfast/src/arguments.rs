//! What can be asked on the command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use scenario::MOST_SEED;

use crate::web;

/// Where the last run of the working directory is found.
pub const LATEST: &str = "runs/latest";

/// A release says the commit as well: `cargo xtask release` gives the words.
const VERSION: &str = match option_env!("HOLDFAST_VERSION") {
    Some(words) => words,
    None => env!("CARGO_PKG_VERSION"),
};

/// Does your database hold fast? Builds a pretend datacentre on this machine, runs a real database on it, breaks the
/// datacentre, proves whether committed data survived, and writes the report.
///
/// Exit codes: 0 pass, 1 fail, 2 unknown, 254 the scenario or the arguments are wrong, 255 the lab could not do its job.
#[derive(Debug, Parser)]
#[command(version = VERSION, name = "holdfast")]
pub struct Arguments {
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario: build the lab, start the database and the load, inject and heal faults, verify the data, write the report
    Run(RunOptions),
    /// Run only the load generator against an existing database; writes the same files as a run
    ///
    /// Exit codes: 0 pass, 1 fail, 2 unknown, 254 the arguments are wrong, 255 the load could not do its job. Without
    /// --prepare the data is not checked, so the verdict is unknown.
    Load(LoadOptions),
    /// Run as an agent: orders as JSON lines on standard input, all that is recorded on standard output
    ///
    /// `holdfast run` starts agents itself, on the machines that a scenario names under `agents`. An agent ends with its input.
    Agent,
    /// Analyse a scenario on paper: mistakes, failures it survives, cost of a commit, best practice; starts nothing
    Check {
        /// The scenario
        #[arg(required_unless_present = "this_host")]
        scenario: Option<PathBuf>,
        /// Change a setting of the scenario: `--set loads.0.clients=8`; a number in the path is a list position, from 0
        #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value, requires = "scenario")]
        set: Vec<(String, String)>,
        /// Also compare this machine with best practice; needs no scenario
        #[arg(long)]
        this_host: bool,
    },
    /// Print the service account and the roles with which a scenario of pods may be run, as YAML for `kubectl apply`; asks no
    /// cluster
    Manifests(ManifestsOptions),
    /// Predict on paper at any scale: what failures stop, how likely data loss is, what a rebuild moves; starts nothing
    Predict(PredictOptions),
    /// Write the report of a run again from its run directory
    Report {
        /// The run directory
        run_directory: PathBuf,
    },
    /// Compare runs: a table, and a page with charts and intervals
    ///
    /// Runs of the same settings count as repetitions; the directory of a matrix means all its runs. The exit code is 0
    /// whatever the runs' verdicts are. With --fail-if it is 1 if an expression holds and 2 if it is undecided. With --with
    /// atlas it says whether yours is good: recovery, interruption, lost writes and latency beside the published figures.
    Compare {
        /// The run directories; the others are compared with the first one's settings. `NAME=DIR` names a side: runs of one
        /// name are its repetitions
        #[arg(required = true, value_name = "[NAME=]DIR")]
        run_directories: Vec<PathBuf>,
        /// Where the page is written [default: compare.html in the working directory]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Also compare with the published figures of the same engine under the same kind of fault: `--with atlas` for those
        /// that ship, or the path of an atlas.json. One run directory is enough then
        #[arg(long, value_name = "atlas|FILE")]
        with: Option<PathBuf>,
        /// Exit with code 1 if a figure differs from the first settings by more than a bound: `--fail-if 'tpcb.latency_p99 >
        /// +20%'`. The scope before the quantity is a load, LOAD.PHASE, LOAD.OPERATION or fault-1; with --with also atlas,
        /// atlas.LOAD or atlas.fault-1. The bound is a percentage or has a unit (`throughput_per_s < -50/s`). May be given several
        /// times
        #[arg(long, value_name = "EXPRESSION")]
        fail_if: Vec<String>,
    },
    /// Serve a page of all runs in a folder, live and past, to filter, follow and compare them; until Ctrl-C, only on this
    /// machine unless another address is given
    Serve {
        /// The folder with run directories
        #[arg(default_value = "runs", value_name = "DIR")]
        folder: PathBuf,
        /// Where it is served
        #[arg(long, value_name = "ADDR", default_value = web::LOOPBACK, value_parser = web::address)]
        at: SocketAddr,
    },
    /// Export a run in a format that other programs read
    Export(ExportOptions),
    /// Open a shell, or run a command, inside a node of a lab that is up
    Shell(ShellOptions),
    /// Run one check on a recorded history: Holdfast's (JSON lines, plain or compressed) or Jepsen's (EDN)
    Verify {
        /// The check, as in `holdfast list checks`
        #[arg(long)]
        model: String,
        /// The claimed isolation level, for list-append [default: strict-serializable]
        #[arg(long)]
        level: Option<String>,
        /// The history, as JSON lines or Jepsen's EDN; `-` is standard input
        history: PathBuf,
    },
    /// List engines, workloads, faults, checks or scenarios, one line each
    List {
        /// What to list; without it: what can be listed
        what: Option<Listed>,
    },
    /// Explain a word: a key of a scenario, a fault, workload, engine, check, quantity, shipped scenario or glossary term
    Explain {
        /// The word, in small or capital letters; a term of several words as it is
        #[arg(required = true)]
        thing: Vec<String>,
    },
    /// Test what this machine allows, and print the remedy for what is missing
    Doctor,
    /// Print the JSON Schema of scenarios, for editors
    Schema {
        /// Print the schema of engine files instead
        #[arg(long)]
        engine: bool,
    },
    /// Undo what a run left standing on machines that exist, from the journal in its run directory; doing it twice does no more
    ///
    /// Exit codes: 0 nothing stands, 1 something still stands, 2 nobody could see whether it does, 254 the arguments are
    /// wrong or the run still goes on.
    Heal {
        /// The run directory
        run_directory: PathBuf,
        /// Print what would be run, and where, and run nothing
        #[arg(long)]
        print: bool,
    },
    /// Work with your own command files: faults of machines that exist
    Faults {
        #[command(subcommand)]
        what: FaultsCommand,
    },
    /// Work with your own engine files
    Engines {
        #[command(subcommand)]
        what: EnginesCommand,
    },
}

/// What can be done with engine files.
#[derive(Debug, Clone, Subcommand)]
pub enum EnginesCommand {
    /// Check an engine file for mistakes; starts only the command that prints the database's version
    Check {
        /// The file
        file: PathBuf,
    },
}

/// What can be done with command files.
#[derive(Debug, Clone, Subcommand)]
pub enum FaultsCommand {
    /// Check a command file for mistakes, and print its commands with the examples of its parameters; runs nothing
    Check {
        /// The file
        file: PathBuf,
    },
}

/// What there is more or less of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CapacityBy {
    /// Clients
    Clients,
    /// Nodes of the database
    Nodes,
}

/// Options of `holdfast run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The scenario
    pub scenario: PathBuf,
    /// Change a setting of the scenario: `--set loads.0.clients=8`; a number in the path is a list position, from 0
    #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
    pub set: Vec<(String, String)>,
    /// The folder with the database's programs; skips searching and installing. Like `--set database.path=DIR`, but may be
    /// relative
    #[arg(long, value_name = "DIR")]
    pub engine_dir: Option<PathBuf>,
    /// The seed; overrides the scenario's. At most 53 bits
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=MOST_SEED))]
    pub seed: Option<u64>,
    /// The folder that gets the run directory
    #[arg(long, default_value = "runs", value_name = "DIR")]
    pub out: PathBuf,
    /// Run it N times, each with its own seed, and report the figures as distributions. The database is made and loaded once;
    /// each run begins with a snapshot of its volumes. With a matrix: how often each combination is run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Of several runs, make and load the database anew for each
    #[arg(long)]
    pub boot_each: bool,
    /// Keep the lab up at the end until Ctrl-C, and print how to reach each node
    #[arg(long)]
    pub keep: bool,
    /// Confirm that a cluster which exists may be broken (`target: external`): the scenario's name. `holdfast check` prints
    /// every command first
    #[arg(long, value_name = "NAME")]
    pub yes_break: Option<String>,
    /// Capture packets into `captures/` of the run directory, for Wireshark: those of a node (`n1`), of a place
    /// (`dc1/a/h2`), or from one place to another (`"dc1 -> dc2"`). May be given several times
    #[arg(long, value_name = "WHAT")]
    pub capture: Vec<String>,
    /// Serve a live page of the run, only on this machine unless another address is given
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true, default_missing_value = web::LOOPBACK,
          value_parser = web::address)]
    pub live: Option<SocketAddr>,
    /// Print result.json (with a matrix: matrix.json) to standard output and everything else to standard error
    #[arg(long)]
    pub json: bool,
    /// Announce faults without carrying them out: shows that such a run ends `unknown`
    #[arg(long, hide = true)]
    pub prevent_faults: bool,
    /// Plant a lie in the lab: shows that its own evidence catches it. May be given several times
    #[arg(long, hide = true, value_name = "LIE")]
    pub plant: Vec<faults::Lie>,
}

/// Options of `holdfast manifests`.
#[derive(Debug, Args)]
pub struct ManifestsOptions {
    /// The scenario
    pub scenario: PathBuf,
    /// Change a setting of the scenario: `--set loads.0.clients=8`; a number in the path is a list position, from 0
    #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
    pub set: Vec<(String, String)>,
    /// Name of the service account
    #[arg(long, value_name = "NAME", default_value = "holdfast", value_parser = object_name)]
    pub account: String,
    /// Namespace of the service account [default: that of the pods]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub namespace: Option<String>,
    /// Leave out what `holdfast check` calls optional: a run works without it, and its report has less
    #[arg(long)]
    pub only_needed: bool,
}

/// Options of `holdfast predict`. The scenario gives regions, zones and racks; the database is taken to keep its data in
/// ranges of replicas with a majority each, one node on each host.
#[derive(Debug, Args)]
pub struct PredictOptions {
    /// A scenario, to predict at any scale; or run directories, to predict the effect of more clients or nodes
    #[arg(required = true, value_name = "SCENARIO|RUN_DIRECTORY")]
    pub of: Vec<PathBuf>,
    /// With run directories: what to vary [default: what they differ in]
    #[arg(long)]
    pub by: Option<CapacityBy>,
    /// Change a setting of the scenario: `--set loads.0.clients=8`; a number in the path is a list position, from 0
    #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
    pub set: Vec<(String, String)>,
    /// Nodes [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub nodes: Option<usize>,
    /// Ranges [default: 100 for each node]
    #[arg(long, value_name = "N")]
    pub ranges: Option<usize>,
    /// Replicas of each range [default: 3]
    #[arg(long, value_name = "N")]
    pub replicas: Option<usize>,
    /// Racks in all [default: the scenario's, or one for 20 nodes]
    #[arg(long, value_name = "N")]
    pub racks: Option<usize>,
    /// Zones in all [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub zones: Option<usize>,
    /// Regions [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub regions: Option<usize>,
    /// Place ranges in copysets of this scatter width instead of at random
    #[arg(long, value_name = "WIDTH")]
    pub copysets: Option<usize>,
    /// Size of one range
    #[arg(long, default_value = "512MiB", value_parser = range_size)]
    pub range_size: u64,
    /// Bandwidth of a host for a rebuild, each way
    #[arg(long, default_value = "1Gbit/s", value_parser = scenario::units::bit_rate_per_s)]
    pub host_rate: u64,
    /// Bandwidth of the edge around a zone [default: the scenario's narrowest around a zone or region, else 10Gbit/s]
    #[arg(long, value_parser = scenario::units::bit_rate_per_s)]
    pub edge_rate: Option<u64>,
    /// Mean time between permanent failures of a host, hours
    #[arg(long, default_value_t = 35_000.0, value_name = "HOURS", value_parser = positive)]
    pub host_failure_hours: f64,
    /// Mean time until its data is rebuilt elsewhere, hours
    #[arg(long, default_value_t = 1.0, value_name = "HOURS", value_parser = positive)]
    pub repair_hours: f64,
    /// Share of hosts that do not return after an outage of the whole cluster
    #[arg(long, default_value = "1%", value_parser = scenario::units::ratio)]
    pub not_returning: f64,
    /// Share of time that a host is down
    #[arg(long, default_value = "0.1%", value_parser = scenario::units::ratio)]
    pub host_down: f64,
    /// The seed; overrides the scenario's. At most 53 bits
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=MOST_SEED))]
    pub seed: Option<u64>,
}

/// Options of `holdfast load`.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// The workload; `holdfast list workloads` names them
    #[arg(long)]
    pub workload: String,
    /// The database: `postgres://user@host:port/database`; several hosts with commas; `?sslmode=` as libpq, `?host=/run/postgresql` for a Unix socket. A password comes from PGPASSWORD or ~/.pgpass. Also `mysql://user@host:port/database` and `cql://user@host:port/keyspace`, not encrypted, with a password from the URL or --password-file
    #[arg(long)]
    pub url: String,
    /// A file whose first line is the password, readable by its owner alone
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Number of clients; with --rate, the most connections
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: u32,
    /// Open loop: transactions due per second, `2000/s`, whether or not earlier ones have ended
    #[arg(long, value_parser = rate)]
    pub rate: Option<f64>,
    /// Open loop: how arrivals are spread
    #[arg(long, value_enum, default_value_t = ArrivalWord::Constant, requires = "rate")]
    pub arrival: ArrivalWord,
    /// Closed loop: how long each client waits between an answer and its next transaction, `50ms`
    #[arg(long, value_parser = duration, conflicts_with = "rate")]
    pub think_time: Option<Duration>,
    /// Duration of the measurement in whole seconds: `60s`
    #[arg(long = "for", value_name = "TIME", value_parser = whole_seconds)]
    pub length: Duration,
    /// Duration of the warm-up, which does not count, in whole seconds: `10s`
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    pub warm_up: Option<Duration>,
    /// An option of the workload: `--option read=95%`
    #[arg(long, value_name = "KEY=VALUE", value_parser = path_and_value)]
    pub option: Vec<(String, String)>,
    /// For the workload `script`: a file in pgbench's language. Several files are chosen by weight, 1 by default: `--file
    /// read.sql@9 --file write.sql`
    #[arg(long, short = 'f', value_name = "PATH[@WEIGHT]", value_parser = file_and_weight)]
    pub file: Vec<(PathBuf, u32)>,
    /// Scale factor of the workload's tables
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub scale: u32,
    /// Create the workload's tables first, DROPPING existing ones of the same name, and check the data at the end
    #[arg(long)]
    pub prepare: bool,
    /// How long a client waits for an answer
    #[arg(long, value_parser = some_time, default_value = "10s")]
    pub timeout: Duration,
    /// The seed. At most 53 bits
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=MOST_SEED))]
    pub seed: u64,
    /// Record only figures, not single operations; then the data cannot be checked
    #[arg(long, conflicts_with = "prepare")]
    pub no_history: bool,
    /// The folder that gets the run directory
    #[arg(long, default_value = "runs", value_name = "DIR")]
    pub out: PathBuf,
    /// Print result.json to standard output, and everything else to standard error
    #[arg(long)]
    pub json: bool,
}

/// How the operations of an open loop are spread.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ArrivalWord {
    /// At equal intervals
    Constant,
    /// At random, as from independent users
    Poisson,
}

/// Options of `holdfast export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The run directory
    pub run_directory: PathBuf,
    /// The form
    #[arg(long, value_enum)]
    pub format: FormatWord,
    /// csv: what a row is
    #[arg(long, value_enum, default_value_t = RowsWord::Timeline)]
    pub rows: RowsWord,
    /// Only this load; jepsen needs it if several loads can be exported
    #[arg(long, value_name = "NAME")]
    pub load: Option<String>,
    /// Where it is written [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Forms of `holdfast export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatWord {
    /// The operations of one load as a history in EDN, for Jepsen's checkers
    Jepsen,
    /// A table, comma-separated
    Csv,
    /// Verdict, expectations, checks and faults as test cases in JUnit's XML, for continuous integration
    Junit,
    /// The result as OpenMetrics text, for Prometheus and its like
    Openmetrics,
}

/// Rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowsWord {
    /// One operation of one load in one second
    Timeline,
    /// One recorded operation
    Operations,
    /// One operation of one load in one phase
    Figures,
}

/// Options of `holdfast shell`.
#[derive(Debug, Args)]
pub struct ShellOptions {
    /// The run directory of the lab
    #[arg(long, default_value = LATEST, value_name = "DIR")]
    pub run: PathBuf,
    /// The node; or a host by its path, or the place of the clients in a region (`dc1/clients`)
    pub node: String,
    /// A command to run instead of a shell; its exit code is passed on
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// What `holdfast list` can list.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Listed {
    /// Databases
    Engines,
    /// Workloads
    Workloads,
    /// Kinds of fault
    Faults,
    /// Checks
    Checks,
    /// Scenarios in `scenarios/` of the working directory
    Scenarios,
}

fn rate(text: &str) -> Result<f64, String> {
    scenario::units::rate_per_s(text).map_err(|error| format!("{error}: {}", error.help()))
}

fn duration(text: &str) -> Result<Duration, String> {
    scenario::units::duration(text, "s").map_err(|error| format!("{error}: {}", error.help()))
}

fn some_time(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() { Err(format!("`{text}` is no time at all; write 10s")) } else { Ok(length) }
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.subsec_nanos() == 0 && !length.is_zero() {
        Ok(length)
    } else {
        Err(format!("`{text}` is not one or more whole seconds; write 60s"))
    }
}

fn path_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.is_empty() => Ok((path.to_owned(), value.to_owned())),
        Some(_) => Err(format!("`{text}` has no path before `=`; write one, as in `loads.0.clients=8`")),
        None => Err(format!("`{text}` has no `=`; write a path and a value, as in `loads.0.clients=8`")),
    }
}

/// A name that Kubernetes takes for a namespace, and for a service account.
fn object_name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends_in_a_hyphen = text.starts_with('-') || text.ends_with('-');
    if (1..=63).contains(&text.len()) && text.bytes().all(fits) && !ends_in_a_hyphen {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is no name there; write up to 63 small letters, digits and inner hyphens"))
    }
}

fn range_size(text: &str) -> Result<u64, scenario::units::UnitError> {
    scenario::units::size_bytes(text, "MiB")
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!("`{text}` is not a positive number")),
    }
}

/// As pgbench has it: what follows the last `@` is a weight where it is a number.
fn file_and_weight(text: &str) -> Result<(PathBuf, u32), String> {
    let Some((path, weight)) = text.rsplit_once('@') else { return Ok((PathBuf::from(text), 1)) };
    match weight.parse() {
        Ok(weight @ 1..=1_000_000) if !path.is_empty() => Ok((PathBuf::from(path), weight)),
        _ => Err(format!(
            "`{weight}` is no weight; write a whole number from 1 to 1000000, as in `read.sql@9`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_waits_for_some_time() {
        let with_timeout = |timeout: &str| {
            let load =
                ["holdfast", "load", "--workload", "ledger", "--url", "postgres://db1/a", "--for", "1s"];
            Arguments::try_parse_from(load.into_iter().chain(["--timeout", timeout])).is_ok()
        };
        assert!(with_timeout("1ms") && !with_timeout("0s") && !with_timeout("0.0ms"));
    }

    #[test]
    fn a_namespace_is_called_as_kubernetes_allows() {
        assert!(object_name("tests-2").is_ok() && object_name("7").is_ok());
        for wrong in ["", "-a", "a-", "A", "a.b", "a b", "a\nb", "a".repeat(64).as_str()] {
            assert!(object_name(wrong).is_err(), "{wrong}");
        }
    }
}
