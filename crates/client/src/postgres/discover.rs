//! Finds the node that takes writes: the last known one first, then the others in an order of chance.
//!
//! One round per call. Waiting and trying again is `load`'s business.

use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

use history::ErrorClass;
use rand::Rng;
use rand::seq::SliceRandom;

use super::{PostgresClient, Settings};
use crate::SessionError;
use crate::session::{ConnectError, Connected, FailedAttempt, SqlConnector};

/// A node and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The node's name, for histories.
    pub node: String,
    /// Its address.
    pub address: SocketAddr,
}

/// Connects to whichever of its endpoints takes writes. Shared by all clients of a load, so that what one learns of
/// the leader helps the others.
pub struct PostgresConnector {
    endpoints: Vec<Endpoint>,
    settings: Settings,
    last_leader: Cell<Option<usize>>,
}

impl PostgresConnector {
    /// A connector that knows no leader yet.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, settings: Settings) -> Self {
        Self { endpoints, settings, last_leader: Cell::new(None) }
    }

    fn order(&self, rng: &mut dyn Rng) -> Vec<usize> {
        let first = self.last_leader.get();
        let mut others: Vec<usize> =
            (0..self.endpoints.len()).filter(|index| Some(*index) != first).collect();
        others.shuffle(rng);
        first.into_iter().chain(others).collect()
    }

    async fn round(&self, rng: &mut dyn Rng) -> Result<Connected, ConnectError> {
        let mut failed_attempts = Vec::new();
        let mut read_only_nodes = Vec::new();
        for index in self.order(rng) {
            let Some(endpoint) = self.endpoints.get(index) else { continue };
            match self.attempt(endpoint).await {
                Ok(Some(client)) => {
                    self.last_leader.set(Some(index));
                    let node = endpoint.node.clone();
                    return Ok(Connected { session: Box::new(client), node, failed_attempts });
                }
                Ok(None) => read_only_nodes.push(endpoint.node.clone()),
                Err(error) => failed_attempts.push(FailedAttempt { node: endpoint.node.clone(), error }),
            }
            // It no longer deserves to be asked first, unless another client has just found otherwise.
            if self.last_leader.get() == Some(index) {
                self.last_leader.set(None);
            }
        }
        Err(ConnectError { failed_attempts, read_only_nodes })
    }

    /// A session with this endpoint; `None` when it answers but takes no writes.
    async fn attempt(&self, endpoint: &Endpoint) -> Result<Option<PostgresClient>, SessionError> {
        let mut client = PostgresClient::connect_tcp(endpoint.address, &self.settings).await?;
        client.timeout = self.settings.connect_timeout;
        let rows = client
            .simple_query("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')")
            .await?;
        client.timeout = self.settings.timeout;
        match (rows.text(0, 0), rows.text(0, 1)) {
            (Some("f"), Some("off")) => Ok(Some(client)),
            (Some(_), Some(_)) => Ok(None),
            _ => Err(SessionError {
                class: ErrorClass::Other,
                definite: true,
                message: format!("{}: no answer to whether it takes writes", endpoint.address),
                code: None,
            }),
        }
    }
}

impl SqlConnector for PostgresConnector {
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(self.round(rng))
    }
}
