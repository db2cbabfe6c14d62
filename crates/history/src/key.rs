//! The name of one object of a database: a register, a list, an account.
//!
//! A number where the database has numbers, text where it has names. In a history a key means one and the same
//! object throughout, whichever load speaks of it.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// A key. On disk a JSON number or a JSON string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A number, as most workloads have it.
    Number(i64),
    Name(Box<str>),
}

impl From<i64> for Key {
    fn from(number: i64) -> Self {
        Key::Number(number)
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Key::Name(name.into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(number) => write!(f, "{number}"),
            Key::Name(name) => f.write_str(name),
        }
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Key::Number(number) => serializer.serialize_i64(*number),
            Key::Name(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key: a whole number or a name")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Key, E> {
                Ok(Key::Number(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Key, E> {
                i64::try_from(number).map(Key::Number).map_err(|_| {
                    E::invalid_value(de::Unexpected::Unsigned(number), &"a number within 63 bits")
                })
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Key, E> {
                Ok(Key::Name(name.into()))
            }
        }
        deserializer.deserialize_any(KeyVisitor)
    }
}
