//! etcd's protocol, version 3, over its JSON gateway: one transaction after another over one connection.
//!
//! Owns the session and what an error of etcd's says about a transaction. How operations become requests is `plan`'s, their
//! form `words`'.

mod plan;
mod words;

use std::net::SocketAddr;
use std::time::Duration;

use control::transaction::{Found, Operation};
use history::ErrorClass;
use serde::de::DeserializeOwned;

use self::plan::Plan;
use self::words::{Done, Refusal, Status, Txn};
use crate::connection::{Connection, SessionError, SessionFuture};
use crate::frames::failure;
use crate::http::{Answer, HttpConnection};
use crate::key_value::{KeyValueSession, REFUSED};
use crate::leader::{LeaderConnector, LeaderSession};

const TXN: &str = "/v3/kv/txn";
const STATUS: &str = "/v3/maintenance/status";

/// How often a transaction that met another is tried again at once, as etcd's own client does for its transactions.
const TRIES: u32 = 10;

/// What etcd says of a request that it did not propose because too many are under way. The other error of this
/// code, "database space exceeded", may come of a transaction that was carried out: where the quota is reached
/// while a proposal is under way, etcd applies it and answers with that (`quotaApplierV3` of its sources).
const TOO_MANY_REQUESTS: &str = "etcdserver: too many requests";

/// Codes of gRPC (its documentation, "Status codes and their use in gRPC").
const INVALID_ARGUMENT: i32 = 3;
const DEADLINE_EXCEEDED: i32 = 4;
const RESOURCE_EXHAUSTED: i32 = 8;
const FAILED_PRECONDITION: i32 = 9;
const UNIMPLEMENTED: i32 = 12;
const UNAVAILABLE: i32 = 14;

/// A session with one node.
pub struct EtcdClient {
    connection: HttpConnection,
}

impl EtcdClient {
    async fn ask<T: DeserializeOwned>(&mut self, path: &str, body: &[u8]) -> Result<T, SessionError> {
        let answer = self.connection.post(path, body).await?;
        if answer.status != 200 {
            return Err(refusal(self.connection.address, &answer));
        }
        serde_json::from_slice(&answer.body).map_err(|_| self.senseless())
    }

    async fn transaction(&mut self, txn: &Txn) -> Result<Done, SessionError> {
        let body = serde_json::to_vec(txn).map_err(|error| {
            failure(ErrorClass::Other, true, format!("{}: {error}", self.connection.address))
        })?;
        self.ask(TXN, &body).await
    }

    async fn carry_out(&mut self, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
        let address = self.connection.address;
        let plan = plan::plan(&operations)
            .map_err(|why| failure(ErrorClass::Other, true, format!("{address}: {why}")))?;
        match plan {
            Plan::Reading(txn) => {
                let done = self.transaction(&txn).await?;
                plan::found(&operations, &done).ok_or_else(|| self.senseless())
            }
            Plan::Writing(txn) => {
                let done = self.transaction(&txn).await?;
                if done.succeeded {
                    return plan::done(&operations, &done).ok_or_else(|| self.senseless());
                }
                let refused = plan::refused(&operations, &done).ok_or_else(|| self.senseless())?;
                Err(self.not_met(&refused))
            }
            Plan::ReadingFirst(keys) => self.read_and_write(&operations, &keys).await,
        }
    }

    async fn read_and_write(
        &mut self,
        operations: &[Operation],
        keys: &[String],
    ) -> Result<Vec<Found>, SessionError> {
        let reading = plan::reading_of(keys);
        for _ in 0..TRIES {
            // Nothing has been asked yet that could change anything.
            let read = self.transaction(&reading).await;
            let read = read.map_err(|error| SessionError { definite: true, ..error })?;
            let known = plan::known(keys, &read).ok_or_else(|| self.senseless())?;
            let (found, txn) =
                plan::carried_out(operations, &known).map_err(|refused| self.not_met(&refused))?;
            if self.transaction(&txn).await?.succeeded {
                return Ok(found);
            }
        }
        let message =
            format!("{}: others changed what was read, {TRIES} times in a row", self.connection.address);
        Err(failure(ErrorClass::Serialization, true, message))
    }

    fn not_met(&self, refused: &plan::Refused) -> SessionError {
        let message = format!("{}: step {}: {}", self.connection.address, refused.step, refused.reason);
        let code = Some(REFUSED.to_owned());
        SessionError { code, ..failure(ErrorClass::Other, true, message) }
    }

    fn senseless(&mut self) -> SessionError {
        self.connection.broken = true;
        let message = format!("{}: an answer to something else", self.connection.address);
        failure(ErrorClass::Other, false, message)
    }
}

/// What an answer that is none says. Only what etcd itself turned down before it was proposed certainly did not happen; a
/// node that lost its leader, or is out of time, may have proposed it.
fn refusal(address: SocketAddr, answer: &Answer) -> SessionError {
    let refusal: Refusal = serde_json::from_slice(&answer.body).unwrap_or_default();
    let words = if refusal.message.is_empty() { &refusal.error } else { &refusal.message };
    let of_etcd = words.starts_with("etcdserver: ");
    let (class, definite) = match refusal.code {
        UNAVAILABLE => (ErrorClass::ReadOnly, false),
        DEADLINE_EXCEEDED => (ErrorClass::Timeout, false),
        INVALID_ARGUMENT | FAILED_PRECONDITION => (ErrorClass::Other, of_etcd),
        RESOURCE_EXHAUSTED => (ErrorClass::Other, words.as_str() == TOO_MANY_REQUESTS),
        UNIMPLEMENTED => (ErrorClass::Other, true),
        _ => (ErrorClass::Other, false),
    };
    let words = if words.is_empty() { format!("HTTP status {}", answer.status) } else { words.clone() };
    let code = (refusal.code != 0).then(|| refusal.code.to_string());
    SessionError { code, ..failure(class, definite, format!("{address}: {words}")) }
}

impl KeyValueSession for EtcdClient {
    fn transact(&mut self, operations: Vec<Operation>) -> SessionFuture<'_, Vec<Found>> {
        Box::pin(self.carry_out(operations))
    }

    fn rewrites_lists(&self) -> bool {
        true
    }
}

impl LeaderSession for EtcdClient {
    const NAME: &'static str = "etcd";

    type Settings = ();

    async fn connect(address: SocketAddr, (): &(), timeout: Duration) -> Result<Self, SessionError> {
        Ok(Self { connection: HttpConnection::connect(address, timeout).await? })
    }

    async fn leads(&mut self) -> Result<bool, SessionError> {
        let status: Status = self.ask(STATUS, b"{}").await?;
        Ok(status.leader == status.header.member_id)
    }
}

impl Connection for EtcdClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.connection.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.connection.broken
    }
}

/// Connects to whichever of its endpoints leads. Any node would pass requests on; the leader answers them soonest, and is
/// where a fault that is aimed at it is felt. Shared by all clients of a load.
pub type EtcdConnector = LeaderConnector<EtcdClient>;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, class: ErrorClass, definite: bool) {
        let address = SocketAddr::from(([10, 0, 0, 1], 2379));
        let error = refusal(address, &Answer { status, body: body.as_bytes().to_vec() });
        assert_eq!((error.class, error.definite), (class, definite), "{body}");
    }

    #[test]
    fn only_what_etcd_turned_down_before_it_was_proposed_certainly_did_not_happen() {
        let too_much = r#"{"error":"etcdserver: duplicate key given in txn request","code":3}"#;
        check(400, too_much, ErrorClass::Other, true);
        check(429, r#"{"message":"etcdserver: too many requests","code":8}"#, ErrorClass::Other, true);
        let full = r#"{"message":"etcdserver: mvcc: database space exceeded","code":8}"#;
        check(429, full, ErrorClass::Other, false);
        let after = r#"{"message":"grpc: received message larger than max","code":8}"#;
        check(429, after, ErrorClass::Other, false);
        let timed_out = r#"{"message":"etcdserver: request timed out, possibly due to previous leader failure","code":14}"#;
        check(503, timed_out, ErrorClass::ReadOnly, false);
        check(503, r#"{"message":"etcdserver: no leader","code":14}"#, ErrorClass::ReadOnly, false);
        check(504, r#"{"message":"context deadline exceeded","code":4}"#, ErrorClass::Timeout, false);
        check(500, r#"{"message":"etcdserver: server stopped","code":2}"#, ErrorClass::Other, false);
        check(502, "<html>", ErrorClass::Other, false);
    }
}
