//! `cargo xtask`: the chores' command line. Says what was asked for and hands it on.

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
    },
    /// Only what is a matter of order: imports, sizes, names, words
    Tidy,
    /// Ours beside another's, measured in turn; prints a table and writes it under `target/bench/`
    Bench {
        /// Which
        #[command(subcommand)]
        bench: Bench,
    },
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Boot of the three-node lab beside the same cluster made by a shell script, in CPU seconds
    Lab {
        /// How many times each is measured
        #[arg(long, default_value_t = 7)]
        pairs: usize,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Test { all } => xtask::test::run(all),
        Command::Tidy => {
            let found = xtask::tidy::check_repository(&xtask::repository_root())?;
            for violation in &found {
                println!("{violation}");
            }
            println!("{} violations", found.len());
            Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Bench { bench: Bench::Lab { pairs } } => xtask::bench::lab::run(pairs),
    }
}
