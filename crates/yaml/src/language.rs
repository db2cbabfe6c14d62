//! A language as tables: every key, what it holds and what it means. The decoder, the JSON Schema and explanations all read
//! these, so they cannot drift apart.
//!
//! Owns the tables' form only; the keys are the languages'.

use serde_json::Value;

use crate::key::Key;

/// Longest name, as for host names.
pub const MOST_NAME_BYTES: usize = 63;
/// Longest name that is not ours to shape: a setting's, a figure's. YAML itself refuses keys of more than 1024 characters,
/// which an escaped one must not reach.
pub const MOST_FREE_NAME_BYTES: usize = 100;

/// What a language calls itself in messages.
#[derive(Debug)]
pub struct Language {
    /// What stands before the code of a problem: `scenario` of `scenario::unknown-key`.
    pub family: &'static str,
    /// A file of the language, in a sentence: `scenario`.
    pub noun: &'static str,
    /// What to do about a file with nothing in it.
    pub begin: &'static str,
    /// What to do about a file that is too long.
    pub shorten: &'static str,
    /// A value that may stand at a key, where its shape alone would give none or a misleading one.
    pub example: fn(&Field) -> Option<String>,
}

/// The keys of one kind of map.
#[derive(Debug)]
pub struct Fields {
    /// What the map is, with its article, for messages.
    pub what: &'static str,
    /// In the order in which they are explained.
    pub fields: &'static [Field],
    /// Keys of which exactly one must be given; empty where there is no such choice.
    pub exactly_one_of: &'static [&'static str],
    /// Keys of which at least one must be given; empty where there is no such choice.
    pub at_least_one_of: &'static [&'static str],
    /// Keys that only make sense together.
    pub pair: Option<(&'static str, &'static str)>,
}

/// One key.
#[derive(Debug)]
pub struct Field {
    /// The key as written.
    pub name: &'static str,
    /// Whether the map is refused without it.
    pub required: bool,
    /// What it holds.
    pub shape: Shape,
    /// What it means, one sentence without a full stop.
    pub meaning: &'static str,
}

/// What a value looks like.
#[derive(Debug)]
pub enum Shape {
    Text,
    /// A path of a file in the file's own folder or below it.
    PathWithin,
    /// A name: small letters, digits, hyphens.
    Name,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number within these bounds.
    Count {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// A decimal number above zero.
    Positive,
    /// A number with a unit of time.
    Duration,
    /// A number with a unit of bits a second.
    BitRate,
    /// A number of events a second.
    Rate,
    /// One of these numbers.
    Version(&'static [&'static str]),
    /// A number with a unit of bytes.
    Size,
    /// true or false.
    Flag,
    /// A number of packets: `100 packets`.
    Packets,
    /// A number and a percent sign.
    Percent,
    /// Text, number or boolean, handed on as text.
    Setting,
    /// A map with these keys.
    Map(&'static Fields),
    /// A map whose keys the user chooses.
    Named(&'static Shape),
    /// A map whose keys belong to a database.
    Settings(&'static Shape),
    /// A list of at least so many.
    List {
        /// What each element is.
        of: &'static Shape,
        /// Fewest elements.
        least: usize,
        /// Most elements, where there is a bound.
        most: Option<usize>,
    },
    /// Any of these.
    Either(&'static [Shape]),
    /// What only one language has.
    Own(&'static OwnShape),
}

/// A shape of one language's own, as far as tables are concerned.
#[derive(Debug)]
pub struct OwnShape {
    /// What it holds, in words.
    pub holds: fn() -> String,
    /// Its JSON Schema.
    pub schema: fn() -> Value,
    /// The keys it has without a table of its own.
    pub keys: fn() -> Vec<Key>,
    /// Tables within it, with what stands before their keys in a path.
    pub tables: fn() -> Vec<(&'static Fields, String)>,
}

/// No keys of a shape of its own.
#[must_use]
pub fn no_keys() -> Vec<Key> {
    Vec::new()
}

/// No tables in a shape of its own.
#[must_use]
pub fn no_tables() -> Vec<(&'static Fields, String)> {
    Vec::new()
}

/// A key that must be there.
#[must_use]
pub const fn required(name: &'static str, shape: Shape, meaning: &'static str) -> Field {
    Field { name, required: true, shape, meaning }
}

/// A key that may be left out.
#[must_use]
pub const fn optional(name: &'static str, shape: Shape, meaning: &'static str) -> Field {
    Field { name, required: false, shape, meaning }
}

/// A map without a choice among its keys.
#[must_use]
pub const fn plain(what: &'static str, fields: &'static [Field]) -> Fields {
    Fields { what, fields, exactly_one_of: &[], at_least_one_of: &[], pair: None }
}

/// A map with exactly one of some of its keys.
#[must_use]
pub const fn choice(
    what: &'static str,
    fields: &'static [Field],
    exactly_one_of: &'static [&'static str],
) -> Fields {
    Fields { what, fields, exactly_one_of, at_least_one_of: &[], pair: None }
}
