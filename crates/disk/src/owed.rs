//! What a sync covers that was answered and not done.

use std::collections::BTreeSet;

use crate::tree::Kept;

/// Of one object: what was there when the sync was answered, and nothing that came since.
#[derive(Debug)]
pub(crate) struct Owed {
    /// Whether its content alone was synced.
    pub(crate) data_only: bool,
    /// Its content's seal in the log of its blocks, if it has content.
    pub(crate) seal: Option<u64>,
    /// Changes of names.
    pub(crate) operations: BTreeSet<u64>,
    /// Mode, owner and extended attributes, where they were not durable and were synced.
    pub(crate) attributes: Option<Kept>,
}

impl Owed {
    /// Both together: the seal of the newer one covers what that of the older one covers.
    pub(crate) fn and(mut self, newer: Owed) -> Owed {
        self.operations.extend(newer.operations);
        Owed {
            data_only: self.data_only && newer.data_only,
            seal: newer.seal.or(self.seal),
            operations: self.operations,
            attributes: newer.attributes.or(self.attributes),
        }
    }
}
