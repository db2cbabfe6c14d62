//! The order in which a cluster is started, part by part, and what is awaited between two of them.
//!
//! The control plane: the store, the API, then what uses it. A node: what runs containers, the images, then what runs pods and what
//! leads to services. A node that has lost its power is started again in the same way, with the files that it has.
//!
//! Owns no machine and no process's life: a part that ends is not started again.

use std::path::Path;
use std::time::Duration;

use engine::{Node, pods};

use crate::control_plane::{self, CONTROLLERS_PORT, SCHEDULER_PORT, STORE_PORT};
use crate::file_names::{on_control, on_worker};
use crate::files::{ControlFiles, Files, WorkerFiles, WorkerOptions};
use crate::node_agent;
pub use crate::on_node::StartError;
use crate::on_node::{OnNode, Started};
use crate::pieces::{
    API_SERVER, CLIENT, CONTROLLERS, NODE_AGENT, NODE_PROXY, PAUSE_IMAGE, Programs, RUNTIME, RUNTIME_CLIENT,
    SCHEDULER, SHELL_IMAGE, STORE,
};
use crate::plan::{Plan, Worker};
use crate::pod_network;
use crate::runtime::SOCKET;
use crate::storage::Volume;

/// How long the store may take.
const STORE_PATIENCE: Duration = Duration::from_secs(30);
/// How long the API may take: it writes what a new cluster has.
const API_PATIENCE: Duration = Duration::from_secs(90);
/// How long others of the control plane may take.
const PART_PATIENCE: Duration = Duration::from_secs(60);
/// How long what runs containers may take.
const RUNTIME_PATIENCE: Duration = Duration::from_secs(30);
/// How long one question to the API, or to what runs containers, may take.
const ONE_ANSWER: &str = "5s";
/// How long it may take to read the archive of images.
const WHOLE_ARCHIVE: &str = "60s";
/// Where what runs pods keeps its images apart from those of others.
const NAMESPACE: &str = "k8s.io";

/// The machine's, which opens TCP connections. The `wget` of Debian's static busybox dies of SIGSEGV when it looks up a host.
const BASH: &str = "/usr/bin/bash";

/// A script that succeeds where the store says that it is well.
fn store_is_healthy() -> String {
    let ask = r"printf 'GET /health HTTP/1.0\r\n\r\n' >&3";
    format!(r#"exec 3<>/dev/tcp/127.0.0.1/{STORE_PORT} && {ask} && grep -q '"health":"true"' <&3"#)
}

/// A cluster, and how its nodes are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    plan: Plan,
    options: WorkerOptions,
}

impl Cluster {
    /// As planned, with programs as nodes see them.
    #[must_use]
    pub fn new(plan: Plan, options: WorkerOptions) -> Cluster {
        Cluster { plan, options }
    }

    /// Who is in it.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its programs, as nodes see them.
    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.options.programs
    }

    /// Makes a volume's folder on its node.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_volume(&self, node: &dyn Node, volume: &Volume) -> Result<(), StartError> {
        volume.make(node, &self.options.programs)
    }

    /// Gives the cluster objects, from a file on the volume of the control plane's node.
    ///
    /// # Errors
    /// When it refuses them, or the file cannot be written.
    pub fn apply(&self, control: &dyn Node, file: &str, objects: &str) -> Result<(), StartError> {
        let on = self.on(control);
        on.write(file, objects)?;
        self.kubectl(control, &["apply", "-f", &on.volume(file).display().to_string()]).map(drop)
    }

    /// What kubectl says on the control plane's node to whoever may do everything.
    ///
    /// # Errors
    /// When it fails.
    pub fn kubectl(&self, control: &dyn Node, arguments: &[&str]) -> Result<String, StartError> {
        let on = self.on(control);
        let login = administrator(&on);
        let arguments: Vec<&str> = [login.as_str()].into_iter().chain(arguments.iter().copied()).collect();
        on.run(&CLIENT, &arguments)
    }

    /// Writes the files of the control plane's node, once, before its first start.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn prepare_control(&self, node: &dyn Node, files: &ControlFiles) -> Result<(), StartError> {
        self.write(node, &files.0)
    }

    /// Starts the control plane on its node and returns when it takes nodes and pods.
    ///
    /// # Errors
    /// When a part cannot be started, ends, or is not ready in time.
    pub fn start_control(&self, node: &dyn Node) -> Result<(), StartError> {
        let on = self.on(node);
        let volume = node.data_directory();
        let store = on.start(&STORE, control_plane::store(&volume).arguments())?;
        let healthy = || Ok(on.finished(Path::new(BASH), &["-c", &store_is_healthy()])?.status.success());
        on.until(store, ("the store answers", STORE_PATIENCE), healthy)?;
        let api = self.start_api(&on)?;
        let controllers = control_plane::controllers(&self.plan, &volume).arguments();
        let controllers = on.start(&CONTROLLERS, controllers)?;
        let scheduler = on.start(&SCHEDULER, control_plane::scheduler(&self.plan, &volume).arguments())?;
        let rights = on.volume(on_control::RIGHTS).display().to_string();
        on.until(api, ("the API takes rights", PART_PATIENCE), || self.asks(&on, &["apply", "-f", &rights]))?;
        let port = |started: Started, what: &'static str, port: u16| {
            on.until(started, (what, PART_PATIENCE), || Ok(on.listens(port)))
        };
        port(scheduler, "the scheduler answers", SCHEDULER_PORT)?;
        port(controllers, "the controllers answer", CONTROLLERS_PORT)?;
        // Pods are refused before it is there.
        let account = ["get", "serviceaccount", "default", "--namespace=default"];
        on.until(controllers, ("the account of pods is there", PART_PATIENCE), || self.asks(&on, &account))
    }

    /// Ends the API server on the control plane's node by SIGKILL, starts it again after a while, and returns when it answers.
    ///
    /// # Errors
    /// When it cannot be ended or started, or does not answer in time.
    pub fn restart_api(&self, node: &dyn Node, away: Duration) -> Result<(), StartError> {
        let on = self.on(node);
        let program = self.options.programs.of(&API_SERVER).display().to_string();
        let end = format!(
            r#"for one in /proc/[0-9]*; do [ "$(readlink "$one/exe")" != {program} ] || kill -KILL "${{one#/proc/}}"; done"#
        );
        on.finished(Path::new(BASH), &["-c", &end])?;
        std::thread::sleep(away);
        self.start_api(&on).map(drop)
    }

    /// Starts the API server, and returns when it answers.
    fn start_api(&self, on: &OnNode<'_>) -> Result<Started, StartError> {
        let flags = control_plane::api_server(&self.plan, &on.node.data_directory());
        let api = on.start(&API_SERVER, flags.arguments())?;
        on.until(api, ("the API is ready", API_PATIENCE), || self.asks(on, &["get", "--raw=/readyz"]))?;
        Ok(api)
    }

    /// Writes the files of a node that runs pods, once, before its first start.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn prepare_worker(&self, node: &dyn Node, files: &WorkerFiles) -> Result<(), StartError> {
        self.worker(node)?;
        let on = self.on(node);
        on.make_folder(&on.volume(on_worker::NETWORK), "0755")?;
        self.write(node, &files.0)
    }

    /// Starts a node's parts after each of its boots, and returns when they run.
    ///
    /// # Errors
    /// When a part cannot be started, ends, or is not ready in time.
    pub fn start_worker(&self, node: &dyn Node) -> Result<(), StartError> {
        let worker = self.worker(node)?;
        let on = self.on(node);
        let file = |name: &str| on.volume(name).display().to_string();
        let runtime = on.start(&RUNTIME, vec!["--config".to_owned(), file(on_worker::RUNTIME_SETTINGS)])?;
        let version = runtime_client(ONE_ANSWER, &["version"]);
        let answers = || on.succeeds(&RUNTIME_CLIENT, &version);
        on.until(runtime, ("containers can be run", RUNTIME_PATIENCE), answers)?;
        self.bring_images(&on)?;
        let flags = node_agent::flags(worker, &node.data_directory());
        on.start(&NODE_AGENT, flags.arguments())?;
        on.start(&NODE_PROXY, vec![format!("--config={}", file(on_worker::PROXY_SETTINGS))])?;
        Ok(())
    }

    /// Images that the node has from an earlier boot are kept.
    fn bring_images(&self, on: &OnNode<'_>) -> Result<(), StartError> {
        let list = ["--namespace", NAMESPACE, "images", "list", "--quiet"];
        let there = on.run(&RUNTIME_CLIENT, &runtime_client(ONE_ANSWER, &list))?;
        if [PAUSE_IMAGE, SHELL_IMAGE].iter().all(|image| there.lines().any(|line| line.trim() == *image)) {
            return Ok(());
        }
        self.import_images(on, &self.options.programs.images())
    }

    /// Gives a node images from an archive, by its path on the node.
    ///
    /// # Errors
    /// When the node cannot read it, or its runtime does not answer.
    pub fn bring_archive(&self, node: &dyn Node, archive: &Path) -> Result<(), StartError> {
        self.import_images(&self.on(node), archive)
    }

    fn import_images(&self, on: &OnNode<'_>, archive: &Path) -> Result<(), StartError> {
        let archive = archive.display().to_string();
        let snapshots = self.options.snapshots.name();
        let import = ["--namespace", NAMESPACE, "images", "import", "--snapshotter", snapshots, &archive];
        on.run(&RUNTIME_CLIENT, &runtime_client(WHOLE_ARCHIVE, &import)).map(drop)
    }

    /// The lines with these words of the logs of a node's pods. Those of a pod that is gone are gone too.
    pub(crate) fn lines_of_pods(&self, node: &dyn Node, words: &str) -> Result<String, StartError> {
        let arguments = ["--recursive", "--no-filename", "--fixed-strings", "--", words, pods::LOGS];
        Ok(self.on(node).finished(Path::new("/usr/bin/grep"), &arguments)?.stdout)
    }

    /// Whether every pod of a node turns down connections to a port, asked from the node and past the cluster's services: a service
    /// turns clients down that its pod would take, where the pod is not ready.
    pub(crate) fn pods_turn_connections_down(&self, node: &dyn Node, port: u16, patience: Duration) -> bool {
        let asked = node.run(&pod_network::nobody_listens(port, patience));
        asked.is_ok_and(|finished| finished.status.success())
    }

    fn worker(&self, node: &dyn Node) -> Result<&Worker, StartError> {
        let found = self.plan.workers().iter().find(|worker| worker.member.name == node.name());
        found.ok_or_else(|| StartError::Stranger { node: node.name().to_owned() })
    }

    fn on<'a>(&'a self, node: &'a dyn Node) -> OnNode<'a> {
        OnNode { node, programs: &self.options.programs }
    }

    fn write(&self, node: &dyn Node, files: &Files) -> Result<(), StartError> {
        let on = self.on(node);
        files.iter().try_for_each(|(name, content)| on.write(name, content))
    }

    /// Whether the API, asked on its own node by whoever may do everything, does what it is asked.
    fn asks(&self, on: &OnNode<'_>, question: &[&str]) -> Result<bool, StartError> {
        let (login, patience) = (administrator(on), format!("--request-timeout={ONE_ANSWER}"));
        let arguments: Vec<&str> =
            [login.as_str(), &patience].into_iter().chain(question.iter().copied()).collect();
        on.succeeds(&CLIENT, &arguments)
    }
}

/// The argument of kubectl that makes it ask as whoever may do everything.
fn administrator(on: &OnNode<'_>) -> String {
    format!("--kubeconfig={}", on.volume(on_control::ADMINISTRATOR_LOGIN).display())
}

fn runtime_client<'a>(patience: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    let first = ["--address", SOCKET, "--timeout", patience];
    first.into_iter().chain(arguments.iter().copied()).collect()
}
