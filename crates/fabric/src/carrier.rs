//! The one thread that carries packets between TUN descriptors.
//!
//! Owns the event loop, the descriptors and the clock reading; every decision is the network's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::time::{ClockId, clock_gettime};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::counters::{Counters, PairCounters};
use crate::link::LinkCounters;
use crate::network::Network;
use crate::options::Options;
use crate::overlay::ImposedId;
use crate::packet::FRAME_BYTES_MAX;
use crate::policy::{Path, Policy, Rule};
use crate::prefix::Prefix;
use crate::recorder::Recorder;
pub use crate::recorder::{CaptureId, Tap};
use crate::router::{PortId, Sending};

/// Frames taken from one port before the others have their turn.
const FRAMES_PER_TURN: usize = 64;

/// More frames than wait in an interface that nobody reads: Linux keeps 500.
const WAITING_FRAMES_MAX: usize = 1_000;

/// Mark of the event that says a command waits.
const COMMAND: u64 = u64::MAX;

/// What others ask of the thread. An answer is sent once it is done.
pub enum Command {
    /// Join a descriptor to the network.
    Attach { place: Path, addresses: Vec<IpAddr>, descriptor: OwnedFd, answer: Sender<io::Result<PortId>> },
    /// Take a port off the network.
    Detach { port: PortId, answer: Sender<()> },
    /// Put a port at another place.
    Relocate { port: PortId, place: Path, answer: Sender<()> },
    /// Replace all rules.
    SetPolicy { policy: Policy, answer: Sender<()> },
    /// Lay rules over everything.
    Impose { rules: Vec<Rule>, answer: Sender<Vec<ImposedId>> },
    /// Take imposed rules away again.
    Lift { ids: Vec<ImposedId>, answer: Sender<()> },
    /// Begin to write a port's packets.
    Capture { tap: Tap, file: File, answer: Sender<io::Result<CaptureId>> },
    /// End that.
    EndCapture { id: CaptureId, answer: Sender<io::Result<u64>> },
    /// Tell what has gone through.
    Counters { answer: Sender<Counters> },
    /// Say which networks lie behind a port.
    Route { port: PortId, behind: Vec<Prefix>, answer: Sender<()> },
    /// Begin to count the packets of pairs of places.
    Count { pairs: Vec<(Path, Path)>, answer: Sender<Vec<usize>> },
    /// Tell what has been counted.
    Counted { numbers: Vec<usize>, answer: Sender<Vec<PairCounters>> },
    /// End counts.
    EndCounts { numbers: Vec<usize>, answer: Sender<()> },
    /// Tell what each link has carried.
    LinkCounters { answer: Sender<BTreeMap<String, LinkCounters>> },
    /// End the thread.
    Stop,
}

/// The thread's state.
pub struct Carrier {
    epoll: Epoll,
    wake: Arc<EventFd>,
    commands: Receiver<Command>,
    network: Network,
    random: ChaCha8Rng,
    /// By number of the port.
    descriptors: Vec<Option<OwnedFd>>,
    recorder: Recorder,
    /// Wall clock less monotonic clock, for captures.
    wall_offset_ns: u64,
    busy_poll_ns: u64,
    buffer: Vec<u8>,
    /// How many times frames have been waited for,
    waits: u64,
    /// and by number of the port, at which of them it last had some.
    last_ready: Vec<u64>,
}

impl Carrier {
    /// Sets the thread's state up; `wake` is written to after each command.
    pub fn new(wake: Arc<EventFd>, commands: Receiver<Command>, options: Options) -> nix::Result<Carrier> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(wake.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, COMMAND))?;
        Ok(Carrier {
            epoll,
            wake,
            commands,
            network: Network::default(),
            random: ChaCha8Rng::seed_from_u64(options.seed),
            descriptors: Vec::new(),
            recorder: Recorder::default(),
            wall_offset_ns: read_ns(ClockId::CLOCK_REALTIME).saturating_sub(now_ns()),
            busy_poll_ns: u64::try_from(options.busy_poll.as_nanos()).unwrap_or(u64::MAX),
            buffer: vec![0; FRAME_BYTES_MAX],
            waits: 0,
            last_ready: Vec::new(),
        })
    }

    /// Carries packets until told to stop.
    pub fn carry(mut self) {
        // The default slack of 50 us would add itself to every delay.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut events = [EpollEvent::empty(); 128];
        loop {
            self.deliver_arrived(now_ns());
            let ready = match self.wait(&mut events) {
                Ok(ready) => ready,
                Err(nix::Error::EINTR) => continue,
                Err(_) => return,
            };
            self.waits += 1;
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

    /// Waits for frames, commands or the next arrival: first awake, if so asked, then asleep.
    fn wait(&mut self, events: &mut [EpollEvent]) -> nix::Result<usize> {
        if self.busy_poll_ns > 0 {
            let until_ns = now_ns().saturating_add(self.busy_poll_ns);
            loop {
                let ready = wait_for(&self.epoll, events, Some(0))?;
                let now_ns = now_ns();
                let is_due = self.network.next_arrival_ns().is_some_and(|next_ns| next_ns <= now_ns);
                if ready > 0 || is_due {
                    return Ok(ready);
                }
                if now_ns >= until_ns {
                    break;
                }
            }
        }
        self.recorder.flush();
        let wait_ns = self.network.next_arrival_ns().map(|next_ns| next_ns.saturating_sub(now_ns()));
        wait_for(&self.epoll, events, wait_ns)
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
                Command::Route { port, behind, answer } => {
                    self.network.route(port, behind);
                    let _ = answer.send(());
                }
                Command::Relocate { port, place, answer } => {
                    self.network.relocate(port, place);
                    let _ = answer.send(());
                }
                Command::SetPolicy { policy, answer } => {
                    self.network.set_policy(policy);
                    let _ = answer.send(());
                }
                Command::Impose { rules, answer } => {
                    let _ = answer.send(self.network.impose(rules));
                }
                Command::Lift { ids, answer } => {
                    self.network.lift(&ids);
                    let _ = answer.send(());
                }
                Command::Capture { tap, file, answer } => {
                    let _ = answer.send(self.recorder.begin(tap, file));
                }
                Command::EndCapture { id, answer } => {
                    let _ = answer.send(self.recorder.end(id));
                }
                Command::Counters { answer } => {
                    let _ = answer.send(self.network.counters);
                }
                Command::Count { pairs, answer } => {
                    let _ = answer.send(self.network.count(pairs));
                }
                Command::Counted { numbers, answer } => {
                    let _ = answer.send(self.network.counted(&numbers));
                }
                Command::EndCounts { numbers, answer } => {
                    self.network.end_counts(&numbers);
                    let _ = answer.send(());
                }
                Command::LinkCounters { answer } => {
                    let _ = answer.send(self.network.link_counters(now_ns()));
                }
                Command::Stop => return false,
            }
        }
        true
    }

    fn attach(&mut self, place: Path, addresses: Vec<IpAddr>, descriptor: OwnedFd) -> io::Result<PortId> {
        self.discard_waiting(&descriptor);
        let port = self.network.attach(place, addresses);
        let event = EpollEvent::new(EpollFlags::EPOLLIN, u64::from(port.0));
        if let Err(error) = self.epoll.add(&descriptor, event) {
            self.network.detach(port);
            return Err(error.into());
        }
        self.descriptors.resize_with(port.0 as usize, || None);
        self.descriptors.push(Some(descriptor));
        Ok(port)
    }

    /// What waits in an interface that was not joined: a host without power said it, in a kernel that lives on.
    fn discard_waiting(&mut self, descriptor: &OwnedFd) {
        for _ in 0..WAITING_FRAMES_MAX {
            if read(descriptor.as_raw_fd(), &mut self.buffer).is_none() {
                return;
            }
        }
    }

    fn detach(&mut self, port: PortId) {
        self.network.detach(port);
        if let Some(descriptor) = self.descriptors.get_mut(port.0 as usize).and_then(Option::take) {
            let _ = self.epoll.delete(&descriptor);
        }
    }

    fn descriptor(&self, port: PortId) -> Option<RawFd> {
        self.descriptors.get(port.0 as usize)?.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Conversations come in single frames, one way and then the other: asking such a port for a second frame is a system
    /// call that finds nothing. One that is ready twice in a row sends more than it hears, and is asked until it is empty.
    fn frames_this_turn(&mut self, port: PortId) -> usize {
        let index = port.0 as usize;
        if self.last_ready.len() <= index {
            self.last_ready.resize(index + 1, 0);
        }
        let before = std::mem::replace(&mut self.last_ready[index], self.waits);
        if before + 1 == self.waits { FRAMES_PER_TURN } else { 1 }
    }

    fn take_from(&mut self, port: PortId) {
        for _ in 0..self.frames_this_turn(port) {
            let Some(descriptor) = self.descriptor(port) else { return };
            let Some(length) = read(descriptor, &mut self.buffer) else { return };
            let now_ns = now_ns();
            if !self.recorder.is_idle() {
                let wall_ns = now_ns.saturating_add(self.wall_offset_ns);
                if let Some(place) = self.network.place(port) {
                    self.recorder.saw_sent(place, &self.buffer[..length], wall_ns);
                }
            }
            let Carrier { network, buffer, random, .. } = self;
            if let Some(sending) = network.take(port, buffer, length, now_ns, random) {
                let buffer = std::mem::take(&mut self.buffer);
                self.deliver(sending, &buffer[..length], now_ns);
                self.buffer = buffer;
            }
            // A turn of large frames takes longer than packets that have arrived should have to wait.
            self.deliver_arrived(now_ns);
        }
    }

    fn deliver_arrived(&mut self, now_ns: u64) {
        while let Some(travelling) = self.network.arrived(now_ns) {
            self.deliver(travelling.sending, &travelling.frame, now_ns);
            self.network.recycle(travelling.frame);
        }
    }

    fn deliver(&mut self, sending: Sending, frame: &[u8], now_ns: u64) {
        let packets = sending.wire.packets;
        let Some(descriptor) = self.descriptor(sending.to) else {
            self.network.counters.port_gone_packets += packets;
            return;
        };
        if !self.recorder.is_idle() {
            let wall_ns = now_ns.saturating_add(self.wall_offset_ns);
            let ends = (self.network.place(sending.from), self.network.place(sending.to));
            if let (from, Some(to)) = ends {
                // A sender that has gone meanwhile was somewhere nobody asks about any more.
                self.recorder.saw_arrive((from.unwrap_or_default(), to), frame, wall_ns);
            }
        }
        match write(descriptor, frame) {
            true => self.network.counters.delivered_packets += packets,
            false => self.network.counters.refused_packets += packets,
        }
    }
}

/// Waits for events, no longer than so many nanoseconds.
fn wait_for(epoll: &Epoll, events: &mut [EpollEvent], wait_ns: Option<u64>) -> nix::Result<usize> {
    // The plain call is the cheaper one, but its time-out counts whole milliseconds, far too coarse for a delay.
    match wait_ns {
        None => epoll.wait(events, EpollTimeout::NONE),
        Some(0) => epoll.wait(events, EpollTimeout::ZERO),
        Some(wait_ns) => wait_exactly(epoll, events, wait_ns),
    }
}

fn wait_exactly(epoll: &Epoll, events: &mut [EpollEvent], wait_ns: u64) -> nix::Result<usize> {
    let timeout = libc::timespec {
        tv_sec: (wait_ns / 1_000_000_000) as i64,
        tv_nsec: (wait_ns % 1_000_000_000) as i64,
    };
    // SAFETY: `events` is live and as long as said; EpollEvent is a transparent epoll_event; the time-out is a live
    // timespec; a null signal mask changes nothing.
    let ready = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.0.as_raw_fd(),
            events.as_mut_ptr().cast::<libc::epoll_event>(),
            events.len() as libc::c_int,
            &raw const timeout,
            std::ptr::null::<libc::sigset_t>(),
            8usize,
        )
    };
    match nix::Error::result(ready) {
        Err(nix::Error::ENOSYS) => wait_the_old_way(epoll, events, &timeout),
        ready => ready.map(|ready| usize::try_from(ready).unwrap_or(0)),
    }
}

/// The same before Linux 5.11: one call to wait, one to ask.
fn wait_the_old_way(
    epoll: &Epoll,
    events: &mut [EpollEvent],
    timeout: &libc::timespec,
) -> nix::Result<usize> {
    let mut watched = libc::pollfd { fd: epoll.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `watched` is a live local and one of its kind; so is the time-out; a null signal mask changes nothing.
    let ready = unsafe { libc::ppoll(&raw mut watched, 1, timeout, std::ptr::null()) };
    if nix::Error::result(ready)? == 0 {
        return Ok(0);
    }
    epoll.wait(events, EpollTimeout::ZERO)
}

fn read(descriptor: RawFd, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the descriptor is owned by the carrier and open; the buffer is live and as long as said.
    let length = unsafe { libc::read(descriptor, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(length).ok().filter(|length| *length > 0)
}

fn write(descriptor: RawFd, frame: &[u8]) -> bool {
    // SAFETY: the descriptor is owned by the carrier and open; the frame is live and as long as said.
    let length = unsafe { libc::write(descriptor, frame.as_ptr().cast(), frame.len()) };
    length >= 0
}

fn now_ns() -> u64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

fn read_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |now| u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}
