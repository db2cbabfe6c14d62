//! The command files of a scenario: found, read, and held against the members that they may strike, before anything runs.
//!
//! Owns where a mistake in them is told, and which machines need a confirmation. The language of command files is `remote`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use remote::command_file::FillError;
use remote::permit::PermitError;
use remote::{CommandFile, Filled, Permit};
use scenario::explain::nearest;
use scenario::{CommandFileName, ExternalFault, FaultAction, Member, Refusal, Rejection, Scenario, Source};

use crate::beside_scenario;
use crate::reach::reach_of;

/// Digits in place of a fault's own, for commands that are shown and not run.
const NO_FAULT: &str = "00000000";

/// A command file at a member that it may strike.
#[derive(Debug, Clone)]
pub struct PlannedStrike {
    /// The phase that it begins in.
    pub phase: String,
    /// The member's name.
    pub member: String,
    /// The machine, as its way names it.
    pub host: String,
    /// The commands, with the values for this member.
    pub commands: Filled,
}

/// Reads the command files that are not shipped into the scenario; paths begin at `folder`. Refuses files that are not sound,
/// names that nobody knows and values that do not fit, with a caret.
///
/// # Errors
/// Of the first fault that cannot be struck.
pub fn check_commands(
    scenario: &mut Scenario,
    source: &Source,
    overrides: &[(String, String)],
    folder: &Path,
) -> Result<(), Box<Rejection>> {
    let Some(cluster) = scenario.cluster.clone() else { return Ok(()) };
    let faults = scenario.schedule.iter_mut().flat_map(|phase| &mut phase.faults);
    for fault in faults {
        let FaultAction::External(fault) = &mut fault.action else { continue };
        let at = fault.at;
        let refused = |refusal| Box::new(scenario::point_at_fault(source, overrides, at, refusal));
        if fault.command.is_path() {
            let path = fault.command.name.clone();
            let text = beside_scenario::read_text(&path, folder).map_err(|error| {
                refused(Refusal {
                    code: "command-file",
                    message: format!("command file {error}"),
                    label: "this file cannot be used".to_owned(),
                    help: "name a command file in the scenario's folder".to_owned(),
                })
            })?;
            let name = folder.join(path.strip_prefix("./").unwrap_or(&path)).display().to_string();
            fault.command = CommandFileName { name, text: Some(text) };
        }
        let file = file_of(&fault.command).map_err(|error| match error {
            FileError::Rejected(rejection) => rejection,
            FileError::Unknown(name) => refused(unknown(&name)),
        })?;
        // Whoever writes a file of their own answers for what it strikes.
        let is_of_a_machine = || ![pods::POD, pods::NODE].iter().any(|name| has_parameter(&file, name));
        if cluster.kubernetes.is_some() && fault.command.text.is_none() && is_of_a_machine() {
            return Err(refused(of_a_machine(&fault.command.name)));
        }
        for number in fault.candidates(&cluster) {
            let Some(member) = cluster.members.get(number) else { continue };
            let known = pods::values_on_paper(&cluster, member);
            filled(fault, &file, (member, &known), NO_FAULT)
                .map_err(|error| refused(unfit(&error, member, cluster.kubernetes.is_some())))?;
        }
    }
    Ok(())
}

fn unknown(name: &str) -> Refusal {
    let names = remote::shipped().iter().map(|file| file.name.as_str());
    let near = nearest(name, names).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Refusal {
        code: "command-file",
        message: format!("no command file `{name}` ships with holdfast"),
        label: "unknown".to_owned(),
        help: format!("{near}`holdfast list faults` names them; write ./{name}.yaml for a file of your own"),
    }
}

/// A member that is a pod has no machine: the commands would run on the one that holdfast runs on, whoever is named.
fn of_a_machine(name: &str) -> Refusal {
    Refusal {
        code: "command-of-a-machine",
        message: format!("command file `{name}` is about a machine, and the members are pods"),
        label: "takes neither `pod` nor `node`".to_owned(),
        help: "use a file that does (`holdfast list faults`), or write one of your own with a parameter `node`: the node that \
               the pod is on"
            .to_owned(),
    }
}

fn unfit(error: &FillError, member: &Member, is_pod: bool) -> Refusal {
    let member = member.name.as_str();
    let help = match error {
        FillError::Unknown { .. } => "take it out of `with`".to_owned(),
        FillError::Missing { name, example, .. } if is_pod => {
            format!("add `{name}: \"{example}\"` under `with`")
        }
        FillError::Missing { name, example, .. } => {
            format!("add `{name}: \"{example}\"` under `with`, or under `facts` of member `{member}`")
        }
        FillError::NotOfKind { form, .. } => format!("write {form}"),
    };
    Refusal {
        code: "command-values",
        message: format!("at member `{member}`, {error}"),
        label: "cannot be filled in".to_owned(),
        help,
    }
}

/// Why there is no command file.
enum FileError {
    /// It is not sound.
    Rejected(Box<Rejection>),
    /// None of that name ships.
    Unknown(String),
}

fn file_of(command: &CommandFileName) -> Result<CommandFile, FileError> {
    match &command.text {
        Some(text) => {
            remote::read(&command.name, text).map_err(|rejection| FileError::Rejected(Box::new(rejection)))
        }
        None => remote::named(&command.name).cloned().ok_or_else(|| FileError::Unknown(command.name.clone())),
    }
}

/// The commands with the scenario's values, before what is `known` of the member now, before its facts. Facts that the file does
/// not ask for are for other files.
fn filled(
    fault: &ExternalFault,
    file: &CommandFile,
    (member, known): (&Member, &BTreeMap<String, String>),
    id: &str,
) -> Result<Filled, FillError> {
    let facts = member.facts.iter().chain(known).filter(|(name, _)| has_parameter(file, name));
    let mut values: BTreeMap<String, String> =
        facts.map(|(name, value)| (name.clone(), value.clone())).collect();
    values.extend(fault.values.clone());
    file.filled(&values, id)
}

fn has_parameter(file: &CommandFile, name: &str) -> bool {
    file.parameters.iter().any(|parameter| parameter.name == name)
}

/// Whether a fault's command file has a parameter of this name.
#[must_use]
pub fn asks_for(fault: &ExternalFault, name: &str) -> bool {
    file_of(&fault.command).is_ok_and(|file| has_parameter(&file, name))
}

/// The commands of a fault that was checked, at a member of which more is `known` by now; nothing where they cannot be had, which
/// [`check_commands`] refuses.
#[must_use]
pub fn commands_at(
    fault: &ExternalFault,
    member: &Member,
    known: &BTreeMap<String, String>,
    id: &str,
) -> Option<Filled> {
    let file = file_of(&fault.command).ok()?;
    filled(fault, &file, (member, known), id).ok()
}

/// Every command file of the schedule at every member that it may strike, in order.
#[must_use]
pub fn planned_strikes(scenario: &Scenario) -> Vec<PlannedStrike> {
    let Some(cluster) = &scenario.cluster else { return Vec::new() };
    let mut found = Vec::new();
    for phase in &scenario.schedule {
        for fault in &phase.faults {
            let FaultAction::External(fault) = &fault.action else { continue };
            for number in fault.candidates(cluster) {
                let member = cluster.members.get(number);
                let Some((member, reach)) =
                    member.and_then(|member| Some((member, reach_of(cluster, member)?)))
                else {
                    continue;
                };
                let known = pods::values_on_paper(cluster, member);
                found.extend(commands_at(fault, member, &known, NO_FAULT).map(|commands| PlannedStrike {
                    phase: phase.name.clone(),
                    member: member.name.clone(),
                    host: reach.host().to_owned(),
                    commands,
                }));
            }
        }
    }
    found
}

/// Leave to strike the machines that the schedule may strike; `confirmed` must be the scenario's name. A schedule without
/// faults needs none.
///
/// # Errors
/// When nobody confirmed it, or a machine may not be broken.
pub fn permit(scenario: &Scenario, confirmed: Option<&str>) -> Result<Permit, PermitError> {
    let hosts: BTreeSet<String> = planned_strikes(scenario).into_iter().map(|planned| planned.host).collect();
    let cluster = scenario.cluster.as_ref();
    let allowed = cluster.iter().flat_map(|cluster| {
        let members = cluster.may_break.iter().filter_map(|number| cluster.members.get(*number));
        members.filter_map(|member| Some(reach_of(cluster, member)?.host().to_owned()))
    });
    let name = scenario.name.as_str();
    let confirmed = if hosts.is_empty() { Some(name) } else { confirmed };
    Permit::ask(&hosts, &allowed.collect(), name, confirmed)
}

#[cfg(test)]
mod tests {
    use history::NodeId;

    use super::*;

    const SCENARIO: &str = "name: mine\ntarget: external\ncluster:\n  engine: postgres\n  members:\n    \
        db1: { endpoint: \"10.0.0.1:5432\", reach: { ssh: db1 }, facts: { unit: postgresql.service, rack: r1 } }\n    \
        db2: { endpoint: \"10.0.0.2:5432\", reach: { ssh: db2 } }\n  may-break: [db1, db2]\n\
        loads: [{ workload: ledger, clients: 1 }]\n\
        schedule: [{ phase: baseline, for: 5s }, { phase: fault, for: 5s, faults: [{ external: FAULT }] }]\n";

    const PODS: &str = "name: mine\ntarget: kubernetes\ncluster:\n  engine: postgres\n  kubernetes: { namespace: databases, \
        context: kind-lab, stateful-set: pg, replicas: 2 }\n  may-break: [pg-0, pg-1]\n\
        loads: [{ workload: ledger, clients: 1 }]\n\
        schedule: [{ phase: baseline, for: 5s }, { phase: fault, for: 5s, faults: [{ external: FAULT }] }]\n";

    fn checked(fault: &str, folder: &Path) -> Result<Scenario, String> {
        checked_in(SCENARIO, fault, folder)
    }

    fn checked_in(text: &str, fault: &str, folder: &Path) -> Result<Scenario, String> {
        let source = Source { name: "mine.yaml".to_owned(), text: text.replace("FAULT", fault) };
        let mut scenario = scenario::parse(&source, &[]).unwrap_or_else(|error| panic!("{error:?}"));
        check_commands(&mut scenario, &source, &[], folder).map_err(|rejection| {
            let problem = &rejection.problems()[0];
            format!("{} at {} in {}", problem.message(), problem.culprit(), problem.source_name())
        })?;
        Ok(scenario)
    }

    fn told(fault: &str) -> String {
        checked(fault, Path::new(".")).expect_err("refused")
    }

    #[test]
    fn facts_of_the_member_fill_what_the_scenario_does_not_say_and_others_are_left_alone() {
        let scenario = checked("{ command: systemd-kill, of: db1 }", Path::new(".")).expect("sound");
        let planned = planned_strikes(&scenario);
        assert_eq!((planned.len(), planned[0].host.as_str(), planned[0].phase.as_str()), (1, "db1", "fault"));
        assert!(planned[0].commands.strike[0].to_string().contains("postgresql.service"), "{planned:?}");
        let both = "{ command: systemd-kill, of: leader, with: { unit: other.service } }";
        let scenario = checked(both, Path::new(".")).expect("sound");
        let planned = planned_strikes(&scenario);
        assert_eq!(planned.len(), 2, "a role may mean either");
        assert!(planned[0].commands.strike[0].to_string().contains("other.service"), "{planned:?}");
    }

    #[test]
    fn a_command_file_that_nobody_knows_or_whose_values_do_not_fit_is_told_where_it_stands() {
        let unknown = told("{ command: systemd-kil, of: db1 }");
        assert_eq!(unknown, "no command file `systemd-kil` ships with holdfast at systemd-kil in mine.yaml");
        let missing = told("{ command: systemd-kill, of: db2 }");
        assert!(missing.starts_with("at member `db2`, systemd-kill needs `unit`"), "{missing}");
        let unfit = told("{ command: systemd-kill, of: db1, with: { unit: \"-x\" } }");
        assert!(unfit.contains("`unit` cannot be `-x`"), "{unfit}");
        let too_many = told("{ command: systemd-kill, of: db1, with: { uni: a } }");
        assert!(too_many.contains("has no parameter `uni`"), "{too_many}");
    }

    #[test]
    fn a_file_of_the_users_becomes_part_of_the_scenario() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = include_str!("../../../faults/external/systemd-kill.yaml");
        std::fs::write(folder.path().join("mine.yaml"), text).expect("written");
        let scenario = checked("{ command: ./mine.yaml, of: db1 }", folder.path()).expect("sound");
        let written = scenario::to_yaml(&scenario, 7);
        let source = Source { name: "again.yaml".to_owned(), text: written };
        let mut again = scenario::parse(&source, &[]).unwrap_or_else(|error| panic!("{error:?}"));
        check_commands(&mut again, &source, &[], Path::new("/nowhere")).expect("nothing is read any more");
        assert_eq!((again.schedule, again.cluster), (scenario.schedule, scenario.cluster));
        let broken = text.replace("{unit}", "{uni}");
        std::fs::write(folder.path().join("mine.yaml"), broken).expect("written");
        let error = checked("{ command: ./mine.yaml, of: db1 }", folder.path()).expect_err("refused");
        assert!(error.contains("uni") && error.ends_with("mine.yaml"), "{error}");
        let missing = checked("{ command: ./none.yaml, of: db1 }", folder.path()).expect_err("refused");
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn nothing_is_struck_without_a_confirmation_by_name_and_a_schedule_without_faults_needs_none() {
        let scenario = checked("{ command: systemd-kill, of: db1 }", Path::new(".")).expect("sound");
        assert!(matches!(permit(&scenario, None), Err(PermitError::NotConfirmed { .. })));
        assert!(matches!(permit(&scenario, Some("yours")), Err(PermitError::NotConfirmed { .. })));
        let leave = permit(&scenario, Some("mine")).expect("leave");
        assert!(leave.covers("db1") && !leave.covers("db2"));
        let quiet = Scenario { schedule: scenario.schedule[..1].to_vec(), ..scenario };
        assert!(!permit(&quiet, None).expect("nothing to confirm").covers("db1"));
    }

    #[test]
    fn leave_for_a_pod_is_for_that_pod_and_not_for_all_that_this_machine_can_reach() {
        let scenario =
            checked_in(PODS, "{ command: kubernetes-pod-delete, of: pg-1 }", Path::new(".")).expect("sound");
        let leave = permit(&scenario, Some("mine")).expect("leave");
        assert!(leave.covers("databases/pg-1"));
        assert!(!leave.covers("databases/pg-0") && !leave.covers("localhost"));
        let strike = planned_strikes(&scenario)[0].commands.strike[0].to_string();
        assert!(strike.contains("--context=kind-lab delete pod pg-1 --namespace databases"), "{strike}");
    }

    #[test]
    fn the_node_of_a_pod_is_known_when_it_is_struck_and_has_a_name_on_paper() {
        let scenario =
            checked_in(PODS, "{ command: kubernetes-evict, of: pg-0 }", Path::new(".")).expect("sound");
        let strike = planned_strikes(&scenario)[0].commands.strike[0].to_string();
        assert!(strike.ends_with("cordon node-of-pg-0"), "{strike}");
        let FaultAction::External(fault) = &scenario.schedule[1].faults[0].action else {
            panic!("another fault")
        };
        assert!(asks_for(fault, "node") && !asks_for(fault, "unit"));
        let cluster = scenario.cluster.as_ref().expect("a cluster");
        let known = BTreeMap::from([("node".to_owned(), "worker-1".to_owned())]);
        let commands =
            commands_at(fault, &cluster.members[NodeId::FIRST], &known, NO_FAULT).expect("its commands");
        assert!(commands.strike[0].to_string().ends_with("cordon worker-1"), "{commands:?}");
        let missing = checked_in(PODS, "{ command: kubernetes-network-policy, of: pg-0 }", Path::new("."));
        assert!(missing.expect_err("refused").contains("kubernetes-network-policy needs `manifest`"));
    }

    #[test]
    fn a_command_file_of_machines_is_refused_where_the_members_are_pods() {
        for fault in [
            "{ command: systemd-stop, of: pg-0, with: { unit: docker.service } }",
            "{ command: libvirt-power-off, of: leader, with: { domain: worker-1, address: 10.0.0.2 } }",
        ] {
            let refused = checked_in(PODS, fault, Path::new(".")).expect_err(fault);
            assert!(refused.contains("is about a machine, and the members are pods"), "{refused}");
        }
    }
}
