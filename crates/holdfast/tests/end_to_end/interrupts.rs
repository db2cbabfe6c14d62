//! Ctrl-C and SIGTERM: healed, torn down, what was recorded written, exit code 2. A second one: torn down at once.

use std::time::Duration;

use crate::contract;
use crate::holdfast::{Desk, Finished, SMALL};
use crate::traces::Before;
use crate::turns::beside_others;

/// A run that is interrupted as soon as it has said `moment` and a while has passed.
#[track_caller]
fn interrupted(moment: &str, after: Duration, signals: &[i32]) -> Option<(Desk, Finished)> {
    let desk = Desk::with_a_lab(&format!("interrupted at `{moment}`"))?;
    let before = Before::look(&desk);
    let running = desk.start(&SMALL);
    let pid = running.pid();
    assert!(running.says(moment), "never said: {moment}");
    std::thread::sleep(after);
    for signal in signals {
        running.signal_group(*signal);
        std::thread::sleep(Duration::from_millis(50));
    }
    let finished = running.wait();
    finished.ends_with(2);
    before.nothing_is_left(&[pid]);
    Some((desk, finished))
}

#[test]
fn ctrl_c_while_a_fault_stands_heals_it_and_writes_what_was_recorded() {
    let _turn = beside_others();
    let moment = interrupted("took effect", Duration::from_millis(500), &[libc::SIGINT]);
    let Some((_desk, finished)) = moment else { return };
    let result = finished.result();
    assert_eq!(result["verdict"], "unknown");
    assert!(!result["faults"][0]["healed_s"].is_null(), "{:#}", result["faults"]);
    assert!(result["loads"][0]["phases"][1]["transactions"].as_u64() > Some(0), "{:#}", result["loads"]);
    assert!(result["reasons"].to_string().contains("interrupted"), "{}", result["reasons"]);
    contract::holds(&result);
    contract::timeline_holds(&finished.run_directory());
    assert!(finished.run_directory().join("report.html").is_file());
}

#[test]
fn sigterm_under_load_ends_the_run_in_order() {
    let _turn = beside_others();
    let moment = interrupted("phase baseline", Duration::from_millis(700), &[libc::SIGTERM]);
    let Some((_desk, finished)) = moment else { return };
    let result = finished.result();
    assert_eq!(result["verdict"], "unknown");
    contract::holds(&result);
}

#[test]
fn a_second_ctrl_c_ends_the_run_at_once() {
    let _turn = beside_others();
    let _ = interrupted("phase baseline", Duration::from_millis(700), &[libc::SIGINT, libc::SIGINT]);
}

#[test]
fn ctrl_c_while_the_lab_is_being_built_ends_the_run_with_a_result() {
    let _turn = beside_others();
    let moment = interrupted("run directory", Duration::from_millis(800), &[libc::SIGINT]);
    let Some((_desk, finished)) = moment else { return };
    let result = finished.result();
    assert_eq!(result["verdict"], "unknown");
    contract::holds(&result);
}
