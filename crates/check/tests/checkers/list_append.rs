//! List-append: small histories, each with the anomaly it shows, the level it breaks and the story it must get.

use check::Report;
use check::list_append::{self, Level};
use history::Verdict::{self, Fail, Pass, Unknown};

use crate::notation::{assert_told, history};

fn at(level: &str, text: &str) -> Report {
    list_append::check(&history(text), level.parse::<Level>().expect("a level"))
}

#[track_caller]
fn check(level: &str, text: &str, verdict: Verdict, told: &str) {
    assert_told(&at(level, text), verdict, told);
}

/// The history shows this anomaly and none of another name, and its strongest levels are these.
#[track_caller]
fn check_anomaly(text: &str, anomaly: &str, strongest: &[&str]) {
    let report = at("strict-serializable", text);
    assert_eq!(report.verdict, Fail, "{}", report.explanation);
    assert!(
        report.counts.contains_key(anomaly),
        "no {anomaly} in {:?}: {}",
        report.counts,
        report.explanation
    );
    assert_eq!(report.strongest_levels, strongest, "{}", report.explanation);
    let mut reversed = history(text);
    reversed.reverse();
    let again = list_append::check(&reversed, Level::STRICT_SERIALIZABLE);
    assert_eq!(again.strongest_levels, strongest, "the order of lines must not matter");
}

#[test]
fn transactions_one_after_another_are_strictly_serializable() {
    let text = "0-1 c1 append x 1, r y []\n2-3 c2 r x [1], append y 2\n4-5 c1 r x [1], r y [2]";
    check(
        "strict-serializable",
        text,
        Pass,
        "3 acknowledged transactions over 2 lists keep to strict-serializable; the strongest level this history allows \
         is strict-serializable",
    );
}

#[test]
fn write_skew_breaks_serializability_and_is_told_in_sentences() {
    let text = "0-5 c1 r x [], append y 1\n0-5 c2 r y [], append x 2\n6-7 c3 r x [2], r y [1]";
    check_anomaly(text, "G2-item", &["strong-snapshot-isolation"]);
    check(
        "serializable",
        text,
        Fail,
        "serializable is claimed, but there is G2-item: let T1 be client 1's transaction (0.000 s to 5.000 s: read key x \
         as [], append 1 to key y), T2 be client 2's transaction (0.000 s to 5.000 s: read key y as [], append 2 to key \
         x). T1 comes before T2, because T1 read key x as [] and did not see 2, which T2 appended; but T2 comes before T1, \
         because T2 read key y as [] and did not see 1, which T1 appended: a contradiction; the strongest level this history allows is \
         strong-snapshot-isolation",
    );
    check("repeatable-read", text, Pass, "snapshot-isolation does not forbid what else was found: G2-item");
}

#[test]
fn write_skew_is_found_even_if_nobody_reads_the_writes() {
    let text = "0-5 c1 r x [], append y 1\n0-5 c2 r y [], append x 2\n0-1 c4 append z 1\n2-3 c4 r z [1]";
    check_anomaly(text, "G2-item", &["strong-snapshot-isolation"]);
}

#[test]
fn dirty_writes_are_g0() {
    let text = "0-5 c1 append x 1, append y 1\n0-5 c2 append x 2, append y 2\n6-7 c3 r x [1 2], r y [2 1]";
    check_anomaly(text, "G0", &[]);
    check("read-uncommitted", text, Fail, "not even read-uncommitted is possible");
}

#[test]
fn a_circle_of_reads_is_g1c() {
    check_anomaly(
        "0-5 c1 append x 1, r y [2]\n0-5 c2 append y 2, r x [1]",
        "G1c",
        &["strong-read-uncommitted"],
    );
}

#[test]
fn reading_what_was_refused_is_g1a() {
    let text = "0-1 c1 append x 1 fail\n2-3 c2 r x [1]";
    check_anomaly(text, "G1a", &["strong-read-uncommitted"]);
    check(
        "read-committed",
        text,
        Fail,
        "read 1 of key x, although client 1's transaction (0.000 s to 1.000 s: append 1 to key x) was refused",
    );
}

#[test]
fn reading_the_middle_of_a_transaction_is_g1b() {
    check_anomaly(
        "0-5 c1 append x 1, append x 2\n0-5 c2 r x [1]\n6-7 c3 r x [1 2]",
        "G1b",
        &["strong-read-uncommitted"],
    );
}

#[test]
fn building_on_what_was_refused_is_a_dirty_update() {
    check_anomaly(
        "0-1 c1 append x 1 fail\n2-3 c2 append x 2\n4-5 c3 r x [1 2]",
        "dirty update",
        &["strong-read-uncommitted"],
    );
}

#[test]
fn one_version_seen_and_another_missed_is_g_single() {
    let text = "0-9 c1 r x [], r y [2]\n2-3 c2 append x 1, append y 2\n10-11 c3 r x [1]";
    check_anomaly(text, "G-single", &["strong-read-committed"]);
}

#[test]
fn two_updates_of_one_version_are_a_lost_update() {
    let text = "0-5 c1 r x [], append x 1\n0-5 c2 r x [], append x 2\n6-7 c3 r x [1 2]";
    check_anomaly(text, "lost update", &["strong-read-committed"]);
    check_anomaly(text, "G-single", &["strong-read-committed"]);
    let unread = "0-5 c1 r x [], append x 1\n0-5 c2 r x [], append x 2\n0-1 c4 append z 1\n2-3 c4 r z [1]";
    check_anomaly(unread, "lost update", &["strong-read-committed"]);
    check(
        "snapshot-isolation",
        unread,
        Fail,
        "read key x as [] and then appended to it, so neither knew of the other's",
    );
}

#[test]
fn anti_dependencies_apart_break_snapshot_isolation() {
    // T1 -rw-> T2 -wr-> T3 -rw-> T4 -wr-> T1: the long fork.
    let text = "0-9 c1 r x [], r y [4]\n0-9 c2 append x 2\n0-9 c3 r x [2], r y []\n0-9 c4 append y 4\n10-11 c5 r x [2], r y [4]";
    check_anomaly(text, "G-nonadjacent", &["strong-read-committed"]);
}

#[test]
fn a_stale_read_breaks_only_the_order_of_time() {
    let text = "0-1 c1 append x 1\n2-3 c2 r x []\n4-5 c3 r x [1]";
    check_anomaly(text, "G-single-realtime", &["strong-session-serializable", "strong-read-committed"]);
    check("serializable", text, Pass, "");
    check(
        "strict-serializable",
        text,
        Fail,
        "T1 comes before T2, because T1 read key x as [] and did not see 1, which T2 appended; but T2 comes before T1, because \
         T2 had ended at 1.000 s and T1 began at 2.000 s: a contradiction",
    );
}

#[test]
fn a_lost_append_breaks_the_order_of_time_and_of_its_client() {
    let text = "0-1 c1 append x 1\n2-3 c2 append x 2\n4-5 c3 r x [2]";
    check_anomaly(text, "G-single-realtime", &["strong-session-serializable"]);
}

#[test]
fn not_reading_ones_own_write_breaks_the_order_of_the_session() {
    let text = "0-1 c1 append x 1\n2-3 c1 r x []\n4-5 c3 r x [1]";
    check_anomaly(text, "G-single-process", &["serializable", "strong-read-committed"]);
    check("strong-session-serializable", text, Fail, "client 1 made T1 and then T2");
}

#[test]
fn a_transaction_without_an_answer_does_not_hide_the_order_around_it() {
    let text = "0-1 c1 append x 1\n2-3 c1 append y 1 unknown\n4-5 c1 r x []\n6-7 c2 r y [1], r x []";
    check("strong-session-serializable", text, Fail, "client 1 made T1 and then T2");
}

#[test]
fn a_client_with_two_transactions_at_once_keeps_no_order_between_them() {
    check("strict-serializable", "0-5 c1 append x 1\n2-3 c1 r x []\n6-7 c3 r x [1]", Pass, "");
}

#[test]
fn reads_of_which_neither_begins_the_other_are_incompatible() {
    let text = "0-1 c1 append x 1\n0-1 c2 append x 2\n2-3 c1 r x [1 2]\n2-3 c2 r x [2 1]";
    // Whether the weakest level holds cannot be told, so it is not one that the history allows.
    check_anomaly(text, "incompatible orders", &[]);
    check("read-uncommitted", text, Unknown, "reads disagree about the order of appends");
    check("read-committed", text, Fail, "strong-read-uncommitted could not be decided: reads disagree");
}

#[test]
fn what_is_wrong_with_a_read_is_found_in_one_that_disagrees_with_others_too() {
    let text = "0-1 c1 append x 1\n0-1 c2 append x 2\n0-1 c3 append x 3 fail\n2-3 c1 r x [1 2]";
    check_anomaly(&format!("{text}\n2-3 c2 r x [2 3]"), "G1a", &[]);
    check_anomaly(&format!("{text}\n2-3 c2 r x [2 2]"), "duplicate elements", &[]);
    check_anomaly(&format!("{text}\n2-3 c2 r x [2 7]"), "invented elements", &[]);
    check_anomaly(
        &format!("{text}\n2-3 c2 r x [2 1], append x 4\n2-3 c4 r x [2 1], append x 5"),
        "lost update",
        &[],
    );
    let honest = at("read-committed", &format!("{text}\n2-3 c2 r x [2 1]"));
    for anomaly in ["G1a", "duplicate elements", "invented elements"] {
        assert!(!honest.counts.contains_key(anomaly), "{}", honest.explanation);
    }
}

#[test]
fn a_transaction_that_reads_its_own_later_append_reads_the_future() {
    let alone = "0-1 c1 r x [5], append x 5";
    check_anomaly(alone, "future read", &["strong-read-uncommitted"]);
    check("read-committed", alone, Fail, "read 5 of key x before it appended it");
    check(
        "read-uncommitted",
        alone,
        Pass,
        "read-uncommitted does not forbid what else was found: future read",
    );
    // It does not agree with itself either: it must find the value twice.
    let around = "0-1 c1 r x [1], append x 1, r x [1]";
    check_anomaly(around, "future read", &["strong-read-uncommitted"]);
    check_anomaly(around, "internal inconsistency", &["strong-read-uncommitted"]);
    // In the midst of what others appended, and in a read that disagrees with others.
    let amid = "0-9 c1 r x [5 6], append x 5\n0-9 c2 append x 6\n10-11 c3 r x [5 6]";
    check_anomaly(amid, "future read", &["strong-read-uncommitted"]);
    check_anomaly("0-9 c1 r x [6 5], append x 5\n0-9 c2 append x 6\n10-11 c3 r x [5 6]", "future read", &[]);
    check("strict-serializable", "0-1 c1 append x 5, r x [5], append x 6, r x [5 6]", Pass, "");
}

#[test]
fn appends_of_one_transaction_keep_their_order_in_a_list() {
    check_anomaly("0-1 c1 append x 1, append x 2\n2-3 c2 r x [2 1]", "appends out of order", &[]);
    check_anomaly("0-1 c1 append x 1, append x 2\n2-3 c2 r x [2]", "appends out of order", &[]);
    check("strict-serializable", "0-1 c1 append x 1, append x 2\n2-3 c2 r x [1 2]", Pass, "");
    check("strict-serializable", "0-1 c1 append x 1, append x 2 fail\n2-3 c2 append x 3, r x [3]", Pass, "");
}

#[test]
fn the_order_of_what_was_appended_before_and_after_a_refused_value_is_known() {
    let text = "0-1 c1 append x 9, append y 8 fail\n0-5 c2 append x 1, append y 1\n0-5 c3 append x 2, append y 2\n\
                6-7 c4 r x [1 9 2], r y [2 8 1]";
    check("read-uncommitted", text, Fail, "there is G0");
}

#[test]
fn a_value_twice_in_a_list_or_from_nowhere_is_found_at_any_level() {
    check_anomaly("0-1 c1 append x 1\n2-3 c1 r x [1 1]", "duplicate elements", &[]);
    check_anomaly("0-1 c1 append x 1\n2-3 c1 r x [1 7]", "invented elements", &[]);
    check(
        "read-uncommitted",
        "0-1 c1 append x 1\n2-3 c1 r x [1 7]",
        Fail,
        "read 7 of key x, which no client appended",
    );
}

#[test]
fn a_transaction_must_agree_with_itself() {
    check_anomaly(
        "0-1 c1 append x 1, r x []\n2-3 c2 r x [1]",
        "internal inconsistency",
        &["strong-read-committed"],
    );
    check_anomaly("0-1 c1 r x [], append x 1, r x [1 1]", "internal inconsistency", &[]);
    check(
        "snapshot-isolation",
        "0-9 c1 r x [], append x 1, r x [2 1]\n0-3 c2 append x 2",
        Fail,
        "read key x as [2 1], although by what it had done itself it must be [1]",
    );
    check("strict-serializable", "0-1 c1 append x 1, r x [1], append x 2, r x [1 2]", Pass, "");
}

#[test]
fn transactions_without_an_answer_happened_if_anybody_saw_them() {
    check("strict-serializable", "0-1 c1 append x 1 unknown\n2-3 c2 r x []\n9-10 c2 r x [1]", Pass, "");
    check("strict-serializable", "0-1 c1 append x 1 unknown\n2-3 c2 r x []", Unknown, "so nothing was shown");
    // Seen in x, so it has happened to y as well, before which c3 read y.
    let half = "0-1 c1 append x 1, append y 1 unknown\n2-3 c2 r x [1]\n4-5 c3 r y []";
    check("strict-serializable", half, Fail, "G-single-realtime");
}

#[test]
fn nothing_follows_from_who_appended_a_value_that_was_appended_twice() {
    let told = "1 value appended to one list more than once and was ignored, because the append that a read saw is ambiguous: 1 of key x";
    check("serializable", "0-1 c1 append x 1\n2-3 c2 append x 1\n4-5 c1 r x [1]", Unknown, told);
    check("strict-serializable", "0-1 c1 append x 1\n2-3 c2 append x 1\n4-5 c1 r x [1 1]", Unknown, told);
    check("strict-serializable", "0-1 c1 append x 1\n2-3 c2 append x 1 fail\n4-5 c1 r x [1]", Unknown, told);
    check("strict-serializable", "0-1 c1 append x 1\n2-3 c2 r x [1], append x 1", Unknown, told);
    // Whoever appended it, it cannot be there more often than it was appended.
    let thrice = "0-1 c1 append x 1\n2-3 c2 append x 1\n4-5 c1 r x [1 1 1]";
    check("read-uncommitted", thrice, Fail, "1 is in key x more often than it was appended");
    // What was appended once is judged all the same.
    let beside =
        "0-1 c1 append x 1\n0-1 c2 append x 1\n2-3 c2 append x 2\n4-5 c1 r x [1 1]\n6-7 c1 r x [1 1 2]";
    check("strict-serializable", beside, Fail, "G-single-realtime");
    let refused = "0-1 c1 append x 1\n0-1 c2 append x 1\n2-3 c2 append x 2 fail\n4-5 c1 r x [1 2]";
    check("strict-serializable", refused, Fail, "G1a");
}

#[test]
fn snapshot_isolation_is_undecided_where_no_order_of_unread_appends_is_known() {
    // Whichever of the two appends to z comes first, its transaction has missed what the other one wrote.
    let skewed = "0-5 c1 r x [], append y 1, append z 1\n0-5 c2 r y [], append x 2, append z 2\n6-7 c3 r x [2], r y [1]";
    check(
        "snapshot-isolation",
        skewed,
        Unknown,
        "the order of several appends that were never read is unknown",
    );
    let report = at("serializable", skewed);
    assert_eq!((report.verdict, report.strongest_levels), (Fail, vec!["strong-read-committed".to_owned()]));
    assert!(
        report.explanation.contains("strong-snapshot-isolation could not be decided"),
        "{}",
        report.explanation
    );
    // Where they are in no circle, one can come first.
    let apart = skewed.replace(", append z 2", "") + "\n6-7 c4 append z 2";
    check("snapshot-isolation", &apart, Pass, "");
}

#[test]
fn nothing_read_shows_nothing() {
    check("read-uncommitted", "0-1 c1 append x 1", Unknown, "so nothing was shown");
    check("read-uncommitted", "", Unknown, "so nothing was shown");
}

#[test]
fn a_history_that_contradicts_itself_proves_nothing() {
    check(
        "read-uncommitted",
        "3-1 c1 append x 1\n4-5 c1 r x [1 1]",
        Unknown,
        "the history contradicts itself",
    );
}

#[test]
fn a_cycle_too_long_to_be_the_shortest_is_told_in_part() {
    let mut text = String::new();
    for at in 0..40 {
        text += &format!("0-9 c{at} r k{at} [], append k{} 1\n", (at + 1) % 40);
    }
    text += "0-9 c99 append z 1\n10-11 c99 r z [1]";
    check("serializable", &text, Fail, "and so on over 28 more, back to T1: a contradiction");
    check("snapshot-isolation", &text, Pass, "");
}

#[test]
fn an_acknowledged_append_that_the_final_read_does_not_find_is_lost_at_any_level() {
    let text = "0-1 c1 append x 1, append y 2\n2-3 c2 append x 3\n4-5 c3 append z 4 unknown\n6-7 c3 append z 5 fail\n\
                90-91 c8 r x [1]\n";
    check("read-uncommitted", text, Pass, "");
    let read = format!("{text}90-91 c9 final append");
    check(
        "read-uncommitted",
        &read,
        Fail,
        "2 acknowledged appends are not there at the end: 2 of key y, appended by client 1's transaction (0.000 s to \
         1.000 s: append 1 to key x, append 2 to key y); 3 of key x, appended by client 2's transaction (2.000 s to \
         3.000 s: append 3 to key x). 3 acknowledged transactions",
    );
    let report = at("snapshot-isolation", &read);
    assert_eq!((report.lost, report.counts["lost appends"]), (Some(2), 2), "{}", report.explanation);
    // Which levels hold is another question.
    assert_eq!(report.strongest_levels, at("snapshot-isolation", text).strongest_levels);
    check("serializable", &format!("{text}90-91 c8 r x [1 3], r y [2]\n90-91 c9 final append"), Pass, "");
}

#[test]
fn nothing_is_lost_by_a_final_read_that_failed_or_began_before_an_append_had_ended_or_of_another_load() {
    let text = "0-1 c1 append x 1\n2-3 c2 append x 3\n90-91 c8 r x [1]\n";
    check(
        "serializable",
        &format!("{text}90-91 c9 final append"),
        Fail,
        "1 acknowledged append is not there",
    );
    check("serializable", &format!("{text}90-91 c9 final append fail"), Pass, "");
    check("serializable", &format!("{text}90-91 c9 final bank"), Pass, "");
    check("serializable", &format!("{text}90-91 a/c9 final append"), Pass, "");
    check("serializable", &format!("{}90-91 c9 final append", text.replace("2-3", "2-95")), Pass, "");
    // A load whose lists were read in the end is judged, whatever became of the other's.
    let of_two = "0-1 a/c1 append x 1\n2-3 b/c2 append x 3\n90-91 a/c8 r x []\n90-91 a/c9 final append";
    check("serializable", of_two, Fail, "1 acknowledged append is not there at the end: 1 of key x");
}

#[test]
fn a_transaction_without_an_answer_that_reads_saw_has_happened_as_a_whole_and_stays() {
    // Half of it is there.
    let half = "0-1 c1 append x 1, append y 1 unknown\n90-91 c8 r x [1], r y []\n90-91 c9 final append";
    check(
        "read-committed",
        half,
        Fail,
        "1 append without a definite answer is not there at the end, although reads saw something of the same transaction: 1 of \
         key y, appended by client 1's transaction",
    );
    assert_eq!(at("read-committed", half).lost, None, "it was not acknowledged");
    // Dirty reads may see what is taken back.
    check("read-uncommitted", half, Pass, "");
    // It was read, and is gone.
    let gone = "0-1 c1 append x 1 unknown\n2-3 c2 r x [1]\n90-91 c8 r x []\n90-91 c9 final append";
    check("read-committed", gone, Fail, "1 append without a definite answer is not there at the end");
    // Nobody saw anything of it.
    let unseen = "0-1 c1 append x 1, append y 1 unknown\n2-3 c2 append z 3\n90-91 c8 r x [], r z [3]\n90-91 c9 final append";
    check("read-committed", unseen, Pass, "");
    check("read-committed", &half.replace("r y []", "r y [1]"), Pass, "");
    // It may come between the final reads of two loads.
    let between = "0-1 a/c1 append x 1, append y 1 unknown\n90-91 a/c8 r x [], r y []\n90-91 a/c9 final append\n\
                   94-95 b/c8 r y [1]\n94-95 b/c9 final append";
    check("read-committed", between, Pass, "");
}
