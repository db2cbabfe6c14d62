//! The scenario: one YAML file that says everything a run needs. Text in, checked values or a pointed message out.
//!
//! Touches no file system and no kernel: a scenario that parses here parses everywhere.

mod agents;
pub mod catalogue;
mod cluster;
mod components;
mod connections;
mod consistency;
mod database;
mod disks;
mod edges;
mod engines;
mod expect;
pub mod explain;
mod faults;
pub mod figures;
mod file;
mod language;
mod lines;
mod links;
mod loads;
mod loads_together;
mod matrix;
mod network;
mod overrides;
mod pace;
mod parse;
mod placement;
mod places;
mod platform;
mod pods;
pub mod quantity;
mod quoted;
mod release;
mod repeated;
pub mod resolved;
mod runs_on;
mod scenario;
mod schedule;
mod settings;
mod site;
mod storage;
mod workload_options;
mod write;

pub use engines::{EngineFiles, NamedFile};
pub use faults::*;
pub use file::{About, MOST_SEED, json_schema};
pub use matrix::{Axis, Cell, Matrix};
pub use parse::{Plan, Refusal, Source, engine_files, parse, plan, plan_with, point_at, point_at_fault};
pub use quantity::Quantity;
pub use release::Release;
pub use resolved::{
    Acknowledge, Agent, AgentLost, Apart, Arrival, ClockCorrection, Cluster, Comparison, Conditions,
    Consistency, ConsistencyLevel, Database, DiskSync, Disks, Distribution, Edge, Ends, Expectation,
    Failover, Host, IpVersion, IsolationResponse, Jitter, Kubernetes, KubernetesTimes, Level, Link, Load,
    Member, MemberReach, Memory, NetworkPath, Pace, Place, PodAgents, Promotion, Queue, Ramp, Reads,
    ReportedStep, Reproduces, RoleLabel, RunsOn, Site, Storage, StorageClass, Sweep, Synchronous, ThinkTime,
    TimeService, Timestamps, VmPlatform, Volumes, Within,
};
pub use scenario::{Phase, Scenario};
pub use write::to_yaml;
pub use yaml::{MOST_BYTES, Problem, Rejection, units};

use yaml::{decode, rejection, tree, wording};
