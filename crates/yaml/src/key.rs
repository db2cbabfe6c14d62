//! A key of a map, for a person to read.

/// A key of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// Whether the map is refused without it.
    pub required: bool,
    /// What it holds.
    pub holds: String,
    /// What it means.
    pub meaning: &'static str,
}
