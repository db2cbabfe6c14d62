//! How a member's machine is reached, in `remote`'s terms.
//!
//! Owns the way from the scenario's words to a `Reach`. Opens none.

use std::path::PathBuf;

use remote::Reach;
use scenario::{Cluster, Kubernetes, Member, MemberReach};

/// How a member's machine is reached. Commands about a pod run on this one, and leave is given for the pod.
#[must_use]
pub fn reach_of(cluster: &Cluster, member: &Member) -> Option<Reach> {
    let reach = member.reach.as_ref()?;
    Some(match &cluster.kubernetes {
        Some(Kubernetes { namespace, .. }) => Reach::Pod { pod: format!("{namespace}/{}", member.name) },
        None => reach_by(cluster, reach),
    })
}

/// How a machine is reached.
#[must_use]
pub fn reach_by(cluster: &Cluster, reach: &MemberReach) -> Reach {
    match reach {
        MemberReach::Ssh(host) => {
            let config = cluster.ssh_config.as_ref().map(PathBuf::from);
            Reach::Ssh { host: host.clone(), port: None, config }
        }
        MemberReach::Local(through) => Reach::Local { through: through.clone() },
    }
}
