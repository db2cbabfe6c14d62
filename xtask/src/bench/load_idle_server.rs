//! A server that speaks as much of PostgreSQL's protocol as a load needs and does nothing: every statement has changed one
//! row. One thread serves all sessions, and a session costs no process: what many clients lose beside it, the load generator
//! and the kernel's sockets lose.
//!
//! Owns the server.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::load_ours::Served;

/// Stands for the listener among the events; sessions count from the next number on.
const LISTENER: u64 = 0;
/// What a client asks in the place of a start-up when it wants encryption (PostgreSQL's manual, `SSLRequest`).
const SSL_REQUEST: u32 = 80_877_103;

/// The server. Dropping it ends it.
pub(super) struct IdleServer {
    port: u16,
    runs: PathBuf,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl IdleServer {
    /// Starts one, with the directories of runs against it in `runs`.
    pub(super) fn start(runs: PathBuf) -> anyhow::Result<Self> {
        // Each session takes a descriptor. Where no more are allowed, the load says so.
        if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let is_ending = Arc::new(AtomicBool::new(false));
        let theirs = is_ending.clone();
        let serve = move || serve_all(&listener, &theirs);
        let thread = std::thread::Builder::new().name("idle-server".to_owned()).spawn(serve)?;
        Ok(IdleServer { port, runs, is_ending, thread: Some(thread) })
    }
}

impl Served for IdleServer {
    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn runs(&self) -> PathBuf {
        self.runs.clone()
    }
}

impl Drop for IdleServer {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Release);
        // Wakes the thread, which then sees that it is to end.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            // What it failed with, the loads that asked it have told.
            let _ = thread.join();
        }
    }
}

fn serve_all(listener: &TcpListener, is_ending: &AtomicBool) -> io::Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(listener.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    let mut sessions: BTreeMap<u64, Session> = BTreeMap::new();
    let mut next = LISTENER + 1;
    let mut events = [EpollEvent::empty(); 256];
    while !is_ending.load(Ordering::Acquire) {
        let ready = match epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(ready) => ready,
            Err(nix::Error::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..ready] {
            let number = event.data();
            if number == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    epoll.add(stream.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, next))?;
                    sessions.insert(next, Session { stream, unread: Vec::new(), has_started: false });
                    next += 1;
                }
            } else if let Some(session) = sessions.get_mut(&number)
                && !session.serve()
            {
                // Closing it takes it out of what is waited for.
                sessions.remove(&number);
            }
        }
    }
    Ok(())
}

/// One client's connection.
struct Session {
    stream: TcpStream,
    /// What came and is not answered yet.
    unread: Vec<u8>,
    has_started: bool,
}

impl Session {
    /// Answers what has come; whether the client is still there.
    fn serve(&mut self) -> bool {
        let mut space = [0; 4_096];
        match self.stream.read(&mut space) {
            Ok(0) => return false,
            Ok(count) => self.unread.extend_from_slice(&space[..count]),
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
        let mut answer = Vec::new();
        while let Some((tag, body)) = self.next_message() {
            match tag {
                // A start-up, or the question whether sessions are encrypted.
                None if body.starts_with(&SSL_REQUEST.to_be_bytes()) => answer.push(b'N'),
                None => {
                    self.has_started = true;
                    answer.extend(message(b'R', &[0; 4]));
                    answer.extend(message(b'Z', b"I"));
                }
                Some(b'P') => answer.extend(message(b'1', b"")),
                Some(b'B') => answer.extend(message(b'2', b"")),
                Some(b'E') => answer.extend(message(b'C', b"UPDATE 1\0")),
                Some(b'S') => answer.extend(message(b'Z', b"I")),
                // Its version, and whether it takes writes: it does.
                Some(b'Q') => {
                    answer.extend(message(b'D', b"\0\x02\0\0\0\x01f\0\0\0\x03off"));
                    answer.extend(message(b'C', b"SELECT 1\0"));
                    answer.extend(message(b'Z', b"I"));
                }
                // It says goodbye, or something that no load says.
                Some(_) => return false,
            }
        }
        // An answer is far smaller than a socket's buffer.
        self.stream.write_all(&answer).is_ok()
    }

    /// The next whole message: its tag, which those before the session have none of, and what follows its length.
    fn next_message(&mut self) -> Option<(Option<u8>, Vec<u8>)> {
        let head = usize::from(self.has_started);
        let length = self.unread.get(head..head + 4)?;
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        if length < 4 || self.unread.len() < head + length {
            return None;
        }
        let whole: Vec<u8> = self.unread.drain(..head + length).collect();
        let tag = self.has_started.then_some(whole[0]);
        Some((tag, whole[head + 4..].to_vec()))
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [&[tag], length.to_be_bytes().as_slice(), body].concat()
}
