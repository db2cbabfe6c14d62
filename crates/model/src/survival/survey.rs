//! Every single and every double failure of a deployment, and the smallest that hurts.
//!
//! Owns which failures there are and the counting; what one of them does is in the parent.

use std::collections::{BTreeMap, BTreeSet};

use history::HostId;

use super::{Data, Failure, Outcome, Service, outcome};
use crate::deployment::{Deployment, Path};

/// More sets than this are not looked through for one size; the answer then says so.
const MOST_SETS: u64 = 400_000;
/// Nor are those of which looking at all would take more steps than this: each looks at every host and node.
const MOST_STEPS: u64 = 200_000_000;
/// Larger sets are not looked for.
const LARGEST_SET: usize = 4;

/// Everything that can fail by itself: each place that holds hosts (of several names for the same hosts the innermost),
/// the way between each two regions and each two zones of a region, `links` and `edges` besides, and each disk and disk
/// group that holds something.
#[must_use]
pub fn failures(deployment: &Deployment, links: &[(Path, Path)], edges: &[Path]) -> Vec<Failure> {
    let places = deployment.places();
    let mut parts: BTreeMap<&[String], usize> = BTreeMap::new();
    for around in places.iter().filter_map(|place| place.split_last()).map(|(_, around)| around) {
        *parts.entry(around).or_default() += 1;
    }
    // A place with one part holds the same hosts as that part, whose name stays.
    let innermost = places.iter().filter(|place| parts.get(place.as_slice()) != Some(&1));
    let mut found: Vec<Failure> = innermost.cloned().map(Failure::Down).collect();
    let pair = |one: &Path, other: &Path| {
        let (one, other) = if one <= other { (one, other) } else { (other, one) };
        Failure::Cut(one.clone(), other.clone())
    };
    let wide: Vec<&Path> = places.iter().filter(|place| place.len() <= 2).collect();
    let mut cuts: BTreeSet<Failure> = BTreeSet::new();
    for (number, one) in wide.iter().enumerate() {
        let siblings = wide[number + 1..]
            .iter()
            .filter(|other| other.len() == one.len() && other[..other.len() - 1] == one[..one.len() - 1]);
        cuts.extend(siblings.map(|other| pair(one, other)));
    }
    let apart = |(one, other): &&(Path, Path)| !one.starts_with(other) && !other.starts_with(one);
    cuts.extend(links.iter().filter(apart).map(|(one, other)| pair(one, other)));
    found.extend(cuts);
    found.extend(edges.iter().cloned().collect::<BTreeSet<Path>>().into_iter().map(Failure::Isolated));
    found.extend(disks(deployment));
    found
}

/// Disks that hold something, then the groups they are in.
fn disks(deployment: &Deployment) -> impl Iterator<Item = Failure> {
    let of_host = |host: HostId, disk: &str| {
        let mut path = deployment.hosts.get(host).cloned().unwrap_or_default();
        path.push(disk.to_owned());
        path
    };
    let (mut disks, mut groups) = (Vec::new(), BTreeSet::new());
    for (host, disk, cache) in deployment.storage.disks_in_use() {
        disks.push(Failure::Disk(of_host(host, disk)));
        groups.extend(cache.map(|cache| Failure::DiskGroup(of_host(host, cache))));
    }
    disks.into_iter().chain(groups)
}

/// The smallest set of failures that does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smallest {
    /// Of this size, this is one of so many.
    Found {
        /// The first.
        set: Vec<Failure>,
        /// How many of that size there are.
        alike: usize,
    },
    /// None of up to so many failures does; larger sets were not looked through.
    MoreThan(usize),
}

/// What single and double failures leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Each by itself.
    pub singles: Vec<(Failure, Outcome)>,
    /// Each two that do not contain each other; `None` when there are too many to look through.
    pub doubles: Option<Vec<([Failure; 2], Outcome)>>,
    /// The smallest set after which not everything is served.
    pub stops_service: Smallest,
    /// The smallest set after which acknowledged writes are on no node that lives on.
    pub loses_data: Smallest,
}

/// Looks at every single and every double failure of these.
#[must_use]
pub fn survey(deployment: &Deployment, failures: &[Failure]) -> Survey {
    let singles: Vec<(Failure, Outcome)> = failures
        .iter()
        .map(|failure| (failure.clone(), outcome(deployment, std::slice::from_ref(failure))))
        .collect();
    let doubles = are_looked_through(deployment, failures, 2).then(|| {
        let mut doubles = Vec::new();
        for (number, one) in failures.iter().enumerate() {
            for other in failures[number + 1..].iter().filter(|other| !contain(deployment, one, other)) {
                let both = [one.clone(), other.clone()];
                let outcome = outcome(deployment, &both);
                doubles.push((both, outcome));
            }
        }
        doubles
    });
    let stops = |outcome: &Outcome| outcome.service != Service::ReadsAndWrites;
    let loses = |outcome: &Outcome| outcome.data != Data::Kept;
    Survey {
        stops_service: smallest(deployment, failures, &stops),
        loses_data: smallest(deployment, failures, &loses),
        singles,
        doubles,
    }
}

/// Whether one is part of the other, so that both together are no more than one.
fn contain(deployment: &Deployment, one: &Failure, other: &Failure) -> bool {
    let in_group = |disk: &Path, group: &Path| match (disk.split_last(), group.split_last()) {
        (Some((disk, host)), Some((cache, of))) => {
            host == of && deployment.storage.behind(cache).contains(disk)
        }
        _ => false,
    };
    match (one, other) {
        (Failure::Disk(disk), Failure::DiskGroup(group))
        | (Failure::DiskGroup(group), Failure::Disk(disk)) => in_group(disk, group),
        (Failure::Down(one), Failure::Down(other)) => one.starts_with(other) || other.starts_with(one),
        _ => one == other,
    }
}

/// How many sets of that size there are.
fn sets(of: usize, size: usize) -> u64 {
    (0..size as u64)
        .fold(1, |sets, taken| sets.saturating_mul((of as u64).saturating_sub(taken)) / (taken + 1))
}

/// Whether all sets of that size are. Single failures always are.
fn are_looked_through(deployment: &Deployment, failures: &[Failure], size: usize) -> bool {
    let sets = sets(failures.len(), size);
    let steps = sets.saturating_mul((deployment.hosts.len() + deployment.nodes.len()) as u64);
    size < 2 || (sets <= MOST_SETS && steps <= MOST_STEPS)
}

fn smallest(deployment: &Deployment, failures: &[Failure], hurts: &dyn Fn(&Outcome) -> bool) -> Smallest {
    for size in 1..=LARGEST_SET.min(failures.len()) {
        if !are_looked_through(deployment, failures, size) {
            return Smallest::MoreThan(size - 1);
        }
        let mut found: Vec<Vec<Failure>> = Vec::new();
        each_set(deployment, (failures, size), &mut Vec::new(), &mut |set| {
            if hurts(&outcome(deployment, set)) {
                found.push(set.to_vec());
            }
        });
        if let Some(set) = found.first() {
            return Smallest::Found { set: set.clone(), alike: found.len() };
        }
    }
    Smallest::MoreThan(LARGEST_SET.min(failures.len()))
}

fn each_set(
    deployment: &Deployment,
    (failures, size): (&[Failure], usize),
    chosen: &mut Vec<Failure>,
    look: &mut dyn FnMut(&[Failure]),
) {
    if size == 0 {
        return look(chosen);
    }
    for (number, failure) in failures.iter().enumerate() {
        if chosen.iter().any(|one| contain(deployment, one, failure)) {
            continue;
        }
        chosen.push(failure.clone());
        each_set(deployment, (&failures[number + 1..], size - 1), chosen, look);
        chosen.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Acknowledgements;
    use crate::deployment::{Rules, Takeover};

    #[test]
    fn pairs_of_failures_are_looked_at_on_a_site_of_a_hundred_hosts_and_told_to_be_too_many_on_one_of_nine_hundred()
     {
        let on = |hosts: usize| Deployment {
            hosts: (0..hosts)
                .map(|host| ["r", "z", &format!("h{host}")].map(str::to_owned).to_vec())
                .collect(),
            nodes: (0..3).map(HostId::new).collect(),
            clients: Vec::new(),
            rules: Rules::SingleLog { acknowledgements: Acknowledgements::None, takeover: Takeover::None },
            storage: Default::default(),
        };
        let looked_through = |hosts: usize| {
            let deployment = on(hosts);
            are_looked_through(&deployment, &failures(&deployment, &[], &[]), 2)
        };
        assert!(looked_through(100));
        // 400,000 pairs or fewer, each with 900 hosts to look at.
        assert!(!looked_through(860));
    }
}
