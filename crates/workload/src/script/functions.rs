//! The functions of expressions, as PostgreSQL's documentation of pgbench has them ("Built-In Functions").
//!
//! Owns their names and what each computes. `permute` is a permutation of our own: the documentation promises one that
//! depends on the seed, not which.

use std::ops::RangeInclusive;

use rand::{Rng, RngExt};

use super::value::{EvaluationError, Value};
use crate::distribution::{RejectionZipf, hash, skewed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Mod,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// Names and how many arguments each takes.
const FUNCTIONS: [(&str, Function, RangeInclusive<usize>); 21] = [
    ("abs", Function::Abs, 1..=1),
    ("debug", Function::Debug, 1..=1),
    ("double", Function::Double, 1..=1),
    ("exp", Function::Exp, 1..=1),
    ("greatest", Function::Greatest, 1..=100),
    ("hash", Function::HashMurmur2, 1..=2),
    ("hash_fnv1a", Function::HashFnv1a, 1..=2),
    ("hash_murmur2", Function::HashMurmur2, 1..=2),
    ("int", Function::Int, 1..=1),
    ("least", Function::Least, 1..=100),
    ("ln", Function::Ln, 1..=1),
    ("mod", Function::Mod, 2..=2),
    ("permute", Function::Permute, 2..=3),
    ("pi", Function::Pi, 0..=0),
    ("pow", Function::Power, 2..=2),
    ("power", Function::Power, 2..=2),
    ("random", Function::Random, 2..=2),
    ("random_exponential", Function::RandomExponential, 3..=3),
    ("random_gaussian", Function::RandomGaussian, 3..=3),
    ("random_zipfian", Function::RandomZipfian, 3..=3),
    ("sqrt", Function::Sqrt, 1..=1),
];

type Result<T> = std::result::Result<T, EvaluationError>;

impl Function {
    /// The function with this name, in small letters.
    pub(super) fn named(name: &str) -> Option<Function> {
        FUNCTIONS.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
    }

    /// How many arguments it takes.
    pub(super) fn arguments(self) -> RangeInclusive<usize> {
        FUNCTIONS.iter().find(|entry| entry.1 == self).map_or(0..=0, |entry| entry.2.clone())
    }

    /// Its value; `seed` is the hash functions' own where a script gives none.
    pub(super) fn call(self, arguments: &[Value], seed: i64, rng: &mut impl Rng) -> Result<Value> {
        // As in SQL: without a value in, no value out.
        if self != Function::Debug && arguments.contains(&Value::Null) {
            return Ok(Value::Null);
        }
        let number = |place: usize| arguments.get(place).unwrap_or(&Value::Null);
        let real = |compute: fn(f64) -> f64| Ok(Value::Double(compute(number(0).double()?)));
        let own_seed = |place: usize| arguments.get(place).map_or(Ok(seed), Value::integer);
        match self {
            Function::Abs => match number(0) {
                Value::Double(value) => Ok(Value::Double(value.abs())),
                value => {
                    value.integer()?.checked_abs().map(Value::Integer).ok_or(EvaluationError::OutOfRange)
                }
            },
            Function::Debug => Ok(number(0).clone()),
            Function::Double => Ok(Value::Double(number(0).double()?)),
            Function::Int => Ok(Value::Integer(number(0).integer()?)),
            Function::Exp => real(f64::exp),
            Function::Ln => real(f64::ln),
            Function::Sqrt => real(f64::sqrt),
            Function::Pi => Ok(Value::Double(std::f64::consts::PI)),
            Function::Power => Ok(Value::Double(number(0).double()?.powf(number(1).double()?))),
            Function::Greatest => extreme(arguments, |one, other| one > other, |one, other| one > other),
            Function::Least => extreme(arguments, |one, other| one < other, |one, other| one < other),
            Function::Mod => remainder(number(0).integer()?, number(1).integer()?),
            Function::HashFnv1a => Ok(Value::Integer(fnv1a(number(0).integer()?, own_seed(1)?))),
            Function::HashMurmur2 => Ok(Value::Integer(murmur2(number(0).integer()?, own_seed(1)?))),
            Function::Permute => permute(number(0).integer()?, number(1).integer()?, own_seed(2)?),
            Function::Random => random(number(0).integer()?, number(1).integer()?, rng).map(Value::Integer),
            Function::RandomExponential | Function::RandomGaussian | Function::RandomZipfian => {
                let (lowest, highest) = (number(0).integer()?, number(1).integer()?);
                let offset = self.draw(width(lowest, highest)?, number(2), rng)?;
                Ok(Value::Integer(lowest.wrapping_add_unsigned(offset)))
            }
        }
    }

    /// A number from 0 to below the width, which stands for 2^64 where it is 0.
    fn draw(self, width: u64, parameter: &Value, rng: &mut impl Rng) -> Result<u64> {
        if width == 0 {
            return Err(EvaluationError::OutOfRange);
        }
        let parameter = parameter.double()?;
        let share = match self {
            Function::RandomExponential => exponential(parameter, rng)?,
            Function::RandomGaussian => gaussian(parameter, rng)?,
            _ => {
                let zipf = RejectionZipf::new(width, parameter).ok_or_else(|| {
                    let (least, most) = (skewed::LEAST_EXPONENT, skewed::MOST_EXPONENT);
                    EvaluationError::Argument(format!(
                        "the parameter of random_zipfian is from {least} to {most}, not {parameter}"
                    ))
                })?;
                return Ok(zipf.draw(rng) - 1);
            }
        };
        Ok(((width as f64 * share) as u64).min(width - 1))
    }
}

/// A whole number between these two, or one of them.
pub(super) fn random(lowest: i64, highest: i64, rng: &mut impl Rng) -> Result<i64> {
    let offset = match width(lowest, highest)? {
        0 => rng.random(),
        width => rng.random_range(0..width),
    };
    Ok(lowest.wrapping_add_unsigned(offset))
}

/// The number of integers from the lowest to the highest; 0 where it is 2^64.
fn width(lowest: i64, highest: i64) -> Result<u64> {
    if lowest > highest {
        let message = format!("the range of a random number is empty: {lowest} is above {highest}");
        return Err(EvaluationError::Argument(message));
    }
    Ok(highest.wrapping_sub(lowest).cast_unsigned().wrapping_add(1))
}

/// From 0 to below 1: an exponential distribution, cut off where it has fallen to e^-parameter.
fn exponential(parameter: f64, rng: &mut impl Rng) -> Result<f64> {
    if !(parameter > 0.0 && parameter.is_finite()) {
        let message = format!("the parameter of random_exponential is above 0, not {parameter}");
        return Err(EvaluationError::Argument(message));
    }
    let cut = (-parameter).exp();
    let uniform = 1.0 - rng.random::<f64>();
    Ok(-(cut + (1.0 - cut) * uniform).ln() / parameter)
}

/// From 0 to below 1: a normal distribution around the middle, cut off at so many deviations on both sides.
fn gaussian(parameter: f64, rng: &mut impl Rng) -> Result<f64> {
    if !(parameter >= 2.0 && parameter.is_finite()) {
        let message = format!("the parameter of random_gaussian is at least 2, not {parameter}");
        return Err(EvaluationError::Argument(message));
    }
    loop {
        let (u, v) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).sin();
        if (-parameter..parameter).contains(&normal) {
            return Ok((normal + parameter) / (2.0 * parameter));
        }
    }
}

/// The remainder as SQL has it, with the sign of what is divided.
pub(super) fn remainder(one: i64, other: i64) -> Result<Value> {
    match other {
        0 => Err(EvaluationError::DivisionByZero),
        // The one division that overflows has no remainder.
        -1 => Ok(Value::Integer(0)),
        _ => Ok(Value::Integer(one % other)),
    }
}

fn extreme(
    arguments: &[Value],
    integers: fn(i64, i64) -> bool,
    doubles: fn(f64, f64) -> bool,
) -> Result<Value> {
    let mut found = arguments.first().cloned().unwrap_or(Value::Null);
    // One number with a fraction makes all of them such.
    if arguments.iter().any(Value::is_double) {
        let mut best = found.double()?;
        for value in arguments {
            let value = value.double()?;
            best = if doubles(value, best) { value } else { best };
        }
        return Ok(Value::Double(best));
    }
    for value in arguments {
        if integers(value.integer()?, found.integer()?) {
            found = value.clone();
        }
    }
    Ok(Value::Integer(found.integer()?))
}

/// FNV-1a over the number's eight octets; the seed changes the basis.
fn fnv1a(number: i64, seed: i64) -> i64 {
    let basis = hash::OFFSET_BASIS ^ seed.cast_unsigned();
    hash::fnv1a(basis, number.cast_unsigned()).cast_signed()
}

/// MurmurHash2, its variant of 64 bits, over the number's eight octets.
fn murmur2(number: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;
    let mut word = number.cast_unsigned().wrapping_mul(FACTOR);
    word ^= word >> SHIFT;
    word = word.wrapping_mul(FACTOR);
    let mut hash = seed.cast_unsigned() ^ FACTOR.wrapping_mul(8);
    hash = (hash ^ word).wrapping_mul(FACTOR);
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    (hash ^ hash >> SHIFT).cast_signed()
}

/// A number's place in a permutation of the numbers from 0 to below the size: a Feistel network over the next power of
/// four, walked on until it leads back inside.
fn permute(number: i64, size: i64, seed: i64) -> Result<Value> {
    if size <= 0 {
        return Err(EvaluationError::Argument(format!("the size of a permutation is above 0, not {size}")));
    }
    let half_bits = (64 - (size.cast_unsigned() - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half_bits) - 1;
    let mut place = number.rem_euclid(size).cast_unsigned();
    loop {
        let (mut left, mut right) = (place >> half_bits, place & mask);
        for round in 0..6 {
            let key = murmur2(right.cast_signed(), seed ^ round).cast_unsigned();
            (left, right) = (right, left ^ (key & mask));
        }
        place = left << half_bits | right;
        if place < size.cast_unsigned() {
            return Ok(Value::Integer(place.cast_signed()));
        }
    }
}
