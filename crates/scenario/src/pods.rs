//! The `kubernetes` section of a cluster: pods in place of members with endpoints, and how they are reached.
//!
//! Owns reading and writing it, and the members that stand for the pods. What is done with them is carried out elsewhere.

use std::collections::BTreeMap;

use capabilities::Capabilities;

use crate::decode::{Decoder, Record};
use crate::language::{KUBERNETES, MOST_NAME_BYTES, MOST_PODS, POD_AGENTS, POD_ROLE};
use crate::quoted::quoted;
use crate::rejection::{Finding, Spanned, Spot};
use crate::resolved::{Kubernetes, Member, MemberReach, PodAgents, RoleLabel};
use crate::tree::{Node, Value};
use crate::wording::shortened;

/// The section's key.
pub(crate) const KEY: &str = "kubernetes";
/// The section's key for agents, and the cluster's for those on machines.
const AGENTS: &str = "agents";
/// What becomes of a load is said where any agents are.
const AGENT_LOST: &str = "agent-lost";
/// Keys of a cluster that are for machines.
const OF_MACHINES: &[&str] = &[AGENTS, AGENT_LOST, "ssh-config"];
/// What a fault cannot say of its pod, because leave is given pod by pod: the names of a member's own facts, and the node that it
/// is on.
pub(crate) const OF_THE_POD: &[&str] = &["pod", "namespace", "context", "kubeconfig", "node"];
/// The namespace where the file names none, as with kubectl.
const NAMESPACE: &str = "default";
/// Longest name of a context.
const MOST_CONTEXT_BYTES: usize = 255;
/// Longest name of an image.
const MOST_IMAGE_BYTES: usize = 255;

/// The section as written.
pub(crate) struct PodsDocument {
    kubernetes: Kubernetes,
    pods: Vec<Spanned<String>>,
}

/// Whether a cluster has the key, sound or not.
pub(crate) fn cluster_has(cluster: &Node, key: &str) -> bool {
    matches!(&cluster.value, Value::Map(entries) if entries.iter().any(|entry| entry.key == key))
}

/// Reads the section.
pub(crate) fn decode(
    node: &Node,
    engine: Option<&Capabilities>,
    decoder: &mut Decoder,
) -> Option<PodsDocument> {
    let record = decoder.record(node, &KUBERNETES)?;
    let namespace = record.get("namespace").and_then(|node| decoder.name(node, "the namespace"));
    let context = record.get("context").and_then(|node| decode_name(node, decoder, &CONTEXT));
    let kubeconfig = record.get("kubeconfig").and_then(|node| decode_kubeconfig(node, decoder));
    let pods = decode_pods(&record, decoder);
    let container = record.get("container").and_then(|node| decoder.name(node, "the container"));
    let port = record.get("port").and_then(|node| decoder.count(node, "the port", 1, u64::from(u16::MAX)));
    let role = record.get("role").and_then(|node| decode_role(node, decoder));
    let agents = record.get(AGENTS).and_then(|node| decode_agents(node, decoder));
    let usual = engine.and_then(|engine| engine.protocol.usual()).map(|usual| usual.port);
    let port = port.and_then(|port| u16::try_from(port.value).ok()).or(usual);
    Some(PodsDocument {
        kubernetes: Kubernetes {
            namespace: namespace.map_or_else(|| NAMESPACE.to_owned(), |name| name.value),
            context,
            kubeconfig,
            container: container.map(|name| name.value),
            // An engine that is not known is told already.
            port: port.unwrap_or_default(),
            role,
            agents,
        },
        pods: pods?,
    })
}

/// Refuses what only machines have. `section` is this section.
pub(crate) fn refuse_machines(cluster: &Record<'_>, section: &Node, decoder: &mut Decoder) {
    let has_agents = cluster_has(section, AGENTS);
    for &key in OF_MACHINES {
        let Some(at) = cluster.key_at(key) else { continue };
        if key == AGENT_LOST && has_agents {
            continue;
        }
        let message = format!("`{key}` is for machines, and the members are pods");
        let help = match key {
            AGENTS => "write `agents: { image: IMAGE, count: 2 }` in `kubernetes`: there they are pods",
            AGENT_LOST => "leave it out: without `agents` in `kubernetes` there is none to lose",
            _ => "leave it out: clients, and the commands that break pods, run on this machine",
        };
        decoder.findings.add("not-of-pods", at, message, "not with `kubernetes`", help);
    }
}

/// A name that commands are given: what it may be, and what is said where it is not.
struct Name {
    what: &'static str,
    longest_bytes: usize,
    /// Besides letters and digits, with one of which it begins.
    signs: &'static str,
    code: &'static str,
    refusal: &'static str,
    help: &'static str,
}

const CONTEXT: Name = Name {
    what: "the context",
    longest_bytes: MOST_CONTEXT_BYTES,
    signs: "._@:/-",
    code: "bad-context",
    refusal: "cannot be given to commands as a context",
    help: "use letters, digits and `._@:/-`; `kubectl config rename-context` renames it",
};

const IMAGE: Name = Name {
    what: "the image",
    longest_bytes: MOST_IMAGE_BYTES,
    signs: "._:/@-",
    code: "bad-image",
    refusal: "cannot be the name of an image",
    help: "write it as images.example.org/holdfast:1, in letters, digits and `._:/@-`",
};

fn decode_name(node: &Node, decoder: &mut Decoder, name: &Name) -> Option<String> {
    let text = decoder.text(node, name.what)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || name.signs.contains(c);
    let begins = text.value.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && text.value.len() <= name.longest_bytes && text.value.chars().all(fits) {
        return Some(text.value);
    }
    let message = format!("`{}` {}", shortened(&text.value), name.refusal);
    decoder.findings.add(name.code, text.at, message, "not such a name", name.help);
    None
}

fn decode_kubeconfig(node: &Node, decoder: &mut Decoder) -> Option<String> {
    let path = decoder.text(node, "the path")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "/._@:+,-".contains(c);
    let stays = path.value.split('/').all(|part| part != "..");
    if path.value.starts_with('/') && stays && path.value.chars().all(fits) {
        return Some(path.value);
    }
    let message = format!("`{}` cannot be given to commands as a path", shortened(&path.value));
    let help = "write an absolute path of letters, digits and `/._@:+,-`, such as /etc/lab/kubeconfig";
    decoder.findings.add("bad-path", path.at, message, "not such a path", help);
    None
}

fn decode_pods(record: &Record<'_>, decoder: &mut Decoder) -> Option<Vec<Spanned<String>>> {
    if let Some(node) = record.get("pods") {
        let nodes = decoder.list(node, "`pods`", 1)?;
        let pods: Vec<Spanned<String>> =
            nodes.iter().filter_map(|node| decoder.name(node, "a pod")).collect();
        refuse_twice(&pods, decoder);
        return Some(pods);
    }
    let set = record.get("stateful-set").and_then(|node| decoder.name(node, "the StatefulSet"));
    let replicas = record
        .get("replicas")
        .and_then(|node| decoder.count(node, "the number of replicas", 1, MOST_PODS))
        .map(|count| count.value);
    let (set, replicas) = (set?, replicas?);
    let pod = |number: u64| format!("{}-{number}", set.value);
    if pod(replicas - 1).len() > MOST_NAME_BYTES {
        let message = "the names of its pods would be longer than 63 signs";
        let help = "Kubernetes makes no such pods: write the name that the StatefulSet has";
        decoder.findings.add("bad-name", set.at, message, "too long", help);
        return None;
    }
    Some((0..replicas).map(|number| Spanned { value: pod(number), at: set.at }).collect())
}

fn refuse_twice(pods: &[Spanned<String>], decoder: &mut Decoder) {
    let mut seen: BTreeMap<&str, Spot> = BTreeMap::new();
    for pod in pods {
        if let Some(earlier) = seen.insert(&pod.value, pod.at) {
            decoder.findings.push(Finding {
                code: "duplicate-name",
                message: format!("pod `{}` is named twice", pod.value),
                at: pod.at,
                label: "the same pod again".to_owned(),
                help: "name each pod once".to_owned(),
                also: Some((earlier, "first here".to_owned())),
            });
        }
    }
}

fn decode_role(node: &Node, decoder: &mut Decoder) -> Option<RoleLabel> {
    let record = decoder.record(node, &POD_ROLE)?;
    let label = record.get("label").and_then(|node| decoder.text(node, "the label"));
    let leader = record.get("leader").and_then(|node| decoder.list(node, "`leader`", 1));
    let leader = leader.unwrap_or_default().iter();
    let leader: Vec<String> =
        leader.filter_map(|node| decoder.text(node, "a value")).map(|text| text.value).collect();
    Some(RoleLabel { label: label?.value, leader })
}

fn decode_agents(node: &Node, decoder: &mut Decoder) -> Option<PodAgents> {
    let record = decoder.record(node, &POD_AGENTS)?;
    let image = record.get("image").and_then(|node| decode_name(node, decoder, &IMAGE));
    let count = record
        .get("count")
        .and_then(|node| decoder.count(node, "the number of agents", 1, MOST_PODS))
        .map(|count| count.value);
    let program = record.get("program").and_then(|node| decoder.text(node, "the program"));
    let count = u32::try_from(count?).unwrap_or(u32::MAX);
    Some(PodAgents { image: image?, count, program: program.map(|program| program.value) })
}

impl PodsDocument {
    /// The section, and the members that its pods are.
    pub(crate) fn resolve(self) -> (Kubernetes, Vec<(Spanned<String>, Member)>) {
        let PodsDocument { kubernetes, pods } = self;
        let member = |pod: Spanned<String>| {
            let member = Member {
                name: pod.value.clone(),
                endpoint: format!("{}:{}", pod.value, kubernetes.port),
                reach: Some(MemberReach::Local(Vec::new())),
                facts: facts(&kubernetes, &pod.value),
            };
            (pod, member)
        };
        let members = pods.into_iter().map(member).collect();
        (kubernetes, members)
    }
}

/// Values for the parameters of command files.
fn facts(kubernetes: &Kubernetes, pod: &str) -> BTreeMap<String, String> {
    let known = [
        ("pod", Some(pod)),
        ("namespace", Some(kubernetes.namespace.as_str())),
        ("context", kubernetes.context.as_deref()),
        ("kubeconfig", kubernetes.kubeconfig.as_deref()),
        ("container", kubernetes.container.as_deref()),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
}

/// The section as a scenario has it, line by line, below `cluster`.
pub(crate) fn written(kubernetes: &Kubernetes, members: &[Member]) -> Vec<String> {
    let Kubernetes { namespace, context, kubeconfig, container, port, role, agents } = kubernetes;
    let pods: Vec<String> = members.iter().map(|member| quoted(&member.name)).collect();
    let texts = [
        ("namespace", Some(namespace)),
        ("context", context.as_ref()),
        ("kubeconfig", kubeconfig.as_ref()),
        ("container", container.as_ref()),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some(format!("    {key}: {}", quoted(text?))));
    let mut lines = vec![format!("  {KEY}:")];
    lines.extend(texts);
    lines.push(format!("    pods: [{}]", pods.join(", ")));
    lines.push(format!("    port: {port}"));
    lines.extend(role.as_ref().map(|RoleLabel { label, leader }| {
        let leader: Vec<String> = leader.iter().map(|value| quoted(value)).collect();
        format!("    role: {{ label: {}, leader: [{}] }}", quoted(label), leader.join(", "))
    }));
    lines.extend(agents.as_ref().map(|PodAgents { image, count, program }| {
        let program = program.as_ref().map(|program| format!(", program: {}", quoted(program)));
        let program = program.unwrap_or_default();
        format!("    {AGENTS}: {{ image: {}, count: {count}{program} }}", quoted(image))
    }));
    lines
}
