//! How long a load went without a success while something was due, and how long nothing was due, to the microsecond.
//!
//! Owns the streaming record: a few stretches a second, whatever the throughput. What they say of a fault is
//! [`recovery`](crate::recovery)'s business. Reads no clock: moments are seconds on the run's clock, in order of time.
//!
//! A wait begins when something falls due, or with the last success where more was due already. It ends with the next
//! success of any client. What failed is still due: a failure ends no wait. In a closed loop an operation is due as soon
//! as a client wants to send it, in an open loop from its moment on; a load in which nothing is due waits for nothing.

/// The longest waits and idle times that are kept until they are handed on.
const KEPT: usize = 16;

/// Everything longer than this is kept, seconds. Stretches do not overlap, so that at most [`KEPT`] longer ones can end
/// within 1.5 s, and a load hands its record on every second.
pub const KEPT_ABOVE_S: f64 = 0.1;

/// A stretch of the run's clock, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// When it began.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Whether it had not ended when the record did.
    pub is_open: bool,
}

impl Wait {
    /// How long it lasted, seconds.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// What [`Waits::take`] hands over: the longest stretch, and every one longer than [`KEPT_ABOVE_S`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TakenWaits {
    /// Something was due and nothing succeeded; in order of time.
    pub waits: Vec<Wait>,
    /// Nothing was due; in order of time.
    pub idle: Vec<Wait>,
    /// Nothing succeeded, whether or not something was due; in order of time. Several records of one load are combined by it.
    pub quiet: Vec<Wait>,
}

/// The record of one load.
#[derive(Debug, Default)]
pub struct Waits {
    /// Since when nothing has succeeded of what is due; none where nothing is due.
    due_since_s: Option<f64>,
    /// Since when nothing is due; of use where nothing is.
    idle_since_s: f64,
    /// Since when nothing has succeeded: the last success, or the beginning.
    quiet_since_s: f64,
    /// Whether something that was due has failed since the last success.
    has_failed: bool,
    has_ended: bool,
    waits: Longest,
    idle: Longest,
    quiet: Longest,
}

impl Waits {
    /// Something falls due.
    pub fn due(&mut self, at_s: f64) {
        // What fell due while something else succeeded is noticed after that success.
        let at_s = at_s.max(self.idle_since_s);
        if self.due_since_s.is_none() && !self.has_ended {
            self.idle.keep(self.idle_since_s, at_s, false);
            self.due_since_s = Some(at_s);
        }
    }

    /// Something that was due failed. It counts as due until something succeeds.
    pub fn failed(&mut self) {
        self.has_failed = true;
    }

    /// Something succeeded; `is_more_due` where other operations are due at that moment.
    pub fn succeeded(&mut self, at_s: f64, is_more_due: bool) {
        if self.has_ended {
            return;
        }
        self.has_failed = false;
        match self.due_since_s {
            Some(since_s) => self.waits.keep(since_s, at_s, false),
            None => self.idle.keep(self.idle_since_s, at_s, false),
        }
        self.quiet.keep(self.quiet_since_s, at_s, false);
        self.quiet_since_s = at_s.max(0.0);
        self.due_since_s = is_more_due.then_some(at_s.max(0.0));
        self.idle_since_s = at_s.max(0.0);
    }

    /// Nothing is due any more though nothing has succeeded, such as when a client has its connection and thinks first.
    pub fn nothing_due(&mut self, at_s: f64) {
        if self.has_failed || self.has_ended {
            return;
        }
        if let Some(since_s) = self.due_since_s.take() {
            self.waits.keep(since_s, at_s, false);
            self.idle_since_s = at_s.max(0.0);
        }
    }

    /// The load is told to stop: what comes in later is no longer measured.
    pub fn end(&mut self, at_s: f64) {
        if self.has_ended {
            return;
        }
        match self.due_since_s.take() {
            Some(since_s) => self.waits.keep(since_s, at_s, true),
            None => self.idle.keep(self.idle_since_s, at_s, true),
        }
        self.quiet.keep(self.quiet_since_s, at_s, true);
        self.has_ended = true;
    }

    /// What has ended since the last call. To be called every second.
    pub fn take(&mut self) -> TakenWaits {
        TakenWaits { waits: self.waits.take(), idle: self.idle.take(), quiet: self.quiet.take() }
    }
}

/// The longest stretches since the last [`take`](Longest::take).
#[derive(Debug, Default)]
struct Longest {
    kept: Vec<Wait>,
    /// Where all places are taken: the length that a further one must exceed.
    shortest_s: f64,
}

impl Longest {
    fn keep(&mut self, from_s: f64, to_s: f64, is_open: bool) {
        let wait = Wait { from_s, to_s, is_open };
        // What is no number is no stretch either.
        if !wait.length_s().is_finite() || wait.length_s() <= 0.0 {
            return;
        }
        if is_open {
            // There is one, at the end.
            self.kept.push(wait);
        } else if self.kept.len() < KEPT {
            self.kept.push(wait);
            if self.kept.len() == KEPT {
                self.shortest_s = self.shortest().map_or(0.0, |(_, length_s)| length_s);
            }
        } else if wait.length_s() > self.shortest_s
            && let Some((place, _)) = self.shortest()
        {
            self.kept.remove(place);
            self.kept.push(wait);
            self.shortest_s = self.shortest().map_or(0.0, |(_, length_s)| length_s);
        }
    }

    fn shortest(&self) -> Option<(usize, f64)> {
        let lengths = self.kept.iter().map(Wait::length_s).enumerate();
        lengths.min_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn take(&mut self) -> Vec<Wait> {
        let kept = std::mem::take(&mut self.kept);
        let longest_s = kept.iter().map(Wait::length_s).fold(0.0, f64::max);
        kept.into_iter()
            .filter(|wait| wait.is_open || wait.length_s() >= longest_s.min(KEPT_ABOVE_S))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait(from_s: f64, to_s: f64) -> Wait {
        Wait { from_s, to_s, is_open: false }
    }

    #[test]
    fn a_closed_loop_waits_from_one_success_to_the_next() {
        let mut waits = Waits::default();
        waits.due(0.0);
        waits.succeeded(0.5, true);
        waits.failed();
        waits.succeeded(4.0, true);
        assert_eq!(waits.take().waits, [wait(0.0, 0.5), wait(0.5, 4.0)]);
    }

    #[test]
    fn what_is_waited_for_at_the_end_is_told_however_short_it_is() {
        let mut waits = Waits::default();
        waits.due(0.0);
        waits.succeeded(0.5, true);
        waits.end(0.6);
        let open = Wait { is_open: true, ..wait(0.5, 0.6) };
        assert_eq!(waits.take().waits, [wait(0.0, 0.5), open]);
    }

    #[test]
    fn where_nothing_is_due_nothing_is_waited_for() {
        let mut waits = Waits::default();
        waits.due(10.0);
        waits.succeeded(10.25, false);
        waits.due(20.0);
        waits.succeeded(20.5, false);
        let taken = waits.take();
        assert_eq!(taken.waits, [wait(10.0, 10.25), wait(20.0, 20.5)]);
        assert_eq!(taken.idle, [wait(0.0, 10.0), wait(10.25, 20.0)]);
    }

    #[test]
    fn what_failed_stays_due_until_something_succeeds() {
        let mut waits = Waits::default();
        waits.due(10.0);
        waits.failed();
        waits.nothing_due(10.5);
        waits.due(20.0);
        waits.succeeded(20.5, false);
        assert_eq!(waits.take().waits, [wait(10.0, 20.5)]);
    }

    #[test]
    fn a_client_that_connects_and_then_thinks_has_waited_for_its_connection_only() {
        let mut waits = Waits::default();
        waits.due(-0.25);
        waits.nothing_due(0.5);
        waits.due(18.0);
        waits.succeeded(18.25, false);
        assert_eq!(waits.take().waits, [wait(0.0, 0.5), wait(18.0, 18.25)]);
    }

    #[test]
    fn a_wait_that_the_end_cuts_off_is_told_as_open_and_nothing_after_it_counts() {
        let mut waits = Waits::default();
        waits.due(3.0);
        waits.end(7.0);
        waits.succeeded(9.0, true);
        waits.end(11.0);
        assert_eq!(waits.take().waits, [Wait { from_s: 3.0, to_s: 7.0, is_open: true }]);
    }

    proptest! {
        #[test]
        fn every_wait_above_the_grain_is_kept_whatever_the_throughput(
            pauses_us in prop::collection::vec(prop_oneof![9 => 1..2_000_u64, 1 => 1..900_000_u64], 1..3_000),
        ) {
            let (mut waits, mut kept, mut all) = (Waits::default(), Vec::new(), Vec::new());
            let (mut now_us, mut second) = (0_u64, 0);
            waits.due(0.0);
            for pause_us in pauses_us {
                let from_s = now_us as f64 / 1e6;
                now_us += pause_us;
                let at_s = now_us as f64 / 1e6;
                // The load hands on what it has when a second has passed, before it notes what came later.
                while second < now_us / 1_000_000 {
                    let taken = waits.take();
                    prop_assert!(taken.waits.len() <= KEPT);
                    kept.extend(taken.waits);
                    second += 1;
                }
                waits.succeeded(at_s, true);
                all.push(wait(from_s, at_s));
            }
            kept.extend(waits.take().waits);
            let long = |waits: &[Wait]| -> Vec<Wait> {
                waits.iter().filter(|wait| wait.length_s() > KEPT_ABOVE_S).copied().collect()
            };
            prop_assert_eq!(long(&kept), long(&all));
        }
    }
}
