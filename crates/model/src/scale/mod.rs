//! Clusters far larger than any one machine: which failures stop ranges, how likely data is lost, what a rebuild moves.
//!
//! Owns the cluster's shape and where replicas are. Chance only from a seed.

pub mod availability;
pub mod blast;
pub mod durability;
mod placement;
pub mod rebuild;

use thiserror::Error;

pub use placement::{Placement, Replicas, place};

/// Why a cluster cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// Something of which there must be at least one is not there.
    #[error("{0} is 0, and must be 1 or more")]
    Nothing(&'static str),
    /// Replicas must stand on different hosts.
    #[error("{replicas} replicas need as many hosts, and there are {hosts}")]
    TooManyReplicas {
        /// Replicas of a range.
        replicas: usize,
        hosts: usize,
    },
    /// More than this program looks at.
    #[error("{what} is {value}, and may be at most {most}")]
    TooMany {
        what: &'static str,
        /// How many were asked for.
        value: usize,
        /// How many there may be.
        most: usize,
    },
    /// Copysets must be wide enough to hold a range.
    #[error("a scatter width of {width} is less than the {least} other replicas of a range")]
    NarrowScatter {
        /// The width asked for.
        width: usize,
        /// The least that does.
        least: usize,
    },
}

/// Hosts at most.
pub const MOST_HOSTS: usize = 15_000;
/// Ranges at most.
pub const MOST_RANGES: usize = 10_000_000;
/// Replicas of a range at most.
pub const MOST_REPLICAS: usize = 9;

/// A cluster: one node on each host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The rack of each host.
    pub rack_of_host: Vec<u32>,
    /// The zone of each rack.
    pub zone_of_rack: Vec<u32>,
    /// The region of each zone.
    pub region_of_zone: Vec<u32>,
}

/// A level at which things fail together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    Host,
    Rack,
    Zone,
    Region,
}

impl Domain {
    /// All of them, smallest first.
    pub const ALL: [Domain; 4] = [Domain::Host, Domain::Rack, Domain::Zone, Domain::Region];

    /// One word for people: `host`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Domain::Host => "host",
            Domain::Rack => "rack",
            Domain::Zone => "zone",
            Domain::Region => "region",
        }
    }
}

impl Cluster {
    /// A cluster of so many regions, zones, racks and hosts in all, each level dealt out evenly over the one above.
    ///
    /// # Errors
    /// When one of them is none, or there are more hosts than this program looks at. Fewer hosts than racks (or racks
    /// than zones) leave out what would be empty.
    pub fn even(regions: usize, zones: usize, racks: usize, hosts: usize) -> Result<Cluster, ShapeError> {
        for (what, value) in [("regions", regions), ("zones", zones), ("racks", racks), ("hosts", hosts)] {
            if value == 0 {
                return Err(ShapeError::Nothing(what));
            }
        }
        if hosts > MOST_HOSTS {
            return Err(ShapeError::TooMany { what: "hosts", value: hosts, most: MOST_HOSTS });
        }
        let racks = racks.min(hosts);
        let zones = zones.min(racks);
        let regions = regions.min(zones);
        // Hosts of one rack follow each other, and so on up: numbers of a place are a stretch.
        let deal = |items: usize, places: usize| -> Vec<u32> {
            (0..items).map(|item| (item * places / items) as u32).collect()
        };
        Ok(Cluster {
            rack_of_host: deal(hosts, racks),
            zone_of_rack: deal(racks, zones),
            region_of_zone: deal(zones, regions),
        })
    }

    /// How many hosts.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.rack_of_host.len()
    }

    /// How many of a level.
    #[must_use]
    pub fn count(&self, domain: Domain) -> usize {
        match domain {
            Domain::Host => self.hosts(),
            Domain::Rack => self.zone_of_rack.len(),
            Domain::Zone => self.region_of_zone.len(),
            Domain::Region => self.region_of_zone.last().map_or(0, |region| *region as usize + 1),
        }
    }

    /// The place of a level in which a host stands.
    #[must_use]
    pub fn around(&self, host: u32, domain: Domain) -> u32 {
        let rack = self.rack_of_host[host as usize];
        match domain {
            Domain::Host => host,
            Domain::Rack => rack,
            Domain::Zone => self.zone_of_rack[rack as usize],
            Domain::Region => self.region_of_zone[self.zone_of_rack[rack as usize] as usize],
        }
    }

    /// Hosts of each place of a level, in order.
    #[must_use]
    pub fn hosts_by(&self, domain: Domain) -> Vec<Vec<u32>> {
        let mut by = vec![Vec::new(); self.count(domain)];
        for host in 0..self.hosts() as u32 {
            by[self.around(host, domain) as usize].push(host);
        }
        by
    }
}
