//! Connections that speak a database's protocol, behind session traits.
//!
//! Owns the traits workloads are written against and one folder per protocol. Decides nothing about what is asked
//! (that is `workload`) nor how often (that is `load`).

pub mod backoff;
pub mod connection;
pub mod control;
pub mod cql;
mod endpoint;
pub mod etcd;
mod frames;
mod http;
pub mod key_value;
pub mod leader;
mod leader_search;
mod line;
pub mod mysql;
mod password;
mod patience;
mod placeholders;
pub mod postgres;
pub mod process;
pub mod raw_volume;
pub mod reactor;
pub mod redis;
pub mod rows;
pub mod session;
pub mod sql;
mod statement_kind;
mod tls;
pub mod volume;
mod wire;

pub use backoff::Backoff;
pub use connection::{Connection, SessionError, SessionFuture};
pub use endpoint::{Address, Endpoint};
pub use key_value::KeyValueSession;
pub use password::Password;
pub use rows::Rows;
pub use session::{ConnectError, Connected, Connector, FailedAttempt, Session};
pub use sql::{BulkLoad, Dialect, Execution, SqlSession, SqlValue, StatementId};
pub use volume::VolumeSession;
