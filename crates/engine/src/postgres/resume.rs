//! A cluster that is ended in order on all its nodes, and started again from what lies on their volumes.
//!
//! Owns the order of both. Nothing is copied and nobody is made to follow another: the roles are those of `bootstrap`.

use std::sync::Arc;

use super::bootstrap::{START_PATIENCE, Steps, leader_and_standbys};
use super::{DATA, Postgres};
use crate::node::at_once;
use crate::{Cluster, EngineError, Node, REST_PATIENCE};

impl Postgres {
    /// The leader first: it ends when its standbys have all of its log, the last checkpoint included.
    pub(super) fn end_cluster(&self, nodes: &[Arc<dyn Node>]) -> Result<(), EngineError> {
        let (leader, standbys) = leader_and_standbys(nodes)?;
        self.end_in_order(leader)?;
        at_once(standbys, |standby| self.end_in_order(standby)).into_iter().collect()
    }

    fn end_in_order(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.shut_down(node, REST_PATIENCE)?;
        // One that was killed, or has crashed, leaves its lock file.
        if self.exists(node, &format!("{DATA}/postmaster.pid"))? {
            return Err(self.not_ready(node, "the database has not ended in order", REST_PATIENCE));
        }
        Ok(())
    }

    pub(super) fn resume_cluster(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        let (leader, standbys) = leader_and_standbys(nodes)?;
        self.enrol(leader, standbys)?;
        let mut steps = Steps::new();
        for launched in at_once(nodes, |node| self.launch(node)) {
            launched?;
        }
        self.await_ready(leader, START_PATIENCE)?;
        steps.done("servers started");
        self.await_cluster(leader, standbys, steps)
    }
}
