//! How long syncs take on a disk whose medium is described, not the machine's: the time of each, how many are served at once,
//! and how fast bytes reach the medium.
//!
//! Pure: time is an argument. Who waits is `disk`.

use std::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// What a medium takes to make something durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncTimes {
    /// From the moment at which the bytes have reached the medium to the answer.
    pub latency: Duration,
    /// Syncs that are served at the same time; others wait for their turn. At least 1.
    pub at_once: u32,
    /// How fast bytes reach the medium, one sync's after the other's; none for at once.
    pub bytes_per_second: Option<u64>,
}

/// The syncs of one disk.
#[derive(Debug)]
pub(crate) struct Service {
    times: SyncTimes,
    /// When each place of the queue is free.
    free_at: Vec<Duration>,
    /// When the bytes of the syncs so far have reached the medium.
    written_at: Duration,
}

impl Service {
    pub(crate) fn new(times: SyncTimes) -> Service {
        let free_at = vec![Duration::ZERO; times.at_once.max(1) as usize];
        Service { times, free_at, written_at: Duration::ZERO }
    }

    /// When a sync of so many bytes is answered that came at `now`. Times count from any one moment and do not go back.
    pub(crate) fn answered_at(&mut self, now: Duration, bytes: u64) -> Duration {
        let Some(place) = self.free_at.iter_mut().min() else { return now };
        let served_at = now.max(*place);
        let takes = self.times.bytes_per_second.map_or(Duration::ZERO, |rate| time_of(bytes, rate));
        self.written_at = self.written_at.max(served_at) + takes;
        *place = self.written_at.max(served_at) + self.times.latency;
        *place
    }
}

fn time_of(bytes: u64, bytes_per_second: u64) -> Duration {
    let nanos = u128::from(bytes) * NANOS_PER_SECOND / u128::from(bytes_per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Syncs as (milliseconds at which they come, bytes), and the milliseconds at which each is answered.
    fn check(times: SyncTimes, syncs: &[(u64, u64)], expected_ms: &[u64]) {
        let mut service = Service::new(times);
        let answered: Vec<u128> = syncs
            .iter()
            .map(|(ms, bytes)| service.answered_at(Duration::from_millis(*ms), *bytes).as_millis())
            .collect();
        assert!(
            answered.iter().eq(expected_ms.iter().map(|ms| u128::from(*ms)).collect::<Vec<_>>().iter()),
            "{answered:?}"
        );
    }

    fn times(latency_ms: u64, at_once: u32, bytes_per_second: Option<u64>) -> SyncTimes {
        SyncTimes { latency: Duration::from_millis(latency_ms), at_once, bytes_per_second }
    }

    #[test]
    fn one_takes_the_latency_and_those_beyond_the_queue_wait_for_a_place() {
        check(times(10, 2, None), &[(0, 1), (0, 1), (0, 1), (5, 1), (100, 1)], &[10, 10, 20, 20, 110]);
        check(times(0, 1, None), &[(3, 1), (3, 1)], &[3, 3]);
    }

    #[test]
    fn bytes_reach_the_medium_one_after_the_other_however_many_syncs_are_served() {
        check(times(10, 8, Some(1_000)), &[(0, 5), (0, 5), (0, 0), (100, 20)], &[15, 20, 20, 130]);
    }

    proptest! {
        #[test]
        fn none_is_answered_early_and_no_more_are_under_way_than_the_queue_holds(
            latency_us in 0_u64..5_000,
            queue in 1_u32..6,
            rate in prop::option::of(1_000_u64..1_000_000_000),
            syncs in prop::collection::vec((0_u64..3_000, 0_u64..100_000), 1..60),
        ) {
            let latency = Duration::from_micros(latency_us);
            let times = SyncTimes { latency, at_once: queue, bytes_per_second: rate };
            let mut service = Service::new(times);
            let (mut now, mut under_way, mut sent) = (Duration::ZERO, Vec::new(), Duration::ZERO);
            for (pause_us, bytes) in syncs {
                now += Duration::from_micros(pause_us);
                let answered = service.answered_at(now, bytes);
                let takes = rate.map_or(Duration::ZERO, |rate| time_of(bytes, rate));
                prop_assert!(answered >= now + takes + latency);
                sent += takes;
                prop_assert!(answered >= sent + latency);
                // Each takes its latency alone, so that no more than so many end in any such time.
                under_way.push(answered);
                let alike = under_way.iter().filter(|end| **end + latency > answered && **end <= answered).count();
                prop_assert!(latency.is_zero() || alike <= queue as usize, "{under_way:?}");
            }
        }
    }
}
