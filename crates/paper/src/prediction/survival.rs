//! What faults leave, on paper and in the run: whether writes are served while they stand, how soon, and whether
//! acknowledged writes are there in the end.
//!
//! Faults that stand at once are judged together, from the first whole second after the last of them took effect until
//! one of them is mended. Who led and where the nodes stood is taken from the run; the judgement is `model`'s. Only loads
//! whose writes are told apart from their reads can show anything.

use std::time::Duration;

use faults::{End, FaultRecord, Struck};
use history::{EventKind, FaultId, HostId, NodeId, PerNode};
use model::deployment::Deployment;
use model::survival::{Action, Data, Failure, Outcome, Service, outcome};
use results::{FaultResult, PredictionResult, Relation, RunResult};
use scenario::{Failover, FaultAction, Scenario, Takes};

use super::Evidence;
use crate::deployment::{deployment, election_s_least};
use crate::processes::{self, takes_over_after};
use crate::storage;

/// Whole seconds that faults must stand for anything to be said.
const SECONDS_MIN: u64 = 2;
/// How long after a takeover is due it may take until it is seen to have failed.
const TAKEOVER_PATIENCE: Duration = Duration::from_secs(10);

/// Predictions for every set of faults that stood at once, and for the writes of the whole run.
pub(super) fn of_faults(
    result: &RunResult,
    scenario: &Scenario,
    evidence: &Evidence<'_>,
) -> Vec<PredictionResult> {
    let mut rows = Vec::new();
    let mut worst: Option<Outcome> = None;
    let mut all_judged = true;
    let actions: Vec<&FaultAction> = actions(scenario).collect();
    for stretch in stretches(evidence.faults, evidence.ended_s) {
        let site = site_at(scenario, evidence, &stretch);
        let after = takes_over_after(scenario);
        let Some(failures) = stretch.failures(evidence.faults, &actions, (&site, after)) else {
            all_judged = false;
            continue;
        };
        if failures.is_empty() {
            continue;
        }
        let possible: Vec<Outcome> = possible_leaders(scenario, evidence, &stretch, &site)
            .map(|site| outcome(&site, &failures))
            .collect();
        let Some(expected) = possible.iter().min().copied() else { continue };
        worst =
            Some(worst.map_or(expected, |worst| if expected.data < worst.data { expected } else { worst }));
        let seconds = stretch.seconds();
        if seconds.end < seconds.start + SECONDS_MIN && stretch.is_moment(evidence.faults) {
            continue;
        }
        let depends =
            possible.iter().any(|one| writes_served(one.service) != writes_served(expected.service));
        let row = service(result, scenario, evidence, &stretch, expected);
        rows.push(match () {
            () if depends => depending(row, "who leads"),
            // Whether standbys are ahead of a leader that was forced back is decided by moments.
            () if forced_back(expected) => depending(row, "what the mirror had received"),
            () => row,
        });
        if possible.len() == 1 {
            rows.extend(recovery(result, scenario, &stretch, &site, expected));
        }
    }
    if let Some(worst) = worst.filter(|_| all_judged) {
        rows.extend(losses(result, worst.data));
    }
    rows
}

/// What the faults do, in the order of the schedule.
fn actions(scenario: &Scenario) -> impl Iterator<Item = &FaultAction> {
    scenario.faults().map(|fault| &fault.action)
}

/// A stretch of time over which the same faults stand.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    faults: Vec<FaultId>,
    from_s: f64,
    to_s: f64,
}

/// Every stretch over which some fault stands, in order.
fn stretches(faults: &[FaultRecord], ended_s: f64) -> Vec<Stretch> {
    let stands = |fault: &FaultRecord| {
        let to_s = fault.mended_s.or(fault.healed_s).unwrap_or(ended_s).min(ended_s);
        fault.took_effect_s.map(|from_s| (from_s, to_s))
    };
    let mut moments: Vec<f64> = faults.iter().filter_map(stands).flat_map(|(from, to)| [from, to]).collect();
    moments.sort_by(f64::total_cmp);
    let during = |pair: &[f64]| {
        let (from_s, to_s) = (pair[0], pair[1]);
        let here = |fault: &FaultRecord| stands(fault).is_some_and(|(from, to)| from <= from_s && to_s <= to);
        let standing = FaultId::of_each(faults).filter(|(_, fault)| here(fault));
        Stretch { faults: standing.map(|(number, _)| number).collect(), from_s, to_s }
    };
    moments
        .windows(2)
        .map(during)
        .filter(|stretch| !stretch.faults.is_empty() && stretch.to_s > stretch.from_s)
        .collect()
}

impl Stretch {
    /// What failed, in the model's terms; `None` where one of the faults is not on paper.
    fn failures(
        &self,
        faults: &[FaultRecord],
        actions: &[&FaultAction],
        (site, takes_over_after): (&Deployment, Option<Duration>),
    ) -> Option<Vec<Failure>> {
        let of = |number: &FaultId| {
            let action = actions.get(number.index()).copied();
            failures_of(&faults[number.index()], action, (site, takes_over_after))
        };
        Some(self.faults.iter().map(of).collect::<Option<Vec<_>>>()?.concat())
    }

    /// The records of the faults that stand, of those of all faults.
    fn records<'f>(&self, faults: &'f [FaultRecord]) -> impl Iterator<Item = &'f FaultRecord> {
        self.faults.iter().map(move |number| &faults[number.index()])
    }

    /// Whether it is only the moment between the effects, or the ends, of faults that stand together.
    fn is_moment(&self, faults: &[FaultRecord]) -> bool {
        let begins = self.records(faults).all(|fault| fault.took_effect_s == Some(self.from_s));
        let ends = self.records(faults).all(|fault| fault.mended_s == Some(self.to_s));
        !(begins && ends)
    }

    fn name(&self, result: &RunResult) -> String {
        let told = |number: &FaultId| match result.faults.get(number.index()) {
            Some(fault) => {
                format!(
                    "{} (fault {})",
                    results::fault_name(&fault.kind, " of ", &fault.target),
                    number.ordinal()
                )
            }
            None => format!("fault {}", number.ordinal()),
        };
        let told: Vec<String> = self.faults.iter().map(told).collect();
        format!("{} from {:.1} s on", told.join(" and "), self.from_s)
    }

    /// Its whole seconds, the one in which it begins left out.
    fn seconds(&self) -> std::ops::Range<u64> {
        self.from_s.ceil() as u64..self.to_s.floor() as u64
    }
}

/// A fault in the model's terms; nothing where it leaves everybody within reach of everybody, `None` where it is not on
/// paper.
fn failures_of(
    fault: &FaultRecord,
    action: Option<&FaultAction>,
    (site, takes_over_after): (&Deployment, Option<Duration>),
) -> Option<Vec<Failure>> {
    match (action?.takes(), &fault.struck) {
        (Takes::NothingJudged(_) | Takes::Time(_) | Takes::Pause(_), _) => Some(Vec::new()),
        (Takes::Power(_), Struck::Hosts(hosts)) => Some(hosts.iter().cloned().map(Failure::Down).collect()),
        // What comes and goes leaves no one state to judge.
        (Takes::Reach(_), Struck::Directions(ends)) if !fault.comes_and_goes => {
            ends.iter().map(cut).collect()
        }
        (Takes::Disk(action), Struck::Disk { host, disk }) => {
            let struck = storage::failure_of(site, host, disk);
            storage::not_judged(&action.defect, site, &struck).is_none().then(|| vec![struck])
        }
        (Takes::Processes(action), Struck::Processes { host, .. }) => {
            // One that is never healed stands to the end.
            let stood = match (fault.took_effect_s, fault.mended_s) {
                (Some(from_s), Some(to_s)) => Duration::from_secs_f64((to_s - from_s).max(0.0)),
                _ => Duration::MAX,
            };
            let failure = processes::failure_of(action, stood, (host, site), takes_over_after);
            failure.ok().map(|failure| vec![failure])
        }
        _ => None,
    }
}

fn cut(ends: &(End, End)) -> Option<Failure> {
    match ends {
        (End::EverythingElse, End::At(place)) | (End::At(place), End::EverythingElse) => {
            Some(Failure::Isolated(place.clone()))
        }
        (End::At(from), End::At(to)) => Some(Failure::Cut(from.clone(), to.clone())),
        (End::EverythingElse, End::EverythingElse) => None,
    }
}

/// The database on its site as it was when a stretch began, its leader first.
fn site_at(scenario: &Scenario, evidence: &Evidence<'_>, stretch: &Stretch) -> Deployment {
    let mut site = deployment(scenario);
    let number_of = |name: &String| scenario.database.nodes.named(name);
    let (mut leader, mut hosts) = (NodeId::FIRST, site.nodes.clone());
    let mut served_from: PerNode<Option<HostId>> = vec![None; hosts.len()].into();
    let host_of = |name: &str| site.hosts.find(|path| path.join("/") == name);
    for event in evidence.events.iter().filter(|event| event.t_s < stretch.from_s) {
        match &event.kind {
            EventKind::Leader { node } => leader = number_of(node).unwrap_or(leader),
            EventKind::NodeUp { node, host } => {
                if let (Some(number), Some(host)) = (number_of(node), host_of(host)) {
                    (hosts[number], served_from[number]) = (host, None);
                }
            }
            EventKind::Migration { facts } if facts.is_made() => {
                // Where its volume is served from is told by itself.
                if let (Some(number), Some(host)) = (number_of(&facts.node), host_of(&facts.to)) {
                    hosts[number] = host;
                }
            }
            EventKind::VolumeMoved { node, host, .. } => {
                if let Some(number) = number_of(node) {
                    served_from[number] = host_of(host);
                }
            }
            _ => {}
        }
    }
    // Where the nodes elect their leader, a fault aimed at it tells who it was.
    for fault in stretch.records(evidence.faults).filter(|fault| fault.aims_at_leader) {
        if let [only] = fault.vms.as_slice() {
            leader = *only;
        }
    }
    site.nodes = hosts;
    for (volume, from) in site.storage.volumes.iter_mut().zip(served_from) {
        volume.served_from = from;
    }
    site.led_by(said_to_lead(stretch, evidence.faults).unwrap_or(leader))
}

/// Who led when the first fault of a stretch struck, where it was asked then: what struck later may have had another.
fn said_to_lead(stretch: &Stretch, faults: &[FaultRecord]) -> Option<NodeId> {
    let struck = stretch.records(faults);
    struck.min_by(|one, other| one.asked_s.total_cmp(&other.asked_s)).and_then(|first| first.leader)
}

/// The site with each node that may have led when a stretch began in the first place. Where the nodes elect their leader,
/// nobody says who leads once an earlier fault has struck, unless the fault itself was aimed at it or it was asked then.
fn possible_leaders(
    scenario: &Scenario,
    evidence: &Evidence<'_>,
    stretch: &Stretch,
    site: &Deployment,
) -> impl Iterator<Item = Deployment> {
    let faults = evidence.faults;
    let mut struck = faults.iter().zip(actions(scenario)).filter(|(fault, _)| fault.asked_s < stretch.from_s);
    let struck_before = struck.any(|(_, action)| !matches!(action, FaultAction::Network(_)))
        && !stretch.faults.contains(&FaultId::FIRST);
    let is_aimed = stretch.records(faults).any(|fault| fault.aims_at_leader && fault.vms.len() == 1);
    let is_known = is_aimed || said_to_lead(stretch, faults).is_some();
    let unknown = scenario.database.engine.elects() && struck_before && !is_known;
    let count = if unknown { site.nodes.len() } else { 1 };
    let site = site.clone();
    site.nodes.ids().take(count).map(move |leader| site.clone().led_by(leader))
}

/// A prediction that would be another one if something were different that nobody knows: nothing is held against it.
fn depending(row: PredictionResult, on: &str) -> PredictionResult {
    let words = row.predicted_in_words.unwrap_or_default();
    let predicted_in_words = Some(format!("depends on {on}; at worst {words}"));
    PredictionResult { predicted_in_words, agrees: None, ..row }
}

/// Whether the worst is taken of a node that was started from a component which may lack something.
fn forced_back(expected: Outcome) -> bool {
    expected.action == Action::Restarted
        && expected.data == Data::MayBeLost
        && !writes_served(expected.service)
}

fn writes_served(service: Service) -> bool {
    matches!(service, Service::ReadsAndWrites | Service::WritesOnly)
}

/// Successful writes of each load that can show them, over these seconds, with the load's name.
fn writes<'s>(
    scenario: &'s Scenario,
    evidence: &Evidence<'_>,
    seconds: &std::ops::Range<u64>,
) -> Vec<(&'s str, u64)> {
    let of_load = |load: &'s scenario::Load| {
        let facts = capabilities::workloads::workload(&load.workload)?;
        let operations = Some(facts.writes).filter(|writes| !writes.is_empty())?;
        let series = operations.iter().flat_map(|name| evidence.timeline.throughput(&load.name, name));
        let count = series.filter(|(second, _)| seconds.contains(second)).map(|(_, count)| count).sum();
        Some((load.name.as_str(), count))
    };
    scenario.loads.iter().filter_map(of_load).collect()
}

/// How long the platform or the nodes themselves may need until writes are served again.
fn takeover_due(scenario: &Scenario, expected: Outcome) -> Duration {
    match (&scenario.database.failover, expected.action) {
        (
            Failover::HaRestart { after } | Failover::Promote { after },
            Action::Restarted | Action::Promoted,
        ) => *after + notice_due(scenario) + TAKEOVER_PATIENCE,
        _ if scenario.database.engine.elects() => TAKEOVER_PATIENCE,
        _ => Duration::ZERO,
    }
}

/// How long the platform may wait before it takes a node for lost whose volume is out of reach.
fn notice_due(scenario: &Scenario) -> Duration {
    let storage = scenario.database.storage.as_ref();
    storage.filter(|storage| !storage.hosts.is_empty()).map_or(Duration::ZERO, |of| of.unreachable_after)
}

fn service(
    result: &RunResult,
    scenario: &Scenario,
    evidence: &Evidence<'_>,
    stretch: &Stretch,
    expected: Outcome,
) -> PredictionResult {
    let serves = writes_served(expected.service);
    let seconds = stretch.seconds();
    let length = seconds.end.saturating_sub(seconds.start);
    let counts = writes(scenario, evidence, &seconds);
    let count: u64 = counts.iter().map(|(_, count)| count).sum();
    let served = !counts.is_empty() && counts.iter().all(|(_, count)| *count > 0);
    let too_short = length < SECONDS_MIN
        || (serves && !served && Duration::from_secs(length) < takeover_due(scenario, expected));
    let told = if counts.is_empty() {
        "no load in this run counts writes and reads separately".to_owned()
    } else if too_short {
        format!("lasted {length} whole seconds, too short to judge")
    } else {
        let of_each: Vec<String> = counts.iter().map(|(load, count)| format!("{load} {count}")).collect();
        let of_each = if counts.len() > 1 { format!(" ({})", of_each.join(", ")) } else { String::new() };
        format!("{count} writes acknowledged in {length} s{of_each}")
    };
    let measured = (!counts.is_empty() && !too_short).then_some(served);
    let lost = match stretch.faults.as_slice() {
        [only] => result.faults.get(only.index()).and_then(FaultResult::lost),
        _ => None,
    };
    let lost = lost.map_or_else(String::new, |lost| format!("; {lost} lost"));
    PredictionResult {
        name: format!("{}: writes served", stretch.name(result)),
        predicted: f64::from(u8::from(serves)),
        measured: measured.map(|served| f64::from(u8::from(served))),
        unit: "1 yes, 0 no".to_owned(),
        relation: Relation::Equal,
        low: None,
        high: None,
        agrees: measured.map(|served| served == serves),
        agrees_within: None,
        predicted_in_words: Some(format!("{}; acknowledged writes {}", expected.service, expected.data)),
        measured_in_words: Some(told + &lost),
    }
}

/// How soon a write succeeds at the earliest, where the leader was lost and somebody must take over first.
fn recovery(
    result: &RunResult,
    scenario: &Scenario,
    stretch: &Stretch,
    site: &Deployment,
    expected: Outcome,
) -> Option<PredictionResult> {
    let [only] = stretch.faults.as_slice() else { return None };
    let takes = actions(scenario).nth(only.index())?.takes();
    let fault = result.faults.get(only.index());
    let fault = fault.filter(|_| matches!(takes, Takes::Power(_) | Takes::Processes(_)))?;
    let leader = site.host_of(NodeId::FIRST).join("/");
    if !writes_served(expected.service) || !fault.hits.contains(&leader) {
        return None;
    }
    let (predicted, what) = match (&scenario.database.failover, expected.action) {
        (Failover::HaRestart { after }, Action::Restarted) => (after.as_secs_f64(), "the platform restarts"),
        (Failover::Promote { after }, Action::Promoted) => (after.as_secs_f64(), "the platform promotes"),
        _ => (election_s_least(scenario)?, "a follower's election timeout ends"),
    };
    let measured = fault.recovery_s.first_success;
    Some(PredictionResult {
        name: format!("{}: first success", stretch.name(result)),
        predicted,
        measured,
        unit: "s".to_owned(),
        relation: Relation::AtLeast,
        low: None,
        high: None,
        agrees: measured.map(|measured| measured >= predicted),
        agrees_within: None,
        predicted_in_words: Some(format!("at least {predicted:.1} s, when {what}")),
        measured_in_words: None,
    })
}

/// Writes lost by the end of the run.
fn losses(result: &RunResult, data: Data) -> Option<PredictionResult> {
    let lost = results::losses::lost_writes(&result.checks)?;
    let (relation, words) = match data {
        Data::MayBeLost => (Relation::AtLeast, "some may be lost"),
        Data::OnFailedOnly => (Relation::Equal, "none, because the failed volumes return"),
        Data::Kept => (Relation::Equal, "none"),
    };
    Some(PredictionResult {
        name: "acknowledged writes lost by the end".to_owned(),
        predicted: 0.0,
        measured: Some(lost.known() as f64),
        unit: "writes".to_owned(),
        relation,
        low: None,
        high: None,
        // That some may be lost no run can contradict: it is no prediction that was kept.
        agrees: (relation == Relation::Equal).then(|| lost.known() == 0),
        agrees_within: None,
        predicted_in_words: Some(words.to_owned()),
        measured_in_words: lost.is_at_least().then(|| format!("{lost} writes")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::PerHost;

    fn fault(struck: Struck, from_s: f64, to_s: f64) -> FaultRecord {
        FaultRecord { struck, took_effect_s: Some(from_s), mended_s: Some(to_s), ..FaultRecord::default() }
    }

    fn path(text: &str) -> Vec<String> {
        text.split('/').map(str::to_owned).collect()
    }

    fn host(text: &str) -> scenario::Place {
        scenario::Place { path: path(text), level: scenario::Level::Host }
    }

    fn site() -> Deployment {
        let rules = model::deployment::Rules::SingleLog {
            acknowledgements: model::Acknowledgements::None,
            takeover: model::deployment::Takeover::None,
        };
        let group = model::storage::DiskGroup {
            cache: Some("c1".to_owned()),
            capacity: vec!["d1".to_owned(), "d2".to_owned()],
        };
        let storage = model::Storage { groups: vec![group], ..model::Storage::default() };
        let (hosts, nodes) = (PerHost::default(), PerNode::default());
        Deployment { hosts, nodes, clients: Vec::new(), rules, storage }
    }

    fn check(struck: Struck, action: &FaultAction, expected: Option<&[&str]>) {
        check_fault(&fault(struck, 0.0, 1.0), action, expected);
    }

    fn check_fault(fault: &FaultRecord, action: &FaultAction, expected: Option<&[&str]>) {
        let found = failures_of(fault, Some(action), (&site(), Some(Duration::from_secs(3))));
        let told = found.map(|failures| failures.iter().map(ToString::to_string).collect::<Vec<String>>());
        let expected = expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(told, expected, "{fault:?}");
    }

    #[test]
    fn what_was_hit_becomes_what_the_model_calls_failed() {
        let target = || scenario::FaultTarget::Place(host("dc1/a/n1"));
        let off = FaultAction::PowerOff(scenario::PowerOffFault { target: target() });
        // Hosts may be called like nodes.
        check(Struck::Hosts(vec![path("dc1/a/n1")]), &off, Some(&["dc1/a/n1"]));
        check(Struck::Nothing, &off, None);
        let shape = scenario::PartitionShape::Isolate(target());
        let partition = FaultAction::Partition(scenario::PartitionFault {
            shape,
            answer: scenario::BlockAnswer::Silence,
        });
        let isolated = || {
            let place = End::At(path("dc1/a/n1"));
            Struck::Directions(vec![(place.clone(), End::EverythingElse), (End::EverythingElse, place)])
        };
        check(isolated(), &partition, Some(&["edge of dc1/a/n1", "edge of dc1/a/n1"]));
        let pair = Struck::Directions(vec![(End::At(path("dc1/a/r1/h1")), End::At(path("dc1/a/r2/h1")))]);
        check(pair, &partition, Some(&["link dc1/a/r1/h1 - dc1/a/r2/h1"]));
        let flaps = FaultRecord { comes_and_goes: true, ..fault(isolated(), 0.0, 1.0) };
        check_fault(&flaps, &partition, None);
        let network =
            scenario::NetworkFault { directions: Vec::new(), conditions: scenario::Conditions::default() };
        check(isolated(), &FaultAction::Network(network), Some(&[]));
    }

    #[test]
    fn processes_that_stand_still_until_another_leads_are_judged_and_those_that_run_again_before_are_not() {
        let action = |how, only: Option<&str>| {
            let only = only.map(|name| scenario::OneProgram { name: name.into(), program: name.into() });
            FaultAction::Process(scenario::ProcessFault { node: scenario::NodeTarget::Leader, how, only })
        };
        let struck = || Struck::Processes { host: path("dc1/a/h1"), all: true, ends: false };
        let stop = action(scenario::ProcessDeed::Stop, None);
        check_fault(&fault(struck(), 0.0, 9.0), &stop, Some(&["database on dc1/a/h1"]));
        check_fault(&fault(struck(), 0.0, 2.0), &stop, None);
        let for_good = action(scenario::ProcessDeed::Kill { restart_after: None }, None);
        let never = FaultRecord { mended_s: None, ..fault(struck(), 0.0, 0.0) };
        check_fault(&never, &for_good, Some(&["database on dc1/a/h1"]));
        check_fault(&fault(struck(), 0.0, 9.0), &action(scenario::ProcessDeed::Stop, Some("etcd")), None);
        check_fault(&fault(struck(), 0.0, 9.0), &action(scenario::ProcessDeed::Restart, None), None);
    }

    #[test]
    fn a_disk_that_refuses_is_judged_and_one_that_is_only_slow_is_not() {
        let with = |defect| {
            let target = scenario::DiskTarget::Named { host: host("dc1/a/h1"), disk: "d2".into() };
            FaultAction::Disk(scenario::DiskFault { target, defect })
        };
        let of = |disk: &str| Struck::Disk { host: path("dc1/a/h1"), disk: disk.to_owned() };
        let fails = with(scenario::DiskDefect::Fail);
        check(of("d2"), &fails, Some(&["disk dc1/a/h1/d2"]));
        check(of("c1"), &fails, Some(&["disk group dc1/a/h1/c1"]));
        check(of("d2"), &with(scenario::DiskDefect::Slow { by: Duration::from_millis(10) }), None);
    }

    #[test]
    fn who_was_said_to_lead_when_the_first_of_a_stretch_struck_is_taken() {
        let led = |asked_s: f64, leader: Option<usize>| FaultRecord {
            asked_s,
            leader: leader.map(NodeId::new),
            ..fault(Struck::Nothing, 0.0, 9.0)
        };
        let stretch = Stretch { faults: [0, 1].map(FaultId::new).to_vec(), from_s: 2.0, to_s: 9.0 };
        assert_eq!(said_to_lead(&stretch, &[led(1.0, Some(2)), led(2.0, Some(0))]), Some(NodeId::new(2)));
        assert_eq!(said_to_lead(&stretch, &[led(1.0, None), led(2.0, Some(0))]), None);
    }

    #[test]
    fn faults_that_stand_at_once_are_taken_together() {
        let faults = [
            fault(Struck::Nothing, 10.2, 20.0),
            fault(Struck::Nothing, 15.0, 18.0),
            FaultRecord { took_effect_s: None, ..fault(Struck::Nothing, 0.0, 0.0) },
            FaultRecord { mended_s: None, ..fault(Struck::Nothing, 25.0, 0.0) },
        ];
        let found: Vec<(Vec<usize>, f64, f64)> = stretches(&faults, 30.0)
            .into_iter()
            .map(|stretch| {
                let faults: Vec<usize> = stretch.faults.iter().map(|number| number.index()).collect();
                (faults, stretch.from_s, stretch.to_s)
            })
            .collect();
        let expected =
            [(vec![0], 10.2, 15.0), (vec![0, 1], 15.0, 18.0), (vec![0], 18.0, 20.0), (vec![3], 25.0, 30.0)];
        assert_eq!(found, expected);
        assert_eq!(stretches(&faults, 30.0)[0].seconds(), 11..15);
        assert!(stretches(&faults, 30.0)[0].is_moment(&faults));
        assert!(!stretches(&faults[..1], 30.0)[0].is_moment(&faults));
    }
}
