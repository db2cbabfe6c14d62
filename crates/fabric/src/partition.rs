//! Partitions on paper: which rules cut a set of places in which way. Pure.
//!
//! Each constructor gives rules for the places named and no others: who is not named sees everybody. Every place names
//! all that is inside it.

use crate::policy::{Block, Path, Rule};

/// Cuts what goes from each of one side to each of the other, and nothing that comes back.
#[must_use]
pub fn one_way(from: &[Path], to: &[Path], block: Block) -> Vec<Rule> {
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
    pairs
        // A place inside the other cannot be cut off from it.
        .filter(|(from, to)| !from.starts_with(to) && !to.starts_with(from))
        .map(|(from, to)| Rule { from: from.clone(), to: to.clone(), block: Some(block), ..Rule::default() })
        .collect()
}

/// Cuts two sides off from each other, both ways.
#[must_use]
pub fn halves(one: &[Path], other: &[Path], block: Block) -> Vec<Rule> {
    let mut rules = one_way(one, other, block);
    rules.extend(one_way(other, one, block));
    rules
}

/// Cuts one place off from all others, both ways.
#[must_use]
pub fn isolate(place: &Path, others: &[Path], block: Block) -> Vec<Rule> {
    halves(std::slice::from_ref(place), others, block)
}

/// Cuts two sides off from each other; whoever is named in neither, the bridge, sees both.
#[must_use]
pub fn bridge(bridge: &Path, one: &[Path], other: &[Path], block: Block) -> Vec<Rule> {
    let without = |side: &[Path]| side.iter().filter(|place| *place != bridge).cloned().collect::<Vec<_>>();
    halves(&without(one), &without(other), block)
}

/// Each place sees a majority, itself included, and no two see the same one: its neighbours on a ring in the order
/// given. Three places cannot form such a ring; they become a chain, whose middle is the second.
#[must_use]
pub fn ring_of_majorities(places: &[Path], block: Block) -> Vec<Rule> {
    let count = places.len();
    if count == 3 {
        return halves(&places[..1], &places[2..], block);
    }
    let neighbours_each_side = (count / 2).div_ceil(2);
    let mut rules = Vec::new();
    for (one, place) in places.iter().enumerate() {
        for (other, distant) in places.iter().enumerate() {
            let steps = one.abs_diff(other);
            if steps.min(count - steps) > neighbours_each_side {
                rules.extend(one_way(std::slice::from_ref(place), std::slice::from_ref(distant), block));
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::tests::path;

    fn places(count: usize) -> Vec<Path> {
        (1..=count).map(|number| path(&format!("r1/h{number}"))).collect()
    }

    /// Whom each place sees, by number from 1: both ways, itself included.
    fn seen(rules: &[Rule], places: &[Path]) -> Vec<BTreeSet<usize>> {
        let cut = |from: &Path, to: &Path| rules.iter().any(|rule| rule.covers(from, to));
        let sees = |one: &Path, other: &Path| !cut(one, other) && !cut(other, one);
        let seen_by =
            |one: &Path| (1..=places.len()).filter(|number| sees(one, &places[number - 1])).collect();
        places.iter().map(seen_by).collect()
    }

    fn check(rules: &[Rule], expected: &[&[usize]]) {
        let places = places(expected.len());
        let expected: Vec<BTreeSet<usize>> =
            expected.iter().map(|seen| seen.iter().copied().collect()).collect();
        assert_eq!(seen(rules, &places), expected);
    }

    #[test]
    fn an_isolated_place_sees_only_itself() {
        let all = places(3);
        check(&isolate(&all[0], &all, Block::BlackHole), &[&[1], &[2, 3], &[2, 3]]);
    }

    #[test]
    fn halves_see_their_own_side() {
        let all = places(4);
        check(&halves(&all[..2], &all[2..], Block::BlackHole), &[&[1, 2], &[1, 2], &[3, 4], &[3, 4]]);
    }

    #[test]
    fn one_way_cuts_one_direction() {
        let all = places(2);
        let rules = one_way(&all[..1], &all[1..], Block::Reset);
        assert!(rules.iter().any(|rule| rule.covers(&all[0], &all[1])));
        assert!(!rules.iter().any(|rule| rule.covers(&all[1], &all[0])));
    }

    #[test]
    fn the_bridge_sees_both_sides() {
        let all = places(5);
        let rules = bridge(&all[2], &all[..3], &all[2..], Block::BlackHole);
        check(&rules, &[&[1, 2, 3], &[1, 2, 3], &[1, 2, 3, 4, 5], &[3, 4, 5], &[3, 4, 5]]);
    }

    #[test]
    fn on_a_ring_each_sees_a_majority_of_its_own() {
        let five = places(5);
        let rules = ring_of_majorities(&five, Block::BlackHole);
        check(&rules, &[&[5, 1, 2], &[1, 2, 3], &[2, 3, 4], &[3, 4, 5], &[4, 5, 1]]);
        for count in 4..=12 {
            let places = places(count);
            let seen = seen(&ring_of_majorities(&places, Block::BlackHole), &places);
            assert!(
                seen.iter().all(|seen| seen.len() > count / 2 && seen.len() < count),
                "{count}: {seen:?}"
            );
            assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), count, "{count}: the same majority twice");
        }
    }

    #[test]
    fn three_places_become_a_chain() {
        let three = places(3);
        check(&ring_of_majorities(&three, Block::BlackHole), &[&[1, 2], &[1, 2, 3], &[2, 3]]);
    }

    #[test]
    fn a_place_is_not_cut_off_from_what_is_inside_it() {
        assert_eq!(isolate(&path("r1"), &[path("r1/h1")], Block::BlackHole), []);
    }
}
