//! TPC-B sums: every transaction adds one amount to an account, a teller, a branch and the history, or to
//! none of them.
//!
//! So at the end the four sums are equal, and the history has a row for every acknowledged transaction, at
//! most one for each without a definite answer, and none for others. All loads are taken together: they work
//! on the same tables. The tables must start with all sums at 0 and no history, as they are made.
//!
//! Rows carry no name of the transaction that wrote them. Where the final read tells how often each amount is there,
//! transactions are told apart by their amounts (`tpcb_amounts`). Otherwise losses can only be counted, and not always:
//! - fewer rows than acknowledged transactions: at least the difference is lost;
//! - nothing is lost is only said where it is proved: the sums agree, and the rows leave no room for a lost
//!   transaction whose place was taken by one without a definite answer. That is so where every transaction
//!   without one is there too (or there is none), and where only one can be missing and no acknowledged
//!   transaction has the amount that is missing. It rests on refused transactions having left nothing;
//! - otherwise the number is left open, even where the verdict is a pass.

use std::collections::BTreeMap;

use history::{Action, Operation, Outcome};

use crate::Check;
use crate::report::Report;
use crate::rows_read::Reading;
use crate::story::{Story, counted};
use crate::subsets;
use crate::tpcb_amounts::{self, Amounts};

/// The check's name.
pub const NAME: &str = "tpcb-sums";

/// Judges a whole history.
#[must_use]
pub fn check<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Report {
    let mut sums = Box::<TpcbSums>::default();
    for operation in operations {
        sums.observe(operation);
    }
    sums.conclude()
}

#[derive(Debug, Clone, Copy)]
struct FinalRead {
    began_s: f64,
    accounts: i64,
    tellers: i64,
    branches: i64,
    history: i64,
    history_rows: u64,
}

/// The TPC-B check, to be fed operation by operation.
#[derive(Debug, Default)]
pub struct TpcbSums {
    acknowledged: usize,
    acknowledged_sum: i128,
    /// How many acknowledged transactions had each amount.
    acknowledged_amounts: BTreeMap<i64, u64>,
    last_acknowledged_s: Option<f64>,
    refused: usize,
    /// Amounts of transactions without a definite answer.
    indeterminate: Vec<i64>,
    read: Option<FinalRead>,
    /// How often each amount is there.
    amounts: Reading,
}

impl Check for TpcbSums {
    fn observe(&mut self, operation: &Operation) {
        match (&operation.action, operation.outcome) {
            (Action::TpcbTransaction { delta }, Outcome::Ok) => {
                self.acknowledged += 1;
                self.acknowledged_sum += i128::from(*delta);
                *self.acknowledged_amounts.entry(*delta).or_default() += 1;
                let last_s = self.last_acknowledged_s.unwrap_or(f64::NEG_INFINITY);
                self.last_acknowledged_s = Some(last_s.max(operation.completed_s));
            }
            (Action::TpcbTransaction { .. }, Outcome::Fail) => self.refused += 1,
            (Action::TpcbTransaction { delta }, Outcome::Unknown) => self.indeterminate.push(*delta),
            (Action::TpcbRead { accounts, tellers, branches, history, history_rows }, Outcome::Ok) => {
                self.read = Some(FinalRead {
                    began_s: operation.invoked_s,
                    accounts: *accounts,
                    tellers: *tellers,
                    branches: *branches,
                    history: *history,
                    history_rows: *history_rows,
                });
            }
            (Action::RowsRead { kind, rows, complete }, outcome) if kind == Action::TPCB_AMOUNTS => {
                self.amounts.observe(outcome, kind, rows, *complete);
            }
            _ => {}
        }
    }

    fn conclude(mut self: Box<Self>) -> Report {
        self.indeterminate.sort_unstable();
        let mut report = Report::new(NAME);
        report.acknowledged = Some(self.acknowledged as u64);
        report.indeterminate = Some(self.indeterminate.len() as u64);
        report.lost = self.lost();
        report.count("refused", self.refused);
        if let Some(read) = self.read {
            for (name, sum) in read.sums() {
                report.counts.insert(format!("{name}_sum"), sum);
            }
            let rows = i64::try_from(read.history_rows).unwrap_or(i64::MAX);
            report.counts.insert("history_rows".into(), rows);
        }
        let (story, otherwise) = self.judge();
        report.conclude(story, otherwise);
        report
    }
}

impl FinalRead {
    fn sums(&self) -> [(&'static str, i64); 4] {
        [
            ("accounts", self.accounts),
            ("tellers", self.tellers),
            ("branches", self.branches),
            ("history", self.history),
        ]
    }
}

impl TpcbSums {
    fn judge(&self) -> (Story, String) {
        let mut story = Story::default();
        let Some(read) = self.read else {
            story.doubt("there is no final read, so it is not known what is there".into());
            return (story, String::new());
        };
        if self.acknowledged == 0 {
            story.doubt("no transaction was acknowledged, so there was nothing to lose".into());
        }
        let sums = read.sums();
        if sums.iter().any(|(_, sum)| *sum != read.history) {
            let sums = sums.map(|(name, sum)| format!("{name} {sum}")).join(", ");
            story.fail(format!("the sums differ, so a transaction took effect in part: {sums}"));
        }
        match self.acknowledged_after(&read) {
            Some(last_s) => story.doubt(format!(
                "the final read began at {:.3} s, before the last acknowledgement at {last_s:.3} s, so \
                it does not show whether all transactions are there",
                read.began_s
            )),
            None => self.judge_rows(&read, &mut story),
        }
        let open = match (self.lost(), self.by_amount(&read)) {
            (Some(_), _) => "",
            (None, Some(_)) => ", one of which may have replaced a lost one of the same amount",
            (None, None) => ", one of which may have replaced a lost one",
        };
        let otherwise = format!(
            "accounts, tellers, branches and history all add up to {}; the history has {} for {} \
            acknowledged and {} without a definite answer{open}",
            read.history,
            counted(usize::try_from(read.history_rows).unwrap_or(usize::MAX), "row"),
            counted(self.acknowledged, "transaction"),
            self.indeterminate.len()
        );
        (story, otherwise)
    }

    /// When a transaction was acknowledged after the final read had begun: such ones may be in it or not.
    fn acknowledged_after(&self, read: &FinalRead) -> Option<f64> {
        self.last_acknowledged_s.filter(|last_s| *last_s > read.began_s)
    }

    /// The history held against the transactions amount by amount; `None` where the amounts were not read, or not with the rows.
    fn by_amount(&self, read: &FinalRead) -> Option<Amounts> {
        let rows = self.amounts.found().get(Action::TPCB_AMOUNTS)?;
        let are_all = rows.values().sum::<u64>() == read.history_rows;
        are_all.then(|| tpcb_amounts::compare(&self.acknowledged_amounts, &self.indeterminate, rows))
    }

    /// How many acknowledged transactions are lost, at least: absent where none is known to be lost and it is
    /// not proved either that none is.
    fn lost(&self) -> Option<u64> {
        let read = self.read.filter(|read| self.acknowledged_after(read).is_none())?;
        let acknowledged = self.acknowledged as u64;
        let by_amount = self.by_amount(&read);
        if let Some(amounts) = by_amount.as_ref().filter(|amounts| amounts.lost > 0) {
            return Some(amounts.lost);
        }
        let Some(extra) = read.history_rows.checked_sub(acknowledged) else {
            return Some(acknowledged - read.history_rows);
        };
        let missing = (self.indeterminate.len() as u64).checked_sub(extra)?;
        if read.sums().iter().any(|(_, sum)| *sum != read.history) {
            return None;
        }
        if by_amount.is_some_and(|amounts| !amounts.is_open) {
            return Some(0);
        }
        // Of the transactions that count, as many are missing, with amounts that add up to this.
        let indeterminate_sum = self.indeterminate.iter().map(|amount| i128::from(*amount)).sum::<i128>();
        let missing_sum = self.acknowledged_sum + indeterminate_sum - i128::from(read.history);
        let is_proved = match missing {
            0 => missing_sum == 0,
            1 => i64::try_from(missing_sum).is_ok_and(|amount| {
                self.indeterminate.binary_search(&amount).is_ok()
                    && !self.acknowledged_amounts.contains_key(&amount)
            }),
            _ => false,
        };
        is_proved.then_some(0)
    }

    /// Holds the history's rows, their number and their sum against what the transactions can have left.
    fn judge_rows(&self, read: &FinalRead, story: &mut Story) {
        if let Some(amounts) = self.by_amount(read).filter(Amounts::is_wrong) {
            return amounts.tell(self.acknowledged as u64, story);
        }
        if self.by_amount(read).is_none() && self.amounts.found().contains_key(Action::TPCB_AMOUNTS) {
            story.doubt("the amounts of the history's rows were read at another moment than its rows".into());
        }
        let (rows, acknowledged) = (u128::from(read.history_rows), self.acknowledged as u128);
        let indeterminate = self.indeterminate.len() as u128;
        let Some(extra) = rows.checked_sub(acknowledged) else {
            let among = match indeterminate {
                0 => String::new(),
                _ => format!(", some of which may be of {indeterminate} without a definite answer"),
            };
            story.miss(format!(
                "at least {} of {acknowledged} acknowledged transactions lost: the history has {rows} rows{among}",
                acknowledged - rows
            ));
            return;
        };
        if extra > indeterminate {
            story.fail(format!(
                "the history has {rows} rows, {} more than the {acknowledged} acknowledged transactions \
                and the {indeterminate} without a definite answer can have left",
                extra - indeterminate
            ));
            return;
        }
        let extra = usize::try_from(extra).unwrap_or(usize::MAX);
        let wanted = i128::from(read.history) - self.acknowledged_sum;
        if !can_leave(&self.indeterminate, extra, wanted) {
            let others = match extra {
                0 => "its rows leave room for no others".to_owned(),
                _ => format!(
                    "no {extra} of the {indeterminate} without a definite answer make up the difference of {wanted}"
                ),
            };
            story.fail(format!(
                "the history adds up to {}, the {acknowledged} acknowledged transactions to {}, and \
                {others}: some are lost and others added, or amounts are wrong",
                read.history, self.acknowledged_sum
            ));
        }
    }
}

/// Whether exactly `count` of these amounts, sorted, can add up to `wanted`. Exact where they are few; where they are many, nearly
/// every sum within the bounds can be reached.
fn can_leave(sorted: &[i64], count: usize, wanted: i128) -> bool {
    can_add_up(sorted, count, wanted) && {
        let changes: Vec<Vec<i128>> = sorted.iter().map(|amount| vec![1, i128::from(*amount)]).collect();
        subsets::add_up(&changes, &[count as i128, wanted]).unwrap_or(true)
    }
}

/// Whether exactly `count` of these amounts, sorted, can add up to `wanted`. Exact for none, one, all but one
/// and all of them; otherwise the smallest and the largest sums are its bounds, so that `false` is always
/// right.
fn can_add_up(sorted: &[i64], count: usize, wanted: i128) -> bool {
    let sum = |amounts: &[i64]| amounts.iter().map(|amount| i128::from(*amount)).sum::<i128>();
    let is_among =
        |amount: i128| i64::try_from(amount).is_ok_and(|amount| sorted.binary_search(&amount).is_ok());
    let (length, all) = (sorted.len(), sum(sorted));
    if count > length {
        return false;
    }
    if count == 1 {
        return is_among(wanted);
    }
    if count + 1 == length {
        return is_among(all - wanted);
    }
    (sum(&sorted[..count])..=sum(&sorted[length - count..])).contains(&wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{can_add_up, can_leave};

    /// By trying every subset.
    fn really_adds_up(amounts: &[i64], count: usize, wanted: i128) -> bool {
        (0u32..1 << amounts.len()).filter(|subset| subset.count_ones() as usize == count).any(|subset| {
            let chosen = amounts.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
            chosen.map(|(_, amount)| i128::from(*amount)).sum::<i128>() == wanted
        })
    }

    proptest! {
        #[test]
        fn a_sum_that_can_be_reached_is_never_called_impossible(
            mut amounts in prop::collection::vec(-9i64..9, 0..8),
            count in 0usize..9,
            wanted in -40i128..40,
        ) {
            amounts.sort_unstable();
            let truth = really_adds_up(&amounts, count, wanted);
            prop_assert!(!truth || can_add_up(&amounts, count, wanted));
            prop_assert_eq!(can_leave(&amounts, count, wanted), truth);
            if count <= 1 || count + 1 >= amounts.len() {
                prop_assert_eq!(can_add_up(&amounts, count, wanted), truth);
            }
        }
    }
}
