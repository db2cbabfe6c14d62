//! How most tests of the language read a scenario. What they expect of it is their own.

use scenario::{Problem, Scenario, Source, parse, to_yaml};

/// Reads it; each problem of a refusal is told as `code culprit`.
pub fn read(text: &str) -> Result<Scenario, Vec<String>> {
    let source = Source { name: "base.yaml".to_owned(), text: text.to_owned() };
    parse(&source, &[]).map_err(|rejection| {
        let told = |problem: &Problem| format!("{} `{}`", problem.code(), problem.culprit());
        rejection.problems().iter().map(told).collect()
    })
}

/// The same; what it reads must survive writing.
pub fn read_and_written(text: &str) -> Result<Scenario, Vec<String>> {
    let mut scenario = read(text)?;
    scenario.seed = Some(1);
    let written = to_yaml(&scenario, 1);
    let again = read(&written).unwrap_or_else(|problems| panic!("{problems:?}\n{written}"));
    assert_eq!(again, scenario, "{written}");
    Ok(scenario)
}

/// A scenario with three nodes of this engine, and this element of `faults` in its second phase, which is so long.
pub fn with_fault(engine: &str, length: &str, fault: &str) -> String {
    format!(
        "name: x\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 4 }} }} }} }} }}\n\
         database: {{ engine: {engine}, nodes: 3 }}\nloads: [ {{ workload: ledger, clients: 1 }} ]\n\
         schedule:\n  - {{ phase: baseline, for: 5s }}\n  - {{ phase: f, for: {length}, faults: [ {fault} ] }}\n"
    )
}
