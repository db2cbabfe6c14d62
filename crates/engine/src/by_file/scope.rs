//! What the names in an engine file's templates stand for: on a machine, on a node, when a process starts.
//!
//! Owns the values; which names there are is `capabilities`'.

use std::collections::BTreeMap;
use std::net::IpAddr;

use capabilities::file::Scope;

use super::{ByFile, Member, find, places};
use crate::{EngineError, Installation, Node, Synchronous};

impl ByFile {
    /// What is known of every machine with that installation.
    pub(super) fn machine(&self, installation: &Installation) -> Scope {
        let mut scope = find::machine(installation);
        scope
            .values
            .extend(self.ports.iter().map(|(name, port)| (format!("ports.{name}"), port.to_string())));
        scope
    }

    /// What is known on a node.
    pub(super) fn scope(&self, node: &dyn Node) -> Result<Scope, EngineError> {
        let members = self.members();
        let stranger = || EngineError::Stranger { node: node.name().to_owned() };
        let number = members.iter().position(|member| member.name == node.name()).ok_or_else(stranger)?;
        let mut scope = self.machine(self.releases.of(node.name()));
        let acknowledgements = acknowledgements(self.configuration.synchronous, members.len());
        let mut know = |name: &str, value: String| drop(scope.values.insert(name.to_owned(), value));
        know("node.name", node.name().to_owned());
        know("node.number", (number + 1).to_string());
        know("node.address", node.address().to_string());
        know("count.nodes", members.len().to_string());
        know("count.others", (members.len() - 1).to_string());
        know("count.majority", (members.len() / 2 + 1).to_string());
        know("first.name", members[0].name.clone());
        know("first.address", members[0].address.to_string());
        let place = self.configuration.places.get(number).cloned().unwrap_or_default();
        know("node.region", place.region);
        know("node.zone", place.zone);
        know("node.rack", place.rack);
        know("node.host", place.host);
        know("node.token", places::token(number, members.len()).to_string());
        know("copies", self.configuration.copies.to_string());
        know("volume", node.data_directory().display().to_string());
        know("sockets", node.socket_directory().display().to_string());
        know("sessions", self.configuration.max_connections.to_string());
        know("synchronous.on", (acknowledgements > 0).to_string());
        know("synchronous.count", acknowledgements.max(1).to_string());
        let all: Vec<_> = members.iter().enumerate().map(|(at, member)| element(at, member)).collect();
        let mut others = all.clone();
        others.remove(number);
        let address = |address: &IpAddr| BTreeMap::from([("address".to_owned(), address.to_string())]);
        let setting = |(name, value): (&String, &String)| {
            BTreeMap::from([("name".to_owned(), name.clone()), ("value".to_owned(), value.clone())])
        };
        scope.lists.insert("regions".to_owned(), self.regions());
        scope.lists.insert("nodes".to_owned(), all);
        scope.lists.insert("others".to_owned(), others);
        scope.lists.insert("addresses".to_owned(), node.addresses().iter().map(address).collect());
        scope.lists.insert("settings".to_owned(), self.configuration.settings.iter().map(setting).collect());
        Ok(scope)
    }

    /// The node that leads by its own word, where that is another than this one. None where several say so: whom a node was told
    /// to follow would be chance.
    pub(super) fn leading(&self, node: &dyn Node) -> Vec<BTreeMap<String, String>> {
        let members = self.members().clone();
        let leads = |member: &Member| {
            let other = member.node.upgrade().filter(|other| other.name() != node.name());
            other.is_some_and(|other| self.role(other.as_ref()).is_ok_and(|role| role.leads))
        };
        let leaders: Vec<(usize, &Member)> =
            members.iter().enumerate().filter(|(_, member)| leads(member)).collect();
        match leaders[..] {
            [(at, member)] => vec![element(at, member)],
            _ => Vec::new(),
        }
    }
}

pub(super) fn element(at: usize, member: &Member) -> BTreeMap<String, String> {
    place(at, &member.name, member.address)
}

pub(super) fn place(at: usize, name: &str, address: IpAddr) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("name".to_owned(), name.to_owned()),
        ("number".to_owned(), (at + 1).to_string()),
        ("address".to_owned(), address.to_string()),
    ])
}

/// How many standbys a commit waits for.
pub(super) fn acknowledgements(synchronous: Synchronous, nodes: usize) -> usize {
    match synchronous {
        Synchronous::Off => 0,
        Synchronous::Any(count) => count as usize,
        Synchronous::All => nodes.saturating_sub(1),
    }
}
