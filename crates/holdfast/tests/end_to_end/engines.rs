//! Scenarios of databases that may have to be fetched first: run to their end, their receipts held.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, Finished, arguments};
use crate::traces::Before;
use crate::turns::beside_others;

/// An expectation in place of a scenario's own.
pub const NOTHING_LOST: &str = "expect={ lost_writes: 0, invented_writes: 0 }";

/// A schedule in place of a scenario's own: the leader's host loses power for `off_s` of a phase of `phase_s` seconds.
pub fn leader_off_briefly(phase_s: u32, off_s: u32) -> String {
    format!(
        "schedule=[{{ phase: baseline, for: 2s }}, {{ phase: fault, for: {phase_s}s, faults: [{{ power-off: {{ host: \
         leader }}, at: 0s, for: {off_s}s }}] }}]"
    )
}

/// What a scenario came to that ends with `code`; nothing, and said so, where no lab or no such database can be had.
pub fn ended(test: &str, engine: &str, code: i32, more: &[&str]) -> Option<Value> {
    let _turn = beside_others();
    let desk = Desk::with_a_lab(test)?;
    ended_on(&desk, test, &[engine], code, more)
}

/// The same on a desk that is there; any of `needed` may have to be fetched.
pub fn ended_on(desk: &Desk, test: &str, needed: &[&str], code: i32, more: &[&str]) -> Option<Value> {
    let (finished, result) = ran_on(desk, test, needed, more)?;
    finished.ends_with(code);
    Some(result)
}

/// The same, whatever its verdict: for a scenario in which chance has a part. Who calls it says what must hold with each.
pub fn judged(test: &str, engine: &str, more: &[&str]) -> Option<Value> {
    let _turn = beside_others();
    let desk = Desk::with_a_lab(test)?;
    let (finished, result) = ran_on(&desk, test, &[engine], more)?;
    let code = match result["verdict"].as_str() {
        Some("pass") => 0,
        Some("fail") => 1,
        _ => 2,
    };
    finished.ends_with(code);
    Some(result)
}

fn ran_on(desk: &Desk, test: &str, needed: &[&str], more: &[&str]) -> Option<(Finished, Value)> {
    let before = Before::look(desk);
    let finished = desk.run(&arguments(&[&["run"], more]));
    let is_missing = |one: &&&str| finished.stderr.contains(&format!("{one} could not be installed"));
    if let Some(missing) = needed.iter().find(is_missing) {
        eprintln!("skipped: {test}: no {missing} is here, and none can be fetched");
        return None;
    }
    assert!(matches!(finished.code(), Some(0..=2)), "{}\n{}", finished.stdout, finished.stderr);
    let result = finished.result();
    contract::holds(&result);
    contract::timeline_holds(&finished.run_directory());
    for fault in result["faults"].as_array().expect("faults") {
        assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
    }
    before.nothing_is_left(&[]);
    Some((finished, result))
}

/// A check of a result, by its name.
#[track_caller]
pub fn check<'a>(result: &'a Value, name: &str) -> &'a Value {
    let checks = result["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).expect("the check is made")
}
