//! Why a text is no quantity, and what to write instead.

use thiserror::Error;

/// Why a text is not the quantity it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// A number and nothing after it.
    #[error("`{text}` has no unit")]
    NoUnit {
        /// As written.
        text: String,
        /// The same with the likeliest unit.
        write: String,
    },
    /// A blank between the number and its unit.
    #[error("`{text}` has a blank before its unit")]
    Blank {
        /// As written.
        text: String,
        /// The same without it.
        write: String,
    },
    /// A number and something that is no unit of this kind.
    #[error("`{text}` ends in `{unit}`, which is not a unit of {kind}")]
    UnknownUnit {
        /// As written.
        text: String,
        /// What stands where the unit should be.
        unit: String,
        /// The kind of quantity.
        kind: &'static str,
        /// The units there are.
        known: String,
    },
    /// No number in front.
    #[error("`{text}` is not {kind}")]
    NotAQuantity {
        /// As written.
        text: String,
        /// The kind of quantity, with its article.
        kind: &'static str,
        /// What one looks like.
        example: &'static str,
    },
    /// No plain number.
    #[error("`{text}` is not a plain number")]
    NotANumber {
        /// As written.
        text: String,
    },
    /// More decimals than the base unit can hold.
    #[error("`{text}` is finer than {finest}")]
    TooFine {
        /// As written.
        text: String,
        /// The base unit.
        finest: &'static str,
    },
    /// More than 64 bits of the base unit.
    #[error("`{text}` is too large")]
    TooLarge {
        /// As written.
        text: String,
    },
}

impl UnitError {
    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            UnitError::NoUnit { write, .. } | UnitError::Blank { write, .. } => format!("write {write}"),
            UnitError::UnknownUnit { known, .. } => {
                format!("put one of these straight after the number: {known}")
            }
            UnitError::NotAQuantity { example, .. } => {
                format!("write a number with its unit straight after it, such as {example}")
            }
            UnitError::NotANumber { .. } => "write a plain number".to_owned(),
            UnitError::TooFine { finest, .. } => format!("write it in whole multiples of {finest}"),
            UnitError::TooLarge { .. } => "write a smaller number".to_owned(),
        }
    }
}
