//! How a PostgreSQL server is asked whether it takes writes.
//!
//! Which of them is asked, when and how often is `leader_search`'s business.

use std::sync::Arc;
use std::time::Duration;

use history::ErrorClass;
use rustls::ClientConfig;

use super::{EncryptionError, PostgresClient, Settings, not_encrypted};
use crate::SessionError;
use crate::endpoint::Endpoint;
use crate::frames::failure;
use crate::leader_search::{Ask, LeaderSearch};
use crate::session::Session;

/// Connects to whichever of its endpoints takes writes. Shared by all clients of a load, so that what one learns of
/// the leader helps the others.
pub type PostgresConnector = LeaderSearch<AskPostgres>;

/// An attempt at one server.
pub struct AskPostgres {
    settings: Settings,
    /// Made once: reading the authorities for every connection would cost more than the handshake.
    config: Result<Option<Arc<ClientConfig>>, EncryptionError>,
}

impl Ask for AskPostgres {
    type Opened = PostgresClient;

    fn session(opened: PostgresClient) -> Session {
        Session::of_sql(opened)
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<(PostgresClient, bool), SessionError> {
        let config = self.config.clone().map_err(|error| not_encrypted(&endpoint.address, &error))?;
        let mut client = PostgresClient::open(&endpoint.address, &self.settings, config).await?;
        // The attempt has a limit as a whole.
        client.line.timeout = Duration::MAX;
        let rows = client.simple_query(self.question()).await?;
        client.line.timeout = self.settings.timeout;
        match (rows.text(0, 0), rows.text(0, 1)) {
            (Some(recovery), Some(read_only)) => Ok((client, (recovery, read_only) == ("f", "off"))),
            _ => {
                let message = format!("{}: no answer to whether it takes writes", endpoint.address);
                Err(failure(ErrorClass::Other, true, message))
            }
        }
    }
}

impl AskPostgres {
    /// Whether the server is in recovery, and whether it refuses writes. Another database knows of no recovery.
    fn question(&self) -> &'static str {
        match self.settings.is_compatible {
            false => "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')",
            true => "SELECT 'f', current_setting('transaction_read_only')",
        }
    }
}

impl PostgresConnector {
    /// A connector that knows no leader yet.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, settings: Settings) -> Self {
        let config = settings.encryption.client_config();
        let connect_timeout = settings.connect_timeout;
        Self::asking(AskPostgres { settings, config }, endpoints, connect_timeout)
    }

    /// The same to all servers that take writes, client by client in turn.
    #[must_use]
    pub fn spread(self) -> Self {
        self.spread_out()
    }
}
