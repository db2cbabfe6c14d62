//! Whether several nodes lead at once.
//!
//! Owns how often they are looked at before that is believed. Who can ask them is the target.

use std::collections::BTreeSet;
use std::time::Duration;

/// Between the two looks.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// The nodes that lead, where several do: each said so at two looks, for the lead may pass on during one.
pub(crate) fn several_leaders(
    mut look: impl FnMut() -> BTreeSet<String>,
    between: Duration,
) -> BTreeSet<String> {
    let seen = look();
    if seen.len() < 2 {
        return BTreeSet::new();
    }
    std::thread::sleep(between);
    let both = &seen & &look();
    if both.len() < 2 { BTreeSet::new() } else { both }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_lead_only_where_the_same_ones_say_so_twice() {
        let check = |looks: [&[&str]; 2], expected: &[&str]| {
            let mut looks = looks.into_iter().map(|look| look.iter().map(ToString::to_string).collect());
            let several = several_leaders(|| looks.next().expect("no third look"), Duration::ZERO);
            assert_eq!(several.iter().map(String::as_str).collect::<Vec<&str>>(), expected);
        };
        check([&["n1", "n2"], &["n1", "n2"]], &["n1", "n2"]);
        check([&["n1", "n2", "n3"], &["n2", "n3"]], &["n2", "n3"]);
        // The lead passed on between the answers.
        check([&["n1", "n2"], &["n2"]], &[]);
        check([&["n1"], &["n1", "n2"]], &[]);
        check([&[], &[]], &[]);
    }
}
