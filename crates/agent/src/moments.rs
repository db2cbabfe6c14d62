//! Moments of this machine's monotonic clock as numbers that can be told to another process.
//!
//! Both ends of a connection count from their own machine's start. What lies between the two clocks is `offset`'s to find out.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// How often the two ways of reading the clock are tried: whoever is interrupted between them reads them too far apart.
const TRIES: usize = 8;

/// Nanoseconds on the clock that [`Instant`] counts by (clock_gettime(2), CLOCK_MONOTONIC).
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    nanoseconds(now)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// One moment, read both ways.
fn same_moment() -> (Instant, u64) {
    let read = || {
        let (before, instant, after) = (now_ns(), Instant::now(), now_ns());
        (after - before, instant, before + (after - before) / 2)
    };
    let best = (0..TRIES).map(|_| read()).min_by_key(|(apart_ns, ..)| *apart_ns);
    best.map_or_else(|| (Instant::now(), now_ns()), |(_, instant, ns)| (instant, ns))
}

/// A moment as a number.
pub(crate) fn ns_of(moment: Instant) -> u64 {
    let (now, ns) = same_moment();
    match moment.checked_duration_since(now) {
        Some(ahead) => ns.saturating_add(nanoseconds(ahead)),
        None => ns.saturating_sub(nanoseconds(now.duration_since(moment))),
    }
}

/// The moment of a number; now, where that lies beyond what can be told.
pub(crate) fn moment_of(ns: u64) -> Instant {
    let (now, now_ns) = same_moment();
    let ahead = now.checked_add(Duration::from_nanos(ns.saturating_sub(now_ns)));
    let found = if ns >= now_ns { ahead } else { now.checked_sub(Duration::from_nanos(now_ns - ns)) };
    found.unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_back_from_its_number() {
        for moment in [Instant::now(), Instant::now() + Duration::from_secs(3600)] {
            let back = moment_of(ns_of(moment));
            let apart = back.max(moment).duration_since(back.min(moment));
            assert!(apart < Duration::from_millis(100), "{apart:?}");
        }
        let now = Instant::now();
        assert!(moment_of(u64::MAX) >= now && moment_of(0) <= Instant::now());
    }
}
