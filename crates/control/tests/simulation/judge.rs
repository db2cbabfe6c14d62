//! Whether a history of transactions that each read every list and append to some is strictly serializable.
//!
//! Since every transaction sees the whole state, the order they happened in can be read off what they saw: no search is
//! needed, and nothing is left undecided.

use std::collections::{BTreeMap, BTreeSet};

/// A transaction as its client saw it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub invoked_us: u64,
    pub completed_us: u64,
    /// The lists as they stood before its own appends; nothing when it was not acknowledged.
    pub observed: Option<Vec<Vec<i64>>>,
    /// The lists it appends to, ascending.
    pub appends_to: Vec<usize>,
    pub element: i64,
    /// Not known to have happened or not.
    pub is_unknown: bool,
}

/// Passes only a history that is strictly serializable.
pub fn strictly_serializable(history: &[Seen]) -> Result<(), String> {
    let lists = history.iter().filter_map(|seen| seen.observed.as_ref()).map(Vec::len).max().unwrap_or(0);
    let longest = longest_lists(history, lists)?;
    let by_element: BTreeMap<i64, &Seen> = history.iter().map(|seen| (seen.element, seen)).collect();
    for (number, list) in longest.iter().enumerate() {
        let distinct: BTreeSet<&i64> = list.iter().collect();
        if distinct.len() < list.len() {
            return Err(format!("list {number} has an element twice: {list:?}"));
        }
        for element in list {
            match by_element.get(element) {
                Some(seen) if seen.observed.is_some() || seen.is_unknown => {}
                Some(_) => return Err(format!("{element} was refused and is there")),
                None => return Err(format!("{element} was never appended")),
            }
        }
    }
    in_one_order(history, &longest)?;
    whole_or_not_at_all(history, &longest)
}

/// Every list as the transaction saw it that saw most of it; all others must have seen a beginning of that.
fn longest_lists(history: &[Seen], lists: usize) -> Result<Vec<Vec<i64>>, String> {
    let mut longest = vec![Vec::new(); lists];
    let observed = || history.iter().filter_map(|seen| seen.observed.as_ref());
    for (number, longest) in longest.iter_mut().enumerate() {
        let most = observed().filter_map(|lists| lists.get(number)).max_by_key(|list| list.len());
        *longest = most.cloned().unwrap_or_default();
    }
    for lists in observed() {
        for (number, list) in lists.iter().enumerate() {
            if !longest[number].starts_with(list) {
                return Err(format!("list {number} was seen as {list:?} and as {:?}", longest[number]));
            }
        }
    }
    Ok(longest)
}

/// The states seen must follow one from the other, and in the order of time where one transaction ended before another
/// began; what was acknowledged must stand right behind what it saw.
fn in_one_order(history: &[Seen], longest: &[Vec<i64>]) -> Result<(), String> {
    let mut order: Vec<(&Seen, Vec<usize>)> = history
        .iter()
        .filter_map(|seen| Some((seen, seen.observed.as_ref()?.iter().map(Vec::len).collect())))
        .collect();
    // Of those that saw the same, the one that wrote comes last: the next state is the one it made.
    order.sort_by_key(|(seen, lengths)| (lengths.iter().sum::<usize>(), !seen.appends_to.is_empty()));
    let mut latest_invoked_us = 0;
    for pair in order.windows(2) {
        let ((before, lengths_before), (after, lengths_after)) = (&pair[0], &pair[1]);
        let follows = lengths_before
            .iter()
            .zip(lengths_after)
            .enumerate()
            .all(|(list, (one, other))| one + usize::from(before.appends_to.contains(&list)) <= *other);
        if !follows {
            return Err(format!("{} and {} did not see each other", before.element, after.element));
        }
        latest_invoked_us = before.invoked_us.max(latest_invoked_us);
        if after.completed_us < latest_invoked_us {
            return Err(format!("{} ended before one began that it saw", after.element));
        }
    }
    for (seen, lengths) in order {
        for list in &seen.appends_to {
            if let Some(there) = longest[*list].get(lengths[*list])
                && *there != seen.element
            {
                return Err(format!("{there} stands where {} was acknowledged", seen.element));
            }
        }
    }
    Ok(())
}

/// Whoever saw one append of a transaction must have seen all of them.
fn whole_or_not_at_all(history: &[Seen], longest: &[Vec<i64>]) -> Result<(), String> {
    let places: Vec<BTreeMap<i64, usize>> = longest
        .iter()
        .map(|list| list.iter().enumerate().map(|(place, element)| (*element, place)).collect())
        .collect();
    for writer in history.iter().filter(|seen| seen.appends_to.len() > 1) {
        for reader in history.iter().filter_map(|seen| seen.observed.as_ref()) {
            let sees = |list: &usize| {
                places[*list].get(&writer.element).is_some_and(|place| *place < reader[*list].len())
            };
            let seen = writer.appends_to.iter().filter(|list| sees(list)).count();
            if seen != 0 && seen != writer.appends_to.len() {
                return Err(format!("{} was seen in part", writer.element));
            }
        }
    }
    Ok(())
}
