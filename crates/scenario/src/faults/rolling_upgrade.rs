//! A rolling upgrade: the database is restarted with programs of another version on one node after the other.

use serde::Serialize;

use super::rolling_restart::{ENDS_BY_ITSELF, ORDER, PAUSE_KEY};
use super::targets::{ElectedRole, Surroundings};
use super::{Clause, Facts, FaultAction, FaultKind, Form, Nodes, RollingRestart, Story, Takes, Written};
use crate::decode::Decoder;
use crate::language::{Fields, Shape, plain, required};
use crate::quoted::quoted;
use crate::rejection::{Findings, Spot};
use crate::release::{self, Release};
use crate::tree::Entry;

pub(super) const KIND: FaultKind = FaultKind {
    name: "rolling-upgrade",
    noun: "rolling upgrade",
    summary: "the database is upgraded node by node, the leader last",
    meaning: "the database is shut down on every node that has power, one after the other, and started with programs of another version on the data that are there. The next node follows as in a rolling restart. A version is found on the machine, or else installed. Which version may follow which is the database's business; some take another minor version only, which is refused before the run where it is known. A node keeps its new programs for the rest of the run. Evidence: on each node the old processes ended, new ones answered, and the database's processes run from the folder of the new programs",
    examples: &[
        "- { rolling-upgrade: { to: \"3.5\" }, at: 1s }",
        "- { rolling-upgrade: { to: /opt/newer/bin, order: leader-first, pause: 5s } }",
    ],
    story: Story { clause: Clause::Target("the database was upgraded node by node"), nodes: Nodes::On },
    keys: &ROLLING_UPGRADE,
    key_meaning: "the database is upgraded node by node",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
    read: |entry, decoder| decode(entry, decoder),
};

static ROLLING_UPGRADE: Fields = plain(
    "a rolling upgrade",
    &[
        required(
            "to",
            Shape::Text,
            "the numbers that the new version begins with, such as 3.5, or the absolute path of the folder with its programs",
        ),
        ORDER,
        PAUSE_KEY,
    ],
);

/// The database is upgraded on one node after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RollingUpgrade {
    /// To which programs.
    pub to: Release,
    /// How its nodes are restarted with them.
    pub restart: RollingRestart,
}

impl Facts for RollingUpgrade {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        self.restart.elected_roles()
    }

    fn takes(&self) -> Takes<'_> {
        self.restart.takes()
    }

    fn form(&self) -> Option<Form<'_>> {
        self.restart.form()
    }

    fn written(&self) -> String {
        format!("to: {}, {}", quoted(self.to.written()), self.restart.written())
    }
}

struct Document(RollingUpgrade);

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &ROLLING_UPGRADE)?;
    let to = record.get("to").and_then(|node| release::either(node, decoder));
    let restart = RollingRestart::read(&record, decoder);
    Some(Box::new(Document(RollingUpgrade { to: to?, restart: restart? })))
}

impl Written for Document {
    fn refuses_length(&self) -> Option<(&'static str, &'static str)> {
        Some(("a rolling upgrade takes no `for`", ENDS_BY_ITSELF))
    }

    fn resolve(&self, at: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        if !around.has_processes(at, findings) {
            return None;
        }
        Some(FaultAction::RollingUpgrade(self.0.clone()))
    }
}
