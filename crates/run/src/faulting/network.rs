//! Network faults: conditions laid over the site's links, and partitions, imposed through the fabric. That they hold is
//! shown by `looks`.

use std::time::Duration;

use fabric::{Block, Path, Probability, QueueLimit, Rule, RuleGuard};
use faults::partition::{Split, blocked};
use history::{Receipt, Verdict};
use scenario::{BlockAnswer, Conditions, Fault, FaultAction, FaultTarget, Level, PartitionShape};

use crate::asked::Asked;
use crate::datacentre::node_name;
use crate::faulting::looks::{Look, Shows, Wanted, conditions_looks, partition_looks, show};
use crate::faulting::{FaultRecord, Faulting, describe, lock};
use crate::round_trips::{Station, stations};

/// The directions a fault concerns, for people and probes, and the rules to impose.
type Plan = (Vec<(Path, Path)>, Vec<Rule>);

/// A network fault that stands. Dropping it heals it.
pub(super) struct Standing {
    guard: Option<RuleGuard>,
    rules: Vec<Rule>,
    action: FaultAction,
    directions: Vec<(Path, Path)>,
}

/// Rules for conditions in one direction.
#[must_use]
pub fn conditions_rule(from: &Path, to: &Path, conditions: &Conditions) -> Rule {
    let probability = |ratio: Option<f64>| ratio.and_then(Probability::new);
    Rule {
        from: from.clone(),
        to: to.clone(),
        delay: conditions.delay,
        jitter: conditions.jitter.map(jitter),
        loss: probability(conditions.loss),
        duplicate: probability(conditions.duplicate),
        reorder: probability(conditions.reorder),
        corrupt: probability(conditions.corrupt),
        rate_bits_per_s: conditions.rate_bits_per_s,
        queue_limit: conditions.queue_bytes.map(QueueLimit::Bytes),
        ..Rule::default()
    }
}

fn jitter(jitter: scenario::Jitter) -> fabric::Jitter {
    let distribution = match jitter.distribution {
        scenario::Distribution::Uniform => fabric::Distribution::Uniform,
        scenario::Distribution::Normal => fabric::Distribution::Normal,
        scenario::Distribution::Exponential => fabric::Distribution::Exponential,
    };
    fabric::Jitter { spread: jitter.spread, distribution }
}

/// How a block answers.
#[must_use]
pub fn block(answer: BlockAnswer) -> Block {
    match answer {
        BlockAnswer::Silence => Block::BlackHole,
        BlockAnswer::Reset => Block::Reset,
    }
}

impl Faulting {
    /// Strikes with a network fault.
    pub(super) fn strike_network(&mut self, number: usize, fault: &Fault) {
        let asked_s = self.chronicle.now_s();
        let planned = self.plan(number, &fault.action);
        let mut record = FaultRecord {
            kind: fault.action.kind_name().to_owned(),
            target: in_words(&fault.action),
            asked_s,
            ..FaultRecord::default()
        };
        let Some((directions, rules)) = planned else {
            self.enter(number, &record);
            let evidence = vec![format!("nothing answers to `{}` at this moment", record.target)];
            self.receive(number, None, Receipt { verdict: Verdict::Fail, evidence });
            return;
        };
        record.hits =
            directions.iter().map(|(from, to)| format!("{} -> {}", named(from), named(to))).collect();
        let places: Vec<&Path> = directions.iter().flat_map(|(from, to)| [from, to]).collect();
        record.vms = match &fault.action {
            FaultAction::Partition { .. } => self.vms_in(&places),
            _ => Vec::new(),
        };
        self.enter(number, &record);
        let stations = stations(&self.datacentre);
        let before = self.asked_network(None);
        let open_before = match &fault.action {
            // What was cut before cannot be shown to be cut now.
            FaultAction::Partition { .. } => {
                show(&stations, &opened(partition_looks(&stations, &rules, &before)))
            }
            _ => Receipt { verdict: Verdict::Pass, evidence: Vec::new() },
        };
        let guard = if self.prevented { None } else { self.impose(&rules) };
        let effect_s = self.chronicle.now_s();
        let asked = self.asked_network(Some(&rules));
        let looks = looks_of(&fault.action, &stations, &directions, &rules, &asked);
        self.standing.insert(number, Standing { guard, rules, action: fault.action.clone(), directions });
        let told = self.teller();
        self.in_background(move || {
            let mut receipt = show(&stations, &looks);
            if open_before.verdict != Verdict::Pass {
                receipt.verdict = receipt.verdict.and(Verdict::Unknown);
                receipt.evidence.push(format!("before the fault: {}", open_before.evidence.join("; ")));
            }
            told(number, Some(effect_s), receipt);
        });
    }

    /// Lifts a network fault, when this is one. Whether it is.
    pub(super) fn mend_network(&mut self, number: usize) -> bool {
        let Some(mut standing) = self.standing.remove(&number) else { return false };
        if let Some(Err(error)) = standing.guard.take().map(RuleGuard::lift) {
            self.chronicle
                .warn(format!("lifting a network fault: {error}"), "the lab is broken; report this");
        }
        let mended_s = self.chronicle.now_s();
        lock(&self.records)[number].mended_s = Some(mended_s);
        let stations = stations(&self.datacentre);
        let asked = self.asked_network(None);
        let looks = match &standing.action {
            FaultAction::Partition { .. } => opened(partition_looks(&stations, &standing.rules, &asked)),
            action => looks_of(&healed(action), &stations, &standing.directions, &[], &asked),
        };
        let told = self.healing_teller();
        self.in_background(move || told(number, mended_s, show(&stations, &looks)));
        true
    }

    fn impose(&self, rules: &[Rule]) -> Option<RuleGuard> {
        match self.datacentre.fabric.impose_all(rules.to_vec()) {
            Ok(guard) => Some(guard),
            Err(error) => {
                self.chronicle.warn(format!("network fault: {error}"), "the lab is broken; report this");
                None
            }
        }
    }

    /// The network as asked for now, with these rules on top.
    fn asked_network(&self, on_top: Option<&[Rule]>) -> Asked {
        let standing = self.standing.values().flat_map(|standing| standing.rules.iter().cloned());
        let on_top = on_top.unwrap_or_default().iter().cloned();
        Asked::new(self.base_policy.clone(), standing.chain(on_top))
    }

    fn vms_in(&self, places: &[&Path]) -> Vec<usize> {
        let vms = self.datacentre.vms_on();
        let inside = |vm: &usize| {
            let path = self.vm_path(*vm);
            places.iter().any(|place| !place.is_empty() && path.starts_with(place))
        };
        vms.into_iter().filter(inside).collect()
    }

    fn vm_path(&self, vm: usize) -> Path {
        let mut path = self.datacentre.hosts[self.datacentre.vms[vm].host()].path.clone();
        path.push(node_name(vm));
        path
    }

    /// The directions a fault concerns, for people and probes, and the rules to impose. `None` when a role it is aimed
    /// at is nobody's now.
    fn plan(&self, number: usize, action: &FaultAction) -> Option<Plan> {
        let path = |target: &FaultTarget| self.path_of(target, number);
        match action {
            FaultAction::PowerOff { .. } => None,
            FaultAction::Network { directions, conditions } => {
                let ends: Option<Vec<(Path, Path)>> =
                    directions.iter().map(|(from, to)| Some((path(from)?, path(to)?))).collect();
                let ends = ends?;
                let rules = ends.iter().map(|(from, to)| conditions_rule(from, to, conditions)).collect();
                Some((ends, rules))
            }
            FaultAction::Partition { shape, answer } => {
                let cut = |(from, to): &(Path, Path)| cut_rule(from, to, block(*answer));
                let ends = match shape {
                    PartitionShape::Isolate(target) => {
                        let place = path(target)?;
                        let ends = vec![(place.clone(), Path::new()), (Path::new(), place.clone())];
                        let mut rules: Vec<Rule> = ends.iter().map(cut).collect();
                        // Inside the place everybody still hears everybody; of rules that cover a pair the last counts.
                        rules.push(cut_rule(&place, &place, Block::Open));
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
                        let place = path(target)?;
                        self.split(&Split::Bridge(self.vms_in(&[&place]).into_iter().collect()), number)
                    }
                };
                let rules = ends.iter().map(cut).collect();
                Some((ends, rules))
            }
        }
    }

    fn split(&self, split: &Split, number: usize) -> Vec<(Path, Path)> {
        let pairs = blocked(split, &self.datacentre.vms_on(), self.seed, number);
        pairs.into_iter().map(|(from, to)| (self.vm_path(from), self.vm_path(to))).collect()
    }

    fn path_of(&self, target: &FaultTarget, number: usize) -> Option<Path> {
        match target {
            FaultTarget::Place(place) => Some(place.path.clone()),
            FaultTarget::Leader(level) | FaultTarget::AFollower(level) | FaultTarget::Random(level) => {
                let host = self.hosts_of(&with_level(target, Level::Host), number).first().copied()?;
                let path = &self.datacentre.hosts[host].path;
                Some(path[..self.path_length(path, *level)].to_vec())
            }
        }
    }
}

fn with_level(target: &FaultTarget, level: Level) -> FaultTarget {
    match target {
        FaultTarget::Place(place) => FaultTarget::Place(place.clone()),
        FaultTarget::Leader(_) => FaultTarget::Leader(level),
        FaultTarget::AFollower(_) => FaultTarget::AFollower(level),
        FaultTarget::Random(_) => FaultTarget::Random(level),
    }
}

fn cut_rule(from: &Path, to: &Path, block: Block) -> Rule {
    Rule { from: from.clone(), to: to.clone(), block: Some(block), ..Rule::default() }
}

/// The same looks, now that every direction should be open.
fn opened(mut looks: Vec<Look>) -> Vec<Look> {
    for look in &mut looks {
        look.wanted = Wanted::Open;
    }
    looks
}

/// What is to be seen of a network fault once it is gone: delays as the links have them, nothing lost.
fn healed(action: &FaultAction) -> FaultAction {
    match action {
        FaultAction::Network { directions, conditions } => FaultAction::Network {
            directions: directions.clone(),
            conditions: Conditions {
                delay: conditions.delay,
                loss: conditions.loss.map(|_| 0.0),
                corrupt: conditions.corrupt.map(|_| 0.0),
                ..Conditions::default()
            },
        },
        other => other.clone(),
    }
}

fn looks_of(
    action: &FaultAction,
    stations: &[Station],
    directions: &[(Path, Path)],
    rules: &[Rule],
    asked: &Asked,
) -> Vec<Look> {
    let FaultAction::Network { conditions, .. } = action else {
        return partition_looks(stations, rules, asked);
    };
    // Whoever gets a corrupted packet throws it away.
    let arrives = (1.0 - conditions.loss.unwrap_or(0.0)) * (1.0 - conditions.corrupt.unwrap_or(0.0));
    let loses = conditions.loss.is_some() || conditions.corrupt.is_some();
    let spread = conditions.jitter.map_or(Duration::ZERO, |jitter| jitter.spread);
    let shows =
        Shows { delay_spread: conditions.delay.map(|_| spread), lost: loses.then_some(1.0 - arrives) };
    directions.iter().flat_map(|(from, to)| conditions_looks(stations, from, to, shows, asked)).collect()
}

fn named(path: &Path) -> String {
    if path.is_empty() { "everything else".to_owned() } else { path.join("/") }
}

/// A network fault as a person would say it.
fn in_words(action: &FaultAction) -> String {
    let end = |target: &FaultTarget| describe(target);
    match action {
        FaultAction::PowerOff { target } => describe(target),
        FaultAction::Network { directions, conditions } => {
            let ways: Vec<String> =
                directions.iter().map(|(from, to)| format!("{} -> {}", end(from), end(to))).collect();
            format!("{}: {}", ways.join(" and "), conditions_in_words(conditions))
        }
        FaultAction::Partition { shape, .. } => match shape {
            PartitionShape::Isolate(target) => format!("isolate {}", end(target)),
            PartitionShape::OneWay { from, to } => format!("{} -> {}", end(from), end(to)),
            PartitionShape::Between(one, other) => format!("{} <-> {}", end(one), end(other)),
            PartitionShape::Halves => "nodes in halves".to_owned(),
            PartitionShape::Bridge(target) => format!("nodes in halves, {} between them", end(target)),
            PartitionShape::Ring => "nodes in a ring of majorities".to_owned(),
        },
    }
}

fn conditions_in_words(conditions: &Conditions) -> String {
    let mut words = Vec::new();
    if let Some(delay) = conditions.delay {
        words.push(format!("delay {} ms", delay.as_secs_f64() * 1e3));
    }
    if let Some(jitter) = conditions.jitter {
        words.push(format!("jitter {} ms", jitter.spread.as_secs_f64() * 1e3));
    }
    let ratios = [
        ("loss", conditions.loss),
        ("duplicates", conditions.duplicate),
        ("reordering", conditions.reorder),
        ("corruption", conditions.corrupt),
    ];
    for (name, ratio) in ratios {
        words.extend(ratio.map(|ratio| format!("{name} {} %", ratio * 100.0)));
    }
    words.extend(conditions.rate_bits_per_s.map(|rate| format!("rate {} Mbit/s", rate as f64 / 1e6)));
    words.join(", ")
}
