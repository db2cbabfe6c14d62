//! The syncs of a mirrored volume while loads run: how long they took where the volume is served, and how long they then
//! waited for the other components.
//!
//! Owns the figures; the times are the mirror's.

use disk::mirror::SyncTime;
use measure::interval::{new_histogram, record_latency};
use measure::{Histogram, LatencyFigures};
use results::SyncsResult;

/// What was seen of them.
#[derive(Debug, Clone, Default)]
pub struct SyncsSeen {
    times: Option<Times>,
    round_trip_us: Option<u64>,
}

#[derive(Debug, Clone)]
struct Times {
    here: Histogram<u64>,
    beyond: Histogram<u64>,
}

impl SyncsSeen {
    /// Takes what came since the last look.
    pub fn take(&mut self, (times, round_trip_us): (Vec<SyncTime>, Option<u64>)) {
        self.round_trip_us = match (self.round_trip_us, round_trip_us) {
            (Some(earlier), Some(later)) => Some(earlier.min(later)),
            (earlier, later) => earlier.or(later),
        };
        for time in times {
            let kept =
                self.times.get_or_insert_with(|| Times { here: new_histogram(), beyond: new_histogram() });
            record_latency(&mut kept.here, time.here);
            record_latency(&mut kept.beyond, time.beyond);
        }
    }

    /// As the result tells it; nothing where there were no syncs.
    #[must_use]
    pub fn result(&self) -> Option<SyncsResult> {
        let times = self.times.as_ref()?;
        let (here, beyond) = (LatencyFigures::of(&times.here), LatencyFigures::of(&times.beyond));
        Some(SyncsResult {
            count: times.here.len(),
            here_us_p50: here.p50_us,
            here_us_p99: here.p99_us,
            beyond_us_mean: beyond.mean_us,
            beyond_us_p50: beyond.p50_us,
            beyond_us_p99: beyond.p99_us,
            round_trip_us: self.round_trip_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_a_sync_waited_for_others_is_told_apart_from_what_it_took_here() {
        let mut seen = SyncsSeen::default();
        assert_eq!(seen.result(), None);
        let time = |here_us, beyond_us| SyncTime {
            here: Duration::from_micros(here_us),
            beyond: Duration::from_micros(beyond_us),
        };
        seen.take((vec![time(100, 800), time(100, 800)], None));
        seen.take((vec![time(100, 800)], Some(790)));
        seen.take((Vec::new(), Some(900)));
        let told = seen.result().expect("there were some");
        assert_eq!((told.count, told.here_us_p50, told.beyond_us_p50), (3, 100, 800));
        assert_eq!(told.round_trip_us, Some(790));
    }
}
