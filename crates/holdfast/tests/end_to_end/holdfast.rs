//! The built program, run as a person would: from a folder of its own, with a copy of the shipped scenarios in it.
//!
//! Owns where it runs, as whom, and how long it may hang. What a run leaves on the machine is `traces`' business.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::time_line;

/// A program that takes longer hangs. No figure is drawn from it.
const HANGS_AFTER: Duration = Duration::from_secs(900);

/// The usual number of the user who owns nothing.
const NOBODY: u32 = 65_534;

/// What virtual disks need.
const FUSE: &str = "/dev/fuse";

/// A short schedule for the scenarios shipped with one power-off: phases of 1, 3, 6 and 3 seconds.
pub const SHORT: [&str; 5] = [
    "--set=schedule.0.for=1s",
    "--set=schedule.1.for=3s",
    "--set=schedule.2.for=6s",
    "--set=schedule.2.faults.0.for=3s",
    "--set=schedule.3.for=3s",
];

/// The main job made small, for tests of the lab and not of what a database does: two nodes, a ledger, and phases of 1, 2,
/// 4 and 1 seconds.
pub const SMALL: [&str; 7] = [
    "run",
    "scenarios/host-failure.yaml",
    "--set=database.nodes=2",
    "--set=database.failover.ha-restart.after=1s",
    "--set=loads=[{ workload: ledger, clients: 2, from: dc1, rate: 100/s }]",
    "--set=schedule=[{ phase: warm-up, for: 1s }, { phase: baseline, for: 2s }, { phase: fault, for: 4s, faults: [{ \
     power-off: { host: leader }, at: 0s, for: 2s }] }, { phase: recovery, for: 1s }]",
    "--set=expect={ lost_writes: 0, invented_writes: 0 }",
];

/// For tests in which it does not matter which database runs: the one that boots in a fraction of a second.
pub const ON_CONTROL: [&str; 2] = ["--set", "database.engine=control"];

/// For scenarios in which the platform restarts the node elsewhere: after one second.
pub const RESTART_SOON: [&str; 2] = ["--set", "database.failover.ha-restart.after=1s"];

/// For scenarios in which a standby is promoted: after one second.
pub const PROMOTE_SOON: [&str; 2] = ["--set", "database.failover.promote.after=1s"];

/// Arguments as one list.
pub fn arguments<'a>(parts: &[&[&'a str]]) -> Vec<&'a str> {
    parts.concat()
}

/// A folder with the program and the scenarios in it, to work in. Removed with everything in it on drop.
pub struct Desk {
    folder: TempDir,
    user: Option<u32>,
    hides_fuse: bool,
    /// Where the program installs, in place of the user's own folder.
    cache: Option<PathBuf>,
}

impl Desk {
    /// A desk for whoever runs the tests.
    pub fn new() -> Desk {
        let folder = tempfile::Builder::new().prefix("holdfast-test-").tempdir().expect("a temporary folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        let program = Path::new(env!("CARGO_BIN_EXE_holdfast"));
        let own = folder.path().join("holdfast");
        // A name of its own, so that its processes are told from those of every other test.
        std::fs::hard_link(program, &own)
            .or_else(|_| std::fs::copy(program, &own).map(drop))
            .expect("a copy");
        copy_folder(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"),
            &folder.path().join("scenarios"),
        );
        std::fs::create_dir(folder.path().join("temporary")).expect("folder for temporary files");
        Desk { folder, user: None, hides_fuse: false, cache: None }
    }

    /// The same, where it can have a lab. None, and said so, where not.
    pub fn with_a_lab(test: &str) -> Option<Desk> {
        let desk = Desk::new();
        desk.can_have_a_lab(test).then_some(desk)
    }

    /// The same, where the program installs into this folder.
    pub fn installing_into(mut self, cache: PathBuf) -> Desk {
        self.cache = Some(cache);
        self
    }

    /// The same for an ordinary user: whoever runs the tests, or a user who owns nothing when that is root. None,
    /// and said so, where such a user cannot have a lab.
    pub fn of_an_ordinary_user(test: &str) -> Option<Desk> {
        let mut desk = Desk::new();
        if nix::unistd::geteuid().is_root() {
            desk.user = Some(NOBODY);
            for folder in [desk.path(), &desk.path().join("temporary")] {
                chown(folder, Some(NOBODY), Some(NOBODY)).expect("chown");
            }
        }
        desk.can_have_a_lab(test).then_some(desk)
    }

    /// The same on a machine without `/dev/fuse`: the program gets mounts of its own, in which another device lies over it.
    /// None, and said so, where that cannot be had.
    pub fn without_fuse(test: &str) -> Option<Desk> {
        let mut desk = Desk::new();
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: {test}: only root may cover /dev/fuse");
            return None;
        }
        desk.hides_fuse = Path::new(FUSE).exists();
        desk.can_have_a_lab(test).then_some(desk)
    }

    /// Whether whoever runs the program here may use `/dev/fuse`; says so when not. Without it a power-off shows nothing.
    pub fn has_fuse(&self, test: &str) -> bool {
        let is_open_to_all =
            || Path::new(FUSE).metadata().is_ok_and(|found| found.permissions().mode() & 0o006 == 0o006);
        let is_open_to_us = || std::fs::File::options().read(true).write(true).open(FUSE).is_ok();
        let able = if self.user.is_some() { is_open_to_all() } else { is_open_to_us() };
        if !able {
            eprintln!("skipped: {test}: this user may not use {FUSE}");
        }
        able
    }

    /// Whether a lab can be had here; says so when not.
    pub fn can_have_a_lab(&self, test: &str) -> bool {
        let doctor = self.run(&["doctor"]);
        let able = doctor.code() == Some(0);
        if !able {
            let missing: Vec<&str> =
                doctor.stdout.lines().filter(|line| line.starts_with("MISSING")).collect();
            eprintln!("skipped: {test}: no lab can be had here: {}", missing.join("; "));
        }
        able
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Part of every path on this desk, and of no other path on the machine.
    pub fn mark(&self) -> String {
        self.path().file_name().expect("a name").to_string_lossy().into_owned()
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(self.path().join("holdfast"));
        command.args(arguments).current_dir(self.path()).env("TMPDIR", self.path().join("temporary"));
        // A group of its own: a signal to it is a Ctrl-C, and reaches no test.
        command.stdin(Stdio::null()).process_group(0);
        if let Some(user) = self.user {
            command.uid(user).gid(user).env("HOME", self.path());
        }
        if let Some(cache) = &self.cache {
            command.env("HOLDFAST_CACHE", cache);
        }
        if self.hides_fuse {
            // SAFETY: between fork and exec the child makes system calls only.
            unsafe { command.pre_exec(hide_fuse) };
        }
        command
    }

    /// Runs the program to its end; again where the machine held the lab up, which no scenario is to blame for.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Finished {
        if arguments.iter().any(|argument| argument.as_ref() == "--plant") {
            return self.start(arguments).wait();
        }
        unless_stalled(|| self.start(arguments).wait())
    }

    /// Runs the program with nobody at the other end of its standard output.
    pub fn run_unread<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Finished {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = self.command(arguments).stdout(writer).output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished { status: output.status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Runs the program with this on its standard input.
    pub fn run_with_input<S: AsRef<OsStr>>(&self, arguments: &[S], input: &[u8]) -> Finished {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(input).expect("write to the pipe, which holds it all");
        drop(writer);
        let output = self.command(arguments).stdin(reader).output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished { status: output.status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    pub fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        let mut command = self.command(arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let heard = Arc::new(Heard::default());
        let (stdout, told) = (child.stdout.take().expect("stdout"), heard.clone());
        let listener = std::thread::spawn(move || told.listen(stdout));
        let mut stderr = child.stderr.take().expect("stderr");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).expect("read stderr");
            String::from_utf8_lossy(&text).into_owned()
        });
        Running { child, heard, threads: Some((listener, stderr)) }
    }
}

/// Covers the device in fresh mounts of the calling process, which has one thread.
fn hide_fuse() -> std::io::Result<()> {
    use nix::mount::{MsFlags, mount};
    const NONE: Option<&str> = None;
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
    Ok(mount(Some("/dev/null"), FUSE, NONE, MsFlags::MS_BIND, NONE)?)
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// What the program has said on standard output so far.
#[derive(Default)]
struct Heard {
    said: Mutex<(String, bool)>,
    changed: Condvar,
}

impl Heard {
    fn listen(&self, output: impl Read) {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            let read = output.read_until(b'\n', &mut line).expect("read stdout");
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.0.push_str(&String::from_utf8_lossy(&line));
            said.1 = read == 0;
            self.changed.notify_all();
            if read == 0 {
                return;
            }
        }
    }
}

/// The program at work. Killed on drop, should a test fail before its end.
pub struct Running {
    child: Child,
    heard: Arc<Heard>,
    threads: Option<(std::thread::JoinHandle<()>, std::thread::JoinHandle<String>)>,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has said this, or has ended; whether it has said it.
    pub fn says(&self, text: &str) -> bool {
        let deadline = Instant::now() + HANGS_AFTER;
        let mut said = self.heard.said.lock().unwrap_or_else(PoisonError::into_inner);
        while !said.0.contains(text) && !said.1 {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it hangs without saying `{text}`; so far:\n{}", said.0);
            said = self.heard.changed.wait_timeout(said, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        said.0.contains(text)
    }

    /// Sends it a signal, and to nobody else.
    pub fn signal(&self, signal: i32) {
        send(self.child.id().cast_signed(), signal);
    }

    /// Sends its whole group a signal, as a terminal does on Ctrl-C.
    pub fn signal_group(&self, signal: i32) {
        send(-self.child.id().cast_signed(), signal);
    }

    pub fn wait(mut self) -> Finished {
        let deadline = Instant::now() + HANGS_AFTER;
        let status = loop {
            match self.child.try_wait().expect("wait") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    let said = self.heard.said.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
                    panic!("it hangs; so far:\n{said}")
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let (listener, stderr) = self.threads.take().expect("not waited for before");
        // Whoever still holds its output keeps these from ending, and shows up as a test that hangs.
        listener.join().expect("listener");
        let stderr = stderr.join().expect("stderr");
        let stdout = self.heard.said.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        Finished { status, stdout, stderr }
    }
}

fn send(target: i32, signal: i32) {
    // SAFETY: kill(2) takes no pointers. The child has not been waited for, so its number is still its own.
    let sent = unsafe { libc::kill(target, signal) };
    assert_eq!(sent, 0, "signal {signal} to {target}: {}", std::io::Error::last_os_error());
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program after its end.
pub struct Finished {
    status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Its exit code; none when a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Asserts its exit code, with all it said when that is another.
    #[track_caller]
    pub fn ends_with(&self, code: i32) -> &Finished {
        assert_eq!(self.code(), Some(code), "{}\n{}\nsignal {:?}", self.stdout, self.stderr, self.signal());
        self
    }

    /// Whether the verdict is `unknown` and the lab stalled.
    fn has_stalled(&self) -> bool {
        let directory = self.stdout.lines().last().map(PathBuf::from);
        let file = directory.map(|directory| directory.join("result.json")).filter(|file| file.is_file());
        let stalls = file.and_then(|file| read_json(&file)["lab"]["stalls"].as_array().map(Vec::len));
        self.code() == Some(2) && stalls > Some(0)
    }

    /// The run directory: the last line printed.
    #[track_caller]
    pub fn run_directory(&self) -> PathBuf {
        let path = PathBuf::from(self.stdout.lines().last().expect("a last line"));
        assert!(path.is_dir(), "the last line is no directory: {}", path.display());
        path
    }

    /// `result.json` of the run, which its time line must not contradict.
    #[track_caller]
    pub fn result(&self) -> Value {
        let directory = self.run_directory();
        let result = read_json(&directory.join("result.json"));
        let contradictions = time_line::contradictions(&directory, &result);
        assert!(contradictions.is_empty(), "{}", contradictions.join("\n"));
        result
    }
}

/// Tries up to three times, until a run ends whose lab did not stall. A run with a stall is `unknown`, as it has to be, and says
/// nothing of what a test asks.
pub fn unless_stalled(attempt: impl Fn() -> Finished) -> Finished {
    for again in 1..3 {
        let finished = attempt();
        if !finished.has_stalled() {
            return finished;
        }
        eprintln!(
            "again ({again}): the machine held the lab up, {}",
            finished.stdout.lines().last().unwrap_or_default()
        );
    }
    attempt()
}

#[track_caller]
pub fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
