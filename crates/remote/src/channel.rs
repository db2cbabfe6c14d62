//! A program on a machine that is spoken to for long: its input and its output, by the same ways as commands.
//!
//! Owns the process that carries them, and its end. What is said is the caller's.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::quoting;
use crate::transport::{PATH, Reach, TransportError, carrier};

/// Most that is kept of what the way and the program complain of.
const MOST_COMPLAINT_BYTES: usize = 4 << 10;
/// How long a program may take to end once its input has ended.
const GRACE: Duration = Duration::from_secs(2);
/// How long complaints are waited for once the output has ended: a program that was left behind may hold the other end.
const DRAIN: Duration = Duration::from_millis(500);
/// How often it is looked whether it has.
const POLL: Duration = Duration::from_millis(10);

/// A program under way on a machine. Dropping it ends the process that carries it here; the program is to end when its input
/// does.
#[derive(Debug)]
pub struct Channel {
    child: Child,
    complaint: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

/// What the program reads and writes, and what complaints are asked of.
#[derive(Debug)]
pub struct Opened {
    pub input: ChildStdin,
    pub output: ChildStdout,
    /// The process.
    pub channel: Channel,
}

impl Channel {
    /// Starts a program with these arguments. It must say something before anything is written to it: until then its input is
    /// read by a shell, so that neither ssh nor a login's shell reads a word of the arguments.
    ///
    /// # Errors
    /// When the way is none, or the process that is to carry it cannot be started.
    pub fn open(reach: &Reach, program: &[String]) -> Result<Opened, TransportError> {
        let way = reach.program()?;
        let failed = |source: io::Error| TransportError::Start {
            host: reach.host().to_owned(),
            program: quoting::joined(&way),
            source,
        };
        let mut child = carrier(&way).spawn().map_err(failed)?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut channel = Channel { child, complaint: Arc::default(), listener: None };
        let listener = errors.map(|errors| keep_beginning(errors, channel.complaint.clone()));
        channel.listener = listener.transpose().map_err(failed)?;
        let (Some(mut input), Some(output)) = (input, output) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let line = format!("{PATH}\nexec {}\n", quoting::joined(program));
        // A shell that has ended already says why in its complaint.
        match input.write_all(line.as_bytes()).and_then(|()| input.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failed(error)),
            _ => Ok(Opened { input, output, channel }),
        }
    }

    /// What the way and the program have complained of so far.
    #[must_use]
    pub fn complaint(&self) -> String {
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&complaint).into_owned()
    }

    /// All that they have complained of, once the output has ended: what comes at the same moment is waited for.
    #[must_use]
    pub fn last_words(&self) -> String {
        let deadline = Instant::now() + DRAIN;
        let goes_on = || self.listener.as_ref().is_some_and(|listener| !listener.is_finished());
        while goes_on() && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
        self.complaint()
    }
}

impl Drop for Channel {
    /// The input has ended before; a program that does not end by that is ended.
    fn drop(&mut self) {
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(_)) | Err(_) => return,
                Ok(None) => std::thread::sleep(POLL),
            }
        }
        // Its group is our own doing and not yet waited for: the number is still its.
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX));
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Reads to the end on a thread of its own and keeps the beginning, so that nobody who complains waits.
fn keep_beginning(
    mut stream: impl Read + Send + 'static,
    kept: Arc<Mutex<Vec<u8>>>,
) -> io::Result<JoinHandle<()>> {
    let listen = move || {
        let mut chunk = [0; 1024];
        while let Ok(length @ 1..) = stream.read(&mut chunk) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MOST_COMPLAINT_BYTES.saturating_sub(kept.len());
            kept.extend_from_slice(&chunk[..length.min(room)]);
        }
    };
    std::thread::Builder::new().name("complaints".to_owned()).spawn(listen)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    fn local() -> Reach {
        Reach::Local { through: Vec::new() }
    }

    #[test]
    fn a_program_is_spoken_to_once_it_has_spoken_and_ends_with_its_input() {
        let words = ["sh", "-c", "echo \"$0\"; exec cat", "it's $HOME"].map(str::to_owned);
        let Opened { mut input, output, channel } = Channel::open(&local(), &words).expect("started");
        let mut lines = BufReader::new(output).lines();
        let mut next = || lines.next().map(|line| line.expect("text"));
        assert_eq!(next().as_deref(), Some("it's $HOME"));
        writeln!(input, "there and back").expect("written");
        assert_eq!(next().as_deref(), Some("there and back"));
        drop(input);
        assert_eq!(next(), None);
        drop(channel);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_in_the_complaint() {
        let opened = Channel::open(&local(), &["/nowhere/holdfast".to_owned()]).expect("a shell");
        let mut said = String::new();
        BufReader::new(opened.output).read_to_string(&mut said).expect("text");
        assert_eq!(said, "");
        let said = opened.channel.last_words();
        assert!(said.contains("/nowhere/holdfast"), "{said}");
    }
}
