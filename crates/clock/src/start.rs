//! A program that runs by a clock outside a lab, and the trial of whether this machine allows it: what `holdfast doctor` asks,
//! and a run whose scenario sets clocks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::{ClockError, step};
use crate::filter::{install, take_listener};
use crate::keeper::Clock;
use crate::probe::program;
use crate::reading::Reading;
use crate::shift::Shift;

/// How far the trial sets its clock: 10 days.
const TRIAL_NS: i64 = 864_000_000_000_000;

/// Starts a program that sees the clock, with all that it starts.
///
/// # Errors
/// When the filter, the keeper or the program is refused.
pub fn start(clock: &Arc<Clock>, command: &mut Command) -> Result<Child, ClockError> {
    let (mut ours, theirs) = step("make a socket pair", UnixStream::pair())?;
    let before_exec = move || {
        nix::sys::prctl::set_no_new_privs()?;
        let listener = install();
        let number = listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        (&theirs).write_all(&number.to_ne_bytes())?;
        (&theirs).write_all(&std::process::id().to_ne_bytes())?;
        // Not closed before the parent has taken it.
        (&theirs).read_exact(&mut [0])?;
        listener.map(drop)
    };
    // SAFETY: between fork and exec the child makes system calls only.
    unsafe { command.pre_exec(before_exec) };
    std::thread::scope(|scope| {
        // The program is not started before somebody listens.
        let child = scope.spawn(|| command.spawn());
        let (mut number, mut process) = ([0; 4], [0; 4]);
        let kept = ours.read_exact(&mut number).and_then(|()| ours.read_exact(&mut process)).and_then(|()| {
            match RawFd::from_ne_bytes(number) {
                -1 => Ok(None),
                number => take_listener(u32::from_ne_bytes(process), number).map(Some),
            }
        });
        let kept = step("take the listener of execs", kept);
        let kept = kept.and_then(|listener| listener.map_or(Ok(()), |listener| clock.keep(listener)));
        let let_go = step("let the program start", ours.write_all(&[0]));
        let child =
            child.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")));
        let child = step("filter execs (seccomp) and start the program", child)?;
        kept.and(let_go).map(|()| child)
    })
}

/// Tries whether a program of this machine sees a clock of its own.
///
/// # Errors
/// Why not.
pub fn trial() -> Result<(), ClockError> {
    let (file, seen_at) = in_memory("clock")?;
    let clock = Arc::new(Clock::in_file(&seen_at, &seen_at)?);
    clock.set(Shift::jump(TRIAL_NS));
    let (mut writable, path) = in_memory("clock-probe")?;
    step("write the probe", writable.write_all(&program()))?;
    // A file that is open for writing cannot be run.
    let readable = step("open the probe", File::open(&path))?;
    drop(writable);
    let path = in_proc(&readable);
    let mut command = Command::new(path);
    let child = start(&clock, command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()))?;
    let output = step("run the probe", child.wait_with_output())?;
    drop(file);
    let text = String::from_utf8_lossy(&output.stdout);
    let reading = Reading::narrowest(&text).ok_or_else(|| {
        ClockError::NotSeen(format!("said `{}` and ended with {}", text.trim(), output.status))
    })?;
    let (least_ns, most_ns) = reading.offset_ns();
    if (least_ns..=most_ns).contains(&TRIAL_NS) {
        return Ok(());
    }
    let why = clock.misses().pop().map_or_else(String::new, |why| format!(": {why}"));
    Err(ClockError::NotSeen(format!("saw one {} ns ahead{why}", (least_ns + most_ns) / 2)))
}

/// A file that lies in no file system, and its path for this process and its children.
fn in_memory(name: &str) -> Result<(File, PathBuf), ClockError> {
    let made = memfd_create(name, MFdFlags::MFD_CLOEXEC).map_err(io::Error::from);
    let file = File::from(step("make a file in memory", made)?);
    let path = in_proc(&file);
    Ok((file, path))
}

fn in_proc(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}
