//! A resolved scenario written back as a scenario file: what a run directory keeps.
//!
//! Everything that was a default or a choice of ours is written out, so that the same file gives the same run.

use std::collections::BTreeMap;
use std::fmt::Write;

use capabilities::Quorum;

use crate::cluster;
use crate::consistency;
use crate::disks;
use crate::engines;
use crate::faults::Fault;
use crate::file::{EXTERNAL, KUBERNETES_TARGET};
use crate::language::EXPECTED;
use crate::network;
use crate::pace;
use crate::platform;
use crate::quoted::quoted;
use crate::release::Release;
use crate::resolved::{
    Comparison, Database, Expectation, Failover, Host, IpVersion, Load, Place, Reads, Site, Synchronous,
};
use crate::scenario::{Phase, Scenario};
use crate::storage;
use crate::units::{format_bit_rate, format_duration};
use crate::workload_options;

/// Writes a scenario with the run's seed, as a file that [`crate::parse`] reads back to the same scenario (with that
/// seed). Holds for every scenario that `parse` returned from a text of up to 100 KiB; of a longer one, what is written out
/// may be longer than the 1 MiB that are read.
#[must_use]
pub fn to_yaml(scenario: &Scenario, seed: u64) -> String {
    let mut text = String::new();
    line(&mut text, 0, &format!("name: {}", quoted(&scenario.name)));
    scenario.about.written().iter().for_each(|written| line(&mut text, 0, written));
    line(&mut text, 0, &format!("seed: {seed}"));
    match &scenario.cluster {
        Some(cluster) => {
            let target = if cluster.kubernetes.is_some() { KUBERNETES_TARGET } else { EXTERNAL };
            line(&mut text, 0, &format!("target: {target}"));
            let lines = cluster::written(cluster, scenario.database.engine);
            lines.iter().for_each(|written| line(&mut text, 0, written));
        }
        None => write_ground(&mut text, scenario),
    }
    line(&mut text, 0, "loads:");
    scenario.loads.iter().for_each(|load| write_load(&mut text, load));
    line(&mut text, 0, "schedule:");
    scenario.schedule.iter().for_each(|phase| write_phase(&mut text, phase));
    if !scenario.expect.is_empty() {
        line(&mut text, 0, "expect:");
        scenario.expect.iter().for_each(|expectation| write_expectation(&mut text, expectation));
    }
    text
}

/// What the lab makes.
fn write_ground(text: &mut String, scenario: &Scenario) {
    write_site(text, &scenario.site);
    if let Some(class) = scenario.database.storage.as_ref().and_then(|s| storage::class_written(&s.class)) {
        line(text, 2, "storage_classes:");
        line(text, 4, &class);
    }
    write_database(text, &scenario.database, &scenario.site);
}

fn line(text: &mut String, indent: usize, content: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{:indent$}{content}", "");
}

fn write_site(text: &mut String, site: &Site) {
    line(text, 0, "site:");
    line(
        text,
        2,
        match site.ip {
            IpVersion::V4 => "ip: 4",
            IpVersion::V6 => "ip: 6",
        },
    );
    line(text, 2, "regions:");
    let (mut region, mut zone) = (None, None);
    let mut rest = site.hosts.as_slice();
    while let Some(first) = rest.first() {
        let same = |host: &&Host| {
            (&host.region, &host.zone, &host.rack) == (&first.region, &first.zone, &first.rack)
        };
        let count = rest.iter().take_while(same).count();
        let (group, others) = rest.split_at(count);
        rest = others;
        if region != Some(&first.region) {
            line(text, 4, &format!("{}:", quoted(&first.region)));
            line(text, 6, "zones:");
            zone = None;
        }
        if zone != Some(&first.zone) {
            line(text, 8, &format!("{}:", quoted(&first.zone)));
            if first.rack.is_some() {
                line(text, 10, "racks:");
            }
        }
        (region, zone) = (Some(&first.region), Some(&first.zone));
        match &first.rack {
            Some(rack) => line(text, 12, &format!("{}: {{ hosts: {} }}", quoted(rack), hosts(group))),
            None => line(text, 10, &format!("hosts: {}", hosts(group))),
        }
    }
    if let Some(disks) = disks::disks_written(site.disks) {
        line(text, 2, &disks);
    }
    if !site.network_path.is_fabric() {
        line(text, 2, "network: { path: kernel }");
    }
    if !site.busy_poll.is_zero() {
        line(text, 2, &format!("busy-poll: {}", format_duration(site.busy_poll)));
    }
    write_edges(text, site);
    if site.links.is_empty() {
        return;
    }
    line(text, 2, "links:");
    for link in &site.links {
        let (from, to) = (place(&link.from), place(&link.to));
        line(text, 4, &format!("- {{ from: {from}, to: {to}{} }}", network::written(&link.conditions)));
    }
}

fn write_edges(text: &mut String, site: &Site) {
    if !site.edges.is_empty() {
        line(text, 2, "edges:");
    }
    for edge in &site.edges {
        let limit =
            edge.queue.map(|limit| format!(", queue: {}", network::queue_written(limit))).unwrap_or_default();
        let (name, around) = (quoted(&edge.name), place(&edge.around));
        let rate = format_bit_rate(edge.rate_bits_per_s);
        line(text, 4, &format!("- {{ name: {name}, around: {around}, rate: {rate}{limit} }}"));
    }
}

/// A number where the names are those a number gives, otherwise the names.
fn hosts(group: &[Host]) -> String {
    let numbered = group.iter().enumerate().all(|(index, host)| host.name == format!("h{}", index + 1));
    if numbered {
        return group.len().to_string();
    }
    let names: Vec<_> = group.iter().map(|host| quoted(&host.name)).collect();
    format!("[{}]", names.join(", "))
}

fn write_database(text: &mut String, database: &Database, site: &Site) {
    line(text, 0, "database:");
    line(text, 2, &format!("engine: {}", engines::written(database.engine)));
    match &database.release {
        Some(Release::Folder(path)) => line(text, 2, &format!("path: {}", quoted(path))),
        Some(Release::Version(version)) => line(text, 2, &format!("version: {}", quoted(version))),
        None => {}
    }
    line(text, 2, "nodes:");
    for host in database.nodes.iter().filter_map(|host| site.hosts.get(*host)) {
        line(text, 4, &format!("- {}", quoted(&host.path().join("/"))));
    }
    let synchronous = match database.synchronous {
        Synchronous::Off => "off".to_owned(),
        Synchronous::All => "all".to_owned(),
        Synchronous::Any(count) => format!("any {count}"),
    };
    let replication = match database.engine.quorum {
        Quorum::PerRequest => format!("{{ copies: {} }}", database.copies),
        Quorum::AsAsked | Quorum::Majority => format!("{{ synchronous: {} }}", quoted(&synchronous)),
    };
    line(text, 2, &format!("replication: {replication}"));
    let failover = match database.failover {
        Failover::None => "none".to_owned(),
        Failover::HaRestart { after } => format!("{{ ha-restart: {{ after: {} }} }}", format_duration(after)),
        Failover::Promote { after } => format!("{{ promote: {{ after: {} }} }}", format_duration(after)),
    };
    line(text, 2, &format!("failover: {failover}"));
    if !database.settings.is_empty() {
        line(text, 2, "settings:");
    }
    for (name, value) in &database.settings {
        line(text, 4, &format!("{}: {}", quoted(name), quoted(value)));
    }
    if let Some(cpus) = database.cpus {
        line(text, 2, &format!("cpus: {cpus}"));
    }
    line(text, 2, &format!("volumes: {}", database.volumes.name()));
    database.storage.iter().for_each(|of| line(text, 2, &storage::written(of, &site.hosts)));
    let platform = platform::written(&database.platform, &site.hosts);
    platform.iter().for_each(|of| line(text, 2, of));
    if database.interference_expected {
        line(text, 2, &format!("interference: {EXPECTED}"));
    }
}

fn write_load(text: &mut String, load: &Load) {
    line(text, 2, &format!("- workload: {}", quoted(&load.workload)));
    line(text, 4, &format!("name: {}", quoted(&load.name)));
    line(text, 4, &format!("scale: {}", load.scale));
    line(text, 4, &format!("clients: {}", load.clients));
    pace::written(&load.pace).iter().for_each(|written| line(text, 4, written));
    line(text, 4, &format!("from: {}", place(&load.from)));
    if !load.agents.is_empty() {
        let names: Vec<String> = load.agents.iter().map(|name| quoted(name)).collect();
        line(text, 4, &format!("agents: [{}]", names.join(", ")));
    }
    if load.reads != Reads::Leader {
        line(text, 4, &format!("reads: {}", load.reads.name()));
    }
    if let Some(written) = consistency::written(load.consistency) {
        line(text, 4, &written);
    }
    line(text, 4, &format!("timeout: {}", format_duration(load.timeout)));
    write_options(text, load);
}

/// Options stand by dotted name: `scripts.0.text` is the key `text` of the first element of the list `scripts`.
fn write_options(text: &mut String, load: &Load) {
    if load.options.is_empty() {
        return;
    }
    line(text, 4, "options:");
    let value = |name: &str, value: &str| match workload_options::is_number(&load.workload, name) {
        true => value.to_owned(),
        false => quoted(value),
    };
    let mut groups: BTreeMap<(&str, Option<usize>), Vec<String>> = BTreeMap::new();
    for (name, given) in &load.options {
        let mut steps = name.splitn(3, '.');
        match (steps.next(), steps.next(), steps.next()) {
            (Some(list), Some(place), Some(key)) => {
                let element = groups.entry((list, place.parse().ok())).or_default();
                element.push(format!("{}: {}", quoted(key), value(name, given)));
            }
            (Some(map), Some(key), None) => {
                let entries = groups.entry((map, None)).or_default();
                entries.push(format!("{}: {}", quoted(key), value(name, given)));
            }
            _ => line(text, 6, &format!("{}: {}", quoted(name), value(name, given))),
        }
    }
    let mut last = None;
    for ((name, place), entries) in &groups {
        if last != Some(*name) {
            line(text, 6, &format!("{name}:"));
        }
        last = Some(*name);
        let dash = if place.is_some() { "- " } else { "" };
        line(text, 8, &format!("{dash}{{ {} }}", entries.join(", ")));
    }
}

fn write_phase(text: &mut String, phase: &Phase) {
    line(text, 2, &format!("- phase: {}", quoted(&phase.name)));
    line(text, 4, &format!("for: {}", format_duration(phase.length)));
    if !phase.faults.is_empty() {
        line(text, 4, "faults:");
    }
    for fault in &phase.faults {
        write_fault(text, fault);
    }
}

fn write_fault(text: &mut String, fault: &Fault) {
    line(text, 6, &format!("- {}", fault.action.written()));
    line(text, 8, &format!("at: {}", format_duration(fault.at)));
    if let Some(length) = fault.length.filter(|_| fault.action.own_length().is_none()) {
        line(text, 8, &format!("for: {}", format_duration(length)));
    }
    if let Some(flap) = fault.flap {
        let (down, up) = (format_duration(flap.down), format_duration(flap.up));
        line(text, 8, &format!("flap: {{ down: {down}, up: {up} }}"));
    }
}

fn write_expectation(text: &mut String, expectation: &Expectation) {
    let bare =
        expectation.comparison == Comparison::Equal && expectation.wanted.chars().all(|c| c.is_ascii_digit());
    let wanted = if bare { expectation.wanted.clone() } else { quoted(&expectation.wanted) };
    // An asterisk at the beginning is an alias in YAML.
    let name =
        if expectation.name.starts_with('*') { quoted(&expectation.name) } else { expectation.name.clone() };
    line(text, 2, &format!("{name}: {wanted}"));
}

fn place(place: &Place) -> String {
    quoted(&place.to_string())
}
