//! How a command reaches a machine: by the system's `ssh`, or a shell of this machine.
//!
//! Owns processes and their time limits. A script goes to the far side's `sh` on its standard input, so that neither ssh nor
//! the user's login shell there reads a word of it.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::command_file::Command;
use crate::quoting;

/// How long ssh may take to connect, beside the command's own time.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// How long output is waited for once the command has ended: a program that it left behind may hold the other end.
const DRAIN: Duration = Duration::from_millis(500);
/// How often it is looked whether a command has ended.
const POLL: Duration = Duration::from_millis(5);
/// Most that is kept of a command's output.
const MOST_OUTPUT_BYTES: usize = 64 << 10;
/// Most that is written to a shell before it reads: less than a pipe holds.
const MOST_SCRIPT_BYTES: usize = 48 << 10;
/// What ssh itself ends with.
const SSH_FAILED: i32 = 255;

/// How a machine is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// A shell of this machine, behind a program that starts it elsewhere (`nsenter --net=...`), or none.
    Local {
        /// That program and its arguments.
        through: Vec<String>,
    },
    /// The system's `ssh`, with the user's own configuration, agents and known hosts.
    Ssh {
        /// The machine, as `ssh` takes it: a name of its configuration, or `user@host`.
        host: String,
        /// Its port, where the configuration does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// The configuration of ssh that is used in place of the user's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<PathBuf>,
    },
    /// A shell of this machine, whose commands are about a pod of a cluster: leave is given for the pod, not for this machine.
    Pod {
        /// Its namespace and its name: `databases/pg-0`.
        pod: String,
    },
}

impl Reach {
    /// The machine's name, or the pod's, by which it is allowed.
    #[must_use]
    pub fn host(&self) -> &str {
        match self {
            Reach::Local { .. } => "localhost",
            Reach::Ssh { host, .. } => host,
            Reach::Pod { pod } => pod,
        }
    }

    /// Whether what a session leaves behind may be ended with it, so that what must outlive it needs a service manager.
    #[must_use]
    pub(crate) fn is_session(&self) -> bool {
        matches!(self, Reach::Ssh { .. })
    }

    /// The program that starts a shell there which reads a script, and its arguments.
    pub(crate) fn program(&self) -> Result<Vec<String>, TransportError> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Reach::Local { through } => Ok(through.iter().cloned().chain(words(&["sh", "-s"])).collect()),
            Reach::Pod { .. } => Ok(words(&["sh", "-s"])),
            Reach::Ssh { host, port, config } => {
                let fits = |c: char| c.is_ascii_alphanumeric() || "._-@:%[]".contains(c);
                if host.is_empty() || host.starts_with('-') || !host.chars().all(fits) {
                    return Err(TransportError::NotAHost { host: host.clone() });
                }
                let mut program = words(&["ssh", "-T"]);
                program.extend(config.iter().flat_map(|path| ["-F".to_owned(), path.display().to_string()]));
                program.extend(words(&["-o", "BatchMode=yes", "-o"]));
                program.push(format!("ConnectTimeout={}", CONNECT.as_secs()));
                program.extend(words(&["-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3"]));
                program.extend(port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
                program.extend(words(&["--", host, "sh", "-s"]));
                Ok(program)
            }
        }
    }
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its exit code; that of a shell where a signal ended it.
    pub exit: u8,
    /// What it wrote, its error output behind it.
    pub text: String,
    /// How much of that is its output.
    #[serde(default)]
    pub answer_bytes: usize,
    /// Whether it wrote more than is kept.
    #[serde(default)]
    pub is_cut: bool,
}

impl Output {
    /// What it wrote to its standard output.
    #[must_use]
    pub fn answer(&self) -> &str {
        self.text.get(..self.answer_bytes).unwrap_or(&self.text)
    }

    /// What it wrote to its error output.
    #[must_use]
    pub fn complaint(&self) -> &str {
        self.text.get(self.answer_bytes..).unwrap_or_default()
    }
}

/// Why a command's end is not known.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// It would not be one.
    #[error(
        "`{host}` cannot be the name of a machine: letters, digits and `.`, `_`, `-`, `@`, `:`, not beginning with a hyphen"
    )]
    NotAHost {
        /// What was given.
        host: String,
    },
    /// The program that should carry it is not there, or the pipe to it broke.
    #[error("{host}: {program} could not be used: {source}")]
    Start {
        /// The machine.
        host: String,
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The machine was not reached, or the connection broke.
    #[error("{host}: not reached: {words}")]
    Unreachable {
        /// The machine.
        host: String,
        /// What ssh said.
        words: String,
    },
    /// There was no answer in time.
    #[error("{host}: no answer within {} s", .within.as_secs_f64())]
    TimedOut {
        /// The machine.
        host: String,
        /// The limit.
        within: Duration,
    },
    /// The script is longer than is sent.
    #[error("{host}: a script of {bytes} bytes is too long")]
    TooLong {
        /// The machine.
        host: String,
        /// Its length.
        bytes: usize,
    },
}

/// What brings scripts to a machine.
pub trait Transport {
    /// How the machine is reached, to be found again after a crash.
    fn reach(&self) -> &Reach;

    /// Runs a script by the machine's `sh`, to its end.
    ///
    /// # Errors
    /// When it is not known how it ended: the machine was not reached, or did not answer in time.
    fn run(&self, script: &str, within: Duration) -> Result<Output, TransportError>;
}

/// Runs one command, no longer than it may: `timeout` on the machine ends it even where the connection is gone.
///
/// # Errors
/// As [`Transport::run`].
pub fn command(transport: &dyn Transport, command: &Command) -> Result<Output, TransportError> {
    after(transport, "", command)
}

/// Runs one command once a script, which may end the shell, has let it pass.
///
/// # Errors
/// As [`Transport::run`].
pub(crate) fn after(
    transport: &dyn Transport,
    guard: &str,
    command: &Command,
) -> Result<Output, TransportError> {
    // What is left to come is the way there and back.
    transport.run(&format!("{PATH}\n{guard}exec {}\n", line(command)), command.within + CONNECT)
}

/// A shell's first line: administrators' programs are found also where a login does not have them.
pub(crate) const PATH: &str = "PATH=\"$PATH:/usr/local/sbin:/usr/sbin:/sbin\"; export PATH";

/// A command as a line of a script.
pub(crate) fn line(command: &Command) -> String {
    // Whole seconds: not every `timeout` reads parts of one.
    let seconds = command.within.as_millis().div_ceil(1000);
    format!("timeout -k 1 {seconds} {} </dev/null", quoting::joined(&command.run))
}

/// The process that carries what is said to a machine, in a group of its own, with pipes.
pub(crate) fn carrier(way: &[String]) -> Process {
    let mut process = Process::new(&way[0]);
    process.args(&way[1..]).process_group(0);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    process
}

impl Transport for Reach {
    fn reach(&self) -> &Reach {
        self
    }

    fn run(&self, script: &str, within: Duration) -> Result<Output, TransportError> {
        let host = || self.host().to_owned();
        if script.len() > MOST_SCRIPT_BYTES {
            return Err(TransportError::TooLong { host: host(), bytes: script.len() });
        }
        let program = self.program()?;
        let failed =
            |source| TransportError::Start { host: host(), program: quoting::joined(&program), source };
        let mut child = carrier(&program).spawn().map_err(failed)?;
        let deadline = Instant::now() + within;
        let readers = reading(child.stdout.take()).and_then(|out| Ok((out, reading(child.stderr.take())?)));
        let (out, err) = match readers {
            Ok(readers) => readers,
            Err(error) => {
                // Nothing was asked yet, so that ending it leaves nothing half done.
                let _ = wait(&mut child, Instant::now());
                return Err(failed(error));
            }
        };
        let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(script.as_bytes()));
        let ended = wait(&mut child, deadline).map_err(failed)?;
        let Some(code) = ended else { return Err(TransportError::TimedOut { host: host(), within }) };
        let ((out, out_is_cut), (err, err_is_cut)) = (read(&out), read(&err));
        if matches!(self, Reach::Ssh { .. }) && code == SSH_FAILED {
            return Err(TransportError::Unreachable { host: host(), words: err.trim().to_owned() });
        }
        // A shell that ended before it read everything has said why by its exit code.
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(failed(error)),
            _ => {}
        }
        let (exit, answer_bytes) = (u8::try_from(code).unwrap_or(u8::MAX), out.len());
        Ok(Output { exit, text: out + &err, answer_bytes, is_cut: out_is_cut || err_is_cut })
    }
}

/// The exit code, as a shell tells it; none when it had to be ended.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<i32>> {
    use std::os::unix::process::ExitStatusExt;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))));
        }
        if Instant::now() >= deadline {
            // Its group is our own doing and not yet waited for: the number is still its.
            let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
            let _ = killpg(group, Signal::SIGKILL);
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// Reads to the end on a thread of its own and keeps the beginning, so that nobody who writes waits.
fn reading(stream: Option<impl Read + Send + 'static>) -> io::Result<Receiver<Vec<u8>>> {
    let (give, take) = mpsc::channel();
    let Some(mut stream) = stream else { return Ok(take) };
    let listen = move || {
        let mut chunk = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut chunk) {
            if give.send(chunk[..length].to_vec()).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("answer".to_owned()).spawn(listen)?;
    Ok(take)
}

/// What was written until now and shortly after, and whether there was more than is kept.
fn read(chunks: &Receiver<Vec<u8>>) -> (String, bool) {
    let deadline = Instant::now() + DRAIN;
    let (mut bytes, mut is_cut) = (Vec::new(), false);
    while let Ok(chunk) = chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        let room = MOST_OUTPUT_BYTES.saturating_sub(bytes.len());
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        is_cut |= chunk.len() > room;
    }
    (String::from_utf8_lossy(&bytes).into_owned(), is_cut)
}
