//! A run on a cluster that exists: the same loads, schedule, checks and files as in the lab, and faults by command files.
//!
//! Owns what stands in the lab's place before and while the loads run. Nothing is started but agents, and nothing is installed: what
//! the run leaves are the workloads' tables. How a fault is struck is `strikes`' business, how an agent is called `scenario_agents`'.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use client::Address;
use history::{EventKind, EventSink, FaultId, HostFacts, NodeFacts, NodeId, RunFacts, SiteFacts};
use load::{
    Batch, Clock, Encryption, Endpoint, Leadership, LoadCpu, LoadError, LoadHandle, LoadPlan, OnThread,
    Password, Refusals, here,
};
use nix::sys::resource::{Resource, getrlimit};
use pods::{Pods, PodsError, PodsOf, Watching, fleet_plan};
use remote::permit::PermitError;
use remote::{Journal, Permit};
use scenario::{Cluster, Scenario};
use scenario_agents::{AgentError, AgentPods, Agents, muster};
use scenario_files::permit;
use strikes::{Strikes, Targets};
use watch::{Usage, Vigil, Watch};

use crate::chronicle::Chronicle;
use crate::load_plans::{Access, PlanError, plans};
use crate::orders::Orders;
use crate::preparation::{self, PreparationError, check_open_files, load_tables};
use crate::prepared::Prepared;
use crate::target::{Beginning, Found, PlaceError, Target, TargetError, Underway};

/// How long an attempt to connect may take at first: the way may be long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the leader is looked for before the run.
const LEADER_PATIENCE: Duration = Duration::from_secs(10);
/// How long one node is asked whether it leads.
pub(crate) const ROLE_PATIENCE: Duration = Duration::from_secs(2);
/// Where the password is found, as with PostgreSQL's own programs.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// What can go wrong before the first load starts.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// The scenario names no cluster.
    #[error("the scenario has no `cluster`")]
    NoCluster,
    /// A member's endpoint has no address.
    #[error("member {member}: {endpoint}: {why}; write an address, or a name that this machine can look up")]
    NoAddress {
        member: String,
        /// As written.
        endpoint: String,
        /// Why not.
        why: String,
    },
    /// Nobody has confirmed it.
    #[error(transparent)]
    NotPermitted(#[from] PermitError),
    /// The loads cannot be prepared.
    #[error(transparent)]
    Preparation(#[from] PreparationError),
    /// The pods cannot be found or reached.
    #[error(transparent)]
    Pods(#[from] PodsError),
    /// The agents that loads stand on cannot be had.
    #[error(transparent)]
    Agents(#[from] AgentError),
    /// The database cannot be reached, or refuses the tables.
    #[error("database: {0}")]
    Load(#[from] LoadError),
}

impl From<PlanError> for ExternalError {
    fn from(error: PlanError) -> Self {
        PreparationError::from(error).into()
    }
}

/// Asks the database for its version and its leader, and makes the loads' tables. Where agents are to be pods, `before_pods` is called
/// before any is made, and `with_pods` once all are there: whoever ends this process then has to remove them.
///
/// # Errors
/// When it cannot be reached, nobody has confirmed that it may be broken, or it refuses the tables.
pub(crate) fn prepare(
    scenario: &Scenario,
    orders: &Orders,
    chronicle: &Chronicle,
    (before_pods, with_pods): (&dyn Fn(), &dyn Fn(AgentPods)),
) -> Result<Prepared, ExternalError> {
    let cluster = scenario.cluster.as_ref().ok_or(ExternalError::NoCluster)?;
    let most = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(_, hard)| hard);
    let in_this_process = scenario.loads.iter().filter(|load| load.agents.is_empty()).cloned().collect();
    check_open_files(&Scenario { loads: in_this_process, ..scenario.clone() }, most)?;
    let permit = permit(scenario, orders.confirmed.as_deref())?;
    let password = std::env::var(PASSWORD_VARIABLE).ok();
    let pods = open_pods(cluster, chronicle)?;
    let access = access((cluster, pods.as_deref()), password.clone())?;
    let plans = plans(scenario, (orders.seed, &orders.planted), &access, &|_| Ok(None))?;
    // First of all: a machine that cannot be reached leaves no tables behind.
    let has_pods = fleet_plan(scenario).is_some();
    if has_pods {
        before_pods();
    }
    let fleet = muster((scenario, pods.as_deref()), &orders.run_directory, chronicle);
    let password_and_version = (password.as_deref(), orders.holdfast.as_str());
    let fleet = fleet.map_err(AgentError::from)?;
    let agents = Agents::call((scenario, cluster), &plans, password_and_version, fleet)?;
    if has_pods {
        with_pods(agents.pods());
    }
    let (mut version, mut leader) = (String::new(), None);
    if let Some(plan) = plans.first() {
        version = load::server_version(plan, here())?;
        leader = load::leader(plan, here(), LEADER_PATIENCE).ok();
    }
    let facts = facts(scenario, orders, (cluster, pods.as_deref()), (version, leader.as_deref()))?;
    chronicle.say(EventKind::RunStarted { facts: Box::new(facts.clone()) });
    if let (Some(pods), Some(kubernetes)) = (&pods, &cluster.kubernetes) {
        pods.compare_roles(kubernetes.role.as_ref(), leader.as_deref(), chronicle);
    }
    for plan in &plans {
        load_tables(plan, here(), chronicle)?;
    }
    let asked = plans.first().cloned();
    let target = ClusterTarget { cluster: cluster.clone(), permit, asked, agents, pods };
    Ok(Prepared::on_a_cluster(Arc::new(target), plans, facts))
}

/// The members' pods, where they are pods.
fn open_pods(cluster: &Cluster, chronicle: &Chronicle) -> Result<Option<Arc<Pods>>, PodsError> {
    let Some(kubernetes) = &cluster.kubernetes else { return Ok(None) };
    chronicle.progress(format!("opening ways to {} pods", cluster.members.len()));
    Ok(Some(Arc::new(Pods::open(kubernetes, cluster)?)))
}

/// Where a member's clients connect to: by its way where it is a pod, else as its endpoint is looked up.
fn address_of(member: &scenario::Member, pods: Option<&Pods>) -> Result<SocketAddr, ExternalError> {
    let failed = |why: String| ExternalError::NoAddress {
        member: member.name.clone(),
        endpoint: member.endpoint.clone(),
        why,
    };
    match pods {
        Some(pods) => pods.address_of(&member.name).ok_or_else(|| failed("it has no way".to_owned())),
        None => {
            let mut found = member.endpoint.to_socket_addrs().map_err(|error| failed(error.to_string()))?;
            found.next().ok_or_else(|| failed("it has no address".to_owned()))
        }
    }
}

fn access(
    (cluster, pods): (&Cluster, Option<&Pods>),
    password: Option<String>,
) -> Result<Access, ExternalError> {
    let endpoint = |(node, member): (NodeId, &scenario::Member)| {
        let address = address_of(member, pods)?;
        Ok(Endpoint { node: node.to_string(), address: Address::from(address) })
    };
    let endpoints: Result<Vec<Endpoint>, ExternalError> = cluster.members.numbered().map(endpoint).collect();
    Ok(Access {
        endpoints: endpoints?,
        database: cluster.database.clone(),
        user: cluster.user.clone(),
        password: password.map(Password::from),
        encryption: Encryption::Preferred,
        connect_timeout: CONNECT_TIMEOUT,
    })
}

fn facts(
    scenario: &Scenario,
    orders: &Orders,
    (cluster, pods): (&Cluster, Option<&Pods>),
    (engine_version, leader): (String, Option<&str>),
) -> Result<RunFacts, PreparationError> {
    let found = if pods.is_some() { "pods of a Kubernetes cluster" } else { "a cluster that exists" };
    let settings = [
        ("found", found),
        ("failover", "the cluster's own, if it has any: holdfast restarts and promotes nothing"),
        ("isolation", "not known; read committed is assumed where a load does not say"),
    ];
    let hosts = scenario.site.hosts.iter().zip(&cluster.members).map(|(host, member)| HostFacts {
        path: host.path().join("/"),
        region: host.region.clone(),
        zone: host.zone.clone(),
        rack: host.rack.clone(),
        name: host.name.clone(),
        address: member.endpoint.clone(),
    });
    let nodes = scenario.site.hosts.iter().zip(cluster.members.numbered());
    let role = |name: &str| match leader {
        _ if scenario.database.engine.is_leaderless() => "coordinator",
        Some(leader) if leader == name => "leader",
        Some(_) => "follower",
        None => "unknown",
    };
    let nodes = nodes.map(|(host, (node, member))| NodeFacts {
        role: role(&node.to_string()).to_owned(),
        name: node.to_string(),
        host: host.path().join("/"),
        address: member.endpoint.clone(),
    });
    Ok(RunFacts {
        engine_version,
        engine_settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        site: SiteFacts { hosts: hosts.collect(), nodes: nodes.collect(), ..SiteFacts::default() },
        kubernetes: pods.map(|pods| pods.facts().clone()),
        ..preparation::planned(scenario, orders)?
    })
}

/// A cluster that exists, as the conductor sees it.
struct ClusterTarget {
    cluster: Cluster,
    permit: Permit,
    /// The load whose way to the database is taken to ask who leads.
    asked: Option<LoadPlan>,
    agents: Agents,
    /// The members' pods, with the ways that clients take; none of machines.
    pods: Option<Arc<Pods>>,
}

impl Target for ClusterTarget {
    fn enter_place(&self, _: &scenario::Load) -> Result<OnThread, PlaceError> {
        Ok(here())
    }

    fn start_load(
        &self,
        (load, plan): (&scenario::Load, &LoadPlan),
        (clock, sink): (&Clock, Sender<Batch>),
        chronicle: &Arc<Chronicle>,
    ) -> Result<LoadHandle, PlaceError> {
        let on_agents = self.agents.start(&load.name, (clock, &sink), chronicle.clone());
        Ok(on_agents.unwrap_or_else(|| load::start(plan.clone(), clock.clone(), here(), sink)))
    }

    fn usage(&self, loads: &[LoadHandle], ended: LoadCpu) -> Usage {
        Usage::without_a_lab(loads, ended)
    }

    fn begin(&self, run: Beginning<'_>) -> Result<Box<dyn Underway>, TargetError> {
        let journal = match self.agents.journal() {
            Some(journal) => journal,
            None => Arc::new(Journal::open(run.directory.path())?),
        };
        let pods = self.pods.as_ref();
        let watching = pods.map(|pods| pods.watch(run.directory.path(), run.zero)).transpose()?;
        let vigil = Vigil::start(Watch {
            lab: None,
            directory: run.directory.path(),
            chronicle: run.chronicle.clone(),
            loads: run.loads.clone(),
            load_names: run.load_names,
            interference_expected: run.scenario.database.interference_expected,
            planted: &faults::Planted::new(),
        });
        let strikes = Strikes::new(
            Targets {
                cluster: self.cluster.clone(),
                permit: self.permit.clone(),
                asked: self.asked.clone(),
                pods: self.pods.clone(),
            },
            journal,
            run.chronicle.clone(),
            (run.scenario, run.seed, run.prevented),
            run.on_effect,
        );
        let watching = self.pods.clone().zip(watching);
        let chronicle = run.chronicle.clone();
        let (vigil, agents, found) = (Some(vigil), self.agents.pods(), Found::default());
        let leads = !run.scenario.database.engine.is_leaderless();
        let asked = self.asked.clone().filter(|_| leads);
        Ok(Box::new(ClusterRun { strikes, asked, vigil, watching, agents, chronicle, found }))
    }
}

/// A run on a cluster.
struct ClusterRun {
    strikes: Strikes,
    /// The load whose way to the database is taken to ask who leads; none, where every node takes writes.
    asked: Option<LoadPlan>,
    /// None once the loads have ended.
    vigil: Option<Vigil>,
    /// The members' pods and what is seen of them; none of machines.
    watching: Option<(Arc<Pods>, Watching)>,
    /// The agents that are pods.
    agents: AgentPods,
    chronicle: Arc<Chronicle>,
    found: Found,
}

impl Underway for ClusterRun {
    fn strike(&mut self, number: FaultId, fault: &scenario::Fault) {
        self.strikes.strike(number, fault);
    }

    fn heal(&mut self, number: FaultId) {
        self.strikes.heal(number);
    }

    fn schedule_is_over(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn heal_all(&mut self, _: bool) {
        self.strikes.heal_all();
    }

    fn loads_have_ended(&mut self) {
        if let Some(vigil) = self.vigil.take() {
            self.found.watched = vigil.finish();
        }
    }

    fn settle(&mut self, _: bool) -> Vec<faults::FaultRecord> {
        self.strikes.records()
    }

    fn leadership(&self) -> Leadership {
        let refusals = if self.watching.is_some() { Refusals::OfForwards } else { Refusals::OfNodes };
        let ask = |plan| load::leadership(plan, ROLE_PATIENCE, refusals);
        self.asked.as_ref().map(ask).unwrap_or_default()
    }

    fn finish(self: Box<Self>) -> Found {
        let ClusterRun { mut strikes, watching, agents, chronicle, mut found, .. } = *self;
        agents.dismiss(chronicle.as_ref());
        if let Some((pods, watching)) = watching {
            let seen = watching.finish(chronicle.as_ref());
            let faults = strikes.records();
            found.recoveries = pods.recoveries(&seen, &faults);
            let strange = pods.interference(&seen, &faults, PodsOf::ExistingCluster);
            found.watched.add_interference(strange, false, chronicle.as_ref());
            pods.tell_ended_ways(&faults, chronicle.as_ref());
        }
        found
    }
}
