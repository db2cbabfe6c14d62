//! A person's shell, or a command, inside a place of a lab that is up.
//!
//! Owns the processes on the way in and what becomes of the terminal. Finding the way is `entrance`'s business. Sources:
//! setns(2), pid_namespaces(7), credentials(7), termios(3).
//!
//! The caller forks a keeper, which steps into the lab's user and PID namespaces and forks the process that becomes the
//! shell: so the shell lives in the place's PID namespace and dies with it, whatever it ignores. The keeper is in a
//! process group of its own, which no key of the terminal reaches, and is there to reap the shell at once: a dying PID
//! namespace waits for its last process to be reaped, and a power-off must not wait for a person who has pressed Ctrl-Z.
//! A place that is only a network namespace gets further namespaces, and with them two further processes on the way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpgrp, pipe2, setpgid, tcgetpgrp, tcsetpgrp};
use serde::{Deserialize, Serialize};

use crate::entrance::{Door, Inside};
use crate::furnishing::{Furnishing, Shown, become_node_user, furnish};
use crate::protocol::{HOME, ShownPrograms};
use crate::supervisor::keep_standard_descriptors_only;
use crate::{keyring, terminal_filter};

/// Added to a signal's number where a process that one ended has to have an exit code, as shells do.
const SIGNAL_BASE: i32 = 128;
/// Shells, the best first.
const SHELLS: &[&str] = &["/bin/bash", "/bin/sh"];
/// What of the caller's environment is about the terminal and not about the machine.
const KEPT: &[&str] = &["TERM", "COLORTERM"];

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// A step on the way in was refused.
    #[error("enter {place}: {step}: {source}")]
    Step {
        place: String,
        step: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The command is not to be had inside.
    #[error("{place}: {program}: {source}")]
    Program {
        place: String,
        program: String,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// What went wrong, on its way out through the pipe.
#[derive(Debug, Serialize, Deserialize)]
struct Trouble {
    step: String,
    number: i32,
    is_program: bool,
}

fn step<T, E: Into<io::Error>>(step: &str, result: Result<T, E>) -> Result<T, Trouble> {
    result.map_err(|error| {
        let number = error.into().raw_os_error().unwrap_or(libc::EIO);
        Trouble { step: step.to_owned(), number, is_program: false }
    })
}

/// Runs `command`, or without one a shell, inside the place and waits for its end. Returns its exit code; 128 and the
/// signal's number where one ended it. The calling process must have one thread. Input, output, errors and the terminal
/// are the caller's; until it is over, Ctrl-C and Ctrl-\ are not for the caller.
///
/// # Errors
/// When the place cannot be entered or the program cannot be started.
pub fn run(door: &Door, command: &[OsString]) -> Result<i32, ShellError> {
    let place = || door.place.clone();
    let failed =
        |step: &str, source: io::Error| ShellError::Step { place: place(), step: step.to_owned(), source };
    let (told, tell) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| failed("pipe", error.into()))?;
    let visit = Visit { door, command, is_interactive: command.is_empty() && io::stdin().is_terminal() };
    let terminal = Terminal::remember();
    // SAFETY: one thread only, by contract; the child never returns from here.
    let keeper = match unsafe { fork() }.map_err(|error| failed("fork", error.into()))? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop(told);
            let went_wrong = visit.keep(tell);
            // SAFETY: _exit only ends this process.
            unsafe { libc::_exit(went_wrong) }
        }
    };
    drop(tell);
    let ignoring = Ignoring::begin();
    let mut trouble = String::new();
    let heard = File::from(told).read_to_string(&mut trouble);
    let code = wait_for(keeper, false);
    drop(terminal);
    drop(ignoring);
    heard.map_err(|source| failed("listen to the keeper", source))?;
    match serde_json::from_str::<Trouble>(&trouble) {
        Err(_) => Ok(code),
        Ok(Trouble { step, number, is_program }) => {
            let source = io::Error::from_raw_os_error(number);
            Err(if is_program {
                ShellError::Program { place: place(), program: step, source }
            } else {
                ShellError::Step { place: place(), step, source }
            })
        }
    }
}

/// Waits until the process ends, reaping whatever else ends. One that stops goes on at once where it is the shell itself
/// at the terminal: nobody could wake it.
fn wait_for(child: Pid, waking: bool) -> i32 {
    let flags = waking.then_some(WaitPidFlag::WUNTRACED);
    loop {
        match waitpid(None::<Pid>, flags) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return code,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => return SIGNAL_BASE + signal as i32,
            Ok(WaitStatus::Stopped(pid, _)) if pid == child => drop(kill(pid, Signal::SIGCONT)),
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(_) => return 255,
        }
    }
}

/// While somebody else's program has the terminal.
struct Ignoring(Vec<(Signal, SigHandler)>);

impl Ignoring {
    fn begin() -> Ignoring {
        // The last one is sent to whoever takes the terminal back from the background.
        let signals = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTTOU];
        let ignore = |one: Signal| {
            // SAFETY: no handler is installed, only the disposition changes.
            let before = unsafe { signal(one, SigHandler::SigIgn) };
            before.ok().map(|before| (one, before))
        };
        Ignoring(signals.into_iter().filter_map(ignore).collect())
    }
}

impl Drop for Ignoring {
    fn drop(&mut self) {
        for (one, before) in &self.0 {
            // SAFETY: what was in force before is put back.
            let _ = unsafe { signal(*one, *before) };
        }
    }
}

/// The terminal as it was, put back on drop: a shell that was killed leaves it in whatever state it was in.
struct Terminal {
    settings: Termios,
}

impl Terminal {
    /// Only where the caller has the terminal's foreground: else it is not the caller's to give or take back.
    fn remember() -> Option<Terminal> {
        let stdin = io::stdin();
        let is_ours = tcgetpgrp(stdin.as_fd()).is_ok_and(|group| group == getpgrp());
        is_ours.then(|| tcgetattr(stdin.as_fd()).ok()).flatten().map(|settings| Terminal { settings })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let stdin = io::stdin();
        // A terminal that has hung up can be given back to nobody.
        let _ = tcsetpgrp(stdin.as_fd(), getpgrp());
        let _ = tcsetattr(stdin.as_fd(), SetArg::TCSADRAIN, &self.settings);
    }
}

/// One visit. Each of the following runs in the process it is named after.
struct Visit<'a> {
    door: &'a Door,
    command: &'a [OsString],
    is_interactive: bool,
}

impl Visit<'_> {
    /// The keeper: outside the PID namespace. Returns the exit code.
    fn keep(&self, mut tell: OwnedFd) -> i32 {
        let came = self.descend(&mut tell, CloneFlags::CLONE_NEWUSER, |visit, tell| {
            match visit.door.entrance.inside {
                Some(Inside::Network { .. }) => visit.make_room(tell),
                _ => visit.walk_in().and_then(|()| visit.become_the_shell()),
            }
        });
        came.unwrap_or_else(|trouble| tell_and_end(&trouble, tell))
    }

    /// Enters the PID namespace (and before it the user namespace), forks, and watches over the child, which does `next`.
    fn descend(
        &self,
        tell: &mut OwnedFd,
        first: CloneFlags,
        next: impl FnOnce(&Self, &mut OwnedFd) -> Result<i32, Trouble>,
    ) -> Result<i32, Trouble> {
        step("user namespace", setns(&self.door.user, first))?;
        step("PID namespace", setns(&self.door.pid, CloneFlags::CLONE_NEWPID))?;
        // Credentials have changed, which clears this; should the caller be killed, this process goes too.
        step("parent-death signal", set_pdeathsig(Signal::SIGKILL))?;
        self.fork_and_watch(tell, next)
    }

    fn fork_and_watch(
        &self,
        tell: &mut OwnedFd,
        next: impl FnOnce(&Self, &mut OwnedFd) -> Result<i32, Trouble>,
    ) -> Result<i32, Trouble> {
        let (parted, part) = step("pipe", pipe2(nix::fcntl::OFlag::O_CLOEXEC))?;
        // SAFETY: one thread only; the child never returns from here.
        match step("fork", unsafe { fork() })? {
            ForkResult::Child => {
                drop(part);
                // Not before this process has left the group: keys for the shell must not reach it.
                let _ = File::from(parted).read(&mut [0]);
                let code = match next(self, tell) {
                    Ok(code) => code,
                    Err(trouble) => report(&trouble, tell),
                };
                // SAFETY: _exit only ends this process.
                unsafe { libc::_exit(code) }
            }
            ForkResult::Parent { child } => {
                // After the fork: the shell stays in the caller's group, to which the terminal's keys go.
                let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
                drop(part);
                // The pipe says that the way in is done when nobody holds its end any more.
                let null = step("open /dev/null", File::open("/dev/null"))?;
                *tell = null.into();
                Ok(wait_for(child, self.is_interactive))
            }
        }
    }

    /// In a place that is only a network namespace: namespaces of the visitor's own, so that there is nothing to see or
    /// to kill but what the visit brings.
    fn make_room(&self, tell: &mut OwnedFd) -> Result<i32, Trouble> {
        step("parent-death signal", set_pdeathsig(Signal::SIGKILL))?;
        self.walk_in()?;
        let kinds = CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC;
        step("new namespaces", unshare(kinds))?;
        self.fork_and_watch(tell, |visit, tell| visit.be_first(tell))
    }

    /// PID 1 of the visitor's own namespace: furnishes it, and reaps.
    fn be_first(&self, tell: &mut OwnedFd) -> Result<i32, Trouble> {
        step("parent-death signal", set_pdeathsig(Signal::SIGKILL))?;
        if let Some(Inside::Network { programs, names, .. }) = &self.door.entrance.inside {
            let furnishing = Furnishing {
                name: &self.door.place.replace('/', "."),
                system: programs.iter().find_map(ShownPrograms::whole_system),
                shown: programs.iter().map(|of| Shown::programs(&of.inside, &of.outside)).collect(),
                names,
                users_mapped: self.door.entrance.users_mapped,
                whole_machine: None,
            };
            furnish(&furnishing).map_err(|error| Trouble {
                step: error.step,
                number: error.source.raw_os_error().unwrap_or(libc::EIO),
                is_program: false,
            })?;
        }
        self.fork_and_watch(tell, |visit, _| visit.become_the_shell())
    }

    /// The namespaces that a process itself moves into.
    fn walk_in(&self) -> Result<(), Trouble> {
        step("network namespace", setns(&self.door.network, CloneFlags::CLONE_NEWNET))?;
        for other in &self.door.others {
            step("UTS and IPC namespaces", setns(other, CloneFlags::empty()))?;
        }
        step("mount namespace", setns(&self.door.mount, CloneFlags::CLONE_NEWNS))
    }

    /// Returns only what kept it from becoming the shell.
    fn become_the_shell(&self) -> Result<i32, Trouble> {
        if self.is_interactive {
            self.take_the_terminal()?;
        }
        step("new session keyring", keyring::leave_the_logins())?;
        step("become the node's user", self.become_node_user())?;
        step("keep programs from typing at the terminal (seccomp)", terminal_filter::install())?;
        keep_standard_descriptors_only();
        // What becomes of a terminal's programs when the terminal goes. Set last: changing users clears it.
        step("parent-death signal", set_pdeathsig(Signal::SIGHUP))?;
        let shell = SHELLS.iter().copied().find(|shell| Path::new(shell).exists()).unwrap_or("/bin/sh");
        let program = self.command.first().map_or(OsStr::new(shell), OsString::as_os_str);
        let mut command = Command::new(program);
        if self.command.is_empty() {
            // Start-up files are the machine's: they would set its prompt and its paths.
            command.args((shell == "/bin/bash").then_some("--norc"));
        }
        command.args(self.command.iter().skip(1)).env_clear().envs(self.environment(shell)).current_dir(HOME);
        let error = command.exec();
        Err(Trouble {
            step: program.to_string_lossy().into_owned(),
            number: error.raw_os_error().unwrap_or(libc::ENOENT),
            is_program: true,
        })
    }

    /// A shell at a terminal leads a group of its own, in the foreground: it then finds what it expects, and not the
    /// group of a process that it cannot see. Its keys work, as after a login, also where whoever started this one had them
    /// ignored (nohup(1), a script's background): a shell cannot undo that, and all its commands would inherit it.
    fn take_the_terminal(&self) -> Result<(), Trouble> {
        step("process group", setpgid(Pid::from_raw(0), Pid::from_raw(0)))?;
        // SAFETY: no handler is installed, only the disposition changes. Whoever takes the terminal from the background is
        // stopped otherwise.
        step("signals", unsafe { signal(Signal::SIGTTOU, SigHandler::SigIgn) })?;
        step("foreground", tcsetpgrp(io::stdin().as_fd(), getpgrp()))?;
        let of_terminals = [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
            Signal::SIGTSTP,
            Signal::SIGTTIN,
            Signal::SIGTTOU,
        ];
        for one in of_terminals {
            // SAFETY: no handler is installed, only the disposition changes.
            step("signals", unsafe { signal(one, SigHandler::SigDfl) })?;
        }
        Ok(())
    }

    fn become_node_user(&self) -> io::Result<()> {
        become_node_user(self.door.entrance.users_mapped, &self.door.limits)
    }

    fn environment(&self, shell: &str) -> BTreeMap<OsString, OsString> {
        let mut environment: BTreeMap<OsString, OsString> =
            KEPT.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect();
        let mut put = |name: &str, value: &str| environment.insert(name.into(), value.into());
        let place = &self.door.place;
        put("PATH", "/usr/local/bin:/usr/bin:/bin");
        put("HOME", HOME);
        put("USER", "node");
        put("LOGNAME", "node");
        put("SHELL", shell);
        put("HOSTNAME", place);
        put("PS1", &if shell == "/bin/bash" { format!("{place}:\\w\\$ ") } else { format!("{place}$ ") });
        for (name, value) in &self.door.entrance.environment {
            put(name, value);
        }
        environment
    }
}

fn tell_and_end(trouble: &Trouble, mut tell: OwnedFd) -> i32 {
    report(trouble, &mut tell)
}

/// Says what went wrong to the caller, who is the only one to tell the person.
fn report(trouble: &Trouble, tell: &mut OwnedFd) -> i32 {
    if let (Ok(text), Ok(tell)) = (serde_json::to_string(trouble), tell.try_clone()) {
        // Nobody to tell is nobody to tell.
        let _ = File::from(tell).write_all(text.as_bytes());
    }
    255
}
