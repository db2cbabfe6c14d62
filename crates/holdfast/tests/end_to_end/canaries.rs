//! Power-offs that take nothing back, or leave a process, are caught by evidence that does not come from who made them; and
//! where there is nothing to take back, the run says that it has shown nothing.

use serde_json::Value;

use crate::holdfast::{Desk, Finished, ON_CONTROL, RESTART_SOON, SHORT, arguments};
use crate::traces::Before;
use crate::turns::{beside_others, half_the_machine};

/// One power-off of the only host of `power-loss.yaml`.
const ONE_POWER_OFF: [&str; 2] = [
    "--set=schedule=[{ phase: baseline, for: 1s }, { phase: power-off, for: 4s, faults: [{ power-off: { host: dc1/a/h1 }, \
     at: 0s, for: 1s }] }]",
    "--set=loads.0.clients=3",
];
const ON_POSTGRES: [&str; 2] = ["--set", "database.engine=postgres"];
const FOUR_KEPT: &str = "4 synced marks are there";
const STAYED: &str = "nothing was rolled back (canary)";

fn lies<'a>(lie: &[&'a str]) -> Vec<&'a str> {
    lie.iter().flat_map(|lie| ["--plant", lie]).collect()
}

fn one_host<'a>(engine: &[&'a str], volumes: &'a str, lie: &[&'a str]) -> Vec<&'a str> {
    let scenario = ["run", "scenarios/power-loss.yaml", "--set", volumes];
    arguments(&[&scenario, engine, &ONE_POWER_OFF, &lies(lie)])
}

fn mirrored<'a>(lie: &[&'a str]) -> Vec<&'a str> {
    arguments(&[&["run", "scenarios/mirror-sync.yaml"], &SHORT, &RESTART_SOON, &lies(lie)])
}

/// A run that was lied to does not pass, and says why.
#[track_caller]
fn is_caught(finished: &Finished, sentence: &str) {
    let result = finished.ends_with(2).result();
    assert!(result["reasons"].to_string().contains(sentence), "{}", result["reasons"]);
    assert_eq!(result["faults"][0]["receipt"]["verdict"], "fail", "{}", result["faults"]);
}

#[track_caller]
fn passes_with_its_marks(finished: &Finished, kept: &str) {
    let evidence = finished.ends_with(0).result()["faults"][0]["receipt"]["evidence"].to_string();
    assert!(evidence.contains(kept) && evidence.contains("unsynced marks are gone"), "{evidence}");
    let page = std::fs::read_to_string(finished.run_directory().join("report.html")).expect("a report");
    assert!(page.contains(kept), "the report does not show the marks");
}

#[test]
fn a_power_off_that_takes_nothing_back_is_caught_and_an_honest_one_passes_on_virtual_volumes() {
    let _turn = beside_others();
    let test = "a_power_off_that_takes_nothing_back_is_caught_on_virtual_volumes";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let before = Before::look(&desk);
    is_caught(&desk.run(&one_host(&ON_CONTROL, "database.volumes=virtual", &["no-rollback"])), STAYED);
    passes_with_its_marks(&desk.run(&one_host(&ON_CONTROL, "database.volumes=virtual", &[])), FOUR_KEPT);
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn a_power_off_that_takes_nothing_back_is_caught_and_an_honest_one_passes_on_torn_volumes() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_power_off_that_takes_nothing_back_is_caught_on_torn_volumes") else {
        return;
    };
    is_caught(&desk.run(&one_host(&ON_POSTGRES, "database.volumes=torn", &["no-rollback"])), STAYED);
    passes_with_its_marks(&desk.run(&one_host(&ON_POSTGRES, "database.volumes=torn", &[])), FOUR_KEPT);
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn a_power_off_that_takes_nothing_back_is_caught_and_an_honest_one_passes_on_mirrored_volumes() {
    let _turn = half_the_machine();
    let test = "a_power_off_that_takes_nothing_back_is_caught_on_mirrored_volumes";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    // The node starts from its copy, which the last of the marks may not have reached.
    is_caught(&desk.run(&mirrored(&["no-rollback"])), "unsynced marks are there as well");
    passes_with_its_marks(&desk.run(&mirrored(&[])), "1 synced mark is there");
}

/// Two hosts, a volume with a component on each; the copy's host loses its power and the node goes on.
const COPY_LOST: &str = "name: copy-lost\nsite: { regions: { dc1: { zones: { a: { hosts: 2 } } } } }\n\
                         database: { engine: postgres, nodes: [dc1/a/h1], storage: { replicas: 2, timeout: 1s } }\n\
                         loads: [ { workload: ledger, clients: 2, from: dc1, rate: 40/s } ]\n\
                         schedule:\n  - { phase: baseline, for: 3s }\n\
                         \x20 - { phase: off, for: 5s, faults: [ { power-off: { host: dc1/a/h2 }, for: 2s } ] }\n\
                         \x20 - { phase: again, for: 5s, faults: [ { power-off: { host: dc1/a/h2 }, for: 2s } ] }\n\
                         expect: { lost_writes: 0 }\n";

#[test]
#[ignore = "second tier: a power-off that takes nothing back is caught on an unmirrored volume in the first"]
fn a_power_off_of_a_copys_host_that_takes_nothing_back_is_caught_and_an_honest_one_shows_its_marks() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_power_off_of_a_copys_host_that_takes_nothing_back_is_caught") else {
        return;
    };
    std::fs::write(desk.path().join("copy-lost.yaml"), COPY_LOST).expect("a scenario");
    let copy = "the component on dc1/a/h2 of the volume of n1: 1 synced mark is there, ";
    let caught = desk.run(&["run", "copy-lost.yaml", "--plant", "no-rollback"]);
    is_caught(&caught, &format!("{copy}but 1 of 1 unsynced mark is there as well"));
    let honest = desk.run(&["run", "copy-lost.yaml"]);
    honest.ends_with(0);
    for fault in honest.result()["faults"].as_array().expect("faults") {
        let evidence = fault["receipt"]["evidence"].to_string();
        assert!(evidence.contains(&format!("{copy}1 unsynced mark is gone")), "{evidence}");
    }
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn a_node_that_the_platform_switches_off_is_judged_by_the_marks_written_before_its_volume_was_cut_off() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_node_that_the_platform_switches_off_is_judged_by_the_marks") else {
        return;
    };
    let kept = "n1: 1 synced mark is there, ";
    let caught = desk.run(&["run", "scenarios/lies/cut-off.yaml", "--plant", "no-rollback"]);
    is_caught(&caught, &format!("{kept}but 5 of 6 unsynced marks are there as well"));
    let honest = desk.run(&["run", "scenarios/lies/cut-off.yaml"]);
    let evidence = honest.ends_with(0).result()["faults"][0]["receipt"]["evidence"].to_string();
    assert!(evidence.contains(&format!("{kept}6 unsynced marks are gone")), "{evidence}");
}

/// Two racks, two nodes in the first, one of them the leader; the whole rack loses its power.
const RACK_LOST: &str = "name: rack-lost\n\
                         site: { regions: { dc1: { zones: { a: { racks: { r1: { hosts: 2 }, r2: { hosts: 1 } } } } } } }\n\
                         database:\n  engine: postgres\n  nodes: [dc1/a/r1/h1, dc1/a/r1/h2]\n\
                         \x20 failover: { ha-restart: { after: 1s } }\n\
                         loads: [ { workload: ledger, clients: 2, from: dc1/a/r2, rate: 100/s } ]\n\
                         schedule:\n  - { phase: baseline, for: 3s }\n\
                         \x20 - { phase: off, for: 10s, faults: [ { power-off: { rack: dc1/a/r1 }, for: 2s } ] }\n\
                         expect: { lost_writes: 0 }\n";

#[test]
#[ignore = "second tier: the lie is told on one host in the first"]
fn a_power_off_of_a_rack_that_takes_nothing_back_is_caught_on_every_host() {
    let _turn = beside_others();
    let test = "a_power_off_of_a_rack_that_takes_nothing_back_is_caught_on_every_host";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    std::fs::write(desk.path().join("rack-lost.yaml"), RACK_LOST).expect("a scenario");
    let caught = desk.run(&["run", "rack-lost.yaml", "--plant", "no-rollback"]);
    for node in ["n1", "n2"] {
        // What was written to mapped memory may not have reached the volume.
        is_caught(&caught, &format!("{node}: 4 synced marks are there, but "));
    }
}

#[test]
fn an_honest_power_off_of_a_rack_shows_the_marks_of_every_node_on_it() {
    let _turn = beside_others();
    let test = "an_honest_power_off_of_a_rack_shows_the_marks_of_every_node_on_it";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    std::fs::write(desk.path().join("rack-lost.yaml"), RACK_LOST).expect("a scenario");
    let honest = desk.run(&["run", "rack-lost.yaml"]);
    let evidence = honest.ends_with(0).result()["faults"][0]["receipt"]["evidence"].to_string();
    for node in ["n1", "n2"] {
        let kept = format!("{node}: 4 synced marks are there, 6 unsynced marks are gone");
        assert!(evidence.contains(&kept), "{evidence}");
    }
}

/// The run passed before there were marks: nothing was lost, because nothing was rolled back.
#[test]
fn a_database_without_fsync_on_disks_that_lose_nothing_does_not_pass() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_database_without_fsync_on_disks_that_lose_nothing") else { return };
    let scenario = ["run", "scenarios/power-loss-no-fsync.yaml", "--plant", "no-rollback"];
    is_caught(&desk.run(&arguments(&[&scenario, &ONE_POWER_OFF])), STAYED);
}

#[test]
fn a_process_that_outlives_the_power_off_of_its_node_is_caught() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_process_that_outlives_the_power_off_of_its_node_is_caught") else {
        return;
    };
    let before = Before::look(&desk);
    let finished = desk.run(&one_host(&ON_CONTROL, "database.volumes=virtual", &["process-left"]));
    is_caught(&finished, "1 process of n1 still runs in the node's namespaces");
    before.nothing_is_left(&[]);
}

#[test]
fn without_virtual_disks_a_power_off_has_shown_nothing_unless_plain_directories_were_asked_for() {
    let _turn = beside_others();
    let Some(desk) = Desk::without_fuse("without_virtual_disks_a_power_off_has_shown_nothing") else {
        return;
    };
    let result = desk.run(&one_host(&ON_CONTROL, "database.volumes=virtual", &[])).ends_with(2).result();
    let reasons = result["reasons"].to_string();
    let doubt = "durability at power-off was not tested";
    assert!(reasons.contains(doubt) && reasons.contains("/dev/fuse"), "{reasons}");
    assert_eq!(result["volumes"], Value::Array(Vec::new()));
    desk.run(&one_host(&ON_CONTROL, "database.volumes=directory", &[])).ends_with(0);
}
