//! Questions to a node as an engine file puts them: an HTTP request, a connection, a command, one in Redis' protocol or
//! MongoDB's, a statement in PostgreSQL's, in MySQL's or in CQL.
//!
//! Owns how they are asked and what of an answer is looked at. Each is asked within the node, on a connection of its own, in
//! HTTP/1.0, whose answers end with the connection. The loads' clients have connections of their own kind.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::path::PathBuf;
use std::time::Duration;

use capabilities::file::{Ask, Expect, How, Leads, Roles, Scope};
use serde_json::{Value, json};

use super::{cql, mongo, mysql, redis};
use crate::postgres::ask_once;
use crate::{Command, Node};

/// The longest answer to anything that is asked here, bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// The HTTP status of an answer that is one.
const OK: u16 = 200;

/// What is asked with.
pub(super) struct Means<'a> {
    /// Names in templates.
    pub(super) scope: &'a Scope,
    /// Programs by name, as nodes see them.
    pub(super) programs: &'a BTreeMap<String, PathBuf>,
    /// What commands have in their environment.
    pub(super) environment: &'a BTreeMap<String, String>,
    /// Ports by name.
    pub(super) ports: &'a BTreeMap<String, u16>,
    /// How long an answer may take.
    pub(super) patience: Duration,
}

/// Asks once; the answer, where it is as expected.
pub(super) fn ask(node: &dyn Node, ask: &Ask, means: &Means<'_>) -> io::Result<String> {
    let (status, answer) = match &ask.how {
        How::Tcp(port) => {
            node.connect(port_of(means, port)?, means.patience)?.shutdown(Shutdown::Both)?;
            return Ok(String::new());
        }
        How::Http { method, path, port, body } => {
            let body = body.as_ref().map(|body| body.filled(means.scope));
            let request = Request { method, path: path.filled(means.scope), body };
            request.send(node, port_of(means, port)?, means.patience)?
        }
        How::Redis { words, port } => {
            let words: Vec<String> = words.iter().flat_map(|word| word.all_filled(means.scope)).collect();
            let answer = redis::execute(node, port_of(means, port)?, &words, means.patience)?;
            (OK, answer.to_string())
        }
        How::Mysql { query, port, user } => {
            let query = query.filled(means.scope);
            let answer = mysql::execute(node, port_of(means, port)?, user, &query, means.patience)?;
            (OK, answer.to_string())
        }
        How::Postgres { query, port, user, database } => {
            let stream = node.connect(port_of(means, port)?, means.patience)?;
            let query = query.filled(means.scope);
            (OK, json!(ask_once(stream, user, database, &query, means.patience)?).to_string())
        }
        How::Cql { query, port, consistency } => {
            let query = query.filled(means.scope);
            let answer = cql::execute(node, port_of(means, port)?, &query, *consistency, means.patience)?;
            (OK, answer.to_string())
        }
        How::Mongo { command, port } => {
            let command = command.filled(means.scope);
            (OK, mongo::execute(node, port_of(means, port)?, &command, means.patience)?.to_string())
        }
        How::Command { program, arguments } => (OK, run(node, program, arguments, means)?),
    };
    as_expected(status, answer, &ask.expect, means.scope)
}

fn port_of(means: &Means<'_>, name: &str) -> io::Result<u16> {
    means.ports.get(name).copied().ok_or_else(|| io::Error::other(format!("no port is called {name}")))
}

fn run(
    node: &dyn Node,
    program: &str,
    arguments: &[capabilities::file::Template],
    means: &Means<'_>,
) -> io::Result<String> {
    let command = Command {
        program: means.programs.get(program).cloned().unwrap_or_default(),
        arguments: arguments.iter().flat_map(|argument| argument.all_filled(means.scope)).collect(),
        environment: means.environment.clone(),
    };
    let finished = node.run(&command).map_err(io::Error::other)?;
    if finished.status.success() {
        return Ok(finished.stdout);
    }
    let last = finished.stderr.lines().last().unwrap_or_default().to_owned();
    Err(io::Error::other(format!("{program} ended with {}: {last}", finished.status)))
}

fn as_expected(status: u16, answer: String, expect: &Expect, scope: &Scope) -> io::Result<String> {
    if status != expect.status.unwrap_or(OK) {
        return Err(io::Error::other(format!("{status}: {}", answer.trim())));
    }
    if let Some((path, values)) = &expect.field {
        let found = field(&in_json(&answer)?, path);
        if !found.as_ref().is_some_and(|found| values.contains(found)) {
            let found = found.unwrap_or_else(|| "not there".to_owned());
            return Err(io::Error::other(format!("{path} is {found}, not {}", values.join(" or "))));
        }
    }
    match expect.text.as_ref().map(|text| text.filled(scope)) {
        Some(text) if !answer.contains(&text) => {
            Err(io::Error::other(format!("no `{text}` in the answer: {}", answer.trim())))
        }
        _ => Ok(answer),
    }
}

fn in_json(answer: &str) -> io::Result<Value> {
    serde_json::from_str(answer)
        .map_err(|_| io::Error::other(format!("an answer that is not JSON: {}", answer.trim())))
}

/// A field of an answer as text; none where it is not there or is no single value.
fn field<'a>(answer: &'a Value, path: &str) -> Option<String> {
    let within = |value: &'a Value, step: &str| match value {
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    };
    match path.split('.').try_fold(answer, within)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// How a node sees itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) leads: bool,
    /// What the database calls the node; empty where the file does not say where that stands.
    pub(super) identity: String,
    /// How far it has got; 0 where that is not told.
    pub(super) position: u64,
}

pub(super) fn role(node: &dyn Node, roles: &Roles, means: &Means<'_>) -> io::Result<Role> {
    role_in(&in_json(&ask(node, &roles.ask, means)?)?, roles)
}

fn role_in(answer: &Value, roles: &Roles) -> io::Result<Role> {
    let identity = match &roles.identity {
        Some(path) => field(answer, path)
            .ok_or_else(|| io::Error::other(format!("an answer without `{path}`: {answer}")))?,
        None => String::new(),
    };
    let leads = match &roles.leads {
        Leads::Is(path, values) => field(answer, path).is_some_and(|found| values.contains(&found)),
        Leads::Same(one, other) => {
            let found = field(answer, one);
            found.is_some() && found == field(answer, other)
        }
    };
    let position = roles.position.iter().find_map(|path| field(answer, path)?.parse().ok());
    Ok(Role { leads, identity, position: position.unwrap_or(0) })
}

struct Request<'a> {
    method: &'a str,
    path: String,
    body: Option<String>,
}

impl Request<'_> {
    /// The status and the body of the answer.
    fn send(&self, node: &dyn Node, port: u16, patience: Duration) -> io::Result<(u16, String)> {
        let mut stream = node.connect(port, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(self.written().as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        taken_apart(&answer)
    }

    fn written(&self) -> String {
        let head = format!("{} {} HTTP/1.0\r\n", self.method, self.path);
        match &self.body {
            Some(body) => {
                format!(
                    "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            None => format!("{head}\r\n"),
        }
    }
}

/// The status and the body of an answer, whose end was the connection's.
fn taken_apart(answer: &[u8]) -> io::Result<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "an answer that is not HTTP");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(malformed)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(malformed)?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles_of(engine: &str) -> &'static Roles {
        capabilities::named(engine)
            .and_then(|engine| engine.file)
            .expect("an engine by file")
            .roles
            .as_ref()
            .expect("roles")
    }

    #[test]
    fn a_node_s_role_is_read_and_what_is_zero_may_be_left_out() {
        let told = |text: &str| role_in(&in_json(text).expect("JSON"), roles_of("etcd"));
        let answer = r#"{"header":{"member_id":"33","raft_term":"2"},"version":"3.4.23","leader":"33","raftTerm":"2",
            "raftAppliedIndex":"4"}"#;
        let expected = Role { leads: true, identity: "33".to_owned(), position: 4 };
        assert_eq!(told(answer).expect("a role"), expected);
        let alone = told(r#"{"header":{"member_id":"33"},"version":"3.4.23"}"#).expect("a role");
        assert!(!alone.leads, "it knows of nobody who leads");
        assert!(told(r#"{ "leader": "33" }"#).is_err());
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert!(taken_apart(b"").is_err() && taken_apart(b"SSH-2.0\r\n\r\n").is_err());
        let refused = taken_apart(b"HTTP/1.0 503 x\r\n\r\n{\"error\":\"no leader\"}").expect("HTTP");
        assert_eq!(refused, (503, "{\"error\":\"no leader\"}".to_owned()));
        let nothing = Scope::default();
        let error = as_expected(refused.0, refused.1, &Expect::default(), &nothing).expect_err("503");
        assert_eq!(error.to_string(), "503: {\"error\":\"no leader\"}");
    }

    #[test]
    fn an_answer_must_be_as_expected() {
        let answer = |expect: &Expect| {
            let told = r#"{"state": "running", "n": 3, "of": ["a", "b"]}"#.to_owned();
            as_expected(200, told, expect, &Scope::default()).is_ok()
        };
        let is = |path: &str, value: &str| Expect {
            field: Some((path.to_owned(), vec![value.to_owned()])),
            ..Expect::default()
        };
        assert!(answer(&Expect::default()) && answer(&is("state", "running")) && answer(&is("n", "3")));
        assert!(answer(&is("of.1", "b")) && !answer(&is("of.2", "b")) && !answer(&is("of.b", "b")));
        assert!(!answer(&is("state", "starting")) && !answer(&is("nowhere", "")));
        assert!(!answer(&Expect { status: Some(503), ..Expect::default() }));
    }

    #[test]
    fn a_request_has_its_length_and_an_end() {
        let posted = Request { method: "POST", path: "/a".to_owned(), body: Some("{}".to_owned()) };
        assert!(posted.written().ends_with("Content-Length: 2\r\n\r\n{}"), "{}", posted.written());
        let got = Request { method: "GET", path: "/a".to_owned(), body: None };
        assert_eq!(got.written(), "GET /a HTTP/1.0\r\n\r\n");
    }
}
