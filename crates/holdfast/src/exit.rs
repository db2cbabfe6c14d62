//! Exit codes, and how what went wrong is told before one is given.

use std::process::ExitCode;

use history::Verdict;

use crate::complained;

/// The scenario or the arguments are wrong.
pub const WRONG: u8 = 254;
/// The lab could not do its job.
pub const LAB_FAILED: u8 = 255;

/// How a command ends.
#[derive(Debug)]
pub enum Exit {
    /// It did what was asked; for a run, with this verdict.
    Verdict(Verdict),
    /// It did what was asked.
    Done,
    /// The user's input is wrong: already told, with a caret.
    Reported(u8),
    /// Something went wrong that is still to be told.
    Failed(u8, anyhow::Error),
}

impl Exit {
    /// A failure of the lab or of the machine.
    pub fn failed(error: impl Into<anyhow::Error>) -> Exit {
        Exit::Failed(LAB_FAILED, error.into())
    }

    /// A mistake in what was asked.
    pub fn wrong(error: impl Into<anyhow::Error>) -> Exit {
        Exit::Failed(WRONG, error.into())
    }

    /// Tells what is still to be told.
    pub fn tell(self) -> Exit {
        match self {
            Exit::Failed(code, error) => {
                complained!("holdfast: {}", with_causes(error.as_ref()));
                Exit::Reported(code)
            }
            told => told,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Verdict(verdict) => ExitCode::from(verdict.exit_code()),
            Exit::Done => ExitCode::SUCCESS,
            Exit::Reported(code) | Exit::Failed(code, _) => ExitCode::from(code),
        }
    }
}

/// An error and its causes, where the error does not tell them itself.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
    }
    text
}

/// Prints what the argument parser has to say: help and version are no mistakes.
pub fn for_usage(error: &clap::Error) -> ExitCode {
    // Nothing more can be done when even this cannot be printed.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(WRONG) } else { ExitCode::SUCCESS }
}
