//! Lab and fabric together, on real namespaces and interfaces: what every run stands on.
//!
//! A program of its own, because a lab starts its program again: as supervisor, as a node's init, as the janitor. Each
//! test of [`inside`] runs as PID 1 of a fresh lab; those of [`outside`] look at a lab from the machine. Where no lab
//! can be had, every test says so on a line `skipped: TEST: why`.

mod clocks;
mod contract;
mod crowd;
mod fates;
mod inside;
mod joined;
mod kernel_path;
mod outside;
mod systems;
mod test_lab;
mod whole_machines;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ExitCode};

use lab::supervisor::{self, SUPERVISOR_SUBCOMMAND};
use lab::{init, janitor, node};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut doors = std::env::args().skip(1);
    let ended = match doors.next().as_deref() {
        Some(node::INIT_SUBCOMMAND) => init::main().map_err(|error| error.to_string()),
        Some(SUPERVISOR_SUBCOMMAND) => {
            inside::perform();
            Ok(())
        }
        Some(janitor::JANITOR_SUBCOMMAND) => {
            let (name, folder) = (doors.next().expect("a run name"), doors.next().expect("a run directory"));
            janitor::main(&name, &PathBuf::from(folder)).map_err(|error| error.to_string())
        }
        _ => return tests(),
    };
    ended.map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn tests() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Each loads the machine.
    arguments.test_threads = Some(1);
    let inside = inside::TESTS.iter().map(|(name, _)| ((*name).to_owned(), Place::Inside));
    let joined = inside::JOINED_TESTS.iter().map(|(name, _)| ((*name).to_owned(), Place::Joined));
    let contract = inside::contract_names().map(|name| (name, Place::Joined));
    let outside = outside::TESTS.iter().map(|(name, test)| ((*name).to_owned(), Place::Outside(*test)));
    let trials = inside
        .chain(joined)
        .chain(contract)
        .chain(outside)
        .map(|(name, place)| Trial::test(name.clone(), move || attempt(&name, place)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

#[derive(Clone, Copy)]
enum Place {
    Inside,
    /// Inside, between places joined by hand.
    Joined,
    Outside(fn()),
}

fn attempt(name: &str, place: Place) -> Result<(), Failed> {
    let missing: Vec<String> = lab::machine::findings()
        .into_iter()
        .filter(|finding| finding.needed)
        .filter_map(|finding| Some(format!("{}: {}", finding.what, finding.found.err()?)))
        .collect();
    if !missing.is_empty() {
        eprintln!("skipped: {name}: no lab can be had here: {}", missing.join("; "));
        return Ok(());
    }
    if let (Place::Joined, Some(obstacle)) = (place, joined::obstacle()) {
        eprintln!("skipped: {name}: {obstacle}");
        return Ok(());
    }
    match place {
        Place::Outside(test) => test(),
        Place::Inside | Place::Joined => {
            let folder = tempfile::Builder::new().prefix("holdfast-lab-").tempdir()?;
            let mut lab = start(folder.path(), name);
            let mut said = String::new();
            let read = lab.stdout.take().map(|mut output| output.read_to_string(&mut said));
            let status = lab.wait()?;
            read.ok_or("no output")??;
            if !status.success() {
                let log = std::fs::read_to_string(folder.path().join("log"))?;
                return Err(format!("{status}\n{said}{log}").into());
            }
            for line in said.lines().filter(|line| line.starts_with("skipped:")) {
                eprintln!("{line}");
            }
        }
    }
    Ok(())
}

/// Starts a lab that is to do `job`, its log in `folder`.
fn start(folder: &std::path::Path, job: &str) -> Child {
    // The nodes' user, another than ours when we are root, passes through here to its volume.
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("permissions");
    let log = std::fs::File::create(folder.join("log")).expect("a log");
    let mut lab = supervisor::launch(log).expect("a supervisor");
    let orders = lab.stdin.as_mut().expect("its input");
    writeln!(orders, "{job}\n{}", folder.display()).expect("orders");
    lab
}
