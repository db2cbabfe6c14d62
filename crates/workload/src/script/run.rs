//! Carrying out a script: step by step, with the client's variables.
//!
//! Owns what is sent when, and what an error in the middle says of the whole: once a statement outside a transaction block
//! has been answered, the script has had an effect, and an error after it is no longer definite.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use client::{Rows, SessionError, SqlValue};
use rand::rngs::Xoshiro256PlusPlus;

use super::Script;
use super::evaluate::evaluate;
use super::parse::{Amount, Answer, Step};
use super::value::{EvaluationError, Value};
use super::variables::{Names, Variable, Variables};
use crate::workload::{Attempt, refused};

/// The longest a script may sleep at a time.
const MOST_SLEEP: Duration = Duration::from_secs(3_600);

/// Statements with more parameters than this are rare, and cost an allocation.
const FEW_PARAMETERS: usize = 8;

/// Pipelines with more statements than this are rare, and cost further allocations.
const MOST_PIPELINED: usize = 16;

/// Statements that wait for the end of their pipeline.
#[derive(Default)]
struct Waiting {
    /// Each with the place in `values` at which its parameters end.
    statements: Vec<(usize, usize)>,
    values: Vec<Value>,
}

/// Runs a script once.
pub(super) async fn run(
    script: &Script,
    names: &Names,
    variables: &RefCell<Variables>,
    rng: &mut Xoshiro256PlusPlus,
    attempt: &mut Attempt<'_>,
) -> Result<(), SessionError> {
    let mut at = 0;
    let mut pipeline: Option<Waiting> = None;
    let mut has_effect = false;
    while let Some((line, step)) = script.program.steps.get(at) {
        at += 1;
        // Computed before anything is awaited: the variables must not stay borrowed.
        let failed = |error: EvaluationError| SessionError {
            definite: !has_effect,
            ..refused(format!("script {}, line {line}: {error}", script.name))
        };
        match step {
            Step::Set { variable, expression } => {
                let value = evaluate(expression, &variables.borrow(), rng).map_err(failed)?;
                variables.borrow_mut().set(variable, value);
            }
            Step::Unless { condition, to } => {
                let value = evaluate(condition, &variables.borrow(), rng).map_err(failed)?;
                if !value.truth().map_err(failed)? {
                    at = *to;
                }
            }
            Step::Jump { to } => at = *to,
            Step::Sleep { amount, unit_us } => {
                let length = sleep_length(amount, *unit_us, &variables.borrow()).map_err(failed)?;
                client::reactor::sleep(length).await;
            }
            Step::StartPipeline => pipeline = Some(Waiting::with_room()),
            Step::EndPipeline => {
                flush(attempt, &pipeline.take().unwrap_or_default(), &mut has_effect).await?;
            }
            Step::Sql { statement, parameters, answer } => {
                let statement = script.first_statement + statement;
                if let Some(waiting) = &mut pipeline {
                    waiting.push(statement, parameters, &variables.borrow()).map_err(failed)?;
                    continue;
                }
                let sent =
                    with_values(parameters, &variables.borrow(), |values| attempt.ask(statement, values));
                let rows = match sent.map_err(failed)? {
                    Ok(asked) => attempt.answer(asked).await,
                    Err(error) => Err(error),
                };
                let rows = rows.map_err(|error| after(has_effect, error))?;
                has_effect |= !attempt.session.in_transaction();
                keep(&rows, answer, names, variables)?;
            }
        }
    }
    if attempt.session.in_transaction() {
        let message = format!("script {} ends within a transaction block: END is missing", script.name);
        return Err(SessionError { definite: !has_effect, ..refused(message) });
    }
    Ok(())
}

/// Once the script has had an effect, no error says that nothing happened.
fn after(has_effect: bool, error: SessionError) -> SessionError {
    SessionError { definite: error.definite && !has_effect, ..error }
}

/// Gives `send` what the parameters hold. The variables are borrowed for as long as that takes, and not while anything is
/// awaited.
fn with_values<T>(
    parameters: &[Variable],
    variables: &Variables,
    send: impl FnOnce(&[SqlValue<'_>]) -> T,
) -> Result<T, EvaluationError> {
    let mut few = [SqlValue::Null; FEW_PARAMETERS];
    if let Some(places) = few.get_mut(..parameters.len()) {
        let mut all_are_plain = true;
        for (place, parameter) in places.iter_mut().zip(parameters) {
            match as_sent(variables.get(parameter)?) {
                Some(value) => *place = value,
                None => all_are_plain = false,
            }
        }
        if all_are_plain {
            return Ok(send(places));
        }
    }
    let values = parameters.iter().map(|parameter| variables.get(parameter).map(made_plain));
    let values = values.collect::<Result<Vec<Value>, _>>()?;
    let values: Vec<SqlValue<'_>> = values.iter().filter_map(as_sent).collect();
    Ok(send(&values))
}

/// A value in the form in which it is sent; none of those that are sent as a text yet to be made.
fn as_sent(value: &Value) -> Option<SqlValue<'_>> {
    match value {
        Value::Null => Some(SqlValue::Null),
        Value::Integer(number) => Some(SqlValue::Integer(*number)),
        Value::Text(text) => Some(SqlValue::Text(text)),
        Value::Double(_) | Value::Boolean(_) => None,
    }
}

/// The same, its text made where it needs one.
fn made_plain(value: &Value) -> Value {
    match value {
        Value::Double(_) | Value::Boolean(_) => Value::Text(value.to_string()),
        plain => plain.clone(),
    }
}

fn sleep_length(amount: &Amount, unit_us: u64, variables: &Variables) -> Result<Duration, EvaluationError> {
    let amount = match amount {
        Amount::Number(number) => *number,
        Amount::Variable(variable) => variables.get(variable)?.clone().typed()?.integer()?,
    };
    let length = u64::try_from(amount).unwrap_or(0).saturating_mul(unit_us);
    Ok(Duration::from_micros(length).min(MOST_SLEEP))
}

/// Keeps an answer where that is asked for.
fn keep(
    rows: &Rows,
    answer: &Answer,
    names: &Names,
    variables: &RefCell<Variables>,
) -> Result<(), SessionError> {
    let (prefix, exactly_one) = match answer {
        Answer::Dropped => return Ok(()),
        Answer::Set(prefix) => (prefix, true),
        Answer::SetLast(prefix) => (prefix, false),
    };
    // Each cell is a row of a name and a value; a name that comes again belongs to another row of the answer.
    let mut kept = BTreeMap::new();
    for row in 0..rows.len() {
        let name = format!("{prefix}{}", rows.text(row, 0).unwrap_or_default());
        let value = rows.text(row, 1).map_or(Value::Null, |text| Value::Text(text.to_owned()));
        if kept.insert(name, value).is_some() && exactly_one {
            return Err(one_row("more than one"));
        }
    }
    if kept.is_empty() && exactly_one {
        return Err(one_row("none"));
    }
    let mut variables = variables.borrow_mut();
    kept.into_iter().for_each(|(name, value)| variables.set_by_name(names, &name, value));
    Ok(())
}

/// The statement may have taken effect: whatever is wrong with its answer is not definite.
fn one_row(found: &str) -> SessionError {
    SessionError {
        definite: false,
        ..refused(format!("\\gset needs an answer of one row, there is {found}"))
    }
}

impl Waiting {
    /// With room for as many statements as most pipelines have.
    fn with_room() -> Waiting {
        Waiting { statements: Vec::with_capacity(MOST_PIPELINED), values: Vec::with_capacity(MOST_PIPELINED) }
    }

    fn push(
        &mut self,
        statement: usize,
        parameters: &[Variable],
        variables: &Variables,
    ) -> Result<(), EvaluationError> {
        for parameter in parameters {
            self.values.push(made_plain(variables.get(parameter)?));
        }
        self.statements.push((statement, self.values.len()));
        Ok(())
    }
}

/// Runs what a pipeline has gathered in one flight.
async fn flush(
    attempt: &mut Attempt<'_>,
    waiting: &Waiting,
    has_effect: &mut bool,
) -> Result<(), SessionError> {
    if waiting.statements.is_empty() {
        return Ok(());
    }
    let values: Vec<SqlValue<'_>> = waiting.values.iter().filter_map(as_sent).collect();
    let mut begin = 0;
    let flight: Vec<(usize, &[SqlValue<'_>])> = waiting
        .statements
        .iter()
        .map(|(statement, end)| {
            let begin = std::mem::replace(&mut begin, *end);
            (*statement, values.get(begin..*end).unwrap_or_default())
        })
        .collect();
    attempt.run_together(&flight, &mut |_, _| {}).await.map_err(|error| after(*has_effect, error))?;
    *has_effect |= !attempt.session.in_transaction();
    Ok(())
}
