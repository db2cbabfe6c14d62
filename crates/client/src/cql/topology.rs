//! The keyspace of a load: on how many nodes of each data centre its rows lie.
//!
//! Owns the question to the database which nodes there are, and the statement that makes the keyspace.

use std::collections::BTreeMap;

use history::ErrorClass;

use super::statement::quoted_name;
use super::{CqlClient, Settings};
use crate::SessionError;
use crate::frames::failure;

/// Chooses the keyspace, and makes it where it is missing and is to be made. The database must know `nodes` nodes before:
/// it serves clients earlier, and a data centre that it does not know yet would be left without replicas.
pub(super) async fn enter_keyspace(
    client: &mut CqlClient,
    settings: &Settings,
    nodes: usize,
) -> Result<(), SessionError> {
    if settings.keyspace.is_empty() {
        return Ok(());
    }
    let Err(missing) = client.choose_keyspace(&settings.keyspace).await else { return Ok(()) };
    let Some(replicas) = settings.replicas.filter(|_| !client.line.broken) else { return Err(missing) };
    let known = data_centres(client).await?;
    let count: u32 = known.values().sum();
    if usize::try_from(count).is_ok_and(|count| count < nodes) {
        let message = format!("{}: it knows {count} of {nodes} nodes", client.line.peer);
        return Err(failure(ErrorClass::Connection, true, message));
    }
    client.query(&creation(&settings.keyspace, replicas, &known)).await?;
    client.choose_keyspace(&settings.keyspace).await
}

/// The number of nodes in each data centre, as the node knows them.
async fn data_centres(client: &mut CqlClient) -> Result<BTreeMap<String, u32>, SessionError> {
    let mut found = BTreeMap::new();
    for table in ["system.local", "system.peers"] {
        client.ask_about_itself(&format!("SELECT data_center FROM {table}")).await?;
        for row in 0..client.rows.len() {
            // A node that has just been heard of has none yet.
            if let Some(name) = client.rows.text(row, 0) {
                *found.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    Ok(found)
}

/// The statement that makes a keyspace with so many replicas in each data centre.
fn creation(keyspace: &str, replicas: u32, known: &BTreeMap<String, u32>) -> String {
    let share = |(name, nodes): (&String, &u32)| {
        format!(", '{}': {}", name.replace('\'', "''"), replicas.min(*nodes))
    };
    let shares: String = known.iter().map(share).collect();
    format!(
        "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {{'class': 'NetworkTopologyStrategy'{shares}}}",
        quoted_name(keyspace)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_data_centre_has_the_replicas_asked_for_or_one_on_each_of_its_nodes() {
        let known = BTreeMap::from([("dc1".to_owned(), 4), ("d'c2".to_owned(), 2)]);
        assert_eq!(
            creation("holdfast", 3, &known),
            "CREATE KEYSPACE IF NOT EXISTS \"holdfast\" WITH replication = \
             {'class': 'NetworkTopologyStrategy', 'd''c2': 2, 'dc1': 3}"
        );
    }
}
