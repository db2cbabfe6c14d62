//! The main job: a host dies under the leader, and what was acknowledged is still there, or is found missing.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, Finished, PROMOTE_SOON, RESTART_SOON, SHORT, arguments, read_json};
use crate::traces::Before;
use crate::turns::{beside_others, machine};

/// Runs a shipped scenario shortened.
fn run(desk: &Desk, scenario: &str, more: &[&str]) -> Finished {
    let path = format!("scenarios/{scenario}.yaml");
    desk.run(&arguments(&[&["run", &path], &SHORT, more]))
}

fn ledger(result: &Value) -> &Value {
    let checks = result["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == "ledger").expect("a ledger check")
}

#[track_caller]
fn recovered_without_loss(finished: &Finished) {
    let result = finished.ends_with(0).result();
    assert_eq!(result["verdict"], "pass", "{result:#}");
    assert_eq!(ledger(&result)["lost"], 0, "{result:#}");
    assert!(ledger(&result)["acknowledged"].as_u64() > Some(0), "{result:#}");
    for fault in result["faults"].as_array().expect("faults") {
        assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
        assert!(fault["recovery_s"]["first_success"].as_f64() > Some(0.0), "{fault:#}");
        assert!(fault["healed_s"].as_f64() > fault["took_effect_s"].as_f64(), "{fault:#}");
    }
    contract::holds(&result);
    contract::timeline_holds(&finished.run_directory());
    contract::files_are_documented(&finished.run_directory());
    assert!(finished.run_directory().join("report.html").is_file());
}

fn report_alone_says_the_same(desk: &Desk, finished: &Finished) {
    let directory = finished.run_directory();
    std::fs::remove_file(directory.join("report.html")).expect("remove the report");
    let again = desk.run(&["report".as_ref(), directory.as_os_str()]);
    again.ends_with(0);
    assert!(directory.join("report.html").is_file());
    let summary = again.stdout.lines().next().expect("a first line");
    assert!(finished.stdout.contains(summary), "{summary}\n{}", finished.stdout);
}

/// Three nodes of which all lose power, so that nobody is there to be promoted.
const ALL_OFF: &str = "name: all-off\nsite: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }\n\
                       database: { engine: postgres, nodes: 3, replication: { synchronous: any 1 }, \
                       failover: { promote: { after: 1s } } }\n\
                       loads: [ { workload: ledger, clients: 2, from: dc1, rate: 100/s } ]\n\
                       schedule: [ { phase: baseline, for: 4s }, \
                       { phase: fault, for: 12s, faults: [{ power-off: { region: dc1 }, for: 3s }] } ]\n\
                       expect: { lost_writes: 0 }\n";

#[test]
fn a_leader_that_returns_with_all_others_goes_on_and_nobody_is_promoted_beside_it() {
    let _turn = beside_others();
    let test = "a_leader_that_returns_with_all_others_goes_on_and_nobody_is_promoted_beside_it";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    std::fs::write(desk.path().join("all-off.yaml"), ALL_OFF).expect("a scenario");
    let finished = desk.run(&["run", "all-off.yaml"]);
    recovered_without_loss(&finished);
    let goes_on = finished.stdout.contains("it stays the leader");
    let promoted = finished.stdout.contains("promoted, the most advanced");
    assert!(goes_on != promoted, "either the leader goes on or another is promoted:\n{}", finished.stdout);
}

#[test]
fn an_ordinary_user_sees_the_same() {
    let _turn = beside_others();
    let test = "an_ordinary_user_sees_the_same";
    let Some(desk) = Desk::of_an_ordinary_user(test).filter(|desk| desk.has_fuse(test)) else { return };
    let before = Before::look(&desk);
    let finished = run(&desk, "host-failure", &RESTART_SOON);
    recovered_without_loss(&finished);
    assert_eq!(finished.result()["facts"]["machine"]["user"], "ordinary user");
    before.nothing_is_left(&[]);
}

#[test]
fn a_promoted_synchronous_standby_has_everything_and_json_is_all_that_is_printed() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_promoted_synchronous_standby_has_everything") else { return };
    let before = Before::look(&desk);
    let finished =
        run(&desk, "host-failure-promote", &[&PROMOTE_SOON[..], &["--json", "--seed", "7"]].concat());
    finished.ends_with(0);
    let result: Value = serde_json::from_str(&finished.stdout).expect("nothing but JSON on standard output");
    assert_eq!(result["verdict"], "pass");
    assert_eq!(result["seed"], 7);
    assert_eq!(ledger(&result)["lost"], 0);
    assert!(finished.stderr.contains("verdict: pass"), "{}", finished.stderr);
    let latest = desk.path().join("runs/latest");
    assert_eq!(result, read_json(&latest.join("result.json")));
    contract::holds(&result);
    before.nothing_is_left(&[]);
}

#[test]
fn a_promoted_asynchronous_standby_lacks_acknowledged_writes_and_the_ledger_names_some() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_promoted_asynchronous_standby_lacks_acknowledged_writes") else {
        return;
    };
    let finished = run(&desk, "host-failure-async-promote", &PROMOTE_SOON);
    let result = finished.ends_with(1).result();
    assert_eq!(result["verdict"], "fail");
    let ledger = ledger(&result);
    assert_eq!(ledger["verdict"], "fail");
    let lost = ledger["lost"].as_u64().expect("lost");
    assert!(lost > 0, "{ledger:#}");
    assert_eq!(result["faults"][0]["lost_writes"], lost);
    let story = ledger["explanation"].as_str().expect("a story");
    assert!(story.contains(&format!("{lost}")), "{story}");
    // An example names the write, so that a reader can look for it.
    assert!(finished.stdout.contains("FAIL"), "{}", finished.stdout);
    contract::holds(&result);
}

#[test]
fn two_runs_side_by_side_each_lose_a_host_under_the_leader_and_nothing_acknowledged_is_lost() {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("two_runs_side_by_side_each_lose_a_host_under_the_leader") else {
        return;
    };
    let before = Before::look(&desk);
    let both = arguments(&[&["run", "scenarios/host-failure.yaml"], &SHORT, &RESTART_SOON]);
    let (first, second) = (desk.start(&both), desk.start(&both));
    let (first, second) = (first.wait(), second.wait());
    before.nothing_is_left(&[]);
    assert_ne!(first.run_directory(), second.run_directory());
    let latest = desk.path().join("runs/latest").canonicalize().expect("latest");
    assert!([&first, &second].iter().any(|finished| finished.run_directory() == latest));
    for finished in [first, second] {
        recovered_without_loss(&finished);
        report_alone_says_the_same(&desk, &finished);
    }
}

/// The leader's site, one that is 40 ms away and, later in the order of the nodes, one that is 1 ms away. Writes are so rare
/// that both standbys have all of them when the leader's host fails.
const TWO_STANDBYS: &str = "name: two-standbys
site:
  regions:
    here: { zones: { a: { hosts: 1 } } }
    far: { zones: { a: { hosts: 1 } } }
    near: { zones: { a: { hosts: 1 } } }
  links:
    - { between: [here, far], delay: 40ms }
    - { between: [here, near], delay: 1ms }
database:
  engine: postgres
  nodes: [here/a/h1, far/a/h1, near/a/h1]
  replication: { synchronous: any 1 }
  failover: { promote: { after: 1s } }
loads:
  - { workload: ledger, clients: 1, rate: 1/s, from: here }
schedule:
  - { phase: warm-up, for: 2s }
  - { phase: baseline, for: 4s }
  - { phase: fault, for: 10s, faults: [{ power-off: { host: leader }, at: 500ms, for: 8s }] }
";

#[test]
#[ignore = "second tier: half a minute"]
fn of_two_equally_advanced_standbys_the_nearer_one_is_promoted() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("of_two_equally_advanced_standbys_the_nearer_one_is_promoted") else {
        return;
    };
    std::fs::write(desk.path().join("two-standbys.yaml"), TWO_STANDBYS).expect("a scenario");
    let finished = desk.run(&["run", "two-standbys.yaml"]);
    let events = std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let promoted: Vec<Value> = events.filter(|event| event["action"] == "promote").collect();
    let [promotion] = promoted.as_slice() else { panic!("{promoted:#?}\n{}", finished.stderr) };
    // Were one of them ahead, its place would show nothing.
    let what = promotion["what"].as_str().expect("what");
    let position = |node: &str| {
        let (_, after) = what.split_once(&format!("{node} at "))?;
        after.split([',', ';']).next().map(str::to_owned)
    };
    assert!(position("n2").is_some() && position("n2") == position("n3"), "{what}");
    assert_eq!(promotion["node"], "n3", "{what}");
}

#[test]
#[ignore = "second tier: two more losses of power, a quarter of a minute"]
fn a_node_that_loses_power_while_it_starts_is_no_failure_of_the_platform() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_node_that_loses_power_while_it_starts") else { return };
    // Its disk is slow, so that the database on its second host is still starting when that one loses power, too.
    let schedule = "schedule=[{ phase: baseline, for: 1s }, { phase: fault, for: 20s, faults: [{ disk: { of: leader, how: { slow: \
                    150ms } }, at: 1s, for: 12s }, { power-off: { host: dc1/a/r1/h1 }, at: 2s, for: 16s }, { power-off: { host: \
                    dc1/a/r1/h2 }, at: 8s, for: 8s }] }]";
    let failover = "database.failover={ ha-restart: { after: 1s } }";
    let finished = desk.run(&arguments(&[&[
        "run",
        "scenarios/host-failure.yaml",
        "--set",
        schedule,
        "--set",
        failover,
    ]]));
    let events = std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events");
    assert!(events.contains("n1 lost power while its database was still starting"), "{events}");
    assert!(!events.contains("the platform failed to start the database on n1"), "{events}");
}
