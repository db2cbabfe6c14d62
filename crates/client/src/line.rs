//! One socket to one server, over which a question and its answer go at a time: what sessions of SQL have in common.
//!
//! Owns patience, and what is known of a question that could not be asked, broke off or was not answered in time. What is
//! asked and what an answer means is each protocol's.

use std::fmt::Display;
use std::future::Future;
use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use history::ErrorClass;

use crate::connection::SessionError;
use crate::frames::failure;
use crate::patience::Patience;
use crate::reactor;
use crate::wire::Wire;

/// The socket of a session.
pub(crate) struct Line {
    pub(crate) wire: Wire,
    /// Where it is connected to, for messages.
    pub(crate) peer: String,
    /// How long each answer is waited for.
    pub(crate) timeout: Duration,
    /// A question broke off: what comes next would be the answer to that one.
    pub(crate) broken: bool,
    patience: Patience,
}

/// How the reading of an answer ended.
pub(crate) enum Ended<T> {
    Whole(T),
    /// The connection is gone.
    Broken(io::Error),
    /// It can be waited for no longer.
    TooLate,
}

impl<T> Ended<T> {
    /// How it ended within a time limit.
    pub(crate) fn of(read: Result<io::Result<T>, reactor::Elapsed>) -> Ended<T> {
        match read {
            Ok(Ok(answer)) => Ended::Whole(answer),
            Ok(Err(error)) => Ended::Broken(error),
            Err(_) => Ended::TooLate,
        }
    }
}

impl Line {
    pub(crate) fn new(wire: Wire, peer: String, timeout: Duration) -> Line {
        Line { wire, peer, timeout, broken: false, patience: Patience::default() }
    }

    /// What a look for an answer to what was asked at `moment` came to; pending while it may still come.
    pub(crate) fn poll_ended<T>(
        &mut self,
        read: Poll<io::Result<T>>,
        moment: Instant,
        context: &mut Context<'_>,
    ) -> Poll<Ended<T>> {
        match read {
            Poll::Ready(Ok(answer)) => Poll::Ready(Ended::Whole(answer)),
            Poll::Ready(Err(error)) => Poll::Ready(Ended::Broken(error)),
            Poll::Pending => self.patience.poll_over(moment, self.timeout, context).map(|()| Ended::TooLate),
        }
    }

    /// Nothing may be asked of a session that may still be answering an older question.
    pub(crate) fn refuse_if_broken(&mut self) -> Result<(), SessionError> {
        if !self.broken {
            return Ok(());
        }
        let error = self.not_sent(&"the session is broken");
        Err(SessionError { class: ErrorClass::Connection, ..error })
    }

    /// A call that failed before a byte left.
    pub(crate) fn not_sent(&mut self, why: &dyn Display) -> SessionError {
        self.wire.forget_outgoing();
        failure(ErrorClass::Other, true, format!("{}: not sent: {why}", self.peer))
    }

    /// The answer did not come in time.
    pub(crate) fn too_late(&self, definite: bool) -> SessionError {
        let message = format!("{}: no answer within {} ms", self.peer, self.timeout.as_millis());
        failure(ErrorClass::Timeout, definite, message)
    }

    /// The connection went before the answer was whole.
    pub(crate) fn cut(&self, error: &io::Error, definite: bool) -> SessionError {
        failure(ErrorClass::Connection, definite, format!("{}: {error}", self.peer))
    }
}

/// An attempt to connect, within this time.
pub(crate) async fn connected_within<S>(
    limit: Duration,
    peer: &impl Display,
    attempt: impl Future<Output = Result<S, SessionError>>,
) -> Result<S, SessionError> {
    reactor::timeout(limit, attempt).await.unwrap_or_else(|_| {
        let message = format!("{peer}: no connection within {} ms", limit.as_millis());
        Err(failure(ErrorClass::Connection, true, message))
    })
}
