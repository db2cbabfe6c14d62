//! Which nodes may lead while the final state is read, and what is said of it where several do.
//!
//! Owns how often the nodes are asked before an answer, or that there is none, is believed. Who can ask them is the target.

use std::collections::BTreeSet;
use std::time::Duration;

use history::{Action, EventKind, Operation, Outcome};
use load::Leadership;

/// Reads the final state between two looks at who leads. Where several lead or may, it was read at one of them: its records say so,
/// and so does the event that is given back.
pub(crate) fn read_between_looks(
    mut look: impl FnMut() -> Leadership,
    read: impl FnOnce() -> Vec<Operation>,
) -> (Vec<Operation>, Option<EventKind>) {
    let mut seen = lead_at_once(&mut look, PAUSES);
    let mut read = read();
    // A node that was silent before and follows now has what the leader has.
    if !seen.is_in_doubt() {
        seen = may_lead(look, PAUSES);
    }
    if !seen.is_in_doubt() {
        return (read, None);
    }
    let nodes: Vec<String> = seen.leaders.into_iter().collect();
    let silent: Vec<String> = seen.silent.into_iter().collect();
    let told = if silent.is_empty() {
        format!("{} led at once, and it was read at one of them", nodes.join(" and "))
    } else {
        format!("{} did not say whether it leads, and may have what was not read", silent.join(" and "))
    };
    for operation in &mut read {
        if let Action::FinalRead { why, .. } = &mut operation.action
            && operation.outcome == Outcome::Ok
        {
            why.clone_from(&told);
        }
    }
    (read, Some(EventKind::LeadersAtTheEnd { nodes, silent }))
}

/// How long is waited between two looks.
#[derive(Debug, Clone, Copy)]
struct Pauses {
    /// Where several nodes lead.
    of_leaders: Duration,
    /// Where a node is silent.
    of_silence: Duration,
}

const PAUSES: Pauses = Pauses { of_leaders: Duration::from_millis(200), of_silence: Duration::from_secs(1) };

/// Looks until it is believed that several nodes lead: the lead may pass on during one.
const LOOKS_AT_LEADERS: usize = 2;

/// Looks until it is believed that a node is silent: a start, or a burdened machine, takes its time.
const LOOKS_AT_THE_SILENT: usize = 8;

/// The nodes that may lead, where there are several: each led or was silent at every look. Nothing else.
fn may_lead(mut look: impl FnMut() -> Leadership, pauses: Pauses) -> Leadership {
    let mut seen = look();
    for looks in 1.. {
        if !seen.is_in_doubt() {
            return Leadership::default();
        }
        let (enough, pause) = match seen.silent.is_empty() {
            true => (LOOKS_AT_LEADERS, pauses.of_leaders),
            false => (LOOKS_AT_THE_SILENT, pauses.of_silence),
        };
        if looks >= enough {
            break;
        }
        std::thread::sleep(pause);
        seen = seen.and(&look());
    }
    seen
}

/// The nodes that lead, where several say so. Nodes that are silent are not waited for.
fn lead_at_once(mut look: impl FnMut() -> Leadership, pauses: Pauses) -> Leadership {
    may_lead(|| Leadership { leaders: look().leaders, silent: BTreeSet::new() }, pauses)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Pauses = Pauses { of_leaders: Duration::ZERO, of_silence: Duration::ZERO };

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
        assert_eq!(may_lead(look, NONE), leadership(expected), "{looks:?}");
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
        let at_once = |leaders| lead_at_once(|| leadership((leaders, &["n3"])), NONE);
        assert_eq!(at_once(&["n1"]), Leadership::default());
        assert_eq!(at_once(&["n1", "n2"]), leadership((&["n1", "n2"], &[])));
    }
}
