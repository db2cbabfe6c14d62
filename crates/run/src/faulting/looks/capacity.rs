//! What a direction carries and how much waits for it. A train of datagrams that is offered faster than the narrowest link
//! sends arrives at that link's rate; a burst fills its queue, and the last that finds room waits as long as a full queue takes.
//!
//! The database's own traffic shares the link: a train may see less than the link carries, never more. The wait behind a full
//! queue is the same whoever filled it.

use std::time::{Duration, Instant};

use fabric::QueueLimit;
use fabric::link::Link;
use history::Verdict;
use lab::stream::{Datagram, Plan};

use crate::asked::Narrowest;
use crate::faulting::looks::{Seen, Send};
use crate::faulting::ways::delays::{Delays, TOLERANCE_SHARE};

/// A train occupies a link of the asked rate for about so long,
const TRAIN: Duration = Duration::from_millis(60);
/// and never for longer than this: the database waits meanwhile.
const TRAIN_MAX: Duration = Duration::from_secs(3);
/// Trains sent until one sees the rate; the others met other traffic, or a busy machine.
const TRAINS: u32 = 8;
const DATAGRAMS_MIN: u32 = 20;
const DATAGRAMS_MAX: u32 = 8_000;
const DATAGRAM_BYTES_MIN: usize = 100;
/// Fits into the smallest packets that every network carries, IPv6's 1280 bytes.
const DATAGRAM_BYTES_MAX: usize = 1_232;
/// A rate is not believed from fewer arrivals.
const ARRIVALS_MIN: usize = 8;
/// A train is offered at so many times the rate,
const OFFERED: f64 = 1.5;
/// and at this where some of it is lost before the link.
const OFFERED_LOSSY: f64 = 3.0;
/// A faster link is offered a train all at once: no thread can pace it.
const PACED_MAX_BITS_PER_S: f64 = 1e8;
/// Where more is lost, too little of a train reaches the link.
const LOST_MAX: f64 = 0.8;
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
/// How far a rate may be from what was asked that is back after a fault of less than half of it.
const HEALED_SHARE: f64 = 0.1;
/// Bursts sent until one finds the queue.
const BURSTS: u32 = 3;

/// What a direction is to carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// The narrowest link asked for; `None` where nothing limits.
    pub asked: Option<Narrowest>,
    /// The same without the change that is to be seen.
    pub otherwise: Option<Narrowest>,
    /// Whether the rate is to be seen.
    pub shows_rate: bool,
    /// Whether the queue is to be seen.
    pub shows_queue: bool,
    /// The share of packets that is lost before the link.
    pub lost: f64,
    /// The share that nobody accepts behind it.
    pub corrupted: f64,
    /// How long packets take behind the link.
    pub delays: Delays,
    /// The share that takes no such delay.
    pub overtaking: f64,
    /// Whether it is enough to see that the smaller queue of a fault has gone.
    pub is_healing: bool,
}

impl Capacity {
    /// Sends trains and bursts and looks.
    pub fn look(&self, header_bytes: usize, way: &str, patience: Duration, send: Send<'_>) -> Seen {
        if self.lost > LOST_MAX || self.corrupted > LOST_MAX {
            return vec![(
                Verdict::Unknown,
                format!("too little arrives {way} to see what the link carries"),
            )];
        }
        let mut seen = Vec::new();
        if self.shows_rate {
            seen.push(self.look_at_rate((header_bytes, way), patience, send));
        }
        // Where the rate is back to what it was, the fault's queue has gone with the fault's link.
        let shows_queue = self.shows_queue && !(self.is_healing && self.shows_rate);
        if let (Some(link), true) = (self.asked, shows_queue) {
            seen.push(self.look_at_queue(link, (header_bytes, way), patience, send));
        }
        seen
    }

    /// By how much copies of a train may change places behind the link.
    fn spread(&self) -> Duration {
        let overtaken = if self.overtaking > 0.0 { self.delays.delay } else { Duration::ZERO };
        overtaken + self.delays.jitter.map_or(Duration::ZERO, |jitter| jitter.spread * 4)
    }

    fn look_at_rate(
        &self,
        (header_bytes, way): (usize, &str),
        patience: Duration,
        send: Send<'_>,
    ) -> (Verdict, String) {
        let rates = [self.asked, self.otherwise].map(|link| link.map(|link| link.rate_bits_per_s));
        let (Some(rate), false) = (rates[0].or(rates[1]), rates[0] == rates[1]) else {
            return (Verdict::Unknown, format!("the rate {way} is the same with this fault and without it"));
        };
        let mut measured = Vec::new();
        for attempt in 0..TRAINS {
            let (plan, wire) = self.train(rate, header_bytes, attempt, patience);
            if plan.patience > patience + TRAIN_MAX {
                return (
                    Verdict::Unknown,
                    format!("to see the rate {way} would hold up the database for seconds"),
                );
            }
            match send(plan) {
                Ok(datagrams) => measured.extend(self.train_arrived(&datagrams, wire)),
                Err(error) => return (Verdict::Unknown, format!("a train {way} could not be sent: {error}")),
            }
            if let Some((Verdict::Pass, sentence)) =
                measured.last().map(|last| self.judge_rate(&[*last], way))
            {
                return (Verdict::Pass, sentence);
            }
        }
        self.judge_rate(&measured, way)
    }

    /// What is sent to see a rate, and the bytes of each packet.
    fn train(&self, rate: u64, header_bytes: usize, attempt: u32, patience: Duration) -> (Plan, usize) {
        // Longer ones tell more, on a machine that is busy.
        let length = TRAIN * (1 + attempt / 3) + self.spread() * 3;
        let train_bytes = (rate as f64 / 8.0 * length.as_secs_f64()) as usize;
        let bytes = (train_bytes / DATAGRAMS_MIN as usize).clamp(DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_MAX);
        let wire = bytes + header_bytes;
        let offered = if self.lost > 0.0 { OFFERED_LOSSY } else { OFFERED } / (1.0 - self.lost);
        let count = ((train_bytes / wire) as f64 * offered) as u32;
        let count = count.clamp(DATAGRAMS_MIN * offered as u32, DATAGRAMS_MAX);
        let offered_bits_per_s = rate as f64 * offered;
        let interval = if offered_bits_per_s > PACED_MAX_BITS_PER_S {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(wire as f64 * 8.0 / offered_bits_per_s)
        };
        let takes = Duration::from_secs_f64(f64::from(count) * wire as f64 * 8.0 / rate as f64);
        let patience = patience + takes;
        (Plan { count, interval, bytes, patience, is_whole: false, wants_copies: false }, wire)
    }

    /// How fast a train got through, of all packets that were not thrown away behind the link.
    fn train_arrived(&self, datagrams: &[Datagram], wire_bytes: usize) -> Option<f64> {
        let mut arrivals: Vec<Instant> =
            datagrams.iter().flat_map(|datagram| datagram.arrivals.iter().copied()).collect();
        arrivals.sort_unstable();
        // At first and at last only a part of those that change places has come.
        let spread = self.spread();
        let (first, last) = (*arrivals.first()? + spread, arrivals.last()?.checked_sub(spread)?);
        arrivals.retain(|at| *at >= first && *at <= last);
        Some(slope_bits_per_s(&arrivals, wire_bytes)? / (1.0 - self.corrupted))
    }

    /// How far a rate may be from what was asked. After a fault it is enough to see that a much lower rate has gone.
    fn rate_tolerance(&self, rate_bits_per_s: f64) -> f64 {
        let faulty = self.otherwise.map_or(rate_bits_per_s, |link| link.rate_bits_per_s as f64);
        let is_far = self.is_healing && faulty < rate_bits_per_s / 2.0;
        if is_far { HEALED_SHARE } else { TOLERANCE_SHARE }
    }

    fn judge_rate(&self, measured: &[f64], way: &str) -> (Verdict, String) {
        let mut sorted = measured.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (sorted.first().copied(), sorted.last().copied()) else {
            return (Verdict::Unknown, format!("too little of a train of datagrams {way} arrived"));
        };
        let all: Vec<String> = sorted.iter().map(|rate| in_words(*rate)).collect();
        let seen = format!("trains of datagrams {way} got through at {}", all.join(", "));
        let Some(link) = self.asked else {
            let faulty = self.otherwise.map_or(0.0, |link| link.rate_bits_per_s as f64);
            let sentence = format!("{seen}; the fault let through {}", in_words(faulty));
            // It was offered so many times as much.
            let verdict =
                if most > faulty * (1.0 + (OFFERED - 1.0) / 2.0) { Verdict::Pass } else { Verdict::Fail };
            return (verdict, sentence);
        };
        let rate = link.rate_bits_per_s as f64;
        let tolerance = self.rate_tolerance(rate);
        let sentence = format!("{seen}, asked {} give or take {:.0} %", in_words(rate), tolerance * 100.0);
        let nearest = sorted.iter().map(|seen| (seen / rate - 1.0).abs()).fold(f64::INFINITY, f64::min);
        if nearest <= tolerance {
            (Verdict::Pass, sentence)
        } else if least > rate * (1.0 + tolerance) {
            (Verdict::Fail, format!("{sentence}; more gets through than asked"))
        } else {
            (
                Verdict::Unknown,
                format!("{sentence}; other traffic shares the link, or the machine is too busy to tell"),
            )
        }
    }

    /// Fills the queue and sees how long the last that found room waited.
    fn look_at_queue(
        &self,
        link: Narrowest,
        (header_bytes, way): (usize, &str),
        patience: Duration,
        send: Send<'_>,
    ) -> (Verdict, String) {
        let bytes = DATAGRAM_BYTES_MAX;
        let wire = bytes + header_bytes;
        let (asked, without) = (room(link.room, wire), room(self.room_without(link), wire));
        if asked == without {
            return (Verdict::Unknown, format!("the queue {way} is the same with this fault and without it"));
        }
        let leaves_per_s = link.rate_bits_per_s as f64 / (wire as f64 * 8.0);
        // A queue that is far larger than the fault's is not filled to see that the fault's has gone.
        let is_partly = self.is_healing && asked > without * 3.0;
        let occupied = if is_partly { without * 1.5 } else { asked };
        let filled = Duration::from_secs_f64(occupied / leaves_per_s);
        let count = (occupied + leaves_per_s * TAKEN.as_secs_f64()) * 2.0 + f64::from(DATAGRAMS_MIN);
        let count = (count / (1.0 - self.lost)) as u64;
        if filled > FILLED_MAX || count > BURST_MAX {
            let (ms, limit_ms) = (filled.as_millis(), FILLED_MAX.as_millis());
            return (
                Verdict::Unknown,
                format!(
                    "the queue {way} was not seen: to fill it takes {count} datagrams and holds up the database for {ms} ms, more than {limit_ms} ms"
                ),
            );
        }
        let plan = Plan {
            count: count as u32,
            interval: Duration::ZERO,
            bytes,
            patience: patience + filled * 2,
            is_whole: false,
            wants_copies: false,
        };
        let mut last = (Verdict::Unknown, format!("no datagram {way} was sent"));
        for _ in 0..BURSTS {
            last = match send(plan) {
                Err(error) => (Verdict::Unknown, format!("a queue {way} could not be tried: {error}")),
                Ok(datagrams) if is_partly => judge_larger(&datagrams, without, way),
                Ok(datagrams) => self.judge_queue(&datagrams, leaves_per_s, (asked, without), way),
            };
            if last.0 == Verdict::Pass {
                break;
            }
        }
        last
    }

    /// What the queue would have room for without the change.
    fn room_without(&self, link: Narrowest) -> QueueLimit {
        let same_link = self.otherwise.filter(|other| other.rate_bits_per_s == link.rate_bits_per_s);
        let by_default = Link::new(Some(link.rate_bits_per_s)).room(None);
        same_link.map(|other| other.room).or(by_default).unwrap_or(link.room)
    }

    fn judge_queue(
        &self,
        datagrams: &[Datagram],
        leaves_per_s: f64,
        (asked, without): (f64, f64),
        way: &str,
    ) -> (Verdict, String) {
        let took: Vec<f64> = datagrams
            .iter()
            .filter_map(|datagram| datagram.took().map(|took| took.as_secs_f64() * 1e3))
            .collect();
        let (sent, arrived) = (datagrams.len(), took.len());
        let mut last: Vec<f64> = took.iter().rev().take((arrived / 10).max(5)).copied().collect();
        last.sort_by(f64::total_cmp);
        let Some(middle) = last.get(last.len() / 2) else {
            return (Verdict::Unknown, format!("nothing of a burst {way} arrived"));
        };
        let waited_ms = (middle - self.delays.quantile_ms(0.5)).max(0.0);
        let wait_ms = |packets: f64| packets / leaves_per_s * 1e3;
        let slack_ms = WAIT_SLACK_MS + wait_ms(WAIT_PACKETS) + self.spread_ms();
        let fits =
            |packets: f64| (waited_ms - wait_ms(packets)).abs() <= wait_ms(packets) * WAIT_SHARE + slack_ms;
        let asked_ms = wait_ms(asked);
        let sentence = format!(
            "of a burst of {sent} datagrams {way} {arrived} arrived; the last waited {waited_ms:.1} ms, a full queue of {asked:.0} packets takes {asked_ms:.1} ms"
        );
        let dropped = (arrived as f64) < sent as f64 * (1.0 - self.lost) * (1.0 - self.corrupted) * 0.98;
        match (fits(asked), fits(without), dropped) {
            (true, false, true) => (Verdict::Pass, sentence),
            (true, true, _) => {
                (Verdict::Unknown, format!("{sentence}; without this fault the same would be seen"))
            }
            (_, _, false) => (Verdict::Fail, format!("{sentence}; nothing found it full")),
            (false, ..) => (Verdict::Fail, format!("{sentence}; it is another queue than asked")),
        }
    }

    fn spread_ms(&self) -> f64 {
        self.delays.jitter.map_or(0.0, |jitter| jitter.spread.as_secs_f64() * 1e3)
    }
}

/// Whether more of a burst was taken at once than a smaller queue has room for: whoever waits behind that many takes longer.
fn judge_larger(datagrams: &[Datagram], smaller: f64, way: &str) -> (Verdict, String) {
    let arrived = datagrams.iter().filter(|datagram| !datagram.arrivals.is_empty()).count();
    let sent = datagrams.len();
    let verdict = if arrived as f64 >= sent as f64 * 0.98 { Verdict::Pass } else { Verdict::Fail };
    let told = format!(
        "{arrived} of a burst of {sent} datagrams {way} arrived; the fault's queue had room for {smaller:.0}"
    );
    (verdict, told)
}

/// What a queue has room for, in packets of so many bytes.
fn room(limit: QueueLimit, wire_bytes: usize) -> f64 {
    match limit {
        QueueLimit::Bytes(bytes) => bytes as f64 / wire_bytes as f64,
        QueueLimit::Packets(packets) => packets as f64,
    }
}

/// The slope of the line through arrivals, which those that come together do not bend.
fn slope_bits_per_s(arrivals: &[Instant], wire_bytes: usize) -> Option<f64> {
    let begun = *arrivals.first()?;
    if arrivals.len() < ARRIVALS_MIN {
        return None;
    }
    let times: Vec<f64> =
        arrivals.iter().map(|arrival| arrival.saturating_duration_since(begun).as_secs_f64()).collect();
    let count = times.len() as f64;
    let mean_time = times.iter().sum::<f64>() / count;
    let mean_number = (count - 1.0) / 2.0;
    let mut covariance = 0.0;
    let mut variance = 0.0;
    for (number, time) in times.iter().enumerate() {
        covariance += (number as f64 - mean_number) * (time - mean_time);
        variance += (time - mean_time).powi(2);
    }
    (variance > 0.0).then(|| covariance / variance * wire_bytes as f64 * 8.0)
}

fn in_words(bits_per_s: f64) -> String {
    match bits_per_s {
        rate if rate >= 1e9 => format!("{:.2} Gbit/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.2} Mbit/s", rate / 1e6),
        rate => format!("{:.1} kbit/s", rate / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn link(rate_bits_per_s: u64, packets: u64) -> Option<Narrowest> {
        Some(Narrowest { rate_bits_per_s, room: QueueLimit::Packets(packets) })
    }

    fn capacity(asked: Option<Narrowest>, otherwise: Option<Narrowest>) -> Capacity {
        Capacity {
            asked,
            otherwise,
            shows_rate: true,
            shows_queue: true,
            lost: 0.0,
            corrupted: 0.0,
            delays: Delays::default(),
            overtaking: 0.0,
            is_healing: false,
        }
    }

    fn check(asked: Option<Narrowest>, measured: &[f64], expected: Verdict) {
        let otherwise = if asked.is_some() { None } else { link(10 * MBIT, 50) };
        let (verdict, sentence) = capacity(asked, otherwise).judge_rate(measured, "there");
        assert_eq!(verdict, expected, "{sentence}");
    }

    #[test]
    fn a_rate_is_shown_within_two_percent_by_what_gets_through_of_more() {
        check(link(10 * MBIT, 50), &[9.9e6], Verdict::Pass);
        check(link(10 * MBIT, 50), &[5e6, 10.1e6], Verdict::Pass);
        check(link(10 * MBIT, 50), &[12e6, 11e6], Verdict::Fail);
        check(link(10 * MBIT, 50), &[9e6, 5e6], Verdict::Unknown);
        check(link(10 * MBIT, 50), &[], Verdict::Unknown);
    }

    #[test]
    fn a_rate_that_is_lifted_lets_more_through() {
        check(None, &[500e6], Verdict::Pass);
        check(None, &[10e6], Verdict::Fail);
    }

    /// Datagrams that arrive in groups of `together`, the link sending one each millisecond.
    fn train(count: u64, together: u64) -> Vec<Datagram> {
        let sent = Instant::now();
        let arrival = |number: u64| sent + Duration::from_millis((number / together + 1) * together);
        (0..count).map(|number| Datagram { sent, arrivals: vec![arrival(number)] }).collect()
    }

    #[test]
    fn datagrams_that_come_together_or_twice_do_not_bend_the_rate() {
        let one = capacity(link(MBIT, 50), None);
        for together in [1, 4, 10] {
            let rate = one.train_arrived(&train(200, together), 125).expect("enough arrived");
            assert!((rate / 1e6 - 1.0).abs() < 0.02, "{rate} with {together} together");
        }
        assert_eq!(one.train_arrived(&train(7, 1), 125), None);
        let corrupted = Capacity { corrupted: 0.5, ..one };
        let rate = corrupted.train_arrived(&train(200, 1), 125).expect("enough arrived");
        assert!((rate / 2e6 - 1.0).abs() < 0.02, "{rate} where half of what the link carried is thrown away");
    }

    /// A burst of 300 into a link that sends one packet each millisecond and has room for so many.
    fn burst(room: u64) -> Vec<Datagram> {
        let sent = Instant::now();
        let arrivals = |number: u64| {
            if number <= room { vec![sent + Duration::from_millis(number)] } else { Vec::new() }
        };
        (0..300).map(|number| Datagram { sent, arrivals: arrivals(number) }).collect()
    }

    #[test]
    fn a_queue_is_shown_by_the_wait_behind_it_and_another_queue_is_found_out() {
        let one = capacity(link(10 * MBIT, 50), None);
        let verdict = |rooms, seen| one.judge_queue(&burst(seen), 1_000.0, rooms, "there").0;
        assert_eq!(verdict((50.0, 200.0), 50), Verdict::Pass);
        assert_eq!(verdict((50.0, 200.0), 200), Verdict::Fail);
        assert_eq!(verdict((50.0, 200.0), 299), Verdict::Fail);
        assert_eq!(verdict((50.0, 52.0), 50), Verdict::Unknown);
        assert_eq!(verdict((200.0, 50.0), 200), Verdict::Pass);
        assert_eq!(one.judge_queue(&[], 1.0, (40.0, 80.0), "there").0, Verdict::Unknown);
    }

    #[test]
    fn a_queue_of_its_own_size_is_told_from_the_one_that_was_there() {
        let both = capacity(link(MBIT, 50), link(MBIT, 20));
        assert_eq!(both.room_without(link(MBIT, 50).expect("a link")), QueueLimit::Packets(20));
        let without = capacity(link(MBIT, 50), None);
        assert_eq!(without.room_without(link(MBIT, 50).expect("a link")), QueueLimit::Bytes(256 * 1024));
    }
}
