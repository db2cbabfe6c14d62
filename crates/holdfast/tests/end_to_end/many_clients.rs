//! A thousand clients: connected before the load begins, and back after their leader's host has lost its power.

use serde_json::Value;

use crate::holdfast::Desk;
use crate::turns::machine;

/// The load's errors of a class, of all phases.
fn errors(load: &Value, class: &str) -> u64 {
    load["errors"][class].as_u64().unwrap_or(0)
}

#[test]
#[ignore = "second tier: a thousand sessions, more than a minute"]
fn a_thousand_clients_come_back_when_the_leaders_host_loses_its_power() {
    let _turn = machine();
    let test = "a_thousand_clients_come_back_when_the_leaders_host_loses_its_power";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let finished = desk.run(&["run", "scenarios/many-clients.yaml"]);
    let result = finished.ends_with(0).result();
    let load = &result["loads"][0];
    assert_eq!(load["clients"], 1_000, "{load:#}");
    assert!(!finished.stdout.contains("had no session when it began"), "{}", finished.stdout);
    // Each client loses one session. Without bounds there were 25 failed attempts for each.
    let failed = errors(load, "connection");
    assert!(failed < 3_000, "{failed} failed attempts to connect: {load:#}");
    let phases = load["phases"].as_array().expect("phases");
    let of = |name: &str| phases.iter().find(|phase| phase["name"] == name).expect(name);
    assert_eq!(of("baseline")["errors"].as_object().map(serde_json::Map::len), Some(0), "{load:#}");
    // Every client asks about twice a second, whoever leads: nine of ten are at work again.
    let transactions = |name: &str| of(name)["transactions"].as_f64().expect("a count");
    let ratio = transactions("recovery") / transactions("baseline");
    assert!(ratio > 0.9, "after the failover there were {ratio} times the transactions: {load:#}");
}

#[test]
fn a_load_of_more_clients_than_the_settings_allow_is_refused_on_paper() {
    let desk = Desk::new();
    let settings = ["--set", "database.settings.max_connections=500"];
    let refused = desk.run(&[&["check", "scenarios/many-clients.yaml"], settings.as_slice()].concat());
    refused.ends_with(254);
    assert!(refused.stderr.contains("write `max_connections: 1027` or more"), "{}", refused.stderr);
    desk.run(&["check", "scenarios/many-clients.yaml", "--set", "database.settings.max_connections=1027"])
        .ends_with(0);
}
