//! Expectations with every kind of scope, judged against a result that is known.

mod leadership;
mod unanswered;

use std::collections::BTreeMap;

use history::{AgentLoss, ClockFacts, PhaseFacts, Receipt, RunFacts};
use measure::recovery::Incomparable;
use results::{
    CheckResult, FaultLoadResult, FaultResult, LatencyUs, LoadFigures, LoadResult, OperationResult,
    PhaseResult, RecoveryResult,
};

use super::*;

const SCENARIO: &str = "
name: two-loads-two-faults
site: { regions: { dc1: { zones: { a: { hosts: 4 } } } } }
database: { engine: postgres, nodes: 3, replication: { synchronous: any 1 } }
loads:
  - { workload: tpcb, clients: 4 }
  - { workload: tpcc, clients: 2 }
  - { workload: ledger, clients: 2 }
schedule:
  - { phase: warm-up, for: 5s }
  - { phase: baseline, for: 10s }
  - { phase: outage, for: 10s, faults: [{ power-off: { host: leader }, for: 5s }] }
  - { phase: cut, for: 10s, faults: [{ partition: { isolate: leader }, for: 5s }] }
";

fn parsed(expect: &str) -> Scenario {
    let text = format!("{SCENARIO}expect:\n  {expect}\n");
    let source = scenario::Source { name: "test.yaml".to_owned(), text };
    scenario::parse(&source, &[]).unwrap_or_else(|rejection| panic!("{expect}: {:?}", rejection.problems()))
}

/// A phase with this p99 in milliseconds, throughput and timeouts; nothing succeeded at 0/s.
fn phase(name: &str, p99_ms: u64, per_s: f64, timeouts: u64) -> PhaseResult {
    let measured = LoadFigures {
        transactions: (per_s * 100.0) as u64,
        throughput_per_s: per_s,
        latency_us: LatencyUs { p99: p99_ms * 1_000, p99_9: p99_ms * 2_000, ..LatencyUs::default() },
        errors: BTreeMap::from([("timeout".to_owned(), timeouts)]),
        ..LoadFigures::default()
    };
    PhaseResult { name: name.to_owned(), measured, ..PhaseResult::default() }
}

fn load(name: &str, phases: Vec<PhaseResult>) -> LoadResult {
    let judged = phases.iter().skip(1).map(|phase| &phase.measured);
    let measured = LoadFigures {
        transactions: judged.clone().map(|phase| phase.transactions).sum(),
        throughput_per_s: 80.0,
        latency_us: LatencyUs { p99: 30_000, ..LatencyUs::default() },
        errors: BTreeMap::from([(
            "timeout".to_owned(),
            judged.flat_map(|phase| phase.errors.values()).sum(),
        )]),
        ..LoadFigures::default()
    };
    LoadResult { name: name.to_owned(), workload: name.to_owned(), measured, phases, ..LoadResult::default() }
}

/// Gap, first success and sustained recovery of a load, seconds; of negative ones nothing is known.
fn felt(load: &str, gap_s: f64, first_s: f64, sustained_s: f64) -> FaultLoadResult {
    let known = |value: f64| (value >= 0.0).then_some(value);
    FaultLoadResult {
        load: load.to_owned(),
        gap_s: known(gap_s),
        below_50_percent_s: known(gap_s).map(f64::floor),
        below_95_percent_s: known(gap_s).map(f64::ceil),
        recovery_s: RecoveryResult {
            first_success: known(first_s),
            back_to_95_percent: known(first_s),
            sustained: known(sustained_s),
        },
        lost_operations: known(gap_s * 100.0),
        throughput_ratio_during: Some(0.5),
        throughput_ratio_lowest: None,
        ..FaultLoadResult::default()
    }
}

fn fault(kind: &str, effect_s: f64, until_s: f64, loads: Vec<FaultLoadResult>) -> FaultResult {
    FaultResult {
        took_effect_s: Some(effect_s),
        healed_s: Some(effect_s + 5.0),
        receipt: Receipt { verdict: Verdict::Pass, evidence: Vec::new() },
        charged_until_s: Some(until_s),
        loads,
        ..FaultResult::asked(kind, "host: leader", effect_s)
    }
}

pub(crate) fn facts() -> RunFacts {
    RunFacts { seed: 1, ..RunFacts::default() }
}

fn result() -> RunResult {
    let phases = |p99_ms: u64, timeouts: u64| {
        vec![
            phase("warm-up", 900, 10.0, 5_000),
            phase("baseline", p99_ms, 100.0, 0),
            phase("outage", p99_ms * 3, 40.0, timeouts),
            phase("cut", p99_ms * 2, 60.0, 10),
        ]
    };
    let mut tpcc = load("tpcc", phases(10, 480));
    tpcc.measured.figures =
        BTreeMap::from([("tpmC".to_owned(), 12.5), ("efficiency_percent".to_owned(), 97.0)]);
    let orders = OperationResult { count: 10, ..OperationResult::default() };
    tpcc.measured.operations = BTreeMap::from([("NEW-ORDER".to_owned(), orders)]);
    let open = FaultLoadResult { gap_is_open: true, ..felt("ledger", 7.0, -1.0, -1.0) };
    RunResult {
        checks: vec![CheckResult {
            acknowledged: Some(10_000),
            lost: Some(1_490),
            invented: Some(0),
            indeterminate: Some(0),
            ..CheckResult::new("ledger", Verdict::Pass, "")
        }],
        faults: vec![
            fault(
                "power-off",
                15.0,
                25.0,
                vec![
                    felt("tpcb", 0.04, 0.01, 0.0),
                    felt("tpcc", 4.5, 0.02, 5.0),
                    felt("ledger", 2.5, 2.25, 3.0),
                ],
            ),
            fault(
                "partition",
                25.0,
                35.0,
                vec![felt("tpcb", 1.5, 0.01, 2.0), felt("tpcc", -1.0, 0.01, -1.0), open],
            ),
        ],
        loads: vec![load("tpcb", phases(10, 1_000)), tpcc, load("ledger", phases(5, 0))],
        ..RunResult::blank(facts())
    }
}

/// An expectation as written, and `verdict: measured`.
fn check(expect: &str, expected: &str) {
    check_of(&result(), expect, expected);
}

fn check_of(result: &RunResult, expect: &str, expected: &str) {
    let judged = judge(&parsed(expect), result, 35.0);
    let [one] = judged.as_slice() else { panic!("{expect}: {} expectations", judged.len()) };
    assert_eq!(format!("{}: {}", one.verdict, one.measured), expected, "{expect}");
}

#[test]
fn a_latency_is_judged_in_the_load_and_phase_that_is_named() {
    check("tpcb.baseline.latency_p99: < 15ms", "pass: 10.00 ms");
    check("tpcb.outage.latency_p99: < 15ms", "fail: at least 30.00 ms");
    check("tpcb.baseline.latency_p99_9: < 15ms", "fail: 20.00 ms");
    check("tpcb.warm-up.latency_p99: < 15ms", "fail: at least 900.00 ms");
    check("tpcb.all.latency_p99: < 31ms", "unknown: at least 30.00 ms");
}

#[test]
fn a_percentile_of_too_few_operations_is_not_measured() {
    check("tpcb.outage.latency_p99_9: < 50ms", "unknown: nothing: 4,000 operations, 10,000 needed");
    check("tpcb.outage.latency_p99_9: '> 50ms'", "unknown: nothing: 4,000 operations, 10,000 needed");
}

#[test]
fn a_share_of_errors_among_few_operations_breaks_a_bound_and_keeps_none() {
    let mut result = result();
    result.loads[0].phases[1].measured.transactions = 60;
    check_of(&result, "tpcb.baseline.error_rate: < 1%", "unknown: 0.0 %, of 60 operations, 100 needed");
    result.loads[0].phases[1].measured.errors = BTreeMap::from([("timeout".to_owned(), 20)]);
    check_of(&result, "tpcb.baseline.error_rate: < 1%", "fail: 25.0 %, of 80 operations, 100 needed");
    check_of(&result, "tpcb.baseline.error_rate: < 50%", "unknown: 25.0 %, of 80 operations, 100 needed");
}

#[test]
fn figures_of_fewer_than_ten_new_orders_break_a_bound_and_keep_none() {
    let mut result = result();
    result.loads[1].measured.operations.get_mut("NEW-ORDER").expect("counted").count = 9;
    check_of(&result, "tpmC: \"> 10\"", "unknown: 12.5, of 9 operations, 10 needed");
    check_of(&result, "tpmC: \"> 13\"", "fail: 12.5, of 9 operations, 10 needed");
    check_of(&result, "tpcc.efficiency: \"> 90%\"", "unknown: 97.0 %, of 9 operations, 10 needed");
    result.loads[1].measured.operations.clear();
    check_of(&result, "tpmC: \"> 10\"", "unknown: 12.5, of 0 operations, 10 needed");
}

#[test]
fn beside_a_baseline_that_is_too_short_or_too_uneven_nothing_is_measured() {
    for why in [
        Incomparable::ShortBaseline { seconds: 3, needed: 5 },
        Incomparable::UnevenBaseline { slowest: 10, per_s: 100.0 },
    ] {
        let mut result = result();
        result.faults[0].loads[0].incomparable = Some(why);
        let told = format!("unknown: nothing: {}", report::incomparable(&why));
        check_of(&result, "tpcb.fault-1.throughput_ratio_during: \"> 10%\"", &told);
        check_of(&result, "tpcb.fault-1.recovery_95_percent: < 20s", &told);
    }
    check("tpcb.fault-1.throughput_ratio_during: \"> 10%\"", "pass: 50.0 %");
    check("tpcb.fault-1.recovery_95_percent: < 20s", "pass: 0.01 s");
}

#[test]
fn what_a_load_of_other_clients_makes_is_no_share_of_the_baseline() {
    let other = Incomparable::OtherDemand { second: 31 };
    let told = format!("unknown: nothing: {}", report::incomparable(&other));
    let mut result = result();
    let load = &mut result.faults[1].loads[0];
    load.incomparable = Some(other);
    load.recovery_s.back_to_95_percent = None;
    // The fault stood until 30, and the load did not come back before it was asked something else.
    check_of(&result, "tpcb.fault-2.throughput_ratio_during: \"> 10%\"", "pass: 50.0 %");
    check_of(&result, "tpcb.fault-2.recovery_95_percent: < 5s", "fail: at least 6.00 s");
    check_of(&result, "tpcb.fault-2.recovery_95_percent: < 8s", "unknown: at least 6.00 s");
    result.faults[1].loads[0].throughput_ratio_during = None;
    check_of(&result, "tpcb.fault-2.throughput_ratio_during: \"> 10%\"", &told);
    check_of(&result, "tpcb.fault-2.recovery_95_percent: < 8s", &told);
    // The same change is seen from the fault before.
    result.faults[0].loads[0].recovery_s.back_to_95_percent = None;
    check_of(&result, "tpcb.fault-1.recovery_95_percent: < 18s", "unknown: at least 16.00 s");
}

#[test]
fn without_a_scope_the_worst_load_and_phase_but_warm_up_counts() {
    check("latency_p99: < 31ms", "unknown: at least 30.00 ms (load tpcc, phase outage)");
    check("latency_p99: < 30ms", "fail: at least 30.00 ms (load tpcc, phase outage)");
    check("ledger.latency_p99: < 15ms", "fail: 15.00 ms (load ledger, phase outage)");
    check("baseline.latency_p99: < 10ms", "fail: 10.00 ms (load tpcc, phase baseline)");
    check("\"*.baseline.latency_p99\": < 10ms", "fail: 10.00 ms (load tpcc, phase baseline)");
    check("throughput_per_s: \"> 50/s\"", "fail: 40.0/s (load ledger, phase outage)");
    check("ledger.all.throughput_per_s: \"> 50/s\"", "pass: 80.0/s");
}

#[test]
fn errors_add_up_over_what_the_scope_leaves_open() {
    check("errors: 0", "fail: 1,510");
    check("errors_timeout: < 2000", "pass: 1,510");
    check("errors_connection: 0", "pass: 0");
    check("tpcb.errors: 0", "fail: 1,010");
    check("outage.errors: 0", "fail: 1,480");
    check("tpcb.outage.errors_timeout: 0", "fail: 1,000");
    check("baseline.errors: 0", "pass: 0");
    check("baseline.error_rate: < 1%", "pass: 0.0 % (load ledger, phase baseline)");
}

#[test]
fn errors_are_not_known_to_be_none_where_nothing_came_to_an_end_or_the_run_was_cut_short() {
    let mut result = result();
    let cut = &mut result.loads[2].phases[3];
    (cut.from_s, cut.to_s, cut.measured.transactions, cut.measured.throughput_per_s) = (25.0, 35.0, 0, 0.0);
    cut.measured.errors.clear();
    check_of(&result, "ledger.cut.errors: 0", "unknown: nothing");
    check_of(&result, "ledger.cut.throughput_per_s: \"> 50/s\"", "fail: 0.0/s");
    // Other loads' operations came to an end meanwhile.
    check_of(&result, "cut.errors_connection: 0", "unknown: at least 0");
    // The run ended as soon as the phase had begun.
    result.loads[2].phases[3].to_s = 25.4;
    check_of(&result, "ledger.cut.throughput_per_s: \"> 50/s\"", "unknown: nothing");
    let phase = |name: &str, from_s, to_s| PhaseFacts { name: name.to_owned(), from_s, to_s };
    result.facts.phases = vec![phase("baseline", 5.0, 15.0), phase("cut", 25.0, 35.0)];
    check_of(&result, "errors_connection: 0", "unknown: at least 0");
    check_of(&result, "errors: 0", "fail: at least 1,510");
    check_of(&result, "baseline.errors: 0", "pass: 0");
}

#[test]
fn a_phase_that_the_end_of_the_run_cut_off_keeps_and_breaks_no_bound_and_those_before_it_do() {
    let mut result = result();
    let phase = |name: &str, from_s, to_s| PhaseFacts { name: name.to_owned(), from_s, to_s };
    result.facts.phases =
        vec![phase("baseline", 5.0, 15.0), phase("outage", 15.0, 25.0), phase("cut", 25.0, 35.0)];
    let ended = |result: &mut RunResult, to_s| {
        for load in &mut result.loads {
            (load.phases[3].from_s, load.phases[3].to_s) = (25.0, to_s);
        }
    };
    ended(&mut result, 33.0);
    check_of(&result, "tpcb.cut.throughput_per_s: \"> 70/s\"", "unknown: nothing");
    check_of(&result, "tpcb.cut.latency_p99: < 1ms", "unknown: nothing");
    check_of(&result, "tpcb.all.throughput_per_s: \"> 90/s\"", "unknown: nothing");
    check_of(&result, "tpmC: \"> 100\"", "unknown: nothing");
    check_of(&result, "tpcb.outage.throughput_per_s: \"> 50/s\"", "fail: 40.0/s");
    ended(&mut result, 35.0);
    check_of(&result, "tpcb.cut.throughput_per_s: \"> 70/s\"", "fail: 60.0/s");
    check_of(&result, "tpcb.all.throughput_per_s: \"> 90/s\"", "fail: 80.0/s");
}

#[test]
fn what_follows_a_fault_is_judged_by_its_phase_kind_or_number() {
    check("tpcc.outage.gap: < 5s", "pass: 4.50 s");
    check("power-off.gap: < 4s", "fail: 4.50 s (load tpcc, fault 1 (power-off))");
    check("fault-1.gap: < 5s", "pass: 4.50 s (load tpcc, fault 1 (power-off))");
    check("tpcb.gap: < 1s", "fail: 1.50 s (load tpcb, fault 2 (partition))");
    check("tpcb.fault-1.below_50_percent: < 1s", "pass: 0.00 s");
    check("tpcb.lost_operations: < 100", "fail: 150 (load tpcb, fault 2 (partition))");
}

#[test]
fn what_the_clocks_of_agents_leave_open_is_not_judged() {
    let judged = |expect: &str, off_us| {
        let agent = AgentFacts {
            agent: "a1".to_owned(),
            host: "load1".to_owned(),
            load: "tpcc".to_owned(),
            first_client: 0,
            clients: 2,
            clock: ClockFacts { off_by_at_most_us: Some(off_us), ..ClockFacts::default() },
            late_s: 0.0,
            cpu_s: None,
            lost: None,
        };
        let told = judge(&parsed(expect), &RunResult { agents: vec![agent], ..result() }, 35.0);
        format!("{}: {}", told[0].verdict, told[0].measured)
    };
    assert_eq!(judged("tpcc.outage.gap: < 4.6s", 20_000.0), "pass: 4.50 s ± 0.04 s");
    assert_eq!(judged("tpcc.outage.gap: < 4.6s", 60_000.0), "unknown: 4.50 s ± 0.12 s");
    assert_eq!(judged("tpcc.outage.gap: < 4.4s", 60_000.0), "unknown: 4.50 s ± 0.12 s");
    assert_eq!(judged("tpcc.outage.gap: < 4.3s", 60_000.0), "fail: 4.50 s ± 0.12 s");
    assert_eq!(judged("tpcc.outage.gap: < 4.6s", 100.0), "pass: 4.50 s", "too little to be shown");
    assert_eq!(
        judged("tpcb.baseline.latency_p99: < 15ms", 900_000.0),
        "pass: 10.00 ms",
        "one clock measured it"
    );
    assert_eq!(judged("tpcb.gap: < 2s", 900_000.0), "pass: 1.50 s (load tpcb, fault 2 (partition))");
    assert_eq!(
        judged("fault-1.gap: < 4.6s", 60_000.0),
        "unknown: 4.50 s ± 0.12 s (load tpcc, fault 1 (power-off))"
    );
}

#[test]
fn a_length_of_time_is_not_known_where_the_clock_of_a_lost_agent_was_not_compared_to_the_end() {
    let judged = |expect: &str| {
        let lost = AgentLoss { at_s: 12.0, recorded_until_s: 11.0, why: "gone".to_owned(), went_on: true };
        let agent = AgentFacts {
            agent: "a1".to_owned(),
            host: "load1".to_owned(),
            load: "tpcc".to_owned(),
            first_client: 0,
            clients: 2,
            clock: ClockFacts::default(),
            late_s: 0.0,
            cpu_s: None,
            lost: Some(lost),
        };
        judge(&parsed(expect), &RunResult { agents: vec![agent], ..result() }, 35.0).remove(0)
    };
    for expect in ["tpcc.outage.gap: < 4.6s", "tpcc.outage.gap: < 4.4s"] {
        let told = judged(expect);
        assert_eq!(told.verdict, Verdict::Unknown);
        assert!(told.measured.starts_with("4.50 s, but agent a1 was lost"), "{}", told.measured);
    }
    assert_eq!(judged("tpcb.baseline.latency_p99: < 15ms").verdict, Verdict::Pass, "one clock measured it");
    assert_eq!(judged("tpcb.gap: < 2s").verdict, Verdict::Pass, "no agent is of that load");
    assert_eq!(judged("fault-1.gap: < 9s").verdict, Verdict::Unknown, "the load of the agent is among them");
}

#[test]
fn what_a_load_did_without_its_lost_agent_is_not_judged() {
    let mut result = result();
    for load in &mut result.loads {
        for (phase, from_s) in load.phases.iter_mut().zip([0.0, 5.0, 15.0, 25.0]) {
            (phase.from_s, phase.to_s) = (from_s, from_s + 10.0);
        }
    }
    let lost = AgentLoss { at_s: 28.0, recorded_until_s: 27.0, why: "gone".to_owned(), went_on: true };
    result.agents = vec![AgentFacts {
        agent: "a1".to_owned(),
        host: "load1".to_owned(),
        load: "tpcb".to_owned(),
        first_client: 0,
        clients: 2,
        clock: ClockFacts { off_by_at_most_us: Some(1.0), ..ClockFacts::default() },
        late_s: 0.0,
        cpu_s: None,
        lost: Some(lost),
    }];
    check_of(&result, "tpcb.outage.throughput_per_s: \"> 50/s\"", "fail: 40.0/s");
    check_of(&result, "tpcb.cut.throughput_per_s: \"> 70/s\"", "unknown: nothing");
    check_of(&result, "tpcb.cut.latency_p99: < 50ms", "unknown: nothing");
    check_of(&result, "tpcb.all.throughput_per_s: \"> 90/s\"", "unknown: nothing");
    check_of(&result, "tpcb.cut.errors: < 20", "unknown: at least 10");
    check_of(&result, "tpcb.errors: < 100", "fail: at least 1,010");
    check_of(&result, "tpcc.cut.throughput_per_s: \"> 70/s\"", "fail: 60.0/s");
    result.agents[0].load = "tpcc".to_owned();
    check_of(&result, "tpmC: \"> 100\"", "unknown: nothing");
}

#[test]
fn recovery_is_no_shorter_than_the_longest_gap() {
    check("tpcc.power-off.first_success: < 1s", "pass: 0.02 s");
    check("tpcc.power-off.recovery: < 1s", "fail: 4.50 s");
    check("tpcc.power-off.recovery: < 5s", "pass: 4.50 s");
    check("tpcc.power-off.recovery_sustained: < 6s", "pass: 5.00 s");
}

#[test]
fn what_is_not_known_is_unknown_and_what_had_not_ended_fails_only_a_bound_it_has_passed() {
    check("tpcc.partition.gap: < 5s", "unknown: nothing");
    check("tpcc.gap: < 5s", "unknown: nothing (load tpcc, fault 2 (partition))");
    check("tpcc.gap: < 4s", "fail: 4.50 s (load tpcc, fault 1 (power-off))");
    check("ledger.partition.gap: < 8s", "unknown: at least 7.00 s");
    check("ledger.partition.gap: < 6s", "fail: at least 7.00 s");
    check("ledger.partition.recovery: < 9s", "unknown: at least 7.00 s");
    check("ledger.partition.recovery: < 7s", "fail: at least 7.00 s");
    check("ledger.partition.recovery_sustained: < 20s", "unknown: at least 7.00 s");
}

#[test]
fn a_load_of_which_nothing_was_due_after_a_fault_was_not_kept_waiting() {
    let mut result = result();
    let load = &mut result.faults[1].loads[2];
    (load.gap_s, load.gap_is_open) = (Some(0.0), false);
    check_of(&result, "ledger.partition.first_success: < 5s", "unknown: at least 0.00 s");
    // Half a second before the effect, nine and a half after it.
    let load = &mut result.faults[1].loads[2];
    (load.gap_s, load.gap_from_s, load.gap_is_open) = (Some(10.0), Some(24.5), true);
    check_of(&result, "ledger.partition.first_success: < 9s", "fail: at least 9.50 s");
    check_of(&result, "ledger.partition.first_success: < 9.7s", "unknown: at least 9.50 s");
    result.faults[1].loads[2].gap_s = None;
    check_of(&result, "ledger.partition.first_success: < 5s", "unknown: nothing");
}

#[test]
fn what_was_low_up_to_the_last_second_fails_only_a_bound_it_has_passed() {
    let mut result = result();
    let load = &mut result.faults[0].loads[1];
    (load.below_50_percent_at_end, load.below_95_percent_at_end) = (true, true);
    check_of(&result, "tpcc.fault-1.below_50_percent: < 5s", "unknown: at least 4.00 s");
    check_of(&result, "tpcc.fault-1.below_50_percent: < 4s", "fail: at least 4.00 s");
    check_of(&result, "tpcc.fault-1.below_95_percent: < 9s", "unknown: at least 5.00 s");
    check_of(&result, "tpcc.fault-1.lost_operations: < 500", "unknown: at least 450");
    check_of(&result, "tpcc.fault-1.lost_operations: < 400", "fail: at least 450");
}

#[test]
fn the_run_as_a_whole_and_the_figures_of_a_standard_have_no_phase() {
    check("lost_writes: 0", "fail: 1,490");
    check("invented_writes: 0", "pass: 0");
    check("tpmC: \"> 10\"", "pass: 12.5");
    check("tpcc.efficiency: \"> 98%\"", "fail: 97.0 %");
    check("lab_cpu_share: < 20%", "unknown: nothing");
}

#[test]
fn lost_writes_are_told_of_a_load_or_of_a_fault() {
    let mut result = result();
    result.loads[2].lost_writes = Some(1_490);
    result.loads[2].invented_writes = Some(0);
    (result.faults[0].lost_writes, result.faults[1].lost_writes) = (Some(1_490), Some(0));
    check_of(&result, "ledger.lost_writes: 0", "fail: 1,490");
    check_of(&result, "ledger.invented_writes: 0", "pass: 0");
    check_of(&result, "fault-1.lost_writes: 0", "fail: 1,490");
    check_of(&result, "partition.lost_writes: 0", "pass: 0");
    check_of(&result, "outage.lost_writes: < 2000", "pass: 1,490");
    // What its check did not tell of the load by itself, or what was laid to no fault, is not known.
    check_of(&result, "tpcb.lost_writes: 0", "unknown: nothing");
    result.faults[1].lost_writes = None;
    check_of(&result, "cut.lost_writes: 0", "unknown: nothing");
    (result.faults[1].lost_writes, result.faults[1].lost_writes_at_least) = (Some(3), true);
    check_of(&result, "cut.lost_writes: 0", "fail: at least 3");
    check_of(&result, "cut.lost_writes: < 5", "unknown: at least 3");
}

#[test]
fn what_one_check_could_not_count_is_not_none_because_another_found_none() {
    let mut result = result();
    let of = |name: &str, lost, invented| CheckResult {
        acknowledged: Some(100),
        lost,
        invented,
        ..CheckResult::new(name, Verdict::Unknown, "")
    };
    result.checks = vec![of("ledger", Some(3), None), of("last-writes", Some(0), Some(0))];
    check_of(&result, "invented_writes: 0", "unknown: nothing");
    result.checks[1].invented = Some(2);
    check_of(&result, "invented_writes: 0", "fail: at least 2");
    // Sums count where there is no ledger, each its own loads.
    result.checks = vec![of("tpcb-sums", Some(3), None), of("last-writes", None, Some(0))];
    check_of(&result, "lost_writes: < 5", "unknown: at least 3");
    check_of(&result, "lost_writes: 0", "fail: at least 3");
    check_of(&result, "invented_writes: 0", "pass: 0");
}

#[test]
fn a_check_that_counts_no_losses_leaves_open_none_and_what_it_found_lost_counts() {
    let mut result = result();
    let of = |name: &str, lost| CheckResult {
        acknowledged: Some(100),
        lost,
        ..CheckResult::new(name, Verdict::Pass, "")
    };
    result.checks = vec![of("bank", None), of("list-append", None), of("tpcb-sums", Some(0))];
    check_of(&result, "lost_writes: 0", "pass: 0");
    result.checks[1].lost = Some(2);
    check_of(&result, "lost_writes: 0", "fail: 2");
    result.checks[2].lost = None;
    check_of(&result, "lost_writes: 0", "fail: at least 2");
}

#[test]
fn a_phase_that_the_run_did_not_reach_is_unknown() {
    let mut result = result();
    for load in &mut result.loads {
        load.phases.truncate(3);
    }
    let judged = |expect: &str| judge(&parsed(expect), &result, 20.0)[0].verdict;
    assert_eq!(judged("tpcb.cut.latency_p99: < 1s"), Verdict::Unknown);
    assert_eq!(judged("latency_p99: < 1s"), Verdict::Unknown);
    assert_eq!(judged("cut.errors: 0"), Verdict::Unknown);
    assert_eq!(judged("latency_p99: < 20ms"), Verdict::Fail);
}

fn check_bound(measured: Measured, comparison: Comparison, bound: f64, expected: Verdict) {
    assert_eq!(compare(measured, comparison, bound), expected, "{measured:?} {comparison:?} {bound}");
}

#[test]
fn a_value_is_compared_with_its_bound() {
    check_bound(Measured::Value(0.0), Comparison::Equal, 0.0, Verdict::Pass);
    check_bound(Measured::Value(1.0), Comparison::Equal, 0.0, Verdict::Fail);
    check_bound(Measured::Value(30.0), Comparison::Less, 30.0, Verdict::Fail);
    check_bound(Measured::Value(30.0), Comparison::AtMost, 30.0, Verdict::Pass);
    check_bound(Measured::Value(0.1), Comparison::Greater, 0.2, Verdict::Fail);
}

#[test]
fn what_had_not_happened_by_the_end_fails_only_a_bound_that_was_passed() {
    check_bound(Measured::Beyond(40.0), Comparison::Less, 30.0, Verdict::Fail);
    check_bound(Measured::Beyond(30.0), Comparison::AtMost, 30.0, Verdict::Unknown);
    check_bound(Measured::Beyond(20.0), Comparison::Less, 30.0, Verdict::Unknown);
    check_bound(Measured::Beyond(20.0), Comparison::Greater, 30.0, Verdict::Unknown);
}

#[test]
fn what_was_not_measured_is_never_a_pass() {
    for comparison in [Comparison::Equal, Comparison::Less, Comparison::AtLeast] {
        check_bound(Measured::Untold, comparison, 0.0, Verdict::Unknown);
    }
}

#[test]
fn every_class_of_error_has_a_quantity() {
    use history::ErrorClass;
    // A new class fails to compile here, and is then to be added to the table.
    let classes = [
        ErrorClass::Connection,
        ErrorClass::Timeout,
        ErrorClass::Serialization,
        ErrorClass::ReadOnly,
        ErrorClass::Other,
    ];
    for class in classes {
        match class {
            ErrorClass::Connection
            | ErrorClass::Timeout
            | ErrorClass::Serialization
            | ErrorClass::ReadOnly
            | ErrorClass::Other => {}
        }
        assert!(quantity::entry_of(scenario::Quantity::ErrorsOf(class.name())).is_some(), "{class:?}");
    }
}

#[test]
fn every_check_that_a_quantity_names_is_there_and_every_need_has_a_workload() {
    for entry in quantity::QUANTITIES {
        if let quantity::Needs::CheckedBy(checks) = entry.needs {
            for check in checks {
                assert!(check::registry::find(check).is_some(), "{}: {check}", entry.name);
            }
        }
        let any_load = !matches!(entry.needs, quantity::Needs::CheckedBy(_) | quantity::Needs::Figure(_));
        assert_eq!(entry.needs.workloads().is_empty(), any_load, "{}", entry.name);
    }
}

#[test]
fn a_phase_that_only_begins_like_the_warm_up_is_judged() {
    let text = SCENARIO.replace("phase: outage", "phase: warm-up-again");
    let text = format!("{text}expect:\n  tpcb.throughput_per_s: \"> 50/s\"\n");
    let source = scenario::Source { name: "test.yaml".to_owned(), text };
    let scenario = scenario::parse(&source, &[]).expect("sound");
    let mut result = result();
    for load in &mut result.loads {
        load.phases[2].name = "warm-up-again".to_owned();
    }
    let judged = judge(&scenario, &result, 35.0);
    assert_eq!(judged[0].verdict, Verdict::Fail, "{judged:?}");
}
