//! A Kubernetes cluster through the system's `kubectl`, which carries the user's own login.
//!
//! Owns how kubectl is called and ended ([`kubectl`]) and which facts are kept of the API's objects ([`objects`], [`members`]).

pub mod kubectl;
pub mod members;
pub mod objects;
mod process;

pub use kubectl::{Kubectl, KubectlError};
pub use members::MemberError;
pub use objects::{Container, Endpoints, Node, ObjectError, Pod, PodPhase, Volume};
