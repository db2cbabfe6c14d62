//! What is done on one node: files written, programs run and started, and what they come to awaited.
//!
//! Owns that every wait ends, and that an error names the node and carries the end of the log.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Command, Finished, Node, NodeError, ProcessId, Status};

use crate::pieces::{Piece, Programs};

/// How often a node is asked again.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a port that is on the same node may take to accept.
const CONNECT_PATIENCE: Duration = Duration::from_millis(500);
/// Lines of a log that an error carries.
const LOG_LINES: usize = 12;
/// The ordinary user of a lab's nodes, whose the cluster's files and volumes are.
const USER: &str = "1000";

/// What can go wrong on a node of a cluster.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The node could not do what it was asked.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A file on the node's volume.
    #[error("{path} on the volume of {node}: {source}")]
    File {
        node: String,
        /// The file, relative to the volume.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A program ended badly.
    #[error("{program} on {node} ended with {status}: {said}")]
    Program {
        node: String,
        /// The program with its arguments.
        program: String,
        /// How it ended.
        status: Status,
        /// The last of what it said.
        said: String,
    },
    /// A part of the cluster ended by itself.
    #[error("{program} on {node} has ended; its log ends:\n{log}")]
    Ended {
        node: String,
        /// The part.
        program: &'static str,
        /// The end of its log.
        log: String,
    },
    /// Something did not come about in time.
    #[error("{node}: {what}: timed out after {waited:?}; if the machine is busy, stop other programs{log}")]
    NotReady {
        node: String,
        /// What was awaited.
        what: &'static str,
        /// How long.
        waited: Duration,
        /// The end of a log, on lines of its own, or nothing.
        log: String,
    },
    /// The node is not one of the cluster's.
    #[error("{node} is no node of this cluster that runs pods")]
    Stranger { node: String },
}

/// A part of the cluster that was started on a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    program: &'static str,
    process: ProcessId,
}

/// One node, and the programs as it sees them.
pub(crate) struct OnNode<'a> {
    pub(crate) node: &'a dyn Node,
    pub(crate) programs: &'a Programs,
}

impl OnNode<'_> {
    /// A path on the node's volume, as its programs see it.
    pub(crate) fn volume(&self, name: &str) -> PathBuf {
        self.node.data_directory().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> Result<(), StartError> {
        let path = Path::new(name);
        self.node.write_file(path, content).map_err(|source| StartError::File {
            node: self.node.name().to_owned(),
            path: path.to_owned(),
            source,
        })
    }

    /// Makes a folder that belongs to the node's ordinary user, and is still there after a power-off.
    pub(crate) fn make_folder(&self, path: &Path, mode: &str) -> Result<(), StartError> {
        let above = path.parent().unwrap_or(path).display().to_string();
        let path = path.display().to_string();
        let make = Path::new("/usr/bin/install");
        self.run_program(make, &["-d", "-m", mode, "-o", USER, "-g", USER, &path])?;
        // Without it the volume forgets the folder with all that was synced in it.
        self.run_program(Path::new("/usr/bin/sync"), &[&path, &above]).map(drop)
    }

    /// Runs a piece to its end; what it said.
    pub(crate) fn run(&self, piece: &Piece, arguments: &[&str]) -> Result<String, StartError> {
        self.run_program(&self.programs.of(piece), arguments)
    }

    fn run_program(&self, program: &Path, arguments: &[&str]) -> Result<String, StartError> {
        let finished = self.finished(program, arguments)?;
        if finished.status.success() {
            return Ok(finished.stdout);
        }
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        Err(StartError::Program {
            node: self.node.name().to_owned(),
            program: format!("{name} {}", arguments.join(" ")),
            status: finished.status,
            said: kubernetes::last_lines(&finished.stderr),
        })
    }

    /// Whether a piece ends well.
    pub(crate) fn succeeds(&self, piece: &Piece, arguments: &[&str]) -> Result<bool, StartError> {
        Ok(self.finished(&self.programs.of(piece), arguments)?.status.success())
    }

    pub(crate) fn finished(&self, program: &Path, arguments: &[&str]) -> Result<Finished, StartError> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Ok(self.node.run(&self.command(program, arguments))?)
    }

    /// Starts a piece that goes on, with a log under its own name.
    pub(crate) fn start(&self, piece: &Piece, arguments: Vec<String>) -> Result<Started, StartError> {
        let command = self.command(&self.programs.of(piece), arguments);
        let process = self.node.spawn(&command, &log_of(piece.name))?;
        Ok(Started { program: piece.name, process })
    }

    fn command(&self, program: &Path, arguments: Vec<String>) -> Command {
        Command { program: program.to_owned(), arguments, environment: self.programs.environment() }
    }

    /// Whether somebody listens at a port of the node's own address.
    pub(crate) fn listens(&self, port: u16) -> bool {
        self.node.connect(port, CONNECT_PATIENCE).is_ok()
    }

    /// Waits until it is so, as long as what was started for it runs.
    pub(crate) fn until(
        &self,
        started: Started,
        (what, patience): (&'static str, Duration),
        mut is_so: impl FnMut() -> Result<bool, StartError>,
    ) -> Result<(), StartError> {
        let began = Instant::now();
        loop {
            // Asked first: what has ended since is not ready.
            let so = is_so()?;
            if !self.node.is_running(started.process) {
                let (node, program) = (self.node.name().to_owned(), started.program);
                return Err(StartError::Ended { node, program, log: self.log_tail(program) });
            }
            if so {
                return Ok(());
            }
            if began.elapsed() >= patience {
                return Err(self.not_ready(what, patience, started.program));
            }
            thread::sleep(GLANCE);
        }
    }

    fn not_ready(&self, what: &'static str, waited: Duration, program: &str) -> StartError {
        let tail = self.log_tail(program);
        let log =
            if tail.is_empty() { String::new() } else { format!("; the log of {program} ends:\n{tail}") };
        StartError::NotReady { node: self.node.name().to_owned(), what, waited, log }
    }

    fn log_tail(&self, program: &str) -> String {
        self.node.log_tail(&log_of(program), LOG_LINES)
    }
}

/// What the log of a part is called on its node.
fn log_of(program: &str) -> String {
    format!("{program}.log")
}
