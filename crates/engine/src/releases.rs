//! Which programs each node of a cluster runs: those it began with, or those it was upgraded to.
//!
//! Owns that choice. When a node is restarted, and whether the restart was seen, is the caller's business.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::{EngineError, Installation, Node};

/// The programs of a cluster's nodes.
#[derive(Debug)]
pub(crate) struct Releases {
    first: Installation,
    next: Option<Installation>,
    /// The nodes that run the next from their next start on.
    upgraded: Mutex<BTreeSet<String>>,
}

impl Releases {
    pub(crate) fn new(first: Installation, next: Option<Installation>) -> Releases {
        Releases { first, next, upgraded: Mutex::default() }
    }

    /// What the cluster began with.
    pub(crate) fn first(&self) -> &Installation {
        &self.first
    }

    /// What a node runs from its next start on.
    pub(crate) fn of(&self, node: &str) -> &Installation {
        let upgraded = self.upgraded.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.next {
            Some(next) if upgraded.contains(node) => next,
            _ => &self.first,
        }
    }

    /// From its next start on the node runs what the cluster is upgraded to.
    ///
    /// # Errors
    /// [`EngineError::NothingToUpgradeTo`].
    pub(crate) fn upgrade(&self, node: &dyn Node) -> Result<(), EngineError> {
        if self.next.is_none() {
            return Err(EngineError::NothingToUpgradeTo { node: node.name().to_owned() });
        }
        let mut upgraded = self.upgraded.lock().unwrap_or_else(PoisonError::into_inner);
        upgraded.insert(node.name().to_owned());
        Ok(())
    }
}
