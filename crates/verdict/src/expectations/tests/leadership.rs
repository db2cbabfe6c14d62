//! Changes of leader and split brains, judged by what was seen of who leads.

use results::LeadershipResult;

use super::*;

fn verdicts(leadership: Option<LeadershipResult>) -> Vec<Verdict> {
    let text = SCENARIO.replace("engine: postgres", "engine: patroni");
    let text = format!("{text}expect:\n  leader_changes: < 2\n  split_brains: 0\n");
    let source = scenario::Source { name: "test.yaml".to_owned(), text };
    let scenario = scenario::parse(&source, &[]).expect("sound");
    let judged = judge(&scenario, &RunResult { leadership, ..result() }, 35.0);
    judged.iter().map(|expectation| expectation.verdict).collect()
}

fn seen(changes: u64, split_brains: Option<u64>, longest_pause_s: f64) -> Option<LeadershipResult> {
    Some(LeadershipResult { changes, split_brains, longest_pause_s: Some(longest_pause_s) })
}

#[test]
fn a_leader_that_changes_too_often_and_two_at_once_fail_what_is_expected() {
    assert_eq!(verdicts(seen(1, Some(0), 0.4)), [Verdict::Pass, Verdict::Pass]);
    assert_eq!(verdicts(seen(2, Some(1), 0.4)), [Verdict::Fail, Verdict::Fail]);
}

#[test]
fn what_nobody_watched_is_not_known_and_a_long_time_without_a_look_may_hide_more() {
    assert_eq!(verdicts(None), [Verdict::Unknown, Verdict::Unknown]);
    assert_eq!(verdicts(seen(0, None, 0.4)), [Verdict::Pass, Verdict::Unknown]);
    assert_eq!(verdicts(seen(0, Some(0), 8.0)), [Verdict::Unknown, Verdict::Unknown]);
    assert_eq!(verdicts(seen(3, Some(1), 8.0)), [Verdict::Fail, Verdict::Fail]);
}
