//! Runs that were killed, files that are damaged, directories that are none.

use std::path::Path;

use history::{Event, EventKind, Verdict};
use results::{ReadError, RunDirectory};
use tempfile::TempDir;

use crate::fixture::{self, Fixture};

fn killed(fixture: &Fixture) -> (TempDir, RunDirectory) {
    let directory = TempDir::new().expect("a temporary directory");
    fixture.write_killed(directory.path()).expect("the fixture is written");
    let run = results::read(directory.path()).expect("a killed run is read");
    (directory, run)
}

/// Appends to a file of the run, as a write that was cut off would.
fn append(directory: &Path, name: &str, rest: &str) {
    let path = directory.join(name);
    let text = std::fs::read_to_string(&path).expect("the file is there") + rest;
    std::fs::write(path, text).expect("the file is written");
}

#[test]
fn a_run_without_a_result_is_unknown_and_says_why() {
    let (_directory, run) = killed(&fixture::host_failure().cut_at(33.4));
    assert!(run.is_derived);
    assert_eq!(run.result.verdict, Verdict::Unknown);
    assert_eq!(run.result.reasons, ["the run ended without a result (killed?)"]);
    assert_eq!(run.notes, Vec::<String>::new());
}

#[test]
fn a_page_made_again_once_the_result_was_written_down_is_the_same() {
    let mut fixture = fixture::host_failure().cut_at(33.4);
    fixture.result.expectations.clear();
    let (directory, run) = killed(&fixture);
    let page = || {
        report::write(directory.path()).expect("written");
        std::fs::read_to_string(directory.path().join("report.html")).expect("a page")
    };
    let first = page();
    assert!(first.contains("The run ended before the expectations were judged."));
    let written_down = serde_json::to_string(&run.result).expect("text");
    std::fs::write(directory.path().join("result.json"), written_down).expect("written");
    assert_eq!(page(), first);
}

#[test]
fn a_run_that_failed_says_why_and_not_that_it_was_killed() {
    let mut fixture = fixture::host_failure().cut_at(33.4);
    let why = "database: n2 did not start".to_owned();
    fixture.events.push(Event { t_s: 33.4, kind: EventKind::RunFailed { why } });
    let (_directory, run) = killed(&fixture);
    assert_eq!(run.result.verdict, Verdict::Unknown);
    assert_eq!(run.result.reasons, ["the run failed: database: n2 did not start"]);
}

#[test]
fn a_killed_run_keeps_the_figures_that_can_be_had() {
    let (_directory, run) = killed(&fixture::host_failure().cut_at(33.4));
    let whole = fixture::host_failure().result;
    let (derived, recorded) = (&run.result.loads[0], &whole.loads[0]);
    let names: Vec<&str> = derived.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["warm-up", "baseline", "fault"]);
    assert_eq!(derived.phases[1].measured.transactions, recorded.phases[1].measured.transactions);
    assert_eq!(derived.phases[1].measured.throughput_per_s, recorded.phases[1].measured.throughput_per_s);
    assert_eq!(
        derived.phases[1].measured.operations["END"].count,
        recorded.phases[1].measured.operations["END"].count
    );
    assert_eq!(
        derived.phases[1].measured.latency_us.p99, 0,
        "a percentile over a phase cannot be had from seconds"
    );
    assert_eq!(derived.phases[2].to_s, 33.0);
    assert_eq!(derived.phases[2].measured.errors["unclassified"], 4 + 7 * 9);
}

#[test]
fn the_faults_of_a_killed_run_are_found_with_their_consequences() {
    let (_directory, run) = killed(&fixture::host_failure().cut_at(33.4));
    let fault = &run.result.faults[0];
    assert_eq!(fault.took_effect_s, Some(20.041));
    assert_eq!((fault.healed_s, fault.receipt.verdict), (None, Verdict::Unknown));
    assert_eq!(fault.recovery_s.first_success, Some(7.37), "the slower of the two loads");
    let back_s = fault.recovery_s.back_to_95_percent.expect("it came back before the kill");
    assert!((9.9..10.0).contains(&back_s), "{back_s}");
    let ratio = fault.throughput_ratio_during.expect("there is a baseline");
    assert!((0.35..0.45).contains(&ratio), "{ratio}");
    assert_eq!(fault.lost_writes, None);
}

#[test]
fn a_run_killed_in_its_outage_has_not_come_back() {
    let (_directory, run) = killed(&fixture::host_failure().cut_at(24.2));
    let fault = &run.result.faults[0];
    assert_eq!(fault.recovery_s.first_success, None);
    assert_eq!(fault.recovery_s.back_to_95_percent, None);
    assert_eq!(fault.throughput_ratio_during, Some(0.0));
    assert!(report::html(&run).contains("no success was seen afterwards"));
}

#[test]
fn a_load_that_had_no_success_before_the_kill_may_be_the_slowest_to_return() {
    let mut fixture = fixture::host_failure().cut_at(33.4);
    fixture
        .events
        .retain(|event| !matches!(&event.kind, EventKind::FirstSuccess { load, .. } if load == "ledger"));
    let (_directory, run) = killed(&fixture);
    assert_eq!(run.result.faults[0].recovery_s.first_success, None);
}

#[test]
fn seconds_of_which_lines_cannot_be_read_are_not_seconds_without_a_success() {
    let mut fixture = fixture::host_failure().cut_at(33.4);
    let spoilt = |line: &str| match line.starts_with("18,bank,transaction,") {
        true => "18,bank,transaction,spoilt\n".to_owned(),
        false => format!("{line}\n"),
    };
    fixture.timeline = fixture.timeline.lines().map(spoilt).collect();
    let (_directory, run) = killed(&fixture);
    let fault = &run.result.faults[0];
    assert_eq!((fault.below_50_percent_s, fault.throughput_ratio_during), (None, None));
    // A load whose last seconds were not written down is not one that stood still in them.
    let mut fixture = fixture::host_failure().cut_at(33.4);
    let is_there = |line: &&str| !line.starts_with("32,bank,");
    fixture.timeline = fixture.timeline.lines().filter(is_there).map(|line| format!("{line}\n")).collect();
    let (_directory, run) = killed(&fixture);
    let of = |name: &str| run.result.faults[0].loads.iter().find(|load| load.load == name).expect("a load");
    assert_eq!((of("bank").below_50_percent_s, of("bank").lost_operations), (None, None));
    assert!(of("ledger").below_50_percent_s.is_some());
}

#[test]
fn lines_that_were_cut_off_are_left_out_and_mentioned() {
    let (directory, before) = killed(&fixture::host_failure().cut_at(33.4));
    append(directory.path(), "events.jsonl", "{\"t_s\":33.1,\"event\":\"lead");
    append(directory.path(), "timeline.csv", "33,bank,transaction,4");
    let run = results::read(directory.path()).expect("still readable");
    assert_eq!(run.result, before.result);
    assert_eq!(run.notes.len(), 2, "{:?}", run.notes);
    let page = report::html(&run);
    for note in &run.notes {
        assert!(note.contains("is cut off and was left out") && page.contains(note.as_str()), "{note}");
    }
}

#[test]
fn an_event_of_a_later_version_is_skipped_and_mentioned() {
    let (directory, before) = killed(&fixture::host_failure());
    append(directory.path(), "events.jsonl", "{\"t_s\":62.0,\"event\":\"eclipse\"}\n");
    let run = results::read(directory.path()).expect("still readable");
    assert_eq!(run.events, before.events);
    assert!(run.notes[0].contains("1 unreadable line(s)"), "{:?}", run.notes);
}

#[test]
fn a_damaged_result_is_not_believed() {
    let directory = TempDir::new().expect("a temporary directory");
    fixture::host_failure().write(directory.path()).expect("written");
    std::fs::write(directory.path().join("result.json"), "{\"verdict\":\"pass\"").expect("written");
    let run = results::read(directory.path()).expect("still readable");
    assert_eq!(run.result.verdict, Verdict::Unknown);
    assert!(run.notes[0].starts_with("result.json: not readable"), "{:?}", run.notes);
}

#[test]
fn a_result_alone_still_gives_a_report() {
    let directory = TempDir::new().expect("a temporary directory");
    fixture::host_failure().write(directory.path()).expect("written");
    std::fs::remove_file(directory.path().join("events.jsonl")).expect("removed");
    std::fs::remove_file(directory.path().join("timeline.csv")).expect("removed");
    let run = results::read(directory.path()).expect("readable");
    assert_eq!((run.result.verdict, run.notes.len()), (Verdict::Pass, 2));
    assert!(report::html(&run).contains("nothing to draw"));
}

#[test]
fn a_directory_that_holds_no_run_is_refused_with_its_path() {
    let directory = TempDir::new().expect("a temporary directory");
    let error = results::read(directory.path()).expect_err("there is no run");
    assert!(matches!(error, ReadError::NothingKnown { .. }));
    assert!(error.to_string().contains(&directory.path().display().to_string()), "{error}");
    let missing = directory.path().join("missing");
    assert!(matches!(results::read(&missing), Err(ReadError::NotADirectory { .. })));
}

#[test]
fn a_run_that_ended_before_its_lab_was_built_is_refused_with_its_own_words() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = |t_s, kind| serde_json::to_string(&Event { t_s, kind }).expect("written") + "\n";
    let warning = |what: &str| EventKind::Warning { what: what.to_owned(), remedy: "give it".to_owned() };
    let failed = EventKind::RunFailed { why: "no /dev/net/tun".to_owned() };
    let told = |lines: &[String]| {
        std::fs::write(directory.path().join("events.jsonl"), lines.concat()).expect("written");
        let error = results::read(directory.path()).expect_err("no run to report");
        assert!(matches!(error, ReadError::EndedBeforeItsLab { .. }), "{error}");
        error.to_string().rsplit_once("nothing to report: ").expect("a reason").1.to_owned()
    };
    let warned = at(0.1, warning("no control groups"));
    assert_eq!(told(std::slice::from_ref(&warned)), "the run ended before its lab was built");
    let with_why = "the run ended before its lab was built (no /dev/net/tun)";
    assert_eq!(told(&[warned, at(0.2, failed)]), with_why);
}

#[test]
fn a_run_cut_anywhere_is_readable_or_refused_but_never_a_panic() {
    let directory = TempDir::new().expect("a temporary directory");
    let fixture = fixture::host_failure();
    fixture.write_killed(directory.path()).expect("written");
    let events = std::fs::read(directory.path().join("events.jsonl")).expect("there");
    let timeline = fixture.timeline.as_bytes();
    for step in 0..60 {
        let (events, timeline) =
            (&events[..events.len() * step / 60], &timeline[..timeline.len() * step / 60]);
        std::fs::write(directory.path().join("events.jsonl"), events).expect("written");
        std::fs::write(directory.path().join("timeline.csv"), timeline).expect("written");
        match results::read(directory.path()) {
            Ok(run) => {
                assert_eq!(run.result.verdict, Verdict::Unknown);
                assert!(report::html(&run).ends_with("</html>\n"));
            }
            Err(error) => assert!(matches!(error, ReadError::NothingKnown { .. }), "{error}"),
        }
    }
}
