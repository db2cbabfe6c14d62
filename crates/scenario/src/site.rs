//! The `site` section: regions, zones, racks, hosts and the delays and rates between them.
//!
//! Owns reading it and expanding it to hosts; finding a place by name is in `places`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::catalogue::ROLES;
use crate::decode::Decoder;
use crate::language::{LINK, MOST_HOSTS, RACK, REGION, SITE, ZONE};
use crate::places::Places;
use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::resolved::{Host, Link};
use crate::tree::{Node, Value};
use crate::units::format_bit_rate;

/// Longest delay of a link.
const MOST_DELAY: Duration = Duration::from_secs(10);
/// Least and most that a link with a rate carries, in bits a second.
const LEAST_RATE: u64 = 1_000;
const MOST_RATE: u64 = 1_000_000_000_000;

/// The section as written.
pub(crate) struct SiteDocument {
    groups: Vec<HostGroup>,
    links: Vec<LinkDocument>,
}

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

struct LinkDocument {
    ends: [Spanned<String>; 2],
    both_ways: bool,
    delay: Duration,
    rate_bits_per_s: Option<u64>,
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
        links.extend(decode_link(node, decoder));
    }
    Some(SiteDocument { groups, links })
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
                help: "give each host of a rack a name of its own".to_owned(),
                also: Some((earlier, "first here".to_owned())),
            });
        }
        names.push(name);
    }
    Some(HostsDocument::Names(names))
}

fn check_reserved(name: &Spanned<String>, decoder: &mut Decoder) {
    if ROLES.iter().any(|role| role.name == name.value) {
        decoder.findings.add(
            "bad-name",
            name.at,
            format!("`{}` is a role and cannot be the name of a place", name.value),
            "reserved",
            "choose another name: faults are aimed at roles by this word",
        );
    }
}

fn decode_delay(node: &Node, decoder: &mut Decoder) -> Option<Duration> {
    let delay = decoder.duration(node, "the delay", "ms")?;
    if delay.value > MOST_DELAY {
        decoder.findings.add(
            "too-large",
            delay.at,
            "a delay of more than 10s is not a network any more",
            "too long",
            "write 10s or less; to cut two places off from each other is a fault, not a delay",
        );
    }
    Some(delay.value)
}

fn decode_rate(node: &Node, decoder: &mut Decoder) -> Option<u64> {
    let rate = decoder.bit_rate(node, "the rate")?;
    if rate.value < LEAST_RATE {
        decoder.findings.add(
            "too-small",
            rate.at,
            format!("a rate of less than {} carries nothing to speak of", format_bit_rate(LEAST_RATE)),
            "too little",
            format!(
                "write {} or more; to cut two places off from each other is a fault, not a rate",
                format_bit_rate(LEAST_RATE)
            ),
        );
    }
    if rate.value > MOST_RATE {
        decoder.findings.add(
            "too-large",
            rate.at,
            format!("a rate of more than {} limits nothing here", format_bit_rate(MOST_RATE)),
            "too much",
            "leave the rate out: a link without one has no limit",
        );
    }
    Some(rate.value)
}

fn decode_link(node: &Node, decoder: &mut Decoder) -> Option<LinkDocument> {
    let record = decoder.record(node, &LINK)?;
    let delay = record.get("delay").and_then(|node| decode_delay(node, decoder)).unwrap_or_default();
    let rate_bits_per_s = record.get("rate").and_then(|node| decode_rate(node, decoder));
    let between =
        record.get("between").and_then(|node| decoder.list(node, "`between`", 2).map(|items| (node, items)));
    let both_ways = record.get("between").is_some();
    let ends = match between {
        Some((_, [one, other])) => [decoder.text(one, "a place"), decoder.text(other, "a place")],
        Some((node, items)) => {
            decoder.findings.add(
                "too-large",
                node.at,
                format!("`between` names {} places; it takes two", items.len()),
                "too many",
                "write one link for each pair",
            );
            [None, None]
        }
        None => ["from", "to"].map(|end| record.get(end).and_then(|node| decoder.text(node, "a place"))),
    };
    let [one, other] = ends;
    Some(LinkDocument { ends: [one?, other?], both_ways, delay, rate_bits_per_s })
}

impl SiteDocument {
    /// Every host, in the file's order.
    pub(crate) fn hosts(&self, findings: &mut Findings) -> Option<Vec<Host>> {
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
        Some(hosts)
    }

    /// Every link, one entry per direction.
    pub(crate) fn links(&self, places: &Places, findings: &mut Findings) -> Vec<Link> {
        let mut links = Vec::new();
        for link in &self.links {
            let [one, other] = &link.ends;
            // Both are looked up before either is given up, so that both may be reported.
            let (from, to) = (places.find(one, None, findings), places.find(other, None, findings));
            let (Some(from), Some(to)) = (from, to) else { continue };
            if from.path.starts_with(&to.path) || to.path.starts_with(&from.path) {
                let message = if from == to {
                    format!("a link from `{from}` to itself")
                } else {
                    format!("a link between `{from}` and `{to}`, one of which contains the other")
                };
                let help =
                    "name two places that share no host; within a place there is neither delay nor rate";
                findings.add("bad-link", other.at, message, "the same place, or a part of it", help);
                continue;
            }
            let there = Link { from, to, delay: link.delay, rate_bits_per_s: link.rate_bits_per_s };
            let back = link.both_ways.then(|| reversed(&there));
            links.push(there);
            links.extend(back);
        }
        links
    }
}

fn reversed(link: &Link) -> Link {
    Link { from: link.to.clone(), to: link.from.clone(), ..link.clone() }
}
