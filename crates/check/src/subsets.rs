//! Whether some of several changes explain a difference: of operations without a definite answer each happened or did not.
//!
//! Owns the search, which halves the changes and looks for two sums that fit (meet in the middle; Horowitz and Sahni 1974). What a
//! change is, and what follows from the answer, is each check's.

/// More changes are not tried: the time doubles with every second one.
pub(crate) const MOST_CHANGES: usize = 32;

/// Whether some of these changes, perhaps none, add up to `wanted`; nothing where there are too many. Each change has a number
/// for each of the places that `wanted` has.
pub(crate) fn add_up(changes: &[Vec<i128>], wanted: &[i128]) -> Option<bool> {
    if changes.len() > MOST_CHANGES {
        return None;
    }
    let (one, other) = changes.split_at(changes.len() / 2);
    let mut sums = sums(one, wanted.len());
    sums.sort_unstable();
    let left =
        |sum: Vec<i128>| -> Vec<i128> { wanted.iter().zip(sum).map(|(wanted, sum)| wanted - sum).collect() };
    Some(self::sums(other, wanted.len()).into_iter().any(|sum| sums.binary_search(&left(sum)).is_ok()))
}

/// What each choice of the changes adds up to.
fn sums(changes: &[Vec<i128>], places: usize) -> Vec<Vec<i128>> {
    let mut sums = vec![vec![0; places]];
    for change in changes {
        let with = |sum: &Vec<i128>| sum.iter().zip(change).map(|(sum, change)| sum + change).collect();
        let more: Vec<Vec<i128>> = sums.iter().map(with).collect();
        sums.extend(more);
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sum_is_found_where_a_choice_has_it_and_nowhere_else(
            changes in prop::collection::vec(prop::collection::vec(-3i128..4, 2), 0..9),
            wanted in prop::collection::vec(-8i128..9, 2),
        ) {
            let choices = (0u32..1 << changes.len()).map(|choice| {
                let chosen = changes.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
                chosen.fold(vec![0, 0], |sum, (_, change)| vec![sum[0] + change[0], sum[1] + change[1]])
            });
            let truth = choices.into_iter().any(|sum| sum == wanted);
            prop_assert_eq!(add_up(&changes, &wanted), Some(truth));
        }
    }

    #[test]
    fn too_many_changes_are_not_tried() {
        assert_eq!(add_up(&vec![vec![1]; MOST_CHANGES + 1], &[1]), None);
        assert_eq!(add_up(&vec![vec![1]; MOST_CHANGES], &[32]), Some(true));
        assert_eq!(add_up(&[], &[0]), Some(true));
    }
}
