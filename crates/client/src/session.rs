//! Sessions by what is spoken over them, and how one is opened.
//!
//! Owns no protocol: each protocol's folder makes sessions of one kind.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use history::ErrorClass;

use crate::connection::{Connection, SessionError};
use crate::key_value::KeyValueSession;
use crate::sql::SqlSession;
use crate::volume::VolumeSession;

/// An open session, by what is spoken over it. A workload takes the kinds that it can speak and gets a definite error for
/// the others.
pub enum Session {
    /// With a SQL database.
    Sql(Box<dyn SqlSession>),
    /// With a database of keys and values.
    KeyValue(Box<dyn KeyValueSession>),
    /// With the process that reads and writes a volume raw.
    Volume(Box<dyn VolumeSession>),
}

impl Session {
    /// A session of SQL.
    #[must_use]
    pub fn of_sql(session: impl SqlSession + 'static) -> Self {
        Session::Sql(Box::new(session))
    }

    /// A session of keys and values.
    #[must_use]
    pub fn of_key_value(session: impl KeyValueSession + 'static) -> Self {
        Session::KeyValue(Box::new(session))
    }

    /// A session with a volume.
    #[must_use]
    pub fn of_volume(session: impl VolumeSession + 'static) -> Self {
        Session::Volume(Box::new(session))
    }

    /// For who speaks SQL only.
    ///
    /// # Errors
    /// When the session is of another kind.
    pub fn sql(&mut self) -> Result<&mut dyn SqlSession, SessionError> {
        match self {
            Session::Sql(session) => Ok(session.as_mut()),
            other => Err(other.is_not("SQL")),
        }
    }

    /// For who speaks of keys and values only.
    ///
    /// # Errors
    /// When the session is of another kind.
    pub fn key_value(&mut self) -> Result<&mut dyn KeyValueSession, SessionError> {
        match self {
            Session::KeyValue(session) => Ok(session.as_mut()),
            other => Err(other.is_not("keys and values")),
        }
    }

    /// For who reads and writes volumes only.
    ///
    /// # Errors
    /// When the session is of another kind.
    pub fn volume(&mut self) -> Result<&mut dyn VolumeSession, SessionError> {
        match self {
            Session::Volume(session) => Ok(session.as_mut()),
            other => Err(other.is_not("a volume")),
        }
    }

    fn is_not(&self, wanted: &str) -> SessionError {
        let is = match self {
            Session::Sql(_) => "SQL",
            Session::KeyValue(_) => "keys and values",
            Session::Volume(_) => "a volume",
        };
        let message = format!("the session is one of {is}, not of {wanted}");
        SessionError { class: ErrorClass::Other, definite: true, message, code: None }
    }

    fn connection(&self) -> &dyn Connection {
        match self {
            Session::Sql(session) => session.as_ref(),
            Session::KeyValue(session) => session.as_ref(),
            Session::Volume(session) => session.as_ref(),
        }
    }

    /// See [`Connection::set_timeout`].
    pub fn set_timeout(&mut self, timeout: Duration) {
        match self {
            Session::Sql(session) => session.set_timeout(timeout),
            Session::KeyValue(session) => session.set_timeout(timeout),
            Session::Volume(session) => session.set_timeout(timeout),
        }
    }

    /// See [`Connection::is_broken`].
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.connection().is_broken()
    }

    /// See [`Connection::read_at`].
    #[must_use]
    pub fn read_at(&self) -> Option<&str> {
        self.connection().read_at()
    }

    /// Whether a transaction is open; only SQL leaves one open between calls.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        match self {
            Session::Sql(session) => session.in_transaction(),
            Session::KeyValue(_) | Session::Volume(_) => false,
        }
    }
}

/// A connection attempt at one node that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The node's name.
    pub node: String,
    /// What the attempt failed with.
    pub error: SessionError,
}

/// A session with a node that takes writes.
pub struct Connected {
    pub session: Session,
    /// The name of the node that answers it.
    pub node: String,
    /// Attempts at other nodes that failed on the way. A standby that was passed over is not among them: it did
    /// nothing wrong.
    pub failed_attempts: Vec<FailedAttempt>,
}

/// No node that takes writes was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("no node takes writes: {}", describe(.failed_attempts, .read_only_nodes))]
pub struct ConnectError {
    pub failed_attempts: Vec<FailedAttempt>,
    /// Names of the nodes that answered but take no writes.
    pub read_only_nodes: Vec<String>,
}

fn describe(failed: &[FailedAttempt], read_only: &[String]) -> String {
    // Outside a lab a node is called by its address, with which most errors begin.
    let failure = |FailedAttempt { node, error }: &FailedAttempt| match error.message.starts_with(node) {
        true => error.to_string(),
        false => format!("{node}: {error}"),
    };
    let failures = failed.iter().map(failure);
    let standbys = read_only.iter().map(|node| format!("{node}: read-only"));
    failures.chain(standbys).collect::<Vec<_>>().join("; ")
}

/// Finds a node that takes writes among the endpoints it knows, and opens a session there.
pub trait Connector {
    /// A session with the node that takes writes, which all who share the connector look for together. `rng` spreads time
    /// limits and pauses.
    ///
    /// The future resolves to [`ConnectError`] when this client's attempts came to nothing; waiting before the next is the
    /// caller's business.
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn rand::Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>>;

    /// Whether clients go back to the node that they began with when it returns, as the drivers of the protocol do.
    fn fails_back(&self) -> bool {
        false
    }

    /// A session with the node of this name and no other; nothing where it cannot be had at once. It takes no place of those who look
    /// for any session, and leaves no trace in what they know of the node.
    fn connect_to<'a>(&'a self, node: &'a str) -> Pin<Box<dyn Future<Output = Option<Connected>> + 'a>> {
        let _ = node;
        Box::pin(async { None })
    }

    /// Why no session can be had any more, whatever becomes of the database; nothing where one still may.
    fn failure(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_called_by_its_address_is_named_once() {
        let refused = |node: &str| FailedAttempt {
            node: node.to_owned(),
            error: SessionError {
                class: ErrorClass::Connection,
                definite: true,
                message: "10.2.0.1:5432: Connection refused".to_owned(),
                code: None,
            },
        };
        let told = |node| {
            ConnectError { failed_attempts: vec![refused(node)], read_only_nodes: Vec::new() }.to_string()
        };
        assert_eq!(told("10.2.0.1:5432"), "no node takes writes: 10.2.0.1:5432: Connection refused");
        assert_eq!(told("n1"), "no node takes writes: n1: 10.2.0.1:5432: Connection refused");
    }
}
