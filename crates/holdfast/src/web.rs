//! Serves pages to browsers, on this machine alone unless told otherwise. Nothing of it outlives the program.
//!
//! Owns connections, who may ask, and how. What pages there are is a [`Site`]'s: of the run under way (`live`), of all runs of a
//! folder (`commands::serve`).

mod exchange;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::{Shutdown, shutdown};

pub use self::exchange::Answer;
use self::exchange::{Request, exchange};
use crate::exit::Exit;

/// Where it is served unless said otherwise: nobody but this machine can ask, and any free port will do.
pub const LOOPBACK: &str = "127.0.0.1:0";

/// How long after somebody could not be let in the next one may try.
const AFTER_A_FAILURE: Duration = Duration::from_millis(20);

/// Browsers that are answered at the same time; they open connections ahead of need.
const MOST_CONNECTIONS: usize = 32;

/// The pages there are.
pub trait Site: Send + Sync {
    /// What a browser gets that asks for `path` (`/`, `/run`) with `query` (what stands behind `?`, empty where nothing does).
    /// A browser gets 404 where there is no such page.
    fn page(&self, path: &str, query: &str) -> Option<Answer>;
}

/// A site, served until this is dropped.
pub struct Server {
    listener: Arc<TcpListener>,
    ends: Arc<AtomicBool>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to serve. `option` is what asked for it on the command line, for errors.
    pub fn start(option: &str, address: SocketAddr, site: Arc<dyn Site>) -> Result<Server, Exit> {
        let failed = |error| Exit::failed(anyhow::anyhow!("{option} {address}: {error}"));
        let listener = Arc::new(TcpListener::bind(address).map_err(failed)?);
        let address = listener.local_addr().map_err(failed)?;
        let ends: Arc<AtomicBool> = Arc::default();
        let (listening, ending) = (listener.clone(), ends.clone());
        let thread = std::thread::Builder::new()
            .name("web".to_owned())
            .spawn(move || serve(&listening, &site, address, &ending))
            .map_err(failed)?;
        Ok(Server { listener, ends, address, thread: Some(thread) })
    }

    /// Where it is served.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Nobody is let in any more, and who waits for somebody to let in wakes up. It fails only on what is shut already.
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // Its panic, were there one, must not become ours.
            let _ = thread.join();
        }
    }
}

/// Answers whoever comes, until the listener is shut. Each has a thread of its own for as long as it takes: a browser that
/// opens a connection and asks nothing must not keep another waiting.
fn serve(listener: &TcpListener, site: &Arc<dyn Site>, address: SocketAddr, ends: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    while !ends.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            // Too many open files, a browser that went away again: another may have more luck in a moment.
            std::thread::sleep(AFTER_A_FAILURE);
            continue;
        };
        let is_one_too_many = open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS;
        let counted = Counted(open.clone());
        if is_one_too_many {
            continue;
        }
        let site = site.clone();
        let body = move || {
            let _counted = counted;
            // A browser that has gone away is no matter of the run's.
            let _ = exchange(stream, |request| answer(request, site.as_ref(), address));
        };
        // For whom there is no thread there is no answer: the connection ends.
        let _ = std::thread::Builder::new().name("web-answer".to_owned()).spawn(body);
    }
}

/// One of those that are answered at the same time, until it is dropped: by a panic over a stranger's files, too.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(request: &Request, site: &dyn Site, address: SocketAddr) -> Answer {
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return Answer::line("405 Method Not Allowed", "only reading");
    }
    // A page of another site whose name was made to lead here must not read this one (DNS rebinding).
    if !request.host.as_deref().is_some_and(|host| is_ours(host, address)) {
        return Answer::line("403 Forbidden", "not a name of this machine; use its address");
    }
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    site.page(path, query)
        .unwrap_or_else(|| Answer::line("404 Not Found", "there is no such page; begin at /"))
}

/// Whether a browser was led here by no name that somebody else may give: by an address, `localhost`, or the machine's own
/// name.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "80"),
    };
    if port != address.port().to_string() {
        return false;
    }
    let written = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let given = written.parse::<IpAddr>().ok();
    let own = || nix::unistd::gethostname().ok().and_then(|own| own.into_string().ok());
    match (given, address.ip().is_loopback()) {
        (Some(given), true) => given == address.ip(),
        (Some(_), false) => true,
        (None, true) => name.eq_ignore_ascii_case("localhost"),
        (None, false) => {
            name.eq_ignore_ascii_case("localhost") || own().is_some_and(|own| own.eq_ignore_ascii_case(name))
        }
    }
}

/// `ADDRESS:PORT`, an address with any free port, or a port of this machine.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = text.parse::<SocketAddr>().ok();
    let without_port = || text.parse().ok().map(|ip| SocketAddr::new(ip, 0));
    let port = || text.parse::<u16>().ok().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    whole
        .or_else(without_port)
        .or_else(port)
        .ok_or_else(|| format!("`{text}` is no address; write 8080 or 127.0.0.1:8080"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// One page, which says what it was asked.
    struct Echo;

    impl Site for Echo {
        fn page(&self, path: &str, query: &str) -> Option<Answer> {
            (path == "/").then(|| Answer::html(format!("asked {query}.")))
        }
    }

    /// What a program that speaks the protocol by hand is answered.
    fn asked(server: &Server, request: &str) -> String {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("answered");
        text
    }

    #[test]
    fn pages_are_there_for_this_machine_alone_and_gone_with_their_owner() {
        let server =
            Server::start("--live", address(LOOPBACK).expect("an address"), Arc::new(Echo)).expect("served");
        let (host, port) = (server.address.to_string(), server.address.port());
        let check = |request: &str, host: &str, expected: &str| {
            let text =
                asked(&server, &format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
            assert!(text.starts_with(&format!("HTTP/1.1 {expected}")), "{request} {host}: {text}");
            text
        };
        assert!(check("GET /", &host, "200").contains("asked ."));
        assert!(check("GET /?a=b", &host, "200").contains("asked a=b."));
        check("GET /", &format!("localhost:{port}"), "200");
        check("GET /", "elsewhere.example", "403");
        check("GET /%2e%2e/result.json", &host, "404");
        check("GET //etc/passwd", &host, "404");
        let twice =
            asked(&server, &format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: elsewhere.example\r\n\r\n"));
        assert!(twice.starts_with("HTTP/1.1 400"), "{twice}");
        let page = check("GET /", &host, "200");
        assert!(page.contains("Content-Security-Policy: default-src 'none'"), "{page}");
        check("GET /../result.json", &host, "404");
        check("POST /", &host, "405");
        let head = check("HEAD /", &host, "200");
        assert!(head.ends_with("\r\n\r\n") && !head.contains("asked"), "{head}");
        assert!(asked(&server, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
        // Somebody who asks nothing keeps nobody waiting.
        let silent = TcpStream::connect(server.address).expect("a connection");
        check("GET /", &host, "200");
        drop(silent);
        let address = server.address;
        drop(server);
        assert!(TcpStream::connect(address).is_err(), "somebody still answers");
    }

    /// A page that cannot be made, beside one that can.
    struct Broken;

    impl Site for Broken {
        fn page(&self, path: &str, _: &str) -> Option<Answer> {
            assert_ne!(path, "/broken", "planted");
            Some(Answer::html("whole".to_owned()))
        }
    }

    #[test]
    fn pages_that_cannot_be_made_take_no_place_from_others() {
        let address = address(LOOPBACK).expect("an address");
        let server = Server::start("--at", address, Arc::new(Broken)).expect("served");
        let page =
            |path: &str| asked(&server, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address));
        for _ in 0..=MOST_CONNECTIONS {
            assert_eq!(page("/broken"), "");
        }
        assert!(page("/").ends_with("whole"));
    }

    #[test]
    fn only_names_that_nobody_else_gives_lead_here() {
        let check = |address: &str, host: &str, expected: bool| {
            let address = address.parse().expect("an address");
            assert_eq!(is_ours(host, address), expected, "{address} {host}");
        };
        check("127.0.0.1:8080", "127.0.0.1:8080", true);
        check("127.0.0.1:8080", "LOCALHOST:8080", true);
        check("127.0.0.1:8080", "localhost", false);
        check("127.0.0.1:80", "localhost", true);
        check("127.0.0.1:8080", "192.0.2.1:8080", false);
        check("127.0.0.1:8080", "rebound.example:8080", false);
        check("[::1]:8080", "[::1]:8080", true);
        check("[::1]:80", "[::1]", true);
        check("0.0.0.0:8080", "192.0.2.1:8080", true);
        check("0.0.0.0:8080", "192.0.2.1:8081", false);
        check("0.0.0.0:8080", "localhost:8080", true);
        check("0.0.0.0:8080", "rebound.example:8080", false);
        let own = nix::unistd::gethostname().expect("a name").into_string().expect("text");
        check("0.0.0.0:8080", &format!("{own}:8080"), true);
    }

    /// Somebody who takes his answer a byte at a time is let go after a while, and keeps nobody waiting until then.
    #[test]
    fn an_answer_is_given_for_so_long_and_no_longer() {
        let (mut near, far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let until = std::time::Instant::now() + Duration::from_millis(50);
        let given = exchange::write_until(&mut near, &vec![0; 64 << 20], until, |stream, left| {
            stream.set_write_timeout(Some(left))
        });
        assert!(given.is_err());
        drop(far);
    }

    #[test]
    fn an_address_may_be_given_in_part() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(address(text).ok().map(|address| address.to_string()).as_deref(), expected, "{text}");
        };
        check("8080", Some("127.0.0.1:8080"));
        check("127.0.0.1", Some("127.0.0.1:0"));
        check("[::1]:99", Some("[::1]:99"));
        check("::1", Some("[::1]:0"));
        check("0.0.0.0:1", Some("0.0.0.0:1"));
        check("nowhere", None);
        check("99999999", None);
    }
}
