//! Which nodes may lead while the final state is read.
//!
//! Owns how often the nodes are asked before an answer, or that there is none, is believed. Who can ask them is the target.

use std::time::Duration;

use load::Leadership;

/// Between two looks.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Looks until it is believed that several nodes lead: the lead may pass on during one.
const LOOKS_AT_LEADERS: usize = 2;

/// Looks until it is believed that a node is silent: a start, or a burdened machine, takes its time.
const LOOKS_AT_THE_SILENT: usize = 5;

/// The nodes that may lead, where there are several: each led or was silent at every look. Nothing else.
pub(crate) fn may_lead(mut look: impl FnMut() -> Leadership, between: Duration) -> Leadership {
    let mut seen = look();
    for looks in 1.. {
        if !seen.is_in_doubt() {
            return Leadership::default();
        }
        let enough = if seen.silent.is_empty() { LOOKS_AT_LEADERS } else { LOOKS_AT_THE_SILENT };
        if looks >= enough {
            break;
        }
        std::thread::sleep(between);
        seen = seen.and(&look());
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes that led and those that were silent at one look.
    type Look<'a> = (&'a [&'a str], &'a [&'a str]);

    fn leadership((leaders, silent): Look) -> Leadership {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Leadership { leaders: names(leaders), silent: names(silent) }
    }

    /// The last of `looks` stands for all that follow; `number` of them are taken.
    fn check(looks: &[Look], number: usize, expected: Look) {
        let mut taken = 0;
        let look = || {
            taken += 1;
            leadership(*looks.get(taken - 1).or(looks.last()).expect("a look"))
        };
        assert_eq!(may_lead(look, Duration::ZERO), leadership(expected), "{looks:?}");
        assert_eq!(taken, number, "{looks:?}");
    }

    #[test]
    fn several_lead_only_where_the_same_ones_say_so_twice() {
        check(&[(&["n1", "n2"], &[])], 2, (&["n1", "n2"], &[]));
        check(&[(&["n1", "n2"], &[]), (&["n2", "n3"], &[])], 2, (&[], &[]));
        // The lead passed on between the answers.
        check(&[(&["n1", "n2"], &[]), (&["n2"], &[])], 2, (&[], &[]));
        check(&[(&["n1"], &[]), (&["n1", "n2"], &[])], 1, (&[], &[]));
        check(&[(&[], &[])], 1, (&[], &[]));
    }

    #[test]
    fn a_node_that_stays_silent_beside_a_leader_may_lead_and_one_that_answers_in_the_end_does_not() {
        check(&[(&["n1"], &["n2"])], LOOKS_AT_THE_SILENT, (&["n1"], &["n2"]));
        check(&[(&[], &["n1", "n2"])], LOOKS_AT_THE_SILENT, (&[], &["n1", "n2"]));
        check(&[(&["n1"], &["n2"]), (&["n1"], &["n2"]), (&["n1"], &[])], 3, (&[], &[]));
        check(&[(&["n1"], &["n2"]), (&["n1", "n2"], &[])], LOOKS_AT_THE_SILENT, (&["n1"], &["n2"]));
        // The only node that may lead is one at most.
        check(&[(&[], &["n1"])], 1, (&[], &[]));
    }
}
