//! Whether some choice of the transfers without a definite answer explains what accounts hold beyond the others.
//!
//! Owns the search. An account that a single transfer touches tells by itself whether that one happened, which often settles the
//! next account; what is left falls into groups of accounts that share transfers, and each group is searched alone (`subsets`).

use crate::subsets;

/// A transfer that happened or did not: the accounts it leaves and reaches, by their places, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenTransfer {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) amount: i128,
}

impl OpenTransfer {
    /// What it changes in an account.
    fn change_of(&self, account: usize) -> i128 {
        self.amount * (i128::from(self.to == account) - i128::from(self.from == account))
    }
}

/// Whether some of these transfers, perhaps none, leave each account with what it holds beyond the others; nothing where the
/// transfers of one group are too many.
pub(crate) fn explain(transfers: &[OpenTransfer], beyond: &[i128]) -> Option<bool> {
    let mut beyond = beyond.to_vec();
    // One that moves nothing tells nothing.
    let moves = |one: &&OpenTransfer| one.from != one.to && one.amount != 0;
    let mut left: Vec<OpenTransfer> = transfers.iter().filter(moves).copied().collect();
    if !settle(&mut left, &mut beyond) {
        return Some(false);
    }
    let mut is_explained = Some(true);
    for (accounts, of_group) in groups(&left, beyond.len()) {
        let changes: Vec<Vec<i128>> = of_group
            .iter()
            .map(|one| accounts.iter().map(|account| one.change_of(*account)).collect())
            .collect();
        let wanted: Vec<i128> = accounts.iter().map(|account| beyond[*account]).collect();
        match subsets::add_up(&changes, &wanted) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => is_explained = None,
        }
    }
    is_explained
}

/// Decides the transfers of accounts that no other one touches, again and again, and takes them out. False where an account holds
/// what neither choice leaves.
fn settle(left: &mut Vec<OpenTransfer>, beyond: &mut [i128]) -> bool {
    let mut of_account = vec![Vec::new(); beyond.len()];
    for (number, one) in left.iter().enumerate() {
        of_account[one.from].push(number);
        of_account[one.to].push(number);
    }
    let mut is_open = vec![true; left.len()];
    let mut waiting: Vec<usize> = (0..beyond.len()).collect();
    while let Some(account) = waiting.pop() {
        of_account[account].retain(|number: &usize| is_open[*number]);
        match of_account[account].as_slice() {
            [] if beyond[account] != 0 => return false,
            [only] => {
                let one = left[*only];
                if beyond[account] == one.change_of(account) {
                    beyond[one.from] += one.amount;
                    beyond[one.to] -= one.amount;
                } else if beyond[account] != 0 {
                    return false;
                }
                is_open[*only] = false;
                waiting.extend([one.from, one.to]);
            }
            _ => {}
        }
    }
    let mut is_open = is_open.into_iter();
    left.retain(|_| is_open.next() == Some(true));
    true
}

/// The accounts that share transfers, directly or through others, with these transfers.
fn groups(transfers: &[OpenTransfer], accounts: usize) -> Vec<(Vec<usize>, Vec<OpenTransfer>)> {
    let mut group_of: Vec<Option<usize>> = vec![None; accounts];
    let mut groups: Vec<(Vec<usize>, Vec<OpenTransfer>)> = Vec::new();
    for one in transfers {
        let group = match (group_of[one.from], group_of[one.to]) {
            (Some(group), Some(other)) if group != other => {
                let (moved_accounts, moved) = std::mem::take(&mut groups[other]);
                for account in &moved_accounts {
                    group_of[*account] = Some(group);
                }
                groups[group].0.extend(moved_accounts);
                groups[group].1.extend(moved);
                group
            }
            (Some(group), _) | (None, Some(group)) => group,
            (None, None) => {
                groups.push((Vec::new(), Vec::new()));
                groups.len() - 1
            }
        };
        for account in [one.from, one.to] {
            if group_of[account].is_none() {
                group_of[account] = Some(group);
                groups[group].0.push(account);
            }
        }
        groups[group].1.push(*one);
    }
    groups.retain(|(_, transfers)| !transfers.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACCOUNTS: usize = 5;

    fn any_transfer() -> impl Strategy<Value = OpenTransfer> {
        (0..ACCOUNTS, 0..ACCOUNTS, 0i128..4).prop_map(|(from, to, amount)| OpenTransfer { from, to, amount })
    }

    fn left_by(transfers: &[OpenTransfer], choice: u32) -> Vec<i128> {
        let mut left = vec![0; ACCOUNTS];
        for (_, one) in transfers.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1) {
            left[one.from] -= one.amount;
            left[one.to] += one.amount;
        }
        left
    }

    proptest! {
        #[test]
        fn a_choice_is_found_where_there_is_one_and_nowhere_else(
            transfers in prop::collection::vec(any_transfer(), 0..9),
            chosen in any::<u32>(),
            changed in prop::option::of((0..ACCOUNTS, 0..ACCOUNTS, 1i128..3)),
        ) {
            let mut beyond = left_by(&transfers, chosen);
            if let Some((from, to, amount)) = changed {
                beyond[from] -= amount;
                beyond[to] += amount;
            }
            let truth = (0u32..1 << transfers.len()).any(|choice| left_by(&transfers, choice) == beyond);
            prop_assert_eq!(explain(&transfers, &beyond), Some(truth));
        }
    }

    /// Transfers from each account to the next, and what they leave where all of every other one happened.
    fn chain(accounts: usize) -> (Vec<OpenTransfer>, Vec<i128>) {
        let one = |from: usize| OpenTransfer { from, to: from + 1, amount: 7 };
        let transfers: Vec<OpenTransfer> = (0..accounts - 1).map(one).collect();
        let mut beyond = vec![0; accounts];
        for happened in transfers.iter().step_by(2) {
            beyond[happened.from] -= happened.amount;
            beyond[happened.to] += happened.amount;
        }
        (transfers, beyond)
    }

    #[test]
    fn hundreds_of_transfers_in_a_row_are_settled_one_by_the_other() {
        let (transfers, mut beyond) = chain(500);
        assert_eq!(explain(&transfers, &beyond), Some(true));
        beyond[3] += 1;
        beyond[4] -= 1;
        assert_eq!(explain(&transfers, &beyond), Some(false));
    }

    #[test]
    fn many_small_groups_are_told_and_one_large_one_is_not() {
        // Two transfers between the same two accounts: neither settles the other.
        let pair = |at: usize| [1, 2].map(|amount| OpenTransfer { from: 2 * at, to: 2 * at + 1, amount });
        let pairs: Vec<OpenTransfer> = (0..40).flat_map(pair).collect();
        assert_eq!(explain(&pairs, &vec![0; 80]), Some(true));
        let mut wrong = vec![0; 80];
        (wrong[10], wrong[11]) = (-4, 4);
        assert_eq!(explain(&pairs, &wrong), Some(false));
        let between_two = vec![OpenTransfer { from: 0, to: 1, amount: 1 }; 33];
        assert_eq!(explain(&between_two, &[0, 0]), None);
    }
}
