//! Encrypted sessions with a real PostgreSQL, whose certificates are made here.

use std::time::Duration;

use client::postgres::{Encryption, PostgresClient, PostgresConnector, Settings, Trust};
use client::{Address, BulkLoad, Connector, Endpoint, Execution, SqlSession, SqlValue};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::answers::wait;
use crate::server::{self, Server, settings};

/// An authority of the test's own.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("an authority")
}

/// What the connection said of its encryption, or why there is none.
async fn told(server: &Server, host: &str, encryption: Encryption) -> String {
    let settings = Settings { encryption, ..settings(Duration::from_secs(60)) };
    let address = Address::Tcp { address: server.address(), host: Some(host.to_owned()) };
    let mut client = match PostgresClient::connect(&address, &settings).await {
        Ok(client) => client,
        Err(error) => {
            assert!(error.definite);
            return error.message;
        }
    };
    let sql = "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let rows = client.batch(sql).await.expect("rows");
    format!("{} {}", rows.text(0, 0).unwrap_or_default(), rows.text(0, 1).unwrap_or_default())
}

#[test]
fn encryption_is_had_as_asked_for_and_only_whom_to_trust_is_trusted() {
    let Some(programs) = server::programs() else { return };
    let (issuer, stranger) = (authority("known"), authority("unknown"));
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let certificate =
        CertificateParams::new(names).expect("a name").signed_by(&key, &issuer).expect("signed");
    let required = |trust, authorities: &str| Encryption::Required { trust, authorities: authorities.into() };
    wait(async {
        let mut server = Server::start(&programs, &[]).await;
        let refusal = told(&server, "localhost", required(Trust::Anyone, "")).await;
        assert!(refusal.contains("the server does not encrypt"), "{refusal}");
        assert_eq!(told(&server, "localhost", Encryption::Preferred).await, "f ");

        server.encrypts(&certificate.pem(), &key.serialize_pem()).await;
        let (known, unknown) = (issuer.pem(), stranger.pem());
        let both = format!("{unknown}{known}");
        for (host, encryption, expected) in [
            ("localhost", Encryption::Never, "f "),
            ("localhost", Encryption::Preferred, "t TLSv1.3"),
            ("elsewhere", required(Trust::Anyone, ""), "t TLSv1.3"),
            ("elsewhere", required(Trust::Authority, &known), "t TLSv1.3"),
            ("localhost", required(Trust::AuthorityAndName, &both), "t TLSv1.3"),
            // The server's own certificate may stand for itself.
            ("localhost", required(Trust::AuthorityAndName, &certificate.pem()), "t TLSv1.3"),
            ("elsewhere", required(Trust::AuthorityAndName, &known), "not valid for name"),
            ("127.0.0.1", required(Trust::AuthorityAndName, &known), "not valid for name"),
            ("localhost", required(Trust::Authority, &unknown), "none of the authorities given"),
            ("localhost", required(Trust::Authority, ""), "no certificate among the authorities"),
        ] {
            let told = told(&server, host, encryption).await;
            let met =
                if expected.starts_with(['t', 'f']) { told == expected } else { told.contains(expected) };
            assert!(met, "{host}, expected {expected}: {told}");
        }
    });
}

#[test]
fn an_encrypted_session_carries_everything_a_plain_one_does() {
    let Some(programs) = server::programs() else { return };
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let own = CertificateParams::new(names).expect("a name").self_signed(&key).expect("signed");
    wait(async {
        let mut server = Server::start(&programs, &["ssl_max_protocol_version=TLSv1.2"]).await;
        let admin =
            "CREATE TABLE t (a int, b text); CREATE ROLE me LOGIN PASSWORD 'secret'; GRANT ALL ON t TO me";
        server.client().await.batch(admin).await.expect("table");
        // They hold from the restart on.
        server.write_access_rules("hostssl all me all scram-sha-256\nhost all postgres all trust\n");
        server.encrypts(&own.pem(), &key.serialize_pem()).await;
        let trust = Trust::AuthorityAndName;
        let settings = Settings {
            user: "me".into(),
            password: Some("secret".into()),
            encryption: Encryption::Required { trust, authorities: own.pem().into() },
            ..settings(Duration::from_secs(60))
        };
        let address = Address::Tcp { address: server.address(), host: Some("localhost".into()) };
        let connector = PostgresConnector::new(vec![Endpoint { node: "n1".into(), address }], settings);
        let connected = connector.connect(&mut ChaCha8Rng::seed_from_u64(1)).await;
        let mut session = connected.unwrap_or_else(|error| panic!("{error}")).session;
        let session = session.sql().expect("SQL");
        // More than a record holds, each way.
        let long = "x".repeat(100_000);
        let ids = session.prepare(&["INSERT INTO t VALUES ($1, $2)", "SELECT b FROM t WHERE a = $1"]).await;
        let ids = ids.expect("prepared");
        session.execute(ids[0], &[SqlValue::Integer(1), SqlValue::Text(&long)]).await.expect("inserted");
        let rows = session.execute(ids[1], &[SqlValue::Integer(1)]).await.expect("rows");
        assert_eq!(rows.text(0, 0), Some(long.as_str()));
        let mut left = 50_000;
        let mut fill = |lines: &mut Vec<u8>| {
            lines.extend_from_slice(b"7\tcopied\n");
            left -= 1;
            left > 0
        };
        assert_eq!(
            session.load(BulkLoad { table: "t", columns: "", is_new: false }, &mut fill).await,
            Ok(50_000)
        );
        let flight = [[SqlValue::Integer(1)], [SqlValue::Integer(2)]];
        let flight = flight.each_ref().map(|parameters| Execution { statement: ids[1], parameters });
        let mut found = Vec::new();
        session.pipeline(&flight, &mut |_, rows| found.push(rows.len())).await.expect("answered");
        assert_eq!(found, [1, 0]);
    });
}

impl Server {
    /// Gives it a certificate and starts it anew.
    async fn encrypts(&mut self, certificate: &str, key: &str) {
        for (name, content) in [("server.crt", certificate), ("server.key", key)] {
            self.write_own_file(name, content);
        }
        let mut client = self.client().await;
        client.batch("ALTER SYSTEM SET ssl = on").await.expect("set");
        drop(client);
        self.kill_postmaster();
        self.restart().await;
    }
}
