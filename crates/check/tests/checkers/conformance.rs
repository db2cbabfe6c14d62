//! The conformance corpora: small histories, each with what every level's definition says of it, a line each. They are
//! for us and for whoever writes another checker.
//!
//! The files are made by this program: `HOLDFAST_WRITE_CORPUS=1 cargo test -p check conformance`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use check::list_append::Level;
use history::Verdict;

use crate::list_append_by_definition::{Truth, truths};
use crate::list_append_by_force::{agrees, may_be_unknown};
use crate::list_append_histories::history as list_append_history;
use crate::notation::{history, told};

const LIST_APPEND_LINES: usize = 2_500;
/// Of histories of which all definitions say the same, so many at most.
const ALIKE_MAX: usize = 300;
/// Why a verdict that the definition tells may be unknown, and of how many at most: so many are today.
const UNKNOWN_MAX: [(&str, usize); 3] = [
    ("a value was appended twice", 2_017),
    ("nothing was read", 2_720),
    ("the order of appends is not known", 15),
];
const LIST_APPEND_HEAD: &str = "\
# Small histories of list-append transactions, a line each: the seed it was made from; what each isolation level says of
# it; the transactions. `+` allowed, `-` forbidden, `?` not told by the definition, in this order: read-uncommitted,
# strong-session-read-uncommitted, strong-read-uncommitted, the same three of read-committed, snapshot-isolation and
# serializable (the last is strict-serializable). A transaction is `BEGIN-END CLIENT STEPS`, times in seconds, with
# `fail` or `unknown` behind it where it was refused or not answered. The definitions stand in
# crates/check/tests/checkers/list_append_by_definition.rs, the program that wrote this in conformance.rs beside it.
";

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../histories/conformance").join(name)
}

fn sign(truth: &Truth) -> char {
    match truth {
        Truth::Allowed => '+',
        Truth::Forbidden => '-',
        Truth::Undefined => '?',
    }
}

/// The seed, the signs and the history of every line.
fn lines_of(text: &str) -> impl Iterator<Item = (u64, &str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_else(|| panic!("not of a corpus: {line}"));
        (part().parse().unwrap(), part(), part())
    })
}

fn list_append_line(seed: u64) -> (String, String) {
    let operations = list_append_history(seed, 5);
    let signs: String = truths(&operations).iter().map(sign).collect();
    let line = format!("{seed} {signs} {}\n", told(&operations));
    (signs, line)
}

/// Writes the corpus anew.
fn write_list_append() {
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    let mut text = LIST_APPEND_HEAD.to_owned();
    let mut lines = 0;
    for seed in 0.. {
        let (signs, line) = list_append_line(seed);
        let alike = alike.entry(signs).or_default();
        if *alike < ALIKE_MAX {
            *alike += 1;
            lines += 1;
            text += &line;
        }
        if lines == LIST_APPEND_LINES {
            break;
        }
    }
    fs::write(corpus("list-append.txt"), text).unwrap();
}

#[test]
fn the_verdicts_of_the_list_append_corpus_are_those_of_the_definitions() {
    if std::env::var_os("HOLDFAST_WRITE_CORPUS").is_some() {
        write_list_append();
    }
    let text = fs::read_to_string(corpus("list-append.txt")).unwrap();
    assert!(text.starts_with(LIST_APPEND_HEAD));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (seed, signs, told) in lines_of(&text) {
        assert_eq!(list_append_line(seed).1, format!("{seed} {signs} {told}\n"));
        *counts.entry(signs.to_owned()).or_default() += 1;
    }
    assert_eq!(counts.values().sum::<usize>(), LIST_APPEND_LINES);
    assert!(counts.len() >= 20, "{counts:?}");
}

#[test]
fn every_line_of_the_list_append_corpus_is_judged_by_its_definition_at_every_level() {
    let text = fs::read_to_string(corpus("list-append.txt")).unwrap();
    let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
    let mut judged = 0;
    for (_, signs, told) in lines_of(&text) {
        let operations = history(&told.replace("; ", "\n"));
        for (level, sign) in Level::all().zip(signs.chars()) {
            let truth = match sign {
                '+' => Truth::Allowed,
                '-' => Truth::Forbidden,
                _ => Truth::Undefined,
            };
            let report = agrees(&operations, level, truth).unwrap_or_else(|why| panic!("{told}\n{why}"));
            judged += 1;
            if report.verdict == Verdict::Unknown && truth != Truth::Undefined {
                *unknown.entry(may_be_unknown(&operations, level).unwrap_or_default()).or_default() += 1;
            }
        }
    }
    assert_eq!(judged, 12 * LIST_APPEND_LINES);
    let most = |why: &str| UNKNOWN_MAX.iter().find(|(known, _)| *known == why).map_or(0, |(_, most)| *most);
    let beyond: Vec<_> = unknown.iter().filter(|(why, count)| **count > most(why)).collect();
    assert!(beyond.is_empty(), "{beyond:?} of {judged}");
}
