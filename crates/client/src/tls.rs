//! Encryption of a session, as libpq's `sslmode` words have it: who is trusted, the handshake, and what travels after it.
//!
//! Owns certificates and records; the socket and its buffers are the wire's. rustls does the cryptography and touches no
//! socket. Source: PostgreSQL's manual, "SSL Support" of libpq and "SSL Session Encryption" of the protocol. Unlike libpq, a
//! certificate's common name counts for nothing: names are those it lists as alternative names (RFC 9525).

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::BytesMut;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

/// What of the server's certificate is held against what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Nothing: the line is encrypted, whoever is at its other end.
    Anyone,
    /// It must come from one of the authorities given.
    Authority,
    /// That, and it must be made out to the name connected to.
    AuthorityAndName,
}

/// Whether sessions over TCP are encrypted. Unix sockets never are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Encryption {
    /// They are not, and the server is not asked.
    #[default]
    Never,
    /// Where the server has it; its certificate is not looked at.
    Preferred,
    /// Always.
    Required {
        /// Whom to trust.
        trust: Trust,
        /// The authorities' certificates, in PEM.
        authorities: Vec<u8>,
    },
}

/// Why no encrypted session can be had with these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncryptionError {
    /// The authorities cannot be read.
    #[error("the authorities' certificates are not readable PEM: {0}")]
    Authorities(String),
    /// There is none among them.
    #[error("there is no certificate among the authorities")]
    NoAuthority,
}

impl Encryption {
    /// Whether it can be had.
    ///
    /// # Errors
    /// When what is given of authorities is none.
    pub fn check(&self) -> Result<(), EncryptionError> {
        match self {
            Encryption::Required { trust, authorities } if *trust != Trust::Anyone => {
                certificates(authorities).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The handshake's settings; `None` where nothing is to be encrypted.
    pub(crate) fn client_config(&self) -> Result<Option<Arc<ClientConfig>>, EncryptionError> {
        let (trust, authorities) = match self {
            Encryption::Never => return Ok(None),
            Encryption::Preferred => (Trust::Anyone, Vec::new()),
            Encryption::Required { trust: Trust::Anyone, .. } => (Trust::Anyone, Vec::new()),
            Encryption::Required { trust, authorities } => (*trust, certificates(authorities)?),
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(Verifier { trust, authorities, roots, provider: Arc::clone(&provider) });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EncryptionError::Authorities(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Some(Arc::new(config)))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, EncryptionError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| EncryptionError::Authorities(error.to_string()))?;
    if read.is_empty() { Err(EncryptionError::NoAuthority) } else { Ok(read) }
}

/// Judges the server's certificate as `sslmode` says.
#[derive(Debug)]
struct Verifier {
    trust: Trust,
    authorities: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.trust == Trust::Anyone {
            return Ok(ServerCertVerified::assertion());
        }
        let parsed = ParsedCertificate::try_from(end_entity)?;
        // A certificate that is its own authority, as the manual's first example makes one, is trusted by being given.
        if !self.authorities.iter().any(|given| given.as_ref() == end_entity.as_ref()) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        }
        if self.trust == Trust::AuthorityAndName {
            verify_server_name(&parsed, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The encryption of one session.
pub(crate) struct Tls(ClientConnection);

impl Tls {
    /// A session that begins, with the server of this name.
    pub(crate) fn new(config: Arc<ClientConfig>, server: &str) -> io::Result<Self> {
        let name = ServerName::try_from(server.to_owned()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{server:?} is no server's name"))
        })?;
        let mut connection = ClientConnection::new(config, name).map_err(refused)?;
        // Whole messages are encrypted at once, however long.
        connection.set_buffer_limit(None);
        Ok(Self(connection))
    }

    /// Whether the handshake still goes on.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Puts what must be sent by itself, of the handshake or after it, behind `out`. Whether there was anything.
    pub(crate) fn take_due(&mut self, out: &mut BytesMut) -> io::Result<bool> {
        let before = out.len();
        let mut due = Vec::new();
        while self.0.wants_write() {
            self.0.write_tls(&mut due)?;
        }
        out.extend_from_slice(&due);
        Ok(out.len() > before)
    }

    /// Replaces `message` by its encrypted form.
    pub(crate) fn seal(&mut self, message: &mut BytesMut) -> io::Result<()> {
        self.0.writer().write_all(message)?;
        message.clear();
        self.take_due(message).map(drop)
    }

    /// Takes in what came over the line and puts what it says behind `clear`, which is filled up to `filled_to`.
    pub(crate) fn open(
        &mut self,
        mut arrived: &[u8],
        clear: &mut Vec<u8>,
        filled_to: &mut usize,
    ) -> io::Result<()> {
        while !arrived.is_empty() {
            self.0.read_tls(&mut arrived)?;
            let said = self.0.process_new_packets().map_err(refused)?;
            let length = *filled_to + said.plaintext_bytes_to_read();
            if clear.len() < length {
                clear.resize(length, 0);
            }
            if let Some(space) = clear.get_mut(*filled_to..length) {
                self.0.reader().read_exact(space)?;
            }
            *filled_to = length;
        }
        Ok(())
    }

    /// The last words: `message` and that nothing follows.
    pub(crate) fn farewell(&mut self, message: &[u8]) -> io::Result<BytesMut> {
        let mut out = BytesMut::from(message);
        self.0.writer().write_all(&out)?;
        self.0.send_close_notify();
        out.clear();
        self.take_due(&mut out)?;
        Ok(out)
    }
}

fn refused(error: rustls::Error) -> io::Error {
    let why = match &error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the server's certificate comes from none of the authorities given".to_owned()
        }
        other => other.to_string(),
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {why}"))
}
