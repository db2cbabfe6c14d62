//! A database in pods of a lab's cluster, as an engine of the lab: the platform boots nodes and cuts their power, the cluster runs the
//! database on them.
//!
//! Owns what starts the cluster and when the database in it is there. Pods are the cluster's: after a node's boot its parts are started,
//! and what becomes of its pod then is what the run is to show.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use engine::{
    ClientCommand, ClientTarget, Cluster as Formed, Endpoint, Engine, EngineError, InPods, Isolation, Killed,
    Node, Promotion, Rejoined, Roles,
};

use crate::file_names::on_control::ADMINISTRATOR_LOGIN;
use crate::files::{self, FilesError, WorkerOptions};
use crate::node_proxy;
use crate::pieces::{KUBERNETES, Programs};
use crate::pki::Authority;
use crate::plan::Plan;
use crate::runtime::Snapshots;
use crate::start::{Cluster, StartError};
use crate::stateful_set::StatefulSet;
use crate::{ControlFiles, WorkerFiles};

/// How long nodes may take to be ready, and pods.
const READY_PATIENCE: Duration = Duration::from_secs(180);
/// How long an answer of the database may take.
const ONE_ANSWER: Duration = Duration::from_secs(2);
/// How often it is asked.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The objects of the database, on the volume of the control plane.
const OBJECTS: &str = "database.json";

/// The database, the cluster that runs it, and the node that the cluster is controlled from.
pub struct InCluster {
    database: Box<dyn InPods>,
    cluster: Cluster,
    set: StatefulSet,
    control: Arc<dyn Node>,
    control_files: ControlFiles,
    worker_files: BTreeMap<String, WorkerFiles>,
    login: String,
}

impl std::fmt::Debug for InCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InCluster").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl InCluster {
    /// A cluster as planned, with keys of its own. `programs` is where nodes find its programs; all nodes see their volumes where
    /// `control` does.
    ///
    /// # Errors
    /// When certificates cannot be made.
    pub fn new(
        database: Box<dyn InPods>,
        (plan, set): (Plan, StatefulSet),
        control: Arc<dyn Node>,
        programs: Programs,
    ) -> Result<InCluster, FilesError> {
        let authority = Authority::make()?;
        let options =
            WorkerOptions { programs, snapshots: Snapshots::default(), mode: node_proxy::Mode::default() };
        let control_files = files::for_control(&plan, &authority)?;
        let volume = control.data_directory();
        let of_worker = |worker: &crate::Worker| {
            let files = files::for_worker(&plan, worker, &authority, (&volume, &options))?;
            Ok((worker.member.name.clone(), files))
        };
        let worker_files = plan.workers().iter().map(of_worker).collect::<Result<_, FilesError>>()?;
        let login = files::for_administrator(&plan, &authority)?;
        let cluster = Cluster::new(plan, options);
        Ok(InCluster { database, cluster, set, control, control_files, worker_files, login })
    }

    /// The login of whoever may do everything, for kubectl.
    #[must_use]
    pub fn login(&self) -> &str {
        &self.login
    }

    /// Who is in it, and how long its parts wait for each other.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.cluster.plan()
    }

    /// Ends its API server and starts it again after a while.
    ///
    /// # Errors
    /// When that fails, or the server does not answer in time.
    pub fn restart_api(&self, away: Duration) -> Result<(), StartError> {
        self.cluster.restart_api(self.control.as_ref(), away)
    }

    /// Gives a node images from an archive, by its path on the node.
    ///
    /// # Errors
    /// When the node cannot read it, or what runs its pods does not answer.
    pub fn bring_archive(&self, node: &dyn Node, archive: &Path) -> Result<(), StartError> {
        self.cluster.bring_archive(node, archive)
    }

    /// The database's objects in it.
    #[must_use]
    pub fn set(&self) -> &StatefulSet {
        &self.set
    }

    fn start_cluster(&self, nodes: &[Arc<dyn Node>]) -> Result<(), StartError> {
        let control = self.control.as_ref();
        self.cluster.prepare_control(control, &self.control_files)?;
        self.cluster.start_control(control)?;
        let start = |node: &dyn Node| -> Result<(), StartError> {
            let stranger = || StartError::Stranger { node: node.name().to_owned() };
            let files = self.worker_files.get(node.name()).ok_or_else(stranger)?;
            self.cluster.prepare_worker(node, files)?;
            self.cluster.start_worker(node)
        };
        engine::at_once(nodes, start).into_iter().collect::<Result<(), _>>()?;
        for node in nodes {
            let (name, patience) = (format!("node/{}", node.name()), in_seconds(READY_PATIENCE));
            // Of several nodes that are not there yet, kubectl waits for none.
            for condition in ["--for=create", "--for=condition=Ready"] {
                self.cluster.kubectl(control, &["wait", condition, &patience, &name])?;
            }
        }
        Ok(())
    }

    fn ask_for_pods(&self, nodes: &[Arc<dyn Node>]) -> Result<(), EngineError> {
        let first = StatefulSet::first_address().into();
        let plan = self.database.pod_plan(nodes, first, &self.set.volume())?;
        let class = self.set.storage_class();
        let make = |node: &dyn Node| {
            let mut own = class.volumes.iter().filter(|volume| volume.node == node.name());
            own.try_for_each(|volume| self.cluster.make_volume(node, volume))
        };
        engine::at_once(nodes, make).into_iter().collect::<Result<(), _>>().map_err(from_start)?;
        let objects = self.set.objects(&plan, &self.control.data_directory()).to_string();
        self.cluster.apply(self.control.as_ref(), OBJECTS, &objects).map_err(from_start)
    }

    fn await_pods(&self) -> Result<(), EngineError> {
        let set = format!("statefulset/{}", self.set.name);
        let patience = in_seconds(READY_PATIENCE);
        let words = ["rollout", "status", "--namespace", &self.set.namespace, &set, &patience];
        self.cluster.kubectl(self.control.as_ref(), &words).map(drop).map_err(from_start)
    }

    fn in_a_pod<T>(&self, node: &str) -> Result<T, EngineError> {
        Err(EngineError::InAPod { node: node.to_owned() })
    }
}

/// Does a step of the start, and notes how long it took, in seconds.
fn timed(
    steps: &mut Vec<(String, f64)>,
    what: &str,
    step: impl FnOnce() -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let began = Instant::now();
    step()?;
    steps.push((what.to_owned(), began.elapsed().as_secs_f64()));
    Ok(())
}

fn in_seconds(patience: Duration) -> String {
    format!("--timeout={}s", patience.as_secs())
}

fn from_start(error: StartError) -> EngineError {
    match error {
        StartError::Node(error) => EngineError::Node(error),
        error => EngineError::Containers { why: error.to_string() },
    }
}

impl Engine for InCluster {
    fn name(&self) -> &'static str {
        self.database.engine().name()
    }

    fn version(&self) -> String {
        self.database.engine().version()
    }

    fn isolation(&self) -> Isolation {
        self.database.engine().isolation()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let timing = self.cluster.plan().timing();
        let mut settings = self.database.engine().settings();
        let mut put = |name: &str, value: String| settings.insert(name.to_owned(), value);
        put("runs in", format!("pods of Kubernetes {KUBERNETES}, one on each node"));
        put("control plane", format!("on {}, which no fault strikes", self.control.name()));
        put("silent node", timing.in_words());
        put("storage class", format!("{}: {}", self.set.class.name, self.set.class.description));
        settings
    }

    fn endpoint(&self, node: &dyn Node) -> Endpoint {
        self.database.engine().endpoint(node)
    }

    fn client_command(&self, folder: &str) -> Option<ClientCommand> {
        self.database.engine().client_command(folder)
    }

    fn client_target(&self, node: &dyn Node) -> Result<ClientTarget, EngineError> {
        self.database.engine().client_target(node)
    }

    fn shell_environment(&self, on: Option<&dyn Node>, nodes: &[Arc<dyn Node>]) -> BTreeMap<String, String> {
        // Of a pod's socket nobody outside of it knows; a node reaches its pod as clients do.
        let own = on.and_then(|node| nodes.iter().find(|one| one.name() == node.name()));
        let asked = own.map_or(nodes, std::slice::from_ref);
        let mut environment = self.database.engine().shell_environment(None, asked);
        let (own, database) = (self.cluster.programs().environment(), environment.remove("PATH"));
        let paths = [database, own.get("PATH").cloned()].into_iter().flatten().collect::<Vec<_>>();
        environment.insert("PATH".to_owned(), paths.join(":"));
        // The login of whoever may do everything is on no other node.
        if on.is_some_and(|node| node.name() == self.control.name()) {
            let login = self.control.data_directory().join(ADMINISTRATOR_LOGIN);
            environment.insert("KUBECONFIG".to_owned(), login.display().to_string());
        }
        environment
    }

    fn follows_links(&self) -> bool {
        self.database.engine().follows_links()
    }

    fn bootstrap(&self, nodes: &[Arc<dyn Node>]) -> Result<Formed, EngineError> {
        let mut steps = Vec::new();
        timed(&mut steps, "nodes of the cluster ready", || self.start_cluster(nodes).map_err(from_start))?;
        timed(&mut steps, "pods asked for", || self.ask_for_pods(nodes))?;
        let formed = self.database.form(nodes, READY_PATIENCE)?;
        steps.extend(formed.steps.iter().cloned());
        timed(&mut steps, "pods ready", || self.await_pods())?;
        Ok(Formed { steps, ..formed })
    }

    fn rest(&self, _: &[Arc<dyn Node>]) -> Result<(), EngineError> {
        self.in_a_pod(self.control.name())
    }

    fn start(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.cluster.start_worker(node).map_err(from_start)
    }

    fn wait_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.database.answers(node, ONE_ANSWER) {
                Err(_) if Instant::now() < deadline => thread::sleep(ASK_AGAIN),
                answered => return answered,
            }
        }
    }

    fn stop(&self, node: &dyn Node, _: Duration) -> Result<(), EngineError> {
        self.in_a_pod(node.name())
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        self.database.leader(nodes)
    }

    fn turns_connections_down(&self, node: &dyn Node, patience: Duration) -> bool {
        let port = self.endpoint(node).port;
        self.database.engine().turns_connections_down(node, patience)
            && self.cluster.pods_turn_connections_down(node, port, patience)
    }

    fn promote(&self, candidates: &[Arc<dyn Node>]) -> Result<Promotion, EngineError> {
        self.in_a_pod(candidates.first().map_or("nobody", |node| node.name()))
    }

    fn killed_by_signals(&self, node: &dyn Node) -> Vec<Killed> {
        // A node without power has no logs: what it had in memory is gone.
        let lines_with = |words: &str| {
            let lines = self.cluster.lines_of_pods(node, words).unwrap_or_default();
            lines.lines().map(str::to_owned).collect()
        };
        self.database.killed(&lines_with)
    }

    fn rejoin(&self, node: &dyn Node, _: &dyn Node) -> Result<Rejoined, EngineError> {
        self.in_a_pod(node.name())
    }
}
