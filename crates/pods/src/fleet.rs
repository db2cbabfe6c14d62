//! Agents as pods of the cluster: made before any table is, and removed however the run ends.
//!
//! Owns the commands that make and remove them, and the ways to them. They are treated as a fault is: before they are made, what
//! removes them is in the journal and a timer waits to do it. Which objects they are is `kubernetes`' business, what passes between
//! an agent and the run is `agent`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use client::{Address, Endpoint};
use history::NodeId;
use kubernetes::generators::{CONTAINER, POD_NAME};
use kubernetes::{Generators, Kubectl, MemberError, Pod, members};
use remote::command_file::{Command, Look};
use remote::journal::JournalError;
use remote::permit::PermitError;
use remote::receipt::{Claim, Doubt};
use remote::strike::{Patience, Standing, StrikeError, strike, token};
use remote::{Filled, Journal, Permit, Reach};
use scenario::{Kubernetes, PodAgents, Scenario};

use crate::kubectl::kubectl;
use crate::pods::Pods;

/// What they are called in the journal.
const NAME: &str = "kubernetes-agents";
/// Whom the journal names as their member.
const MEMBER: &str = "agents";
/// What is started in a pod, where the scenario does not say.
const PROGRAM: &str = "holdfast";
/// How long they may live beyond the schedule: tables are made meanwhile, and read at the end.
const BEYOND: Duration = Duration::from_secs(6 * 3600);
/// How long it may take until what was made is seen, and until it is seen to be gone.
const PATIENCE: Patience = Patience { stands: Duration::from_secs(10), gone: Duration::from_secs(60) };
/// How long they may take to run: an image may have to be fetched.
const RUNNING_WITHIN: Duration = Duration::from_secs(180);
/// Between two looks whether they do.
const LOOK: Duration = Duration::from_millis(500);
/// How long one command may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
/// Digits of a token that name them.
const ID_DIGITS: usize = 8;
/// In place of those digits, for commands that are shown and not run.
const NO_ID: &str = "00000000";
/// Makes the objects of its first argument by the command of the others.
const MAKE: &str = "objects=$1; shift; printf %s \"$objects\" | \"$@\"";

/// Why there are no agents as pods.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// What removes them is not on disk, or nothing would remove them.
    #[error("agents as pods: {0}")]
    Strike(#[from] StrikeError),
    /// There is no journal for what removes them.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no leave to make them.
    #[error(transparent)]
    Permit(#[from] PermitError),
    /// The cluster does not answer, or what was made is not there.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// Agents would not reach a member.
    #[error(
        "pod {pod} is not of a StatefulSet: without the label `{POD_NAME}` no service leads agents to it alone"
    )]
    NotOfASet {
        /// As kubectl lists it.
        pod: String,
    },
    /// They were not made.
    #[error("agents as pods: {why}")]
    NotMade {
        /// What was said or seen.
        why: String,
    },
    /// A load stands on one that is none of them.
    #[error("agent {agent} has no pod")]
    NoPod {
        /// As the scenario calls it: `agent-0`.
        agent: String,
    },
    /// They do not run.
    #[error(
        "{running} of {count} agents run as pods after {} s; look whether the cluster's nodes can have the image {image}",
        RUNNING_WITHIN.as_secs()
    )]
    NotRunning {
        /// How many do.
        running: usize,
        /// How many should.
        count: u32,
        /// As the scenario writes it.
        image: String,
    },
}

/// What a scenario wants of agents as pods.
pub struct FleetPlan<'a> {
    kubernetes: &'a Kubernetes,
    agents: &'a PodAgents,
    members: Vec<String>,
    length: Duration,
}

/// What a scenario wants; none where no load stands on such agents. Nothing is asked.
#[must_use]
pub fn fleet_plan(scenario: &Scenario) -> Option<FleetPlan<'_>> {
    let cluster = scenario.cluster.as_ref()?;
    let kubernetes = cluster.kubernetes.as_ref()?;
    let is_used = scenario.loads.iter().any(|load| !load.agents.is_empty());
    let agents = kubernetes.agents.as_ref().filter(|_| is_used)?;
    let members = cluster.members.iter().map(|member| member.name.clone()).collect();
    let length = scenario.schedule.iter().map(|phase| phase.length).sum();
    Some(FleetPlan { kubernetes, agents, members, length })
}

/// The commands that make and remove a scenario's agents, on paper; none where they are no pods.
#[must_use]
pub fn planned_fleet(scenario: &Scenario) -> Option<Filled> {
    let plan = fleet_plan(scenario)?;
    Some(commands(&kubectl(plan.kubernetes), &plan.generators(NO_ID), NO_ID))
}

impl FleetPlan<'_> {
    /// What is started for an agent whose pod is not known yet.
    #[must_use]
    pub fn on_paper(&self, agent: &str) -> (&str, Vec<String>) {
        let mut words = way(&kubectl(self.kubernetes), &format!("pod-of-{agent}"));
        words.push(self.program().to_owned());
        (self.agents.image.as_str(), words)
    }

    fn program(&self) -> &str {
        self.agents.program.as_deref().unwrap_or(PROGRAM)
    }

    fn generators(&self, id: &str) -> Generators {
        Generators {
            name: format!("holdfast-{id}"),
            image: self.agents.image.clone(),
            count: self.agents.count,
            lives: self.length + BEYOND,
            members: self.members.clone(),
            port: self.kubernetes.port,
        }
    }
}

/// Agents that run as pods. Dropping it removes them.
pub struct Fleet {
    kubectl: Kubectl,
    program: String,
    /// By the agents' names.
    pods: BTreeMap<String, Pod>,
    /// Where the members are reached from pods, by the names of their nodes in this run.
    addresses: BTreeMap<String, SocketAddr>,
    made: Made,
}

/// What was made, until it is removed.
struct Made {
    standing: Option<Standing>,
    reach: Reach,
    journal: Arc<Journal>,
}

impl Fleet {
    /// Makes them beside the members' pods, and waits until they run. All that is asked, also by the timer and by `holdfast heal`, is
    /// held to the run's context.
    ///
    /// # Errors
    /// When they are not made or do not run; what was made is removed then.
    pub fn muster(plan: &FleetPlan<'_>, pods: &Pods, journal: Arc<Journal>) -> Result<Fleet, FleetError> {
        let kubectl = pods.kubectl.clone();
        for pod in members::pods(&kubectl, &plan.members)? {
            if pod.labels.get(POD_NAME) != Some(&pod.name) {
                return Err(FleetError::NotOfASet { pod: pod.name });
            }
        }
        let token = token()?;
        let id = &token[..ID_DIGITS];
        let generators = plan.generators(id);
        let made = Made::make(commands(&kubectl, &generators, id), &kubectl, (generators.lives, journal))?;
        let running = until_running(&kubectl, &generators)?;
        let addresses = generators.addresses(&kubectl)?.into_iter().enumerate();
        Ok(Fleet {
            program: plan.program().to_owned(),
            pods: running.into_iter().map(|(number, pod)| (format!("agent-{number}"), pod)).collect(),
            addresses: addresses
                .map(|(number, address)| (NodeId::new(number).to_string(), address))
                .collect(),
            kubectl,
            made,
        })
    }

    /// The way to an agent, and its pod with the node that it is on.
    ///
    /// # Errors
    /// When it has no pod.
    pub fn way_to(&self, agent: &str) -> Result<(Reach, String), FleetError> {
        let pod = self.pods.get(agent).ok_or_else(|| FleetError::NoPod { agent: agent.to_owned() })?;
        let node = pod.node.as_deref().unwrap_or("an unknown node");
        let reach = Reach::Local { through: way(&self.kubectl, &pod.name) };
        Ok((reach, format!("{} on {node}", pod.name)))
    }

    /// Holdfast in the pods.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The members' nodes as pods reach them.
    #[must_use]
    pub fn endpoints(&self, endpoints: &[Endpoint]) -> Vec<Endpoint> {
        let from_within = |endpoint: &Endpoint| match self.addresses.get(&endpoint.node) {
            Some(address) => Endpoint { node: endpoint.node.clone(), address: Address::from(*address) },
            None => endpoint.clone(),
        };
        endpoints.iter().map(from_within).collect()
    }

    /// The journal that holds what removes them.
    #[must_use]
    pub fn journal(&self) -> Arc<Journal> {
        self.made.journal.clone()
    }

    /// Removes them; what is in doubt about that.
    #[must_use]
    pub fn dismiss(mut self) -> Vec<String> {
        self.made.remove()
    }
}

impl Made {
    fn make(
        commands: Filled,
        kubectl: &Kubectl,
        (lives, journal): (Duration, Arc<Journal>),
    ) -> Result<Made, FleetError> {
        let reach = Reach::Pod { pod: format!("{}/{MEMBER}", kubectl.namespace) };
        let of_ours = BTreeSet::from([reach.host().to_owned()]);
        // Nothing that is there already is touched.
        let permit = Permit::ask(&of_ours, &of_ours, NAME, Some(NAME))?;
        let standing = strike((MEMBER, commands), &reach, &permit, &journal, (lives, PATIENCE))?;
        let why: Vec<String> = standing.doubts().iter().map(told).collect();
        let made = Made { standing: Some(standing), reach, journal };
        if why.is_empty() { Ok(made) } else { Err(FleetError::NotMade { why: why.join("; ") }) }
    }

    /// The last doubts are those of the removal.
    fn remove(&mut self) -> Vec<String> {
        let Some(standing) = self.standing.take() else { return Vec::new() };
        let before = standing.doubts().len();
        let receipt = standing.undo(&self.reach, &self.journal, PATIENCE);
        receipt.doubts.iter().skip(before).map(ToString::to_string).collect()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // What is in doubt stays in the journal, for `holdfast heal`.
        self.remove();
    }
}

/// A doubt, without the objects that the command has in it that makes them.
fn told(doubt: &Doubt) -> String {
    match doubt {
        Doubt::StrikeFailed(Claim { output: Some(output), .. }) => {
            let complaint = output.complaint().trim();
            format!("the command that makes them ended with {}: {complaint}", output.exit)
        }
        Doubt::StrikeFailed(Claim { silence, .. }) => format!("the command that makes them: {silence}"),
        other => other.to_string(),
    }
}

/// What stands before the program's name on the way into a pod.
fn way(kubectl: &Kubectl, pod: &str) -> Vec<String> {
    kubectl.words(&["exec", "--stdin", pod, &format!("--container={CONTAINER}"), "--"])
}

fn commands(kubectl: &Kubectl, generators: &Generators, id: &str) -> Filled {
    let command = |run: Vec<String>| Command { run, within: COMMAND_WITHIN };
    let look = |arguments: &[&str]| Look {
        command: command(kubectl.words(arguments)),
        exit: 0,
        has: None,
        lacks: None,
        changed: false,
    };
    let (name, selector) = (generators.name.as_str(), generators.selector());
    let selector = selector.as_str();
    let mut make: Vec<String> = ["sh", "-c", MAKE, "sh"].map(str::to_owned).into();
    make.push(generators.objects().to_string());
    make.extend(kubectl.words(&["create", "--filename", "-"]));
    let stands = look(&["get", "jobs", name, "--ignore-not-found", "--output", "name"]);
    let gone = look(&["get", "jobs,services,pods", "--selector", selector, "--output", "name"]);
    let undo = ["delete", "jobs,services", "--selector", selector, "--wait=false", "--interactive=false"];
    Filled {
        name: NAME.to_owned(),
        id: id.to_owned(),
        lasts: true,
        version: command(["kubectl", "version", "--client"].map(str::to_owned).into()),
        strike: vec![command(make)],
        undo: vec![command(kubectl.words(&undo))],
        stands: vec![Look { has: Some(name.to_owned()), ..stands }],
        gone: vec![Look { lacks: Some(name.to_owned()), ..gone }],
    }
}

/// All of them, each by its number.
fn until_running(kubectl: &Kubectl, generators: &Generators) -> Result<BTreeMap<u32, Pod>, FleetError> {
    let deadline = Instant::now() + RUNNING_WITHIN;
    loop {
        let running = generators.running(kubectl)?;
        if running.len() >= generators.count as usize {
            return Ok(running);
        }
        if Instant::now() >= deadline {
            let (count, image) = (generators.count, generators.image.clone());
            return Err(FleetError::NotRunning { running: running.len(), count, image });
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use remote::transport::Output;

    use super::*;

    fn made_and_removed() -> Filled {
        let kubectl = Kubectl {
            program: "kubectl".into(),
            kubeconfig: None,
            context: Some("kind-lab".to_owned()),
            namespace: "databases".to_owned(),
        };
        let generators = Generators {
            name: format!("holdfast-{NO_ID}"),
            image: "holdfast".to_owned(),
            count: 2,
            lives: BEYOND,
            members: vec!["pg-0".to_owned()],
            port: 5432,
        };
        commands(&kubectl, &generators, NO_ID)
    }

    #[test]
    fn every_command_that_makes_removes_or_looks_is_held_to_the_runs_context() {
        let Filled { strike, undo, stands, gone, .. } = made_and_removed();
        let looks = stands.into_iter().chain(gone).map(|look| look.command);
        for command in strike.into_iter().chain(undo).chain(looks) {
            let is_held = command.run.windows(2).any(|words| words == ["--context", "kind-lab"]);
            assert!(is_held, "{command}");
        }
    }

    #[test]
    fn what_removes_them_asks_nobody() {
        let Filled { undo, .. } = made_and_removed();
        for command in undo {
            assert!(command.run.iter().any(|word| word == "--interactive=false"), "{command}");
        }
    }

    #[test]
    fn a_refusal_is_told_without_the_objects_that_were_refused() {
        let (made, refused) = ("job.batch/holdfast-00000000 created\n", "error: services is forbidden\n");
        let output =
            Output { exit: 1, text: format!("{made}{refused}"), answer_bytes: made.len(), is_cut: false };
        let command = made_and_removed().strike[0].to_string();
        let doubt = Doubt::StrikeFailed(Claim { command, output: Some(output), silence: String::new() });
        let expected = "the command that makes them ended with 1: error: services is forbidden";
        assert_eq!(told(&doubt), expected);
    }
}
