//! Whether the services that led to one pod lead to it, or to another in its place, again.

use std::collections::{BTreeMap, BTreeSet};

use super::Phase;
use super::gaps::Moment;
use super::steps::Steps;
use crate::objects::Endpoints;
use crate::sightings::Change;

#[derive(Debug)]
pub(super) struct Services<'a> {
    pod: &'a str,
    slices: BTreeMap<String, Slice>,
    /// Of each service that led to the pod at the fault, the pods that it has led to ever since.
    led_to: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug)]
struct Slice {
    service: String,
    /// The pods, each by what tells it from others of its name, if anything does.
    pods: BTreeSet<String>,
    /// Whether the pod is among them.
    has_pod: bool,
}

impl<'a> Services<'a> {
    pub(super) fn of(pod: &'a str) -> Services<'a> {
        Services { pod, slices: BTreeMap::new(), led_to: BTreeMap::new() }
    }

    /// What services lead to now is what they led to at the fault.
    pub(super) fn strike(&mut self) {
        let of_pod = self.slices.values().filter(|slice| slice.has_pod);
        let services: BTreeSet<String> = of_pod.map(|slice| slice.service.clone()).collect();
        self.led_to = services.into_iter().map(|name| (name.clone(), self.pods_of(&name))).collect();
    }

    pub(super) fn see(&mut self, change: Change, endpoints: &Endpoints, moment: Moment, steps: &mut Steps) {
        if change == Change::Deleted {
            self.slices.remove(&endpoints.slice);
        } else {
            let has_uids = !endpoints.ready_uids.is_empty();
            let pods = if has_uids { &endpoints.ready_uids } else { &endpoints.ready };
            let slice = Slice {
                service: endpoints.service.clone(),
                pods: pods.clone(),
                has_pod: endpoints.ready.contains(self.pod),
            };
            self.slices.insert(endpoints.slice.clone(), slice);
        }
        let now = self.pods_of(&endpoints.service);
        let Some(led_to) = self.led_to.get_mut(&endpoints.service) else { return };
        if !now.is_subset(led_to) {
            steps.tell(Phase::EndpointUpdated, &endpoints.service, moment);
        }
        // One that comes back is as good as another.
        led_to.retain(|pod| now.contains(pod));
    }

    fn pods_of(&self, service: &str) -> BTreeSet<String> {
        let slices = self.slices.values().filter(|slice| slice.service == service);
        slices.flat_map(|slice| slice.pods.iter().cloned()).collect()
    }
}
