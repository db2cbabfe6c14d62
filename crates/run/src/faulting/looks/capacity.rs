//! What a direction carries and how much waits for it, seen by trains of datagrams sent as fast as they can be: they
//! arrive at the rate of the narrowest link, and those that find its queue full do not arrive.
//!
//! The database's own traffic shares the link, so a train may see less than the link carries, never more.

use std::time::{Duration, Instant};

use fabric::QueueLimit;
use history::Verdict;
use lab::stream::{Datagram, Plan, stream};

use crate::asked::Narrowest;
use crate::faulting::looks::Seen;
use crate::round_trips::Station;

/// A train occupies a link of the asked rate for about so long.
const TRAIN: Duration = Duration::from_millis(30);
/// Trains sent; the one that saw the highest rate counts, the others met other traffic.
const TRAINS: usize = 3;
const DATAGRAMS_MIN: u32 = 20;
const DATAGRAMS_MAX: u32 = 4_000;
const DATAGRAM_BYTES_MIN: usize = 100;
/// Fits into the smallest packets that every network carries, IPv6's 1280 bytes.
const DATAGRAM_BYTES_MAX: usize = 1_232;
/// A rate is not believed from fewer arrivals.
const ARRIVALS_MIN: usize = 8;
/// What a train sees is at most so much above the rate, by the error of its times,
const ABOVE: f64 = 1.1;
/// and at least this share of it, however much traffic is beside it.
const BELOW: f64 = 0.25;
/// A train shows no limit that was not offered at least so many times as much.
const OFFERED: f64 = 1.5;
/// What is sent may be taken up over so long a time, on a machine that is busy.
const TAKEN: Duration = Duration::from_millis(60);
/// Datagrams sent to fill a queue at most.
const BURST_MAX: u64 = 10_000;
/// A queue is not filled on purpose when that would hold up the database for longer.
const FILLED_MAX: Duration = Duration::from_millis(500);

/// What a direction is to carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// The narrowest link asked for; `None` where nothing limits.
    pub asked: Option<Narrowest>,
    /// The rate of the fault that stands or stood: without a limit now, more than this must get through.
    pub faulty_bits_per_s: Option<u64>,
    /// Whether the queue is to be seen too.
    pub shows_queue: bool,
}

impl Capacity {
    /// Sends trains and looks.
    pub fn look(&self, from: &Station, to: &Station, patience: Duration) -> Seen {
        let mut seen = Vec::new();
        let rate = self.asked.map(|link| link.rate_bits_per_s).or(self.faulty_bits_per_s);
        if let (Some(rate), true) = (rate, self.faulty_bits_per_s.is_some()) {
            seen.push(self.look_at_rate(rate, from, to, patience));
        }
        if let (Some(link), true) = (self.asked, self.shows_queue) {
            seen.push(look_at_queue(link, from, to, patience));
        }
        seen
    }

    fn look_at_rate(&self, rate: u64, from: &Station, to: &Station, patience: Duration) -> (Verdict, String) {
        let train_bytes = (rate as f64 / 8.0 * TRAIN.as_secs_f64()) as usize;
        let bytes = (train_bytes / DATAGRAMS_MIN as usize).clamp(DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_MAX);
        let wire = bytes + from.header_bytes();
        let count = (train_bytes / wire) as u32;
        let count = count.clamp(DATAGRAMS_MIN, DATAGRAMS_MAX);
        let takes = Duration::from_secs_f64(f64::from(count) * wire as f64 * 8.0 / rate as f64);
        let plan = Plan {
            count,
            interval: Duration::ZERO,
            bytes,
            patience: patience + takes * 4,
            is_whole: false,
            wants_copies: false,
        };
        let mut measured: Option<f64> = None;
        let mut offered: f64 = 0.0;
        for _ in 0..TRAINS {
            match stream(from.end(), to.end(), plan) {
                Ok(datagrams) => {
                    offered = offered.max(offered_bits_per_s(&datagrams, wire));
                    let seen = arrived_bits_per_s(&datagrams, wire);
                    measured = measured.into_iter().chain(seen).reduce(f64::max);
                }
                Err(error) => {
                    let (here, there) = (&from.name, &to.name);
                    return (Verdict::Unknown, format!("{here} to {there} could not be tried: {error}"));
                }
            }
        }
        self.judge_rate(measured, offered, &format!("from {} to {}", from.name, to.name))
    }

    fn judge_rate(&self, measured: Option<f64>, offered: f64, way: &str) -> (Verdict, String) {
        let Some(measured) = measured else {
            return (Verdict::Unknown, format!("too little of a train of datagrams {way} arrived"));
        };
        let seen = format!("a train of datagrams {way} got through at {}", in_words(measured));
        let Some(link) = self.asked else {
            let faulty = self.faulty_bits_per_s.unwrap_or_default() as f64;
            let sentence = format!("{seen}; the fault let through {}", in_words(faulty));
            let verdict = if measured > faulty * OFFERED {
                Verdict::Pass
            } else if offered < faulty * OFFERED * 2.0 {
                Verdict::Unknown
            } else {
                Verdict::Fail
            };
            return (verdict, sentence);
        };
        let rate = link.rate_bits_per_s as f64;
        let sentence = format!("{seen}, asked {}, offered {}", in_words(rate), in_words(offered));
        let verdict = if measured > rate * ABOVE {
            Verdict::Fail
        } else if offered < rate * OFFERED || measured < rate * BELOW {
            Verdict::Unknown
        } else {
            Verdict::Pass
        };
        (verdict, sentence)
    }
}

/// Fills the queue and counts what it had room for.
fn look_at_queue(link: Narrowest, from: &Station, to: &Station, patience: Duration) -> (Verdict, String) {
    let headers = from.header_bytes();
    let (bytes, room) = match link.room {
        QueueLimit::Bytes(bytes) => (DATAGRAM_BYTES_MAX, bytes / (DATAGRAM_BYTES_MAX + headers) as u64),
        QueueLimit::Packets(packets) => (DATAGRAM_BYTES_MIN, packets),
    };
    let wire_bits = (bytes + headers) as f64 * 8.0;
    let way = format!("from {} to {}", from.name, to.name);
    let filled = Duration::from_secs_f64(room as f64 * wire_bits / link.rate_bits_per_s as f64);
    let leaves_per_s = link.rate_bits_per_s as f64 / wire_bits;
    let leave_meanwhile = (leaves_per_s * TAKEN.as_secs_f64()) as u64;
    let count = (room + leave_meanwhile).saturating_mul(2).saturating_add(u64::from(DATAGRAMS_MIN));
    if filled > FILLED_MAX || count > BURST_MAX {
        let ms = filled.as_millis();
        return (
            Verdict::Pass,
            format!(
                "the queue {way} was not filled to be seen: that would take {count} datagrams and hold up the database for {ms} ms"
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
    match stream(from.end(), to.end(), plan) {
        Err(error) => (Verdict::Unknown, format!("a queue {way} could not be tried: {error}")),
        Ok(datagrams) => judge_queue(&datagrams, leaves_per_s, room, &way),
    }
}

/// Of a burst there arrives what the queue has room for, what leaves it meanwhile, and what is on the wire.
fn judge_queue(datagrams: &[Datagram], leaves_per_s: f64, room: u64, way: &str) -> (Verdict, String) {
    let (Some(first), Some(last)) = (datagrams.first(), datagrams.last()) else {
        return (Verdict::Unknown, format!("no datagram {way} was sent"));
    };
    let sending = last.sent.saturating_duration_since(first.sent).as_secs_f64();
    let arrived = datagrams.iter().filter(|datagram| !datagram.arrivals.is_empty()).count();
    let most = (room as f64 + leaves_per_s * (sending + TAKEN.as_secs_f64())) * ABOVE + 3.0;
    let sent = datagrams.len();
    let sentence =
        format!("of a burst of {sent} datagrams {way} {arrived} arrived, the queue has room for {room}");
    let verdict = if arrived == sent {
        Verdict::Fail
    } else if arrived as f64 > most || (arrived as f64) < room as f64 * BELOW {
        Verdict::Unknown
    } else {
        Verdict::Pass
    };
    (verdict, sentence)
}

/// How fast a train left.
fn offered_bits_per_s(datagrams: &[Datagram], wire_bytes: usize) -> f64 {
    let (Some(first), Some(last)) = (datagrams.first(), datagrams.last()) else { return 0.0 };
    let sending = last.sent.saturating_duration_since(first.sent).max(Duration::from_micros(10));
    (datagrams.len() * wire_bytes) as f64 * 8.0 / sending.as_secs_f64()
}

/// How fast a train arrived: the slope of the line through its arrivals, which those that come together do not bend.
fn arrived_bits_per_s(datagrams: &[Datagram], wire_bytes: usize) -> Option<f64> {
    let mut arrivals: Vec<Instant> =
        datagrams.iter().filter_map(|datagram| datagram.arrivals.first().copied()).collect();
    arrivals.sort_unstable();
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

    fn link(rate_bits_per_s: u64) -> Option<Narrowest> {
        Some(Narrowest { rate_bits_per_s, room: QueueLimit::Bytes(15_000) })
    }

    fn check(asked: Option<Narrowest>, measured: Option<f64>, offered: f64, expected: Verdict) {
        let faulty_bits_per_s = Some(10 * MBIT);
        let capacity = Capacity { asked, faulty_bits_per_s, shows_queue: false };
        let (verdict, sentence) = capacity.judge_rate(measured, offered, "there");
        assert_eq!(verdict, expected, "{sentence}");
    }

    #[test]
    fn a_rate_is_shown_by_what_gets_through_of_more() {
        check(link(10 * MBIT), Some(9.9e6), 1e9, Verdict::Pass);
        check(link(10 * MBIT), Some(5e6), 1e9, Verdict::Pass);
        check(link(10 * MBIT), Some(12e6), 1e9, Verdict::Fail);
        check(link(10 * MBIT), Some(9.9e6), 12e6, Verdict::Unknown);
        check(link(10 * MBIT), Some(1e6), 1e9, Verdict::Unknown);
        check(link(10 * MBIT), None, 1e9, Verdict::Unknown);
    }

    #[test]
    fn a_rate_that_is_lifted_lets_more_through() {
        check(None, Some(500e6), 1e9, Verdict::Pass);
        check(None, Some(10e6), 1e9, Verdict::Fail);
        check(None, Some(10e6), 12e6, Verdict::Unknown);
    }

    /// Datagrams that arrive in groups of `together`, the link sending one each millisecond.
    fn train(count: u64, together: u64) -> Vec<Datagram> {
        let sent = Instant::now();
        let arrival = |number: u64| sent + Duration::from_millis((number / together + 1) * together);
        (0..count).map(|number| Datagram { sent, arrivals: vec![arrival(number)] }).collect()
    }

    #[test]
    fn datagrams_that_come_together_do_not_bend_the_rate() {
        for together in [1, 4, 10] {
            let rate = arrived_bits_per_s(&train(200, together), 125).expect("enough arrived");
            assert!((rate / 1e6 - 1.0).abs() < 0.02, "{rate} with {together} together");
        }
        assert_eq!(arrived_bits_per_s(&train(7, 1), 125), None);
    }

    #[test]
    fn a_queue_is_shown_by_what_it_has_no_room_for() {
        let burst = |arrived: usize| {
            let sent = Instant::now();
            let arrivals = |number| if number < arrived { vec![sent] } else { Vec::new() };
            (0..100).map(|number| Datagram { sent, arrivals: arrivals(number) }).collect::<Vec<_>>()
        };
        assert_eq!(judge_queue(&burst(41), 1.0, 40, "there").0, Verdict::Pass);
        assert_eq!(judge_queue(&burst(100), 1.0, 40, "there").0, Verdict::Fail);
        assert_eq!(judge_queue(&burst(70), 1.0, 40, "there").0, Verdict::Unknown);
        assert_eq!(judge_queue(&burst(2), 1.0, 40, "there").0, Verdict::Unknown);
        assert_eq!(judge_queue(&[], 1.0, 40, "there").0, Verdict::Unknown);
    }
}
