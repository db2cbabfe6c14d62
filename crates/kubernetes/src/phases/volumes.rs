//! Where the volumes of one pod are attached.

use std::collections::{BTreeMap, BTreeSet};

use super::Phase;
use super::gaps::Moment;
use super::steps::Steps;

#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// The claims of the pod, and of those before it of its name.
    claims: BTreeSet<String>,
    /// The volume that is bound to a claim.
    bound: BTreeMap<String, String>,
    /// Volumes and nodes that they are attached to.
    attached: BTreeSet<(String, String)>,
}

impl Volumes {
    pub(super) fn mounted(&mut self, claims: &[String]) {
        self.claims.extend(claims.iter().cloned());
    }

    pub(super) fn bound(&mut self, claim: &str, volume: Option<&str>) {
        if let Some(volume) = volume {
            self.bound.insert(claim.to_owned(), volume.to_owned());
        }
    }

    pub(super) fn see(
        &mut self,
        (volume, node): (&str, &str),
        is_attached: bool,
        moment: Moment,
        steps: &mut Steps,
    ) {
        let pair = (volume.to_owned(), node.to_owned());
        let is_news = if is_attached { self.attached.insert(pair) } else { self.attached.remove(&pair) };
        let is_of_pod =
            self.claims.iter().any(|claim| self.bound.get(claim).is_some_and(|one| one == volume));
        if is_news && is_of_pod {
            let phase = if is_attached { Phase::VolumeAttached } else { Phase::VolumeDetached };
            steps.tell(phase, volume, moment);
        }
    }
}
