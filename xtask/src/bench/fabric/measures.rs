//! What is measured, one function each: readings of one side at a time, under the names by which the table finds them.
//! Lives inside the lab of the bench.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context, ensure};
use fabric::{Fabric, Options, Rule};
use lab::accounting::machine_busy_and_total_ticks;
use nix::unistd::{SysconfVar, sysconf};

use super::instrument::Job;
use super::test_places::{Place, Route, fabric_over};
use super::toxiproxy::{self, Toxic, Toxiproxy};

/// Round trips measured at a time.
const ROUND_TRIPS: usize = 4_000;
/// Stamps sent at a time, and how far apart: a few are on their way at any moment, as in a database's replication.
const STAMPS: usize = 400;
const STAMP_INTERVAL_US: u64 = 5_000;
/// The delay whose lateness is measured.
const DELAY: Duration = Duration::from_millis(50);
/// Payload and whole of a full packet of a TCP stream: 20 bytes of IP, 20 of TCP and 12 of its time stamps.
const PACKET_PAYLOAD_BYTES: f64 = 1448.0;
const PACKET_BYTES: f64 = 1500.0;

/// One figure.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Reading {
    /// Whose, and of what.
    pub name: String,
    /// In the unit the name ends with.
    pub value: f64,
}

pub(super) fn reading(whose: &str, what: &str, value: f64) -> Reading {
    Reading { name: format!("{whose} {what}"), value }
}

/// A value such that this share of all is not larger.
fn quantile(values: &[f64], share: f64) -> anyhow::Result<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1).context("nothing was measured")?;
    Ok(sorted[(last as f64 * share).round() as usize])
}

/// Where the CPU time of what carries is read.
#[derive(Debug, Clone, Copy)]
pub enum Carried<'a> {
    /// By the kernel itself: no process to account it to.
    Kernel,
    /// By the fabric.
    Fabric(&'a Fabric),
    /// By the proxy, with this toxic.
    Toxiproxy(&'a Toxiproxy, Toxic),
}

impl Carried<'_> {
    fn cpu_time(self) -> anyhow::Result<Duration> {
        match self {
            Carried::Kernel => Ok(Duration::ZERO),
            Carried::Fabric(fabric) => Ok(fabric.cpu_time()),
            Carried::Toxiproxy(proxy, _) => proxy.cpu_time(),
        }
    }
}

/// Whom clients are to connect to when a server listens on this port.
fn target(route: &Route<'_>, port: u16, carried: Carried<'_>) -> anyhow::Result<std::net::SocketAddr> {
    let target = route.target(port);
    match carried {
        Carried::Toxiproxy(_, toxic) => route.client.inside(|| toxiproxy::put_before(target, toxic)),
        Carried::Kernel | Carried::Fabric(_) => Ok(target),
    }
}

/// Round trips of one byte: their times, and the CPU time of the carrier for each packet.
pub fn round_trips(whose: &str, route: &Route<'_>, carried: Carried<'_>) -> anyhow::Result<Vec<Reading>> {
    let (server, port) = route.server.listen(&Job::Echo { address: route.address })?;
    let target = target(route, port, carried)?;
    let before = carried.cpu_time()?;
    let mut client = route.client.start(&Job::RoundTrips { target, count: ROUND_TRIPS })?;
    let seen = client.next()?;
    let used = carried.cpu_time()?.saturating_sub(before);
    client.finish()?;
    server.finish()?;
    let packets = (ROUND_TRIPS + ROUND_TRIPS / 10) as f64 * 2.0;
    Ok(vec![
        reading(whose, "round trip p50 us", quantile(&seen.times_us, 0.5)?),
        reading(whose, "round trip p99 us", quantile(&seen.times_us, 0.99)?),
        reading(whose, "round trip CPU us a packet", used.as_secs_f64() * 1e6 / packets),
    ])
}

/// One TCP stream at full speed.
pub fn throughput(whose: &str, route: &Route<'_>, carried: Carried<'_>) -> anyhow::Result<Vec<Reading>> {
    let drain = Job::Drain { address: route.address, skip_s: 0.3, window_s: 2.0, windows: 1 };
    let (mut server, port) = route.server.listen(&drain)?;
    let target = target(route, port, carried)?;
    let before = carried.cpu_time()?;
    let client = route.client.start(&Job::Pour { target })?;
    let seen = server.next()?;
    let used = carried.cpu_time()?.saturating_sub(before);
    server.finish()?;
    client.finish()?;
    Ok(vec![
        reading(whose, "throughput Gbit/s", quantile(&seen.bits_per_s, 0.5)? / 1e9),
        reading(whose, "CPU s per GB", used.as_secs_f64() * 1e9 / seen.bytes as f64),
    ])
}

/// Small datagrams from one place to another, more than can be carried: what the fabric's thread needs for each.
pub fn flood(route: &Route<'_>, fabric: &Fabric) -> anyhow::Result<Vec<Reading>> {
    let (before, cpu_before) = (fabric.counters()?, fabric.cpu_time());
    let client = route.client.start(&Job::Flood { target: route.target(9), seconds: 1.0 })?;
    client.finish()?;
    let (after, cpu_after) = (fabric.counters()?, fabric.cpu_time());
    let packets = after.delivered_packets - before.delivered_packets;
    ensure!(packets > 1000, "the flood was {packets} packets");
    let used = cpu_after.saturating_sub(cpu_before);
    Ok(vec![
        reading("fabric", "flood CPU us a packet", used.as_secs_f64() * 1e6 / packets as f64),
        reading("fabric", "flood packets a second", packets as f64),
    ])
}

/// The same by the kernel: what the whole machine needs for each that arrives, the sender's and the receiver's part as well.
pub fn kernel_flood(whose: &str, route: &Route<'_>) -> anyhow::Result<Vec<Reading>> {
    let arrived = || route.server.inside(datagrams_for_nobody);
    let (before, (busy_before, _)) = (arrived()?, machine_busy_and_total_ticks()?);
    let client = route.client.start(&Job::Flood { target: route.target(9), seconds: 1.0 })?;
    client.finish()?;
    let (after, (busy_after, _)) = (arrived()?, machine_busy_and_total_ticks()?);
    let packets = after - before;
    ensure!(packets > 1000, "the flood was {packets} packets");
    let ticks_per_s = sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100) as f64;
    let busy_us = (busy_after - busy_before) as f64 / ticks_per_s * 1e6;
    Ok(vec![
        reading(whose, "flood machine us a packet", busy_us / packets as f64),
        reading(whose, "flood packets a second", packets as f64),
    ])
}

/// Datagrams that came to this network namespace for a port at which nobody listens (`Udp: NoPorts` of proc(5) `net/snmp`).
fn datagrams_for_nobody() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = lines.next().zip(lines.next()).context("net/snmp has two lines on UDP")?;
    let of_name = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "NoPorts");
    Ok(of_name.context("net/snmp counts NoPorts")?.1.parse()?)
}

/// Times from a stamp's writing to its reading, one way over TCP.
fn one_way_us(route: &Route<'_>, carried: Carried<'_>) -> anyhow::Result<Vec<f64>> {
    let (mut server, port) = route.server.listen(&Job::Arrivals { address: route.address })?;
    let target = target(route, port, carried)?;
    let job = Job::Stamps { target, count: STAMPS, interval_us: STAMP_INTERVAL_US };
    let client = route.client.start(&job)?;
    let seen = server.next()?;
    client.finish()?;
    server.finish()?;
    ensure!(seen.times_us.len() == STAMPS, "{} of {STAMPS} stamps arrived", seen.times_us.len());
    Ok(seen.times_us)
}

fn lateness(whose: &str, plain_us: &[f64], delayed_us: &[f64]) -> anyhow::Result<Vec<Reading>> {
    // What the way takes without a delay is not the delay's lateness.
    let base_us = quantile(plain_us, 0.5)? + DELAY.as_nanos() as f64 / 1e3;
    let late_ms = |share| anyhow::Ok((quantile(delayed_us, share)? - base_us) / 1e3);
    Ok(vec![
        reading(whose, "lateness p50 ms", late_ms(0.5)?),
        reading(whose, "lateness p99 ms", late_ms(0.99)?),
    ])
}

/// How late what the fabric delays arrives.
pub fn fabric_lateness(route: &Route<'_>) -> anyhow::Result<Vec<Reading>> {
    let places = [route.client, route.server];
    let fabric = fabric_over(&places, Options::default(), Rule::default())?;
    let plain_us = one_way_us(route, Carried::Fabric(&fabric))?;
    let _delayed = fabric.impose(Rule {
        from: vec![route.client.address.to_string()],
        delay: Some(DELAY),
        ..Rule::default()
    })?;
    lateness("fabric", &plain_us, &one_way_us(route, Carried::Fabric(&fabric))?)
}

/// How late what toxiproxy delays arrives.
pub fn toxiproxy_lateness(route: &Route<'_>, proxy: &Toxiproxy) -> anyhow::Result<Vec<Reading>> {
    let plain_us = one_way_us(route, Carried::Toxiproxy(proxy, Toxic::None))?;
    let delayed_us = one_way_us(route, Carried::Toxiproxy(proxy, Toxic::Delay(DELAY)))?;
    lateness("toxiproxy", &plain_us, &delayed_us)
}

/// A rate asked for, and how to look at it.
#[derive(Debug, Clone, Copy)]
pub struct RateProbe {
    /// As people say it.
    pub name: &'static str,
    bits_per_s: u64,
    /// Until the sender has found its speed.
    skip_s: f64,
    /// Windows whose median counts, so that a machine that stalled for a moment is not taken for the limit; each long
    /// enough for a packet more or less to be nothing.
    window_s: f64,
    windows: usize,
}

/// All that are tried.
pub const RATES: [RateProbe; 5] = [
    RateProbe { name: "1 Mbit/s", bits_per_s: 1_000_000, skip_s: 5.0, window_s: 4.0, windows: 1 },
    RateProbe { name: "10 Mbit/s", bits_per_s: 10_000_000, skip_s: 3.0, window_s: 1.0, windows: 3 },
    RateProbe { name: "100 Mbit/s", bits_per_s: 100_000_000, skip_s: 1.0, window_s: 0.2, windows: 9 },
    RateProbe { name: "1 Gbit/s", bits_per_s: 1_000_000_000, skip_s: 0.5, window_s: 0.1, windows: 19 },
    RateProbe { name: "5 Gbit/s", bits_per_s: 5_000_000_000, skip_s: 0.5, window_s: 0.05, windows: 39 },
];

/// Payload that one stream brings through, bits a second.
fn goodput(route: &Route<'_>, carried: Carried<'_>, rate: RateProbe) -> anyhow::Result<f64> {
    let RateProbe { skip_s, window_s, windows, .. } = rate;
    let (mut server, port) =
        route.server.listen(&Job::Drain { address: route.address, skip_s, window_s, windows })?;
    let client = route.client.start(&Job::Pour { target: target(route, port, carried)? })?;
    let seen = server.next()?;
    // What still waits before a slow link would take its time to leave.
    drop((client, server));
    quantile(&seen.bits_per_s, 0.5)
}

fn error_percent(measured: f64, rate: RateProbe) -> f64 {
    (measured / rate.bits_per_s as f64 - 1.0).abs() * 100.0
}

/// How far what one stream gets over a link of the fabric is from the link's rate: as on the wire, all its packets full.
pub fn fabric_rate(route: &Route<'_>, rate: RateProbe) -> anyhow::Result<Vec<Reading>> {
    let rule = Rule {
        from: vec![route.client.address.to_string()],
        rate_bits_per_s: Some(rate.bits_per_s),
        ..Rule::default()
    };
    let fabric = fabric_over(&[route.client, route.server], Options::default(), rule)?;
    let wire = goodput(route, Carried::Fabric(&fabric), rate)? * PACKET_BYTES / PACKET_PAYLOAD_BYTES;
    Ok(vec![reading("fabric", &format!("error at {} percent", rate.name), error_percent(wire, rate))])
}

/// The same of toxiproxy, whose rates are of payload.
pub fn toxiproxy_rate(route: &Route<'_>, proxy: &Toxiproxy, rate: RateProbe) -> anyhow::Result<Vec<Reading>> {
    let toxic = Toxic::Rate { bits_per_s: rate.bits_per_s };
    let payload = goodput(route, Carried::Toxiproxy(proxy, toxic), rate)?;
    Ok(vec![reading("toxiproxy", &format!("error at {} percent", rate.name), error_percent(payload, rate))])
}

/// The way inside a place, where a proxy stands when nothing else is asked for.
#[must_use]
pub fn loopback(place: &Place) -> Route<'_> {
    Route { client: place, server: place, address: IpAddr::V4(Ipv4Addr::LOCALHOST) }
}
