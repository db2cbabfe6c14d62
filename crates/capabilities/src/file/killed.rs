//! Lines of a log by which a database tells that a signal has ended one of its processes.
//!
//! Owns what such a line looks like and what it says. Whose logs are read, and what it means for a run, is others' business.

use yaml::template::{Piece, Template};

/// What the database calls the process.
pub(super) const PROCESS: &str = "process";
/// The process's number.
pub(super) const NUMBER: &str = "number";
/// The signal's number.
pub(super) const SIGNAL: &str = "signal";

/// Lines of a process's log that tell of processes which it had started and which a signal has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KilledLines {
    of: String,
    line: Template,
    own_signals: Vec<i32>,
}

/// What stands in a line for the names.
#[derive(Debug, Clone, Copy, Default)]
struct Found<'l> {
    process: &'l str,
    signal: i32,
}

impl KilledLines {
    /// Lines as `line` has it, of processes of the database `of`, which sends them these signals itself.
    ///
    /// # Errors
    /// What `line` lacks, in words.
    pub(super) fn new(of: String, line: Template, own_signals: Vec<i32>) -> Result<KilledLines, String> {
        for name in [PROCESS, SIGNAL] {
            if line.names().filter(|other| *other == name).count() != 1 {
                return Err(format!("a line that tells of a killed process has `{{{name}}}` in it once"));
            }
        }
        let pieces: Vec<Piece<'_>> = line.pieces().collect();
        if !matches!(pieces.first(), Some(Piece::Text(_))) {
            return Err("a line that tells of a killed process begins with text".to_owned());
        }
        if pieces.windows(2).any(|two| matches!(two, [Piece::Value(_), Piece::Value(_)])) {
            return Err("a line that tells of a killed process has text between its names".to_owned());
        }
        if matches!(pieces.last(), Some(Piece::Value(PROCESS))) {
            return Err("a line that tells of a killed process has text behind `{process}`".to_owned());
        }
        Ok(KilledLines { of, line, own_signals })
    }

    /// A text that every such line has in it.
    #[must_use]
    pub fn mark(&self) -> &str {
        let texts = self.line.pieces().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Value(_) => None,
        });
        texts.max_by_key(|text| text.len()).unwrap_or_default()
    }

    /// The process that a line tells of, in words, and the signal that ended it; nothing where it tells of none, or of one that
    /// the database has ended itself.
    #[must_use]
    pub fn told(&self, line: &str) -> Option<(String, i32)> {
        let pieces: Vec<Piece<'_>> = self.line.pieces().collect();
        let first = pieces.first().and_then(|piece| match piece {
            Piece::Text(text) => line.find(*text),
            Piece::Value(_) => None,
        })?;
        let found = found(&pieces, &line[first..])?;
        let is_own = self.own_signals.contains(&found.signal);
        (!is_own).then(|| (format!("{}'s {}", self.of, found.process), found.signal))
    }
}

/// What stands for the names in a text that begins as the pieces say.
fn found<'l>(pieces: &[Piece<'_>], text: &'l str) -> Option<Found<'l>> {
    let Some((piece, rest)) = pieces.split_first() else { return Some(Found::default()) };
    match *piece {
        Piece::Text(plain) => found(rest, text.strip_prefix(plain)?),
        Piece::Value(PROCESS) => {
            let Some(Piece::Text(next)) = rest.first() else { return None };
            let mut ends = text.match_indices(*next).map(|(at, _)| at).filter(|at| *at > 0);
            ends.find_map(|at| Some(Found { process: &text[..at], ..found(rest, &text[at..])? }))
        }
        Piece::Value(name) => {
            let length = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
            let (digits, behind) = text.split_at(length);
            let number: i32 = digits.parse().ok()?;
            let others = found(rest, behind)?;
            Some(if name == SIGNAL { Found { signal: number, ..others } } else { others })
        }
    }
}

#[cfg(test)]
mod tests {
    use yaml::tree;
    use yaml::{Decoder, Value};

    use super::super::language::LANGUAGE;
    use super::super::names;
    use super::*;

    fn template(line: &str) -> Template {
        let text = format!("line: {line:?}\n");
        let root = tree::read(&text, 0, 0, &LANGUAGE).unwrap_or_else(|_| panic!("{text}"));
        let Value::Map(entries) = &root.value else { panic!("{text}") };
        let mut decoder = Decoder::new(&LANGUAGE);
        let line = decoder.text(&entries[0].value, "the line").expect("text");
        let names = names::of_a_killed_process();
        Template::decode(&mut decoder, &text, &line, &names, false).expect("a template")
    }

    fn lines(line: &str) -> Result<KilledLines, String> {
        KilledLines::new("Mine".to_owned(), template(line), vec![10])
    }

    #[test]
    fn the_process_stands_before_the_first_text_behind_which_all_else_fits() {
        let lines = lines("ended: {process} ({number}) by {signal}!").expect("sound");
        let told = |line: &str| lines.told(line);
        assert_eq!(told("x ended: save (a) (12) by 9!"), Some(("Mine's save (a)".to_owned(), 9)));
        assert_eq!(told("x ended: save (12) by 10!"), None, "its own signal");
        let others =
            ["ended:  (12) by 9!", "ended: save (x) by 9!", "save (12) by 9!", "ended: save (12) by !"];
        for other in others {
            assert_eq!(told(other), None, "{other}");
        }
        assert_eq!(lines.mark(), "ended: ");
    }

    #[test]
    fn a_line_that_could_be_any_is_refused() {
        let refused = |line: &str| lines(line).expect_err(line);
        assert!(refused("ended: {process}!").contains("`{signal}` in it once"));
        assert!(refused("ended by {signal}").contains("`{process}` in it once"));
        assert!(refused("{process} ended by {signal}").contains("begins with text"));
        assert!(refused("ended: {process}{signal}").contains("text between its names"));
        assert!(refused("ended by {signal}: {process}").contains("text behind `{process}`"));
    }
}
