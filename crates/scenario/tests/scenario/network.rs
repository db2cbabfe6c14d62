//! What the language says of networks: conditions of links, network faults and partitions, and where they are refused.

use std::time::Duration;

use scenario::{
    BlockAnswer, Conditions, Distribution, Edge, FaultAction, FaultTarget, Flap, Jitter, Level, NetworkFault,
    NetworkPath, PartitionShape, Place, Queue, Scenario,
};

use crate::reading::read_and_written;

const BASE: &str = "\
name: base
site:
  regions:
    dc1:
      zones:
        a:
          racks:
            r1: { hosts: 2 }
            r2: { hosts: [alpha, beta] }
    dc2: { zones: { a: { hosts: 1 } } }
  links: [LINK]
  edges: [EDGE]
database:
  engine: postgres
  nodes: NODES
loads:
  - { workload: tpcb, clients: 4 }
schedule:
  - { phase: baseline, for: 15s }
  - phase: fault
    for: 25s
    faults: [FAULT]
  - { phase: recovery, for: 15s }
";

fn read(link: &str, nodes: &str, fault: &str) -> Result<Scenario, Vec<String>> {
    let text = BASE.replace("LINK", link).replace("EDGE", "");
    read_and_written(&text.replace("NODES", nodes).replace("FAULT", fault))
}

#[test]
fn packets_take_the_kernels_own_path_only_where_that_is_asked_for() {
    let path = |line: &str| {
        let text = BASE.replace("LINK", "").replace("edges: [EDGE]", line).replace("NODES", "3");
        let fault = "{ partition: { isolate: leader }, for: 5s }";
        read_and_written(&text.replace("FAULT", fault)).map(|scenario| scenario.site.network_path)
    };
    assert_eq!(path("network: { path: kernel }"), Ok(NetworkPath::Kernel));
    assert_eq!(path("network: { path: fabric }"), Ok(NetworkPath::Fabric));
    assert_eq!(path("edges: []"), Ok(NetworkPath::Fabric));
    assert!(path("network: {}").is_err() && path("network: { path: tunnel }").is_err());
}

#[test]
fn the_kernels_own_path_is_refused_beyond_24_hosts_and_nodes() {
    let with_hosts = |hosts: usize| {
        let text = BASE.replace("LINK", "").replace("edges: [EDGE]", "network: { path: kernel }");
        let text = text.replace("r1: { hosts: 2 }", &format!("r1: {{ hosts: {hosts} }}"));
        let fault = "{ partition: { isolate: leader }, for: 5s }";
        read_and_written(&text.replace("NODES", "3").replace("FAULT", fault)).map(drop)
    };
    // Three more hosts, and three nodes.
    assert_eq!(with_hosts(18), Ok(()));
    assert_eq!(with_hosts(19), Err(vec!["too-large `kernel`".to_owned()]));
}

fn conditions_of_link(link: &str) -> Conditions {
    let scenario = read(link, "3", "").unwrap_or_else(|problems| panic!("{link}: {problems:?}"));
    scenario.site.links[0].conditions.clone()
}

fn action(fault: &str) -> FaultAction {
    let scenario = read("", "3", fault).unwrap_or_else(|problems| panic!("{fault}: {problems:?}"));
    scenario.schedule[1].faults[0].action.clone()
}

fn shape(partition: &str) -> PartitionShape {
    match action(&format!("{{ partition: {{ {partition} }} }}")) {
        FaultAction::Partition(fault) => fault.shape,
        other => panic!("{partition} gives {other:?}"),
    }
}

fn place(fault: &FaultTarget) -> String {
    match fault {
        FaultTarget::Place(place) => place.to_string(),
        role => format!("{role:?}"),
    }
}

#[track_caller]
fn refused(link: &str, nodes: &str, fault: &str, expected: &[&str]) {
    match read(link, nodes, fault) {
        Ok(scenario) => panic!("{link}{fault} is accepted: {scenario:?}"),
        Err(problems) => assert_eq!(problems, expected, "{link}{fault}"),
    }
}

#[test]
fn a_link_has_every_condition_it_is_given_and_no_other() {
    let given = conditions_of_link(
        "{ between: [dc1, dc2], delay: 5ms, jitter: 1ms, loss: 0.1%, duplicate: 2%, reorder: 3%, corrupt: 100%, rate: 1Gbit/s, queue: 512KiB, mtu: 1400B }",
    );
    let uniform = Jitter { spread: Duration::from_millis(1), distribution: Distribution::Uniform };
    let expected = Conditions {
        delay: Some(Duration::from_millis(5)),
        jitter: Some(uniform),
        loss: Some(0.001),
        duplicate: Some(0.02),
        reorder: Some(0.03),
        corrupt: Some(1.0),
        rate_bits_per_s: Some(1_000_000_000),
        queue: Some(Queue::Bytes(512 * 1024)),
        mtu_bytes: Some(1_400),
    };
    assert_eq!(given, expected);
    let only_loss = Conditions { loss: Some(0.5), ..Conditions::default() };
    assert_eq!(conditions_of_link("{ from: dc1, to: dc2, loss: 50% }"), only_loss);
}

#[test]
fn jitter_is_uniform_unless_it_says_otherwise() {
    let jitter = |written: &str| {
        let link = format!("{{ from: dc1, to: dc2, delay: 50ms, jitter: {written} }}");
        conditions_of_link(&link).jitter.map(|jitter| (jitter.distribution, jitter.spread.as_millis()))
    };
    assert_eq!(jitter("3ms"), Some((Distribution::Uniform, 3)));
    assert_eq!(jitter("{ uniform: 50ms }"), Some((Distribution::Uniform, 50)));
    assert_eq!(jitter("{ normal: 3ms }"), Some((Distribution::Normal, 3)));
    // What is only added to the delay may be longer than it.
    assert_eq!(jitter("{ exponential: 80ms }"), Some((Distribution::Exponential, 80)));
    // Its table begins two thirds of the spread below the delay.
    assert_eq!(jitter("{ pareto: 75ms }"), Some((Distribution::Pareto, 75)));
}

#[test]
fn a_queue_is_counted_in_bytes_or_in_packets() {
    let queue = |written: &str| {
        conditions_of_link(&format!("{{ from: dc1, to: dc2, rate: 1Mbit/s, queue: {written} }}")).queue
    };
    assert_eq!(queue("64KiB"), Some(Queue::Bytes(65_536)));
    assert_eq!(queue("100 packets"), Some(Queue::Packets(100)));
}

fn edges(edges: &str) -> Result<Vec<Edge>, Vec<String>> {
    let text = BASE.replace("LINK", "").replace("EDGE", edges).replace("NODES", "3").replace("FAULT", "");
    read_and_written(&text).map(|scenario| scenario.site.edges)
}

#[test]
fn an_edge_stands_around_a_place_and_has_a_name_of_its_own() {
    let read = edges(
        "{ around: dc2, rate: 1Gbit/s }, { name: north, around: r1, rate: 10Mbit/s, queue: 50 packets }",
    );
    let dc2 = Place { level: Level::Region, path: vec!["dc2".to_owned()] };
    let r1 = Place { level: Level::Rack, path: ["dc1", "a", "r1"].map(str::to_owned).to_vec() };
    let edge = |name: &str, around, rate_bits_per_s, queue| Edge {
        name: name.to_owned(),
        around,
        rate_bits_per_s,
        queue,
    };
    let expected = vec![
        edge("edge-of-dc2", dc2, 1_000_000_000, None),
        edge("north", r1, 10_000_000, Some(Queue::Packets(50))),
    ];
    assert_eq!(read, Ok(expected));
}

#[test]
fn edges_that_carry_nothing_or_share_a_name_are_refused() {
    let refuse = |written: &str, expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|problem| (*problem).to_owned()).collect();
        assert_eq!(edges(written), Err(expected), "{written}");
    };
    refuse("{ around: dc2 }", &["missing-key `{ around: dc2 }`"]);
    refuse("{ around: dc3, rate: 1Gbit/s }", &["unknown-place `dc3`"]);
    refuse("{ around: dc2, rate: 1bit/s }", &["too-small `1bit/s`"]);
    refuse("{ around: dc2, rate: 1Gbit/s }, { around: dc2, rate: 1Gbit/s }", &["duplicate-name `dc2`"]);
    let one_region = BASE.replace("    dc2: { zones: { a: { hosts: 1 } } }\n", "");
    let around_all = one_region
        .replace("LINK", "")
        .replace("EDGE", "{ around: dc1, rate: 1Gbit/s }")
        .replace("NODES", "3")
        .replace("FAULT", "");
    assert_eq!(read_and_written(&around_all).map(|_| ()), Err(vec!["nothing-outside `dc1`".to_owned()]));
}

#[test]
fn network_faults_and_partitions_may_flap_and_power_offs_may_not() {
    let fault = "{ partition: { between: [dc1, dc2] }, for: 20s, flap: { down: 500ms, up: 2s } }";
    let scenario = read("", "3", fault).unwrap_or_else(|problems| panic!("{problems:?}"));
    let flap = Flap { down: Duration::from_millis(500), up: Duration::from_secs(2) };
    assert_eq!(scenario.schedule[1].faults[0].flap, Some(flap));
    let too_short = "{ partition: { between: [dc1, dc2] }, flap: { down: 99ms, up: 2s } }";
    refused("", "3", too_short, &["too-small `99ms`"]);
    let once = "{ partition: { between: [dc1, dc2] }, for: 2s, flap: { down: 2s, up: 1s } }";
    refused("", "3", once, &["bad-flap `flap`"]);
    refused("", "3", "{ partition: { halves: nodes }, flap: { down: 1s } }", &["missing-key `flap`"]);
    refused("", "3", "{ power-off: { host: leader }, flap: { down: 1s, up: 1s } }", &["bad-flap `flap`"]);
}

#[test]
fn conditions_that_make_no_sense_are_refused() {
    let refuse = |conditions: &str, expected: &[&str]| {
        refused(&format!("{{ between: [dc1, dc2], {conditions} }}"), "3", "", expected);
        refused("", "3", &format!("{{ network: {{ between: [dc1, dc2], {conditions} }} }}"), expected);
    };
    refuse("loss: 101%", &["too-large `101%`"]);
    refuse("corrupt: 100.0001%", &["too-large `100.0001%`"]);
    refuse("loss: 0.1", &["no-unit `0.1`"]);
    refuse("duplicate: -1%", &["bad-unit `-1%`"]);
    refuse("reorder: 5ms, delay: 1ms", &["bad-unit `5ms`"]);
    refuse("jitter: 1ms", &["missing-key `jitter`"]);
    refuse("delay: 5ms, jitter: 5001us", &["too-large `5001us`"]);
    refuse("delay: 5ms, jitter: { normal: 6ms }", &["too-large `6ms`"]);
    refuse("delay: 5ms, jitter: { exponential: 11s }", &["too-large `11s`"]);
    refuse("delay: 5ms, jitter: { pareto: 8ms }", &["too-large `8ms`"]);
    refuse("delay: 5ms, jitter: { gauss: 1ms }", &["unknown-key `gauss`"]);
    refuse("delay: 5ms, jitter: { normal: 1ms, uniform: 1ms }", &["one-too-many `uniform`"]);
    refuse("delay: 5ms, jitter: {}", &["missing-key `jitter`"]);
    refuse("rate: 1Mbit/s, queue: 1499B", &["too-small `1499B`"]);
    refuse("rate: 1Mbit/s, queue: 2GiB", &["too-large `2GiB`"]);
    refuse("rate: 1Mbit/s, queue: 64", &["no-unit `64`"]);
    refuse("rate: 1Mbit/s, queue: 0 packets", &["bad-number `0 packets`"]);
    refuse("rate: 1Mbit/s, queue: 1.5 packets", &["bad-number `1.5 packets`"]);
    refuse("mtu: 1279B", &["too-small `1279B`"]);
    refuse("mtu: 9000B", &["too-large `9000B`"]);
    // On a link there is nothing these could belong to; under a fault the link may have it.
    for conditions in ["queue: 64KiB", "reorder: 5%"] {
        let name = conditions.split(':').next().unwrap_or_default();
        let link = format!("{{ between: [dc1, dc2], {conditions} }}");
        refused(&link, "3", "", &[&format!("missing-key `{name}`")]);
        action(&format!("{{ network: {{ between: [dc1, dc2], delay: 5ms, {conditions} }} }}"));
    }
}

#[test]
fn shares_of_packets_that_nothing_can_show_are_refused() {
    let over = |link: &str, conditions: &str, length: &str, expected: &[&str]| {
        let fault = format!("{{ network: {{ from: dc1, to: dc2, {conditions} }}, for: {length} }}");
        match expected {
            [] => drop(read(link, "3", &fault).unwrap_or_else(|problems| panic!("{fault}: {problems:?}"))),
            _ => refused(link, "3", &fault, expected),
        }
    };
    let reorder = &["no-receipt `reorder`"];
    over("", "reorder: 20%", "5s", reorder);
    over("", "reorder: 20%, delay: 1ms", "5s", reorder);
    over("{ between: [dc1, dc2], delay: 200us }", "reorder: 20%", "5s", reorder);
    // The way back is another way.
    over("{ from: dc2, to: dc1, delay: 20ms }", "reorder: 20%", "5s", reorder);
    over("{ between: [dc1, dc2], delay: 20ms }", "reorder: 20%", "5s", &[]);
    over("{ between: [dc1, dc2], delay: 20ms }", "reorder: 20%, delay: 1ms", "5s", reorder);
    over("", "reorder: 20%, delay: 3ms", "5s", &[]);
    // Datagrams of 60 bytes take time there.
    over("", "reorder: 20%, rate: 1Mbit/s", "5s", &[]);
    for name in ["loss", "duplicate", "corrupt"] {
        let rare = format!("no-receipt `{name}`");
        over("", &format!("{name}: 0.1%"), "3s", &[&rare]);
        over("", &format!("{name}: 0.1%"), "4s", &[]);
        over("", &format!("{name}: 0.01%"), "10s", &[&rare]);
        over("", &format!("{name}: 1%, rate: 1Mbit/s"), "5s", &[&rare]);
        over("", &format!("{name}: 99.99%"), "10s", &[&rare]);
        over("", &format!("{name}: 0%"), "1s", &[]);
        over("", &format!("{name}: 1%"), "1s", &[]);
    }
}

#[test]
fn a_network_fault_holds_one_way_or_both_between_places_and_roles() {
    let directions = |ends: &str| match action(&format!("{{ network: {{ {ends}, delay: 50ms }} }}")) {
        FaultAction::Network(NetworkFault { directions, conditions }) => {
            assert_eq!(conditions.delay, Some(Duration::from_millis(50)));
            let tell = |(from, to): &(FaultTarget, FaultTarget)| format!("{}>{}", place(from), place(to));
            directions.iter().map(tell).collect::<Vec<_>>().join(" ")
        }
        other => panic!("{ends} gives {other:?}"),
    };
    assert_eq!(directions("from: dc1, to: dc2"), "dc1>dc2");
    assert_eq!(directions("between: [r1, beta]"), "dc1/a/r1>dc1/a/r2/beta dc1/a/r2/beta>dc1/a/r1");
    assert_eq!(directions("from: dc1, to: leader"), "dc1>Leader(Host)");
    assert_eq!(
        directions("between: [random, a-follower]"),
        "Random(Host)>AFollower(Host) AFollower(Host)>Random(Host)"
    );
}

#[test]
fn network_faults_between_impossible_ends_are_refused() {
    let refuse = |ends: &str, expected: &[&str]| {
        refused("", "3", &format!("{{ network: {{ {ends}, delay: 50ms }} }}"), expected);
    };
    refuse("between: [dc1, dc1]", &["bad-ends `dc1`"]);
    refuse("between: [dc1, r2/beta]", &["bad-ends `r2/beta`"]);
    refuse("from: r2/beta, to: dc1", &["bad-ends `dc1`"]);
    refuse("between: [leader, leader]", &["bad-ends `leader`"]);
    refuse("from: dc1", &["missing-key `from`"]);
    refuse("between: [dc1]", &["empty `[dc1]`"]);
    refuse("between: [dc1, dc3]", &["unknown-place `dc3`"]);
    refuse("between: [dc4, dc3]", &["unknown-place `dc4`", "unknown-place `dc3`"]);
    refuse("between: [dc1, laeder]", &["unknown-place `laeder`"]);
    refuse("between: [dc1, dc2], from: dc1, to: dc2", &["one-too-many `from`"]);
    refused("", "1", "{ network: { from: dc1, to: a-follower, loss: 1% } }", &["no-follower `a-follower`"]);
    refused("", "3", "{ network: { from: dc1, to: dc2 } }", &["missing-key `network`"]);
}

#[test]
fn every_shape_of_partition_is_read() {
    let leader = FaultTarget::Leader(Level::Host);
    assert_eq!(shape("isolate: leader"), PartitionShape::Isolate(leader.clone()));
    assert!(
        matches!(shape("isolate: r1"), PartitionShape::Isolate(FaultTarget::Place(at)) if at.level == Level::Rack)
    );
    assert!(
        matches!(shape("from: r1, to: r2"), PartitionShape::OneWay { from, .. } if place(&from) == "dc1/a/r1")
    );
    assert!(matches!(shape("between: [dc1, dc2]"), PartitionShape::Between(_, to) if place(&to) == "dc2"));
    assert_eq!(shape("halves: nodes"), PartitionShape::Halves);
    assert_eq!(shape("bridge: leader"), PartitionShape::Bridge(leader));
    assert!(
        matches!(shape("bridge: r2/alpha"), PartitionShape::Bridge(at) if place(&at) == "dc1/a/r2/alpha")
    );
    assert_eq!(shape("ring: nodes"), PartitionShape::Ring);
}

#[test]
fn a_partition_is_silent_unless_it_resets() {
    let answer = |partition: &str| match action(&format!("{{ partition: {{ {partition} }} }}")) {
        FaultAction::Partition(fault) => fault.answer,
        other => panic!("{partition} gives {other:?}"),
    };
    assert_eq!(answer("halves: nodes"), BlockAnswer::Silence);
    assert_eq!(answer("halves: nodes, answer: silence"), BlockAnswer::Silence);
    assert_eq!(answer("isolate: leader, answer: reset"), BlockAnswer::Reset);
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    let refuse = |nodes: &str, partition: &str, expected: &[&str]| {
        refused("", nodes, &format!("{{ partition: {{ {partition} }} }}"), expected);
    };
    refuse("3", "isolate: leader, ring: nodes", &["one-too-many `ring`"]);
    refuse("3", "isolate: leader, to: dc2", &["missing-key `to`"]);
    refuse("3", "answer: reset", &["missing-key `partition`"]);
    refuse("3", "halves: hosts", &["unknown-word `hosts`"]);
    refuse("3", "halves: nodes, answer: resets", &["unknown-word `resets`"]);
    refuse("3", "between: [r1, dc1]", &["bad-ends `dc1`"]);
    refuse("3", "isolate: dc3", &["unknown-place `dc3`"]);
    for shape in ["halves: nodes", "ring: nodes", "bridge: leader"] {
        let culprit = shape.rsplit(' ').next().unwrap_or_default();
        refuse("2", shape, &[&format!("too-few-nodes `{culprit}`")]);
    }
    refuse("3", "bridge: r1/h2", &["no-node `r1/h2`"]);
    refuse("3", "bridge: dc1", &["too-few-nodes `dc1`"]);
    refuse("4", "bridge: dc1", &["too-few-nodes `dc1`"]);
}

#[test]
fn of_a_thousand_power_offs_of_one_rack_at_once_the_first_twenty_problems_are_told() {
    let all = vec!["{ power-off: { rack: r1 } }"; 1_000].join(", ");
    let problems = read("", "3", &all).expect_err("refused");
    assert_eq!(problems, ["overlapping-faults `r1`"; 20]);
}

#[test]
fn network_faults_and_partitions_may_overlap_each_other_and_power_offs() {
    let both = "{ partition: { isolate: r1 } }, { network: { between: [dc1, dc2], loss: 10% } }, { power-off: { rack: r1 } }";
    let scenario = read("", "3", both).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(scenario.schedule[1].faults.len(), 3);
    // Their times are held against the schedule as any fault's.
    let late =
        "{ partition: { isolate: r1 }, at: 25s }, { network: { between: [dc1, dc2], loss: 10% }, for: 41s }";
    refused("", "3", late, &["outside-phase `25s`", "outside-run `41s`"]);
}
