//! Carrying out a script: step by step, with the client's variables.
//!
//! Owns what is sent when, and what an error in the middle says of the whole: once a statement outside a transaction block
//! has been answered, the script has had an effect, and an error after it is no longer definite.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use client::{SessionError, SqlValue};
use rand::rngs::Xoshiro256PlusPlus;

use super::Script;
use super::evaluate::{Variables, evaluate};
use super::parse::{Amount, Answer, Step};
use super::value::{EvaluationError, Value};
use crate::workload::{Attempt, refused};

/// The longest a script may sleep at a time.
const MOST_SLEEP: Duration = Duration::from_secs(3_600);

/// A statement that waits for the end of its pipeline.
type Waiting = (usize, Vec<Value>);

/// Runs a script once.
pub(super) async fn run(
    script: &Script,
    variables: &Rc<RefCell<Variables>>,
    rng: &mut Xoshiro256PlusPlus,
    attempt: &mut Attempt<'_>,
) -> Result<(), SessionError> {
    let mut at = 0;
    let mut pipeline: Option<Vec<Waiting>> = None;
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
                variables.borrow_mut().insert(variable.clone(), value);
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
            Step::StartPipeline => pipeline = Some(Vec::new()),
            Step::EndPipeline => {
                flush(attempt, pipeline.take().unwrap_or_default(), &mut has_effect).await?;
            }
            Step::Sql { statement, parameters, answer } => {
                let values = values(parameters, &variables.borrow()).map_err(failed)?;
                let statement = script.first_statement + statement;
                match &mut pipeline {
                    Some(waiting) => waiting.push((statement, values)),
                    None => ask(attempt, statement, &values, answer, variables, &mut has_effect).await?,
                }
            }
        }
    }
    if attempt.session.in_transaction() {
        let message = format!("script {} ends within a transaction block: END is missing", script.name);
        return Err(SessionError { definite: !has_effect, ..refused(message) });
    }
    Ok(())
}

fn values(parameters: &[String], variables: &Variables) -> Result<Vec<Value>, EvaluationError> {
    let value =
        |name: &String| variables.get(name).cloned().ok_or_else(|| EvaluationError::Unset(name.clone()));
    parameters.iter().map(value).collect()
}

fn sleep_length(amount: &Amount, unit_us: u64, variables: &Variables) -> Result<Duration, EvaluationError> {
    let amount = match amount {
        Amount::Number(number) => *number,
        Amount::Variable(name) => {
            let value = variables.get(name).cloned().ok_or_else(|| EvaluationError::Unset(name.clone()))?;
            value.typed()?.integer()?
        }
    };
    let length = u64::try_from(amount).unwrap_or(0).saturating_mul(unit_us);
    Ok(Duration::from_micros(length).min(MOST_SLEEP))
}

/// Runs one statement and keeps its answer where that is asked for.
async fn ask(
    attempt: &mut Attempt<'_>,
    statement: usize,
    values: &[Value],
    answer: &Answer,
    variables: &Rc<RefCell<Variables>>,
    has_effect: &mut bool,
) -> Result<(), SessionError> {
    let texts = texts(values);
    let parameters = parameters(values, &texts);
    let rows = match attempt.run(statement, &parameters).await {
        Ok(rows) => rows,
        Err(error) => return Err(SessionError { definite: error.definite && !*has_effect, ..error }),
    };
    *has_effect |= !attempt.session.in_transaction();
    let (prefix, exactly_one) = match answer {
        Answer::Dropped => return Ok(()),
        Answer::Set(prefix) => (prefix, true),
        Answer::SetLast(prefix) => (prefix, false),
    };
    // Each cell is a row of a name and a value; a name that comes again belongs to another row of the answer.
    let mut kept = Variables::new();
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
    variables.borrow_mut().extend(kept);
    Ok(())
}

/// The statement may have taken effect: whatever is wrong with its answer is not definite.
fn one_row(found: &str) -> SessionError {
    SessionError {
        definite: false,
        ..refused(format!("\\gset needs an answer of one row, there is {found}"))
    }
}

/// Runs what a pipeline has gathered in one flight.
async fn flush(
    attempt: &mut Attempt<'_>,
    waiting: Vec<Waiting>,
    has_effect: &mut bool,
) -> Result<(), SessionError> {
    if waiting.is_empty() {
        return Ok(());
    }
    let texts: Vec<Vec<Option<String>>> = waiting.iter().map(|(_, values)| texts(values)).collect();
    let parameters: Vec<Vec<SqlValue<'_>>> =
        waiting.iter().zip(&texts).map(|((_, values), texts)| parameters(values, texts)).collect();
    let flight: Vec<(usize, &[SqlValue<'_>])> = waiting
        .iter()
        .zip(&parameters)
        .map(|((statement, _), parameters)| (*statement, parameters.as_slice()))
        .collect();
    let sent = attempt.run_together(&flight, &mut |_, _| {}).await;
    match sent {
        Ok(()) => {
            *has_effect |= !attempt.session.in_transaction();
            Ok(())
        }
        Err(error) => Err(SessionError { definite: error.definite && !*has_effect, ..error }),
    }
}

/// Texts of those values that are sent as text.
fn texts(values: &[Value]) -> Vec<Option<String>> {
    let text = |value: &Value| (!matches!(value, Value::Null | Value::Integer(_))).then(|| value.to_string());
    values.iter().map(text).collect()
}

fn parameters<'v>(values: &[Value], texts: &'v [Option<String>]) -> Vec<SqlValue<'v>> {
    let parameter = |(value, text): (&Value, &'v Option<String>)| match (value, text) {
        (Value::Integer(number), _) => SqlValue::Integer(*number),
        (_, Some(text)) => SqlValue::Text(text),
        (_, None) => SqlValue::Null,
    };
    values.iter().zip(texts).map(parameter).collect()
}
