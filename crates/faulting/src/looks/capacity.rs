//! What a direction carries. A train of datagrams that is offered faster than the narrowest link sends arrives at that link's
//! rate, with whatever else crossed the link meanwhile.
//!
//! The database's own traffic shares the link, so what arrived of a train is taken together with the packets of others that
//! the receivers' kernels saw. Owns the rate; how much waits for it is `filling`'s business.

use std::time::{Duration, Instant};

use history::Verdict;
use lab::stream::Plan;
use paper::Narrowest;

use crate::looks::Send;
use crate::looks::sharing::Sent;
use crate::observations::Observations;
use crate::samples::delays::{Delays, TOLERANCE_SHARE};

/// A train occupies a link of the asked rate for about so long,
const TRAIN: Duration = Duration::from_millis(60);
/// and never for longer than this: the database waits meanwhile.
const TRAIN_MAX: Duration = Duration::from_secs(3);
/// Trains sent until one sees the rate; the others met other traffic, or a busy machine.
const TRAINS: u32 = 8;
pub(super) const DATAGRAMS_MIN: u32 = 20;
const DATAGRAMS_MAX: u32 = 8_000;
const DATAGRAM_BYTES_MIN: usize = 100;
/// Fits into the smallest packets that every network carries, IPv6's 1280 bytes.
pub(super) const DATAGRAM_BYTES_MAX: usize = 1_232;
/// A rate is not believed from fewer arrivals.
const ARRIVALS_MIN: usize = 8;
/// A train is offered at so many times the rate,
pub(super) const OFFERED: f64 = 1.5;
/// and at this where some of it is lost before the link.
const OFFERED_LOSSY: f64 = 3.0;
/// A faster link is offered a train all at once: no thread can pace it.
pub(super) const PACED_MAX_BITS_PER_S: f64 = 1e8;
/// Where more is lost, too little of a train reaches the link.
const LOST_MAX: f64 = 0.8;
/// How far a rate may be from what was asked that is back after a fault of less than half of it.
const HEALED_SHARE: f64 = 0.1;
/// More than this must be offered, or it is not shown that no more gets through.
const OFFERED_MIN: f64 = 1.1;

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
    pub fn look(&self, header_bytes: usize, way: &str, patience: Duration, send: Send<'_>) -> Observations {
        if self.lost > LOST_MAX || self.corrupted > LOST_MAX {
            return vec![(Verdict::Unknown, format!("too few packets arrive {way} to measure the rate"))];
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
            return (Verdict::Unknown, format!("the rate {way} is the same with and without this fault"));
        };
        let mut trains = Vec::new();
        for attempt in 0..TRAINS {
            let (plan, wire) = self.train(rate, header_bytes, attempt, patience);
            if plan.patience > patience + TRAIN_MAX {
                return (
                    Verdict::Unknown,
                    format!("measuring the rate {way} would block the database for seconds"),
                );
            }
            match send(plan) {
                Ok(sent) => trains.extend(self.train_arrived(&sent, wire)),
                Err(error) => {
                    return (Verdict::Unknown, format!("a packet train {way} could not be sent: {error}"));
                }
            }
            let judged = self.judge_rate(&trains, attempt + 1, way);
            if judged.0 == Verdict::Pass {
                return judged;
            }
        }
        self.judge_rate(&trains, TRAINS, way)
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
    fn train_arrived(&self, sent: &Sent, wire_bytes: usize) -> Option<Train> {
        let bytes = wire_bytes as f64;
        let left: Vec<_> = sent.datagrams.iter().map(|datagram| (datagram.sent, bytes)).collect();
        let mut arrivals: Vec<Instant> =
            sent.datagrams.iter().flat_map(|datagram| datagram.arrivals.iter().copied()).collect();
        arrivals.sort_unstable();
        // At first and at last only a part of those that change places has come.
        let spread = self.spread();
        let (first, last) = (*arrivals.first()? + spread, arrivals.last()?.checked_sub(spread)?);
        arrivals.retain(|at| *at >= first && *at <= last);
        if arrivals.len() < ARRIVALS_MIN {
            return None;
        }
        let mut carried: Vec<_> =
            arrivals.into_iter().map(|at| (at, bytes / (1.0 - self.corrupted))).collect();
        let alone = slope_bits_per_s(&carried)?;
        let others = sent.others.iter().flatten().filter(|other| other.at >= first && other.at <= last);
        carried.extend(others.map(|other| (other.at, other.bytes as f64)));
        carried.sort_by_key(|(at, _)| *at);
        let together = slope_bits_per_s(&carried)?;
        // What is sent all at once has no slope.
        let offered = slope_bits_per_s(&left).map_or(f64::INFINITY, |offered| offered * (1.0 - self.lost));
        Some(Train { alone, together, offered })
    }

    /// How far a rate may be from what was asked. After a fault it is enough to see that a much lower rate has gone.
    fn rate_tolerance(&self, rate_bits_per_s: f64) -> f64 {
        let faulty = self.otherwise.map_or(rate_bits_per_s, |link| link.rate_bits_per_s as f64);
        let is_far = self.is_healing && faulty < rate_bits_per_s / 2.0;
        if is_far { HEALED_SHARE } else { TOLERANCE_SHARE }
    }

    /// What the trains that came through show, of so many sent.
    fn judge_rate(&self, trains: &[Train], sent: u32, way: &str) -> (Verdict, String) {
        let seen = match trains {
            [] => return (Verdict::Unknown, format!("too few packets of a train {way} arrived")),
            _ => format!("packet trains {way} arrived at {}", through(trains)),
        };
        if trains.len() * 2 < sent as usize {
            let told = format!("{seen}; only {} of {sent} trains could be measured", trains.len());
            return (Verdict::Unknown, format!("{told}, too few to judge the rate"));
        }
        let near = |train: &&Train, rate: f64, share: f64| (train.together / rate - 1.0).abs() <= share;
        let count = |is: &dyn Fn(&&Train) -> bool| trains.iter().filter(is).count();
        let Some(link) = self.asked else {
            let faulty = self.otherwise.map_or(0.0, |link| link.rate_bits_per_s as f64);
            let sentence = format!("{seen}; the fault let through {}", in_words(faulty));
            // It was offered so many times as much.
            if count(&|train| train.together > faulty * (1.0 + (OFFERED - 1.0) / 2.0)) > 0 {
                return (Verdict::Pass, sentence);
            }
            return if count(&|train| near(train, faulty, TOLERANCE_SHARE)) * 2 > trains.len() {
                (Verdict::Fail, format!("{sentence}; the rate is no higher than before"))
            } else {
                (Verdict::Unknown, format!("{sentence}; the machine is too busy to judge"))
            };
        };
        let rate = link.rate_bits_per_s as f64;
        let tolerance = self.rate_tolerance(rate);
        let sentence = format!("{seen}, expected {} ± {:.0} %", in_words(rate), tolerance * 100.0);
        // A machine that held packets back lets them through all at once; it does not do so most of the time.
        let above = count(&|train| train.together > rate * (1.0 + tolerance));
        let within = count(&|train| near(train, rate, tolerance) && train.offered > rate * OFFERED_MIN);
        if within > above {
            (Verdict::Pass, sentence)
        } else if above == trains.len() {
            (Verdict::Fail, format!("{sentence}; the rate is too high"))
        } else if count(&|train| train.offered > rate * OFFERED_MIN) == 0 {
            (Verdict::Unknown, format!("{sentence}; the machine is too busy to offer more"))
        } else {
            let why = if link.is_in_series() { "another link of the path is full, " } else { "" };
            (
                Verdict::Unknown,
                format!(
                    "{sentence}; the rate is too low: {why}packets were dropped further on, or the machine is too \
                     busy"
                ),
            )
        }
    }
}

/// How fast a train got through, in bits a second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Train {
    /// By itself,
    alone: f64,
    /// and with what arrived of others over the same link.
    together: f64,
    /// How fast it was sent, less what is lost before the link.
    offered: f64,
}

/// How fast trains got through, the slowest first.
fn through(trains: &[Train]) -> String {
    let listed = |of: fn(&Train) -> f64| {
        let mut sorted: Vec<f64> = trains.iter().map(of).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.into_iter().map(in_words).collect::<Vec<_>>().join(", ")
    };
    let alone = listed(|train| train.alone);
    if trains.iter().all(|train| train.alone == train.together) {
        return alone;
    }
    format!("{alone}, together with other traffic on the same link at {}", listed(|train| train.together))
}

/// The slope of the line through bytes that came one after the other, which those that come together do not bend. `None` where
/// all came at once.
fn slope_bits_per_s(bytes: &[(Instant, f64)]) -> Option<f64> {
    let begun = bytes.first()?.0;
    let mut total = 0.0;
    let points: Vec<(f64, f64)> = bytes
        .iter()
        .map(|(at, bytes)| {
            total += bytes;
            (at.saturating_duration_since(begun).as_secs_f64(), total)
        })
        .collect();
    let count = points.len() as f64;
    let mean_time = points.iter().map(|(time, _)| time).sum::<f64>() / count;
    let mean_bytes = points.iter().map(|(_, bytes)| bytes).sum::<f64>() / count;
    let mut covariance = 0.0;
    let mut variance = 0.0;
    for (time, bytes) in points {
        covariance += (bytes - mean_bytes) * (time - mean_time);
        variance += (time - mean_time).powi(2);
    }
    (variance > 0.0).then(|| covariance / variance * 8.0)
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
    use fabric::QueueLimit;
    use lab::stream::Datagram;

    use super::*;
    use crate::looks::sharing::Other;

    const MBIT: u64 = 1_000_000;

    fn link(rate_bits_per_s: u64, packets: u64) -> Option<Narrowest> {
        Some(Narrowest::alone(rate_bits_per_s, QueueLimit::Packets(packets)))
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

    /// A train as it is sent, half as fast again as the link carries.
    fn through(alone: f64, together: f64) -> Train {
        Train { alone, together, offered: 15e6 }
    }

    fn check(asked: Option<Narrowest>, trains: &[Train], expected: Verdict) {
        let otherwise = if asked.is_some() { None } else { link(10 * MBIT, 50) };
        let sent = u32::try_from(trains.len()).expect("few");
        let (verdict, sentence) = capacity(asked, otherwise).judge_rate(trains, sent, "there");
        assert_eq!(verdict, expected, "{sentence}");
    }

    #[test]
    fn a_rate_is_shown_within_two_percent_by_what_gets_through_of_more() {
        let alone = |rate: f64| through(rate, rate);
        check(link(10 * MBIT, 50), &[alone(9.9e6)], Verdict::Pass);
        check(link(10 * MBIT, 50), &[alone(5e6), alone(10.1e6)], Verdict::Pass);
        check(link(10 * MBIT, 50), &[alone(12e6), alone(11e6)], Verdict::Fail);
        check(link(10 * MBIT, 50), &[alone(12e6), alone(10e6)], Verdict::Unknown);
        check(link(10 * MBIT, 50), &[alone(12e6), alone(10e6), alone(9.9e6)], Verdict::Pass);
        check(link(10 * MBIT, 50), &[alone(9e6), alone(5e6)], Verdict::Unknown);
        check(link(10 * MBIT, 50), &[], Verdict::Unknown);
        let idle = Train { offered: 9.9e6, ..alone(9.9e6) };
        check(link(10 * MBIT, 50), &[idle, idle], Verdict::Unknown);
    }

    #[test]
    fn what_others_took_of_a_rate_counts_and_half_or_twice_of_it_beside_them_is_not_the_rate() {
        check(link(10 * MBIT, 50), &[through(6e6, 9.95e6)], Verdict::Pass);
        check(link(10 * MBIT, 50), &[through(3e6, 5e6); 8], Verdict::Unknown);
        check(link(10 * MBIT, 50), &[through(10e6, 20e6); 8], Verdict::Fail);
    }

    #[test]
    fn a_rate_that_is_lifted_lets_more_through() {
        let alone = |rate: f64| through(rate, rate);
        check(None, &[alone(500e6)], Verdict::Pass);
        check(None, &[alone(10e6)], Verdict::Fail);
        check(None, &[alone(7e6), alone(4e6)], Verdict::Unknown);
    }

    #[test]
    fn a_rate_is_not_judged_from_less_than_half_of_the_trains() {
        let alone = |rate: f64| [through(rate, rate); 4];
        let check = |trains: &[Train], sent: u32, expected: Verdict| {
            for (asked, otherwise) in [(link(10 * MBIT, 50), None), (None, link(5 * MBIT, 50))] {
                let (verdict, sentence) = capacity(asked, otherwise).judge_rate(trains, sent, "there");
                assert_eq!(verdict, expected, "{sentence}");
                let is_told = sentence.contains(&format!("only {} of {sent} trains", trains.len()));
                assert_eq!(is_told, expected == Verdict::Unknown, "{sentence}");
            }
        };
        check(&alone(9.9e6)[..1], 8, Verdict::Unknown);
        check(&alone(9.9e6)[..3], 8, Verdict::Unknown);
        check(&alone(9.9e6), 8, Verdict::Pass);
        check(&alone(9.9e6)[..1], 2, Verdict::Pass);
        let (verdict, _) = capacity(link(10 * MBIT, 50), None).judge_rate(&alone(20e6)[..1], 8, "there");
        assert_eq!(verdict, Verdict::Unknown, "one train is not enough for a failure either");
    }

    /// Datagrams that arrive in groups of `together`, the link sending one each millisecond.
    fn train(count: u64, together: u64, others: Option<Vec<Other>>) -> Sent {
        let sent = Instant::now();
        let arrival = |number: u64| sent + Duration::from_millis((number / together + 1) * together);
        let datagrams = (0..count).map(|number| Datagram { sent, arrivals: vec![arrival(number)] });
        Sent { datagrams: datagrams.collect(), others }
    }

    #[test]
    fn datagrams_that_come_together_or_twice_do_not_bend_the_rate() {
        let one = capacity(link(MBIT, 50), None);
        for together in [1, 4, 10] {
            let seen = one.train_arrived(&train(200, together, None), 125).expect("enough arrived");
            assert!((seen.alone / 1e6 - 1.0).abs() < 0.02, "{seen:?} with {together} together");
        }
        assert_eq!(one.train_arrived(&train(7, 1, None), 125), None);
        let corrupted = Capacity { corrupted: 0.5, ..one };
        let seen = corrupted.train_arrived(&train(200, 1, None), 125).expect("enough arrived");
        assert!(
            (seen.alone / 2e6 - 1.0).abs() < 0.02,
            "{seen:?} where half of what the link carried is thrown away"
        );
    }

    #[test]
    fn packets_of_others_add_to_a_train_while_it_arrives_and_not_before_or_after() {
        let one = capacity(link(MBIT, 50), None);
        let mut sent = train(200, 1, None);
        let begun = sent.datagrams[0].sent;
        let other = |ms: u64| Other { at: begun + Duration::from_millis(ms), packets: 2, bytes: 250 };
        sent.others = Some((0..800).step_by(4).map(other).collect());
        let seen = one.train_arrived(&sent, 125).expect("enough arrived");
        assert!((seen.alone / 1e6 - 1.0).abs() < 0.02, "{seen:?}");
        assert!((seen.together / 1.5e6 - 1.0).abs() < 0.02, "{seen:?}");
    }
}
