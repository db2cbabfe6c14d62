//! A program that is listened to until it ends, or is ended.
//!
//! Owns the process, its group and its pipes. It is not waited for before it is let go of, so that its number stays its own
//! and its group can be ended at any time.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// How long output is waited for once the program has ended: somebody outside its group may hold the other end.
const DRAIN: Duration = Duration::from_millis(500);
/// How often it is looked whether the last complaints have come.
const POLL: Duration = Duration::from_millis(5);
/// Most that is read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// How many chunks may wait to be taken.
const CHUNKS_AHEAD: usize = 16;
/// Most that is kept of the complaints; the end of them says why it failed.
const MOST_COMPLAINT_BYTES: usize = 8 << 10;
/// How many lines of it are told.
const LAST_LINES: usize = 4;

/// A program under way. Dropping it ends its group; so does the end of the thread that started it, as far as the program itself
/// goes.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    output: Receiver<Vec<u8>>,
    complaint: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

/// What came of listening.
#[derive(Debug)]
pub(crate) enum Next {
    Said(Vec<u8>),
    /// It said nothing and goes on.
    Quiet,
    /// It has ended and all that it said was taken. The code is that of a shell where a signal ended it.
    Ended(i32),
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> io::Result<Running> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // SAFETY: prctl is safe to call between fork and exec.
        unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
        let mut child = command.spawn()?;
        let (give, output) = mpsc::sync_channel(CHUNKS_AHEAD);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Where there is no thread to listen to it, the program ends with this.
        let mut running = Running { child, output, complaint: Arc::default(), listener: None };
        if let Some(stream) = stdout {
            let listen = move || read(stream, |chunk| give.send(chunk.to_vec()).is_ok());
            thread::Builder::new().name("output".to_owned()).spawn(listen)?;
        }
        if let Some(stream) = stderr {
            let kept = running.complaint.clone();
            let listen = move || read(stream, |chunk| keep_end(&kept, chunk));
            running.listener = Some(thread::Builder::new().name("complaints".to_owned()).spawn(listen)?);
        }
        Ok(running)
    }

    /// Waits so long for it to say something.
    pub(crate) fn next(&mut self, within: Duration) -> io::Result<Next> {
        let is_closed = match self.output.recv_timeout(within) {
            Ok(chunk) => return Ok(Next::Said(chunk)),
            Err(error) => error == RecvTimeoutError::Disconnected,
        };
        let Some(code) = self.code()? else {
            if is_closed {
                thread::sleep(within);
            }
            return Ok(Next::Quiet);
        };
        // What it left behind must not hold its pipes.
        self.end_group();
        Ok(self.output.recv_timeout(DRAIN).map_or(Next::Ended(code), Next::Said))
    }

    /// The last that it complained of, in one line. To be asked once it has ended.
    pub(crate) fn last_words(&self) -> String {
        let deadline = Instant::now() + DRAIN;
        let goes_on = || self.listener.as_ref().is_some_and(|listener| !listener.is_finished());
        while goes_on() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        last_lines(&String::from_utf8_lossy(&complaint))
    }

    /// Whether it has complained of this, and not much else since.
    pub(crate) fn complains_of(&self, words: &str) -> bool {
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&complaint).contains(words)
    }

    /// Its exit code, without waiting for it.
    fn code(&self) -> io::Result<Option<i32>> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(match waitid(Id::Pid(self.number()), flags)? {
            WaitStatus::Exited(_, code) => Some(code),
            WaitStatus::Signaled(_, signal, _) => Some(128 + signal as i32),
            _ => None,
        })
    }

    /// Its number, which is its group's as well.
    fn number(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }

    fn end_group(&self) {
        // Not yet waited for: the number is still its.
        let _ = killpg(self.number(), Signal::SIGKILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end_group();
        let _ = self.child.wait();
    }
}

/// The last lines that say something, in one.
pub fn last_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut last: Vec<&str> = lines.rev().take(LAST_LINES).collect();
    last.reverse();
    last.join(" | ")
}

/// Reads to the end, or until nobody takes it.
fn read(mut stream: impl Read, mut take: impl FnMut(&[u8]) -> bool) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match stream.read(&mut chunk) {
            Ok(length @ 1..) if take(&chunk[..length]) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

fn keep_end(kept: &Mutex<Vec<u8>>, chunk: &[u8]) -> bool {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend_from_slice(chunk);
    let surplus = kept.len().saturating_sub(MOST_COMPLAINT_BYTES);
    kept.drain(..surplus);
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shell(script: &str) -> Running {
        Running::start(Command::new("sh").args(["-c", script])).expect("a shell")
    }

    /// What it says until it ends, and how it ended.
    fn to_the_end(running: &mut Running) -> (String, i32) {
        let mut said = Vec::new();
        loop {
            match running.next(Duration::from_millis(20)).expect("listened") {
                Next::Said(chunk) => said.extend(chunk),
                Next::Quiet => {}
                Next::Ended(code) => return (String::from_utf8(said).expect("text"), code),
            }
        }
    }

    /// A zombie does nothing any longer.
    fn is_alive(number: i32) -> bool {
        let state = fs::read_to_string(format!("/proc/{number}/stat")).ok();
        state.and_then(|text| text.rsplit_once(") ").map(|(_, rest)| !rest.starts_with(['Z', 'X'])))
            == Some(true)
    }

    fn ends(number: i32) -> bool {
        (0..1200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !is_alive(number)
        })
    }

    #[test]
    fn what_a_program_says_its_code_and_its_last_words_are_known() {
        let mut running = shell("echo one; echo two; echo why >&2; echo not >&2; exit 3");
        assert_eq!(to_the_end(&mut running), ("one\ntwo\n".to_owned(), 3));
        assert_eq!(running.last_words(), "why | not");
    }

    #[test]
    fn a_signal_is_told_as_a_shell_tells_it() {
        assert_eq!(to_the_end(&mut shell("kill -KILL $$")).1, 137);
    }

    #[test]
    fn what_a_program_leaves_behind_holds_nobody_up_and_is_ended() {
        let (said, code) = to_the_end(&mut shell("sleep 1000 & echo $!"));
        assert_eq!(code, 0);
        assert!(ends(said.trim().parse().expect("a number")));
    }

    #[test]
    fn a_group_ends_with_its_guard() {
        let mut running = shell("sleep 1000 & echo $!; wait");
        let said = loop {
            match running.next(Duration::from_millis(20)).expect("listened") {
                Next::Said(chunk) => break String::from_utf8(chunk).expect("text"),
                Next::Quiet => {}
                Next::Ended(code) => panic!("ended with {code}"),
            }
        };
        let (shell, sleep) = (running.number().as_raw(), said.trim().parse().expect("a number"));
        assert!(is_alive(shell) && is_alive(sleep));
        drop(running);
        assert!(ends(shell) && ends(sleep));
    }

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let started = thread::spawn(|| {
            let running = shell("exec sleep 1000");
            let number = running.number().as_raw();
            // As when the whole process is killed: nothing is dropped.
            std::mem::forget(running);
            number
        });
        assert!(ends(started.join().expect("started")));
    }

    #[test]
    fn of_many_lines_the_last_are_told() {
        assert_eq!(last_lines("a\nb\n\n  c\nd\ne\n"), "b | c | d | e");
        assert_eq!(last_lines(" \n"), "");
    }
}
