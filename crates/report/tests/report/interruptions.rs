//! Which interruption the page tells of, and what of one it leaves open.

use measure::recovery::Incomparable;

use crate::fixture;
use crate::page::check;

#[test]
fn a_load_with_long_pauses_of_its_own_is_not_taken_for_the_one_that_was_interrupted() {
    let mut fixture = fixture::host_failure();
    let fault = &mut fixture.result.faults[0];
    (fault.loads[1].gap_s, fault.loads[1].baseline_gap_s, fault.loads[1].interrupted) =
        (Some(9.5), Some(9.0), Some(false));
    fault.gap_s = Some(9.5);
    check(&fixture, &["Longest interruption 7.3 s no success of bank after the fault"]);
}

#[test]
fn a_gap_that_had_not_ended_is_at_least_so_long_among_a_faults_facts_and_a_return_nobody_could_see_is_unknown()
 {
    let mut fixture = fixture::host_failure();
    check(&fixture, &["Longest time without a success 7.3 s"]);
    let fault = &mut fixture.result.faults[0];
    (fault.loads[1].gap_is_open, fault.recovery_s.back_to_95_percent) = (true, None);
    check(
        &fixture,
        &["Longest time without a success at least 7.3 s", "Back at 95 % for a second after not in this run"],
    );
    let load = &mut fixture.result.faults[0].loads[1];
    (load.recovery_s.back_to_95_percent, load.incomparable) = (None, Some(Incomparable::NoBaseline));
    check(&fixture, &["Back at 95 % for a second after unknown"]);
}
