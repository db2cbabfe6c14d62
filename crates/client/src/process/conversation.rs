//! What a session of any kind asks of its program: one question at a time, how long its answer is waited for, and what an
//! error says of the session.
//!
//! Owns that. Whether a question may commit something is each kind of session's to say, and what an answer means.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use history::ErrorClass;

use super::program::{Program, Question};
use super::words::{self, Answer, Cell, Failure, Open, Refusal, What};
use crate::connection::SessionError;
use crate::frames::failure;
use crate::patience::Patience;

/// A session of the program with one node.
pub(super) struct Conversation {
    program: Rc<Program>,
    number: u64,
    /// Where it is connected to, for messages.
    pub(super) peer: String,
    pub(super) timeout: Duration,
    pub(super) broken: bool,
    /// Whether what was asked last can become permanent.
    may_commit: bool,
    asked: Option<OpenRequest>,
    patience: Patience,
}

/// The question that is open.
struct OpenRequest {
    number: u64,
    question: Rc<Question>,
    moment: Instant,
}

/// A part of an answer.
#[derive(Debug)]
pub(super) enum Reply {
    /// Rows, behind which more come.
    Page(Vec<Vec<Cell>>),
    /// All of it, or the last of it.
    Whole(words::Ok),
    /// A condition of the transaction's own was not met.
    Refused(Refusal),
}

impl Conversation {
    /// Opens a session with a node; and whether the program says that the node takes writes.
    pub(super) async fn open(
        program: Rc<Program>,
        peer: String,
        open: Open<'_>,
    ) -> Result<(Self, bool), SessionError> {
        let number = program.new_session();
        let timeout = Duration::from_millis(open.timeout_ms);
        let mut opened = Self {
            program,
            number,
            peer,
            timeout,
            broken: true,
            may_commit: false,
            asked: None,
            patience: Patience::default(),
        };
        opened.ask(What::Open(open), false, Instant::now());
        let reply = poll_fn(|context| opened.poll_reply(context)).await;
        match reply.map_err(|error| SessionError { definite: true, ..error })? {
            Reply::Whole(ok) => Ok((opened, ok.takes_writes.unwrap_or(true))),
            Reply::Page(_) | Reply::Refused(_) => Err(opened.senseless("something else than a session")),
        }
    }

    /// Asks something. The session must not be broken.
    pub(super) fn ask(&mut self, what: What<'_>, may_commit: bool, now: Instant) {
        let (number, question) = self.program.ask(self.number, what);
        self.asked = Some(OpenRequest { number, question, moment: now });
        self.may_commit = may_commit;
        // Whoever turns away halfway leaves a session whose next answer belongs to another question.
        self.broken = true;
    }

    /// The time limit, as it is told to the program.
    pub(super) fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// The next part of the answer to what was asked.
    pub(super) fn poll_reply(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply, SessionError>> {
        let Some(asked) = &self.asked else {
            return Poll::Ready(Err(self.not_sent("nothing was asked")));
        };
        let answer = match asked.question.poll_answer(context) {
            Poll::Ready(answer) => answer,
            Poll::Pending => {
                ready!(self.patience.poll_over(asked.moment, self.timeout, context));
                let number = asked.number;
                self.program.give_up(number);
                self.asked = None;
                let message = format!("{}: no answer within {} ms", self.peer, self.timeout.as_millis());
                return Poll::Ready(Err(failure(ErrorClass::Timeout, !self.may_commit, message)));
            }
        };
        Poll::Ready(self.judge(answer))
    }

    fn judge(&mut self, answer: Answer) -> Result<Reply, SessionError> {
        if let Answer::More(more) = answer {
            return Ok(Reply::Page(more.rows));
        }
        self.asked = None;
        match answer {
            Answer::Ok(ok) => {
                self.broken = false;
                Ok(Reply::Whole(ok))
            }
            Answer::Refused(refusal) => {
                self.broken = false;
                Ok(Reply::Refused(refusal))
            }
            Answer::Failed(told) => Err(self.failed(told, true)),
            Answer::Unknown(told) => Err(self.failed(told, !self.may_commit)),
            Answer::More(_) => Err(self.senseless("rows without a question")),
        }
    }

    fn failed(&mut self, told: Failure, definite: bool) -> SessionError {
        let class = ErrorClass::from(told.class);
        // One whose outcome nobody knows is not asked again: its transaction may still be at work.
        self.broken = !definite || matches!(class, ErrorClass::Connection | ErrorClass::Timeout);
        let code = told.code.filter(|code| !code.is_empty());
        let shown = code.as_ref().map(|code| format!("{code} ")).unwrap_or_default();
        let message = format!("{}: {shown}{}", self.peer, told.text);
        SessionError { class, definite, message, code }
    }

    /// A page has come: the next has the whole time limit of an answer.
    pub(super) fn wait_anew(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.moment = Instant::now();
        }
    }

    /// What came is no answer to what was asked: the session ends with it.
    pub(super) fn senseless(&mut self, what: &str) -> SessionError {
        if let Some(asked) = self.asked.take() {
            self.program.give_up(asked.number);
        }
        self.broken = true;
        let message = format!("{}: the client program answered with {what}", self.peer);
        failure(ErrorClass::Other, !self.may_commit, message)
    }

    /// Nothing may be asked of a session that may still be answering an older question.
    pub(super) fn refuse_if_broken(&self) -> Result<(), SessionError> {
        if !self.broken {
            return Ok(());
        }
        Err(SessionError { class: ErrorClass::Connection, ..self.not_sent("the session is broken") })
    }

    pub(super) fn not_sent(&self, why: &str) -> SessionError {
        failure(ErrorClass::Other, true, format!("{}: not sent: {why}", self.peer))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(asked) = &self.asked {
            self.program.give_up(asked.number);
        }
        self.program.close(self.number);
    }
}
