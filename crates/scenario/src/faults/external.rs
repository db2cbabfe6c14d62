//! A fault of a machine that exists: a command file, struck at a member of a cluster.
//!
//! Owns which file, whom, and with which values. What the commands are is the file's; reading it is the caller's.

use std::collections::BTreeMap;

use history::NodeId;
use serde::Serialize;

use super::targets::{ElectedRole, NodeTarget, Surroundings};
use super::{Clause, Facts, FaultAction, FaultKind, Form, Nodes, Story, Takes, Written};
use crate::cluster::{values, values_written};
use crate::decode::Decoder;
use crate::language::{ENGINE_IN_FULL, Fields, NODE, Shape, optional, plain, required};
use crate::pods::OF_THE_POD;
use crate::quoted::quoted;
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::Cluster;
use crate::tree::{Entry, Node, Value};

pub(super) const KIND: FaultKind = FaultKind {
    name: "external",
    noun: "external fault",
    summary: "a command file strikes a member of a cluster that exists (`target: external` or `kubernetes`)",
    meaning: "the commands of a file break a machine that exists: they stop a unit, drop its packets, switch it off. Whether they did is not taken from them: evidence is what the file's own looks show before, during and after. The undo commands are on disk, and a timer on the machine waits to run them, before anything is struck",
    examples: &[
        "- { external: { command: systemd-kill, of: leader, with: { unit: postgresql@15-main.service } }, for: 10s }",
        "- { external: { command: ./faults/unplug.yaml, of: n2 }, at: 2s, for: 10s }",
    ],
    story: Story { clause: Clause::Target("a command file struck a machine"), nodes: Nodes::On },
    keys: &EXTERNAL,
    key_meaning: "a command file strikes a member of a cluster that exists",
    comes_and_goes: false,
    is_external: true,
    in_pods: true,
    read: |entry, decoder| decode(entry, decoder),
};

static EXTERNAL: Fields = plain(
    "an external fault",
    &[
        required(
            "command",
            Shape::Either(&[Shape::Text, Shape::Map(&ENGINE_IN_FULL)]),
            "the command file: one that ships, by its name (`holdfast list faults`), or a path within the scenario's folder \
             (./my-fault.yaml)",
        ),
        required("of", NODE, "the member: by name (db1), or by role: leader, a-follower, random"),
        optional(
            "with",
            Shape::Settings(&Shape::Setting),
            "values for the file's parameters; what is not given here is taken from the member's `facts`",
        ),
    ],
);

/// A command file and the member that it strikes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExternalFault {
    /// The member's node.
    pub node: NodeTarget,
    /// The command file.
    pub command: CommandFileName,
    /// Values for its parameters, before those of the member's facts.
    pub values: BTreeMap<String, String>,
    /// Where it stands in the scenario's text.
    #[serde(skip)]
    pub at: Whereabouts,
}

/// A command file as a scenario names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandFileName {
    /// Its name where it ships, or its path.
    pub name: String,
    /// The whole file, where it does not ship and has been read.
    pub text: Option<String>,
}

impl CommandFileName {
    /// Whether it is a file of the user's that nobody has read yet.
    #[must_use]
    pub fn is_path(&self) -> bool {
        self.text.is_none() && (self.name.contains('/') || self.name.ends_with(".yaml"))
    }
}

/// A place in the scenario's text. All are equal: it says nothing about what is asked.
#[derive(Debug, Clone, Copy)]
pub struct Whereabouts(pub(crate) Spot);

impl PartialEq for Whereabouts {
    fn eq(&self, _: &Whereabouts) -> bool {
        true
    }
}

impl ExternalFault {
    /// The members that it may strike.
    #[must_use]
    pub fn candidates(&self, cluster: &Cluster) -> Vec<NodeId> {
        match self.node {
            NodeTarget::Named(number) => vec![number],
            NodeTarget::Leader | NodeTarget::AFollower | NodeTarget::Random => {
                cluster.members.ids().collect()
            }
        }
    }
}

impl Facts for ExternalFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        self.node.elected().into_iter().collect()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::NothingJudged("what its commands take away is known to the file alone")
    }

    fn form(&self) -> Option<Form<'_>> {
        // Of a machine outside the lab nobody knows which others it is like.
        None
    }

    fn written(&self) -> String {
        let command = match &self.command.text {
            Some(text) => format!("{{ file: {}, text: {} }}", quoted(&self.command.name), quoted(text)),
            None => quoted(&self.command.name),
        };
        format!("command: {command}, of: {}, with: {}", self.node, values_written(&self.values))
    }
}

struct Document {
    node: Spanned<String>,
    command: CommandFileName,
    values: BTreeMap<String, String>,
    /// Where each name of a value stands.
    names: Vec<Spanned<String>>,
    at: Spot,
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &EXTERNAL)?;
    let node = record.get("of").and_then(|node| decoder.text(node, "a member"));
    let at = record.get("command").map_or(entry.key_at, |node| node.at);
    let command = record.get("command").and_then(|node| decode_command(node, decoder));
    let (values, names) = match record.get("with") {
        Some(node) => (values(node, "`with`", decoder)?, names(node)),
        None => (BTreeMap::new(), Vec::new()),
    };
    Some(Box::new(Document { node: node?, command: command?, values, names, at }))
}

/// The keys of a map.
fn names(map: &Node) -> Vec<Spanned<String>> {
    let Value::Map(entries) = &map.value else { return Vec::new() };
    let name = |entry: &Entry| Spanned { value: entry.key.clone(), at: entry.key_at };
    entries.iter().map(name).collect()
}

fn decode_command(node: &Node, decoder: &mut Decoder) -> Option<CommandFileName> {
    if let Value::Map(_) = &node.value {
        let record = decoder.record(node, &ENGINE_IN_FULL)?;
        let name = record.get("file").and_then(|node| decoder.text(node, "the file's name"))?;
        let text = record.get("text").and_then(|node| decoder.text(node, "the file's text"))?;
        return Some(CommandFileName { name: name.value, text: Some(text.value) });
    }
    let name = decoder.text(node, "the command file")?;
    let named = CommandFileName { name: name.value, text: None };
    if named.is_path() {
        decoder.file(node, "the command file")?;
    }
    Some(named)
}

impl Document {
    /// Refuses a value that would let the fault strike another pod than the one that it names; whether there is one.
    fn says_the_pod(&self, cluster: Option<&Cluster>, findings: &mut Findings) -> bool {
        let of_pods = cluster.is_some_and(|cluster| cluster.kubernetes.is_some());
        let is_of_the_pod = |name: &&Spanned<String>| OF_THE_POD.contains(&name.value.as_str());
        let Some(name) = self.names.iter().find(is_of_the_pod).filter(|_| of_pods) else { return false };
        let message = format!("a fault cannot say `{}`: it is the member's own", name.value);
        let help = "take it out, and name the member under `of`: leave to break is given pod by pod";
        findings.add("of-the-pod", name.at, message, "the member's own", help);
        true
    }
}

impl Written for Document {
    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        if self.says_the_pod(around.cluster, findings) {
            return None;
        }
        let node = around.node(&self.node, findings)?;
        let (command, values) = (self.command.clone(), self.values.clone());
        let fault = ExternalFault { node, command, values, at: Whereabouts(self.at) };
        if let Some(cluster) = around.cluster
            && let Some(other) =
                fault.candidates(cluster).into_iter().find(|number| !cluster.may_break.contains(number))
        {
            let name = cluster.members.get(other).map_or("", |member| member.name.as_str());
            let message = format!("this may strike member `{name}`, which is not under `may-break`");
            let help =
                format!("add `{name}` to `cluster.may-break` if it may be broken, or aim at another member");
            findings.add("not-allowed", self.node.at, message, "not to be broken", help);
            return None;
        }
        Some(FaultAction::External(fault))
    }
}
