//! Which nodes may lead while the final state is read, and what is said of it where several do.
//!
//! Owns how often the nodes are asked before an answer, or that there is none, is believed. Who can ask them is the target.

use std::collections::BTreeSet;
use std::time::Duration;

use history::{Action, EventKind, Operation, Outcome};
use load::Leadership;

/// Reads the final state between two looks at who leads. Where several lead or may, it was read at one of them; where another leads
/// afterwards, it was read at one that ceased to. Its records say so, and so does the event that is given back. `is_at_the_leader`:
/// whether it is read at the node that takes the writes.
pub(crate) fn read_between_looks(
    is_at_the_leader: bool,
    mut look: impl FnMut() -> Leadership,
    read: impl FnOnce() -> Vec<Operation>,
) -> (Vec<Operation>, Option<EventKind>) {
    let mut seen = lead_at_once(&mut look, PAUSES);
    let mut read = read();
    let mut last = Leadership::default();
    // A node that was silent before and follows now has what the leader has.
    if !seen.is_in_doubt() {
        let look = || {
            last = look();
            last.clone()
        };
        seen = may_lead(look, PAUSES);
    }
    let ceased = if is_at_the_leader { read_elsewhere(&read, &last.leaders) } else { BTreeSet::new() };
    if !seen.is_in_doubt() && ceased.is_empty() {
        return (read, None);
    }
    let listed = |nodes: &BTreeSet<String>| nodes.iter().cloned().collect::<Vec<_>>().join(" and ");
    let told = if !seen.silent.is_empty() {
        format!("{} did not say whether it leads, and may have what was not read", listed(&seen.silent))
    } else if seen.is_in_doubt() {
        format!("{} led at once, and it was read at one of them", listed(&seen.leaders))
    } else {
        seen.leaders = &ceased | &last.leaders;
        format!("it was read at {}, and {} led just afterwards", listed(&ceased), listed(&last.leaders))
    };
    let nodes: Vec<String> = seen.leaders.into_iter().collect();
    let silent: Vec<String> = seen.silent.into_iter().collect();
    for operation in &mut read {
        if let Action::FinalRead { why, .. } = &mut operation.action
            && operation.outcome == Outcome::Ok
        {
            why.clone_from(&told);
        }
    }
    (read, Some(EventKind::LeadersAtTheEnd { nodes, silent }))
}

/// The nodes where the final state was read, of which none leads; nothing where nobody is known to lead.
fn read_elsewhere(read: &[Operation], leaders: &BTreeSet<String>) -> BTreeSet<String> {
    let is_of_the_leader = |operation: &&Operation| {
        operation.outcome == Outcome::Ok && !matches!(operation.action, Action::ReplicaRead { .. })
    };
    let nodes = read.iter().filter(is_of_the_leader).filter_map(|operation| operation.node.clone());
    nodes.filter(|node| !leaders.is_empty() && !leaders.contains(node)).collect()
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

    /// The reason for doubt in a final state that was read at n1, if there is one; these nodes lead at the looks after the read.
    fn doubt_of_a_read_at_n1(is_at_the_leader: bool, looks: &[&[&str]]) -> Option<String> {
        let read = || {
            let read = |action, node: Option<&str>| Operation {
                load: "l".to_owned(),
                client: 7,
                action,
                invoked_s: 1.0,
                completed_s: 2.0,
                outcome: Outcome::Ok,
                error: None,
                node: node.map(str::to_owned),
            };
            let workload = "ledger".to_owned();
            let end = Action::FinalRead { workload, nodes: vec!["n1".to_owned()], why: String::new() };
            vec![read(Action::LedgerRead { values: vec![1], complete: true }, Some("n1")), read(end, None)]
        };
        let mut taken = 0;
        let look = || {
            taken += 1;
            // The first is before the read.
            let leaders =
                if taken == 1 { &["n1"][..] } else { looks.get(taken - 2).or(looks.last()).expect("a look") };
            leadership((leaders, &[]))
        };
        let (read, event) = read_between_looks(is_at_the_leader, look, read);
        match (&read[1].action, event) {
            (Action::FinalRead { why, .. }, Some(_)) => Some(why.clone()),
            _ => None,
        }
    }

    #[test]
    fn a_final_state_that_was_read_at_a_node_that_leads_no_more_is_in_doubt() {
        assert_eq!(doubt_of_a_read_at_n1(true, &[&["n1"]]), None);
        let ceased = Some("it was read at n1, and n2 led just afterwards".to_owned());
        assert_eq!(doubt_of_a_read_at_n1(true, &[&["n2"]]), ceased);
        assert_eq!(
            doubt_of_a_read_at_n1(true, &[&["n1", "n2"], &["n2"]]),
            ceased,
            "it was demoted meanwhile"
        );
        assert_eq!(doubt_of_a_read_at_n1(true, &[&["n1", "n2"], &["n1"]]), None, "the other was");
        assert_eq!(doubt_of_a_read_at_n1(true, &[&[]]), None, "nobody says that it leads");
        assert_eq!(doubt_of_a_read_at_n1(false, &[&["n2"]]), None, "any node answers for all");
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
