//! The closing summary for the terminal.

use history::Verdict;
use measure::recovery::Incomparable;

use crate::fixture;

#[test]
fn a_run_that_held_is_summed_up() {
    insta::assert_snapshot!(report::text(&fixture::host_failure().result));
}

#[test]
fn a_run_that_lost_writes_says_so_first() {
    let mut result = fixture::host_failure().result;
    result.verdict = Verdict::Fail;
    result.reasons =
        vec!["lost_writes: wanted 0, measured 37".to_owned(), "the check ledger failed".to_owned()];
    result.expectations[0].verdict = Verdict::Fail;
    result.expectations[0].measured = "37".to_owned();
    result.checks[0].verdict = Verdict::Fail;
    result.checks[0].lost = Some(37);
    result.checks[0].explanation =
        "37 of 17,310 acknowledged inserts are not there at the end.\ninsert 4711 by client 3 was \
                                    acknowledged at 20.114 s by n1 and is not there at the end"
            .to_owned();
    insta::assert_snapshot!(report::text(&result));
}

#[test]
fn no_line_is_longer_than_a_hundred_columns_whatever_the_names() {
    let mut result = fixture::host_failure().result;
    result.scenario = "x".repeat(300);
    result.reasons.push("y".repeat(250));
    result.checks[0].name = "z".repeat(180);
    result.faults[0].target = "host: ".to_owned() + &"w".repeat(120);
    result.loads[0].name = "v".repeat(40);
    for line in report::text(&result).lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn a_fault_whose_name_is_wider_than_its_column_stands_on_a_line_of_its_own() {
    let mut result = fixture::host_failure().result;
    result.faults[0].target = "hosts: leader, another one".to_owned();
    let text = report::text(&result);
    let expected = "  shown    power-off hosts: leader, another one\n        hit dc1/a/r1/h1, took effect";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_disk_is_named_once() {
    let mut result = fixture::host_failure().result;
    result.faults[0].kind = "disk".to_owned();
    result.faults[0].target = "disk dc1/a/h2/d1: is 100 ms slower".to_owned();
    let text = report::text(&result);
    assert!(text.contains("  shown    disk dc1/a/h2/d1: is 100 ms slower\n"), "{text}");
}

#[test]
fn no_line_ends_between_a_number_and_its_unit() {
    let mut result = fixture::host_failure().result;
    for length in 1..60 {
        result.faults[0].hits = vec!["h".repeat(length)];
        for line in report::text(&result).lines() {
            let start = line.trim_start();
            assert!(!start.starts_with("% of") && !start.starts_with("s from"), "{line}");
        }
    }
}

#[test]
fn a_name_cannot_send_commands_to_the_terminal() {
    let mut result = fixture::host_failure().result;
    result.scenario = "a\u{1b}[2Jb".to_owned();
    result.loads[0].name = "c\u{7}d".to_owned();
    result.checks[0].explanation = "e\u{9b}31mf".to_owned();
    let text = report::text(&result);
    assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
}

#[test]
fn an_unproven_ledger_is_never_told_as_nothing_lost() {
    let mut result = fixture::host_failure().result;
    result.checks[0].verdict = Verdict::Unknown;
    let text = report::text(&result);
    assert!(text.contains("Lost writes               unknown"), "{text}");
}

#[test]
fn a_fault_without_effect_recovers_in_no_time_that_is_known() {
    let mut result = fixture::host_failure().result;
    result.faults[0].took_effect_s = None;
    result.faults[0].receipt.verdict = Verdict::Unknown;
    let text = report::text(&result);
    assert!(text.contains("Longest interruption      unknown"), "{text}");
    assert!(text.contains("unproven power-off host: leader"), "{text}");
}

#[test]
fn why_no_throughput_under_a_fault_is_known_is_told() {
    let mut result = fixture::host_failure().result;
    result.faults[0].throughput_ratio_during = None;
    let text = report::text(&result);
    assert!(text.contains("unknown (no fault stood for a whole second)"), "{text}");
    result.faults[0].loads[0].incomparable = Some(Incomparable::NoBaseline);
    let text = report::text(&result);
    assert!(text.contains("unknown (there is no baseline of whole seconds:"), "{text}");
}
