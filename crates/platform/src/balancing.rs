//! Moves of VMs that run, without anybody asking: when they are looked for, and that they are made one after the other.
//!
//! Owns the moment and the order. Which moves are worth it `placement` says; how one is made is `migrating`'s.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use history::{EventKind, HostId, NodeId, PlatformAction};
use placement::{Decision, Drs, MoveReason};

use crate::migrating::MigrationOrder;
use crate::platform::Platform;
use crate::reasons;

/// Nothing is moved before hosts and nodes have been as they are for so long: what has just returned starts first.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Rounds of copying before a move is given up as not converging.
const MOST_ROUNDS: u32 = 10;

/// A move that is worth it.
struct Move {
    vm: NodeId,
    from: HostId,
    to: HostId,
    reason: MoveReason,
}

impl Platform {
    /// Looks for moves worth making now that something has changed, and makes them one after the other.
    pub(crate) fn balance(self: &Arc<Self>) {
        if self.drs != Drs::Off {
            self.state().hosts_changed = Some(Instant::now());
            self.clone().begin("balance".to_owned(), Platform::make_moves);
        }
    }

    /// Who comes while others are being moved waits, and looks again.
    fn make_moves(self: &Arc<Self>) {
        let _one_at_a_time = self.balancing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut refused = BTreeSet::new();
        while self.pause(SETTLED_AFTER) {
            let changed = self.state().hosts_changed;
            if self.is_placing() || changed.is_some_and(|changed| changed.elapsed() < SETTLED_AFTER) {
                continue;
            }
            let Some(next) = self.next_move(&refused) else { return };
            if self.is_in_hand(next.vm) {
                // Its database starts, or it is moved or stopped: what is worth it is asked again afterwards.
                continue;
            }
            let Move { vm, from, to, reason } = next;
            let host = |host: HostId| self.datacentre.hosts[host].name();
            let (node, why) = (vm.to_string(), reasons::moved(reason, &self.cluster));
            let what = format!("{node} is moved from {} to {}: {why}", host(from), host(to));
            self.events.say(EventKind::Platform {
                action: PlatformAction::Balance,
                node: node.clone(),
                what,
            });
            let order = MigrationOrder {
                vm,
                to: Some(to),
                memory_bytes: None,
                stun: Duration::ZERO,
                max_rounds: MOST_ROUNDS,
                moves_anyway: false,
            };
            if let Err(error) = self.migrate(&order, &()) {
                self.trouble(&format!("move {node} to {}", host(to)), &error.to_string());
                refused.insert((vm, to));
            }
        }
    }

    /// The first move that is worth it and was not refused.
    fn next_move(&self, refused: &BTreeSet<(NodeId, HostId)>) -> Option<Move> {
        let moves = placement::rebalance(&self.cluster_as_it_is(), self.drs);
        moves.into_iter().find_map(|decision| match decision {
            Decision::Move { vm, from, to, reason } if !refused.contains(&(vm, to)) => {
                Some(Move { vm, from, to, reason })
            }
            _ => None,
        })
    }
}
