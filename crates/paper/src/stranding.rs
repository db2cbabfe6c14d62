//! On paper: which nodes would stay off after the loss of one host, because no other host may have them.
//!
//! Owns asking; who may run where is the crate `placement`'s to say.

use history::HostId;
use placement::{Cluster, Stranded, stranded_by};
use scenario::{Failover, Scenario};

/// What was found; only where the scenario says anything of capacities or rules, and nodes are restarted elsewhere.
pub struct PlacementSurvey {
    /// The site at the beginning.
    pub cluster: Cluster,
    /// By the host that is lost: nodes that stay off.
    pub stranded: Vec<(HostId, Vec<Stranded>)>,
}

pub(crate) fn survey(scenario: &Scenario) -> Option<PlacementSurvey> {
    let database = &scenario.database;
    let restarts = matches!(database.failover, Failover::HaRestart { .. });
    if !restarts || database.platform == scenario::VmPlatform::default() {
        return None;
    }
    let cluster = database.platform.cluster(&scenario.site, database);
    let of_host = |host: &HostId| (*host, stranded_by(&cluster, &[*host]));
    let stranded = database.nodes.iter().map(of_host).filter(|(_, stranded)| !stranded.is_empty()).collect();
    Some(PlacementSurvey { stranded, cluster })
}
