//! Runs beside the atlas: a worse run is told to be worse, an equal one is not, and what is not comparable is not judged.

use std::path::PathBuf;

use ::atlas::{Atlas, Cell, Entry, Run};
use history::Verdict;
use report::compare::{self, Bound, CompareError, Comparison, Gate, GateError, Judged, Reference};
use results::RunResult;
use tempfile::TempDir;

use crate::fixture;

/// A scenario like that of the fixture.
const SCENARIO: &str = "\
name: host-failure
seed: 42
site:
  regions:
    dc1: { zones: { a: { racks: { r1: { hosts: 2 }, r2: { hosts: 2 }, r3: { hosts: 1 } } } } }
database:
  engine: postgres
  nodes: [dc1/a/r1/h1, dc1/a/r2/h1, dc1/a/r3/h1]
  replication: { synchronous: any 1 }
  failover: { ha-restart: { after: 5s } }
loads:
  - { workload: tpcb, name: bank, clients: 4, from: dc1 }
  - { workload: ledger, name: ledger, clients: 2, from: dc1 }
schedule:
  - { phase: warm-up, for: 5s }
  - { phase: baseline, for: 15s }
  - { phase: fault, for: 25s, faults: [{ power-off: { host: leader }, for: 20s }] }
  - { phase: recovery, for: 15s }
";

/// The result of the fixture's run, its fault's times so many times as long.
fn result(times: f64) -> RunResult {
    let mut result = fixture::host_failure().result;
    let fault = &mut result.faults[0];
    let longer = |value: &mut Option<f64>| *value = value.map(|value| value * times);
    longer(&mut fault.gap_s);
    longer(&mut fault.recovery_s.first_success);
    longer(&mut fault.recovery_s.back_to_95_percent);
    longer(&mut fault.recovery_s.sustained);
    result
}

/// One cell with so many runs, which differ by a hundredth each.
fn atlas_of(runs: usize) -> Atlas {
    let run = |number: usize| Run::of(&result(1.0 + number as f64 / 100.0));
    let cell = Cell { runs: (0..runs).map(run).collect(), ..Cell::new("postgres", "leader-off") };
    let scenario = SCENARIO.replace("name: host-failure\nseed: 42\n", "name: atlas-postgres-leader-off\n");
    let title = "The leader's host loses power for 20 s".to_owned();
    Atlas { cells: vec![Entry { title, scenario, cell }] }
}

struct Runs {
    folder: TempDir,
    count: usize,
}

impl Runs {
    fn new() -> Runs {
        Runs { folder: TempDir::new().expect("a temporary folder"), count: 0 }
    }

    fn add(&mut self, scenario: &str, result: RunResult) -> PathBuf {
        self.count += 1;
        let path = self.folder.path().join(format!("run-{}", self.count));
        std::fs::create_dir(&path).expect("a run directory");
        let mut fixture = fixture::host_failure();
        fixture.result = result;
        fixture.write(&path).expect("the fixture is written");
        std::fs::write(path.join("scenario.yaml"), scenario).expect("the scenario is written");
        path
    }
}

fn beside(paths: &[PathBuf], atlas: &Atlas) -> Comparison {
    let given = compare::expand(paths).expect("runs");
    let reference = Reference { name: "the planted atlas", atlas };
    compare::compare(&given, Some(reference)).expect("a comparison")
}

/// What terminal and page say of one run, on one line each.
fn told(scenario: &str, result: RunResult, atlas: &Atlas) -> (String, String) {
    let mut runs = Runs::new();
    let comparison = beside(&[runs.add(scenario, result)], atlas);
    let text = compare::text(&comparison);
    for line in text.lines() {
        // Notes have the paths of runs in them.
        assert!(line.chars().count() <= 100 || line.starts_with("- "), "{line}");
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (text, compare::html(&comparison))
}

#[track_caller]
fn check(scenario: &str, result: RunResult, atlas: &Atlas, expected: &[&str]) -> String {
    let (text, page) = told(scenario, result, atlas);
    let page = page.replace("&#39;", "'").replace("&gt;", ">");
    for words in expected {
        assert!(text.contains(words), "{words:?} in the terminal: {text}");
        assert!(page.contains(words), "{words:?} on the page: {page}");
    }
    assert!(page.contains("<h2>Beside the atlas</h2>"));
    text
}

#[test]
fn a_planted_worse_run_is_worse_than_every_run_of_the_atlas_and_an_equal_one_is_not() {
    let atlas = atlas_of(10);
    let mut worse = result(3.0);
    worse.faults[0].lost_writes = Some(7);
    let text = check(
        SCENARIO,
        worse,
        &atlas,
        &[
            "The leader's host loses power for 20 s; postgres PostgreSQL 15.18, 10 runs",
            "longer than in all 10",
            "more than in all 10",
            "Worse than the atlas: longest time without a success; first success",
            "AMD EPYC 7B13",
        ],
    );
    assert!(text.contains("longest time without a success 22.0 s 7.7 s (7.3 s to 8.0 s)"), "{text}");
    let text = check(SCENARIO, result(1.045), &atlas, &["longer than in 5 of 10", "as in all 10"]);
    assert!(!text.contains("Worse") && !text.contains("Better"), "{text}");
    let text = check(SCENARIO, result(0.5), &atlas, &["shorter than in all 10", "Better than the atlas"]);
    assert!(text.contains("By chance alone, 1 in 11 runs"), "{text}");
}

#[test]
fn a_run_that_never_recovered_is_worse_than_all_that_did() {
    let mut never = result(1.0);
    never.faults[0].recovery_s.sustained = None;
    check(SCENARIO, never, &atlas_of(10), &["> 37.0", "longer than in all 10"]);
}

#[test]
fn latency_and_throughput_are_compared_before_the_fault_between_the_same_loads() {
    let mut slow = result(1.0);
    for load in &mut slow.loads {
        load.phases[1].measured.latency_us.p99 *= 5;
    }
    let loads = ["bank: p99, baseline", "higher than in all 10", "ledger: throughput, baseline"];
    let text = check(SCENARIO, slow.clone(), &atlas_of(10), &loads);
    assert!(!text.contains("The machines differ"), "{text}");
    let doubts = "Runs with measurement warnings, such as a busy machine: 1 of your 1, 10 of the atlas' 10.";
    assert!(text.contains(doubts), "{text}");
    slow.facts.machine.insert("cores".to_owned(), "64".to_owned());
    check(SCENARIO, slow.clone(), &atlas_of(10), &["The machines differ"]);
    let more = SCENARIO.replace("name: bank, clients: 4", "name: bank, clients: 40");
    let text = check(&more, slow, &atlas_of(10), &["The loads differ", "`loads.0.clients` is 40 (atlas: 4)"]);
    assert!(!text.contains("bank: p99") && text.contains("longest time without a success"), "{text}");
}

#[test]
fn what_differs_is_named_and_nothing_is_judged() {
    let atlas = atlas_of(10);
    let check = |from: &str, to: &str, expected: &str| {
        let scenario = SCENARIO.replace(from, to);
        assert_ne!(scenario, SCENARIO);
        let text = check(&scenario, result(3.0), &atlas, &["Not comparable: ", expected]);
        assert!(!text.contains("than in all") && !text.contains("Worse"), "{text}");
    };
    check(
        "synchronous: any 1",
        "synchronous: all",
        "`database.replication.synchronous` is all (atlas: any 1)",
    );
    check("after: 5s", "after: 9s", "`database.failover.ha-restart.after` is 9s (atlas: 5s)");
    check("for: 20s }", "for: 10s }", "`for` is 10s (atlas: 20s)");
    check(
        "nodes: [dc1/a/r1/h1, dc1/a/r2/h1, dc1/a/r3/h1]",
        "nodes: [dc1/a/r1/h1, dc1/a/r2/h1]",
        "it has 2 nodes (atlas: 3)",
    );
    let mut newer = result(3.0);
    newer.facts.engine_version = "PostgreSQL 18.6".to_owned();
    let version = "the database's version is PostgreSQL 18.6 (atlas: PostgreSQL 15.18)";
    let text = self::check(SCENARIO, newer, &atlas, &["Not comparable: ", version]);
    assert!(!text.contains("than in all"), "{text}");
    let mut doubtful = result(3.0);
    doubtful.verdict = Verdict::Unknown;
    doubtful.reasons = vec!["the lab stalled".to_owned()];
    let text = self::check(
        SCENARIO,
        doubtful,
        &atlas,
        &["the verdict is unknown in 1 of 1 run, because the lab stalled"],
    );
    assert!(!text.contains("than in all"), "{text}");
}

#[test]
fn another_site_and_another_length_of_phases_are_no_obstacles() {
    let scenario = SCENARIO
        .replace("r3: { hosts: 1 }", "r3: { hosts: 3 }")
        .replace("phase: recovery, for: 15s", "phase: recovery, for: 30s")
        .replace("host: leader", "host: dc1/a/r1/h1");
    check(&scenario, result(3.0), &atlas_of(10), &["longer than in all 10"]);
}

#[test]
fn a_cell_that_is_not_there_is_told_with_those_that_are() {
    let killed = SCENARIO
        .replace("{ power-off: { host: leader }, for: 20s }", "{ process: { of: leader, how: kill } }");
    let mut of_kill = result(1.0);
    of_kill.faults[0].kind = "process".to_owned();
    check(
        &killed,
        of_kill,
        &atlas_of(10),
        &[
            "The planted atlas has no cell for process (kill) of the leader on postgres.",
            "It has: The leader's host loses power for 20 s.",
        ],
    );
    let mut of_etcd = atlas_of(10);
    of_etcd.cells[0].cell.engine = "etcd".to_owned();
    check(SCENARIO, result(1.0), &of_etcd, &["The planted atlas has no figures of postgres; it has etcd."]);
    check(SCENARIO, result(1.0), &Atlas::default(), &["the planted atlas has no figures of postgres"]);
    let mut later = atlas_of(10);
    later.cells[0].scenario = "name: of a later version".to_owned();
    check(SCENARIO, result(1.0), &later, &["1 cell could not be read by this version"]);
}

#[test]
fn runs_that_say_nothing_to_compare_are_told_why() {
    let random = SCENARIO.replace("host: leader", "host: random");
    check(&random, result(1.0), &atlas_of(10), &["The target's role is unknown"]);
    check("name: damaged", result(1.0), &atlas_of(10), &["The scenario cannot be read: scenario.yaml: "]);
    let mut without = result(1.0);
    without.faults.clear();
    check(SCENARIO, without, &atlas_of(10), &["It has no fault"]);
}

#[test]
fn a_cell_with_few_runs_is_shown_and_not_judged_by_and_doubtful_runs_do_not_count() {
    let text =
        check(SCENARIO, result(3.0), &atlas_of(3), &["Too few repetitions to judge by", "too few runs"]);
    assert!(text.contains("7.4 s (7.3 s to 7.5 s)") && !text.contains("than in all"), "{text}");
    let mut doubtful = atlas_of(10);
    for run in &mut doubtful.cells[0].cell.runs[..6] {
        run.verdict = Verdict::Unknown;
    }
    check(SCENARIO, result(3.0), &doubtful, &["4 runs; 6 more whose verdict is unknown left out", "Too few"]);
    let mut versions = atlas_of(10);
    for run in &mut versions.cells[0].cell.runs[..4] {
        run.engine_version = "PostgreSQL 18.6".to_owned();
    }
    check(SCENARIO, result(3.0), &versions, &["6 runs; 4 more of other versions left out", "than in all 6"]);
}

#[test]
fn another_fault_meanwhile_is_an_obstacle() {
    let twice = SCENARIO.replace(
        "[{ power-off: { host: leader }, for: 20s }]",
        "[{ power-off: { host: leader }, for: 20s }, { process: { of: a-follower, how: stop }, at: 5s, for: 5s }]",
    );
    let mut disturbed = result(1.0);
    let mut other = disturbed.faults[0].clone();
    (other.kind, other.asked_s, other.healed_s) = ("process".to_owned(), 25.0, Some(30.0));
    disturbed.faults.push(other);
    check(&twice, disturbed, &atlas_of(10), &["another fault was active at the same time"]);
}

fn gated(paths: &[PathBuf], atlas: &Atlas, scope: &str, quantity: &str) -> Result<Vec<Judged>, GateError> {
    let gate =
        Gate { scope: Some(scope.to_owned()), quantity: quantity.to_owned(), bound: Bound::Share(0.5) };
    compare::judge(&beside(paths, atlas), &gate)
}

#[track_caller]
fn verdict(paths: &[PathBuf], atlas: &Atlas, scope: &str, quantity: &str) -> Verdict {
    let judged = gated(paths, atlas, scope, quantity).expect("the gate fits");
    judged.iter().fold(Verdict::Pass, |verdict, figure| verdict.and(figure.verdict))
}

#[test]
fn a_gate_on_the_atlas_fails_on_planted_worse_runs_passes_equal_ones_and_leaves_the_rest_open() {
    let mut runs = Runs::new();
    let atlas = atlas_of(10);
    let mut side = |by: f64| [0.99, 1.0, 1.01].map(|noise| runs.add(SCENARIO, result(by * noise)));
    let (worse, equal) = (side(3.0), side(1.05));
    assert_eq!(verdict(&worse, &atlas, "atlas", "gap"), Verdict::Fail);
    assert_eq!(verdict(&worse, &atlas, "atlas.fault-1", "gap"), Verdict::Fail);
    assert_eq!(verdict(&equal, &atlas, "atlas", "gap"), Verdict::Pass);
    assert_eq!(verdict(&equal, &atlas, "atlas.bank", "latency_p99"), Verdict::Pass);
    assert_eq!(verdict(&worse[..1], &atlas, "atlas", "gap"), Verdict::Unknown, "a single run");
    assert_eq!(verdict(&worse, &atlas_of(3), "atlas", "gap"), Verdict::Unknown, "a cell of three runs");
    assert_eq!(verdict(&worse, &Atlas::default(), "atlas", "gap"), Verdict::Unknown, "no cell");
    let mut elsewhere = atlas_of(10);
    for run in &mut elsewhere.cells[0].cell.runs {
        run.machine.insert("cores".to_owned(), "64".to_owned());
    }
    assert_eq!(verdict(&equal, &elsewhere, "atlas", "gap"), Verdict::Pass);
    assert_eq!(verdict(&equal, &elsewhere, "atlas.bank", "latency_p99"), Verdict::Unknown, "another machine");
    let mut other = atlas_of(10);
    for run in &mut other.cells[0].cell.runs {
        run.engine_version = "PostgreSQL 18.6".to_owned();
    }
    assert_eq!(verdict(&equal, &other, "atlas", "gap"), Verdict::Unknown, "another version");
    assert!(
        matches!(gated(&equal, &atlas, "atlas", "p99"), Err(GateError::NoQuantity { known, .. }) if known.contains(&"gap".to_owned()))
    );
    assert!(
        matches!(gated(&equal, &atlas, "atlas.bonk", "gap"), Err(GateError::NoScope { known, .. }) if known.contains(&"atlas.bank".to_owned()))
    );
}

#[test]
fn a_gate_on_the_atlas_does_not_pass_over_runs_without_a_fault_or_without_an_end() {
    let mut runs = Runs::new();
    let atlas = atlas_of(10);
    let mut paths = [0.99, 1.0, 1.01].map(|noise| runs.add(SCENARIO, result(noise))).to_vec();
    assert_eq!(verdict(&paths, &atlas, "atlas.fault-1", "gap"), Verdict::Pass);
    let killed = runs.add(SCENARIO, result(1.0));
    std::fs::remove_file(killed.join("result.json")).expect("there was one");
    let with_killed = [paths.clone(), vec![killed]].concat();
    assert_eq!(verdict(&with_killed, &atlas, "atlas.fault-1", "gap"), Verdict::Unknown);
    let mut without = result(1.0);
    without.faults.clear();
    let other = SCENARIO.replace("any 1", "any 2");
    paths.push(runs.add(&other, without));
    assert_eq!(verdict(&paths, &atlas, "atlas.fault-1", "gap"), Verdict::Unknown);
}

#[test]
fn without_an_atlas_one_run_is_too_few_and_nothing_is_said_of_one() {
    let mut runs = Runs::new();
    let paths = [runs.add(SCENARIO, result(1.0)), runs.add(SCENARIO, result(1.0))];
    let given = compare::expand(&paths).expect("runs");
    assert!(matches!(compare::compare(&given[..1], None), Err(CompareError::TooFew { runs: 1 })));
    let comparison = compare::compare(&given, None).expect("a comparison");
    assert!(!compare::text(&comparison).contains("atlas"));
    assert!(!compare::html(&comparison).contains("Beside the atlas"));
}

#[test]
fn nothing_in_an_atlas_can_break_out_of_the_page_or_into_the_terminal() {
    let mut atlas = atlas_of(10);
    let entry = &mut atlas.cells[0];
    entry.title = "<script>alert(1)</script>\u{1b}[2J".to_owned();
    entry.cell.fault = "<b>".to_owned();
    for run in &mut entry.cell.runs {
        run.machine.insert("cpu".to_owned(), "<script>\u{1b}[2J".to_owned());
        run.gap_s = Some(-1.0);
    }
    let (text, page) = told(SCENARIO, result(1.0), &atlas);
    assert!(page.contains("<th>Beside the atlas</tr>"));
    assert!(!page.contains("<script") && !text.contains('\u{1b}'), "{text}");
}
