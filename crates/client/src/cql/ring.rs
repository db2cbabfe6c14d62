//! On which nodes the rows of a keyspace lie, worked out from what a node says of the ring.
//!
//! Owns the walk around the ring: that of `NetworkTopologyStrategy` (Cassandra 5.0), by which a data centre's copies lie in as many
//! racks as there are. Where the nodes are reached stands in their endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use history::ErrorClass;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{CqlClient, Settings};
use crate::frames::failure;
use crate::{SessionError, SqlSession};

/// The only strategy that is known here.
const STRATEGY: &str = "NetworkTopologyStrategy";

/// Which node holds which share of a keyspace.
#[derive(Debug, Clone)]
pub struct Ring {
    members: Vec<Member>,
    /// Where each node's ranges end, by token, as a place in `members`.
    ends: BTreeMap<i64, usize>,
    /// So many copies in each data centre.
    copies: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Deserialize)]
struct Member {
    data_center: String,
    rack: String,
    rpc_address: IpAddr,
    tokens: Vec<String>,
}

impl Ring {
    /// As a node sees it: also those that are away.
    ///
    /// # Errors
    /// When the node does not answer, does not know everything of each of `nodes` nodes, or copies are placed in another way.
    pub async fn asked(address: SocketAddr, settings: &Settings, nodes: usize) -> Result<Ring, SessionError> {
        let mut client = CqlClient::open(address, settings).await?;
        let of_nodes = |table| format!("SELECT JSON data_center, rack, rpc_address, tokens FROM {table}");
        let mut members: Vec<Member> = asked(&mut client, &of_nodes("system.local")).await?;
        members.extend(asked(&mut client, &of_nodes("system.peers")).await?);
        let keyspace = settings.keyspace.replace('\'', "''");
        let question = format!(
            "SELECT JSON replication FROM system_schema.keyspaces WHERE keyspace_name = '{keyspace}'"
        );
        let found: Vec<BTreeMap<String, BTreeMap<String, String>>> = asked(&mut client, &question).await?;
        let replication = found.into_iter().next().unwrap_or_default().remove("replication");
        if members.len() < nodes {
            let why = format!("it knows {} of {nodes} nodes", members.len());
            return Err(not_known(&client, &why));
        }
        Ring::of(members, replication.unwrap_or_default()).map_err(|why| not_known(&client, &why))
    }

    fn of(members: Vec<Member>, mut replication: BTreeMap<String, String>) -> Result<Ring, String> {
        let class = replication.remove("class").unwrap_or_default();
        if class.rsplit('.').next() != Some(STRATEGY) {
            return Err(format!("copies are placed by {class:?}, not by {STRATEGY}"));
        }
        let number = |(name, copies): (String, String)| {
            copies
                .parse()
                .map(|copies| (name, copies))
                .map_err(|_| format!("{copies:?} is no number of copies"))
        };
        let copies: BTreeMap<String, usize> =
            replication.into_iter().map(number).collect::<Result<_, String>>()?;
        if let Some(empty) =
            copies.keys().find(|name| members.iter().all(|member| member.data_center != **name))
        {
            return Err(format!("data centre {empty:?} has no node"));
        }
        let addresses: BTreeSet<IpAddr> = members.iter().map(|member| member.rpc_address).collect();
        if addresses.len() < members.len() {
            return Err("several nodes have one address".to_owned());
        }
        let mut ends = BTreeMap::new();
        for (place, member) in members.iter().enumerate() {
            for token in &member.tokens {
                ends.insert(token.parse().map_err(|_| format!("{token:?} is no token of Murmur3"))?, place);
            }
        }
        Ok(Ring { members, ends, copies })
    }

    /// The addresses of the nodes that hold the rows at a token, in the order of their data centres, racks and addresses. With a copy
    /// in each rack, the first of each row lies in the same rack, and so on.
    #[must_use]
    pub fn owners(&self, token: i64) -> Vec<IpAddr> {
        let mut owners: Vec<&Member> =
            self.copies.iter().flat_map(|(name, copies)| self.owners_in(name, *copies, token)).collect();
        owners.sort_by(|one, other| {
            let place = (&other.data_center, &other.rack, other.rpc_address);
            (&one.data_center, &one.rack, one.rpc_address).cmp(&place)
        });
        owners.into_iter().map(|member| member.rpc_address).collect()
    }

    /// `NetworkTopologyStrategy.calculateNaturalReplicas` for one data centre: clockwise from the token, a node of each rack first.
    fn owners_in(&self, data_center: &str, copies: usize, token: i64) -> Vec<&Member> {
        let here = |member: &&Member| member.data_center == data_center;
        let racks: BTreeSet<&String> = self.members.iter().filter(here).map(|member| &member.rack).collect();
        let left = self.members.iter().filter(here).count().min(copies);
        let mut repeats = copies.saturating_sub(racks.len());
        let (mut owners, mut racks_seen) = (Vec::new(), BTreeSet::new());
        let clockwise = self.ends.range(token..).chain(self.ends.range(..token)).map(|(_, place)| *place);
        for place in clockwise {
            if owners.len() == left {
                break;
            }
            let Some(member) = self.members.get(place).filter(here) else { continue };
            if owners.contains(&place) {
                continue;
            }
            if !racks_seen.insert(&member.rack) {
                if repeats == 0 {
                    continue;
                }
                repeats -= 1;
            }
            owners.push(place);
        }
        owners.into_iter().filter_map(|place| self.members.get(place)).collect()
    }
}

/// The address at which a node serves clients, as it tells its ring; nothing where it does not say.
pub async fn own_address(session: &mut dyn SqlSession) -> Option<IpAddr> {
    let rows = session.batch("SELECT JSON rpc_address FROM system.local").await.ok()?;
    let mut told: BTreeMap<String, IpAddr> = serde_json::from_str(rows.text(0, 0)?).ok()?;
    told.remove("rpc_address")
}

/// The rows of a question that is answered in JSON.
async fn asked<T: DeserializeOwned>(client: &mut CqlClient, question: &str) -> Result<Vec<T>, SessionError> {
    client.ask_about_itself(question).await?;
    let rows = (0..client.rows.len()).map(|row| client.rows.text(row, 0).unwrap_or_default());
    let read = rows.map(|row| serde_json::from_str(row).map_err(|error| format!("{row}: {error}")));
    read.collect::<Result<Vec<T>, String>>().map_err(|why| not_known(client, &why))
}

fn not_known(client: &CqlClient, why: &str) -> SessionError {
    let message = format!("{}: where rows lie is not known: {why}", client.line.peer);
    failure(ErrorClass::Connection, true, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six nodes, two in each of three racks, whose ranges end at 10, 20 and so on.
    fn six(copies: &str) -> Ring {
        let member = |number: u8| Member {
            data_center: "dc1".to_owned(),
            rack: format!("r{}", number.div_ceil(2)),
            rpc_address: IpAddr::from([10, 0, 0, number]),
            tokens: vec![(i64::from(number) * 10).to_string()],
        };
        let replication =
            [("class", "org.apache.cassandra.locator.NetworkTopologyStrategy"), ("dc1", copies)];
        let replication = replication.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Ring::of((1..=6).map(member).collect(), replication).expect("a ring")
    }

    #[track_caller]
    fn check(ring: &Ring, token: i64, expected: &[u8]) {
        let owners: Vec<IpAddr> = ring.owners(token);
        let expected: Vec<IpAddr> = expected.iter().map(|number| [10, 0, 0, *number].into()).collect();
        assert_eq!(owners, expected, "of token {token}");
    }

    #[test]
    fn a_row_lies_on_the_next_node_of_each_rack() {
        let ring = six("3");
        check(&ring, 10, &[1, 3, 5]);
        check(&ring, 11, &[2, 3, 5]);
        check(&ring, 31, &[1, 4, 5]);
        check(&ring, 55, &[1, 3, 6]);
        check(&ring, 61, &[1, 3, 5]);
        check(&ring, i64::MIN, &[1, 3, 5]);
    }

    #[test]
    fn copies_beyond_the_racks_lie_on_the_next_nodes_and_there_are_no_more_than_nodes() {
        check(&six("4"), 11, &[2, 3, 4, 5]);
        check(&six("9"), 11, &[1, 2, 3, 4, 5, 6]);
        check(&six("1"), 31, &[4]);
    }

    #[test]
    fn each_data_centre_has_its_copies_and_a_rack_is_passed_over_until_all_have_one() {
        let member = |data_center: &str, rack: &str, number: u8, tokens: &[i64]| Member {
            data_center: data_center.to_owned(),
            rack: rack.to_owned(),
            rpc_address: IpAddr::from([10, 0, 0, number]),
            tokens: tokens.iter().map(i64::to_string).collect(),
        };
        let members = vec![
            member("dc1", "r1", 1, &[10, 50]),
            member("dc1", "r1", 2, &[20, 70]),
            member("dc1", "r2", 3, &[40]),
            member("dc2", "r1", 4, &[15, 60]),
            member("dc2", "r1", 5, &[30]),
        ];
        let replication = [("class", "NetworkTopologyStrategy"), ("dc1", "2"), ("dc2", "1")];
        let replication = replication.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let ring = Ring::of(members.clone(), replication.clone().into()).expect("a ring");
        check(&ring, 5, &[1, 3, 4]);
        check(&ring, 16, &[2, 3, 5]);
        check(&ring, 41, &[1, 3, 4]);
        check(&ring, 61, &[2, 3, 4]);
        let elsewhere = members.iter().filter(|member| member.data_center == "dc1").cloned().collect();
        assert!(Ring::of(elsewhere, replication.clone().into()).is_err(), "dc2 has no node");
        let twice = [members.clone(), members].concat();
        assert!(Ring::of(twice, replication.into()).is_err(), "each address twice");
    }

    #[test]
    fn what_is_placed_in_another_way_is_not_known() {
        let simple = BTreeMap::from([("class".to_owned(), "SimpleStrategy".to_owned())]);
        assert!(Ring::of(Vec::new(), simple).is_err());
        assert!(Ring::of(Vec::new(), BTreeMap::new()).is_err());
    }
}
