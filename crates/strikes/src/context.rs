//! One fault from the choice of its member to its last receipt.
//!
//! Owns the member that is meant, how long it is looked for, and the fault's record. Nothing here has a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faults::{FaultRecord, FaultRecords, ReceiptOf, Role, Struck, pick};
use history::{EventKind, EventSink, FaultId, NodeId, Receipt, Verdict};
use load::{LoadPlan, here};
use pods::{NodeError, Pods};
use remote::strike::{Patience, Standing, StrikeError, strike, token};
use remote::{Filled, Journal, Permit, Reach};
use scenario::{Cluster, ExternalFault, Member, NodeTarget};
use scenario_files::{asks_for, commands_at, reach_of};

use crate::receipts::{effect_of, healing_of, late_in_words, waited_in_words};

/// How long a machine may take to look as it should.
const PATIENCE: Patience = Patience { stands: Duration::from_secs(10), gone: Duration::from_secs(60) };
/// How long after its end by the schedule a fault is undone by the timer on its machine, beside what its commands may take.
const TIMER_AFTER: Duration = Duration::from_secs(120);
/// How long a role's member is looked for.
const ROLE_PATIENCE: Duration = Duration::from_secs(10);
/// Digits of a token that name a fault.
const ID_DIGITS: usize = 8;

/// Called once it is shown that a fault took effect: its number, and the second on the run's clock.
pub type OnEffect = Arc<dyn Fn(FaultId, f64) + Send + Sync>;

/// What faults are struck on.
pub struct Targets {
    pub cluster: Cluster,
    /// Who may be struck.
    pub permit: Permit,
    /// The load whose way to the database is taken to ask who leads.
    pub asked: Option<LoadPlan>,
    /// The members' pods; none of machines.
    pub pods: Option<Arc<Pods>>,
}

/// Why nothing was struck at a member.
#[derive(Debug, thiserror::Error)]
enum NotStruck {
    /// The scenario names no way to it.
    #[error("nothing says how to reach the member")]
    NoWay,
    /// Its command file is not there, or does not fit.
    #[error("its commands are not known")]
    NoCommands,
    /// The node of its pod is not known, or may not be struck.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The machine.
    #[error(transparent)]
    Strike(#[from] StrikeError),
}

/// A fault that was struck, and the way to its machine.
pub(crate) struct Broken {
    standing: Standing,
    reach: Reach,
}

/// What every fault needs.
pub(crate) struct StrikeContext {
    targets: Targets,
    journal: Arc<Journal>,
    events: Arc<dyn EventSink>,
    seed: u64,
    prevented: bool,
    on_effect: OnEffect,
    records: Mutex<FaultRecords>,
}

impl StrikeContext {
    pub(crate) fn new(
        targets: Targets,
        journal: Arc<Journal>,
        events: Arc<dyn EventSink>,
        (seed, prevented): (u64, bool),
        on_effect: OnEffect,
    ) -> StrikeContext {
        StrikeContext { targets, journal, events, seed, prevented, on_effect, records: Mutex::default() }
    }

    pub(crate) fn now_s(&self) -> f64 {
        self.events.now_s()
    }

    fn kept(&self) -> MutexGuard<'_, FaultRecords> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of every fault up to now.
    pub(crate) fn records(&self) -> Vec<FaultRecord> {
        self.kept().all().to_vec()
    }

    pub(crate) fn no_thread(&self, error: &std::io::Error) {
        let what = format!("no thread for a fault: {error}; the timer on its machine undoes what may stand");
        self.events.warn(what, "raise the limit of processes (`ulimit -u`)");
    }

    pub(crate) fn change(&self, number: FaultId, change: impl FnOnce(&mut FaultRecord)) {
        change(self.kept().of(number));
    }

    /// Tells that a fault is asked for, and begins its record.
    fn enter(&self, number: FaultId, record: &FaultRecord) {
        let asked = EventKind::FaultAsked {
            fault: number,
            kind: record.kind.clone(),
            target: record.target.clone(),
            hits: record.hits.clone(),
            nodes: record.vms.iter().map(|vm| vm.to_string()).collect(),
        };
        self.events.say_at(record.asked_s, asked);
        self.change(number, |kept| *kept = record.clone());
    }

    /// Takes the receipt of a fault's effect into its record.
    fn receive(&self, number: FaultId, effect_s: Option<f64>, receipt: Receipt) {
        let at_s = effect_s.unwrap_or_else(|| self.events.now_s());
        self.events.say_at(at_s, EventKind::FaultTookEffect { fault: number, receipt: receipt.clone() });
        let shown_s = effect_s.filter(|_| receipt.verdict == Verdict::Pass);
        self.change(number, |kept| {
            kept.receipts.push((ReceiptOf::Effect, receipt));
            kept.took_effect_s = shown_s;
        });
        if let Some(effect_s) = shown_s {
            (self.on_effect)(number, effect_s);
        }
    }

    /// The receipt of a fault that came to nothing.
    pub(crate) fn not_struck(&self, number: FaultId, verdict: Verdict, why: String) {
        self.receive(number, None, Receipt { verdict, evidence: vec![why] });
    }

    /// Strikes at the member that is meant now, unless the fault's time is over before it is found.
    pub(crate) fn strike(
        &self,
        number: FaultId,
        fault: &ExternalFault,
        mut record: FaultRecord,
        (stands, is_over): (Duration, &AtomicBool),
    ) -> Option<Broken> {
        let due_s = record.asked_s;
        let (chosen, leader) = self.choose(number, fault.node);
        let waited_s = self.events.now_s() - due_s;
        let waited = waited_in_words(fault.node, due_s, waited_s);
        if waited.is_some() {
            // What happened meanwhile is not its doing.
            record.asked_s += waited_s;
        }
        let found = chosen.and_then(|chosen| Some((chosen, self.targets.cluster.members.get(chosen)?)));
        let Some((chosen, member)) = found else {
            self.enter(number, &record);
            let waited = waited.map(|waited| format!("; {waited}")).unwrap_or_default();
            let why = format!("no member matches `{}` now{waited}", fault.node);
            self.not_struck(number, Verdict::Fail, why);
            return None;
        };
        if waited.is_some() && is_over.load(Ordering::Acquire) {
            self.enter(number, &record);
            let why = "nothing was struck: the fault was over before a leader was found".to_owned();
            self.not_struck(number, Verdict::Fail, why);
            return None;
        }
        let path = vec!["cluster".to_owned(), "members".to_owned(), member.name.clone()];
        (record.hits, record.vms, record.leader) = (vec![path.join("/")], vec![chosen], leader);
        record.struck = Struck::Nodes(vec![path]);
        self.enter(number, &record);
        if self.prevented {
            let why = "the fault was announced and not carried out".to_owned();
            self.not_struck(number, Verdict::Unknown, why);
            return None;
        }
        match self.carry_out(fault, member, stands) {
            Ok(broken) => {
                let effect_s = self.events.seconds_at(broken.standing.struck_at());
                let mut receipt = effect_of(&broken.standing, broken.reach.host());
                receipt.evidence.extend(waited);
                if let Some(late) = late_in_words(record.asked_s, effect_s, stands) {
                    receipt.verdict = receipt.verdict.and(Verdict::Unknown);
                    receipt.evidence.push(late);
                }
                self.receive(number, Some(effect_s), receipt);
                Some(broken)
            }
            Err(why) => {
                self.not_struck(number, Verdict::Unknown, format!("nothing was struck: {why}"));
                None
            }
        }
    }

    fn carry_out(
        &self,
        fault: &ExternalFault,
        member: &Member,
        stands: Duration,
    ) -> Result<Broken, NotStruck> {
        let reach = reach_of(&self.targets.cluster, member).ok_or(NotStruck::NoWay)?;
        let token = token()?;
        let known = self.known_now(fault, member)?;
        let commands = commands_at(fault, member, &known, &token[..ID_DIGITS]);
        let commands = commands.ok_or(NotStruck::NoCommands)?;
        let deadline = timer_after(stands, &commands);
        let what = (member.name.as_str(), commands);
        let standing = strike(what, &reach, &self.targets.permit, &self.journal, (deadline, PATIENCE))?;
        Ok(Broken { standing, reach })
    }

    /// Values for the file's parameters that are known of a pod only now.
    fn known_now(
        &self,
        fault: &ExternalFault,
        member: &Member,
    ) -> Result<BTreeMap<String, String>, NodeError> {
        let Some(pods) = &self.targets.pods else { return Ok(BTreeMap::new()) };
        let mut known = BTreeMap::new();
        known.extend(pods.context().map(|context| (pods::CONTEXT.to_owned(), context.to_owned())));
        if asks_for(fault, pods::NODE) {
            let cluster = &self.targets.cluster;
            let may_break = cluster.may_break.iter().filter_map(|number| cluster.members.get(*number));
            let may_break: BTreeSet<&str> = may_break.map(|member| member.name.as_str()).collect();
            known.insert(pods::NODE.to_owned(), pods.node_of(&member.name, &may_break)?);
        }
        Ok(known)
    }

    /// The member that is meant now, and who leads where that was asked.
    fn choose(&self, number: FaultId, node: NodeTarget) -> (Option<NodeId>, Option<NodeId>) {
        let all: Vec<NodeId> = self.targets.cluster.members.ids().collect();
        let role = |role, leader| pick(role, leader, &all, self.seed, number);
        match node {
            NodeTarget::Named(number) => (Some(number), None),
            NodeTarget::Random => (role(Role::Random, None), None),
            NodeTarget::Leader => {
                let leader = self.leader();
                (leader, leader)
            }
            NodeTarget::AFollower => {
                let leader = self.leader();
                (role(Role::AFollower, leader), leader)
            }
        }
    }

    fn leader(&self) -> Option<NodeId> {
        let name = load::leader(self.targets.asked.as_ref()?, here(), ROLE_PATIENCE).ok()?;
        self.targets.cluster.members.named(&name)
    }

    /// Undoes what stands, and takes the receipt of its healing into the fault's record.
    pub(crate) fn undo(&self, number: FaultId, broken: Broken) {
        let Broken { standing, reach } = broken;
        let known = standing.doubts().len();
        let whole = standing.undo(&reach, &self.journal, PATIENCE);
        let mended_s = self.events.seconds_at(whole.undone_at);
        let receipt = healing_of(&whole, reach.host(), known);
        self.events.say_at(mended_s, EventKind::FaultHealed { fault: number, receipt: receipt.clone() });
        self.change(number, |kept| {
            kept.mended_s = Some(mended_s);
            kept.healed_s = (receipt.verdict == Verdict::Pass).then_some(mended_s);
            kept.receipts.push((ReceiptOf::Healing, receipt));
        });
    }
}

/// When the timer on the machine fires, from its arming on. What strikes and what undoes have their whole time before that: a timer
/// that fires while a strike goes on is used up, and what it undid is struck after it.
fn timer_after(stands: Duration, commands: &Filled) -> Duration {
    let all = commands.strike.iter().chain(&commands.undo);
    stands + TIMER_AFTER + all.map(|command| command.within).sum::<Duration>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_leaves_every_shipped_fault_the_time_that_its_commands_may_take() {
        let stands = Duration::from_secs(10);
        for file in remote::shipped() {
            let values =
                file.parameters.iter().map(|parameter| (parameter.name.clone(), parameter.example.clone()));
            let commands = file.filled(&values.collect(), "00000000").expect("its own examples");
            let most = |commands: &[remote::command_file::Command]| {
                commands.iter().map(|command| command.within).sum::<Duration>()
            };
            let needed =
                most(&commands.strike) + stands + most(&commands.undo) + PATIENCE.stands + PATIENCE.gone;
            assert!(timer_after(stands, &commands) >= needed, "{}", file.name);
        }
    }
}
