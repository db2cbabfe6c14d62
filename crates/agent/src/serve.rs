//! An agent: one load, done as it is told, and everything recorded handed over second by second.
//!
//! Owns its life: it begins by saying that it is ready and ends when its input does, or when nobody has spoken to it for long.
//! It leaves nothing: what it has not handed over is gone with it, and whoever commands it says so.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use load::{Batch, Clock, LoadHandle};
use measure::encoding::Encoder;

use crate::batch_words::BatchWords;
use crate::moments::{moment_of, now_ns, ns_of};
use crate::teller::Teller;
use crate::words::{LONGEST_LINE_BYTES, News, Order, Refusal};

/// How often an agent looks around and says that it lives.
const LOOK: Duration = Duration::from_millis(100);
/// Nobody has spoken to it for so long: whoever commands it asks for its clock every second while it has a load.
const SILENCE: Duration = Duration::from_secs(60);
/// The same before it has one: tables are made meanwhile.
const SILENCE_BEFORE: Duration = Duration::from_secs(6 * 3600);
/// A thread that gives no sign for longer stood still.
const STALL: Duration = Duration::from_millis(500);

/// Why an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeEnd {
    /// Its input has ended: whoever commanded it needs it no more, or is gone.
    InputEnded,
    /// Nobody has spoken to it for too long.
    Silence,
    /// It was told something that is no order.
    NotAnOrder {
        /// What is wrong with it.
        why: String,
    },
}

/// An order, or why there are none any more; with the moment at which it was there, nanoseconds.
type Heard = (u64, Result<Order, ServeEnd>);

/// A load that it does.
struct Doing {
    handle: LoadHandle,
    clock: Clock,
    forwarder: JoinHandle<bool>,
    has_begun: bool,
    last_beat: Option<Instant>,
}

/// Follows orders until its input ends. The caller then ends the process; a load under way is broken off.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    version: &str,
) -> ServeEnd {
    // Without threads it can do no load either; that it said nothing is told where it was started.
    let Ok(teller) = Teller::to(output) else { return ServeEnd::InputEnded };
    let (say, orders) = channel();
    let listener = std::thread::Builder::new().name("orders".to_owned()).spawn(move || listen(input, &say));
    if let Err(error) = listener {
        teller.tell(&News::Refused { why: format!("no thread: {error}") });
        return ServeEnd::InputEnded;
    }
    teller.tell(&News::Ready { holdfast: version.to_owned() });
    Agent { teller, doing: None }.live(&orders)
}

fn listen(input: impl Read, say: &Sender<Heard>) {
    let mut input = io::BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut line);
        let at_ns = now_ns();
        let heard = match read {
            Ok(0) | Err(_) => Err(ServeEnd::InputEnded),
            // Half a line is what is left of whoever commanded it.
            Ok(_) if line.last() != Some(&b'\n') => Err(ServeEnd::InputEnded),
            Ok(_) => {
                serde_json::from_slice(&line).map_err(|error| ServeEnd::NotAnOrder { why: error.to_string() })
            }
        };
        let is_last = heard.is_err();
        if say.send((at_ns, heard)).is_err() || is_last {
            return;
        }
    }
}

struct Agent {
    teller: Teller,
    doing: Option<Doing>,
}

impl Agent {
    fn live(mut self, orders: &Receiver<Heard>) -> ServeEnd {
        let mut heard = Instant::now();
        let mut looked = Instant::now();
        loop {
            match orders.recv_timeout(LOOK.saturating_sub(looked.elapsed())) {
                Ok((at_ns, Ok(order))) => {
                    heard = Instant::now();
                    self.obey(order, at_ns);
                }
                Ok((_, Err(end))) => return end,
                Err(RecvTimeoutError::Disconnected) => return ServeEnd::InputEnded,
                Err(RecvTimeoutError::Timeout) if heard.elapsed() > self.patience() => {
                    return ServeEnd::Silence;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look_around();
            }
        }
    }

    fn patience(&self) -> Duration {
        if self.doing.is_some() { SILENCE } else { SILENCE_BEFORE }
    }

    fn obey(&mut self, order: Order, at_ns: u64) {
        match order {
            Order::Ping { number } => {
                self.teller.tell(&News::Pong { number, at_ns });
            }
            Order::Load { plan } => match plan.plan() {
                Ok(plan) => self.begin(plan),
                Err(error) => {
                    self.teller.tell(&News::Refused { why: error.to_string() });
                }
            },
            Order::Begin { zero_ns } => {
                let Some(doing) = &mut self.doing else { return };
                doing.clock.set_zero(moment_of(zero_ns));
                doing.has_begun = true;
                self.teller.tell(&News::Begun { late_ns: at_ns.saturating_sub(zero_ns) });
            }
            Order::Mark { fault, at_s } => {
                self.doing.iter().for_each(|doing| doing.handle.mark_fault(fault, at_s));
            }
            Order::Stop => self.doing.iter().for_each(|doing| doing.handle.stop()),
        }
    }

    fn begin(&mut self, plan: load::LoadPlan) {
        if self.doing.is_some() {
            self.teller.tell(&News::Refused { why: "it has a load already".to_owned() });
            return;
        }
        let clock = Clock::set_later();
        let (sink, batches) = channel();
        let teller = self.teller.clone();
        let forward = move || forward(&batches, &teller);
        let forwarder = std::thread::Builder::new().name("forwarder".to_owned()).spawn(forward);
        match forwarder {
            Ok(forwarder) => {
                let handle = load::start(plan, clock.clone(), Box::new(|| Ok(())), sink);
                self.doing = Some(Doing { handle, clock, forwarder, has_begun: false, last_beat: None });
            }
            Err(error) => {
                self.teller.tell(&News::Refused { why: format!("no thread: {error}") });
            }
        }
    }

    /// Says that it lives, that its load stood still, or how it ended.
    fn look_around(&mut self) {
        let Some(doing) = &mut self.doing else {
            self.teller.tell(&News::Alive { connected: 0, refusal: None });
            return;
        };
        if doing.handle.is_finished() && doing.forwarder.is_finished() {
            if let Some(doing) = self.doing.take() {
                self.tell_the_end(doing);
            }
            return;
        }
        let muster = doing.handle.muster();
        let refusal = muster.first_error().map(|error| Refusal { code: error.code, text: error.message });
        // After the beginning nobody waits for clients to connect any more.
        let refusal = refusal.filter(|_| !doing.has_begun);
        self.teller.tell(&News::Alive { connected: muster.connected(), refusal });
        let beat = doing.handle.last_beat();
        if let (true, Some(from), Some(to)) = (doing.has_begun, doing.last_beat, beat)
            && to.saturating_duration_since(from) > STALL
        {
            self.teller.tell(&News::Stalled { from_ns: ns_of(from), to_ns: ns_of(to) });
        }
        doing.last_beat = beat.filter(|_| doing.has_begun);
    }

    fn tell_the_end(&self, doing: Doing) {
        let all_told = doing.forwarder.join().unwrap_or(false);
        let (why, recorded, cpu) = match doing.handle.join() {
            Ok(end) => (None, true, end.cpu.total()),
            Err(error) => {
                let recorded = !matches!(error, load::LoadError::RecordsLost { .. });
                (Some(error.to_string()), recorded, Duration::ZERO)
            }
        };
        let cpu_us = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        self.teller.tell(&News::Ended { why, recorded: recorded && all_told, cpu_us });
    }
}

/// Hands batches on until the load has ended. Whether all of them were.
fn forward(batches: &Receiver<Batch>, teller: &Teller) -> bool {
    let mut encoder = Encoder::default();
    let mut all = true;
    while let Ok(batch) = batches.recv() {
        all &=
            BatchWords::of(batch, &mut encoder).is_ok_and(|words| teller.tell(&News::Batch(Box::new(words))));
    }
    all
}
