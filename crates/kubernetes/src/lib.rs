//! A Kubernetes cluster through the system's `kubectl`, which carries the user's own login.
//!
//! Owns how kubectl is called and ended ([`kubectl`]), which facts are kept of the API's objects ([`objects`], [`members`]),
//! what a run needs leave for ([`permit`]) and the roles that give it ([`roles`]), ways to a pod's port ([`forward`]), load generators
//! as pods ([`generators`]), what is seen of the cluster while a run lasts ([`watch`], [`sightings`]), what strangers did to its pods
//! ([`strangers`]) and the phases of a recovery ([`phases`]). Objects, roles, sightings, strangers and phases are pure. What is struck
//! or made, and what a run makes of the facts, is the caller's; nothing here changes a cluster.

pub mod forward;
pub mod generators;
pub mod kubectl;
mod local_port;
pub mod members;
pub mod objects;
pub mod permit;
pub mod phases;
mod process;
pub mod roles;
pub mod sightings;
pub mod strangers;
pub mod watch;

pub use forward::{Forward, ForwardError};
pub use generators::Generators;
pub use kubectl::{Kubectl, KubectlError};
pub use members::MemberError;
pub use objects::{Container, ContainerEnd, Endpoints, Node, ObjectError, Pod, PodPhase, Volume};
pub use permit::{Act, Grant, Need, Scope};
pub use phases::{Phase, Step, told};
pub use process::last_lines;
pub use roles::{Account, Roles};
pub use sightings::{Change, Kind, Seen, Sighting};
pub use strangers::{EXACT_TO_S, StrangeDeed, StrangeEnd, strange_deeds, unwatched_since};
pub use watch::Watch;
