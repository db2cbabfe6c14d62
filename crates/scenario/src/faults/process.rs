//! Faults of a node's processes: killed, stopped for a time, restarted.

use std::time::Duration;

use capabilities::Capabilities;
use serde::Serialize;

use super::targets::{ElectedRole, NodeTarget, Surroundings};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Nodes, Story, Takes, Written};
use crate::decode::Decoder;
use crate::language::{Fields, NODE, Shape, optional, plain, required};
use crate::rejection::{Findings, Spanned, Spot};
use crate::tree::{Entry, Node, Value};
use crate::units::format_duration;
use crate::wording::{listed, nearest, shortened};

/// How long after a kill the processes are started again where nothing is said: what service managers are often told.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// Nothing shows that processes were gone for less.
const LEAST_RESTART: Duration = Duration::from_millis(100);

pub(super) const KIND: FaultKind = FaultKind {
    name: "process",
    noun: "process fault",
    summary: "a node's database processes are killed, stopped for a time (a zombie primary), or restarted; the node stays up",
    meaning: "the database's processes on a node are killed (and started again after 1s unless `restart` says otherwise; in pods the kubelet starts them again when it likes), stopped by SIGSTOP until the fault is healed, or shut down and restarted; the node keeps its power, its memory and its addresses",
    examples: &[
        "- { process: { of: leader, how: kill } }",
        "- { process: { of: leader, how: kill, restart: { after: 5s } }, at: 2s }",
        "- { process: { of: n2, how: kill, restart: never } }",
        "- { process: { of: leader, how: stop }, for: 10s }",
        "- { process: { of: random, how: restart }, at: 1s, every: 8s }",
    ],
    story: Story {
        clause: Clause::Target("processes of the database were killed or stopped"),
        nodes: Nodes::On,
    },
    keys: &PROCESS,
    key_meaning: "the database's processes on a node are killed, stopped or restarted",
    comes_and_goes: false,
    is_external: false,
    in_pods: true,
    read: |entry, decoder| decode(entry, decoder),
};

/// What may be done to processes.
static DEEDS: &[&str] = &["kill", "stop", "restart"];

/// A process fault.
static PROCESS: Fields = plain(
    "a process fault",
    &[
        required("of", NODE, "the affected node: by name (n1), or by role: leader, a-follower, random"),
        required(
            "how",
            Shape::Word(DEEDS),
            "kill (SIGKILL; the node, its volume and its memory stay), stop (SIGSTOP, then SIGCONT on healing), \
             restart (clean shutdown, then start)",
        ),
        optional(
            "restart",
            Shape::Either(&[Shape::Word(&["never"]), Shape::Map(&RESTART)]),
            "after a kill: when the node's service manager starts the processes again, or never; default { after: 1s \
             }",
        ),
        optional(
            "only",
            Shape::Text,
            "one of the programs that the node runs, by its name under `processes` or `find.programs` of the engine's \
             file; default all",
        ),
    ],
);

/// When processes are started again.
static RESTART: Fields =
    plain("a restart", &[required("after", Shape::Duration, "how long after the kill, 100ms or more")]);

/// What happens to the processes of the database on a node. Its host, its volume and its memory stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessFault {
    pub node: NodeTarget,
    /// What is done to them.
    pub how: ProcessDeed,
    /// The one program that it is done to; all of the node's where absent.
    pub only: Option<OneProgram>,
}

/// What is done to processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessDeed {
    /// SIGKILL.
    Kill {
        /// How long afterwards they are started again; never where absent.
        restart_after: Option<Duration>,
    },
    /// SIGSTOP, until the fault is healed.
    Stop,
    /// Stopped in order as the engine does it, and started again at once.
    Restart,
}

impl ProcessDeed {
    /// The word in scenarios.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ProcessDeed::Kill { .. } => "kill",
            ProcessDeed::Stop => "stop",
            ProcessDeed::Restart => "restart",
        }
    }
}

/// One program of several that a node runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OneProgram {
    /// Its name in scenarios.
    pub name: String,
    /// The file name of its program.
    pub program: String,
}

impl Facts for ProcessFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        self.node.elected().into_iter().collect()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::Processes(self)
    }

    fn form(&self) -> Option<Form<'_>> {
        let only = self.only.as_ref().map(|only| format!(" of {}", only.name)).unwrap_or_default();
        Some(Form { name: format!("{}{only}", self.how.word()), aim: Aim::Node(self.node) })
    }

    fn own_length(&self) -> Option<Duration> {
        match self.how {
            ProcessDeed::Kill { restart_after } => restart_after,
            ProcessDeed::Stop | ProcessDeed::Restart => None,
        }
    }

    fn written(&self) -> String {
        let mut text = format!("of: {}, how: {}", self.node, self.how.word());
        match self.how {
            ProcessDeed::Kill { restart_after: Some(after) } => {
                text.push_str(&format!(", restart: {{ after: {} }}", format_duration(after)));
            }
            ProcessDeed::Kill { restart_after: None } => text.push_str(", restart: never"),
            ProcessDeed::Stop | ProcessDeed::Restart => {}
        }
        if let Some(only) = &self.only {
            text.push_str(&format!(", only: \"{}\"", only.name));
        }
        text
    }
}

struct Document {
    node: Spanned<String>,
    how: ProcessDeed,
    /// After how long its killed processes are started again; the default stands where `how` does.
    after: Option<Spanned<Duration>>,
    only: Option<Spanned<String>>,
    /// Where `how` stands.
    how_at: Spot,
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &PROCESS)?;
    let node = record.get("of").and_then(|node| decoder.text(node, "a node"));
    let how = record.get("how").and_then(|node| decoder.word(node, "kind of process fault", DEEDS));
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
    let after = match restart {
        Some(written) => written?,
        None => Some(Spanned { value: RESTART_AFTER, at: how.at }),
    };
    let (deed, after) = match how.value {
        "kill" => (ProcessDeed::Kill { restart_after: after.as_ref().map(|after| after.value) }, after),
        "stop" => (ProcessDeed::Stop, None),
        _ => (ProcessDeed::Restart, None),
    };
    Some(Box::new(Document { node: node?, how: deed, after, only, how_at: how.at }))
}

/// When processes are started again, never as nothing; `None` when it is wrong.
fn decode_restart(node: &Node, decoder: &mut Decoder) -> Option<Option<Spanned<Duration>>> {
    let Value::Map(_) = node.value else {
        return decoder.word(node, "time of a restart", &["never"]).map(|_| None);
    };
    let record = decoder.record(node, &RESTART)?;
    let after = decoder.duration(record.get("after")?, "`after`", "s")?;
    if after.value < LEAST_RESTART {
        decoder.findings.add(
            "too-small",
            after.at,
            format!("a restart after {}", format_duration(after.value)),
            "too soon to observe the kill",
            format!("write {} or more", format_duration(LEAST_RESTART)),
        );
        return None;
    }
    Some(Some(after))
}

impl Written for Document {
    fn over_after(&self) -> Option<&Spanned<Duration>> {
        self.after.as_ref()
    }

    fn refuses_length(&self) -> Option<(&'static str, &'static str)> {
        let help = match self.how {
            ProcessDeed::Kill { .. } => {
                "write how long the processes are gone with `restart: { after: 10s }` in `process`, or `restart: \
                 never`"
            }
            ProcessDeed::Restart => "remove `for`: it ends when the database accepts connections again",
            ProcessDeed::Stop => return None,
        };
        Some(("a kill or restart of processes takes no `for`", help))
    }

    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let (node, engine) = (around.node(&self.node, findings), around.engine);
        if !around.has_processes(self.how_at, findings) {
            return None;
        }
        let only = match (around.on.kubernetes(), &self.only) {
            (Some(_), written) => Some(self.in_a_pod(written.as_ref(), engine, findings)?),
            (None, Some(written)) => Some(one_program(written, self.how, engine, findings)?),
            (None, None) => None,
        };
        Some(FaultAction::Process(ProcessFault { node: node?, how: self.how, only }))
    }
}

impl Document {
    /// The database's program where a node runs those of a cluster beside it, which starts again what has ended.
    fn in_a_pod(
        &self,
        only: Option<&Spanned<String>>,
        engine: &Capabilities,
        findings: &mut Findings,
    ) -> Option<OneProgram> {
        let mut refuse = |at: Spot, message: &str, help: &str| {
            findings.add("no-pods", at, message, "not in pods", help);
        };
        let why = match self.how {
            ProcessDeed::Restart => "a pod is not restarted in order: its cluster starts and ends it",
            ProcessDeed::Kill { restart_after: None } => {
                "the kubelet starts a container that has ended again"
            }
            ProcessDeed::Kill { .. } | ProcessDeed::Stop => "",
        };
        if !why.is_empty() {
            refuse(self.how_at, why, "write `how: kill` without `restart`, or `how: stop`");
            return None;
        }
        let program = engine.pod_program.ok()?;
        match only.filter(|only| only.value != program) {
            None => Some(OneProgram { name: program.to_owned(), program: program.to_owned() }),
            Some(other) => {
                refuse(
                    other.at,
                    &format!("a pod of the engine `{}` runs `{program}` alone", engine.name),
                    "remove `only`",
                );
                None
            }
        }
    }
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
        [] => "remove `only`: the node runs only one program".to_owned(),
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
