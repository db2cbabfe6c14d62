//! What is known of a live migration, made or given up.

use serde::{Deserialize, Serialize};

/// A node that moved, or was to move, to another host while it ran. Times are seconds on the run's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MigrationFacts {
    /// `n1` is the first.
    pub node: String,
    /// Path of the host that it left.
    pub from: String,
    /// Path of the host that it moved to, or was to.
    pub to: String,
    /// When copying began.
    pub began_s: f64,
    /// When it ran on the other host, or when the migration was given up.
    pub ended_s: f64,
    /// The memory that was to be copied.
    pub memory_bytes: u64,
    /// The rounds that were copied while it ran.
    pub rounds: Vec<MigrationRound>,
    /// Bytes copied during the stun.
    pub last_bytes: u64,
    /// When it was stopped; null when it never was.
    pub stunned_s: Option<f64>,
    /// Length of the stun; null if there was none.
    pub stun_s: Option<f64>,
    /// Whether its processors were limited while its memory was copied.
    pub slowed: bool,
    /// Its TCP connections with others; null where they could not be listed.
    pub connections: Option<MigratedConnections>,
    /// Why it was given up, for a person to read; null when it was made.
    pub given_up: Option<String>,
}

/// One round of copying.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MigrationRound {
    /// What was copied.
    pub bytes: u64,
    /// How long that took.
    pub seconds: f64,
    /// What the node dirtied meanwhile.
    pub dirtied_bytes: u64,
}

/// The connections of a node that was moved, one of them the lab's own where a fault moved it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigratedConnections {
    /// Open connections when it was stopped.
    pub before: u64,
    /// How many of these were still open a second after it ran again.
    pub survived: u64,
    /// How many of the node's were cut off meanwhile, by a reset or a timeout, and not closed in order.
    pub cut_off: u64,
}

impl MigrationFacts {
    /// Whether the node is on the other host.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.given_up.is_none()
    }

    /// All bytes that crossed the network.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rounds.iter().map(|round| round.bytes).sum::<u64>() + self.last_bytes
    }

    /// What the node dirtied in a second while it was copied, in bytes; `None` before the first round is over.
    #[must_use]
    pub fn dirty_bytes_per_s(&self) -> Option<f64> {
        let seconds: f64 = self.rounds.iter().map(|round| round.seconds).sum();
        let bytes: u64 = self.rounds.iter().map(|round| round.dirtied_bytes).sum();
        (seconds > 0.0).then(|| bytes as f64 / seconds)
    }

    /// What was copied in a second while the node ran, in bytes; `None` before the first round is over.
    #[must_use]
    pub fn copied_bytes_per_s(&self) -> Option<f64> {
        let seconds: f64 = self.rounds.iter().map(|round| round.seconds).sum();
        let bytes: u64 = self.rounds.iter().map(|round| round.bytes).sum();
        (seconds > 0.0).then(|| bytes as f64 / seconds)
    }
}
