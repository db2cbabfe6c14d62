//! A database in pods of a cluster on the lab's nodes: what its nodes are made of, its engine, and how its pods are seen.
//!
//! Owns what of the scenario goes into the cluster's plan. What the cluster is made of is `kubernetes_lab`'s.

use std::path::Path;
use std::sync::Arc;

use engine::{Engine, EngineError, Node};
use fabric::Prefix;
use history::{NodeId, PerNode};
use kubernetes_lab::client::kubectl_in;
use kubernetes_lab::plan;
use kubernetes_lab::{ClassFacts, InCluster, Member, Plan, Programs, StatefulSet, Timing, node_agent};
use lab::NodeGroups;
use lab::attachment::{self, AttachmentError};
use lab::protocol::CLUSTER;
use platform::{Containers, Datacentre, DatacentreError, Folders};
use pods::Pods;
use scenario::{KubernetesTimes, RunsOn, Scenario, Volumes};

use super::error::PreparationError;
use super::opening::{configuration, installation, open_engine};
use crate::orders::Orders;

/// The node that the cluster is controlled from.
const CONTROL: &str = "control";
/// The namespace of the database.
const NAMESPACE: &str = "database";
/// The container of each pod.
const CONTAINER: &str = "database";

/// What makes nodes those of a cluster, where the scenario's database is in one.
pub(super) fn containers(
    scenario: &Scenario,
    orders: &Orders,
) -> Result<Option<Containers>, PreparationError> {
    if scenario.database.on.kubernetes().is_none() {
        return Ok(None);
    }
    let groups = NodeGroups::make(&orders.run_name).map_err(PreparationError::Groups)?;
    let own = node_agent::OWN_SETTINGS.iter();
    let prefix = |node: NodeId| {
        let range = plan::pods_of(node.index());
        Prefix::new(range.network().into(), range.bits())
    };
    let pods: Option<PerNode<Prefix>> = scenario.database.nodes.ids().map(prefix).collect();
    Ok(Some(Containers {
        groups: Arc::new(groups),
        own_settings: own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        pods: pods.unwrap_or_default(),
        control: CONTROL.to_owned(),
    }))
}

/// The engine that starts processes on the nodes themselves, where none of a cluster's does.
pub(super) fn engine_on_nodes(
    scenario: &Scenario,
    orders: &Orders,
) -> Result<Option<Arc<dyn Engine>>, EngineError> {
    match scenario.database.on {
        RunsOn::Nodes => open_engine(scenario, orders).map(Some),
        RunsOn::Kubernetes(_) => Ok(None),
    }
}

/// The engine of a run, and the cluster that it is in, where it is in one.
pub(super) type Opened = (Arc<dyn Engine>, Option<Arc<InCluster>>);

/// The engine on nodes that are there: the one that starts processes on them, or else the one whose cluster does.
pub(super) fn opened(
    on_nodes: Option<Arc<dyn Engine>>,
    scenario: &Scenario,
    orders: &Orders,
    datacentre: &Datacentre,
) -> Result<Opened, PreparationError> {
    match (on_nodes, scenario.database.on) {
        (None, RunsOn::Kubernetes(times)) => {
            let cluster = Arc::new(open_in_cluster(times, scenario, orders, datacentre)?);
            Ok((cluster.clone(), Some(cluster)))
        }
        (None, RunsOn::Nodes) => Ok((open_engine(scenario, orders)?, None)),
        (Some(engine), _) => Ok((engine, None)),
    }
}

/// The database's pods, where it is in any.
pub(super) fn pods(
    cluster: Option<&InCluster>,
    orders: &Orders,
    (datacentre, folders): (&Datacentre, &Folders),
) -> Result<Option<Arc<Pods>>, PreparationError> {
    let (Some(cluster), Some(programs)) = (cluster, &orders.cluster_programs) else { return Ok(None) };
    let folder = folders.volume_of("kubectl").map_err(DatacentreError::from)?;
    Ok(Some(Arc::new(pods_of(cluster, programs, (datacentre, &folder))?)))
}

/// The engine of a database in pods, on nodes that are there.
fn open_in_cluster(
    times: KubernetesTimes,
    scenario: &Scenario,
    orders: &Orders,
    datacentre: &Datacentre,
) -> Result<InCluster, PreparationError> {
    let database = engine::registry::of(scenario.database.engine)?
        .open_in_pods(installation(orders), configuration(scenario, orders))?;
    let control = datacentre.control.clone().ok_or(PreparationError::NoControl)?;
    let member = |name: &str, address: std::net::IpAddr, zone: String| match address {
        std::net::IpAddr::V4(address) => Ok(Member { name: name.to_owned(), address, zone }),
        std::net::IpAddr::V6(_) => Err(PreparationError::NoControl),
    };
    let workers = datacentre.vms.iter().zip(&scenario.database.nodes).map(|(vm, host)| {
        let host = &scenario.site.hosts[*host];
        member(vm.name(), vm.address(), format!("{}-{}", host.region, host.zone))
    });
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    let controller = member(CONTROL, control.address(), CONTROL.to_owned())?;
    let plan = Plan::new(controller, workers.clone(), timing(times))?;
    let set = StatefulSet {
        namespace: NAMESPACE.to_owned(),
        name: scenario.database.engine.name.to_owned(),
        container: CONTAINER.to_owned(),
        class: class(scenario),
        nodes: workers,
    };
    Ok(InCluster::new(database, (plan, set), control as Arc<dyn Node>, Programs::at(CLUSTER))?)
}

/// How long the cluster's parts wait for each other.
#[must_use]
pub fn timing(times: KubernetesTimes) -> Timing {
    match times {
        KubernetesTimes::Shipped => Timing::AS_SHIPPED,
        KubernetesTimes::Short => Timing::SHORT,
    }
}

/// The storage class of the nodes' volumes.
fn class(scenario: &Scenario) -> ClassFacts {
    let database = &scenario.database;
    let storage = database.storage.as_ref().filter(|storage| storage.is_mirrored());
    let (name, copies) = match storage {
        None => ("lab-r1".to_owned(), "one copy, on the node's host".to_owned()),
        Some(storage) => (
            format!("lab-r{}-{}", storage.replicas, storage.class.name),
            format!(
                "{} copies, {}, class {}",
                storage.replicas,
                storage.acknowledge.name(),
                storage.class.name
            ),
        ),
    };
    let loses = match database.volumes {
        Volumes::Virtual | Volumes::Torn => "a power-off takes what was not synced",
        Volumes::Directory => "a power-off takes nothing",
    };
    ClassFacts { name, description: format!("{copies}; {loses}") }
}

/// The pods of a cluster that runs, and how they are watched. `folder` is for what kubectl needs, and goes with the lab.
fn pods_of(
    cluster: &InCluster,
    programs: &Path,
    (datacentre, folder): (&Datacentre, &Path),
) -> Result<Pods, PreparationError> {
    let control = datacentre.control.as_ref().ok_or(PreparationError::NoControl)?;
    let namespace = control.namespace().ok_or(PreparationError::NoControl)?;
    let failed = |source| PreparationError::Kubectl { folder: folder.to_owned(), source };
    let programs = Programs::at(programs);
    let kubectl = kubectl_in(folder, &programs, cluster.login(), NAMESPACE).map_err(failed)?;
    let set = cluster.set();
    let names = set.pods().into_iter().collect();
    attachment::on_own_thread(|| {
        attachment::enter(&namespace).map_err(AttachmentError::Namespace)?;
        Ok(Pods::of_a_lab(kubectl, CONTAINER, names)?)
    })?
}
