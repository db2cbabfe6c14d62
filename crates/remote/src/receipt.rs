//! What is known of a fault in the end: what its commands claimed, what was seen, and what that leaves in doubt.
//!
//! Judges. A claim never makes a receipt pass: only what was seen before, during and after does.

use std::fmt;
use std::time::Instant;

use history::Verdict;
use serde::{Deserialize, Serialize};

use crate::command_file::Command;
use crate::looks::{Answer, Difference, Seen, Sight, answer};
use crate::timer::TimerEnd;
use crate::transport::{self, Output, Transport};

/// What a command that changes something said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The command, as a line.
    pub command: String,
    /// How it ended; none where the machine did not answer.
    pub output: Option<Output>,
    /// Why there was no answer; empty where there was one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub silence: String,
}

impl Claim {
    /// Runs a command and keeps what it says.
    pub(crate) fn of(transport: &dyn Transport, command: &Command) -> Claim {
        Claim::after(transport, "", command)
    }

    /// The same, once a script has let it pass.
    pub(crate) fn after(transport: &dyn Transport, guard: &str, command: &Command) -> Claim {
        let (output, silence) = match transport::after(transport, guard, command) {
            Ok(output) => (Some(output), String::new()),
            Err(error) => (None, error.to_string()),
        };
        Claim { command: command.to_string(), output, silence }
    }

    /// Whether it says that it did what it should.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.exit == 0)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.output {
            Some(output) => write!(f, "`{}` ended with {}{}", self.command, output.exit, words(&output.text)),
            None => write!(f, "`{}`: {}", self.command, self.silence),
        }
    }
}

fn words(text: &str) -> String {
    let text = yaml::wording::shortened(text.trim());
    if text.is_empty() { text } else { format!(" ({text})") }
}

/// When looks were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// While it should stand.
    During,
    /// Once it was undone.
    After,
}

/// What keeps a receipt from passing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// A command of the strike did not say that it succeeded.
    StrikeFailed(Claim),
    /// What should show that it stands shows that it does not.
    DoesNotStand(Seen),
    /// What should show that it is gone says so while it should stand.
    GoneWhileStanding,
    /// A command of the undoing did not say that it succeeded.
    UndoFailed(Claim),
    /// It still stands after it was undone.
    StillStands(Seen),
    /// A look could not be made.
    NotSeen(When, Seen),
    /// The timer had to undo it, or came to an end that it should not have.
    Timer(TimerEnd),
    /// The timer is not known to be disarmed.
    TimerNotDisarmed(String),
    /// The journal could not be written.
    Journal(String),
}

impl Doubt {
    /// What this doubt makes of a receipt: what was seen to be wrong fails it, what was not seen leaves it open.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            Doubt::DoesNotStand(_) | Doubt::StillStands(_) => Verdict::Fail,
            _ => Verdict::Unknown,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::StrikeFailed(claim) => write!(f, "the strike failed: {claim}"),
            Doubt::DoesNotStand(seen) => write!(f, "the fault does not stand: {seen}"),
            Doubt::GoneWhileStanding => f.write_str("the `gone` check passes while the fault is active"),
            Doubt::UndoFailed(claim) => write!(f, "the undoing failed: {claim}"),
            Doubt::StillStands(seen) => write!(f, "the fault still stands: {seen}"),
            Doubt::NotSeen(When::During, seen) => write!(f, "the fault was not observed: {seen}"),
            Doubt::NotSeen(When::After, seen) => write!(f, "healing was not observed: {seen}"),
            Doubt::Timer(end) => end.fmt(f),
            Doubt::TimerNotDisarmed(words) => write!(f, "the timer may still be armed: {words}"),
            Doubt::Journal(words) => write!(f, "the journal: {words}"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Sight::Expected(_) => write!(f, "`{}` showed it", self.command),
            Sight::NotMade(why) => write!(f, "`{}`: {why}", self.command),
            Sight::Otherwise(output, difference) => {
                write!(f, "`{}` ended with {}", self.command, output.exit)?;
                match difference {
                    Difference::Exit(exit) => write!(f, ", not with {exit}")?,
                    Difference::Lacks(text) => write!(f, " without `{text}` in its output")?,
                    Difference::Has(text) => write!(f, " with `{text}` in its output")?,
                    Difference::Unchanged => f.write_str(" with the same output as before the strike")?,
                }
                f.write_str(&words(&output.text))
            }
        }
    }
}

/// All that is known of a fault in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// What the tool said of its version.
    pub version: String,
    /// What the strike said of itself.
    pub strike: Vec<Claim>,
    /// What was seen of it.
    pub stood: Vec<Seen>,
    /// Just before the first command that undoes it was sent.
    pub undone_at: Instant,
    /// What the undoing said of itself.
    pub undo: Vec<Claim>,
    /// What was seen afterwards.
    pub gone: Vec<Seen>,
    /// How the timer ended, if that is known.
    pub timer: Option<TimerEnd>,
    /// What is in doubt.
    pub doubts: Vec<Doubt>,
}

impl Receipt {
    /// Whether the fault was shown to have stood, and to be gone.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        // What the timer undid may have been gone before somebody looked: that it was not seen to stand proves nothing.
        let fired = matches!(self.timer, Some(TimerEnd::Fired { .. }));
        let verdict = |doubt: &Doubt| match doubt {
            Doubt::DoesNotStand(_) if fired => Verdict::Unknown,
            doubt => doubt.verdict(),
        };
        self.doubts.iter().map(verdict).fold(Verdict::Pass, Verdict::and)
    }
}

/// What the strike and the looks after it leave in doubt.
pub(crate) fn doubts_during(strike: &[Claim], stood: &[Seen], gone: Option<&[Seen]>) -> Vec<Doubt> {
    let failed = strike.iter().filter(|claim| !claim.is_success()).cloned().map(Doubt::StrikeFailed);
    let mut doubts: Vec<Doubt> = failed.chain(wrong(stood, When::During)).collect();
    if gone.is_some_and(|gone| answer(gone) == Answer::Yes) {
        doubts.push(Doubt::GoneWhileStanding);
    }
    doubts
}

/// What the undoing and the looks after it leave in doubt.
pub(crate) fn doubts_after(undo: &[Claim], gone: &[Seen]) -> Vec<Doubt> {
    let failed = undo.iter().filter(|claim| !claim.is_success()).cloned().map(Doubt::UndoFailed);
    failed.chain(wrong(gone, When::After)).collect()
}

fn wrong(seen: &[Seen], when: When) -> impl Iterator<Item = Doubt> {
    seen.iter().filter_map(move |seen| match (&seen.what, when) {
        (Sight::Expected(_), _) => None,
        (Sight::NotMade(_), when) => Some(Doubt::NotSeen(when, seen.clone())),
        (Sight::Otherwise(..), When::During) => Some(Doubt::DoesNotStand(seen.clone())),
        (Sight::Otherwise(..), When::After) => Some(Doubt::StillStands(seen.clone())),
    })
}
