//! The one thread that carries packets between TUN descriptors.
//!
//! Owns the event loop, the descriptors and the clock reading; every decision is the network's.

mod system_calls;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::EventFd;
use nix::time::ClockId;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::bypass::{Bypasses, Ways};
use crate::commands::{CaptureFailed, Command, Joining};
use crate::network::Network;
use crate::options::Options;
use crate::overlay::ImposedId;
use crate::packet::FRAME_BYTES_MAX;
use crate::policy::{Path, Rule};
use crate::recorder::{CaptureId, Recorder, Tap};
use crate::router::{PortId, Sending};

use system_calls::{now_ns, read, read_ns, wait_for, write};

/// Frames taken from one port before the others have their turn.
const FRAMES_PER_TURN: usize = 64;

/// More frames than wait in an interface that nobody reads: Linux keeps 500.
const WAITING_FRAMES_MAX: usize = 1_000;

/// Mark of the event that says a command waits.
const COMMAND: u64 = u64::MAX;

/// Of so many frames handed over the CPU time of one is read: its clock is a system call. A prime number, so that no rhythm of
/// questions and answers has always the same one measured.
const DELIVERIES_A_SAMPLE: u64 = 31;

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
    /// The ways past this thread, open for pairs of which nothing is asked.
    bypasses: Bypasses,
    /// The longest that a change of ways has taken.
    longest_change_ns: u64,
    /// Wall clock less monotonic clock, for captures.
    wall_offset_ns: u64,
    busy_poll_ns: u64,
    buffer: Vec<u8>,
    /// How many times frames have been waited for,
    waits: u64,
    /// and by number of the port, at which of them it last had some.
    last_ready: Vec<u64>,
    /// Frames that were handed over to a receiver's kernel,
    deliveries: u64,
    /// and the CPU time that took, nanoseconds, by samples.
    delivery_ns: Arc<AtomicU64>,
}

impl Carrier {
    /// Sets the thread's state up; `wake` is written to after each command, `delivery_ns` counts CPU time of deliveries.
    pub fn new(
        wake: Arc<EventFd>,
        commands: Receiver<Command>,
        options: Options,
        delivery_ns: Arc<AtomicU64>,
    ) -> nix::Result<Carrier> {
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
            bypasses: Bypasses::default(),
            longest_change_ns: 0,
            wall_offset_ns: read_ns(ClockId::CLOCK_REALTIME).saturating_sub(now_ns()),
            busy_poll_ns: u64::try_from(options.busy_poll.as_nanos()).unwrap_or(u64::MAX),
            buffer: vec![0; FRAME_BYTES_MAX],
            waits: 0,
            last_ready: Vec::new(),
            deliveries: 0,
            delivery_ns,
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
                        // The interface is gone from under its descriptor, which would be ready for ever. Nobody asks
                        // for it; what could not be shut is told of by the ways.
                        let _ = self.detach(PortId(port));
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
                Command::Attach { joining, answer } => {
                    let _ = answer.send(self.attach(joining));
                }
                Command::Detach { port, answer } => {
                    let _ = answer.send(self.detach(port));
                }
                Command::Route { port, behind, answer } => {
                    self.network.route(port, behind);
                    let _ = answer.send(());
                }
                Command::Relocate { port, place, answer } => {
                    let _ = answer.send(self.relocate(port, place));
                }
                Command::SetPolicy { policy, answer } => {
                    self.network.set_policy(policy);
                    let _ = answer.send(self.settle());
                }
                Command::Impose { rules, answer } => {
                    let _ = answer.send(self.impose(rules));
                }
                Command::Lift { ids, answer } => {
                    self.network.lift(&ids, now_ns());
                    self.settle_what_can_be();
                    let _ = answer.send(());
                }
                Command::Capture { tap, file, answer } => {
                    let _ = answer.send(self.begin_capture(tap, file));
                }
                Command::EndCapture { id, answer } => {
                    let ended = self.recorder.end(id);
                    self.settle_what_can_be();
                    let _ = answer.send(ended);
                }
                Command::Counters { answer } => {
                    let _ = answer.send(self.network.counters);
                }
                Command::Count { pairs, answer } => {
                    let _ = answer.send(self.count(pairs));
                }
                Command::Counted { numbers, answer } => {
                    let _ = answer.send(self.network.counted(&numbers));
                }
                Command::EndCounts { numbers, answer } => {
                    self.network.end_counts(&numbers);
                    self.settle_what_can_be();
                    let _ = answer.send(());
                }
                Command::LinkCounters { answer } => {
                    let _ = answer.send(self.network.link_counters(now_ns()));
                }
                Command::Ways { answer } => {
                    let _ = answer.send(self.ways());
                }
                Command::Stop => return false,
            }
        }
        true
    }

    /// Lays rules over everything. Where one cannot hold for all it is meant for, none does.
    fn impose(&mut self, rules: Vec<Rule>) -> io::Result<Vec<ImposedId>> {
        let ids = self.network.impose(rules, now_ns());
        let settled = self.settle();
        if settled.is_err() {
            self.network.lift(&ids, now_ns());
        }
        settled.map(|()| ids)
    }

    /// Counts packets; where not all of them can be seen, none.
    fn count(&mut self, pairs: Vec<(Path, Path)>) -> io::Result<Vec<usize>> {
        let numbers = self.network.count(pairs);
        let settled = self.settle();
        if settled.is_err() {
            self.network.end_counts(&numbers);
        }
        settled.map(|()| numbers)
    }

    fn begin_capture(&mut self, tap: Tap, file: File) -> Result<CaptureId, CaptureFailed> {
        let id = self.recorder.begin(tap, file).map_err(CaptureFailed::File)?;
        let settled = self.settle();
        if settled.is_err() {
            // Why it cannot see everything is what is told.
            let _ = self.recorder.end(id);
        }
        settled.map(|()| id).map_err(CaptureFailed::Bypass)
    }

    /// Puts a port at another place. Where the rules of that place cannot hold for all of its packets, it stays where it is.
    fn relocate(&mut self, port: PortId, place: Path) -> io::Result<()> {
        let before = self.network.place(port).map(<[String]>::to_vec);
        self.network.relocate(port, place);
        let settled = self.settle();
        if let (Err(_), Some(before)) = (&settled, before) {
            self.network.relocate(port, before);
            self.settle_what_can_be();
        }
        settled
    }

    /// Lets every pair go the way that its conditions ask for. What was changed in the network before holds from here on for
    /// packets that went past it as well.
    fn settle(&mut self) -> io::Result<()> {
        if self.bypasses.is_empty() {
            return Ok(());
        }
        let began_ns = now_ns();
        let Carrier { network, recorder, bypasses, .. } = self;
        let settled = bypasses.settle(|able| network.unconditioned(able, |from, to| recorder.sees(from, to)));
        self.longest_change_ns = self.longest_change_ns.max(now_ns().saturating_sub(began_ns));
        settled
    }

    /// The same where less is asked than before, or something new has come: nothing of it goes past this thread by error. What
    /// cannot be shut the ways tell of, to whoever judges the run.
    fn settle_what_can_be(&mut self) {
        let _ = self.settle();
    }

    fn ways(&self) -> Ways {
        let ways = self.bypasses.ways(|port| self.network.place(port).map(<[String]>::to_vec));
        Ways { longest_change_us: self.longest_change_ns / 1_000, ..ways }
    }

    fn attach(&mut self, joining: Joining) -> io::Result<PortId> {
        let Joining { place, addresses, descriptor, bypass } = joining;
        self.discard_waiting(&descriptor);
        let port = self.network.attach(place, addresses.clone());
        let event = EpollEvent::new(EpollFlags::EPOLLIN, u64::from(port.0));
        if let Err(error) = self.epoll.add(&descriptor, event) {
            self.network.detach(port, now_ns());
            return Err(error.into());
        }
        self.descriptors.resize_with(port.0 as usize, || None);
        self.descriptors.push(Some(descriptor));
        if let Some(bypass) = bypass {
            self.bypasses.add(port, addresses, bypass);
        }
        // Also where it has no bypass: an address that another port had is its own now. A place that cannot be shut is no
        // reason to refuse this one.
        self.settle_what_can_be();
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

    fn detach(&mut self, port: PortId) -> io::Result<()> {
        self.network.detach(port, now_ns());
        if let Some(descriptor) = self.descriptors.get_mut(port.0 as usize).and_then(Option::take) {
            let _ = self.epoll.delete(&descriptor);
        }
        let settled = self.settle();
        self.bypasses.forget(port);
        settled
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
        self.deliveries += 1;
        let is_sample = self.deliveries.is_multiple_of(DELIVERIES_A_SAMPLE);
        let before_ns = if is_sample { read_ns(ClockId::CLOCK_THREAD_CPUTIME_ID) } else { 0 };
        let taken = write(descriptor, frame);
        if is_sample {
            let used_ns = read_ns(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(before_ns);
            self.delivery_ns.fetch_add(used_ns * DELIVERIES_A_SAMPLE, Ordering::Relaxed);
        }
        match taken {
            true => self.network.counters.delivered_packets += packets,
            false => self.network.counters.refused_packets += packets,
        }
    }
}
