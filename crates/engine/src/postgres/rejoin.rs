//! A node that comes back after the cluster went on without it: brought up to date, rewound or copied anew, and
//! started as a standby, never as anything else.
//!
//! Owns the choice of the gentlest way that is safe.

use std::time::Duration;

use super::configuration::connection_string;
use super::{DATA, Postgres, REJOINING_FILE, last_lines};
use crate::{EngineError, Node, RejoinMethod, Rejoined};

/// How long a rejoined standby may take to stream.
const JOIN_PATIENCE: Duration = Duration::from_secs(60);
/// How long a former standby is given to find the new leader's log fit for it, before it is copied anew.
const FOLLOW_PATIENCE: Duration = Duration::from_secs(10);
/// How long the leader may take over a checkpoint.
const CHECKPOINT_PATIENCE: Duration = Duration::from_secs(120);

impl Postgres {
    pub(super) fn rejoin_leader(&self, node: &dyn Node, leader: &dyn Node) -> Result<Rejoined, EngineError> {
        self.admit(node, leader)?;
        self.join(node, leader).inspect_err(|_| {
            // A half-joined server must not go on; the first error is the one worth telling.
            let _ = self.shut_down(node, FOLLOW_PATIENCE);
        })
    }

    fn join(&self, node: &dyn Node, leader: &dyn Node) -> Result<Rejoined, EngineError> {
        let interrupted = self.exists(node, REJOINING_FILE)?;
        let was_standby = self.exists(node, &format!("{DATA}/standby.signal"))?;
        self.write(node, REJOINING_FILE, "this node's data are being made to follow another leader\n")?;
        self.clear_stale_locks(node)?;
        self.state().upstream.insert(node.name().to_owned(), leader.name().to_owned());
        self.make_slots(leader)?;

        let mut notes = Vec::new();
        let method = if interrupted {
            notes.push("an earlier attempt was interrupted, so its data is not trustworthy".to_owned());
            None
        } else if was_standby {
            self.try_following(node, leader, &mut notes)?
        } else {
            self.try_rewinding(node, leader, &mut notes)?
        };
        let method = match method {
            Some(method) => method,
            None => {
                self.run_on(node, "/bin/rm", &["-rf", &Self::data(node)])?;
                self.copy_from(node, leader)?;
                RejoinMethod::Copy
            }
        };
        if method != RejoinMethod::Follow {
            self.write_configuration(node)?;
            self.write(node, &format!("{DATA}/standby.signal"), "")?;
            self.launch(node)?;
            self.await_streaming(leader, node, JOIN_PATIENCE)?;
        }
        self.await_ready(node, JOIN_PATIENCE)?;
        self.settle(node, leader)?;
        notes.extend(self.acknowledgements_note());
        Ok(Rejoined { method, notes })
    }

    /// Refuses what could make two leaders or a cluster of strangers.
    fn admit(&self, node: &dyn Node, leader: &dyn Node) -> Result<(), EngineError> {
        for one in [node, leader] {
            if !self.state().members.contains_key(one.name()) {
                return Err(EngineError::Stranger { node: one.name().to_owned() });
            }
        }
        if self.is_running(node) {
            return Err(EngineError::Running { node: node.name().to_owned() });
        }
        let remembered = self.state().leader.as_deref() == Some(leader.name());
        if node.name() == leader.name()
            || !remembered
            || !self.takes_writes(leader, super::admin::PATIENCE)?
        {
            return Err(EngineError::NotLeader { node: leader.name().to_owned() });
        }
        Ok(())
    }

    /// A former standby: it can follow if it has nothing that the new leader lacks. pg_rewind is not for it: the
    /// recovery that pg_rewind makes first would end its log with an entry of its own, which pg_rewind does not undo
    /// where that log is behind the new leader's.
    fn try_following(
        &self,
        node: &dyn Node,
        leader: &dyn Node,
        notes: &mut Vec<String>,
    ) -> Result<Option<RejoinMethod>, EngineError> {
        self.write_configuration(node)?;
        self.launch(node)?;
        match self.await_streaming(leader, node, FOLLOW_PATIENCE) {
            Ok(()) => Ok(Some(RejoinMethod::Follow)),
            Err(error) => {
                let words = error.to_string();
                notes.push(format!(
                    "it could not simply follow: {}",
                    words.lines().next().unwrap_or_default()
                ));
                self.shut_down(node, FOLLOW_PATIENCE)?;
                Ok(None)
            }
        }
    }

    /// A former leader: what it alone has is undone.
    fn try_rewinding(
        &self,
        node: &dyn Node,
        leader: &dyn Node,
        notes: &mut Vec<String>,
    ) -> Result<Option<RejoinMethod>, EngineError> {
        // Before a promoted server's first checkpoint pg_rewind takes it for the old one and does nothing.
        let behind = "SELECT (SELECT timeline_id FROM pg_control_checkpoint()) \
                      <> ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int";
        if self.value(leader, behind)? == "t" {
            self.admin.query_within(leader, "CHECKPOINT", CHECKPOINT_PATIENCE)?;
        }
        let source = connection_string(node.name(), leader.address(), self.configuration.port);
        let source = format!("{source} dbname={}", super::configuration::DATABASE);
        let data = Self::data(node);
        let arguments = ["-D", &data, "--source-server", &source, "--no-sync"];
        let finished = node.run(&self.command(node, "pg_rewind", &arguments))?;
        let said = format!("{}\n{}", finished.stdout, finished.stderr);
        if !finished.status.success() {
            notes.push(format!("pg_rewind ended with {}: {}", finished.status, last_lines(&said, 3)));
            return Ok(None);
        }
        if said.contains("no rewind required") {
            // A leader's log is never behind its standby's unless it lost some of what it had flushed; then what it
            // wrote while recovering is in its new leader's way.
            notes.push(
                "its log ends before the point where the new leader's log diverges, so it lost part of its own log".to_owned(),
            );
            return Ok(None);
        }
        Ok(Some(RejoinMethod::Rewind))
    }

    /// The node counts again: slots of its own time as leader are dropped, acknowledgements waited for as before.
    fn settle(&self, node: &dyn Node, leader: &dyn Node) -> Result<(), EngineError> {
        self.remove(node, REJOINING_FILE)?;
        let unused = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active";
        self.admin.query(node, unused)?;
        self.state().present.insert(node.name().to_owned());
        self.write_configuration(leader)?;
        self.reload(leader)
    }
}
