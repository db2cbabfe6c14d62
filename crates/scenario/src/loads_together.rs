//! Loads whose checks could not tell right from wrong beside each other, or under the faults of the schedule.
//!
//! Owns these refusals. What a load is by itself is read in `loads`.

use capabilities::{Capabilities, Protocol};

use crate::faults::Takes;
use crate::loads::LoadDocument;
use crate::rejection::{Finding, Findings};
use crate::resolved::IsolationResponse;
use crate::scenario::Phase;

/// Checks all loads of a scenario. `isolation` is what the platform does with VMs of a host that reaches no other.
pub(crate) fn check(
    documents: &[LoadDocument],
    (engine, isolation): (&Capabilities, Option<IsolationResponse>),
    schedule: &[Phase],
    findings: &mut Findings,
) {
    check_tables_of_pgbench(documents, findings);
    if engine.protocol == Protocol::Cql {
        check_conditional_writes(documents, engine.name, findings);
    }
    let faults = || schedule.iter().flat_map(|phase| &phase.faults);
    if faults().any(|fault| matches!(fault.action.takes(), Takes::Power(_))) {
        check_durability(documents, ("the schedule switches power off", "leave the power on"), findings);
    } else if isolation == Some(IsolationResponse::PowerOff) && faults().next().is_some() {
        let why = ("`isolation: power-off` may switch nodes off", "leave `isolation` out");
        check_durability(documents, why, findings);
    }
}

fn first_of<'d>(documents: &'d [LoadDocument], workload: &str) -> Option<&'d LoadDocument> {
    documents.iter().find(|document| document.workload() == workload)
}

/// Pgbench's own scripts write the tables whose sums the check of `tpcb` demands.
fn check_tables_of_pgbench(documents: &[LoadDocument], findings: &mut Findings) {
    let Some(tpcb) = first_of(documents, "tpcb") else { return };
    let writes = |document: &&LoadDocument| {
        let mut scripts = document.options().iter().filter(|(option, _)| option.starts_with("scripts."));
        let is_builtin =
            |(option, value): (&String, &String)| option.ends_with(".builtin") && value != "select-only";
        let is_default = scripts.clone().next().is_none();
        document.workload() == "script" && (is_default || scripts.any(is_builtin))
    };
    for script in documents.iter().filter(writes) {
        findings.push(Finding {
            code: "same-tables",
            message: "a script of pgbench writes the tables of `tpcb`, whose check would take its rows for rows of nobody"
                .to_owned(),
            at: script.workload_at(),
            label: "writes pgbench's tables".to_owned(),
            help: "leave one of the two loads out, or let the script be `builtin: select-only` or one with tables of its own"
                .to_owned(),
            also: Some((tpcb.workload_at(), "these are its tables".to_owned())),
        });
    }
}

/// With this protocol conditional writes are ordered by their ballots, and others by their clients' clocks: of both to one row no
/// order is promised.
fn check_conditional_writes(documents: &[LoadDocument], engine: &str, findings: &mut Findings) {
    let has_conditions =
        |document: &LoadDocument| document.options().get("compare_and_set").is_none_or(|value| value == "on");
    let Some(first) = first_of(documents, "register") else { return };
    let others = documents.iter().filter(|document| document.workload() == "register");
    for other in others.filter(|other| has_conditions(other) != has_conditions(first)) {
        findings.push(Finding {
            code: "mixed-conditions",
            message: format!(
                "two loads of `register` write the same rows, one with `compare_and_set` and one without: the engine `{engine}` \
                 promises no order of such writes"
            ),
            at: other.workload_at(),
            label: "the other way".to_owned(),
            help: "write the same `compare_and_set` in both, or leave one load out".to_owned(),
            also: Some((first.workload_at(), "the same rows".to_owned())),
        });
    }
}

/// What is never synced may be gone with the power, and nothing is proved by its being gone.
fn check_durability(
    documents: &[LoadDocument],
    (switched_off, remedy): (&str, &str),
    findings: &mut Findings,
) {
    let never =
        |document: &&LoadDocument| document.options().get("durable").is_some_and(|value| value == "none");
    for document in documents.iter().filter(never) {
        findings.add(
            "nothing-promised",
            document.workload_at(),
            format!(
                "{switched_off}, and with `durable: none` nothing that is written need be there afterwards"
            ),
            "never synced",
            format!("write `durable: end` or `durable: each`, or {remedy}"),
        );
    }
}
