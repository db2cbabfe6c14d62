//! A database by a file in pods: the one process that each of its nodes has, in a container on its node's own network and volume.
//!
//! Owns the view of a pod as a node. The engine writes files and a command there as on any node; the command becomes a script on the
//! volume, for which the container waits, and which it reads at every later start. When a container starts, its cluster decides.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{ByFile, Start, killed, to_its_end};
use crate::pods::{InPods, LOGS, PodNetwork, PodPlan, Readiness};
use crate::process::{GLANCE, LOG_LINES};
use crate::{
    Cluster, Command, Engine, EngineError, Finished, Killed, Node, NodeError, ProcessId, Roles, Signal,
};

/// Made by a container on its volume once it runs.
const THERE: &str = "container.there";
/// What it becomes, once that is there.
const START: &str = "container.start";
/// The machine's settings, which some programs look for: Java's are links to there.
const MACHINE_SETTINGS: &str = "/etc";
/// The ordinary user of a lab's nodes, whose the volumes and the processes in pods are.
const USER: &str = "1000";
/// The folder in the volume that is the database's alone: it finds it empty.
const DATABASE: &str = "database";
/// How often a pod's log is looked at for a setting that was turned down.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// An engine by a file whose processes run in pods.
pub(crate) struct FileInPods {
    engine: ByFile,
    pods: Mutex<Vec<Arc<Pod>>>,
}

impl FileInPods {
    pub(crate) fn new(engine: ByFile) -> FileInPods {
        FileInPods { engine, pods: Mutex::default() }
    }

    fn pods(&self) -> MutexGuard<'_, Vec<Arc<Pod>>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pod(&self, node: &dyn Node) -> Result<Arc<Pod>, EngineError> {
        let pod = self.pods().iter().find(|pod| pod.name() == node.name()).cloned();
        pod.ok_or_else(|| EngineError::Stranger { node: node.name().to_owned() })
    }
}

impl InPods for FileInPods {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    fn pod_plan(&self, nodes: &[Arc<dyn Node>], _: IpAddr, volume: &Path) -> Result<PodPlan, EngineError> {
        let turns_down = &self.engine.main_process().turns_down;
        let pod = |node: &Arc<dyn Node>| Arc::new(Pod::new(node.clone(), volume, turns_down));
        let pods: Vec<Arc<Pod>> = nodes.iter().map(pod).collect();
        let first =
            pods.first().ok_or_else(|| EngineError::NoCandidate { reasons: "no nodes".to_owned() })?;
        let (folder, sockets) = (first.volume(), first.socket_directory());
        let [there, start] = [THERE, START].map(|name| word(&folder.join(name).display().to_string()));
        let script = format!(": >{there}; until [ -s {start} ]; do sleep 0.1; done; exec sh {start}");
        *self.pods() = pods;
        let installation = self.engine.releases.first();
        let around = installation.programs.values().filter_map(|program| program.parent());
        let around = around.filter(|folder| !folder.starts_with(&installation.root)).map(Path::to_owned);
        let readable: BTreeSet<PathBuf> =
            around.chain([MACHINE_SETTINGS.into(), installation.root.clone()]).collect();
        Ok(PodPlan {
            script,
            environment: BTreeMap::new(),
            files: BTreeMap::new(),
            volume: folder,
            ready: Readiness::Port,
            port: self.engine.configuration.port,
            network: PodNetwork::Node,
            readable: readable.into_iter().collect(),
            writable: vec![sockets],
        })
    }

    fn form(&self, nodes: &[Arc<dyn Node>], patience: Duration) -> Result<Cluster, EngineError> {
        let deadline = Instant::now() + patience;
        let pods = nodes.iter().map(|node| self.pod(node.as_ref())).collect::<Result<Vec<_>, _>>()?;
        for pod in &pods {
            pod.make_folder()?;
            while !pod.is_there() {
                if Instant::now() >= deadline {
                    let (node, what) = (pod.name().to_owned(), "its pod has not started".to_owned());
                    let log = pod.log_tail("", LOG_LINES);
                    return Err(EngineError::NotReady { node, what, waited: patience, log });
                }
                std::thread::sleep(GLANCE);
            }
        }
        let as_nodes: Vec<Arc<dyn Node>> = pods.iter().map(|pod| pod.clone() as Arc<dyn Node>).collect();
        let cluster = self.engine.bootstrap(&as_nodes)?;
        // The cluster is made: a container that starts from now on starts as a node does that comes back.
        for pod in &pods {
            pod.tell(&self.engine.prepared(pod.as_ref(), 0, Start::Again)?)?;
            pod.is_formed.store(true, Ordering::Release);
        }
        Ok(cluster)
    }

    fn answers(&self, node: &dyn Node, patience: Duration) -> Result<(), EngineError> {
        self.engine.answers(self.pod(node)?.as_ref(), &self.engine.main_process().ready, patience)
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        let pod = |node: &Arc<dyn Node>| match self.pod(node.as_ref()) {
            Ok(pod) => pod as Arc<dyn Node>,
            // It is asked itself, and told of as a stranger.
            Err(_) => node.clone(),
        };
        self.engine.leader(&nodes.iter().map(pod).collect::<Vec<_>>())
    }

    fn killed(&self, lines_with: &dyn Fn(&str) -> Vec<String>) -> Vec<Killed> {
        killed::in_log_of(self.engine.main_process(), |_, mark| lines_with(mark))
    }
}

/// A pod as the engine's node: its volume is a folder in that of the claim, its process is what its container becomes.
struct Pod {
    node: Arc<dyn Node>,
    /// The pod's volume, a folder relative to the node's volume.
    volume: PathBuf,
    /// What stands in its log where it turned down a setting.
    turns_down: Vec<String>,
    /// When its log was looked at last, and whether it had.
    looked: Mutex<(Option<Instant>, bool)>,
    /// Whether its database has run: it did not turn down its settings.
    is_formed: AtomicBool,
}

impl Pod {
    fn new(node: Arc<dyn Node>, volume: &Path, turns_down: &[String]) -> Pod {
        Pod {
            node,
            volume: volume.to_owned(),
            turns_down: turns_down.to_owned(),
            looked: Mutex::default(),
            is_formed: AtomicBool::new(false),
        }
    }

    /// The pod's volume, as the node and the pod see it.
    fn volume(&self) -> PathBuf {
        self.node.data_directory().join(&self.volume)
    }

    /// A path in the database's folder, relative to the node's volume.
    fn path(&self, path_in_volume: &Path) -> PathBuf {
        self.volume.join(DATABASE).join(path_in_volume)
    }

    /// Makes the database's folder, which a later boot finds again.
    fn make_folder(&self) -> Result<(), EngineError> {
        let (volume, database) = (self.volume(), self.data_directory());
        let [volume, database] = [volume, database].map(|folder| word(&folder.display().to_string()));
        let make = format!("install -d -m 0700 -o {USER} -g {USER} {database} && sync {database} {volume}");
        to_its_end(self.node.as_ref(), &shell(make))
    }

    /// Whether its container runs, or has run.
    fn is_there(&self) -> bool {
        self.node.exists(&self.volume.join(THERE)).unwrap_or(false)
    }

    /// Whether its log says that it turned down a setting.
    fn turned_down(&self) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.0.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            let has = |text: &String| {
                let look = shell(format!("exec grep -rqF -- {} {LOGS}", word(text)));
                self.node.run(&look).is_ok_and(|finished| finished.status.success())
            };
            *looked = (Some(Instant::now()), self.turns_down.iter().any(has));
        }
        looked.1
    }

    /// Says what its container becomes now, where it waits, and at each start to come.
    fn tell(&self, command: &Command) -> Result<(), NodeError> {
        let script = script_of(command, &self.data_directory());
        let written = self.node.write_file(&self.volume.join(START), &script);
        written.map_err(|source| NodeError::Io {
            node: self.name().to_owned(),
            what: format!("write {START}"),
            source,
        })
    }
}

impl Node for Pod {
    fn name(&self) -> &str {
        self.node.name()
    }

    fn address(&self) -> IpAddr {
        self.node.address()
    }

    fn addresses(&self) -> Vec<IpAddr> {
        self.node.addresses()
    }

    /// A pod outlives its node's boots.
    fn boot(&self) -> u64 {
        1
    }

    fn data_directory(&self) -> PathBuf {
        self.volume().join(DATABASE)
    }

    fn socket_directory(&self) -> PathBuf {
        self.node.socket_directory()
    }

    fn socket_directory_outside(&self) -> PathBuf {
        self.node.socket_directory_outside()
    }

    fn write_file(&self, path_in_volume: &Path, content: &str) -> io::Result<()> {
        self.node.write_file(&self.path(path_in_volume), content)
    }

    fn read_file(&self, path_in_volume: &Path) -> io::Result<String> {
        self.node.read_file(&self.path(path_in_volume))
    }

    fn remove_file(&self, path_in_volume: &Path) -> io::Result<()> {
        self.node.remove_file(&self.path(path_in_volume))
    }

    fn exists(&self, path_in_volume: &Path) -> io::Result<bool> {
        self.node.exists(&self.path(path_in_volume))
    }

    fn connect(&self, port: u16, patience: Duration) -> io::Result<TcpStream> {
        self.node.connect(port, patience)
    }

    /// On the node, beside the pod: as the pod's user, in its volume.
    fn run(&self, command: &Command) -> Result<Finished, NodeError> {
        let as_user = ["--reuid", USER, "--regid", USER, "--clear-groups", "--", "/bin/sh", "-c"];
        let mut arguments: Vec<String> = as_user.map(str::to_owned).to_vec();
        arguments.push(script_of(command, &self.data_directory()));
        let program = PathBuf::from("/usr/bin/setpriv");
        self.node.run(&Command { program, arguments, environment: BTreeMap::new() })
    }

    fn spawn(&self, command: &Command, _: &str) -> Result<ProcessId, NodeError> {
        self.tell(command).map(|()| ProcessId(1))
    }

    /// Its cluster alone ends a pod's process.
    fn signal(&self, _: ProcessId, _: Signal) -> Result<(), NodeError> {
        let source = io::ErrorKind::Unsupported.into();
        Err(NodeError::Io { node: self.name().to_owned(), what: "signal a pod's process".to_owned(), source })
    }

    /// A container whose process ends is started again: whether the database is there, its answers say. One that turned down a
    /// setting will do so for ever.
    fn is_running(&self, _: ProcessId) -> bool {
        self.is_formed.load(Ordering::Acquire) || !self.turned_down()
    }

    fn log_tail(&self, _: &str, lines: usize) -> String {
        let tail = self.node.run(&shell(format!("exec tail -q -n {lines} {LOGS}/*/*/*.log")));
        tail.map(|finished| finished.stdout).unwrap_or_default()
    }
}

/// A command that a node's shell reads.
fn shell(line: String) -> Command {
    let arguments = vec!["-c".to_owned(), line];
    Command { program: PathBuf::from("/bin/sh"), arguments, environment: BTreeMap::new() }
}

/// A script for `sh` that becomes this command, with this environment and no other.
fn script_of(command: &Command, folder: &Path) -> String {
    let variables = command.environment.iter().map(|(name, value)| format!("{name}={value}"));
    let program = [command.program.display().to_string()];
    let words = variables.chain(program).chain(command.arguments.iter().cloned());
    let words: Vec<String> = words.map(|one| word(&one)).collect();
    format!("cd {} && exec /usr/bin/env -i {}\n", word(&folder.display().to_string()), words.join(" "))
}

/// A word that a shell reads as itself.
fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_comes_out_of_the_shell_as_it_went_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = "it's $HOME, `id`\nand \"more\" \\ *";
        let command = Command {
            program: PathBuf::from("/bin/sh"),
            arguments: ["-c", "printf '%s|%s|' \"$1\" \"$KEPT\"; pwd; env | wc -l", "sh", said]
                .map(str::to_owned)
                .to_vec(),
            environment: BTreeMap::from([("KEPT".to_owned(), "a 'b' c".to_owned())]),
        };
        let script = script_of(&command, folder.path());
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", &script])
            .env("LEAKED", "1")
            .output()
            .expect("a shell");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        // The shell itself adds where it is.
        let expected = format!("{said}|a 'b' c|{}\n2\n", folder.path().display());
        assert_eq!(told, expected, "{}", String::from_utf8_lossy(&output.stderr));
    }
}
