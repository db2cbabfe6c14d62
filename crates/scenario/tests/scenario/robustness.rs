//! No text makes the reader panic, every refusal can be drawn, and what was read survives being written back.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use scenario::{Scenario, Source, parse, to_yaml};

use crate::refusals;

static SHIPPED: LazyLock<Vec<String>> =
    LazyLock::new(|| refusals::texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")));

/// Reads it; if it is refused, draws the message, which reads every span.
fn try_text(text: &str, overrides: &[(String, String)]) -> Option<Scenario> {
    let source = Source { name: "any.yaml".to_owned(), text: text.to_owned() };
    parse(&source, overrides).inspect_err(refusals::is_told_whole).ok()
}

fn survives(scenario: Scenario, seed: u64) {
    let written = to_yaml(&scenario, seed);
    let again = try_text(&written, &[]).unwrap_or_else(|| panic!("what was written is refused:\n{written}"));
    assert_eq!(again, Scenario { seed: Some(seed), ..scenario }, "{written}");
}

/// Pieces a scenario is made of, to be thrown together.
fn pieces() -> impl Strategy<Value = String> {
    let words = "name: site: regions: zones: racks: hosts: links: database: engine: nodes: loads: schedule: \
                 phase: for: faults: power-off: network: partition: between: jitter: isolate: expect: \
                 recovery: { } [ ] , ' \" # *a | > % @ é 🏠 3 10s 50% dc1 r1/h1 leader";
    let others = [
        "\n", "\n  ", "\n    ", "\n- ", " ", ": ", "- ", "&a ", "!t ", "---\n", "...\n", "\t", "\r\n",
        "\u{85}", "\u{feff}", "< 30s", "any 1", "? ",
    ];
    let known: Vec<&str> = words.split(' ').chain(others).collect();
    prop::collection::vec(prop::sample::select(known), 0..60).prop_map(|pieces| pieces.concat())
}

/// A link's conditions, a network fault's ends and conditions, a partition.
fn network() -> impl Strategy<Value = (String, String, &'static str)> {
    let ends = prop::sample::select(vec![
        "between: [dc1, dc2]",
        "from: leader, to: dc2",
        "between: [random, leader]",
    ]);
    let partition = prop::sample::select(vec![
        "isolate: leader",
        "isolate: dc1/a",
        "from: r0, to: dc2, answer: reset",
        "between: [a-follower, dc2], answer: silence",
        "halves: nodes",
        "bridge: a-follower",
        "ring: nodes",
    ]);
    (conditions(false), ends, conditions(true), partition)
        .prop_map(|(link, ends, fault, partition)| (link, format!("{ends}, {fault}"), partition))
}

/// Sound conditions; of a fault such as can be shown.
fn conditions(of_fault: bool) -> impl Strategy<Value = String> {
    let jitter = prop::sample::select(vec!["", "uniform", "normal", "exponential"]);
    let (least, shares) = if of_fault { (3_000, 1..98_u32) } else { (0, 0..100) };
    let delay = (least..10_000_000_u32, 0_u32..10_000_000, prop::option::of(jitter));
    let share = || prop::option::of((shares.clone(), "[0-9]{1,9}"));
    let shares = [share(), share(), share(), share()];
    // The queue of a fault is filled to be seen: within seconds.
    let slowest = if of_fault { 30_000 } else { 1_000_u64 };
    let rate = prop::option::of((slowest..2_000_000_000, prop::option::of(1_500_u64..1_000_000)));
    (delay, shares, rate).prop_map(move |((delay, spread, jitter), shares, rate)| {
        let mut given = vec![format!("delay: {delay}us")];
        let spread = if jitter == Some("exponential") { spread } else { spread.min(delay) };
        given.extend(jitter.map(|shape| match shape {
            "" => format!("jitter: {spread}us"),
            shape => format!("jitter: {{ {shape}: {spread}us }}"),
        }));
        let names = ["loss", "duplicate", "reorder", "corrupt"];
        given.extend(names.iter().zip(shares).filter_map(|(name, share)| {
            let (whole, fraction): (u32, String) = share.filter(|_| !of_fault || rate.is_none())?;
            Some(format!("{name}: {whole}.{fraction}%"))
        }));
        if let Some((rate, queue)) = rate {
            given.push(format!("rate: {rate}bit/s"));
            let most = if of_fault { (rate / 20).max(1_500) } else { u64::MAX };
            given.extend(queue.map(|queue| format!("queue: {}B", queue.min(most))));
        }
        given.join(", ")
    })
}

/// A sound scenario of random shape.
fn sound() -> impl Strategy<Value = String> {
    let racks = prop::collection::vec((1_u32..4, any::<bool>()), 1..4);
    let figures = (any::<String>(), prop::option::of(-1e12_f64..1e12), any::<String>());
    let database =
        (1_u32..4, 0_u32..3, 0_u32..3, prop::option::of(1_u32..64), "[ -~é東\u{2028}\u{85}]{1,20}");
    let phases = (1_u32..90, 1_u32..90, prop::option::of(0_u32..900), 0_usize..6, 1_u32..900);
    (racks, figures, database, (phases, network()), any::<bool>()).prop_map(
        |(racks, (description, figure, report), (nodes, sync, failover, cpus, setting), (phases, network), expect)| {
            let (link, network_fault, partition) = network;
            let json = |text: &str| serde_json::to_string(text).unwrap();
            let mut text = format!("name: sound\ndescription: {}\n", yaml_string(&format!("d{description}")));
            let figure = figure.map_or(String::new(), |figure| {
                let figures = format!("figures: {{ {}: {figure} }}", json("tps"));
                format!(", {figures}, steps: [{{ step: {}, {figures} }}]", yaml_string(&format!("s{report}")))
            });
            text += &format!("reproduces: {{ report: {}{figure} }}\n", yaml_string(&format!("r{report}")));
            text += "site:\n  regions:\n    dc1:\n      zones:\n        a:\n          racks:\n";
            for (index, (hosts, named)) in racks.iter().enumerate() {
                let names: Vec<_> = (0..*hosts).map(|host| format!("s{index}-{host}")).collect();
                let hosts = if *named { format!("[{}]", names.join(", ")) } else { hosts.to_string() };
                text += &format!("            r{index}: {{ hosts: {hosts} }}\n");
            }
            text += "    dc2: { zones: { a: { hosts: 3 }, \"1\": { hosts: [no, \"null\"] } } }\n";
            text += "  storage_classes: { own: { buffer: 3MiB, metadata: own-device } }\n  links:\n    - { between: [dc1, dc2], delay: 1.5ms }\n    - { from: dc1/a/r0, to: dc2/1, delay: 7us }\n";
            text += &format!("    - {{ from: dc2, to: r0, {link} }}\n");
            text += &format!("database:\n  engine: postgres\n  nodes: {nodes}\n");
            let sync = if nodes == 1 { "off" } else { ["off", "all", "any 1"][sync as usize] };
            text += &format!("  replication: {{ synchronous: {sync} }}\n");
            let failover = if nodes == 1 { 0 } else { failover };
            text += ["", "  failover: { ha-restart: { after: 5500us } }\n", "  failover: { promote: { after: 3s } }\n"][failover as usize];
            let setting: String = setting.chars().filter(|c| !c.is_control()).collect();
            text += &format!("  settings: {{ work_mem: {} }}\n", yaml_string(&format!("{setting}.")));
            text += &cpus.map_or(String::new(), |cpus| format!("  cpus: {}\n", f64::from(cpus) / 7.0));
            let volumes = ["", "  volumes: torn\n", "  volumes: directory\n  interference: expected\n"];
            text += volumes[(nodes as usize + setting.len()) % 3];
            text += ["", "  storage: { replicas: 1, class: own, promote: forced }\n", "  storage: { replicas: 1, acknowledge: async, class: tuned, timeout: 500ms, unreachable_after: 1700ms }\n"]
                [(nodes as usize + setting.len() / 3) % 3];
            text += "loads:\n  - { workload: tpcb, clients: 4, scale: 2, timeout: 1500ms }\n  - { workload: ledger, clients: 2, from: dc2/a }\n";
            let (baseline, fault, at, target, length) = phases;
            text += &format!("schedule:\n  - {{ phase: baseline, for: {baseline}s }}\n  - phase: fault\n    for: {fault}s\n    faults:\n");
            let at = f64::from(at.unwrap_or(0) % (fault * 10)) / 10.0;
            let length = f64::from(length % (fault * 10)).max(1.0) / 10.0;
            let target = ["host: leader", "rack: r0", "zone: random", "region: dc2", "host: dc2/a/h1", "rack: leader"][target];
            text += &format!("      - {{ power-off: {{ {target} }}, at: {at}s, for: {length}s }}\n");
            // Halves and rings take three nodes; the rest holds for fewer.
            let partition = if nodes < 3 { "isolate: dc2" } else { partition };
            text += &format!("      - {{ network: {{ {network_fault} }} }}\n      - {{ partition: {{ {partition} }}, at: {at}s }}\n  - {{ phase: recovery, for: 90s }}\n");
            if expect {
                text += "expect: { lost_writes: 0, recovery: \"<  30s\", throughput_ratio_during: \"> 12.5%\", error_rate: < 0.1 }\n";
            }
            text
        },
    )
}

/// Any text in YAML's double quotes.
fn yaml_string(text: &str) -> String {
    let escaped: String = text.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect();
    format!("\"{escaped}\"")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = try_text(&text, &[]);
    }

    #[test]
    fn no_heap_of_yaml_makes_the_reader_panic(text in pieces()) {
        let _ = try_text(&text, &[]);
    }

    #[test]
    fn no_override_makes_the_reader_panic(file in 0_usize..64, path in "[a-z.0-9é-]{0,30}", value in prop_oneof![any::<String>(), pieces()]) {
        let text = &SHIPPED[file % SHIPPED.len()];
        let _ = try_text(text, &[(path, value)]);
    }

    #[test]
    fn no_mutation_of_a_shipped_scenario_makes_the_reader_panic(
        file in 0_usize..64,
        cuts in prop::collection::vec((0_usize..2000, 0_usize..12, pieces()), 1..4),
    ) {
        let mut characters: Vec<char> = SHIPPED[file % SHIPPED.len()].chars().collect();
        for (at, length, piece) in cuts {
            let at = at % (characters.len() + 1);
            let end = (at + length).min(characters.len());
            let piece: Vec<char> = piece.chars().take(12).collect();
            characters.splice(at..end, piece);
        }
        let text: String = characters.into_iter().collect();
        if let Some(scenario) = try_text(&text, &[]) {
            survives(scenario, 1);
        }
    }

    #[test]
    fn a_sound_scenario_is_read_and_survives_being_written(text in sound(), seed in 0..=scenario::MOST_SEED) {
        let Some(scenario) = try_text(&text, &[]) else { return Err(TestCaseError::fail(format!("refused:\n{text}"))) };
        survives(scenario, seed);
    }
}
