//! How much a load asks over time, as the rest of the program sees it.
//!
//! Owns these types, not how they are read from YAML.

use std::time::Duration;

use serde::Serialize;

/// The phase that takes a sweep's first value, and is not one of its steps.
pub(crate) const WARM_UP: &str = "warm-up";

/// The most steps one ramp is cut into, and the least time between two of them: the curve they make is smooth beside what
/// a second of a load tells.
const MOST_STEPS: u32 = 1000;
const LEAST_STEP: Duration = Duration::from_millis(100);

/// How much a load's clients ask.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Pace {
    /// Open loop: operations due a second. Closed where neither this nor a sweep gives one.
    pub rate_per_s: Option<f64>,
    /// Open loop: how they are spread.
    pub arrival: Arrival,
    /// Closed loop: how long each client thinks between an answer and its next operation.
    pub think_time: ThinkTime,
    /// A value for each phase beside warm-up, which takes the first.
    pub sweep: Option<Sweep>,
    /// What rises or falls evenly once the warm-up has ended; not beside a sweep.
    pub ramp: Option<Ramp>,
}

/// A rise or a fall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ramp {
    /// Of what, from where to where.
    pub ends: Ends,
    /// In what time.
    pub over: Duration,
}

/// What a ramp changes, and between which values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// The number of clients.
    Clients {
        /// At first.
        from: u32,
        /// At last.
        to: u32,
    },
    /// Operations due a second.
    Rate {
        /// At first.
        from_per_s: f64,
        /// At last.
        to_per_s: f64,
    },
}

/// How the operations of an open loop are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Evenly.
    #[default]
    Constant,
    /// As independent users come.
    Poisson,
}

/// How long a client thinks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkTime {
    /// Not at all.
    #[default]
    None,
    /// Always so long.
    Constant(Duration),
    /// Exponentially, with this mean.
    Exponential(Duration),
}

/// What changes from phase to phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sweep {
    /// The number of clients.
    Clients(Vec<u32>),
    /// Operations due a second.
    Rate(Vec<f64>),
}

impl Sweep {
    pub(crate) fn len(&self) -> usize {
        match self {
            Sweep::Clients(clients) => clients.len(),
            Sweep::Rate(rates) => rates.len(),
        }
    }
}

impl Ramp {
    /// Whether it makes the loop an open one.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.ends, Ends::Rate { .. })
    }

    /// From when, how many clients, at what rate, for a ramp that begins at `begins`.
    pub(crate) fn steps(&self, begins: Duration, clients: u32) -> Vec<(Duration, u32, Option<f64>)> {
        let room = u32::try_from(self.over.as_millis() / LEAST_STEP.as_millis()).unwrap_or(MOST_STEPS);
        let pieces = |changes: u32| changes.min(room).clamp(1, MOST_STEPS);
        match self.ends {
            Ends::Clients { from, to } => {
                let count = pieces(from.abs_diff(to));
                let at = |place: u32| f64::from(place) / f64::from(count) * (f64::from(to) - f64::from(from));
                // Between two counts of u32, so that the cast keeps the value.
                let step = |place| {
                    (begins + self.over * place / count, (f64::from(from) + at(place)).round() as u32, None)
                };
                std::iter::once((Duration::ZERO, from, None)).chain((1..=count).map(step)).collect()
            }
            Ends::Rate { from_per_s, to_per_s } => {
                let count = pieces(MOST_STEPS);
                // Each piece has the rate of its middle, so that as much falls due as under an even slope.
                let step = |place: u32| {
                    let share = (f64::from(place) + 0.5) / f64::from(count);
                    let per_s = from_per_s + (to_per_s - from_per_s) * share;
                    (begins + self.over * place / count, clients, Some(per_s))
                };
                let before = (!begins.is_zero()).then_some((Duration::ZERO, clients, Some(from_per_s)));
                let after = (begins + self.over, clients, Some(to_per_s));
                before.into_iter().chain((0..count).map(step)).chain([after]).collect()
            }
        }
    }
}
