//! How clients are given nodes of a database without a leader: each the next, and another when its own is lost.
//!
//! Owns the attempt at one node. Which node is asked, and when, is `leader_search`'s business.

use std::time::Duration;

use history::ErrorClass;

use super::topology::enter_keyspace;
use super::{CqlClient, Settings};
use crate::connection::SessionError;
use crate::endpoint::{Address, Endpoint};
use crate::frames::failure;
use crate::leader_search::{Ask, LeaderSearch};
use crate::session::Session;

/// Connects to any node that answers, client by client in turn. Shared by all clients of a load.
pub type CqlConnector = LeaderSearch<AskCql>;

/// An attempt at one node.
pub struct AskCql {
    settings: Settings,
    nodes: usize,
}

impl Ask for AskCql {
    type Opened = CqlClient;

    const FAILS_BACK: bool = true;

    fn session(opened: CqlClient) -> Session {
        Session::of_sql(opened)
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<(CqlClient, bool), SessionError> {
        let Address::Tcp { address, .. } = endpoint.address else {
            let message = format!("{}: CQL is spoken over TCP", endpoint.address);
            return Err(failure(ErrorClass::Connection, true, message));
        };
        let mut client = CqlClient::open(address, &self.settings).await?;
        // The attempt has a limit as a whole.
        client.line.timeout = Duration::MAX;
        enter_keyspace(&mut client, &self.settings, self.nodes).await?;
        client.line.timeout = self.settings.timeout;
        Ok((client, true))
    }
}

impl CqlConnector {
    /// To these nodes.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, settings: Settings) -> Self {
        let (connect_timeout, nodes) = (settings.connect_timeout, endpoints.len());
        Self::asking(AskCql { settings, nodes }, endpoints, connect_timeout).spread_out()
    }
}
