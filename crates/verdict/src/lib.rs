//! From what a run has shown to its result: the checks made, the figures drawn together, the expectations judged, the
//! verdict.
//!
//! Owns what follows from what was seen, and the order of it. Sees neither lab nor database: [`Planned`] and [`Shown`] hold
//! what is known. Only the history is read from the run directory, so that anybody can judge the same again.

mod agents;
mod barren_load;
mod checks;
mod damage;
mod ended_early;
mod expectations;
mod faults;
mod figures_in_doubt;
mod load_alone;
mod loads;
mod losses_by_load;
mod placement;
mod reasons;
mod result;
mod shown;
mod warnings;

pub use ended_early::ended_early;
pub use load_alone::LoadAlone;
pub use result::{Checks, draw};
pub use shown::{LabShown, OpenLoopRecord, Planned, Recorded, Shown};
