//! Finds the node that takes writes: the last known one first, with a head start, then all others at once.
//!
//! One round per call. Waiting and trying again is `load`'s business.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use history::ErrorClass;
use rand::Rng;
use rand::seq::SliceRandom;
use rustls::ClientConfig;

use super::{EncryptionError, PostgresClient, Settings, not_encrypted};
use crate::SessionError;
use crate::reactor::timeout;
use crate::session::{ConnectError, Connected, FailedAttempt, SqlConnector};

/// How long the last known leader is asked alone. One that is alive answers within it in any place the lab can make; for
/// one that is not, nobody waits longer: the others are asked at the same time, not one after another.
const HEAD_START: Duration = Duration::from_millis(250);

/// An attempt under way.
struct Attempt<'a> {
    index: usize,
    node: &'a str,
    future: Pin<Box<dyn Future<Output = Result<Option<PostgresClient>, SessionError>> + 'a>>,
}

/// What the attempts of one round have found so far.
#[derive(Default)]
struct Round {
    failed_attempts: Vec<FailedAttempt>,
    read_only_nodes: Vec<String>,
}

impl Round {
    fn won_by(self, (client, node): (PostgresClient, String)) -> Connected {
        Connected { session: Box::new(client), node, failed_attempts: self.failed_attempts }
    }
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Over TCP.
    Tcp {
        /// The address and port.
        address: SocketAddr,
        /// The name it was found by, which its certificate is held against; the address itself where absent.
        host: Option<String>,
    },
    /// At a Unix socket (the socket itself, such as `/run/n1/.s.PGSQL.5432`).
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp { address, host: None }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { address, .. } => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A node and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The node's name, for histories.
    pub node: String,
    /// Its address.
    pub address: Address,
}

/// Connects to whichever of its endpoints takes writes. Shared by all clients of a load, so that what one learns of
/// the leader helps the others.
pub struct PostgresConnector {
    endpoints: Vec<Endpoint>,
    settings: Settings,
    /// Made once: reading the authorities for every connection would cost more than the handshake.
    config: Result<Option<Arc<ClientConfig>>, EncryptionError>,
    last_leader: Cell<Option<usize>>,
}

impl PostgresConnector {
    /// A connector that knows no leader yet.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, settings: Settings) -> Self {
        let config = settings.encryption.client_config();
        Self { endpoints, settings, config, last_leader: Cell::new(None) }
    }

    fn order(&self, rng: &mut dyn Rng) -> Vec<usize> {
        let first = self.last_leader.get();
        let mut others: Vec<usize> =
            (0..self.endpoints.len()).filter(|index| Some(*index) != first).collect();
        others.shuffle(rng);
        first.into_iter().chain(others).collect()
    }

    async fn round(&self, rng: &mut dyn Rng) -> Result<Connected, ConnectError> {
        let mut round = Round::default();
        let mut order =
            self.order(rng).into_iter().filter_map(|index| Some((index, self.endpoints.get(index)?)));
        let mut attempts: Vec<Attempt<'_>> = Vec::new();
        if self.last_leader.get().is_some() {
            attempts.extend(order.next().map(|(index, endpoint)| self.begin(index, endpoint)));
            let head_start = timeout(HEAD_START, self.first_leader(&mut attempts, &mut round));
            if let Ok(Some(connected)) = head_start.await {
                return Ok(round.won_by(connected));
            }
        }
        attempts.extend(order.map(|(index, endpoint)| self.begin(index, endpoint)));
        match self.first_leader(&mut attempts, &mut round).await {
            Some(connected) => Ok(round.won_by(connected)),
            None => Err(ConnectError {
                failed_attempts: round.failed_attempts,
                read_only_nodes: round.read_only_nodes,
            }),
        }
    }

    fn begin<'a>(&'a self, index: usize, endpoint: &'a Endpoint) -> Attempt<'a> {
        Attempt { index, node: &endpoint.node, future: Box::pin(self.attempt(endpoint)) }
    }

    /// Carries all attempts on at once until one finds a node that takes writes; `None` when none of them does. What the
    /// others found until then stands in `round`.
    async fn first_leader(
        &self,
        attempts: &mut Vec<Attempt<'_>>,
        round: &mut Round,
    ) -> Option<(PostgresClient, String)> {
        poll_fn(|context| {
            let mut place = 0;
            while let Some(attempt) = attempts.get_mut(place) {
                let Poll::Ready(ended) = attempt.future.as_mut().poll(context) else {
                    place += 1;
                    continue;
                };
                let Attempt { index, node, .. } = attempts.swap_remove(place);
                match ended {
                    Ok(Some(client)) => {
                        self.last_leader.set(Some(index));
                        return Poll::Ready(Some((client, node.to_owned())));
                    }
                    Ok(None) => round.read_only_nodes.push(node.to_owned()),
                    Err(error) => round.failed_attempts.push(FailedAttempt { node: node.to_owned(), error }),
                }
                // It no longer deserves to be asked first, unless another client has just found otherwise.
                if self.last_leader.get() == Some(index) {
                    self.last_leader.set(None);
                }
            }
            if attempts.is_empty() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    pub(super) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// A session with this endpoint; `None` when it answers but takes no writes.
    async fn attempt(&self, endpoint: &Endpoint) -> Result<Option<PostgresClient>, SessionError> {
        let (client, takes_writes) = self.asked_for_its_role(endpoint).await?;
        Ok(takes_writes.then_some(client))
    }

    /// A session with this endpoint, and whether it takes writes.
    pub(super) async fn asked_for_its_role(
        &self,
        endpoint: &Endpoint,
    ) -> Result<(PostgresClient, bool), SessionError> {
        let config = self.config.clone().map_err(|error| not_encrypted(&endpoint.address, &error))?;
        let mut client = PostgresClient::connect_with(&endpoint.address, &self.settings, config).await?;
        client.timeout = self.settings.connect_timeout;
        let rows = client
            .simple_query("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')")
            .await?;
        client.timeout = self.settings.timeout;
        match (rows.text(0, 0), rows.text(0, 1)) {
            (Some(recovery), Some(read_only)) => Ok((client, (recovery, read_only) == ("f", "off"))),
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
