//! How much a load asks, over time: clients, a rate, pauses; and when, at a rate, each operation is due.
//!
//! Pure: times are seconds on the run's clock, chance is an argument.

use std::time::Duration;

use rand::{Rng, RngExt};

/// How much is asked from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// From when, seconds on the run's clock.
    pub from_s: f64,
    /// Clients at work; in an open loop, the most connections at once.
    pub clients: u32,
    /// Open loop: operations due a second. Closed loop where absent.
    pub rate_per_s: Option<f64>,
}

/// Which part of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Default for Part {
    /// All of it.
    fn default() -> Self {
        Part { number: 0, of: 1 }
    }
}

impl Part {
    /// Every part of so many.
    pub fn all(of: u32) -> impl Iterator<Item = Part> {
        (0..of).map(move |number| Part { number, of })
    }

    /// This part's share of so many clients. The shares differ by one at most.
    #[must_use]
    pub fn clients_of(self, clients: u32) -> u32 {
        let of = self.of.max(1);
        clients / of + u32::from(self.number < clients % of)
    }

    /// How many clients the parts before this one have.
    pub(crate) fn clients_before(self, clients: u32) -> u32 {
        (0..self.number).map(|number| Part { number, ..self }.clients_of(clients)).sum()
    }
}

/// What is asked over a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// The most clients at work at once; in an open loop, connections.
    pub clients: u32,
    /// The fewest.
    pub clients_least: u32,
    /// Open loop only.
    pub rate: Option<DemandRate>,
}

/// The rate of an open loop over a stretch of time, operations a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DemandRate {
    /// Mean.
    pub per_s: f64,
    /// Lowest.
    pub least_per_s: f64,
    /// Highest.
    pub most_per_s: f64,
}

/// What these steps ask between two moments; `None` where that is no time, or there are no steps.
pub(crate) fn asked(steps: &[Step], from_s: f64, to_s: f64) -> Option<Demand> {
    let mut asked: Option<Demand> = None;
    let mut due = 0.0;
    for (place, step) in steps.iter().enumerate() {
        // The first holds before it begins, too.
        let begins_s = if place == 0 { from_s } else { step.from_s.max(from_s) };
        let ends_s = steps.get(place + 1).map_or(to_s, |next| next.from_s.min(to_s));
        let lasts_s = ends_s - begins_s;
        if lasts_s.is_nan() || lasts_s <= 0.0 {
            continue;
        }
        let per_s = step.rate_per_s;
        due += per_s.unwrap_or(0.0) * lasts_s;
        let first = Demand {
            clients: step.clients,
            clients_least: step.clients,
            rate: per_s.map(|per_s| DemandRate { per_s, least_per_s: per_s, most_per_s: per_s }),
        };
        let sum = asked.get_or_insert(first);
        sum.clients = sum.clients.max(step.clients);
        sum.clients_least = sum.clients_least.min(step.clients);
        if let (Some(rate), Some(per_s)) = (&mut sum.rate, per_s) {
            rate.least_per_s = rate.least_per_s.min(per_s);
            rate.most_per_s = rate.most_per_s.max(per_s);
            // Without a change there is nothing to be rounded.
            let is_constant = rate.least_per_s >= rate.most_per_s;
            rate.per_s = if is_constant { per_s } else { due / (ends_s - from_s) };
        }
    }
    asked
}

/// How the operations of an open loop are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Arrival {
    /// Evenly.
    #[default]
    Constant,
    /// As independent users arrive: the gaps are exponential.
    Poisson,
}

/// How long a client of a closed loop thinks between an answer and its next operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThinkTime {
    /// Not at all.
    #[default]
    None,
    /// Always so long.
    Constant(Duration),
    /// Exponentially, with this mean.
    Exponential(Duration),
}

impl ThinkTime {
    /// One pause.
    pub(crate) fn draw(self, rng: &mut dyn Rng) -> Duration {
        match self {
            ThinkTime::None => Duration::ZERO,
            ThinkTime::Constant(pause) => pause,
            ThinkTime::Exponential(mean) => {
                Duration::try_from_secs_f64(mean.as_secs_f64() * unit_exponential(rng)).unwrap_or(mean)
            }
        }
    }

    /// The pause before a client's first operation: what is left of one that began earlier, so that clients do not all begin at
    /// the same moment. Of an exponential one that is a whole one; of others any part.
    pub(crate) fn draw_first(self, rng: &mut dyn Rng) -> Duration {
        match self {
            ThinkTime::Constant(pause) => pause.mul_f64(rng.random::<f64>()),
            ThinkTime::None | ThinkTime::Exponential(_) => self.draw(rng),
        }
    }
}

fn unit_exponential(rng: &mut dyn Rng) -> f64 {
    // In (0, 1], so that the logarithm is finite.
    -(1.0 - rng.random::<f64>()).ln()
}

/// The step that holds at a moment; the first one before it begins.
pub(crate) fn step_at(steps: &[Step], at_s: f64) -> Option<&Step> {
    steps.get(begun(steps, at_s).saturating_sub(1))
}

/// How many steps have begun at a moment. A ramp has a thousand of them, and each operation asks.
fn begun(steps: &[Step], at_s: f64) -> usize {
    steps.partition_point(|step| step.from_s <= at_s)
}

/// When each operation of an open loop is due, one after another.
///
/// Between two operations lies the same area under the rate over time (1, or exponential with mean 1), so that a change
/// of rate takes hold at its moment, in the middle of a gap too.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    steps: Vec<Step>,
    arrival: Arrival,
    last_s: f64,
    /// Up to the first operation, where they are evenly spread.
    first_area: Option<f64>,
}

impl Arrivals {
    /// Operations from second 0 on. Parts of one load take turns where operations are evenly spread.
    pub(crate) fn new(steps: &[Step], arrival: Arrival, part: Part) -> Self {
        let first_area = Some((f64::from(part.number) + 1.0) / f64::from(part.of.max(1)));
        Self { steps: steps.to_vec(), arrival, last_s: 0.0, first_area }
    }

    /// When the next operation is due, seconds; `None` when none ever is.
    pub(crate) fn next_s(&mut self, rng: &mut dyn Rng) -> Option<f64> {
        let mut area = match self.arrival {
            Arrival::Constant => self.first_area.take().unwrap_or(1.0),
            Arrival::Poisson => unit_exponential(rng),
        };
        let mut at_s = self.last_s;
        loop {
            let rate = step_at(&self.steps, at_s)?.rate_per_s.unwrap_or(0.0);
            let until_s = self.steps.get(begun(&self.steps, at_s)).map(|step| step.from_s);
            let within = until_s.map_or(f64::INFINITY, |until_s| (until_s - at_s) * rate);
            if area < within && rate > 0.0 {
                self.last_s = at_s + area / rate;
                return Some(self.last_s);
            }
            area -= within;
            at_s = until_s?;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn step(from_s: f64, rate: f64) -> Step {
        Step { from_s, clients: 1, rate_per_s: Some(rate) }
    }

    fn dues(steps: &[Step], arrival: Arrival, until_s: f64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut arrivals = Arrivals::new(steps, arrival, Part::default());
        std::iter::from_fn(|| arrivals.next_s(&mut rng)).take_while(|due_s| *due_s < until_s).collect()
    }

    #[test]
    fn a_constant_rate_is_even_and_a_change_takes_hold_in_the_middle_of_a_gap() {
        let check = |steps: &[Step], until_s, expected: &[f64]| {
            let seen = dues(steps, Arrival::Constant, until_s);
            assert_eq!(seen.len(), expected.len(), "{seen:?}");
            assert!(seen.iter().zip(expected).all(|(seen, due)| (seen - due).abs() < 1e-9), "{seen:?}");
        };
        check(&[step(0.0, 4.0)], 1.1, &[0.25, 0.5, 0.75, 1.0]);
        check(&[step(0.0, 1.0), step(1.5, 10.0)], 1.7, &[1.0, 1.55, 1.65]);
        check(&[step(0.0, 2.0), step(1.0, 0.0)], 1e9, &[0.5]);
        check(&[step(0.0, 0.0), step(2.0, 2.0)], 3.1, &[2.5, 3.0]);
        check(&[], 9.0, &[]);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_spread_of_their_law() {
        let count = dues(&[step(0.0, 500.0)], Arrival::Poisson, 200.0).len() as f64;
        // 100,000 expected, with a standard deviation of 316: five of them.
        assert!((count - 100_000.0).abs() < 1_600.0, "{count}");
        let due = dues(&[step(0.0, 500.0)], Arrival::Poisson, 200.0);
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "coefficient of variation");
    }

    #[test]
    fn the_step_that_holds_is_the_last_that_has_begun() {
        let steps = [step(0.0, 1.0), step(10.0, 2.0), step(20.0, 3.0)];
        let rate = |at_s| step_at(&steps, at_s).and_then(|step| step.rate_per_s);
        assert_eq!([-1.0, 0.0, 9.9, 10.0, 99.0].map(rate), [1.0, 1.0, 1.0, 2.0, 3.0].map(Some));
        assert_eq!(step_at(&[], 1.0), None);
    }

    #[test]
    fn what_is_asked_over_a_stretch_is_told_with_its_ends_and_its_mean() {
        let rates = [step(0.0, 10.0), step(10.0, 20.0), step(20.0, 40.0)];
        let rate = |from_s, to_s| {
            let rate = asked(&rates, from_s, to_s).and_then(|asked| asked.rate).expect("open");
            (rate.least_per_s, rate.per_s, rate.most_per_s)
        };
        assert_eq!(rate(0.0, 10.0), (10.0, 10.0, 10.0));
        assert_eq!(rate(10.0, 30.0), (20.0, 30.0, 40.0));
        assert_eq!(rate(5.0, 25.0), (10.0, 22.5, 40.0));
        assert_eq!(rate(25.0, 99.0), (40.0, 40.0, 40.0));
        assert_eq!(asked(&rates, 5.0, 5.0), None);
        assert_eq!(asked(&[], 0.0, 5.0), None);
        let clients = [(0.0, 4), (10.0, 9), (20.0, 2)].map(|(from_s, clients)| Step {
            from_s,
            clients,
            rate_per_s: None,
        });
        let clients = |from_s, to_s| {
            asked(&clients, from_s, to_s).map(|asked| (asked.clients_least, asked.clients, asked.rate))
        };
        assert_eq!(clients(-5.0, 10.0), Some((4, 4, None)));
        assert_eq!(clients(0.0, 15.0), Some((4, 9, None)));
        assert_eq!(clients(0.0, 25.0), Some((2, 9, None)));
    }

    #[test]
    fn thinking_takes_its_mean() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mean = Duration::from_millis(40);
        assert_eq!(ThinkTime::None.draw(&mut rng), Duration::ZERO);
        assert_eq!(ThinkTime::Constant(mean).draw(&mut rng), mean);
        assert_eq!(ThinkTime::None.draw_first(&mut rng), Duration::ZERO);
        let first: f64 =
            (0..50_000).map(|_| ThinkTime::Constant(mean).draw_first(&mut rng).as_secs_f64()).sum();
        assert!((first / 50_000.0 / 0.020 - 1.0).abs() < 0.03, "{first}");
        let all: f64 = (0..50_000).map(|_| ThinkTime::Exponential(mean).draw(&mut rng).as_secs_f64()).sum();
        assert!((all / 50_000.0 / 0.040 - 1.0).abs() < 0.03, "{all}");
    }
}
