//! What a stretch of a run in which something else went on did to the latency of a load: its percentiles beside the baseline's.
//!
//! Owns which seconds speak for such a stretch. A time line knows whole seconds only, and a stretch that is shorter than one
//! has none of its own: nothing is said of it, because what else happened in its second would be said of it.

use crate::figures::LatencyFigures;
use crate::timeline::{Timeline, TimelineError};

/// The shortest stretch of which anything can be said, seconds: the grain of a time line.
pub const GRAIN_S: f64 = 1.0;

/// Latency over some seconds of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// How many seconds.
    pub seconds: u64,
    /// How many succeeded in them.
    pub count: u64,
    /// Their latency; all zero where none succeeded.
    pub latency: LatencyFigures,
}

/// The latency of one operation of a load over a stretch of the run's clock: of the seconds of which at least half lies within
/// it, and of the one in which it ends, because what had to wait for its end is told there. `None` where the stretch is shorter
/// than the grain.
///
/// # Errors
/// When the time line is damaged.
pub fn latency_during(
    timeline: &Timeline,
    (load, operation): (&str, &str),
    (from_s, to_s): (f64, f64),
) -> Result<Option<Stretch>, TimelineError> {
    // What is no number is no stretch either.
    if !matches!((to_s - from_s).partial_cmp(&GRAIN_S), Some(order) if order.is_ge()) {
        return Ok(None);
    }
    let figures = timeline.summarize(load, from_s, to_s.ceil())?;
    let measured = figures.operations.get(operation);
    Ok(Some(Stretch {
        seconds: figures.seconds,
        count: measured.map_or(0, |of| of.count),
        latency: measured.map(|of| of.latency).unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::interval::{new_histogram, record_latency};

    const LOAD: (&str, &str) = ("l", "insert");

    /// A load with so many milliseconds of latency in each second, a hundred times.
    fn timeline(latencies_ms: &[u64]) -> Timeline {
        let mut timeline = Timeline::new();
        for (second, latency_ms) in latencies_ms.iter().enumerate() {
            let mut histogram = new_histogram();
            for _ in 0..100 {
                record_latency(&mut histogram, Duration::from_millis(*latency_ms));
            }
            timeline.add_histogram(LOAD.0, LOAD.1, second as u64, &histogram).expect("added");
        }
        timeline
    }

    /// Seconds taken and their 99th percentile in milliseconds.
    fn check(latencies_ms: &[u64], stretch: (f64, f64), expected: Option<(u64, u64)>) {
        let found = latency_during(&timeline(latencies_ms), LOAD, stretch).expect("a time line");
        let found = found.map(|of| (of.seconds, (of.latency.p99_us as f64 / 1e3).round() as u64));
        assert_eq!(found, expected, "{stretch:?} of {latencies_ms:?}");
    }

    #[test]
    fn a_slow_stretch_shows_and_what_lies_beside_it_does_not() {
        let slow = [5, 5, 5, 40, 40, 5, 90];
        check(&slow, (3.0, 5.0), Some((2, 40)));
        check(&slow, (2.7, 5.2), Some((3, 40)));
        check(&slow, (0.0, 3.0), Some((3, 5)));
        check(&slow, (3.6, 5.4), Some((2, 40)));
        check(&slow, (0.0, 2.1), Some((3, 5)));
        check(&slow, (4.6, 6.1), Some((2, 90)));
        check(&[5, 5, 5, 5, 5], (3.0, 5.0), Some((2, 5)));
    }

    #[test]
    fn of_a_stretch_shorter_than_a_second_nothing_is_said() {
        let slow = [5, 40, 5];
        check(&slow, (1.0, 1.99), None);
        check(&slow, (1.4, 1.6), None);
        check(&slow, (2.0, 1.0), None);
        check(&slow, (f64::NAN, 3.0), None);
        check(&slow, (1.0, 2.0), Some((1, 40)));
    }

    #[test]
    fn a_stretch_in_which_nothing_succeeded_has_seconds_and_no_latency() {
        let found = latency_during(&timeline(&[5]), LOAD, (3.0, 5.0)).expect("a time line").expect("whole");
        assert_eq!((found.seconds, found.count, found.latency.p99_us), (2, 0, 0));
        let unknown = latency_during(&timeline(&[5]), ("other", "x"), (0.0, 1.0)).expect("a time line");
        assert_eq!(unknown.map(|of| of.count), Some(0));
    }
}
