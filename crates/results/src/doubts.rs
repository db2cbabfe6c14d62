//! What in a run's own facts leaves its verdict in doubt, whatever its checks and expectations say: one list for all who ask.
//!
//! Owns which facts these are, and which of them put figures in doubt. Whole sentences with what to do are the verdict's; the
//! short ones here serve as a cause within others.

use std::fmt;

use history::{AgentFacts, FaultId, Receipt, Stall, Verdict};

use crate::barren_load::Barren;
use crate::fault::FaultResult;
use crate::lab::{FailedRollbackResult, InterferenceResult, PlacementResult};
use crate::load::{EndedEarly, LoadResult};
use crate::run::RunResult;

/// Figures are counted by the second, and a second belongs to the phase that its middle lies in: times that are off by more
/// than half of one, microseconds, say nothing of phases.
const HALF_A_SECOND_US: f64 = 500_000.0;
/// An agent that began so late stood still for as long as a stall of the lab lasts, seconds: too little was asked meanwhile.
const TOO_LATE_S: f64 = 0.5;

/// A fact that leaves no pass.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt<'r> {
    /// The lab lost what a node had synced.
    LabLostSynced(FaultId),
    /// A volume that a power-off left in doubt.
    FailedRollback(&'r FailedRollbackResult),
    /// A fault that was not shown.
    FaultNotShown(FaultId, &'r FaultResult),
    /// A fault that took effect when no load was there any more, at this second.
    FaultAfterLoads(FaultId, &'r FaultResult, f64),
    /// The site's links were measured and are not what the scenario has.
    LinksNotAsConfigured(&'r Receipt),
    /// A load that nobody told to end.
    LoadEndedEarly(&'r LoadResult, &'r EndedEarly),
    /// What the times of an agent, or its beginning, leave open.
    Agent(&'r AgentFacts, AgentDoubt),
    /// Stalls of the lab that reach into what is judged.
    Stalled {
        /// The longest of them.
        longest: &'r Stall,
        /// How many there are beside it.
        others: usize,
        /// How long the others took together, seconds.
        others_s: f64,
    },
    /// Something that a stranger did to a node.
    Interference {
        /// What, and when.
        seen: &'r InterferenceResult,
        /// Whether the scenario could have said that it may happen: a cluster that exists it does not describe.
        could_be_expected: bool,
    },
    /// A rule that the platform broke.
    Placement(&'r PlacementResult),
    /// How often a place could not be taken off the kernel's own path.
    PlacesUnshut(u64),
    /// Why no power-off had anything to lose.
    NothingToLose(&'r str),
    /// The final state was read at one of several leaders.
    SeveralLeaders(&'r [String]),
    /// Nodes that may have led when the final state was read: they did not say.
    SilentNodes(&'r [String]),
    /// A load none of whose operations succeeded.
    NoSuccess(&'r LoadResult),
    /// A load that did next to nothing, or little but fail.
    Barren(&'r LoadResult, Barren),
    /// No check applies to any load.
    NoChecks,
}

/// What an agent leaves open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AgentDoubt {
    /// Its clock was not compared with this machine's before and after the run.
    ClockNotCompared,
    /// Its times may be off by so many microseconds.
    TimesOff(f64),
    /// It started after the warm-up.
    StartedLate,
}

impl RunResult {
    /// All that leaves its verdict in doubt beside its checks and expectations, in the order in which a reader is told.
    #[must_use]
    pub fn doubts(&self) -> Vec<Doubt<'_>> {
        let faults = || FaultId::of_each(&self.faults);
        let lost = faults().find(|(_, fault)| fault.lab_lost_synced);
        let not_shown = faults().filter(|(_, fault)| fault.receipt.verdict != Verdict::Pass);
        let late = self.fault_after_the_loads();
        let late = late.and_then(|(number, at_s)| Some((number, self.faults.get(number.index())?, at_s)));
        let links = self.links_receipt.as_ref().filter(|links| links.verdict == Verdict::Fail);
        let ended = self.loads.iter().filter_map(|load| Some((load, load.ended_early.as_ref()?)));
        let mut doubts = Vec::new();
        doubts.extend(lost.map(|(number, _)| Doubt::LabLostSynced(number)));
        doubts.extend(self.lab.failed_rollbacks.iter().map(Doubt::FailedRollback));
        doubts.extend(not_shown.map(|(number, fault)| Doubt::FaultNotShown(number, fault)));
        doubts.extend(late.map(|(number, fault, at_s)| Doubt::FaultAfterLoads(number, fault, at_s)));
        doubts.extend(links.map(Doubt::LinksNotAsConfigured));
        doubts.extend(ended.map(|(load, ended)| Doubt::LoadEndedEarly(load, ended)));
        doubts.extend(self.doubts_of_agents());
        doubts.extend(self.doubts_of_the_lab());
        doubts.extend(self.doubts_of_loads());
        doubts
    }

    fn doubts_of_agents(&self) -> impl Iterator<Item = Doubt<'_>> {
        let judged_from_s = self.judged_from_s();
        let late = move |agent: &&AgentFacts| agent.late_s > judged_from_s.max(TOO_LATE_S);
        let of_clock = |agent: &AgentFacts| match agent.clock.off_by_at_most_us {
            // Compared before the run and not after it: what rests on its times is doubted one by one.
            None if agent.lost.is_some() && agent.clock.before.is_some() => None,
            None => Some(AgentDoubt::ClockNotCompared),
            Some(off_us) => (off_us > HALF_A_SECOND_US).then_some(AgentDoubt::TimesOff(off_us)),
        };
        let clocks = self.agents.iter().filter_map(move |agent| Some(Doubt::Agent(agent, of_clock(agent)?)));
        let late = self.agents.iter().filter(late).map(|agent| Doubt::Agent(agent, AgentDoubt::StartedLate));
        clocks.chain(late)
    }

    fn doubts_of_the_lab(&self) -> Vec<Doubt<'_>> {
        let judged_from_s = self.judged_from_s();
        let lab = &self.lab;
        let stalls = lab.stalls.iter().filter(|stall| stall.to_s >= judged_from_s);
        let strangers = lab.interference.iter().filter(|seen| seen.interference.is_doubtful());
        let unshut = lab.kernel_path.as_ref().map(|path| path.places_unshut).filter(|times| *times > 0);
        let mut doubts = Vec::new();
        doubts.extend(stalled(stalls));
        let could_be_expected = !self.facts.is_external;
        doubts.extend(strangers.map(|seen| Doubt::Interference { seen, could_be_expected }));
        doubts.extend(lab.placement.iter().map(Doubt::Placement));
        doubts.extend(unshut.map(Doubt::PlacesUnshut));
        doubts.extend(lab.nothing_to_lose.as_deref().map(Doubt::NothingToLose));
        doubts
    }

    fn doubts_of_loads(&self) -> Vec<Doubt<'_>> {
        let leaders = self.leaders_at_the_end.as_slice();
        let several = (leaders.len() > 1).then_some(Doubt::SeveralLeaders(leaders));
        let unheard = self.silent_at_the_end.as_slice();
        let unheard = (!unheard.is_empty()).then_some(Doubt::SilentNodes(unheard));
        let silent = self.loads.iter().filter(|load| load.measured.transactions == 0).map(Doubt::NoSuccess);
        let barren = self.loads.iter().filter_map(|load| Some(Doubt::Barren(load, load.barren()?)));
        let unchecked = self.checks.is_empty().then_some(Doubt::NoChecks);
        several.into_iter().chain(unheard).chain(silent).chain(barren).chain(unchecked).collect()
    }
}

/// One doubt for all stalls, if there are any.
fn stalled<'r>(stalls: impl Iterator<Item = &'r Stall> + Clone) -> Option<Doubt<'r>> {
    let longest = stalls.clone().max_by(|one, other| one.length_s.total_cmp(&other.length_s))?;
    let others_s = stalls.clone().map(|stall| stall.length_s).sum::<f64>() - longest.length_s;
    Some(Doubt::Stalled { longest, others: stalls.count() - 1, others_s })
}

impl Doubt<'_> {
    /// Whether figures of throughput, latency and time are not the database's alone. What a load did or did not do is.
    #[must_use]
    pub fn is_of_figures(&self) -> bool {
        match self {
            Doubt::LabLostSynced(_)
            | Doubt::FailedRollback(_)
            | Doubt::FaultNotShown(..)
            | Doubt::LinksNotAsConfigured(_)
            | Doubt::LoadEndedEarly(..)
            | Doubt::Agent(..)
            | Doubt::Stalled { .. }
            | Doubt::Interference { .. }
            | Doubt::Placement(_)
            | Doubt::PlacesUnshut(_) => true,
            Doubt::FaultAfterLoads(..)
            | Doubt::NothingToLose(_)
            | Doubt::SeveralLeaders(_)
            | Doubt::SilentNodes(_)
            | Doubt::NoSuccess(_)
            | Doubt::Barren(..)
            | Doubt::NoChecks => false,
        }
    }
}

impl fmt::Display for Doubt<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::LabLostSynced(number) => {
                write!(formatter, "the lab lost synced data at fault {}", number.ordinal())
            }
            Doubt::FailedRollback(of) => {
                write!(formatter, "{} could not be brought back to what was durable", of.volume)
            }
            Doubt::FaultNotShown(number, _) => write!(formatter, "fault {} has no receipt", number.ordinal()),
            Doubt::FaultAfterLoads(number, ..) => {
                write!(formatter, "fault {} took effect after the loads had ended", number.ordinal())
            }
            Doubt::LinksNotAsConfigured(_) => {
                formatter.write_str("the site's links do not behave as configured")
            }
            Doubt::LoadEndedEarly(load, _) => write!(formatter, "load {} ended early", load.name),
            Doubt::Agent(agent, AgentDoubt::StartedLate) => {
                write!(formatter, "agent {} started {:.1} s late", agent.agent, agent.late_s)
            }
            Doubt::Agent(agent, _) => write!(formatter, "the times of agent {} are not known", agent.agent),
            Doubt::Stalled { longest, .. } => {
                write!(formatter, "the lab stalled for {:.1} s at {:.1} s", longest.length_s, longest.from_s)
            }
            Doubt::Interference { seen, .. } => {
                write!(formatter, "{} at {:.1} s", seen.interference, seen.t_s)
            }
            Doubt::Placement(of) => write!(formatter, "{}, against the platform's own rules", of.violation),
            Doubt::PlacesUnshut(_) => {
                formatter.write_str("places could not be taken off the kernel's own path")
            }
            Doubt::NothingToLose(why) => write!(formatter, "durability at power-off was not tested: {why}"),
            Doubt::SeveralLeaders(nodes) => {
                write!(formatter, "{} led at once when the final state was read", nodes.join(" and "))
            }
            Doubt::SilentNodes(nodes) => {
                write!(
                    formatter,
                    "{} did not say whether it leads when the final state was read",
                    nodes.join(" and ")
                )
            }
            Doubt::NoSuccess(load) => write!(formatter, "load {} has no success", load.name),
            Doubt::Barren(load, _) => {
                write!(formatter, "load {} did next to nothing, or mostly failed", load.name)
            }
            Doubt::NoChecks => formatter.write_str("it has no checks"),
        }
    }
}
