//! The round-trip matrix: every pair of nodes and clients' places, measured from inside, beside what was asked.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use history::RoundTrip;
use lab::round_trip::{End, round_trips};

use crate::datacentre::{Datacentre, node_name};

/// Round trips measured for each pair; their median is what counts.
const SAMPLES: usize = 11;
/// How long an answer may take beyond what was asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pairs measured at most: a matrix of a large site would take longer than its run.
const PAIRS_MAX: usize = 200;
/// Pairs measured at the same time, few enough not to disturb each other on two processors.
const AT_ONCE: usize = 4;

/// A place that can be measured from: a node with power or a place where clients stand.
#[derive(Debug)]
pub struct Station {
    /// Its name: `n1`, `clients in dc1`.
    pub name: String,
    /// Its names from the region down.
    pub path: Vec<String>,
    /// Its address.
    pub address: Ipv4Addr,
    namespace: OwnedFd,
}

impl Station {
    /// As an end of a measurement.
    #[must_use]
    pub fn end(&self) -> End<'_> {
        End { namespace: &self.namespace, address: self.address }
    }
}

/// Every place that can be measured from now.
#[must_use]
pub fn stations(datacentre: &Datacentre) -> Vec<Station> {
    let nodes = datacentre.vms.iter().enumerate().filter_map(|(index, vm)| {
        let mut path = datacentre.hosts[vm.host()].path.clone();
        path.push(node_name(index));
        Some(Station { name: node_name(index), path, address: vm.ipv4(), namespace: vm.namespace()? })
    });
    let places = datacentre.client_places.iter().filter_map(|(name, place)| {
        let mut path: Vec<String> = name.split('/').map(str::to_owned).collect();
        path.push("clients".to_owned());
        let namespace = place.namespace().try_clone().ok()?;
        Some(Station { name: format!("clients in {name}"), path, address: place.address(), namespace })
    });
    nodes.chain(places).collect()
}

/// Measures every pair. `one_way` says what is asked of the network from one path to another.
#[must_use]
pub fn matrix(stations: &[Station], one_way: impl Fn(&[String], &[String]) -> Duration) -> Vec<RoundTrip> {
    let pairs: Vec<(&Station, &Station)> = stations
        .iter()
        .enumerate()
        .flat_map(|(index, from)| stations[index + 1..].iter().map(move |to| (from, to)))
        .take(PAIRS_MAX)
        .collect();
    let mut measured = Vec::with_capacity(pairs.len());
    for group in pairs.chunks(AT_ONCE) {
        measured.extend(std::thread::scope(|scope| {
            let threads: Vec<_> = group
                .iter()
                .map(|(from, to)| {
                    let asked = one_way(&from.path, &to.path) + one_way(&to.path, &from.path);
                    scope.spawn(move || measure(from, to, asked))
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
        }));
    }
    measured
}

/// Measures one pair: the median of several round trips.
#[must_use]
pub fn measure(from: &Station, to: &Station, asked: Duration) -> RoundTrip {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    // The handshake takes one round trip and a half before the first byte.
    let times = round_trips(from.end(), to.end(), SAMPLES, PATIENCE + asked * 2);
    let measured_us = times.ok().and_then(|mut times| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().map(micros)
    });
    RoundTrip { from: from.name.clone(), to: to.name.clone(), asked_us: micros(asked), measured_us }
}
