//! What is copied after a place is lost for good, through which edges, and how long that takes at least.
//!
//! Every replica lost is copied from a survivor of its range to a host that has none of it: in the zones with the fewest
//! replicas of it. Sources and targets are drawn from a seed; the time is that of the narrowest host or edge, all of it
//! given to the rebuild.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::placement::below;
use super::{Cluster, Domain, Replicas};

/// What carries the copies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carriers {
    /// What one range holds.
    pub range_bytes: f64,
    /// What a host reads or writes for a rebuild, each way.
    pub host_bits_per_s: f64,
    /// What the edge around a zone carries, each way.
    pub edge_bits_per_s: f64,
}

/// What a rebuild moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuild {
    /// Replicas copied.
    pub replicas: u64,
    /// Ranges of which nothing was left to copy.
    pub ranges_lost: u64,
    /// Replicas for which there was no host left.
    pub without_target: u64,
    /// Bytes copied.
    pub bytes: f64,
    /// Bytes that crossed from zone to zone.
    pub bytes_between_zones: f64,
    /// Bytes through the busiest edge, one way.
    pub edge_bytes_max: f64,
    /// How long it takes, in seconds.
    pub time_s: f64,
    /// Whether an edge is narrower than every host.
    pub edge_is_narrowest: bool,
}

/// The rebuild after one place of a level is gone for good.
#[must_use]
pub fn after_loss(
    cluster: &Cluster,
    replicas: &Replicas,
    level: Domain,
    place: u32,
    carriers: Carriers,
    seed: u64,
) -> Rebuild {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut work = Work::new(cluster, level, place);
    for range in replicas.ranges() {
        work.range(range, &mut random);
    }
    work.summed(carriers)
}

struct Work<'a> {
    cluster: &'a Cluster,
    gone: Vec<bool>,
    /// Hosts that are left, by zone.
    left: Vec<Vec<u32>>,
    host_out: Vec<u64>,
    host_in: Vec<u64>,
    edge_out: Vec<u64>,
    edge_in: Vec<u64>,
    copied: u64,
    between: u64,
    ranges_lost: u64,
    without_target: u64,
}

impl<'a> Work<'a> {
    fn new(cluster: &'a Cluster, level: Domain, place: u32) -> Work<'a> {
        let gone: Vec<bool> =
            (0..cluster.hosts() as u32).map(|host| cluster.around(host, level) == place).collect();
        let mut left = cluster.hosts_by(Domain::Zone);
        left.iter_mut().for_each(|hosts| hosts.retain(|host| !gone[*host as usize]));
        let zones = left.len();
        Work {
            cluster,
            left,
            host_out: vec![0; gone.len()],
            host_in: vec![0; gone.len()],
            gone,
            edge_out: vec![0; zones],
            edge_in: vec![0; zones],
            copied: 0,
            between: 0,
            ranges_lost: 0,
            without_target: 0,
        }
    }

    fn range(&mut self, range: &[u32], random: &mut ChaCha8Rng) {
        let lost = range.iter().filter(|host| self.gone[**host as usize]).count();
        if lost == 0 {
            return;
        }
        let mut holds: Vec<u32> = range.iter().copied().filter(|host| !self.gone[*host as usize]).collect();
        let survivors = holds.len();
        if survivors == 0 {
            self.ranges_lost += 1;
            return;
        }
        for _ in 0..lost {
            let Some(target) = self.target(&holds, random) else {
                self.without_target += 1;
                continue;
            };
            self.copy(holds[below(survivors, random)], target);
            holds.push(target);
        }
    }

    /// A host without a replica, in one of the zones with the fewest.
    fn target(&self, holds: &[u32], random: &mut ChaCha8Rng) -> Option<u32> {
        let zone_of = |host: &u32| self.cluster.around(*host, Domain::Zone) as usize;
        let held = |zone: usize| holds.iter().filter(|host| zone_of(host) == zone).count();
        let open = |zone: &usize| self.left[*zone].len() > held(*zone);
        let fewest = (0..self.left.len()).filter(open).map(held).min()?;
        let fitting = || (0..self.left.len()).filter(open).filter(|zone| held(*zone) == fewest);
        // Zones take part by their hosts, so that all hosts fill alike.
        let free: usize = fitting().map(|zone| self.left[zone].len()).sum();
        let mut number = below(free, random);
        for zone in fitting() {
            let hosts = &self.left[zone];
            if number < hosts.len() {
                let turned = hosts[number..].iter().chain(&hosts[..number]);
                return turned.copied().find(|host| !holds.contains(host));
            }
            number -= hosts.len();
        }
        None
    }

    fn copy(&mut self, from: u32, to: u32) {
        self.copied += 1;
        self.host_out[from as usize] += 1;
        self.host_in[to as usize] += 1;
        let [out_of, into] = [from, to].map(|host| self.cluster.around(host, Domain::Zone) as usize);
        if out_of != into {
            self.between += 1;
            self.edge_out[out_of] += 1;
            self.edge_in[into] += 1;
        }
    }

    fn summed(&self, carriers: Carriers) -> Rebuild {
        let most = |counts: &[&Vec<u64>]| {
            counts.iter().flat_map(|counts| counts.iter()).copied().max().unwrap_or(0) as f64
                * carriers.range_bytes
        };
        let host_s = most(&[&self.host_out, &self.host_in]) * 8.0 / carriers.host_bits_per_s;
        let edge_bytes_max = most(&[&self.edge_out, &self.edge_in]);
        let edge_s = edge_bytes_max * 8.0 / carriers.edge_bits_per_s;
        Rebuild {
            replicas: self.copied,
            ranges_lost: self.ranges_lost,
            without_target: self.without_target,
            bytes: self.copied as f64 * carriers.range_bytes,
            bytes_between_zones: self.between as f64 * carriers.range_bytes,
            edge_bytes_max,
            time_s: host_s.max(edge_s),
            edge_is_narrowest: edge_s > host_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{Placement, place};

    fn carriers(edge_bits_per_s: f64) -> Carriers {
        Carriers { range_bytes: 1e9, host_bits_per_s: 8e9, edge_bits_per_s }
    }

    #[test]
    fn a_lost_rack_is_rebuilt_within_its_zone_from_the_other_zones_through_its_edge() {
        let cluster = Cluster::even(1, 3, 30, 300).unwrap();
        let replicas = place(&cluster, 30_000, 3, Placement::Random, 1).unwrap();
        let held =
            replicas.ranges().flatten().filter(|host| cluster.around(**host, Domain::Rack) == 0).count();
        let found = after_loss(&cluster, &replicas, Domain::Rack, 0, carriers(8e9), 2);
        assert_eq!(found.replicas, held as u64);
        assert_eq!((found.ranges_lost, found.without_target), (0, 0));
        // One replica in each zone: what is lost returns to its zone, and comes from outside it.
        assert_eq!(found.bytes_between_zones, found.bytes);
        assert_eq!(found.edge_bytes_max, found.bytes);
        assert!(found.edge_is_narrowest);
        assert!((found.time_s - held as f64).abs() < 1e-6, "a second for each range");
    }

    #[test]
    fn wide_edges_leave_the_hosts_as_the_narrowest() {
        let cluster = Cluster::even(1, 3, 30, 300).unwrap();
        let replicas = place(&cluster, 30_000, 3, Placement::Random, 1).unwrap();
        let found = after_loss(&cluster, &replicas, Domain::Zone, 1, carriers(8e15), 2);
        assert!(!found.edge_is_narrowest && found.time_s > 0.0);
        // Two zones are left for ranges that had three: within them everything can be copied.
        assert_eq!(found.replicas, 30_000);
    }

    #[test]
    fn what_only_the_lost_place_held_is_told_as_lost() {
        let cluster = Cluster::even(1, 1, 3, 6).unwrap();
        let replicas = Replicas::from_ranges(&[vec![0, 1], vec![0, 5], vec![2, 3]]).unwrap();
        let found = after_loss(&cluster, &replicas, Domain::Rack, 0, carriers(8e9), 2);
        assert_eq!((found.ranges_lost, found.replicas, found.bytes_between_zones), (1, 1, 0.0));
        let crowded = Replicas::from_ranges(&[vec![0, 2, 3, 4, 5]]).unwrap();
        let found = after_loss(&cluster, &crowded, Domain::Rack, 0, carriers(8e9), 2);
        assert_eq!((found.replicas, found.without_target), (0, 1));
    }
}
