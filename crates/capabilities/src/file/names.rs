//! The names that templates may have, by where a template stands, with what each stands for.
//!
//! Owns the names; their values are the crate `engine`'s.

use std::collections::BTreeMap;

use yaml::explain::{Explanation, Key};

use yaml::template::Names;

use super::killed::{NUMBER, PROCESS, SIGNAL};

/// Where a template stands, which decides its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// Beside the programs, before there is any node.
    Machine,
    /// On a node.
    Node,
    /// On a node of which a process is to start.
    Start,
    /// On the node that leads, which is to hand over.
    HandOver,
    /// In a person's shell.
    Shell,
}

/// The list of the node that a cluster begins with, while it does.
pub const FOUNDING: &str = "founding";
/// The list of who leads when a process is started.
pub const LEADING: &str = "leading";

/// A name and what it stands for.
type Entry = (&'static str, &'static str);

const OF_THE_MACHINE: &[Entry] = &[
    ("installation", "the folder of the installation; empty if the programs are the machine's own"),
    ("architecture", "the processor's, such as x86_64"),
    ("folder", "the folder of the first program, or of the file that states the version"),
];
const OF_A_NODE: &[Entry] = &[
    ("node.name", "the node's name"),
    ("node.number", "its number, from 1"),
    ("node.address", "its address; an IPv6 address is put in brackets if a colon follows"),
    ("node.region", "the region of the host that it first ran on"),
    ("node.zone", "the zone"),
    ("node.rack", "the zone and the rack, as in a-r1; the zone where that has no racks"),
    ("node.host", "the name of that host"),
    ("node.token", "its start on a hash ring from -2^63 on, on which all nodes are spread evenly, in order"),
    ("copies", "how many nodes hold each row, in each region: `replication: { copies: ... }`"),
    ("count.nodes", "how many nodes there are"),
    ("count.others", "how many besides the node itself"),
    ("count.majority", "the smallest majority of the nodes"),
    ("first.name", "the name of the first node"),
    ("first.address", "its address"),
    ("volume", "the folder of the node's volume"),
    ("sockets", "a folder for sockets, which is not on the volume"),
    ("sessions", "most sessions that the loads open on one node"),
    ("synchronous.on", "true if commits wait for standbys, else false"),
    ("synchronous.count", "how many standbys they wait for; 1 if they wait for none"),
];
const OF_A_HAND_OVER: &[Entry] = &[
    ("to.name", "in `hand-over`: the node that is to lead"),
    ("to.identity", "in `hand-over`: what `roles.identity` is there"),
    ("from.name", "in `hand-over`: the node that leads"),
];
const OF_A_KILLED_PROCESS: &[Entry] = &[
    (PROCESS, "in `killed`: how the line names the process, any text"),
    (NUMBER, "in `killed`: any number, such as the process's"),
    (SIGNAL, "in `killed`: the signal's number"),
];
const FAMILIES: &[Entry] = &[
    ("program.NAME", "the path of a program of `find.programs`"),
    ("folder.NAME", "its folder"),
    ("ports.NAME", "a port of `ports`"),
];

/// A list, the names that each of its elements has, and what it holds.
type ListEntry = (&'static str, &'static [&'static str], &'static str);

const NODE_VALUES: &[&str] = &["name", "number", "address"];
const LISTS_OF_A_NODE: &[ListEntry] = &[
    ("nodes", NODE_VALUES, "all nodes, each with `name`, `number`, `address`"),
    ("others", NODE_VALUES, "the same without the node itself"),
    (
        "regions",
        &["name", "copies"],
        "the regions that hold nodes, each with `name` and `copies`, how many nodes there hold each row",
    ),
    ("addresses", &["address"], "all addresses of the node, each `address`"),
    (
        "settings",
        &["name", "value"],
        "what the scenario sets under `database.settings`, each with `name`, `value`",
    ),
];
const LISTS_OF_A_START: &[ListEntry] = &[
    (
        LEADING,
        NODE_VALUES,
        "in a process's command, environment and files: the current leader when the process starts, as an operator \
         sees it regardless of the network; empty if that is the node itself, or if none leads, or several say that they do",
    ),
    (
        FOUNDING,
        NODE_VALUES,
        "in the same places: the node itself if it is the first node and the cluster is being created; empty \
         otherwise",
    ),
];
const LISTS_OF_A_SHELL: &[ListEntry] =
    &[("reached", NODE_VALUES, "in `shell`: the node of the shell, or all nodes if it is on none")];

/// The names of a context in a file with these programs and ports.
pub(super) fn known(context: Context, programs: &[String], ports: &BTreeMap<String, u16>) -> Names {
    let on_a_node = matches!(context, Context::Node | Context::Start | Context::HandOver);
    let mut entries = vec![OF_THE_MACHINE];
    if on_a_node {
        entries.push(OF_A_NODE);
    }
    if context == Context::HandOver {
        entries.push(OF_A_HAND_OVER);
    }
    let mut values: Vec<String> = entries.concat().iter().map(|(name, _)| (*name).to_owned()).collect();
    for of in ["program", "folder"] {
        values.extend(programs.iter().map(|program| format!("{of}.{program}")));
    }
    if context != Context::Machine {
        values.extend(ports.keys().map(|port| format!("ports.{port}")));
    }
    let lists = match context {
        Context::Machine => Vec::new(),
        Context::Shell => LISTS_OF_A_SHELL.to_vec(),
        Context::Node | Context::HandOver => LISTS_OF_A_NODE.to_vec(),
        Context::Start => [LISTS_OF_A_NODE, LISTS_OF_A_START].concat(),
    };
    let lists = lists.iter().map(|(name, own, _)| (*name, *own)).collect();
    Names { values, lists, none: "nothing", advice: "", example: "node.name" }
}

/// The names of a line that tells of a killed process.
pub(super) fn of_a_killed_process() -> Names {
    let values = OF_A_KILLED_PROCESS.iter().map(|(name, _)| (*name).to_owned()).collect();
    Names { values, lists: Vec::new(), none: "nothing", advice: "", example: SIGNAL }
}

/// All names in words.
pub(super) fn explained() -> Explanation {
    let value = |(name, meaning): &Entry| Key { name, required: false, holds: "a value".to_owned(), meaning };
    let list =
        |(name, _, meaning): &ListEntry| Key { name, required: false, holds: "a list".to_owned(), meaning };
    let values = [OF_THE_MACHINE, FAMILIES, OF_A_NODE, OF_A_HAND_OVER, OF_A_KILLED_PROCESS].concat();
    let lists = [LISTS_OF_A_NODE, LISTS_OF_A_START, LISTS_OF_A_SHELL].concat();
    Explanation {
        path: "names in templates".to_owned(),
        meaning: "a template is text with names in braces, which are replaced by values; `{{` and `}}` are literal \
                  braces. A list states the text for each element and the text between elements; an argument of a \
                  command that is a list without `join` becomes one argument per element"
            .to_owned(),
        holds: "text".to_owned(),
        keys: values.iter().map(value).chain(lists.iter().map(list)).collect(),
        examples: vec![
            "--listen={node.address}:{ports.client}".to_owned(),
            "--initial-cluster={nodes: '{name}=http://{address}:{ports.peer}', join: ','}".to_owned(),
            "{settings: '--{name}={value}'}".to_owned(),
        ],
    }
}
