//! Faults of processes and pressure: shown when they happen, refuted when they do not, and never mistaken for a stranger's doing.

use crate::contract;
use crate::holdfast::Desk;
use crate::turns::beside_others;

#[test]
fn a_kill_and_a_stop_have_receipts_and_nobody_takes_them_for_a_strangers() {
    let _turn = beside_others();
    let test = "a_kill_and_a_stop_have_receipts_and_nobody_takes_them_for_a_strangers";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let result = desk.run(&["run", "scenarios/lies/process.yaml"]).ends_with(0).result();
    let evidence = |fault: usize| result["faults"][fault]["receipt"]["evidence"].to_string();
    for seen in ["gone, seen after", "was cut", "runs again"] {
        assert!(evidence(0).contains(seen), "{seen}: {}", evidence(0));
    }
    for seen in ["is stopped (state T)", "using no CPU time", "answered none of", "use CPU time again"] {
        assert!(evidence(1).contains(seen), "{seen}: {}", evidence(1));
    }
    assert!(result["lab"]["interference"].is_null(), "{result:#}");
    contract::holds(&result);
}

/// Plants a lie about this fault, whose receipt must have that in it.
fn is_caught(lie: &str, fault: usize, seen: &str) {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab(lie) else { return };
    let result = desk.run(&["run", "scenarios/lies/process.yaml", "--plant", lie]).ends_with(2).result();
    let receipt = &result["faults"][fault]["receipt"];
    assert_eq!(receipt["verdict"], "fail", "{receipt:#}");
    assert!(receipt["evidence"].to_string().contains(seen), "{receipt:#}");
    assert_eq!(result["faults"][1 - fault]["receipt"]["verdict"], "pass", "{result:#}");
}

#[test]
fn a_kill_that_kills_nothing_is_caught() {
    is_caught("kill-nothing", 0, "still there after");
}

#[test]
fn a_stop_of_the_main_process_alone_is_caught() {
    is_caught("stop-main-only", 1, "are not stopped");
}

#[test]
fn processes_that_are_to_stay_dead_stay_dead_and_a_stranger_beside_a_fault_is_named() {
    let _turn = beside_others();
    let name = "processes_that_are_to_stay_dead_stay_dead_and_a_stranger_beside_a_fault_is_named";
    let Some(desk) = Desk::with_a_lab(name) else { return };
    let scenario = "name: dead\nsite: { regions: { dc1: { zones: { a: { hosts: 2 } } } } }\n\
                    database: { engine: postgres, nodes: 2, replication: { synchronous: off } }\n\
                    loads: [ { workload: ledger, clients: 1, from: dc1, rate: 100/s } ]\n\
                    schedule: [ { phase: baseline, for: 2s }, { phase: fault, for: 6s, faults: [ { process: { of: n2, how: \
                    kill, restart: never } } ] } ]\nexpect: { lost_writes: 0 }\n";
    std::fs::write(desk.path().join("dead.yaml"), scenario).expect("a scenario");
    let running = desk.start(&["run", "dead.yaml"]);
    assert!(running.says("took effect: pass"));
    let kill = "for p in /proc/[0-9]*; do read c < $p/comm; [ \"$c\" = postgres ] && echo ${p#/proc/}; done | sort -n | \
                tail -n 1 | while read p; do kill -KILL $p; done";
    desk.run(&["shell", "n1", "sh", "-c", kill]).ends_with(0);
    let result = running.wait().ends_with(2).result();
    let fault = &result["faults"][0];
    assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
    assert!(fault["receipt"]["evidence"].to_string().contains("were not started again"), "{fault:#}");
    assert!(fault["healed_s"].is_null(), "{fault:#}");
    let seen = result["lab"]["interference"].to_string();
    assert!(seen.contains("\"n1\"") && !seen.contains("\"n2\""), "{seen}");
}

#[test]
#[ignore = "second tier: a scenario of a quarter of a minute"]
fn nobody_is_promoted_beside_a_leader_of_which_something_still_runs_after_its_fencing() {
    let _turn = beside_others();
    let name = "nobody_is_promoted_beside_a_leader_of_which_something_still_runs_after_its_fencing";
    let Some(desk) = Desk::with_a_lab(name) else { return };
    let loads = "loads=[{ workload: ledger, clients: 2, from: dc1, rate: 100/s }]";
    let schedule = "schedule=[{ phase: baseline, for: 3s }, { phase: stopped, for: 12s, faults: [ { process: { of: leader, how: \
                    stop }, for: 10s } ] }]";
    let told = |plant: &[&str]| {
        let arguments = ["run", "scenarios/process-stop.yaml", "--set", loads, "--set", schedule];
        let finished = desk.run(&[&arguments[..], plant].concat());
        std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events")
    };
    let (fenced, promoted) = ("fencing, the platform switches its VM off", "promoted, the most advanced of");
    let honest = told(&[]);
    assert!(honest.contains(fenced) && honest.contains(promoted), "{honest}");
    let lying = told(&["--plant", "process-left"]);
    assert!(lying.contains(fenced) && !lying.contains(promoted), "{lying}");
    assert!(lying.contains("failed to promote a standby in the place of n1"), "{lying}");
}

#[test]
fn pressure_that_takes_nothing_is_caught_and_pressure_that_takes_processors_is_shown() {
    let _turn = beside_others();
    let name = "pressure_that_takes_nothing_is_caught_and_pressure_that_takes_processors_is_shown";
    let Some(desk) = Desk::with_a_lab(name) else { return };
    if let Err(error) = lab::cgroup::available() {
        eprintln!("skipped: {name}: {error}");
        return;
    }
    let lying = desk.run(&["run", "scenarios/lies/pressure.yaml", "--plant", "no-pressure"]);
    lying.ends_with(2);
    assert_ne!(lying.result()["faults"][0]["receipt"]["verdict"], "pass");
    let honest = desk.run(&["run", "scenarios/lies/pressure.yaml"]);
    let receipt = &honest.ends_with(0).result()["faults"][0]["receipt"];
    assert!(receipt["evidence"].to_string().contains("the kernel throttled it"), "{receipt:#}");
}
