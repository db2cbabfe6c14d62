//! The value of an expression, by pgbench's rules: whole numbers and numbers with a fraction, truth values, NULL.
//!
//! Owns operators. Functions are `functions`'.

use rand::Rng;

use super::expression::{Binary, Expression, Kind, Link};
use super::functions::{Function, random, remainder};
use super::value::{EvaluationError, Value};
use super::variables::Variables;

type Result<T> = std::result::Result<T, EvaluationError>;

/// Functions with more arguments than this are rare, and cost an allocation.
const FEW_ARGUMENTS: usize = 3;

/// Computes an expression.
pub(super) fn evaluate(expression: &Expression, variables: &Variables, rng: &mut impl Rng) -> Result<Value> {
    // Most are a random number between two whole ones, and every transaction computes some.
    if let Expression::Call { function: Function::Random, arguments } = expression
        && let [lowest, highest] = arguments.as_slice()
        && let (Some(lowest), Some(highest)) = (whole(lowest, variables), whole(highest, variables))
    {
        return random(lowest, highest, rng).map(Value::Integer);
    }
    any(expression, variables, rng)
}

/// The value of an expression that is whole numbers and sums and products of them alone, without the detour over values;
/// of any other, or where it has none, nothing.
fn whole(expression: &Expression, variables: &Variables) -> Option<i64> {
    match expression {
        Expression::Constant(Value::Integer(number)) => Some(*number),
        Expression::Variable(variable) => match variables.get(variable) {
            Ok(Value::Integer(number)) => Some(*number),
            _ => None,
        },
        Expression::Chain { first, links } => {
            links.iter().try_fold(whole(first, variables)?, |left, link| {
                let Link::Binary { operator, right } = link else { return None };
                let compute = match operator {
                    Binary::Add => i64::checked_add,
                    Binary::Subtract => i64::checked_sub,
                    Binary::Multiply => i64::checked_mul,
                    _ => return None,
                };
                compute(left, whole(right, variables)?)
            })
        }
        _ => None,
    }
}

/// Computes any expression.
fn any(expression: &Expression, variables: &Variables, rng: &mut impl Rng) -> Result<Value> {
    match expression {
        Expression::Constant(value) => Ok(value.clone()),
        Expression::Variable(variable) => variables.get(variable)?.clone().typed(),
        Expression::Not(operand) => match any(operand, variables, rng)? {
            Value::Null => Ok(Value::Null),
            value => Ok(Value::Boolean(!value.boolean()?)),
        },
        Expression::Negate(operand) => match any(operand, variables, rng)? {
            Value::Null => Ok(Value::Null),
            Value::Double(value) => Ok(Value::Double(-value)),
            value => fits(value.integer()?.checked_neg()),
        },
        Expression::Invert(operand) => match any(operand, variables, rng)? {
            Value::Null => Ok(Value::Null),
            value => Ok(Value::Integer(!value.integer()?)),
        },
        Expression::Chain { first, links } => {
            let first = any(first, variables, rng)?;
            links.iter().try_fold(first, |left, link| linked(left, link, variables, rng))
        }
        Expression::Case { branches, otherwise } => {
            for (condition, value) in branches {
                if any(condition, variables, rng)?.truth()? {
                    return any(value, variables, rng);
                }
            }
            any(otherwise, variables, rng)
        }
        Expression::Call { function, arguments } => {
            let seed = variables.default_seed().map_or(Ok(0), Value::integer)?;
            let mut few = [const { Value::Null }; FEW_ARGUMENTS];
            if let Some(places) = few.get_mut(..arguments.len()) {
                for (place, argument) in places.iter_mut().zip(arguments) {
                    *place = any(argument, variables, rng)?;
                }
                return function.call(places, seed, rng);
            }
            let values: Vec<Value> =
                arguments.iter().map(|argument| any(argument, variables, rng)).collect::<Result<_>>()?;
            function.call(&values, seed, rng)
        }
    }
}

fn fits(number: Option<i64>) -> Result<Value> {
    number.map(Value::Integer).ok_or(EvaluationError::OutOfRange)
}

/// The value so far with one more link of its chain.
fn linked(left: Value, link: &Link, variables: &Variables, rng: &mut impl Rng) -> Result<Value> {
    match link {
        Link::Is { kind, negated } => {
            let is = match kind {
                Kind::Null => left == Value::Null,
                Kind::True => left == Value::Boolean(true),
                Kind::False => left == Value::Boolean(false),
            };
            Ok(Value::Boolean(is != *negated))
        }
        Link::Binary { operator: Binary::And, right } => logic(false, left, right, variables, rng),
        Link::Binary { operator: Binary::Or, right } => logic(true, left, right, variables, rng),
        Link::Binary { operator, right } => {
            let right = any(right, variables, rng)?;
            if left == Value::Null || right == Value::Null {
                return Ok(Value::Null);
            }
            binary(*operator, &left, &right)
        }
    }
}

/// AND decides at the first false, OR at the first true; NULL is neither.
fn logic(
    decisive: bool,
    left: Value,
    right: &Expression,
    variables: &Variables,
    rng: &mut impl Rng,
) -> Result<Value> {
    if left != Value::Null && left.boolean()? == decisive {
        return Ok(left);
    }
    let right = any(right, variables, rng)?;
    if right != Value::Null && right.boolean()? == decisive {
        return Ok(right);
    }
    Ok(if left == Value::Null { left } else { right })
}

fn binary(operator: Binary, left: &Value, right: &Value) -> Result<Value> {
    if let (Value::Boolean(left), Value::Boolean(right)) = (left, right) {
        match operator {
            Binary::Equal => return Ok(Value::Boolean(left == right)),
            Binary::Unequal => return Ok(Value::Boolean(left != right)),
            _ => {}
        }
    }
    if left.is_double() || right.is_double() {
        return doubles(operator, left.double()?, right.double()?);
    }
    integers(operator, left.integer()?, right.integer()?)
}

/// What a comparison finds; nothing for what is none.
fn compared<T: PartialOrd>(operator: Binary, left: T, right: T) -> Option<bool> {
    match operator {
        Binary::Less => Some(left < right),
        Binary::AtMost => Some(left <= right),
        Binary::Equal => Some(left == right),
        Binary::Unequal => Some(left != right),
        Binary::Greater => Some(left > right),
        Binary::AtLeast => Some(left >= right),
        _ => None,
    }
}

fn doubles(operator: Binary, left: f64, right: f64) -> Result<Value> {
    if let Some(truth) = compared(operator, left, right) {
        return Ok(Value::Boolean(truth));
    }
    match operator {
        Binary::Add => Ok(Value::Double(left + right)),
        Binary::Subtract => Ok(Value::Double(left - right)),
        Binary::Multiply => Ok(Value::Double(left * right)),
        Binary::Divide => Ok(Value::Double(left / right)),
        // Remainders and bits are for whole numbers: the operands are rounded to them.
        other => integers(other, Value::Double(left).integer()?, Value::Double(right).integer()?),
    }
}

fn integers(operator: Binary, left: i64, right: i64) -> Result<Value> {
    if let Some(truth) = compared(operator, left, right) {
        return Ok(Value::Boolean(truth));
    }
    // As in C on the machines pgbench runs on: the lowest six bits of the distance count.
    let distance = right.cast_unsigned() as u32 & 63;
    match operator {
        Binary::Add => fits(left.checked_add(right)),
        Binary::Subtract => fits(left.checked_sub(right)),
        Binary::Multiply => fits(left.checked_mul(right)),
        Binary::Divide if right == 0 => Err(EvaluationError::DivisionByZero),
        Binary::Divide => fits(left.checked_div(right)),
        Binary::Remainder => remainder(left, right),
        Binary::BitOr => Ok(Value::Integer(left | right)),
        Binary::BitXor => Ok(Value::Integer(left ^ right)),
        Binary::BitAnd => Ok(Value::Integer(left & right)),
        Binary::ShiftLeft => Ok(Value::Integer(left.wrapping_shl(distance))),
        Binary::ShiftRight => Ok(Value::Integer(left.wrapping_shr(distance))),
        // Comparisons are done, and these two are decided before, without both sides.
        _ => Err(EvaluationError::Argument("AND and OR are for truth values".to_owned())),
    }
}
