//! How much waits for the narrowest link of a way: a stream fills its queue, and what finds room last waits as long as a full
//! queue takes.
//!
//! That wait is the same whoever filled the queue; where its room counts packets, those of others are taken as large as
//! they are. Only one queue is filled: a link behind the narrowest gets no more than it carries, and where one that limits
//! stands before it, the stream is paced between the two rates. Whatever waits elsewhere nevertheless makes the wait longer,
//! so that with other limiting links on the way a wait that does not fit leaves doubt, not a failure.

use std::time::{Duration, Instant};

use fabric::QueueLimit;
use fabric::link::Link;
use history::Verdict;
use lab::stream::Plan;
use paper::Narrowest;

use crate::looks::Send;
use crate::looks::capacity::{Capacity, DATAGRAM_BYTES_MAX, DATAGRAMS_MIN, OFFERED, PACED_MAX_BITS_PER_S};
use crate::looks::sharing::Sent;

/// What is sent may be taken up over so long a time, on a machine that is busy.
const TAKEN: Duration = Duration::from_millis(60);
/// Datagrams sent to fill a queue at most.
const BURST_MAX: u64 = 10_000;
/// A queue is not filled on purpose when that would hold up the database for longer.
const FILLED_MAX: Duration = Duration::from_millis(500);
/// The wait behind a full queue may miss what was asked by this share of it,
const WAIT_SHARE: f64 = 0.07;
/// by so many packets,
const WAIT_PACKETS: f64 = 4.0;
/// and by this.
const WAIT_SLACK_MS: f64 = 1.0;
/// Streams sent until one finds the queue.
const BURSTS: u32 = 3;
/// A link before the narrowest is offered this share of what it carries, so that nothing waits there,
const BEFORE_SHARE: f64 = 0.9;
/// which must be so much more than the narrowest carries.
const BEFORE_MIN: f64 = 1.1;
/// A larger queue may look smaller: the sender's own interface holds no more than 500 packets that nobody has fetched yet
/// (`TUN_READQ_SIZE` in the kernel's tun.c), and drops what comes on top.
const INTERFACE_PACKETS: f64 = 300.0;
/// To see that a small queue has gone, it is offered so many times its room,
const LARGER: f64 = 2.5;
/// where the one that is there has so many times the room at least.
const LARGER_MIN: f64 = 3.0;

/// A queue to be filled.
#[derive(Debug, Clone, Copy)]
struct Filling {
    link: Narrowest,
    /// Bytes of one of our packets on the wire.
    wire_bytes: usize,
    /// How many of them the queue has room for, as asked,
    asked: f64,
    /// and without the change that is to be seen.
    without: f64,
}

/// A full queue as seen.
#[derive(Debug, Clone, Copy)]
struct Full {
    /// How long the last that found room waited.
    waited_ms: f64,
    /// How many packets the queue had room for, going by that.
    packets: f64,
    /// Packets of others that left meanwhile; `None` where they are not known.
    others: Option<u64>,
    sent: usize,
    arrived: usize,
    /// Whether some of the stream found no room.
    dropped: bool,
}

impl Filling {
    fn leaves_per_s(&self) -> f64 {
        self.link.rate_bits_per_s as f64 / (self.wire_bytes as f64 * 8.0)
    }

    fn wait_ms(&self, packets: f64) -> f64 {
        packets / self.leaves_per_s() * 1e3
    }

    /// What a wait may miss that of so many packets by.
    fn tolerance_ms(&self, packets: f64, spread_ms: f64) -> f64 {
        self.wait_ms(packets) * WAIT_SHARE + WAIT_SLACK_MS + self.wait_ms(WAIT_PACKETS) + spread_ms
    }
}

impl Capacity {
    /// Fills the queue and sees how long the last that found room waited.
    pub(super) fn look_at_queue(
        &self,
        link: Narrowest,
        (header_bytes, way): (usize, &str),
        patience: Duration,
        send: Send<'_>,
    ) -> (Verdict, String) {
        let wire_bytes = DATAGRAM_BYTES_MAX + header_bytes;
        let (asked, without) = (room(link.room, wire_bytes), room(self.room_without(link), wire_bytes));
        if asked == without {
            let told =
                format!("the queue of the narrowest link {way} is the same with and without this fault");
            return (Verdict::Unknown, told);
        }
        let filling = Filling { link, wire_bytes, asked, without };
        // A queue that is far larger than the fault's is not filled to see that the fault's has gone.
        let is_partly = self.is_healing && asked > without * LARGER_MIN;
        let plan = match self.filling_plan(filling, is_partly, patience) {
            Ok(plan) => plan,
            Err(why) => return (Verdict::Unknown, format!("the queue {way} could not be measured: {why}")),
        };
        let mut seen = Vec::new();
        for _ in 0..BURSTS {
            match send(plan) {
                Err(error) => {
                    return (Verdict::Unknown, format!("a queue {way} could not be tried: {error}"));
                }
                Ok(sent) => seen.extend(self.full(filling, &sent)),
            }
            let judged = match is_partly {
                true => self.judge_larger(filling, &seen, way),
                false => self.judge_queue(filling, &seen, way),
            };
            if judged.0 == Verdict::Pass || seen.len() == BURSTS as usize {
                return judged;
            }
        }
        (Verdict::Unknown, format!("too few of the packets that fill the queue {way} arrived"))
    }

    /// What is sent to fill a queue, or why it is not.
    fn filling_plan(&self, filling: Filling, is_partly: bool, patience: Duration) -> Result<Plan, String> {
        let Filling { link, wire_bytes, asked, without } = filling;
        let leaves_per_s = filling.leaves_per_s();
        let occupied = if is_partly { (without * LARGER).min(asked * BEFORE_SHARE) } else { asked };
        let filled = Duration::from_secs_f64(occupied / leaves_per_s);
        let (rate, bits) = (link.rate_bits_per_s as f64, wire_bytes as f64 * 8.0);
        let (count, interval) = match link.before_bits_per_s {
            _ if is_partly => (occupied, Duration::ZERO),
            None => {
                let taken = leaves_per_s * TAKEN.as_secs_f64();
                ((occupied + taken) * 2.0 + f64::from(DATAGRAMS_MIN), Duration::ZERO)
            }
            Some(before) => {
                let most = (before as f64 * BEFORE_SHARE).min(PACED_MAX_BITS_PER_S);
                let offered = most.min(rate * OFFERED);
                if offered < rate * BEFORE_MIN {
                    return Err(
                        "the previous link is hardly faster, or too fast to pace, so both queues would fill"
                            .to_owned(),
                    );
                }
                let fills_s = filled.as_secs_f64() * rate / (offered - rate) * OFFERED + TAKEN.as_secs_f64();
                let interval = Duration::from_secs_f64(bits / offered * (1.0 - self.lost));
                (fills_s * offered / bits, interval)
            }
        };
        let count = (count / (1.0 - self.lost)) as u64;
        if filled > FILLED_MAX || count > BURST_MAX {
            let (ms, limit_ms) = (filled.as_millis(), FILLED_MAX.as_millis());
            return Err(format!(
                "filling it takes {count} datagrams and blocks the database for {ms} ms; at most {BURST_MAX} and \
                 {limit_ms} ms are allowed"
            ));
        }
        Ok(Plan {
            count: count as u32,
            interval,
            bytes: DATAGRAM_BYTES_MAX,
            patience: patience + filled * 2,
            is_whole: false,
            wants_copies: false,
        })
    }

    /// What the queue would have room for without the change.
    fn room_without(&self, link: Narrowest) -> QueueLimit {
        let same_link = self.otherwise.filter(|other| other.rate_bits_per_s == link.rate_bits_per_s);
        let by_default = Link::new(Some(link.rate_bits_per_s)).room(None);
        same_link.map(|other| other.room).or(by_default).unwrap_or(link.room)
    }

    /// The full queue, by the last tenth of what arrived. `None` where nothing did.
    fn full(&self, filling: Filling, sent: &Sent) -> Option<Full> {
        let arrived: Vec<(Instant, Duration)> = sent
            .datagrams
            .iter()
            .filter_map(|datagram| Some((*datagram.arrivals.first()?, datagram.took()?)))
            .collect();
        let mut last = arrived[arrived.len() - arrived.len().min((arrived.len() / 10).max(5))..].to_vec();
        last.sort_by_key(|(_, took)| *took);
        let (at, took) = *last.get(last.len() / 2)?;
        let own_bits = filling.wire_bytes as f64 * 8.0;
        let elsewhere_ms = self.delays.quantile_ms(0.5) + filling.link.others_s_per_bit * own_bits * 1e3;
        let waited_ms = (took.as_secs_f64() * 1e3 - elsewhere_ms).max(0.0);
        let began = at.checked_sub(Duration::from_secs_f64(waited_ms / 1e3))?;
        let beside = sent.others.as_ref().map(|others| {
            let meanwhile = others.iter().filter(|other| other.at > began && other.at <= at);
            meanwhile.fold((0, 0), |(packets, bytes), other| (packets + other.packets, bytes + other.bytes))
        });
        let of_own = waited_ms / 1e3 * filling.leaves_per_s();
        let (packets, bytes) = beside.unwrap_or_default();
        // Room that counts packets holds as many small ones of others as large ones of ours.
        let seen = match filling.link.room {
            QueueLimit::Bytes(_) => of_own,
            QueueLimit::Packets(_) => of_own - bytes as f64 / filling.wire_bytes as f64 + packets as f64,
        };
        let (sent, arrived) = (sent.datagrams.len(), arrived.len());
        let reaching = (1.0 - self.lost) * (1.0 - self.corrupted) * 0.98;
        let dropped = (arrived as f64) < sent as f64 * reaching;
        let others = beside.map(|(packets, _)| packets);
        Some(Full { waited_ms, packets: seen, others, sent, arrived, dropped })
    }

    fn judge_queue(&self, filling: Filling, seen: &[Full], way: &str) -> (Verdict, String) {
        let Some(last) = seen.last() else {
            return (Verdict::Unknown, format!("no packet of a burst {way} arrived"));
        };
        let Filling { asked, without, link, .. } = filling;
        let fits = |full: &Full, packets: f64| {
            let miss_ms = (filling.wait_ms(full.packets) - filling.wait_ms(packets)).abs();
            miss_ms <= filling.tolerance_ms(packets, self.spread_ms())
        };
        let sentence = format!(
            "{}, a full queue of {asked:.0} packets takes {:.1} ms",
            last.in_words(way),
            filling.wait_ms(asked)
        );
        if fits(last, asked) {
            return match (fits(last, without), last.dropped) {
                (true, _) => {
                    (Verdict::Unknown, format!("{sentence}; this fault makes no measurable difference"))
                }
                (false, true) => (Verdict::Pass, sentence),
                (false, false) => (Verdict::Unknown, format!("{sentence}; no packet found it full")),
            };
        }
        if link.is_in_series() {
            let told = "other links of the path have queues too, so the queues cannot be distinguished";
            return (Verdict::Unknown, format!("{sentence}; {told}"));
        }
        // What a busy machine adds differs from one to the next; what a queue holds does not.
        let agree = seen.iter().all(|full| fits(full, last.packets) && !fits(full, asked));
        let is_known = seen.iter().all(|full| full.others.is_some());
        let is_smaller =
            seen.iter().all(|full| full.packets < asked && full.dropped) && asked < INTERFACE_PACKETS;
        let is_larger = seen.iter().all(|full| full.packets > asked);
        if agree && is_known && (is_larger || is_smaller) {
            (Verdict::Fail, format!("{sentence}; the queue has the wrong size"))
        } else {
            (Verdict::Unknown, format!("{sentence}; the machine is too busy to judge"))
        }
    }

    /// Whether more of a burst was taken at once than a smaller queue has room for: whoever waits behind that many takes longer.
    fn judge_larger(&self, filling: Filling, seen: &[Full], way: &str) -> (Verdict, String) {
        let Some(last) = seen.last() else {
            return (Verdict::Unknown, format!("no packet of a burst {way} arrived"));
        };
        let Filling { without, link, .. } = filling;
        let sentence = format!("{}, the fault's queue had room for {without:.0} packets", last.in_words(way));
        let behind_ms = filling.wait_ms(without) + filling.tolerance_ms(without, self.spread_ms());
        if !last.dropped && filling.wait_ms(last.packets) > behind_ms {
            return (Verdict::Pass, sentence);
        }
        let is_as_before = |full: &Full| {
            full.dropped && full.others == Some(0) && filling.wait_ms(full.packets) <= behind_ms
        };
        if !link.is_in_series() && without < INTERFACE_PACKETS && seen.iter().all(is_as_before) {
            (Verdict::Fail, format!("{sentence}; the queue is still as small"))
        } else {
            (Verdict::Unknown, format!("{sentence}; other traffic or a busy machine makes this uncertain"))
        }
    }

    fn spread_ms(&self) -> f64 {
        self.delays.jitter.map_or(0.0, |jitter| jitter.spread.as_secs_f64() * 1e3)
    }
}

impl Full {
    fn in_words(&self, way: &str) -> String {
        let Full { sent, arrived, waited_ms, .. } = self;
        let beside = match self.others {
            Some(1) => " beside 1 packet of others".to_owned(),
            Some(others @ 2..) => format!(" beside {others} packets of others"),
            _ => String::new(),
        };
        format!(
            "of a burst of {sent} datagrams {way} {arrived} arrived; the last waited {waited_ms:.1} ms{beside}"
        )
    }
}

/// What a queue has room for, in packets of so many bytes.
fn room(limit: QueueLimit, wire_bytes: usize) -> f64 {
    match limit {
        QueueLimit::Bytes(bytes) => bytes as f64 / wire_bytes as f64,
        QueueLimit::Packets(packets) => packets as f64,
    }
}

#[cfg(test)]
mod tests {
    use lab::stream::Datagram;

    use super::*;
    use crate::looks::sharing::Other;
    use crate::samples::delays::Delays;

    const MBIT: u64 = 1_000_000;
    const WIRE_BYTES: usize = 1_250;

    fn capacity() -> Capacity {
        Capacity {
            asked: None,
            otherwise: None,
            shows_rate: false,
            shows_queue: true,
            lost: 0.0,
            corrupted: 0.0,
            delays: Delays::default(),
            overtaking: 0.0,
            is_healing: false,
        }
    }

    fn link(packets: u64) -> Narrowest {
        Narrowest::alone(10 * MBIT, QueueLimit::Packets(packets))
    }

    /// A burst of 300 into a link that sends one packet each millisecond and has room for so many.
    fn burst(room: u64) -> Sent {
        let sent = Instant::now();
        let arrivals = |number: u64| {
            if number <= room { vec![sent + Duration::from_millis(number)] } else { Vec::new() }
        };
        let datagrams = (0..300).map(|number| Datagram { sent, arrivals: arrivals(number) });
        Sent { datagrams: datagrams.collect(), others: Some(Vec::new()) }
    }

    fn judge(filling: Filling, rooms: &[u64]) -> Verdict {
        let one = capacity();
        let seen: Vec<Full> = rooms.iter().filter_map(|room| one.full(filling, &burst(*room))).collect();
        one.judge_queue(filling, &seen, "there").0
    }

    #[test]
    fn a_queue_is_shown_by_the_wait_behind_it_and_another_queue_is_found_out() {
        let of =
            |asked: f64, without: f64| Filling { link: link(50), wire_bytes: WIRE_BYTES, asked, without };
        assert_eq!(judge(of(50.0, 200.0), &[50]), Verdict::Pass);
        assert_eq!(judge(of(50.0, 200.0), &[200, 200, 200]), Verdict::Fail);
        assert_eq!(judge(of(50.0, 200.0), &[299, 299]), Verdict::Fail);
        assert_eq!(judge(of(50.0, 200.0), &[20, 20]), Verdict::Fail);
        assert_eq!(judge(of(50.0, 52.0), &[50]), Verdict::Unknown);
        assert_eq!(judge(of(200.0, 50.0), &[200]), Verdict::Pass);
        assert_eq!(judge(of(40.0, 80.0), &[]), Verdict::Unknown);
    }

    #[test]
    fn waits_that_differ_each_time_are_the_machines_and_a_wait_on_a_way_of_several_links_is_no_ones() {
        let alone = Filling { link: link(50), wire_bytes: WIRE_BYTES, asked: 50.0, without: 200.0 };
        assert_eq!(judge(alone, &[90, 200, 140]), Verdict::Unknown);
        let link = Narrowest { others_s_per_bit: 1e-7, ..link(50) };
        assert_eq!(judge(Filling { link, ..alone }, &[100, 100, 100]), Verdict::Unknown);
    }

    #[test]
    fn a_queue_of_packets_holds_small_ones_of_others_and_they_are_taken_as_small_as_they_are() {
        let filling = Filling { link: link(50), wire_bytes: WIRE_BYTES, asked: 50.0, without: 200.0 };
        // Of the fifty that wait, half are of 125 bytes: a full queue takes 27.5 ms.
        let sent = Instant::now();
        let at = |number: u32| sent + Duration::from_micros(1_100) * (number + 1);
        let arrivals = |number: u32| if number < 25 { vec![at(number)] } else { Vec::new() };
        let others: Vec<Other> =
            (0..25).map(|number| Other { at: at(number), packets: 1, bytes: 125 }).collect();
        let datagrams: Vec<Datagram> =
            (0..300).map(|number| Datagram { sent, arrivals: arrivals(number) }).collect();
        let one = capacity();
        let judged = |others: Option<Vec<Other>>| {
            let full = one.full(filling, &Sent { datagrams: datagrams.clone(), others });
            one.judge_queue(filling, &full.into_iter().collect::<Vec<_>>(), "there")
        };
        assert_eq!(judged(Some(others)).0, Verdict::Pass);
        assert_eq!(judged(Some(Vec::new())).0, Verdict::Fail, "a smaller queue");
        assert_eq!(judged(None).0, Verdict::Unknown, "nobody knows who else was there");
    }

    #[test]
    fn a_queue_of_its_own_size_is_told_from_the_one_that_was_there() {
        let both = Capacity { otherwise: Some(link(20)), ..capacity() };
        assert_eq!(both.room_without(link(50)), QueueLimit::Packets(20));
        assert_eq!(capacity().room_without(link(50)), QueueLimit::Bytes(256 * 1024));
    }
}
