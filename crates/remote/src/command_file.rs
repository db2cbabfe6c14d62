//! A fault as four commands, read and checked; and the same with the values of its parameters.
//!
//! Owns the typed result. How it is written is `language`'s and `read`'s; running the commands is `strike`'s and `heal`'s.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::parameter::Parameter;
use crate::quoting;
use yaml::template::{Scope, Template};

/// The name that stands for eight hexadecimal digits of the fault's own, different in every strike.
pub const ID: &str = "id";

/// What a command file says.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandFile {
    /// The fault's name.
    pub name: String,
    /// What it does, in a line.
    pub summary: String,
    /// What it was written for.
    pub written_for: WrittenFor,
    /// Whether it stands until it is undone; else it is over at once, and what follows is recovery.
    pub lasts: bool,
    /// What a user says of it.
    pub parameters: Vec<Parameter>,
    /// What strikes, in order.
    pub strike: Vec<Step>,
    /// What undoes it, in order.
    pub undo: Vec<Step>,
    /// What shows that it stands.
    pub stands: Vec<LookStep>,
    /// What shows that it is gone.
    pub gone: Vec<LookStep>,
    /// What was tried, and where.
    pub tested: Tested,
}

/// The tool that a command file was written for.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFor {
    /// Its name.
    pub tool: String,
    pub version: String,
    /// What prints the version that a machine has.
    pub asked_by: Step,
}

/// A command with names in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub(crate) run: Vec<Template>,
    pub(crate) within: Duration,
}

/// A command that only looks, with names in it.
#[derive(Debug, Clone, PartialEq)]
pub struct LookStep {
    pub(crate) step: Step,
    pub(crate) exit: u8,
    pub(crate) has: Option<Template>,
    pub(crate) lacks: Option<Template>,
    pub(crate) changed: bool,
}

/// What was tried of a command file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tested {
    /// The project's own tests run it there.
    Here(String),
    /// Nobody ran it here; it is from there.
    From(String),
}

impl fmt::Display for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tested::Here(place) => write!(f, "tested with {place}"),
            Tested::From(source) => write!(f, "not run here; from {source}"),
        }
    }
}

/// A command: a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// How long it may take.
    pub within: Duration,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoting::joined(&self.run))
    }
}

/// A command that only looks, and what it must show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    pub command: Command,
    /// Its exit code.
    pub exit: u8,
    /// What its output has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<String>,
    /// What its output lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Whether its output must be another than before the strike.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// The four commands with all values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The fault's name.
    pub name: String,
    /// Which fault of all, also part of the names of what it makes on the machine.
    pub id: String,
    /// Whether it stands until it is undone.
    pub lasts: bool,
    /// What prints the tool's version.
    pub version: Command,
    /// What strikes.
    pub strike: Vec<Command>,
    /// What undoes it.
    pub undo: Vec<Command>,
    /// What shows that it stands.
    pub stands: Vec<Look>,
    /// What shows that it is gone.
    pub gone: Vec<Look>,
}

/// Why values do not fit a command file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// No such parameter.
    #[error("{fault} has no parameter `{name}`; it has {known}")]
    Unknown {
        fault: String,
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// A value is missing.
    #[error("{fault} needs `{name}`: {meaning}, such as {example}")]
    Missing {
        fault: String,
        /// The parameter.
        name: String,
        /// What it means.
        meaning: String,
        /// A value.
        example: String,
    },
    /// A value is something else.
    #[error("{fault}: `{name}` cannot be `{value}`; it is {form}")]
    NotOfKind {
        fault: String,
        /// The parameter.
        name: String,
        /// What was given.
        value: String,
        /// What it may be.
        form: &'static str,
    },
}

impl CommandFile {
    /// The commands with these values. `id` are the fault's own eight digits.
    ///
    /// # Errors
    /// When a value is missing, unknown, or not of its parameter's kind.
    pub fn filled(&self, values: &BTreeMap<String, String>, id: &str) -> Result<Filled, FillError> {
        let fault = || self.name.clone();
        let known = |name: &String| self.parameters.iter().any(|parameter| parameter.name == *name);
        if let Some(name) = values.keys().find(|name| !known(name)) {
            let names: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
            let known = yaml::wording::listed(&names);
            return Err(FillError::Unknown { fault: fault(), name: name.clone(), known });
        }
        let mut accepted = BTreeMap::from([(ID.to_owned(), id.to_owned())]);
        for Parameter { name, kind, meaning, default, example } in &self.parameters {
            let Some(value) = values.get(name).or(default.as_ref()) else {
                let (meaning, example) = (meaning.clone(), example.clone());
                return Err(FillError::Missing { fault: fault(), name: name.clone(), meaning, example });
            };
            let Some(value) = kind.accepted(value) else {
                let value = yaml::wording::shortened(value);
                return Err(FillError::NotOfKind {
                    fault: fault(),
                    name: name.clone(),
                    value,
                    form: kind.form(),
                });
            };
            accepted.insert(name.clone(), value);
        }
        let scope = Scope { values: accepted, ..Scope::default() };
        let steps = |steps: &[Step]| steps.iter().map(|step| step.filled(&scope)).collect();
        let looks = |looks: &[LookStep]| looks.iter().map(|look| look.filled(&scope)).collect();
        Ok(Filled {
            name: self.name.clone(),
            id: id.to_owned(),
            lasts: self.lasts,
            version: self.written_for.asked_by.filled(&scope),
            strike: steps(&self.strike),
            undo: steps(&self.undo),
            stands: looks(&self.stands),
            gone: looks(&self.gone),
        })
    }

    /// The commands with the examples of its parameters, for a reader.
    ///
    /// # Errors
    /// Never for a file that was read: its examples were looked at then.
    pub fn with_examples(&self) -> Result<Filled, FillError> {
        let value = |parameter: &Parameter| (parameter.name.clone(), parameter.example.clone());
        self.filled(&self.parameters.iter().map(value).collect(), "0a1b2c3d")
    }
}

impl Step {
    fn filled(&self, scope: &Scope) -> Command {
        Command { run: self.run.iter().map(|word| word.filled(scope)).collect(), within: self.within }
    }
}

impl LookStep {
    fn filled(&self, scope: &Scope) -> Look {
        Look {
            command: self.step.filled(scope),
            exit: self.exit,
            has: self.has.as_ref().map(|has| has.filled(scope)),
            lacks: self.lacks.as_ref().map(|lacks| lacks.filled(scope)),
            changed: self.changed,
        }
    }
}
