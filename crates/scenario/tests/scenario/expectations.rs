//! Expectations: what each form of a name means, and which are refused.

use scenario::quantity::LatencyFigure;
use scenario::{Quantity, Within};

use crate::language::{BASE, read, set};

#[test]
fn an_expectation_may_be_of_a_load_a_phase_and_a_fault() {
    let p99 = Quantity::Latency(LatencyFigure::P99);
    let check = |written: &str, quantity: Quantity, load: Option<&str>, within: Within| {
        let scenario = read(&format!("{BASE}expect:\n  {written}\n"), &[])
            .unwrap_or_else(|problems| panic!("{written}: {problems:?}"));
        let one = &scenario.expect[0];
        assert_eq!((one.quantity, one.load.as_deref(), &one.within), (quantity, load, &within), "{written}");
        // What is written to the run directory reads as the same.
        let again = read(&scenario::to_yaml(&scenario, 1), &[]).expect("accepted again");
        assert_eq!(again.expect, scenario.expect, "{written}");
    };
    let phase = |name: &str| Within::Phase(name.to_owned());
    check("latency_p99: < 5ms", p99, None, Within::Each);
    check("tpcb.latency_p99: < 5ms", p99, Some("tpcb"), Within::Each);
    check("fault.latency_p99: < 5ms", p99, None, phase("fault"));
    check("tpcb.fault.latency_p99: < 5ms", p99, Some("tpcb"), phase("fault"));
    check("\"*.fault.latency_p99\": < 5ms", p99, None, phase("fault"));
    check("tpcb.*.latency_p99: < 5ms", p99, Some("tpcb"), Within::Each);
    check("tpcb.all.latency_p99: < 5ms", p99, Some("tpcb"), Within::WholeRun);
    check("errors_timeout: 0", Quantity::ErrorsOf("timeout"), None, Within::Each);
    check("gap: < 5s", Quantity::Gap, None, Within::Each);
    // A fault by its phase, its kind and its number.
    for scope in ["fault", "power-off", "fault-1"] {
        check(&format!("{scope}.gap: < 5s"), Quantity::Gap, None, Within::Faults(vec![0]));
        check(&format!("tpcb.{scope}.gap: < 5s"), Quantity::Gap, Some("tpcb"), Within::Faults(vec![0]));
        check(&format!("{scope}.lost_writes: 0"), Quantity::LostWrites, None, Within::Faults(vec![0]));
    }
    check("tpcb.lost_writes: 0", Quantity::LostWrites, Some("tpcb"), Within::Each);
    let scenario = set(&[("expect.tpcb.fault.latency_p99", "< 5ms")]);
    assert_eq!(scenario.expect.last().map(|one| one.name.as_str()), Some("tpcb.fault.latency_p99"));
}

#[test]
fn expectations_that_cannot_be_measured_or_cannot_fail_are_refused() {
    let refuse = |written: &str, expected: &str| {
        let found = read(&format!("{BASE}expect:\n  {written}\n"), &[])
            .map(|_| panic!("{written} is accepted"))
            .unwrap_err();
        assert_eq!(found, [format!("{expected} in base.yaml")], "{written}");
    };
    refuse("leader_changes: 0", "needs-leader `leader_changes`");
    refuse("split_brains: 0", "needs-election `split_brains`");
    refuse("recovery: < 30", "no-unit `< 30`");
    refuse("recovery: 30s", "exact-quantity `30s`");
    refuse("recovery: soon", "bad-unit `soon`");
    refuse("recovery: < 30/s", "bad-unit `< 30/s`");
    refuse("lost_writes: < 5s", "bad-unit `< 5s`");
    refuse("lost_writes: -1", "bad-unit `-1`");
    refuse("throughput_per_s: \"> 100\"", "no-unit `\"> 100\"`");
    refuse("error_rate: < 5", "no-unit `< 5`");
    refuse("errors: \">= 0\"", "always-holds `\">= 0\"`");
    refuse("lab_cpu_share: <= 100%", "always-holds `<= 100%`");
    refuse("recovry: < 30s", "unknown-key `recovry`");
    refuse("tpcb.recovry: < 30s", "unknown-key `recovry`");
    refuse("\"tpcb.recovry\": < 30s", "unknown-key `recovry`");
    refuse("nobody.gap: < 30s", "bad-scope `nobody`");
    refuse("tpcb.baseline.gap: < 30s", "bad-scope `baseline`");
    refuse("tpcb.lab_cpu_share: < 20%", "bad-scope `tpcb.lab_cpu_share`");
    refuse("tpcb.fault.lost_writes: 0", "bad-scope `tpcb.fault.lost_writes`");
    refuse("baseline.lost_writes: 0", "bad-scope `baseline`");
    refuse("a.b.c.latency_p99: < 5ms", "bad-scope `a.b.c.latency_p99`");
    refuse("recovery: > 3s", "unquoted-greater `>`");
    refuse("recovery: ", "no-value `recovery`");
    // Once, however much of it is wrong.
    refuse("tpcb.tpmC: \"> 3\"", "needs-load `tpcb.tpmC`");
    refuse("tpcb.nobody.anomalies: 0", "needs-load `tpcb.nobody.anomalies`");
}
