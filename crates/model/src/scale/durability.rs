//! How likely data is lost: when some hosts do not come back after a power outage, and over a year of failures and repairs.
//!
//! Exact where there is a closed form, by seeded simulation with an interval of confidence otherwise. Sources: Cidon et
//! al., "Copysets: Reducing the Frequency of Data Loss in Cloud Storage" (2013), for outages; for failure and repair the
//! birth-and-death chain of Gibson's thesis on redundant disk arrays (1990), generalised to any number of replicas.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::placement::{below, copysets};
use super::{Cluster, Placement, Replicas, ShapeError};

/// A probability that was simulated, with the interval in which it lies with a confidence of 95 % (Wilson's).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The share of trials.
    pub share: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Estimate {
    /// From so many of so many trials.
    #[must_use]
    pub fn of(hits: u64, trials: u64) -> Estimate {
        let (n, share) = (trials.max(1) as f64, hits as f64 / trials.max(1) as f64);
        let z = 1.959_964;
        let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        Estimate { share, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
    }
}

/// How likely all of `each` given hosts are among `failed` chosen ones of `hosts`.
#[must_use]
pub fn all_among(hosts: usize, failed: usize, each: usize) -> f64 {
    (0..each).map(|k| failed.saturating_sub(k) as f64 / (hosts - k.min(hosts - 1)) as f64).product()
}

/// How likely an outage after which `failed` hosts do not return loses something, with so many sets of hosts that hold
/// data, each as likely as any other and taken as independent.
#[must_use]
pub fn loss_after_outage(hosts: usize, failed: usize, each: usize, sets: f64) -> f64 {
    let one = all_among(hosts, failed, each);
    if one >= 1.0 { 1.0 } else { -(sets * (-one).ln_1p()).exp_m1() }
}

/// How many sets of hosts hold data: for copysets at most as many as there are, for random placement the distinct ones
/// to expect among so many ranges over all sets there could be.
#[must_use]
pub fn sets_in_use(hosts: usize, each: usize, ranges: usize, placement: Placement) -> f64 {
    let every =
        (0..each).fold(1.0, |ways, taken| ways * hosts.saturating_sub(taken) as f64 / (taken + 1) as f64);
    let possible = match placement {
        Placement::Random => every,
        Placement::Copysets { scatter_width } => {
            let permutations = scatter_width.div_ceil(each.saturating_sub(1).max(1));
            every.min((permutations * (hosts / each)) as f64)
        }
    };
    if possible <= 1.0 {
        return possible;
    }
    // Of so many draws with replacement.
    -possible * (ranges as f64 * (-1.0 / possible).ln_1p()).exp_m1()
}

/// The same by simulation, for copysets made over the cluster's places: sets drawn once for each trial, outages too.
///
/// # Errors
/// When there can be no such copysets.
pub fn simulated_loss_after_outage(
    cluster: &Cluster,
    each: usize,
    scatter_width: usize,
    failed: usize,
    trials: u64,
    seed: u64,
) -> Result<Estimate, ShapeError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let hosts = cluster.hosts();
    let mut order: Vec<u32> = (0..hosts as u32).collect();
    let mut down = vec![false; hosts];
    let mut hits = 0;
    let mut sets = Vec::new();
    for trial in 0..trials {
        // Outages are cheap and permutations are not; several of the one for each of the other.
        if trial % OUTAGES_PER_PERMUTATION == 0 {
            sets = copysets(cluster, each, scatter_width, &mut random)?;
        }
        let failed = failed.min(hosts);
        for place in 0..failed {
            let other = place + below(hosts - place, &mut random);
            order.swap(place, other);
        }
        order[..failed].iter().for_each(|host| down[*host as usize] = true);
        hits += u64::from(sets.iter().any(|set| set.iter().all(|host| down[*host as usize])));
        order[..failed].iter().for_each(|host| down[*host as usize] = false);
    }
    Ok(Estimate::of(hits, trials))
}

const OUTAGES_PER_PERMUTATION: u64 = 16;

/// How often hosts fail for good, and how soon what they held is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Mean time between a host's failures, hours.
    pub host_failure_h: f64,
    /// Mean time until a lost replica is rebuilt, hours.
    pub repair_h: f64,
}

/// Hours of a year.
pub const YEAR_H: f64 = 8_766.0;

/// Mean time until all replicas of one set are lost, hours: each fails at its rate, each lost one is rebuilt at its own.
#[must_use]
pub fn time_to_loss_h(each: usize, rates: Rates) -> f64 {
    // From k lost to k + 1: the mean time d(k) solves up(k) d(k) = 1 + down(k) d(k - 1).
    let mut step_h = 0.0;
    let mut total_h = 0.0;
    for lost in 0..each {
        let up = (each - lost) as f64 / rates.host_failure_h;
        let down = lost as f64 / rates.repair_h;
        step_h = (1.0 + down * step_h) / up;
        total_h += step_h;
    }
    total_h
}

/// How likely at least one of so many sets loses everything within a year, sets taken as independent.
#[must_use]
pub fn loss_within_a_year(each: usize, rates: Rates, sets: f64) -> f64 {
    -(-sets * YEAR_H / time_to_loss_h(each, rates)).exp_m1()
}

/// The same for one set by simulation: trials of so many years, exponential failures and repairs.
#[must_use]
pub fn simulated_loss(each: usize, rates: Rates, years: f64, trials: u64, seed: u64) -> Estimate {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut hits = 0;
    for _ in 0..trials {
        let (mut lost, mut left_h) = (0, years * YEAR_H);
        while lost < each {
            let fails = (each - lost) as f64 / rates.host_failure_h;
            let repairs = lost as f64 / rates.repair_h;
            left_h += unit(&mut random).ln() / (fails + repairs);
            if left_h <= 0.0 {
                break;
            }
            if unit(&mut random) * (fails + repairs) <= fails { lost += 1 } else { lost -= 1 }
        }
        hits += u64::from(lost == each);
    }
    Estimate::of(hits, trials)
}

/// Above 0 and up to 1.
fn unit(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / 9_007_199_254_740_992.0
}

/// Others with which a host shares ranges, on average over the hosts that hold any.
#[must_use]
pub fn scatter_width(cluster: &Cluster, replicas: &Replicas) -> f64 {
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for range in replicas.ranges() {
        for (number, one) in range.iter().enumerate() {
            pairs.extend(range[number + 1..].iter().map(|other| (*one.min(other), *one.max(other))));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    2.0 * pairs.len() as f64 / cluster.hosts() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cidon et al., abstract and section 1: 5,000 hosts, 3 replicas, 1 % of hosts do not return.
    #[test]
    fn the_copysets_papers_probabilities_come_out() {
        let check = |sets: f64, published: f64, precision: f64| {
            let found = loss_after_outage(5_000, 50, 3, sets);
            assert!((found - published).abs() <= precision, "{found} beside {published}");
        };
        let sets = |ranges, placement| sets_in_use(5_000, 3, ranges, placement);
        // RAMCloud: 8,000 chunks on each host at random, 99.99 %.
        let chunks = 5_000 * 8_000 / 3;
        check(sets(chunks, Placement::Random), 0.9999, 0.0001);
        // As few sets as there can be: the paper says 0.15 %, and once in 625 years, which is 0.16 %.
        check(sets(chunks, Placement::Copysets { scatter_width: 2 }), 0.00155, 0.0001);
        // Facebook's scatter width of 10: 0.78 %.
        check(sets(chunks, Placement::Copysets { scatter_width: 10 }), 0.0078, 0.0001);
    }

    #[test]
    fn simulated_outages_agree_with_the_closed_form() {
        let cluster = Cluster::even(1, 3, 30, 600).unwrap();
        let found = simulated_loss_after_outage(&cluster, 3, 4, 60, 4_000, 1).unwrap();
        let expected = loss_after_outage(
            600,
            60,
            3,
            sets_in_use(600, 3, 1_000_000, Placement::Copysets { scatter_width: 4 }),
        );
        assert!(found.low <= expected && expected <= found.high, "{found:?} beside {expected}");
    }

    #[test]
    fn the_time_to_loss_of_a_mirror_is_the_textbooks() {
        // Gibson: (3 f + r) / (2 f^2) for two replicas with failure rate f and repair rate r.
        let rates = Rates { host_failure_h: 1_000.0, repair_h: 10.0 };
        let (f, r) = (1.0 / 1_000.0, 1.0 / 10.0);
        assert!((time_to_loss_h(2, rates) - (3.0 * f + r) / (2.0 * f * f)).abs() < 1e-6);
        assert!((time_to_loss_h(1, rates) - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn simulated_failures_and_repairs_agree_with_the_chain() {
        // Losses are rare against a year's repairs, as the exponential form needs.
        let rates = Rates { host_failure_h: 2_000.0, repair_h: 40.0 };
        for (each, years) in [(2, 0.5), (3, 5.0)] {
            let found = simulated_loss(each, rates, years, 20_000, 3);
            let expected = -(-years * YEAR_H / time_to_loss_h(each, rates)).exp_m1();
            assert!(
                found.low * 0.98 <= expected && expected <= found.high * 1.02,
                "{found:?} beside {expected}"
            );
        }
    }

    #[test]
    fn more_replicas_faster_repair_and_fewer_sets_lose_less() {
        let rates = Rates { host_failure_h: 10_000.0, repair_h: 5.0 };
        assert!(loss_within_a_year(3, rates, 1e4) < loss_within_a_year(2, rates, 1e4));
        assert!(
            loss_within_a_year(3, Rates { repair_h: 1.0, ..rates }, 1e4) < loss_within_a_year(3, rates, 1e4)
        );
        assert!(loss_within_a_year(3, rates, 1e3) < loss_within_a_year(3, rates, 1e4));
    }
}
