//! What the clocks of several machines leave open: an agent's times may be off by so much, and whatever rests on less is not
//! known.
//!
//! Owns what is judged by times of several clocks, and how much is too much. How clocks are compared is `agent`'s.

use std::collections::BTreeMap;

use history::{AgentFacts, Event, EventKind, Operation, Verdict};
use results::{AgentDoubt, LoadResult, WarningResult};

use crate::checks::Checked;

/// From here on a reader should know: a hundredth of the second that figures are counted in.
const WORTH_TELLING_US: f64 = 10_000.0;
/// An agent that began so long after the others is told of, seconds.
const LATE_S: f64 = 0.1;
/// Checks that hold the times of different clients against each other.
const BY_TIME: [&str; 4] =
    [check::register::NAME, check::convergence::NAME, check::last_writes::NAME, check::list_append::NAME];

/// What is known of every agent.
pub(crate) fn agents(events: &[Event]) -> Vec<AgentFacts> {
    let facts = |event: &Event| match &event.kind {
        EventKind::Agent { facts } => Some(facts.as_ref().clone()),
        _ => None,
    };
    events.iter().filter_map(facts).collect()
}

/// Why nothing can be said of phases and recoveries of an agent's load, and what to do.
pub(crate) fn left_open(agent: &AgentFacts, doubt: AgentDoubt) -> String {
    let AgentFacts { agent: name, load, .. } = agent;
    match doubt {
        AgentDoubt::ClockNotCompared => format!(
            "the clock of agent {name} could not be compared with this machine's before and after the run, so its times are \
             not known"
        ),
        AgentDoubt::TimesOff(off_us) => format!(
            "times of agent {name} may be off by {:.1} s, so phases and recovery times of load {load} are not known; keep the \
             clocks of the machines in step, or reduce latency between them",
            off_us / 1e6
        ),
        AgentDoubt::StartedLate => format!(
            "agent {name} started {:.1} s late; load {load} was too low in the judged phases; reduce latency to the agent, \
             or give the warm-up more time",
            agent.late_s
        ),
    }
}

/// What a reader should know of the agents.
pub(crate) fn warnings(agents: &[AgentFacts]) -> Vec<WarningResult> {
    let mut found = Vec::new();
    for agent in agents {
        let AgentFacts { agent: name, load, .. } = agent;
        if let Some(off_us) = agent.clock.off_by_at_most_us.filter(|off_us| *off_us > WORTH_TELLING_US) {
            found.push(WarningResult {
                what: format!(
                    "times of agent {name} may be off by {:.0} ms, and recovery times of load {load} by as much",
                    off_us / 1e3
                ),
                remedy: "keep the clocks of the machines in step, or reduce latency between them".to_owned(),
            });
        }
        if agent.late_s > LATE_S {
            found.push(WarningResult {
                what: format!(
                    "agent {name} started {:.1} s after the others: its start command came late",
                    agent.late_s
                ),
                remedy: "reduce latency to the agent, or give the warm-up more time".to_owned(),
            });
        }
        if let Some(lost) = agent.lost.as_ref().filter(|lost| lost.went_on) {
            found.push(WarningResult {
                what: format!(
                    "load {load} went on without agent {name} and its {} from {:.1} s on: {}",
                    report::counted(u64::from(agent.clients), "client", "clients"),
                    lost.at_s,
                    lost.why
                ),
                remedy: "do not compare phases before and after: the load was lower from then on".to_owned(),
            });
        }
    }
    found
}

/// How far times of an operation may be off, seconds; nothing for clients of the conductor's own process.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// By load: the first of an agent's clients, the number after the last, and by how much.
    agents: BTreeMap<String, Vec<(u64, u64, f64)>>,
    /// Loads of an agent whose clock was not compared before and after, with what there is to say of it.
    not_compared: BTreeMap<String, String>,
}

impl Clocks {
    /// Of these agents.
    pub(crate) fn of(agents: &[AgentFacts]) -> Clocks {
        let mut clocks = Clocks::default();
        for agent in agents {
            let Some(off_us) = agent.clock.off_by_at_most_us else {
                clocks.not_compared.insert(agent.load.clone(), why_no_order_is_known(agent));
                continue;
            };
            let end = agent.first_client + u64::from(agent.clients);
            let of_load = clocks.agents.entry(agent.load.clone()).or_default();
            of_load.push((agent.first_client, end, off_us / 1e6));
        }
        clocks
    }

    /// Whether there are several.
    pub(crate) fn are_several(&self) -> bool {
        !self.agents.is_empty() || !self.not_compared.is_empty()
    }

    fn off_s(&self, operation: &Operation) -> f64 {
        let agents = self.agents.get(&operation.load).into_iter().flatten();
        let of_client = |(first, end, _): &&(u64, u64, f64)| (*first..*end).contains(&operation.client);
        agents.filter(of_client).map(|(.., off_s)| *off_s).fold(0.0, f64::max)
    }

    /// The operation as long as it may have lasted: what is apart by less than the clocks' uncertainty has no order then.
    pub(crate) fn widened(&self, operation: &Operation) -> Operation {
        let off_s = self.off_s(operation);
        Operation {
            invoked_s: operation.invoked_s - off_s,
            completed_s: operation.completed_s + off_s,
            ..operation.clone()
        }
    }

    /// What a check by times may say. `again` is what it says of operations that are widened. A failure that is none then rests
    /// on an order that nobody knows; and where clocks are further apart than operations are long, or nobody knows how far they
    /// are, no order is known at all.
    pub(crate) fn judged(&self, checked: Checked, again: Option<&Checked>, loads: &[LoadResult]) -> Checked {
        if !BY_TIME.contains(&checked.result.name.as_str()) {
            return checked;
        }
        let check = check::registry::find(&checked.result.name);
        let is_judged = |load: &&LoadResult| check.is_some_and(|check| check.takes_in(&load.workload));
        let mut judged = loads.iter().filter(is_judged);
        if let Some(why) = judged.find_map(|load| self.not_compared.get(&load.name)) {
            return in_doubt(checked, why);
        }
        let widest_s = self.agents.values().flatten().map(|(.., off_s)| *off_s).fold(0.0, f64::max);
        let on_agents = loads.iter().filter(is_judged).filter(|load| self.agents.contains_key(&load.name));
        let Some(shortest_us) = on_agents.map(|load| load.measured.latency_us.p50).min() else {
            return checked;
        };
        let rests_on_order = checked.result.verdict == Verdict::Fail
            && again.is_none_or(|again| again.result.verdict != Verdict::Fail);
        let is_blind = checked.result.verdict == Verdict::Pass && widest_s * 1e6 > shortest_us as f64;
        let why = match (rests_on_order, is_blind) {
            (true, _) => "the failure depends on an order of operations that the agents' clocks cannot show",
            (_, true) => "operations of different agents are shorter than the uncertainty of their clocks",
            _ => return checked,
        };
        in_doubt(checked, &format!("{why} (up to {:.3} ms)", widest_s * 1e3))
    }
}

fn why_no_order_is_known(agent: &AgentFacts) -> String {
    match &agent.lost {
        Some(_) => format!(
            "agent {} was lost, and its clock was not compared with this machine's to the end, so the order of its \
             operations is not known",
            agent.agent
        ),
        None => {
            let why = "the offset between the agents' clocks is unknown, and so is the order of operations";
            why.to_owned()
        }
    }
}

/// What a check says that rests on times which are not known. One that knew nothing before stays as it is.
fn in_doubt(checked: Checked, why: &str) -> Checked {
    match checked.result.verdict {
        Verdict::Unknown => checked,
        _ => checked.taken_back(why, "By their times"),
    }
}

#[cfg(test)]
mod tests {
    use history::{Action, AgentLoss, ClockFacts, ClockOffset, Outcome, PhaseFacts, RunFacts};
    use results::{CheckResult, Doubt, LatencyUs, LoadFigures, RunResult};

    use super::*;

    fn agent(off_by_at_most_us: Option<f64>) -> AgentFacts {
        let offset = off_by_at_most_us.map(|uncertainty_us| ClockOffset { ahead_us: 0.0, uncertainty_us });
        AgentFacts {
            agent: "a2".to_owned(),
            host: "load2".to_owned(),
            load: "r".to_owned(),
            first_client: 10,
            clients: 5,
            clock: ClockFacts { before: offset, after: offset, off_by_at_most_us },
            late_s: 0.0,
            cpu_s: None,
            lost: None,
        }
    }

    /// One without which its load went on; its clock was compared before the run alone.
    fn lost_agent() -> AgentFacts {
        let lost = AgentLoss { at_s: 12.0, recorded_until_s: 11.0, why: "gone".to_owned(), went_on: true };
        let before = Some(ClockOffset { ahead_us: 0.0, uncertainty_us: 80.0 });
        let clock = ClockFacts { before, ..ClockFacts::default() };
        AgentFacts { lost: Some(lost), clock, ..agent(None) }
    }

    /// What these agents leave open in a run whose warm-up ended then.
    fn doubts(agents: &[AgentFacts], judged_from_s: f64) -> Vec<String> {
        let phase = |name: &str, from_s, to_s| PhaseFacts { name: name.to_owned(), from_s, to_s };
        let phases =
            vec![phase(history::WARM_UP, 0.0, judged_from_s), phase("baseline", judged_from_s, 60.0)];
        let facts = RunFacts { phases, ..RunFacts::default() };
        let result = RunResult { agents: agents.to_vec(), ..RunResult::blank(facts) };
        let of_agents = |doubt: Doubt<'_>| match doubt {
            Doubt::Agent(agent, doubt) => Some(left_open(agent, doubt)),
            _ => None,
        };
        result.doubts().into_iter().filter_map(of_agents).collect()
    }

    #[test]
    fn a_clock_that_is_off_by_more_than_what_is_judged_leaves_the_run_in_doubt_and_a_little_is_told() {
        assert!(doubts(&[agent(Some(80.0))], 0.0).is_empty() && warnings(&[agent(Some(80.0))]).is_empty());
        let told = warnings(&[agent(Some(40_000.0))]);
        assert!(told[0].what.contains("off by 40 ms") && doubts(&[agent(Some(40_000.0))], 0.0).is_empty());
        let drifted = doubts(&[agent(Some(90.0)), agent(Some(2_300_000.0))], 0.0);
        assert!(drifted.len() == 1 && drifted[0].contains("agent a2 may be off by 2.3 s"), "{drifted:?}");
        let unknown = doubts(&[agent(None)], 0.0);
        assert!(unknown[0].contains("could not be compared"), "{unknown:?}");
    }

    #[test]
    fn a_loss_that_the_scenario_puts_up_with_is_a_warning() {
        let agent = AgentFacts { late_s: 0.4, ..lost_agent() };
        let told = warnings(std::slice::from_ref(&agent));
        assert!(
            told[0].what.contains("0.4 s after") && told[1].what.contains("its 5 clients from 12.0 s on")
        );
        assert!(doubts(&[agent], 0.0).is_empty());
        // One that was never asked has no times at all.
        let clock = ClockFacts::default();
        assert_eq!(doubts(&[AgentFacts { clock, ..lost_agent() }], 0.0).len(), 1);
    }

    #[test]
    fn a_check_by_times_is_told_that_the_clock_of_a_lost_agent_was_not_compared_to_the_end() {
        // Another agent of the load was compared, and so was one of another load.
        let other = AgentFacts { agent: "a1".to_owned(), first_client: 0, ..agent(Some(80.0)) };
        let clocks = Clocks::of(&[other.clone(), lost_agent()]);
        let judged = |name: &str, verdict| {
            let again = checked(name, verdict);
            clocks.judged(checked(name, verdict), Some(&again), &[load(900)]).result
        };
        for verdict in [Verdict::Pass, Verdict::Fail] {
            let told = judged(check::register::NAME, verdict);
            assert_eq!(told.verdict, Verdict::Unknown);
            assert!(told.explanation.starts_with("agent a2 was lost, and its clock"), "{}", told.explanation);
            assert_eq!(judged(check::ledger::NAME, verdict).verdict, verdict, "no times");
        }
        let elsewhere = AgentFacts { load: "other".to_owned(), ..lost_agent() };
        let clocks = Clocks::of(&[other, elsewhere]);
        let passed = clocks.judged(checked(check::register::NAME, Verdict::Pass), None, &[load(900)]);
        assert_eq!(passed.result.verdict, Verdict::Pass);
    }

    #[test]
    fn an_agent_that_begins_late_in_what_is_judged_leaves_doubt_and_one_late_in_the_warm_up_does_not() {
        let late = |late_s| [AgentFacts { late_s, ..agent(Some(80.0)) }];
        assert!(doubts(&late(0.3), 0.0).is_empty() && doubts(&late(4.0), 5.0).is_empty());
        for (late_s, judged_from_s) in [(2.5, 0.0), (5.5, 5.0)] {
            let told = doubts(&late(late_s), judged_from_s);
            assert!(told.len() == 1 && told[0].contains("agent a2 started"), "{told:?}");
        }
    }

    fn checked(name: &str, verdict: Verdict) -> Checked {
        Checked { result: CheckResult::new(name, verdict, "as seen"), lost: Vec::new() }
    }

    fn load(p50: u64) -> LoadResult {
        let latency_us = LatencyUs { p50, ..LatencyUs::default() };
        let measured = LoadFigures { latency_us, ..LoadFigures::default() };
        LoadResult {
            name: "r".to_owned(),
            workload: "register".to_owned(),
            measured,
            ..LoadResult::default()
        }
    }

    #[test]
    fn a_check_by_times_says_no_more_than_the_clocks_tell() {
        let clocks = Clocks::of(&[agent(Some(300.0))]);
        let judged = |name: &str, verdict, again: Option<Verdict>, p50| {
            let again = again.map(|verdict| checked(name, verdict));
            clocks.judged(checked(name, verdict), again.as_ref(), &[load(p50)]).result.verdict
        };
        let register = check::register::NAME;
        assert_eq!(judged(register, Verdict::Fail, Some(Verdict::Fail), 900), Verdict::Fail);
        assert_eq!(judged(register, Verdict::Fail, Some(Verdict::Pass), 900), Verdict::Unknown);
        assert_eq!(judged(register, Verdict::Pass, None, 900), Verdict::Pass);
        assert_eq!(judged(register, Verdict::Pass, None, 200), Verdict::Unknown);
        let ledger = check::ledger::NAME;
        assert_eq!(judged(ledger, Verdict::Fail, Some(Verdict::Pass), 200), Verdict::Fail, "no times");
    }

    #[test]
    fn by_a_clock_that_was_not_compared_no_order_is_known() {
        let clocks = Clocks::of(&[agent(None)]);
        assert!(clocks.are_several());
        let judged = |name: &str, verdict, again| {
            let again = checked(name, again);
            clocks.judged(checked(name, verdict), Some(&again), &[load(900)]).result.verdict
        };
        let register = check::register::NAME;
        assert_eq!(judged(register, Verdict::Fail, Verdict::Fail), Verdict::Unknown);
        assert_eq!(judged(register, Verdict::Pass, Verdict::Pass), Verdict::Unknown);
        // No workload names it, and yet it takes in what clients of registers did.
        let convergence = check::convergence::NAME;
        assert_eq!(judged(convergence, Verdict::Pass, Verdict::Pass), Verdict::Unknown);
        assert_eq!(judged(convergence, Verdict::Fail, Verdict::Fail), Verdict::Unknown);
        assert_eq!(judged(check::ledger::NAME, Verdict::Fail, Verdict::Fail), Verdict::Fail, "no times");
        // Another load's agent.
        let elsewhere = AgentFacts { load: "other".to_owned(), ..agent(None) };
        let clocks = Clocks::of(&[elsewhere]);
        let failed = clocks.judged(checked(register, Verdict::Fail), None, &[load(900)]);
        assert_eq!(failed.result.verdict, Verdict::Fail);
    }

    #[test]
    fn operations_are_as_long_as_their_own_clock_leaves_open() {
        let clocks = Clocks::of(&[agent(Some(250_000.0))]);
        let operation = |client| Operation {
            load: "r".to_owned(),
            client,
            action: Action::LedgerInsert { value: 1 },
            invoked_s: 2.0,
            completed_s: 3.0,
            outcome: Outcome::Ok,
            error: None,
            node: None,
        };
        let times = |client| {
            let widened = clocks.widened(&operation(client));
            (widened.invoked_s, widened.completed_s)
        };
        assert_eq!((times(9), times(10), times(15)), ((2.0, 3.0), (1.75, 3.25), (2.0, 3.0)));
    }
}
