//! A scenario on paper: handed to `model` in its own terms, before anything is started.
//!
//! Owns the conversion. What follows from it is `model`'s to say, how it is shown the program's.

use std::collections::BTreeSet;

use capabilities::SettingForm;
use model::deployment::{Deployment, Path};
use model::practice::{EdgeFacts, Finding, LAYOUT_RULES, LayoutFacts, MACHINE_RULES, MirrorFacts, apply};
use model::survival::{Failure, Survey, failures, survey};
use scenario::{FaultAction, Scenario, Takes};

use crate::commits::{self, CommitCost};
use crate::deployment::{deployment, sync_of_writes};
use crate::schedule::{self, JudgedFault};
use crate::stranding::{self, PlacementSurvey};
use crate::this_host::machine_facts;
use crate::too_short::{self, TooShort};

/// Everything that the scenario alone says.
pub struct Analysis {
    /// Whether nodes run a database; where not, they have volumes and nothing else.
    pub is_database: bool,
    /// The database on its site.
    pub deployment: Deployment,
    /// Single and double failures.
    pub survey: Survey,
    /// What the schedule breaks.
    pub planned: Vec<JudgedFault>,
    /// Phases that are too short for the figures after a fault.
    pub too_short: Vec<TooShort>,
    /// What the transactions of each load wait for.
    pub commits: Vec<CommitCost>,
    /// Who would find no host after the loss of one, where capacities or rules are given.
    pub placement: Option<PlacementSurvey>,
    /// What best practice says of the layout.
    pub practice: Vec<Finding>,
}

/// Reads a scenario on paper.
#[must_use]
pub fn analyse(scenario: &Scenario) -> Analysis {
    let deployment = deployment(scenario);
    let survey = survey(&deployment, &every_failure(scenario, &deployment));
    let planned = schedule::planned(scenario, &deployment);
    let practice = apply(LAYOUT_RULES, &layout(scenario, &deployment));
    let is_database = scenario.database.engine.is_database();
    let placement = stranding::survey(scenario);
    let commits = commits::of_loads(scenario);
    let too_short = too_short::phases(scenario).into_iter().chain(too_short::paced(scenario)).collect();
    Analysis { is_database, placement, survey, planned, too_short, commits, practice, deployment }
}

/// What best practice says of this machine.
#[must_use]
pub fn practice_of_this_host() -> Vec<Finding> {
    apply(MACHINE_RULES, &machine_facts())
}

fn layout(scenario: &Scenario, deployment: &Deployment) -> LayoutFacts {
    let edges = scenario.site.edges.iter().map(|edge| EdgeFacts {
        name: edge.name.clone(),
        around: edge.around.path.clone(),
        rate_bits_per_s: edge.rate_bits_per_s,
    });
    let engine = scenario.database.engine;
    let known_settings = match engine.settings {
        SettingForm::Names(names) => names.known.lines().map(str::to_owned).collect(),
        SettingForm::OneOf { .. } | SettingForm::Nothing => BTreeSet::new(),
    };
    LayoutFacts {
        deployment: deployment.clone(),
        is_database: engine.is_database(),
        sync: sync_of_writes(scenario),
        known_settings,
        settings: scenario.database.settings.clone(),
        cpus: scenario.database.cpus,
        edges: edges.collect(),
        mirrors: scenario.database.storage.as_ref().map(|storage| MirrorFacts {
            components: storage.replicas as usize,
            rebuild_after_s: storage.rebuild_after.as_secs_f64(),
            outage_s_max: outage_s_max(scenario),
        }),
    }
}

/// The longest time that the schedule takes a host's power or a disk.
fn outage_s_max(scenario: &Scenario) -> Option<f64> {
    let takes = |action: &FaultAction| matches!(action.takes(), Takes::Power(_) | Takes::Disk(_));
    let of_phase = |phase: &scenario::Phase| {
        let faults = phase.faults.iter().filter(|fault| takes(&fault.action));
        let stands = |fault: &scenario::Fault| {
            fault.length.unwrap_or(phase.length.saturating_sub(fault.at)).as_secs_f64()
        };
        faults.map(stands).collect::<Vec<f64>>()
    };
    scenario.schedule.iter().flat_map(of_phase).max_by(f64::total_cmp)
}

fn every_failure(scenario: &Scenario, deployment: &Deployment) -> Vec<Failure> {
    let links: Vec<(Path, Path)> =
        scenario.site.links.iter().map(|link| (link.from.path.clone(), link.to.path.clone())).collect();
    // A host's own card is no more than the host: what cuts it off is told as the host's failure is.
    let inner = |path: &&Path| deployment.kind(path) != "host";
    let edges: Vec<Path> =
        scenario.site.edges.iter().map(|edge| &edge.around.path).filter(inner).cloned().collect();
    failures(deployment, &links, &edges)
}

#[cfg(test)]
mod tests {
    use history::NodeId;
    use model::Acknowledgements;
    use model::survival::{Action, Data, Failure, Service, outcome};
    use scenario::Source;

    use super::*;
    use crate::NotComputed;
    use crate::deployment::{acknowledgements, election_s_least};
    use crate::schedule::Judgement;

    fn shipped(name: &str) -> Scenario {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
        let text = std::fs::read_to_string(&path).expect("a shipped scenario");
        scenario::parse(&Source { name: name.to_owned(), text }, &[]).expect("a sound scenario")
    }

    /// What the schedule's faults leave, in order.
    fn check(name: &str, expected: &[(Service, Data)]) {
        let paper = analyse(&shipped(name));
        let found: Vec<(Service, Data)> = paper
            .planned
            .iter()
            .filter_map(|planned| match &planned.judgement {
                Judgement::Worst { outcome, .. } => Some((outcome.service, outcome.data)),
                Judgement::NotOnPaper(_) => None,
            })
            .collect();
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn the_shipped_scenarios_end_on_paper_as_their_first_comment_says() {
        let whole = (Service::ReadsAndWrites, Data::Kept);
        check("host-failure.yaml", &[whole]);
        check("host-failure-promote.yaml", &[whole]);
        check("host-failure-async-promote.yaml", &[(Service::ReadsAndWrites, Data::MayBeLost)]);
        check("partition.yaml", &[(Service::ReadsOnly, Data::Kept)]);
        check("partition-one-way.yaml", &[(Service::ReadsOnly, Data::Kept); 2]);
        check("mirror-sync.yaml", &[whole]);
        check("mirror-async.yaml", &[(Service::ReadsAndWrites, Data::MayBeLost)]);
        check("fr4-replicated-datastore.yaml", &[whole, (Service::ReadsAndWrites, Data::MayBeLost)]);
        check("fr2-disks.yaml", &[whole, whole]);
        check("disk-faults.yaml", &[(Service::Unavailable, Data::OnFailedOnly)]);
        check("fr3-cloud-regions.yaml", &[whole]);
        check("fr1-topologies-edge.yaml", &[whole]);
        check("etcd.yaml", &[whole]);
        check("etcd-power-loss.yaml", &[(Service::Unavailable, Data::OnFailedOnly); 3]);
    }

    #[test]
    fn of_a_target_that_the_seed_draws_the_worst_is_told_and_of_how_many() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../scenarios/host-failure-promote.yaml");
        let text = std::fs::read_to_string(&path).expect("a shipped scenario");
        let text = text.replace("power-off: { host: leader }", "power-off: { host: random }");
        let source = Source { name: "random.yaml".to_owned(), text };
        let paper = analyse(&scenario::parse(&source, &[]).expect("a sound scenario"));
        let Judgement::Worst { choices, failures, outcome } = &paper.planned[0].judgement else {
            panic!("not judged");
        };
        // Any of the nodes' hosts; that of the leader makes the platform promote.
        let leader = Failure::Down(paper.deployment.host_of(NodeId::new(0)).to_vec());
        assert_eq!((*choices, failures.as_slice()), (paper.deployment.nodes.len(), &[leader][..]));
        assert_eq!(outcome.action, Action::Promoted);
    }

    #[test]
    fn a_transaction_of_etcd_s_waits_for_a_majority_and_one_that_may_read_first_has_no_one_cost() {
        let scenario = shipped("etcd.yaml");
        assert_eq!(acknowledgements(&scenario), Acknowledgements::Any(1));
        let paper = analyse(&scenario);
        let costed = |load: &str| {
            let of_load = paper.commits.iter().find(|cost| cost.load == load).expect("the load");
            of_load.computed().iter().any(|phase| phase.cost.is_some())
        };
        assert!(costed("ledger") && costed("register") && !costed("append"));
        let append = paper.commits.iter().find(|cost| cost.load == "append").expect("the load");
        assert_eq!(append.phases.as_ref().err(), Some(&NotComputed::ReadsFirst));
    }

    #[test]
    fn a_load_of_which_chance_draws_reads_and_writes_has_no_one_cost() {
        let mut scenario = shipped("etcd.yaml");
        for (load, workload) in scenario.loads.iter_mut().zip(["ycsb", "kv"]) {
            load.workload = workload.to_owned();
            load.options.clear();
        }
        let paper = analyse(&scenario);
        let errors: Vec<_> =
            paper.commits.iter().take(2).map(|cost| cost.phases.as_ref().err().copied()).collect();
        assert_eq!(errors, [Some(NotComputed::SeveralKinds); 2]);
    }

    #[test]
    fn etcd_misses_its_leader_no_sooner_than_its_flags_say() {
        let mut scenario = shipped("etcd.yaml");
        assert!((election_s_least(&scenario).expect("it elects") - 0.8).abs() < 1e-9);
        let flags = [("election-timeout", "500"), ("heartbeat-interval", "50")];
        scenario.database.settings =
            flags.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        assert!((election_s_least(&scenario).expect("it elects") - 0.4).abs() < 1e-9);
    }

    #[test]
    fn what_the_survey_says_of_a_planned_place_is_what_the_plan_says() {
        let paper = analyse(&shipped("host-failure-promote.yaml"));
        for (failure, found) in &paper.survey.singles {
            assert_eq!(outcome(&paper.deployment, std::slice::from_ref(failure)), *found);
        }
        assert!(paper.survey.doubles.is_some());
    }

    #[test]
    fn fr3_costs_fifty_milliseconds_at_commit_and_five_times_as_much_on_raft() {
        let paper = analyse(&shipped("fr3-two-datacentres.yaml"));
        let delayed =
            paper.commits[0].computed().iter().find(|phase| phase.names == ["delayed"]).expect("a phase");
        let cost = delayed.cost.as_ref().expect("enough standbys");
        assert!((cost.total_ms.mean - 50.0).abs() < 1e-9, "{cost:?}");
        let raft = delayed.on_raft.as_ref().expect("three nodes");
        assert!((raft.total_ms.mean - 250.0).abs() < 1e-9, "{raft:?}");
        assert_eq!(raft.statements.iter().map(|cost| cost.quorum_round_trips).sum::<usize>(), 5);
    }
}
