//! The scenario: one YAML file that says everything a run needs. Text in, checked values or a pointed message out.
//!
//! Touches no file system and no kernel: a scenario that parses here parses everywhere.

pub mod catalogue;
mod database;
mod decode;
mod expect;
mod language;
mod loads;
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
    Comparison, Database, Expectation, Failover, Fault, FaultKind, FaultTarget, Host, Level, Link, Load,
    Phase, Place, Reproduces, Scenario, Site, Synchronous,
};
pub use schema::json_schema;
pub use write::to_yaml;
