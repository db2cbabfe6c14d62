//! Faults of clocks: seen by every program of the node and by nobody else, shown when they happen and refuted when they do not.

use crate::contract;
use crate::holdfast::{Desk, arguments};
use crate::turns::beside_others;

/// PostgreSQL writes down what time it is, and when its log was written last by the file's own stamp, while its node's clock is ten
/// days ahead; it is asked for both in the end.
const DATABASE_SEES: &str = "
name: database-sees-the-clock
site:
  regions: { dc1: { zones: { a: { hosts: 2 } } } }
database:
  engine: postgres
  nodes: 2
  replication: { synchronous: any 1 }
loads:
  - workload: script
    clients: 1
    from: dc1
    think_time: 50ms
    options:
      setup: |
        DROP TABLE IF EXISTS seen;
        CREATE TABLE seen (at timestamptz NOT NULL, stamp timestamptz NOT NULL);
      scripts:
        - name: look
          text: >-
            INSERT INTO seen SELECT clock_timestamp(), modification
            FROM pg_stat_file('pg_wal/' || pg_walfile_name(pg_current_wal_lsn()));
      conditions:
        the-jump-was-seen: SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM seen WHERE at > clock_timestamp() + interval '9 days')
        a-file-bears-it: SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM seen WHERE stamp > clock_timestamp() + interval '9 days')
        it-is-over: SELECT 1 WHERE clock_timestamp() > (SELECT max(at) FROM seen)
schedule:
  - { phase: baseline, for: 2s }
  - phase: fault
    for: 5s
    faults:
      - { clock-jump: { node: leader, by: 240h }, at: 1s, for: 3s }
  - { phase: recovery, for: 2s }
";

fn can_have_clocks(test: &str) -> bool {
    match clock::trial() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("skipped: {test}: {why}");
            false
        }
    }
}

#[test]
fn a_clock_that_jumps_and_one_that_drifts_have_receipts_and_clocks_that_only_c_sees_have_none() {
    let _turn = beside_others();
    let name = "a_clock_that_jumps_and_one_that_drifts_have_receipts_and_clocks_that_only_c_sees_have_none";
    let Some(desk) = Desk::with_a_lab(name).filter(|_| can_have_clocks(name)) else { return };
    let result = desk.run(&["run", "scenarios/lies/clock.yaml"]).ends_with(0).result();
    let evidence = result["faults"][0]["receipt"]["evidence"].to_string();
    for seen in [
        "before the fault: n1",
        "with the fault: n1",
        "before it was healed",
        "after the fault",
        "`date` shows it",
    ] {
        assert!(evidence.contains(seen), "{seen}: {evidence}");
    }
    contract::holds(&result);
    is_caught(&desk, &["--plant", "clock-c-only"]);
}

#[test]
#[ignore = "second tier: the first has another lie about the same faults"]
fn clocks_that_are_not_moved_have_no_receipts() {
    let _turn = beside_others();
    let name = "clocks_that_are_not_moved_have_no_receipts";
    let Some(desk) = Desk::with_a_lab(name).filter(|_| can_have_clocks(name)) else { return };
    is_caught(&desk, &["--prevent-faults"]);
}

/// A lie about both faults of the clock: neither has a receipt.
#[track_caller]
fn is_caught(desk: &Desk, lie: &[&str]) {
    let lying = desk.run(&arguments(&[&["run", "scenarios/lies/clock.yaml"], lie]));
    lying.ends_with(2);
    for fault in [0, 1] {
        assert_ne!(lying.result()["faults"][fault]["receipt"]["verdict"], "pass", "{lie:?}");
    }
}

fn the_database_sees(desk: &Desk) {
    std::fs::write(desk.path().join("sees.yaml"), DATABASE_SEES).expect("a scenario");
    let receipt = &desk.run(&["run", "sees.yaml"]).ends_with(0).result()["faults"][0]["receipt"];
    assert!(receipt["evidence"].to_string().contains("during the fault: n2"), "{receipt:#}");
}

#[test]
fn a_database_sees_its_node_s_clock_and_another_node_does_not() {
    let _turn = beside_others();
    let name = "a_database_sees_its_node_s_clock_and_another_node_does_not";
    let Some(desk) = Desk::with_a_lab(name).filter(|_| can_have_clocks(name)) else { return };
    the_database_sees(&desk);
}

#[test]
fn an_ordinary_user_s_database_sees_its_node_s_clock() {
    let _turn = beside_others();
    let name = "an_ordinary_user_s_database_sees_its_node_s_clock";
    if let Some(desk) = Desk::of_an_ordinary_user(name)
        && can_have_clocks(name)
    {
        the_database_sees(&desk);
    }
}

#[test]
fn a_time_service_steps_a_clock_that_jumped_and_programs_see_it_right_while_the_fault_stands() {
    let _turn = beside_others();
    let name = "a_time_service_steps_a_clock_that_jumped_and_programs_see_it_right_while_the_fault_stands";
    let Some(desk) = Desk::with_a_lab(name).filter(|_| can_have_clocks(name)) else { return };
    let scenario = "name: served\nsite: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }\n\
                    database: { engine: control, nodes: 3, platform: { time_service: { how: step, poll: 2s, notice: 1s } } }\n\
                    loads: [ { workload: ledger, clients: 1, rate: 40/s, from: dc1 } ]\n\
                    schedule: [ { phase: baseline, for: 2s }, { phase: fault, for: 8s, faults: [ { clock-jump: { node: n2, by: 5s }, \
                    for: 7s } ] } ]\nexpect: { lost_writes: 0 }\n";
    std::fs::write(desk.path().join("served.yaml"), scenario).expect("a scenario");
    let finished = desk.run(&["run", "served.yaml"]);
    let evidence = finished.ends_with(0).result()["faults"][0]["receipt"]["evidence"].to_string();
    assert!(evidence.contains("expected 5000.000 ms"), "it jumped: {evidence}");
    assert!(evidence.contains("corrected by a step of 0.000 ms"), "it had been right: {evidence}");
    assert!(finished.stdout.contains("steps the clock, which is 5.000 s ahead"), "{}", finished.stdout);
}

/// At 8.3 % half a second takes six, and five seconds a minute.
#[test]
#[ignore = "second tier: two runs of twenty seconds"]
fn a_time_service_slews_a_small_error_away_and_a_large_one_only_in_part() {
    let _turn = beside_others();
    let name = "a_time_service_slews_a_small_error_away_and_a_large_one_only_in_part";
    let Some(desk) = Desk::with_a_lab(name).filter(|_| can_have_clocks(name)) else { return };
    for (by, ahead, left_ms) in [("500ms", "0.500 s", 0.0..20.0), ("5s", "5.000 s", 4_000.0..4_900.0)] {
        let scenario = format!(
            "name: slewed\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 3 }} }} }} }} }}\n\
             database: {{ engine: control, nodes: 3, platform: {{ time_service: {{ how: slew, poll: 1s, notice: 2s }} }} }}\n\
             loads: [ {{ workload: ledger, clients: 1, rate: 40/s, from: dc1 }} ]\n\
             schedule: [ {{ phase: baseline, for: 2s }}, {{ phase: fault, for: 15s, faults: [ {{ clock-jump: {{ node: n2, by: {by} }}, \
             for: 13s }} ] }} ]\nexpect: {{ lost_writes: 0 }}\n"
        );
        std::fs::write(desk.path().join("slewed.yaml"), scenario).expect("a scenario");
        let finished = desk.run(&["run", "slewed.yaml"]);
        let evidence = finished.ends_with(0).result()["faults"][0]["receipt"]["evidence"].to_string();
        let told = format!("slews the clock, which is {ahead} ahead");
        assert!(finished.stdout.contains(&told), "{told}: {}", finished.stdout);
        // What was left had to be set when the fault was healed.
        let set_by = evidence.split("corrected by a step of ").nth(1).and_then(|rest| rest.split(' ').next());
        let set_by_ms: f64 = set_by.and_then(|number| number.parse().ok()).expect("a number");
        assert!(left_ms.contains(&set_by_ms.abs()), "{by}: {evidence}");
    }
}

#[test]
#[ignore = "second tier: two runs of a quarter of a minute"]
fn the_clocks_of_all_nodes_jump_at_once_and_each_has_its_receipt() {
    let _turn = beside_others();
    let name = "the_clocks_of_all_nodes_jump_at_once_and_each_has_its_receipt";
    let Some(desk) = Desk::with_a_lab(name).filter(|_| can_have_clocks(name)) else { return };
    let scenario = "name: all\nsite: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }\n\
                    database: { engine: control, nodes: 3 }\n\
                    loads: [ { workload: ledger, clients: 1, rate: 40/s, from: dc1 } ]\n\
                    schedule: [ { phase: baseline, for: 2s }, { phase: fault, for: 6s, faults: [ { clock-jump: { node: all, by: 1h }, \
                    for: 4s } ] } ]\nexpect: { lost_writes: 0 }\n";
    std::fs::write(desk.path().join("all.yaml"), scenario).expect("a scenario");
    let finished = desk.run(&["run", "all.yaml"]);
    let evidence = finished.ends_with(0).result()["faults"][0]["receipt"]["evidence"].to_string();
    for node in ["n1", "n2", "n3"] {
        for when in ["before the fault", "with the fault", "before it was healed", "after the fault"] {
            assert!(evidence.contains(&format!("{when}: {node}")), "{when}: {node}: {evidence}");
        }
    }
    let lying = desk.run(&["run", "all.yaml", "--plant", "clock-c-only"]);
    lying.ends_with(2);
}
