//! A scenario by chance: within what the language allows, small enough for a run of some seconds.
//!
//! Owns what is drawn. Whether it may run is said by the program: some of them contradict themselves, and are to be refused.

use super::dice::Dice;

/// A scenario and how long its schedule takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) text: String,
    pub(super) length_s: u64,
}

pub(super) fn draw(dice: &mut Dice, seed: u64) -> Drawn {
    let engine = dice.one_of(&["control", "control", "control", "postgres", "postgres", "etcd"]);
    let zones = dice.from(1, 3);
    let hosts = dice.from(1, 2);
    let two_regions = zones > 1 && dice.in_hundred(30);
    let places = places(zones, hosts, two_regions);
    let nodes = if engine == "postgres" { dice.from(1, 3) } else { dice.from(0, 1) * 2 + 1 };
    let nodes = nodes.min(places.len() as u64);
    let nodes = if engine == "postgres" || nodes == 3 { nodes } else { 1 };
    let (schedule, length_s) = schedule(dice, &places, nodes);
    let text = format!(
        "name: campaign-{seed}\nsite:\n{}database:\n  engine: {engine}\n  nodes: {nodes}\n{}loads:\n{}schedule:\n{schedule}expect:\n  \
         lost_writes: 0\n  invented_writes: 0\n",
        site(dice, zones, hosts, two_regions),
        replication(dice, engine, nodes),
        loads(dice, engine),
    );
    Drawn { text, length_s }
}

/// All hosts by name, zone by zone.
fn places(zones: u64, hosts: u64, two_regions: bool) -> Vec<String> {
    let zone = |number: u64| {
        let region = if two_regions && number == zones - 1 { "dc2" } else { "dc1" };
        format!("{region}/{}", ["a", "b", "c"][number as usize])
    };
    (0..zones).flat_map(|number| (1..=hosts).map(move |host| format!("{}/h{host}", zone(number)))).collect()
}

fn site(dice: &mut Dice, zones: u64, hosts: u64, two_regions: bool) -> String {
    let zone = |number: u64| format!("{}: {{ hosts: {hosts} }}", ["a", "b", "c"][number as usize]);
    let listed = |zones: std::ops::Range<u64>| zones.map(zone).collect::<Vec<_>>().join(", ");
    if !two_regions {
        return format!("  regions:\n    dc1: {{ zones: {{ {} }} }}\n", listed(0..zones));
    }
    let delay_ms = dice.from(1, 20);
    format!(
        "  regions:\n    dc1: {{ zones: {{ {} }} }}\n    dc2: {{ zones: {{ {} }} }}\n  links:\n    - {{ between: [dc1, dc2], delay: \
         {delay_ms}ms }}\n",
        listed(0..zones - 1),
        listed(zones - 1..zones),
    )
}

fn replication(dice: &mut Dice, engine: &str, nodes: u64) -> String {
    if engine == "etcd" {
        return String::new();
    }
    if nodes == 1 {
        return "  failover: none\n".to_owned();
    }
    let synchronous = dice.one_of(&["any 1", "any 1", "all", "off"]);
    let failover = match engine {
        "postgres" => dice.one_of(&["none", "{ ha-restart: { after: 1s } }", "{ promote: { after: 1s } }"]),
        _ => "none",
    };
    format!("  replication: {{ synchronous: {synchronous} }}\n  failover: {failover}\n")
}

/// A ledger in each, which the campaign looks at for itself, and often something beside it.
fn loads(dice: &mut Dice, engine: &str) -> String {
    let clients = dice.from(1, 6);
    let pace = if dice.in_hundred(30) { ", rate: 60/s" } else { "" };
    let mut loads = format!("  - {{ workload: ledger, clients: {clients}, from: dc1{pace} }}\n");
    if dice.in_hundred(50) {
        let beside: &[&str] = match engine {
            "postgres" => &["register", "append", "bank", "tpcb", "kv"],
            _ => &["register", "append", "bank", "tpcb"],
        };
        let workload = dice.one_of(beside);
        loads.push_str(&format!("  - {{ workload: {workload}, clients: {}, from: dc1 }}\n", dice.from(1, 3)));
    }
    loads
}

fn schedule(dice: &mut Dice, places: &[String], nodes: u64) -> (String, u64) {
    let baseline_s = dice.from(1, 3);
    let mut length_s = baseline_s;
    let mut text = format!("  - {{ phase: baseline, for: {baseline_s}s }}\n");
    for number in 1..=dice.from(1, 2) {
        let phase_s = dice.from(4, 8);
        length_s += phase_s;
        text.push_str(&format!("  - phase: fault-{number}\n    for: {phase_s}s\n    faults:\n"));
        let faults = if dice.in_hundred(25) { 2 } else { 1 };
        for _ in 0..faults {
            let at_s = dice.from(0, 1);
            let stands_s = dice.from(2, phase_s - at_s);
            text.push_str(&format!(
                "      - {{ {}, at: {at_s}s, for: {stands_s}s }}\n",
                fault(dice, places, nodes)
            ));
        }
    }
    let recovery_s = dice.from(1, 3);
    text.push_str(&format!("  - {{ phase: recovery, for: {recovery_s}s }}\n"));
    (text, length_s + recovery_s)
}

/// A fault on a place or a node that there is. What stands for a moment only, as a kill, takes no `for`, and is refused with it.
fn fault(dice: &mut Dice, places: &[String], nodes: u64) -> String {
    let hosts: Vec<&str> = places.iter().map(String::as_str).collect();
    let host = *dice.one_of(&hosts.iter().collect::<Vec<_>>());
    let other = *dice.one_of(&hosts.iter().collect::<Vec<_>>());
    let zone = zone_of(host);
    let host = if dice.in_hundred(50) { "leader" } else { host };
    let role = if nodes > 1 { dice.one_of(&["leader", "a-follower", "random", "n1"]) } else { "n1" };
    let number = dice.from(1, 9);
    match dice.from(1, 14) {
        1..=3 => format!("power-off: {{ host: {host} }}"),
        4 => format!("partition: {{ isolate: {host} }}"),
        5 => format!("partition: {{ isolate: {zone} }}"),
        6 => format!(
            "network: {{ between: [{}, {zone}], delay: {}ms, loss: {number}% }}",
            zone_of(other),
            number * 5
        ),
        7 => format!("network: {{ from: {}, to: {zone}, rate: {number}Mbit/s }}", zone_of(other)),
        8 | 9 => {
            let how = dice.one_of(&["stall", "fail", "full", "lose-flush", "read-only", "{ slow: 10ms }"]);
            format!("disk: {{ of: leader, how: {how} }}")
        }
        10 | 11 => format!("process: {{ of: {role}, how: stop }}"),
        12 => format!("pressure: {{ of: {role}, processor: {}% }}", number * 10),
        13 => format!("clock-jump: {{ node: {role}, by: {number}s }}"),
        _ => format!("clock-race: {{ node: {role}, by: {number}0% }}"),
    }
}

fn zone_of(host: &str) -> &str {
    host.rsplit_once('/').map_or(host, |(zone, _)| zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_what_is_drawn_is_a_scenario_and_the_rest_is_refused_at_a_place_in_it() {
        let mut refused = 0;
        for seed in 0..2_000 {
            let drawn = draw(&mut Dice::of(seed), seed);
            assert_eq!(drawn, draw(&mut Dice::of(seed), seed));
            let source = scenario::Source { name: "drawn".to_owned(), text: drawn.text };
            if let Err(rejection) = scenario::parse(&source, &[]) {
                refused += 1;
                assert!(!rejection.problems().is_empty(), "{}", source.text);
            }
        }
        assert!(refused < 400, "{refused} of 2000 refused");
    }
}
