//! The `matrix` section: which cells it makes, what they are called, and that what is wrong is told once and in its place.

use scenario::{Matrix, Rejection, Source, Synchronous, parse, plan};

const SCENARIO: &str = "name: m
site: { regions: { dc1: { zones: { a: { hosts: 1 }, b: { hosts: 1 } } } } }
database: { engine: postgres, nodes: 2 }
loads: [{ workload: ledger, clients: 2 }]
schedule: [{ phase: baseline, for: 5s }]
";

fn source(matrix: &str) -> Source {
    Source { name: "m.yaml".to_owned(), text: format!("{SCENARIO}matrix: {matrix}\n") }
}

fn matrix(section: &str) -> Matrix {
    let planned =
        plan(&source(section), &[]).unwrap_or_else(|error| panic!("{error}: {:?}", error.problems()));
    planned.matrix.expect("a matrix")
}

/// What is wrong: the code and what the caret is under.
fn refused(section: &str) -> Vec<(String, String)> {
    let told = |rejection: &Rejection| {
        let problems = rejection.problems().iter();
        problems.map(|problem| (problem.code().to_owned(), problem.culprit().trim_end().to_owned())).collect()
    };
    told(&plan(&source(section), &[]).expect_err("refused"))
}

#[test]
fn every_combination_is_a_cell_and_the_last_axis_changes_fastest() {
    let matrix = matrix(
        "{ axes: { database.replication.synchronous: [off, any 1], loads.0.clients: [1, 8, 32] }, repeat: 3 }",
    );
    assert_eq!(matrix.repeat, 3);
    let labels: Vec<&str> = matrix.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "synchronous = off, clients = 1",
            "synchronous = off, clients = 8",
            "synchronous = off, clients = 32",
            "synchronous = any 1, clients = 1",
            "synchronous = any 1, clients = 8",
            "synchronous = any 1, clients = 32",
        ]
    );
    let made: Vec<(Synchronous, u32)> = matrix
        .cells
        .iter()
        .map(|cell| (cell.scenario.database.synchronous, cell.scenario.loads[0].clients))
        .collect();
    assert_eq!((made[1], made[5]), ((Synchronous::Off, 8), (Synchronous::Any(1), 32)));
    let expected = [("database.replication.synchronous", "any 1"), ("loads.0.clients", "1")];
    let settings: Vec<(&str, &str)> =
        matrix.cells[3].settings.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
    assert_eq!(settings, expected);
}

#[test]
fn an_axis_of_named_sets_changes_several_settings_at_once() {
    let matrix = matrix(
        "{ axes: { size: { small: { loads.0.clients: 1, loads.0.scale: 1 }, large: { loads.0.clients: 64, loads.0.scale: 9 } } } }",
    );
    assert_eq!(matrix.repeat, 1);
    let made: Vec<(&str, u32, u32)> = matrix
        .cells
        .iter()
        .map(|cell| (cell.label.as_str(), cell.scenario.loads[0].clients, cell.scenario.loads[0].scale))
        .collect();
    assert_eq!(made, [("size = small", 1, 1), ("size = large", 64, 9)]);
}

#[test]
fn names_that_would_be_the_same_are_written_out() {
    let check = |axes: &str, expected: &str| {
        let matrix = matrix(&format!("{{ axes: {{ {axes} }} }}"));
        assert_eq!(matrix.cells[0].label, expected);
    };
    check(
        "loads.0.clients: [1, 2], clients: { a: { loads.0.scale: 1 }, b: { loads.0.scale: 2 } }",
        "loads.0.clients = 1, clients = a",
    );
    check(
        "loads.0: [{ workload: ledger, clients: 1 }, { workload: bank, clients: 1 }]",
        "loads.0 = { workload: ledger, clients: 1 }",
    );
}

#[test]
fn the_scenario_without_its_matrix_stays_what_it_is_and_set_reaches_into_the_matrix() {
    let section = "{ axes: { loads.0.clients: [1, 8] } }";
    let set = [("loads.0.scale".to_owned(), "5".to_owned()), ("matrix.repeat".to_owned(), "7".to_owned())];
    let planned = plan(&source(section), &set).expect("sound");
    assert_eq!(planned.scenario, parse(&source(section), &set).expect("sound"));
    assert_eq!((planned.scenario.loads[0].clients, planned.scenario.loads[0].scale), (2, 5));
    let matrix = planned.matrix.expect("a matrix");
    assert_eq!(matrix.repeat, 7);
    assert!(matrix.cells.iter().all(|cell| cell.scenario.loads[0].scale == 5));
    let without = Source { name: "m.yaml".to_owned(), text: SCENARIO.to_owned() };
    assert!(plan(&without, &[]).expect("sound").matrix.is_none());
}

#[test]
fn what_every_cell_sets_reaches_none_from_elsewhere_and_what_some_set_does() {
    let whole = matrix("{ axes: { loads.0.clients: [1, 8] } }");
    assert!(whole.replaces("loads.0.clients"));
    for other in ["loads.0.scale", "loads.0", "loads.0.clients2", "database.nodes"] {
        assert!(!whole.replaces(other), "{other}");
    }
    let replaced =
        "{ axes: { loads.0: [{ workload: ledger, clients: 1 }, { workload: bank, clients: 1 }] } }";
    assert!(matrix(replaced).replaces("loads.0.clients"));
    let some = matrix("{ axes: { size: { small: { loads.0.scale: 1 }, large: { loads.0.clients: 64 } } } }");
    assert!(!some.replaces("loads.0.clients"));
    let repeated =
        Matrix::of_repetitions(parse(&source("{ axes: { loads.0.scale: [1, 2] } }"), &[]).expect("sound"), 2);
    assert!(!repeated.replaces("loads.0.scale"), "no axes");
}

#[test]
fn what_is_wrong_with_a_value_is_told_once_under_that_value() {
    let check = |section: &str, code: &str, culprit: &str| {
        assert_eq!(refused(section), [(code.to_owned(), culprit.to_owned())], "{section}");
    };
    check(
        "{ axes: { loads.0.clients: [1, many], database.replication.synchronous: [off, any 1] } }",
        "not-a-number",
        "many",
    );
    check("{ axes: { loads.0.client: [1, 8] } }", "unknown-key", "client");
    check("{ axes: { loads.3.clients: [1, 8] } }", "bad-path", "3");
    check("{ axes: { \"loads.3.clients\": [1, 8] } }", "bad-path", "3");
    check("{ axes: { loads.0..clients: [1, 8] } }", "bad-path", "");
    check("{ axes: { loads.0.clients: 8 } }", "wrong-kind", "8");
    check("{ axes: { a: { one: { loads.0.clients: 1 } } } }", "empty", "{ one: { loads.0.clients: 1 } }");
    check("{ axes: {} }", "empty", "{}");
    check("{ repeat: 2 }", "missing-key", "matrix");
    check("{ axes: { matrix.repeat: [1, 2] } }", "bad-axis", "matrix.repeat");
}
