//! Signals to the processes of a VM's database, which its init sends; and how much of the processors they may use.
//!
//! What they are sent for, and whether they did what they should, is the business of faults.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::NodeError;
use lab::cgroup::{CgroupError, HeldUp};
use lab::memory_groups::MemoryMeter;

use super::holds::Holder;
use super::{CpuShare, Vm};

/// So long after the last change of what a node may use of its memory, a kill is taken for the kernel's: what it has killed is
/// noticed a moment later, and PostgreSQL kills what has not ended 5 s after one of its processes was.
const KILLS_EXPECTED_FOR: Duration = Duration::from_secs(10);

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vm {
    /// Sends the processes of its database a signal on behalf of somebody, whoever started them: those of one program, where it is
    /// named by its file; no more than so many, where a test has planted that.
    ///
    /// # Errors
    /// When it has no power, or does not answer.
    pub fn strike_processes(
        &self,
        holder: Holder,
        signal: i32,
        (only, at_most): (Option<String>, Option<usize>),
    ) -> Result<(), NodeError> {
        let (_, node) = self.boot_now()?;
        let strike = lab::Strike { signal, only, at_most, holder: holder.number() };
        let struck = node.strike_processes(strike).map(drop);
        struck.map_err(|error| self.told(error, "signal the database's processes"))
    }

    /// Lets those go on that such a signal has stopped, but for those that somebody else has stopped as well. Without effect on a
    /// VM that is off.
    pub fn resume_processes(&self, holder: Holder) {
        if let Ok((_, node)) = self.boot_now() {
            // One that loses its power now has nobody left to go on.
            let _ = node.resume_processes(holder.number());
        }
    }

    /// Whether its init has ended though nobody took its power: a stranger's doing, or the machine's.
    #[must_use]
    pub fn has_ended_by_itself(&self) -> bool {
        self.state().boot.as_ref().is_some_and(|boot| !boot.node.is_on())
    }

    /// How many processors it may use when nothing presses it.
    #[must_use]
    pub fn processors(&self) -> f64 {
        let all = || std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        self.shares.cpu.as_ref().and_then(|share| share.cpus).unwrap_or_else(all)
    }

    /// Puts a boot's init into the group that holds it to its processors, where they are limited; to fewer where somebody holds it
    /// to fewer.
    pub(super) fn enter_its_share(&self, init: u32) -> Result<(), CgroupError> {
        let Some(CpuShare { groups, cpus: Some(cpus) }) = &self.shares.cpu else { return Ok(()) };
        let holds = lock(&self.held.processors);
        groups.hold(&self.name, init, holds.tightest().or(Some(*cpus)))
    }

    /// Holds it to so many processors on behalf of somebody; where none are named, to what the others who hold it leave.
    ///
    /// # Errors
    /// When it is in no control group, or that refuses.
    pub fn hold_to_processors(&self, holder: Holder, cpus: Option<f64>) -> Result<(), CgroupError> {
        let Some(share) = &self.shares.cpu else {
            return Err(CgroupError::Unavailable { tried: "the nodes are in none".to_owned() });
        };
        let mut holds = lock(&self.held.processors);
        holds.change(holder, cpus);
        let held = share.groups.hold_to(&self.name, holds.tightest().or(share.cpus));
        if held.is_err() {
            holds.change(holder, None);
        }
        held
    }

    /// Whether anybody else holds it to fewer processors.
    #[must_use]
    pub fn has_other_holds_on_processors(&self, holder: Holder) -> bool {
        lock(&self.held.processors).has_others(holder)
    }

    /// How often anybody has begun to hold it to fewer processors.
    #[must_use]
    pub fn holds_on_processors_begun(&self) -> u64 {
        lock(&self.held.processors).begun()
    }

    /// How many processors the kernel holds it to; none where there is no limit, or the kernel does not say.
    #[must_use]
    pub fn held_to_processors(&self) -> Option<f64> {
        self.shares.cpu.as_ref()?.groups.held_to(&self.name)
    }

    /// How often the kernel has held it up because of such a limit.
    #[must_use]
    pub fn held_up(&self) -> Option<HeldUp> {
        self.shares.cpu.as_ref()?.groups.held_up(&self.name)
    }

    /// Lowers what memory it may use towards so many bytes on behalf of somebody; where none are named, what the others who hold
    /// it leave. From the first time on the kernel may kill processes of it.
    ///
    /// # Errors
    /// When it is in no control group, or that refuses.
    pub fn hold_to_memory(&self, holder: Holder, bytes: Option<u64>) -> Result<(), CgroupError> {
        let mut holds = lock(&self.held.memory);
        holds.change(holder, bytes);
        let held = self.lower_memory(holds.tightest());
        if held.is_err() {
            holds.change(holder, None);
        }
        held
    }

    /// Lowers it again as far as those who hold it want, as long as this one does: the kernel may not have gone so far at first.
    ///
    /// # Errors
    /// As [`Vm::hold_to_memory`].
    pub fn hold_to_memory_again(&self, holder: Holder) -> Result<(), CgroupError> {
        // Under the lock, so that nothing is lowered once whoever wanted it has let go.
        let holds = lock(&self.held.memory);
        if holds.contains(holder) { self.lower_memory(holds.tightest()) } else { Ok(()) }
    }

    fn lower_memory(&self, bytes: Option<u64>) -> Result<(), CgroupError> {
        let Some(groups) = &self.shares.memory else {
            return Err(CgroupError::NoMemory { tried: "the nodes are in none".to_owned() });
        };
        *lock(&self.held.memory_changed_at) = Some(Instant::now());
        match bytes {
            Some(bytes) => groups.lower_to(&self.name, bytes),
            None => groups.lift(&self.name),
        }
    }

    /// Whether anybody else holds it to less memory.
    #[must_use]
    pub fn has_other_holds_on_memory(&self, holder: Holder) -> bool {
        lock(&self.held.memory).has_others(holder)
    }

    /// How often anybody has begun to hold it to less memory.
    #[must_use]
    pub fn holds_on_memory_begun(&self) -> u64 {
        lock(&self.held.memory).begun()
    }

    /// What the kernel has counted of its memory.
    #[must_use]
    pub fn memory_meter(&self) -> Option<MemoryMeter> {
        self.shares.memory.as_ref()?.meter(&self.name)
    }

    /// Whether a fault has, or had until just now, the kernel kill processes of it for want of memory.
    #[must_use]
    pub fn expects_kills(&self) -> bool {
        let is_held = lock(&self.held.memory).tightest().is_some();
        is_held || lock(&self.held.memory_changed_at).is_some_and(|at| at.elapsed() < KILLS_EXPECTED_FOR)
    }
}
