//! `database.on`: what starts the database's processes, and what cannot be asked of a database in pods.
//!
//! Owns reading it, writing it back, and these refusals, not the types. Which faults strike such a database is said by each kind of fault.

use capabilities::{Capabilities, NoPods, engines};

use crate::decode::Decoder;
use crate::language::{KUBERNETES_TIMES, ON, ON_KUBERNETES};
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{Failover, IpVersion, KubernetesTimes, RunsOn};
use crate::tree::{Node, Value};

/// Its one word beside the default.
const KUBERNETES: &str = "kubernetes";
/// A cluster gives each of its nodes a range of addresses for pods, and has so many.
const MOST_NODES_OF_A_CLUSTER: usize = 254;

/// Reads the key.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<Spanned<RunsOn>> {
    if let Value::Scalar { .. } = &node.value {
        let word = decoder.word(node, "place of a database", &["nodes", KUBERNETES])?;
        let value =
            if word.value == KUBERNETES { RunsOn::Kubernetes(Default::default()) } else { RunsOn::Nodes };
        return Some(Spanned { value, at: word.at });
    }
    let record = decoder.record(node, &ON)?;
    let (_, entry) = record.first_of(&[KUBERNETES])?;
    let options = decoder.record(&entry.value, &ON_KUBERNETES)?;
    let times = options.get("times").and_then(|node| decoder.word(node, "kind of times", KUBERNETES_TIMES));
    let times = match times.map(|word| word.value) {
        Some("short") => KubernetesTimes::Short,
        _ => KubernetesTimes::Shipped,
    };
    Some(Spanned { value: RunsOn::Kubernetes(times), at: entry.key_at })
}

/// What else is said of the database, with where it is said.
pub(crate) struct Beside {
    pub(crate) engine: &'static Capabilities,
    pub(crate) failover: (Failover, Option<Spot>),
    pub(crate) cpus_at: Option<Spot>,
    pub(crate) nodes: usize,
    pub(crate) ip: IpVersion,
}

/// Refuses what pods cannot be asked for.
pub(crate) fn check(on: &Spanned<RunsOn>, beside: &Beside, findings: &mut Findings) {
    if on.value.kubernetes().is_none() {
        return;
    }
    if let Err(why) = beside.engine.pod_program {
        let names: Vec<&str> =
            engines().iter().filter(|one| one.pod_program.is_ok()).map(|one| one.name).collect();
        findings.add(
            "no-pods",
            on.at,
            in_words(why, beside.engine.name),
            "not in pods",
            format!("remove `on`, or choose an engine that has pods: {}", names.join(", ")),
        );
    }
    if let (Failover::Promote { .. }, Some(at)) = beside.failover {
        let message = "nobody promotes a standby in pods: a StatefulSet makes the pod again, and that is all";
        let help = "write `failover: none`, or `ha-restart` for the node's VM";
        findings.add("no-pods", at, message, "not in pods", help);
    }
    if let Some(at) = beside.cpus_at {
        let message =
            "the processes of a cluster's node are in control groups of their own, so `cpus` does not hold";
        findings.add("no-pods", at, message, "not in pods", "remove `cpus`");
    }
    if beside.ip == IpVersion::V6 {
        let message = "pods of a cluster in the lab have addresses of IPv4 alone, and `site.ip` is 6";
        findings.add("no-pods", on.at, message, "not with IPv6", "remove `ip` from the site");
    }
    if beside.nodes > MOST_NODES_OF_A_CLUSTER {
        let message = format!("a cluster in the lab has {MOST_NODES_OF_A_CLUSTER} nodes at most");
        findings.add("too-large", on.at, message, "too many nodes for it", "ask for fewer nodes");
    }
}

fn in_words(why: NoPods, engine: &str) -> String {
    match why {
        NoPods::Unknown => format!("it is not known what pods of the engine `{engine}` run"),
        NoPods::SeveralProcesses => {
            format!("a node of the engine `{engine}` has several processes, and a pod in the lab runs one")
        }
        NoPods::AskedOnceReady => {
            format!(
                "a node of the engine `{engine}` is asked something whenever it is ready (`once-ready`), and pods are not"
            )
        }
        NoPods::PortTaken(port) => {
            format!(
                "the engine `{engine}` listens at port {port}, where its node's kubelet or kube-proxy does, and its pods have the network \
                 of their node: give it another port in its file"
            )
        }
        NoPods::AsksWhoLeads => {
            format!(
                "a node of the engine `{engine}` has to be told at each start who leads, and pods are not"
            )
        }
    }
}

/// As it stands in a scenario; nothing where it is the default.
pub(crate) fn written(on: RunsOn) -> Option<String> {
    let times = on.kubernetes()?;
    Some(format!("on: {{ {KUBERNETES}: {{ times: {} }} }}", times.name()))
}
