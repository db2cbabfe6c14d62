//! The agents of a run: called before anything is made, each asked for the loads that stand on it.
//!
//! Owns which part of which load an agent gets, and the way to it. What passes between it and the run is `agent`'s; how agents that
//! are pods come about is `pods`'.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use agent::{AgentLoad, Group, GroupError, IfLost, Link, NotForAgents, PlanWords, relay};
use history::EventSink;
use load::{Batch, Clock, LoadHandle, LoadPlan, Part};
use pods::{Fleet, FleetError, Pods, fleet_plan};
use remote::channel::{Channel, Opened};
use remote::transport::TransportError;
use remote::{Journal, Reach};
use scenario::{AgentLost, Cluster, Scenario};
use scenario_files::reach_by;

/// What an agent is started as, where its machine has holdfast where programs are looked for.
const PROGRAM: &str = "holdfast";
/// The command that makes it one.
const COMMAND: &str = "agent";

/// Why there are no agents.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The load is none for them.
    #[error(transparent)]
    NotForAgents(#[from] NotForAgents),
    /// The way to one.
    #[error("agent {agent}: {source}")]
    Way {
        agent: String,
        /// Why not.
        source: TransportError,
    },
    /// They do not answer as agents do.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// They should be pods, and are not.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

/// A load's agents, ready and waiting.
struct Called {
    asked: AgentLoad,
    group: Group,
}

/// All agents of a run, by load. Each load has its own processes, also where several stand on one machine.
#[derive(Default)]
pub struct Agents {
    /// Until the load is started.
    waiting: Mutex<BTreeMap<String, Called>>,
    /// Those that are pods, until they are removed.
    pods: AgentPods,
}

/// Agents that are pods, if there are any.
#[derive(Clone, Default)]
pub struct AgentPods(Arc<Mutex<Option<Fleet>>>);

impl AgentPods {
    /// Removes them, and tells what is in doubt about that.
    pub fn dismiss(&self, events: &dyn EventSink) {
        let fleet = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        for doubt in fleet.map(Fleet::dismiss).unwrap_or_default() {
            let what = format!("the agents' pods are not known to be gone: {doubt}");
            events.warn(what, "run `holdfast heal` with the run directory");
        }
    }
}

/// Makes the agents that are to be pods, beside those of the members; none where they are machines, or there are none. What removes them
/// is in the journal of the run directory.
///
/// # Errors
/// When there is no journal, or they are not made or do not run; what was made is removed then.
pub fn muster(
    (scenario, pods): (&Scenario, Option<&Pods>),
    run_directory: &Path,
    events: &dyn EventSink,
) -> Result<Option<Fleet>, FleetError> {
    let Some((plan, pods)) = fleet_plan(scenario).zip(pods) else { return Ok(None) };
    events.progress("making the agents' pods".to_owned());
    let journal = Arc::new(Journal::open(run_directory)?);
    Fleet::muster(&plan, pods, journal).map(Some)
}

impl Agents {
    /// Starts the agents of every load that stands on any, and waits until they are ready. They are in the pods of a fleet, where there
    /// is one.
    ///
    /// # Errors
    /// When one cannot be reached, or is not of this version.
    pub fn call(
        (scenario, cluster): (&Scenario, &Cluster),
        plans: &[LoadPlan],
        (password, version): (Option<&str>, &str),
        fleet: Option<Fleet>,
    ) -> Result<Agents, AgentError> {
        let mut waiting = BTreeMap::new();
        for (load, plan) in scenario.loads.iter().zip(plans).filter(|(load, _)| !load.agents.is_empty()) {
            let of = u32::try_from(load.agents.len()).unwrap_or(u32::MAX);
            let part = |part| {
                // A planted defect is planted once.
                let defects = if part == 0 { plan.defects } else { load::Defects::default() };
                let reached = fleet.as_ref().map(|fleet| fleet.endpoints(&plan.endpoints));
                let endpoints = reached.unwrap_or_else(|| plan.endpoints.clone());
                let plan = LoadPlan { defects, endpoints, ..plan.part(Part { number: part, of }) };
                PlanWords::of(&plan, &load.options, password.map(str::to_owned))
            };
            let parts: Result<Vec<PlanWords>, NotForAgents> = (0..of).map(part).collect();
            let if_lost = match cluster.agent_lost {
                AgentLost::Unknown => IfLost::Unknown,
                AgentLost::GoOn => IfLost::GoOn,
            };
            let asked = AgentLoad { load: load.name.clone(), parts: parts?, if_lost };
            let posts = match &fleet {
                Some(fleet) => posts_in(fleet, load)?,
                None => agents_of(cluster, load).map(|agent| post_on(cluster, agent)).collect(),
            };
            let links: Result<Vec<Link>, AgentError> = posts.into_iter().map(link).collect();
            waiting.insert(load.name.clone(), Called { asked, group: Group::greet(links?, version)? });
        }
        Ok(Agents { waiting: Mutex::new(waiting), pods: AgentPods(Arc::new(Mutex::new(fleet))) })
    }

    /// Those that are pods.
    #[must_use]
    pub fn pods(&self) -> AgentPods {
        self.pods.clone()
    }

    /// The journal of the run, where it is open already.
    #[must_use]
    pub fn journal(&self) -> Option<Arc<Journal>> {
        self.pods.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Fleet::journal)
    }

    /// Starts a load on its agents; none where it stands on none.
    pub fn start(
        &self,
        load: &str,
        (clock, sink): (&Clock, &Sender<Batch>),
        events: Arc<dyn EventSink>,
    ) -> Option<LoadHandle> {
        let called = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(load)?;
        let Called { asked, group } = called;
        let (clock, sink) = (clock.clone(), sink.clone());
        Some(load::start_elsewhere(load.to_owned(), move |elsewhere| {
            relay(asked, group, (&clock, elsewhere), &sink, events.as_ref())
        }))
    }
}

/// An agent that a run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedAgent {
    pub load: String,
    /// The agent's name.
    pub agent: String,
    /// The machine, as its way names it.
    pub host: String,
    /// What is started there.
    pub command: Vec<String>,
}

/// Every agent that a run starts, in order. Nothing is started.
#[must_use]
pub fn planned_agents(scenario: &Scenario) -> Vec<PlannedAgent> {
    let Some(cluster) = &scenario.cluster else { return Vec::new() };
    if let Some(plan) = fleet_plan(scenario) {
        let each = scenario.loads.iter().flat_map(|load| load.agents.iter().map(move |agent| (load, agent)));
        let planned = |(load, agent): (&scenario::Load, &String)| {
            let (image, mut command) = plan.on_paper(agent);
            command.push(COMMAND.to_owned());
            PlannedAgent { load: load.name.clone(), agent: agent.clone(), host: image.to_owned(), command }
        };
        return each.map(planned).collect();
    }
    let of_load = |load: &scenario::Load| {
        let planned = |agent: &scenario::Agent| {
            let reach = reach_by(cluster, &agent.reach);
            PlannedAgent {
                load: load.name.clone(),
                agent: agent.name.clone(),
                host: reach.host().to_owned(),
                command: command(agent, &reach),
            }
        };
        agents_of(cluster, load).map(planned).collect::<Vec<_>>()
    };
    scenario.loads.iter().flat_map(of_load).collect()
}

/// The agents that a load names, in its order.
fn agents_of<'a>(
    cluster: &'a Cluster,
    load: &'a scenario::Load,
) -> impl Iterator<Item = &'a scenario::Agent> {
    load.agents.iter().filter_map(|name| cluster.agents.iter().find(|agent| agent.name == *name))
}

/// Where an agent is started, and as what.
struct Post {
    agent: String,
    /// The machine, or the pod and its node, for messages and the report.
    host: String,
    reach: Reach,
    command: Vec<String>,
}

/// On a machine.
fn post_on(cluster: &Cluster, agent: &scenario::Agent) -> Post {
    let reach = reach_by(cluster, &agent.reach);
    let (agent, command) = (agent.name.clone(), command(agent, &reach));
    Post { agent, host: reach.host().to_owned(), reach, command }
}

/// In the pods of a fleet. Each part of a load has an agent, or the load has none.
fn posts_in(fleet: &Fleet, load: &scenario::Load) -> Result<Vec<Post>, FleetError> {
    let post = |agent: &String| {
        let (reach, host) = fleet.way_to(agent)?;
        let command = vec![fleet.program().to_owned(), COMMAND.to_owned()];
        Ok(Post { agent: agent.clone(), host, reach, command })
    };
    load.agents.iter().map(post).collect()
}

/// The way to an agent, with the agent at its other end.
fn link(post: Post) -> Result<Link, AgentError> {
    let Post { agent, host, reach, command } = post;
    let opened = Channel::open(&reach, &command);
    let Opened { input, output, channel } =
        opened.map_err(|source| AgentError::Way { agent: agent.clone(), source })?;
    Ok(Link {
        name: agent,
        host,
        input: Box::new(input),
        output: Box::new(output),
        last_words: Box::new(move || channel.last_words()),
    })
}

/// Holdfast on the agent's machine, as an agent. On this one it is the program that runs.
fn command(agent: &scenario::Agent, reach: &Reach) -> Vec<String> {
    let own = || match reach {
        Reach::Local { .. } | Reach::Pod { .. } => std::env::current_exe().ok().map(PathBuf::into_os_string),
        Reach::Ssh { .. } => None,
    };
    let named = agent.program.clone();
    let program = named.or_else(|| own()?.into_string().ok()).unwrap_or_else(|| PROGRAM.to_owned());
    vec![program, COMMAND.to_owned()]
}
