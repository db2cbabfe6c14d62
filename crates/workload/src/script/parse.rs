//! A script's text to a program: statements with their parameters, and the steps between them.
//!
//! Follows the section "Custom Scripts" of PostgreSQL's documentation of pgbench. Owns where statements end, where
//! variables stand in them, and how conditions become jumps. Where it differs: variables within quotes and comments are
//! left alone.

use std::collections::BTreeMap;

use super::expression::{self, Expression, MOST_DEPTH};
use super::variables::{Names, Variable};
use crate::script_error::{Problem, ScriptError};

/// Parameters of a statement at most, as PostgreSQL's protocol has it.
const MOST_PARAMETERS: usize = 65_535;

/// What becomes of a statement's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Dropped,
    /// The columns of its one row become variables, with this before their names.
    Set(String),
    /// As `Set`, of the last row; none changes nothing.
    SetLast(String),
}

/// How long to sleep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Amount {
    Number(i64),
    Variable(Variable),
}

/// One step of a program.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Runs a statement with these variables as its parameters.
    Sql {
        statement: usize,
        parameters: Vec<Variable>,
        answer: Answer,
    },
    Set {
        variable: Variable,
        expression: Expression,
    },
    Sleep {
        amount: Amount,
        unit_us: u64,
    },
    /// Goes on at another step unless the condition is true.
    Unless {
        condition: Expression,
        to: usize,
    },
    Jump {
        to: usize,
    },
    StartPipeline,
    EndPipeline,
}

/// A script that can be run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Program {
    /// Steps, each with its line.
    pub(super) steps: Vec<(usize, Step)>,
    /// SQL texts, variables as `$1`, `$2` ...
    pub(super) statements: Vec<String>,
}

/// Reads a script; variables that it mentions get a place among `names`.
pub(super) fn parse(name: &str, text: &str, names: &mut Names) -> Result<Program, ScriptError> {
    let mut reader = Reader {
        text,
        at: 0,
        counted: (0, 1),
        program: Program::default(),
        open: Vec::new(),
        pipeline: None,
        names,
    };
    let read = reader.read();
    let program = reader.program;
    read.map_err(|(at, problem)| located(name, text, at, problem)).map(|()| program)
}

fn located(name: &str, text: &str, at: usize, problem: Problem) -> ScriptError {
    let before = text.get(..at).unwrap_or(text);
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    ScriptError {
        script: name.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[begin..].chars().count() + 1,
        text: text[begin..].lines().next().unwrap_or_default().to_owned(),
        problem,
    }
}

/// An `\if` that is not closed yet.
struct OpenIf {
    at: usize,
    /// The step that jumps when the condition just read is not true; taken when the next branch begins.
    unless: Option<usize>,
    /// Steps at the ends of branches that jump behind the `\endif`.
    ends: Vec<usize>,
    has_else: bool,
}

struct Reader<'t, 'n> {
    text: &'t str,
    at: usize,
    /// A place and its line, from which lines are counted on.
    counted: (usize, usize),
    program: Program,
    names: &'n mut Names,
    open: Vec<OpenIf>,
    /// Where the pipeline began, within one.
    pipeline: Option<usize>,
}

/// The variables of a statement in the order of their numbers.
#[derive(Default)]
struct Parameters {
    variables: Vec<Variable>,
    numbers: BTreeMap<usize, usize>,
}

impl Parameters {
    /// The number by which the statement names the variable.
    fn number(&mut self, variable: Variable) -> usize {
        let next = self.variables.len() + 1;
        let number = *self.numbers.entry(variable.place()).or_insert(next);
        if number == next {
            self.variables.push(variable);
        }
        number
    }
}

type Found<T> = Result<T, (usize, Problem)>;

/// Length of a quotation, comment or dollar-quoted text at the front; 0 where there is none.
fn covered(rest: &str, is_escaping: bool) -> Result<usize, &'static str> {
    let until = |open: usize, close: &str, what: &'static str| {
        rest[open..].find(close).map(|length| open + length + close.len()).ok_or(what)
    };
    if rest.starts_with("--") {
        return Ok(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return comment(rest).ok_or("this comment");
    }
    if rest.starts_with('"') {
        return until(1, "\"", "this quoted name");
    }
    if rest.starts_with('\'') {
        let mut escaped = false;
        for (place, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' if is_escaping => escaped = true,
                // A doubled quote ends one quotation and begins the next at once: the same to us.
                '\'' => return Ok(place + 1),
                _ => {}
            }
        }
        return Err("this quotation");
    }
    if let Some(inner) = rest.strip_prefix('$') {
        let tag = inner.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(inner.len());
        if inner[tag..].starts_with('$') && !inner.starts_with(|c: char| c.is_ascii_digit()) {
            let quote = &rest[..tag + 2];
            return until(quote.len(), quote, "this dollar-quoted text");
        }
    }
    Ok(0)
}

/// Length of a comment; comments may stand within comments.
fn comment(rest: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    loop {
        let left = rest.get(at..)?;
        if left.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if left.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += left.chars().next()?.len_utf8();
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

impl<'t> Reader<'t, '_> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn read(&mut self) -> Found<()> {
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { break };
            if first.is_whitespace() || first == ';' {
                self.at += first.len_utf8();
            } else if rest.starts_with("--") || rest.starts_with("/*") {
                self.at += covered(rest, false).map_err(|what| (self.at, Problem::Open(what)))?;
            } else if first == '\\' {
                self.command()?;
            } else {
                self.statement()?;
            }
        }
        if let Some(open) = self.open.last() {
            return Err((open.at, Problem::NoEndif));
        }
        if let Some(at) = self.pipeline {
            return Err((at, Problem::Pipeline("this pipeline has no \\endpipeline")));
        }
        if self.program.statements.is_empty() {
            return Err((self.text.len(), Problem::Empty));
        }
        Ok(())
    }

    fn step(&mut self, at: usize, step: Step) {
        // Steps come in the order of their places: each counts on from the one before.
        let (from, line) = self.counted;
        let line = line + self.text.get(from..at).unwrap_or_default().matches('\n').count();
        self.counted = (from.max(at), line);
        self.program.steps.push((line, step));
    }

    /// Reads one statement up to its `;`, its `\gset`, or the end of the script.
    fn statement(&mut self) -> Found<()> {
        let begin = self.at;
        let mut sql = String::new();
        let mut parameters = Parameters::default();
        let mut depth = 0_usize;
        let mut answer = Answer::Dropped;
        loop {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else { break };
            let is_escaping = sql.ends_with(['e', 'E'])
                && !sql[..sql.len() - 1].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let length = covered(rest, is_escaping).map_err(|what| (self.at, Problem::Open(what)))?;
            if length > 0 {
                sql.push_str(&rest[..length]);
                self.at += length;
                continue;
            }
            match c {
                ';' if depth == 0 => {
                    self.at += 1;
                    break;
                }
                '\\' => {
                    answer = self.answer()?;
                    break;
                }
                ':' if rest.starts_with("::") => {
                    sql.push_str("::");
                    self.at += 2;
                }
                ':' if rest[1..].starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                    let length = rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '_'));
                    let name = &rest[1..length.map_or(rest.len(), |length| length + 1)];
                    let variable = self.names.variable(name);
                    sql.push_str(&format!("${}", parameters.number(variable)));
                    self.at += 1 + name.len();
                }
                c => {
                    depth = match c {
                        '(' => depth + 1,
                        ')' => depth.saturating_sub(1),
                        _ => depth,
                    };
                    sql.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        let parameters = parameters.variables;
        if parameters.len() > MOST_PARAMETERS {
            return Err((begin, Problem::TooManyVariables(MOST_PARAMETERS)));
        }
        if answer != Answer::Dropped && self.pipeline.is_some() {
            return Err((
                begin,
                Problem::Pipeline("the answer of a statement within a pipeline cannot be kept"),
            ));
        }
        let sql = sql.trim().to_owned();
        self.program.statements.push(if answer == Answer::Dropped { sql } else { with_names(&sql) });
        let statement = self.program.statements.len() - 1;
        self.step(begin, Step::Sql { statement, parameters, answer });
        Ok(())
    }

    /// The command that ends a statement.
    fn answer(&mut self) -> Found<Answer> {
        let (at, name, rest) = self.command_line();
        let prefix = rest.trim().to_owned();
        let is_name = prefix.chars().all(|c| c.is_alphanumeric() || c == '_');
        match name {
            "gset" | "aset" if !is_name => {
                Err((at, Problem::Unexpected("a prefix of letters and digits".to_owned())))
            }
            "gset" => Ok(Answer::Set(prefix)),
            "aset" => Ok(Answer::SetLast(prefix)),
            other => Err((at, Problem::InStatement(other.to_owned()))),
        }
    }

    /// The command at the cursor: where it begins, its name, and the rest of its line, which goes on behind a backslash at
    /// its end. The rest is the text as it stands, so that places in it are places in the script.
    fn command_line(&mut self) -> (usize, &'t str, &'t str) {
        let begin = self.at;
        let rest = &self.rest()[1..];
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            end += line.len();
            if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
                break;
            }
        }
        let whole = &rest[..end];
        let length = whole.find(|c: char| c.is_whitespace() || c == '\\').unwrap_or(whole.len());
        self.at = begin + 1 + end;
        (begin, &whole[..length], &whole[length..])
    }

    fn command(&mut self) -> Found<()> {
        let (at, name, rest) = self.command_line();
        let rest_at = at + 1 + name.len();
        let end_of_line = |found: Found<()>| match rest.trim() {
            "" => found,
            _ => Err((rest_at + first_of(rest), Problem::Unexpected("the end of the line".to_owned()))),
        };
        match name {
            "set" => self.set(at, rest, rest_at),
            "sleep" => self.sleep(at, rest, rest_at),
            "if" => {
                let condition = self.condition(rest, rest_at)?;
                let unless = self.program.steps.len();
                self.step(at, Step::Unless { condition, to: 0 });
                if self.open.len() == MOST_DEPTH {
                    return Err((at, Problem::TooDeep(MOST_DEPTH)));
                }
                self.open.push(OpenIf { at, unless: Some(unless), ends: Vec::new(), has_else: false });
                Ok(())
            }
            "elif" => {
                let condition = self.condition(rest, rest_at)?;
                self.next_branch(at, name)?;
                let unless = self.program.steps.len();
                self.step(at, Step::Unless { condition, to: 0 });
                if let Some(open) = self.open.last_mut() {
                    open.unless = Some(unless);
                }
                Ok(())
            }
            "else" => {
                self.next_branch(at, name)?;
                if let Some(open) = self.open.last_mut() {
                    open.has_else = true;
                }
                end_of_line(Ok(()))
            }
            "endif" => {
                let open = self.open.pop().ok_or_else(|| (at, Problem::NoIf(name.to_owned())))?;
                let here = self.program.steps.len();
                open.unless.into_iter().chain(open.ends).for_each(|step| self.aim(step, here));
                end_of_line(Ok(()))
            }
            "startpipeline" if self.pipeline.is_some() => {
                Err((at, Problem::Pipeline("this pipeline stands within another")))
            }
            "startpipeline" => {
                self.pipeline = Some(at);
                self.step(at, Step::StartPipeline);
                end_of_line(Ok(()))
            }
            "endpipeline" => {
                self.pipeline
                    .take()
                    .ok_or((at, Problem::Pipeline("there is no \\startpipeline before this")))?;
                self.step(at, Step::EndPipeline);
                end_of_line(Ok(()))
            }
            "shell" | "setshell" => Err((at, Problem::Shell(name.to_owned()))),
            "gset" | "aset" => Err((at, Problem::Unexpected("a statement before it".to_owned()))),
            unknown => Err((at, Problem::UnknownCommand(unknown.to_owned()))),
        }
    }

    /// Ends a branch of the innermost `\if` and begins the next.
    fn next_branch(&mut self, at: usize, name: &str) -> Found<()> {
        let end = self.program.steps.len();
        let open = self.open.last_mut().ok_or_else(|| (at, Problem::NoIf(name.to_owned())))?;
        if open.has_else {
            return Err((at, Problem::AfterElse(name.to_owned())));
        }
        open.ends.push(end);
        let unless = open.unless.take();
        self.step(at, Step::Jump { to: 0 });
        if let Some(unless) = unless {
            self.aim(unless, end + 1);
        }
        Ok(())
    }

    /// Sets where a step jumps to.
    fn aim(&mut self, step: usize, target: usize) {
        if let Some((_, Step::Jump { to } | Step::Unless { to, .. })) = self.program.steps.get_mut(step) {
            *to = target;
        }
    }

    fn set(&mut self, at: usize, rest: &str, rest_at: usize) -> Found<()> {
        let begin = first_of(rest);
        let name_and_more = &rest[begin..];
        let length = name_and_more.find(char::is_whitespace).unwrap_or(name_and_more.len());
        let name = &name_and_more[..length];
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err((rest_at + begin, Problem::Unexpected("a variable's name".to_owned())));
        }
        let expression = self.condition(&name_and_more[length..], rest_at + begin + length)?;
        let variable = self.names.variable(name);
        self.step(at, Step::Set { variable, expression });
        Ok(())
    }

    fn sleep(&mut self, at: usize, rest: &str, rest_at: usize) -> Found<()> {
        let place = rest_at + first_of(rest);
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (amount, unit) = match words.as_slice() {
            [amount] => (*amount, "s"),
            [amount, unit] => (*amount, *unit),
            _ => return Err((place, Problem::Unexpected("a time, such as `5 ms`".to_owned()))),
        };
        // `5ms` is written by many.
        let digits = amount.find(|c: char| !c.is_ascii_digit()).unwrap_or(amount.len());
        let (amount, unit) = if digits > 0 && digits < amount.len() && words.len() == 1 {
            amount.split_at(digits)
        } else {
            (amount, unit)
        };
        let amount = match amount.strip_prefix(':') {
            Some(name) if !name.is_empty() => Amount::Variable(self.names.variable(name)),
            _ => Amount::Number(amount.parse().map_err(|_| (place, Problem::BadNumber))?),
        };
        let unit_us = match unit {
            "us" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            _ => return Err((place, Problem::Unexpected("a unit: us, ms or s".to_owned()))),
        };
        self.step(at, Step::Sleep { amount, unit_us });
        Ok(())
    }

    /// An expression that may go on over lines that end in a backslash.
    fn condition(&mut self, text: &str, at: usize) -> Found<Expression> {
        // As many bytes as before, so that places stay right.
        let joined = text.replace("\\\r\n", "   ").replace("\\\n", "  ");
        expression::parse(joined.trim_end(), self.names).map_err(|(place, problem)| (at + place, problem))
    }
}

/// Where the first character stands that is no space.
fn first_of(text: &str) -> usize {
    text.find(|c: char| !c.is_whitespace()).unwrap_or(0)
}

const WITH_NAMES: &str = "WITH holdfast_answer AS (";

/// A statement as it stands in the script.
pub(super) fn original(sql: &str) -> &str {
    sql.strip_prefix(WITH_NAMES).unwrap_or(sql)
}

/// Whether the statement's answer has names beside its cells, in a form that only PostgreSQL has.
pub(super) fn has_names(sql: &str) -> bool {
    sql.starts_with(WITH_NAMES)
}

/// The same statement with names beside its answer's cells: the variables are called after the columns.
fn with_names(sql: &str) -> String {
    format!(
        "{WITH_NAMES}{sql}) SELECT cell.key, cell.value FROM holdfast_answer, \
         LATERAL json_each_text(row_to_json(holdfast_answer)) AS cell"
    )
}
