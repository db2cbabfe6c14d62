//! The thread that stands for a load whose clients are agents': it passes on the run's clock, the faults and the end, and makes
//! what the agents record one record.
//!
//! Owns the order of a load's life here, and what becomes of the load when an agent is lost.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use client::SessionError;
use history::{Action, AgentFacts, AgentLoss, ErrorClass, EventKind, EventSink, Operation, Outcome};
use load::{Batch, Clock, Elsewhere, LoadError};

use crate::group::{Group, LoadEnded, Said};
use crate::merge::Merger;
use crate::moments::{moment_of, ns_of};
use crate::plan_words::PlanWords;
use crate::words::Order;

/// How often clocks are asked for until the run begins, and after it.
const ASK_OFTEN: Duration = Duration::from_millis(50);
/// How often meanwhile.
const ASK_SELDOM: Duration = Duration::from_secs(1);
/// The longest wait for the next word of an agent.
const LOOK: Duration = Duration::from_millis(20);
/// How long clocks are compared after the run.
const LAST_COMPARISON: Duration = Duration::from_secs(1);
/// How long after its clients' last patience an agent may take to end its load.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// The longest that the final read waits for what may lie between two clocks.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;

/// What becomes of a load that has lost one of its agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfLost {
    /// It ends early, and the run is unknown.
    #[default]
    Unknown,
    /// The others go on.
    GoOn,
}

/// A load that a group of agents is to do.
#[derive(Debug, Clone)]
pub struct AgentLoad {
    /// As the scenario names it.
    pub load: String,
    /// A part for each agent, in their order.
    pub parts: Vec<PlanWords>,
    /// What becomes of it when an agent is lost.
    pub if_lost: IfLost,
}

/// Runs a load on agents until it is stopped. Called on the thread that stands for the load.
///
/// # Errors
/// When an agent cannot do its part, fails, or is lost and the load is not to go on without it.
pub fn relay(
    asked: AgentLoad,
    group: Group,
    (clock, elsewhere): (&Clock, &Elsewhere),
    sink: &Sender<Batch>,
    events: &dyn EventSink,
) -> Result<(), LoadError> {
    let parts = asked.parts.len();
    let merger = Merger::new(&asked.load, parts);
    let mut relay = Relay {
        merger,
        asked,
        group,
        clock,
        elsewhere,
        sink,
        events,
        losses: vec![None; parts],
        has_begun: false,
        stops: None,
        failure: None,
        pinged: Instant::now(),
        is_heard: true,
    };
    relay.hand_out();
    relay.go_on();
    relay.compare_clocks_again();
    relay.conclude()
}

struct Relay<'a> {
    asked: AgentLoad,
    group: Group,
    clock: &'a Clock,
    elsewhere: &'a Elsewhere,
    sink: &'a Sender<Batch>,
    events: &'a dyn EventSink,
    merger: Merger,
    /// When each was found lost, seconds.
    losses: Vec<Option<f64>>,
    has_begun: bool,
    /// When agents were told to stop.
    stops: Option<Instant>,
    /// Why the load ends though nobody told it to, and whether all of it is recorded.
    failure: Option<(String, bool)>,
    pinged: Instant,
    /// Whether somebody takes what is recorded.
    is_heard: bool,
}

impl Relay<'_> {
    /// Gives every agent its part.
    fn hand_out(&mut self) {
        for (number, part) in self.asked.parts.clone().into_iter().enumerate() {
            self.group.tell(number, &Order::Load { plan: Box::new(part) });
        }
    }

    /// Until every agent has ended its load, or is lost.
    fn go_on(&mut self) {
        while self.group.members.iter().any(crate::group::Member::is_at_work) {
            self.elsewhere.give_sign();
            self.ask_for_clocks();
            if let Some((number, said)) = self.group.listen(LOOK) {
                self.hear(number, said);
            }
            self.note_losses();
            self.tell_what_is_new();
            self.hand_on();
        }
        self.note_losses();
    }

    fn ask_for_clocks(&mut self) {
        let every = if self.has_begun { ASK_SELDOM } else { ASK_OFTEN };
        if self.pinged.elapsed() < every {
            return;
        }
        self.pinged = Instant::now();
        if self.has_begun {
            for member in &mut self.group.members {
                if let Some(offset) = member.take_offset() {
                    member.clock.meanwhile(&offset);
                }
            }
        }
        self.group.ping();
    }

    fn hear(&mut self, number: usize, said: Said) {
        match said {
            Said::Batch(words) => match words.batch(&self.asked.load) {
                Ok(batch) => {
                    if let Some(why) = &batch.failure {
                        self.fail(why.clone(), true);
                    }
                    self.merger.take(number, batch);
                }
                Err(error) => self.group.give_up(number, &format!("it told what cannot be read: {error}")),
            },
            Said::Stalled(from_ns, to_ns) => {
                if let Some(before) = self.group.members[number].clock.before {
                    let here = |theirs_ns| moment_of(before.ours(theirs_ns));
                    self.elsewhere.stalled(here(from_ns), here(to_ns));
                }
            }
            Said::Refused(why) => {
                let agent = self.group.members[number].name.clone();
                self.fail(format!("agent {agent} cannot do its part: {why}"), true);
                self.group.give_up(number, &why);
            }
        }
    }

    /// The load ends, though nobody told it to.
    fn fail(&mut self, why: String, recorded: bool) {
        match &mut self.failure {
            Some((_, all)) => *all &= recorded,
            None => self.failure = Some((why, recorded)),
        }
        self.stop();
    }

    fn stop(&mut self) {
        if self.stops.is_none() {
            self.stops = Some(Instant::now());
            self.group.tell_all(&Order::Stop);
        }
    }

    /// Agents that are lost since the last look.
    fn note_losses(&mut self) {
        for number in 0..self.group.members.len() {
            let member = &self.group.members[number];
            let why = match (&member.lost, &member.ended) {
                (Some(why), None) if self.losses[number].is_none() => why.clone(),
                _ => continue,
            };
            let (agent, load) = (member.name.clone(), self.asked.load.clone());
            let at_s = self.clock.seconds().unwrap_or(0.0);
            self.losses[number] = Some(at_s);
            self.merger.end(number, true);
            self.events.say(EventKind::AgentLost { agent: agent.clone(), load, why: why.clone() });
            let nobody_left = !self.group.members.iter().any(|member| member.lost.is_none());
            if self.asked.if_lost == IfLost::Unknown || !self.has_begun || nobody_left {
                self.fail(format!("agent {agent} was lost: {why}"), false);
            }
        }
        for (number, member) in self.group.members.iter().enumerate() {
            if member.ended.is_some() {
                self.merger.end(number, false);
            }
        }
    }

    /// What the run tells agents: its beginning, its faults and its end. And what they tell of their clients' coming.
    fn tell_what_is_new(&mut self) {
        if !self.has_begun {
            self.elsewhere.connected(self.group.members.iter().map(|member| member.connected).sum());
            for refusal in self.group.members.iter().filter_map(|member| member.refusal.clone()) {
                self.elsewhere.refused(&SessionError {
                    class: ErrorClass::Connection,
                    definite: true,
                    message: refusal.text,
                    code: refusal.code,
                });
            }
            if let Some(zero) =
                self.clock.zero().filter(|zero| self.are_clocks_compared() || *zero <= Instant::now())
            {
                self.begin(zero);
            }
        }
        for (fault, at_s) in self.elsewhere.take_marks() {
            self.merger.mark(fault);
            self.group.tell_all(&Order::Mark { fault, at_s });
        }
        if self.elsewhere.is_told_to_stop() || !self.is_heard {
            self.stop();
        }
        let patience =
            self.asked.parts.iter().map(PlanWords::timeout).max().unwrap_or_default() + END_PATIENCE;
        if self.stops.is_some_and(|since| since.elapsed() > patience) {
            for number in 0..self.group.members.len() {
                if self.group.members[number].is_at_work() {
                    self.group.give_up(number, "it did not end its load");
                }
            }
        }
    }

    /// Whether every agent that is there has told its clock at least once. A run may begin before the first has.
    fn are_clocks_compared(&self) -> bool {
        self.group.members.iter().all(|member| member.lost.is_some() || member.is_compared())
    }

    /// The run's clock has a zero: each agent gets it in its own clock's time.
    fn begin(&mut self, zero: Instant) {
        self.has_begun = true;
        let zero_ns = ns_of(zero);
        for number in 0..self.group.members.len() {
            let member = &mut self.group.members[number];
            let Some(before) = member.take_offset() else {
                self.group.give_up(number, "its clock could not be read");
                continue;
            };
            member.clock.before = Some(before);
            self.group.tell(number, &Order::Begin { zero_ns: before.theirs(zero_ns) });
        }
    }

    /// Hands on every second that all agents have told of.
    fn hand_on(&mut self) {
        for batch in self.merger.whole_seconds() {
            self.is_heard &= self.sink.send(batch).is_ok();
        }
    }

    fn compare_clocks_again(&mut self) {
        for member in &mut self.group.members {
            let _ = member.take_offset();
        }
        let until = Instant::now() + LAST_COMPARISON;
        while Instant::now() < until && self.group.members.iter().any(|member| member.lost.is_none()) {
            self.elsewhere.give_sign();
            if self.pinged.elapsed() >= ASK_OFTEN {
                self.pinged = Instant::now();
                self.group.ping();
            }
            let _ = self.group.listen(LOOK);
        }
        for member in &mut self.group.members {
            member.clock.after = member.take_offset();
        }
    }

    /// Hands on the rest, records each agent's part, and tells how the load ended.
    fn conclude(mut self) -> Result<(), LoadError> {
        for member in &self.group.members {
            let ended = member.ended.as_ref();
            let Some(told) = ended.and_then(|ended| failure_of(&member.name, ended)) else { continue };
            let failure = self.failure.get_or_insert_with(|| told.clone());
            failure.1 &= told.1;
        }
        let unrecorded = (0..self.losses.len()).filter_map(|number| self.unrecorded(number)).collect();
        let failure = self.failure.clone();
        for batch in self.merger.finish(failure.as_ref().map(|(why, _)| why.clone()), unrecorded) {
            let _ = self.sink.send(batch);
        }
        for number in 0..self.group.members.len() {
            let facts = Box::new(self.facts(number));
            self.events.say(EventKind::Agent { facts });
        }
        // Whoever reads the end must begin later than every time recorded, whatever lies between the clocks.
        let apart_ns = self.group.members.iter().filter_map(|member| member.clock.off_by_at_most_ns()).max();
        std::thread::sleep(Duration::from_nanos(apart_ns.unwrap_or(0).min(LONGEST_WAIT_NS)));
        match failure {
            Some((why, recorded)) => Err(LoadError::Elsewhere { load: self.asked.load, why, recorded }),
            None => Ok(()),
        }
    }

    /// What the history says of the operations that a lost agent took with it.
    fn unrecorded(&self, number: usize) -> Option<Operation> {
        let at_s = self.losses[number]?;
        let part = self.asked.parts.get(number)?;
        let invoked_s = self.merger.recorded_until_s(number).min(at_s);
        Some(Operation {
            load: self.asked.load.clone(),
            client: workload::ledger::LARGEST_CLIENT + 1 + part.first_client(),
            action: Action::Unrecorded {
                workload: part.workload().to_owned(),
                first_client: part.first_client(),
                clients: part.most_clients(),
            },
            invoked_s,
            completed_s: at_s,
            outcome: Outcome::Unknown,
            error: None,
            node: None,
        })
    }

    fn facts(&self, number: usize) -> AgentFacts {
        let (member, part) = (&self.group.members[number], &self.asked.parts[number]);
        let lost = self.losses[number].map(|at_s| AgentLoss {
            at_s,
            recorded_until_s: self.merger.recorded_until_s(number).min(at_s),
            why: member.lost.clone().unwrap_or_default(),
            went_on: self.failure.is_none(),
        });
        AgentFacts {
            agent: member.name.clone(),
            host: member.host.clone(),
            load: self.asked.load.clone(),
            first_client: part.first_client(),
            clients: part.most_clients(),
            clock: member.clock.facts(),
            late_s: member.late.as_secs_f64(),
            cpu_s: member.ended.as_ref().map(|ended| ended.cpu.as_secs_f64()),
            lost,
        }
    }
}

/// Why an agent's load did not end as it should, and whether all of it is recorded; nothing where it did.
fn failure_of(agent: &str, ended: &LoadEnded) -> Option<(String, bool)> {
    let why = match &ended.why {
        Some(why) => why,
        // Its clients went on, and what they did is missing from the history and the figures.
        None if !ended.recorded => "it did not hand over all that its clients did",
        None => return None,
    };
    Some((format!("agent {agent}: {why}"), ended.recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_did_not_hand_over_all_has_not_ended_well() {
        let ended = |why: Option<&str>, recorded| {
            let why = why.map(str::to_owned);
            failure_of("a1", &LoadEnded { why, recorded, cpu: Duration::ZERO })
        };
        assert_eq!(ended(None, true), None);
        assert_eq!(ended(Some("no database"), true), Some(("agent a1: no database".to_owned(), true)));
        let (why, recorded) = ended(None, false).expect("a failure");
        assert!(why.starts_with("agent a1: it did not hand over all") && !recorded, "{why}");
    }
}
