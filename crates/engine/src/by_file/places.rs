//! Where nodes stand: in regions, and on a ring of hashes.
//!
//! Owns what templates say of it.

use std::collections::BTreeMap;

use super::ByFile;

impl ByFile {
    /// The regions that hold nodes, in the order of those, and how many nodes there hold each row.
    pub(super) fn regions(&self) -> Vec<BTreeMap<String, String>> {
        let mut regions: Vec<(&str, u32)> = Vec::new();
        for place in &self.configuration.places {
            match regions.iter_mut().find(|(name, _)| *name == place.region) {
                Some((_, nodes)) => *nodes += 1,
                None => regions.push((&place.region, 1)),
            }
        }
        let copies = self.configuration.copies;
        let told = regions.into_iter().map(|(name, nodes)| {
            let copies = copies.min(nodes).to_string();
            BTreeMap::from([("name".to_owned(), name.to_owned()), ("copies".to_owned(), copies)])
        });
        told.collect()
    }
}

/// Where a node's part of a ring of 64-bit hashes begins: all parts are equally long, and the first node's begins at the
/// least hash.
pub(super) fn token(number: usize, nodes: usize) -> i64 {
    let part = (number as u128) << 64;
    let offset = part / nodes.max(1) as u128;
    i64::try_from(offset as i128 + i128::from(i64::MIN)).unwrap_or(i64::MAX)
}
