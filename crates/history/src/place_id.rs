//! Which node and which host of a run is meant, and lists with one entry for each of them.
//!
//! Owns their order: nodes count as the database names them, hosts as the site lists them. A node and the VM that it runs in
//! have the same number. Which names the hosts have is for the site.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use serde::{Deserialize, Serialize};

/// What numbers the entries of a list.
pub trait PlaceId: Copy {
    /// The one at this place in every list of all, from 0.
    fn new(index: usize) -> Self;

    /// Its place in every list of all, from 0.
    fn index(self) -> usize;
}

macro_rules! place_ids {
    ($($(#[$about:meta])* $name:ident;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(usize);

        impl $name {
            /// The first of all.
            pub const FIRST: $name = $name(0);

            /// The one at this place in every list of all, from 0.
            #[must_use]
            pub const fn new(index: usize) -> $name {
                $name(index)
            }

            /// Its place in every list of all, from 0.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0
            }
        }

        impl PlaceId for $name {
            fn new(index: usize) -> $name {
                $name(index)
            }

            fn index(self) -> usize {
                self.0
            }
        }
    )*};
}

place_ids! {
    /// A node of the database, and its VM. It is called `n1` where it is the first, which leads at the beginning.
    NodeId;
    /// A host of the site. It has no `Display`: the site knows its name.
    HostId;
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0 + 1)
    }
}

/// One entry for each node.
pub type PerNode<T> = Each<NodeId, T>;
/// One entry for each host.
pub type PerHost<T> = Each<HostId, T>;

/// One entry for each node or host, in their order; a slice, but that only an id finds an entry.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Each<I, T> {
    entries: Vec<T>,
    numbered_by: PhantomData<I>,
}

impl<I: PlaceId, T> Each<I, T> {
    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.entries.len()).map(I::new)
    }

    /// All entries, each with its id.
    pub fn numbered(&self) -> impl Iterator<Item = (I, &T)> + Clone {
        self.entries.iter().enumerate().map(|(index, entry)| (I::new(index), entry))
    }

    /// All entries, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.entries
    }

    /// All entries, each with its id, to be changed.
    pub fn numbered_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.entries.iter_mut().enumerate().map(|(index, entry)| (I::new(index), entry))
    }

    /// The first entry of which this is so.
    pub fn find(&self, is_it: impl FnMut(&T) -> bool) -> Option<I> {
        self.entries.iter().position(is_it).map(I::new)
    }

    /// The entry of this id, where there is one.
    #[must_use]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }
}

impl<T> PerNode<T> {
    /// The node of this name, where it is one of these.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<NodeId> {
        self.ids().find(|node| node.to_string() == name)
    }
}

impl<I, T> From<Vec<T>> for Each<I, T> {
    fn from(entries: Vec<T>) -> Each<I, T> {
        Each { entries, numbered_by: PhantomData }
    }
}

impl<I, T> FromIterator<T> for Each<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Each<I, T> {
        Vec::from_iter(entries).into()
    }
}

impl<I, T> Default for Each<I, T> {
    fn default() -> Each<I, T> {
        Vec::new().into()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for Each<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

impl<I, T> Deref for Each<I, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<I, T> DerefMut for Each<I, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

impl<I: PlaceId, T> Index<I> for Each<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.entries[id.index()]
    }
}

impl<I: PlaceId, T> IndexMut<I> for Each<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.index()]
    }
}

impl<I, T> IntoIterator for Each<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'e, I, T> IntoIterator for &'e Each<I, T> {
    type Item = &'e T;
    type IntoIter = std::slice::Iter<'e, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_node_and_a_host_are_plain_numbers_in_files_as_a_value_and_as_a_key() {
        let nodes = BTreeMap::from([(NodeId::new(7), HostId::new(0))]);
        let text = serde_json::to_string(&nodes).expect("JSON");
        assert_eq!(text, "{\"7\":0}");
        assert_eq!(serde_json::from_str::<BTreeMap<NodeId, HostId>>(&text).expect("nodes"), nodes);
    }

    #[test]
    fn a_list_of_each_is_a_plain_list_in_files_and_messages() {
        let hosts = PerNode::from(vec![HostId::new(4), HostId::new(2)]);
        assert_eq!(serde_json::to_string(&hosts).expect("JSON"), "[4,2]");
        assert_eq!(format!("{:?}", PerHost::from(vec![true])), "[true]");
    }

    #[test]
    fn a_node_is_found_by_its_number_and_by_its_name() {
        let hosts = PerNode::from(vec!["h4", "h2"]);
        assert_eq!((hosts[NodeId::FIRST], hosts.get(NodeId::new(2))), ("h4", None));
        assert_eq!((hosts.named("n2"), hosts.named("n3")), (Some(NodeId::new(1)), None));
        let numbered: Vec<String> =
            hosts.numbered().map(|(node, host)| format!("{node} on {host}")).collect();
        assert_eq!(numbered, ["n1 on h4", "n2 on h2"]);
    }
}
