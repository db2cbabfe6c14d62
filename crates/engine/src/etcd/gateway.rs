//! What the engine asks of a node through etcd's JSON gateway, one question on each connection.
//!
//! Owns the questions, in HTTP/1.0, whose answers end with the connection, and their words. The loads' clients have a
//! connection of their own kind.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Node;

/// The longest answer to anything that is asked here, bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// How a node sees itself and the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Its number.
    pub(super) member: String,
    /// The number of the one that leads, as far as it knows; empty where it knows of none.
    pub(super) leader: String,
    pub(super) term: u64,
    /// How far its log is applied.
    pub(super) applied: u64,
}

impl Status {
    pub(super) fn leads(&self) -> bool {
        self.member == self.leader
    }
}

pub(super) fn status(node: &dyn Node, port: u16, patience: Duration) -> io::Result<Status> {
    let answer = ask(node, port, "/v3/maintenance/status", &json!({}), patience)?;
    status_in(&answer).ok_or_else(|| io::Error::other(format!("an answer without its words: {answer}")))
}

fn status_in(answer: &Value) -> Option<Status> {
    let number = |name: &str| answer.get(name).map_or(Some(0), |number| number.as_str()?.parse().ok());
    Some(Status {
        member: answer.get("header")?.get("member_id")?.as_str()?.to_owned(),
        leader: answer.get("leader").map_or(Some(""), Value::as_str)?.to_owned(),
        term: number("raftTerm")?,
        applied: number("raftAppliedIndex")?,
    })
}

/// Asks the node that leads to hand that over to another, by its number.
pub(super) fn hand_over(node: &dyn Node, port: u16, to: &str, patience: Duration) -> io::Result<()> {
    let asked = json!({ "targetID": to });
    ask(node, port, "/v3/maintenance/transfer-leadership", &asked, patience).map(drop)
}

/// Writes one key, which waits for a majority.
pub(super) fn write(node: &dyn Node, port: u16, patience: Duration) -> io::Result<()> {
    // `holdfast` and `up`, in base64.
    let asked = json!({ "key": "aG9sZGZhc3Q=", "value": "dXA=" });
    ask(node, port, "/v3/kv/put", &asked, patience).map(drop)
}

fn ask(node: &dyn Node, port: u16, path: &str, body: &Value, patience: Duration) -> io::Result<Value> {
    let mut stream = node.connect(port, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    taken_apart(&answer)
}

/// What stands in an answer, whose end was the connection's.
fn taken_apart(answer: &[u8]) -> io::Result<Value> {
    let text = String::from_utf8_lossy(answer);
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "an answer that is no HTTP");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(malformed)?;
    let status = head.split(' ').nth(1).ok_or_else(malformed)?;
    if status != "200" {
        return Err(io::Error::other(format!("{status}: {}", body.trim())));
    }
    serde_json::from_str(body).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> io::Result<Value> {
        taken_apart(format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{body}").as_bytes())
    }

    #[test]
    fn a_node_s_status_is_read_and_what_is_zero_may_be_left_out() {
        let answer = told(
            r#"{"header":{"member_id":"33","raft_term":"2"},"version":"3.4.23","leader":"33","raftTerm":"2",
                "raftAppliedIndex":"4"}"#,
        );
        let status = status_in(&answer.expect("an answer")).expect("a status");
        let expected = Status { member: "33".to_owned(), leader: "33".to_owned(), term: 2, applied: 4 };
        assert_eq!(status, expected);
        assert!(status.leads());
        let alone = told(r#"{"header":{"member_id":"33"},"version":"3.4.23"}"#).expect("an answer");
        assert!(!status_in(&alone).expect("a status").leads(), "it knows of nobody who leads");
        assert_eq!(status_in(&serde_json::json!({ "leader": "33" })), None);
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert!(told("{").is_err() && taken_apart(b"").is_err() && taken_apart(b"SSH-2.0\r\n\r\n").is_err());
        let refused =
            taken_apart(b"HTTP/1.0 503 x\r\n\r\n{\"error\":\"etcdserver: no leader\"}").expect_err("503");
        assert_eq!(refused.to_string(), "503: {\"error\":\"etcdserver: no leader\"}");
    }
}
