//! The scenario as the rest of the program sees it.

use std::time::Duration;

use serde::Serialize;

use crate::faults::{Fault, FaultAction};
use crate::file::About;
use crate::release::Release;
use crate::resolved::pace::WARM_UP;
use crate::resolved::{Cluster, Database, Expectation, Load, Site, Sweep};

/// A checked scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Its name: also the name of its folder under `runs/`.
    pub name: String,
    /// What it says of itself.
    #[serde(flatten)]
    pub about: About,
    /// The seed; drawn at the start of the run where the file gives none.
    pub seed: Option<u64>,
    /// The cluster that exists, where it runs against one. The site and the database then have one host and one node for
    /// each of its members.
    pub cluster: Option<Cluster>,
    pub site: Site,
    pub database: Database,
    pub loads: Vec<Load>,
    /// Phases in order, each with its faults.
    pub schedule: Vec<Phase>,
    /// What must hold.
    pub expect: Vec<Expectation>,
}

impl Scenario {
    /// The programs that the schedule upgrades nodes to, where it does.
    #[must_use]
    pub fn upgrade_to(&self) -> Option<&Release> {
        let mut faults = self.schedule.iter().flat_map(|phase| &phase.faults);
        faults.find_map(|fault| match &fault.action {
            FaultAction::RollingUpgrade(upgrade) => Some(&upgrade.to),
            _ => None,
        })
    }

    /// The faults of its schedule, in order.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.schedule.iter().flat_map(|phase| &phase.faults)
    }
}

/// A stretch of the run's time line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// Its name. `warm-up` is left out of totals, `baseline` is what recovery is measured against.
    pub name: String,
    /// How long it lasts; whole seconds.
    pub length: Duration,
    /// Faults that begin in it, in order of time.
    pub faults: Vec<Fault>,
}

impl Load {
    /// What is asked from when on: seconds from the start, clients, and in an open loop the rate a second.
    #[must_use]
    pub fn steps(&self, schedule: &[Phase]) -> Vec<(Duration, u32, Option<f64>)> {
        if let Some(ramp) = &self.pace.ramp {
            let warm_up = schedule.iter().take_while(|phase| phase.name == WARM_UP).map(|phase| phase.length);
            let steps = ramp.steps(warm_up.sum(), self.clients);
            let rate = |step: (Duration, u32, Option<f64>)| (step.0, step.1, step.2.or(self.pace.rate_per_s));
            return steps.into_iter().map(rate).collect();
        }
        let Some(sweep) = &self.pace.sweep else {
            return vec![(Duration::ZERO, self.clients, self.pace.rate_per_s)];
        };
        let value = |place: usize| match sweep {
            Sweep::Clients(values) => {
                (values.get(place).copied().unwrap_or(self.clients), self.pace.rate_per_s)
            }
            Sweep::Rate(values) => (self.clients, values.get(place).copied()),
        };
        let mut steps = Vec::new();
        let (mut begins, mut place) = (Duration::ZERO, 0);
        for phase in schedule {
            let (clients, rate) = value(place);
            steps.push((begins, clients, rate));
            begins += phase.length;
            place += usize::from(phase.name != WARM_UP);
        }
        steps
    }
}
