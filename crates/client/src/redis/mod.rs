//! Redis' protocol: one transaction after another over one connection, each a script that runs whole on the primary.
//!
//! Owns the session and when a write counts as acknowledged. What a transaction becomes is `transaction`'s, what an error
//! says `verdict`'s, the form on the line `resp`'s. Redis acknowledges a write before any replica has it: what a failover
//! loses then is the ledger's to tell. With [`Wait`] a write is acknowledged only once so many replicas have it.

mod resp;
mod transaction;
mod verdict;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use control::transaction::{Found, Operation};
use history::ErrorClass;

#[doc(hidden)]
pub use self::resp::read_any;
use self::resp::{Reader, Reply, RespError, write_command};
use self::transaction::{Answered, SCRIPT};
use self::verdict::{code_of, verdict};
use crate::connection::{Connection, SessionError, SessionFuture};
use crate::frames::{connected, failure};
use crate::key_value::{KeyValueSession, REFUSED};
use crate::leader::{LeaderConnector, LeaderSession};
use crate::password::Password;
use crate::reactor::{self, Socket};

/// How much is read at a time.
const READ_BYTES: usize = 16 << 10;

/// A key that nobody writes.
const NOBODYS_KEY: &str = "holdfast/nobody";

/// The code of a write that a primary refuses because it has too few replicas.
const NO_REPLICAS: &str = "NOREPLICAS";

/// The code of a write that too few replicas had in time.
pub const TOO_FEW_REPLICAS: &str = "WAIT";

/// What sessions of a load have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The user of the access control list; the server's default user where absent.
    pub user: Option<String>,
    /// The user's password, for servers that ask for it.
    pub password: Option<Password>,
    /// Whether a write is acknowledged by replicas.
    pub wait: Option<Wait>,
}

/// Redis' `WAIT` after each transaction that writes. Where fewer replicas answer in the time the transaction has
/// happened on the primary and may be lost with it: its outcome is indefinite. Source: Redis documentation, "WAIT".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// How many replicas must have it.
    pub replicas: u32,
    /// How long they may take; at least a millisecond, since Redis takes 0 for ever.
    pub timeout: Duration,
}

/// A session with one node.
pub struct RedisClient {
    line: Line,
    wait: Option<Wait>,
    /// What the script is called by, once it has been loaded.
    digest: String,
}

/// The connection: questions and answers in order.
struct Line {
    socket: Socket,
    reader: Reader,
    address: SocketAddr,
    timeout: Duration,
    /// A question broke off: what comes next would be the answer to that one.
    broken: bool,
}

/// Why no answer could be had.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Resp(#[from] RespError),
}

impl Line {
    /// Sends commands together and reads as many answers. From the first byte sent on, an error leaves open what happened.
    async fn ask(&mut self, commands: &[u8], answers: usize) -> Result<Vec<Reply>, SessionError> {
        let (address, timeout) = (self.address, self.timeout);
        if self.broken {
            return Err(failure(ErrorClass::Connection, true, format!("{address}: the session is broken")));
        }
        self.broken = true;
        match reactor::timeout(timeout, self.exchange(commands, answers)).await {
            Ok(Ok(replies)) => {
                self.broken = false;
                Ok(replies)
            }
            Ok(Err(error @ LineError::Io(_))) => {
                Err(failure(ErrorClass::Connection, false, format!("{address}: {error}")))
            }
            Ok(Err(error)) => Err(failure(ErrorClass::Other, false, format!("{address}: {error}"))),
            Err(_) => {
                let message = format!("{address}: no answer within {timeout:?}");
                Err(failure(ErrorClass::Timeout, false, message))
            }
        }
    }

    async fn exchange(&mut self, commands: &[u8], answers: usize) -> Result<Vec<Reply>, LineError> {
        self.socket.write_all(commands).await?;
        let mut replies = Vec::with_capacity(answers);
        let mut space = [0; READ_BYTES];
        loop {
            while let Some(reply) = self.reader.next()? {
                replies.push(reply);
                if replies.len() == answers {
                    return Ok(replies);
                }
            }
            let count = poll_fn(|context| self.socket.poll_read(context, &mut space)).await?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.reader.take(space.get(..count).unwrap_or_default());
            // A server that sends without end must not keep the thread to itself.
            reactor::yield_now().await;
        }
    }

    /// An error that the server answered with.
    fn refusal(&mut self, text: &str) -> SessionError {
        let code = code_of(text);
        let verdict = verdict(code);
        self.broken |= verdict.looks_elsewhere;
        let error = failure(verdict.class, verdict.definite, format!("{}: {text}", self.address));
        SessionError { code: Some(code.to_owned()), ..error }
    }

    fn senseless(&mut self) -> SessionError {
        self.broken = true;
        failure(ErrorClass::Other, false, format!("{}: an answer to something else", self.address))
    }
}

/// Appends a command of fixed words.
fn push(words: &[&str], commands: &mut Vec<u8>) {
    write_command(words.iter().map(|word| word.as_bytes()), commands);
}

impl RedisClient {
    async fn sign_in(&mut self, settings: &Settings) -> Result<(), SessionError> {
        let address = self.line.address.to_string();
        let Some(password) = settings.password.as_ref().and_then(|password| password.at(&address)) else {
            return Ok(());
        };
        let mut command = Vec::new();
        match &settings.user {
            Some(user) => push(&["AUTH", user, password], &mut command),
            None => push(&["AUTH", password], &mut command),
        }
        let answers = self.line.ask(&command, 1).await;
        let answers = answers.map_err(|error| SessionError { definite: true, ..error })?;
        match answers.as_slice() {
            [Reply::Error(text)] => Err(SessionError { definite: true, ..self.line.refusal(text) }),
            _ => Ok(()),
        }
    }

    /// Whether the node is a primary that takes writes, and able to run the script.
    async fn is_primary(&mut self) -> Result<bool, SessionError> {
        let mut commands = Vec::new();
        push(&["ROLE"], &mut commands);
        push(&["SCRIPT", "LOAD", SCRIPT], &mut commands);
        // A write that changes nothing: a primary without the replicas that it needs refuses it.
        push(&["DEL", NOBODYS_KEY], &mut commands);
        let answers = self.line.ask(&commands, 3).await?;
        match answers.as_slice() {
            [Reply::Error(text), ..] => Err(self.line.refusal(text)),
            [Reply::Array(_), _, Reply::Error(text)] if code_of(text) == NO_REPLICAS => Ok(false),
            [Reply::Array(role), loaded, _] => match (role.first().and_then(Reply::text), loaded) {
                (Some("master"), Reply::Error(text)) => Err(self.line.refusal(text)),
                (Some("master"), digest) => {
                    let digest = digest.text().map(ToOwned::to_owned);
                    self.digest = digest.ok_or_else(|| self.line.senseless())?;
                    Ok(true)
                }
                (Some("slave"), _) => Ok(false),
                _ => Err(self.line.senseless()),
            },
            _ => Err(self.line.senseless()),
        }
    }

    async fn carry_out(&mut self, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
        let address = self.line.address;
        let words = transaction::call(&self.digest, &operations)
            .map_err(|why| failure(ErrorClass::Other, true, format!("{address}: {why}")))?;
        let mut commands = Vec::new();
        write_command(words.iter().map(Vec::as_slice), &mut commands);
        let wait = self.wait.filter(|_| operations.iter().any(Operation::writes));
        if let Some(Wait { replicas, timeout }) = wait {
            let timeout_ms = timeout.as_millis().max(1);
            push(&["WAIT", &replicas.to_string(), &timeout_ms.to_string()], &mut commands);
        }
        let mut answers = self.line.ask(&commands, 1 + usize::from(wait.is_some())).await?.into_iter();
        let answered = match answers.next() {
            Some(Reply::Error(text)) => return Err(self.line.refusal(&text)),
            Some(reply) => transaction::answered(&operations, reply).ok_or_else(|| self.line.senseless())?,
            None => return Err(self.line.senseless()),
        };
        match answered {
            Answered::Refused { step, reason } => {
                let error = failure(ErrorClass::Other, true, format!("{address}: step {step}: {reason}"));
                Err(SessionError { code: Some(REFUSED.to_owned()), ..error })
            }
            Answered::Committed(found) => {
                if let Some(wait) = wait {
                    self.waited(wait, answers.next())?;
                }
                Ok(found)
            }
        }
    }

    /// Whether enough replicas have what was written.
    fn waited(&mut self, wait: Wait, answer: Option<Reply>) -> Result<(), SessionError> {
        let had = match answer {
            Some(Reply::Integer(had)) if had >= i64::from(wait.replicas) => return Ok(()),
            Some(Reply::Integer(had)) => had,
            // Whatever the error proves of a command that was refused: the write before it was not.
            Some(Reply::Error(text)) => {
                return Err(SessionError { definite: false, ..self.line.refusal(&text) });
            }
            _ => return Err(self.line.senseless()),
        };
        let Wait { replicas, timeout } = wait;
        let message =
            format!("{}: {had} of {replicas} replicas had the write within {timeout:?}", self.line.address);
        let error = failure(ErrorClass::Timeout, false, message);
        Err(SessionError { code: Some(TOO_FEW_REPLICAS.to_owned()), ..error })
    }
}

impl KeyValueSession for RedisClient {
    fn transact(&mut self, operations: Vec<Operation>) -> SessionFuture<'_, Vec<Found>> {
        Box::pin(self.carry_out(operations))
    }
}

impl LeaderSession for RedisClient {
    const NAME: &'static str = "Redis";

    type Settings = Settings;

    async fn connect(
        address: SocketAddr,
        settings: &Settings,
        timeout: Duration,
    ) -> Result<Self, SessionError> {
        let socket = connected(address, timeout).await?;
        let line = Line { socket, reader: Reader::default(), address, timeout, broken: false };
        let mut client = Self { line, wait: settings.wait, digest: String::new() };
        client.sign_in(settings).await?;
        Ok(client)
    }

    async fn leads(&mut self) -> Result<bool, SessionError> {
        // Nothing has been asked yet that could change anything.
        self.is_primary().await.map_err(|error| SessionError { definite: true, ..error })
    }
}

impl Connection for RedisClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.line.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.line.broken
    }
}

/// Connects to whichever of its endpoints is a primary by its own word. Shared by all clients of a load. A primary that
/// the others have left calls itself one still, as it does to every client that does not ask Sentinel, unless
/// `min-replicas-to-write` has it refuse writes.
pub type RedisConnector = LeaderConnector<RedisClient>;
