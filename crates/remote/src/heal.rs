//! Undoing what a run left standing, from its journal alone.
//!
//! A fault that is seen to be gone is not undone again, so that healing twice does what healing once does.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::journal::{self, Entry, Journal, JournalError, Step};
use crate::looks::{Answer, Seen, answer, look};
use crate::receipt::{Claim, Doubt};
use crate::strike::{Patience, undo};
use crate::timer::TimerEnd;
use crate::transport::{CONNECT, Reach, Transport};

/// How long after its limit a command may still go on: that is rounded up to a second, and it is killed a second after it.
const KILLED: Duration = Duration::from_secs(2);

/// What healing came to.
#[derive(Debug, Default)]
pub struct Healing {
    /// Each fault that the journal had not closed, in the order of the strikes.
    pub faults: Vec<Healed>,
    /// How many it had closed.
    pub closed: usize,
    /// Lines of the journal that could not be read.
    pub damaged: Vec<JournalError>,
}

/// A fault that the journal had not closed.
#[derive(Debug)]
pub struct Healed {
    /// It, as the journal has it.
    pub entry: Entry,
    /// What became of it.
    pub outcome: Outcome,
    /// How its timer ended, where that is known.
    pub timer: Option<TimerEnd>,
    /// What the undoing said of itself; empty where nothing had to be undone.
    pub claims: Vec<Claim>,
    /// What else is in doubt.
    pub doubts: Vec<Doubt>,
}

/// What became of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was gone already.
    WasGone,
    /// It was undone and seen to be gone.
    Undone,
    /// It was undone and seen to stand still.
    Stands,
    /// Nobody can see whether it stands.
    NotSeen,
}

/// Undoes what stands. `open` gives the way to a machine.
///
/// # Errors
/// When the journal cannot be read, or the run still writes it. `None` where there is no journal.
pub fn heal<T: Transport>(
    run_directory: &Path,
    patience: Patience,
    open: impl Fn(&Entry) -> T,
) -> Result<Option<Healing>, JournalError> {
    if journal::read(run_directory)?.is_none() {
        return Ok(None);
    }
    // Read again under the lock, where what the run wrote last is known, and from the very file that was found to be ours.
    let writer = Journal::open(run_directory)?;
    let read = writer.read()?;
    let closed = read.entries.iter().filter(|entry| entry.is_done()).count();
    let left: Vec<Entry> = read.entries.into_iter().filter(|entry| !entry.is_done()).collect();
    // The last first: what was put on top of something else is taken off before.
    let mut faults: Vec<Healed> =
        left.into_iter().rev().map(|entry| one(open(&entry), entry, &writer, patience)).collect();
    faults.reverse();
    Ok(Some(Healing { faults, closed, damaged: read.damaged }))
}

fn one(transport: impl Transport, entry: Entry, journal: &Journal, patience: Patience) -> Healed {
    if entry.is_gone {
        // Never struck, or seen to be gone: what is like the fault now is somebody else's.
        return was_gone(&transport, entry, None, journal);
    }
    let (id, intent) = (entry.fault.clone(), entry.intent.clone());
    if !entry.is_struck {
        // Its commands may still be at work on the machine: gone now would not be gone.
        thread::sleep(on_its_way(&intent.reach) + intent.strike_within + KILLED);
    }
    let seen = look(&transport, &intent.gone, &[]);
    if answer(&seen) == Answer::Yes {
        return was_gone(&transport, entry, Some(seen), journal);
    }
    let undone = undo((&id, &intent.timer), (&intent.undo, &intent.gone), &transport, journal, patience.gone);
    let outcome = match answer(&undone.seen) {
        Answer::Yes => Outcome::Undone,
        Answer::No => Outcome::Stands,
        Answer::Open => Outcome::NotSeen,
    };
    // That the timer is not there any more, or came first, is no doubt: the fault is gone.
    let matters = |doubt: &Doubt| {
        outcome != Outcome::Undone || !matches!(doubt, Doubt::Timer(_) | Doubt::UndoFailed(_))
    };
    let doubts = undone.doubts.into_iter().filter(matters).collect();
    Healed { entry, outcome, timer: undone.timer, claims: undone.claims, doubts }
}

/// How long a command may be on its way to a machine before its own time begins: what carries it outlives whoever sent it.
fn on_its_way(reach: &Reach) -> Duration {
    match reach {
        Reach::Local { .. } | Reach::Pod { .. } => Duration::ZERO,
        Reach::Ssh { .. } => CONNECT,
    }
}

/// Takes the timer away. `seen` is what shows just now that the fault is gone, where the journal does not say so.
fn was_gone(transport: &impl Transport, entry: Entry, seen: Option<Vec<Seen>>, journal: &Journal) -> Healed {
    let mut doubts = Vec::new();
    let mut note = |written: Result<(), JournalError>| {
        doubts.extend(written.err().map(|error| Doubt::Journal(error.to_string())));
    };
    seen.into_iter().for_each(|seen| note(journal.write(&entry.fault, Step::Gone { seen })));
    let timer = entry.intent.timer.disarm(transport, &entry.intent.undo);
    if let Ok(end) = &timer {
        note(journal.write(&entry.fault, Step::TimerEnded { end: end.clone() }));
    }
    let timer = match timer {
        Ok(end) => Some(end),
        Err(error) => {
            doubts.push(Doubt::TimerNotDisarmed(error.to_string()));
            None
        }
    };
    Healed { entry, outcome: Outcome::WasGone, timer, claims: Vec::new(), doubts }
}
