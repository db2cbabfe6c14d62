//! Keepers of clocks: a clock's file, and the thread that gives the stand-in to every program that a node starts.
//!
//! Owns the threads and what went wrong in them. A keeper ends with the last process under its filter.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::{ClockError, step};
use crate::image::image;
use crate::page::SharedShift;
use crate::real_vdso::RealVdso;
use crate::shift::Shift;
use crate::tracee::{Outcome, StandIn, TraceError, Tracee};

/// Enough for a thread that holds a program at its start.
const STACK_BYTES: usize = 256 << 10;
/// Of what went wrong, so much is kept.
const MISSES_KEPT: usize = 8;

nix::ioctl_readwrite!(receive, b'!', 0, libc::seccomp_notif);
nix::ioctl_readwrite!(send, b'!', 1, libc::seccomp_notif_resp);
nix::ioctl_write_ptr!(still_waits, b'!', 2, u64);

/// A clock that can be set, whoever reads it.
#[derive(Debug)]
pub struct Clock {
    shift: Mutex<Shift>,
    shared: SharedShift,
    real: RealVdso,
    /// Its file, as the programs that read the clock find it.
    seen_at: PathBuf,
    given: AtomicU64,
    misses: Mutex<VecDeque<String>>,
    /// A lie that tests plant.
    leaves_out_static: AtomicBool,
}

impl Clock {
    /// Makes a clock in a file of its own, which programs find at `seen_at` and may run.
    ///
    /// # Errors
    /// When the file cannot be made, or this kernel's vDSO is not one to stand in for.
    pub fn in_file(file: &Path, seen_at: &Path) -> Result<Clock, ClockError> {
        let real = RealVdso::of_this_machine()?;
        let image = image(&real)?;
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o755).open(file);
        let opened = step(format!("make {}", file.display()), options)?;
        let shared = step(format!("map {}", file.display()), SharedShift::in_file(&opened, &image))?;
        Ok(Clock {
            shift: Mutex::default(),
            shared,
            real,
            seen_at: seen_at.to_owned(),
            given: AtomicU64::new(0),
            misses: Mutex::default(),
            leaves_out_static: AtomicBool::new(false),
        })
    }

    /// How far it is from the true time now and from now on.
    #[must_use]
    pub fn shift(&self) -> Shift {
        *lock(&self.shift)
    }

    /// Sets it: every program sees it at its next look.
    pub fn set(&self, shift: Shift) {
        let mut current = lock(&self.shift);
        self.shared.set(shift);
        *current = shift;
    }

    /// From now on no program gets it that has no dynamic linker, and so no C library outside itself. For a lie that tests plant.
    pub fn leave_out_static_programs(&self) {
        self.leaves_out_static.store(true, Ordering::Relaxed);
    }

    /// How many programs have it so far.
    #[must_use]
    pub fn programs_given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// The programs that do not have it, and why: the last few.
    #[must_use]
    pub fn misses(&self) -> Vec<String> {
        lock(&self.misses).iter().cloned().collect()
    }

    /// Gives the clock to every program that is started from now on by processes under the listener's filter.
    ///
    /// # Errors
    /// When there is no thread.
    pub fn keep(self: &Arc<Clock>, listener: OwnedFd) -> Result<(), ClockError> {
        let (clock, listener) = (self.clone(), Arc::new(listener));
        let thread = std::thread::Builder::new().name("clock".to_owned()).stack_size(STACK_BYTES);
        step("start a keeper", thread.spawn(move || clock.listen(&listener))).map(drop)
    }

    /// Hands each exec to a thread of its own: one whose program lies on a stalled disk must not hold up the others.
    fn listen(self: &Arc<Clock>, listener: &Arc<OwnedFd>) {
        while let Some(exec) = next(listener) {
            let (clock, for_thread) = (self.clone(), listener.clone());
            let thread = std::thread::Builder::new().name("clock exec".to_owned()).stack_size(STACK_BYTES);
            if thread.spawn(move || clock.answer(&for_thread, exec)).is_err() {
                self.answer(listener, exec);
            }
        }
    }

    fn answer(&self, listener: &OwnedFd, exec: Exec) {
        match self.give(listener, exec) {
            Ok(Outcome::Given) => {
                self.given.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Outcome::NotStarted) => {}
            Ok(Outcome::Foreign) => self.miss(exec, "it is not a 64-bit program with a vDSO"),
            Ok(Outcome::Traced) => self.miss(exec, "another process traces it"),
            Err(error) if error.is_end_of_process() => {}
            Err(error) => self.miss(exec, &error.to_string()),
        }
    }

    fn give(&self, listener: &OwnedFd, exec: Exec) -> Result<Outcome, TraceError> {
        let seized = Tracee::seize(exec.process);
        // The number may be another process's by now: then this exec is over.
        if !exec.still_waits(listener) {
            return Ok(Outcome::NotStarted);
        }
        // The exec that the same thread tried before this one has failed, and its tracer is yet to see that: it will see this
        // one instead. To be asked while the thread waits: then it goes on to its tracer.
        let is_ours = matches!(seized, Ok(None)) && exec.is_ours();
        exec.let_go_on(listener);
        match seized? {
            Some(tracee) => {
                let leaves_out_static = self.leaves_out_static.load(Ordering::Relaxed);
                tracee.give(&StandIn { file: &self.seen_at, real: &self.real, leaves_out_static })
            }
            None if is_ours => Ok(Outcome::NotStarted),
            None => Ok(Outcome::Traced),
        }
    }

    fn miss(&self, exec: Exec, why: &str) {
        let program = std::fs::read_link(format!("/proc/{}/exe", exec.process));
        let program =
            program.map_or_else(|_| "a program that is gone".to_owned(), |path| path.display().to_string());
        let mut misses = lock(&self.misses);
        if misses.len() == MISSES_KEPT {
            misses.pop_front();
        }
        misses.push_back(format!("{program} (process {}): {why}", exec.process));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that waits in an exec until somebody answers.
#[derive(Debug, Clone, Copy)]
struct Exec {
    number: u64,
    process: i32,
}

/// The next one; none when no process is left that could start a program.
fn next(listener: &OwnedFd) -> Option<Exec> {
    loop {
        let mut waiting = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::Error::EINTR) => continue,
            Err(_) => return None,
        }
        let seen = waiting[0].revents().unwrap_or(PollFlags::POLLERR);
        if !seen.contains(PollFlags::POLLIN) {
            return None;
        }
        // SAFETY: plain numbers; the kernel wants them zero.
        let mut exec: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the struct is the one that this call fills.
        match unsafe { receive(listener.as_raw_fd(), &mut exec) } {
            Ok(_) => return Some(Exec { number: exec.id, process: exec.pid.cast_signed() }),
            // ENOENT: the process was killed meanwhile.
            Err(nix::Error::EINTR | nix::Error::ENOENT) => {}
            Err(_) => return None,
        }
    }
}

impl Exec {
    fn still_waits(self, listener: &OwnedFd) -> bool {
        // SAFETY: the number is read before the call returns.
        unsafe { still_waits(listener.as_raw_fd(), &self.number) }.is_ok()
    }

    fn let_go_on(self, listener: &OwnedFd) {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let mut answer = libc::seccomp_notif_resp { id: self.number, val: 0, error: 0, flags };
        // SAFETY: the struct is the one that this call reads. A process that has been killed needs no answer.
        let _ = unsafe { send(listener.as_raw_fd(), &mut answer) };
    }

    /// Whether a thread of this process traces it.
    fn is_ours(self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process)).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| Path::new("/proc/self/task").join(tracer.trim()).exists())
    }
}
