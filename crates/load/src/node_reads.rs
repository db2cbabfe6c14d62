//! What the copies hold in the end where nobody leads: all nodes are asked for what they hold themselves, again and again, until all
//! copies are the same. Which nodes have a copy of a row says the ring; copies are put together from the first of each row, the
//! second, and so on.
//!
//! CQL only. A write that a node missed reaches it as a hint, which a node that has one tries to deliver every ten seconds;
//! nobody says when the last has arrived. A read that several replicas answer brings them into line, so that none may come
//! before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use client::cql::{self, Ring};
use client::{Address, Connector as _, Endpoint, reactor};
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

/// Whether each node can be asked for what it holds itself, and which rows that should be is known.
pub(crate) fn are_possible(plan: &LoadPlan) -> bool {
    plan.protocol.has_consistency_levels()
        && plan.consistency.compares_copies
        && plan.workload.registers().is_some()
}

/// Reads every node, until all copies are the same or `within` has passed; the last look counts.
pub(crate) async fn node_reads(plan: &LoadPlan, clock: &Clock, within: Duration) -> Vec<Operation> {
    let begun = Instant::now();
    loop {
        let invoked = Instant::now();
        let copies = look(plan).await.unwrap_or_else(nothing_known);
        let looked = told(plan, clock, invoked, copies);
        if are_alike(&looked) || begun.elapsed() >= within {
            return looked;
        }
        reactor::sleep(LOOK_AGAIN).await;
    }
}

/// What each copy holds, by its name; nothing, where one of its nodes could not be read.
type Copies = BTreeMap<String, Option<Vec<(Key, i64)>>>;

fn nothing_known() -> Copies {
    BTreeMap::from([("every copy".to_owned(), None)])
}

/// One look at all nodes; nothing where the ring is not known.
async fn look(plan: &LoadPlan) -> Option<Copies> {
    let ring = ring(plan).await?;
    let (registers, question) = plan.workload.registers()?;
    let mut shares = BTreeMap::new();
    for endpoint in &plan.endpoints {
        let share = share_of(plan, endpoint, &question);
        if let Ok(Some((address, share))) = reactor::timeout(OF_ONE_NODE, share).await
            && shares.insert(address, (endpoint.node.as_str(), share)).is_some()
        {
            // Two names lead to one node: nobody knows what the other holds.
            return None;
        }
    }
    copies(&shares, (registers, plan.endpoints.len()), |token| ring.owners(token))
}

/// The ring as the first node tells it that answers.
async fn ring(plan: &LoadPlan) -> Option<Ring> {
    let settings = plan.cql_settings(plan.timeout);
    for endpoint in &plan.endpoints {
        if let Address::Tcp { address, .. } = &endpoint.address {
            let asked = Ring::asked(*address, &settings, plan.endpoints.len());
            if let Ok(Ok(ring)) = reactor::timeout(OF_ONE_NODE, asked).await {
                return Some(ring);
            }
        }
    }
    None
}

/// What a node of a ring holds itself.
struct Share {
    /// The tokens of the registers of which it has a row.
    tokens: Vec<(Key, i64)>,
    values: BTreeMap<Key, i64>,
}

/// What a node holds, with its address as the ring has it; nothing when it cannot be asked.
async fn share_of(plan: &LoadPlan, endpoint: &Endpoint, question: &str) -> Option<(IpAddr, Share)> {
    let connector = plan.connector_of_node(endpoint);
    let mut rng = plan.chance(plan.first_client, NODE_READS);
    let mut session = connector.connect(&mut rng).await.ok()?.session;
    let actions = plan.workload.final_read(&mut session).await.ok()?;
    let values = actions.into_iter().filter_map(register).collect();
    let session = session.sql().ok()?;
    let address = cql::own_address(session).await?;
    let rows = session.batch(question).await.ok()?;
    let token = |row| Some((Key::Number(rows.integer(row, 0)?), rows.integer(row, 1)?));
    let tokens = (0..rows.len()).map(token).collect::<Option<Vec<_>>>()?;
    Some((address, Share { tokens, values }))
}

/// One copy of every register.
struct WholeCopy<'a> {
    /// The nodes that it lies on.
    nodes: BTreeSet<&'a str>,
    /// Nothing, where one of them could not be read.
    held: Option<Vec<(Key, i64)>>,
}

impl WholeCopy<'_> {
    fn empty() -> Self {
        WholeCopy { nodes: BTreeSet::new(), held: Some(Vec::new()) }
    }
}

/// The copies, each named by its number and the nodes that it lies on. Nothing where the token of one of the registers is not known
/// and neither is what a node holds; a register of which no node has a row is in none of them.
fn copies(
    shares: &BTreeMap<IpAddr, (&str, Share)>,
    (registers, nodes): (usize, usize),
    owners: impl Fn(i64) -> Vec<IpAddr>,
) -> Option<Copies> {
    let told = shares.values().flat_map(|(_, share)| &share.tokens);
    let tokens: BTreeMap<&Key, i64> = told.map(|(key, token)| (key, *token)).collect();
    if tokens.len() < registers && shares.len() < nodes {
        return None;
    }
    let mut copies: BTreeMap<usize, WholeCopy<'_>> = BTreeMap::new();
    for (key, token) in tokens {
        for (number, owner) in (1..).zip(owners(token)) {
            let WholeCopy { nodes, held } = copies.entry(number).or_insert_with(WholeCopy::empty);
            let Some((node, share)) = shares.get(&owner) else {
                nodes.insert("a node that was not read");
                *held = None;
                continue;
            };
            nodes.insert(node);
            let value = share.values.get(key).map(|value| (key.clone(), *value));
            held.iter_mut().for_each(|held| held.extend(value.clone()));
        }
    }
    let named = |(number, WholeCopy { nodes, held }): (usize, WholeCopy<'_>)| {
        let nodes: Vec<&str> = nodes.into_iter().collect();
        (format!("copy {number} ({})", nodes.join(", ")), held)
    };
    Some(copies.into_iter().map(named).collect())
}

/// What was found at replicas at one look as it stands in the history, by readers of their own; nothing, where one could not be read.
pub(crate) fn told(
    plan: &LoadPlan,
    clock: &Clock,
    invoked: Instant,
    found: impl IntoIterator<Item = (String, Option<Vec<(Key, i64)>>)>,
) -> Vec<Operation> {
    let (actions, outcomes): (Vec<Action>, Vec<(Outcome, String)>) = found
        .into_iter()
        .map(|(replica, held)| {
            let outcome = if held.is_some() { Outcome::Ok } else { Outcome::Fail };
            let values = held.unwrap_or_default();
            (Action::ReplicaRead { replica: replica.clone(), values, complete: true }, (outcome, replica))
        })
        .unzip();
    let read = operations(plan, clock, invoked, "", actions).into_iter().zip(outcomes);
    read.map(|(operation, (outcome, node))| Operation { outcome, node: Some(node), ..operation }).collect()
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

    #[test]
    fn copies_are_put_together_from_the_shares_of_their_owners() {
        let address = |number: u8| IpAddr::from([10, 0, 0, number]);
        // Of register 1 nodes 1 and 3 are to have a copy, of register 2 nodes 2 and 4.
        let owners = |token: i64| match token {
            10 => vec![address(1), address(3)],
            _ => vec![address(2), address(4)],
        };
        let share = |number: i64, value: i64| {
            let key = Key::Number(number);
            Some(Share { tokens: vec![(key.clone(), number * 10)], values: BTreeMap::from([(key, value)]) })
        };
        let without_a_row = || Some(Share { tokens: Vec::new(), values: BTreeMap::new() });
        let found = |second: Option<Share>, fourth: Option<Share>| {
            let shares = [("n1", share(1, 5)), ("n2", second), ("n3", share(1, 5)), ("n4", fourth)];
            let shares = (1..).map(address).zip(shares);
            let read = shares.filter_map(|(address, (node, share))| Some((address, (node, share?))));
            copies(&read.collect(), (2, 4), owners)
        };
        let [one, two] = [(Key::Number(1), 5), (Key::Number(2), 7)];
        let whole = || Some(vec![one.clone(), two.clone()]);
        let expected = |second: &str, held| {
            Some(BTreeMap::from([("copy 1 (n1, n2)".to_owned(), whole()), (second.to_owned(), held)]))
        };
        assert_eq!(found(share(2, 7), share(2, 7)), expected("copy 2 (n3, n4)", whole()));
        let lost = found(share(2, 7), without_a_row());
        assert_eq!(lost, expected("copy 2 (n3, n4)", Some(vec![one.clone()])), "n4 lost its row");
        let silent = found(share(2, 7), None);
        assert_eq!(silent, expected("copy 2 (a node that was not read, n3)", None), "n4 does not answer");
        assert_eq!(found(None, None), None, "nobody knows where register 2 lies");
    }
}
