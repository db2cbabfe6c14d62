//! Values of script variables and expressions, and how they turn into each other, as pgbench has it.
//!
//! Owns the four types and their text. Which operator wants which type is `evaluate`'s.

use std::fmt;

/// A value. Text is what a query answered; it becomes a number or a truth value when an expression needs one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Double(f64),
    Boolean(bool),
    Text(String),
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum EvaluationError {
    #[error("variable {0:?} was never set")]
    Unset(String),
    #[error("division by zero")]
    DivisionByZero,
    #[error("the result is out of range for a 64-bit number")]
    OutOfRange,
    #[error("{value} is not {wanted}")]
    Type { value: String, wanted: &'static str },
    #[error("{0}")]
    Argument(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Double(number) => write!(f, "{number}"),
            Value::Boolean(truth) => write!(f, "{truth}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

impl Value {
    /// Text as the value it stands for, as pgbench reads what a query answered; everything else as it is.
    pub(super) fn typed(self) -> Result<Value, EvaluationError> {
        let Value::Text(text) = self else { return Ok(self) };
        let small = text.trim().to_ascii_lowercase();
        let value = match small.as_str() {
            "null" | "" => Some(Value::Null),
            "true" | "t" | "yes" | "on" => Some(Value::Boolean(true)),
            "false" | "f" | "no" | "off" => Some(Value::Boolean(false)),
            number => match number.parse::<i64>() {
                Ok(number) => Some(Value::Integer(number)),
                Err(_) => number.parse::<f64>().ok().map(Value::Double),
            },
        };
        value.ok_or_else(|| wrong(&Value::Text(text), "a number or a truth value"))
    }

    pub(super) fn integer(&self) -> Result<i64, EvaluationError> {
        match self {
            Value::Integer(number) => Ok(*number),
            Value::Double(number) => {
                let rounded = number.round_ties_even();
                // 2^63 itself is the first number that does not fit.
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                    Ok(rounded as i64)
                } else {
                    Err(EvaluationError::OutOfRange)
                }
            }
            other => Err(wrong(other, "a number")),
        }
    }

    pub(super) fn double(&self) -> Result<f64, EvaluationError> {
        match self {
            Value::Integer(number) => Ok(*number as f64),
            Value::Double(number) => Ok(*number),
            other => Err(wrong(other, "a number")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, EvaluationError> {
        match self {
            Value::Boolean(truth) => Ok(*truth),
            other => Err(wrong(other, "true or false")),
        }
    }

    /// What `\if` makes of it: NULL is false, and so is zero.
    pub(super) fn truth(&self) -> Result<bool, EvaluationError> {
        match self {
            Value::Null => Ok(false),
            Value::Boolean(truth) => Ok(*truth),
            Value::Integer(number) => Ok(*number != 0),
            Value::Double(number) => Ok(*number != 0.0),
            other => Err(wrong(other, "true or false")),
        }
    }

    pub(super) fn is_double(&self) -> bool {
        matches!(self, Value::Double(_))
    }
}

fn wrong(value: &Value, wanted: &'static str) -> EvaluationError {
    EvaluationError::Type { value: value.to_string(), wanted }
}
