//! Faults as data: from the schedule and the seed to timed actions, and the record of each fault of a run.
//!
//! Owns when faults strike and heal, whom a role means, how nodes are parted, what is known of a fault, and the lies that
//! tests plant. Breaks nothing itself: `faulting` carries the actions out and gathers the evidence. Pure.

pub mod partition;
pub mod planted;
pub mod record;
pub mod role;
pub mod struck;
pub mod timeline;

pub use planted::{Lie, Planted};
pub use record::{FaultRecord, FaultRecords, Finding, ReceiptOf};
pub use role::{Role, pick};
pub use struck::{End, Struck};
pub use timeline::{Action, PlannedFault, PlannedPhase, TimedAction, timeline};
