//! What is wrong with a script, and where: the line with a caret under the place.
//!
//! Owns the messages; what is wrong is found by `parse` and `expression`.

use std::fmt;

/// Characters of a line that are shown.
const LONGEST_LINE: usize = 200;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Something else should stand there.
    #[error("{0} was expected here")]
    Unexpected(String),
    /// A character that no expression has.
    #[error("{0:?} has no meaning in an expression")]
    UnknownCharacter(char),
    /// A number that cannot be read.
    #[error("this is not a number of 64 bits")]
    BadNumber,
    /// A function there is not.
    #[error("there is no function {0:?}")]
    UnknownFunction(String),
    /// Too few or too many arguments.
    #[error("{function} takes {}, not {given}", taken(*.least, *.most))]
    ArgumentCount {
        function: String,
        /// Fewest arguments.
        least: usize,
        /// Most arguments.
        most: usize,
        /// Those given.
        given: usize,
    },
    /// A command there is not.
    #[error(
        "there is no command \\{0}; known are \\set, \\if, \\elif, \\else, \\endif, \\gset, \\aset, \\sleep, \\startpipeline, \\endpipeline"
    )]
    UnknownCommand(String),
    /// A command that would reach outside the database.
    #[error("\\{0} would run a program on this machine, which a scenario must not do")]
    Shell(String),
    /// `\elif`, `\else` or `\endif` without an `\if`.
    #[error("\\{0} without an \\if before it")]
    NoIf(String),
    /// An `\if` that is never closed.
    #[error("this \\if has no \\endif")]
    NoEndif,
    /// `\elif` or `\else` behind an `\else`.
    #[error("\\{0} behind the \\else of the same \\if")]
    AfterElse(String),
    /// A pipeline within a pipeline, or an end without a beginning.
    #[error("{0}")]
    Pipeline(&'static str),
    /// A statement, quotation or comment that never ends.
    #[error("{0} never ends")]
    Open(&'static str),
    /// A command in the middle of a statement.
    #[error("a statement ends with `;`, \\gset or \\aset before \\{0}")]
    InStatement(String),
    /// Nothing to do.
    #[error("the script has no statement")]
    Empty,
    /// Nesting beyond all reason.
    #[error("nested more than {0} deep")]
    TooDeep(usize),
    /// More different variables than a statement can have parameters.
    #[error("a statement can have {0} variables at most")]
    TooManyVariables(usize),
}

fn taken(least: usize, most: usize) -> String {
    let counted =
        |count: usize| if count == 1 { "1 argument".to_owned() } else { format!("{count} arguments") };
    match (least, most) {
        (least, most) if least == most => counted(least),
        (least, 100) => format!("{} or more", counted(least)),
        (least, most) => format!("{least} to {most} arguments"),
    }
}

/// A problem and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// The script's name.
    pub script: String,
    /// The line, from 1.
    pub line: usize,
    /// The character within the line, from 1.
    pub column: usize,
    /// The line's text.
    pub text: String,
    /// What is wrong.
    pub problem: Problem,
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScriptError { script, line, column, text, problem } = self;
        writeln!(f, "script {script}, line {line}: {problem}")?;
        // Of a long line as much as stands around the place.
        let begin = (column - 1).saturating_sub(LONGEST_LINE / 2);
        let around: String = text.chars().skip(begin).take(LONGEST_LINE).collect();
        writeln!(f, "  {around}")?;
        // Tabs as they are, so that the caret stands under its place.
        let before: String =
            around.chars().take(column - 1 - begin).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "  {before}^")
    }
}
