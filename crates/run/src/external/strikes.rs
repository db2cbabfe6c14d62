//! Faults on a cluster that exists: struck by their command files, shown by the files' looks, undone; and the record of each.
//!
//! Owns when a fault's commands run and on which member. What makes a receipt is `remote`'s. Every fault has a thread of its
//! own, because a machine may take long to answer. Dropping it undoes what stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use faults::{FaultRecord, FaultRecords, ReceiptOf, Role, Struck, pick};
use history::{EventKind, EventSink, FaultId, Receipt, Verdict};
use load::LoadPlan;
use pods::{NodeError, Pods};
use remote::looks::{Seen, Sight};
use remote::receipt::Doubt;
use remote::strike::{Patience, Standing, strike, token};
use remote::{Filled, Journal, Permit, Reach};
use scenario::{Cluster, ExternalFault, Fault, FaultAction, Member, NodeTarget, Scenario, node_name};
use scenario_files::{asks_for, commands_at, reach_of};

use super::here;
use crate::chronicle::Chronicle;

/// How long a machine may take to look as it should.
const PATIENCE: Patience = Patience { stands: Duration::from_secs(10), gone: Duration::from_secs(60) };
/// How long after its end by the schedule a fault is undone by the timer on its machine, beside what its commands may take.
const TIMER_AFTER: Duration = Duration::from_secs(120);
/// How long a role's member is looked for.
const ROLE_PATIENCE: Duration = Duration::from_secs(10);
/// A role's member that is found within this was not waited for: connecting takes time, too.
const FOUND_AT_ONCE: Duration = Duration::from_secs(1);
/// Digits of a token that name a fault.
const ID_DIGITS: usize = 8;

/// A fault that was struck, and the way to its machine.
struct Broken {
    standing: Standing,
    reach: Reach,
}

/// A fault that is struck now or stands.
struct Striking {
    thread: JoinHandle<Option<Broken>>,
    /// Set when its time is over: what has not been struck by then is not struck any more.
    is_over: Arc<AtomicBool>,
}

/// What faults are struck on.
pub(super) struct On {
    /// The cluster.
    pub(super) cluster: Cluster,
    /// Who may be struck.
    pub(super) permit: Permit,
    /// The load whose way to the database is taken to ask who leads.
    pub(super) asked: Option<LoadPlan>,
    /// The members' pods; none of machines.
    pub(super) pods: Option<Arc<Pods>>,
}

/// What every fault needs.
struct Ground {
    on: On,
    journal: Arc<Journal>,
    chronicle: Arc<Chronicle>,
    seed: u64,
    prevented: bool,
    on_effect: Arc<dyn Fn(FaultId, f64) + Send + Sync>,
    records: Mutex<FaultRecords>,
}

/// Strikes and undoes.
pub(super) struct Strikes {
    ground: Arc<Ground>,
    /// How long each fault stands by the schedule.
    stands: Vec<Duration>,
    /// Faults that are struck now or stand, by number.
    standing: BTreeMap<FaultId, Striking>,
    undoing: Vec<JoinHandle<()>>,
}

impl Strikes {
    /// Nothing struck yet.
    pub(super) fn new(
        on: On,
        journal: Arc<Journal>,
        chronicle: Arc<Chronicle>,
        (scenario, seed, prevented): (&Scenario, u64, bool),
        on_effect: Arc<dyn Fn(FaultId, f64) + Send + Sync>,
    ) -> Strikes {
        let records = Mutex::default();
        let ground = Ground { on, journal, chronicle, seed, prevented, on_effect, records };
        let stands = scenario.schedule.iter().flat_map(|phase| {
            let until_its_end = |fault: &Fault| phase.length.saturating_sub(fault.at);
            phase.faults.iter().map(move |fault| fault.length.unwrap_or_else(|| until_its_end(fault)))
        });
        Strikes {
            stands: stands.collect(),
            ground: Arc::new(ground),
            standing: BTreeMap::new(),
            undoing: Vec::new(),
        }
    }

    /// Strikes a fault.
    pub(super) fn strike(&mut self, number: FaultId, fault: &Fault) {
        let FaultAction::External(action) = fault.action.clone() else { return };
        let ground = self.ground.clone();
        let record = FaultRecord {
            kind: fault.action.kind_name().to_owned(),
            target: format!("{} of {}", action.command.name, action.node),
            aims_at_leader: fault.action.aims_at_leader(),
            asked_s: ground.chronicle.now_s(),
            ..FaultRecord::default()
        };
        let stands = self.stands.get(number.index()).copied().unwrap_or_default();
        // Known from here on, whatever becomes of its thread: a fault without receipts lets no run pass, one that is not known does.
        ground.change(number, |kept| *kept = record.clone());
        let is_over = Arc::<AtomicBool>::default();
        let over = is_over.clone();
        let job = move || ground.strike(number, &action, record, (stands, &over));
        match std::thread::Builder::new().name("fault".to_owned()).spawn(job) {
            Ok(thread) => {
                self.standing.insert(number, Striking { thread, is_over });
            }
            Err(error) => {
                self.ground.no_thread(&error);
                let why = format!("nothing was struck: there was no thread for it: {error}");
                self.ground.not_struck(number, Verdict::Unknown, why);
            }
        }
    }

    /// Undoes a fault, once its strike is over. One whose member is still looked for is not struck.
    pub(super) fn heal(&mut self, number: FaultId) {
        let Some(Striking { thread, is_over }) = self.standing.remove(&number) else { return };
        is_over.store(true, Ordering::Release);
        let ground = self.ground.clone();
        let job = move || {
            // One that panicked leaves the fault without a receipt; the timer on its machine undoes what may stand.
            if let Ok(Some(broken)) = thread.join() {
                ground.undo(number, broken);
            }
        };
        match std::thread::Builder::new().name("fault".to_owned()).spawn(job) {
            Ok(thread) => self.undoing.push(thread),
            Err(error) => self.ground.no_thread(&error),
        }
    }

    /// Undoes everything that stands.
    pub(super) fn heal_all(&mut self) {
        let numbers: Vec<FaultId> = self.standing.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.heal(number));
    }

    /// What is known of every fault, once all is undone that is under way.
    pub(super) fn records(&mut self) -> Vec<FaultRecord> {
        for thread in self.undoing.drain(..) {
            // A panic there leaves the fault without a receipt, which is what it deserves.
            let _ = thread.join();
        }
        self.ground.records.lock().unwrap_or_else(PoisonError::into_inner).all().to_vec()
    }
}

impl Drop for Strikes {
    fn drop(&mut self) {
        self.heal_all();
        let _ = self.records();
    }
}

impl Ground {
    fn no_thread(&self, error: &std::io::Error) {
        let what = format!("no thread for a fault: {error}; the timer on its machine undoes what may stand");
        self.chronicle.warn(what, "raise the limit of processes (`ulimit -u`)");
    }

    fn change(&self, number: FaultId, change: impl FnOnce(&mut FaultRecord)) {
        change(self.records.lock().unwrap_or_else(PoisonError::into_inner).of(number));
    }

    /// Tells that a fault is asked for, and begins its record.
    fn enter(&self, number: FaultId, record: &FaultRecord) {
        let asked = EventKind::FaultAsked {
            fault: number,
            kind: record.kind.clone(),
            target: record.target.clone(),
            hits: record.hits.clone(),
            nodes: record.vms.iter().map(|vm| node_name(*vm)).collect(),
        };
        self.chronicle.say_at(record.asked_s, asked);
        self.change(number, |kept| *kept = record.clone());
    }

    /// Takes the receipt of a fault's effect into its record.
    fn receive(&self, number: FaultId, effect_s: Option<f64>, receipt: Receipt) {
        let at_s = effect_s.unwrap_or_else(|| self.chronicle.now_s());
        self.chronicle.say_at(at_s, EventKind::FaultTookEffect { fault: number, receipt: receipt.clone() });
        let shown_s = effect_s.filter(|_| receipt.verdict == Verdict::Pass);
        self.change(number, |kept| {
            kept.receipts.push((ReceiptOf::Effect, receipt));
            kept.took_effect_s = shown_s;
        });
        if let Some(effect_s) = shown_s {
            (self.on_effect)(number, effect_s);
        }
    }

    fn not_struck(&self, number: FaultId, verdict: Verdict, why: String) {
        self.receive(number, None, Receipt { verdict, evidence: vec![why] });
    }

    fn strike(
        &self,
        number: FaultId,
        fault: &ExternalFault,
        mut record: FaultRecord,
        (stands, is_over): (Duration, &AtomicBool),
    ) -> Option<Broken> {
        let due_s = record.asked_s;
        let (chosen, leader) = self.choose(number, fault.node);
        let waited_s = self.chronicle.now_s() - due_s;
        let waited = waited_in_words(fault.node, due_s, waited_s);
        if waited.is_some() {
            // What happened meanwhile is not its doing.
            record.asked_s += waited_s;
        }
        let found = chosen.and_then(|chosen| Some((chosen, self.on.cluster.members.get(chosen)?)));
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
            self.not_struck(
                number,
                Verdict::Unknown,
                "the fault was announced and not carried out".to_owned(),
            );
            return None;
        }
        let struck = self.carry_out(fault, member, stands);
        match struck {
            Ok(broken) => {
                let effect_s = self.chronicle.seconds_at(broken.standing.struck_at());
                let mut receipt = effect_of(&broken);
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

    fn carry_out(&self, fault: &ExternalFault, member: &Member, stands: Duration) -> Result<Broken, String> {
        let reach = reach_of(&self.on.cluster, member).ok_or("nothing says how to reach the member")?;
        let token = token().map_err(|error| error.to_string())?;
        let known = self.known_now(fault, member).map_err(|error| error.to_string())?;
        let commands = commands_at(fault, member, &known, &token[..ID_DIGITS]);
        let commands = commands.ok_or("its commands are not known")?;
        let deadline = timer_after(stands, &commands);
        let what = (member.name.as_str(), commands);
        let standing = strike(what, &reach, &self.on.permit, &self.journal, (deadline, PATIENCE));
        Ok(Broken { standing: standing.map_err(|error| error.to_string())?, reach })
    }

    /// Values for the file's parameters that are known of a pod only now.
    fn known_now(
        &self,
        fault: &ExternalFault,
        member: &Member,
    ) -> Result<BTreeMap<String, String>, NodeError> {
        let Some(pods) = &self.on.pods else { return Ok(BTreeMap::new()) };
        let mut known = BTreeMap::new();
        known.extend(pods.context().map(|context| (pods::CONTEXT.to_owned(), context.to_owned())));
        if asks_for(fault, pods::NODE) {
            let cluster = &self.on.cluster;
            let may_break = cluster.may_break.iter().filter_map(|number| cluster.members.get(*number));
            let may_break: BTreeSet<&str> = may_break.map(|member| member.name.as_str()).collect();
            known.insert(pods::NODE.to_owned(), pods.node_of(&member.name, &may_break)?);
        }
        Ok(known)
    }

    /// The member that is meant now, and who leads where that was asked.
    fn choose(&self, number: FaultId, node: NodeTarget) -> (Option<usize>, Option<usize>) {
        let all: Vec<usize> = (0..self.on.cluster.members.len()).collect();
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

    fn leader(&self) -> Option<usize> {
        let name = load::leader(self.on.asked.as_ref()?, here(), ROLE_PATIENCE).ok()?;
        (0..self.on.cluster.members.len()).find(|number| node_name(*number) == name)
    }

    fn undo(&self, number: FaultId, broken: Broken) {
        let Broken { standing, reach } = broken;
        let known = standing.doubts().len();
        let whole = standing.undo(&reach, &self.journal, PATIENCE);
        let mended_s = self.chronicle.seconds_at(whole.undone_at);
        let mut evidence = shown(reach.host(), &whole.gone);
        evidence.extend(whole.timer.iter().map(|end| format!("{}: {end}", reach.host())));
        // What was in doubt before is in the receipt of the effect.
        evidence.extend(in_doubt(reach.host(), &whole.doubts[known.min(whole.doubts.len())..]));
        let receipt = Receipt { verdict: whole.verdict(), evidence };
        self.chronicle.say_at(mended_s, EventKind::FaultHealed { fault: number, receipt: receipt.clone() });
        self.change(number, |kept| {
            kept.mended_s = Some(mended_s);
            kept.healed_s = (receipt.verdict == Verdict::Pass).then_some(mended_s);
            kept.receipts.push((ReceiptOf::Healing, receipt));
        });
    }
}

/// What is to be said of a role's member that was not found at once.
fn waited_in_words(node: NodeTarget, due_s: f64, waited_s: f64) -> Option<String> {
    let is_asked = matches!(node, NodeTarget::Leader | NodeTarget::AFollower);
    (is_asked && waited_s >= FOUND_AT_ONCE.as_secs_f64())
        .then(|| format!("it was due at {due_s:.1} s; the leader was looked for over {waited_s:.1} s"))
}

/// What is to be said of a fault that was struck when its time was over.
fn late_in_words(asked_s: f64, effect_s: f64, stands: Duration) -> Option<String> {
    let (late_s, stands_s) = (effect_s - asked_s, stands.as_secs_f64());
    (late_s >= stands_s).then(|| {
        format!(
            "it was struck {late_s:.1} s after it was due, and should have been over after {stands_s:.1} s"
        )
    })
}

/// When the timer on the machine fires, from its arming on. What strikes and what undoes have their whole time before that: a timer
/// that fires while a strike goes on is used up, and what it undid is struck after it.
fn timer_after(stands: Duration, commands: &Filled) -> Duration {
    let all = commands.strike.iter().chain(&commands.undo);
    stands + TIMER_AFTER + all.map(|command| command.within).sum::<Duration>()
}

/// What was seen of a fault that was struck.
fn effect_of(broken: &Broken) -> Receipt {
    let (standing, host) = (&broken.standing, broken.reach.host());
    let doubts = standing.doubts();
    let verdict = doubts.iter().map(Doubt::verdict).fold(Verdict::Pass, Verdict::and);
    let mut evidence = vec![format!("{host}: {} by {}", standing.fault().name, standing.version())];
    evidence.extend(shown(host, standing.stood()));
    evidence.extend(in_doubt(host, doubts));
    Receipt { verdict, evidence }
}

fn shown(host: &str, looks: &[Seen]) -> Vec<String> {
    let as_wanted = looks.iter().filter(|seen| matches!(seen.what, Sight::Expected(_)));
    as_wanted.map(|seen| format!("{host}: {seen}")).collect()
}

fn in_doubt(host: &str, doubts: &[Doubt]) -> Vec<String> {
    doubts.iter().map(|doubt| format!("{host}: {doubt}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fault_that_was_late_for_want_of_a_leader_says_that_it_waited() {
        let said = |node, waited_s| waited_in_words(node, 18.0, waited_s);
        let late = "it was due at 18.0 s; the leader was looked for over 3.2 s";
        assert_eq!(said(NodeTarget::Leader, 3.2).as_deref(), Some(late));
        assert_eq!(said(NodeTarget::AFollower, 0.3), None);
        assert_eq!(said(NodeTarget::Named(0), 3.2), None);
    }

    #[test]
    fn a_fault_that_was_struck_when_its_time_was_over_says_so() {
        let stands = Duration::from_secs(10);
        assert_eq!(late_in_words(5.0, 14.9, stands), None);
        let late = late_in_words(5.0, 15.5, stands).expect("too late");
        assert!(late.contains("10.5 s after it was due"), "{late}");
    }

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
