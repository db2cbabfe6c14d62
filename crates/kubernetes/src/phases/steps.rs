//! The steps found so far: of each phase of each object the first after the fault.

use std::collections::BTreeMap;

use super::gaps::Moment;
use super::{Phase, Step};

#[derive(Debug)]
pub(super) struct Steps {
    from_unix_s: f64,
    found: BTreeMap<(Phase, String), Moment>,
}

impl Steps {
    /// None so far, of a fault at this time.
    pub(super) fn after(from_unix_s: f64) -> Steps {
        Steps { from_unix_s, found: BTreeMap::new() }
    }

    pub(super) fn tell(&mut self, phase: Phase, of: &str, moment: Moment) {
        if moment.unix_s >= self.from_unix_s {
            self.found.entry((phase, of.to_owned())).or_insert(moment);
        }
    }

    /// It was another object's of the same name.
    pub(super) fn forget(&mut self, phase: Phase, of: &str) {
        self.found.remove(&(phase, of.to_owned()));
    }

    pub(super) fn into_vec(self) -> Vec<Step> {
        let steps = self.found.into_iter();
        steps
            .map(|((phase, of), moment)| Step {
                phase,
                of,
                unix_s: moment.unix_s,
                after_gap: moment.after_gap,
            })
            .collect()
    }
}
