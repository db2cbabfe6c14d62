//! What the page looks like, held to rules a machine can judge: marks and labels that stand apart, tables that fit on paper.

use history::{Event, EventKind, PlatformAction};
use results::FaultResult;

use crate::fixture;
use crate::page::{check, page};

/// The drawings of a page that have all of these parts.
fn drawings<'p>(html: &'p str, parts: &[&str]) -> Vec<&'p str> {
    let drawings: Vec<&str> = html
        .split("<svg ")
        .skip(1)
        .filter_map(|rest| rest.split("</svg>").next())
        .filter(|svg| parts.iter().all(|part| svg.contains(part)))
        .collect();
    assert!(!drawings.is_empty(), "no drawing has {parts:?}");
    drawings
}

/// The number in an attribute of a tag.
fn number(tag: &str, attribute: &str) -> f64 {
    let value = tag.split(&format!(" {attribute}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {attribute}: {tag}"))
}

#[test]
fn numbers_of_moments_never_touch_each_other() {
    let mut fixture = fixture::host_failure();
    // The first two share a mark that is wider than one number and reaches the third, which one number would not.
    for t_s in [10.0, 10.5, 11.9, 13.2, 15.0, 59.0, 59.9] {
        let action = PlatformAction::Ready;
        let (node, what) = ("n2".to_owned(), "it accepts connections".to_owned());
        fixture.events.push(Event { t_s, kind: EventKind::Platform { action, node, what } });
    }
    for svg in drawings(&page(&fixture), &["class=\"moment\""]) {
        let marks: Vec<(f64, f64)> = svg
            .split("<g class=\"moment\">")
            .skip(1)
            .map(|mark| mark.split("<rect").nth(1).expect("a mark"))
            .map(|rect| (number(rect, "x"), number(rect, "x") + number(rect, "width")))
            .collect();
        assert!(marks.len() > 1, "{marks:?}");
        assert!(marks.windows(2).all(|pair| pair[0].1 < pair[1].0), "{marks:?}");
    }
}

#[test]
fn labels_are_cut_short_where_a_fault_would_have_none() {
    let mut fixture = fixture::host_failure();
    let pattern = fixture.result.faults[0].clone();
    let (one, other) = ("dc1/a/r1/h1/n1", "dc1/b/r3/h1/n3");
    for asked_s in [5.0, 15.0, 25.0, 35.0, 45.0, 50.0] {
        fixture.result.faults.push(FaultResult {
            kind: "partition".to_owned(),
            hits: vec![format!("{one} -> {other}"), format!("{other} -> {one}")],
            asked_s,
            took_effect_s: Some(asked_s),
            healed_s: Some(asked_s + 5.0),
            ..pattern.clone()
        });
    }
    let html = page(&fixture);
    let wide = drawings(&html, &["fault-label"])[0];
    let labels: Vec<&str> = wide
        .split("<text class=\"fault-label\"")
        .skip(1)
        .filter_map(|label| label.split("</title>").nth(1)?.split('<').next())
        .collect();
    assert_eq!(labels.len(), 7);
    assert!(labels.iter().all(|label| !label.is_empty()), "{labels:?}");
    assert!(labels.contains(&"partition dc1/a/r1/h1/n…"), "{labels:?}");
    let in_full = "<title>partition dc1/a/r1/h1/n1 &lt;-&gt; dc1/b/r3/h1/n3 from 5.0\u{a0}s";
    assert!(wide.contains(in_full), "both directions are one way");
}

#[test]
fn statements_of_many_phases_stand_in_several_tables() {
    let mut fixture = fixture::host_failure();
    let load = &mut fixture.result.loads[0];
    let mut more = load.phases.last().expect("a phase").clone();
    more.name = "afterwards".to_owned();
    load.phases.push(more);
    let html = page(&fixture);
    let tables: Vec<&str> = html
        .split("<table class=\"statements\">")
        .skip(1)
        .filter_map(|rest| rest.split("</table>").next())
        .filter(|table| table.contains("UPDATE accounts"))
        .collect();
    assert_eq!(tables.len(), 2);
    assert!(!tables[0].contains("afterwards") && tables[1].contains("afterwards"));
    assert!(tables[1].contains("Δ mean"), "the baseline counts for phases of the second table too");
}

#[test]
fn counts_of_a_check_are_words() {
    let mut fixture = fixture::host_failure();
    let counts = [("indeterminate_there", 1), ("refused_but_there", 0)];
    fixture.result.checks[0].counts = counts.map(|(name, count)| (name.to_owned(), count)).into();
    check(&fixture, &["1 there without a definite answer 0 refused but there", "21,006 history rows"]);
}

#[test]
fn a_recovery_that_was_not_seen_to_last_is_a_bound_in_the_facts_of_its_fault() {
    let mut fixture = fixture::host_failure();
    fixture.result.faults[0].recovery_s.sustained = None;
    check(&fixture, &["Sustained recovery after at least 37.0 s Below 95 % of the baseline"]);
}
