//! What a fault's target means now, and how it is written.

use faults::{Role, pick};
use history::{FaultId, HostId};
use scenario::{FaultTarget, Level};

use super::Faulting;

impl Faulting {
    /// Hosts that a target means now.
    pub(super) fn hosts_of(&self, target: &FaultTarget, fault: FaultId) -> Vec<HostId> {
        let role = |role, level| {
            let on = self.datacentre.vms_on();
            let leader = self.leader();
            let picked = pick(role, leader, &on, self.seed, fault);
            picked.map_or_else(Vec::new, |vm| self.hosts_around(self.datacentre.vms[vm].host(), level))
        };
        match target {
            FaultTarget::Place(place) => self.hosts_under(&place.path),
            FaultTarget::Leader(level) => role(Role::Leader, *level),
            FaultTarget::AFollower(level) => role(Role::AFollower, *level),
            FaultTarget::Coordinator(level) | FaultTarget::Random(level) => role(Role::Random, *level),
        }
    }

    pub(super) fn hosts_under(&self, path: &[String]) -> Vec<HostId> {
        self.datacentre
            .hosts
            .ids()
            .filter(|host| self.datacentre.hosts[*host].path.starts_with(path))
            .collect()
    }

    /// The hosts of the rack, zone or region that a host stands in.
    pub(super) fn hosts_around(&self, host: HostId, level: Level) -> Vec<HostId> {
        let path = &self.datacentre.hosts[host].path;
        self.hosts_under(&path[..self.path_length(path, level)])
    }

    /// How many names of a host's path name its region, zone, rack or itself.
    pub(super) fn path_length(&self, path: &[String], level: Level) -> usize {
        let length = match level {
            Level::Region => 1,
            Level::Zone => 2,
            // A zone without racks is one rack.
            Level::Rack => path.len() - 1,
            Level::Host => path.len(),
        };
        length.min(path.len())
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Region => "region",
        Level::Zone => "zone",
        Level::Rack => "rack",
        Level::Host => "host",
    }
}

/// A target as written in a scenario: `host: leader`.
pub(super) fn describe(target: &FaultTarget) -> String {
    match target {
        FaultTarget::Place(place) => format!("{}: {place}", level_name(place.level)),
        FaultTarget::Leader(level) => format!("{}: leader", level_name(*level)),
        FaultTarget::AFollower(level) => format!("{}: a-follower", level_name(*level)),
        FaultTarget::Coordinator(level) => format!("{}: coordinator", level_name(*level)),
        FaultTarget::Random(level) => format!("{}: random", level_name(*level)),
    }
}
