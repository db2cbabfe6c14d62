//! Run directories of strangers: nothing outside of them is read or written, and nothing in them ends or holds up the reader.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::SystemTime;

use history::Verdict;
use report::export::{ExportError, Format, Rows, export};
use results::folder::Found;
use results::{ReadError, RunResult};

use crate::fixture;

fn directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fixture::host_failure().write(folder.path()).expect("written");
    folder
}

fn fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

/// Replaces a file by what `make` puts in its place; what the reader then notes of it.
fn noted(name: &str, make: impl FnOnce(&Path)) -> String {
    let folder = directory();
    let path = folder.path().join(name);
    fs::remove_file(&path).expect("removed");
    make(&path);
    let run = results::read(folder.path()).expect("readable still");
    run.notes.into_iter().find(|note| note.starts_with(name)).expect("a note")
}

#[test]
fn what_is_no_regular_file_of_the_directory_is_not_read_and_the_rest_is_told() {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    fs::write(secret.path(), "0,secret,transaction,1,0,1,1,1,1\n").expect("written");
    let link = |path: &Path| symlink(secret.path(), path).expect("a link");
    assert_eq!(
        noted("timeline.csv", link),
        "timeline.csv: not read: it is a symbolic link, not a regular file"
    );
    assert_eq!(noted("events.jsonl", fifo), "events.jsonl: not read: it is a FIFO, not a regular file");
    let folder = |path: &Path| fs::create_dir(path).expect("a folder");
    assert_eq!(noted("result.json", folder), "result.json: not read: it is a directory, not a regular file");
    let huge = |path: &Path| fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("made");
    let expected = "timeline.csv: not read: it is longer than 268435456 bytes, the most that is read";
    assert_eq!(noted("timeline.csv", huge), expected);
}

#[test]
fn a_directory_of_devices_alone_is_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["result.json", "events.jsonl", "timeline.csv", "matrix.json"] {
        symlink("/dev/zero", folder.path().join(name)).expect("a link");
    }
    assert!(matches!(results::read(folder.path()), Err(ReadError::NothingKnown { .. })));
    let told = results::matrix::read(folder.path()).expect_err("refused").to_string();
    assert_eq!(told, "matrix.json: it is a symbolic link, not a regular file");
    let told =
        export(folder.path(), Format::Csv(Rows::Operations), None, &mut Vec::new()).expect_err("refused");
    assert!(matches!(told, ExportError::Matrix { .. }), "{told}");
}

#[test]
fn a_history_that_is_a_link_is_not_exported() {
    let folder = directory();
    symlink("/dev/zero", folder.path().join("history.jsonl.zst")).expect("a link");
    let told =
        export(folder.path(), Format::Csv(Rows::Operations), None, &mut Vec::new()).expect_err("refused");
    assert!(told.to_string().contains("it is a symbolic link, not a regular file"), "{told}");
}

#[test]
fn a_result_that_says_pass_although_a_part_of_it_does_not_is_unknown_and_names_the_part() {
    let check = |change: fn(&mut RunResult), expected: Verdict, part: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut fixture = fixture::host_failure();
        change(&mut fixture.result);
        fixture.write(folder.path()).expect("written");
        let read = results::read(folder.path()).expect("readable").result;
        assert_eq!(read.verdict, expected, "{part}");
        assert!(read.reasons[0].contains(part), "{:?}", read.reasons);
        let listed = Found::read("x", folder.path(), SystemTime::now()).result.expect("a result");
        assert_eq!(listed.verdict, expected, "{part}");
    };
    let lost = |result: &mut RunResult| result.checks[0].verdict = Verdict::Fail;
    check(lost, Verdict::Unknown, "check ledger is fail");
    let missed = |result: &mut RunResult| result.expectations[2].verdict = Verdict::Unknown;
    check(missed, Verdict::Unknown, "expectation recovery is unknown");
    let unshown = |result: &mut RunResult| result.faults[0].receipt.verdict = Verdict::Fail;
    check(unshown, Verdict::Unknown, "fault 1 has no receipt");
    let failed = |result: &mut RunResult| {
        result.verdict = Verdict::Fail;
        result.checks[0].verdict = Verdict::Fail;
    };
    check(failed, Verdict::Fail, "every expectation holds");
    check(|_| (), Verdict::Pass, "every expectation holds");
}

#[test]
fn a_report_replaces_links_and_goes_through_none() {
    let folder = directory();
    let mine = tempfile::NamedTempFile::new().expect("a file");
    fs::write(mine.path(), "mine").expect("written");
    for trap in ["report.html", ".report.html.unfinished"] {
        symlink(mine.path(), folder.path().join(trap)).expect("a link");
    }
    let written = report::write(folder.path()).expect("a report");
    assert!(fs::symlink_metadata(written).expect("there").is_file());
    assert_eq!(fs::read_to_string(mine.path()).expect("readable"), "mine");
}
