//! Isolation levels: their names, and which promises what.
//!
//! A level is a demand on what transactions see of each other, and a demand on whose order they must keep to. The
//! phenomena are those of Adya, "Weak consistency" (1999); the order demands follow Daudjee and Salem, "Lazy database
//! replication with ordering guarantees" (2004), and Herlihy and Wing for real time.

use std::fmt;
use std::str::FromStr;

/// What transactions may see of each other, weakest first. Each demands all that those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// Writes do not interleave (no G0).
    ReadUncommitted,
    /// Nothing is read that was never committed (no G1).
    ReadCommitted,
    /// Every transaction works on one snapshot, and no two that overlap write the same (no G-single, G-nonadjacent,
    /// lost update). PostgreSQL calls it `repeatable read`.
    Snapshot,
    /// As if one transaction ran after another (no G2).
    Serializable,
}

/// Whose order transactions must keep to, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Nobody's.
    Any,
    /// Every client's own.
    Session,
    /// That of time: what began after another had ended comes after it.
    RealTime,
}

/// An isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// What transactions may see of each other.
    pub isolation: Isolation,
    /// Whose order they keep to.
    pub order: Order,
}

/// A name that is no level's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an isolation level; levels are {}", Level::names().join(", "))]
pub struct UnknownLevel {
    pub name: String,
}

impl Isolation {
    /// All, weakest first.
    pub const ALL: [Isolation; 4] =
        [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];

    fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "read-uncommitted",
            Isolation::ReadCommitted => "read-committed",
            Isolation::Snapshot => "snapshot-isolation",
            Isolation::Serializable => "serializable",
        }
    }
}

impl Order {
    /// All, weakest first.
    pub const ALL: [Order; 3] = [Order::Any, Order::Session, Order::RealTime];
}

impl Level {
    /// The strongest there is.
    pub const STRICT_SERIALIZABLE: Level =
        Level { isolation: Isolation::Serializable, order: Order::RealTime };

    /// All, weakest isolation first.
    pub fn all() -> impl Iterator<Item = Level> {
        Isolation::ALL
            .into_iter()
            .flat_map(|isolation| Order::ALL.into_iter().map(move |order| Level { isolation, order }))
    }

    /// The names of all.
    #[must_use]
    pub fn names() -> Vec<String> {
        Level::all().map(|level| level.to_string()).collect()
    }

    /// Whether it demands all that the other does.
    #[must_use]
    pub fn implies(self, other: Level) -> bool {
        self.isolation >= other.isolation && self.order >= other.order
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match (self.order, self.isolation) {
            (Order::Any, _) => "",
            (Order::Session, _) => "strong-session-",
            (Order::RealTime, Isolation::Serializable) => "strict-",
            (Order::RealTime, _) => "strong-",
        };
        write!(f, "{prefix}{}", self.isolation.name())
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    /// By name; words may be joined by spaces or hyphens. `repeatable-read` is snapshot isolation, as PostgreSQL means
    /// it, and `strong-serializable` is strict.
    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        let name = text.trim().to_lowercase().replace([' ', '_'], "-");
        let name = name.replace("repeatable-read", "snapshot-isolation");
        let name = name.replace("strong-serializable", "strict-serializable");
        Level::all()
            .find(|level| level.to_string() == name)
            .ok_or_else(|| UnknownLevel { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_found_by_its_name() {
        for level in Level::all() {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!("strict-serializable".parse(), Ok(Level::STRICT_SERIALIZABLE));
        assert_eq!("strong serializable".parse(), Ok(Level::STRICT_SERIALIZABLE));
        let snapshot = Level { isolation: Isolation::Snapshot, order: Order::Any };
        assert_eq!("Repeatable Read".parse(), Ok(snapshot));
        let error = "serialisable".parse::<Level>().unwrap_err().to_string();
        assert!(error.contains("levels are read-uncommitted, strong-session-read-uncommitted"), "{error}");
    }
}
