//! Rules about what lies under the database: mirrors, where their components are, when they are rebuilt.
//!
//! Sources by their short names: FR-1 and FR-2 (a datastore that mirrors, failures to tolerate = 1), FR-4 (asynchronous
//! replication between two hosts, promoted by hand). They are told with those of a layout.

use super::{Judgement, LayoutFacts, judged};
use crate::crowded::crowded;
use crate::storage::{Acknowledge, Promotion};

/// What a scenario says of mirrors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MirrorFacts {
    /// Components of each volume.
    pub components: usize,
    /// How long a component is missed before it is rebuilt elsewhere, in seconds.
    pub rebuild_after_s: f64,
    /// The longest that the schedule takes a host's power, or a disk, in seconds; nothing when it never does.
    pub outage_s_max: Option<f64>,
}

pub(super) fn mirrored_storage(facts: &LayoutFacts) -> Judgement {
    match facts.mirrors {
        Some(MirrorFacts { components, .. }) => judged(
            components > 1,
            format!("each volume has {components} component{}", if components == 1 { "" } else { "s" }),
        ),
        None => Judgement::DoesNotApply,
    }
}

pub(super) fn copies_apart(facts: &LayoutFacts) -> Judgement {
    let deployment = &facts.deployment;
    let is_mirrored = deployment.storage.volumes.iter().any(crate::storage::Volume::is_mirrored);
    if !is_mirrored || deployment.nodes.len() < 2 {
        return Judgement::DoesNotApply;
    }
    match crowded(deployment).first() {
        Some(shared) => Judgement::Departs(format!(
            "{} copies of the same data are lost with host {}",
            shared.nodes.len() + shared.mirrors.len(),
            deployment.hosts[shared.host].join("/")
        )),
        None => Judgement::Follows("no host holds a replica and the mirror of another".to_owned()),
    }
}

pub(super) fn rebuild_waits(facts: &LayoutFacts) -> Judgement {
    let Some(mirrors) = facts.mirrors.filter(|mirrors| mirrors.components > 1) else {
        return Judgement::DoesNotApply;
    };
    match mirrors.outage_s_max {
        Some(outage_s) => judged(
            mirrors.rebuild_after_s > outage_s,
            format!(
                "components are rebuilt after {} s; the longest outage lasts {outage_s} s",
                mirrors.rebuild_after_s
            ),
        ),
        None => Judgement::DoesNotApply,
    }
}

pub(super) fn never_forced_behind(facts: &LayoutFacts) -> Judgement {
    let Some(volume) = facts.deployment.storage.volumes.iter().find(|volume| volume.is_mirrored()) else {
        return Judgement::DoesNotApply;
    };
    match (volume.acknowledge, volume.promotion) {
        (Acknowledge::Async, Promotion::Forced) => Judgement::Departs(
            "an asynchronous mirror is promoted by force: writes that it has not received are lost"
                .to_owned(),
        ),
        (Acknowledge::Async, Promotion::UpToDate) => {
            Judgement::Follows("a mirror that may lack writes is not promoted".to_owned())
        }
        (Acknowledge::Sync | Acknowledge::Semi, _) => {
            Judgement::Follows("the mirror has every acknowledged write".to_owned())
        }
    }
}
