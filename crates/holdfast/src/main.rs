//! The command line: what was asked, who does it, and the exit code. Reads as a table of contents.

mod arguments;
mod commands;
mod exit;
mod glossary;
mod live;
mod paper_text;
mod terminal;
mod web;

use std::process::ExitCode;

use arguments::{Arguments, Command, EnginesCommand, FaultsCommand};
use clap::Parser;
use exit::Exit;

fn main() -> ExitCode {
    // Hidden doors first: these processes are ours, and must be in their namespaces before anything starts a thread.
    if let Some(code) = commands::inner::run(std::env::args_os().skip(1)) {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return exit::for_usage(&error),
    };
    let done = match arguments.command {
        Command::Run(options) => commands::run::run(options),
        Command::Check { scenario, set, this_host } => {
            commands::check::check(scenario.as_deref(), &set, this_host)
        }
        Command::Manifests(options) => commands::manifests::manifests(&options),
        Command::Predict(options) => commands::predict::predict(&options),
        Command::Load(options) => commands::load::load(options),
        Command::Agent => commands::agent::agent(),
        Command::Report { run_directory } => commands::report::report(&run_directory),
        Command::Compare { run_directories, out, with, fail_if } => {
            commands::compare::compare(&run_directories, out.as_deref(), with.as_deref(), &fail_if)
        }
        Command::Serve { folder, at } => commands::serve::serve(&folder, at),
        Command::Export(options) => commands::export::export(&options),
        Command::Shell(options) => commands::shell::shell(&options),
        Command::Verify { model, level, history } => {
            commands::verify::verify(&model, level.as_deref(), &history)
        }
        Command::List { what } => commands::list::list(what),
        Command::Doctor => commands::doctor::doctor(),
        Command::Explain { thing } => commands::explain::explain(&thing.join(" ")),
        Command::Schema { engine } => commands::schema::schema(engine),
        Command::Heal { run_directory, print } => commands::heal::heal(&run_directory, print),
        Command::Faults { what: FaultsCommand::Check { file } } => commands::faults::check(&file),
        Command::Engines { what: EnginesCommand::Check { file } } => commands::engines::check(&file),
    };
    done.unwrap_or_else(Exit::tell).into()
}
