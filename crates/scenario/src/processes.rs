//! Faults of a node's processes: killed, stopped for a time, restarted.
//!
//! Owns reading them and whom they are aimed at; when they strike is in `schedule`.

use std::time::Duration;

use capabilities::Capabilities;

use crate::decode::Decoder;
use crate::language::{DEEDS, PROCESS, RESTART};
use crate::node_name;
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{NodeTarget, OneProgram, ProcessDeed, ProcessFault};
use crate::tree::{Entry, Node, Value};
use crate::units::format_duration;
use crate::wording::{listed, nearest, shortened};

/// How long after a kill the processes are started again where nothing is said: what service managers are often told.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// Nothing shows that processes were gone for less.
const LEAST_RESTART: Duration = Duration::from_millis(100);

/// A process fault as written.
pub(crate) struct ProcessDocument {
    node: Spanned<String>,
    how: ProcessDeed,
    only: Option<Spanned<String>>,
    /// Where `how` stands.
    how_at: Spot,
}

/// Reads a process fault.
pub(crate) fn decode_fault(entry: &Entry, decoder: &mut Decoder) -> Option<ProcessDocument> {
    let record = decoder.record(&entry.value, &PROCESS)?;
    let node = record.get("of").and_then(|node| decoder.text(node, "a node"));
    let how = record.get("how").and_then(|node| decoder.word(node, "deed", DEEDS));
    let only = record.get("only").and_then(|node| decoder.text(node, "a program"));
    let restart = record.get("restart").map(|node| decode_restart(node, decoder));
    let how = how?;
    if let (Some(at), "stop" | "restart") = (record.key_at("restart"), how.value) {
        decoder.findings.add(
            "bad-restart",
            at,
            format!("`restart` says what comes after a kill, not after `how: {}`", how.value),
            "not with this",
            "remove `restart`, or write `how: kill`",
        );
        return None;
    }
    let deed = match how.value {
        "kill" => ProcessDeed::Kill { restart_after: restart.unwrap_or(Some(Some(RESTART_AFTER)))? },
        "stop" => ProcessDeed::Stop,
        _ => ProcessDeed::Restart,
    };
    Some(ProcessDocument { node: node?, how: deed, only, how_at: how.at })
}

/// When processes are started again, never as nothing; `None` when it is wrong.
fn decode_restart(node: &Node, decoder: &mut Decoder) -> Option<Option<Duration>> {
    let Value::Map(_) = node.value else {
        return decoder.word(node, "time of a restart", &["never"]).map(|_| None);
    };
    let record = decoder.record(node, &RESTART)?;
    let after = decoder.duration(record.get("after")?, "`after`", "s")?;
    if after.value < LEAST_RESTART {
        decoder.findings.add(
            "too-small",
            after.at,
            format!("processes that are started again after {}", format_duration(after.value)),
            "too soon to be seen gone",
            format!("write {} or more", format_duration(LEAST_RESTART)),
        );
        return None;
    }
    Some(Some(after.value))
}

impl ProcessDocument {
    /// Where `how` stands, and why a fault of this kind takes no `for`, where it takes none.
    pub(crate) fn takes_no_length(&self) -> Option<&'static str> {
        match self.how {
            ProcessDeed::Kill { .. } => Some(
                "write `restart: { after: 10s }` in `process`: how long the processes are gone; or `restart: never`",
            ),
            ProcessDeed::Restart => {
                Some("remove `for`: it is over when the database accepts connections again")
            }
            ProcessDeed::Stop => None,
        }
    }

    /// What is done to whom; `None` when something is wrong with it.
    pub(crate) fn resolve(
        &self,
        engine: &Capabilities,
        nodes: Option<usize>,
        findings: &mut Findings,
    ) -> Option<ProcessFault> {
        let node = node_target(&self.node, nodes, findings);
        if !engine.is_database() {
            findings.add(
                "no-processes",
                self.how_at,
                format!("the nodes of `{}` run no database whose processes could be meant", engine.name),
                "there are none",
                "remove this fault, or name a database under `database.engine`",
            );
            return None;
        }
        let only = match &self.only {
            Some(written) => Some(one_program(written, self.how, engine, findings)?),
            None => None,
        };
        Some(ProcessFault { node: node?, how: self.how, only })
    }
}

/// The node that is meant.
pub(crate) fn node_target(
    written: &Spanned<String>,
    nodes: Option<usize>,
    findings: &mut Findings,
) -> Option<NodeTarget> {
    match written.value.as_str() {
        "leader" => return Some(NodeTarget::Leader),
        "random" => return Some(NodeTarget::Random),
        "a-follower" if nodes != Some(1) => return Some(NodeTarget::AFollower),
        "a-follower" => {
            findings.add(
                "no-follower",
                written.at,
                "a single node has no follower",
                "there is none",
                "ask for at least 2 nodes, or aim at `leader`",
            );
            return None;
        }
        _ => {}
    }
    let count = nodes?;
    if let Some(number) = (0..count).find(|number| node_name(*number) == written.value) {
        return Some(NodeTarget::Named(number));
    }
    let last = node_name(count.saturating_sub(1));
    let nodes = if count == 1 { last } else { format!("n1 to {last}") };
    let role = nearest(&written.value, ["leader", "a-follower", "random"]);
    let near = role.map(|role| format!("did you mean `{role}`? ")).unwrap_or_default();
    findings.add(
        "unknown-node",
        written.at,
        format!("there is no node `{}`", shortened(&written.value)),
        "unknown",
        format!("{near}The nodes are {nodes}; the roles leader, a-follower and random"),
    );
    None
}

/// The program that is meant. One that the engine does not start itself cannot be stopped in order.
fn one_program(
    written: &Spanned<String>,
    how: ProcessDeed,
    engine: &Capabilities,
    findings: &mut Findings,
) -> Option<OneProgram> {
    let started = engine.processes();
    let mut known = started.clone();
    if how != ProcessDeed::Restart {
        let programs = engine.programs().into_iter().map(|program| (program, program));
        known.extend(programs.filter(|(program, _)| started.iter().all(|(_, other)| other != program)));
    }
    if let Some((name, program)) = known.iter().find(|(name, _)| *name == written.value) {
        return Some(OneProgram { name: (*name).to_owned(), program: (*program).to_owned() });
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let near = nearest(&written.value, names.iter().copied());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let help = match names.as_slice() {
        [] => "remove `only`: all processes of the node are one program's".to_owned(),
        names => format!("{near}There are: {}", listed(names)),
    };
    let what = match how {
        ProcessDeed::Restart => "starts no program",
        _ => "runs no program",
    };
    findings.add(
        "unknown-program",
        written.at,
        format!("`{}` {what} `{}`", engine.name, shortened(&written.value)),
        "unknown",
        help,
    );
    None
}

/// A process fault as it is written.
pub(crate) fn written(fault: &ProcessFault) -> String {
    let mut text = format!("of: {}, how: {}", fault.node, fault.how.word());
    match fault.how {
        ProcessDeed::Kill { restart_after: Some(after) } => {
            text.push_str(&format!(", restart: {{ after: {} }}", format_duration(after)));
        }
        ProcessDeed::Kill { restart_after: None } => text.push_str(", restart: never"),
        ProcessDeed::Stop | ProcessDeed::Restart => {}
    }
    if let Some(only) = &fault.only {
        text.push_str(&format!(", only: \"{}\"", only.name));
    }
    text
}
