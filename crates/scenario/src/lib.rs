//! The scenario: one YAML file that says everything a run needs. Text in, checked values or a pointed message out.
//!
//! Touches no file system and no kernel: a scenario that parses here parses everywhere.

pub mod resolved;

pub use resolved::{
    Database, Expectation, Failover, Fault, FaultKind, FaultTarget, Host, Level, Link, Load, Phase, Place, Scenario, Site,
    Synchronous,
};
