//! A server that speaks as much of PostgreSQL's protocol as a load needs, takes a known time for each execution, and
//! writes down when it was asked and when it answered.
//!
//! One thread per connection: nothing but sleeping and two stamps lies between question and answer.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the server takes.
#[derive(Clone)]
pub struct Service {
    mean: Duration,
    is_exponential: bool,
    /// From when (after the zero), for how long nothing is answered.
    stall: Option<(Duration, Duration)>,
}

impl Service {
    pub fn constant(time: Duration) -> Self {
        Service { mean: time, is_exponential: false, stall: None }
    }

    pub fn exponential(mean: Duration) -> Self {
        Service { mean, is_exponential: true, stall: None }
    }

    /// Whether clients that begin together are answered together again and again.
    pub fn keeps_clients_in_step(&self) -> bool {
        !self.is_exponential
    }

    pub fn with_stall(self, from: Duration, length: Duration) -> Self {
        Service { stall: Some((from, length)), ..self }
    }

    /// When an execution asked for at `asked` is to be answered.
    fn answer_at(&self, asked: Instant, zero: Instant, chance: &mut u64) -> Instant {
        // splitmix64, for which no library is needed.
        *chance = chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*chance ^ (*chance >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        let factor = if self.is_exponential { -(1.0 - uniform).ln() } else { 1.0 };
        let at = asked + self.mean.mul_f64(factor);
        match self.stall {
            Some((from, length)) if at >= zero + from && at < zero + from + length => zero + from + length,
            _ => at,
        }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = if self.is_exponential { "exponential" } else { "constant" };
        write!(f, "{law} {:?}", self.mean)?;
        self.stall.map_or(Ok(()), |(_, length)| write!(f, " with a stall of {length:?}"))
    }
}

/// One execution.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    pub asked: Instant,
    pub answered: Instant,
}

struct Shared {
    service: Service,
    zero: OnceLock<Instant>,
    answered: Mutex<Vec<Answered>>,
    ending: AtomicBool,
}

pub struct TimedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: JoinHandle<Vec<JoinHandle<()>>>,
}

impl TimedServer {
    pub fn start(service: Service) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            service,
            zero: OnceLock::new(),
            answered: Mutex::new(Vec::new()),
            ending: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                if theirs.ending.load(Ordering::Relaxed) {
                    break;
                }
                let (stream, shared) = (stream.expect("a connection"), Arc::clone(&theirs));
                connections.push(std::thread::spawn(move || {
                    // The client goes away without a word at the end.
                    let _ = serve(stream, &shared, number as u64);
                }));
            }
            connections
        });
        TimedServer { address, shared, acceptor }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set_zero(&self, zero: Instant) {
        self.shared.zero.set(zero).expect("set once");
    }

    /// Waits until every client has gone; all that was answered.
    pub fn finish(self) -> Vec<Answered> {
        self.shared.ending.store(true, Ordering::Relaxed);
        // Wakes the acceptor, which then sees that it is to end.
        drop(TcpStream::connect(self.address));
        for connection in self.acceptor.join().expect("acceptor") {
            connection.join().expect("connection");
        }
        std::mem::take(&mut self.shared.answered.lock().expect("list"))
    }
}

fn serve(mut stream: TcpStream, shared: &Shared, number: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    nix::sys::prctl::set_timerslack(1)?;
    let mut chance = number.wrapping_mul(0x1234_5678_9abc_def1);
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])?;
    let ready = message(b'Z', b"I");
    stream.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat())?;
    let mut answer = Vec::new();
    let mut executes = false;
    let mut unread: Vec<u8> = Vec::new();
    let mut space = [0; 4096];
    loop {
        let count = stream.read(&mut space)?;
        let asked = Instant::now();
        if count == 0 {
            return Ok(());
        }
        unread.extend_from_slice(&space[..count]);
        while unread.len() >= 5 {
            let whole = 1 + u32::from_be_bytes([unread[1], unread[2], unread[3], unread[4]]) as usize;
            if unread.len() < whole {
                break;
            }
            match unread[0] {
                b'P' => answer.extend(message(b'1', b"")),
                b'B' => answer.extend(message(b'2', b"")),
                b'E' => {
                    answer.extend(message(b'C', b"INSERT 0 1\0"));
                    executes = true;
                }
                // Whether it takes writes is all that is ever asked in this way.
                b'Q' => {
                    answer.extend(message(b'D', b"\0\x02\0\0\0\x01f\0\0\0\x03off"));
                    answer.extend(message(b'C', b"SELECT 1\0"));
                    answer.extend(&ready);
                }
                b'S' => answer.extend(&ready),
                b'X' => return Ok(()),
                other => panic!("unexpected message {other}"),
            }
            let ends_a_question = matches!(unread[0], b'S' | b'Q');
            unread.drain(..whole);
            if ends_a_question {
                if std::mem::take(&mut executes) {
                    let zero = *shared.zero.get().expect("set before the first load");
                    let at = shared.service.answer_at(asked, zero, &mut chance);
                    std::thread::sleep(at.saturating_duration_since(Instant::now()));
                    let answered = Instant::now();
                    stream.write_all(&answer)?;
                    shared.answered.lock().expect("list").push(Answered { asked, answered });
                } else {
                    stream.write_all(&answer)?;
                }
                answer.clear();
            }
        }
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short");
    [&[tag], length.to_be_bytes().as_slice(), body].concat()
}
