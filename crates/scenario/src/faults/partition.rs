//! Partitions: nothing gets through between some.

use serde::Serialize;

use super::targets::{ElectedRole, FaultTarget, Surroundings, both, end, one_way};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Nodes, Story, Takes, Written};
use crate::decode::{Decoder, Record};
use crate::language::{BETWEEN, FROM, Fields, PLACE, Shape, TO, optional};
use crate::network::{EndsDocument, decode_ends};
use crate::rejection::{Findings, Spanned, Spot};
use crate::tree::Entry;
use crate::wording::listed;

/// Fewest nodes that can be split with one of them in a part of its own, or in a ring.
const LEAST_SPLIT: usize = 3;

pub(super) const KIND: FaultKind = FaultKind {
    name: "partition",
    noun: "partition",
    summary: "no packet gets through: around a place, between two, one way, or nodes in halves, on a bridge, in a ring",
    meaning: "no packet gets through: around a place, between two places or one way, or among the database's nodes (halves, bridge, ring). Evidence: of at least 500 datagrams per direction (200 where it flaps), sent throughout the fault, none arrives, and the network counts no packet that passed",
    examples: &[
        "- { partition: { isolate: leader }, at: 2s, for: 15s }",
        "- { partition: { from: dc1, to: dc2 } }",
        "- { partition: { between: [dc1, dc2], answer: reset } }",
        "- { partition: { halves: nodes } }",
        "- { partition: { bridge: leader } }",
        "- { partition: { ring: nodes } }",
        "- { partition: { between: [dc1, dc2] }, for: 20s, flap: { down: 1s, up: 2s } }",
    ],
    story: Story { clause: Clause::Target("a partition began"), nodes: Nodes::Around },
    keys: &PARTITION,
    key_meaning: "nothing gets through",
    comes_and_goes: true,
    is_external: false,
    in_pods: true,
    read: |entry, decoder| decode(entry, decoder),
};

/// What becomes of packets that a partition stops.
const ANSWERS: &[&str] = &["silence", "reset"];
/// Who is split where it is not a place.
const WHOSE: &[&str] = &["nodes"];

/// A partition.
static PARTITION: Fields = Fields {
    what: "a partition",
    fields: &[
        optional(
            "isolate",
            PLACE,
            "a place, or the host of a role: cut off from everything else, including clients",
        ),
        BETWEEN,
        FROM,
        TO,
        optional(
            "halves",
            Shape::Word(WHOSE),
            "the database's nodes in two halves that cannot reach each other",
        ),
        optional("bridge", PLACE, "two halves, and the nodes of this place reach both"),
        optional(
            "ring",
            Shape::Word(WHOSE),
            "each node reaches a majority of the nodes, each a different one",
        ),
        optional(
            "answer",
            Shape::Word(ANSWERS),
            "what happens to a blocked packet: silence (dropped) or an immediate reset; default silence",
        ),
    ],
    exactly_one_of: &["isolate", "between", "from", "halves", "bridge", "ring"],
    at_least_one_of: &[],
    pair: Some(("from", "to")),
};

/// Nothing gets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionFault {
    /// Between whom.
    pub shape: PartitionShape,
    /// What becomes of packets that do not get through.
    pub answer: BlockAnswer,
}

/// Who is cut off from whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionShape {
    /// A place from everything outside it, clients too, both ways.
    Isolate(FaultTarget),
    /// What leaves one place never reaches another; the way back is open.
    OneWay {
        /// Where packets leave.
        from: FaultTarget,
        /// Where they do not arrive.
        to: FaultTarget,
    },
    /// Two places from each other.
    Between(FaultTarget, FaultTarget),
    /// The database's nodes in two halves, as even as they can be; which node is where, the seed decides. Clients reach all.
    Halves,
    /// The same without the nodes of this place, which see both halves.
    Bridge(FaultTarget),
    /// Each of the database's nodes hears a majority of them, and no two the same majority. Clients reach all.
    Ring,
}

/// What becomes of packets that do not get through a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockAnswer {
    /// They vanish, and their senders wait.
    #[default]
    Silence,
    /// Their senders get an error at once: a reset for TCP.
    Reset,
}

impl Facts for PartitionFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        let ends = match &self.shape {
            PartitionShape::Isolate(target) | PartitionShape::Bridge(target) => vec![target],
            PartitionShape::OneWay { from: one, to: other } | PartitionShape::Between(one, other) => {
                vec![one, other]
            }
            PartitionShape::Halves | PartitionShape::Ring => Vec::new(),
        };
        ends.into_iter().filter_map(FaultTarget::elected).collect()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::Reach(&self.shape)
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(match &self.shape {
            PartitionShape::Isolate(target) => Form::new("isolate", Aim::Target(target)),
            PartitionShape::OneWay { from, to } => Form::new("one way", Aim::Between(from, to)),
            PartitionShape::Between(one, other) => Form::new("both ways", Aim::Between(one, other)),
            PartitionShape::Halves => Form::new("halves", Aim::AllNodes),
            PartitionShape::Bridge(_) => Form::new("bridge", Aim::AllNodes),
            PartitionShape::Ring => Form::new("ring", Aim::AllNodes),
        })
    }

    fn written(&self) -> String {
        let shape = match &self.shape {
            PartitionShape::Isolate(target) => format!("isolate: {}", end(target)),
            PartitionShape::OneWay { from, to } => one_way(from, to),
            PartitionShape::Between(one, other) => both(one, other),
            PartitionShape::Halves => "halves: nodes".to_owned(),
            PartitionShape::Bridge(target) => format!("bridge: {}", end(target)),
            PartitionShape::Ring => "ring: nodes".to_owned(),
        };
        let answer = match self.answer {
            BlockAnswer::Silence => "silence",
            BlockAnswer::Reset => "reset",
        };
        format!("{shape}, answer: {answer}")
    }
}

struct Document {
    shape: ShapeDocument,
    answer: BlockAnswer,
}

enum ShapeDocument {
    Isolate(Spanned<String>),
    Ends(EndsDocument),
    Halves(Spot),
    Bridge(Spanned<String>),
    Ring(Spot),
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &PARTITION)?;
    let answer = record.get("answer").and_then(|node| decoder.word(node, "answer", ANSWERS));
    let answer = match answer {
        Some(answer) if answer.value == "reset" => BlockAnswer::Reset,
        _ => BlockAnswer::Silence,
    };
    Some(Box::new(Document { shape: decode_shape(&record, decoder)?, answer }))
}

fn decode_shape(record: &Record<'_>, decoder: &mut Decoder) -> Option<ShapeDocument> {
    let (name, entry) = record.first_of(PARTITION.exactly_one_of)?;
    let node = &entry.value;
    Some(match name {
        "isolate" => ShapeDocument::Isolate(decoder.text(node, "a place")?),
        "bridge" => ShapeDocument::Bridge(decoder.text(node, "a place")?),
        "halves" => ShapeDocument::Halves(decoder.word(node, "group to split", WHOSE)?.at),
        "ring" => ShapeDocument::Ring(decoder.word(node, "group to split", WHOSE)?.at),
        _ => ShapeDocument::Ends(decode_ends(record, decoder)?),
    })
}

impl Written for Document {
    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let shape = around.shape(&self.shape, findings)?;
        Some(FaultAction::Partition(PartitionFault { shape, answer: self.answer }))
    }
}

impl Surroundings<'_> {
    fn shape(&self, shape: &ShapeDocument, findings: &mut Findings) -> Option<PartitionShape> {
        match shape {
            ShapeDocument::Isolate(written) => {
                let target = self.end(written, findings)?;
                if let FaultTarget::Place(place) = &target
                    && self.hosts.iter().all(|host| host.is_in(place))
                {
                    findings.add(
                        "nothing-outside",
                        written.at,
                        format!(
                            "`{place}` contains every host of the site, so there is nothing to isolate it from"
                        ),
                        "the whole site",
                        "name a smaller place",
                    );
                    return None;
                }
                Some(PartitionShape::Isolate(target))
            }
            ShapeDocument::Ends(ends) => {
                let (from, to) = self.ends(ends, "a partition", findings)?;
                Some(if ends.both_ways {
                    PartitionShape::Between(from, to)
                } else {
                    PartitionShape::OneWay { from, to }
                })
            }
            ShapeDocument::Halves(at) => {
                self.enough_nodes("halves", *at, findings).map(|()| PartitionShape::Halves)
            }
            ShapeDocument::Ring(at) => {
                self.enough_nodes("ring", *at, findings).map(|()| PartitionShape::Ring)
            }
            ShapeDocument::Bridge(written) => self.bridge(written, findings).map(PartitionShape::Bridge),
        }
    }

    fn enough_nodes(&self, name: &str, at: Spot, findings: &mut Findings) -> Option<()> {
        let Some(count) = self.nodes.as_ref().map(|nodes| nodes.len()).filter(|count| *count < LEAST_SPLIT)
        else {
            return Some(());
        };
        let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        findings.add(
            "too-few-nodes",
            at,
            format!(
                "`{name}` splits the database's nodes and needs {LEAST_SPLIT} of them; there are {nodes}"
            ),
            "too few for this split",
            format!("ask for {LEAST_SPLIT} nodes or more, or cut places off with `isolate` or `between`"),
        );
        None
    }

    /// What stands on the bridge must hold a node and leave two to be split.
    fn bridge(&self, written: &Spanned<String>, findings: &mut Findings) -> Option<FaultTarget> {
        let target = self.end(written, findings)?;
        self.enough_nodes("bridge", written.at, findings)?;
        let (FaultTarget::Place(place), Some(nodes)) = (&target, &self.nodes) else { return Some(target) };
        let on = nodes.iter().filter(|host| host.is_in(place)).count();
        if on == 0 {
            let paths: Vec<String> = nodes.iter().map(|host| host.path().join("/")).collect();
            findings.add(
                "no-node",
                written.at,
                format!("no node of the database starts in `{place}`, so there is no bridge"),
                "holds no node",
                format!("name a place that holds a node: {}", listed(&paths)),
            );
            return None;
        }
        if nodes.len() - on < 2 {
            findings.add(
                "too-few-nodes",
                written.at,
                format!("with the nodes of `{place}` as the bridge, too few are left to be split in halves"),
                "holds too many nodes",
                "name a smaller place, or ask for more nodes",
            );
            return None;
        }
        Some(target)
    }
}
