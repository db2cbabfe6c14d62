//! A resolved scenario written back as a scenario file: what a run directory keeps.
//!
//! Everything that was a default or a choice of ours is written out, so that the same file gives the same run.

use crate::cluster;
use crate::database;
use crate::disks;
use crate::faults::Fault;
use crate::file::{EXTERNAL, KUBERNETES_TARGET};
use crate::lines::line;
use crate::loads;
use crate::network;
use crate::quoted::quoted;
use crate::resolved::{Comparison, Expectation, Host, IpVersion, Place, Site};
use crate::scenario::{Phase, Scenario};
use crate::storage;
use crate::units::{format_bit_rate, format_duration};

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
        None => write_lab(&mut text, scenario),
    }
    line(&mut text, 0, "loads:");
    scenario.loads.iter().for_each(|load| loads::write(&mut text, load));
    line(&mut text, 0, "schedule:");
    scenario.schedule.iter().for_each(|phase| write_phase(&mut text, phase));
    if !scenario.expect.is_empty() {
        line(&mut text, 0, "expect:");
        scenario.expect.iter().for_each(|expectation| write_expectation(&mut text, expectation));
    }
    text
}

/// What the lab makes.
fn write_lab(text: &mut String, scenario: &Scenario) {
    write_site(text, &scenario.site);
    if let Some(class) = scenario.database.storage.as_ref().and_then(|s| storage::class_written(&s.class)) {
        line(text, 2, "storage_classes:");
        line(text, 4, &class);
    }
    database::write(text, &scenario.database, &scenario.site);
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
