//! What can be asked on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Does your database hold fast? Builds a pretend datacentre on this machine, runs a real database on it, breaks the
/// datacentre, proves whether committed data survived, and writes the white paper.
///
/// Exit codes: 0 pass, 1 fail, 2 unknown, 254 the scenario or the arguments are wrong, 255 the lab could not do its job.
#[derive(Debug, Parser)]
#[command(version, name = "holdfast")]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The whole job: lab up, database up, load on, faults in and healed, data verified, report written
    Run(RunOptions),
    /// On paper only: says whether the scenario is right; starts nothing
    Check {
        /// The scenario
        scenario: PathBuf,
        /// Another value for one of the scenario's settings: `--set loads.0.clients=8`
        #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
        set: Vec<(String, String)>,
    },
    /// Writes the report of a run again, from its directory alone
    Report {
        /// The run directory
        run_directory: PathBuf,
    },
    /// What there is, one line each
    List {
        /// Of what
        what: Listed,
    },
    /// What this machine allows, and the exact remedy for what is missing
    Doctor,
    /// The scenario's JSON Schema, for editors
    Schema,
}

/// Options of `holdfast run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The scenario
    pub scenario: PathBuf,
    /// Another value for one of the scenario's settings: `--set loads.0.clients=8`
    #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
    pub set: Vec<(String, String)>,
    /// The seed; wins over the scenario's. Within 53 bits
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..1 << 53))]
    pub seed: Option<u64>,
    /// Folder under which the run directory is made
    #[arg(long, default_value = "runs", value_name = "DIR")]
    pub out: PathBuf,
    /// Leave the lab up at the end until Ctrl-C, and print how to reach each node
    #[arg(long)]
    pub keep: bool,
    /// Print result.json to standard output, and everything else to standard error
    #[arg(long)]
    pub json: bool,
    /// Announce faults without carrying them out: shows that such a run ends `unknown`
    #[arg(long, hide = true)]
    pub prevent_faults: bool,
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

fn path_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.is_empty() => Ok((path.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` has no `=`; write a path and a value, as in `loads.0.clients=8`")),
    }
}
