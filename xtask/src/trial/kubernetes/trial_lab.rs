//! The lab of a trial: a node for the control plane, nodes for pods, and a place from which the cluster is asked.
//!
//! Owns their addresses and the cluster's files. What is done with the cluster is `story`'s.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use fabric::Fabric;
use kubernetes::Kubectl;
use kubernetes_lab::files::{self, WorkerOptions};
use kubernetes_lab::pki::Authority;
use kubernetes_lab::{
    Cluster, ControlFiles, Member, Plan, Programs, WorkerFiles, node_proxy, pieces, runtime,
};
use lab::protocol::{PROGRAMS, VOLUME};
use lab::{Addresses, Attachment, Family, NodeGroups, attachment};

use super::machine::{self, Machine};
use super::{Order, WORKERS, postgres};

/// The number of the control plane's node, and of the place from which the cluster is asked.
const CONTROL: u8 = 100;
const OFFICE: u8 = 200;

/// All of it. Nothing of it is left when the lab's first process ends.
pub(super) struct TrialLab {
    pub(super) cluster: Cluster,
    pub(super) control: Machine,
    /// In the order of the plan.
    pub(super) workers: Vec<Machine>,
    pub(super) control_files: ControlFiles,
    pub(super) worker_files: Vec<WorkerFiles>,
    /// Asks the cluster, from the office.
    pub(super) kubectl: Kubectl,
    pub(super) run_directory: PathBuf,
    pub(super) fabric: Arc<Fabric>,
    /// Where every node finds PostgreSQL's programs.
    pub(super) postgres: PathBuf,
    /// The programs as nodes see them.
    pub(super) programs: Programs,
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
        let programs = Programs::at(PROGRAMS);
        let workers = (1..=WORKERS).map(|number| member(format!("n{number}"), number)).collect();
        let plan = Plan::new(member("control".to_owned(), CONTROL), workers, order.times.timing())?;
        let authority = Authority::make().context("the cluster's authority")?;
        let options = WorkerOptions {
            programs: programs.clone(),
            snapshots: runtime::Snapshots::default(),
            mode: node_proxy::Mode::default(),
        };
        let control_files = files::for_control(&plan, &authority)?;
        let worker_files = plan
            .workers()
            .iter()
            .map(|worker| files::for_worker(&plan, worker, &authority, (Path::new(VOLUME), &options)));
        let worker_files = worker_files.collect::<Result<Vec<_>, _>>()?;
        let login = files::for_administrator(&plan, &authority)?;
        let fabric = Arc::new(Fabric::start()?);
        let office = Attachment::make(addresses(OFFICE))?;
        let place = vec!["office".to_owned()];
        fabric.attach(place, addresses(OFFICE).all(Family::V4), office.tun.try_clone()?)?;
        let groups = Arc::new(NodeGroups::make(&order.run_name)?);
        let make = |member: &Member, pods| {
            Machine::make(machine::Plan {
                name: member.name.clone(),
                addresses: Addresses::of(member.address),
                pods,
                run_directory: &order.run_directory,
                programs: &outside,
                names: names(&plan),
                groups: groups.clone(),
                fabric: fabric.clone(),
            })
        };
        let control = make(plan.control(), None)?;
        let workers = plan.workers().iter().map(|worker| make(&worker.member, Some(worker.pods)));
        let workers = workers.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(TrialLab {
            control,
            workers,
            control_files,
            worker_files,
            kubectl: kubectl(&order.run_directory, &outside, &login)?,
            run_directory: order.run_directory.clone(),
            fabric,
            postgres: order.postgres.clone(),
            cluster: Cluster::new(plan, options),
            programs,
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
        let found = self.workers.iter().find(|worker| engine::Node::name(*worker) == name);
        found.with_context(|| format!("no node `{name}`"))
    }
}

fn names(plan: &Plan) -> BTreeMap<String, Vec<IpAddr>> {
    let members = plan.workers().iter().map(|worker| &worker.member).chain([plan.control()]);
    members.map(|member| (member.name.clone(), vec![member.address.into()])).collect()
}

/// A kubectl whose caches are in the run's folder, and not in that of whoever started it.
fn kubectl(run_directory: &Path, programs: &Programs, login: &str) -> anyhow::Result<Kubectl> {
    let (kubeconfig, program) =
        (run_directory.join("administrator.kubeconfig"), run_directory.join("kubectl"));
    fs::write(&kubeconfig, login).context("write the login")?;
    fs::set_permissions(&kubeconfig, Permissions::from_mode(0o600))?;
    let (real, cache) = (programs.of(&pieces::CLIENT), run_directory.join("cache"));
    let script = format!("#!/bin/sh\nexec '{}' --cache-dir='{}' \"$@\"\n", real.display(), cache.display());
    fs::write(&program, script).context("write the way to kubectl")?;
    fs::set_permissions(&program, Permissions::from_mode(0o700))?;
    let namespace = postgres::NAMESPACE.to_owned();
    Ok(Kubectl { program, kubeconfig: Some(kubeconfig), context: None, namespace })
}
