//! `holdfast check`: says whether a scenario is right, and what follows from it on paper. Starts nothing; of a Kubernetes cluster it
//! asks what the login may do there.

use std::collections::BTreeMap;
use std::path::Path;

use pods::{Grant, NeededVerb};
use scenario::Scenario;
use scenario::units::approximate_size;
use scenario_agents::{PlannedAgent, planned_agents};
use scenario_files::{PlannedStrike, WorkloadError};

use crate::commands::{check_set, faults, folder_of, not_planned, read_source, refused_cell, reject};
use crate::exit::Exit;
use crate::paper_text::{self, counted};
use crate::printed;

/// Checks a scenario on paper, the machine, or both.
pub fn check(path: Option<&Path>, set: &[(String, String)], this_host: bool) -> Result<Exit, Exit> {
    if let Some(path) = path {
        check_scenario(path, set)?;
    }
    if this_host {
        if path.is_some() {
            printed!("");
        }
        printed!("Best practice, from this machine");
        for line in paper_text::practice(&paper::practice_of_this_host()) {
            printed!("{line}");
        }
    }
    Ok(Exit::Done)
}

fn check_scenario(path: &Path, set: &[(String, String)]) -> Result<(), Exit> {
    let source = read_source(path)?;
    let mut plan = scenario_files::plan(&source, set, &folder_of(path)).map_err(not_planned)?;
    let refused = |error: WorkloadError| match error.rejection(&source, set) {
        Some(rejection) => reject(rejection),
        None => Exit::wrong(error),
    };
    let Some(mut matrix) = plan.matrix else {
        let scenario = &mut plan.scenario;
        scenario_files::check_workloads(scenario, &folder_of(path)).map_err(refused)?;
        scenario_files::check_commands(scenario, &source, set, &folder_of(path))
            .map_err(|rejection| reject(*rejection))?;
        show(path, scenario);
        return Ok(());
    };
    check_set(&matrix, &source, set)?;
    for cell in &mut matrix.cells {
        scenario_files::check_workloads(&mut cell.scenario, &folder_of(path))
            .map_err(|error| refused_cell(&error, &source, set, &cell.label))?;
        scenario_files::check_commands(&mut cell.scenario, &source, set, &folder_of(path))
            .map_err(|rejection| reject(*rejection))?;
    }
    let length_s: u64 = matrix.cells.iter().map(|cell| length_s(&cell.scenario)).sum();
    printed!("{}: {} is valid for every combination of its matrix", path.display(), plan.scenario.name);
    printed!(
        "  {} combinations, {} each: {} runs, {} s of load in all; plus set-up and checks",
        matrix.cells.len(),
        matrix.repeat,
        matrix.cells.len() * matrix.repeat as usize,
        length_s * u64::from(matrix.repeat),
    );
    say_needs(matrix.cells.iter().map(|cell| &cell.scenario));
    say_what_was_not_run(matrix.cells.iter().map(|cell| &cell.scenario));
    let mut all = matrix.cells.iter().map(|cell| &cell.scenario);
    all.find(|one| one.database.on.kubernetes().is_some()).into_iter().for_each(say_what_runs_in_pods);
    // What is the same on paper is said once.
    let mut said: Vec<(Vec<String>, &str)> = Vec::new();
    for cell in &matrix.cells {
        let lines = paper_text::lines(&paper::analyse(&cell.scenario));
        printed!("\n{}", cell.label);
        match said.iter().find(|(earlier, _)| *earlier == lines) {
            Some((_, label)) => printed!("  the same on paper as {label}"),
            None => {
                lines.iter().for_each(|line| printed!("{line}"));
                said.push((lines, &cell.label));
            }
        }
    }
    Ok(())
}

/// What the one of them takes that takes most: runs of a matrix follow each other, and each removes its volumes.
fn say_needs<'s>(scenarios: impl Iterator<Item = &'s Scenario>) {
    let scenarios: Vec<&Scenario> = scenarios.collect();
    if let Some(why) = scenarios.iter().find_map(|scenario| platform::room::can_have(scenario).err()) {
        printed!("  cannot run on this machine: {why}");
    }
    let all: Vec<paper::Needs> = scenarios.into_iter().map(paper::needs).collect();
    let most = |of: fn(&paper::Needs) -> u64| all.iter().map(of).max().unwrap_or(0);
    let (disk_bytes, memory_bytes) = (most(|needs| needs.disk_bytes), most(|needs| needs.memory_bytes));
    let room = platform::room::room(Path::new("runs"));
    let free =
        |bytes: Option<u64>, needed: u64| match bytes.map(|bytes| (bytes, approximate_size(bytes as f64))) {
            None => "unknown".to_owned(),
            Some((bytes, size)) if bytes < needed => format!("{size}, too little,"),
            Some((_, size)) => size,
        };
    let line = format!(
        "  needs about {} of disk and {} of memory; free on this machine: {} and {}",
        approximate_size(disk_bytes as f64),
        approximate_size(memory_bytes as f64),
        free(room.disk_bytes, disk_bytes),
        free(room.memory_bytes, memory_bytes),
    );
    printed!("{}", line.trim_end_matches(','));
}

/// Where the database's processes are not the lab's to start: what the cluster that starts them does with a silent node.
fn say_what_runs_in_pods(scenario: &Scenario) {
    let Some(times) = scenario.database.on.kubernetes() else { return };
    let (version, timing) = (kubernetes_lab::pieces::KUBERNETES, run::cluster_timing(times));
    printed!(
        "  in pods of Kubernetes {version}, one on each node, on a volume of that node; the pod does not leave it"
    );
    if scenario.database.engine.file.is_some() {
        printed!("  each pod has its node's network and address");
    }
    printed!("  a silent node: {}", timing.in_words());
    printed!("  its control plane is on a machine beside the site, which no fault strikes");
    if !nix::unistd::geteuid().is_root() {
        printed!("  cannot run as this user: nodes that start containers need root");
    }
}

/// The engines whose files were written from documentation alone, each once.
fn say_what_was_not_run<'s>(scenarios: impl Iterator<Item = &'s Scenario>) {
    let files = scenarios
        .filter_map(|scenario| Some((scenario.database.engine.name, scenario.database.engine.file?)));
    let not_run: BTreeMap<&str, _> = files.filter(|(_, file)| !file.tested.here).collect();
    for (name, file) in not_run {
        printed!("  {name}: {}", file.tested);
    }
}

/// Every command that a run may give, and where. Nothing is run.
fn show_external(scenario: &Scenario) {
    for PlannedAgent { load, agent, host, command } in planned_agents(scenario) {
        printed!("  load {load}: agent {agent} ({host}) is `{}`", command.join(" "));
    }
    if let Some(commands) = pods::planned_fleet(scenario) {
        printed!("  its agents are pods that are made for the run and removed at its end");
        faults::show_commands(&commands);
    }
    let planned = scenario_files::planned_strikes(scenario);
    if planned.is_empty() {
        printed!("  runs on a cluster that exists, and breaks nothing there");
        return;
    }
    let is_of_pods = scenario.cluster.as_ref().is_some_and(|cluster| cluster.kubernetes.is_some());
    printed!(
        "  runs on a cluster that exists; to let it break {}, add `--yes-break {}`",
        if is_of_pods { "pods" } else { "machines" },
        scenario.name
    );
    for PlannedStrike { phase, member, host, commands } in &planned {
        printed!("phase {phase}: {} may strike member {member} ({host})", commands.name);
        faults::show_commands(commands);
    }
    if is_of_pods && planned.iter().any(strikes_a_node) {
        printed!("  {} is the node that the pod is on when it is struck", pods::node_on_paper("NAME"));
    }
}

fn strikes_a_node(planned: &PlannedStrike) -> bool {
    let on_paper = pods::node_on_paper(&planned.member);
    planned.commands.strike.iter().any(|command| command.run.contains(&on_paper))
}

/// What the login must be allowed in a cluster of pods, and whether it is. Nothing else is asked there.
fn show_leave(scenario: &Scenario) {
    let Some(leave) = pods::leave(scenario) else { return };
    printed!("required permissions, asked by `kubectl auth can-i`; nothing else was asked");
    for asked in &leave.asked {
        let NeededVerb { verb, resource, namespace, is_required, why, answer } = asked;
        let answer = match answer {
            Some(Grant::Yes) => "yes",
            Some(Grant::No) => "no",
            Some(Grant::NoResource) => "not there",
            None => "not asked",
        };
        let place = namespace.as_ref().map(|name| format!("namespace {name}"));
        let place = place.unwrap_or_else(|| "the whole cluster".to_owned());
        let need = if *is_required { "needed" } else { "optional" };
        printed!("  {answer:<9}  {verb} {resource} in {place}: {need} to {why}");
    }
    if let Some(why) = &leave.unanswered {
        printed!("  not all of it could be asked: {why}");
    }
    let is_refused = |asked: &NeededVerb| matches!(asked.answer, Some(Grant::No | Grant::NoResource));
    if leave.asked.iter().any(|asked| asked.is_required && is_refused(asked)) {
        printed!("  a run would not get far: something that it needs is not allowed, or not there");
        printed!("  `holdfast manifests` prints a service account and roles that allow it");
    }
    if !leave.not_known.is_empty() {
        printed!("  other permissions that the commands of {} need are unknown", leave.not_known.join(", "));
    }
}

fn length_s(scenario: &Scenario) -> u64 {
    scenario.schedule.iter().map(|phase| phase.length.as_secs()).sum()
}

fn show(path: &Path, scenario: &Scenario) {
    let length_s = length_s(scenario);
    let faults = scenario.faults().count();
    printed!("{}: {} is valid", path.display(), scenario.name);
    let engine = scenario.database.engine;
    let nodes = counted(scenario.database.nodes.len(), "node", "nodes");
    let parts = [
        counted(scenario.site.hosts.len(), "host", "hosts"),
        if engine.is_database() {
            format!("{nodes} of {}", engine.name)
        } else {
            format!("{nodes} without a database")
        },
        counted(scenario.loads.len(), "load", "loads"),
        format!("{} of {length_s} s in all", counted(scenario.schedule.len(), "phase", "phases")),
        counted(faults, "fault", "faults"),
        counted(scenario.expect.len(), "expectation", "expectations"),
    ];
    printed!("  {}", parts.join(", "));
    if scenario.cluster.is_some() {
        show_external(scenario);
        return show_leave(scenario);
    }
    say_needs([scenario].into_iter());
    say_what_was_not_run([scenario].into_iter());
    say_what_runs_in_pods(scenario);
    for line in paper_text::lines(&paper::analyse(scenario)) {
        printed!("{line}");
    }
}
