//! A server that speaks as much of PostgreSQL's protocol as a connection needs, starts one session after another, as a
//! postmaster does, and counts who waits.
//!
//! One thread: takes all connections there are, then serves the one that has waited longest.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use client::Endpoint;

/// What it does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Takes this long to start a session that takes writes.
    Leads(Duration),
    /// The same, of one that takes none.
    Follows(Duration),
    Silent,
    /// Has as many sessions as it takes.
    Full,
}

#[derive(Default)]
struct Counts {
    accepted: AtomicUsize,
    most_waiting: AtomicUsize,
    held: AtomicUsize,
    ending: AtomicBool,
}

pub struct SlowServer {
    address: SocketAddr,
    manner: Arc<Mutex<Manner>>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl SlowServer {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("an address");
        let (manner, counts) = (Arc::new(Mutex::new(manner)), Arc::new(Counts::default()));
        let theirs = (Arc::clone(&manner), Arc::clone(&counts));
        let thread = Some(std::thread::spawn(move || serve_all(&listener, &theirs.0, &theirs.1)));
        Self { address, manner, counts, thread }
    }

    pub fn endpoint(&self, node: &str) -> Endpoint {
        Endpoint { node: node.to_owned(), address: self.address.into() }
    }

    /// From now on it behaves like this.
    pub fn becomes(&self, manner: Manner) {
        *self.manner.lock().expect("its manner") = manner;
    }

    /// Connections it has had.
    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// Connections that were open when it last looked, whether they wait for their session or have it.
    pub fn held(&self) -> usize {
        self.counts.held.load(Ordering::Relaxed)
    }

    /// The most that waited for their session at once.
    pub fn most_waiting(&self) -> usize {
        self.counts.most_waiting.load(Ordering::Relaxed)
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.counts.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it failed with stands on the test's output.
            let _ = thread.join();
        }
    }
}

fn serve_all(listener: &TcpListener, manner: &Mutex<Manner>, counts: &Counts) {
    let mut waiting: VecDeque<TcpStream> = VecDeque::new();
    let mut open: Vec<TcpStream> = Vec::new();
    while !counts.ending.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            counts.accepted.fetch_add(1, Ordering::Relaxed);
            waiting.push_back(stream);
        }
        // Who has gone away waits no more.
        waiting.retain(is_open);
        open.retain(is_open);
        counts.held.store(waiting.len() + open.len(), Ordering::Relaxed);
        counts.most_waiting.fetch_max(waiting.len(), Ordering::Relaxed);
        let manner = *manner.lock().expect("its manner");
        let next = if manner == Manner::Silent { None } else { waiting.pop_front() };
        match next {
            Some(stream) if start_session(&stream, manner).is_ok() => open.push(stream),
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a stream that does not block");
    let open = !matches!(stream.peek(&mut [0]), Ok(0));
    stream.set_nonblocking(false).expect("a stream that blocks");
    open
}

/// Start-up and the question whether it takes writes.
fn start_session(mut stream: &TcpStream, manner: Manner) -> io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])?;
    let in_recovery = match manner {
        Manner::Leads(time) => {
            std::thread::sleep(time);
            "f"
        }
        Manner::Follows(time) => {
            std::thread::sleep(time);
            "t"
        }
        Manner::Silent => return Ok(()),
        Manner::Full => {
            let said = b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0";
            stream.write_all(&message(b'E', said))?;
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
    };
    stream.write_all(&[message(b'R', &[0, 0, 0, 0]), message(b'Z', b"I")].concat())?;
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    stream.read_exact(&mut vec![0; length - 4])?;
    let mut row = vec![0, 2, 0, 0, 0, 1];
    row.extend(in_recovery.bytes());
    row.extend([0, 0, 0, 3]);
    row.extend(b"off");
    stream.write_all(&[message(b'D', &row), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat())
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[tag], length.to_be_bytes().as_slice(), body].concat()
}
