//! The pretend datacentre, as the rest of the program sees it.
//!
//! Owns these types, not how they are read from YAML.

use std::time::Duration;

use history::PerHost;
use serde::Serialize;

use super::disks::Disks;

/// Hosts and what lies between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Site {
    /// Every host, in the file's order.
    pub hosts: PerHost<Host>,
    /// What lies between places, one entry per direction, in the file's order. For each condition by itself the most
    /// specific pair that speaks of it wins; of equals, the last.
    pub links: Vec<Link>,
    /// What everything that leaves or enters a place shares, in the file's order.
    pub edges: Vec<Edge>,
    /// How long the fabric looks for packets without sleeping; zero: it sleeps at once.
    pub busy_poll: Duration,
    /// The version of IP that the database and its clients speak. Every place has an address of both.
    pub ip: IpVersion,
    /// The disks of every host.
    pub disks: Disks,
    /// Which way packets go of which nothing is asked.
    #[serde(skip_serializing_if = "NetworkPath::is_fabric")]
    pub network_path: NetworkPath,
}

/// Which way packets go between places of which nothing is asked: no link, edge, fault, capture or count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPath {
    /// Through the lab's own network, as all others.
    #[default]
    Fabric,
    /// Past it, by the kernel's forwarding.
    Kernel,
}

impl NetworkPath {
    /// Whether all packets go through the lab's own network.
    #[must_use]
    pub fn is_fabric(&self) -> bool {
        *self == NetworkPath::Fabric
    }
}

/// A version of the internet protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum IpVersion {
    /// IPv4.
    #[default]
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

/// A level of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Region,
    /// A zone within a region.
    Zone,
    /// A rack within a zone.
    Rack,
    Host,
}

/// A place of the site by its full path, outermost first: `["dc1", "a", "r1", "h2"]`. A zone without racks has
/// hosts straight in it, whose path is one shorter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// What kind of place.
    pub level: Level,
    /// Names from the region down.
    pub path: Vec<String>,
}

impl Place {
    /// Whether one is the other, or contains it.
    #[must_use]
    pub fn overlaps(&self, other: &Place) -> bool {
        self.path.starts_with(&other.path) || other.path.starts_with(&self.path)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path.join("/"))
    }
}

/// A host of the site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Region's name.
    pub region: String,
    /// Zone's name.
    pub zone: String,
    /// Rack's name, where the zone has racks.
    pub rack: Option<String>,
    pub name: String,
}

impl Host {
    /// Names from the region down, ending with the host's own.
    #[must_use]
    pub fn path(&self) -> Vec<String> {
        let mut path = vec![self.region.clone(), self.zone.clone()];
        path.extend(self.rack.clone());
        path.push(self.name.clone());
        path
    }

    /// Whether the host stands in `place` (or is it).
    #[must_use]
    pub fn is_in(&self, place: &Place) -> bool {
        self.path().starts_with(&place.path)
    }
}

/// What lies between two places, one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// Where packets leave.
    pub from: Place,
    /// Where they arrive.
    pub to: Place,
    /// What happens to them on the way.
    pub conditions: Conditions,
}

/// What everything that leaves a place shares, and what everything that enters it shares: an edge router, a host's
/// network card. A packet crosses every edge on its way, besides what the links do to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Its name in the report.
    pub name: String,
    /// The place it stands around.
    pub around: Place,
    /// What it carries each way.
    pub rate_bits_per_s: u64,
    /// How much waits for that, each way, before packets are dropped.
    pub queue: Option<Queue>,
}

/// How much waits for a rate before packets are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets, whatever their size.
    Packets(u64),
}

/// What happens to packets on their way in one direction. What is absent is not spoken of: on a link it is whatever a
/// wider link says and nothing where none does; in a fault it stays as the links have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Conditions {
    /// How long they take.
    pub delay: Option<Duration>,
    /// How much that differs from packet to packet; only beside a delay.
    pub jitter: Option<Jitter>,
    /// Share of packets that are lost, 0 to 1.
    pub loss: Option<f64>,
    /// Share of packets that arrive twice, 0 to 1.
    pub duplicate: Option<f64>,
    /// Share of packets that take no delay and so overtake those before them, 0 to 1.
    pub reorder: Option<f64>,
    /// Share of packets that arrive with a bit flipped, 0 to 1.
    pub corrupt: Option<f64>,
    /// What the direction carries, shared by everything that crosses it.
    pub rate_bits_per_s: Option<u64>,
    /// How much waits for that rate before packets are dropped.
    pub queue: Option<Queue>,
    /// Bytes of the largest IP packet that passes.
    pub mtu_bytes: Option<u32>,
}

/// How much the delay of one packet differs from that of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Jitter {
    /// How far delays spread: what it measures depends on the distribution.
    pub spread: Duration,
    /// Its shape.
    pub distribution: Distribution,
}

/// The shape of jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Evenly from the delay less the spread to the delay plus the spread.
    Uniform,
    /// The spread is the standard deviation.
    Normal,
    /// The spread is the mean of what is added to the delay.
    Exponential,
    /// A heavy tail above the delay, as netem's table has it.
    Pareto,
}
