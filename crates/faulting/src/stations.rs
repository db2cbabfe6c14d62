//! The round-trip matrix: every pair of nodes and clients' places, measured from inside, beside what was asked.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use fabric::Block;
use history::{HostId, NodeId, RoundTrip};
use lab::round_trip::{End, round_trips};
use paper::RequestedNetwork;
use platform::{Datacentre, Host, Standstill};

/// Round trips measured for each pair; their median is what counts.
const SAMPLES: usize = 11;
/// How long an answer may take beyond what was asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same where no answer is to come.
const CUT_PATIENCE: Duration = Duration::from_millis(300);
/// Pairs measured at most: a matrix of a large site would take longer than its run.
const PAIRS_MAX: usize = 200;
/// Pairs measured at the same time, few enough not to disturb each other on two processors.
const AT_ONCE: usize = 4;

/// A place that can be measured from: a node with power or a place where clients stand.
#[derive(Debug)]
pub struct Station {
    /// Its name: `n1`, `clients in dc1`.
    pub name: String,
    /// Its names from the region down, when it was found.
    pub path: Vec<String>,
    /// Its address, in the family the scenario's site speaks.
    pub address: IpAddr,
    namespace: OwnedFd,
    stands_on: StandsOn,
    /// Just before its path was asked for.
    found: Instant,
}

/// What a station is there with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StandsOn {
    /// A node, in the boot whose init has this process number.
    Node(NodeId, Option<u32>),
    Host(HostId),
    /// A place of clients, which has no power to lose.
    Clients,
}

impl Station {
    /// As an end of a measurement.
    #[must_use]
    pub fn end(&self) -> End<'_> {
        End { namespace: &self.namespace, address: self.address }
    }

    /// Whether it still has the power it had.
    #[must_use]
    pub fn is_there(&self, datacentre: &Datacentre) -> bool {
        match self.stands_on {
            StandsOn::Node(vm, init) => datacentre.vms[vm].init_pid_on_network() == init,
            StandsOn::Host(host) => datacentre.hosts[host].is_on(),
            StandsOn::Clients => true,
        }
    }

    /// When it stood still to be moved, since it was found.
    #[must_use]
    pub fn standstills(&self, datacentre: &Datacentre) -> Vec<Standstill> {
        let StandsOn::Node(vm, _) = self.stands_on else { return Vec::new() };
        let mut standstills = datacentre.vms[vm].standstills();
        standstills.retain(|stood| stood.ended.is_none_or(|ended| ended > self.found));
        standstills
    }

    /// Bytes of the headers before a datagram's content: UDP's, and IP's in the family of its address.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        if self.address.is_ipv4() { 28 } else { 48 }
    }
}

#[cfg(test)]
impl Station {
    /// Clients in a region, in no network.
    pub(crate) fn of_clients(region: &str) -> Station {
        let nowhere = std::fs::File::open("/dev/null").expect("every machine has one");
        Station {
            name: format!("clients in {region}"),
            path: vec![region.to_owned(), "clients".to_owned()],
            address: IpAddr::from([127, 0, 0, 1]),
            namespace: nowhere.into(),
            stands_on: StandsOn::Clients,
            found: Instant::now(),
        }
    }
}

/// Every place that can be measured from now.
#[must_use]
pub fn stations(datacentre: &Datacentre) -> Vec<Station> {
    let found = Instant::now();
    let nodes = datacentre.vms.numbered().filter_map(|(node, vm)| {
        let mut path = datacentre.hosts[vm.host()].path.clone();
        path.push(node.to_string());
        let stands_on = StandsOn::Node(node, vm.init_pid());
        let (name, namespace) = (node.to_string(), vm.namespace()?);
        Some(Station { name, path, address: vm.address(), namespace, stands_on, found })
    });
    let places = datacentre.client_places.iter().filter_map(|(name, place)| {
        let mut path: Vec<String> = name.split('/').map(str::to_owned).collect();
        path.push("clients".to_owned());
        let namespace = place.namespace().try_clone().ok()?;
        let (name, address) = (format!("clients in {name}"), place.address());
        Some(Station { name, path, address, namespace, stands_on: StandsOn::Clients, found })
    });
    nodes.chain(places).collect()
}

/// The same, and hosts with power where a path holds no node and no clients: of each the first. What they have to say to each
/// other is what components of volumes do.
#[must_use]
pub fn stations_at(datacentre: &Datacentre, places: &[&[String]]) -> Vec<Station> {
    let mut found = stations(datacentre);
    for place in places {
        if found.iter().any(|station| station.path.starts_with(place)) {
            continue;
        }
        let mut hosts = datacentre.hosts.numbered();
        let host = hosts.find(|(_, host)| host.is_on() && host.path.starts_with(place));
        found.extend(host.and_then(|(number, host)| host_station(number, host)));
    }
    found
}

/// Every place that packets come from or go to: stations, and all hosts with power.
#[must_use]
pub fn everywhere(datacentre: &Datacentre) -> Vec<Station> {
    let hosts = datacentre.hosts.numbered().filter(|(_, host)| host.is_on());
    let mut found = stations(datacentre);
    found.extend(hosts.filter_map(|(number, host)| host_station(number, host)));
    found
}

fn host_station(number: HostId, host: &Host) -> Option<Station> {
    let found = Instant::now();
    let namespace = host.namespace().try_clone().ok()?;
    let (name, path) = (format!("host {}", host.name()), host.path.clone());
    let stands_on = StandsOn::Host(number);
    Some(Station { name, path, address: host.address, namespace, stands_on, found })
}

/// Measures every pair, beside what is asked of the network.
#[must_use]
pub fn matrix(stations: &[Station], asked: &RequestedNetwork) -> Vec<RoundTrip> {
    let pairs: Vec<(&Station, &Station)> = stations
        .iter()
        .enumerate()
        .flat_map(|(index, from)| stations[index + 1..].iter().map(move |to| (from, to)))
        .take(PAIRS_MAX)
        .collect();
    let mut measured = Vec::with_capacity(pairs.len());
    for group in pairs.chunks(AT_ONCE) {
        measured.extend(std::thread::scope(|scope| {
            let threads: Vec<_> =
                group.iter().map(|(from, to)| scope.spawn(move || measure_beside(from, to, asked))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
        }));
    }
    measured
}

fn measure_beside(from: &Station, to: &Station, asked: &RequestedNetwork) -> RoundTrip {
    let (there, back) = (asked.treatment(&from.path, &to.path), asked.treatment(&to.path, &from.path));
    let round_trip = Duration::from_nanos(there.delay_ns.saturating_add(back.delay_ns));
    if there.block == Block::Open && back.block == Block::Open {
        return measure(from, to, round_trip);
    }
    RoundTrip { cut: true, ..measure_within(from, to, round_trip, CUT_PATIENCE + round_trip * 2) }
}

/// Measures one pair: the median of several round trips.
#[must_use]
pub fn measure(from: &Station, to: &Station, asked: Duration) -> RoundTrip {
    // The handshake takes one round trip and a half before the first byte.
    measure_within(from, to, asked, PATIENCE + asked * 2)
}

fn measure_within(from: &Station, to: &Station, asked: Duration, patience: Duration) -> RoundTrip {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let times = round_trips(from.end(), to.end(), SAMPLES, patience);
    let measured_us = times.ok().and_then(|mut times| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().map(micros)
    });
    let (from, to) = (from.name.clone(), to.name.clone());
    RoundTrip { from, to, asked_us: micros(asked), measured_us, cut: false }
}
