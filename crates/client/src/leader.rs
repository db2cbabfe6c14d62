//! Databases of keys and values whose nodes elect a leader: how clients connect to it.
//!
//! Owns no protocol: what a session asks, and how a node says that it leads, is each protocol's own.

use std::net::SocketAddr;
use std::time::Duration;

use history::ErrorClass;

use crate::connection::SessionError;
use crate::endpoint::{Address, Endpoint};
use crate::frames::failure;
use crate::key_value::KeyValueSession;
use crate::leader_search::{Ask, LeaderSearch};
use crate::session::Session;

/// A session with one node of such a database.
pub trait LeaderSession: KeyValueSession + Sized + 'static {
    /// The database, as it stands in messages: `the control database`.
    const NAME: &'static str;

    /// What all sessions of a load have in common beside their time limits.
    type Settings: 'static;

    /// A session with the node at `address`. `timeout` is how long it waits for each answer, the first one included.
    fn connect(
        address: SocketAddr,
        settings: &Self::Settings,
        timeout: Duration,
    ) -> impl Future<Output = Result<Self, SessionError>>;

    /// Whether this node leads, by its own word.
    fn leads(&mut self) -> impl Future<Output = Result<bool, SessionError>>;
}

/// Connects to whichever of its endpoints leads. Shared by all clients of a load.
pub type LeaderConnector<S> = LeaderSearch<AskLeader<S>>;

/// An attempt at one node.
pub struct AskLeader<S: LeaderSession> {
    settings: S::Settings,
    timeout: Duration,
}

impl<S: LeaderSession> Ask for AskLeader<S> {
    type Opened = S;

    fn session(opened: S) -> Session {
        Session::of_key_value(opened)
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<(S, bool), SessionError> {
        let Address::Tcp { address, .. } = endpoint.address else {
            let message = format!("{}: {} listens on TCP only", endpoint.address, S::NAME);
            return Err(failure(ErrorClass::Connection, true, message));
        };
        // The attempt has a limit as a whole.
        let mut session = S::connect(address, &self.settings, Duration::MAX).await?;
        let leads = session.leads().await?;
        session.set_timeout(self.timeout);
        Ok((session, leads))
    }
}

impl<S: LeaderSession> LeaderSearch<AskLeader<S>> {
    /// A connector that knows no leader yet.
    #[must_use]
    pub fn with(
        settings: S::Settings,
        endpoints: Vec<Endpoint>,
        timeout: Duration,
        connect_timeout: Duration,
    ) -> Self {
        let asked = AskLeader { settings, timeout };
        Self::asking(asked, endpoints, connect_timeout)
    }
}

impl<S: LeaderSession<Settings = ()>> LeaderSearch<AskLeader<S>> {
    /// A connector for sessions without settings.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, timeout: Duration, connect_timeout: Duration) -> Self {
        Self::with((), endpoints, timeout, connect_timeout)
    }
}
