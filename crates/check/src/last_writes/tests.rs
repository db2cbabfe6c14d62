//! The check on small histories in a language of their own: one operation a word,
//! `client.number:cells@from-to=outcome`, then what the final read finds, `cell=number`.

use history::{Action, ErrorClass, NO_WRITE, Operation, Outcome, Verdict};
use proptest::prelude::*;

use super::check;

fn operation(action: Action, client: u64, from_s: f64, to_s: f64, outcome: Outcome) -> Operation {
    Operation {
        load: "kv".to_owned(),
        client,
        action,
        invoked_s: from_s,
        completed_s: to_s,
        outcome,
        error: (outcome != Outcome::Ok).then_some(ErrorClass::Connection),
        node: None,
    }
}

/// `3:1,2@0-1` is write 3 to the cells 1 and 2 from 0 s to 1 s; `?` behind it has no definite answer, `!` is refused.
fn write(word: &str) -> Operation {
    let (outcome, word) = match word.strip_suffix('?') {
        Some(word) => (Outcome::Unknown, word),
        None => word.strip_suffix('!').map_or((Outcome::Ok, word), |word| (Outcome::Fail, word)),
    };
    let (what, when) = word.split_once('@').expect("@");
    let (value, cells) = what.split_once(':').expect(":");
    let (from, to) = when.split_once('-').expect("-");
    let cells = cells.split(',').map(|cell| cell.parse().expect("cell")).collect();
    let value = value.parse().expect("number");
    let seconds = |text: &str| text.parse().expect("seconds");
    operation(Action::CellsWrite { cells, value }, value, seconds(from), seconds(to), outcome)
}

fn read(found: &str) -> Operation {
    let cell = |word: &str| {
        let (cell, value) = word.split_once('=').expect("=");
        (cell.parse().expect("cell"), value.parse().expect("number"))
    };
    let cells = found.split_whitespace().map(cell).collect();
    operation(Action::CellsRead { cells, complete: true }, 99, 100.0, 101.0, Outcome::Ok)
}

#[track_caller]
fn judged(writes: &str, found: &str, verdict: Verdict, lost: Option<u64>, told: &str) {
    let mut history: Vec<Operation> = writes.split_whitespace().map(write).collect();
    history.push(read(found));
    let report = check(&history);
    assert_eq!((report.verdict, report.lost), (verdict, lost), "{}", report.explanation);
    assert!(report.explanation.contains(told), "{}", report.explanation);
}

#[test]
fn a_cell_that_ends_with_its_last_write_is_well() {
    judged("1:7@0-1 2:7@2-3", "7=2 8=0", Verdict::Pass, Some(0), "each of 2 cells ends");
    judged("1:7,8@0-1", "7=1 8=1", Verdict::Pass, Some(0), "no acknowledged write of 1 is lost");
}

#[test]
fn either_of_two_writes_that_overlap_may_be_the_last() {
    judged("1:7@0-2 2:7@1-3", "7=1", Verdict::Pass, Some(0), "");
    judged("1:7@0-2 2:7@1-3", "7=2", Verdict::Pass, Some(0), "");
}

#[test]
fn a_cell_that_ends_with_an_older_write_has_lost_the_newer() {
    let told = "write 2 to cell 7 by client 2 was acknowledged at 3.000 s, and the cell holds write 1";
    judged("1:7@0-1 2:7@2-3", "7=1", Verdict::Fail, Some(1), told);
}

#[test]
fn a_cell_that_is_not_there_or_was_never_changed_has_lost_its_write() {
    judged("1:7@0-1", "8=0", Verdict::Fail, Some(1), "the cell is not there at the end");
    judged("1:7@0-1", "7=0", Verdict::Fail, Some(1), "what was there before the first write");
    // Both cells of one write.
    judged("1:7,8@0-1", "7=0 8=0", Verdict::Fail, Some(2), "2 cells are lost");
}

#[test]
fn a_write_without_a_definite_answer_may_be_there_or_not_and_at_any_time() {
    judged("1:7@0-1? 2:7@2-3", "7=1", Verdict::Pass, Some(0), "1 cell holds one of those in the end");
    judged("1:7@0-1? 2:7@2-3", "7=2", Verdict::Pass, Some(0), "");
    judged("1:7@0-1 2:7@2-3?", "7=1", Verdict::Pass, Some(0), "");
}

#[test]
fn what_nobody_wrote_or_what_was_refused_must_not_be_there() {
    judged("1:7@0-1", "7=5", Verdict::Fail, None, "5 in cell 7");
    judged("1:7@0-1", "7=1 9=1", Verdict::Fail, None, "1 in cell 9");
    let of_no_write = format!("7=1 9={NO_WRITE}");
    judged("1:7@0-1", &of_no_write, Verdict::Fail, None, "a value that is no write's in cell 9");
    judged("1:7@0-1 2:7@2-3!", "7=2", Verdict::Fail, Some(0), "1 write refused and is there");
    judged("1:7@0-1", "7=1 7=1", Verdict::Fail, Some(0), "1 cell is there more than once");
}

#[test]
fn what_is_missing_may_be_where_nobody_looked_and_what_was_refused_and_is_there_is_there() {
    let only_misses = |writes: &str, found: &str| {
        let mut history: Vec<Operation> = writes.split_whitespace().map(write).collect();
        history.push(read(found));
        check(&history).only_misses
    };
    assert!(only_misses("1:7@0-1 2:8@0-1", "7=1 8=0"));
    assert!(!only_misses("1:7@0-1", "7=1"));
    assert!(!only_misses("1:7@0-1 2:8@0-1 3:7@2-3!", "7=3 8=0"));
    assert!(!only_misses("1:7@0-1 2:8@0-1", "7=1 7=1 8=0"));
    assert!(!only_misses("1:7@0-1 2:8@0-1", "7=5 8=0"));
}

#[test]
fn what_cannot_be_known_is_unknown() {
    judged("1:7@0-1?", "7=1", Verdict::Unknown, Some(0), "no write was acknowledged");
    judged("1:7@99-102", "7=0", Verdict::Unknown, None, "after the final read had begun");
    judged("1:7@0-1 1:7@2-3", "7=1", Verdict::Unknown, None, "proves nothing");
    let unread = check(&[write("1:7@0-1")]);
    assert_eq!((unread.verdict, unread.lost), (Verdict::Unknown, None));
}

#[test]
fn loads_that_write_the_same_cells_prove_nothing() {
    let of = |load: &str, operation: Operation| Operation { load: load.to_owned(), ..operation };
    let judged = |end: &str| {
        check(&[of("a", write("1:7@0-1")), of("b", write("2:7@2-3")), of("a", read(end)), of("b", read(end))])
    };
    let report = judged("7=2");
    assert_eq!((report.verdict, report.lost), (Verdict::Unknown, None), "{}", report.explanation);
    assert!(report.explanation.contains("loads share a table: 1 cell ends"), "{}", report.explanation);
    let report = judged("7=3");
    assert_eq!(report.verdict, Verdict::Fail, "{}", report.explanation);
    // Each has a table of its own.
    let apart =
        [of("a", write("1:7@0-1")), of("b", write("2:7@2-3")), of("a", read("7=1")), of("b", read("7=2"))];
    assert_eq!(check(&apart).verdict, Verdict::Pass);
    // A load's own write in another cell is nobody's.
    let moved = [
        of("a", write("1:7@0-1")),
        of("b", write("2:7@2-3")),
        of("a", read("7=1 8=1")),
        of("b", read("7=2")),
    ];
    assert_eq!(check(&moved).verdict, Verdict::Fail);
}

#[test]
fn loads_that_share_a_table_and_no_cell_are_judged_by_their_own() {
    let of = |load: &str, operation: Operation| Operation { load: load.to_owned(), ..operation };
    let judged = |end: &str| {
        let writes = [of("a", write("1:7@0-1")), of("b", write("2:8@2-3")), of("b", write("3:8@4-5"))];
        check(&[&writes[..], &[of("a", read(end)), of("b", read(end))]].concat())
    };
    let report = judged("7=1 8=3");
    assert_eq!((report.verdict, report.lost), (Verdict::Pass, Some(0)), "{}", report.explanation);
    for (end, story) in [
        ("8=3", "write 1 to cell 7"),
        ("7=1 8=2", "write 3 to cell 8"),
        ("7=1 8=3 9=4", "4 in cell 9"),
        ("7=1 8=1", "1 in cell 8"),
    ] {
        let report = judged(end);
        assert_eq!(report.verdict, Verdict::Fail, "{end}");
        assert!(report.explanation.contains(story), "{end}: {}", report.explanation);
    }
}

#[test]
fn a_read_that_broke_off_is_not_everything() {
    let mut broken = read("7=0");
    broken.outcome = Outcome::Fail;
    let mut part = read("8=0");
    part.action = Action::CellsRead { cells: vec![(8, 0)], complete: false };
    let report = check(&[write("1:7@0-1"), part, broken, read("7=1")]);
    assert_eq!((report.verdict, report.counts["cells"]), (Verdict::Pass, 1), "{}", report.explanation);
}

/// Whether some order of the writes to a cell, each at a moment between its two ends, ends with `holds`.
fn some_order_explains(writes: &[Operation], holds: u64) -> bool {
    let taken = |write: &&Operation| write.outcome != Outcome::Fail;
    let latest =
        |write: &Operation| if write.outcome == Outcome::Ok { write.completed_s } else { f64::INFINITY };
    let value = |write: &Operation| match write.action {
        Action::CellsWrite { value, .. } => value,
        _ => 0,
    };
    let acknowledged = writes.iter().filter(|write| write.outcome == Outcome::Ok);
    if holds == 0 {
        return acknowledged.count() == 0;
    }
    let candidates = writes.iter().filter(taken).filter(|write| value(write) == holds);
    // The others as early as they can be, this one as late as it can be.
    candidates.into_iter().any(|last| {
        acknowledged
            .clone()
            .filter(|other| value(other) != holds)
            .all(|other| other.invoked_s <= latest(last))
    })
}

proptest! {
    #[test]
    fn one_cell_is_judged_as_the_orders_of_its_writes_have_it(
        writes in prop::collection::vec((0u32..20, 1u32..6, 0u32..3), 1..6),
        holds in 0u64..7,
    ) {
        let writes: Vec<Operation> = writes.iter().enumerate().map(|(place, (from, takes, outcome))| {
            let mark = ["", "?", "!"][*outcome as usize];
            write(&format!("{}:7@{from}-{}{mark}", place + 1, from + takes))
        }).collect();
        let mut history = writes.clone();
        history.push(read(&format!("7={holds}")));
        let report = check(&history);
        let explained = some_order_explains(&writes, holds);
        prop_assert_eq!(report.verdict != Verdict::Fail, explained, "{}", report.explanation);
    }
}
