//! Files that people write, in YAML: text to values in which every mistake has its place, tables of what may be written,
//! those tables as a JSON Schema and as explanations, and templates.
//!
//! Owns what all such files have in common. The languages themselves, scenarios and engines, are other crates'. Touches no
//! file system.

pub mod decode;
pub mod explain;
mod key;
pub mod language;
pub mod rejection;
pub mod schema;
pub mod template;
pub mod tree;
pub mod units;
pub mod wording;

pub use decode::{Decoder, Record};
pub use language::{Field, Fields, Language, OwnShape, Shape};
pub use rejection::{Finding, Findings, Problem, Rejection, Spanned, Spot, Text};
pub use tree::{Entry, MOST_BYTES, Node, Value};
