//! The one thread that carries packets between TUN descriptors, and the handle others hold on it.
//!
//! Owns the event loop, the descriptors and the clock reading; every decision is the router's.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::time::{ClockId, clock_gettime};

use crate::packet::{FRAME_BYTES_MAX, on_wire};
use crate::policy::{Path, Policy};
use crate::queue::Queue;
use crate::router::{Counters, PortId, Routed, Router, Sending};

/// Frames taken from one port before the others have their turn.
const FRAMES_PER_TURN: usize = 64;

/// Mark of the event that says a command waits.
const COMMAND: u64 = u64::MAX;

/// What can go wrong with the fabric.
#[derive(Debug, thiserror::Error)]
pub enum FabricError {
    /// The thread could not be set up.
    #[error("fabric set-up: {0}")]
    SetUp(#[source] io::Error),
    /// The thread is gone.
    #[error("fabric thread is gone")]
    Gone,
    /// A descriptor could not be watched.
    #[error("fabric attach of {place}: {source}")]
    Attach {
        /// The place, its names joined by `/`.
        place: String,
        /// Why.
        source: io::Error,
    },
}

enum Command {
    Attach { place: Path, addresses: Vec<IpAddr>, descriptor: OwnedFd, answer: Sender<io::Result<PortId>> },
    Detach { port: PortId, answer: Sender<()> },
    SetPolicy { policy: Policy, answer: Sender<()> },
    Counters { answer: Sender<Counters> },
    Stop,
}

/// The running fabric. Dropping it stops the thread and closes every descriptor it was given.
#[derive(Debug)]
pub struct Fabric {
    commands: Sender<Command>,
    wake: std::sync::Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Fabric {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel gives no event descriptor or no thread.
    pub fn start() -> Result<Fabric, FabricError> {
        let set_up = |error: nix::Error| FabricError::SetUp(error.into());
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(set_up)?;
        let wake = std::sync::Arc::new(wake);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(set_up)?;
        epoll.add(wake.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, COMMAND)).map_err(set_up)?;
        let (commands, received) = mpsc::channel();
        let for_thread = wake.clone();
        let thread = std::thread::Builder::new()
            .name("fabric".to_owned())
            .spawn(move || Carrier::new(epoll, for_thread, received).carry())
            .map_err(FabricError::SetUp)?;
        Ok(Fabric { commands, wake, thread: Some(thread) })
    }

    /// Joins a TUN interface (non-blocking, with virtio-net header) to the network.
    ///
    /// # Errors
    /// When the descriptor cannot be watched, or the thread is gone.
    pub fn attach(&self, place: Path, addresses: Vec<IpAddr>, tun: OwnedFd) -> Result<PortId, FabricError> {
        let name = place.join("/");
        self.ask(|answer| Command::Attach { place, addresses, descriptor: tun, answer })?
            .map_err(|source| FabricError::Attach { place: name, source })
    }

    /// Takes a port off the network; packets on their way to it are lost. Returns once that is so.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn detach(&self, port: PortId) -> Result<(), FabricError> {
        self.ask(|answer| Command::Detach { port, answer })
    }

    /// Replaces all rules. Returns once they hold.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn set_policy(&self, policy: Policy) -> Result<(), FabricError> {
        self.ask(|answer| Command::SetPolicy { policy, answer })
    }

    /// What has gone through so far.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn counters(&self) -> Result<Counters, FabricError> {
        self.ask(|answer| Command::Counters { answer })
    }

    /// CPU time the thread has used so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let Some(thread) = &self.thread else { return Duration::ZERO };
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the thread has not been joined, so its pthread_t is valid; `clock` is a live local.
        let found = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) };
        if found != 0 {
            return Duration::ZERO;
        }
        clock_gettime(ClockId::from_raw(clock)).map_or(Duration::ZERO, Duration::from)
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, FabricError> {
        let (answer, answered) = mpsc::channel();
        self.commands.send(command(answer)).map_err(|_| FabricError::Gone)?;
        self.wake.write(1).map_err(|_| FabricError::Gone)?;
        answered.recv().map_err(|_| FabricError::Gone)
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let sent = self.commands.send(Command::Stop).is_ok() && self.wake.write(1).is_ok();
        if let (true, Some(thread)) = (sent, self.thread.take()) {
            // A panic of the thread has been printed by then; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

struct Carrier {
    epoll: Epoll,
    wake: std::sync::Arc<EventFd>,
    commands: Receiver<Command>,
    router: Router,
    queue: Queue,
    descriptors: BTreeMap<PortId, OwnedFd>,
    counters: Counters,
    buffer: Vec<u8>,
}

impl Carrier {
    fn new(epoll: Epoll, wake: std::sync::Arc<EventFd>, commands: Receiver<Command>) -> Carrier {
        Carrier {
            epoll,
            wake,
            commands,
            router: Router::default(),
            queue: Queue::default(),
            descriptors: BTreeMap::new(),
            counters: Counters::default(),
            buffer: vec![0; FRAME_BYTES_MAX],
        }
    }

    fn carry(mut self) {
        // The default slack of 50 us would add itself to every delay.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut events = [EpollEvent::empty(); 128];
        loop {
            self.deliver_arrived();
            let ready = match self.wait(&mut events) {
                Ok(ready) => ready,
                Err(nix::Error::EINTR) => continue,
                Err(_) => return,
            };
            for event in &events[..ready] {
                if event.data() == COMMAND {
                    if !self.obey() {
                        return;
                    }
                } else if let Ok(port) = u32::try_from(event.data()) {
                    self.take_from(PortId(port));
                    if event.events().contains(EpollFlags::EPOLLERR) {
                        // The interface is gone from under its descriptor, which would be ready for ever.
                        self.detach(PortId(port));
                    }
                }
            }
        }
    }

    fn wait(&self, events: &mut [EpollEvent]) -> nix::Result<usize> {
        let timeout = self.queue.next_arrival_ns().map(|arrives_ns| {
            let wait_ns = arrives_ns.saturating_sub(now_ns());
            libc::timespec {
                tv_sec: (wait_ns / 1_000_000_000) as i64,
                tv_nsec: (wait_ns % 1_000_000_000) as i64,
            }
        });
        let timeout_pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` is live and as long as said; EpollEvent is a transparent epoll_event; the time-out is
        // null or points to a live timespec; a null signal mask changes nothing. epoll_wait's own time-out counts
        // whole milliseconds, far too coarse here.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.0.as_raw_fd(),
                events.as_mut_ptr().cast::<libc::epoll_event>(),
                events.len() as libc::c_int,
                timeout_pointer,
                std::ptr::null::<libc::sigset_t>(),
                8usize,
            )
        };
        nix::Error::result(ready).map(|ready| usize::try_from(ready).unwrap_or(0))
    }

    /// Carries out every command that waits; false when the last was to stop.
    fn obey(&mut self) -> bool {
        let _ = self.wake.read();
        while let Ok(command) = self.commands.try_recv() {
            // An asker that has gone away misses its answer; the command holds all the same.
            match command {
                Command::Attach { place, addresses, descriptor, answer } => {
                    let _ = answer.send(self.attach(place, addresses, descriptor));
                }
                Command::Detach { port, answer } => {
                    self.detach(port);
                    let _ = answer.send(());
                }
                Command::SetPolicy { policy, answer } => {
                    self.router.set_policy(policy);
                    let _ = answer.send(());
                }
                Command::Counters { answer } => {
                    let _ = answer.send(self.counters);
                }
                Command::Stop => return false,
            }
        }
        true
    }

    fn attach(&mut self, place: Path, addresses: Vec<IpAddr>, descriptor: OwnedFd) -> io::Result<PortId> {
        let port = self.router.attach(place, addresses);
        let event = EpollEvent::new(EpollFlags::EPOLLIN, u64::from(port.0));
        if let Err(error) = self.epoll.add(&descriptor, event) {
            self.router.detach(port);
            return Err(error.into());
        }
        self.descriptors.insert(port, descriptor);
        Ok(port)
    }

    fn detach(&mut self, port: PortId) {
        self.router.detach(port);
        self.counters.port_gone_packets += self.queue.forget(port) as u64;
        if let Some(descriptor) = self.descriptors.remove(&port) {
            let _ = self.epoll.delete(&descriptor);
        }
    }

    fn take_from(&mut self, port: PortId) {
        let Some(descriptor) = self.descriptors.get(&port).map(AsRawFd::as_raw_fd) else { return };
        for _ in 0..FRAMES_PER_TURN {
            let Some(length) = read(descriptor, &mut self.buffer) else { return };
            let frame = &self.buffer[..length];
            let wire = on_wire(frame);
            self.counters.frames += 1;
            self.counters.packets += wire.packets;
            self.counters.bytes += wire.bytes;
            let now = now_ns();
            match self.router.route(port, frame, now) {
                Routed::Arrives(at, sending) if at <= now => {
                    deliver(&self.descriptors, &mut self.counters, sending, &self.buffer[..length]);
                }
                Routed::Arrives(at, sending) => self.queue.push(at, sending, frame),
                Routed::QueueFull => self.counters.queue_full_packets += wire.packets,
                Routed::NoSuchAddress => self.counters.no_such_address_packets += wire.packets,
                Routed::Malformed => self.counters.malformed_frames += 1,
            }
        }
    }

    fn deliver_arrived(&mut self) {
        while let Some(travelling) = self.queue.pop_arrived(now_ns()) {
            deliver(&self.descriptors, &mut self.counters, travelling.sending, &travelling.frame);
            self.queue.recycle(travelling.frame);
        }
    }
}

fn deliver(descriptors: &BTreeMap<PortId, OwnedFd>, counters: &mut Counters, sending: Sending, frame: &[u8]) {
    let Some(descriptor) = descriptors.get(&sending.to) else {
        counters.port_gone_packets += sending.wire_packets;
        return;
    };
    match nix::unistd::write(descriptor, frame) {
        Ok(_) => counters.delivered_packets += sending.wire_packets,
        Err(_) => counters.refused_packets += sending.wire_packets,
    }
}

fn read(descriptor: RawFd, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the descriptor is owned by the carrier and open; the buffer is live and as long as said.
    let length = unsafe { libc::read(descriptor, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(length).ok().filter(|length| *length > 0)
}

fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}
