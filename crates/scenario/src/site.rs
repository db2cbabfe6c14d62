//! The `site` section: regions, zones, racks, hosts and the links between them.
//!
//! Owns reading it and expanding it to hosts; finding a place by name is in `places`, links are in `links`.

use std::collections::BTreeMap;
use std::time::Duration;

use history::PerHost;

use crate::catalogue::ROLES;
use crate::decode::Decoder;
use crate::disks;
use crate::edges::{self, EdgeDocument};
use crate::language::{
    IP_VERSIONS, MOST_HOSTS, MOST_ON_KERNEL_PATH, NETWORK, PATHS, RACK, REGION, SITE, ZONE,
};
use crate::links::{self, LinkDocument};
use crate::places::Places;
use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::resolved::{Disks, Edge, Host, IpVersion, Link, NetworkPath, StorageClass};
use crate::storage;
use crate::tree::{Node, Value};

/// The section as written.
pub(crate) struct SiteDocument {
    groups: Vec<HostGroup>,
    links: Vec<LinkDocument>,
    /// The version of IP.
    pub(crate) ip: IpVersion,
    edges: Vec<EdgeDocument>,
    /// How long the fabric looks for packets without sleeping.
    pub(crate) busy_poll: Duration,
    /// The scenario's own storage classes.
    pub(crate) storage_classes: BTreeMap<String, StorageClass>,
    /// Every host's disks.
    pub(crate) disks: Disks,
    /// Where it is said what a sync on them costs.
    pub(crate) sync_at: Option<Spot>,
    /// Which way packets go, and where that is said.
    pub(crate) path: Option<Spanned<NetworkPath>>,
}

/// Longest that the fabric looks for packets without sleeping: what comes after it sleeps is late by less.
const MOST_BUSY_POLL: Duration = Duration::from_millis(1);

/// The hosts of one rack, or of one zone without racks.
struct HostGroup {
    region: String,
    zone: String,
    rack: Option<String>,
    hosts: HostsDocument,
}

enum HostsDocument {
    Count(Spanned<u64>),
    Names(Vec<Spanned<String>>),
}

/// Reads the section.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<SiteDocument> {
    let site = decoder.record(node, &SITE)?;
    let mut groups = Vec::new();
    if let Some(regions) = site.get("regions").and_then(|node| decoder.named(node, "regions")) {
        for (region, node) in regions {
            check_reserved(&region, decoder);
            let Some(record) = decoder.record(node, &REGION) else { continue };
            let Some(zones) = record.get("zones").and_then(|node| decoder.named(node, "zones")) else {
                continue;
            };
            for (zone, node) in zones {
                check_reserved(&zone, decoder);
                decode_zone(&region.value, &zone.value, node, decoder, &mut groups);
            }
        }
    }
    let mut links = Vec::new();
    for node in site.get("links").and_then(|node| decoder.list(node, "links", 0)).unwrap_or_default() {
        links.extend(links::decode(node, decoder));
    }
    let ip = site.get("ip").and_then(|node| decoder.word(node, "version of IP", IP_VERSIONS));
    let ip = if ip.is_some_and(|ip| ip.value == "6") { IpVersion::V6 } else { IpVersion::V4 };
    let mut edges = Vec::new();
    for node in site.get("edges").and_then(|node| decoder.list(node, "edges", 0)).unwrap_or_default() {
        edges.extend(edges::decode(node, decoder));
    }
    let busy_poll =
        site.get("busy-poll").and_then(|node| decode_busy_poll(node, decoder)).unwrap_or_default();
    let classes = site.get("storage_classes").map(|node| storage::decode_classes(node, decoder));
    let storage_classes = classes.unwrap_or_default();
    let disks = site.get("disks").and_then(|node| disks::decode_disks(node, decoder));
    let (disks, sync_at) = disks.unwrap_or_default();
    let path = site.get("network").and_then(|node| decode_path(node, decoder));
    Some(SiteDocument { groups, links, edges, busy_poll, ip, storage_classes, disks, sync_at, path })
}

fn decode_path(node: &Node, decoder: &mut Decoder) -> Option<Spanned<NetworkPath>> {
    let record = decoder.record(node, &NETWORK)?;
    let word = record.get("path").and_then(|node| decoder.word(node, "path", PATHS))?;
    let value = if word.value == "kernel" { NetworkPath::Kernel } else { NetworkPath::Fabric };
    Some(Spanned { value, at: word.at })
}

/// Refuses the kernel's own path where too many places would take it.
pub(crate) fn refuse_too_many_places(
    path: Option<&Spanned<NetworkPath>>,
    places: usize,
    findings: &mut Findings,
) {
    let Some(path) = path.filter(|path| !path.value.is_fabric()) else { return };
    if places > MOST_ON_KERNEL_PATH {
        findings.add(
            "too-large",
            path.at,
            format!("`path: kernel` for {places} hosts and nodes, {MOST_ON_KERNEL_PATH} at most"),
            "too many places",
            "write `path: fabric`, or use fewer hosts and nodes",
        );
    }
}

fn decode_busy_poll(node: &Node, decoder: &mut Decoder) -> Option<Duration> {
    let time = decoder.duration(node, "`busy-poll`", "us")?;
    if time.value > MOST_BUSY_POLL {
        decoder.findings.add(
            "too-large",
            time.at,
            "`busy-poll` of more than 1ms",
            "too long",
            "write 1ms or less; 50us shortens a round trip as much as it can be",
        );
    }
    Some(time.value)
}

fn decode_zone(region: &str, zone: &str, node: &Node, decoder: &mut Decoder, groups: &mut Vec<HostGroup>) {
    let Some(record) = decoder.record(node, &ZONE) else { return };
    let mut add = |rack: Option<String>, hosts: Option<HostsDocument>| {
        groups.extend(hosts.map(|hosts| HostGroup {
            region: region.to_owned(),
            zone: zone.to_owned(),
            rack,
            hosts,
        }));
    };
    if let Some(node) = record.get("hosts") {
        add(None, decode_hosts(node, decoder));
    }
    let Some(racks) = record.get("racks").and_then(|node| decoder.named(node, "racks")) else { return };
    for (rack, node) in racks {
        check_reserved(&rack, decoder);
        let Some(record) = decoder.record(node, &RACK) else { continue };
        let hosts = record.get("hosts").and_then(|node| decode_hosts(node, decoder));
        add(Some(rack.value), hosts);
    }
}

fn decode_hosts(node: &Node, decoder: &mut Decoder) -> Option<HostsDocument> {
    let Value::List(_) = node.value else {
        return decoder.count(node, "the number of hosts", 1, MOST_HOSTS).map(HostsDocument::Count);
    };
    let items = decoder.list(node, "hosts", 1)?;
    let mut first: BTreeMap<String, Spot> = BTreeMap::new();
    let mut names = Vec::with_capacity(items.len());
    for item in items {
        let name = decoder.name(item, "a host's name")?;
        check_reserved(&name, decoder);
        if let Some(earlier) = first.insert(name.value.clone(), name.at) {
            decoder.findings.push(Finding {
                code: "duplicate-name",
                message: format!("two hosts here are named `{}`", name.value),
                at: name.at,
                label: "again here".to_owned(),
                help: "give each host of a rack a different name".to_owned(),
                also: Some((earlier, "first here".to_owned())),
            });
        }
        names.push(name);
    }
    Some(HostsDocument::Names(names))
}

/// Refuses a role as the name of a place.
pub(crate) fn check_reserved(name: &Spanned<String>, decoder: &mut Decoder) {
    if ROLES.iter().any(|role| role.name == name.value) {
        decoder.findings.add(
            "bad-name",
            name.at,
            format!("`{}` is a role, so it cannot name a place", name.value),
            "reserved",
            "choose another name: faults use this word for a role",
        );
    }
}

impl SiteDocument {
    /// Every host, in the file's order.
    pub(crate) fn hosts(&self, findings: &mut Findings) -> Option<PerHost<Host>> {
        let mut total: u64 = 0;
        for group in &self.groups {
            let (count, at) = match &group.hosts {
                HostsDocument::Count(count) => (count.value, count.at),
                HostsDocument::Names(names) => (names.len() as u64, names.first().map(|name| name.at)?),
            };
            total = total.saturating_add(count);
            if total > MOST_HOSTS {
                findings.add(
                    "too-large",
                    at,
                    format!("the site has more than {MOST_HOSTS} hosts"),
                    "with these it is too many",
                    format!("keep the sum of all hosts at {MOST_HOSTS} or less"),
                );
                return None;
            }
        }
        let mut hosts = Vec::new();
        for group in &self.groups {
            let host = |name: String| Host {
                region: group.region.clone(),
                zone: group.zone.clone(),
                rack: group.rack.clone(),
                name,
            };
            match &group.hosts {
                HostsDocument::Count(count) => hosts.extend((1..=count.value).map(|k| host(format!("h{k}")))),
                HostsDocument::Names(names) => {
                    hosts.extend(names.iter().map(|name| host(name.value.clone())))
                }
            }
        }
        Some(hosts.into())
    }

    /// Every edge.
    pub(crate) fn edges(&self, places: &Places, hosts: &[Host], findings: &mut Findings) -> Vec<Edge> {
        edges::resolve(&self.edges, (places, hosts), findings)
    }

    /// Every link, one entry per direction.
    pub(crate) fn links(&self, places: &Places, findings: &mut Findings) -> Vec<Link> {
        links::resolve(&self.links, places, findings)
    }
}
