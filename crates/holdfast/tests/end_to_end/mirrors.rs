//! Mirrored volumes: a node started on another host from a component that is up to date loses nothing; from one that lags, it
//! loses what had not reached it, and says so; and one that was away is sent what changed, and no more.

use serde_json::Value;

use crate::holdfast::{Desk, Finished, arguments};
use crate::traces::Before;
use crate::turns::{beside_others, half_the_machine};

/// Everything that was told of a node's volume.
fn told(finished: &Finished) -> String {
    let events = std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events");
    let of_volumes = |line: &&str| line.contains("\"action\":\"volume\"");
    events.lines().filter(of_volumes).collect::<Vec<&str>>().join("\n")
}

fn left_in_the_end(volume: &Value) -> Option<u64> {
    volume["resync"].as_array()?.last()?["bytes_left"].as_u64()
}

#[test]
fn a_node_started_from_the_other_component_of_a_synchronous_mirror_has_lost_nothing() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_node_started_from_the_other_component") else { return };
    let before = Before::look(&desk);
    let shorter = [
        "--set=schedule=[{ phase: baseline, for: 2s }, { phase: host-lost, for: 8s, faults: [{ power-off: { host: leader }, \
         at: 0s, for: 3s }] }]",
        "--set=database.failover={ ha-restart: { after: 1s } }",
        "--set=expect={ lost_writes: 0, invented_writes: 0 }",
        // However fast the machine: so little that what changes meanwhile stays far below the whole.
        "--set=loads.0.rate=40/s",
    ];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-sync.yaml"], &shorter]));
    let result = finished.ends_with(0).result();
    assert!(result["checks"][0]["acknowledged"].as_u64() > Some(50), "{}", result["checks"]);
    let volume = &result["volumes"][0];
    assert_eq!((&volume["replicas"], &volume["acknowledge"]), (&2.into(), &"sync".into()), "{volume}");
    let replicated = |component: usize| volume["components"][component]["replicated_bytes"].as_u64();
    assert!(replicated(1) > Some(100_000), "{volume}");
    assert_eq!(volume["components"][1]["role"], "serving", "{volume}");
    let told = told(&finished);
    assert!(told.contains("the component on dc1/a/h2 is up to date"), "{told}");
    assert!(!told.contains("by force"), "{told}");
    // What was away catches up, with less than the whole volume.
    assert_eq!(volume["components"][0]["role"], "live", "{volume}");
    assert_eq!(left_in_the_end(volume), Some(0), "{volume}");
    let copied = volume["copied_bytes"].as_u64().expect("a number");
    assert!(copied > 0 && copied < 30_000_000, "{copied}");
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_component_that_lags_and_is_promoted_by_force_has_lost_what_had_not_reached_it() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_component_that_lags_and_is_promoted_by_force") else { return };
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-async.yaml"]]));
    finished.ends_with(1);
    assert!(finished.result()["checks"][0]["lost"].as_u64() > Some(0), "{}", finished.result()["checks"]);
    let told = told(&finished);
    assert!(told.contains("is promoted by force") && told.contains("had not reached it"), "{told}");
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_component_that_lags_is_not_promoted_unless_it_must_be() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_component_that_lags_is_not_promoted") else { return };
    let unforced = ["--set", "database.storage.promote=up-to-date"];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-async.yaml"], &unforced]));
    let volume = &finished.ends_with(0).result()["volumes"][0];
    assert_eq!(volume["components"][0]["role"], "serving", "{volume}");
    assert!(!told(&finished).contains("by force"), "{}", told(&finished));
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_component_cut_off_is_gone_on_without_and_catches_up_with_what_changed() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_component_cut_off_is_gone_on_without") else { return };
    let finished = desk.run(&arguments(&[&["run", "scenarios/fr4-replicated-datastore.yaml"]]));
    let told = told(&finished);
    assert!(told.contains("is out: it stopped answering"), "{told}");
    assert!(told.contains("catches up"), "{told}");
    assert!(told.contains("is promoted by force"), "{told}");
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_node_on_a_host_without_a_component_loses_nothing_and_each_of_its_requests_costs_a_round_trip() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_node_on_a_host_without_a_component") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-remote.yaml"]]));
    let result = finished.ends_with(0).result();
    assert!(result["checks"][0]["acknowledged"].as_u64() > Some(100), "{}", result["checks"]);
    let openings = result["volumes"][0]["openings"].as_array().expect("openings").clone();
    let where_to: Vec<(&str, &str)> = openings
        .iter()
        .map(|of| (of["host"].as_str().expect("a host"), of["component"].as_str().expect("a host")))
        .collect();
    assert_eq!(where_to, [("dc1/a/run", "dc1/a/run"), ("dc1/a/spare", "dc1/a/store")], "{openings:?}");
    assert_eq!(openings[0]["asked"], serde_json::json!([]), "what is local crosses no network");
    for work in ["read", "write", "sync"] {
        let asked = openings[1]["asked"].as_array().expect("kinds of requests");
        let of_kind = asked.iter().find(|of| of["work"] == work).expect(work);
        assert!(of_kind["count"].as_u64() > Some(10), "{of_kind}");
        // Twice the link's delay: no packet can be faster.
        assert!(of_kind["latency_us_p50"].as_u64() >= Some(2_000), "{of_kind}");
    }
    assert!(told(&finished).contains("served from dc1/a/store, over the network"), "{}", told(&finished));
    let recovery = &result["faults"][0]["recovery_s"]["first_success"];
    assert!(recovery.is_f64(), "the node served there: {}", result["faults"][0]);
    before.nothing_is_left(&[]);
}

/// The places of events in the order in which they happened, each found by all of some words in its line.
fn places_of(finished: &Finished, wanted: &[&[&str]]) -> Vec<usize> {
    let events = std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events");
    let of = |words: &&[&str]| {
        let found = events.lines().position(|line| words.iter().all(|word| line.contains(word)));
        found.unwrap_or_else(|| panic!("no event with {words:?}: {events}"))
    };
    wanted.iter().map(of).collect()
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_node_cut_off_from_what_serves_its_volume_is_switched_off_and_started_beside_the_data() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_node_cut_off_from_what_serves_its_volume") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-cut-off.yaml"]]));
    let result = finished.ends_with(0).result();
    let openings = result["volumes"][0]["openings"].as_array().expect("openings").clone();
    let where_to: Vec<(&str, &str)> = openings
        .iter()
        .map(|of| (of["host"].as_str().expect("a host"), of["component"].as_str().expect("a host")))
        .collect();
    let (run, store, spare) = ("dc1/a/run", "dc1/a/store", "dc1/a/spare");
    assert_eq!(where_to, [(run, run), (spare, store), (store, store)], "{openings:?}");
    assert!(openings[1]["lost_after_s"].as_f64() >= Some(5.0), "{openings:?}");
    assert_eq!((&openings[0]["lost_after_s"], &openings[2]["lost_after_s"]), (&Value::Null, &Value::Null));
    let cut = "\"event\":\"fault-asked\",\"fault\":1";
    let fenced = ["\"fence\"", "counts as lost there", "no process of n1 is left"];
    let started = ["\"ha-restart\"", "after its volume was lost on dc1/a/spare", "boots on dc1/a/store"];
    let healed = "\"event\":\"fault-healed\",\"fault\":1";
    let places = places_of(&finished, &[&[cut], &fenced, &started, &[healed]]);
    assert!(places.is_sorted(), "the old one is known to be off before the other begins: {places:?}");
    let recovery = &result["faults"][1]["recovery_s"]["first_success"];
    assert!(recovery.is_f64(), "the node served again: {}", result["faults"][1]);
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_node_whose_volume_cannot_be_reached_when_its_host_returns_is_started_when_it_can() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_node_whose_volume_cannot_be_reached") else { return };
    let before = Before::look(&desk);
    let away = [
        "--set=database={ engine: postgres, nodes: [dc1/a/spare], storage: { replicas: 1, hosts: [dc1/a/store] } }",
        "--set=schedule.2={ phase: cut-off, for: 20s, faults: [\
         { partition: { between: [dc1/a/store, dc1/a/spare] }, at: 0s, for: 14s }, \
         { power-off: { host: dc1/a/spare }, at: 1s, for: 3s }] }",
    ];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-cut-off.yaml"], &away]));
    finished.ends_with(0);
    let openings = finished.result()["volumes"][0]["openings"].as_array().expect("openings").clone();
    assert_eq!(openings.len(), 2, "{openings:?}");
    let refused =
        ["\"warning\"", "failed to boot n1 on its own host", "cannot reach the component on dc1/a/store"];
    let started = ["\"return\"", "because its volume may work again", "boots on dc1/a/spare"];
    assert!(places_of(&finished, &[&refused, &started, &["\"ready\""]]).is_sorted());
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn what_a_copy_that_catches_up_costs_the_loads_stands_beside_the_baseline_in_result_and_report() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("what_a_copy_that_catches_up_costs") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-resync.yaml"]]));
    let volume = &finished.ends_with(0).result()["volumes"][0];
    let caught = &volume["catch_ups"][0];
    assert_eq!((&caught["component"], &caught["complete"]), (&"dc1/a/h2".into(), &true.into()), "{volume}");
    let copied = |of: &Value| of["copied_bytes"].as_u64().expect("a number");
    let catch_ups = volume["catch_ups"].as_array().expect("catch-ups");
    assert_eq!(catch_ups.iter().map(copied).sum::<u64>(), copied(volume), "{volume}");
    let at = |key: &str| caught[key].as_f64().expect("a moment");
    // What ten seconds leave takes a link of 50 Mbit/s longer than the time line's grain.
    assert!(at("to_s") - at("from_s") >= 1.0, "{caught}");
    for load in ["ledger", "script"] {
        let loads = caught["loads"].as_array().expect("loads");
        let of_load = loads.iter().find(|of| of["load"] == load).expect(load);
        for figure in ["transactions", "latency_us_p50", "latency_us_p99", "baseline_us_p99"] {
            assert!(of_load[figure].as_u64() > Some(0), "{figure}: {of_load}");
        }
    }
    let report = std::fs::read_to_string(finished.run_directory().join("report.html")).expect("a report");
    for shown in ["While n1’s volume caught up on dc1/a/h2", "class=\"shade\"", "Shaded blue"] {
        assert!(report.contains(shown), "{shown}");
    }
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn copies_whose_disks_and_network_fail_are_gone_on_without_and_catch_up_and_each_fault_has_its_receipts() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("copies_whose_disks_and_network_fail") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-disks.yaml"]]));
    let result = finished.ends_with(0).result();
    let receipt = |fault: usize| result["faults"][fault]["receipt"]["evidence"].to_string();
    assert!(receipt(0).contains("a write refused with EIO"), "{}", receipt(0));
    assert!(receipt(1).contains("probe of disk dc1/a/h3/d1: a write not answered"), "{}", receipt(1));
    let cut = "datagrams from host dc1/a/h2 to host dc1/a/h3 arrived";
    assert!(receipt(2).starts_with("[\"0 of ") && receipt(2).contains(cut), "{}", receipt(2));
    let told = told(&finished);
    for (what, times) in [
        ("the component on dc1/a/h2 reports an error", 1),
        ("the component on dc1/a/h2 is out: its connection broke", 1),
        ("the component on dc1/a/h3 is out: it stopped answering", 1),
    ] {
        assert_eq!(told.matches(what).count(), times, "{what}: {told}");
    }
    let volume = &result["volumes"][0];
    for copy in [1, 2] {
        let component = &volume["components"][copy];
        assert_eq!((&component["role"], &component["bytes_left"]), (&"live".into(), &0.into()), "{volume}");
        let copied = component["copied_bytes"].as_u64().expect("a number");
        assert!(copied > 0 && copied < 30_000_000, "less than the whole: {copied}");
    }
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_volume_whose_serving_disk_fails_is_served_on_from_its_copy_while_the_database_runs() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_volume_whose_serving_disk_fails") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-serving-disk.yaml"]]));
    let result = finished.ends_with(0).result();
    for (disk, refusal) in [(0, "EIO"), (1, "EROFS")] {
        let (fault, shown) = (&result["faults"][disk], format!("a write refused with {refusal}"));
        assert!(fault["receipt"]["evidence"].to_string().contains(&shown), "{fault:#}");
    }
    let openings = result["volumes"][0]["openings"].as_array().expect("openings");
    let served: Vec<&str> = openings.iter().filter_map(|opening| opening["component"].as_str()).collect();
    assert_eq!(served[..4], ["dc1/a/h1", "dc1/a/h2", "dc1/a/h1", "dc1/a/h2"], "{openings:#?}");
    for (opening, why) in
        openings[1..4].iter().zip(["refused an operation", "refused an operation", "did not answer for 1 s"])
    {
        assert!(opening["moved"].as_str().is_some_and(|told| told.ends_with(why)), "{opening}");
    }
    // The database met no error of either disk, or there would have been one of a transaction.
    for phase in [1, 2, 3] {
        let errors = &result["loads"][0]["phases"][phase]["errors"];
        assert!(errors.as_object().is_some_and(serde_json::Map::is_empty), "{errors}");
    }
    let predicted = result["prediction"].as_array().expect("predictions");
    assert!(predicted.len() >= 2 && predicted.iter().all(|of| of["agrees"] == true), "{predicted:#?}");
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: a scenario of its own, twice"]
fn a_half_synchronous_mirror_may_lose_what_its_copy_had_only_received_and_a_synchronous_one_does_not() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_half_synchronous_mirror_may_lose") else { return };
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-semi.yaml"]]));
    let result = finished.ends_with(1).result();
    assert!(result["checks"][0]["lost"].as_u64() > Some(0), "{}", result["checks"]);
    let opening = &result["volumes"][0]["openings"][1];
    assert_eq!(opening["component"], "dc1/a/h2", "{opening}");
    assert!(opening["forced"].as_str().is_some_and(|told| told.contains("by force")), "{opening}");
    let synchronous = ["--set", "database.storage.acknowledge=sync"];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-semi.yaml"], &synchronous]));
    let result = finished.ends_with(0).result();
    assert_eq!(result["checks"][0]["lost"], 0, "{}", result["checks"]);
    assert_eq!(result["volumes"][0]["openings"][1]["forced"], Value::Null);
}

#[test]
#[ignore = "second tier: a scenario of its own, a minute"]
fn whatever_goes_wrong_with_the_disk_of_a_copy_the_node_goes_on_and_each_fault_has_its_receipts() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("whatever_goes_wrong_with_the_disk_of_a_copy") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-copy-faults.yaml"]]));
    let result = finished.ends_with(0).result();
    let receipt = |fault: usize| result["faults"][fault]["receipt"]["evidence"].to_string();
    let met = "operations on the component on dc1/a/h2 of the volume of n1 during the fault";
    for (fault, seen) in [
        (0, "held up"),
        (1, "a write not answered"),
        (2, "an append refused with ENOSPC"),
        (3, "a write refused with EROFS"),
        (4, "a write refused with EIO"),
        (5, "returned wrong data"),
        (6, "reads were refused"),
        (7, "syncs acknowledged but not durable"),
    ] {
        let told = receipt(fault);
        assert!(told.contains(seen) && told.contains(met), "{fault}: {told}");
    }
    // A copy is not read.
    for fault in [5, 6] {
        assert!(receipt(fault).contains("the fault affected none"), "{}", receipt(fault));
    }
    let told = told(&finished);
    for (what, times) in [
        ("the component on dc1/a/h2 is out: it stopped answering", 1),
        ("the component on dc1/a/h2 is out: its connection broke", 3),
        ("the component on dc1/a/h2 reports an error", 3),
    ] {
        assert_eq!(told.matches(what).count(), times, "{what}: {told}");
    }
    let copy = &result["volumes"][0]["components"][1];
    assert_eq!((&copy["role"], &copy["bytes_left"]), (&"live".into(), &0.into()), "{copy}");
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_copy_that_does_not_answer_is_not_waited_for_again_and_again() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_copy_that_does_not_answer_is_not_waited_for") else { return };
    // Its buffer would be full long before the timeout, were it filled.
    let settings = [
        "--set=schedule=[{ phase: baseline, for: 3s }, { phase: stall, for: 12s, faults: [{ disk: { disk: dc1/a/h2/d1, how: \
         stall }, for: 11s }] }, { phase: recovery, for: 3s }]",
        "--set=site.storage_classes={ small: { buffer: 64KiB } }",
        "--set=database.storage.class=small",
        "--set=database.storage.timeout=2s",
        "--set=loads.0.rate=200/s",
        "--set=loads.0.clients=8",
    ];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-copy-faults.yaml"], &settings]));
    finished.ends_with(0);
    let timeline =
        std::fs::read_to_string(finished.run_directory().join("timeline.csv")).expect("a time line");
    // From the third second of the stall on the copy is out, and a rate is owed. Held up with every attempt to reach the copy,
    // most seconds would be idle; one may be on a busy machine.
    let idle = timeline.lines().filter(|line| {
        let row: Vec<&str> = line.split(',').collect();
        let second = row[0].parse::<u64>().unwrap_or(0);
        row[2] == "insert" && (7..14).contains(&second) && row[3] == "0"
    });
    assert!(idle.count() <= 1, "{timeline}");
}

#[test]
#[ignore = "second tier: a scenario of its own, twice"]
fn a_copy_that_lost_flushes_and_is_promoted_is_found_to_lack_what_it_acknowledged() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_copy_that_lost_flushes_and_is_promoted") else { return };
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-lying-copy.yaml"]]));
    let result = finished.ends_with(1).result();
    assert!(result["checks"][0]["lost"].as_u64() > Some(0), "{}", result["checks"]);
    let opening = &result["volumes"][0]["openings"][1];
    assert_eq!((&opening["component"], &opening["forced"]), (&"dc1/a/h2".into(), &Value::Null), "{opening}");
    let elsewhere = ["--set", "schedule.1.faults.0.disk.disk=dc1/a/h3/d1"];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-lying-copy.yaml"], &elsewhere]));
    finished.ends_with(0);
}

#[test]
#[ignore = "second tier: a run of its own"]
fn a_copy_that_reads_wrongly_is_not_taken_for_sound_when_it_is_promoted() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_copy_that_reads_wrongly_is_not_taken_for_sound") else { return };
    // Without checksums of its own the disk hands out what is wrong, and the database cannot begin with it.
    let settings = [
        "--set=schedule=[{ phase: baseline, for: 3s }, { phase: wrong, for: 16s, faults: [{ disk: { disk: dc1/a/h2/d1, how: \
         { corrupt: { reads: 100% } } }, for: 12s }, { power-off: { host: dc1/a/h1 }, at: 2s, for: 14s }] }, \
         { phase: recovery, for: 6s }]",
        "--set=expect={ recovery: < 6s }",
    ];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-lying-copy.yaml"], &settings]));
    let result = finished.ends_with(1).result();
    let receipt = result["faults"][0]["receipt"]["evidence"].to_string();
    let promoted = receipt.split("on the component on dc1/a/h2 of the volume of n1 during the fault").nth(1);
    assert!(promoted.is_some_and(|told| told.contains("blocks returned with wrong data")), "{receipt}");
}

#[test]
#[ignore = "second tier: a run of its own"]
fn torn_last_writes_of_both_components_cost_nothing_that_was_acknowledged_and_the_receipts_tell_of_both() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("torn_last_writes_of_both_components") else { return };
    let settings = [
        "--set=database.volumes=torn",
        "--set=loads.0.rate=200/s",
        "--set=schedule=[{ phase: baseline, for: 3s }, { phase: all-lost, for: 16s, faults: [{ power-off: { host: \
         dc1/a/h2 }, at: 1s, for: 4s }, { power-off: { host: dc1/a/h1 }, at: 1s, for: 6s }] }]",
        "--set=expect={ lost_writes: 0, invented_writes: 0 }",
    ];
    let finished = desk.run(&arguments(&[&["run", "scenarios/mirror-sync.yaml"], &settings]));
    let result = finished.ends_with(0).result();
    let receipt = |fault: usize| result["faults"][fault]["receipt"]["evidence"].to_string();
    let copy = "the component on dc1/a/h2 of the volume of n1 lost";
    assert!(receipt(0).contains(copy), "{}", receipt(0));
    assert!(receipt(1).contains("the volume of n1 lost"), "{}", receipt(1));
    assert!(!receipt(1).contains(copy), "{}", receipt(1));
}

#[test]
#[ignore = "second tier: a scenario of its own, killed on its way"]
fn a_kill_while_a_mirrored_volume_is_open_over_the_network_leaves_nothing() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("a_kill_while_a_mirrored_volume_is_open") else { return };
    for stage in ["phase baseline", "over the network", "healed"] {
        let before = Before::look(&desk);
        let running = desk.start(&arguments(&[&["run", "scenarios/mirror-remote.yaml"]]));
        let pid = running.pid();
        running.says(stage);
        running.signal(libc::SIGKILL);
        let said = running.wait().stdout;
        assert!(said.contains(stage), "{said}");
        before.nothing_is_left(&[pid]);
    }
}

#[test]
#[ignore = "second tier: twelve databases are copied, a minute"]
fn twelve_mirrored_nodes_come_up_and_take_writes() {
    let _turn = half_the_machine();
    let Some(desk) = Desk::with_a_lab("twelve_mirrored_nodes_come_up") else { return };
    let scenario = "name: twelve
site: { regions: { dc1: { zones: { a: { hosts: 12 } } } } }
database: { engine: postgres, nodes: 12, storage: { replicas: 2, acknowledge: sync } }
loads: [{ workload: ledger, clients: 2, from: dc1, rate: 100/s }]
schedule: [{ phase: baseline, for: 5s }]
expect: { lost_writes: 0 }
";
    std::fs::write(desk.path().join("twelve.yaml"), scenario).expect("written");
    let finished = desk.run(&arguments(&[&["run", "twelve.yaml"]]));
    finished.ends_with(0);
    assert_eq!(finished.result()["volumes"].as_array().map(Vec::len), Some(12));
}
