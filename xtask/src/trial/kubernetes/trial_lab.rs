//! The lab of a trial: a node for the control plane, nodes for pods, and a place from which the cluster is asked.
//!
//! Owns their addresses and the cluster's files. What is done with the cluster is `story`'s.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use engine::{Configuration, InPods, Node as _, Synchronous};
use fabric::Fabric;
use kubernetes::Kubectl;
use kubernetes_lab::client::kubectl_in;
use kubernetes_lab::{ClassFacts, InCluster, Member, Plan, Programs, StatefulSet};
use lab::protocol::PROGRAMS;
use lab::{Addresses, Attachment, Family, NodeGroups, attachment};

use super::machine::{self, Machine};
use super::{Order, WORKERS};

/// The namespace of the database, and the name of its StatefulSet, as `scenarios/kubernetes-postgres.yaml` has them.
const NAMESPACE: &str = "databases";
const SET: &str = "pg";
/// The port of the database, and how many sessions it takes.
const PORT: u16 = 5432;
const SESSIONS: u32 = 100;

/// The number of the control plane's node, and of the place from which the cluster is asked.
const CONTROL: u8 = 100;
const OFFICE: u8 = 200;

/// All of it. Nothing of it is left when the lab's first process ends.
pub(super) struct TrialLab {
    pub(super) cluster: InCluster,
    pub(super) control: Arc<Machine>,
    /// In the order of the plan.
    pub(super) workers: Vec<Arc<Machine>>,
    /// Asks the cluster, from the office.
    pub(super) kubectl: Kubectl,
    pub(super) run_directory: PathBuf,
    pub(super) fabric: Arc<Fabric>,
    /// Where every node finds PostgreSQL's programs.
    pub(super) postgres: PathBuf,
    office: Attachment,
}

fn addresses(number: u8) -> Addresses {
    Addresses::of(Ipv4Addr::new(10, 2, 0, number))
}

fn member(name: String, number: u8) -> Member {
    Member { name, address: addresses(number).ipv4(), zone: format!("z{number}") }
}

impl TrialLab {
    /// Makes all of it; no node has power yet.
    pub(super) fn make(order: &Order) -> anyhow::Result<TrialLab> {
        let outside = Programs::at(&order.programs);
        let workers: Vec<Member> = (1..=WORKERS).map(|number| member(format!("n{number}"), number)).collect();
        let plan = Plan::new(member("control".to_owned(), CONTROL), workers.clone(), order.times.timing())?;
        let fabric = Arc::new(Fabric::start()?);
        let office = Attachment::make(addresses(OFFICE))?;
        let place = vec!["office".to_owned()];
        fabric.attach(place, addresses(OFFICE).all(Family::V4), office.tun.try_clone()?)?;
        let groups = Arc::new(NodeGroups::make(&order.run_name)?);
        let make = |member: &Member, pods| {
            let machine = Machine::make(machine::Plan {
                name: member.name.clone(),
                addresses: Addresses::of(member.address),
                pods,
                run_directory: &order.run_directory,
                programs: &outside,
                names: names(&plan),
                groups: groups.clone(),
                fabric: fabric.clone(),
            });
            machine.map(Arc::new)
        };
        let control = make(plan.control(), None)?;
        let machines = plan.workers().iter().map(|worker| make(&worker.member, Some(worker.pods)));
        let machines = machines.collect::<anyhow::Result<Vec<_>>>()?;
        let set = StatefulSet {
            namespace: NAMESPACE.to_owned(),
            name: SET.to_owned(),
            container: "postgres".to_owned(),
            class: ClassFacts {
                name: "lab-local".to_owned(),
                description: "the node's own volume: a power-off takes what was not synced".to_owned(),
            },
            nodes: workers,
        };
        let cluster = InCluster::new(postgres(order)?, (plan, set), control.clone(), Programs::at(PROGRAMS))?;
        Ok(TrialLab {
            kubectl: kubectl_in(&order.run_directory, &outside, cluster.login(), NAMESPACE)
                .context("kubectl for the office")?,
            control,
            workers: machines,
            run_directory: order.run_directory.clone(),
            fabric,
            postgres: order.postgres.clone(),
            cluster,
            office,
        })
    }

    /// Does something on a thread in the office, from which the API is reached.
    pub(super) fn in_the_office<T: Send>(
        &self,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        attachment::on_own_thread(|| {
            attachment::enter(&self.office.namespace)?;
            work()
        })?
    }

    /// The machine of this name.
    pub(super) fn worker(&self, name: &str) -> anyhow::Result<&Machine> {
        let found = self.workers.iter().find(|worker| worker.name() == name).map(Arc::as_ref);
        found.with_context(|| format!("no node `{name}`"))
    }
}

fn names(plan: &Plan) -> BTreeMap<String, Vec<IpAddr>> {
    let members = plan.workers().iter().map(|worker| &worker.member).chain([plan.control()]);
    members.map(|member| (member.name.clone(), vec![member.address.into()])).collect()
}

/// The machine's own PostgreSQL, in pods.
fn postgres(order: &Order) -> anyhow::Result<Box<dyn InPods>> {
    let engine = engine::registry::named("postgres")?;
    let configuration = Configuration {
        synchronous: Synchronous::Off,
        settings: BTreeMap::new(),
        port: PORT,
        copies: WORKERS.into(),
        places: Vec::new(),
        max_connections: SESSIONS,
        upgrade: None,
    };
    Ok(engine.open_in_pods(engine.find(Some(&order.postgres))?, configuration)?)
}
