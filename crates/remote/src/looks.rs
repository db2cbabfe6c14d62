//! What a machine shows: looks, and whether they showed what they should.
//!
//! Judges one look at a time. What looks before, during and after a fault mean together is `receipt`'s.

use serde::{Deserialize, Serialize};

use crate::command_file::Look;
use crate::transport::{self, Output, Transport};

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The command, as a line.
    pub command: String,
    /// What it showed.
    pub what: Sight,
}

/// Whether a look showed what it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// It did.
    Expected(Output),
    /// It showed something else.
    Otherwise(Output, Difference),
    /// It could not be made: the machine did not answer, or the program is not there or took too long.
    NotMade(String),
}

/// What was otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The exit code should have been this.
    Exit(u8),
    /// The output should have had this.
    Lacks(String),
    /// The output should not have had this.
    Has(String),
    /// The output should have been another than before.
    Unchanged,
}

/// All looks of a kind together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Each showed what it should.
    Yes,
    /// At least one showed something else.
    No,
    /// Not all could be made, and those that were showed what they should.
    Open,
}

/// The looks' common answer.
#[must_use]
pub fn answer(seen: &[Seen]) -> Answer {
    if seen.iter().any(|seen| matches!(seen.what, Sight::Otherwise(..))) {
        Answer::No
    } else if seen.is_empty() || seen.iter().any(|seen| matches!(seen.what, Sight::NotMade(_))) {
        Answer::Open
    } else {
        Answer::Yes
    }
}

/// Makes looks in order. `before` is what the same looks showed before the strike; empty before it.
pub fn look(transport: &dyn Transport, looks: &[Look], before: &[Seen]) -> Vec<Seen> {
    let one = |(number, look): (usize, &Look)| Seen {
        command: look.command.to_string(),
        what: match transport::command(transport, &look.command) {
            Ok(output) => judged(look, output, before.get(number)),
            Err(error) => Sight::NotMade(error.to_string()),
        },
    };
    looks.iter().enumerate().map(one).collect()
}

/// Exit codes of `timeout` and of shells that say nothing of what was looked at: it took too long, `timeout` itself failed,
/// the program may not be run or is not there, a signal ended it.
const SAY_NOTHING: std::ops::RangeInclusive<u8> = 124..=255;

/// Whether output is what the look should show.
#[must_use]
pub fn judged(look: &Look, output: Output, before: Option<&Seen>) -> Sight {
    if SAY_NOTHING.contains(&output.exit) {
        let text = output.text.trim();
        return Sight::NotMade(match output.exit {
            124 => format!("it did not end within {} s", look.command.within.as_secs_f64()),
            exit => format!("it ended with {exit}: {text}"),
        });
    }
    if output.is_cut && (look.lacks.is_some() || look.changed) {
        return Sight::NotMade(
            "it wrote more than is kept, and what it must lack may be in the rest".to_owned(),
        );
    }
    let difference = if output.exit != look.exit {
        Some(Difference::Exit(look.exit))
    } else if let Some(has) = look.has.as_ref().filter(|has| !output.text.contains(has.as_str())) {
        Some(Difference::Lacks(has.clone()))
    } else if let Some(lacks) = look.lacks.as_ref().filter(|lacks| output.text.contains(lacks.as_str())) {
        Some(Difference::Has(lacks.clone()))
    } else if look.changed {
        match before.map(|before| &before.what) {
            Some(Sight::Otherwise(first, Difference::Exit(_))) => {
                let words = format!("it ended with {}: {}", first.exit, first.text.trim());
                return Sight::NotMade(format!("nothing to compare with: before the strike {words}"));
            }
            Some(Sight::Expected(first) | Sight::Otherwise(first, _))
                if first.answer() != output.answer() =>
            {
                None
            }
            // Before the strike nothing has changed yet.
            Some(Sight::Expected(_) | Sight::Otherwise(..)) | None => Some(Difference::Unchanged),
            Some(Sight::NotMade(words)) => {
                return Sight::NotMade(format!("nothing to compare with: before the strike {words}"));
            }
        }
    } else {
        None
    };
    match difference {
        None => Sight::Expected(output),
        Some(difference) => Sight::Otherwise(output, difference),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::command_file::Command;

    fn look() -> Look {
        let command = Command { run: vec!["x".to_owned()], within: Duration::from_secs(1) };
        Look { command, exit: 0, has: None, lacks: None, changed: false }
    }

    fn output(exit: u8, text: &str) -> Output {
        Output { exit, text: text.to_owned(), answer_bytes: text.len(), is_cut: false }
    }

    fn seen(what: Sight) -> Seen {
        Seen { command: "x".to_owned(), what }
    }

    #[test]
    fn a_look_wants_exit_code_and_output() {
        assert!(matches!(judged(&look(), output(0, ""), None), Sight::Expected(_)));
        let differs = |look: &Look, found: Output| match judged(look, found, None) {
            Sight::Otherwise(_, difference) => difference,
            other => panic!("{other:?}"),
        };
        assert_eq!(differs(&look(), output(1, "")), Difference::Exit(0));
        let has = Look { has: Some("drop".to_owned()), ..look() };
        assert_eq!(differs(&has, output(0, "accept")), Difference::Lacks("drop".to_owned()));
        let lacks = Look { lacks: Some("drop".to_owned()), ..look() };
        assert_eq!(differs(&lacks, output(0, "drop")), Difference::Has("drop".to_owned()));
    }

    #[test]
    fn a_program_that_is_missing_or_hangs_shows_nothing() {
        let not = Look { exit: 1, ..look() };
        for exit in [124, 126, 127, 137, 255] {
            assert!(matches!(judged(&not, output(exit, ""), None), Sight::NotMade(_)), "{exit}");
        }
    }

    #[test]
    fn changed_compares_with_the_same_look_before() {
        let changed = Look { changed: true, ..look() };
        let first = seen(judged(&changed, output(0, "MainPID=7"), None));
        assert!(matches!(first.what, Sight::Otherwise(_, Difference::Unchanged)));
        assert!(matches!(judged(&changed, output(0, "MainPID=7"), Some(&first)), Sight::Otherwise(..)));
        assert!(matches!(judged(&changed, output(0, "MainPID=9"), Some(&first)), Sight::Expected(_)));
        let blind = seen(Sight::NotMade("no answer".to_owned()));
        assert!(matches!(judged(&changed, output(0, "MainPID=9"), Some(&blind)), Sight::NotMade(_)));
    }

    #[test]
    fn one_no_is_no_and_without_a_no_one_gap_leaves_it_open() {
        let yes = seen(Sight::Expected(output(0, "")));
        let no = seen(Sight::Otherwise(output(1, ""), Difference::Exit(0)));
        let open = seen(Sight::NotMade(String::new()));
        assert_eq!(answer(&[yes.clone(), yes.clone()]), Answer::Yes);
        assert_eq!(answer(&[yes.clone(), open.clone()]), Answer::Open);
        assert_eq!(answer(&[open, no, yes]), Answer::No);
        assert_eq!(answer(&[]), Answer::Open);
    }

    #[test]
    fn what_is_missing_from_the_part_that_is_kept_may_be_in_the_rest() {
        let cut = || Output { is_cut: true, ..output(0, "a long table") };
        let lacks = Look { lacks: Some("rule".to_owned()), ..look() };
        assert!(matches!(judged(&lacks, output(0, "a long table"), None), Sight::Expected(_)));
        assert!(matches!(judged(&lacks, cut(), None), Sight::NotMade(_)));
        let has = Look { has: Some("table".to_owned()), ..look() };
        assert!(matches!(judged(&has, cut(), None), Sight::Expected(_)));
    }

    #[test]
    fn what_a_program_complains_of_is_no_change_of_what_it_shows() {
        let changed = Look { changed: true, ..look() };
        let complains = |shown: &str, complaint: &str| Output {
            exit: 0,
            text: format!("{shown}{complaint}"),
            answer_bytes: shown.len(),
            is_cut: false,
        };
        let first = seen(judged(&changed, complains("uid-1", "E1125 09:00:00 metrics"), None));
        let again = judged(&changed, complains("uid-1", "E1125 09:00:01 metrics"), Some(&first));
        assert!(matches!(again, Sight::Otherwise(_, Difference::Unchanged)));
        let gone = judged(&changed, complains("", "E1125 09:00:00 metrics"), Some(&first));
        assert!(matches!(gone, Sight::Expected(_)));
    }

    #[test]
    fn what_could_not_be_asked_before_the_strike_shows_no_change_behind_it() {
        let changed = Look { changed: true, ..look() };
        let refused = seen(judged(&changed, output(1, "error: the server is currently unable"), None));
        assert!(matches!(refused.what, Sight::Otherwise(_, Difference::Exit(0))));
        let Sight::NotMade(words) = judged(&changed, output(0, "uid-1"), Some(&refused)) else {
            panic!("the same pod passes for another one");
        };
        assert!(words.contains("before the strike it ended with 1: error"), "{words}");
    }
}
