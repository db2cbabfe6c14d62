//! How often the datagrams of a fault's ways are sent.
//!
//! Owns the pace alone: sending is `lab::patrol`'s business, what must be sent `judge`'s.

use std::time::Duration;

use paper::RequestedNetwork;

use crate::datagrams::Way;
use crate::stations::Station;

/// Between two datagrams of a way, until there are enough,
const FAST: Duration = Duration::from_millis(2);
/// no less than this, however many are needed,
const FASTEST: Duration = Duration::from_micros(400);
/// and afterwards.
pub(super) const SLOW: Duration = Duration::from_millis(20);
/// All ways together send no more often than this,
const TOGETHER: Duration = Duration::from_micros(150);
/// nor, for a fault that stands for a short time, than this.
const TOGETHER_SHORT: Duration = Duration::from_micros(50);
/// What is needed is to be sent within this,
const WITHIN: Duration = Duration::from_millis(2_500);
/// and within this share of the time that a fault stands.
const WITHIN_SHARE: f64 = 0.6;

/// Between two datagrams of a way at first.
pub(super) fn interval(way: &Way, ways: usize, stands_for: Option<Duration>) -> Duration {
    let needed = u32::try_from(way.shows.needed()).unwrap_or(u32::MAX).max(1);
    let ways = u32::try_from(ways).unwrap_or(u32::MAX);
    let interval = FAST.min(WITHIN / needed).max(TOGETHER * ways).max(FASTEST);
    let within = stands_for.map(|time| time.mul_f64(WITHIN_SHARE) / needed);
    interval.min(within.unwrap_or(interval).max(TOGETHER_SHORT * ways))
}

/// Between two datagrams of a way, so that they take little of its narrowest link.
pub(super) fn least_interval(asked: &RequestedNetwork, from: &Station, to: &Station) -> Duration {
    let bits = ((lab::patrol::PAYLOAD_BYTES + from.header_bytes()) * 8) as f64;
    let narrowest = asked.narrowest(&from.path, &to.path);
    narrowest.map_or(Duration::ZERO, |link| {
        Duration::from_secs_f64(bits / (scenario::SHARE_OF_RATE * link.rate_bits_per_s as f64))
    })
}
