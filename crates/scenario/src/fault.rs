//! An element of a phase's `faults`: what is broken, and to whom.
//!
//! Owns reading it and resolving whom it is aimed at; when it may strike is in `schedule`.

use std::time::Duration;

use capabilities::Capabilities;

use crate::catalogue::ROLES;
use crate::decode::{Decoder, Record};
use crate::disks::{self, DiskFaultDocument, DiskSurroundings, FoundDisk};
use crate::language::{ANSWERS, FLAP, NETWORK, PARTITION, WHOSE};
use crate::language::{FAULT, TARGET};
use crate::network::{EndsDocument, Of, decode_conditions, decode_ends};
use crate::places::Places;
use crate::pressure::{self, PressureDocument};
use crate::processes::{self, ProcessDocument};
use crate::receipts::{self, OfAllFaults, Share};
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{
    BlockAnswer, Conditions, DiskTarget, FaultAction, FaultTarget, Flap, Host, Level, PartitionShape, Place,
};
use crate::tree::{Entry, Node};
use crate::units::format_duration;
use crate::wording::{listed, nearest};

/// Shortest time that a flapping fault stands, or stays away.
const LEAST_FLAP: Duration = Duration::from_millis(100);
/// Fewest nodes that can be split with one of them in a part of its own, or in a ring.
const LEAST_SPLIT: usize = 3;

/// A fault as written.
pub(crate) struct FaultDocument {
    action: ActionDocument,
    /// Where its kind stands.
    pub(crate) kind_at: Spot,
    /// Where what loses power stands; the kind, where it is another fault.
    pub(crate) target_at: Spot,
    /// When it strikes, from the start of its phase.
    pub(crate) at: Option<Spanned<Duration>>,
    /// How long it stands.
    pub(crate) length: Option<Spanned<Duration>>,
    /// How often it strikes again in its phase.
    pub(crate) every: Option<Spanned<Duration>>,
    /// Whether it comes and goes.
    pub(crate) flap: Option<Flap>,
}

enum ActionDocument {
    PowerOff { level: Level, target: Spanned<String> },
    Network { ends: EndsDocument, conditions: Conditions, shares: Vec<Share> },
    Partition { shape: ShapeDocument, answer: BlockAnswer },
    Disk(DiskFaultDocument),
    Process(ProcessDocument),
    Pressure(PressureDocument),
}

enum ShapeDocument {
    Isolate(Spanned<String>),
    Ends(EndsDocument),
    Halves(Spot),
    Bridge(Spanned<String>),
    Ring(Spot),
}

/// Reads a fault.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<FaultDocument> {
    let record = decoder.record(node, &FAULT)?;
    let at = record.get("at").and_then(|node| decoder.duration(node, "`at`", "s"));
    let length = record.get("for").and_then(|node| decoder.duration(node, "`for`", "s"));
    if let Some(length) = length.as_ref().filter(|length| length.value.is_zero()) {
        decoder.findings.add(
            "too-small",
            length.at,
            "a fault cannot last 0s",
            "too short",
            "write 1s or more",
        );
    }
    let every = record.get("every").and_then(|node| decoder.duration(node, "`every`", "s"));
    let (name, entry) = record.first_of(FAULT.exactly_one_of)?;
    let action = match name {
        "network" => decode_network(entry, decoder)?,
        "partition" => decode_partition(entry, decoder)?,
        "disk" => ActionDocument::Disk(disks::decode_fault(entry, decoder)?),
        "process" => ActionDocument::Process(processes::decode_fault(entry, decoder)?),
        "pressure" => ActionDocument::Pressure(pressure::decode_fault(entry, decoder)?),
        _ => decode_power_off(entry, decoder)?,
    };
    let target_at = match &action {
        ActionDocument::PowerOff { target, .. } => target.at,
        _ => entry.key_at,
    };
    let flap = record.get("flap").and_then(|node| decode_flap(node, decoder));
    let steady = match &action {
        ActionDocument::PowerOff { .. } => Some(("a power-off does", "power-offs")),
        ActionDocument::Disk(_) => Some(("a disk fault does", "disk faults")),
        ActionDocument::Process(_) => Some(("a process fault does", "process faults")),
        ActionDocument::Pressure(_) => Some(("a pressure fault does", "pressure faults")),
        _ => None,
    };
    if let (Some((one, several)), Some(flap_at)) = (steady, record.key_at("flap")) {
        decoder.findings.add(
            "bad-flap",
            flap_at,
            format!("{one} not flap"),
            "not of this fault",
            format!("remove `flap`, or write several {several} with `at` and `for`"),
        );
    }
    if let (ActionDocument::Process(document), Some(length_at)) = (&action, record.key_at("for"))
        && let Some(help) = document.takes_no_length()
    {
        let message = "a kill or a restart of processes is over by itself, and takes no `for`";
        decoder.findings.add("bad-length", length_at, message, "not of this fault", help);
    }
    if let (ActionDocument::Network { conditions, .. }, Some(flap_at)) = (&action, record.key_at("flap")) {
        check_flapping(conditions, flap_at, decoder);
    }
    Some(FaultDocument { action, kind_at: entry.key_at, target_at, at, length, every, flap })
}

/// What is seen only by filling a link, or by a series of packets, is not seen in turns.
fn check_flapping(conditions: &Conditions, flap_at: Spot, decoder: &mut Decoder) {
    let unseen = [
        ("rate", conditions.rate_bits_per_s.is_some()),
        ("queue", conditions.queue.is_some()),
        ("mtu", conditions.mtu_bytes.is_some()),
    ];
    if let Some((name, _)) = unseen.into_iter().find(|(_, is_given)| *is_given) {
        decoder.findings.add(
            "no-receipt",
            flap_at,
            format!("`{name}` cannot be shown to come and go: looking at it takes longer than a turn"),
            "not with this condition",
            format!("remove `flap`, and write several faults with `at` and `for`; or remove `{name}`"),
        );
    }
}

fn decode_flap(node: &Node, decoder: &mut Decoder) -> Option<Flap> {
    let record = decoder.record(node, &FLAP)?;
    let mut time = |name: &'static str| {
        let time = record.get(name).and_then(|node| decoder.duration(node, &format!("`{name}`"), "s"))?;
        if time.value < LEAST_FLAP {
            decoder.findings.add(
                "too-small",
                time.at,
                format!("a network that changes every {}", format_duration(time.value)),
                "too short",
                format!("write {} or more: shorter than that nothing shows it", format_duration(LEAST_FLAP)),
            );
        }
        Some(time.value)
    };
    let (down, up) = (time("down"), time("up"));
    Some(Flap { down: down?, up: up? })
}

fn decode_power_off(entry: &Entry, decoder: &mut Decoder) -> Option<ActionDocument> {
    let target = decoder.record(&entry.value, &TARGET)?;
    let (level, place) = target.first_of(TARGET.exactly_one_of)?;
    let level = match level {
        "region" => Level::Region,
        "zone" => Level::Zone,
        "rack" => Level::Rack,
        _ => Level::Host,
    };
    let target = decoder.text(&place.value, "the fault's target")?;
    Some(ActionDocument::PowerOff { level, target })
}

fn decode_network(entry: &Entry, decoder: &mut Decoder) -> Option<ActionDocument> {
    let record = decoder.record(&entry.value, &NETWORK)?;
    let conditions = decode_conditions(&record, Of::Fault, decoder);
    let shares = ["loss", "duplicate", "reorder", "corrupt"].into_iter();
    let shares = shares.filter_map(|name| Some(Share { name, at: record.key_at(name)? })).collect();
    Some(ActionDocument::Network { ends: decode_ends(&record, decoder)?, conditions, shares })
}

fn decode_partition(entry: &Entry, decoder: &mut Decoder) -> Option<ActionDocument> {
    let record = decoder.record(&entry.value, &PARTITION)?;
    let answer = record.get("answer").and_then(|node| decoder.word(node, "answer", ANSWERS));
    let answer = match answer {
        Some(answer) if answer.value == "reset" => BlockAnswer::Reset,
        _ => BlockAnswer::Silence,
    };
    Some(ActionDocument::Partition { shape: decode_shape(&record, decoder)?, answer })
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

/// What faults are held against.
pub(crate) struct Surroundings<'s> {
    /// Every place of the site.
    pub(crate) places: &'s Places,
    /// Every host of the site.
    pub(crate) hosts: &'s [Host],
    /// The hosts the database's nodes start on; `None` when the database could not be read.
    pub(crate) nodes: Option<Vec<&'s Host>>,
    /// The disks.
    pub(crate) disks: DiskSurroundings<'s>,
    /// The engine.
    pub(crate) engine: &'static Capabilities,
    /// What is between the places.
    pub(crate) network: receipts::Network<'s>,
}

impl FaultDocument {
    /// What it does to packets.
    pub(crate) fn conditions(&self) -> Option<&Conditions> {
        match &self.action {
            ActionDocument::Network { conditions, .. } => Some(conditions),
            _ => None,
        }
    }

    /// Whether it is over by itself, so that nobody says how long it stands.
    pub(crate) fn takes_no_length(&self) -> bool {
        matches!(&self.action, ActionDocument::Process(document) if document.takes_no_length().is_some())
    }

    /// Refuses what could not be shown of the fault, which stands for so long.
    pub(crate) fn check_receipt(
        &self,
        action: &FaultAction,
        length: Duration,
        (network, all): (receipts::Network<'_>, OfAllFaults),
        findings: &mut Findings,
    ) {
        let down =
            self.flap.map_or(1.0, |flap| flap.down.as_secs_f64() / (flap.down + flap.up).as_secs_f64());
        if let ActionDocument::Network { shares, .. } = &self.action {
            receipts::check(shares, action, length.mul_f64(down.min(1.0)), (network, all), findings);
        }
    }
}

impl Surroundings<'_> {
    /// What the fault does, every name resolved; `None` when something is wrong with it.
    pub(crate) fn resolve(&self, fault: &FaultDocument, findings: &mut Findings) -> Option<FaultAction> {
        match &fault.action {
            ActionDocument::PowerOff { level, target } => {
                let target = self.target(target, *level, Some(*level), findings)?;
                Some(FaultAction::PowerOff { target })
            }
            ActionDocument::Network { ends, conditions, .. } => {
                let (from, to) = self.ends(ends, "a network fault", findings)?;
                let back = ends.both_ways.then(|| (to.clone(), from.clone()));
                let directions = std::iter::once((from, to)).chain(back).collect();
                Some(FaultAction::Network { directions, conditions: conditions.clone() })
            }
            ActionDocument::Partition { shape, answer } => {
                let shape = self.shape(shape, findings)?;
                Some(FaultAction::Partition { shape, answer: *answer })
            }
            ActionDocument::Disk(document) => {
                let (found, defect) = self.disks.resolve(document, fault.kind_at, findings)?;
                let target = match found {
                    FoundDisk::Named(host, disk) => DiskTarget::Named { host, disk },
                    FoundDisk::Of { role, cache } => {
                        DiskTarget::Of { node: self.target(&role, Level::Host, None, findings)?, cache }
                    }
                };
                Some(FaultAction::Disk { target, defect })
            }
            ActionDocument::Pressure(document) => {
                let count = self.nodes.as_ref().map(Vec::len);
                document.resolve(count, findings).map(FaultAction::Pressure)
            }
            ActionDocument::Process(document) => {
                let count = self.nodes.as_ref().map(Vec::len);
                document.resolve(self.engine, count, findings).map(FaultAction::Process)
            }
        }
    }

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
                            "every host of the site stands in `{place}`: there is nothing to isolate it from"
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
        let Some(count) = self.nodes.as_ref().map(Vec::len).filter(|count| *count < LEAST_SPLIT) else {
            return Some(());
        };
        let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        findings.add(
            "too-few-nodes",
            at,
            format!(
                "`{name}` splits the database's nodes and needs {LEAST_SPLIT} of them; there are {nodes}"
            ),
            "too few to split so",
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
                format!("no node of the database starts in `{place}`: there is nobody to be the bridge"),
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

    fn ends(
        &self,
        document: &EndsDocument,
        what: &str,
        findings: &mut Findings,
    ) -> Option<(FaultTarget, FaultTarget)> {
        let [one, other] = &document.ends;
        // Both are looked up before either is given up, so that both may be reported.
        let (from, to) = (self.end(one, findings), self.end(other, findings));
        let (from, to) = (from?, to?);
        let same = from == to;
        let overlap = match (&from, &to) {
            (FaultTarget::Place(from), FaultTarget::Place(to)) => from.overlaps(to),
            _ => same,
        };
        if overlap {
            let (from, to) = (written(&from), written(&to));
            let message = if same {
                format!("{what} between `{from}` and itself")
            } else {
                format!("{what} between `{from}` and `{to}`, one of which contains the other")
            };
            let help = "name two places that share no host";
            findings.add("bad-ends", other.at, message, "the same place, or a part of it", help);
            return None;
        }
        Some((from, to))
    }

    /// One end of what lies between places: a place, or the host of a role.
    fn end(&self, written: &Spanned<String>, findings: &mut Findings) -> Option<FaultTarget> {
        self.target(written, Level::Host, None, findings)
    }

    /// Whether the engine has that role; a place is none.
    fn has_role(&self, written: &Spanned<String>, findings: &mut Findings) -> bool {
        let engine = self.engine.name;
        let (message, help) = match (written.value.as_str(), self.engine.is_leaderless()) {
            (role @ ("leader" | "a-follower"), true) => (
                format!(
                    "`{role}` is nobody on the engine `{engine}`: every node takes writes, and none leads"
                ),
                "write `coordinator`, one of the nodes that take writes, or name a place",
            ),
            ("coordinator", false) => (
                format!(
                    "`coordinator` is nobody on the engine `{engine}`: one node leads, and takes the writes"
                ),
                "write `leader`, or `a-follower`",
            ),
            _ => return true,
        };
        findings.add("no-such-role", written.at, message, "there is none", help);
        false
    }

    /// A place (of that level, where one is asked for), or a role, which is then of `role_level`.
    fn target(
        &self,
        written: &Spanned<String>,
        role_level: Level,
        place_level: Option<Level>,
        findings: &mut Findings,
    ) -> Option<FaultTarget> {
        if !self.has_role(written, findings) {
            return None;
        }
        match written.value.as_str() {
            "coordinator" => Some(FaultTarget::Coordinator(role_level)),
            "leader" => Some(FaultTarget::Leader(role_level)),
            "random" => Some(FaultTarget::Random(role_level)),
            "a-follower" if self.nodes.as_ref().is_some_and(|nodes| nodes.len() < 2) => {
                findings.add(
                    "no-follower",
                    written.at,
                    "a single node has no follower",
                    "there is none",
                    "ask for at least 2 nodes, or aim at `leader`",
                );
                None
            }
            "a-follower" => Some(FaultTarget::AFollower(role_level)),
            other => {
                let roles = ROLES.iter().map(|role| role.name);
                // A misspelt role reads like an unknown place; say so instead.
                if !self.places.has_name(other)
                    && let Some(role) = nearest(other, roles)
                {
                    findings.add(
                        "unknown-place",
                        written.at,
                        format!("there is no place and no role `{other}`"),
                        "unknown",
                        format!("did you mean the role `{role}`?"),
                    );
                    return None;
                }
                self.places.find(written, place_level, findings).map(FaultTarget::Place)
            }
        }
    }
}

/// A target as written in a scenario, without its level.
pub(crate) fn written(target: &FaultTarget) -> String {
    match target {
        FaultTarget::Place(place) => Place::to_string(place),
        FaultTarget::Leader(_) => "leader".to_owned(),
        FaultTarget::AFollower(_) => "a-follower".to_owned(),
        FaultTarget::Coordinator(_) => "coordinator".to_owned(),
        FaultTarget::Random(_) => "random".to_owned(),
    }
}
