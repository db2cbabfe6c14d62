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
}

fn unit_exponential(rng: &mut dyn Rng) -> f64 {
    // In (0, 1], so that the logarithm is finite.
    -(1.0 - rng.random::<f64>()).ln()
}

/// The step that holds at a moment; the first one before it begins.
pub(crate) fn step_at(steps: &[Step], at_s: f64) -> Option<&Step> {
    steps.iter().rev().find(|step| step.from_s <= at_s).or(steps.first())
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
}

impl Arrivals {
    /// Operations from second 0 on.
    pub(crate) fn new(steps: &[Step], arrival: Arrival) -> Self {
        Self { steps: steps.to_vec(), arrival, last_s: 0.0 }
    }

    /// When the next operation is due, seconds; `None` when none ever is.
    pub(crate) fn next_s(&mut self, rng: &mut dyn Rng) -> Option<f64> {
        let mut area = match self.arrival {
            Arrival::Constant => 1.0,
            Arrival::Poisson => unit_exponential(rng),
        };
        let mut at_s = self.last_s;
        loop {
            let rate = step_at(&self.steps, at_s)?.rate_per_s.unwrap_or(0.0);
            let until_s = self.steps.iter().map(|step| step.from_s).find(|from_s| *from_s > at_s);
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
        let mut arrivals = Arrivals::new(steps, arrival);
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
    fn thinking_takes_its_mean() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mean = Duration::from_millis(40);
        assert_eq!(ThinkTime::None.draw(&mut rng), Duration::ZERO);
        assert_eq!(ThinkTime::Constant(mean).draw(&mut rng), mean);
        let all: f64 = (0..50_000).map(|_| ThinkTime::Exponential(mean).draw(&mut rng).as_secs_f64()).sum();
        assert!((all / 50_000.0 / 0.040 - 1.0).abs() < 0.03, "{all}");
    }
}
