//! Rolling restarts and upgrades: the database is restarted on one node after the other, with the same programs or with others.
//! What a look must see of each node is in `process_looks`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use history::{FaultId, NodeId, Receipt, Verdict};
use platform::{Datacentre, Platform};
use scenario::{Fault, RestartOrder, RollingRestart, RollingUpgrade};

use super::processes::ANSWER_AFTER;
use super::{Faulting, StandingFault, lock};
use crate::process_looks::{Onlooker, Upgrade, restarted_in_order};

/// How often it is asked whether all nodes answer.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A rolling restart under way. It ends by itself; when the run is to end, no further node is restarted.
struct StandingRestart {
    hurry: Arc<AtomicBool>,
}

impl StandingFault for StandingRestart {
    fn mend(mut self: Box<Self>, _: &mut Faulting, _: FaultId, in_a_hurry: bool) {
        if in_a_hurry {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.hurry.store(true, Ordering::Release);
    }
}

/// One node after the other.
struct Round {
    platform: Arc<Platform>,
    /// Who looks at each node, in the nodes' order; those without power at the start are left out,
    onlookers: Vec<Onlooker>,
    /// and these are they.
    left_out: Vec<String>,
    prevented: bool,
    /// To what each is upgraded, where it is.
    upgrade: Option<Arc<Upgrade>>,
    action: RollingRestart,
    hurry: Arc<AtomicBool>,
}

impl Faulting {
    /// Upgrades the database on one node after the other.
    pub(super) fn strike_rolling_upgrade(&mut self, number: FaultId, fault: &Fault, action: &RollingUpgrade) {
        let Some(upgrade) = self.upgrade.clone() else {
            let record = self.record(fault, action.to.written().to_owned());
            self.enter(number, &record);
            let evidence = vec!["the run has no other version of the database".to_owned()];
            let receipt = Receipt { verdict: Verdict::Fail, evidence };
            return self.teller()(number, None, receipt);
        };
        self.strike_rolling_restart(number, fault, (&action.restart, Some(upgrade)));
    }

    /// Restarts the database on one node after the other.
    pub(super) fn strike_rolling_restart(
        &mut self,
        number: FaultId,
        fault: &Fault,
        (action, upgrade): (&RollingRestart, Option<Arc<Upgrade>>),
    ) {
        let target =
            upgrade.as_ref().map(|upgrade| format!("{}, {}", upgrade.in_words(), action.order.word()));
        let mut record = self.record(fault, target.unwrap_or_else(|| action.order.word().to_owned()));
        let onlookers = self.onlookers();
        let vms: Vec<NodeId> = onlookers.iter().map(|onlooker| onlooker.node).collect();
        record.hits = vms.iter().map(|vm| host_name(&self.datacentre, *vm)).collect();
        record.vms = vms;
        self.enter(number, &record);
        if onlookers.is_empty() {
            return self.nothing_answers(number, &record);
        }
        let all = self.datacentre.vms.ids();
        let is_left_out = |vm: &NodeId| onlookers.iter().all(|onlooker| onlooker.node != *vm);
        let left_out = all.filter(is_left_out).map(|node| node.to_string()).collect();
        let hurry = Arc::<AtomicBool>::default();
        let round = Round {
            platform: self.platform.clone(),
            onlookers,
            left_out,
            prevented: self.prevented,
            upgrade,
            action: action.clone(),
            hurry: hurry.clone(),
        };
        self.standing.insert(number, Box::new(StandingRestart { hurry }));
        let (told, healed, records, events) =
            (self.teller(), self.healing_teller(), self.records.clone(), self.events.clone());
        self.in_background(move || {
            let effect_s = events.now_s();
            let first = |receipt| told(number, Some(effect_s), receipt);
            let receipt = round.all(first);
            let mended_s = events.now_s();
            lock(&records).of(number).mended_s = Some(mended_s);
            healed(number, mended_s, receipt);
        });
    }

    /// Who looks at each node that has power.
    fn onlookers(&self) -> Vec<Onlooker> {
        let look = |vm: NodeId| {
            let address = self.platform.client_address(vm);
            Onlooker::new(&self.datacentre, (vm, address), None, self.longest_delay)
        };
        self.datacentre.vms_on().into_iter().filter_map(look).collect()
    }
}

fn host_name(datacentre: &Datacentre, vm: NodeId) -> String {
    datacentre.host_of(vm).name()
}

impl Round {
    /// Restarts them all. What was seen of the first one's end is told at once; what was seen of all is given back.
    fn all(&self, first_ended: impl FnOnce(Receipt)) -> Receipt {
        let mut first_ended = Some(first_ended);
        let mut seen = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        let mut pending: Vec<&Onlooker> = self.onlookers.iter().collect();
        let is_led = self.platform.leader_by_asking().is_some();
        let is_ordered = is_led || self.action.order == RestartOrder::ByName || self.platform.is_of_equals();
        for doubt in doubts(&self.left_out, is_ordered) {
            seen.verdict = Verdict::Unknown;
            seen.evidence.push(doubt);
        }
        while !pending.is_empty() {
            let is_first = pending.len() == self.onlookers.len();
            let leader = match self.wait_for_all(is_led, is_first) {
                Ok(leader) => leader,
                Err(why) => {
                    seen.verdict = Verdict::Fail;
                    let left: Vec<String> =
                        pending.iter().map(|onlooker| onlooker.vm.name().to_owned()).collect();
                    seen.evidence.insert(0, format!("{} not restarted: {why}", were(&left)));
                    break;
                }
            };
            let numbers: Vec<NodeId> = pending.iter().map(|onlooker| onlooker.node).collect();
            let onlooker = pending.remove(next(self.action.order, &numbers, leader, is_first));
            let (ended, back) = self.one(onlooker, &mut first_ended);
            let as_wanted = ended.verdict.and(back.verdict);
            seen.verdict = seen.verdict.and(as_wanted);
            seen.evidence.extend(ended.evidence.into_iter().chain(back.evidence));
            if as_wanted != Verdict::Pass {
                break;
            }
        }
        if let Some(first_ended) = first_ended {
            first_ended(Receipt { verdict: Verdict::Fail, evidence: seen.evidence.clone() });
        }
        seen
    }

    /// Restarts one: what was seen of the old processes, and of the new ones.
    fn one(&self, onlooker: &Onlooker, first_ended: &mut Option<impl FnOnce(Receipt)>) -> (Receipt, Receipt) {
        let before = onlooker.look_before();
        let over = Arc::<AtomicBool>::default();
        if !self.prevented {
            self.platform.processes_struck(onlooker.node, over.clone());
            match self.upgrade {
                Some(_) => self.platform.upgrade_processes(onlooker.node),
                None => self.platform.restart_processes(onlooker.node, None),
            }
        }
        let ended = match before.targets.is_empty() {
            true => {
                let what = format!("no process of the database ran on {}", onlooker.vm.name());
                Receipt { verdict: Verdict::Fail, evidence: vec![what] }
            }
            false => restarted_in_order(onlooker, &before),
        };
        if let Some(tell) = first_ended.take() {
            tell(ended.clone());
        }
        let mut back = onlooker.look_at_return(&before, ANSWER_AFTER);
        if let Some(upgrade) = self.upgrade.as_ref().filter(|_| back.verdict == Verdict::Pass) {
            let release = onlooker.look_at_release(&before, upgrade);
            back.verdict = back.verdict.and(release.verdict);
            back.evidence.extend(release.evidence);
        }
        over.store(true, Ordering::Release);
        (ended, back)
    }

    /// Waits until every node answers and says of itself that it serves, and, where one led at the start, one leads: that one.
    /// Before all but the first for the pause, too.
    fn wait_for_all(&self, is_led: bool, is_first: bool) -> Result<Option<NodeId>, String> {
        if !is_first {
            self.rest(self.action.pause)?;
        }
        let began = Instant::now();
        loop {
            // A database that starts up may take connections and answer nothing on them yet.
            let roles = self.platform.roles();
            let silent: Vec<String> = self
                .onlookers
                .iter()
                .filter(|onlooker| {
                    !onlooker.answers() || roles.silent.contains_key(&onlooker.node.to_string())
                })
                .map(|onlooker| onlooker.node.to_string())
                .collect();
            let why = match silent.as_slice() {
                [] => match self.platform.leader_by(&roles) {
                    None if is_led => "no node leads".to_owned(),
                    leader => return Ok(leader),
                },
                silent => format!("no answer from {}", silent.join(", ")),
            };
            if began.elapsed() >= ANSWER_AFTER {
                return Err(format!("{why} for {:.0} s", began.elapsed().as_secs_f64()));
            }
            self.rest(ASK_EVERY)?;
        }
    }

    /// Sleeps, unless the run is to end.
    fn rest(&self, time: Duration) -> Result<(), String> {
        let until = Instant::now() + time;
        loop {
            if self.hurry.load(Ordering::Acquire) {
                return Err("the run ended".to_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(ASK_EVERY));
        }
    }
}

/// What is not as asked before the first node is restarted.
fn doubts(left_out: &[String], is_ordered: bool) -> Vec<String> {
    let mut doubts = Vec::new();
    if !left_out.is_empty() {
        doubts.push(format!("{} not restarted: no power at the start", were(left_out)));
    }
    if !is_ordered {
        doubts.push("no node led at the start, so the order is not the one asked for".to_owned());
    }
    doubts
}

/// Which of those that are left comes next, by its place among them.
fn next(order: RestartOrder, pending: &[NodeId], leader: Option<NodeId>, is_first: bool) -> usize {
    let leads = |number: &NodeId| Some(*number) == leader;
    let place = match order {
        RestartOrder::LeaderLast => pending.iter().position(|number| !leads(number)),
        RestartOrder::LeaderFirst if is_first => pending.iter().position(leads),
        RestartOrder::LeaderFirst | RestartOrder::ByName => None,
    };
    place.unwrap_or(0)
}

/// `n2 was`, `n2, n3 were`.
fn were(nodes: &[String]) -> String {
    format!("{} {}", nodes.join(", "), if nodes.len() == 1 { "was" } else { "were" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_without_a_leader_or_without_all_nodes_leaves_doubt() {
        assert_eq!(doubts(&[], true), Vec::<String>::new());
        let left_out = ["n2".to_owned()];
        assert_eq!(doubts(&left_out, true), ["n2 was not restarted: no power at the start"]);
        assert!(doubts(&[], false)[0].contains("no node led"), "{:?}", doubts(&[], false));
    }

    /// The order in which three nodes come, the leader moving to n1 when it is restarted.
    fn order(order: RestartOrder, mut leader: Option<NodeId>) -> Vec<String> {
        let mut pending: Vec<NodeId> = (0..3).map(NodeId::new).collect();
        let mut came = Vec::new();
        while !pending.is_empty() {
            let number = pending.remove(next(order, &pending, leader, came.is_empty()));
            if leader == Some(number) {
                leader = Some(NodeId::FIRST);
            }
            came.push(number.to_string());
        }
        came
    }

    #[test]
    fn the_leader_comes_last_or_first_or_when_its_number_does() {
        assert_eq!(order(RestartOrder::LeaderLast, Some(NodeId::new(0))), ["n2", "n3", "n1"]);
        assert_eq!(order(RestartOrder::LeaderLast, Some(NodeId::new(2))), ["n1", "n2", "n3"]);
        assert_eq!(order(RestartOrder::LeaderFirst, Some(NodeId::new(1))), ["n2", "n1", "n3"]);
        assert_eq!(order(RestartOrder::ByName, Some(NodeId::new(0))), ["n1", "n2", "n3"]);
        assert_eq!(order(RestartOrder::LeaderLast, None), ["n1", "n2", "n3"]);
    }
}
