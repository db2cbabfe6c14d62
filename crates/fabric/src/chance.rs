//! Chance: probabilities and the distributions of jitter. Pure; the source of randomness is an argument.
//!
//! Sources: tc-netem(8) for what the names mean; iproute2 `netem/pareto.c` for the shape of `pareto`.

use std::time::Duration;

use rand::Rng;

/// How likely something is. Kept as a whole number, so that it can be compared and ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// It never happens.
    pub const NEVER: Probability = Probability(0);
    /// It always happens.
    pub const ALWAYS: Probability = Probability(u64::MAX);

    /// From 0 to 1; `None` for anything else.
    #[must_use]
    pub fn new(value: f64) -> Option<Probability> {
        // 2^64 does not fit, so 1 saturates to ALWAYS.
        (0.0..=1.0).contains(&value).then_some(Probability((value * 18_446_744_073_709_551_616.0) as u64))
    }

    /// From 0 to 1.
    #[must_use]
    pub fn value(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// Whether it happens this time. Draws nothing when there is nothing to decide.
    pub fn happens(self, random: &mut impl Rng) -> bool {
        match self {
            Probability::NEVER => false,
            Probability::ALWAYS => true,
            Probability(threshold) => random.next_u64() < threshold,
        }
    }
}

/// The shape of jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distribution {
    /// Evenly between the delay less the spread and the delay plus the spread.
    Uniform,
    /// The spread is the standard deviation.
    Normal,
    /// The spread is the mean of what is added to the delay; nothing arrives earlier than the delay.
    Exponential,
    /// netem's heavy tail (shape 3): from two thirds of the spread below the delay, on average the delay.
    Pareto,
}

/// How much the delay of one packet differs from that of the next. Packets draw it each for themselves, so jitter
/// larger than the distance between packets reorders them, as netem's does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jitter {
    /// How far delays spread; what it measures depends on the distribution.
    pub spread: Duration,
    /// Its shape.
    pub distribution: Distribution,
}

/// netem's table ends here, in multiples of the spread.
const PARETO_MAX: f64 = 4.0;

impl Jitter {
    /// One packet's delay. Never negative: what would be is none.
    pub fn draw_ns(self, delay_ns: u64, random: &mut impl Rng) -> u64 {
        let factor = match self.distribution {
            Distribution::Uniform => 2.0 * unit(random) - 1.0,
            Distribution::Normal => normal(random),
            Distribution::Exponential => -unit(random).ln(),
            Distribution::Pareto => ((unit(random).powf(-1.0 / 3.0) - 1.5) * 4.0 / 3.0).min(PARETO_MAX),
        };
        // The conversion to a whole number stops at its ends, which is what is wanted.
        (delay_ns as f64 + factor * self.spread.as_nanos() as f64) as u64
    }
}

/// Evenly above 0 and up to 1: never 0, whose logarithm is no number.
fn unit(random: &mut impl Rng) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / 9_007_199_254_740_992.0
}

/// By Box and Muller's transformation.
fn normal(random: &mut impl Rng) -> f64 {
    (-2.0 * unit(random).ln()).sqrt() * (std::f64::consts::TAU * unit(random)).cos()
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    const DRAWS: usize = 100_000;
    const DELAY_NS: u64 = 50_000_000;
    const SPREAD_NS: f64 = 5_000_000.0;
    /// Kolmogorov's bound at 1 in 1000 for a sample of this size.
    const KS_BOUND: f64 = 1.95 / 316.2;

    /// The largest distance between what was drawn and the distribution asked for.
    fn distance(distribution: Distribution, asked: impl Fn(f64) -> f64) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let jitter = Jitter { spread: Duration::from_millis(5), distribution };
        let mut drawn: Vec<u64> = (0..DRAWS).map(|_| jitter.draw_ns(DELAY_NS, &mut random)).collect();
        drawn.sort_unstable();
        let distances = drawn.iter().enumerate().map(|(index, value)| {
            let expected = asked((*value as f64 - DELAY_NS as f64) / SPREAD_NS);
            let below = index as f64 / DRAWS as f64;
            let above = (index + 1) as f64 / DRAWS as f64;
            (expected - below).abs().max((above - expected).abs())
        });
        distances.fold(0.0, f64::max)
    }

    fn uniform_cdf(x: f64) -> f64 {
        ((x + 1.0) / 2.0).clamp(0.0, 1.0)
    }

    /// By integrating the density in small steps: no series of ours to get wrong.
    fn normal_cdf_table() -> Vec<f64> {
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let mut sum = 0.0;
        (0..=160_000)
            .map(|step| {
                sum += density(-8.0 + f64::from(step) * 1e-4) * 1e-4;
                sum
            })
            .collect()
    }

    fn pareto_cdf(x: f64) -> f64 {
        if x >= PARETO_MAX { 1.0 } else { 1.0 - (x * 0.75 + 1.5).powi(-3) }
    }

    #[test]
    fn jitter_follows_the_distribution_asked_for() {
        let table = normal_cdf_table();
        let normal_cdf = |x: f64| table[((x + 8.0) * 1e4).clamp(0.0, 160_000.0) as usize];
        let found = [
            distance(Distribution::Uniform, uniform_cdf),
            distance(Distribution::Normal, normal_cdf),
            distance(Distribution::Exponential, |x| if x < 0.0 { 0.0 } else { 1.0 - (-x).exp() }),
        ];
        assert!(found.iter().all(|distance| *distance < KS_BOUND), "{found:?}, at most {KS_BOUND}");
    }

    #[test]
    fn pareto_follows_netem_up_to_the_end_of_its_table() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let jitter = Jitter { spread: Duration::from_millis(5), distribution: Distribution::Pareto };
        let draws: Vec<f64> = (0..DRAWS)
            .map(|_| (jitter.draw_ns(DELAY_NS, &mut random) as f64 - DELAY_NS as f64) / SPREAD_NS)
            .collect();
        assert!(draws.iter().all(|x| (-0.667..=PARETO_MAX).contains(x)));
        // The end of the table is a step, where the test of Kolmogorov does not hold: compared below it, point by point.
        for x in [-0.6, -0.4, -0.2, 0.0, 0.5, 1.0, 2.0, 3.9] {
            let found = draws.iter().filter(|drawn| **drawn <= x).count() as f64 / DRAWS as f64;
            assert!((found - pareto_cdf(x)).abs() < KS_BOUND, "at {x}: {found}, asked {}", pareto_cdf(x));
        }
    }

    #[test]
    fn the_wrong_distribution_is_noticed() {
        assert!(distance(Distribution::Normal, uniform_cdf) > 10.0 * KS_BOUND);
        assert!(distance(Distribution::Uniform, |x| uniform_cdf(x * 0.98)) > KS_BOUND);
    }

    #[test]
    fn a_delay_is_never_negative() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let jitter = Jitter { spread: Duration::from_secs(1), distribution: Distribution::Normal };
        let none = (0..1000).filter(|_| jitter.draw_ns(0, &mut random) == 0).count();
        assert!((400..600).contains(&none), "half of them would be negative: {none}");
    }

    #[test]
    fn a_probability_is_met_as_often_as_it_says() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        for (value, most) in [(0.0, 0.0), (0.01, 0.0012), (0.1, 0.0037), (0.5, 0.0062), (1.0, 0.0)] {
            let probability = Probability::new(value).expect("in range");
            let happened = (0..DRAWS).filter(|_| probability.happens(&mut random)).count() as f64;
            // Four standard deviations of the binomial distribution.
            assert!((happened / DRAWS as f64 - value).abs() <= most, "{value}: {happened}");
        }
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for value in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Probability::new(value), None, "{value}");
        }
    }
}
