//! Who leads after a fault, as the page tells it, where the leader of before leads again.

use history::EventKind;

use crate::fixture;
use crate::page::check;

#[test]
fn a_leader_that_leads_again_is_told_and_marked() {
    let mut fixture = fixture::host_failure();
    let led = |event: &&mut history::Event| matches!(event.kind, EventKind::Leader { .. });
    let event = fixture.events.iter_mut().find(led).expect("a leader's event");
    event.kind = EventKind::LeaderAgain { node: "n1".to_owned(), without_s: 6.9 };
    check(
        &fixture,
        &[
            "n1 was leader again after 7.2 s; no node reported to lead for 6.9 s",
            "n1 is the leader again",
            "n1 leads again; no node said so for 6.9 s.",
        ],
    );
}

#[test]
fn several_that_led_or_may_have_led_at_the_final_read_are_told_with_their_names() {
    let told = |nodes: &[&str], silent: &[&str], expected: &str| {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let mut fixture = fixture::host_failure();
        let led = |event: &&mut history::Event| matches!(event.kind, EventKind::Leader { .. });
        let event = fixture.events.iter_mut().find(led).expect("a leader's event");
        event.kind = EventKind::LeadersAtTheEnd { nodes: names(nodes), silent: names(silent) };
        check(&fixture, &[expected]);
    };
    told(&["n1", "n2"], &[], "n1 and n2 led while the final state was read.");
    told(&["n1"], &["n3"], "n1 led while the final state was read, and perhaps n3, which did not answer.");
    told(&[], &["n1", "n3"], "Whether n1 and n3 led while the final state was read is not known.");
}
