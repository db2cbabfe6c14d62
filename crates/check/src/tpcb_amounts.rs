//! How often each amount stands in TPC-B's history, held against the transactions that had it.
//!
//! Owns the comparison. An amount is one of 10,001, so that a lost transaction is hidden only behind one without a definite
//! answer that had the same.

use std::collections::BTreeMap;

use crate::story::{Story, with_examples};

/// Transactions and rows of one amount.
#[derive(Debug, Clone, Copy, Default)]
struct OfAmount {
    acknowledged: u64,
    unanswered: u64,
    rows: u64,
}

/// What came of the comparison.
#[derive(Debug, Default)]
pub(crate) struct Amounts {
    /// Acknowledged transactions without a row, at least.
    pub(crate) lost: u64,
    /// Rows of nobody.
    pub(crate) invented: u64,
    /// Whether one without a definite answer may be there in the place of a lost one of the same amount.
    pub(crate) is_open: bool,
    /// Amounts that are lost or of nobody, in words.
    lost_told: Vec<String>,
    invented_told: Vec<String>,
}

/// Holds `rows`, the history by amount, against transactions that were acknowledged, by amount, and those without an answer.
pub(crate) fn compare(
    acknowledged: &BTreeMap<i64, u64>,
    unanswered: &[i64],
    rows: &BTreeMap<String, u64>,
) -> Amounts {
    let mut amounts: BTreeMap<String, OfAmount> = BTreeMap::new();
    for (amount, count) in acknowledged {
        amounts.entry(amount.to_string()).or_default().acknowledged += count;
    }
    for amount in unanswered {
        amounts.entry(amount.to_string()).or_default().unanswered += 1;
    }
    for (amount, count) in rows {
        amounts.entry(amount.clone()).or_default().rows += count;
    }
    let mut compared = Amounts::default();
    for (amount, OfAmount { acknowledged, unanswered, rows }) in amounts {
        let (lost, beyond) = (acknowledged.saturating_sub(rows), rows.saturating_sub(acknowledged));
        let invented = beyond.saturating_sub(unanswered);
        compared.lost = compared.lost.saturating_add(lost);
        compared.invented = compared.invented.saturating_add(invented);
        compared.is_open |= acknowledged > 0 && rows > 0 && beyond < unanswered;
        let told = || {
            format!("of {amount}, {rows} for {acknowledged} acknowledged and {unanswered} without an answer")
        };
        if lost > 0 {
            compared.lost_told.push(told());
        }
        if invented > 0 {
            compared.invented_told.push(told());
        }
    }
    compared
}

impl Amounts {
    /// Whether rows are missing or of nobody.
    pub(crate) fn is_wrong(&self) -> bool {
        self.lost > 0 || self.invented > 0
    }

    /// Tells what is wrong. So many transactions were acknowledged.
    pub(crate) fn tell(&self, acknowledged: u64, story: &mut Story) {
        let told = |told: &String| told.clone();
        if self.lost > 0 {
            let least = if self.is_open { "at least " } else { "" };
            let claim = format!(
                "{least}{} of {acknowledged} acknowledged transactions lost, by the amounts of the history's rows",
                self.lost
            );
            story.miss(with_examples(&claim, &self.lost_told, told));
        }
        if self.invented > 0 {
            let claim = format!("the history has {} rows that no transaction can have left", self.invented);
            story.fail(with_examples(&claim, &self.invented_told, told));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compared(acknowledged: &[i64], unanswered: &[i64], rows: &[i64]) -> Amounts {
        let by_amount = |amounts: &[i64]| {
            amounts.iter().fold(BTreeMap::<i64, u64>::new(), |mut counts, amount| {
                *counts.entry(*amount).or_default() += 1;
                counts
            })
        };
        let rows = by_amount(rows).into_iter().map(|(amount, count)| (amount.to_string(), count)).collect();
        compare(&by_amount(acknowledged), unanswered, &rows)
    }

    #[test]
    fn a_lost_transaction_is_found_behind_one_without_an_answer() {
        let found = compared(&[7, -40, 7], &[1000], &[7, -40, 1000]);
        assert_eq!((found.lost, found.invented, found.is_open), (1, 0, false));
        let mut story = Story::default();
        found.tell(3, &mut story);
        assert_eq!(
            story.conclude(String::new()).1,
            "1 of 3 acknowledged transactions lost, by the amounts of the history's rows: of 7, 1 for 2 acknowledged and 0 \
             without an answer"
        );
    }

    #[test]
    fn it_stays_hidden_only_behind_one_of_the_same_amount() {
        assert!(compared(&[7], &[7], &[7]).is_open);
        assert!(!compared(&[7], &[7], &[7, 7]).is_open);
        // No row of that amount is there: the lost one is seen.
        let found = compared(&[7], &[7], &[]);
        assert_eq!((found.lost, found.is_open), (1, false));
    }

    #[test]
    fn a_row_of_nobody_is_found() {
        let found = compared(&[7], &[8], &[7, 9]);
        assert_eq!((found.lost, found.invented), (0, 1));
        assert_eq!(compared(&[7], &[], &[7, 7]).invented, 1);
    }

    proptest! {
        #[test]
        fn a_database_that_loses_some_is_told_at_least_what_its_own_amounts_show(
            transactions in prop::collection::vec((-3i64..4, any::<bool>(), any::<bool>()), 0..20),
        ) {
            // Each: its amount, whether it was acknowledged, whether it is there.
            let those = |is_acknowledged: bool| -> Vec<i64> {
                transactions.iter().filter(|(_, acknowledged, _)| *acknowledged == is_acknowledged).map(|(amount, ..)| *amount).collect()
            };
            let there: Vec<i64> = transactions.iter().filter(|(.., is_there)| *is_there).map(|(amount, ..)| *amount).collect();
            let lost = transactions.iter().filter(|(_, acknowledged, is_there)| *acknowledged && !is_there).count() as u64;
            let found = compared(&those(true), &those(false), &there);
            prop_assert_eq!(found.invented, 0);
            prop_assert!(found.lost <= lost);
            prop_assert!(found.is_open || found.lost == lost);
        }
    }
}
