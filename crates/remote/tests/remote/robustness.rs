//! No text makes the reader panic, every refusal can be drawn, and a real shell reads quoted words as they were.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use proptest::prelude::*;
use remote::quoting;

use crate::refusals;

static SHIPPED: LazyLock<Vec<String>> =
    LazyLock::new(|| refusals::texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults/external")));

/// Reads it; if it is refused, draws the message, which reads every span.
fn try_text(text: &str) {
    match remote::read("any.yaml", text) {
        Ok(file) => {
            file.with_examples().expect("examples were looked at");
        }
        Err(rejection) => refusals::is_told_whole(&rejection),
    }
}

/// Pieces that a command file is made of, to be put in place of others.
fn pieces() -> Vec<&'static str> {
    let words = "fault: do: undo: stands: gone: run: [ ] { } {{ }} {unit} {id} \" ' # &a *a !t null ~ \u{fc} \
                 \u{1f980} true 127 -1 10s , : \\0 sh -c parameters: exit: within:";
    let others = ["- ", "\n", "  ", "\t", "kind: path", "lasts: false", "changed: true"];
    words.split(' ').chain(others).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        try_text(&text);
    }

    #[test]
    fn a_shipped_file_with_a_piece_changed_is_read_or_refused(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(pieces())), 1..4),
    ) {
        let mut text: Vec<char> = which.get(&SHIPPED).chars().collect();
        for (at, length, piece) in edits {
            let start = at.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, piece.chars());
        }
        try_text(&text.into_iter().collect::<String>());
    }
}

proptest! {
    // Each case starts a shell.
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shell_reads_quoted_words_as_they_were(
        words in prop::collection::vec("[^\\x00]{0,20}|[ '\"$`\\\\;&|<>(){}*?~#!\\n\\t=-]{0,12}", 1..6)
    ) {
        let line = format!("printf '%s\\0' {}", quoting::joined(&words));
        for shell in ["sh", "bash"] {
            let Ok(output) = Command::new(shell).args(["-c", &line]).output() else { continue };
            let read: Vec<String> = String::from_utf8(output.stdout)
                .expect("UTF-8 as it was given")
                .split_terminator('\0')
                .map(str::to_owned)
                .collect();
            prop_assert_eq!(&read, &words, "{}: {}", shell, line);
        }
    }
}
