//! Loads on agents: whether a load may stand where it says.
//!
//! Owns these checks. Agents themselves are read with the cluster that they belong to.

use std::collections::BTreeMap;

use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::resolved::{Cluster, Load};
use crate::scenario::Phase;
use crate::wording::{listed, shortened};
use crate::workload_options::counts_rows;

/// Whether there are agents of these names, each named once.
pub(crate) fn check_known(named: &[Spanned<String>], cluster: Option<&Cluster>, findings: &mut Findings) {
    let Some(first) = named.first() else { return };
    let of_pods = cluster.and_then(|cluster| cluster.kubernetes.as_ref());
    if of_pods.is_some_and(|kubernetes| kubernetes.agents.is_none()) {
        let message = "clients of pods run on this machine, where the ways to the pods begin";
        let help = "leave `agents` out, or add `agents: { image: IMAGE, count: 2 }` to `kubernetes`";
        findings.add("no-agents", first.at, message, "no agents for pods", help);
        return;
    }
    let Some(cluster) = cluster else {
        let message = "agents belong to a cluster that exists";
        let help =
            "leave `agents` out: in the lab, `from` says where clients stand; or write `target: external`";
        findings.add("no-agents", first.at, message, "no agents in the lab", help);
        return;
    };
    let all = cluster.agent_names();
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut seen: BTreeMap<&str, Spot> = BTreeMap::new();
    for agent in named {
        if !names.contains(&agent.value.as_str()) {
            let message = format!("there is no agent `{}`", shortened(&agent.value));
            let help = match names.as_slice() {
                [] => "name the machine under `agents` in `cluster`, with how it is reached".to_owned(),
                names => format!("the agents are {}", listed(names)),
            };
            findings.add("unknown-agent", agent.at, message, "unknown", help);
        }
        if let Some(earlier) = seen.insert(&agent.value, agent.at) {
            findings.push(Finding {
                code: "duplicate-name",
                message: format!("agent `{}` is named twice", shortened(&agent.value)),
                at: agent.at,
                label: "the same agent again".to_owned(),
                help: "name each agent once".to_owned(),
                also: Some((earlier, "first here".to_owned())),
            });
        }
    }
}

/// Whether the load can be done by other processes, and divided between so many.
pub(crate) fn check_load(
    load: &Load,
    (named, workload_at): (&[Spanned<String>], Spot),
    schedule: &[Phase],
    findings: &mut Findings,
) {
    let Some(first) = named.first() else { return };
    if counts_rows(&load.workload, &load.options) {
        let why = "the rows that it makes are counted by all its clients together";
        let message = format!("the workload `{}` cannot stand on agents: {why}", load.workload);
        let help = "leave `agents` out, or use a workload or options that make no rows";
        findings.add("not-on-agents", workload_at, message, "has to stay in one process", help);
        return;
    }
    let least = load.steps(schedule).iter().map(|step| step.1).min().unwrap_or(load.clients);
    let agents = u32::try_from(named.len()).unwrap_or(u32::MAX);
    if least < agents {
        let message = format!("load `{}` has fewer clients than agents: {least} and {agents}", load.name);
        let help = format!("give it {agents} clients or more in every phase, or name fewer agents");
        findings.add("too-few-clients", first.at, message, "one of them would have no client", help);
    }
}
