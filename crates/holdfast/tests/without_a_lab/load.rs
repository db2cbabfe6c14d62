//! `holdfast load` against a real PostgreSQL that asks for a password: where the password may come from, and that it stands
//! nowhere afterwards; and against a real MariaDB and a real Cassandra.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use client::SqlSession;
use client::postgres::{PostgresClient, Settings};

use crate::server::{self, Server};
use crate::{cassandra_server, mariadb_server};

/// What is looked for afterwards. Nothing else on the machine has it in it.
const PASSWORD: &str = "Zq9-planted-secret";

async fn asking_for_a_password(programs: &Path) -> Server {
    let server = Server::start(programs, &["password_encryption=scram-sha-256"]).await;
    let role = format!("CREATE ROLE r SUPERUSER LOGIN PASSWORD '{PASSWORD}'");
    server.client().await.batch(&role).await.expect("a role");
    server.write_access_rules("host all r all scram-sha-256\nhost all postgres all trust\n");
    server.client().await.batch("SELECT pg_reload_conf()").await.expect("a reload");
    let settings = Settings { user: "r".into(), ..server::settings(Duration::from_secs(60)) };
    // The reload is asynchronous: until it has happened, everything is trusted.
    while PostgresClient::connect_tcp(server.address(), &settings).await.is_ok() {
        client::reactor::sleep(Duration::from_millis(10)).await;
    }
    server
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .filter(|path| !path.is_symlink())
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

struct Place {
    folder: tempfile::TempDir,
    url: String,
}

impl Place {
    /// Runs a load of a second that makes its tables; the environment holds nothing but this.
    fn load(&self, out: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        self.load_as_it_is(out, &[&["--prepare"], arguments].concat(), environment)
    }

    /// The same on tables that are there.
    fn load_as_it_is(&self, out: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.args(["load", "--workload", "ledger", "--for", "1s", "--clients", "2", "--out", out]);
        command.args(arguments).current_dir(self.folder.path());
        command.env_clear().env("HOME", self.folder.path()).envs(environment.iter().copied());
        command.output().expect("the program starts")
    }

    /// Nothing that the run left behind, nor anything it said, holds the password, though files of a run were left.
    fn left_nothing(&self, out: &str, output: &Output) {
        let mut texts = vec![("standard output".to_owned(), output.stdout.clone())];
        texts.push(("standard error".to_owned(), output.stderr.clone()));
        let out = self.folder.path().join(out);
        if out.exists() {
            let read = |path: PathBuf| (path.display().to_string(), fs::read(path).expect("readable"));
            texts.extend(files(&out).into_iter().map(read));
        }
        for (name, mut text) in texts {
            if name.ends_with(".zst") {
                text = zstd::decode_all(text.as_slice()).expect("unpacked");
            }
            let holds = text.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
            assert!(!holds, "the password is in {name}");
        }
    }

    fn succeeds(&self, out: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let output = self.load(out, arguments, environment);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{stderr}{}", String::from_utf8_lossy(&output.stdout));
        assert!(files(&self.folder.path().join(out)).len() > 4, "{stderr}");
        self.left_nothing(out, &output);
        output
    }
}

#[test]
fn a_password_is_taken_from_where_postgresqls_tools_take_it_and_stands_nowhere_afterwards() {
    let Some(programs) = server::programs() else { return };
    let server = client::reactor::block_on(asking_for_a_password(&programs)).expect("an event loop");
    let place = Place {
        folder: tempfile::tempdir().expect("a folder"),
        url: format!("postgres://r@{}/postgres", server.address()),
    };
    let put = |name: &str, text: &str| {
        let path = place.folder.path().join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed");
        path.display().to_string()
    };
    let url = ["--url", &place.url];
    place.succeeds("of-environment", &url, &[("PGPASSWORD", PASSWORD)]);
    // What it did not make it cannot judge: unknown, whatever the load did.
    let unjudged = place.load_as_it_is("unjudged", &url, &[("PGPASSWORD", PASSWORD)]);
    let said = String::from_utf8_lossy(&unjudged.stdout).into_owned();
    assert_eq!(unjudged.status.code(), Some(2), "{said}{}", String::from_utf8_lossy(&unjudged.stderr));
    assert!(said.contains("UNKNOWN") && said.contains("existing tables"), "{said}");
    let file = put("file", &format!("{PASSWORD}\n"));
    place.succeeds("of-file", &["--url", &place.url, "--password-file", &file], &[]);
    let passes = put("passes", &format!("*:*:*:r:{PASSWORD}\n"));
    place.succeeds("of-passfile", &url, &[("PGPASSFILE", &passes)]);
    put(".pgpass", &format!("127.0.0.1:*:postgres:r:{PASSWORD}\n"));
    place.succeeds("of-pgpass", &url, &[]);
    // In the URL it works and is warned of.
    let in_url = place.url.replace("r@", &format!("r:{PASSWORD}@"));
    let warned = place.succeeds("of-url", &["--url", &in_url], &[]);
    let warning = String::from_utf8_lossy(&warned.stderr).into_owned();
    assert!(warning.contains("can see the password in --url"), "{warning}");
    // Errors do not tell it either: refused by the server, and mangled on the way.
    let wrong = place.load("wrong", &url, &[("PGPASSWORD", &format!("{PASSWORD}!"))]);
    assert_eq!(wrong.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("28P01"));
    place.left_nothing("wrong", &wrong);
    for mangled in [format!("r:{PASSWORD}/x@"), format!("r:{PASSWORD}?x@"), format!("r:{PASSWORD}%zz@")] {
        let refused = place.load("mangled", &["--url", &place.url.replace("r@", &mangled)], &[]);
        assert_eq!(refused.status.code(), Some(254));
        place.left_nothing("mangled", &refused);
    }
}

/// The environment's password is PostgreSQL's, and is shown to no other server.
#[test]
fn a_mysql_server_is_driven_by_its_url_with_a_password_that_is_meant_for_it_and_its_data_is_checked() {
    let name =
        "a_mysql_server_is_driven_by_its_url_with_a_password_that_is_meant_for_it_and_its_data_is_checked";
    if !mariadb_server::is_here(name) {
        return;
    }
    let server = client::reactor::block_on(mariadb_server::Server::start(&[])).expect("an event loop");
    let place = Place {
        folder: tempfile::tempdir().expect("a folder"),
        url: format!("mysql://holdfast@{}/holdfast", server.address()),
    };
    let url = ["--url", &place.url];
    let output = place.load("of-environment", &url, &[("PGPASSWORD", mariadb_server::PASSWORD)]);
    assert_eq!(output.status.code(), Some(255), "{}", String::from_utf8_lossy(&output.stderr));
    let file = place.folder.path().join("file");
    fs::write(&file, mariadb_server::PASSWORD).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("closed");
    let file = file.display().to_string();
    let output = place.succeeds("of-file", &["--url", &place.url, "--password-file", &file], &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("every check passed"), "{said}");
}

#[test]
fn a_workload_that_the_url_s_protocol_does_not_carry_is_refused_before_a_server_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.args(["load", "--workload", "tpcc", "--for", "1s", "--url", "cql://127.0.0.1:1/holdfast"]);
    let refused = command.current_dir(folder.path()).output().expect("the program starts");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(254), "{why}");
    assert!(why.contains("`tpcc` needs transactions of several statements"), "{why}");
}

#[test]
#[ignore = "second tier: boots a Cassandra, half a minute"]
fn a_cassandra_is_driven_by_its_url_and_its_data_is_checked() {
    let name = "a_cassandra_is_driven_by_its_url_and_its_data_is_checked";
    let Some(servers) = cassandra_server::Server::start(1, name) else { return };
    let client::Address::Tcp { address, .. } = servers[0].endpoint().address else { panic!("no TCP") };
    let place =
        Place { folder: tempfile::tempdir().expect("a folder"), url: format!("cql://{address}/holdfast") };
    let output = place.succeeds("of-url", &["--url", &place.url], &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("every check passed"), "{said}");
}

/// What a server says is shown and never carried out: this one would name the window, clear the screen and turn the text
/// round.
#[test]
fn a_servers_words_are_shown_and_not_carried_out() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A client that has gone away again is no matter.
            let _ = stream.read(&mut [0; 1024]);
            let fields = "SFATAL\0C53300\0M\u{1b}]0;owned\u{7}\u{1b}[2Jfull\u{202e}\0\0";
            let length = u32::try_from(fields.len() + 4).expect("short");
            let _ = stream.write_all(&[b"E".as_slice(), &length.to_be_bytes(), fields.as_bytes()].concat());
        }
    });
    let place = Place { folder: tempfile::tempdir().expect("a folder"), url: String::new() };
    let url = format!("postgres://r@{address}/postgres?sslmode=disable");
    let output = place.load("foreign", &["--url", &url], &[]);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(said.contains("\\u{1b}]0;owned\\u{7}\\u{1b}[2Jfull\\u{202e}"), "{said}");
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{said:?}");
}
