//! The news of the process that does the run, from the first to its end.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, Sender};

use faults::Lie;
use history::Verdict;
use lab::{planted_stall, supervisor};

use super::error::LaunchError;
use super::options::{Message, Show};
use crate::directory::RunDirectory;
use crate::orders::{INTERRUPT, News, Orders};

/// The second of the run in which a planted stall begins.
const STALL_AT_S: u64 = 3;

/// How the supervisor ended.
#[derive(Debug, Default)]
pub(super) struct Relayed {
    pub(super) verdict: Option<Verdict>,
    /// Whether the volumes were remembered, as was asked for.
    pub(super) is_remembered: bool,
    /// What of a lab on returned volumes is not as it was at the start, once that was looked at.
    pub(super) doubts: Option<Vec<String>>,
    pub(super) failed: Option<String>,
    pub(super) interrupted: bool,
    pub(super) status: Option<ExitStatus>,
}

/// Starts the process that does the run, in a lab or outside, and passes on its news until it ends.
pub(super) fn relay(
    (orders, in_a_lab): (&Orders, bool),
    directory: &RunDirectory,
    sender: Sender<Message>,
    receiver: &Receiver<Message>,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Relayed, LaunchError> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| LaunchError::Supervisor(format!("{what}: {error}"));
    directory.make_lab_logs()?;
    let log =
        File::create(lab::janitor::log_path(directory.path())).map_err(|error| failed("lab.log", &error))?;
    let launched = if in_a_lab { supervisor::launch(log) } else { supervisor::launch_outside(log) };
    let mut child = launched.map_err(|error| LaunchError::Supervisor(error.to_string()))?;
    let announced = if in_a_lab { lab::entrance::announce(directory.path(), child.id()) } else { Ok(()) };
    let line = serde_json::to_string(orders).map_err(|error| failed("orders", &error))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(LaunchError::Supervisor("its input and output are missing".to_owned()));
    };
    announced.map_err(|error| LaunchError::Supervisor(error.to_string()))?;
    let listen = move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(news) = serde_json::from_str(&line)
                && sender.send(Message::News(Box::new(news))).is_err()
            {
                return;
            }
        }
        let _ = sender.send(Message::HungUp);
    };
    // Without a thread for its news it gets no orders, and ends.
    let listening = std::thread::Builder::new().name("news".to_owned()).spawn(listen);
    listening.map_err(|error| failed("a thread for its news", &error))?;
    // A supervisor that ends before it reads its orders says why in its news.
    let _ = writeln!(input, "{line}");
    let mut stall = orders.planted.contains(&Lie::LabStall);
    let mut relayed = Relayed::default();
    while let Ok(message) = receiver.recv() {
        match message {
            Message::HungUp => break,
            Message::Interrupt if relayed.interrupted => {
                // Asked a second time: at once. The supervisor's death takes the lab along. On machines that exist nobody but
                // this process undoes what stands.
                if in_a_lab {
                    let _ = child.kill();
                }
            }
            Message::Interrupt => {
                relayed.interrupted = true;
                let _ = writeln!(input, "{INTERRUPT}");
            }
            Message::News(news) => {
                if stall && matches!(&*news, News::Pulse(pulse) if pulse.t_s >= STALL_AT_S) {
                    stall = false;
                    planted_stall::stop_for_a_while(child.id());
                }
                take_news(&news, directory.path(), &mut relayed, show);
            }
        }
    }
    drop(input);
    relayed.status = child.wait().ok();
    Ok(relayed)
}

fn take_news(news: &News, run_directory: &Path, relayed: &mut Relayed, show: &mut dyn FnMut(Show<'_>)) {
    match news {
        News::Finished { verdict } => relayed.verdict = Some(*verdict),
        News::Failed { why } => relayed.failed = Some(why.clone()),
        News::Remembered => relayed.is_remembered = true,
        News::Emptied { doubts } => relayed.doubts = Some(doubts.clone()),
        News::Kept { nodes, others } => show(Show::Reach { nodes, others, run_directory }),
        News::Event { .. } | News::Pulse(_) | News::Preparing { .. } => {}
    }
    show(Show::News(news));
}

pub(super) fn conclude(
    part: &'static str,
    relayed: Relayed,
    directory: &RunDirectory,
) -> Result<Verdict, LaunchError> {
    let run_directory = directory.path().to_owned();
    match (relayed.verdict, relayed.failed) {
        (Some(verdict), _) => Ok(verdict),
        (None, _) if relayed.interrupted => Ok(Verdict::Unknown),
        (None, Some(why)) => Err(LaunchError::Lab { part, why, run_directory }),
        (None, None) => {
            let status =
                relayed.status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string());
            let why = format!("the supervisor ended without a message ({status}); see logs/lab/lab.log");
            Err(LaunchError::Lab { part, why, run_directory })
        }
    }
}
