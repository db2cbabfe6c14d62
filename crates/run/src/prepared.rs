//! A database that is ready for load, and where it is.
//!
//! Owns what a run knows before its first load starts. How the database came about is `preparation`'s and `external`'s.

use std::sync::Arc;

use faults::Planted;
use history::RunFacts;
use load::LoadPlan;

use crate::in_the_lab::Lab;
use crate::target::Target;

/// Everything there is before the first load starts.
pub struct Prepared {
    /// One plan per load.
    pub plans: Vec<LoadPlan>,
    /// The facts written into the first event.
    pub facts: RunFacts,
    /// Lies planted by a test; empty in every honest run.
    pub planted: Planted,
    /// What the database claims of transactions, where a load asks for no other level.
    pub isolation: engine::Isolation,
    /// The lab; none for a cluster that exists.
    pub lab: Option<Arc<Lab>>,
    /// Where the database is.
    target: Arc<dyn Target>,
}

impl Prepared {
    /// With a lab that is up, and its facts.
    #[must_use]
    pub fn in_the_lab(
        lab: Lab,
        plans: Vec<LoadPlan>,
        facts: RunFacts,
        (planted, isolation): (Planted, engine::Isolation),
    ) -> Prepared {
        let lab = Arc::new(lab);
        Prepared { plans, facts, planted, isolation, target: lab.clone(), lab: Some(lab) }
    }

    /// On a cluster that exists. No more is claimed for it than that nobody reads what was not committed.
    pub(crate) fn on_a_cluster(target: Arc<dyn Target>, plans: Vec<LoadPlan>, facts: RunFacts) -> Prepared {
        let isolation = engine::Isolation::ReadCommitted;
        Prepared { plans, facts, planted: Planted::new(), isolation, lab: None, target }
    }

    /// Where the database is.
    pub(crate) fn target(&self) -> &dyn Target {
        self.target.as_ref()
    }
}
