//! About how much room and memory a run of a scenario takes.
//!
//! A rule of thumb, so that a run that cannot end well is refused before it begins. Reads nothing of this machine.

use capabilities::Capabilities;
use scenario::{Load, RunsOn, Scenario};

/// What a database's own files take on a node before any table is loaded, with its log.
const NODE_VOLUME_BYTES: u64 = 100 << 20;
/// What the processes of a node take, where the engine does not say.
const NODE_MEMORY_BYTES: u64 = 90 << 20;
/// The same without a database.
const BARE_NODE_BYTES: u64 = 4 << 20;
/// The history, the logs and the time line.
const RECORDS_BYTES: u64 = 128 << 20;
/// The lab itself, without its nodes.
const LAB_MEMORY_BYTES: u64 = 64 << 20;
/// What the control plane of a cluster takes that runs the database in pods.
const CONTROL_MEMORY_BYTES: u64 = 700 << 20;
/// What the cluster's own processes take on each node.
const CLUSTER_NODE_MEMORY_BYTES: u64 = 120 << 20;
/// What each client takes, at both ends.
const CLIENT_MEMORY_BYTES: u64 = 3 << 20;

/// About how much a run takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Bytes on the file system of the run directory.
    pub disk_bytes: u64,
    pub memory_bytes: u64,
}

/// What the scenario takes.
#[must_use]
pub fn needs(scenario: &Scenario) -> Needs {
    let database = &scenario.database;
    let nodes = database.nodes.len() as u64;
    let copies = database.storage.as_ref().map_or(1, |storage| u64::from(storage.replicas.max(1)));
    let volume = if database.engine.is_database() { NODE_VOLUME_BYTES } else { BARE_NODE_BYTES };
    let of_cluster = match database.on {
        RunsOn::Nodes => 0,
        RunsOn::Kubernetes(_) => CONTROL_MEMORY_BYTES + CLUSTER_NODE_MEMORY_BYTES * nodes,
    };
    let memory = node_memory_bytes(database.engine);
    let loaded = scenario.loads.iter().map(|load| {
        let workload = workload::configured(&load.workload, &load.options);
        workload.map_or(0, |workload| workload.loaded_bytes(load.scale))
    });
    let per_volume = volume.saturating_add(loaded.sum());
    // Clients of a sweep or a ramp keep what they take while they rest.
    let most = |load: &Load| load.steps(&scenario.schedule).iter().map(|step| step.1).max();
    let clients: u64 = scenario.loads.iter().map(|load| u64::from(most(load).unwrap_or(load.clients))).sum();
    Needs {
        disk_bytes: per_volume.saturating_mul(nodes * copies).saturating_add(RECORDS_BYTES),
        memory_bytes: memory
            .saturating_mul(nodes)
            .saturating_add(of_cluster)
            .saturating_add(CLIENT_MEMORY_BYTES * clients)
            .saturating_add(LAB_MEMORY_BYTES),
    }
}

/// What the processes of a node take.
fn node_memory_bytes(engine: &Capabilities) -> u64 {
    match engine.is_database() {
        true => engine.file.and_then(|file| file.memory_bytes).unwrap_or(NODE_MEMORY_BYTES),
        false => BARE_NODE_BYTES,
    }
}

/// About how much of an engine fits where so much is free, by the same rule: nodes with one client each and nothing loaded,
/// or clients beside three such nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fits {
    pub nodes: u64,
    /// Clients beside three nodes.
    pub clients: u64,
}

/// What of an engine fits where so much is free.
#[must_use]
pub fn fits(engine: &Capabilities, free: Needs) -> Fits {
    let node = node_memory_bytes(engine);
    let memory = free.memory_bytes.saturating_sub(LAB_MEMORY_BYTES);
    let disk = free.disk_bytes.saturating_sub(RECORDS_BYTES);
    Fits {
        nodes: (memory / node.saturating_add(CLIENT_MEMORY_BYTES)).min(disk / NODE_VOLUME_BYTES),
        clients: memory.saturating_sub(node.saturating_mul(3)) / CLIENT_MEMORY_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, overrides: &[(&str, &str)]) -> Needs {
        let path = format!("{}/../../scenarios/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a shipped scenario");
        let overrides: Vec<_> =
            overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
        let source = scenario::Source { name: path, text };
        needs(&scenario::parse(&source, &overrides).expect("a sound scenario"))
    }

    #[test]
    fn more_nodes_copies_and_rows_take_more_room() {
        let main_job = of("host-failure", &[]);
        assert!((1 << 28..1 << 31).contains(&main_job.disk_bytes), "{main_job:?}");
        let larger = of("host-failure", &[("loads.0.scale", "1000")]);
        assert!(larger.disk_bytes > main_job.disk_bytes + 3 * 900 * (15 << 20), "{larger:?}");
        assert_eq!(larger.memory_bytes, main_job.memory_bytes);
        let clients = of("host-failure", &[("loads.0.clients", "100")]);
        assert!(clients.memory_bytes > main_job.memory_bytes && clients.disk_bytes == main_job.disk_bytes);
        let rising = of("host-failure", &[("loads.0.ramp", "{ from: 1, to: 100, over: 5s }")]);
        let swept = of("host-failure", &[("loads.0.sweep", "{ clients: [1, 100, 2] }")]);
        assert_eq!([rising.memory_bytes, swept.memory_bytes], [clients.memory_bytes; 2]);
    }

    #[test]
    fn what_fits_is_what_a_scenario_of_that_size_needs() {
        let three = of("host-failure", &[("loads", "[{ workload: ledger, clients: 3 }]")]);
        let fits_of = |engine: &str, free| fits(capabilities::named(engine).expect("an engine"), free);
        assert_eq!(fits_of("postgres", three), Fits { nodes: 3, clients: 3 }, "{three:?}");
        let less = Needs { memory_bytes: three.memory_bytes - 1, ..three };
        assert_eq!(fits_of("postgres", less), Fits { nodes: 2, clients: 2 });
        assert_eq!(fits_of("postgres", Needs { disk_bytes: 0, ..three }).nodes, 0);
        let plenty = Needs { disk_bytes: u64::MAX, memory_bytes: 8 << 30 };
        assert!(
            fits_of("cassandra", plenty).nodes < fits_of("postgres", plenty).nodes,
            "an engine's file says more"
        );
    }
}
