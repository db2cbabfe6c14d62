//! Live migration: a node moves to another host while it runs.

use std::time::Duration;

use serde::Serialize;

use super::targets::{ElectedRole, NodeTarget, Surroundings};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Need, Nodes, Story, Takes, Written};
use crate::decode::Decoder;
use crate::language::{Fields, NODE, PLACE, Shape, optional, plain, required};
use crate::places::word;
use crate::quoted::quoted;
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{Level, Place};
use crate::tree::Entry;
use crate::units::format_duration;

/// Less memory than that no program runs in.
const LEAST_MEMORY_BYTES: u64 = 1 << 20;
/// Longest time for which a node may be made to stand still.
const MOST_STUN: Duration = Duration::from_secs(600);
/// Rounds after which hypervisors give up copying (Xen allows 29).
const ROUNDS: u64 = 30;
const MOST_ROUNDS: u64 = 1_000;

pub(super) const KIND: FaultKind = FaultKind {
    name: "migrate",
    noun: "migration",
    summary: "live migration: a node's memory is copied to another host, then the node is stunned and continues there",
    meaning: "the node's memory is copied to another host over the network while the node runs. Memory that it dirties meanwhile is copied again, round after round, until little is left. For the last round the node is stunned: its processes stop, and no packet leaves or reaches it. Then it continues on the other host with its address and its connections. Evidence: its processes stopped, it answered nothing meanwhile, its packets go to the other host, and a connection of the lab survived",
    examples: &[
        "- { migrate: { of: leader } }",
        "- { migrate: { of: random, memory: 256MiB }, every: 20s }",
        "- { migrate: { of: n1, to: r1/h2, stun: 2s, max-rounds: 5, not-converging: stun, clock: guest }, at: 2s }",
    ],
    story: Story { clause: Clause::Target("a node was moved live"), nodes: Nodes::On },
    keys: &MIGRATE,
    key_meaning: "a node moves to another host while it runs",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
    read: |entry, decoder| decode(entry, decoder),
};

/// Whose clock a node reads.
static CLOCKS: &[&str] = &["guest", "host"];

/// What becomes of a migration that does not converge.
static NOT_CONVERGING: &[&str] = &["give-up", "stun"];

static MIGRATE: Fields = plain(
    "a migration",
    &[
        required("of", NODE, "the node to move: by name (n1), or by role: leader, a-follower, random"),
        optional(
            "to",
            PLACE,
            "the destination host; by default the platform chooses as at a restart: no rule broken, then the fewest nodes",
        ),
        optional(
            "memory",
            Shape::Size,
            "memory of its virtual machine, all of which is copied once, 1MiB or more; default the memory of its \
             processes",
        ),
        optional(
            "stun",
            Shape::Duration,
            "shortest stun, at most 10m; by default the stun lasts as long as the last round, which starts once it \
             is expected to take 300ms or less",
        ),
        optional(
            "max-rounds",
            Shape::Count { least: 1, most: MOST_ROUNDS },
            "rounds of copying after which the migration counts as not converging; default 30",
        ),
        optional(
            "not-converging",
            Shape::Word(NOT_CONVERGING),
            "what happens if the node dirties memory faster than the network copies it: give-up (default; the node \
             stays, and the migration has no receipt), or stun (the node is stunned until the rest is copied)",
        ),
        optional(
            "clock",
            Shape::Word(CLOCKS),
            "host (default): the node reads the host's clock, which keeps running; guest: its wall clock stops \
             during the stun and lags until the end of the phase, when a time service corrects it",
        ),
    ],
);

/// A node moves to another host while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MigrationFault {
    pub node: NodeTarget,
    /// The host that it moves to; the platform's choice when absent.
    pub to: Option<Place>,
    /// Its memory; what its processes hold when absent.
    pub memory_bytes: Option<u64>,
    /// How long it stands still at least.
    pub stun: Duration,
    /// Rounds of copying.
    pub max_rounds: u32,
    /// Whether one that does not converge is stunned for as long as it takes, instead of staying.
    pub moves_anyway: bool,
    /// Whether its wall clock stands still with it, and lags afterwards.
    pub has_guest_clock: bool,
}

impl Facts for MigrationFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        self.node.elected().into_iter().collect()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::Pause(self)
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::new("", Aim::Node(self.node)))
    }

    fn written(&self) -> String {
        let mut text = format!("of: {}", self.node);
        if let Some(to) = &self.to {
            text.push_str(&format!(", to: {}", quoted(&to.to_string())));
        }
        if let Some(bytes) = self.memory_bytes {
            text.push_str(&format!(", memory: {bytes}B"));
        }
        if !self.stun.is_zero() {
            text.push_str(&format!(", stun: {}", format_duration(self.stun)));
        }
        text.push_str(&format!(", max-rounds: {}", self.max_rounds));
        if self.moves_anyway {
            text.push_str(", not-converging: stun");
        }
        if self.has_guest_clock {
            text.push_str(", clock: guest");
        }
        text
    }

    fn needs(&self) -> Option<Need> {
        self.has_guest_clock.then_some(Need::Clocks)
    }
}

struct Document {
    node: Spanned<String>,
    to: Option<Spanned<String>>,
    memory_bytes: Option<u64>,
    stun: Duration,
    max_rounds: u32,
    moves_anyway: bool,
    has_guest_clock: bool,
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &MIGRATE)?;
    let node = record.get("of").and_then(|node| decoder.text(node, "a node"));
    let to = record.get("to").and_then(|node| decoder.text(node, "a host"));
    let memory = record.get("memory").and_then(|node| decoder.size(node, "`memory`", "MiB"));
    if let Some(memory) = memory.as_ref().filter(|memory| memory.value < LEAST_MEMORY_BYTES) {
        decoder.findings.add(
            "too-small",
            memory.at,
            format!("`memory` of {} bytes is too small", memory.value),
            "too little",
            "write 1MiB or more, or remove `memory`: then it is what the node's processes hold",
        );
    }
    let stun = record.get("stun").and_then(|node| decoder.duration(node, "`stun`", "ms"));
    if let Some(stun) = stun.as_ref().filter(|stun| stun.value > MOST_STUN) {
        decoder.findings.add(
            "too-large",
            stun.at,
            format!("a `stun` of {} is too long", format_duration(stun.value)),
            "too long",
            "write 10m or less; `process: { how: stop }` stops a node for longer",
        );
    }
    let rounds = record.get("max-rounds");
    let rounds = rounds.and_then(|node| decoder.count(node, "`max-rounds`", 1, MOST_ROUNDS));
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.value);
    let clock = record.get("clock").and_then(|node| decoder.word(node, "clock", CLOCKS));
    let otherwise = record.get("not-converging");
    let otherwise = otherwise.and_then(|node| decoder.word(node, "way out", NOT_CONVERGING));
    Some(Box::new(Document {
        node: node?,
        to,
        memory_bytes: memory.map(|memory| memory.value),
        stun: stun.map_or(Duration::ZERO, |stun| stun.value),
        max_rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        moves_anyway: otherwise.is_some_and(|word| word.value == "stun"),
        has_guest_clock: clock.is_some_and(|word| word.value == "guest"),
    }))
}

impl Written for Document {
    fn refuses_length(&self) -> Option<(&'static str, &'static str)> {
        Some((
            "a migration takes no `for`: it ends when the node runs on the other host",
            "remove `for`; `stun: 2s` in `migrate` sets the shortest stun",
        ))
    }

    fn resolve(
        &self,
        kind_at: Spot,
        around: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Option<FaultAction> {
        let node = around.node(&self.node, findings);
        if !around.engine.is_database() {
            findings.add(
                "no-processes",
                kind_at,
                format!("the nodes of `{}` run no database that could be moved", around.engine.name),
                "there is none",
                "remove this fault, or name a database under `database.engine`",
            );
            return None;
        }
        if around.hosts.len() < 2 {
            findings.add(
                "no-other-host",
                kind_at,
                "the site has a single host, so no node can move",
                "nowhere to go",
                "give the site another host: `hosts: 2`",
            );
            return None;
        }
        let to = match &self.to {
            Some(written) => Some(host(written, around, findings)?),
            None => None,
        };
        Some(FaultAction::Migrate(MigrationFault {
            node: node?,
            to,
            memory_bytes: self.memory_bytes,
            stun: self.stun,
            max_rounds: self.max_rounds,
            moves_anyway: self.moves_anyway,
            has_guest_clock: self.has_guest_clock,
        }))
    }
}

/// The host of that name, and no wider place.
fn host(written: &Spanned<String>, around: &Surroundings<'_>, findings: &mut Findings) -> Option<Place> {
    let place = around.places.find(written, None, findings)?;
    if place.level == Level::Host {
        return Some(place);
    }
    findings.add(
        "wrong-level",
        written.at,
        format!("`{place}` is a {}, and a node can only move to a host", word(place.level)),
        "not a host",
        "name a host within it, or remove `to`: the platform chooses one",
    );
    None
}
