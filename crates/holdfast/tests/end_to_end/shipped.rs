//! Every shipped scenario, run whole and as it is: it ends as its first comment says, and its time line bears its result out.
//!
//! Owns the list. A scenario that another test runs whole stands in [`ELSEWHERE`] with that test's file.

use std::collections::BTreeSet;
use std::path::Path;

use crate::contract;
use crate::holdfast::Desk;
use crate::traces::Before;
use crate::turns::{beside_others, machine};

/// Scenarios that another test runs whole, and in which file.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cassandra-one", "cassandra.rs"),
    ("cassandra-power-loss", "cassandra.rs"),
    ("convergence", "workloads.rs"),
    ("disk-faults", "disks.rs"),
    ("disk-faults-corruption", "disks.rs"),
    ("disk-groups", "disks.rs"),
    ("etcd", "etcd.rs"),
    ("etcd-power-loss", "etcd.rs"),
    ("etcd-power-loss-no-fsync", "etcd.rs"),
    // Against a cluster that exists: `cargo xtask try external` makes one; the test is xtask's.
    ("external-agents", "../../../../xtask/tests/xtask/trial.rs"),
    ("external-postgres", "../../../../xtask/tests/xtask/trial.rs"),
    // Its whole matrix is twenty clusters; the test has two of them.
    ("fr5-kubernetes", "kubernetes.rs"),
    ("galera", "galera.rs"),
    ("iot", "workloads.rs"),
    ("isolation-serializable", "isolation.rs"),
    ("kubernetes", "kubernetes.rs"),
    // Against a stand-in for kubectl.
    ("kubernetes-postgres", "../without_a_lab/kubernetes.rs"),
    ("kv", "workloads.rs"),
    ("many-clients", "many_clients.rs"),
    ("open-loop", "workloads.rs"),
    ("patroni", "patroni.rs"),
    ("patroni-stop", "patroni.rs"),
    ("redis", "redis.rs"),
    ("repmgr", "repmgr.rs"),
    ("repmgr-split-brain", "repmgr.rs"),
    ("rolling-upgrade", "upgrades.rs"),
    ("script", "workloads.rs"),
    ("survival-control", "survival.rs"),
    ("survival-mirrored", "survival.rs"),
    ("survival-postgres", "survival.rs"),
    ("sweep", "workloads.rs"),
];

/// How a test names the scenario that it runs: by its path, or as an argument of a function that makes the path of it.
const CALLS: &[&str] =
    &["\"scenarios/NAME.yaml\"", "passes(\"NAME\",", "check(name, \"NAME\",", "Shipped::named(\"NAME\")"];

/// Whether a test's file runs the scenario of this name. To speak of it, in a comment or in another name, is not enough.
fn runs(text: &str, name: &str) -> bool {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let calls: Vec<String> = CALLS.iter().map(|call| call.replace("NAME", name)).collect();
    text.lines().filter(is_code).any(|line| calls.iter().any(|call| line.contains(call.as_str())))
}

/// Scenarios that fill the machine by themselves: six Java machines keep more than two processors busy while they boot, and
/// whatever runs beside them is held up.
const ALONE: &str = "cassandra cassandra-clock fr1-clock-guest fr1-clock-host fr1-host-failure-symmetric \
                     fr2-cassandra fr2-cassandra-disks fr2-host fr2-rack fr3-ignite ignite";

/// The exit code that the first comment of a scenario announces.
fn announced(text: &str) -> Option<i32> {
    let comment = text.lines().map_while(|line| line.strip_prefix('#'));
    let comment = comment.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    let word = comment.split("Expected verdict: ").nth(1)?;
    match word.split(|c: char| !c.is_ascii_lowercase()).next()? {
        "pass" => Some(0),
        "fail" => Some(1),
        "unknown" => Some(2),
        _ => None,
    }
}

/// Runs `scenarios/NAME.yaml` as it is; each combination once where it has a matrix.
fn ends_as_it_says(name: &str) {
    let _turn = if ALONE.split(' ').any(|alone| alone == name) { machine() } else { beside_others() };
    let Some(desk) = Desk::with_a_lab(name) else { return };
    let path = format!("scenarios/{name}.yaml");
    let text = std::fs::read_to_string(desk.path().join(&path)).expect("the scenario");
    let code = announced(&text).expect("what to expect");
    let is_matrix = text.lines().any(|line| line.starts_with("matrix:"));
    let once: &[&str] = if is_matrix { &["--set", "matrix.repeat=1"] } else { &[] };
    let before = Before::look(&desk);
    let finished = desk.run(&[&["run", &path], once].concat());
    finished.ends_with(code);
    if !is_matrix {
        let result = finished.result();
        contract::holds(&result);
        contract::timeline_holds(&finished.run_directory());
        for fault in result["faults"].as_array().into_iter().flatten() {
            assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
        }
        if code == 1 {
            // A check found it, and not only a bound that was missed.
            let checks = result["checks"].as_array().expect("checks");
            assert!(checks.iter().any(|check| check["verdict"] == "fail"), "{result:#}");
        }
    }
    before.nothing_is_left(&[]);
}

macro_rules! run_whole {
    ($($function:ident $name:literal,)*) => {
        /// Scenarios that are run whole here.
        const HERE: &[&str] = &[$($name),*];

        mod a_shipped_scenario_ends_as_it_says {
            $(
                #[test]
                #[ignore = "second tier: the shipped scenario as it is"]
                fn $function() {
                    super::ends_as_it_says($name);
                }
            )*
        }
    };
}

run_whole! {
    cassandra "cassandra",
    cassandra_clock "cassandra-clock",
    disk_faults_lost_flush "disk-faults-lost-flush",
    drs "drs",
    fr1_baseline "fr1-baseline",
    fr1_clock_guest "fr1-clock-guest",
    fr1_clock_host "fr1-clock-host",
    fr1_host_failure "fr1-host-failure",
    fr1_host_failure_symmetric "fr1-host-failure-symmetric",
    fr1_migration "fr1-migration",
    fr1_topologies_edge "fr1-topologies-edge",
    fr1_topologies_one_segment "fr1-topologies-one-segment",
    fr1_topologies_several_segments "fr1-topologies-several-segments",
    fr2_cassandra "fr2-cassandra",
    fr2_cassandra_disks "fr2-cassandra-disks",
    fr2_disks "fr2-disks",
    fr2_host "fr2-host",
    fr2_rack "fr2-rack",
    fr3_cloud_regions "fr3-cloud-regions",
    fr3_etcd "fr3-etcd",
    fr3_ignite "fr3-ignite",
    fr3_raft "fr3-raft",
    fr3_three_datacentres "fr3-three-datacentres",
    fr3_two_datacentres "fr3-two-datacentres",
    fr4_datastore_table "fr4-datastore-table",
    fr4_racing_clock "fr4-racing-clock",
    fr4_replicated_datastore "fr4-replicated-datastore",
    fr5_read_engines "fr5-read-engines",
    fr5_storage_classes "fr5-storage-classes",
    fr5_update_penalty "fr5-update-penalty",
    host_failure "host-failure",
    host_failure_async_promote "host-failure-async-promote",
    host_failure_promote "host-failure-promote",
    ignite "ignite",
    isolation_read_committed "isolation-read-committed",
    isolation_repeatable_read "isolation-repeatable-read",
    matrix "matrix",
    migration "migration",
    migration_mirrored "migration-mirrored",
    mirror_async "mirror-async",
    mirror_copy_faults "mirror-copy-faults",
    mirror_cut_off "mirror-cut-off",
    mirror_disks "mirror-disks",
    mirror_lying_copy "mirror-lying-copy",
    mirror_remote "mirror-remote",
    mirror_resync "mirror-resync",
    mirror_semi "mirror-semi",
    mirror_serving_disk "mirror-serving-disk",
    mirror_sync "mirror-sync",
    modelled_disks "modelled-disks",
    partition "partition",
    partition_one_way "partition-one-way",
    etcd_stop "etcd-stop",
    patroni_kill "patroni-kill",
    patroni_stun "patroni-stun",
    process_kill "process-kill",
    process_stop "process-stop",
    pressure "pressure",
    memory_pressure "memory-pressure",
    clock_jump "clock-jump",
    clock_jump_etcd "clock-jump-etcd",
    placement "placement",
    power_loss "power-loss",
    power_loss_no_fsync "power-loss-no-fsync",
    ramp "ramp",
    rawio "rawio",
    rolling_restart "rolling-restart",
    tpcc "tpcc",
    ycsb "ycsb",
}

#[test]
fn every_shipped_scenario_says_what_to_expect_and_is_run_whole_by_a_test() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut unknown: BTreeSet<&str> =
        HERE.iter().copied().chain(ELSEWHERE.iter().map(|entry| entry.0)).collect();
    for entry in std::fs::read_dir(here.join("../../scenarios")).expect("the scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(unknown.remove(name.as_str()), "no test runs {name} whole: name it in shipped.rs");
        let text = std::fs::read_to_string(&path).expect("the scenario");
        assert!(announced(&text).is_some(), "{name}: no `Expected verdict: pass` in its first comment");
    }
    assert!(unknown.is_empty(), "there are no scenarios of these names: {unknown:?}");
    for (name, file) in ELSEWHERE {
        let path = here.join("tests/end_to_end").join(file);
        let text = std::fs::read_to_string(&path).expect("the test's file");
        assert!(runs(&text, name), "{} does not run {name}", path.display());
    }
}

#[test]
fn a_scenario_is_run_by_its_path_or_by_its_name_in_a_call_and_not_by_a_mention() {
    assert!(runs("    desk.run(&[\"run\", \"scenarios/kv.yaml\"]);", "kv"));
    assert!(runs("    passes(\"kv\", &[], \"last-writes\");", "kv"));
    assert!(runs("    check(name, \"disk-groups\", &[], 0);", "disk-groups"));
    for mention in [
        "    // as \"scenarios/kv.yaml\" does",
        "    ended(test, \"kv\", 0, &[\"scenarios/other.yaml\"]);",
        "fn kv_is_run() {}",
        "    passes(\"kv-large\", &[]);",
        "    desk.run(&[\"run\", \"scenarios/lies/kv.yaml\"]);",
    ] {
        assert!(!runs(mention, "kv"), "{mention}");
    }
}

#[test]
fn what_a_scenario_announces_is_read_from_its_first_comment_alone() {
    assert_eq!(announced("# A host dies. Expected\n# verdict: pass.\nname: x\n"), Some(0));
    assert_eq!(announced("# Expected verdict: fail, because ...\n"), Some(1));
    assert_eq!(announced("# Nothing said.\nname: x\n# Expected verdict: pass.\n"), None);
}
