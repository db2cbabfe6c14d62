//! One step of a list-append transaction, and its form on disk: `["append",3,17]`, `["r",3,[15,16]]`.
//!
//! The words are those of Jepsen's histories, and so short because most of a history is made of them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeTuple, Serializer};

use crate::Key;

/// One step of a transaction over lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Append a value, which nobody else ever appends to this key.
    Append {
        /// The list.
        key: Key,
        value: i64,
    },
    /// Read a whole list.
    Read {
        /// The list.
        key: Key,
        /// What was found. Absent where no answer came; in an acknowledged transaction, the empty list.
        values: Option<Vec<i64>>,
    },
}

impl Step {
    /// The key the step is about.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Step::Append { key, .. } | Step::Read { key, .. } => key,
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(3)?;
        match self {
            Step::Append { key, value } => {
                tuple.serialize_element("append")?;
                tuple.serialize_element(key)?;
                tuple.serialize_element(value)?;
            }
            Step::Read { key, values } => {
                tuple.serialize_element("r")?;
                tuple.serialize_element(key)?;
                tuple.serialize_element(values)?;
            }
        }
        tuple.end()
    }
}

/// The first word of a step.
#[derive(serde::Deserialize)]
enum Word {
    #[serde(rename = "append")]
    Append,
    #[serde(rename = "r")]
    Read,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = Step;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step: [\"append\", key, value] or [\"r\", key, list]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Step, A::Error> {
                let missing = |at| A::Error::invalid_length(at, &"the three parts of a step");
                let word: Word = parts.next_element()?.ok_or_else(|| missing(0))?;
                let key: Key = parts.next_element()?.ok_or_else(|| missing(1))?;
                let step = match word {
                    Word::Append => {
                        Step::Append { key, value: parts.next_element()?.ok_or_else(|| missing(2))? }
                    }
                    Word::Read => {
                        Step::Read { key, values: parts.next_element()?.ok_or_else(|| missing(2))? }
                    }
                };
                match parts.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(step),
                    Some(_) => Err(A::Error::custom("a step has three parts, not more")),
                }
            }
        }
        deserializer.deserialize_seq(StepVisitor)
    }
}
