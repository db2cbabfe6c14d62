//! The scenario's disks and volumes in the model's terms.
//!
//! Owns the conversion. Which disk of a host a volume takes is decided where disks are made (`disks`); a test there and
//! one here hold the two together.

use model::deployment::{Deployment, Path};
use model::storage::{Acknowledge, Component, DiskGroup, Promotion, Storage, Volume};
use model::survival::Failure;
use scenario::{DiskDefect, Disks, Scenario, Volumes};

/// What the nodes keep their data on.
pub(super) fn of(scenario: &Scenario) -> Storage {
    if scenario.database.volumes == Volumes::Directory {
        return Storage::default();
    }
    let disks = scenario.site.disks;
    let group = |(capacity, cache)| DiskGroup { cache, capacity };
    let on_hosts = |storage: &&scenario::Storage| storage.replicas > 1 || !storage.hosts.is_empty();
    let mirrored = scenario.database.storage.as_ref().filter(on_hosts);
    let volumes = match mirrored {
        Some(storage) => {
            let of_node =
                |(node, hosts): (usize, &Vec<usize>)| mirror(storage, hosts, &disk_name(disks, node));
            storage.components.iter().enumerate().map(of_node).collect()
        }
        None => {
            let nodes = &scenario.database.nodes;
            let alone = |(node, host): (usize, &usize)| {
                let earlier = nodes[..node].iter().filter(|other| *other == host).count();
                Volume::alone(*host, &disk_name(disks, earlier))
            };
            nodes.iter().enumerate().map(alone).collect()
        }
    };
    let groups = disks.grouped().into_iter().map(group).collect();
    let for_storage = mirrored.map(|storage| storage.for_storage.clone()).unwrap_or_default();
    Storage { groups, volumes, for_storage }
}

/// A host's capacity disks are taken in turn.
fn disk_name(disks: Disks, number: usize) -> String {
    format!("d{}", number % (disks.capacity as usize).max(1) + 1)
}

fn mirror(storage: &scenario::Storage, hosts: &[usize], disk: &str) -> Volume {
    Volume {
        components: hosts.iter().map(|host| Component { host: *host, disk: disk.to_owned() }).collect(),
        fails_with_host: true,
        acknowledge: match storage.acknowledge {
            scenario::Acknowledge::Sync => Acknowledge::Sync,
            scenario::Acknowledge::Semi => Acknowledge::Semi,
            scenario::Acknowledge::Async => Acknowledge::Async,
        },
        promotion: match storage.promote {
            scenario::Promotion::UpToDate => Promotion::UpToDate,
            scenario::Promotion::Forced => Promotion::Forced,
        },
    }
}

/// A disk of a host that refuses; a cache disk takes its group with it.
pub(crate) fn failure_of(deployment: &Deployment, host: &[String], disk: &str) -> Failure {
    let mut path: Path = host.to_vec();
    path.push(disk.to_owned());
    let is_cache = deployment.storage.groups.iter().any(|group| group.cache.as_deref() == Some(disk));
    if is_cache { Failure::DiskGroup(path) } else { Failure::Disk(path) }
}

/// Why a defect is not judged on paper; nothing for one that refuses everything.
pub(crate) fn not_judged(defect: &DiskDefect) -> Option<&'static str> {
    match defect {
        DiskDefect::Fail | DiskDefect::FailAfter { .. } => None,
        DiskDefect::Slow { .. } => Some("it changes what a disk costs, not who serves"),
        DiskDefect::Stall => Some("how long a database waits for a disk that does not answer is its own"),
        DiskDefect::Full | DiskDefect::ReadOnly => {
            Some("what a database does without room or leave to write depends on what it has to write then")
        }
        DiskDefect::Corrupt { .. } => Some("what is read wrongly depends on what is read"),
        DiskDefect::LoseFlush => Some("nothing is seen of it until power is lost"),
    }
}

#[cfg(test)]
mod tests {
    use scenario::Source;

    use super::*;

    /// Components of each node's volume as `host/disk`, host by its number.
    fn check(database: &str, expected: &[&str]) {
        let text = format!(
            "name: s\nsite:\n  regions: {{ x: {{ zones: {{ a: {{ hosts: 3 }} }} }} }}\n  disks: {{ capacity: 3, groups: 2, cache: true }}\n\
             database: {{ engine: postgres, {database} }}\nloads: [{{ workload: ledger, clients: 1, from: x }}]\nschedule: [{{ phase: p, for: 2s }}]\n"
        );
        let source = Source { name: "s".to_owned(), text };
        let scenario = scenario::parse(&source, &[]).unwrap_or_else(|error| panic!("{error:?}"));
        let component = |of: &Component| format!("{}/{}", of.host, of.disk);
        let found = of(&scenario);
        let told: Vec<String> = found
            .volumes
            .iter()
            .map(|volume| volume.components.iter().map(component).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(told, expected, "{database}");
    }

    #[test]
    fn volumes_lie_on_the_disks_that_the_lab_takes() {
        check("nodes: 2", &["0/d1", "1/d1"]);
        check("nodes: 2, storage: { replicas: 2 }", &["0/d1 2/d1", "1/d2 2/d2"]);
        check("nodes: 1, storage: { replicas: 1, hosts: [x/a/h3] }", &["2/d1"]);
        check("nodes: 2, volumes: directory", &[]);
    }
}
