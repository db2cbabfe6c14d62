//! Our own client for Cassandra's CQL: one socket, no task of its own, one request and one answer at a time.
//!
//! Owns the session: what is sent, what is read, and what each answer means for a write. Statements of a load are prepared;
//! answers are handed on as text. Version 4 of the protocol, which every Cassandra since 2.2 speaks. Sessions are not
//! encrypted.

mod answer;
mod discover;
mod frames;
mod ring;
mod session;
mod statement;
mod topology;
mod values;
mod verdict;

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use history::ErrorClass;
use scylla_cql_core::frame::response::error::Error as Refusal;

#[doc(hidden)]
pub use self::answer::read_any;
use self::answer::{PreparedAnswer, Said, read};
pub use self::discover::CqlConnector;
use self::frames::{Terms, next_frame, write_plain, write_query, write_startup};
pub use self::ring::{Ring, own_address};
use self::statement::{Effect, Source, effect_of, quoted_name};
use self::values::Kind;
use self::verdict::Worth;
use crate::frames::failure;
use crate::line::{Ended, Line, connected_within};
use crate::password::Password;
use crate::wire::{Wire, invalid};
use crate::{Rows, SessionError};

/// How often in a row a node may say that it cannot serve before a client goes to another, as drivers do.
const DOUBTS_MAX: u32 = 3;

/// The level NODE_LOCAL in a frame: `ConsistencyLevel` of Cassandra 5.0. No driver's enumeration has it.
const NODE_LOCAL: u16 = 0x000B;

/// By how many replicas a read or a write must be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Any one replica.
    One,
    /// One in the data centre of the node that is asked.
    LocalOne,
    /// A majority of all.
    Quorum,
    /// A majority of those in the data centre of the node that is asked.
    LocalQuorum,
    /// Every replica.
    All,
    /// Reads only: by a majority that first finishes every lightweight transaction under way.
    Serial,
    /// The node that is asked alone: what is read comes from its own copy, and what is written goes to no other. Cassandra
    /// refuses it unless it was started with `cassandra.enable_nodelocal_queries`, and for statements about other than rows.
    NodeLocal,
}

impl Consistency {
    fn number(self) -> u16 {
        use scylla_cql_core::frame::types::Consistency as Known;
        let known = match self {
            Consistency::One => Known::One,
            Consistency::LocalOne => Known::LocalOne,
            Consistency::Quorum => Known::Quorum,
            Consistency::LocalQuorum => Known::LocalQuorum,
            Consistency::All => Known::All,
            Consistency::Serial => Known::Serial,
            Consistency::NodeLocal => return NODE_LOCAL,
        };
        known as u16
    }
}

/// Whose clock gives a plain write its time, by which the last one wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// The client's, as drivers do it by default.
    #[default]
    Client,
    /// That of the node that is asked.
    Coordinator,
}

/// Who connects, what it asks of replicas, and how patient it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub keyspace: String,
    /// The keyspace's replicas in each data centre, where it is to be made if it is missing; a data centre of fewer nodes
    /// has one on each.
    pub replicas: Option<u32>,
    /// The user's name.
    pub user: String,
    /// The user's password, for servers that ask for it.
    pub password: Option<Password>,
    pub reads: Consistency,
    /// Of reads of a whole table, where too few replicas are there for `reads`.
    pub reads_otherwise: Option<Consistency>,
    /// Of writes; of a conditional write, of its end.
    pub writes: Consistency,
    /// Whose clock says which of two plain writes is the later one.
    pub timestamps: Timestamps,
    /// How long one call waits for its answer.
    pub timeout: Duration,
    /// How long one connection attempt may take.
    pub connect_timeout: Duration,
}

/// A session with one node.
pub struct CqlClient {
    line: Line,
    reads: Consistency,
    reads_otherwise: Option<Consistency>,
    writes: Consistency,
    timestamps: Timestamps,
    /// How often in a row its node could not serve.
    doubts: u32,
    statements: Vec<Prepared>,
    asked: OpenRequest,
    rows: Rows,
}

struct Prepared {
    source: Source,
    answer: PreparedAnswer,
}

/// The question that is open, or was last.
struct OpenRequest {
    effect: Effect,
    /// The statement, whose columns are known.
    statement: Option<usize>,
    moment: Instant,
    sent_anything: bool,
    /// Whether all of it is on its way.
    sent: bool,
}

impl CqlClient {
    /// Connects, and signs in.
    ///
    /// # Errors
    /// When the node cannot be reached or refuses, within `settings.connect_timeout`. Always definite.
    pub async fn connect(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        connected_within(settings.connect_timeout, &address, Self::open(address, settings)).await
    }

    /// Connects, however long it takes. The keyspace is not chosen yet.
    async fn open(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        let broken =
            |failed: io::Error| failure(ErrorClass::Connection, true, format!("{address}: {failed}"));
        let wire = Wire::connect_tcp(address, settings.timeout).await.map_err(broken)?;
        let asked = OpenRequest {
            effect: Effect::Read,
            statement: None,
            moment: Instant::now(),
            sent_anything: false,
            sent: true,
        };
        let mut client = Self {
            line: Line::new(wire, address.to_string(), Duration::MAX),
            reads: settings.reads,
            reads_otherwise: settings.reads_otherwise,
            writes: settings.writes,
            timestamps: settings.timestamps,
            doubts: 0,
            statements: Vec::new(),
            asked,
            rows: Rows::default(),
        };
        client.sign_in(settings).await?;
        client.line.timeout = settings.timeout;
        Ok(client)
    }

    async fn sign_in(&mut self, settings: &Settings) -> Result<(), SessionError> {
        write_startup(&mut self.line.wire.outgoing);
        let mut said = self.exchange(Effect::Read).await?;
        if let Said::Authenticate(class) = &said {
            // A password in clear text is for nobody else.
            if !class.ends_with("PasswordAuthenticator") {
                let message = format!(
                    "{}: authentication by {class} is not supported, only PasswordAuthenticator",
                    self.line.peer
                );
                return Err(failure(ErrorClass::Other, true, message));
            }
            let password = settings.password.as_ref().and_then(|password| password.at(&self.line.peer));
            write_plain(&settings.user, password.unwrap_or_default(), &mut self.line.wire.outgoing);
            said = self.exchange(Effect::Read).await?;
        }
        match said {
            Said::Ready | Said::Authenticated => Ok(()),
            other => Err(self.senseless(&other)),
        }
    }

    /// Chooses the keyspace of later statements.
    async fn choose_keyspace(&mut self, keyspace: &str) -> Result<(), SessionError> {
        self.ask_about_itself(&format!("USE {}", quoted_name(keyspace))).await
    }

    /// Runs a statement as text.
    async fn query(&mut self, cql: &str) -> Result<Said, SessionError> {
        let effect = effect_of(cql);
        self.query_on_terms(cql, effect, self.terms(effect)).await
    }

    /// Asks a node what concerns it and the session alone, whatever is asked of replicas; its rows lie in `self.rows`.
    async fn ask_about_itself(&mut self, cql: &str) -> Result<(), SessionError> {
        let terms = Terms { consistency: Consistency::One.number(), ..Terms::default() };
        self.query_on_terms(cql, Effect::Read, terms).await.map(drop)
    }

    async fn query_on_terms(
        &mut self,
        cql: &str,
        effect: Effect,
        terms: Terms<'_>,
    ) -> Result<Said, SessionError> {
        self.line.refuse_if_broken()?;
        write_query(cql, terms, &mut self.line.wire.outgoing);
        self.exchange(effect).await
    }

    /// Sends what is in the outgoing buffer and reads the answer to it.
    async fn exchange(&mut self, effect: Effect) -> Result<Said, SessionError> {
        self.begin(effect, None, Instant::now());
        let ended = poll_fn(|context| self.poll_whole(context)).await;
        self.finish(ended)
    }

    /// Opens the exchange of what is in the outgoing buffer, put there at `now`, for its answer.
    fn begin(&mut self, effect: Effect, statement: Option<usize>, now: Instant) {
        self.asked = OpenRequest { effect, statement, moment: now, sent_anything: false, sent: false };
        self.line.wire.begin_answer();
        self.rows = Rows::default();
        // Whoever turns away halfway leaves a session whose next answer belongs to another question.
        self.line.broken = true;
    }

    /// Sends and reads until the answer is whole or can be waited for no longer.
    fn poll_whole(&mut self, context: &mut Context<'_>) -> Poll<Ended<Said>> {
        let read = self.poll_read(context);
        self.line.poll_ended(read, self.asked.moment, context)
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Said>> {
        if !self.asked.sent {
            ready!(self.line.wire.poll_send(context, &mut self.asked.sent_anything))?;
            self.asked.sent = true;
        }
        loop {
            if let Some((stream, said)) = self.next_said()? {
                let of_this = stream == 0;
                return Poll::Ready(if of_this { Ok(said) } else { Err(of_another()) });
            }
            ready!(self.line.wire.poll_fill(context))?;
        }
    }

    /// The next answer that has arrived whole, and the stream that it belongs to.
    fn next_said(&mut self) -> io::Result<Option<(i16, Said)>> {
        let Some(frame) = next_frame(&mut self.line.wire)? else { return Ok(None) };
        let statement = self.asked.statement.and_then(|statement| self.statements.get(statement));
        let known: &[Kind] = statement.map_or(&[], |statement| &statement.answer.columns);
        let said = read(frame.head, self.line.wire.at(&frame.place), known, &mut self.rows)?;
        Ok(Some((frame.head.stream, said)))
    }

    /// Turns what was read, and how the reading ended, into the call's result. Rows lie in `self.rows`.
    fn finish(&mut self, ended: Ended<Said>) -> Result<Said, SessionError> {
        self.line.wire.forget_outgoing();
        let unsettled = self.asked.effect != Effect::Read && self.asked.sent_anything;
        match ended {
            Ended::Whole(Said::Refused(refusal)) => Err(self.refused(&refusal)),
            Ended::Whole(said) => {
                self.line.broken = false;
                self.doubts = 0;
                let affected = match (self.asked.effect, &said) {
                    // The first column says whether the condition held.
                    (Effect::ConditionalWrite, Said::Rows(_)) => {
                        u64::from(self.rows.text(0, 0) == Some("true"))
                    }
                    (Effect::Read, _) => self.rows.len() as u64,
                    (_, Said::Void) => 1,
                    _ => 0,
                };
                self.rows.set_affected(affected);
                Ok(said)
            }
            Ended::TooLate => Err(self.line.too_late(!unsettled)),
            Ended::Broken(error) => Err(self.line.cut(&error, !unsettled)),
        }
    }

    /// The server's error in answer to what is open.
    fn refused(&mut self, refusal: &Refusal) -> SessionError {
        let verdict = verdict::of(refusal, self.asked.effect);
        self.doubts = if verdict.session == Worth::Doubtful { self.doubts + 1 } else { 0 };
        self.line.broken = verdict.session == Worth::Nothing || self.doubts >= DOUBTS_MAX;
        let code = format!("{:#06x}", verdict::code_of(refusal));
        let message = format!("{}: {code} {}", self.line.peer, refusal.reason);
        SessionError { class: verdict.class, definite: verdict.definite, message, code: Some(code) }
    }

    fn senseless(&mut self, said: &Said) -> SessionError {
        self.line.broken = true;
        let message = format!("{}: an answer to something else: {said:?}", self.line.peer);
        failure(ErrorClass::Other, self.asked.effect == Effect::Read, message)
    }

    /// How a statement of this effect is carried out.
    fn terms(&self, effect: Effect) -> Terms<'static> {
        let is_read = effect == Effect::Read;
        // Lightweight transactions have an order of their own.
        let is_timed = matches!(effect, Effect::Write | Effect::Batch | Effect::UnloggedBatch)
            && self.timestamps == Timestamps::Client;
        Terms {
            consistency: if is_read { self.reads } else { self.writes }.number(),
            serial_consistency: (effect == Effect::ConditionalWrite).then(|| Consistency::Serial.number()),
            timestamp_us: is_timed.then(next_timestamp_us),
            ..Terms::default()
        }
    }
}

fn of_another() -> io::Error {
    invalid("an answer to another request")
}

/// The time by which the next write counts, as drivers give it by default: the clients' own clock, and never the same twice
/// on one thread. Else the clocks of nodes would decide which of two writes is the later one. From the first on it is the
/// monotonic clock that counts: were the machine's clock set back, the later of two loads' writes would be the older.
fn next_timestamp_us() -> i64 {
    static BEGUN: OnceLock<(i64, Instant)> = OnceLock::new();
    thread_local! {
        static LAST: Cell<i64> = const { Cell::new(0) };
    }
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let since_1970 = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (begun_us, begun) = BEGUN.get_or_init(|| (micros(since_1970()), Instant::now()));
    let next = begun_us.saturating_add(micros(begun.elapsed())).max(LAST.get() + 1);
    LAST.set(next);
    next
}
