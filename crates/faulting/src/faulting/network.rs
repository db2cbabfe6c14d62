//! Network faults: conditions laid over the site's links, and partitions, imposed through the fabric. That they hold is
//! shown by `network_watch`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fabric::{Block, FabricError, Path, Rule, RuleGuard};
use faults::partition::{Split, blocked};
use faults::{FaultRecord, Struck};
use history::{EventKind, FaultId, NodeId, Verdict};
use paper::RequestedNetwork;
use paper::network::{conditions_in_words, conditions_rule};
use platform::{Arrival, Whereabouts};
use scenario::{
    BlockAnswer, Conditions, Fault, FaultTarget, Flap, Level, NetworkFault, PartitionFault, PartitionShape,
};

use crate::datagrams::probing::{Probing, Stood};
use crate::datagrams::{self, Way, named, properties, without_stations};
use crate::faulting::targets::describe;
use crate::faulting::{Faulting, StandingFault};
use crate::flapping::Flapping;
use crate::looks::sharing::Sharing;
use crate::looks::{self, Look};
use crate::network_watch::{Changes, FirstAnswer, Shown, Watched};
use crate::stations::{Station, everywhere, matrix, stations_at};

/// The directions a fault concerns, for people and probes, and the rules to impose.
type Plan = (Vec<(Path, Path)>, Vec<Rule>);

/// How long it is seen, before a partition, that its directions are open.
const BEFORE: Duration = Duration::from_millis(60);
/// So many senders' own routes are looked at.
const SENDERS_MAX: usize = 3;
/// How long the network may take to take what was sent.
const TAKEN: Duration = Duration::from_millis(10);

/// A network fault that stands. Dropping it heals it.
struct StandingNetwork {
    guard: Option<Imposed>,
    rules: Vec<Rule>,
    /// What it lays over the directions; none where it is a partition.
    conditions: Option<Conditions>,
    directions: Vec<(Path, Path)>,
    /// Where each node was when nodes were divided among parts; none where it names places.
    divided: Option<BTreeMap<NodeId, Whereabouts>>,
    watched: Arc<Watched>,
}

/// How the rules of a fault hold. Dropping it lifts them.
enum Imposed {
    /// Until they are lifted.
    Always(RuleGuard),
    InTurns(Flapping),
}

impl StandingFault for StandingNetwork {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, _: bool) {
        faulting.mend_network(number, *self);
    }

    fn give_up(&mut self) {
        self.watched.give_up();
    }

    fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

/// What a network fault does.
#[derive(Debug, Clone, Copy)]
pub(super) enum NetworkAction<'a> {
    /// It lays conditions over directions.
    Conditions(&'a NetworkFault),
    /// It lets nothing through.
    Partition(&'a PartitionFault),
}

impl<'a> NetworkAction<'a> {
    fn conditions(self) -> Option<&'a Conditions> {
        match self {
            NetworkAction::Conditions(fault) => Some(&fault.conditions),
            NetworkAction::Partition(_) => None,
        }
    }
}

impl Imposed {
    fn lift(self) -> Result<(), FabricError> {
        match self {
            Imposed::Always(guard) => guard.lift(),
            Imposed::InTurns(flapping) => flapping.end(),
        }
    }
}

/// How a block answers.
fn block(answer: BlockAnswer) -> Block {
    match answer {
        BlockAnswer::Silence => Block::BlackHole,
        BlockAnswer::Reset => Block::Reset,
    }
}

impl Faulting {
    /// Strikes with a network fault.
    pub(super) fn strike_network(&mut self, number: FaultId, fault: &Fault, action: NetworkAction<'_>) {
        // Before the rules are made: who moves meanwhile is not where they know it.
        let divided = divides_nodes(action).then(|| self.whereabouts());
        let Some((directions, rules)) = self.enter_network(number, fault, action) else { return };
        self.plant_canaries_early(number, &self.vms_with_copies());
        let stations = self.stations_for(&directions);
        let before = Arc::new(self.asked_network(None));
        let with = Arc::new(self.asked_network(Some(&rules)));
        let senders = self.senders();
        let ways =
            ways_of((action.conditions(), senders), &stations, (&directions, &rules), (&with, &before));
        let looks = self.capacity_looks(action.conditions(), &stations, &directions, (&with, &before), false);
        let unseen = unseen_of(action.conditions(), &stations, &directions);
        let cuts = action.conditions().is_none();
        let sent_from = Instant::now();
        let (datacentre, log) = (self.datacentre.clone(), self.request_log.clone());
        let probing = Probing::start(datacentre, log, (stations, ways), fault.length, &before);
        if cuts {
            // What was cut before cannot be shown to be cut now.
            std::thread::sleep(BEFORE);
        }
        self.network_changes.fetch_add(1, Ordering::AcqRel);
        self.request_log.changes_now(with.clone());
        let struck = Instant::now();
        let guard = if self.prevented { None } else { self.impose(&rules, fault.flap) };
        let effect_s = self.events.now_s();
        let stood = match (&guard, fault.flap) {
            (Some(Imposed::InTurns(flapping)), _) => Stood::InTurns(flapping.turns()),
            (_, Some(_)) => Stood::InTurns(Arc::default()),
            _ => Stood::Since(Instant::now()),
        };
        let counts = fault.flap.is_none().then(|| probing.count(&self.datacentre.fabric));
        let changes = Changes::from_now(&self.network_changes);
        let shown = Shown { number, effect_s, sent_from, struck, before, with, looks, unseen, cuts, changes };
        let watched = Arc::new(Watched {
            probing,
            stood,
            counts,
            mended: Mutex::default(),
            is_told: AtomicBool::new(false),
            is_untold: AtomicBool::new(false),
            shown,
        });
        let conditions = action.conditions().cloned();
        let standing =
            StandingNetwork { guard, rules, conditions, directions, divided, watched: watched.clone() };
        self.standing.insert(number, Box::new(standing));
        self.laid.push(number);
        let told = self.teller();
        let tell = fault.flap.is_none().then(|| self.matrix_teller(number));
        let first = FirstAnswer(watched);
        self.in_background(move || first.give(told, tell));
    }

    /// Enters a network fault into the record: what it is about and what is to be imposed. `None` when it is aimed at nothing.
    fn enter_network(&mut self, number: FaultId, fault: &Fault, action: NetworkAction<'_>) -> Option<Plan> {
        let target = in_words(action) + &fault.flap.map(in_turns).unwrap_or_default();
        let mut record = FaultRecord { comes_and_goes: fault.flap.is_some(), ..self.record(fault, target) };
        let planned = self.plan(number, action);
        let Some((directions, mut rules)) = planned else {
            self.enter(number, &record);
            self.nothing_answers(number, &record);
            return None;
        };
        for rule in &mut rules {
            let (from, to) = (named(&rule.from), named(&rule.to));
            rule.name = Some(format!("{from} -> {to} in fault {}", number.ordinal()));
        }
        let nodes: Vec<Path> = self.datacentre.vms_on().into_iter().map(|vm| self.vm_path(vm)).collect();
        record.struck = Struck::directions(&directions, &nodes);
        record.hits =
            directions.iter().map(|(from, to)| format!("{} -> {}", named(from), named(to))).collect();
        let places: Vec<&Path> = directions.iter().flat_map(|(from, to)| [from, to]).collect();
        if action.conditions().is_none() {
            record.vms = self.vms_in(&places);
            record.leader = self.leader();
        }
        self.enter(number, &record);
        Some((directions, rules))
    }

    /// Lifts a network fault.
    fn mend_network(&mut self, number: FaultId, mut standing: StandingNetwork) {
        let watched = standing.watched.clone();
        // Whatever was sent has been decided on before the fault is lifted: the answer to the count comes after it.
        watched.probing.pause();
        let paused = Instant::now();
        std::thread::sleep(TAKEN);
        let counted = watched.counts.as_ref().map(|counts| match counts {
            Ok(counts) => counts.counted().map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        });
        self.laid.retain(|laid| *laid != number);
        let now = Arc::new(self.asked_network(None));
        self.request_log.changes_now(now.clone());
        self.network_changes.fetch_add(1, Ordering::AcqRel);
        let changes = Changes::from_now(&self.network_changes);
        let broken = standing.guard.take().and_then(|imposed| imposed.lift().err());
        if let Some(error) = &broken {
            self.events.warn(format!("lifting a network fault: {error}"), "the lab is broken; report this");
        }
        let mended = Instant::now();
        let mended_s = self.mended_now(number);
        watched.mend(paused, &now);
        self.platform.reaches_again();
        let stations = self.stations_for(&standing.directions);
        let looks = self.capacity_looks(
            standing.conditions.as_ref(),
            &stations,
            &standing.directions,
            (&now, &watched.shown.with),
            true,
        );
        let unseen = unseen_of(standing.conditions.as_ref(), &stations, &standing.directions);
        let anew = watched.probing.has_lost_an_end(&now).then(|| {
            let stations = self.stations_for(&standing.directions);
            let plan = (&standing.directions[..], &standing.rules[..]);
            let conditions = (standing.conditions.as_ref(), self.senders());
            let ways = ways_of(conditions, &stations, plan, (&watched.shown.with, &now));
            let (datacentre, log) = (self.datacentre.clone(), self.request_log.clone());
            Probing::start(datacentre, log, (stations, ways), None, &now)
        });
        let (stood, told) = (self.stood_teller(), self.healing_teller());
        let tell = self.matrix_teller(number);
        let outside = standing.divided.map(|divided| self.outside_of(&divided)).unwrap_or_default();
        self.in_background(move || {
            let mut receipt = watched.show_stood(paused, counted.as_ref());
            // One that comes and goes may have ceased to long before.
            let broken = broken.map(|error| format!("it may not have stood to its end: {error}"));
            let doubts: Vec<String> = outside.into_iter().chain(broken).collect();
            if !doubts.is_empty() {
                receipt.verdict = receipt.verdict.and(Verdict::Unknown);
                receipt.evidence.extend(doubts);
            }
            stood(number, receipt);
            let receipt =
                watched.show_healed(anew.as_ref(), mended, (&now, &changes), (&stations, &looks, &unseen));
            told(number, mended_s, receipt);
            tell("has healed", &stations, &now);
        });
    }

    /// Measures the round trips between all places and tells of them, unless the network has been changed meanwhile:
    /// such figures belong to no moment.
    fn matrix_teller(
        &self,
        number: FaultId,
    ) -> impl Fn(&str, &[Station], &RequestedNetwork) + Send + 'static {
        let (events, changes) = (self.events.clone(), Changes::from_now(&self.network_changes));
        move |what, stations, asked| {
            if changes.have_come() {
                return;
            }
            let pairs = matrix(stations, asked);
            if !changes.have_come() {
                let occasion = format!("fault {} {what}", number.ordinal());
                events.say(EventKind::RoundTrips { occasion, pairs });
            }
        }
    }

    fn impose(&self, rules: &[Rule], flap: Option<Flap>) -> Option<Imposed> {
        let fabric = &self.datacentre.fabric;
        let rules = platform::for_fabric(rules.to_vec(), &self.datacentre.planted);
        let imposed = match flap {
            None => fabric.impose_all(rules).map(Imposed::Always),
            Some(flap) => Flapping::start(fabric.clone(), rules, flap).map(Imposed::InTurns),
        };
        match imposed {
            Ok(imposed) => Some(imposed),
            Err(error) => {
                self.events.warn(format!("network fault: {error}"), "the lab is broken; report this");
                None
            }
        }
    }

    /// From how many stations of a place conditions are looked at. In the network of the lab one pair stands for its rule; past it
    /// each sender has routes of its own.
    fn senders(&self) -> usize {
        if self.datacentre.has_kernel_path() { SENDERS_MAX } else { 1 }
    }

    /// The network as asked for now, with these rules on top.
    fn asked_network(&self, on_top: Option<&[Rule]>) -> RequestedNetwork {
        let laid = self.laid.iter().filter_map(|number| self.standing.get(number));
        let standing = laid.flat_map(|standing| standing.rules().iter().cloned());
        let on_top = on_top.unwrap_or_default().iter().cloned();
        RequestedNetwork::new(self.base_policy.clone(), standing.chain(on_top))
    }

    /// Where probes stand: wherever there are nodes or clients, and at the ends of the fault where there are none.
    fn stations_for(&self, directions: &[(Path, Path)]) -> Vec<Station> {
        let ends = directions.iter().flat_map(|(from, to)| [from, to]).filter(|path| !path.is_empty());
        stations_at(&self.datacentre, &ends.map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The looks that show the rate, the queue and the packets' size of a fault.
    fn capacity_looks(
        &self,
        conditions: Option<&Conditions>,
        stations: &[Station],
        directions: &[(Path, Path)],
        (now, otherwise): (&RequestedNetwork, &RequestedNetwork),
        is_healing: bool,
    ) -> Vec<Look> {
        let Some(conditions) = conditions else { return Vec::new() };
        let of = |(from, to): &(Path, Path)| {
            looks::of_conditions(stations, (from, to), conditions, (now, otherwise), is_healing)
        };
        let mut looks: Vec<Look> = directions.iter().flat_map(of).collect();
        for look in &mut looks {
            if matches!(look.wanted, looks::Wanted::Capacity(_)) {
                let ends = (&stations[look.from], &stations[look.to]);
                look.sharing = Sharing::of(everywhere(&self.datacentre), now, ends).map(Arc::new);
            }
        }
        looks
    }

    fn vms_in(&self, places: &[&Path]) -> Vec<NodeId> {
        let vms = self.datacentre.vms_on();
        let inside = |vm: &NodeId| {
            let path = self.vm_path(*vm);
            places.iter().any(|place| !place.is_empty() && path.starts_with(place))
        };
        vms.into_iter().filter(inside).collect()
    }

    fn vm_path(&self, vm: NodeId) -> Path {
        let mut path = self.datacentre.host_of(vm).path.clone();
        path.push(vm.to_string());
        path
    }

    /// The directions a fault concerns, for people and probes, and the rules to impose. `None` when a role it is aimed
    /// at is nobody's now.
    fn plan(&self, number: FaultId, action: NetworkAction<'_>) -> Option<Plan> {
        let path = |target: &FaultTarget| self.path_of(target, number);
        match action {
            NetworkAction::Conditions(NetworkFault { directions, conditions }) => {
                let ends: Option<Vec<(Path, Path)>> =
                    directions.iter().map(|(from, to)| Some((path(from)?, path(to)?))).collect();
                let ends = ends?;
                let rules = ends.iter().map(|(from, to)| conditions_rule(from, to, conditions)).collect();
                Some((ends, rules))
            }
            NetworkAction::Partition(PartitionFault { shape, answer }) => {
                let cut = |(from, to): &(Path, Path)| cut_rule(from, to, block(*answer));
                let ends = match shape {
                    PartitionShape::Isolate(target) => {
                        let place = path(target)?;
                        let ends = vec![(place.clone(), Path::new()), (Path::new(), place.clone())];
                        // Inside the place everybody still hears everybody, unless another partition cuts them off.
                        let spared = |ends| Rule { spares: Some(place.clone()), ..cut(ends) };
                        let rules = ends.iter().map(spared).collect();
                        return Some((ends, rules));
                    }
                    PartitionShape::OneWay { from, to } => vec![(path(from)?, path(to)?)],
                    PartitionShape::Between(one, other) => {
                        let (one, other) = (path(one)?, path(other)?);
                        vec![(one.clone(), other.clone()), (other, one)]
                    }
                    PartitionShape::Halves => self.split(&Split::Halves, number),
                    PartitionShape::Ring => self.split(&Split::Ring, number),
                    PartitionShape::Bridge(target) => {
                        let bridge: BTreeSet<NodeId> = self.vms_in(&[&path(target)?]).into_iter().collect();
                        if bridge.is_empty() {
                            // Without a node that both halves reach this is another partition.
                            return None;
                        }
                        self.split(&Split::Bridge(bridge), number)
                    }
                };
                let rules = ends.iter().map(cut).collect();
                Some((ends, rules))
            }
        }
    }

    fn whereabouts(&self) -> BTreeMap<NodeId, Whereabouts> {
        let vms = &self.datacentre.vms;
        vms.ids().map(|vm| (vm, vms[vm].whereabouts())).collect()
    }

    /// Nodes that were where the rules between `divided` nodes do not know them, each in a sentence.
    fn outside_of(&self, divided: &BTreeMap<NodeId, Whereabouts>) -> Vec<String> {
        let sentence = |(vm, earlier): (&NodeId, &Whereabouts)| {
            let came = match self.datacentre.vms[*vm].whereabouts().arrival_since(*earlier)? {
                Arrival::FromAnotherHost => "came to another host",
                Arrival::ByPower => "got power",
            };
            Some(format!("node {vm} {came} while the partition stood, and reached all parts"))
        };
        divided.iter().filter_map(sentence).collect()
    }

    fn split(&self, split: &Split, number: FaultId) -> Vec<(Path, Path)> {
        let pairs = blocked(split, &self.datacentre.vms_on(), self.seed, number);
        pairs.into_iter().map(|(from, to)| (self.vm_path(from), self.vm_path(to))).collect()
    }

    fn path_of(&self, target: &FaultTarget, number: FaultId) -> Option<Path> {
        match target {
            FaultTarget::Place(place) => Some(place.path.clone()),
            FaultTarget::Leader(level)
            | FaultTarget::AFollower(level)
            | FaultTarget::Coordinator(level)
            | FaultTarget::Random(level) => {
                let host = self.hosts_of(&with_level(target, Level::Host), number).first().copied()?;
                let path = &self.datacentre.hosts[host].path;
                Some(path[..self.path_length(path, *level)].to_vec())
            }
        }
    }
}

/// Whether an action divides the nodes themselves instead of cutting places off.
fn divides_nodes(action: NetworkAction<'_>) -> bool {
    let NetworkAction::Partition(PartitionFault { shape, .. }) = action else { return false };
    matches!(shape, PartitionShape::Halves | PartitionShape::Ring | PartitionShape::Bridge(_))
}

/// The ways that show a fault between these stations: with it, and without it.
fn ways_of(
    (conditions, senders): (Option<&Conditions>, usize),
    stations: &[Station],
    (directions, rules): (&[(Path, Path)], &[Rule]),
    (with, without): (&RequestedNetwork, &RequestedNetwork),
) -> Vec<Way> {
    match conditions {
        Some(conditions) => datagrams::of_conditions(
            stations,
            directions,
            (&properties(conditions), senders),
            (with, without),
        ),
        None => datagrams::of_partition(stations, rules, (with, without)),
    }
}

/// The directions whose conditions nothing can show. A partition is shown by all pairs of stations that it cuts.
fn unseen_of(
    conditions: Option<&Conditions>,
    stations: &[Station],
    directions: &[(Path, Path)],
) -> Vec<(Path, Path)> {
    conditions.map_or_else(Vec::new, |_| without_stations(stations, directions))
}

fn with_level(target: &FaultTarget, level: Level) -> FaultTarget {
    match target {
        FaultTarget::Place(place) => FaultTarget::Place(place.clone()),
        FaultTarget::Leader(_) => FaultTarget::Leader(level),
        FaultTarget::AFollower(_) => FaultTarget::AFollower(level),
        FaultTarget::Coordinator(_) => FaultTarget::Coordinator(level),
        FaultTarget::Random(_) => FaultTarget::Random(level),
    }
}

fn cut_rule(from: &Path, to: &Path, block: Block) -> Rule {
    Rule { from: from.clone(), to: to.clone(), block: Some(block), ..Rule::default() }
}

fn in_turns(flap: Flap) -> String {
    format!(", alternating {} s down and {} s up", flap.down.as_secs_f64(), flap.up.as_secs_f64())
}

/// A network fault as a person would say it.
fn in_words(action: NetworkAction<'_>) -> String {
    let end = |target: &FaultTarget| describe(target);
    match action {
        NetworkAction::Conditions(NetworkFault { directions, conditions }) => {
            let ways: Vec<String> =
                directions.iter().map(|(from, to)| format!("{} -> {}", end(from), end(to))).collect();
            format!("{}: {}", ways.join(" and "), conditions_in_words(conditions))
        }
        NetworkAction::Partition(fault) => match &fault.shape {
            PartitionShape::Isolate(target) => format!("isolate {}", end(target)),
            PartitionShape::OneWay { from, to } => format!("{} -> {}", end(from), end(to)),
            PartitionShape::Between(one, other) => format!("{} <-> {}", end(one), end(other)),
            PartitionShape::Halves => "nodes in halves".to_owned(),
            PartitionShape::Bridge(target) => format!("nodes in halves, {} between them", end(target)),
            PartitionShape::Ring => "nodes in a ring of majorities".to_owned(),
        },
    }
}
