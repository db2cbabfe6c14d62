//! What happens to the pods of one name: which of them is there, and how far it is. The UID tells one from the next.

use std::collections::BTreeSet;

use super::Phase;
use super::gaps::Moment;
use super::steps::Steps;
use crate::objects::Pod;
use crate::sightings::Change;

/// Phases that a pod and its successor both go through.
const OF_EACH_POD: [Phase; 3] = [Phase::PodScheduled, Phase::ContainerStarted, Phase::PodReady];

#[derive(Debug)]
pub(super) struct PodStory<'a> {
    name: &'a str,
    /// The pod that is there, as it was seen last.
    now: Option<Looked>,
    /// Those that are not there any longer.
    gone: BTreeSet<String>,
    /// The one that was there at the fault.
    struck: Option<Looked>,
}

/// What counts of a pod.
#[derive(Debug, Clone, Default)]
struct Looked {
    uid: String,
    node: Option<String>,
    restarts: u32,
    started_unix_s: Option<f64>,
    is_ready: bool,
    is_deletion_asked: bool,
}

impl Looked {
    fn at(pod: &Pod) -> Looked {
        Looked {
            uid: pod.uid.clone(),
            node: pod.node.clone(),
            restarts: pod.restarts,
            started_unix_s: pod.container_started_unix_s,
            is_ready: pod.is_ready,
            is_deletion_asked: pod.deletion_asked_unix_s.is_some(),
        }
    }

    /// What holds of it and did not before.
    fn since(&self, before: &Looked) -> Vec<Phase> {
        let is_other_start = (self.started_unix_s, self.restarts) != (before.started_unix_s, before.restarts);
        let held = [
            (Phase::PodDeleted, self.is_deletion_asked && !before.is_deletion_asked),
            (Phase::PodScheduled, self.node.is_some() && before.node.is_none()),
            (Phase::ContainerStarted, self.started_unix_s.is_some() && is_other_start),
            // Of no use to anybody where it is to end.
            (Phase::PodReady, self.is_ready && !before.is_ready && !self.is_deletion_asked),
        ];
        held.into_iter().filter_map(|(phase, holds)| holds.then_some(phase)).collect()
    }
}

impl<'a> PodStory<'a> {
    pub(super) fn of(name: &'a str) -> PodStory<'a> {
        PodStory { name, now: None, gone: BTreeSet::new(), struck: None }
    }

    pub(super) fn name(&self) -> &str {
        self.name
    }

    /// The pod that is there now is the one that the fault struck.
    pub(super) fn strike(&mut self) {
        self.struck = self.now.clone();
    }

    /// Where the pod was that the fault struck.
    pub(super) fn node_at_fault(&self) -> Option<&str> {
        self.struck.as_ref().and_then(|struck| struck.node.as_deref())
    }

    pub(super) fn see(&mut self, change: Change, pod: &Pod, moment: Moment, steps: &mut Steps) {
        if pod.name != self.name || self.gone.contains(&pod.uid) {
            return;
        }
        if change == Change::Deleted {
            self.leaves(&pod.uid, moment, steps);
            return;
        }
        let looked = Looked::at(pod);
        let other = self.now.as_ref().map(|now| now.uid.clone()).filter(|uid| *uid != pod.uid);
        if let Some(uid) = other {
            // Its end was not seen, and lies before this.
            self.leaves(&uid, moment, steps);
        }
        let before = match self.now.take() {
            Some(now) => Some(now),
            None if self.gone.is_empty() => None,
            None => {
                steps.tell(Phase::PodCreated, self.name, moment);
                Some(Looked::default())
            }
        };
        // Of a pod that is seen for the first time, and follows none, nothing is known to be new.
        for phase in before.iter().flat_map(|before| looked.since(before)) {
            steps.tell(phase, self.name, moment);
        }
        self.now = Some(looked);
    }

    fn leaves(&mut self, uid: &str, moment: Moment, steps: &mut Steps) {
        self.gone.insert(uid.to_owned());
        if self.now.as_ref().is_some_and(|now| now.uid != uid) {
            return;
        }
        self.now = None;
        steps.tell(Phase::PodGone, self.name, moment);
        if self.struck.as_ref().is_some_and(|struck| struck.uid == uid) {
            OF_EACH_POD.iter().for_each(|phase| steps.forget(*phase, self.name));
        }
    }
}
