//! Scenarios of databases that may have to be fetched first: run to their end, their receipts held.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, arguments};
use crate::traces::Before;
use crate::turns::beside_others;

/// What a scenario came to that ends with one of `codes`; nothing, and said so, where no lab or no such database can be had.
pub fn ended(test: &str, engine: &str, codes: &[i32], more: &[&str]) -> Option<Value> {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab(test) {
        return None;
    }
    ended_on(&desk, test, &[engine], codes, more)
}

/// The same on a desk that is there; any of `needed` may have to be fetched.
pub fn ended_on(desk: &Desk, test: &str, needed: &[&str], codes: &[i32], more: &[&str]) -> Option<Value> {
    let before = Before::look(desk);
    let finished = desk.run(&arguments(&[&["run"], more]));
    let is_missing = |one: &&&str| finished.stderr.contains(&format!("{one} could not be installed"));
    if let Some(missing) = needed.iter().find(is_missing) {
        eprintln!("skipped: {test}: no {missing} is here, and none can be fetched");
        return None;
    }
    let ends_so = finished.code().is_some_and(|code| codes.contains(&code));
    assert!(ends_so, "{}\n{}", finished.stdout, finished.stderr);
    let result = finished.result();
    contract::holds(&result);
    contract::timeline_holds(&finished.run_directory());
    for fault in result["faults"].as_array().expect("faults") {
        assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
    }
    before.nothing_is_left(&[]);
    Some(result)
}

/// A check of a result, by its name.
#[track_caller]
pub fn check<'a>(result: &'a Value, name: &str) -> &'a Value {
    let checks = result["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).expect("the check is made")
}
