//! The recovery from one fault, told in phases: when each of them was first seen to hold. Pure.
//!
//! Owns the order in which sightings are looked at. A phase that held before the fault is none of its recovery; one that was not seen
//! is not told, whatever is likely. All times are this machine's, those of the sightings.

mod endpoints;
mod gaps;
mod lease;
mod pod;
mod steps;
mod volumes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::endpoints::Services;
use self::gaps::{Gaps, Moment};
use self::pod::PodStory;
use self::steps::Steps;
use self::volumes::Volumes;
use crate::objects::Node;
use crate::sightings::{Change, Seen, Sighting};

/// A part of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The cluster took the pod's node for lost.
    NodeLost,
    /// The node did not renew its lease for as long as it lasts. At the latest: the renewal may have been seen late.
    LeaseExpired,
    /// Somebody asked for the pod's end.
    PodDeleted,
    /// The pod is gone from the cluster, which may not mean that its process has ended.
    PodGone,
    /// There is another pod of its name.
    PodCreated,
    /// The pod has a node.
    PodScheduled,
    /// The volume is no longer attached to a node that it was attached to.
    VolumeDetached,
    /// The volume is attached to a node.
    VolumeAttached,
    /// The pod's container runs, as another one than before.
    ContainerStarted,
    PodReady,
    /// A service that led to the pod leads to it again, to its successor, or to another pod in its place.
    EndpointUpdated,
}

/// A phase, and when it was first seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Which.
    pub phase: Phase,
    /// The pod, node, volume or service.
    pub of: String,
    /// When it was first seen to hold.
    pub unix_s: f64,
    /// Whether the watch was interrupted just before: it may have held earlier.
    pub after_gap: bool,
}

/// What was seen of the recovery of a pod's member after a fault, in the order of time. `pod` is the name, which a successor has as
/// well. Phases of the pod that was there at the fault are not taken for those of its successor.
#[must_use]
pub fn told(sightings: &[Sighting], pod: &str, from_unix_s: f64, to_unix_s: f64) -> Vec<Step> {
    let mut ordered: Vec<&Sighting> =
        sightings.iter().filter(|sighting| sighting.unix_s <= to_unix_s).collect();
    ordered.sort_by(|one, other| one.unix_s.total_cmp(&other.unix_s));
    let mut story = Story::new(pod, from_unix_s);
    for sighting in &ordered {
        story.see(sighting);
    }
    let node = story.pod.node_at_fault().map(str::to_owned);
    let mut steps = story.steps.into_vec();
    steps.extend(node.and_then(|node| lease::expired(&ordered, &node, from_unix_s)));
    steps.sort_by(|one, other| one.unix_s.total_cmp(&other.unix_s).then(one.phase.cmp(&other.phase)));
    steps
}

struct Story<'a> {
    from_unix_s: f64,
    is_after_fault: bool,
    gaps: Gaps,
    pod: PodStory<'a>,
    /// Of each node whether it was lost when it was seen last.
    nodes: BTreeMap<String, bool>,
    volumes: Volumes,
    services: Services<'a>,
    steps: Steps,
}

impl<'a> Story<'a> {
    fn new(pod: &'a str, from_unix_s: f64) -> Story<'a> {
        Story {
            from_unix_s,
            is_after_fault: false,
            gaps: Gaps::default(),
            pod: PodStory::of(pod),
            nodes: BTreeMap::new(),
            volumes: Volumes::default(),
            services: Services::of(pod),
            steps: Steps::after(from_unix_s),
        }
    }

    fn see(&mut self, sighting: &Sighting) {
        let moment = self.gaps.moment(sighting);
        if !self.is_after_fault && sighting.unix_s >= self.from_unix_s {
            self.is_after_fault = true;
            self.pod.strike();
            self.services.strike();
        }
        match &sighting.what {
            Seen::Pod { change, pod } => {
                self.pod.see(*change, pod, moment, &mut self.steps);
                if pod.name == self.pod.name() {
                    self.volumes.mounted(&pod.claims);
                }
            }
            Seen::Node { change, node } => self.see_node(*change, node, moment),
            Seen::Endpoints { change, endpoints } => {
                self.services.see(*change, endpoints, moment, &mut self.steps);
            }
            Seen::Attachment { volume, node, is_attached } => {
                self.volumes.see((volume.as_str(), node.as_str()), *is_attached, moment, &mut self.steps);
            }
            Seen::Claim { claim, volume } => self.volumes.bound(claim, volume.as_deref()),
            Seen::Lease { .. } | Seen::Gap { .. } => {}
        }
    }

    fn see_node(&mut self, change: Change, node: &Node, moment: Moment) {
        let is_lost = change == Change::Deleted || node.is_lost();
        let was_lost = self.nodes.insert(node.name.clone(), is_lost);
        if is_lost && was_lost == Some(false) && self.pod.node_at_fault() == Some(node.name.as_str()) {
            self.steps.tell(Phase::NodeLost, &node.name, moment);
        }
    }
}
