//! Bank: money moves between accounts, and no transfer makes or loses any.
//!
//! Every read of all accounts must show the same total as at the start, every account once, and none overdrawn where that
//! is forbidden. The last read must also show each account as the transfers left it: those that were acknowledged before, and some
//! choice of those without a definite answer. A transfer that read old balances shows up in the total; one that is missing as a
//! whole, only in the last read.

use std::collections::{BTreeMap, BTreeSet};

use history::{Action, Key, Operation, Outcome, Verdict};

use crate::Check;
use crate::names::{Keys, Sessions, numbered};
use crate::open_transfers::{self, OpenTransfer};
use crate::report::Report;
use crate::soundness::{Contradiction, check_times};
use crate::story::{Story, counted, with_examples};

/// The check's name.
pub const NAME: &str = "bank";

/// Judges a whole history.
#[must_use]
pub fn check<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Report {
    let mut bank = Box::<Bank>::default();
    for operation in operations {
        bank.observe(operation);
    }
    bank.conclude()
}

/// A transfer that happened or may have happened.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    from: u32,
    to: u32,
    amount: i64,
    invoked_s: f64,
    completed_s: f64,
    outcome: Outcome,
}

/// A read of all accounts; what it found stands in `Bank::balances`.
#[derive(Debug, Clone, Copy)]
struct Read {
    invoked_s: f64,
    completed_s: f64,
    session: u32,
    first: u32,
    count: u32,
}

/// The bank check, to be fed operation by operation.
#[derive(Debug, Default)]
pub struct Bank {
    /// Balances at the start, and whether they may become negative.
    setup: Option<(BTreeMap<Key, i64>, bool)>,
    setups: usize,
    transfers: Vec<Transfer>,
    refused: usize,
    reads: Vec<Read>,
    /// What reads found, one after another: account and balance.
    balances: Vec<(u32, i64)>,
    accounts: Keys,
    sessions: Sessions,
    contradiction: Option<Contradiction>,
}

impl Check for Bank {
    fn observe(&mut self, operation: &Operation) {
        let is_about_a_bank = matches!(
            operation.action,
            Action::BankSetup { .. } | Action::BankTransfer { .. } | Action::BankRead { .. }
        );
        if !is_about_a_bank {
            return;
        }
        if let Err(contradiction) = check_times(operation) {
            self.contradiction.get_or_insert(contradiction);
            return;
        }
        match (&operation.action, operation.outcome) {
            (Action::BankSetup { balances, may_be_negative }, Outcome::Ok) => {
                self.setups += 1;
                self.setup = Some((balances.iter().cloned().collect(), *may_be_negative));
            }
            (Action::BankTransfer { .. }, Outcome::Fail) => self.refused += 1,
            (Action::BankTransfer { from, to, amount }, outcome) => {
                let transfer = Transfer {
                    from: self.accounts.number_of(from),
                    to: self.accounts.number_of(to),
                    amount: *amount,
                    invoked_s: operation.invoked_s,
                    completed_s: operation.completed_s,
                    outcome,
                };
                self.transfers.push(transfer);
            }
            (Action::BankRead { balances }, Outcome::Ok) => {
                let read = Read {
                    invoked_s: operation.invoked_s,
                    completed_s: operation.completed_s,
                    session: self.sessions.number_of(operation),
                    first: numbered(self.balances.len()),
                    count: numbered(balances.len()),
                };
                let accounts = &mut self.accounts;
                self.balances
                    .extend(balances.iter().map(|(key, balance)| (accounts.number_of(key), *balance)));
                self.reads.push(read);
            }
            _ => {}
        }
    }

    fn conclude(mut self: Box<Self>) -> Report {
        let ranks = self.sessions.ranks();
        self.reads.sort_by(|one, other| {
            (one.invoked_s.total_cmp(&other.invoked_s))
                .then(one.completed_s.total_cmp(&other.completed_s))
                .then(ranks[one.session as usize].cmp(&ranks[other.session as usize]))
        });
        let with = |outcome| self.transfers.iter().filter(|transfer| transfer.outcome == outcome).count();
        let mut report = Report::new(NAME);
        report.acknowledged = Some(with(Outcome::Ok) as u64);
        report.indeterminate = Some(with(Outcome::Unknown) as u64);
        report.count("refused", self.refused);
        report.count("reads", self.reads.len());
        report.count("accounts", self.setup.as_ref().map_or(0, |(balances, _)| balances.len()));
        (report.verdict, report.explanation) = self.judge(&mut report);
        report
    }
}

/// A transfer that may have happened: from, to and how much.
type Open<'k> = (&'k Key, &'k Key, i128);

impl Bank {
    fn judge(&self, report: &mut Report) -> (Verdict, String) {
        let mut story = Story::default();
        if let Some(contradiction) = &self.contradiction {
            story.doubt(format!("the history contradicts itself, so it proves nothing: {contradiction}"));
            return story.conclude(String::new());
        }
        if self.setups > 1 {
            story.doubt("the accounts were set up more than once, so the history proves nothing".into());
            return story.conclude(String::new());
        }
        let totals: Vec<i128> = self.reads.iter().map(|read| self.total(read)).collect();
        let wanted = match &self.setup {
            Some((balances, may_be_negative)) => {
                self.judge_accounts(balances, *may_be_negative, report, &mut story);
                Some(balances.values().map(|balance| i128::from(*balance)).sum())
            }
            None => {
                story.doubt("how the accounts were at the start is not recorded".into());
                totals.first().copied()
            }
        };
        let wrong: Vec<(&Read, i128)> =
            self.reads.iter().zip(totals).filter(|(_, total)| Some(*total) != wanted).collect();
        report.count("wrong_totals", wrong.len());
        let wanted = wanted.unwrap_or_default();
        if !wrong.is_empty() {
            let claim = format!("the total is {wanted}, but not in {}", counted(wrong.len(), "read"));
            story.fail(with_examples(&claim, &wrong, |(read, total)| {
                format!("{} found {total}", self.told(read))
            }));
        }
        if let (Some((balances, _)), Some(last)) = (&self.setup, self.reads.last()) {
            let was_right = !story.fails();
            self.judge_last(balances, last, report, &mut story);
            report.only_misses = was_right && story.fails() && self.may_lack_transfers(balances, last);
        }
        if self.reads.is_empty() {
            story.doubt("no read was acknowledged, so nothing was shown".into());
        }
        if !self.transfers.iter().any(|transfer| transfer.outcome == Outcome::Ok) {
            story.doubt("no transfer was acknowledged, so there was nothing to get wrong".into());
        }
        story.conclude(format!(
            "{} found every account and the total of {wanted}, over {}",
            counted(self.reads.len(), "read"),
            counted(self.transfers.len(), "transfer")
        ))
    }

    fn found(&self, read: &Read) -> &[(u32, i64)] {
        &self.balances[read.first as usize..(read.first + read.count) as usize]
    }

    fn total(&self, read: &Read) -> i128 {
        self.found(read).iter().map(|(_, balance)| i128::from(*balance)).sum()
    }

    fn told(&self, read: &Read) -> String {
        let client = self.sessions.told(read.session);
        format!("the read by {client} ({:.3} s to {:.3} s)", read.invoked_s, read.completed_s)
    }

    /// Whether every read found every account once, and none overdrawn.
    fn judge_accounts(
        &self,
        wanted: &BTreeMap<Key, i64>,
        may_be_negative: bool,
        report: &mut Report,
        story: &mut Story,
    ) {
        let mut incomplete = Vec::new();
        let mut overdrawn = Vec::new();
        for read in &self.reads {
            let found: Vec<&Key> =
                self.found(read).iter().map(|(account, _)| self.accounts.key(*account)).collect();
            let set: BTreeSet<&Key> = found.iter().copied().collect();
            if set.len() != found.len() || !set.iter().copied().eq(wanted.keys()) {
                incomplete.push(read);
            }
            let negative = self.found(read).iter().find(|(_, balance)| *balance < 0);
            overdrawn.extend(negative.filter(|_| !may_be_negative).map(|found| (read, *found)));
        }
        report.count("overdrawn", overdrawn.len());
        if !incomplete.is_empty() {
            let claim =
                format!("{} did not find every account exactly once", counted(incomplete.len(), "read"));
            story.fail(with_examples(&claim, &incomplete, |read| {
                format!("{} found {} of {} accounts", self.told(read), read.count, wanted.len())
            }));
        }
        if !overdrawn.is_empty() {
            let claim = format!("{} found an account overdrawn", counted(overdrawn.len(), "read"));
            story.fail(with_examples(&claim, &overdrawn, |(read, (account, balance))| {
                format!("{} found {balance} in account {}", self.told(read), self.accounts.key(*account))
            }));
        }
    }

    /// Whether the last read found every account as the transfers left it: exactly so where each has a definite answer, and otherwise
    /// as some choice of those without one leaves it.
    fn judge_last(&self, start: &BTreeMap<Key, i64>, last: &Read, report: &mut Report, story: &mut Story) {
        let mut wanted: BTreeMap<&Key, i128> =
            start.iter().map(|(key, balance)| (key, i128::from(*balance))).collect();
        let mut open = Vec::new();
        let mut how = "without a definite answer";
        for transfer in &self.transfers {
            if transfer.invoked_s > last.completed_s {
                continue;
            }
            let [from, to] = [transfer.from, transfer.to].map(|account| self.accounts.key(account));
            let amount = i128::from(transfer.amount);
            if transfer.outcome == Outcome::Ok && transfer.completed_s < last.invoked_s {
                *wanted.entry(from).or_default() -= amount;
                *wanted.entry(to).or_default() += amount;
            } else {
                if transfer.outcome == Outcome::Ok {
                    how = "without a definite answer or under way during that read";
                }
                open.push((from, to, amount));
            }
        }
        let touched: BTreeSet<&Key> = open.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        let found: BTreeMap<&Key, i128> = self
            .found(last)
            .iter()
            .map(|(account, balance)| (self.accounts.key(*account), i128::from(*balance)))
            .collect();
        let wrong: Vec<(&Key, i128, i128)> = wanted
            .iter()
            .filter(|(key, _)| !touched.contains(*key))
            .filter_map(|(key, wanted)| Some((*key, *wanted, *found.get(*key)?)))
            .filter(|(_, wanted, found)| wanted != found)
            .collect();
        report.count("wrong_at_the_end", wrong.len());
        if !wrong.is_empty() {
            let claim = format!(
                "{} is not as the acknowledged transfers left it, in {}",
                counted(wrong.len(), "account"),
                self.told(last)
            );
            story.fail(with_examples(&claim, &wrong, |(key, wanted, found)| {
                format!("account {key} holds {found} and must hold {wanted}")
            }));
        } else if touched.iter().all(|key| found.contains_key(key)) {
            let beyond = |key: &Key| found[key] - wanted.get(key).copied().unwrap_or_default();
            self.judge_open((&open, how, &touched), beyond, last, story);
        }
    }

    /// Whether some choice of all transfers, acknowledged ones too, may leave what a read found.
    fn may_lack_transfers(&self, start: &BTreeMap<Key, i64>, last: &Read) -> bool {
        let places: BTreeMap<&Key, usize> = start.keys().zip(0..).collect();
        let mut beyond: Vec<i128> = start.values().map(|balance| -i128::from(*balance)).collect();
        for (account, balance) in self.found(last) {
            let Some(place) = places.get(self.accounts.key(*account)) else { return false };
            beyond[*place] += i128::from(*balance);
        }
        let place = |account: u32| places.get(self.accounts.key(account)).copied();
        let transfers = self.transfers.iter().filter(|transfer| transfer.invoked_s <= last.completed_s);
        let placed: Option<Vec<OpenTransfer>> = transfers
            .map(|transfer| {
                let (from, to) = (place(transfer.from)?, place(transfer.to)?);
                Some(OpenTransfer { from, to, amount: i128::from(transfer.amount) })
            })
            .collect();
        placed.is_some_and(|placed| open_transfers::explain(&placed, &beyond) != Some(false))
    }

    /// Whether what the accounts that are `touched` hold beyond the acknowledged transfers can be the work of those without an answer.
    fn judge_open(
        &self,
        (open, how, touched): (&[Open<'_>], &str, &BTreeSet<&Key>),
        beyond: impl Fn(&Key) -> i128,
        last: &Read,
        story: &mut Story,
    ) {
        let places: BTreeMap<&Key, usize> = touched.iter().copied().zip(0..).collect();
        let placed = |(from, to, amount): &Open<'_>| OpenTransfer {
            from: places[*from],
            to: places[*to],
            amount: *amount,
        };
        let placed: Vec<OpenTransfer> = open.iter().map(placed).collect();
        let beyond: Vec<i128> = touched.iter().map(|key| beyond(key)).collect();
        let (transfers, accounts) = (counted(open.len(), "transfer"), counted(touched.len(), "account"));
        match open_transfers::explain(&placed, &beyond) {
            Some(true) => {}
            Some(false) => story.fail(format!(
                "{} found balances in {accounts} that the acknowledged transfers leave with no choice of the {transfers} \
                 {how}",
                self.told(last)
            )),
            None => story.doubt(format!(
                "{transfers} {how} touched {accounts}, too many to tell whether they explain what {} found",
                self.told(last)
            )),
        }
    }
}
