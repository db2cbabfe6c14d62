//! The scenario: one YAML file that says everything a run needs. Text in, checked values or a pointed message out.
//!
//! Touches no file system and no kernel: a scenario that parses here parses everywhere.

pub mod catalogue;
mod database;
mod decode;
mod expect;
mod fault;
mod language;
mod links;
mod loads;
mod network;
mod network_tables;
mod overrides;
mod parse;
mod placement;
mod places;
mod rejection;
pub mod resolved;
mod schedule;
mod schema;
mod site;
mod tree;
pub mod units;
mod wording;
mod write;

pub use parse::{Source, parse};
pub use rejection::{Problem, Rejection};
pub use resolved::{
    BlockAnswer, Comparison, Conditions, Database, Distribution, Expectation, Failover, Fault, FaultAction,
    FaultTarget, Host, Jitter, Level, Link, Load, PartitionShape, Phase, Place, Reproduces, Scenario, Site,
    Synchronous,
};
pub use schema::json_schema;
pub use write::to_yaml;
