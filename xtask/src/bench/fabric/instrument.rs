//! The measuring programs: each a process of its own inside one place, as a database and its clients are, so that what
//! it costs to change between processes is measured too.
//!
//! A program that listens says first on which port; each says in one line of JSON what it saw. What the figures mean is
//! decided elsewhere.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// What one program does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// Sends back what comes over one connection.
    Echo {
        /// Where to listen.
        address: IpAddr,
    },
    /// Sends a byte and waits for it to come back.
    RoundTrips {
        /// To whom.
        target: SocketAddr,
        /// How many are measured, after a tenth as many that are not.
        count: usize,
    },
    /// Reads what comes over one connection, for so long, and hangs up.
    Drain {
        /// Where to listen.
        address: IpAddr,
        /// How long nothing is counted yet.
        skip_s: f64,
        /// How long is counted then, at a time,
        window_s: f64,
        /// and how many times.
        windows: usize,
    },
    /// Writes as fast as it can until the other side hangs up.
    Pour {
        /// To whom.
        target: SocketAddr,
    },
    /// Reads stamps and compares them with the clock.
    Arrivals {
        /// Where to listen.
        address: IpAddr,
    },
    /// Sends the time of sending, again and again, over one connection.
    Stamps {
        /// To whom.
        target: SocketAddr,
        /// How many.
        count: usize,
        /// How far apart.
        interval_us: u64,
    },
    /// Keeps a processor from falling asleep, and stands back for whoever wants it, for as long as it is let live.
    StayAwake {
        /// Its number.
        processor: usize,
    },
    /// Sends small datagrams as fast as it can.
    Flood {
        /// To whom.
        target: SocketAddr,
        /// For how long.
        seconds: f64,
    },
}

/// What a program saw; each tells what it has to tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Where it listens.
    pub port: Option<u16>,
    /// Times in microseconds, in no order.
    #[serde(default)]
    pub times_us: Vec<f64>,
    /// Payload that arrived, bits a second, window by window.
    #[serde(default)]
    pub bits_per_s: Vec<f64>,
    /// Bytes read, counted or not.
    #[serde(default)]
    pub bytes: u64,
}

/// Large enough for the kernel to build the largest segments.
const BUFFER_BYTES: usize = 256 * 1024;
/// A small message, as a database's own are.
const SMALL_BYTES: usize = 64;
/// Bytes of a stamp on the wire.
const STAMP_BYTES: usize = 8;

/// Does a job given as JSON.
///
/// # Errors
/// When it is no job, or the network breaks.
pub fn play(job: &str) -> anyhow::Result<()> {
    match serde_json::from_str(job).context("read the job")? {
        Job::Echo { address } => echo(accept(address)?),
        Job::RoundTrips { target, count } => say(&round_trips(connect(target)?, count)?),
        Job::Drain { address, skip_s, window_s, windows } => {
            let (skip, window) = (Duration::from_secs_f64(skip_s), Duration::from_secs_f64(window_s));
            say(&drain(accept(address)?, skip, window, windows)?)
        }
        Job::Pour { target } => {
            let stream = connect(target)?;
            // The machine's own choice may pace what it sends, and then measures itself. Where it has no CUBIC, the
            // choice stands.
            let _ = setsockopt(&stream, TcpCongestion, &"cubic".into());
            pour(stream)
        }
        Job::Arrivals { address } => say(&arrivals(accept(address)?)?),
        Job::Stamps { target, count, interval_us } => {
            stamps(connect(target)?, count, Duration::from_micros(interval_us))
        }
        Job::StayAwake { processor } => stay_awake(processor),
        Job::Flood { target, seconds } => flood(target, Duration::from_secs_f64(seconds)),
    }
}

fn say(seen: &Seen) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(seen)?);
    Ok(())
}

fn accept(address: IpAddr) -> anyhow::Result<TcpStream> {
    let listener = TcpListener::bind((address, 0)).with_context(|| format!("listen at {address}"))?;
    say(&Seen { port: Some(listener.local_addr()?.port()), ..Seen::default() })?;
    let stream = listener.accept()?.0;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connect(target: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(target).with_context(|| format!("connect to {target}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn echo(mut stream: TcpStream) -> anyhow::Result<()> {
    let mut buffer = [0; SMALL_BYTES];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
    }
}

fn round_trips(mut stream: TcpStream, count: usize) -> anyhow::Result<Seen> {
    let mut times_us = Vec::with_capacity(count);
    let mut byte = [1];
    for round in 0..count + count / 10 {
        let sent = Instant::now();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        if round >= count / 10 {
            times_us.push(sent.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    Ok(Seen { times_us, ..Seen::default() })
}

fn drain(mut stream: TcpStream, skip: Duration, window: Duration, windows: usize) -> anyhow::Result<Seen> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let began = Instant::now();
    // From one arrival to another: what has arrived by the first is not counted, what comes with the last is.
    let mut first: Option<Instant> = None;
    let mut seen = Seen::default();
    let mut bytes = 0;
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            bail!("the sender hung up");
        }
        let now = Instant::now();
        seen.bytes += length as u64;
        bytes += length as u64;
        match first {
            None if now - began < skip => {}
            Some(first) if now - first < window => {}
            _ => {
                if let Some(first) = first {
                    seen.bits_per_s.push(bytes as f64 * 8.0 / (now - first).as_secs_f64());
                }
                if seen.bits_per_s.len() == windows {
                    return Ok(seen);
                }
                (first, bytes) = (Some(now), 0);
            }
        }
    }
}

fn pour(mut stream: TcpStream) -> anyhow::Result<()> {
    let buffer = vec![0; BUFFER_BYTES];
    loop {
        match stream.write(&buffer) {
            Ok(_) => {}
            // How the other side hangs up with bytes on their way.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Nanoseconds on the clock that all processes of a machine share.
fn now_ns() -> anyhow::Result<u64> {
    Ok(u64::try_from(Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?).as_nanos())?)
}

fn arrivals(mut stream: TcpStream) -> anyhow::Result<Seen> {
    let mut times_us = Vec::new();
    let mut stamp = [0; STAMP_BYTES];
    loop {
        match stream.read_exact(&mut stamp) {
            Ok(()) => times_us.push(now_ns()?.saturating_sub(u64::from_ne_bytes(stamp)) as f64 / 1e3),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(Seen { times_us, ..Seen::default() });
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn stamps(mut stream: TcpStream, count: usize, interval: Duration) -> anyhow::Result<()> {
    for _ in 0..count {
        std::thread::sleep(interval);
        stream.write_all(&now_ns()?.to_ne_bytes())?;
    }
    Ok(())
}

fn stay_awake(processor: usize) -> anyhow::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor)?;
    sched_setaffinity(Pid::from_raw(0), &only)?;
    let lowest = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is a live local; the call is about this process alone.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const lowest) };
    nix::Error::result(result).context("SCHED_IDLE")?;
    say(&Seen::default())?;
    loop {
        std::hint::spin_loop();
    }
}

fn flood(target: SocketAddr, time: Duration) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(target)?;
    let began = Instant::now();
    while began.elapsed() < time {
        for _ in 0..64 {
            match socket.send(&[0; SMALL_BYTES]) {
                Ok(_) => {}
                // Nobody has to listen, and a full interface is what is wanted.
                Err(error) if is_of_no_matter(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn is_of_no_matter(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::WouldBlock)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}
