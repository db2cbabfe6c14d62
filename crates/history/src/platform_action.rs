//! What the platform, or an operator, does to a node on its own: the word that stands in events.
//!
//! Owns these words. What is done, and why, is `platform`'s.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the platform does to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlatformAction {
    /// A VM that was lost boots on another host.
    HaRestart,
    /// A VM that was lost boots where it was.
    Return,
    /// A VM stays off until a host can run it.
    Wait,
    /// A VM that runs is moved for the sake of a rule or of balance.
    Balance,
    /// A standby is made the leader.
    Promote,
    /// A database follows the leader again.
    Rejoin,
    /// A database that had ended is started again on a VM that runs.
    Restart,
    /// A database accepts connections after its start.
    Ready,
    /// Something that had begun has no object any more: a VM lost its power while its database was starting, or a leader was back before
    /// another could be promoted.
    CutShort,
    /// A VM is switched off so that it spoils nobody else's copy of its data.
    Fence,
    /// What is done with a VM whose host reaches no other host.
    Isolation,
    /// Something happened to the components of a VM's volume.
    Volume,
    /// A time service corrects the clock of a node.
    TimeService,
}

impl PlatformAction {
    /// Every action.
    pub const ALL: [PlatformAction; 13] = [
        PlatformAction::HaRestart,
        PlatformAction::Return,
        PlatformAction::Wait,
        PlatformAction::Balance,
        PlatformAction::Promote,
        PlatformAction::Rejoin,
        PlatformAction::Restart,
        PlatformAction::Ready,
        PlatformAction::CutShort,
        PlatformAction::Fence,
        PlatformAction::Isolation,
        PlatformAction::Volume,
        PlatformAction::TimeService,
    ];

    /// The word in `events.jsonl`, on the terminal and in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PlatformAction::HaRestart => "ha-restart",
            PlatformAction::Return => "return",
            PlatformAction::Wait => "wait",
            PlatformAction::Balance => "balance",
            PlatformAction::Promote => "promote",
            PlatformAction::Rejoin => "rejoin",
            PlatformAction::Restart => "restart",
            PlatformAction::Ready => "ready",
            PlatformAction::CutShort => "cut-short",
            PlatformAction::Fence => "fence",
            PlatformAction::Isolation => "isolation",
            PlatformAction::Volume => "volume",
            PlatformAction::TimeService => "time-service",
        }
    }
}

impl fmt::Display for PlatformAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_has_the_same_word_in_files_and_before_people() {
        for action in PlatformAction::ALL {
            assert_eq!(serde_json::to_value(action).expect("a word"), action.name());
        }
    }
}
