//! What each node holds in the end where nobody leads and each has every row: all are asked for their own copies, again and
//! again, until all hold the same.
//!
//! CQL only. A write that a node missed reaches it as a hint, which a node that has one tries to deliver every ten seconds;
//! nobody says when the last has arrived. A read that several replicas answer brings them into line, so that none may come
//! before.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use client::{Connector as _, Endpoint, reactor};
use history::{Action, Key, Operation, Outcome};

use crate::clock::Clock;
use crate::plan::LoadPlan;
use crate::preparation::operations;

/// Between two looks at all nodes.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How long one node is waited for: one that is away does not keep the others from being read.
const OF_ONE_NODE: Duration = Duration::from_secs(5);

/// The stream of chance (see `LoadPlan::chance`) used here.
const NODE_READS: u64 = 4;

/// Whether each node can be asked for what it holds itself, and has every row.
pub(crate) fn are_possible(plan: &LoadPlan) -> bool {
    plan.protocol.has_consistency_levels() && plan.consistency.each_node_has_all
}

/// Reads every node, until all hold the same or `within` has passed; the last look counts.
pub(crate) async fn node_reads(plan: &LoadPlan, clock: &Clock, within: Duration) -> Vec<Operation> {
    let begun = Instant::now();
    loop {
        let mut looked = Vec::new();
        for endpoint in &plan.endpoints {
            let invoked = Instant::now();
            let held = reactor::timeout(OF_ONE_NODE, held_by(plan, endpoint)).await;
            looked.extend(told(plan, clock, invoked, endpoint, held.ok().flatten()));
        }
        if are_alike(&looked) || begun.elapsed() >= within {
            return looked;
        }
        reactor::sleep(LOOK_AGAIN).await;
    }
}

/// What a node holds itself; none when it cannot be asked.
async fn held_by(plan: &LoadPlan, endpoint: &Endpoint) -> Option<Vec<(Key, i64)>> {
    let connector = plan.connector_of_node(endpoint);
    let mut rng = plan.chance(plan.first_client, NODE_READS);
    let mut session = connector.connect(&mut rng).await.ok()?.session;
    let actions = plan.workload.final_read(&mut session).await.ok()?;
    Some(actions.into_iter().filter_map(register).collect())
}

/// What was found at a node as it stands in the history; nothing, where it could not be read.
pub(crate) fn told(
    plan: &LoadPlan,
    clock: &Clock,
    invoked: Instant,
    endpoint: &Endpoint,
    held: Option<Vec<(Key, i64)>>,
) -> Vec<Operation> {
    let outcome = if held.is_some() { Outcome::Ok } else { Outcome::Fail };
    let values = held.unwrap_or_default();
    let action = Action::ReplicaRead { replica: endpoint.node.clone(), values, complete: true };
    let read = operations(plan, clock, invoked, &endpoint.node, vec![action]);
    read.into_iter().map(|operation| Operation { outcome, ..operation }).collect()
}

/// A register that holds something.
pub(crate) fn register(action: Action) -> Option<(Key, i64)> {
    match action {
        Action::RegisterRead { key, value } => Some((key, value?)),
        _ => None,
    }
}

/// Whether all were read and hold the same.
fn are_alike(looked: &[Operation]) -> bool {
    let held = |operation: &Operation| match (&operation.action, operation.outcome) {
        (Action::ReplicaRead { values, .. }, Outcome::Ok) => Some(values.clone()),
        _ => None,
    };
    let held: Option<BTreeSet<Vec<(Key, i64)>>> = looked.iter().map(held).collect();
    held.is_some_and(|held| held.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_alike_when_each_was_read_and_holds_what_the_others_do() {
        let read = |value: i64, outcome| Operation {
            load: "register".to_owned(),
            client: 0,
            action: Action::ReplicaRead {
                replica: "n1".to_owned(),
                values: vec![(Key::Number(1), value)],
                complete: true,
            },
            invoked_s: 1.0,
            completed_s: 2.0,
            outcome,
            error: None,
            node: None,
        };
        let (five, six) = (read(5, Outcome::Ok), read(6, Outcome::Ok));
        assert!(are_alike(&[five.clone(), five.clone()]));
        assert!(!are_alike(&[five.clone(), six]));
        assert!(!are_alike(&[five, read(5, Outcome::Fail)]));
        assert!(!are_alike(&[]));
    }
}
