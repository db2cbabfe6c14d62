//! What the language means, and where its messages point: small edits of one scenario, each with what it must become.

use std::time::Duration;

use history::HostId;
use scenario::{
    Conditions, Failover, FaultAction, FaultTarget, Level, PowerOffFault, Scenario, Source, Synchronous,
    parse,
};

pub(crate) const BASE: &str = "\
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
  disks: { cache: true }
database:
  engine: postgres
  nodes: 3
loads:
  - { workload: tpcb, clients: 4 }
  - { workload: ledger, clients: 2 }
schedule:
  - { phase: baseline, for: 15s }
  - phase: fault
    for: 25s
    faults:
      - { power-off: { host: leader }, for: 20s }
  - { phase: recovery, for: 15s }
";

fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(BASE.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from:?} must stand once in the text");
        text.replace(from, to)
    })
}

pub(crate) fn read(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, Vec<String>> {
    let source = Source { name: "base.yaml".to_owned(), text: text.to_owned() };
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    parse(&source, &overrides).map_err(|rejection| {
        assert!(!rejection.problems().is_empty());
        let tell = |problem: &scenario::Problem| {
            format!("{} `{}` in {}", problem.code(), problem.culprit(), problem.source_name())
        };
        rejection.problems().iter().map(tell).collect()
    })
}

/// The edits make the file be refused; each `code culprit` in order.
fn refused(edits: &[(&str, &str)], expected: &[&str]) {
    let found =
        read(&edited(edits), &[]).map(|scenario| panic!("{edits:?} is accepted: {scenario:?}")).unwrap_err();
    let expected: Vec<_> = expected.iter().map(|problem| format!("{problem} in base.yaml")).collect();
    assert_eq!(found, expected, "{edits:?}");
}

/// The overrides are refused, with the caret in their own text.
fn refused_set(overrides: &[(&str, &str)], expected: &str) {
    let found =
        read(BASE, overrides).map(|scenario| panic!("{overrides:?} is accepted: {scenario:?}")).unwrap_err();
    assert_eq!(found, [format!("{expected} in command line")], "{overrides:?}");
}

fn accepted(edits: &[(&str, &str)]) -> Scenario {
    read(&edited(edits), &[]).unwrap_or_else(|problems| panic!("{edits:?}: {problems:?}"))
}

pub(crate) fn set(overrides: &[(&str, &str)]) -> Scenario {
    read(BASE, overrides).unwrap_or_else(|problems| panic!("{overrides:?}: {problems:?}"))
}

fn node_paths(scenario: &Scenario) -> String {
    let path = |host: &HostId| scenario.site.hosts[*host].path().join("/");
    scenario.database.nodes.iter().map(path).collect::<Vec<_>>().join(" ")
}

#[test]
fn defaults_are_filled_in() {
    let scenario = accepted(&[]);
    assert_eq!(
        (scenario.seed, scenario.about.reproduces.as_ref(), scenario.about.description.as_str()),
        (None, None, "")
    );
    assert_eq!(node_paths(&scenario), "dc1/a/r1/h1 dc2/a/h1 dc1/a/r2/alpha");
    assert_eq!(scenario.database.synchronous, Synchronous::Off);
    assert_eq!(scenario.database.failover, Failover::None);
    let load = &scenario.loads[0];
    assert_eq!((load.name.as_str(), load.scale, load.timeout), ("tpcb", 1, Duration::from_secs(2)));
    assert_eq!((load.from.level, load.from.to_string()), (Level::Region, "dc1".to_owned()));
    let fault = &scenario.schedule[1].faults[0];
    assert_eq!((fault.at, fault.length), (Duration::ZERO, Some(Duration::from_secs(20))));
    assert_eq!(
        fault.action,
        FaultAction::PowerOff(PowerOffFault { target: FaultTarget::Leader(Level::Host) })
    );
}

#[test]
fn a_load_asks_at_its_pace_phase_by_phase() {
    let steps = |written: &str| {
        let scenario = accepted(&[("clients: 4 }", &format!("clients: 4, {written} }}"))]);
        let steps = scenario.loads[0].steps(&scenario.schedule);
        steps.iter().map(|(from, clients, rate)| (from.as_secs(), *clients, *rate)).collect::<Vec<_>>()
    };
    assert_eq!(steps("scale: 1"), [(0, 4, None)]);
    assert_eq!(steps("rate: 2000/s, arrival: poisson"), [(0, 4, Some(2000.0))]);
    assert_eq!(
        steps("sweep: { clients: [50, 100, 150] }"),
        [(0, 50, None), (15, 100, None), (40, 150, None)]
    );
    let rates = [(0, 4, Some(0.5)), (15, 4, Some(20.0)), (40, 4, Some(300.0))];
    assert_eq!(steps("sweep: { rate: [0.5/s, 20/s, 300/s] }"), rates);
    assert_eq!(steps("ramp: { from: 4, to: 2, over: 30s }"), [(0, 4, None), (15, 3, None), (30, 2, None)]);
    let ramp = &accepted(&[("clients: 4 }", "clients: 9, ramp: { from: 100/s, to: 300/s, over: 50s } }")]);
    let rates = ramp.loads[0].steps(&ramp.schedule);
    // Pieces of a tenth of a second, each with the rate of its middle, and the last value for what follows.
    assert_eq!((rates.len(), rates[0], rates[500].0.as_secs()), (501, (Duration::ZERO, 9, Some(100.2)), 50));
    assert_eq!(rates[500].2, Some(300.0));
    let due: f64 =
        rates.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() * pair[0].2.unwrap()).sum();
    assert!((due - 50.0 * 200.0).abs() < 1e-6, "{due}");
    // A ramp begins when the warm-up has ended.
    let warm = accepted(&[
        ("clients: 4 }", "clients: 4, ramp: { from: 10, to: 200, over: 19s } }"),
        ("{ phase: baseline, for: 15s }", "{ phase: warm-up, for: 15s }\n  - { phase: baseline, for: 15s }"),
    ]);
    let clients = warm.loads[0].steps(&warm.schedule);
    let ends = |step: &(Duration, u32, Option<f64>)| (step.0.as_millis(), step.1);
    assert_eq!((ends(&clients[0]), ends(&clients[1])), ((0, 10), (15_100, 11)));
    assert_eq!((clients.last().map(ends), clients.len()), (Some((34_000, 200)), 191));
    // Warm-up takes the first value and none of its own.
    let scenario = accepted(&[
        ("clients: 4 }", "clients: 4, sweep: { clients: [50, 100, 150] } }"),
        ("{ phase: baseline, for: 15s }", "{ phase: warm-up, for: 15s }\n  - { phase: baseline, for: 15s }"),
    ]);
    let clients: Vec<u32> = scenario.loads[0].steps(&scenario.schedule).iter().map(|step| step.1).collect();
    assert_eq!(clients, [50, 50, 100, 150]);
    let refuse = |written: &str, expected: &[&str]| {
        refused(&[("clients: 4 }", &format!("clients: 4, {written} }}"))], expected)
    };
    refuse("rate: 2000", &["no-unit `2000`"]);
    refuse("rate: 0/s", &["out-of-range `0/s`"]);
    refuse("rate: 2e9/s", &["bad-unit `2e9/s`"]);
    refuse("rate: 5/s, arrival: even", &["unknown-word `even`"]);
    refuse("sweep: { clients: [5] }", &["empty `[5] `"]);
    refuse("ramp: { from: 5, to: 50 }", &["missing-key `ramp`"]);
    refuse("ramp: { from: 5, to: 50/s, over: 9s }", &["contradiction `50/s`"]);
    refuse("ramp: { from: 5, to: 5, over: 9s }", &["contradiction `5`"]);
    refuse("ramp: { from: 5, to: 50, over: 0s }", &["too-small `0s`"]);
    refuse("ramp: { from: 5, to: 50, over: 1h }", &["ramp-longer-than-run `1h`"]);
    refuse("ramp: { from: 0, to: 50, over: 9s }", &["too-small `0`"]);
    refuse("ramp: { from: 5/s, to: 50/s, over: 9s }, rate: 7/s", &["contradiction `7/s`"]);
    refuse("ramp: { from: 5, to: 50, over: 9s }, arrival: poisson", &["contradiction `poisson`"]);
}

#[test]
fn nodes_go_where_they_are_asked_for_and_otherwise_spread() {
    let nodes = |wanted: &str| node_paths(&accepted(&[("nodes: 3", wanted)]));
    assert_eq!(nodes("nodes: 3\n  leader: beta"), "dc1/a/r2/beta dc2/a/h1 dc1/a/r1/h1");
    assert_eq!(nodes("nodes: 2\n  leader: dc2"), "dc2/a/h1 dc1/a/r1/h1");
    assert_eq!(nodes("nodes: [r2, r1/h2, dc2]"), "dc1/a/r2/alpha dc1/a/r1/h2 dc2/a/h1");
    // Whoever names a host gets it, even after one who would have been given it.
    assert_eq!(nodes("nodes: [r1, r1/h1]"), "dc1/a/r1/h2 dc1/a/r1/h1");
    assert_eq!(nodes("nodes: 5"), "dc1/a/r1/h1 dc2/a/h1 dc1/a/r2/alpha dc1/a/r1/h2 dc1/a/r2/beta");
}

#[test]
fn places_are_named_by_any_tail_that_means_one_place() {
    let from = |written: &str| {
        accepted(&[("clients: 4", &format!("clients: 4, from: {written}"))]).loads[0].from.to_string()
    };
    assert_eq!(from("alpha"), "dc1/a/r2/alpha");
    assert_eq!(from("r2/alpha"), "dc1/a/r2/alpha");
    assert_eq!(from("dc2/a"), "dc2/a");
    assert_eq!(from("r1"), "dc1/a/r1");
    let ambiguous = [("clients: 4", "clients: 4, from: a")];
    refused(&ambiguous, &["ambiguous-place `a`"]);
    refused(&[("clients: 4", "clients: 4, from: dc1/r1")], &["unknown-place `dc1/r1`"]);
    // A whole path wins over a deeper place that ends in the same names.
    let scenario = accepted(&[
        ("dc2: { zones: { a: {", "dc2: { zones: { dc1: {"),
        ("clients: 4", "clients: 4, from: dc1"),
    ]);
    assert_eq!(scenario.loads[0].from.to_string(), "dc1");
}

#[test]
fn a_link_between_holds_both_ways_and_a_link_from_one_way() {
    let links = |written: &str| {
        let scenario = accepted(&[("database:\n", &format!("  links: [{written}]\ndatabase:\n"))]);
        let tell = |link: &scenario::Link| {
            let Conditions { delay, rate_bits_per_s, .. } = link.conditions;
            let rate = rate_bits_per_s.map(|rate| format!(" {rate} bit/s")).unwrap_or_default();
            format!("{}>{} {:?}{rate}", link.from, link.to, delay.unwrap_or_default())
        };
        scenario.site.links.iter().map(tell).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(links("{ between: [dc1, dc2], delay: 5ms }"), "dc1>dc2 5ms, dc2>dc1 5ms");
    assert_eq!(links("{ from: r1, to: r2, delay: 50ms }"), "dc1/a/r1>dc1/a/r2 50ms");
    assert_eq!(
        links("{ between: [dc1, dc2], rate: 1.5Mbit/s }"),
        "dc1>dc2 0ns 1500000 bit/s, dc2>dc1 0ns 1500000 bit/s"
    );
    assert_eq!(
        links("{ from: dc1, to: dc2, delay: 10ms, rate: 1kbit/s }, { from: dc2, to: dc1, rate: 1Tbit/s }"),
        "dc1>dc2 10ms 1000 bit/s, dc2>dc1 0ns 1000000000000 bit/s"
    );
    let refuse = |written: &str, expected: &str| {
        refused(&[("database:\n", &format!("  links: [{written}]\ndatabase:\n"))], &[expected]);
    };
    refuse("{ from: dc1, delay: 5ms }", "missing-key `from`");
    refuse("{ between: [dc1, dc2], to: dc2, delay: 5ms }", "missing-key `to`");
    refuse("{ between: [dc1, dc2, r1], delay: 5ms }", "too-large `[dc1, dc2, r1]`");
    refuse("{ between: [dc1, r1], delay: 5ms }", "bad-link `r1`");
    refuse("{ from: dc1, to: dc2, delay: 11s }", "too-large `11s`");
    refuse("{ from: dc1, to: dc2, delay: 50 }", "no-unit `50`");
    refuse("{ from: dc1, to: dc2 }", "missing-key `{ from: dc1, to: dc2 }`");
    refuse("{ from: dc1, to: dc2, rate: 4 }", "no-unit `4`");
    refuse("{ from: dc1, to: dc2, rate: 4MB/s }", "bad-unit `4MB/s`");
    refuse("{ from: dc1, to: dc2, rate: 999bit/s }", "too-small `999bit/s`");
    refuse("{ from: dc1, to: dc2, rate: 1001Gbit/s }", "too-large `1001Gbit/s`");
    refuse("{ from: dc1, to: dc2, rate: 0bit/s }", "too-small `0bit/s`");
    refuse("{ from: dc1, to: dc2, rate: }", "no-value `rate`");
    refuse("{ from: dc1, to: dc2, between: [dc1, dc2], delay: 5ms }", "one-too-many `between`");
}

#[test]
fn the_database_is_refused_what_it_cannot_do() {
    let refuse = |written: &str, expected: &[&str]| refused(&[("nodes: 3", written)], expected);
    refuse("nodes: 0", &["too-small `0`"]);
    refuse("nodes: three", &["not-a-number `three`"]);
    refuse("nodes: \"3\"", &["not-a-number `\"3\"`"]);
    refuse("nodes: 99999999999999999999999", &["too-large `99999999999999999999999`"]);
    refuse("nodes: [r1/h1]\n  leader: r1", &["one-too-many `r1`"]);
    refuse("nodes: [r1, r1, r1]", &["too-few-hosts `r1`"]);
    refuse("nodes: 3\n  replication: { synchronous: any 0 }", &["too-small `any 0`"]);
    refuse("nodes: 3\n  replication: { synchronous: some }", &["unknown-word `some`"]);
    refuse("nodes: 1\n  replication: { synchronous: all }", &["too-few-standbys `all`"]);
    refuse("nodes: 3\n  failover: restart", &["unknown-word `restart`"]);
    refuse("nodes: 3\n  cpus: 0", &["out-of-range `0`"]);
    refuse("nodes: 3\n  cpus: .inf", &["not-a-number `.inf`"]);
    refuse("nodes: 3\n  path: bin", &["bad-path `bin`"]);
    for setting in ["port: 5433", "hot_standby: off", "Shared: 1", "a'b: 1", "work_mem: [1]", "fsync:"] {
        let code = match setting.split(':').next().unwrap() {
            name @ ("port" | "hot_standby") => format!("our-setting `{name}`"),
            name @ ("Shared" | "a'b") => format!("bad-name `{name}`"),
            "work_mem" => "wrong-kind `[1]`".to_owned(),
            name => format!("no-value `{name}`"),
        };
        refuse(&format!("nodes: 3\n  settings:\n    {setting}"), &[&code]);
    }
    let kept = accepted(&[("nodes: 3", "nodes: 3\n  settings: { fsync: off, work_mem: 4MB, a.b: 'x y' }")])
        .database
        .settings;
    let kept: Vec<_> = kept.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(kept, ["a.b=x y", "fsync=off", "work_mem=4MB"]);
}

#[test]
fn the_schedule_is_refused_what_cannot_happen() {
    let refuse = |from: &str, to: &str, expected: &[&str]| refused(&[(from, to)], expected);
    refuse("for: 15s }\n  - phase", "for: 0s }\n  - phase", &["too-small `0s`"]);
    refuse("for: 25s", "for: 25500ms", &["not-whole-seconds `25500ms`"]);
    refuse("for: 25s", "for: 25h", &["too-large `25h`"]);
    refuse("for: 20s", "at: 25s", &["outside-phase `25s`"]);
    refuse("for: 20s", "for: 41s", &["outside-run `41s`"]);
    refuse("for: 20s", "for: 0s", &["too-small `0s`"]);
    refuse("phase: recovery", "phase: fault", &["duplicate-name `fault`"]);
    refuse("phase: baseline", "phase: before", &["no-baseline `power-off`"]);
    refuse("host: leader", "host: dc1", &["wrong-level `dc1`"]);
    refuse("host: leader", "host: leader, rack: r1", &["one-too-many `rack`"]);
    refuse("host: leader", "hots: leader", &["unknown-key `hots`"]);
    refuse("power-off: { host: leader }, ", "", &["missing-key `{ for: 20s }`"]);
    refuse("power-off: { host: leader }", "pause: { host: leader }", &["unknown-key `pause`"]);
    refused(&[("nodes: 3", "nodes: 1"), ("host: leader", "host: a-follower")], &["no-follower `a-follower`"]);
    // Touching is not overlapping, and another rack is another matter.
    let twice = |second: &str| {
        let faults = format!("{{ power-off: {{ rack: r2 }}, for: 10s }}\n      - {second}");
        edited(&[("{ power-off: { host: leader }, for: 20s }", &faults)])
    };
    assert!(read(&twice("{ power-off: { host: beta }, at: 10s }"), &[]).is_ok());
    assert!(read(&twice("{ power-off: { rack: r1 }, at: 5s }"), &[]).is_ok());
    let found = read(&twice("{ power-off: { host: beta }, at: 9999ms }"), &[]).unwrap_err();
    assert_eq!(found, ["overlapping-faults `beta` in base.yaml"]);
    // A fault without `for` is off until its phase ends, and faults are told in order of time.
    let scenario =
        read(&twice("{ power-off: { host: h2 }, at: 1s }").replace("for: 10s", "at: 2s"), &[]).unwrap();
    let at: Vec<_> =
        scenario.schedule[1].faults.iter().map(|fault| (fault.at.as_secs(), fault.length)).collect();
    assert_eq!(at, [(1, None), (2, None)]);
}

#[test]
fn every_fault_and_role_of_the_catalogue_can_be_scheduled() {
    // Machines that exist are struck in `external.rs`.
    for fault in scenario::FAULT_KINDS.iter().filter(|fault| fault.name != "external") {
        for example in fault.examples {
            let scenario = accepted(&[("- { power-off: { host: leader }, for: 20s }", example)]);
            assert_eq!(scenario.schedule[1].faults[0].action.kind_name(), fault.name);
        }
    }
    for role in scenario::catalogue::ROLES {
        let aimed = format!("rack: {}", role.name);
        if role.name == "coordinator" {
            // Of engines without a leader alone.
            refused(&[("host: leader", &aimed)], &["no-such-role `coordinator`"]);
        } else {
            accepted(&[("host: leader", &aimed)]);
        }
        refused(&[("r1: {", &format!("{}: {{", role.name))], &[&format!("bad-name `{}`", role.name)]);
    }
}

#[test]
fn expectations_are_read_in_base_units() {
    let bound = |written: &str| {
        let scenario = read(&format!("{BASE}expect:\n  {written}\n"), &[])
            .unwrap_or_else(|problems| panic!("{written}: {problems:?}"));
        let one = scenario.expect[0].clone();
        format!("{} {:?} {} ({})", one.name, one.comparison, one.bound, one.wanted)
    };
    assert_eq!(bound("lost_writes: 0"), "lost_writes Equal 0 (0)");
    assert_eq!(bound("recovery: < 30s"), "recovery Less 30 (< 30s)");
    assert_eq!(bound("recovery_95_percent: <= 2m"), "recovery_95_percent AtMost 120 (<= 2m)");
    assert_eq!(bound("latency_p99: < 5ms"), "latency_p99 Less 5000 (< 5ms)");
    assert_eq!(bound("throughput_per_s: \">=100/s\""), "throughput_per_s AtLeast 100 (>=100/s)");
    assert_eq!(bound("throughput_ratio_during: \"> 10%\""), "throughput_ratio_during Greater 0.1 (> 10%)");
    assert_eq!(bound("lab_cpu_share: < 0.2"), "lab_cpu_share Less 0.2 (< 0.2)");
    assert_eq!(bound("errors: = 3"), "errors Equal 3 (= 3)");
}

#[test]
fn an_override_sets_any_value_by_its_path() {
    assert_eq!(set(&[("loads.0.clients", "16")]).loads[0].clients, 16);
    assert_eq!(set(&[("seed", "9")]).seed, Some(9));
    assert_eq!(
        set(&[("schedule.1.faults.0.for", "5s")]).schedule[1].faults[0].length,
        Some(Duration::from_secs(5))
    );
    let after = Duration::from_secs(3);
    assert_eq!(
        set(&[("database.failover.promote.after", "3s")]).database.failover,
        Failover::Promote { after }
    );
    let scenario =
        set(&[("database.replication", "{ synchronous: any 2 }"), ("database.nodes", "[r1, r2, dc2]")]);
    assert_eq!((scenario.database.synchronous, scenario.database.nodes.len()), (Synchronous::Any(2), 3));
    assert_eq!(set(&[("expect.recovery", "> 3s")]).expect[0].wanted, "> 3s");
    let settings = set(&[("database.settings.auto_explain.log_min_duration", "0")]).database.settings;
    assert_eq!(settings.get("auto_explain.log_min_duration").map(String::as_str), Some("0"));
    // The later one wins.
    assert_eq!(set(&[("loads.0.clients", "16"), ("loads.0.clients", "8")]).loads[0].clients, 8);
}

#[test]
fn a_wrong_override_is_shown_in_its_own_text() {
    refused_set(&[("loads.0.client", "4")], "unknown-key `client`");
    refused_set(&[("laods.0.clients", "4")], "unknown-key `laods`");
    refused_set(&[("loads.2.clients", "4")], "bad-path `2`");
    refused_set(&[("loads.first.clients", "4")], "bad-path `first`");
    refused_set(&[("loads.0.clients", "0")], "too-small `0`");
    refused_set(&[("loads.0.clients.x", "0")], "bad-path `x`");
    refused_set(&[("loads..clients", "0")], "bad-path ``");
    refused_set(&[("description", "a #1")], "comment `#1`");
    refused_set(&[("loads.0.clients", "4 # few")], "comment `# few`");
    refused_set(&[("loads.0", "{ workload: ledger, clients: 1 } # one")], "comment `# one`");
    for kept in ["a#1", "\"a #1\"", "'a #1'"] {
        let description = set(&[("description", kept)]).about.description;
        assert_eq!(description, kept.trim_matches(['"', '\'']));
    }
    // A block of text has no comment in it, and may have one behind it.
    assert_eq!(set(&[("description", "|\n  # 1\n  b")]).about.description.trim_end(), "# 1\nb");
    refused_set(&[("description", "|\n  b\n# 1")], "comment `# 1`");
    refused_set(&[("", "0")], "bad-path ``");
    refused_set(&[("database.nodes", "9")], "too-few-hosts `9`");
    refused_set(&[("database.engine", "")], "no-value `engine`");
    refused_set(&[("database.engine", "postgers")], "unknown-word `postgers`");
    refused_set(&[("database.failover", "{ promote: {} }")], "missing-key `promote`");
    refused_set(&[("schedule.1.faults.0.power-off.host", "r9/h1")], "unknown-place `r9/h1`");
    refused_set(&[("loads", "[")], "not-yaml ``");
    // A key made by a path is the override's; a value after it may still be right where it stands.
    refused_set(&[("name", "Wörter und Häuser")], "bad-name `Wörter und Häuser`");
}

#[test]
fn carets_stand_right_after_characters_of_several_bytes_and_windows_line_ends() {
    let text = edited(&[
        ("name: base\n", "name: base\ndescription: \"Häuser → 東京 🏠\"\n"),
        ("clients: 4", "client: 4"),
    ]);
    assert_eq!(read(&text, &[]).unwrap_err(), ["unknown-key `client` in base.yaml"]);
    assert_eq!(read(&text.replace('\n', "\r\n"), &[]).unwrap_err(), ["unknown-key `client` in base.yaml"]);
    assert_eq!(read(&format!("\u{feff}{text}"), &[]).unwrap_err(), ["unknown-key `client` in base.yaml"]);
}

#[test]
fn what_yaml_allows_and_a_scenario_does_not_is_refused() {
    let refuse = |text: &str, expected: &str| {
        assert_eq!(read(text, &[]).unwrap_err(), [format!("{expected} in base.yaml")])
    };
    refuse("", "empty ``");
    refuse("# only a comment\n", "empty ``");
    refuse("just text", "wrong-kind `just text`");
    refuse("- a\n- b\n", "wrong-kind `a`");
    refuse("a: &x 1\n", "anchor `&x 1`");
    refuse("a: *x\n", "not-yaml ``");
    refuse("? [a]\n: b\n", "key-not-text `[`");
    refuse("a: !!str b\n", "tag `!!str b`");
    refuse("a: 1\na: 2\n", "duplicate-key `a`");
    refuse("a: 1\n---\nb: 1\n", "second-document `---`");
    refuse("a:\n\t- b\n", "not-yaml ``");
    refuse(&format!("a: {}", "[".repeat(200)), "too-deep `[`");
    refuse(&format!("a: {}", "x".repeat(1 << 20)), "too-large ``");
}

/// An engine that is a file and speaks CQL.
const OF_ROWS: &str = r#"{ file: mine.yaml, text: "engine: mine\nsummary: Mine\nfind: { programs: [mine], version: { command: [mine, --version] }, at-least: '1' }\nports: { client: 9042 }\nprocesses: [{ name: mine, command: [mine], ready: { tcp: client } }]\nroles: { command: [mine], leads: { field: role, is: [leader] } }\nclient: { protocol: cql }\nclaims: { isolation: read-committed }\npaper: { commit: at-end, quorum: majority, elects: { timeout: 1s, heartbeat: 100ms } }\ntested: { here: false, from: nowhere }\n" }"#;

#[test]
fn a_database_of_rows_takes_no_transactions_of_several_statements_and_its_clients_choose_their_consistency() {
    use scenario::{Consistency, ConsistencyLevel, Timestamps};
    let engine = ("engine: postgres", format!("engine: {OF_ROWS}"));
    let engine = (engine.0, engine.1.as_str());
    let ledger = ("- { workload: ledger, clients: 2 }", "- { workload: ledger, name: second, clients: 2 }");
    for several in ["tpcb", "tpcc", "bank", "append"] {
        let load = format!("- {{ workload: {several}, clients: 4 }}");
        let edits = [engine, ledger, ("- { workload: tpcb, clients: 4 }", load.as_str())];
        refused(&edits, &[&format!("wrong-language `{several}`")]);
    }
    let of = |written: &str| {
        let load = format!("- {{ workload: register, clients: 4{written} }}");
        let scenario = accepted(&[engine, ledger, ("- { workload: tpcb, clients: 4 }", load.as_str())]);
        let again = read(&scenario::to_yaml(&scenario, 1), &[]).expect("accepted again");
        assert_eq!(again.loads, scenario.loads, "{written}");
        scenario.loads[0].consistency
    };
    let (one, all) = (Some(ConsistencyLevel::One), Some(ConsistencyLevel::All));
    assert_eq!(of(""), Consistency::default());
    assert_eq!(
        of(", consistency: all"),
        Consistency { reads: all, writes: all, timestamps: Timestamps::Client }
    );
    assert_eq!(
        of(", consistency: { reads: one, writes: all }"),
        Consistency { reads: one, writes: all, timestamps: Timestamps::Client }
    );
    let of_nodes = Consistency { timestamps: Timestamps::Coordinator, ..Consistency::default() };
    assert_eq!(of(", consistency: { timestamps: coordinator }"), of_nodes);
    let serial = Some(ConsistencyLevel::Serial);
    assert_eq!(
        of(", consistency: { reads: serial }"),
        Consistency { reads: serial, ..Consistency::default() }
    );
}

#[test]
fn a_transaction_has_as_many_operations_as_the_database_is_set_to_take() {
    let judged = |engine: &str, settings: &str, load: &str| {
        crate::reading::read(&format!(
            "name: x\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 3 }} }} }} }} }}\n\
             database: {{ engine: {engine}, nodes: 3{settings} }}\nloads: [ {{ clients: 1, {load} }} ]\n\
             schedule: [ {{ phase: baseline, for: 5s }} ]\n"
        ))
        .map(drop)
    };
    let kv = |batch: u32| format!("workload: kv, options: {{ batch: {batch} }}");
    assert_eq!(judged("etcd", "", &kv(128)), Ok(()));
    assert_eq!(judged("etcd", "", &kv(129)), Err(vec!["too-many-operations `129`".to_owned()]));
    assert_eq!(judged("etcd", ", settings: { max-txn-ops: 500 }", &kv(500)), Ok(()));
    let more = judged("etcd", ", settings: { max-txn-ops: 500 }", &kv(501));
    assert_eq!(more, Err(vec!["too-many-operations `501`".to_owned()]));
    assert_eq!(judged("redis", "", &kv(1000)), Ok(()));
}

#[test]
fn large_sites_are_read_and_larger_ones_refused() {
    let site = |count: &str| edited(&[("hosts: 2 }", &format!("hosts: {count} }}"))]);
    assert_eq!(read(&site("59997"), &[]).unwrap().site.hosts.len(), 60_000);
    assert_eq!(read(&site("59998"), &[]).unwrap_err().len(), 1);
    assert_eq!(read(&site("60001"), &[]).unwrap_err(), ["too-large `60001` in base.yaml"]);
    assert_eq!(read(&site("18446744073709551615"), &[]).unwrap_err().len(), 1);
}

#[test]
fn the_example_of_the_contract_is_accepted_as_written() {
    let example = "\
name: two-datacentres-50ms
reproduces: { report: FR-3, figures: { latency_ms_mean: 53.0, commit_ms: 52.0, tps: 18.87 } }
site:
  regions:
    dc1: { zones: { a: { hosts: 1 } } }
    dc2: { zones: { a: { hosts: 1 }, b: { hosts: 1 } } }
  links:
    - { from: dc1, to: dc2, delay: 50ms }
database:
  engine: postgres
  nodes: 3
  leader: dc1/a
  replication: { synchronous: any 1 }
loads:
  - { workload: tpcb, scale: 1, clients: 1, from: dc1/a }
schedule:
  - { phase: baseline, for: 20s }
expect:
  lost_writes: 0
";
    let scenario = read(example, &[]).unwrap();
    assert_eq!(scenario.about.reproduces.unwrap().figures["tps"], 18.87);
    assert_eq!(scenario.expect[0].name, "lost_writes");
    let invented = example.replace("lost_writes", "invented_writes");
    assert_eq!(read(&invented, &[]).unwrap_err(), ["needs-load `invented_writes` in base.yaml"]);
}

/// The options of the first load, after writing and reading.
fn options(load: &str) -> Vec<(String, String)> {
    let mut scenario = accepted(&[("{ workload: tpcb, clients: 4 }", load)]);
    let written = scenario::to_yaml(&scenario, 1);
    scenario.seed = Some(1);
    let again = read(&written, &[]).unwrap_or_else(|problems| panic!("{problems:?} in\n{written}"));
    assert_eq!(again, scenario, "{written}");
    again.loads[0].options.clone().into_iter().collect()
}

#[test]
fn options_of_a_workload_are_written_out_with_their_defaults_and_read_back() {
    let check = |load: &str, name: &str, expected: &str| {
        let options = options(load);
        let found = options.iter().find(|option| option.0 == name).map(|option| option.1.as_str());
        assert_eq!(found, Some(expected), "{load}: {options:?}");
    };
    assert!(options("{ workload: tpcb, clients: 4 }").is_empty());
    check("{ workload: kv, clients: 4 }", "keys", "100000");
    check("{ workload: kv, clients: 4, options: { read: 95%, exponent: 1.5 } }", "read", "95%");
    check("{ workload: kv, clients: 4, options: { read: 95%, exponent: 1.5 } }", "exponent", "1.5");
    check("{ workload: tpcc, clients: 4, options: { pauses: on } }", "pauses", "on");
    let scripts = r#"{ workload: script, clients: 4, options: { scripts: [{ text: "\\set a 1\nSELECT :a;", weight: 3 },
        { builtin: select-only, name: "42" }], setup: "CREATE TABLE t (a int); -- t", conditions: { none: "SELECT ':x'" } } }"#;
    check(scripts, "scripts.0.text", "\\set a 1\nSELECT :a;");
    check(scripts, "scripts.0.weight", "3");
    check(scripts, "scripts.1.name", "42");
    check(scripts, "conditions.none", "SELECT ':x'");
}

#[test]
fn options_may_be_set_from_the_command_line_one_by_one() {
    let found = set(&[("loads.0.workload", "kv"), ("loads.0.options.read", "5%")]);
    assert_eq!(found.loads[0].options["read"], "5%");
    refused_set(&[("loads.0.workload", "kv"), ("loads.0.options.read", "5")], "no-unit `5`");
}
