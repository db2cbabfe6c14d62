//! A Kubernetes cluster that is none: a script in place of kubectl, real PostgreSQL servers as the containers of its pods, and a
//! thread that does what a StatefulSet's controller and the nodes' kubelets do.
//!
//! Owns what kubectl is asked for by a run, and no more of the API. What a real cluster does is not shown by it.

use std::fs;
use std::io::{ErrorKind, Write, copy};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::Server;

/// What it is asked stands in `asked`. Objects are files, a watch follows a file, and a way to a pod is [`relay`]. Its current context is
/// `kind-lab`; what says none of its own is refused, since another could be current by then. As of a cluster with a broken extension,
/// every answer comes with a complaint that has the time in it. Agents that are made as pods are processes of this machine, and the
/// services by which they reach the members are the servers' own addresses.
const KUBECTL: &str = r#"#!/bin/sh
folder=@FOLDER@
refuse() { echo "error: $*" >&2; exit 1; }
if [ "$*" = 'version --client' ]; then echo 'Client Version: v1.31.0'; exit; fi
has_context=false
while :; do
  case $1 in
    --kubeconfig=) shift ;;
    --context=kind-lab) has_context=true; shift ;;
    --context) [ "$2" = kind-lab ] || refuse "context $2"; has_context=true; shift 2 ;;
    --namespace) [ "$2" = databases ] || [ "$2" = kube-node-lease ] || refuse "namespace $2"; shift 2 ;;
    *) break ;;
  esac
done
echo "$*" >> "$folder/asked"
echo "E1125 10:00:00.$$ $$ memcache.go:265] couldn't get resource list for metrics.k8s.io/v1beta1" >&2
case "$*" in
  'config current-context') echo kind-lab; exit ;;
  'auth can-i '*) echo yes; exit ;;
esac
$has_context || refuse "no context: $*"
of="$folder/pods/$3"
case "$*" in
  'version -o json') echo '{ "clientVersion": { "gitVersion": "v1.31.0" }, "serverVersion": { "gitVersion": "v1.35.4" } }' ;;
  'create --filename -')
    cat > "$folder/new-agents"
    name=$(sed -n 's/.*"app.kubernetes.io\/instance":"\([^"]*\)".*/\1/p' "$folder/new-agents")
    count=$(sed -n 's/.*"completions":\([0-9]*\).*/\1/p' "$folder/new-agents")
    items= number=0
    while [ "$number" -lt "$count" ]; do
      items="$items${items:+,}{ \"kind\": \"Pod\", \"metadata\": { \"name\": \"$name-$number-x\", \"uid\": \"$name-$number\",
        \"creationTimestamp\": \"2026-11-25T09:00:00Z\", \"labels\": { \"batch.kubernetes.io/job-completion-index\": \"$number\" } },
        \"spec\": { \"nodeName\": \"worker-1\" },
        \"status\": { \"phase\": \"Running\", \"conditions\": [{ \"type\": \"Ready\", \"status\": \"True\" }] } }"
      number=$((number + 1))
    done
    echo "{ \"kind\": \"List\", \"items\": [$items] }" > "$folder/agents-pods"
    mkdir -p "$folder/objects/services"
    for pod in "$folder"/pods/*; do
      echo "{ \"kind\": \"Service\", \"metadata\": { \"name\": \"$name-${pod##*-}\" },
        \"spec\": { \"clusterIP\": \"127.0.0.1\", \"ports\": [{ \"port\": $(cat "$pod/backend") }] } }" > "$folder/objects/services/$name-${pod##*-}.json"
    done
    mv "$folder/new-agents" "$folder/agents" ;;
  'get jobs '*' --ignore-not-found --output name') [ ! -e "$folder/agents" ] || echo "job.batch/$3" ;;
  'get jobs,services,pods --selector '*' --output name') [ ! -e "$folder/agents" ] || echo "job.batch/${4#*=}" ;;
  'get pods --selector '*' -o json') cat "$folder/agents-pods" ;;
  'delete jobs,services --selector '*' --wait=false --interactive=false') rm -rf "$folder/agents" "$folder/agents-pods" "$folder/objects/services" ;;
  'exec --stdin '*' --container=holdfast -- sh -s') exec sh -s ;;
  'get nodes -o json') cat "$folder/objects/nodes.json" ;;
  'get '*' --watch --output-watch-events -o json') exec tail -n +1 -f "$folder/watch/$2" ;;
  'get '*' --ignore-not-found -o json')
    kind=$2 items=
    for name; do
      [ ! -e "$folder/objects/$kind/$name.json" ] || items="$items${items:+,}$(cat "$folder/objects/$kind/$name.json")"
    done
    [ -z "$items" ] || echo "{ \"kind\": \"List\", \"items\": [$items] }" ;;
  'port-forward pod/'*' --address 127.0.0.1')
    of="$folder/pods/${2#pod/}"
    [ -e "$of/uid" ] || refuse "pods \"${2#pod/}\" not found"
    exec env "RELAY_FROM=${3%%:*}" "RELAY_PORT=${3##*:}" "RELAY_TO=$(cat "$of/backend")" "RELAY_WHILE=$of/uid" \
      @RELAY@ stand_in_cluster::relay --exact --ignored --nocapture --test-threads=2 ;;
  'delete pod '*' --namespace databases --now --wait=false --interactive=false') if @OBEYS@; then : > "$of/delete"; fi; echo "pod \"$3\" deleted" ;;
  'exec '*' --namespace databases --container=postgres -- sh -c kill -s "$1" 1 sh QUIT') : > "$folder/pods/$2/kill" ;;
  'get pod '*' --namespace databases --ignore-not-found --output jsonpath={.metadata.uid}') cat "$of/uid" 2>/dev/null; exit 0 ;;
  'get pod '*" --namespace databases --output jsonpath={.status.conditions[?(@.type=='Ready')].status}") cat "$of/ready" ;;
  'get pod '*" --namespace databases --output jsonpath={.status.containerStatuses[?(@.name=='postgres')].state}") cat "$of/state" ;;
  'wait pod '*' --namespace databases --for=condition=Ready --timeout=240s')
    until [ "$(cat "$of/ready" 2>/dev/null)" = True ]; do sleep 0.1; done ;;
  *) refuse "unknown command $*" ;;
esac
"#;

/// Kinds that a run watches.
const WATCHED: &[&str] =
    &["pods", "nodes", "leases", "endpointslices", "volumeattachments", "persistentvolumeclaims"];
/// How long a pod's container takes to be made.
const MADE_WITHIN: Duration = Duration::from_millis(500);
/// How often the thread looks for something to do.
const LOOK: Duration = Duration::from_millis(10);

/// Servers as the pods pg-0, pg-1 ... of the namespace `databases`, all on the node worker-1.
pub struct StandInCluster {
    folder: TempDir,
    is_over: Arc<AtomicBool>,
    controller: Option<JoinHandle<()>>,
}

impl StandInCluster {
    /// The first server leads. `obeys`: whether a pod that is deleted is.
    pub fn of(servers: Vec<Server>, obeys: bool) -> StandInCluster {
        let folder = tempfile::tempdir().expect("a folder");
        install_kubectl(folder.path(), obeys);
        for kind in WATCHED {
            fs::create_dir_all(folder.path().join("objects").join(kind)).expect("a folder");
            fs::create_dir_all(folder.path().join("watch")).expect("a folder");
            fs::write(folder.path().join("watch").join(kind), "").expect("a file");
        }
        let mut controller = Controller { folder: folder.path().to_owned(), pods: Vec::new() };
        controller.begin(servers);
        let is_over: Arc<AtomicBool> = Arc::default();
        let over = is_over.clone();
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                controller.look();
                std::thread::sleep(LOOK);
            }
        });
        StandInCluster { folder, is_over, controller: Some(thread) }
    }

    /// The PATH with which kubectl is the stand-in.
    pub fn path(&self) -> String {
        format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap_or_default())
    }

    /// Whether agents were made as pods, and not removed.
    pub fn has_agents(&self) -> bool {
        self.folder.path().join("agents").exists()
    }

    /// What kubectl was asked so far, line by line.
    pub fn asked(&self) -> String {
        fs::read_to_string(self.folder.path().join("asked")).unwrap_or_default()
    }
}

impl Drop for StandInCluster {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(controller) = self.controller.take() {
            let _ = controller.join();
        }
    }
}

fn install_kubectl(folder: &Path, obeys: bool) {
    let relay = std::env::current_exe().expect("this program");
    let script = KUBECTL
        .replace("@FOLDER@", &folder.display().to_string())
        .replace("@RELAY@", &relay.display().to_string())
        .replace("@OBEYS@", &obeys.to_string());
    let (text, program) = (folder.join("text"), folder.join("kubectl"));
    fs::write(&text, script).expect("the stand-in");
    // Written by another process: what a thread beside us forks cannot hold it open for writing.
    let installed = Command::new("install").args(["-m", "700"]).args([&text, &program]).status();
    assert!(installed.is_ok_and(|status| status.success()), "{}", program.display());
}

/// What keeps the pods as they should be.
struct Controller {
    folder: PathBuf,
    pods: Vec<RunningPod>,
}

/// A pod with its server.
struct RunningPod {
    name: String,
    server: Server,
    role: &'static str,
    /// Which pod of its name it is.
    number: u32,
    /// Which container of all pods of its name.
    starts: u32,
    restarts: u32,
    is_ready: bool,
    is_to_end: bool,
}

impl RunningPod {
    fn uid(&self) -> String {
        format!("{}-{}", self.name, self.number)
    }

    /// As the API has it; the container's start is told by its number.
    fn object(&self) -> Value {
        let ready = if self.is_ready { "True" } else { "False" };
        let started = format!("2026-11-25T10:{:02}:00Z", self.starts);
        let mut object = json!({
            "kind": "Pod",
            "metadata": {
                "name": self.name, "uid": self.uid(), "creationTimestamp": "2026-11-25T09:00:00Z",
                "labels": { "role": self.role, "statefulset.kubernetes.io/pod-name": self.name }
            },
            "spec": {
                "nodeName": "worker-1",
                "containers": [{ "name": "postgres" }],
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": format!("data-{}", self.name) } }]
            },
            "status": {
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": ready }],
                "containerStatuses": [{
                    "name": "postgres", "restartCount": self.restarts, "state": { "running": { "startedAt": started } }
                }]
            }
        });
        if self.is_to_end {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-25T11:00:00Z");
        }
        object
    }
}

impl Controller {
    fn begin(&mut self, servers: Vec<Server>) {
        let node = json!({
            "kind": "Node",
            "metadata": { "name": "worker-1", "labels": { "topology.kubernetes.io/zone": "west" } },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] }
        });
        self.write("objects/nodes.json", &json!({ "kind": "NodeList", "items": [node] }).to_string());
        self.event("nodes", "ADDED", &node);
        for (number, server) in servers.into_iter().enumerate() {
            let name = format!("pg-{number}");
            let claim = json!({
                "kind": "PersistentVolumeClaim",
                "metadata": { "name": format!("data-{name}") },
                "spec": { "storageClassName": "fast", "accessModes": ["ReadWriteOnce"] },
                "status": { "capacity": { "storage": "10Gi" } }
            });
            self.write(&format!("objects/persistentvolumeclaims/data-{name}.json"), &claim.to_string());
            self.event("persistentvolumeclaims", "ADDED", &claim);
            fs::create_dir_all(self.folder.join("pods").join(&name)).expect("a folder");
            self.write(&format!("pods/{name}/backend"), &server.address().port().to_string());
            let role = if number == 0 { "primary" } else { "replica" };
            let (restarts, is_ready, is_to_end) = (0, true, false);
            let pod = RunningPod { name, server, role, number: 1, starts: 1, restarts, is_ready, is_to_end };
            self.pods.push(pod);
            self.shows(number, "ADDED");
        }
        self.endpoints("ADDED");
    }

    /// Does what was asked of it.
    fn look(&mut self) {
        for number in 0..self.pods.len() {
            let of = self.folder.join("pods").join(&self.pods[number].name);
            if fs::remove_file(of.join("delete")).is_ok() {
                self.make_again(number);
            } else if fs::remove_file(of.join("kill")).is_ok() {
                self.start_again(number);
            }
        }
    }

    /// The pod ends, and another of its name is made on the same volume.
    fn make_again(&mut self, number: usize) {
        self.pods[number].is_to_end = true;
        self.pods[number].is_ready = false;
        self.shows(number, "MODIFIED");
        let name = self.pods[number].name.clone();
        self.pods[number].server.kill_postmaster();
        for gone in [format!("pods/{name}/uid"), format!("objects/pods/{name}.json")] {
            fs::remove_file(self.folder.join(gone)).expect("it was there");
        }
        self.event("pods", "DELETED", &self.pods[number].object());
        self.endpoints("MODIFIED");
        std::thread::sleep(MADE_WITHIN);
        let pod = &mut self.pods[number];
        (pod.is_to_end, pod.restarts) = (false, 0);
        pod.number += 1;
        pod.starts += 1;
        self.shows(number, "ADDED");
        self.serve(number);
    }

    /// The container ends, and the pod gets another one.
    fn start_again(&mut self, number: usize) {
        self.pods[number].server.kill_postmaster();
        self.pods[number].is_ready = false;
        self.shows(number, "MODIFIED");
        self.endpoints("MODIFIED");
        std::thread::sleep(MADE_WITHIN);
        self.pods[number].starts += 1;
        self.pods[number].restarts += 1;
        self.serve(number);
    }

    fn serve(&mut self, number: usize) {
        client::reactor::block_on(self.pods[number].server.restart()).expect("an event loop");
        self.pods[number].is_ready = true;
        self.shows(number, "MODIFIED");
        self.endpoints("MODIFIED");
    }

    /// What of a pod is asked for by itself, and the event of a watch.
    fn shows(&self, number: usize, change: &str) {
        let pod = &self.pods[number];
        let object = pod.object();
        self.write(&format!("objects/pods/{}.json", pod.name), &object.to_string());
        self.write(&format!("pods/{}/uid", pod.name), &pod.uid());
        self.write(&format!("pods/{}/ready", pod.name), if pod.is_ready { "True" } else { "False" });
        self.write(&format!("pods/{}/state", pod.name), &format!("{} {}", pod.starts, pod.is_ready));
        self.event("pods", change, &object);
    }

    /// The pods that the service leads to.
    fn endpoints(&self, change: &str) {
        let endpoint = |pod: &RunningPod| {
            let target = json!({ "kind": "Pod", "name": pod.name, "uid": pod.uid() });
            json!({ "conditions": { "ready": pod.is_ready }, "targetRef": target })
        };
        let slice = json!({
            "kind": "EndpointSlice",
            "metadata": { "name": "pg-abc12", "labels": { "kubernetes.io/service-name": "pg" } },
            "endpoints": self.pods.iter().map(endpoint).collect::<Vec<_>>()
        });
        self.event("endpointslices", change, &slice);
    }

    /// A file is there as a whole or not at all.
    fn write(&self, name: &str, text: &str) {
        let (new, path) = (self.folder.join("new"), self.folder.join(name));
        fs::write(&new, text).expect("written");
        fs::rename(&new, &path).expect("in its place");
    }

    fn event(&self, kind: &str, change: &str, object: &Value) {
        let path = self.folder.join("watch").join(kind);
        let mut file = fs::File::options().append(true).open(path).expect("the watch's file");
        writeln!(file, "{}", json!({ "type": change, "object": object })).expect("written");
    }
}

/// What the stand-in for kubectl becomes where it is to forward connections: it listens until the pod is another one.
#[test]
#[ignore = "the stand-in for kubectl starts it"]
fn relay() {
    let of = |name: &str| std::env::var(name).ok();
    let (Some(from), Some(to), Some(uid)) = (of("RELAY_FROM"), of("RELAY_TO"), of("RELAY_WHILE")) else {
        return;
    };
    let to: u16 = to.parse().expect("a port");
    // Nothing before the colon: any port.
    let from = if from.is_empty() { 0 } else { from.parse().expect("a port") };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, from)).expect("the port is free");
    listener.set_nonblocking(true).expect("not waiting");
    let port = listener.local_addr().expect("its address").port();
    println!("\nForwarding from 127.0.0.1:{port} -> {}", of("RELAY_PORT").unwrap_or_default());
    let first = fs::read_to_string(&uid).unwrap_or_default();
    while !first.is_empty() && fs::read_to_string(&uid).is_ok_and(|now| now == first) {
        match listener.accept() {
            Ok((client, _)) => {
                println!("Handling connection for {port}");
                carry(client, to);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            Err(error) => panic!("{error}"),
        }
    }
    // All connections end with it.
    std::process::exit(1);
}

/// Both ways at once; nothing where the server does not take the connection.
fn carry(client: TcpStream, to: u16) {
    std::thread::spawn(move || {
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)) else { return };
        let streams = [&client, &server].map(TcpStream::try_clone);
        let [Ok(from_client), Ok(from_server)] = streams else { return };
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
        }
        std::thread::spawn(move || one_way(from_server, client));
        one_way(from_client, server);
    });
}

fn one_way(mut from: TcpStream, mut to: TcpStream) {
    let _ = copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
