//! One fault of one machine, from the looks before it to its receipt.
//!
//! Owns the order of things: nothing is struck that could not be told from nothing, nothing before its undoing is on disk and
//! a timer on the machine waits to do it. When what is struck, and for how long, is the caller's.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use crate::command_file::{Filled, Look};
use crate::journal::{Intent, Journal, JournalError, Step};
use crate::looks::{Answer, Seen, answer, look};
use crate::permit::Permit;
use crate::receipt::{Claim, Doubt, Receipt, doubts_after, doubts_during};
use crate::timer::{Timer, TimerEnd, TimerError};
use crate::transport::{self, Transport, TransportError};

/// Between two looks at what has not come about yet.
const AGAIN: Duration = Duration::from_millis(200);
/// Where tokens come from.
const RANDOM: &str = "/dev/urandom";

/// How long what should come about is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until the machine is seen to be as without the fault, and then until the fault is seen to stand.
    pub stands: Duration,
    /// Until it is seen to be gone, or the machine answers.
    pub gone: Duration,
}

/// Why nothing was struck.
#[derive(Debug, thiserror::Error)]
pub enum StrikeError {
    /// The permit is for other machines.
    #[error("{host} is not covered by the confirmation")]
    NotPermitted {
        /// The machine.
        host: String,
    },
    /// The tool is not there.
    #[error("{host}: the fault's tool cannot be used: {words}")]
    NoTool {
        /// The machine.
        host: String,
        /// What was said.
        words: String,
    },
    /// The machine did not answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Before the strike the machine already looks as if the fault stood, or not as if it did not.
    #[error(
        "{fault} on {host}: before the strike, {when}; its effect could not be seen, so it is not struck"
    )]
    NoBaseline {
        fault: String,
        /// The machine.
        host: String,
        /// What was seen.
        when: String,
    },
    /// The undoing is not on disk.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nothing on the machine would undo it.
    #[error(transparent)]
    Timer(#[from] TimerError),
    /// There is no randomness for the fault's own name.
    #[error("{RANDOM}: {0}")]
    Random(#[source] io::Error),
}

/// A fault that was struck and not undone yet.
#[derive(Debug)]
#[must_use = "what stands must be undone"]
pub struct Standing {
    fault: Filled,
    timer: Timer,
    version: String,
    struck_at: Instant,
    strike: Vec<Claim>,
    /// What the same looks showed before the strike.
    before: Vec<Seen>,
    stood: Vec<Seen>,
    doubts: Vec<Doubt>,
}

/// A name that nobody else can know before: 32 hexadecimal digits. Eight of them make [`Filled::id`].
///
/// # Errors
/// When the system gives no randomness.
pub fn token() -> Result<String, StrikeError> {
    let mut bytes = [0; 16];
    File::open(RANDOM).and_then(|mut file| file.read_exact(&mut bytes)).map_err(StrikeError::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Strikes. `member` is the machine's name in the scenario; the timer on it undoes the fault after `deadline`.
///
/// # Errors
/// When nothing was struck.
pub fn strike(
    (member, fault): (&str, Filled),
    transport: &dyn Transport,
    permit: &Permit,
    journal: &Journal,
    (deadline, patience): (Duration, Patience),
) -> Result<Standing, StrikeError> {
    let host = transport.reach().host().to_owned();
    if !permit.covers(&host) {
        return Err(StrikeError::NotPermitted { host });
    }
    let version = version(&fault, transport, &host)?;
    let before = baseline(&fault, transport, &host, patience)?;
    let timer = Timer::new(&token()?, deadline);
    let intent = Intent {
        name: fault.name.clone(),
        member: member.to_owned(),
        reach: transport.reach().clone(),
        strike_within: fault.strike.iter().map(|command| command.within).sum(),
        undo: fault.undo.clone(),
        gone: fault.gone.clone(),
        timer: timer.clone(),
    };
    journal.write(&fault.id, Step::Intent(intent))?;
    let armed = timer.arm(transport, &fault.undo).map_err(StrikeError::from);
    if let Err(error) = armed.and_then(|()| Ok(journal.write(&fault.id, Step::Armed)?)) {
        not_struck(&fault, &timer, transport, journal);
        return Err(error);
    }
    let mut strike = Vec::new();
    let struck_at = Instant::now();
    for command in &fault.strike {
        let claim = Claim::after(transport, &timer.guard(), command);
        let goes_on = claim.is_success();
        strike.push(claim);
        if !goes_on {
            break;
        }
    }
    // From here on it may stand, whatever else fails.
    let written = journal.write(&fault.id, Step::Struck { claims: strike.clone() });
    let stood = until(patience.stands, || look(transport, &fault.stands, &before));
    let gone = fault.lasts.then(|| look(transport, &fault.gone, &[]));
    let mut doubts = doubts_during(&strike, &stood, gone.as_deref());
    let written = written.and_then(|()| journal.write(&fault.id, Step::Stood { seen: stood.clone() }));
    doubts.extend(written.err().map(|error| Doubt::Journal(error.to_string())));
    Ok(Standing { fault, timer, version, struck_at, strike, before, stood, doubts })
}

/// Takes a timer away that has nothing to undo, where that can be done; else the journal keeps it for healing.
fn not_struck(fault: &Filled, timer: &Timer, transport: &dyn Transport, journal: &Journal) {
    let noted = journal.write(&fault.id, Step::NotStruck);
    if let (Ok(()), Ok(end)) = (noted, timer.disarm(transport, &fault.undo)) {
        // Without this line healing looks for the timer once more, and finds none.
        let _ = journal.write(&fault.id, Step::TimerEnded { end });
    }
}

fn version(fault: &Filled, transport: &dyn Transport, host: &str) -> Result<String, StrikeError> {
    let output = transport::command(transport, &fault.version)?;
    let text = output.text.trim();
    match output.exit {
        0 => Ok(text.lines().next().unwrap_or_default().to_owned()),
        exit => Err(StrikeError::NoTool {
            host: host.to_owned(),
            words: format!("`{}` ended with {exit} ({})", fault.version, yaml::wording::shortened(text)),
        }),
    }
}

/// Looks before the strike: what shows the fault must not, what shows its absence must. What shows it is kept, for those that
/// compare.
fn baseline(
    fault: &Filled,
    transport: &dyn Transport,
    host: &str,
    patience: Patience,
) -> Result<Vec<Seen>, StrikeError> {
    let no_baseline =
        |when: String| StrikeError::NoBaseline { fault: fault.name.clone(), host: host.to_owned(), when };
    let gone = until(patience.stands, || look(transport, &fault.gone, &[]));
    if let Some(seen) = gone.iter().find(|seen| answer(std::slice::from_ref(seen)) != Answer::Yes) {
        return Err(no_baseline(format!("the machine is not in its normal state: {seen}")));
    }
    let stands = look(transport, &fault.stands, &[]);
    match answer(&stands) {
        Answer::No => Ok(stands),
        Answer::Yes => Err(no_baseline("the fault's check already passes".to_owned())),
        Answer::Open => Err(no_baseline("the fault's check did not run".to_owned())),
    }
}

impl Standing {
    /// What it is.
    #[must_use]
    pub fn fault(&self) -> &Filled {
        &self.fault
    }

    /// What the tool said of its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Just before the first command that strikes was sent.
    #[must_use]
    pub fn struck_at(&self) -> Instant {
        self.struck_at
    }

    /// What was seen of it.
    #[must_use]
    pub fn stood(&self) -> &[Seen] {
        &self.stood
    }

    /// What is in doubt so far.
    #[must_use]
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// Looks whether it still stands, undoes it, sees that it is gone, and only then disarms the timer.
    #[must_use]
    pub fn undo(mut self, transport: &dyn Transport, journal: &Journal, patience: Patience) -> Receipt {
        // A machine that could not be asked before is not asked again: the undoing would wait for it.
        if self.fault.lasts && answer(&self.stood) == Answer::Yes {
            let still = look(transport, &self.fault.stands, &self.before);
            self.doubts.extend(doubts_during(&[], &still, None));
        }
        let undone_at = Instant::now();
        let undone = undo(
            (&self.fault.id, &self.timer),
            (&self.fault.undo, &self.fault.gone),
            transport,
            journal,
            patience.gone,
        );
        self.doubts.extend(undone.doubts);
        Receipt {
            version: self.version,
            strike: self.strike,
            stood: self.stood,
            undone_at,
            undo: undone.claims,
            gone: undone.seen,
            timer: undone.timer,
            doubts: self.doubts,
        }
    }
}

/// What undoing came to.
pub(crate) struct Undone {
    pub(crate) claims: Vec<Claim>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) timer: Option<TimerEnd>,
    pub(crate) doubts: Vec<Doubt>,
}

/// Undoes, again while the machine does not answer; looks; disarms once it is seen to be gone. The timer does its work
/// meanwhile where the connection is what was cut.
pub(crate) fn undo(
    (id, timer): (&str, &Timer),
    (commands, looks): (&[crate::command_file::Command], &[Look]),
    transport: &dyn Transport,
    journal: &Journal,
    patience: Duration,
) -> Undone {
    let deadline = Instant::now() + patience;
    let left = || deadline.saturating_duration_since(Instant::now());
    let mut claims: Vec<Claim>;
    loop {
        claims = commands.iter().map(|command| Claim::of(transport, command)).collect();
        if claims.iter().all(|claim| claim.output.is_some()) || left().is_zero() {
            break;
        }
        std::thread::sleep(AGAIN);
    }
    // What failed comes to nothing by waiting. The time that the commands took is not taken from the looks: clouds start a machine
    // for a minute, and only then does it boot.
    let patience = if claims.iter().all(Claim::is_success) { patience } else { Duration::ZERO };
    let seen = until(patience, || look(transport, looks, &[]));
    let mut doubts = doubts_after(&claims, &seen);
    let mut writing = journal.write(id, Step::Undone { claims: claims.clone() });
    if answer(&seen) != Answer::Yes {
        // Whether to disarm: the timer may be the only one that can still reach it.
        doubts.extend(writing.err().map(|error| Doubt::Journal(error.to_string())));
        return Undone { claims, seen, timer: None, doubts };
    }
    writing = writing.and_then(|()| journal.write(id, Step::Gone { seen: seen.clone() }));
    let end = match timer.disarm(transport, commands) {
        Ok(end) => {
            writing = writing.and_then(|()| journal.write(id, Step::TimerEnded { end: end.clone() }));
            if end != TimerEnd::Disarmed {
                doubts.push(Doubt::Timer(end.clone()));
            }
            Some(end)
        }
        Err(error) => {
            doubts.push(Doubt::TimerNotDisarmed(error.to_string()));
            None
        }
    };
    doubts.extend(writing.err().map(|error| Doubt::Journal(error.to_string())));
    Undone { claims, seen, timer: end, doubts }
}

/// Looks until all show what they should, or for so long.
fn until(patience: Duration, mut looks: impl FnMut() -> Vec<Seen>) -> Vec<Seen> {
    let deadline = Instant::now() + patience;
    loop {
        let seen = looks();
        if answer(&seen) == Answer::Yes || Instant::now() >= deadline {
            return seen;
        }
        std::thread::sleep(AGAIN);
    }
}
