//! One connection over which frames of JSON go to and fro, a question and its answer at a time.
//!
//! Owns the connection, its patience and what is known of a question that broke off. The frames' form is the control
//! database's; what is asked, and what an answer means, is the sessions'.

use std::net::SocketAddr;
use std::time::Duration;

use control::wire::{self, WireError};
use history::ErrorClass;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connection::SessionError;
use crate::reactor::{self, Socket};

/// A connection with one node.
pub(crate) struct FramedConnection {
    socket: Socket,
    pub(crate) address: SocketAddr,
    /// How long each answer is waited for.
    pub(crate) timeout: Duration,
    /// A question broke off: what comes next would be the answer to that one.
    pub(crate) broken: bool,
}

impl FramedConnection {
    /// Connects within `timeout`.
    pub(crate) async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
        Ok(Self { socket: connected(address, timeout).await?, address, timeout, broken: false })
    }

    /// Asks one thing and reads its whole answer. From the first byte sent on, an error leaves open what happened.
    pub(crate) async fn converse<Tell: DeserializeOwned>(
        &mut self,
        ask: &impl Serialize,
    ) -> Result<Tell, SessionError> {
        let (address, timeout) = (self.address, self.timeout);
        if self.broken {
            let message = format!("{address}: the session is broken");
            return Err(failure(ErrorClass::Connection, true, message));
        }
        let frame = wire::encode(ask)
            .map_err(|error| failure(ErrorClass::Other, true, format!("{address}: {error}")))?;
        // Until the answer is whole; should this future be dropped before, the next answer would be this one's.
        self.broken = true;
        let exchange = async {
            self.socket.write_all(&frame).await?;
            let mut head = [0; 4];
            self.socket.read_exact(&mut head).await?;
            let mut body = vec![0; wire::length(head)?];
            self.socket.read_exact(&mut body).await?;
            wire::decode::<Tell>(&body)
        };
        match reactor::timeout(timeout, exchange).await {
            Ok(Ok(tell)) => {
                self.broken = false;
                Ok(tell)
            }
            Ok(Err(error @ WireError::Io(_))) => {
                Err(failure(ErrorClass::Connection, false, format!("{address}: {error}")))
            }
            Ok(Err(error)) => Err(failure(ErrorClass::Other, false, format!("{address}: {error}"))),
            Err(_) => {
                let message = format!("{address}: no answer within {timeout:?}");
                Err(failure(ErrorClass::Timeout, false, message))
            }
        }
    }

    /// What came is no answer to what was asked.
    pub(crate) fn senseless(&mut self) -> SessionError {
        self.broken = true;
        failure(ErrorClass::Other, false, format!("{}: an answer to something else", self.address))
    }
}

/// A socket connected within `timeout`.
pub(crate) async fn connected(address: SocketAddr, timeout: Duration) -> Result<Socket, SessionError> {
    let socket = match reactor::timeout(timeout, Socket::connect_tcp(address)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => {
            return Err(failure(ErrorClass::Connection, true, format!("{address}: {error}")));
        }
        Err(_) => {
            let message = format!("{address}: no connection within {timeout:?}");
            return Err(failure(ErrorClass::Timeout, true, message));
        }
    };
    // Without it answers still come, later.
    let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
    Ok(socket)
}

/// An error without a code of the database's own.
pub(crate) fn failure(class: ErrorClass, definite: bool, message: String) -> SessionError {
    SessionError { class, definite, message, code: None }
}
