//! Lies that a test plants in the lab (`run --plant LIE`), to show that the lab's own evidence catches them.
//!
//! Owns their names. What each one changes stands where the honest code does the thing, under `planted.contains(..)`.
//! Nothing that judges a run may ask which lie was planted.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The lies planted in a run; empty in every honest one.
pub type Planted = BTreeSet<Lie>;

/// A defect of the lab, its loads or its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lie {
    /// Added delays are 45 ms where 50 ms were asked for: nine tenths.
    DelayShort,
    /// A partition lets 1 packet of 50 through.
    LeakPackets,
    /// Links of faults carry twice the rate that was asked for.
    RateDouble,
    /// They carry half of it.
    RateHalf,
    /// Half of the packets that are to be lost are.
    LossHalf,
    /// Half of those that are to arrive twice do.
    DuplicatesHalf,
    /// Half of those that are to have a bit flipped have.
    CorruptionHalf,
    /// Half of those that are to overtake do.
    ReorderHalf,
    /// The jitter of faults and links has half the spread that was asked for.
    JitterHalf,
    /// Queues of faults hold twice of what was asked for.
    QueueDouble,
    /// Packets larger than a fault allows pass.
    LargePackets,
    /// A pair of places keeps to the kernel's own path, whatever is asked of it.
    PathKept,
    /// What the third node sends keeps to it, and nothing else does.
    PathKeptByOne,
    /// Data that was not synced stays at a power-off.
    NoRollback,
    /// The disks of the lab lose what was synced at a power-off.
    SyncedLost,
    /// The platform forgets its rules and what hosts have.
    RulesForgotten,
    /// One process of a node outlives the node's power-off.
    ProcessLeft,
    /// A kill of processes kills none.
    KillNothing,
    /// A stop of processes stops the first of them alone.
    StopMainOnly,
    /// A node that is to be upgraded is restarted with its old programs.
    OldPrograms,
    /// A neighbour that is to take processors takes none.
    NoPressure,
    /// A node's clock reaches only programs that are linked against a C library.
    ClockCOnly,
    /// A live migration cuts the connections of the node that it moves.
    MigrationDrops,
    /// One acknowledged insert was never sent to the database.
    DroppedInsert,
    /// The database holds one insert that no client asked for.
    InventedInsert,
    /// The thread of a load panics in its third second.
    LoadPanic,
    /// A load ends with an error in its third second.
    LoadDies,
    /// The supervisor stands still for 5 s.
    LabStall,
    /// The final read of the loads does not happen.
    NoFinalRead,
    /// The watch over the lab panics in its third second.
    VigilPanic,
    /// The watch over the lab cannot begin.
    NoVigil,
}

impl Lie {
    /// Every lie, in the order of the contract.
    pub const ALL: [Lie; 31] = [
        Lie::DelayShort,
        Lie::LeakPackets,
        Lie::RateDouble,
        Lie::RateHalf,
        Lie::LossHalf,
        Lie::DuplicatesHalf,
        Lie::CorruptionHalf,
        Lie::ReorderHalf,
        Lie::JitterHalf,
        Lie::QueueDouble,
        Lie::LargePackets,
        Lie::PathKept,
        Lie::PathKeptByOne,
        Lie::NoRollback,
        Lie::SyncedLost,
        Lie::RulesForgotten,
        Lie::ProcessLeft,
        Lie::KillNothing,
        Lie::StopMainOnly,
        Lie::OldPrograms,
        Lie::NoPressure,
        Lie::ClockCOnly,
        Lie::MigrationDrops,
        Lie::DroppedInsert,
        Lie::InventedInsert,
        Lie::LoadPanic,
        Lie::LoadDies,
        Lie::LabStall,
        Lie::NoFinalRead,
        Lie::VigilPanic,
        Lie::NoVigil,
    ];

    /// The word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Lie::DelayShort => "delay-short",
            Lie::LeakPackets => "leak-packets",
            Lie::RateDouble => "rate-double",
            Lie::RateHalf => "rate-half",
            Lie::LossHalf => "loss-half",
            Lie::DuplicatesHalf => "duplicates-half",
            Lie::CorruptionHalf => "corruption-half",
            Lie::ReorderHalf => "reorder-half",
            Lie::JitterHalf => "jitter-half",
            Lie::QueueDouble => "queue-double",
            Lie::LargePackets => "large-packets",
            Lie::PathKept => "path-kept",
            Lie::PathKeptByOne => "path-kept-by-one",
            Lie::NoRollback => "no-rollback",
            Lie::SyncedLost => "synced-lost",
            Lie::RulesForgotten => "rules-forgotten",
            Lie::ProcessLeft => "process-left",
            Lie::KillNothing => "kill-nothing",
            Lie::StopMainOnly => "stop-main-only",
            Lie::OldPrograms => "old-programs",
            Lie::NoPressure => "no-pressure",
            Lie::ClockCOnly => "clock-c-only",
            Lie::MigrationDrops => "migration-drops",
            Lie::DroppedInsert => "dropped-insert",
            Lie::InventedInsert => "invented-insert",
            Lie::LoadPanic => "load-panic",
            Lie::LoadDies => "load-dies",
            Lie::LabStall => "lab-stall",
            Lie::NoFinalRead => "no-final-read",
            Lie::VigilPanic => "vigil-panic",
            Lie::NoVigil => "no-vigil",
        }
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A word that names no lie.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no lie `{0}`; there are: {all}", all = Lie::ALL.map(Lie::name).join(", "))]
pub struct UnknownLie(String);

impl FromStr for Lie {
    type Err = UnknownLie;

    fn from_str(word: &str) -> Result<Lie, UnknownLie> {
        Lie::ALL.into_iter().find(|lie| lie.name() == word).ok_or_else(|| UnknownLie(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_is_found_by_its_name_and_written_by_it() {
        for lie in Lie::ALL {
            assert_eq!(lie.name().parse(), Ok(lie));
            assert_eq!(serde_json::to_string(&lie).expect("JSON"), format!("\"{lie}\""));
        }
        assert!("truth".parse::<Lie>().is_err());
    }
}
