//! When the host that serves a volume counts as lost for the one that asks it.
//!
//! Owns that judgement alone. Pure: the moments are arguments. Whoever connects and asks is `initiator`.

use std::time::{Duration, Instant};

/// What is known of a host that may have fallen silent.
#[derive(Debug)]
pub(super) struct Silence {
    /// How long it is waited for.
    limit: Duration,
    /// When it was heard for the last time, as far as attempts since then have failed.
    since: Option<Instant>,
    lost_after: Option<Duration>,
}

impl Silence {
    pub(super) fn new(limit: Duration) -> Silence {
        Silence { limit, since: None, lost_after: None }
    }

    /// It gave a sign: an answer, or a connection.
    pub(super) fn heard(&mut self) {
        self.since = None;
    }

    /// An attempt failed, in which it had been silent for so long. Whether it counts as lost, which it does for good: of what
    /// was refused once, nothing more can be trusted to be written.
    pub(super) fn failed(&mut self, now: Instant, silent_for: Duration) -> bool {
        let since = *self.since.get_or_insert_with(|| now.checked_sub(silent_for).unwrap_or(now));
        let silent_for = now.saturating_duration_since(since);
        if self.lost_after.is_none() && silent_for >= self.limit {
            self.lost_after = Some(silent_for);
        }
        self.lost_after.is_some()
    }

    /// How long it had been silent when it was given up.
    pub(super) fn lost_after(&self) -> Option<Duration> {
        self.lost_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts at these milliseconds, each `+` heard or `-` failed after half a second of silence, with a limit of 5 s;
    /// and after how many milliseconds it counts as lost.
    fn check(attempts: &[(u64, char)], expected: Option<u64>) {
        let start = Instant::now();
        let mut silence = Silence::new(Duration::from_secs(5));
        for (at_ms, what) in attempts {
            match what {
                '+' => silence.heard(),
                _ => {
                    let lost = silence
                        .failed(start + Duration::from_millis(1_000 + at_ms), Duration::from_millis(500));
                    assert_eq!(lost, silence.lost_after().is_some(), "{attempts:?}");
                }
            }
        }
        assert_eq!(silence.lost_after(), expected.map(Duration::from_millis), "{attempts:?}");
    }

    #[test]
    fn a_host_is_lost_once_every_attempt_has_failed_for_as_long_as_it_is_waited_for() {
        check(&[], None);
        check(&[(0, '-')], None);
        check(&[(0, '-'), (4_499, '-')], None);
        check(&[(0, '-'), (4_500, '-')], Some(5_000));
        check(&[(0, '-'), (9_000, '-'), (20_000, '-')], Some(9_500));
    }

    #[test]
    fn one_sign_of_it_begins_the_wait_anew_and_comes_too_late_once_it_is_lost() {
        check(&[(0, '-'), (4_000, '-'), (4_100, '+'), (5_000, '-'), (9_000, '-')], None);
        check(&[(0, '-'), (4_100, '+'), (5_000, '-'), (9_500, '-')], Some(5_000));
        check(&[(0, '-'), (6_000, '-'), (6_100, '+'), (6_200, '-')], Some(6_500));
    }
}
