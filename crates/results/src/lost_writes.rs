//! A count of lost writes, which may be only those that are known. How they are counted is `losses`' business.

use std::fmt;

/// How many acknowledged writes a run lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostWrites {
    /// So many: every check that was asked could tell.
    Exactly(u64),
    /// So many are known, one or more: a check could not tell of all.
    AtLeast(u64),
}

impl fmt::Display for LostWrites {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LostWrites::Exactly(count) => write!(formatter, "{count}"),
            LostWrites::AtLeast(count) => write!(formatter, "at least {count}"),
        }
    }
}

impl LostWrites {
    /// A count, and whether it is only what is known, as results keep them.
    #[must_use]
    pub fn of(count: u64, is_at_least: bool) -> LostWrites {
        if is_at_least { LostWrites::AtLeast(count) } else { LostWrites::Exactly(count) }
    }

    /// Those that are known.
    #[must_use]
    pub fn known(self) -> u64 {
        match self {
            LostWrites::Exactly(count) | LostWrites::AtLeast(count) => count,
        }
    }

    /// Whether there may be more.
    #[must_use]
    pub fn is_at_least(self) -> bool {
        matches!(self, LostWrites::AtLeast(_))
    }
}
