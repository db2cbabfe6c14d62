//! Where the replicas of each range are: at random, or in copysets; either way in as many zones, then racks, as there are.
//!
//! Source: Cidon et al., "Copysets: Reducing the Frequency of Data Loss in Cloud Storage" (2013), for copysets made from
//! permutations.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{Cluster, Domain, MOST_RANGES, MOST_REPLICAS, ShapeError};

/// How hosts are chosen for a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// For each range anew.
    Random,
    /// Among sets fixed beforehand, so that each host shares ranges with about so many others.
    Copysets {
        /// Others with which a host shares ranges.
        scatter_width: usize,
    },
}

/// The hosts of every range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replicas {
    /// Of each range so many.
    pub each: usize,
    hosts: Vec<u32>,
}

impl Replicas {
    /// The hosts of each range, in the ranges' order.
    pub fn ranges(&self) -> impl Iterator<Item = &[u32]> {
        self.hosts.chunks_exact(self.each)
    }

    /// How many ranges.
    #[must_use]
    pub fn count(&self) -> usize {
        self.hosts.len() / self.each
    }

    /// From sets of hosts as they stand; nothing when they are not all of one size, which must not be none.
    #[must_use]
    pub fn from_ranges(ranges: &[Vec<u32>]) -> Option<Replicas> {
        let each = ranges.first()?.len();
        let even = each > 0 && ranges.iter().all(|range| range.len() == each);
        even.then(|| Replicas { each, hosts: ranges.concat() })
    }
}

/// A whole number below `bound`, evenly: by multiplication, whose bias is below one in four thousand million.
pub(super) fn below(bound: usize, random: &mut ChaCha8Rng) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

pub(super) fn shuffle<T>(items: &mut [T], random: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last + 1, random));
    }
}

/// Places the replicas of so many ranges. The same seed places them alike.
///
/// # Errors
/// When there are too few hosts, or more ranges or replicas than this program looks at.
pub fn place(
    cluster: &Cluster,
    ranges: usize,
    each: usize,
    placement: Placement,
    seed: u64,
) -> Result<Replicas, ShapeError> {
    if each == 0 || ranges == 0 {
        return Err(ShapeError::Nothing(if each == 0 { "replicas" } else { "ranges" }));
    }
    if each > cluster.hosts() {
        return Err(ShapeError::TooManyReplicas { replicas: each, hosts: cluster.hosts() });
    }
    for (what, value, most) in [("ranges", ranges, MOST_RANGES), ("replicas", each, MOST_REPLICAS)] {
        if value > most {
            return Err(ShapeError::TooMany { what, value, most });
        }
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut hosts = Vec::with_capacity(ranges * each);
    match placement {
        Placement::Random => {
            let mut dealer = Dealer::new(cluster);
            for _ in 0..ranges {
                dealer.deal(each, &mut random, &mut hosts);
            }
        }
        Placement::Copysets { scatter_width } => {
            let sets = copysets(cluster, each, scatter_width, &mut random)?;
            for _ in 0..ranges {
                hosts.extend_from_slice(&sets[below(sets.len(), &mut random)]);
            }
        }
    }
    Ok(Replicas { each, hosts })
}

/// The fixed sets: as many permutations as the scatter width needs, each cut into sets.
pub(super) fn copysets(
    cluster: &Cluster,
    each: usize,
    scatter_width: usize,
    random: &mut ChaCha8Rng,
) -> Result<Vec<Vec<u32>>, ShapeError> {
    let others = each.saturating_sub(1);
    if scatter_width < others {
        return Err(ShapeError::NarrowScatter { width: scatter_width, least: others });
    }
    let permutations = if others == 0 { 1 } else { scatter_width.div_ceil(others) };
    let count = permutations.saturating_mul(cluster.hosts() / each.max(1));
    if count > MOST_RANGES {
        let what = "the number of copysets";
        return Err(ShapeError::TooMany { what, value: count, most: MOST_RANGES });
    }
    let level = [Domain::Zone, Domain::Rack].into_iter().find(|level| cluster.count(*level) >= each);
    let mut sets = Vec::new();
    for _ in 0..permutations {
        let mut row = permutation(cluster, level, random);
        // What is left over joins no set of this permutation.
        row.truncate(row.len() / each * each);
        sets.extend(row.chunks_exact(each).map(<[u32]>::to_vec));
    }
    Ok(sets)
}

/// Every host once, neighbours in different places of the level for as long as there are any.
fn permutation(cluster: &Cluster, level: Option<Domain>, random: &mut ChaCha8Rng) -> Vec<u32> {
    let mut groups = match level {
        Some(level) => cluster.hosts_by(level),
        None => vec![(0..cluster.hosts() as u32).collect()],
    };
    for group in &mut groups {
        shuffle(group, random);
    }
    let mut row = Vec::with_capacity(cluster.hosts());
    while groups.iter().any(|group| !group.is_empty()) {
        shuffle(&mut groups, random);
        row.extend(groups.iter_mut().filter_map(Vec::pop));
    }
    row
}

/// Chooses hosts for one range after another.
struct Dealer {
    /// Hosts by rack by zone.
    zones: Vec<Vec<Vec<u32>>>,
    /// Numbers of zones, shuffled a little further for each range.
    zone_order: Vec<usize>,
    rack_order: Vec<Vec<usize>>,
}

impl Dealer {
    fn new(cluster: &Cluster) -> Dealer {
        let mut zones: Vec<Vec<Vec<u32>>> = vec![Vec::new(); cluster.count(Domain::Zone)];
        for (rack, hosts) in cluster.hosts_by(Domain::Rack).into_iter().enumerate() {
            zones[cluster.zone_of_rack[rack] as usize].push(hosts);
        }
        let rack_order = zones.iter().map(|racks| (0..racks.len()).collect()).collect();
        Dealer { zone_order: (0..zones.len()).collect(), rack_order, zones }
    }

    /// One replica in each zone before a second in any; within a zone the same with racks.
    fn deal(&mut self, each: usize, random: &mut ChaCha8Rng, hosts: &mut Vec<u32>) {
        let begun = hosts.len();
        first_shuffled(&mut self.zone_order, each, random);
        let mut turn = 0;
        while hosts.len() - begun < each {
            let zone = self.zone_order[turn % self.zone_order.len()];
            let round = turn / self.zone_order.len();
            turn += 1;
            let racks = &self.zones[zone];
            let order = &mut self.rack_order[zone];
            if round == 0 {
                first_shuffled(order, each.div_ceil(self.zones.len()), random);
            }
            // A rack whose hosts are all taken passes the turn on.
            let rack = &racks[order[round % order.len()]];
            let chosen = rack[below(rack.len(), random)];
            let taken = &hosts[begun..];
            if !taken.contains(&chosen) {
                hosts.push(chosen);
            } else if let Some(free) = rack.iter().find(|host| !taken.contains(host)) {
                hosts.push(*free);
            }
        }
    }
}

/// Shuffles as much of the beginning as is needed.
fn first_shuffled(items: &mut [usize], needed: usize, random: &mut ChaCha8Rng) {
    let count = items.len();
    for place in 0..needed.min(count) {
        items.swap(place, place + below(count - place, random));
    }
}
