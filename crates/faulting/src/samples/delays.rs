//! How long datagrams take on a way as asked, and whether those that were seen take so long. Pure.
//!
//! A machine that is busy makes datagrams late and never early. So what is early is judged by all datagrams, and what is
//! late by the fastest alone: the 5 % quantile of a constant delay, a low quantile of one with jitter. Minimum and mean
//! are not used: one datagram decides the first, every late one moves the second.
//! Sources: order statistics for the interval of a quantile; Massart's bound (1990) for the band around a sample's
//! distribution; Abramowitz and Stegun 7.1.26 for the error function.

use std::time::Duration;

use fabric::{Distribution, Jitter};

/// A delay may miss what was asked by this share of it
pub const TOLERANCE_SHARE: f64 = 0.02;
/// and by this, which the lab's own interfaces and threads take.
pub const TOLERANCE_MS: f64 = 0.2;
/// With jitter, chance alone spreads the delay; it must be known to this share.
const JITTERED_SHARE: f64 = 0.05;
/// The quantile that stands for a constant delay.
const FASTEST: f64 = 0.05;
/// Intervals hold with so many standard deviations on each side (99.99 %),
const DEVIATIONS: f64 = 4.0;
/// and bands with this chance of being left.
const BAND_CHANCE: f64 = 1e-4;
/// Where jitter spreads them, late datagrams widen the interval by this.
const BUSY: f64 = 1.5;
/// So many more datagrams must differ than chance explains, because a busy machine makes some late.
const LATE_SHARE: f64 = 0.1;
/// Fewer datagrams say nothing,
pub const COUNT_MIN: usize = 100;
/// and more are not sent for one answer.
const COUNT_MAX: usize = 6_000;
/// netem's table of the Pareto distribution ends here, in multiples of the spread.
const PARETO_MAX: f64 = 4.0;
/// The share of datagrams that may be quicker than what [`Delays::least_ms`] calls the least.
const LEAST_SHARE: f64 = 0.001;

/// How long datagrams take on one way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Delays {
    /// The delay, waiting for the way's rates included.
    pub delay: Duration,
    /// How it differs from one to the next.
    pub jitter: Option<Jitter>,
}

/// What datagrams show of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    AsAsked,
    /// It is shorter.
    Short,
    /// It is longer, beyond what the machine explains.
    Long,
    /// The interval is too wide to say.
    Wide,
}

/// A delay as seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// What that shows.
    pub fit: Fit,
    /// The lower end of the interval in which the delay lies, milliseconds,
    pub low_ms: f64,
    /// and its upper end.
    pub high_ms: f64,
}

/// What a delay may miss what was asked by.
#[must_use]
pub fn tolerance_ms(asked_ms: f64) -> f64 {
    asked_ms * TOLERANCE_SHARE + TOLERANCE_MS
}

impl Delays {
    fn delay_ms(&self) -> f64 {
        self.delay.as_secs_f64() * 1e3
    }

    fn spread_ms(&self) -> f64 {
        self.jitter.map_or(0.0, |jitter| jitter.spread.as_secs_f64() * 1e3)
    }

    /// The share of datagrams that take no longer.
    fn share_within(&self, ms: f64) -> f64 {
        if ms < 0.0 {
            return 0.0;
        }
        let Some(jitter) = self.jitter.filter(|jitter| !jitter.spread.is_zero()) else {
            return if ms >= self.delay_ms() { 1.0 } else { 0.0 };
        };
        let spreads = (ms - self.delay_ms()) / self.spread_ms();
        match jitter.distribution {
            Distribution::Uniform => f64::midpoint(spreads, 1.0).clamp(0.0, 1.0),
            Distribution::Normal => 0.5 * (1.0 + error_function(spreads / std::f64::consts::SQRT_2)),
            Distribution::Exponential => 1.0 - (-spreads.max(0.0)).exp(),
            Distribution::Pareto if spreads >= PARETO_MAX => 1.0,
            Distribution::Pareto => 1.0 - (spreads * 0.75 + 1.5).max(1.0).powi(-3),
        }
    }

    /// The time within which this share of the datagrams arrive, milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.delay_ms() + 20.0 * self.spread_ms() + 1.0);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if self.share_within(middle) < share { low = middle } else { high = middle }
        }
        high
    }

    /// What nearly every datagram takes at least, milliseconds.
    #[must_use]
    pub fn least_ms(&self) -> f64 {
        self.quantile_ms(LEAST_SHARE)
    }

    /// What nearly every datagram takes at most.
    #[must_use]
    pub fn most(&self) -> Duration {
        Duration::from_secs_f64(self.quantile_ms(1.0 - LEAST_SHARE / 10.0) / 1e3)
    }

    /// How many datagrams tell the delay as narrowly as must be.
    #[must_use]
    pub fn needed(&self) -> usize {
        if self.spread_ms() == 0.0 {
            return 4 * COUNT_MIN;
        }
        // Half of the tolerance is left for what a busy machine adds.
        let widths = 2.0 * self.half_width_ms(1) / self.tolerance_ms();
        ((widths * widths) as usize).clamp(10 * COUNT_MIN, COUNT_MAX)
    }

    /// What these times, in milliseconds and in order, show of a delay asked for so.
    #[must_use]
    pub fn judge(&self, sorted_ms: &[f64]) -> Seen {
        if sorted_ms.len() < COUNT_MIN {
            return Seen { fit: Fit::Wide, low_ms: 0.0, high_ms: f64::INFINITY };
        }
        if self.spread_ms() == 0.0 { self.judge_constant(sorted_ms) } else { self.judge_jittered(sorted_ms) }
    }

    fn judge_constant(&self, sorted_ms: &[f64]) -> Seen {
        let (low_ms, high_ms) = quantile_interval(sorted_ms, FASTEST);
        let asked_ms = self.delay_ms();
        let tolerance_ms = tolerance_ms(asked_ms);
        // No machine makes a datagram early, so the very first decides as well.
        let earliest_ms = sorted_ms.first().copied().unwrap_or_default();
        let fit = if earliest_ms < asked_ms - tolerance_ms {
            Fit::Short
        } else if high_ms <= asked_ms + tolerance_ms {
            Fit::AsAsked
        } else if low_ms > asked_ms + tolerance_ms {
            Fit::Long
        } else {
            Fit::Wide
        };
        Seen { fit, low_ms, high_ms }
    }

    /// A delay with jitter is told by a low quantile, as a constant one is; that the times are spread as they should be is
    /// told by a band around all of them.
    fn judge_jittered(&self, sorted_ms: &[f64]) -> Seen {
        let quantile = self.told_by();
        let (low_ms, high_ms) = quantile_interval(sorted_ms, quantile);
        let (asked_ms, at_ms, tolerance_ms) =
            (self.delay_ms(), self.quantile_ms(quantile), self.tolerance_ms());
        let (low_ms, high_ms) = (low_ms - at_ms, high_ms - at_ms);
        let fit = if high_ms < -tolerance_ms || self.is_earlier(sorted_ms, -self::tolerance_ms(asked_ms)) {
            Fit::Short
        } else if low_ms > tolerance_ms {
            Fit::Long
        } else if low_ms < -tolerance_ms || high_ms > tolerance_ms * BUSY {
            Fit::Wide
        } else {
            Fit::AsAsked
        };
        Seen { fit, low_ms: asked_ms + low_ms, high_ms: asked_ms + high_ms }
    }

    /// The quantile that tells a delay with jitter: where the distribution is steep.
    fn told_by(&self) -> f64 {
        match self.jitter.map(|jitter| jitter.distribution) {
            Some(Distribution::Normal) => 0.25,
            _ => 0.1,
        }
    }

    /// What the delay may miss what was asked by: more where jitter leaves it to chance.
    #[must_use]
    pub fn tolerance_ms(&self) -> f64 {
        let asked_ms = self.delay_ms();
        if self.spread_ms() == 0.0 {
            return tolerance_ms(asked_ms);
        }
        (JITTERED_SHARE * asked_ms).max(2.0 * self.half_width_ms(COUNT_MAX)) + TOLERANCE_MS
    }

    /// Half the interval that so many datagrams leave.
    fn half_width_ms(&self, count: usize) -> f64 {
        let (quantile, step_ms) = (self.told_by(), self.spread_ms() / 100.0);
        let at_ms = self.quantile_ms(quantile);
        let density =
            (self.share_within(at_ms + step_ms) - self.share_within(at_ms - step_ms)) / (2.0 * step_ms);
        DEVIATIONS * (quantile * (1.0 - quantile) / count as f64).sqrt() / density.max(1e-9)
    }

    /// Whether more of them had arrived at some time than chance makes of the distribution, moved by so much.
    fn is_earlier(&self, sorted_ms: &[f64], moved_ms: f64) -> bool {
        let (count, band) = (sorted_ms.len() as f64, band(sorted_ms.len()));
        sorted_ms
            .iter()
            .enumerate()
            .any(|(index, ms)| (index + 1) as f64 / count > self.share_within(ms - moved_ms) + band)
    }

    /// Whether so many datagrams that are spread otherwise would not pass for these.
    #[must_use]
    pub fn is_told_from(&self, otherwise: &Delays, count: usize) -> bool {
        let needed = band(count) + LATE_SHARE;
        let moved_ms = tolerance_ms(self.delay_ms());
        let at = |step: u32| otherwise.quantile_ms(f64::from(step) / 200.0) + 1e-6;
        (1..200).map(at).any(|ms| otherwise.share_within(ms) - self.share_within(ms + moved_ms) > needed)
    }
}

/// How far a sample's distribution is from what it was drawn from, at most.
fn band(count: usize) -> f64 {
    (-(BAND_CHANCE / 2.0).ln() / (2.0 * count as f64)).sqrt()
}

/// The interval in which a quantile lies, by the order of the times alone.
fn quantile_interval(sorted: &[f64], quantile: f64) -> (f64, f64) {
    let count = sorted.len() as f64;
    let (middle, deviation) = (count * quantile, (count * quantile * (1.0 - quantile)).sqrt());
    let at = |rank: f64| {
        let index = rank.clamp(0.0, count - 1.0) as usize;
        sorted.get(index).copied().unwrap_or_default()
    };
    (at((middle - DEVIATIONS * deviation).floor() - 1.0), at((middle + DEVIATIONS * deviation).ceil()))
}

fn error_function(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let polynomial = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    (1.0 - polynomial * (-x * x).exp()).copysign(x)
}

#[cfg(test)]
mod tests {
    use rand::Rng;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn delays(delay_ms: f64, jitter: Option<(f64, Distribution)>) -> Delays {
        let time = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let jitter = jitter.map(|(ms, distribution)| Jitter { spread: time(ms), distribution });
        Delays { delay: time(delay_ms), jitter }
    }

    fn unit(random: &mut ChaCha8Rng) -> f64 {
        ((random.next_u64() >> 11) + 1) as f64 / 9_007_199_254_740_992.0
    }

    /// What a machine adds: a twentieth of a millisecond always, and of `busy` of them up to 8 ms.
    fn lateness_ms(busy: f64, random: &mut ChaCha8Rng) -> f64 {
        let late = if unit(random) < busy { 8.0 * unit(random) } else { 0.0 };
        0.05 + 0.05 * unit(random) + late
    }

    fn sample(of: Delays, busy: f64, seed: u64) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let delay_ns = u64::try_from(of.delay.as_nanos()).expect("short");
        let mut times: Vec<f64> = (0..of.needed())
            .map(|_| {
                let ns = of.jitter.map_or(delay_ns, |jitter| jitter.draw_ns(delay_ns, &mut random));
                ns as f64 / 1e6 + lateness_ms(busy, &mut random)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }

    const SHAPES: [Distribution; 4] =
        [Distribution::Uniform, Distribution::Normal, Distribution::Exponential, Distribution::Pareto];

    /// Every delay and jitter that is tried.
    fn all() -> Vec<Delays> {
        let constant = [5.0, 10.0, 50.0, 300.0].map(|ms| delays(ms, None));
        let jittered = [(20.0, 5.0), (50.0, 10.0), (50.0, 25.0)]
            .into_iter()
            .flat_map(|(delay, spread)| SHAPES.map(|shape| delays(delay, Some((spread, shape)))));
        constant.into_iter().chain(jittered).collect()
    }

    #[test]
    fn an_honest_delay_is_as_asked_however_busy_the_machine() {
        for of in all() {
            for seed in 0..20 {
                let busy = [0.0, 0.1, 0.3][seed as usize % 3];
                let seen = of.judge(&sample(of, busy, seed));
                assert!(matches!(seen.fit, Fit::AsAsked), "{of:?} busy {busy}: {seen:?}");
            }
        }
    }

    #[test]
    fn nine_tenths_of_a_delay_are_short_and_so_is_every_delay_that_is_not_there() {
        for of in all() {
            for seed in 0..20 {
                for factor in [0.9, 0.0] {
                    let planted = Delays { delay: of.delay.mul_f64(factor), ..of };
                    let seen = of.judge(&sample(planted, 0.1, seed));
                    assert_eq!(seen.fit, Fit::Short, "{of:?}: {seen:?}");
                }
            }
        }
    }

    #[test]
    fn a_delay_that_is_longer_than_asked_is_long() {
        for of in all() {
            let planted = Delays { delay: of.delay.mul_f64(1.3), ..of };
            let seen = of.judge(&sample(planted, 0.1, 1));
            assert_eq!(seen.fit, Fit::Long, "{of:?}: {seen:?}");
        }
    }

    #[test]
    fn jitter_that_is_not_there_is_found_out() {
        for of in all().into_iter().filter(|of| of.jitter.is_some()) {
            let without = Delays { jitter: None, ..of };
            let times = sample(without, 0.1, 3);
            let enough: Vec<f64> = times.iter().flat_map(|ms| std::iter::repeat_n(*ms, 3)).collect();
            assert_ne!(of.judge(&enough).fit, Fit::AsAsked, "{of:?}");
            assert!(of.is_told_from(&without, of.needed()), "{of:?}");
        }
        let slight = delays(50.0, Some((0.5, Distribution::Uniform)));
        assert!(!slight.is_told_from(&delays(50.0, None), 5_000));
    }

    #[test]
    fn the_distributions_are_those_that_the_network_draws_from() {
        for of in all().into_iter().filter(|of| of.jitter.is_some()) {
            let mut random = ChaCha8Rng::seed_from_u64(7);
            let delay_ns = of.delay.as_nanos() as u64;
            let jitter = of.jitter.expect("jitter");
            for share in [0.01, 0.1, 0.5, 0.9] {
                let at_ms = of.quantile_ms(share);
                let within = (0..20_000)
                    .filter(|_| jitter.draw_ns(delay_ns, &mut random) as f64 / 1e6 <= at_ms)
                    .count();
                assert!((within as f64 / 20_000.0 - share).abs() < 0.015, "{of:?} at {share}: {within}");
            }
        }
    }

    #[test]
    fn few_datagrams_and_late_ones_leave_doubt() {
        let of = delays(50.0, None);
        assert_eq!(of.judge(&[50.1; 20]).fit, Fit::Wide);
        let mut late: Vec<f64> = (0..400).map(|number| 50.1 + f64::from(number) * 0.05).collect();
        late.sort_by(f64::total_cmp);
        assert_eq!(of.judge(&late).fit, Fit::Wide);
    }
}
