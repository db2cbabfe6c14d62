//! A real Kubernetes cluster on nodes of a lab.
//!
//! Owns what the cluster is made of and where each piece comes from ([`pieces`], [`install`]), who is in it and with which
//! addresses and times ([`plan`], [`ranges`]), certificates and logins ([`pki`], [`login`]), the settings of each piece as typed
//! values ([`control_plane`], [`node_agent`], [`node_proxy`], [`runtime`], [`pod_network`]), which files a node gets ([`files`]),
//! the order in which all of it is started and how it is awaited ([`start`]), its kubectl ([`client`]), its volumes ([`storage`]), a database in its
//! pods ([`stateful_set`]), and that database as an engine of the lab ([`in_cluster`]).
//!
//! Owns no machine: nodes are reached through [`engine::Node`]. A node that runs pods must be one whose processes are root
//! (`lab::protocol::WholeMachine`), with the private settings of [`node_agent::OWN_SETTINGS`]; that of the control plane need not.
//! All but [`install`], [`start`], [`client`] and [`in_cluster`] is pure.

pub mod client;
pub mod control_plane;
pub mod file_names;
pub mod files;
mod go;
mod image;
pub mod in_cluster;
pub mod install;
pub mod login;
pub mod node_agent;
pub mod node_proxy;
mod on_node;
pub mod pieces;
pub mod pki;
pub mod plan;
pub mod pod_network;
pub mod ranges;
pub mod runtime;
pub mod start;
pub mod stateful_set;
pub mod storage;

pub use files::{ControlFiles, WorkerFiles};
pub use go::GoError;
pub use in_cluster::InCluster;
pub use install::{InstallError, install, installed, make_image};
pub use pieces::Programs;
pub use plan::{Member, Plan, PlanError, Timing, Worker};
pub use ranges::Range;
pub use start::{Cluster, StartError};
pub use stateful_set::{ClassFacts, StatefulSet};
