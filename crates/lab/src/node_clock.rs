//! A node's wall clock: its files in the lab's memory, shown to the node, and its keeper.
//!
//! Owns where the files lie, and what the clock is made of. It belongs to the node and not to a boot: a node that starts
//! again finds its clock as it was. What a clock shows and how programs come to see it is the business of `clock`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clock::{Clock, ClockError, Rate, Shift, waits};

use crate::protocol::CLOCK;
use crate::supervisor::LAB_FOLDER;

/// Folder of the nodes' clocks in the lab.
const CLOCKS: &str = "clocks";
const CLOCK_FILE: &str = "clock";
pub(crate) const PROBE_FILE: &str = "probe";
const WAITS_FILE: &str = "waits.so";

/// What can go wrong with a node's clock.
#[derive(Debug, thiserror::Error)]
pub enum NodeClockError {
    /// Its files could not be made.
    #[error("clock of {node}: {path}: {source}")]
    File {
        node: String,
        /// Which.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The clock itself could not be made, or no keeper.
    #[error("clock of {node}: {source}")]
    Clock {
        node: String,
        /// The step that failed.
        source: ClockError,
    },
}

/// A node's own clock.
#[derive(Debug)]
pub struct NodeClock {
    clock: Arc<Clock>,
    folder: PathBuf,
    shares: Mutex<Shares>,
}

/// What the clock's shift is made of.
#[derive(Debug, Default)]
struct Shares {
    /// Of each fault that stands.
    of_faults: BTreeMap<usize, Shift>,
    /// By how much a time service has corrected it since.
    correction: Shift,
    /// How often.
    corrections: u64,
}

impl Shares {
    fn without(&self, name: Option<usize>) -> Shift {
        let others = self.of_faults.iter().filter(|(other, _)| Some(**other) != name);
        others.fold(self.correction, |sum, (_, share)| sum.and(*share))
    }

    /// Takes a fault's share away. Of the correction remains what that does not explain, and no more than the others need: a clock
    /// that was right stays right, and one that was wrong by another fault is not corrected by this one's end.
    fn lift(&mut self, name: usize, true_ns: i64) {
        let Some(lifted) = self.of_faults.remove(&name) else { return };
        if self.correction == Shift::NONE {
            return;
        }
        let others = self.of_faults.values().map(|share| share.offset_ns_at(true_ns));
        let needed_ns = others.fold(0, i64::saturating_sub);
        let rest_ns = self.correction.and(lifted).offset_ns_at(true_ns);
        self.correction = Shift::jump(rest_ns.clamp(needed_ns.min(0), needed_ns.max(0)));
    }
}

impl NodeClock {
    /// Makes a node's clock, which shows the true time. To be called in the lab.
    ///
    /// # Errors
    /// When its files cannot be made, or this machine allows no clocks.
    pub fn make(node: &str) -> Result<NodeClock, NodeClockError> {
        let folder = Path::new(LAB_FOLDER).join(CLOCKS).join(node);
        let file = |path: &Path, made: io::Result<()>| {
            made.map_err(|source| NodeClockError::File {
                node: node.to_owned(),
                path: path.to_owned(),
                source,
            })
        };
        // Whatever files are made like here, the node's user must reach these.
        let open_to_all = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        file(&folder, fs::create_dir_all(&folder).and_then(|()| open_to_all(&folder)))?;
        let probe = folder.join(PROBE_FILE);
        file(&probe, fs::write(&probe, clock::probe()))?;
        file(&probe, open_to_all(&probe))?;
        let library = folder.join(WAITS_FILE);
        file(&library, fs::write(&library, waits::library()))?;
        file(&library, open_to_all(&library))?;
        let path = folder.join(CLOCK_FILE);
        let made = Clock::in_file(&path, &Path::new(CLOCK).join(CLOCK_FILE));
        let clock = made.map_err(|source| NodeClockError::Clock { node: node.to_owned(), source })?;
        file(&path, open_to_all(&path))?;
        Ok(NodeClock { clock: Arc::new(clock), folder, shares: Mutex::default() })
    }

    /// Where its files lie, for the node to be shown.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The variable of a program's environment, and its value, by which the program waits by the node's clock.
    pub(crate) fn waits_in(environment: &BTreeMap<String, String>) -> (&'static str, String) {
        let already = environment.get(waits::PRELOAD).map(String::as_str);
        (waits::PRELOAD, waits::preload(&Path::new(CLOCK).join(WAITS_FILE), already))
    }

    /// Gives it to every program of a node whose init has installed the filter and has the listener as `listener`.
    pub(crate) fn keep(&self, init: u32, listener: i32) -> Result<(), ClockError> {
        let listener = clock::take_listener(init, listener);
        let listener = listener.map_err(|source| ClockError::Step {
            step: "take the listener of execs from the init".to_owned(),
            source,
        })?;
        self.clock.keep(listener)
    }

    /// Adds a shift by this name, or replaces it: every program of the node sees the sum at once.
    pub fn impose(&self, name: usize, shift: Shift) {
        self.change(|shares| _ = shares.of_faults.insert(name, shift));
    }

    /// Takes the shift of this name away, and what a time service has corrected of it. What it has corrected of others stays.
    pub fn lift(&self, name: usize) {
        self.change(|shares| shares.lift(name, machine_ns()));
    }

    /// A time service corrects it in one step: it shows the true time.
    pub fn step(&self) {
        self.change(|shares| {
            let wrong_ns = shares.without(None).offset_ns_at(machine_ns());
            shares.correction = shares.correction.stopped_at(machine_ns()).and(Shift::jump(-wrong_ns));
            shares.corrections += 1;
        });
    }

    /// A time service lets it run at a rate until it is told otherwise; zero ends that.
    pub fn slew(&self, rate: Rate) {
        self.change(|shares| {
            let now_ns = machine_ns();
            shares.correction = shares.correction.stopped_at(now_ns).and(Shift::running_away(rate, now_ns));
            shares.corrections += 1;
        });
    }

    /// How often a time service has changed it.
    #[must_use]
    pub fn corrections(&self) -> u64 {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).corrections
    }

    fn change(&self, change: impl FnOnce(&mut Shares)) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut shares);
        self.clock.set(shares.without(None));
    }

    /// What it is without the shift of this name.
    #[must_use]
    pub fn without(&self, name: usize) -> Shift {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).without(Some(name))
    }

    /// How far it is from the true time, as it was set.
    #[must_use]
    pub fn shift(&self) -> Shift {
        self.clock.shift()
    }

    /// What it shows now.
    #[must_use]
    pub fn time_of_day(&self) -> SystemTime {
        let shown_ns = self.shift().shown_ns_at(machine_ns());
        UNIX_EPOCH + Duration::from_nanos(u64::try_from(shown_ns).unwrap_or(0))
    }

    /// A lie that tests plant: static programs do not get it.
    pub fn leave_out_static_programs(&self) {
        self.clock.leave_out_static_programs();
    }

    /// Programs of the node that do not see it, and why: the last few.
    #[must_use]
    pub fn misses(&self) -> Vec<String> {
        self.clock.misses()
    }
}

/// The machine's clock, which the lab itself goes by.
#[must_use]
pub fn machine_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// Seconds that a clock is wrong by once the first of these faults is lifted, where a time service had corrected it so far.
    fn wrong_after_the_first_is_lifted_s(faults_s: &[i64], corrected_s: i64) -> i64 {
        let jumps = faults_s.iter().map(|by| Shift::jump(by * SECOND_NS));
        let mut shares = Shares {
            of_faults: jumps.enumerate().collect(),
            correction: Shift::jump(corrected_s * SECOND_NS),
            corrections: 1,
        };
        shares.lift(0, 0);
        shares.without(None).offset_ns_at(0) / SECOND_NS
    }

    #[test]
    fn a_clock_that_was_right_stays_right_when_one_of_its_faults_ends_and_others_stay_as_wrong_as_they_are() {
        assert_eq!(wrong_after_the_first_is_lifted_s(&[5], -5), 0);
        assert_eq!(wrong_after_the_first_is_lifted_s(&[5], -2), 0);
        assert_eq!(wrong_after_the_first_is_lifted_s(&[5, 3], -8), 0, "both were corrected");
        assert_eq!(wrong_after_the_first_is_lifted_s(&[5, 3], -5), 3, "the second has not been noticed");
        assert_eq!(wrong_after_the_first_is_lifted_s(&[5, -3], -2), 0, "the sum was corrected");
        assert_eq!(wrong_after_the_first_is_lifted_s(&[5, 3], 0), 3);
        assert_eq!(wrong_after_the_first_is_lifted_s(&[5, -3], 0), -3, "nothing was corrected");
    }
}
