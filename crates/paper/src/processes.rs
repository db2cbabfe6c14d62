//! Faults of processes on paper: which of them leave something that `model` can judge.
//!
//! A node whose processes are killed or stopped keeps its host, its volume and what the kernel holds of it in memory: nothing
//! that was acknowledged goes with them. What follows depends on whether another takes the leader's place before they run again.

use std::time::Duration;

use model::deployment::Deployment;
use model::survival::Failure;
use scenario::{Failover, ProcessDeed, ProcessFault, Scenario};

use crate::deployment::election_s_least;

/// How long a leader that does not answer is waited for before another takes its place, at least; nothing where nobody does.
pub(crate) fn takes_over_after(scenario: &Scenario) -> Option<Duration> {
    match scenario.database.failover {
        Failover::Promote { after } => Some(after),
        Failover::HaRestart { .. } | Failover::None => {
            election_s_least(scenario).map(Duration::from_secs_f64)
        }
    }
}

/// The failure that it is when it strikes the node of a host and stands for so long; or why it is not judged.
pub(crate) fn failure_of(
    fault: &ProcessFault,
    stands: Duration,
    (host, deployment): (&[String], &Deployment),
    takes_over_after: Option<Duration>,
) -> Result<Failure, &'static str> {
    let nodes_here = deployment.nodes.ids().filter(|node| deployment.host_of(*node) == host).count();
    if fault.only.is_some() {
        return Err("it affects one of several programs on a node");
    }
    if fault.how == ProcessDeed::Restart {
        return Err("the database restarts as soon as its shutdown is complete");
    }
    if takes_over_after.is_some_and(|after| stands < after) {
        return Err("it ends before a failover, and the page cache survives");
    }
    if nodes_here > 1 {
        return Err("it affects one of several nodes on the host");
    }
    Ok(Failure::Silent(host.to_vec()))
}
