//! Pulls from a registry of the tests' own, on this machine.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::json;

use super::super::made::{self, Made, Parts, bytes, checksum, described_for};
use super::*;

/// The path at which the registry ends.
const END: &str = "/end";
/// How a path ends whose answer has no end.
const ENDLESS: &str = "/endless";
/// How a path ends that leads to a file of whoever asks.
const TO_A_FILE: &str = "/file";
/// How a path ends that leads to itself.
const TO_ITSELF: &str = "/itself";
/// Where images lie in it.
const THING: &str = "/v2/team/thing";

/// What a registry asks for before it gives anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Nothing,
    Token,
    /// A token that it then does not take.
    More,
}

/// A registry, until it is dropped.
struct Served {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn begin(has: BTreeMap<String, Vec<u8>>, wants: Wants) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = asked.clone();
        let thread = thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.expect("a connection");
                let head = head_of(&connection);
                let path = head.split(' ').nth(1).unwrap_or_default();
                if path == END {
                    return;
                }
                noted.lock().expect("a list").push(path.to_owned());
                if path.ends_with(ENDLESS) {
                    answer_for_ever(&mut connection);
                    continue;
                }
                let answer = answer(&has, wants, port, &head, path);
                connection.write_all(&answer).expect("answered");
            }
        });
        Served { port, asked, thread: Some(thread) }
    }

    fn name(&self, tag: Option<&str>, sha256: Option<&str>) -> ImageName {
        ImageName {
            registry: format!("127.0.0.1:{}", self.port),
            repository: "team/thing".to_owned(),
            tag: tag.map(str::to_owned),
            sha256: sha256.map(str::to_owned),
        }
    }

    /// The paths that were asked for, whatever was asked about them.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("a list").clone()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let ended = TcpStream::connect(("127.0.0.1", self.port))
            .and_then(|mut connection| write!(connection, "GET {END} HTTP/1.1\r\n\r\n"));
        if let (Ok(()), Some(thread)) = (ended, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn head_of(connection: &TcpStream) -> String {
    let lines = BufReader::new(connection).lines().map_while(Result::ok);
    lines.take_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

/// Answers until nobody listens any more.
fn answer_for_ever(connection: &mut TcpStream) {
    let mut more = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    while connection.write_all(&more).is_ok() {
        more = vec![b' '; 1 << 16];
    }
}

fn answer(has: &BTreeMap<String, Vec<u8>>, wants: Wants, port: u16, head: &str, path: &str) -> Vec<u8> {
    let bears_token = head.to_ascii_lowercase().contains("authorization: bearer secret");
    let is_known = match wants {
        Wants::Nothing => true,
        Wants::Token => bears_token,
        Wants::More => false,
    };
    let refusal = format!(
        "WWW-Authenticate: Basic realm=\"here\"\r\n\
         WWW-Authenticate: Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"a \\ b\",scope=\"repository:team/thing:pull\"\r\n"
    );
    let (status, more, body) = match has.get(path) {
        _ if path.starts_with("/token?") => ("200 OK", String::new(), bytes(&json!({ "token": "secret" }))),
        _ if !is_known => ("401 Unauthorized", refusal, b"{}".to_vec()),
        _ if path.ends_with(TO_A_FILE) => {
            ("307 Temporary Redirect", "Location: file:///etc/hostname\r\n".to_owned(), Vec::new())
        }
        _ if path.ends_with(TO_ITSELF) => {
            ("307 Temporary Redirect", format!("Location: {path}\r\n"), Vec::new())
        }
        // Where a registry keeps its parts is its own affair.
        _ if path.starts_with(&format!("{THING}/blobs/")) => {
            let stored = path.replace(&format!("{THING}/blobs"), "/stored");
            ("307 Temporary Redirect", format!("Location: {stored}\r\n"), Vec::new())
        }
        Some(body) => ("200 OK", String::new(), body.clone()),
        None => ("404 Not Found", String::new(), Vec::new()),
    };
    let head =
        format!("HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

/// What a registry has that has this image, for this machine and another.
fn offered(parts: &Parts) -> BTreeMap<String, Vec<u8>> {
    let index = json!({ "schemaVersion": 2, "manifests": [
        described_for(b"another", "linux", "s390x"),
        described_for(&parts.manifest, "linux", documents::architecture()),
    ] });
    let mut has = BTreeMap::from([
        (format!("{THING}/manifests/1.2"), bytes(&index)),
        (format!("{THING}/manifests/{}", checksum(&parts.manifest)), parts.manifest.clone()),
    ]);
    for part in [&parts.config].into_iter().chain(&parts.layers) {
        has.insert(format!("/stored/{}", checksum(part)), part.clone());
    }
    has
}

fn parts() -> Parts {
    let layer = |name: &str| made::tar(&[Made::file(name, "1")]);
    made::image(&[layer("a"), layer("b"), layer("a")])
}

/// The digits of the checksum of what is pulled.
fn pulled(name: &ImageName) -> Result<String, String> {
    let scratch = tempfile::tempdir().expect("a folder");
    let image = pull(name, scratch.path(), &mut |_| {}).map_err(|error| error.to_string())?;
    assert_eq!(image.layers.len(), 3);
    Ok(image.checksum.digits().to_owned())
}

/// Whether curl is here; says so where it is not.
fn has_curl(test: &str) -> bool {
    let has = Command::new("curl").arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: {test}: no curl");
    }
    has
}

#[test]
fn an_image_is_pulled_with_and_without_a_token_and_each_part_once() {
    if !has_curl("an_image_is_pulled_with_and_without_a_token_and_each_part_once") {
        return;
    }
    let parts = parts();
    let manifest = checksum(&parts.manifest);
    for wants in [Wants::Nothing, Wants::Token] {
        let served = Served::begin(offered(&parts), wants);
        let by_tag = pulled(&served.name(Some("1.2"), None));
        assert_eq!(by_tag.as_deref(), Ok(manifest.digits()), "{wants:?}");
        let asked = served.asked();
        let tokens: Vec<&String> = asked.iter().filter(|path| path.starts_with("/token?")).collect();
        assert_eq!(tokens.len(), usize::from(wants == Wants::Token), "{asked:?}");
        for token in tokens {
            let (_, query) = token.split_once('?').expect("a query");
            assert!(query.to_ascii_lowercase().contains("scope=repository%3ateam%2fthing%3apull"), "{query}");
        }
        let stored = asked.iter().filter(|path| path.starts_with("/stored/")).count();
        assert_eq!(stored, 3, "a configuration, and two layers that differ: {asked:?}");
        let by_digest = pulled(&served.name(None, Some(manifest.digits())));
        assert_eq!(by_digest.as_deref(), Ok(manifest.digits()), "{wants:?}");
    }
}

#[test]
fn another_image_than_the_digest_s_is_refused_and_so_is_an_exchanged_layer() {
    if !has_curl("another_image_than_the_digest_s_is_refused_and_so_is_an_exchanged_layer") {
        return;
    }
    let parts = parts();
    let mut has = offered(&parts);
    let named = checksum(b"another");
    has.insert(format!("{THING}/manifests/{named}"), parts.manifest.clone());
    let layer = checksum(&parts.layers[0]);
    has.insert(format!("/stored/{layer}"), b"exchanged".to_vec());
    let served = Served::begin(has, Wants::Nothing);
    let told = pulled(&served.name(None, Some(named.digits()))).expect_err("another image");
    let found = checksum(&parts.manifest);
    assert_eq!(
        told,
        format!(
            "a manifest of the image has the SHA-256 {found}, not {named}: it is damaged or was exchanged"
        )
    );
    let told = pulled(&served.name(Some("1.2"), None)).expect_err("another layer");
    assert!(told.starts_with("layer 1 of 3 of the image has the SHA-256 "), "{told}");
}

#[test]
fn what_a_registry_has_not_or_does_not_give_is_told_with_what_to_do() {
    if !has_curl("what_a_registry_has_not_or_does_not_give_is_told_with_what_to_do") {
        return;
    }
    let served = Served::begin(offered(&parts()), Wants::Nothing);
    let name = served.name(Some("1.3"), None);
    assert_eq!(pulled(&name), Err(format!("{} has no {name}", name.registry)));
    let served = Served::begin(offered(&parts()), Wants::More);
    let name = served.name(Some("1.2"), None);
    let told = pulled(&name).expect_err("refused");
    let expected = format!("{} gives {name} only to whoever has signed in: ", name.registry);
    assert!(told.starts_with(&expected), "{told}");
}

#[test]
fn an_answer_without_an_end_is_cut_off_and_nothing_of_it_is_kept() {
    if !has_curl("an_answer_without_an_end_is_cut_off_and_nothing_of_it_is_kept") {
        return;
    }
    let served = Served::begin(offered(&parts()), Wants::Nothing);
    let scratch = tempfile::tempdir().expect("a folder");
    let told = pull(&served.name(Some("endless"), None), scratch.path(), &mut |_| {});
    assert!(matches!(told, Err(ImageError::LongAnswer { most: MOST_BYTES, .. })), "{told:?}");
    assert!(!scratch.path().join("first").exists());
}

#[test]
fn a_layer_without_an_end_is_cut_off() {
    if !has_curl("a_layer_without_an_end_is_cut_off") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let served = Served::begin(BTreeMap::new(), Wants::Nothing);
    let name = served.name(Some("1"), None);
    let registry = Registry { name: &name, scratch: scratch.path(), token: None };
    let address = format!("{}/a/layer{ENDLESS}", registry.beginning());
    let told = registry.ask(&address, &scratch.path().join("layer"), 100_000, "layer 1 of 1 of the image");
    let told = told.expect_err("cut off").to_string();
    assert_eq!(
        told,
        format!("{} sends more than the 100000 bytes that layer 1 of 1 of the image can have", name.registry)
    );
}

#[test]
fn nobody_is_redirected_to_a_file_or_round_in_a_circle() {
    if !has_curl("nobody_is_redirected_to_a_file_or_round_in_a_circle") {
        return;
    }
    let served = Served::begin(offered(&parts()), Wants::Nothing);
    for tag in ["file", "itself"] {
        let scratch = tempfile::tempdir().expect("a folder");
        let told = pull(&served.name(Some(tag), None), scratch.path(), &mut |_| {});
        assert!(matches!(told, Err(ImageError::Curl(_))), "{tag}: {told:?}");
        assert!(!scratch.path().join("first").exists(), "{tag}");
    }
    let times = served.asked().iter().filter(|path| path.ends_with(TO_ITSELF)).count();
    assert_eq!(times, 6, "once, and five times more");
}

#[test]
fn an_index_that_has_nothing_for_this_machine_is_told_with_what_it_has() {
    if !has_curl("an_index_that_has_nothing_for_this_machine_is_told_with_what_it_has") {
        return;
    }
    let index = json!({ "schemaVersion": 2, "manifests": [described_for(b"another", "linux", "s390x")] });
    let has = BTreeMap::from([(format!("{THING}/manifests/1.2"), bytes(&index))]);
    let served = Served::begin(has, Wants::Nothing);
    let told = pulled(&served.name(Some("1.2"), None)).expect_err("another machine's");
    let here = documents::architecture();
    assert_eq!(told, format!("the image has nothing for linux/{here}, only for linux/s390x"));
}

#[test]
fn only_a_registry_on_this_machine_is_asked_in_the_clear() {
    for (registry, beginning) in [
        ("docker.io", "https://registry-1.docker.io"),
        ("r.example.com:5000", "https://r.example.com:5000"),
        ("localhost.example.com", "https://localhost.example.com"),
        ("localhost", "http://localhost"),
        ("localhost:5000", "http://localhost:5000"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
    ] {
        let name = ImageName::parse(&format!("{registry}/team/thing:1.2")).expect("a name");
        let registry = Registry { name: &name, scratch: Path::new("/scratch"), token: None };
        assert_eq!(registry.beginning(), beginning);
        assert_eq!(registry.is_here(), beginning.starts_with("http:"));
    }
}

#[test]
fn a_token_is_asked_for_by_https_or_on_this_machine_only() {
    let may_ask = |registry: &str, realm: &str| {
        let name = ImageName::parse(&format!("{registry}/team/thing:1.2")).expect("a name");
        Registry { name: &name, scratch: Path::new("/scratch"), token: None }.may_ask(realm)
    };
    assert!(may_ask("r.example.com", "https://auth.example.com/token"));
    assert!(!may_ask("r.example.com", "http://127.0.0.1/token"));
    assert!(may_ask("localhost:5000", "http://localhost:5001/token"));
    for elsewhere in
        ["http://auth.example.com/token", "http://127.0.0.1:1@auth.example.com/", "file:///etc/passwd"]
    {
        assert!(!may_ask("localhost:5000", elsewhere), "{elsewhere}");
    }
}

#[test]
fn a_challenge_s_parameters_may_stand_in_quotes_and_have_commas_there() {
    let told = "HTTP/1.1 401\r\nwww-authenticate: Bearer realm=\"https://a.example/t\", service=b,scope=\"x:pull,push\"\r\n\r\n";
    let found = challenge_in(told).and_then(bearer).expect("a challenge");
    let expected = [("realm", "https://a.example/t"), ("scope", "x:pull,push"), ("service", "b")];
    let found: Vec<(&str, &str)> =
        found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(found, expected);
    for other in ["Basic realm=\"x\"", "Bearer", "Bearer realm=\"x"] {
        assert_eq!(bearer(other), None, "{other}");
    }
}
