//! What is said on paper of failures, held against a real run of each: whatever can be told of them agrees.

use crate::contract;
use crate::holdfast::Desk;
use crate::turns::machine;

/// Sets of failures of each kind that a scenario shows: those that writes survive, and those that stop them.
const EACH_MIN: usize = 3;

fn check(test: &str, scenario: &str) {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let finished = desk.run(&["run", scenario]);
    let result = finished.result();
    contract::holds(&result);
    let rows = result["prediction"].as_array().expect("predictions");
    for row in rows {
        // How many seconds of this machine a takeover needs decides what can be told, never what is true.
        assert_ne!(row["agrees"], false, "{row:#}");
    }
    let served = rows.iter().filter(|row| row["unit"] == "1 yes, 0 no");
    let (survived, stopped): (Vec<_>, Vec<_>) = served.partition(|row| row["predicted"] == 1.0);
    assert!(survived.len() >= EACH_MIN && stopped.len() >= EACH_MIN, "{rows:#?}");
    assert!(stopped.iter().all(|row| row["measured"] == 0.0), "{stopped:#?}");
    let losses = rows.iter().find(|row| row["name"] == "acknowledged writes lost by the end");
    assert_eq!(losses.expect("losses are predicted")["measured"], 0.0);
}

#[test]
#[ignore = "second tier: a scenario of two minutes"]
fn what_is_said_of_failures_of_postgresql_comes_true() {
    check("what_is_said_of_failures_of_postgresql_comes_true", "scenarios/survival-postgres.yaml");
}

#[test]
#[ignore = "second tier: a scenario of three minutes"]
fn what_is_said_of_failures_of_postgresql_on_a_mirrored_volume_comes_true() {
    let test = "what_is_said_of_failures_of_postgresql_on_a_mirrored_volume_comes_true";
    check(test, "scenarios/survival-mirrored.yaml");
}

#[test]
#[ignore = "second tier: a scenario of two minutes"]
fn what_is_said_of_failures_of_a_database_that_elects_its_leader_comes_true() {
    let test = "what_is_said_of_failures_of_a_database_that_elects_its_leader_comes_true";
    check(test, "scenarios/survival-control.yaml");
}
