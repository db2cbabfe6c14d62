//! The control database's protocol: one transaction after another over one connection.
//!
//! Owns the session. The frames and the words are the control database's own crate's.

use std::net::SocketAddr;
use std::time::Duration;

use control::transaction::{Answer, Found, Operation};
use control::wire::{Ask, Tell};
use history::ErrorClass;

use crate::connection::{Connection, SessionError, SessionFuture};
use crate::frames::{FramedConnection, failure};
use crate::key_value::{KeyValueSession, REFUSED};
use crate::leader::{LeaderConnector, LeaderSession};

/// A session with one node.
pub struct ControlClient {
    connection: FramedConnection,
}

impl ControlClient {
    /// A session with the node at `address`. `timeout` is how long it waits for each answer, the first one included.
    ///
    /// # Errors
    /// When the node cannot be reached in that time.
    pub async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
        Ok(Self { connection: FramedConnection::connect(address, timeout).await? })
    }

    /// Whether this node leads, by its own word.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub async fn leads(&mut self) -> Result<bool, SessionError> {
        match self.connection.converse(&Ask::Status).await? {
            Tell::Status { status } => Ok(status.leads),
            Tell::Answer { .. } => Err(self.connection.senseless()),
        }
    }

    async fn carry_out(&mut self, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
        let asked = operations.len();
        let Tell::Answer { answer } = self.connection.converse(&Ask::Transaction { operations }).await?
        else {
            return Err(self.connection.senseless());
        };
        let address = self.connection.address;
        match answer {
            Answer::Committed { found } if found.len() == asked => Ok(found),
            Answer::Committed { .. } => Err(self.connection.senseless()),
            Answer::Refused { step, reason } => {
                let message = format!("{address}: step {step}: {reason}");
                let code = Some(REFUSED.to_owned());
                Err(SessionError { code, ..failure(ErrorClass::Other, true, message) })
            }
            Answer::Conflict { key } => {
                let message = format!("{address}: another transaction changed {key}");
                Err(failure(ErrorClass::Serialization, true, message))
            }
            Answer::NotLeader { leader } => {
                let leader = leader.unwrap_or_else(|| "nobody it knows of".to_owned());
                let message = format!("{address}: it does not lead, {leader} does");
                Err(failure(ErrorClass::ReadOnly, true, message))
            }
            Answer::Unknown => {
                Err(failure(ErrorClass::ReadOnly, false, format!("{address}: it leads no more")))
            }
        }
    }
}

impl KeyValueSession for ControlClient {
    fn transact(&mut self, operations: Vec<Operation>) -> SessionFuture<'_, Vec<Found>> {
        Box::pin(self.carry_out(operations))
    }
}

impl LeaderSession for ControlClient {
    const NAME: &'static str = "the control database";

    type Settings = ();

    async fn connect(address: SocketAddr, (): &(), timeout: Duration) -> Result<Self, SessionError> {
        ControlClient::connect(address, timeout).await
    }

    async fn leads(&mut self) -> Result<bool, SessionError> {
        ControlClient::leads(self).await
    }
}

impl Connection for ControlClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.connection.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.connection.broken
    }
}

/// Connects to whichever of its endpoints leads. Shared by all clients of a load.
pub type ControlConnector = LeaderConnector<ControlClient>;
