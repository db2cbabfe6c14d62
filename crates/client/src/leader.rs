//! Databases of keys and values whose nodes elect a leader: the search for it.
//!
//! Owns no protocol: what a session asks, and how a node says that it leads, is each protocol's own.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use history::ErrorClass;
use rand::Rng;
use rand::seq::SliceRandom;

use crate::frames::failure;
use crate::key_value::KeyValueSession;
use crate::postgres::{Address, Endpoint};
use crate::session::{ConnectError, Connected, FailedAttempt, SessionError, SqlConnector};
use crate::without_sql::{NoSql, WithoutSql};

/// How long one node may take to say whether it leads; the nodes are asked one after another.
const ROLE_PATIENCE: Duration = Duration::from_millis(500);

/// A session with one node of such a database.
pub trait LeaderSession: KeyValueSession + Sized + 'static {
    /// The database, as it stands in messages: `the control database`.
    const NAME: &'static str;

    /// A session with the node at `address`. `timeout` is how long it waits for each answer, the first one included.
    fn connect(address: SocketAddr, timeout: Duration) -> impl Future<Output = Result<Self, SessionError>>;

    /// Whether this node leads, by its own word.
    fn leads(&mut self) -> impl Future<Output = Result<bool, SessionError>>;

    /// The node's address.
    fn address(&self) -> SocketAddr;

    /// How long every later answer is waited for.
    fn set_timeout(&mut self, timeout: Duration);

    /// Whether the session can be used no more.
    fn is_broken(&self) -> bool;
}

/// Connects to whichever of its endpoints leads. Shared by all clients of a load.
pub struct LeaderConnector<S> {
    endpoints: Vec<Endpoint>,
    timeout: Duration,
    connect_timeout: Duration,
    last_leader: Cell<Option<usize>>,
    session: std::marker::PhantomData<S>,
}

impl<S: LeaderSession> LeaderConnector<S> {
    /// A connector that knows no leader yet.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, timeout: Duration, connect_timeout: Duration) -> Self {
        Self {
            endpoints,
            timeout,
            connect_timeout,
            last_leader: Cell::new(None),
            session: std::marker::PhantomData,
        }
    }

    async fn round(&self, rng: &mut dyn Rng) -> Result<Connected, ConnectError> {
        let first = self.last_leader.take();
        let mut order: Vec<usize> = (0..self.endpoints.len()).filter(|index| Some(*index) != first).collect();
        order.shuffle(rng);
        let (mut failed_attempts, mut read_only_nodes) = (Vec::new(), Vec::new());
        for index in first.into_iter().chain(order) {
            let Some(Endpoint { node, address }) = self.endpoints.get(index) else { continue };
            let asked = async {
                let Address::Tcp { address, .. } = address else {
                    let message = format!("{address}: {} listens on TCP only", S::NAME);
                    return Err(failure(ErrorClass::Connection, true, message));
                };
                let mut session = S::connect(*address, self.connect_timeout.min(ROLE_PATIENCE)).await?;
                let leads = session.leads().await?;
                LeaderSession::set_timeout(&mut session, self.timeout);
                Ok((session, leads))
            };
            match asked.await {
                Ok((session, true)) => {
                    self.last_leader.set(Some(index));
                    let session = Box::new(WithoutSql(session));
                    return Ok(Connected { session, node: node.clone(), failed_attempts });
                }
                Ok((_, false)) => read_only_nodes.push(node.clone()),
                Err(error) => failed_attempts.push(FailedAttempt { node: node.clone(), error }),
            }
        }
        Err(ConnectError { failed_attempts, read_only_nodes })
    }
}

impl<S: LeaderSession> SqlConnector for LeaderConnector<S> {
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(self.round(rng))
    }
}

impl<S: LeaderSession> NoSql for S {
    fn no_sql(&self) -> SessionError {
        failure(ErrorClass::Other, true, format!("{}: {} speaks no SQL", self.address(), S::NAME))
    }

    fn key_value(&mut self) -> Option<&mut dyn KeyValueSession> {
        Some(self)
    }

    fn set_timeout(&mut self, timeout: Duration) {
        LeaderSession::set_timeout(self, timeout);
    }

    fn is_broken(&self) -> bool {
        LeaderSession::is_broken(self)
    }
}
