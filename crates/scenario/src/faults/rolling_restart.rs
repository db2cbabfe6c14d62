//! A rolling restart: the database is restarted on one node after the other, as for an upgrade of its configuration.

use std::time::Duration;

use serde::Serialize;

use super::targets::{ElectedRole, Surroundings};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Nodes, Story, Takes, Written};
use crate::decode::{Decoder, Record};
use crate::language::{Field, Fields, Shape, optional, plain};
use crate::rejection::{Findings, Spot};
use crate::tree::Entry;
use crate::units::format_duration;

/// How long is waited between two nodes where nothing is said: time to catch up with what was missed.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) const KIND: FaultKind = FaultKind {
    name: "rolling-restart",
    noun: "rolling restart",
    summary: "the database is restarted node by node, the leader last",
    meaning: "the database is shut down and restarted on every node that has power, one after the other. The next node follows once every node answers clients again, the leader is known (on engines that have one) and `pause` has passed. The restart may last beyond its phase, until the last node answers. Evidence: on each node the old processes ended and new ones answered. If a node does not answer within 90s, the restart stops and has no receipt",
    examples: &[
        "- { rolling-restart: {}, at: 1s }",
        "- { rolling-restart: { order: leader-first, pause: 5s } }",
    ],
    story: Story { clause: Clause::Target("the database was restarted node by node"), nodes: Nodes::On },
    keys: &ROLLING_RESTART,
    key_meaning: "the database is restarted node by node",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
    read: |entry, decoder| decode(entry, decoder),
};

/// In which order nodes may be restarted.
pub(super) static ORDERS: &[&str] = &["leader-last", "leader-first", "by-name"];

/// The key that says which node follows which.
pub(super) const ORDER: Field = optional(
    "order",
    Shape::Word(ORDERS),
    "leader-last (default; the leader at that moment), leader-first, by-name (n1, n2, ...)",
);

/// The key that says how long is waited between two nodes.
pub(super) const PAUSE_KEY: Field = optional(
    "pause",
    Shape::Duration,
    "pause after a node answers again and before the next one is stopped, so that it can catch up; default 2s",
);

/// What to do about a `for`.
pub(super) const ENDS_BY_ITSELF: &str =
    "remove `for`: it ends when the database on the last node answers again";

static ROLLING_RESTART: Fields = plain("a rolling restart", &[ORDER, PAUSE_KEY]);

/// The database is restarted on one node after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RollingRestart {
    /// Which node follows which.
    pub order: RestartOrder,
    /// Between a node's first answer and the next node's stop.
    pub pause: Duration,
}

/// In which order nodes are restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartOrder {
    /// Whoever leads when all others have been restarted comes last.
    LeaderLast,
    /// Whoever leads at first comes first.
    LeaderFirst,
    /// By their numbers.
    ByName,
}

impl RestartOrder {
    /// The word in scenarios.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RestartOrder::LeaderLast => "leader-last",
            RestartOrder::LeaderFirst => "leader-first",
            RestartOrder::ByName => "by-name",
        }
    }
}

impl Facts for RollingRestart {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        Vec::new()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::NothingJudged("its nodes are down one at a time, each only while all others answer")
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::new("", Aim::AllNodes))
    }

    fn written(&self) -> String {
        format!("order: {}, pause: {}", self.order.word(), format_duration(self.pause))
    }
}

struct Document(RollingRestart);

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &ROLLING_RESTART)?;
    Some(Box::new(Document(RollingRestart::read(&record, decoder)?)))
}

impl RollingRestart {
    /// From the keys that say how, among others.
    pub(super) fn read(record: &Record<'_>, decoder: &mut Decoder) -> Option<RollingRestart> {
        let order = match record.get(ORDER.name) {
            None => RestartOrder::LeaderLast,
            Some(node) => match decoder.word(node, "order", ORDERS)?.value {
                "leader-last" => RestartOrder::LeaderLast,
                "leader-first" => RestartOrder::LeaderFirst,
                _ => RestartOrder::ByName,
            },
        };
        let pause = match record.get(PAUSE_KEY.name) {
            None => PAUSE,
            Some(node) => decoder.duration(node, "`pause`", "s")?.value,
        };
        Some(RollingRestart { order, pause })
    }
}

impl Written for Document {
    fn refuses_length(&self) -> Option<(&'static str, &'static str)> {
        Some(("a rolling restart takes no `for`", ENDS_BY_ITSELF))
    }

    fn resolve(&self, at: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        if !around.has_processes(at, findings) {
            return None;
        }
        Some(FaultAction::RollingRestart(self.0.clone()))
    }
}
