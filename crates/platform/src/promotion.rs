//! A standby is made the leader: the most advanced, and of equals the nearest to the lost one.
//!
//! Owns the order of the candidates, and that nobody is promoted beside a leader that has come back. Who is most advanced its engine
//! finds out.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{EngineError, Node, Promotion};
use history::{EventKind, NodeId, PlatformAction};

use crate::decisions::Occurrence;
use crate::platform::{Platform, Promotions, RETRY};

impl Platform {
    /// Whether somebody is up who could be promoted.
    pub(crate) fn promotion_possible(&self) -> bool {
        let leader = self.leader();
        self.datacentre.vms_on().iter().any(|vm| *vm != leader)
    }

    /// Standbys with the round trip to the lost leader's host, the shortest first; equals in their order.
    fn nearest_first(&self, lost: NodeId, standbys: Vec<NodeId>) -> Vec<(NodeId, Duration)> {
        let path = |vm: NodeId| self.datacentre.host_of(vm).path.as_slice();
        let apart = |vm: &NodeId| (*vm, self.nearness.round_trip(path(lost), path(*vm)));
        let mut standbys: Vec<(NodeId, Duration)> = standbys.iter().map(apart).collect();
        standbys.sort_by_key(|(_, apart)| *apart);
        standbys
    }

    /// Waits until it is known whether this node may still lead. If it may, it does from here on: as long as what is returned is kept
    /// nobody else is promoted, and as soon as it has power nobody is in its place. It may not while a standby may lead that was asked
    /// to, even if that one has lost its power since. None when the platform stops first.
    pub(crate) fn turn_to_return(&self, vm: NodeId) -> Option<MutexGuard<'_, Promotions>> {
        loop {
            let turn = self.promoting.lock().unwrap_or_else(PoisonError::into_inner);
            if self.leader() != vm || (*turn == Promotions::None && !self.promotion_possible()) {
                return Some(turn);
            }
            drop(turn);
            if !self.pause(RETRY) {
                return None;
            }
        }
    }

    /// Promotes a standby in place of the lost leader, unless that has been done: a leader that falls silent and then loses its
    /// host is lost twice. A leader that came back while no standby was up goes on: two leaders would come of anything else.
    pub(crate) fn promote(&self, lost: NodeId) {
        loop {
            let mut turn = self.promoting.lock().unwrap_or_else(PoisonError::into_inner);
            if self.leader() != lost {
                return;
            }
            if self.datacentre.vms[lost].is_on() {
                let node = lost.to_string();
                let what = format!(
                    "{node} has power again before anybody was promoted in its place; it stays the leader"
                );
                return self.events.say(EventKind::Platform { action: PlatformAction::CutShort, node, what });
            }
            if !self.promotion_possible() {
                drop(turn);
                if !self.pause(RETRY) {
                    return;
                }
                continue;
            }
            let standbys = self.datacentre.vms_on().into_iter().filter(|vm| *vm != lost).collect();
            let standbys = self.nearest_first(lost, standbys);
            let candidates: Vec<Arc<dyn Node>> = standbys.iter().map(|(vm, _)| self.node(*vm)).collect();
            let before = std::mem::replace(&mut *turn, Promotions::Begun);
            match self.engine.promote(&candidates) {
                Ok(promotion) => {
                    *turn = Promotions::None;
                    let leader = self.datacentre.vms.named(&promotion.leader);
                    self.state().leader = leader.unwrap_or(lost);
                    let what = promoted_in_words(&promotion, &standbys);
                    let node = promotion.leader.clone();
                    self.events.say(EventKind::Platform { action: PlatformAction::Promote, node, what });
                    self.events.say(EventKind::Leader { node: promotion.leader });
                    drop(turn);
                    // One that was lost before it was known to lead was not missed.
                    if let Some(leader) = leader.filter(|leader| !self.datacentre.vms[*leader].is_on()) {
                        self.follow(&Occurrence::VmsLost(vec![leader]));
                    }
                    return;
                }
                Err(error) => {
                    if matches!(error, EngineError::NoCandidate { .. }) {
                        *turn = before;
                    }
                    self.trouble("promote a standby", &error.to_string());
                    drop(turn);
                    if !self.pause(RETRY) {
                        return;
                    }
                }
            }
        }
    }
}

/// Who was promoted, and why this one.
fn promoted_in_words(promotion: &Promotion, standbys: &[(NodeId, Duration)]) -> String {
    let positions: Vec<String> =
        promotion.positions.iter().map(|(node, position)| format!("{node} at {position}")).collect();
    let distances: Vec<String> =
        standbys.iter().map(|(vm, apart)| format!("{vm} {:.1} ms", apart.as_secs_f64() * 1e3)).collect();
    let mut what = format!(
        "{} promoted, the most advanced of: {}; tie-break: lowest round trip to the lost leader's host: {}",
        promotion.leader,
        positions.join(", "),
        distances.join(", ")
    );
    for remark in &promotion.notes {
        what.push_str("; ");
        what.push_str(remark);
    }
    what
}
