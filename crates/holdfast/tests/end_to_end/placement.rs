//! A platform that forgets its rules is caught by the run's own events, and an honest one says why a node stays off.

use crate::holdfast::Desk;
use crate::traces::Before;
use crate::turns::beside_others;

const SCENARIO: &str = "scenarios/lies/placement.yaml";

#[test]
fn a_platform_that_forgets_its_rules_is_caught_and_an_honest_one_says_why_a_node_stays_off() {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab("a_platform_that_forgets_its_rules_is_caught") {
        return;
    }
    let before = Before::look(&desk);
    let lying = desk.run(&["run", SCENARIO, "--plant", "rules-forgotten"]);
    lying.ends_with(2);
    let reasons = lying.result()["reasons"].to_string();
    assert!(reasons.contains("run together although rule 1 keeps them apart"), "{reasons}");
    let honest = desk.run(&["run", SCENARIO]);
    honest.ends_with(0);
    let events = std::fs::read_to_string(honest.run_directory().join("events.jsonl")).expect("events");
    for said in
        ["stays off until a host can have it", "must not share a host", "because its host has power again"]
    {
        assert!(events.contains(said), "{said}: {events}");
    }
    before.nothing_is_left(&[]);
}
