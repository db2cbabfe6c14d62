//! Rolling upgrades: two versions of a database on one cluster, and an upgrade that starts the old programs again.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::engines::{check, ended_on};
use crate::holdfast::Desk;
use crate::turns::beside_others;

const BOTH: [&str; 2] = ["etcd 3.4", "etcd 3.5"];

/// What the receipts of an upgrade say.
fn told(result: &Value) -> String {
    result["faults"][0]["receipt"].to_string()
}

#[test]
fn etcd_is_upgraded_node_by_node_and_programs_that_stay_the_old_ones_are_found_out() {
    let _turn = beside_others();
    let test = "etcd_is_upgraded_node_by_node";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let Some(honest) = ended_on(&desk, test, &BOTH, 0, &["scenarios/lies/upgrade.yaml"]) else { return };
    for node in ["n1", "n2", "n3"] {
        let seen = format!("etcd on {node} runs from the files of 3.5");
        assert!(told(&honest).contains(&seen), "{seen}: {honest:#}");
    }
    assert_eq!(honest["faults"][0]["nodes"].as_array().map(Vec::len), Some(3), "{honest:#}");
    assert_eq!(check(&honest, "ledger")["verdict"], "pass", "{honest:#}");

    let lying = desk.run(&["run", "scenarios/lies/upgrade.yaml", "--plant", "old-programs"]);
    let reasons = lying.ends_with(2).result()["reasons"].to_string();
    for part in ["rolling-upgrade", "has no receipt", "runs from the files of 3.4"] {
        assert!(reasons.contains(part), "{part}: {reasons}");
    }
}

#[test]
fn an_upgrade_to_what_the_run_begins_with_or_to_a_version_that_is_not_to_be_had_is_refused() {
    let Some(desk) = Desk::with_a_lab("an_upgrade_to_what_the_run_begins_with") else { return };
    let upgrade_to = |version: &str| {
        let to = format!("schedule.2.faults.0.rolling-upgrade.to={version}");
        desk.run(&["run", "scenarios/rolling-upgrade.yaml", "--set", &to])
    };
    let finished = upgrade_to("3.4");
    let same = &finished.stderr;
    if same.contains("could not be installed") {
        eprintln!(
            "skipped: an_upgrade_to_what_the_run_begins_with: no etcd 3.4 is here, and none can be fetched"
        );
        return;
    }
    finished.ends_with(254);
    assert!(same.contains("the rolling upgrade would change nothing: etcd 3.4"), "{same}");
    let finished = upgrade_to("99.1");
    let none = &finished.ends_with(255).stderr;
    assert!(none.contains("etcd 99.1 could not be installed") && none.contains("not 99.1"), "{none}");
}

#[test]
#[ignore = "second tier: a scenario of its own, and etcd may have to be fetched"]
fn etcd_is_restarted_node_by_node_and_loses_nothing() {
    let _turn = beside_others();
    let test = "etcd_is_restarted_node_by_node";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let arguments = ["scenarios/rolling-restart.yaml", "--set", "database.engine=etcd"];
    let Some(result) = ended_on(&desk, test, &["etcd"], 0, &arguments) else { return };
    assert_eq!(result["faults"][0]["nodes"].as_array().map(Vec::len), Some(3), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
}

#[test]
#[ignore = "second tier: the shipped scenario as it is"]
fn etcd_is_upgraded_under_load_as_the_shipped_scenario_says() {
    let _turn = beside_others();
    let test = "etcd_is_upgraded_under_load";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let Some(result) = ended_on(&desk, test, &BOTH, 0, &["scenarios/rolling-upgrade.yaml"]) else { return };
    for name in ["ledger", "register"] {
        assert_eq!(check(&result, name)["verdict"], "pass", "{result:#}");
    }
}

/// Two minor versions of one major version that apt has, the older first.
fn two_minor_versions() -> Option<(String, String)> {
    for major in 13..=20 {
        let listing =
            Command::new("apt-cache").args(["madison", &format!("postgresql-{major}")]).output().ok()?;
        let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
        let upstream = |line: &str| {
            let version = line.split('|').nth(1)?.trim().split('-').next()?;
            let minor = version.strip_prefix(&format!("{major}."))?;
            minor.parse::<u32>().ok()
        };
        let minors: BTreeSet<u32> = listing.lines().filter_map(upstream).collect();
        if let (Some(old), Some(new)) = (minors.first(), minors.last())
            && old != new
        {
            return Some((format!("{major}.{old}"), format!("{major}.{new}")));
        }
    }
    None
}

#[test]
#[ignore = "second tier: two versions of PostgreSQL may have to be fetched"]
fn postgresql_is_upgraded_to_its_next_minor_version_and_loses_nothing() {
    let _turn = beside_others();
    let test = "postgresql_is_upgraded_to_its_next_minor_version";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let Some((old, new)) = two_minor_versions() else {
        eprintln!("skipped: {test}: apt has no two minor versions of one PostgreSQL here");
        return;
    };
    let (begins, to) =
        (format!("database.version={old}"), format!("schedule.2.faults.0.rolling-upgrade.to={new}"));
    let needed = [format!("PostgreSQL {old}"), format!("PostgreSQL {new}")];
    let needed: Vec<&str> = needed.iter().map(String::as_str).collect();
    let set = ["--set", "database.engine=postgres", "--set", &begins, "--set", &to];
    let arguments = [&["scenarios/rolling-upgrade.yaml"], &set[..]].concat();
    let Some(result) = ended_on(&desk, test, &needed, 0, &arguments) else { return };
    assert!(told(&result).contains(&format!("runs from the files of {new}, not of {old}")), "{result:#}");
    assert_eq!(check(&result, "ledger")["verdict"], "pass", "{result:#}");
}
