//! The pods of a cluster that exists: the ways to them, what is known of them before a run, what is seen of them while it lasts and what strangers do to them,
//! agents as pods beside them, and what the login must be allowed for all of it.
//!
//! Owns what only pods have; the run itself is `run`'s, its strikes are `strikes`', and both are the same as on machines. How kubectl is
//! called, and what its answers say, is `kubernetes`' business; what passes between an agent and the run is `agent`'s.

mod error;
mod facts;
mod fleet;
mod kubectl;
mod leave;
mod manifests;
mod on_paper;
mod pods;
mod recovery;
mod sightings;
mod strangers;

pub use error::PodsError;
pub use fleet::{Fleet, FleetError, FleetPlan, fleet_plan, planned_fleet};
pub use kubernetes::Grant;
pub use leave::{Leave, NeededVerb, leave};
pub use manifests::{Manifests, Wanted, manifests};
pub use on_paper::{CONTEXT, NODE, POD, node_on_paper, values_on_paper};
pub use pods::{NodeError, Pods, PodsOf};
pub use sightings::{Seen, Watching};
