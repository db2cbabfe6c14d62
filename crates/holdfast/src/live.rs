//! `--live`: serves the page of the run under way, from its directory's files. Nothing of it outlives the program.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Request, Response, Server};

use crate::exit::Exit;

/// Where it is served unless said otherwise: nobody but this machine can ask, and any free port will do.
pub const LOOPBACK: &str = "127.0.0.1:0";

/// What is shown: a run, and whether another comes after it.
#[derive(Default)]
struct Shown {
    run_directory: Option<PathBuf>,
    more: bool,
}

impl Shown {
    fn page(&self) -> String {
        match &self.run_directory {
            Some(run_directory) => report::live::html(run_directory, self.more),
            None => report::live::notice("The run has not begun."),
        }
    }
}

/// The page, served until it is dropped.
pub struct Live {
    server: Arc<Server>,
    address: SocketAddr,
    shown: Arc<Mutex<Shown>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Begins to serve.
    pub fn start(address: SocketAddr) -> Result<Live, Exit> {
        let failed = |what: String| Exit::failed(anyhow::anyhow!("--live {address}: {what}"));
        let server = Arc::new(Server::http(address).map_err(|error| failed(error.to_string()))?);
        let address =
            server.server_addr().to_ip().ok_or_else(|| failed("no address of the internet".to_owned()))?;
        let shown: Arc<Mutex<Shown>> = Arc::default();
        let (listening, looked_at) = (server.clone(), shown.clone());
        let thread = std::thread::spawn(move || {
            for request in listening.incoming_requests() {
                // A browser that has gone away is no matter of the run's.
                let _ = answer(request, &looked_at, address);
            }
        });
        Ok(Live { server, address, shown, thread: Some(thread) })
    }

    /// Where it is served.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Shows this run from now on.
    pub fn show(&self, run_directory: &Path) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).run_directory =
            Some(run_directory.to_owned());
    }

    /// Another run comes after the one shown: the page goes on asking for itself.
    pub fn expect_more(&self) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).more = true;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // Its panic, were there one, must not become ours.
            let _ = thread.join();
        }
    }
}

fn answer(request: Request, shown: &Mutex<Shown>, address: SocketAddr) -> std::io::Result<()> {
    let said = |code: u16, text: &str| Response::from_string(text).with_status_code(code);
    if !matches!(request.method(), Method::Get | Method::Head) {
        return request.respond(said(405, "only reading"));
    }
    // A page of another site whose name was made to lead here must not read this one (DNS rebinding).
    let host = request.headers().iter().find(|header| header.field.equiv("Host"));
    if address.ip().is_loopback() && !host.is_some_and(|host| is_ours(host.value.as_str(), address)) {
        return request.respond(said(403, "not the name of this machine"));
    }
    if request.url() != "/" {
        return request.respond(said(404, "there is one page: /"));
    }
    let page = shown.lock().unwrap_or_else(PoisonError::into_inner).page();
    let kind = Header::from_bytes("Content-Type", "text/html; charset=utf-8");
    let fresh = Header::from_bytes("Cache-Control", "no-store");
    let mut response = Response::from_string(page);
    for header in [kind, fresh].into_iter().flatten() {
        response.add_header(header);
    }
    request.respond(response)
}

fn is_ours(host: &str, address: SocketAddr) -> bool {
    host == address.to_string() || host == format!("localhost:{}", address.port())
}

/// `ADDRESS:PORT`, an address with any free port, or a port of this machine.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = text.parse::<SocketAddr>().ok();
    let without_port = || text.parse().ok().map(|ip| SocketAddr::new(ip, 0));
    let port = || text.parse::<u16>().ok().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    whole
        .or_else(without_port)
        .or_else(port)
        .ok_or_else(|| format!("`{text}` is no address; write --live, --live=8080 or --live=127.0.0.1:8080"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// What a program that speaks the protocol by hand is answered.
    fn asked(live: &Live, request: &str) -> String {
        let mut stream = TcpStream::connect(live.address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("answered");
        text
    }

    #[test]
    fn the_page_is_there_for_this_machine_alone_and_gone_with_its_owner() {
        let live = Live::start(address(LOOPBACK).expect("an address")).expect("served");
        let (host, port) = (live.address.to_string(), live.address.port());
        let check = |request: &str, host: &str, expected: &str| {
            let text =
                asked(&live, &format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
            assert!(text.starts_with(&format!("HTTP/1.1 {expected}")), "{request} {host}: {text}");
            text
        };
        assert!(check("GET /", &host, "200").contains("The run has not begun."));
        check("GET /", &format!("localhost:{port}"), "200");
        check("GET /", "elsewhere.example", "403");
        check("GET /../result.json", &host, "404");
        check("POST /", &host, "405");
        let folder = tempfile::tempdir().expect("a temporary folder");
        live.show(folder.path());
        assert!(check("GET /", &host, "200").contains("The lab is being built."));
        let address = live.address;
        drop(live);
        // The server's own thread closes the door a moment after it was told to.
        let gone = |_: &u32| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            TcpStream::connect(address).is_err()
        };
        assert!((0..600).find(gone).is_some(), "somebody still answers");
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
