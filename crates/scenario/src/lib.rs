//! The scenario: one YAML file that says everything a run needs. Text in, checked values or a pointed message out.
//!
//! Touches no file system and no kernel: a scenario that parses here parses everywhere.

pub mod catalogue;
mod components;
mod connections;
mod consistency;
mod database;
mod disks;
mod edges;
mod engines;
mod expect;
pub mod explain;
mod fault;
pub mod figures;
mod language;
mod links;
mod loads;
mod matrix;
mod network;
mod node_name;
mod overrides;
mod pace;
mod parse;
mod placement;
mod places;
mod pressure;
mod processes;
pub mod quantity;
mod receipts;
mod repeated;
pub mod resolved;
mod schedule;
mod settings;
mod site;
mod storage;
mod workload_options;
mod write;

pub use engines::{EngineFiles, NamedFile};
pub use language::json_schema;
pub use matrix::{Axis, Cell, Matrix};
pub use node_name::node_name;
pub use parse::{Plan, Refusal, Source, engine_files, parse, plan, plan_with, point_at};
pub use quantity::Quantity;
pub use resolved::{
    Acknowledge, Apart, Arrival, BlockAnswer, Comparison, Conditions, Consistency, ConsistencyLevel,
    Database, DiskDefect, DiskTarget, Disks, Distribution, Edge, Ends, Expectation, Failover, Fault,
    FaultAction, FaultTarget, Flap, Host, IpVersion, Jitter, Level, Link, Load, NodeTarget, OneProgram, Pace,
    PartitionShape, Phase, Place, PressureFault, ProcessDeed, ProcessFault, Promotion, Queue, Ramp, Reads,
    Reproduces, Scenario, Site, Storage, StorageClass, Sweep, Synchronous, ThinkTime, Volumes, Within,
};
pub use write::to_yaml;
pub use yaml::{MOST_BYTES, Problem, Rejection, units};

use yaml::{decode, rejection, tree, wording};
