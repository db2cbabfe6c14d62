//! The scenario's disks and volumes in the model's terms.
//!
//! Owns the conversion. Which disk of a host a volume takes is decided where disks are made (`disks`); a test there and
//! one here hold the two together.

use history::{HostId, NodeId};
use model::deployment::{Deployment, Path};
use model::storage::{Acknowledge, Component, DiskGroup, Promotion, Storage, Volume};
use model::survival::Failure;
use scenario::{DiskDefect, Disks, Scenario, Volumes};

/// What the nodes keep their data on.
pub(crate) fn of(scenario: &Scenario) -> Storage {
    if scenario.database.volumes == Volumes::Directory {
        return Storage::default();
    }
    let disks = scenario.site.disks;
    let group = |(capacity, cache)| DiskGroup { cache, capacity };
    let mirrored = scenario.database.storage.as_ref().filter(|storage| storage.is_mirrored());
    let volumes = match mirrored {
        Some(storage) => {
            let of_node = |(node, hosts): (NodeId, &Vec<HostId>)| {
                mirror(storage, hosts, &disk_name(disks, node.index()))
            };
            storage.components.numbered().map(of_node).collect()
        }
        None => {
            let nodes = &scenario.database.nodes;
            let alone = |(node, host): (NodeId, &HostId)| {
                let earlier = nodes.iter().take(node.index()).filter(|other| *other == host).count();
                Volume::alone(*host, &disk_name(disks, earlier))
            };
            nodes.numbered().map(alone).collect()
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

fn mirror(storage: &scenario::Storage, hosts: &[HostId], disk: &str) -> Volume {
    Volume {
        components: hosts.iter().map(|host| Component { host: *host, disk: disk.to_owned() }).collect(),
        served_from: None,
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

/// Why a defect of a disk, or of a disk group, is not judged on paper; nothing for one that refuses everything, and for one
/// that takes no changes where nothing but copies of mirrored volumes lies on it.
pub(crate) fn not_judged(
    defect: &DiskDefect,
    deployment: &Deployment,
    struck: &Failure,
) -> Option<&'static str> {
    match defect {
        DiskDefect::Fail | DiskDefect::FailAfter { .. } => None,
        DiskDefect::Slow { .. } => Some("it changes disk latency, not availability"),
        DiskDefect::Stall if holds_copies_alone(deployment, struck) => {
            Some("writes wait for the silent copy until the timeout, then continue without it")
        }
        DiskDefect::Stall => {
            Some("how long a database waits for a disk that does not answer is not modelled")
        }
        // A copy that refuses a change is out: it is gone on without, as without one whose disk has failed.
        DiskDefect::Full | DiskDefect::ReadOnly if holds_copies_alone(deployment, struck) => None,
        DiskDefect::Full | DiskDefect::ReadOnly => {
            Some("the behaviour on a full or read-only disk depends on what the database writes")
        }
        DiskDefect::Corrupt { .. } if holds_copies_alone(deployment, struck) => {
            Some("nothing is read from a copy; after a failover the effect depends on which blocks are read")
        }
        DiskDefect::Corrupt { .. } => Some("the effect depends on which blocks are read"),
        DiskDefect::LoseFlush => Some("it has no effect until power is lost"),
    }
}

/// Whether of the volumes only components lie there that do not serve, and that nobody would start from once they are out.
fn holds_copies_alone(deployment: &Deployment, struck: &Failure) -> bool {
    let (Failure::Disk(path) | Failure::DiskGroup(path)) = struck else { return false };
    let Some((disk, host)) = path.split_last() else { return false };
    let behind = deployment.storage.behind(disk);
    let is_struck = |component: &Component| {
        deployment.hosts.get(component.host).is_some_and(|path| path.as_slice() == host)
            && (component.disk == *disk || behind.contains(&component.disk))
    };
    let is_sound = |(node, node_on): (NodeId, &HostId)| {
        let Some(volume) = deployment.storage.volume(node) else { return true };
        let serves_elsewhere = !volume.serving(*node_on).is_some_and(is_struck);
        let is_copy = serves_elsewhere && volume.promotion == Promotion::UpToDate;
        is_copy || !volume.components.iter().any(is_struck)
    };
    deployment.nodes.numbered().all(is_sound)
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
        let component = |of: &Component| format!("{}/{}", of.host.index(), of.disk);
        let found = of(&scenario);
        let told: Vec<String> = found
            .volumes
            .iter()
            .map(|volume| volume.components.iter().map(component).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(told, expected, "{database}");
    }

    /// Whether a full disk of that host and name is judged, for a node on h1.
    fn check_full(storage: &str, disk: (&str, &str), expected: bool) {
        let text = format!(
            "name: s\nsite:\n  regions: {{ x: {{ zones: {{ a: {{ hosts: 3 }} }} }} }}\n  disks: {{ capacity: 2, cache: true }}\n\
             database: {{ engine: postgres, nodes: [x/a/h1], storage: {storage} }}\nloads: [{{ workload: ledger, clients: 1, \
             from: x }}]\nschedule: [{{ phase: p, for: 2s }}]\n"
        );
        let scenario = scenario::parse(&Source { name: "s".to_owned(), text }, &[]);
        let deployment = crate::deployment::deployment(&scenario.unwrap_or_else(|error| panic!("{error:?}")));
        let host: Vec<String> = ["x", "a", disk.0].map(str::to_owned).into();
        let struck = failure_of(&deployment, &host, disk.1);
        for defect in [DiskDefect::Full, DiskDefect::ReadOnly] {
            let judged = not_judged(&defect, &deployment, &struck).is_none();
            assert_eq!(judged, expected, "{storage} {disk:?} {defect:?}");
        }
        assert!(not_judged(&DiskDefect::Fail, &deployment, &struck).is_none());
        for defect in [DiskDefect::Stall, DiskDefect::LoseFlush] {
            assert!(not_judged(&defect, &deployment, &struck).is_some(), "{storage} {disk:?} {defect:?}");
        }
    }

    #[test]
    fn a_full_disk_is_judged_where_it_holds_copies_alone_that_nobody_starts_from() {
        let mirrored = "{ replicas: 2 }";
        check_full(mirrored, ("h2", "d1"), true);
        check_full(mirrored, ("h2", "c1"), true);
        check_full(mirrored, ("h1", "d1"), false);
        check_full(mirrored, ("h1", "c1"), false);
        check_full("{ replicas: 2, promote: forced }", ("h2", "d1"), false);
        check_full("{ replicas: 2, promote: forced }", ("h3", "d1"), true);
        check_full("{ replicas: 1 }", ("h1", "d1"), false);
    }

    #[test]
    fn volumes_lie_on_the_disks_that_the_lab_takes() {
        check("nodes: 2", &["0/d1", "1/d1"]);
        check("nodes: 2, storage: { replicas: 2 }", &["0/d1 2/d1", "1/d2 2/d2"]);
        check("nodes: 1, storage: { replicas: 1, hosts: [x/a/h3] }", &["2/d1"]);
        check("nodes: 2, volumes: directory", &[]);
    }
}
