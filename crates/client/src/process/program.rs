//! A program that speaks for clients: started once for a load, asked by all its sessions over one line, ended with it.
//!
//! Owns the process, the line and what belongs to which question. A program that breaks the rules is asked nothing more,
//! and its load ends: what it answered before cannot be told from nonsense.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::sync::watch;

use super::words::{Answer, Ask, Failure, Speaks, Tell, VERSION, What};
use crate::reactor::{Socket, Task, sleep, spawn, timeout};
use crate::wire::LARGEST_ANSWER_BYTES;

/// The longest line that a program may write: an answer has to fit.
const LONGEST_LINE_BYTES: usize = LARGEST_ANSWER_BYTES;
/// How long a program may usually take until it greets: a large virtual machine on a busy processor starts slowly.
pub const GREETING_WITHIN: Duration = Duration::from_secs(60);
/// How long the process of a line that has ended is waited for, to tell how it ended.
const END_WITHIN: Duration = Duration::from_secs(1);
const END_LOOKED_FOR_EVERY: Duration = Duration::from_millis(10);
/// How much of a line is shown.
const SHOWN_CHARACTERS: usize = 200;
/// Pieces that are read before others have their turn.
const READS_A_TURN: u32 = 16;
const PIECE_BYTES: usize = 64 << 10;
/// The number of the greeting.
const GREETING: u64 = 0;

/// Starts the program with this socket as its standard input and output.
pub type Starter = Arc<dyn Fn(OwnedFd) -> io::Result<Child> + Send + Sync>;

/// Is told of the process, so that what it costs can be accounted for.
pub trait Accountant: Send + Sync {
    /// A process with this number runs.
    fn begins(&self, process: u32);
    /// It has ended, and its number is good until this returns.
    fn ends(&self, process: u32);
}

/// How a program is started and greeted.
#[derive(Clone)]
pub struct Settings {
    /// As it is called in messages: `dbapi`.
    pub name: String,
    /// What starts it.
    pub starter: Starter,
    /// Its driver, in its own words.
    pub driver: String,
    /// The folder in which it finds what the driver consists of; empty where that is among the machine's.
    pub folder: String,
    /// Where its standard error goes, to be quoted.
    pub log: Option<PathBuf>,
    /// How long it may take until it greets.
    pub patience: Duration,
    /// Who accounts for it.
    pub accountant: Option<Arc<dyn Accountant>>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

/// Why a program is asked nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// It could not be started.
    #[error("the client program {name} could not be started: {why}")]
    NotStarted {
        /// The program.
        name: String,
        /// What the operating system answered, in words.
        why: String,
    },
    /// It did not greet in time.
    #[error("the client program {name} did not greet within {} ms", .waited.as_millis())]
    NoGreeting {
        /// The program.
        name: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// It says that it cannot do it.
    #[error("the client program {name} cannot serve: {why}")]
    Refused {
        /// The program.
        name: String,
        /// In its words.
        why: String,
    },
    /// It speaks another version of the protocol.
    #[error("the client program {name} speaks version {theirs} of the protocol, not {VERSION}")]
    OtherVersion {
        /// The program.
        name: String,
        /// What it speaks.
        theirs: u32,
    },
    /// It speaks of something else than the engine file says.
    #[error("the client program {name} does not speak {wanted}, by its own greeting")]
    SpeaksOther {
        /// The program.
        name: String,
        /// What it should speak.
        wanted: &'static str,
    },
    #[error("the client program {name} ended ({how}){said}")]
    Ended {
        /// The program.
        name: String,
        /// Its exit code or signal, in words.
        how: String,
        /// The last it wrote to its standard error, behind a colon.
        said: String,
    },
    /// It wrote what is no message.
    #[error("the client program {name} wrote what is no message of the protocol: {line}")]
    Garbage {
        /// The program.
        name: String,
        /// The line, or its beginning.
        line: String,
    },
    /// It wrote a line that is too long.
    #[error("the client program {name} wrote a line longer than {LONGEST_LINE_BYTES} bytes")]
    LineTooLong {
        /// The program.
        name: String,
    },
    /// It answered what was not asked, or has been answered already.
    #[error("the client program {name} answered question {ask}, which is not open: {line}")]
    NotAsked {
        /// The program.
        name: String,
        /// The number.
        ask: u64,
        /// The line, or its beginning.
        line: String,
    },
}

/// A question that is open.
#[derive(Default)]
pub(super) struct Question {
    answers: RefCell<VecDeque<Answer>>,
    waker: RefCell<Option<Waker>>,
}

impl Question {
    /// The next part of its answer.
    pub(super) fn poll_answer(&self, context: &Context<'_>) -> Poll<Answer> {
        if let Some(answer) = self.answers.borrow_mut().pop_front() {
            return Poll::Ready(answer);
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// What a program is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Starting,
    Serves,
    Over(ProgramError),
}

/// A program under way.
pub(super) struct Program {
    line: Rc<Line>,
    patience: Duration,
    _pump: Task,
}

/// The line to it, and what is open on it.
struct Line {
    name: String,
    process: RefCell<Process>,
    socket: Socket,
    outgoing: RefCell<BytesMut>,
    /// Who sends what there was no room for.
    sender: RefCell<Option<Waker>>,
    open: RefCell<BTreeMap<u64, Rc<Question>>>,
    /// Questions that nobody waits for any more; their answers may come all the same.
    given_up: RefCell<BTreeSet<u64>>,
    state: watch::Sender<State>,
    asks: Cell<u64>,
    sessions: Cell<u64>,
    /// What it is to speak.
    speaks: Speaks,
    /// Whether it writes a whole list again with each element, by its greeting.
    rewrites_lists: Cell<bool>,
}

impl Program {
    /// Starts it and sends the greeting; [`Program::serves`] waits for its answer.
    pub(super) fn start(settings: &Settings, speaks: Speaks) -> Result<Rc<Self>, ProgramError> {
        let failed = |error: io::Error| ProgramError::NotStarted {
            name: settings.name.clone(),
            why: error.to_string(),
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let socket = Socket::over(ours.into()).map_err(failed)?;
        let child = (settings.starter)(theirs.into()).map_err(failed)?;
        let line = Rc::new(Line {
            name: settings.name.clone(),
            process: RefCell::new(Process::new(child, settings)),
            socket,
            outgoing: RefCell::default(),
            sender: RefCell::default(),
            open: RefCell::default(),
            given_up: RefCell::default(),
            state: watch::Sender::new(State::Starting),
            asks: Cell::new(GREETING),
            sessions: Cell::new(0),
            speaks,
            rewrites_lists: Cell::new(false),
        });
        let greeting = What::Hello {
            protocol: VERSION,
            driver: &settings.driver,
            folder: &settings.folder,
            speaks: speaks.word(),
        };
        line.ask(None, greeting);
        let reading = Rc::clone(&line);
        let pump = spawn(async move { reading.pump().await });
        Ok(Rc::new(Self { line, patience: settings.patience, _pump: pump }))
    }

    /// Waits until it has greeted.
    pub(super) async fn serves(&self) -> Result<(), ProgramError> {
        let mut state = self.line.state.subscribe();
        let waited = self.patience;
        let greeted = timeout(waited, state.wait_for(|state| *state != State::Starting)).await;
        if greeted.is_err() {
            self.line.over(ProgramError::NoGreeting { name: self.line.name.clone(), waited });
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Why it is asked nothing any more; nothing as long as it is.
    pub(super) fn failure(&self) -> Option<ProgramError> {
        match &*self.line.state.borrow() {
            State::Over(error) => Some(error.clone()),
            State::Starting | State::Serves => None,
        }
    }

    /// Whether an append to a list writes all of it again, by the program's greeting.
    pub(super) fn rewrites_lists(&self) -> bool {
        self.line.rewrites_lists.get()
    }

    /// A number for a new session.
    pub(super) fn new_session(&self) -> u64 {
        self.line.sessions.set(self.line.sessions.get() + 1);
        self.line.sessions.get()
    }

    /// Asks something; the number by which it is given up, and where its answer comes.
    pub(super) fn ask(&self, session: u64, what: What<'_>) -> (u64, Rc<Question>) {
        self.line.ask(Some(session), what)
    }

    /// Nobody waits for this answer any more.
    pub(super) fn give_up(&self, ask: u64) {
        if self.line.open.borrow_mut().remove(&ask).is_some() {
            self.line.given_up.borrow_mut().insert(ask);
        }
    }

    /// Ends a session, whatever it is doing.
    pub(super) fn close(&self, session: u64) {
        if self.failure().is_some() {
            return;
        }
        self.line.say(&Ask { ask: None, session: Some(session), what: What::Close {} });
    }
}

impl Line {
    fn ask(&self, session: Option<u64>, what: What<'_>) -> (u64, Rc<Question>) {
        let number = self.asks.replace(self.asks.get() + 1);
        let question = Rc::new(Question::default());
        if let State::Over(error) = &*self.state.borrow() {
            question.answers.borrow_mut().push_back(gone(error));
            return (number, question);
        }
        self.open.borrow_mut().insert(number, Rc::clone(&question));
        self.say(&Ask { ask: Some(number), session, what });
        (number, question)
    }

    fn say(&self, message: &Ask<'_>) {
        // Texts, numbers and maps with names have a form in JSON.
        let Ok(text) = serde_json::to_vec(message) else { return };
        let mut outgoing = self.outgoing.borrow_mut();
        let is_first = outgoing.is_empty();
        outgoing.extend_from_slice(&text);
        outgoing.extend_from_slice(b"\n");
        // What fails here fails again where it is told.
        if is_first && let Ok(sent) = self.socket.try_write(&outgoing) {
            outgoing.advance(sent);
        }
        if !outgoing.is_empty()
            && let Some(sender) = &*self.sender.borrow()
        {
            sender.wake_by_ref();
        }
    }

    /// Sends and reads until the program breaks off or breaks the rules.
    async fn pump(&self) {
        let mut arrived = BytesMut::new();
        let mut searched = 0;
        let mut reads = 0;
        let error = poll_fn(|context| self.poll_pump(context, &mut arrived, &mut searched, &mut reads)).await;
        let error = match error {
            ProgramError::Ended { name, .. } => {
                let how = self.how_it_ended().await;
                ProgramError::Ended { name, how, said: self.process.borrow().said() }
            }
            other => other,
        };
        self.over(error);
    }

    /// How the process of a line that has ended did, in words.
    async fn how_it_ended(&self) -> String {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(how) = self.process.borrow_mut().ended() {
                return how;
            }
            if waited >= END_WITHIN {
                return "it closed the line and its process is still there".to_owned();
            }
            sleep(END_LOOKED_FOR_EVERY).await;
            waited += END_LOOKED_FOR_EVERY;
        }
    }

    fn poll_pump(
        &self,
        context: &mut Context<'_>,
        arrived: &mut BytesMut,
        searched: &mut usize,
        reads: &mut u32,
    ) -> Poll<ProgramError> {
        *self.sender.borrow_mut() = Some(context.waker().clone());
        if let Err(error) = self.send(context) {
            return Poll::Ready(error);
        }
        loop {
            *reads += 1;
            if *reads > READS_A_TURN {
                *reads = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let filled = arrived.len();
            arrived.resize(filled + PIECE_BYTES, 0);
            let read = self.socket.poll_read(context, arrived.get_mut(filled..).unwrap_or_default());
            let count = match read {
                Poll::Pending => {
                    arrived.truncate(filled);
                    *reads = 0;
                    return Poll::Pending;
                }
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(_)) => 0,
            };
            arrived.truncate(filled + count);
            if count == 0 {
                return Poll::Ready(self.broken_off());
            }
            while let Some(end) = arrived.iter().skip(*searched).position(|byte| *byte == b'\n') {
                let line = arrived.split_to(*searched + end + 1);
                *searched = 0;
                if let Err(error) = self.take(&line) {
                    return Poll::Ready(error);
                }
            }
            *searched = arrived.len();
            if *searched > LONGEST_LINE_BYTES {
                return Poll::Ready(ProgramError::LineTooLong { name: self.name.clone() });
            }
        }
    }

    fn send(&self, context: &mut Context<'_>) -> Result<(), ProgramError> {
        let mut outgoing = self.outgoing.borrow_mut();
        while !outgoing.is_empty() {
            match self.socket.poll_write(context, &outgoing) {
                Poll::Pending => break,
                Poll::Ready(Ok(sent)) => outgoing.advance(sent),
                Poll::Ready(Err(_)) => return Err(self.broken_off()),
            }
        }
        Ok(())
    }

    /// The line ended; how the process did is found out behind that.
    fn broken_off(&self) -> ProgramError {
        ProgramError::Ended { name: self.name.clone(), how: String::new(), said: String::new() }
    }

    /// Takes a line of the program in.
    fn take(&self, line: &[u8]) -> Result<(), ProgramError> {
        let name = || self.name.clone();
        let garbage = || ProgramError::Garbage { name: name(), line: shown(line) };
        let tell: Tell = serde_json::from_slice(line).map_err(|_| garbage())?;
        let ask = tell.ask;
        let answer = tell.answer().ok_or_else(garbage)?;
        let is_whole = !matches!(answer, Answer::More(_));
        if self.given_up.borrow().contains(&ask) {
            if is_whole {
                self.given_up.borrow_mut().remove(&ask);
            }
            return Ok(());
        }
        let question = match is_whole {
            true => self.open.borrow_mut().remove(&ask),
            false => self.open.borrow().get(&ask).cloned(),
        };
        let question =
            question.ok_or_else(|| ProgramError::NotAsked { name: name(), ask, line: shown(line) })?;
        if ask == GREETING {
            return self.greeted(answer);
        }
        question.answers.borrow_mut().push_back(answer);
        if let Some(waker) = question.waker.borrow_mut().take() {
            waker.wake();
        }
        Ok(())
    }

    fn greeted(&self, answer: Answer) -> Result<(), ProgramError> {
        let name = self.name.clone();
        match answer {
            Answer::Ok(ok) if ok.protocol != Some(VERSION) => {
                Err(ProgramError::OtherVersion { name, theirs: ok.protocol.unwrap_or_default() })
            }
            Answer::Ok(ok) if !self.speaks.is_met_by(ok.speaks.as_deref()) => {
                Err(ProgramError::SpeaksOther { name, wanted: self.speaks.name() })
            }
            Answer::Ok(ok) => {
                self.rewrites_lists.set(ok.rewrites_lists);
                self.state.send_replace(State::Serves);
                Ok(())
            }
            Answer::More(_) | Answer::Refused(_) => {
                Err(ProgramError::Refused { name, why: "its greeting is none".to_owned() })
            }
            Answer::Failed(failure) | Answer::Unknown(failure) => {
                Err(ProgramError::Refused { name, why: failure.text })
            }
        }
    }

    /// Nothing is asked any more; whoever waits is told.
    fn over(&self, error: ProgramError) {
        let is_first = self.state.send_if_modified(|state| {
            let is_first = !matches!(state, State::Over(_));
            if is_first {
                *state = State::Over(error.clone());
            }
            is_first
        });
        if !is_first {
            return;
        }
        self.outgoing.borrow_mut().clear();
        for question in std::mem::take(&mut *self.open.borrow_mut()).into_values() {
            question.answers.borrow_mut().push_back(gone(&error));
            if let Some(waker) = question.waker.borrow_mut().take() {
                waker.wake();
            }
        }
    }
}

/// What is answered to those who asked a program that is no more: nobody knows what it did.
fn gone(error: &ProgramError) -> Answer {
    Answer::Unknown(Failure { class: super::words::Class::Connection, code: None, text: error.to_string() })
}

/// A line's beginning, for people.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut begin: String = text.trim_end().chars().take(SHOWN_CHARACTERS).collect();
    if begin.len() < text.trim_end().len() {
        begin.push_str("...");
    }
    begin.escape_debug().to_string()
}

/// The process, ended when this goes.
struct Process {
    child: Child,
    log: Option<PathBuf>,
    accountant: Option<Arc<dyn Accountant>>,
    how: Option<String>,
}

impl Process {
    fn new(child: Child, settings: &Settings) -> Self {
        if let Some(accountant) = &settings.accountant {
            accountant.begins(child.id());
        }
        Self { child, log: settings.log.clone(), accountant: settings.accountant.clone(), how: None }
    }

    /// Takes what it has cost, as long as its number is its own.
    fn account(&mut self) {
        if let Some(accountant) = self.accountant.take() {
            accountant.ends(self.child.id());
        }
    }

    /// How it ended, in words; nothing while it runs. Its line has ended.
    fn ended(&mut self) -> Option<String> {
        self.account();
        if self.how.is_none() {
            self.how = self.child.try_wait().ok().flatten().map(|status| status.to_string());
        }
        self.how.clone()
    }

    /// The last that it wrote to its standard error, behind a colon.
    fn said(&self) -> String {
        let text = self.log.as_ref().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map(|line| format!(": {}", shown(line.as_bytes()))).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.account();
        if self.how.is_none() {
            // One that has just ended is reaped all the same.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
