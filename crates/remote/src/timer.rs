//! The dead man's timer: a process on the machine itself that undoes a fault at a deadline, unless it is disarmed before.
//!
//! A fault may cut the connection by which it would be undone, and this program may die. Owns the three scripts (arm, fire,
//! disarm) and what they say. The undo has the environment of the login that armed it, also where a service of the system carries it
//! out: its tools find their configuration there. Whoever comes first makes the folder `claimed` within the timer's own: the timer to undo, the
//! disarming to take the folder away. The timer waits by the machine's uptime, which no fault of a clock moves.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command_file::Command;
use crate::quoting::quoted;
use crate::transport::{self, Transport, TransportError};

/// How long arming and disarming may take.
const WITHIN: Duration = Duration::from_secs(40);
/// How long an undo by the timer may take beyond its commands' own limits.
const GRACE: Duration = Duration::from_secs(5);
/// What a strike ends with that finds no timer which waits.
pub const TOO_LATE: u8 = 125;
/// What the arming says last.
const ARMED: &str = "armed";

/// What waits on the machine. `$1` is the folder, `$2` the seconds. The login's environment may hold any variable, so that the undo is
/// found by `$1`, which it cannot change.
const TIMER: &str = r#"folder=$1
read -r now rest < /proc/uptime
deadline=$((${now%.*} + $2))
echo $$ > "$folder/pid"
: > "$folder/armed"
while [ -d "$folder" ] && [ ! -d "$folder/claimed" ]; do
  read -r now rest < /proc/uptime
  if [ "${now%.*}" -ge "$deadline" ] && mkdir "$folder/claimed" 2>/dev/null; then
    (if (. "$1/environment"); then . "$1/environment"; fi; sh "$1/undo") > "$folder/output" 2>&1 < /dev/null
    echo $? > "$folder/fired.new"
    mv "$folder/fired.new" "$folder/fired"
    exit 0
  fi
  sleep 0.2 2>/dev/null || sleep 1
done
"#;

/// A timer, on paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// Its folder on the machine, which nobody else can know before.
    pub folder: String,
    /// When it fires, from its arming on.
    pub after: Duration,
}

/// How a timer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerEnd {
    /// It was disarmed before its deadline.
    Disarmed,
    /// It fired: the exit code of the undo, and what that wrote.
    Fired {
        /// 0 where all its commands ended with 0.
        exit: u8,
        /// What they wrote.
        output: String,
    },
    /// It is not on the machine: never armed, disarmed before, lost in a restart of the machine, or killed there.
    Absent,
    /// It had begun and never ended.
    Unfinished,
}

impl fmt::Display for TimerEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimerEnd::Disarmed => f.write_str("the timer on the machine was disarmed"),
            TimerEnd::Fired { exit: 0, .. } => f.write_str("the timer on the machine undid it"),
            TimerEnd::Fired { exit, output } => {
                write!(
                    f,
                    "the timer on the machine tried to undo it, which ended with {exit}: {}",
                    output.trim()
                )
            }
            TimerEnd::Absent => f.write_str("there is no timer on the machine"),
            TimerEnd::Unfinished => f.write_str("the timer on the machine began to undo it and did not end"),
        }
    }
}

/// Why a timer does not wait.
#[derive(Debug, thiserror::Error)]
pub enum TimerError {
    /// The machine did not answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// It answered something else.
    #[error("{host}: the timer that would undo the fault could not be {what}: {words}")]
    Refused {
        /// The machine.
        host: String,
        /// Armed or disarmed.
        what: &'static str,
        /// What was said instead.
        words: String,
    },
}

impl Timer {
    /// A timer whose folder has this token in its name.
    #[must_use]
    pub fn new(token: &str, after: Duration) -> Timer {
        Timer { folder: format!("/tmp/holdfast-{token}"), after }
    }

    /// Arms it, and waits until it runs.
    ///
    /// # Errors
    /// When it is not known to run.
    pub fn arm(&self, transport: &dyn Transport, undo: &[Command]) -> Result<(), TimerError> {
        let output = transport.run(&self.arming(undo, transport.reach().is_session()), WITHIN)?;
        match output.text.lines().last() {
            Some(ARMED) if output.exit == 0 => Ok(()),
            _ => Err(refused(transport, "armed", output.text)),
        }
    }

    fn arming(&self, undo: &[Command], is_session: bool) -> String {
        let folder = quoted(&self.folder);
        let unit = quoted(self.folder.rsplit('/').next().unwrap_or_default());
        let seconds = self.after.as_secs().max(1);
        // A login's processes may be ended with it; a service is not.
        let by_service = if is_session {
            "[ \"$(id -u)\" = 0 ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null"
        } else {
            "false"
        };
        format!(
            "set -eu\numask 077\nmkdir -- {folder}\nexport -p > {folder}/environment\nprintf %s {undo} > {folder}/undo\nprintf %s {timer} > {folder}/timer\n\
             if {by_service}; then\n  systemd-run --quiet --collect --unit={unit} sh {folder}/timer {folder} {seconds}\n\
             else\n  setsid sh {folder}/timer {folder} {seconds} </dev/null >/dev/null 2>&1 &\nfi\n\
             i=0\nwhile [ ! -e {folder}/armed ]; do\n  i=$((i + 1))\n  [ $i -lt 300 ] || {{ rm -rf -- {folder}; echo late; \
             exit 1; }}\n  sleep 0.1\ndone\necho {ARMED}\n",
            undo = quoted(&undoing(undo)),
            timer = quoted(TIMER),
        )
    }

    /// What lets nothing pass once the timer has fired, since a strike that comes later than its undoing would stand for good; nor
    /// once its process is gone, as where a login's processes end with it.
    pub(crate) fn guard(&self) -> String {
        let folder = quoted(&self.folder);
        format!(
            "[ -d {folder} ] && [ ! -d {folder}/claimed ] || {{ echo 'the timer fired before the strike'; exit {TOO_LATE}; }}\n\
             {lives} || {{ echo 'the timer does not run any more'; exit {TOO_LATE}; }}\n",
            lives = self.lives(),
        )
    }

    /// Whether its process is there, as a command of the shell.
    fn lives(&self) -> String {
        format!("kill -0 \"$(cat {}/pid 2>/dev/null)\" 2>/dev/null", quoted(&self.folder))
    }

    /// Disarms it, or tells that it fired, and takes away what it left. An undo that is going on is waited for.
    ///
    /// # Errors
    /// When the machine does not answer, or not as it should.
    pub fn disarm(&self, transport: &dyn Transport, undo: &[Command]) -> Result<TimerEnd, TimerError> {
        let patience =
            undo.iter().map(|command| command.within + Duration::from_secs(1)).sum::<Duration>() + GRACE;
        let script = self.disarming(patience);
        let output = transport.run(&script, patience + WITHIN)?;
        let (word, rest) = output.text.split_once('\n').unwrap_or((&output.text, ""));
        match (output.exit, word.split_once(' ').unwrap_or((word, ""))) {
            (0, ("disarmed", _)) => Ok(TimerEnd::Disarmed),
            (0, ("absent", _)) => Ok(TimerEnd::Absent),
            (0, ("unfinished", _)) => Ok(TimerEnd::Unfinished),
            (0, ("fired", exit)) => {
                Ok(TimerEnd::Fired { exit: exit.parse().unwrap_or(u8::MAX), output: rest.to_owned() })
            }
            _ => Err(refused(transport, "disarmed", output.text.clone())),
        }
    }

    fn disarming(&self, patience: Duration) -> String {
        let folder = quoted(&self.folder);
        let tries = patience.as_millis() / 100;
        format!(
            "if [ ! -d {folder} ]; then echo absent; exit 0; fi\n\
             word=absent\nif {lives}; then word=disarmed; fi\n\
             if mkdir {folder}/claimed 2>/dev/null; then rm -rf -- {folder} && echo $word; exit; fi\n\
             i=0\nwhile [ ! -e {folder}/fired ] && [ $i -lt {tries} ]; do sleep 0.1; i=$((i + 1)); done\n\
             if [ -e {folder}/fired ]; then echo \"fired $(cat {folder}/fired)\"; cat {folder}/output\n\
             else echo unfinished; fi\nrm -rf -- {folder}\n",
            lives = self.lives(),
        )
    }
}

/// All of it, whatever fails; the exit code is that of the last failure.
fn undoing(undo: &[Command]) -> String {
    let lines: String =
        undo.iter().map(|command| format!("{} || status=$?\n", transport::line(command))).collect();
    format!("{}\nstatus=0\n{lines}exit $status\n", transport::PATH)
}

fn refused(transport: &dyn Transport, what: &'static str, words: String) -> TimerError {
    TimerError::Refused {
        host: transport.reach().host().to_owned(),
        what,
        words: yaml::wording::shortened(words.trim()),
    }
}
