//! `holdfast verify`: the verdict as exit code, the story on standard output, and bad files refused with their line.

use std::path::Path;

use crate::holdfast::Desk;

/// Writes a history, and holds what `verify` says of it against an exit code and some words.
#[track_caller]
fn check(name: &str, text: &[u8], arguments: &[&str], code: i32, words: &[&str]) {
    let desk = Desk::new();
    std::fs::write(desk.path().join(name), text).expect("a file");
    let finished = desk.run(&[&["verify"], arguments, &[name]].concat());
    finished.ends_with(code);
    for word in words {
        let said = if code == 254 { &finished.stderr } else { &finished.stdout };
        assert!(said.contains(word), "`{word}` is not in\n{said}");
    }
}

const STALE: &str = "{:type :invoke, :f :write, :value 1, :process 0, :time 0}
{:type :ok, :f :write, :value 1, :process 0, :time 10}
{:type :invoke, :f :read, :value nil, :process 1, :time 20}
{:type :ok, :f :read, :value nil, :process 1, :time 30}
";

const INSERT: &str = r#"{"load":"l","client":3,"f":"ledger-insert","value":4711,"invoked_s":1.5,"completed_s":1.75,"outcome":"ok"}"#;

#[test]
fn every_history_of_the_corpora_gets_its_exit_code() {
    let desk = Desk::new();
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../histories");
    let mut seen = 0;
    for folder in
        std::fs::read_dir(corpora).expect("the corpora").map(|entry| entry.expect("an entry").path())
    {
        let Ok(histories) = std::fs::read_dir(&folder) else { continue };
        let model = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let paths = histories.map(|entry| entry.expect("an entry").path());
        // Not a corpus of lines for many histories.
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let code = match name.rsplit('-').next() {
                // No check is asked about a history that contradicts itself.
                _ if name.starts_with("ends-before-it-began") => 254,
                Some("ok") => 0,
                Some("bad") => 1,
                _ => 2,
            };
            let finished = desk.run(&["verify", "--model", &model, &path.display().to_string()]);
            finished.ends_with(code);
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn a_history_in_edn_is_known_by_its_name_or_its_beginning() {
    let words = ["register: fail", "the write of 1 by client 0 (0.000 s to 0.000 s) took effect"];
    check("history.edn", STALE.as_bytes(), &["--model", "register"], 1, &words);
    check("history", STALE.as_bytes(), &["--model", "register"], 1, &words);
    check("history", format!("; ours\n[{STALE}]").as_bytes(), &["--model", "register"], 1, &words);
    check("history", INSERT.as_bytes(), &["--model", "ledger"], 2, &["ledger: unknown"]);
}

#[test]
fn what_was_read_and_what_was_passed_over_is_said() {
    let register = ["--model", "register"];
    let wrong = "read 1 operations; skipped 1 that register does not judge: ledger-insert 1. No operation is left; for this \
                 history use --model ledger";
    check("h.jsonl", INSERT.as_bytes(), &register, 2, &["register: unknown", wrong]);
    check("h.jsonl", b"", &register, 2, &["register: unknown", "read 0 operations: the history is empty"]);
    check("h.edn", b"", &register, 2, &["register: unknown", "read 0 operations: the history is empty"]);
    let marked = format!("\u{FEFF}{INSERT}\n");
    check("h.jsonl", marked.as_bytes(), &["--model", "ledger"], 2, &["read 1 operations", "byte-order mark"]);
    let marked = format!("\u{FEFF}{STALE}");
    check("h.edn", marked.as_bytes(), &register, 1, &["register: fail", "byte-order mark"]);
    check("history", marked.as_bytes(), &register, 1, &["register: fail", "byte-order mark"]);
    check("h.edn", b"\xFF\xFE{\0", &register, 254, &["history h.edn: it is in UTF-16; write it in UTF-8"]);
    let back = STALE.replace(":time 20", ":time 5").replace(":process 1", ":process \"b\"")
        + "{:type :info, :f :kill, :process :nemesis}";
    let words = [
        "register: fail",
        "skipped 1 events of processes that are not clients",
        "times go backwards 1 times, first on line 3; the order of the events is used, not their times",
        "processes have text names: \"b\" is client 1",
    ];
    check("h.edn", back.as_bytes(), &register, 1, &words);
}

#[test]
fn a_history_is_read_from_standard_input() {
    let desk = Desk::new();
    let finished = desk.run_with_input(&["verify", "--model", "register", "-"], STALE.as_bytes());
    finished.ends_with(1);
    assert!(finished.stdout.contains("register: fail"), "{}", finished.stdout);
    let finished = desk.run_with_input(&["verify", "--model", "ledger", "-"], b"x\n");
    finished.ends_with(254);
    assert!(finished.stderr.contains("history standard input: line 1: "), "{}", finished.stderr);
}

#[test]
fn what_a_check_proves_is_explained() {
    let desk = Desk::new();
    let finished = desk.run(&["explain", "register"]);
    finished.ends_with(0);
    for words in ["proves if it passes: Every key was linearizable", "does not prove: Anything across keys"] {
        assert!(finished.stdout.contains(words), "`{words}` is not in\n{}", finished.stdout);
    }
}

#[test]
fn the_level_claimed_decides() {
    let skew = "{:type :invoke, :f :txn, :value [[:r 1 nil] [:append 2 1]], :process 0}
{:type :invoke, :f :txn, :value [[:r 2 nil] [:append 1 1]], :process 1}
{:type :ok, :f :txn, :value [[:r 1 nil] [:append 2 1]], :process 0}
{:type :ok, :f :txn, :value [[:r 2 nil] [:append 1 1]], :process 1}
{:type :invoke, :f :txn, :value [[:r 2 nil]], :process 0}
{:type :ok, :f :txn, :value [[:r 2 [1]]], :process 0}
";
    let level = |level| ["--model", "list-append", "--level", level];
    check("h.edn", skew.as_bytes(), &level("serializable"), 1, &["G2-item", "T1 comes before T2, because"]);
    check("h.edn", skew.as_bytes(), &level("repeatable-read"), 0, &["list-append: pass"]);
    check("h.edn", skew.as_bytes(), &["--model", "list-append"], 1, &["strict-serializable is claimed"]);
    check(
        "h.edn",
        skew.as_bytes(),
        &level("serialisable"),
        254,
        &["`serialisable` is not an isolation level"],
    );
    check(
        "h.edn",
        STALE.as_bytes(),
        &["--model", "register", "--level", "serializable"],
        254,
        &["leave it out"],
    );
}

#[test]
fn a_bad_file_is_refused_with_its_line() {
    let ledger = ["--model", "ledger"];
    let cut = format!("{INSERT}\n{}", &INSERT[..40]);
    check(
        "h.jsonl",
        cut.as_bytes(),
        &ledger,
        254,
        &["history h.jsonl: line 2: the file ends within the line"],
    );
    check("h.jsonl", format!("{INSERT}\nx\n").as_bytes(), &ledger, 254, &["line 2: "]);
    check(
        "h.jsonl",
        format!("{INSERT}\n{INSERT}").as_bytes(),
        &ledger,
        254,
        &["line 2: client 3 of load `l` began"],
    );
    check("h.zst", b"\x28\xB5\x2F\xFDrubbish", &ledger, 254, &["line 1: "]);
    check("h.edn", &STALE.as_bytes()[..150], &["--model", "register"], 254, &["history h.edn: line 3: "]);
    check("h.edn", STALE.as_bytes(), &["--model", "tpcb-sums"], 254, &["no form in EDN"]);
    check(
        "h.edn",
        STALE.as_bytes(),
        &["--model", "regster"],
        254,
        &["`regster` is not a model; models are bank"],
    );
    check("h.edn", STALE.as_bytes(), &["--model", "bank"], 254, &["line 2: `:write` is nothing a bank does"]);
    let desk = Desk::new();
    let finished = desk.run(&["verify", "--model", "ledger", "missing.jsonl"]);
    finished.ends_with(254);
    assert!(finished.stderr.contains("history missing.jsonl: No such file"), "{}", finished.stderr);
}
