//! Where events go while a run is under way: what whoever breaks, mends and measures is given to tell by.

use std::time::Instant;

use crate::{Event, EventKind};

/// Takes events as they happen. Shared by threads.
pub trait EventSink: Send + Sync {
    /// Seconds on the run's clock.
    fn now_s(&self) -> f64;

    /// Seconds on the run's clock at a moment, negative before its zero.
    fn seconds_at(&self, moment: Instant) -> f64;

    /// Takes an event.
    fn take(&self, event: Event);

    /// Tells of something that happened at `t_s`.
    fn say_at(&self, t_s: f64, kind: EventKind) {
        self.take(Event { t_s: (t_s * 1e6).round() / 1e6, kind });
    }

    /// Tells of something that happens now.
    fn say(&self, kind: EventKind) {
        self.say_at(self.now_s(), kind);
    }

    /// Tells of a step of preparation.
    fn progress(&self, what: String) {
        self.say(EventKind::Progress { what });
    }

    /// Tells of a doubt about the measurement, and what helps.
    fn warn(&self, what: String, remedy: &str) {
        self.say(EventKind::Warning { what, remedy: remedy.to_owned() });
    }
}
