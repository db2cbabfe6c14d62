//! Operations that had no answer: in what is measured of those that had, and in the number of errors.

use super::*;

#[test]
fn operations_without_an_answer_took_longer_than_any_latency_that_was_measured() {
    let judged = |latency: &str, edit: &dyn Fn(&mut LoadFigures)| {
        let mut result = result();
        let figures = &mut result.loads[0].phases[1].measured;
        (figures.latency_us.p90, figures.latency_us.max) = (5_000, 20_000);
        edit(figures);
        let judged = judge(&parsed(&format!("tpcb.baseline.{latency}")), &result, 35.0);
        format!("{}: {}", judged[0].verdict, judged[0].measured)
    };
    // Of 10,000 answered.
    let timeouts = |count: u64| {
        move |figures: &mut LoadFigures| {
            figures.errors.insert("timeout".to_owned(), count);
        }
    };
    assert_eq!(judged("latency_p99: < 15ms", &timeouts(100)), "pass: 10.00 ms");
    assert_eq!(judged("latency_p99: < 15ms", &timeouts(102)), "unknown: at least 10.00 ms");
    assert_eq!(judged("latency_p90: < 15ms", &timeouts(102)), "pass: 5.00 ms");
    assert_eq!(judged("latency_max: < 30ms", &timeouts(1)), "unknown: at least 20.00 ms");
    // Those that failed at once have no latency.
    let refused = |figures: &mut LoadFigures| {
        figures.errors.insert("connection".to_owned(), 5_000);
    };
    assert_eq!(judged("latency_p99: < 15ms", &refused), "pass: 10.00 ms");
    // 100 s at 100/s: as many were due as were answered, or a tenth more.
    let rate = |rate_per_s: f64| move |figures: &mut LoadFigures| figures.rate_per_s = Some(rate_per_s);
    assert_eq!(judged("latency_p99: < 15ms", &rate(100.0)), "pass: 10.00 ms");
    assert_eq!(judged("latency_p99: < 15ms", &rate(110.0)), "unknown: at least 10.00 ms");
    assert_eq!(judged("latency_p90: < 15ms", &rate(110.0)), "pass: 5.00 ms");
}

#[test]
fn operations_that_hung_when_the_loads_ended_may_have_failed() {
    let mut result = result();
    result.loads[0].errors_after_end = 3;
    check_of(&result, "errors_connection: 0", "unknown: at least 0");
    check_of(&result, "tpcb.cut.errors_connection: 0", "unknown: at least 0");
    check_of(&result, "tpcb.cut.error_rate: < 1%", "unknown: at least 0.2 %");
    check_of(&result, "tpcb.baseline.errors: 0", "pass: 0");
    check_of(&result, "ledger.errors_connection: 0", "pass: 0");
}
