//! From an open socket to a session that takes questions: the server's greeting and the proof of knowing a password.
//!
//! `mysql_native_password` and `caching_sha2_password`, the latter without encryption by the server's public key. Other
//! methods are refused with their name; a password in clear text above all. Source: MySQL internals manual, "Connection
//! phase".

use std::io;

use bytes::{BufMut as _, BytesMut};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin as _, Context, Response};
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, CommonOkPacket, HandshakePacket, HandshakeResponse,
};
use mysql_common::proto::MySerialize as _;

use super::Settings;
use super::answer::{CAPABILITIES, Refusal, cut_off, is_ok, is_refusal, ok_packet, refusal};
use super::packets::{Packet, next_packet, write_packet};
use crate::wire::{Wire, invalid};

/// The longest packet that the server is allowed to send.
const PACKET_BYTES_MAX: u32 = 1 << 30;
const OMITS_COLUMNS: MariadbCapabilities = MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA;
const SWITCH: u8 = 0xFE;
const MORE: u8 = 0x01;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginError {
    /// The connection's own trouble.
    #[error("{0}")]
    Line(#[from] io::Error),
    /// The server's words.
    #[error("{} ({}) {}", .0.code, .0.sql_state, .0.text)]
    Refused(Refusal),
    /// Nothing that both sides know.
    #[error("{0}")]
    CannotAuthenticate(String),
}

/// What a method of authentication is told.
struct Proof<'p> {
    password: &'p [u8],
    scramble: &'p [u8],
}

impl Context for &Proof<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        false
    }

    fn scramble(&self) -> &[u8] {
        self.scramble
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

/// An authentication under way.
struct Exchange<'p> {
    password: &'p str,
    plugin: AuthPlugin<'static>,
    method: AuthProc,
    scramble: Vec<u8>,
}

/// What the server does with the session.
pub(super) struct LoggedIn {
    /// Whether it leaves out columns that the client has: MariaDB does from 10.6 on (MariaDB documentation, "Metadata skip").
    pub(super) omits_columns: bool,
    /// Whether it commits each statement by itself (`autocommit`).
    pub(super) commits_each: bool,
}

/// Speaks the connection phase on a fresh connection.
pub(super) async fn log_in(wire: &mut Wire, peer: &str, settings: &Settings) -> Result<LoggedIn, LoginError> {
    let password = settings.password.as_ref().and_then(|password| password.at(peer)).unwrap_or_default();
    let Packet { place, .. } = read(wire).await?;
    if is_refusal(wire.at(&place)) {
        return Err(LoginError::Refused(refusal(wire.at(&place))?));
    }
    let greeting: HandshakePacket<'_> = ParseBuf(wire.at(&place)).parse(())?;
    let greeting = greeting.into_owned();
    // MariaDB says by this one's absence what it is, and so does a client that knows of its extensions.
    let is_mariadb = !greeting.capabilities().contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
    let omits_columns = is_mariadb && greeting.mariadb_ext_capabilities().contains(OMITS_COLUMNS);
    if !greeting.capabilities().contains(CAPABILITIES - CapabilityFlags::CLIENT_LONG_PASSWORD) {
        return Err(LoginError::CannotAuthenticate("the server is older than MySQL 5.6".to_owned()));
    }
    // What the server would begin with, where it is known here; it asks for another where the user has one.
    let plugin = match greeting.auth_plugin() {
        Some(plugin) if is_known(&plugin) => plugin.into_owned(),
        _ => AuthPlugin::MysqlNativePassword,
    };
    let (mut exchange, response) = Exchange::begin(password, plugin, greeting.nonce())?;
    let (capabilities, extensions) = match omits_columns {
        true => (CAPABILITIES - CapabilityFlags::CLIENT_LONG_PASSWORD, OMITS_COLUMNS),
        false => (CAPABILITIES, MariadbCapabilities::empty()),
    };
    let response = HandshakeResponse::new(
        Some(response),
        greeting.server_version_parsed().unwrap_or((5, 6, 0)),
        Some(settings.user.as_bytes()),
        Some(settings.database.as_bytes()).filter(|database| !database.is_empty()),
        Some(exchange.plugin.borrow()),
        capabilities,
        None,
        PACKET_BYTES_MAX,
    )
    .with_mariadb_ext_capabilities(extensions);
    let mut content = Vec::new();
    response.serialize(&mut content);
    send(wire, 1, &content).await?;
    loop {
        let Packet { number, place } = read(wire).await?;
        let packet = wire.at(&place);
        if is_ok(packet) {
            let flags = ok_packet::<CommonOkPacket>(packet)?.status_flags();
            let commits_each = flags.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
            return Ok(LoggedIn { omits_columns, commits_each });
        }
        if let Some(answer) = exchange.step(packet)? {
            send(wire, number.wrapping_add(1), &answer).await?;
        }
    }
}

impl<'p> Exchange<'p> {
    /// Begins with a method; answers with its first words.
    fn begin(
        password: &'p str,
        plugin: AuthPlugin<'static>,
        scramble: Vec<u8>,
    ) -> Result<(Self, Vec<u8>), LoginError> {
        let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
        if !is_known(&plugin) {
            return Err(LoginError::CannotAuthenticate(format!(
                "authentication method {name} is not supported, only mysql_native_password and caching_sha2_password"
            )));
        }
        let failed = |error: &dyn std::fmt::Display| {
            LoginError::CannotAuthenticate(format!("authentication by {name}: {error}"))
        };
        let mut method = plugin.init().map_err(|error| failed(&error))?;
        let proof = Proof { password: password.as_bytes(), scramble: &scramble };
        let (Response::Next { packet } | Response::Last { packet }) =
            method.run(&proof, &scramble).map_err(|error| failed(&error))?;
        Ok((Self { password, plugin, method, scramble }, packet.unwrap_or_default()))
    }

    /// What is said to this, if anything.
    fn step(&mut self, packet: &[u8]) -> Result<Option<Vec<u8>>, LoginError> {
        match packet.first().copied() {
            _ if is_refusal(packet) => Err(LoginError::Refused(refusal(packet)?)),
            Some(SWITCH) => {
                let switch: AuthSwitchRequest<'_> = ParseBuf(packet).parse(())?;
                let (plugin, scramble) = (switch.auth_plugin().into_owned(), switch.plugin_data().to_vec());
                let (begun, response) = Self::begin(self.password, plugin, scramble)?;
                *self = begun;
                Ok(Some(response))
            }
            Some(MORE) => {
                let said = packet.get(1..).unwrap_or_default();
                let proof = Proof { password: self.password.as_bytes(), scramble: &self.scramble };
                let response = self.method.run(&proof, said).map_err(|error| invalid(&error.to_string()))?;
                Ok(response.data().map(<[u8]>::to_vec))
            }
            Some(_) => Err(invalid("no step of an authentication").into()),
            None => Err(cut_off().into()),
        }
    }
}

fn is_known(plugin: &AuthPlugin<'_>) -> bool {
    matches!(plugin, AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password)
}

async fn read(wire: &mut Wire) -> io::Result<Packet> {
    loop {
        if let Some(packet) = next_packet(wire)? {
            return Ok(packet);
        }
        wire.fill().await?;
    }
}

async fn send(wire: &mut Wire, number: u8, content: &[u8]) -> io::Result<()> {
    write_packet(number, &mut wire.outgoing, |out: &mut BytesMut| out.put_slice(content)).map_err(invalid)?;
    wire.send(&mut false).await
}
