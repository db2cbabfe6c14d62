//! From an open socket to a session that takes questions: start-up parameters and authentication.
//!
//! Trust, md5 and SCRAM-SHA-256. Other methods are refused with their name; a password in clear text above all.

use std::io;
use std::time::Instant;

use history::ErrorClass;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::messages::{read_server_message, take_bytes, take_i32, take_string};
use super::verdict::{ServerMessage, class_of};
use super::{Answer, OpenRequest, PostgresClient, Settings, broken_connection};
use crate::SessionError;
use crate::line::Line;
use crate::statement_kind::{StatementKind, TransactionStatus};
use crate::wire::{Wire, invalid};

/// What a start-up came to, when it did not fail on the line.
enum Started {
    Ready { process_id: i32, status: TransactionStatus },
    Refused(ServerMessage),
    CannotAuthenticate(String),
}

impl PostgresClient {
    /// Speaks the start-up on a fresh connection.
    pub(super) async fn start(mut wire: Wire, peer: &str, settings: &Settings) -> Result<Self, SessionError> {
        match start_up(&mut wire, peer, settings).await {
            Ok(Started::Ready { process_id, status }) => Ok(Self {
                is_compatible: settings.is_compatible,
                line: Line::new(wire, peer.to_owned(), settings.timeout),
                status,
                process_id,
                statements: Vec::new(),
                piece: Vec::new(),
                asked: OpenRequest {
                    kind: StatementKind::Single,
                    may_commit: false,
                    moment: Instant::now(),
                    sent: true,
                },
                answer: Answer::default(),
            }),
            Ok(Started::Refused(said)) => Err(SessionError {
                class: class_of(&said.code),
                definite: true,
                message: format!("{peer}: {} {}", said.code, said.message),
                code: Some(said.code),
            }),
            Ok(Started::CannotAuthenticate(why)) => Err(SessionError {
                class: ErrorClass::Other,
                definite: true,
                message: format!("{peer}: {why}"),
                code: None,
            }),
            Err(error) => Err(broken_connection(peer, &error)),
        }
    }
}

async fn start_up(wire: &mut Wire, peer: &str, settings: &Settings) -> io::Result<Started> {
    let password = settings.password.as_ref().and_then(|password| password.at(peer));
    let parameters = [
        ("user", settings.user.as_str()),
        ("database", settings.database.as_str()),
        ("application_name", "holdfast"),
        ("client_encoding", "UTF8"),
        // A role or database set to `error` would hide the warning that takes back a commit.
        ("client_min_messages", "warning"),
    ];
    frontend::startup_message(parameters, &mut wire.outgoing)?;
    wire.send(&mut false).await?;
    let mut scram: Option<ScramSha256> = None;
    let mut authenticated = false;
    let mut process_id = 0;
    loop {
        let Some(frame) = wire.next_frame()? else {
            wire.fill().await?;
            continue;
        };
        let mut body = wire.body(&frame);
        match frame.tag {
            b'R' => match take_i32(&mut body)? {
                0 if scram.is_some() => {
                    return Err(invalid("server skipped its proof of knowing the password"));
                }
                0 => authenticated = true,
                5 => {
                    let Some(password) = password else {
                        return Ok(Started::CannotAuthenticate(no_password(settings)));
                    };
                    let salt = take_bytes(&mut body, 4)?;
                    let salt = [salt[0], salt[1], salt[2], salt[3]];
                    let proof = md5_hash(settings.user.as_bytes(), password.as_bytes(), salt);
                    frontend::password_message(proof.as_bytes(), &mut wire.outgoing)?;
                    wire.send(&mut false).await?;
                }
                step @ 10..=12 => {
                    let said = body.to_vec();
                    match sasl_step((step, &said), &mut scram, (settings, password), wire)? {
                        None => wire.send(&mut false).await?,
                        Some(why) => return Ok(Started::CannotAuthenticate(why)),
                    }
                }
                method => return Ok(Started::CannotAuthenticate(unsupported(method))),
            },
            b'E' => return Ok(Started::Refused(read_server_message(body)?)),
            b'K' => process_id = take_i32(&mut body)?,
            b'S' | b'N' | b'v' => {}
            b'Z' if authenticated => {
                let status = match take_bytes(&mut body, 1)? {
                    b"I" => TransactionStatus::Idle,
                    _ => return Err(invalid("fresh session in a transaction")),
                };
                return Ok(Started::Ready { process_id, status });
            }
            tag => return Err(invalid(&format!("unexpected message {tag:#04x} during start-up"))),
        }
    }
}

/// One step of SCRAM; the answer, if any, is left in the outgoing buffer. `Some` says why it cannot go on.
fn sasl_step(
    (step, mut said): (i32, &[u8]),
    scram: &mut Option<ScramSha256>,
    (settings, password): (&Settings, Option<&str>),
    wire: &mut Wire,
) -> io::Result<Option<String>> {
    match (step, scram.as_mut()) {
        (10, None) => {
            let Some(password) = password else {
                return Ok(Some(no_password(settings)));
            };
            let mut offered = false;
            while !said.is_empty() {
                offered |= take_string(&mut said)? == SCRAM_SHA_256.as_bytes();
            }
            if !offered {
                return Ok(Some("server offers no SCRAM-SHA-256".to_owned()));
            }
            let exchange = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
            frontend::sasl_initial_response(SCRAM_SHA_256, exchange.message(), &mut wire.outgoing)?;
            *scram = Some(exchange);
        }
        (11, Some(exchange)) => {
            exchange.update(said)?;
            frontend::sasl_response(exchange.message(), &mut wire.outgoing)?;
        }
        (12, Some(exchange)) => {
            if let Err(error) = exchange.finish(said) {
                return Ok(Some(format!(
                    "server does not know the password of {} itself: {error}",
                    settings.user
                )));
            }
            *scram = None;
        }
        _ => return Err(invalid("authentication step out of order")),
    }
    Ok(None)
}

fn no_password(settings: &Settings) -> String {
    format!("server asks for the password of {} and none is given", settings.user)
}

fn unsupported(method: i32) -> String {
    let name = match method {
        3 => "cleartext password",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        _ => {
            return format!(
                "authentication method {method} is not supported, only trust, md5 and scram-sha-256"
            );
        }
    };
    format!("authentication method {name} is not supported, only trust, md5 and scram-sha-256")
}
