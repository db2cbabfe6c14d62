//! How a session is opened by a program, and how its node is asked whether it takes writes.
//!
//! Owns the question. Which node is asked, when and how often is `leader_search`'s business.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use history::ErrorClass;
use rand::Rng;

use super::conversation::Conversation;
use super::keys::ProcessKeys;
use super::program::{Program, ProgramError, Settings};
use super::session::ProcessClient;
use super::words::{Open, Speaks};
use crate::connection::SessionError;
use crate::endpoint::{Address, Endpoint};
use crate::frames::failure;
use crate::leader_search::{Ask, LeaderSearch};
use crate::password::Password;
use crate::session::{ConnectError, Connected, Connector, FailedAttempt, Session};
use crate::sql::SqlSession as _;

/// What a session is opened with.
#[derive(Debug, Clone)]
pub struct Sessions {
    /// What is spoken over them.
    pub speaks: Speaks,
    /// The database's name.
    pub database: String,
    /// The user's name.
    pub user: String,
    /// The user's password, for servers that ask for it.
    pub password: Option<Password>,
    /// What the driver is to be given for each node, by the node's name.
    pub targets: BTreeMap<String, Target>,
    /// A question to SQL sessions that tells whether their node takes writes. A program may also say so itself when it opens
    /// a session; each node takes writes where neither says otherwise.
    pub takes_writes: Option<TakesWrites>,
    /// How long one call waits for its answer.
    pub timeout: Duration,
    /// How long one connection attempt may take at first.
    pub connect_timeout: Duration,
}

/// What a driver is given for a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Its URL, where the driver has one.
    pub url: String,
    /// Further options by name.
    pub options: BTreeMap<String, String>,
}

/// How a node tells that it takes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakesWrites {
    pub query: String,
    /// What its first cell is when it does, in any case of letters.
    pub is: Vec<String>,
}

/// Connects by a program. Shared by all clients of a load.
pub struct ProcessConnector {
    search: LeaderSearch<AskByProgram>,
    program: Rc<Begun>,
}

/// The program, started when it is first needed: only then is there an event loop.
struct Begun {
    settings: Settings,
    speaks: Speaks,
    program: RefCell<Option<Result<Rc<Program>, ProgramError>>>,
}

impl Begun {
    fn program(&self) -> Result<Rc<Program>, ProgramError> {
        self.program.borrow_mut().get_or_insert_with(|| Program::start(&self.settings, self.speaks)).clone()
    }

    async fn serving(&self) -> Result<Rc<Program>, ProgramError> {
        let program = self.program()?;
        program.serves().await?;
        Ok(program)
    }

    fn failure(&self) -> Option<ProgramError> {
        match &*self.program.borrow() {
            None => None,
            Some(Ok(program)) => program.failure(),
            Some(Err(error)) => Some(error.clone()),
        }
    }
}

/// An attempt at one node.
struct AskByProgram {
    sessions: Sessions,
    program: Rc<Begun>,
}

impl Ask for AskByProgram {
    type Opened = Session;

    fn session(opened: Session) -> Session {
        opened
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<(Session, bool), SessionError> {
        let sessions = &self.sessions;
        let peer = endpoint.address.to_string();
        let Address::Tcp { address, host } = &endpoint.address else {
            let message = format!("{peer}: a client program connects over TCP");
            return Err(failure(ErrorClass::Connection, true, message));
        };
        let program = self.program.serving().await.map_err(|error| no_program(&error))?;
        let plain = Target::default();
        let target = sessions.targets.get(&endpoint.node).unwrap_or(&plain);
        let open = Open {
            node: &endpoint.node,
            host: host.clone().unwrap_or_else(|| address.ip().to_string()),
            port: address.port(),
            user: &sessions.user,
            database: &sessions.database,
            password: sessions.password.as_ref().and_then(|password| password.at(&peer)),
            url: &target.url,
            options: &target.options,
            timeout_ms: u64::try_from(sessions.timeout.as_millis()).unwrap_or(u64::MAX),
        };
        let (conversation, takes_writes) = Conversation::open(Rc::clone(&program), peer, open).await?;
        let dialect = match sessions.speaks {
            Speaks::Sql(dialect) => dialect,
            Speaks::Keys => {
                let session = ProcessKeys::new(conversation, program.rewrites_lists());
                return Ok((Session::of_key_value(session), takes_writes));
            }
        };
        let mut session = ProcessClient::new(conversation, dialect);
        let takes_writes = match &sessions.takes_writes {
            Some(question) if takes_writes => {
                let rows = session.batch(&question.query).await?;
                let told = rows.text(0, 0).unwrap_or_default();
                question.is.iter().any(|one| one.eq_ignore_ascii_case(told))
            }
            _ => takes_writes,
        };
        Ok((Session::of_sql(session), takes_writes))
    }
}

fn no_program(error: &ProgramError) -> SessionError {
    failure(ErrorClass::Other, true, error.to_string())
}

impl ProcessConnector {
    /// To the node that takes writes, or to all that do, client by client in turn.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, settings: Settings, sessions: Sessions, is_spread: bool) -> Self {
        let connect_timeout = sessions.connect_timeout;
        let speaks = sessions.speaks;
        let program = Rc::new(Begun { settings, speaks, program: RefCell::default() });
        let asked = AskByProgram { sessions, program: Rc::clone(&program) };
        let search = LeaderSearch::asking(asked, endpoints, connect_timeout);
        Self { search: if is_spread { search.spread_out() } else { search }, program }
    }
}

impl Connector for ProcessConnector {
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(async move {
            // Its start is no attempt at any node.
            if let Err(error) = self.program.serving().await {
                let attempt = FailedAttempt { node: "client program".to_owned(), error: no_program(&error) };
                return Err(ConnectError { failed_attempts: vec![attempt], read_only_nodes: Vec::new() });
            }
            self.search.connect(rng).await
        })
    }

    fn failure(&self) -> Option<String> {
        self.program.failure().map(|error| error.to_string())
    }
}
