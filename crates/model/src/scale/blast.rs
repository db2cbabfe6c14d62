//! Every single and every double failure of hosts, racks, zones and regions at scale: how many ranges each stops.
//!
//! Exact: each pair is counted, none is sampled. A range stops when no majority of its replicas is left. Two places of
//! which one contains the other are no pair.

use super::{Cluster, Domain, Replicas};

/// What the failures of one kind do.
#[derive(Debug, Clone, PartialEq)]
pub struct Blast {
    /// What fails together.
    pub domains: Vec<Domain>,
    /// How many such failures there are.
    pub failures: u64,
    /// How many of them stop at least one range.
    pub stopping: u64,
    /// How many of them leave at least one range without any replica.
    pub losing: u64,
    /// Ranges that the worst of them stops.
    pub ranges_stopped_max: u64,
    /// Ranges that one of them stops on average.
    pub ranges_stopped_mean: f64,
}

/// Dead replicas with which a range of so many stops.
fn fatal(each: usize) -> usize {
    each - each / 2
}

/// Single failures of every level, smallest first.
#[must_use]
pub fn singles(cluster: &Cluster, replicas: &Replicas) -> Vec<Blast> {
    Domain::ALL.iter().map(|level| single(cluster, replicas, *level)).collect()
}

fn single(cluster: &Cluster, replicas: &Replicas, level: Domain) -> Blast {
    let (mut stopped, mut lost) = (vec![0_u64; cluster.count(level)], vec![0_u64; cluster.count(level)]);
    let mut places = Places::default();
    for range in replicas.ranges() {
        places.count(cluster, range, level);
        for (place, count) in &places.0 {
            stopped[*place as usize] += u64::from(*count >= fatal(replicas.each));
            lost[*place as usize] += u64::from(*count == replicas.each);
        }
    }
    let harmful = |counts: &[u64]| counts.iter().filter(|count| **count > 0).count() as u64;
    Blast {
        domains: vec![level],
        failures: stopped.len() as u64,
        stopping: harmful(&stopped),
        losing: harmful(&lost),
        ranges_stopped_max: stopped.iter().copied().max().unwrap_or(0),
        ranges_stopped_mean: stopped.iter().sum::<u64>() as f64 / stopped.len().max(1) as f64,
    }
}

/// Places of one range at one level, and how many of its replicas each holds.
#[derive(Default)]
struct Places(Vec<(u32, usize)>);

impl Places {
    fn count(&mut self, cluster: &Cluster, range: &[u32], level: Domain) {
        self.0.clear();
        for host in range {
            let place = cluster.around(*host, level);
            match self.0.iter_mut().find(|(known, _)| *known == place) {
                Some((_, count)) => *count += 1,
                None => self.0.push((place, 1)),
            }
        }
    }
}

/// Double failures of every two levels.
#[must_use]
pub fn doubles(cluster: &Cluster, replicas: &Replicas) -> Vec<Blast> {
    let mut all = Vec::new();
    for (number, one) in Domain::ALL.iter().enumerate() {
        for other in &Domain::ALL[number..] {
            all.push(double(cluster, replicas, *one, *other));
        }
    }
    all
}

/// Ranges stopped and ranges lost by each pair that does more than its halves, and by each place alone.
struct Pairs<'a> {
    cluster: &'a Cluster,
    one: Domain,
    other: Domain,
    /// A representative host of each place of the smaller level tells which wider place it is in.
    first_host: Vec<u32>,
    alone: [Vec<u64>; 2],
    alone_lost: [Vec<u64>; 2],
    /// By number of the pair: what both stop together beyond the sum of what each stops alone. May be negative: a
    /// range that either stops alone counts once.
    together: Vec<i32>,
    together_lost: Vec<i32>,
}

impl Pairs<'_> {
    /// Pairs of one level are unordered.
    fn number(&self, one: u32, other: u32) -> usize {
        let (one, other) = (one as usize, other as usize);
        if self.one == self.other {
            let (low, high) = if one < other { (one, other) } else { (other, one) };
            high * (high - 1) / 2 + low
        } else {
            one * self.alone[1].len() + other
        }
    }

    fn nested(&self, one: u32, other: u32) -> bool {
        self.cluster.around(self.first_host[one as usize], self.other) == other
    }
}

fn double(cluster: &Cluster, replicas: &Replicas, one: Domain, other: Domain) -> Blast {
    let (ones, others) = (cluster.count(one), cluster.count(other));
    if others == 1 {
        // It contains every other place: there are no pairs.
        return nothing(one, other);
    }
    let cells = if one == other { ones * ones.saturating_sub(1) / 2 } else { ones * others };
    let first_host = cluster.hosts_by(one).iter().map(|hosts| hosts[0]).collect();
    // When no pair of places can hold every replica of any range, there is no need to count that.
    let losing_possible = may_lose(cluster, replicas, one, other);
    let mut pairs = Pairs {
        cluster,
        one,
        other,
        first_host,
        alone: [vec![0; ones], vec![0; others]],
        alone_lost: [vec![0; ones], vec![0; others]],
        together: vec![0; cells],
        together_lost: vec![0; if losing_possible { cells } else { 0 }],
    };
    let (mut here, mut there) = (Places::default(), Places::default());
    for range in replicas.ranges() {
        here.count(cluster, range, one);
        if one == other {
            there.0.clone_from(&here.0);
        } else {
            there.count(cluster, range, other);
        }
        add(&mut pairs, &here.0, &there.0, replicas.each);
    }
    summed(&pairs)
}

fn may_lose(cluster: &Cluster, replicas: &Replicas, one: Domain, other: Domain) -> bool {
    let (mut here, mut there) = (Places::default(), Places::default());
    replicas.ranges().any(|range| {
        here.count(cluster, range, one);
        there.count(cluster, range, other);
        let most = |places: &Places| places.0.iter().map(|(_, count)| *count).max().unwrap_or(0);
        most(&here) + most(&there) >= replicas.each
    })
}

/// Adds one range. What a place stops alone is kept by place; a pair only keeps how it differs from their sum.
fn add(pairs: &mut Pairs<'_>, here: &[(u32, usize)], there: &[(u32, usize)], each: usize) {
    for (needed, lost) in [(fatal(each), false), (each, true)] {
        let alone = if lost { &mut pairs.alone_lost } else { &mut pairs.alone };
        for (place, _) in here.iter().filter(|(_, count)| *count >= needed) {
            alone[0][*place as usize] += 1;
        }
        for (place, _) in there.iter().filter(|(_, count)| *count >= needed) {
            alone[1][*place as usize] += 1;
        }
        if lost && pairs.together_lost.is_empty() {
            continue;
        }
        for (one, count_one) in here {
            for (other, count_other) in there {
                // A pair of which one contains the other is counted here as well, and never looked at.
                if pairs.one == pairs.other && one >= other {
                    continue;
                }
                let either = i32::from(*count_one >= needed) + i32::from(*count_other >= needed);
                let difference = i32::from(count_one + count_other >= needed) - either;
                if difference != 0 {
                    let number = pairs.number(*one, *other);
                    let cell = if lost { &mut pairs.together_lost } else { &mut pairs.together };
                    cell[number] += difference;
                }
            }
        }
    }
}

fn nothing(one: Domain, other: Domain) -> Blast {
    Blast {
        domains: vec![one, other],
        failures: 0,
        stopping: 0,
        losing: 0,
        ranges_stopped_max: 0,
        ranges_stopped_mean: 0.0,
    }
}

/// Looks at every pair.
fn summed(pairs: &Pairs<'_>) -> Blast {
    let mut blast = nothing(pairs.one, pairs.other);
    let mut stopped_in_all = 0_u64;
    for one in 0..pairs.alone[0].len() as u32 {
        let others = if pairs.one == pairs.other { one + 1 } else { 0 }..pairs.alone[1].len() as u32;
        for other in others {
            if pairs.nested(one, other) {
                continue;
            }
            let number = pairs.number(one, other);
            let sum = |alone: &[Vec<u64>; 2], together: &[i32]| {
                let alone = alone[0][one as usize] + alone[1][other as usize];
                alone.saturating_add_signed(i64::from(together.get(number).copied().unwrap_or(0)))
            };
            let stopped = sum(&pairs.alone, &pairs.together);
            blast.failures += 1;
            blast.stopping += u64::from(stopped > 0);
            blast.losing += u64::from(sum(&pairs.alone_lost, &pairs.together_lost) > 0);
            blast.ranges_stopped_max = blast.ranges_stopped_max.max(stopped);
            stopped_in_all += stopped;
        }
    }
    blast.ranges_stopped_mean = stopped_in_all as f64 / blast.failures.max(1) as f64;
    blast
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scale::{Placement, place};

    /// The same by asking every range about every failure.
    fn brute(cluster: &Cluster, replicas: &Replicas, one: Domain, other: Option<Domain>) -> Blast {
        let within = |place: u32, level: Domain| -> Vec<u32> {
            (0..cluster.hosts() as u32).filter(|host| cluster.around(*host, level) == place).collect()
        };
        let mut sets: Vec<Vec<u32>> = Vec::new();
        for first in 0..cluster.count(one) as u32 {
            let here = within(first, one);
            let Some(other) = other else {
                sets.push(here);
                continue;
            };
            for second in 0..cluster.count(other) as u32 {
                let there = within(second, other);
                let apart = here.iter().all(|host| !there.contains(host));
                if apart && (one != other || first < second) {
                    sets.push([here.clone(), there].concat());
                }
            }
        }
        let mut blast = Blast {
            domains: std::iter::once(one).chain(other).collect(),
            failures: sets.len() as u64,
            stopping: 0,
            losing: 0,
            ranges_stopped_max: 0,
            ranges_stopped_mean: 0.0,
        };
        let mut all = 0;
        for dead in &sets {
            let left = |range: &[u32]| range.iter().filter(|host| !dead.contains(host)).count();
            let stopped =
                replicas.ranges().filter(|range| left(range) < replicas.each / 2 + 1).count() as u64;
            blast.losing += u64::from(replicas.ranges().any(|range| left(range) == 0));
            blast.stopping += u64::from(stopped > 0);
            blast.ranges_stopped_max = blast.ranges_stopped_max.max(stopped);
            all += stopped;
        }
        blast.ranges_stopped_mean = all as f64 / (sets.len().max(1)) as f64;
        blast
    }

    proptest! {
        #[test]
        fn every_pair_stops_what_asking_every_range_says(
            hosts in 1_usize..14,
            racks in 1_usize..6,
            zones in 1_usize..4,
            regions in 1_usize..3,
            each in 1_usize..6,
            ranges in 1_usize..12,
            copysets in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let cluster = Cluster::even(regions, zones, racks, hosts).unwrap();
            let each = each.min(hosts);
            let placement = if copysets { Placement::Copysets { scatter_width: 5 } } else { Placement::Random };
            let replicas = place(&cluster, ranges, each, placement, seed).unwrap();
            for range in replicas.ranges() {
                let distinct: std::collections::BTreeSet<_> = range.iter().collect();
                prop_assert_eq!(distinct.len(), each, "two replicas on one host");
            }
            for (found, level) in singles(&cluster, &replicas).iter().zip(Domain::ALL) {
                prop_assert_eq!(found, &brute(&cluster, &replicas, level, None));
            }
            for found in doubles(&cluster, &replicas) {
                let expected = brute(&cluster, &replicas, found.domains[0], Some(found.domains[1]));
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_replica_in_each_of_three_zones_outlives_every_zone_and_no_two() {
        let cluster = Cluster::even(1, 3, 30, 300).unwrap();
        let replicas = place(&cluster, 1_000, 3, Placement::Random, 1).unwrap();
        let single: Vec<u64> = singles(&cluster, &replicas).iter().map(|blast| blast.stopping).collect();
        assert_eq!(single, [0, 0, 0, 1], "only the region");
        let zones = doubles(&cluster, &replicas);
        let zones = zones.iter().find(|blast| blast.domains == [Domain::Zone, Domain::Zone]).unwrap();
        assert_eq!((zones.failures, zones.stopping, zones.ranges_stopped_max), (3, 3, 1_000));
    }
}
