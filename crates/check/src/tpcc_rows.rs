//! The rows that TPC-C's orders and payments left, held against who asked for them.
//!
//! Owns what was asked, row by row, and the comparison with the rows found in the end. Rows have names that tell whose they are
//! (see the workload), so each lost one is known by itself. Where a history has no names, from before there were any, rows are
//! only counted, and losses only as far as transactions without a definite answer cannot stand in their place.

use std::collections::BTreeMap;

use history::{Action, Operation, Outcome};

use crate::story::{Story, counted, with_examples};

/// Transactions that leave a row: the kind, the name of the rows' count, what the row is.
pub(crate) const KINDS: [(&str, &str, &str); 2] =
    [("NEW-ORDER", "orders", "order"), ("PAYMENT", "payments", "history row")];

/// A transaction that asked for a row.
#[derive(Debug)]
struct Asked {
    client: u64,
    completed_s: f64,
    node: Option<String>,
}

/// Who asked for rows of one kind.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// By the row's name.
    acknowledged: BTreeMap<String, Vec<Asked>>,
    unanswered: BTreeMap<String, u64>,
    acknowledged_unnamed: u64,
    unanswered_unnamed: u64,
}

impl Wanted {
    /// Takes in a transaction of this kind that was not rolled back at its own wish.
    pub(crate) fn observe(&mut self, operation: &Operation) {
        let Action::Transaction { row, .. } = &operation.action else { return };
        match (operation.outcome, row) {
            (Outcome::Fail, _) => {}
            (Outcome::Ok, Some(row)) => {
                let Operation { client, completed_s, node, .. } = operation;
                let asked = Asked { client: *client, completed_s: *completed_s, node: node.clone() };
                self.acknowledged.entry(row.clone()).or_default().push(asked);
            }
            (Outcome::Ok, None) => self.acknowledged_unnamed += 1,
            (Outcome::Unknown, Some(row)) => *self.unanswered.entry(row.clone()).or_default() += 1,
            (Outcome::Unknown, None) => self.unanswered_unnamed += 1,
        }
    }

    /// What all of these asked for together.
    pub(crate) fn together(all: impl Iterator<Item = Wanted>) -> Wanted {
        all.fold(Wanted::default(), |mut sum, of_load| {
            for (row, asked) in of_load.acknowledged {
                sum.acknowledged.entry(row).or_default().extend(asked);
            }
            for (row, count) in of_load.unanswered {
                *sum.unanswered.entry(row).or_default() += count;
            }
            sum.acknowledged_unnamed += of_load.acknowledged_unnamed;
            sum.unanswered_unnamed += of_load.unanswered_unnamed;
            sum
        })
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.values().map(|asked| asked.len() as u64).sum::<u64>() + self.acknowledged_unnamed
    }

    fn unanswered(&self) -> u64 {
        self.unanswered.values().sum::<u64>() + self.unanswered_unnamed
    }
}

/// What came of the comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) lost: u64,
    pub(crate) invented: u64,
    /// Some may be lost beyond those, with others in their place.
    pub(crate) is_open: bool,
    /// Rows of before the run are missing, or there are more of them than were loaded.
    pub(crate) loaded_differ: bool,
    /// What is there, where nothing is wrong.
    pub(crate) told: String,
}

/// A kind of row: the transaction that leaves it and what it is.
type Kind<'a> = (&'a str, &'a str);

/// Holds rows against those who asked: by their names where they have any, otherwise by `there`, their number beyond those
/// that were loaded.
pub(crate) fn compare(
    kind: Kind<'_>,
    wanted: &Wanted,
    found: Option<&BTreeMap<String, u64>>,
    there: i64,
    story: &mut Story,
) -> Compared {
    match found {
        Some(found) if wanted.acknowledged_unnamed == 0 => by_name(kind, wanted, found, there, story),
        None if !wanted.acknowledged.is_empty() => {
            story.doubt(format!("the {}s were not read whole, so it is not known which are there", kind.1));
            Compared { is_open: true, ..by_number(kind, wanted, there, story) }
        }
        _ => by_number(kind, wanted, there, story),
    }
}

fn by_name(
    (kind, what): Kind<'_>,
    wanted: &Wanted,
    found: &BTreeMap<String, u64>,
    there: i64,
    story: &mut Story,
) -> Compared {
    let acknowledged = wanted.acknowledged();
    let mut compared = Compared::default();
    let mut lost: Vec<(&str, &Asked)> = Vec::new();
    for (name, asked) in &wanted.acknowledged {
        let there = found.get(name).copied().unwrap_or(0);
        let missing = asked.len().saturating_sub(usize::try_from(there).unwrap_or(usize::MAX));
        lost.extend(asked.iter().rev().take(missing).map(|asked| (name.as_str(), asked)));
        let unanswered = wanted.unanswered.get(name).copied().unwrap_or(0);
        let beyond = there.saturating_sub(asked.len() as u64);
        compared.is_open |= missing == 0 && beyond < unanswered;
    }
    let (mut unasked, mut happened): (Vec<(&str, u64)>, u64) = (Vec::new(), 0);
    for (name, there) in found {
        let asked = wanted.acknowledged.get(name).map_or(0, |asked| asked.len() as u64);
        let beyond = there.saturating_sub(asked);
        let explained = beyond.min(wanted.unanswered.get(name).copied().unwrap_or(0));
        happened += explained;
        if beyond > explained {
            unasked.push((name.as_str(), beyond - explained));
        }
    }
    let of_nobody = unasked.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    happened += of_nobody.min(wanted.unanswered_unnamed);
    compared.invented = of_nobody.saturating_sub(wanted.unanswered_unnamed);
    compared.lost = lost.len() as u64;
    lost.sort_by(|one, other| one.1.completed_s.total_cmp(&other.1.completed_s));
    if !lost.is_empty() {
        let claim = format!("{} of {acknowledged} acknowledged {kind} transactions lost", lost.len());
        story.miss(with_examples(&claim, &lost, |(name, Asked { client, completed_s, node })| {
            let by_node = node.as_ref().map_or(String::new(), |node| format!(" by {node}"));
            format!("{what} {name} by client {client} was acknowledged at {completed_s:.3} s{by_node}")
        }));
    }
    if compared.invented > 0 {
        let invented = usize::try_from(compared.invented).unwrap_or(usize::MAX);
        let claim = format!("{} there that no {kind} transaction can have left", counted(invented, what));
        story.fail(with_examples(&claim, &unasked, |(name, _)| (*name).to_owned()));
    }
    let of_run: i128 = found.values().map(|count| i128::from(*count)).sum();
    let loaded_missing = of_run - i128::from(there);
    if loaded_missing != 0 {
        compared.loaded_differ = true;
        let (count, more) =
            (loaded_missing.unsigned_abs(), if loaded_missing < 0 { "more" } else { "fewer" });
        story.fail(format!("there are {count} {more} {what}s of before the run than were loaded"));
    }
    compared.told = format!(
        "; each of {acknowledged} acknowledged {kind} transactions left its {what}, and {happened} of {} without a definite \
         answer did{}",
        wanted.unanswered(),
        may_replace(compared.is_open)
    );
    compared
}

fn may_replace(is_so: bool) -> &'static str {
    if is_so { ", which may have replaced lost ones" } else { "" }
}

fn by_number((kind, what): Kind<'_>, wanted: &Wanted, there: i64, story: &mut Story) -> Compared {
    let (acknowledged, unanswered) = (wanted.acknowledged(), wanted.unanswered());
    let beyond = i128::from(there) - i128::from(acknowledged);
    let mut compared = Compared::default();
    let clamped = |count: i128| u64::try_from(count).unwrap_or(0);
    if beyond < 0 {
        compared.lost = clamped(-beyond);
        story.miss(format!(
            "at least {} of {acknowledged} acknowledged {kind} transactions lost: they left {there} {what}s",
            -beyond
        ));
    } else if beyond > i128::from(unanswered) {
        compared.invented = clamped(beyond - i128::from(unanswered));
        story.fail(format!(
            "there are {there} {what}s, {} more than {acknowledged} acknowledged {kind} transactions and {unanswered} \
             without a definite answer can have left",
            compared.invented
        ));
    }
    // Where one without an answer is missing, it may as well be there in the place of one that is lost.
    compared.is_open = beyond < i128::from(unanswered);
    compared.told = format!(
        "; {there} {what}s for {acknowledged} acknowledged {kind} transactions and {unanswered} without a definite answer{}",
        may_replace(compared.is_open && beyond >= 0)
    );
    compared
}

#[cfg(test)]
mod tests {
    use history::Verdict;
    use proptest::prelude::*;

    use super::*;
    use crate::rows_read::Reading;

    /// A NEW-ORDER for this row.
    fn asked(row: Option<&str>, outcome: Outcome) -> Operation {
        let (name, row) = ("NEW-ORDER".into(), row.map(str::to_owned));
        Operation {
            load: "tpcc".to_owned(),
            client: 3,
            action: Action::Transaction { name, rolled_back: false, row },
            invoked_s: 1.0,
            completed_s: 1.5,
            outcome,
            error: None,
            node: Some("n1".to_owned()),
        }
    }

    /// What is found out about rows of these names: `a` acknowledged, `a?` without an answer, `?` without an answer or a name.
    fn compared(words: &str, found: &[(&str, u64)], there: i64) -> (Compared, Verdict, String) {
        let mut wanted = Wanted::default();
        for word in words.split_whitespace() {
            let outcome = if word.ends_with('?') { Outcome::Unknown } else { Outcome::Ok };
            let row = word.trim_end_matches('?');
            wanted.observe(&asked((!row.is_empty()).then_some(row), outcome));
        }
        let mut reading = Reading::default();
        let rows: Vec<(String, u64)> = found.iter().map(|(row, count)| ((*row).to_owned(), *count)).collect();
        let (one, other) = rows.split_at(rows.len() / 2);
        reading.observe(Outcome::Ok, "NEW-ORDER", one, false);
        reading.observe(Outcome::Ok, "NEW-ORDER", other, true);
        let found = reading.found();
        let mut story = Story::default();
        let compared = compare(("NEW-ORDER", "order"), &wanted, found.get("NEW-ORDER"), there, &mut story);
        let (verdict, explanation) = story.conclude(compared.told.clone());
        (compared, verdict, explanation)
    }

    #[track_caller]
    fn holds(words: &str, found: &[(&str, u64)], there: i64, expected: (u64, u64, bool), told: &str) {
        let (compared, verdict, explanation) = compared(words, found, there);
        let (lost, invented, _) = expected;
        assert_eq!((compared.lost, compared.invented, compared.is_open), expected, "{explanation}");
        let wrong = lost > 0 || invented > 0 || compared.loaded_differ;
        assert_eq!(verdict, if wrong { Verdict::Fail } else { Verdict::Pass }, "{explanation}");
        assert!(explanation.contains(told), "{explanation}");
    }

    #[test]
    fn every_row_is_there_once() {
        holds("a b", &[("a", 1), ("b", 1)], 2, (0, 0, false), "each of 2 acknowledged");
    }

    #[test]
    fn a_lost_row_is_named_although_one_without_an_answer_is_there() {
        let told = "1 of 2 acknowledged NEW-ORDER transactions lost: order b by client 3 was acknowledged at 1.500 s by n1";
        holds("a b c?", &[("a", 1), ("c", 1)], 2, (1, 0, false), told);
    }

    #[test]
    fn what_has_no_answer_may_be_there_or_not() {
        holds("a b?", &[("a", 1)], 1, (0, 0, false), "0 of 1 without");
        holds("a b?", &[("a", 1), ("b", 1)], 2, (0, 0, false), "1 of 1 without");
        // How far one came that lost its connection is not known: any row may be its.
        holds("a ?", &[("a", 1), ("b", 1)], 2, (0, 0, false), "1 of 1 without");
        holds("a ?", &[("a", 1), ("b", 1), ("c", 1)], 3, (0, 1, false), "1 order there that no");
    }

    #[test]
    fn a_row_that_nobody_asked_for_and_a_row_there_twice_are_invented() {
        holds("a", &[("a", 1), ("x", 1)], 2, (0, 1, false), ": x");
        holds("a", &[("a", 2)], 2, (0, 1, false), ": a");
        let most = [("x", u64::MAX), ("x", u64::MAX), ("y", u64::MAX), ("a", 1)];
        holds("a", &most, i64::MAX, (0, u64::MAX, false), ": x");
    }

    #[test]
    fn a_number_given_twice_has_two_rows_or_one_of_them_is_lost() {
        holds("a a", &[("a", 2)], 2, (0, 0, false), "");
        holds("a a", &[("a", 1)], 1, (1, 0, false), "1 of 2 acknowledged");
        holds("a a?", &[("a", 1)], 1, (0, 0, true), "may have replaced");
        holds("a a?", &[("a", 2)], 2, (0, 0, false), "");
    }

    #[test]
    fn loaded_rows_that_are_gone_fail() {
        holds("a", &[("a", 1)], -2, (0, 0, false), "3 fewer orders of before the run");
        holds("a", &[("a", 1)], 2, (0, 0, false), "1 more orders of before the run");
    }

    proptest! {
        #[test]
        fn a_database_that_loses_some_acknowledged_rows_is_told_how_many(
            rows in prop::collection::vec((any::<bool>(), any::<bool>()), 0..12),
        ) {
            // Each row: whether it was acknowledged, and whether it is there.
            let name = |at: usize| format!("r{at}");
            let words: Vec<String> = rows.iter().enumerate()
                .map(|(at, (is_acknowledged, _))| if *is_acknowledged { name(at) } else { format!("{}?", name(at)) })
                .collect();
            let there: Vec<String> = (0..rows.len()).filter(|at| rows[*at].1).map(name).collect();
            let found: Vec<(&str, u64)> = there.iter().map(|name| (name.as_str(), 1)).collect();
            let lost = rows.iter().filter(|(is_acknowledged, is_there)| *is_acknowledged && !is_there).count() as u64;
            let (compared, verdict, _) = compared(&words.join(" "), &found, there.len() as i64);
            prop_assert_eq!((compared.lost, compared.invented, compared.is_open), (lost, 0, false));
            prop_assert_eq!(verdict == Verdict::Fail, lost > 0);
        }
    }
}
