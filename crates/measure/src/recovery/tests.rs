//! What a fault did to a load, shown series in which it is known.

use proptest::prelude::*;

use super::*;

/// A run from second 0 with these successes a second, asked the same all the time.
fn seconds(counts: &[u64]) -> Vec<Second> {
    let second = |(second, successes): (usize, &u64)| Second {
        second: second as u64,
        successes: *successes,
        demand: Some(1.0),
    };
    counts.iter().enumerate().map(second).collect()
}

fn series(counts: &[u64]) -> Vec<(u64, u64)> {
    counts.iter().enumerate().map(|(second, count)| (second as u64, *count)).collect()
}

#[test]
fn the_slowest_second_counts_from_that_of_the_fault_to_the_last_whole_one_and_nothing_where_there_is_none() {
    let seconds = seconds(&[0, 0, 0, 0, 100, 10, 55, 66, 90]);
    let lowest = |from_s, to_s| throughput_ratio_lowest(&seconds, 100.0, from_s, to_s);
    assert_eq!((lowest(5.5, 8.0), lowest(5.0, 8.0), lowest(6.5, 6.9)), (Some(0.1), Some(0.1), None));
    assert_eq!(throughput_ratio_lowest(&seconds, 0.0, 5.0, 8.0), None);
}

fn wait(from_s: f64, to_s: f64) -> Wait {
    Wait { from_s, to_s, is_open: false }
}

/// A closed loop that succeeds evenly within each second: a wait around each second without a success, and short ones
/// elsewhere.
fn waits_of(counts: &[u64]) -> Vec<Wait> {
    let mut waits = Vec::new();
    let mut last_s = 0.0;
    for (second, count) in counts.iter().enumerate() {
        for number in 1..=*count {
            let at_s = second as f64 + number as f64 / (*count as f64 + 1.0);
            waits.push(wait(last_s, at_s));
            last_s = at_s;
        }
    }
    if counts.len() as f64 > last_s {
        waits.push(Wait { from_s: last_s, to_s: counts.len() as f64, is_open: true });
    }
    waits
}

/// Five seconds of baseline at 100 a second, then these; the fault strikes at second 5.
fn damage_of(counts: &[u64]) -> Damage {
    let counts: Vec<u64> = [100, 101, 99, 100, 100].iter().chain(counts).copied().collect();
    damage_between(&counts, 5.0, counts.len() as f64)
}

fn damage_between(counts: &[u64], effect_s: f64, end_s: f64) -> Damage {
    let (seconds, waits) = (seconds(counts), waits_of(counts));
    let record = LoadRecord {
        seconds: &seconds,
        waits: Some(&waits),
        baseline: Baseline::of(&series(counts), 0.0, 5.0),
        baseline_wait_s: longest_within(&waits, 0.0, 5.0).map(|wait| wait.length_s()),
    };
    damage(&record, &Window { asked_s: effect_s, effect_s, end_s })
}

/// Seconds below 50 % and 95 %, sustained recovery, operations that did not happen.
fn check(counts: &[u64], below: (f64, f64), sustained_s: Option<f64>, lost: f64) {
    let found = damage_of(counts);
    assert_eq!(found.below_50_percent_s, Some(below.0), "below 50 %: {counts:?}");
    assert_eq!(found.below_95_percent_s, Some(below.1), "below 95 %: {counts:?}");
    // An interruption ends with the first success of the next second.
    let rounded_s = found.sustained_s.map(|sustained_s| (sustained_s * 10.0).round() / 10.0);
    assert_eq!(rounded_s, sustained_s, "sustained: {counts:?}");
    assert_eq!(found.lost_operations, Some(lost), "lost: {counts:?}");
}

#[test]
fn a_fault_that_nobody_felt_left_nothing_below_and_nothing_to_recover_from() {
    check(&[100, 99, 100, 101, 100], (0.0, 0.0), Some(0.0), 0.0);
    let found = damage_of(&[100, 99, 100, 101, 100]);
    assert_eq!(found.is_interrupted, Some(false));
    assert!(found.longest_wait.expect("recorded").length_s() < 0.05);
}

#[test]
fn an_outage_counts_second_by_second_and_recovery_begins_after_its_last() {
    check(&[0, 0, 60, 100, 100, 100], (2.0, 3.0), Some(3.0), 240.0);
    let found = damage_of(&[0, 0, 60, 100, 100, 100]);
    assert_eq!(found.is_interrupted, Some(true));
    assert!(found.longest_wait.expect("recorded").length_s() > 2.0);
}

#[test]
fn the_first_second_back_is_no_recovery_where_another_outage_follows() {
    // What the issue shows: 118, 0, 93. The planted defect is the first success.
    check(&[118, 0, 93, 100, 100, 100], (1.0, 2.0), Some(3.0), 107.0);
    assert_eq!(back_to_95_percent(&seconds(&[100, 100, 100, 100, 100, 118, 0, 93]), 100.0, 5.0), Some(1.0));
}

#[test]
fn one_weak_second_counts_as_below_and_is_no_relapse() {
    check(&[100, 90, 100, 100, 100], (0.0, 1.0), Some(0.0), 10.0);
    check(&[100, 90, 90, 100, 100, 100], (0.0, 2.0), Some(3.0), 20.0);
}

#[test]
fn a_load_that_never_comes_back_or_only_at_the_very_end_has_not_recovered() {
    check(&[0, 0, 0, 0], (4.0, 4.0), None, 400.0);
    check(&[0, 0, 100, 100], (2.0, 2.0), None, 200.0);
    check(&[0, 0, 100, 100, 100], (2.0, 2.0), Some(2.0), 200.0);
}

#[test]
fn seconds_that_are_low_up_to_the_end_are_known_to_be() {
    let at_end = |counts: &[u64]| {
        let found = damage_of(counts);
        (found.is_below_50_percent_at_end, found.is_below_95_percent_at_end)
    };
    assert_eq!(at_end(&[0, 0, 0, 0]), (true, true));
    assert_eq!(at_end(&[0, 0, 60]), (false, true));
    assert_eq!(at_end(&[0, 0, 100]), (false, false));
    assert_eq!(damage_between(&[100, 100, 100, 100, 100, 0, 100], 5.0, 6.5).below_50_percent_s, Some(1.0));
    assert!(damage_between(&[100, 100, 100, 100, 100, 0, 100], 5.0, 6.5).is_below_50_percent_at_end);
}

#[test]
fn noise_that_the_baseline_has_itself_is_not_below() {
    let noisy = [120, 80, 110, 90, 100];
    let run = |counts: &[u64]| {
        let counts: Vec<u64> = noisy.iter().chain(counts).copied().collect();
        damage_between(&counts, 5.0, counts.len() as f64)
    };
    assert_eq!(run(&[85, 82, 100, 90, 100]).below_95_percent_s, Some(0.0));
    assert_eq!(run(&[85, 40, 100, 90, 100]).below_95_percent_s, Some(1.0));
    assert_eq!(run(&[85, 0, 0, 90, 100]).below_50_percent_s, Some(2.0));
}

#[test]
fn a_baseline_that_says_too_little_leaves_seconds_unjudged_and_the_longest_wait_known() {
    let absent = |found: Damage, why: Incomparable| {
        assert_eq!(found.incomparable, Some(why));
        assert_eq!((found.below_50_percent_s, found.below_95_percent_s), (None, None));
        assert_eq!((found.sustained_s, found.lost_operations), (None, None));
        assert!(found.longest_wait.is_some());
    };
    // Down itself, and nothing at all.
    absent(
        damage_between(&[100, 100, 0, 100, 100, 0, 0, 100], 5.0, 8.0),
        Incomparable::UnevenBaseline { slowest: 0, per_s: 80.0 },
    );
    absent(damage_between(&[0, 0, 0, 0, 0, 0, 0, 100], 5.0, 8.0), Incomparable::IdleBaseline);
    // Too short.
    let counts = series(&[100, 100, 100, 0, 0]);
    assert_eq!(
        Baseline::of(&counts, 0.0, 3.0).expect("a mean").below_95_percent_per_s,
        Err(Incomparable::ShortBaseline { seconds: 3, needed: 4 })
    );
    // The load's record ends before the window does.
    absent(damage_between(&[100, 100, 100, 100, 100, 100, 0], 5.0, 9.0), Incomparable::NotRecorded);
    // The fault strikes in the last moment.
    absent(damage_between(&[100, 100, 100, 100, 100, 100, 0], 5.1, 5.9), Incomparable::NoWholeSecond);
}

#[test]
fn what_a_changed_load_should_do_changes_with_what_is_asked() {
    let counts = [100, 100, 100, 100, 100, 200, 200, 100, 200, 200, 200];
    let waits = waits_of(&counts);
    let with = |demand: Option<f64>| {
        let mut seconds = seconds(&counts);
        seconds.iter_mut().skip(5).for_each(|second| second.demand = demand);
        let record = LoadRecord {
            seconds: &seconds,
            waits: Some(&waits),
            baseline: Baseline::of(&series(&counts), 0.0, 5.0),
            baseline_wait_s: Some(0.02),
        };
        damage(&record, &Window { asked_s: 5.0, effect_s: 5.0, end_s: 11.0 })
    };
    assert_eq!(
        (with(Some(2.0)).below_95_percent_s, with(Some(2.0)).lost_operations),
        (Some(1.0), Some(100.0))
    );
    assert_eq!((with(None).below_95_percent_s, with(None).lost_operations), (None, None));
    assert_eq!(with(None).incomparable, Some(Incomparable::OtherDemand { second: 5 }));
}

#[test]
fn each_moment_is_charged_to_the_last_fault_that_struck_and_faults_asked_for_together_share() {
    let struck = |asked_s, effect_s| Struck { asked_s, effect_s };
    let found = windows(
        &[struck(10.0, Some(10.1)), struck(10.0, Some(10.4)), struck(15.0, None), struck(20.0, Some(20.2))],
        30.0,
    );
    let window = |asked_s, effect_s, end_s| Some(Window { asked_s, effect_s, end_s });
    assert_eq!(found, [window(10.0, 10.1, 20.0), window(10.0, 10.4, 20.0), None, window(20.0, 20.2, 30.0)]);
}

#[test]
fn a_gap_that_begins_before_the_evidence_of_the_next_fault_is_not_the_earlier_ones() {
    // As seen: a disk is asked to fail at 27.06, the last success comes at 27.065, the evidence at 27.07.
    let struck = |asked_s, effect_s| Struck { asked_s, effect_s: Some(effect_s) };
    let found = windows(&[struck(20.0, 20.01), struck(27.06, 27.07)], 40.0);
    let waits = [wait(23.0, 24.25), wait(27.065, 34.0)];
    let baseline = Err(Incomparable::NoBaseline);
    let record = LoadRecord { seconds: &[], waits: Some(&waits), baseline, baseline_wait_s: Some(0.01) };
    let longest = |window: &Option<Window>| {
        damage(&record, &window.expect("took effect")).longest_wait.map(|wait| wait.from_s)
    };
    assert_eq!(found.iter().map(longest).collect::<Vec<_>>(), [Some(23.0), Some(27.065)]);
}

#[test]
fn faults_struck_one_right_after_the_other_share_one_window_until_the_next() {
    let struck = |asked_s, effect_s| Struck { asked_s, effect_s: Some(effect_s) };
    // Two faults of one moment of the schedule: each is asked for on the clock, the second after the first took effect.
    let found = windows(&[struck(20.000, 20.001), struck(20.002, 20.040), struck(30.0, 30.1)], 40.0);
    let ends: Vec<Option<f64>> = found.iter().map(|window| window.map(|window| window.end_s)).collect();
    assert_eq!(ends, [Some(30.0), Some(30.0), Some(40.0)]);
    // The first is struck while the evidence of the second is not there yet.
    let found = windows(&[struck(20.0, 23.0), struck(22.0, 22.1)], 40.0);
    assert_eq!(found.iter().flatten().map(|window| window.end_s).collect::<Vec<_>>(), [40.0, 40.0]);
}

#[test]
fn what_the_next_fault_makes_of_an_ordinary_wait_is_not_the_earlier_ones() {
    // The last success before the second fault comes a millisecond before it is asked for; then there is none for 7 s.
    let struck = |asked_s, effect_s| Struck { asked_s, effect_s: Some(effect_s) };
    let found = windows(&[struck(20.0, 20.01), struck(27.0, 27.005)], 40.0);
    let felt = |waits: &[Wait]| {
        let baseline = Err(Incomparable::NoBaseline);
        let record = LoadRecord { seconds: &[], waits: Some(waits), baseline, baseline_wait_s: Some(0.01) };
        let of = |window: &Option<Window>| {
            let found = damage(&record, &window.expect("took effect"));
            let longest = found.longest_wait.expect("a wait");
            (longest.from_s, longest.to_s, longest.is_open, found.is_interrupted == Some(true))
        };
        found.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(
        felt(&[wait(20.5, 20.75), wait(26.999, 34.0)]),
        [(20.5, 20.75, false, false), (27.0, 34.0, false, true)]
    );
    let open = Wait { is_open: true, ..wait(26.999, 40.0) };
    assert_eq!(felt(&[open]), [(26.999, 27.0, false, false), (27.0, 40.0, true, true)]);
    // One that was an interruption by then belongs to both.
    assert_eq!(felt(&[wait(26.5, 34.0)]), [(26.5, 34.0, false, true), (27.0, 34.0, false, true)]);
}

#[test]
fn a_load_that_came_back_before_the_next_fault_has_recovered_though_the_next_began_in_an_ordinary_wait() {
    let counts = [100, 100, 100, 100, 100, 0, 0, 100, 100, 100, 100, 100, 0, 0, 0];
    let (seconds, waits) = (seconds(&counts), waits_of(&counts));
    let record = LoadRecord {
        seconds: &seconds,
        waits: Some(&waits),
        baseline: Baseline::of(&series(&counts), 0.0, 5.0),
        baseline_wait_s: longest_within(&waits, 0.0, 5.0).map(|wait| wait.length_s()),
    };
    let found = damage(&record, &Window { asked_s: 5.0, effect_s: 5.0, end_s: 12.0 });
    let sustained_s = found.sustained_s.expect("five good seconds follow");
    assert!((2.0..2.1).contains(&sustained_s), "{sustained_s}");
}

#[test]
fn a_wait_belongs_to_every_fault_it_reaches_into_without_what_lies_before() {
    let waits = [wait(3.0, 3.01), wait(9.5, 14.0), wait(14.0, 14.25)];
    let baseline = Err(Incomparable::NoBaseline);
    let record = LoadRecord { seconds: &[], waits: Some(&waits), baseline, baseline_wait_s: Some(0.01) };
    let longest = |asked_s, effect_s, end_s| {
        damage(&record, &Window { asked_s, effect_s, end_s })
            .longest_wait
            .map(|wait| (wait.from_s, wait.to_s))
    };
    assert_eq!(longest(9.0, 9.75, 12.0), Some((9.5, 14.0)));
    assert_eq!(longest(10.0, 10.5, 12.0), Some((10.0, 14.0)));
    assert_eq!(longest(12.0, 12.5, 20.0), Some((12.0, 14.0)));
    assert_eq!(longest(14.0, 14.0, 20.0), Some((14.0, 14.25)));
    assert_eq!(longest(15.0, 15.0, 20.0), None);
}

#[test]
fn a_baseline_that_stood_still_itself_leaves_a_longer_wait_in_doubt() {
    let wait = |to_s| Wait { from_s: 20.0, to_s, is_open: false };
    let of = |to_s, baseline_wait_s| any_interruption(&[wait(20.1), wait(to_s)], Some(baseline_wait_s));
    assert_eq!((of(27.9, 4.7), of(24.6, 4.7), of(35.0, 4.7)), (None, Some(false), Some(true)));
    assert_eq!((of(20.6, 0.3), of(21.0, 0.3)), (Some(false), Some(true)));
}

#[test]
fn what_a_load_waits_in_its_baseline_anyway_is_no_interruption() {
    assert!(!is_interruption(0.2, Some(0.01)));
    assert!(is_interruption(0.3, Some(0.01)));
    assert!(!is_interruption(2.9, Some(1.0)));
    assert!(is_interruption(3.1, Some(1.0)));
    assert!(is_interruption(0.3, None));
}

#[test]
fn without_a_baseline_no_share_of_it_is_claimed() {
    let counts = [0, 0, 0, 5];
    assert_eq!(Baseline::of(&series(&counts), 0.0, 3.0), Err(Incomparable::IdleBaseline));
    let seconds = seconds(&counts);
    for baseline in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(back_to_95_percent(&seconds, baseline, 1.0), None);
        assert_eq!(throughput_ratio_during(&seconds, baseline, 1.0, 3.0), None);
    }
    assert_eq!(back_to_95_percent(&seconds, 1.0, f64::NAN), None);
}

#[test]
fn operations_that_were_late_from_the_warm_up_do_not_raise_the_baseline() {
    let baseline =
        |counts: &[u64]| Baseline::of(&series(counts), 0.0, counts.len() as f64).expect("a baseline");
    let late = baseline(&[140, 135, 130, 125, 120]).at_most(100.0);
    assert_eq!((late.per_s, late.below_95_percent_per_s), (100.0, Ok(95.0)));
    let in_time = baseline(&[100, 99, 101, 100, 100]);
    assert_eq!(in_time.at_most(102.0), in_time);
    assert_eq!(in_time.at_most(f64::INFINITY), in_time);
}

#[test]
fn means_are_over_whole_seconds_only() {
    let counts = [10, 20, 30, 40, 50];
    let (series, seconds) = (series(&counts), seconds(&counts));
    assert_eq!(Baseline::of(&series, 0.5, 3.5).map(|baseline| baseline.per_s), Ok(25.0));
    assert_eq!(Baseline::of(&series, 0.5, 1.4), Err(Incomparable::NoBaseline));
    assert_eq!(throughput_ratio_during(&seconds, 50.0, 2.0, 4.0), Some(0.7));
    assert_eq!(throughput_ratio_during(&seconds, 50.0, 2.1, 2.9), None);
}

#[test]
fn a_share_of_the_baseline_is_one_of_what_is_asked_and_none_where_that_cannot_be_compared() {
    // The baseline makes 100 a second of what is asked; from second 2 on twice as much is asked.
    let asked = |demand: Option<f64>| {
        let mut seconds = seconds(&[100, 50, 100, 190, 200]);
        seconds.iter_mut().skip(2).for_each(|second| second.demand = demand);
        seconds
    };
    let twice = asked(Some(2.0));
    assert_eq!(back_to_95_percent(&twice, 100.0, 1.0), Some(3.0), "100 of 200 are not 95 %");
    assert_eq!(throughput_ratio_during(&twice, 100.0, 2.0, 4.0), Some(0.725));
    assert_eq!(throughput_ratio_lowest(&twice, 100.0, 2.0, 5.0), Some(0.5));
    let other_clients = asked(None);
    assert_eq!(back_to_95_percent(&other_clients, 100.0, 0.0), Some(1.0));
    assert_eq!(back_to_95_percent(&other_clients, 100.0, 1.0), None);
    assert_eq!(throughput_ratio_during(&other_clients, 100.0, 1.0, 4.0), None);
    assert_eq!(throughput_ratio_lowest(&other_clients, 100.0, 1.0, 4.0), None);
}

/// A run with planted outages: seconds of honest noise, and within the window stretches of nothing.
#[derive(Debug, Clone)]
struct Planted {
    counts: Vec<u64>,
    /// First second and length of each outage, apart from each other.
    outages: Vec<(usize, usize)>,
}

const BASELINE_S: usize = 10;

fn planted() -> impl Strategy<Value = Planted> {
    // Gaps of at least two seconds keep outages apart, and three are left at the end.
    let outages = prop::collection::vec((2..6_usize, 1..5_usize), 0..4);
    (20..400_u64, outages, any::<u64>()).prop_map(|(rate, outages, seed)| {
        let mut counts = Vec::new();
        let mut noise = seed;
        let mut noisy = || {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            rate - rate / 50 + (noise >> 33) % (rate / 25 + 1)
        };
        (0..BASELINE_S).for_each(|_| counts.push(noisy()));
        let mut placed = Vec::new();
        for (pause, length) in outages {
            (0..pause).for_each(|_| counts.push(noisy()));
            placed.push((counts.len(), length));
            counts.extend(std::iter::repeat_n(0, length));
        }
        (0..5).for_each(|_| counts.push(noisy()));
        Planted { counts, outages: placed }
    })
}

/// The planted defect: a judge that takes the first success after the fault for the recovery.
fn first_success_defect(counts: &[u64], effect_s: f64) -> Option<f64> {
    let waits = waits_of(counts);
    waits.iter().find(|wait| wait.to_s >= effect_s).map(|wait| wait.to_s - effect_s)
}

proptest! {
    #[test]
    fn planted_outages_are_found_whole_and_nothing_else_is(planted in planted()) {
        let effect_s = BASELINE_S as f64;
        let counts = &planted.counts;
        let (seconds, waits) = (seconds(counts), waits_of(counts));
        let record = LoadRecord {
            seconds: &seconds,
            waits: Some(&waits),
            baseline: Baseline::of(&series(counts), 0.0, effect_s),
            baseline_wait_s: longest_within(&waits, 0.0, effect_s).map(|wait| wait.length_s()),
        };
        let found = damage(&record, &Window { asked_s: effect_s, effect_s, end_s: counts.len() as f64 });
        let planted_s: usize = planted.outages.iter().map(|(_, length)| length).sum();
        prop_assert_eq!(found.below_50_percent_s, Some(planted_s as f64));
        prop_assert_eq!(found.below_95_percent_s, Some(planted_s as f64));
        prop_assert_eq!(found.is_interrupted, Some(!planted.outages.is_empty()));
        let longest = planted.outages.iter().map(|(_, length)| *length).max().unwrap_or(0) as f64;
        let wait_s = found.longest_wait.expect("recorded").length_s();
        prop_assert!(longest <= wait_s && wait_s < longest + 2.0, "{} in {:?}", wait_s, counts);
        let last_end = planted.outages.last().map(|(from, length)| (from + length) as f64);
        let expected_s = last_end.map_or(0.0, |end_s| end_s - effect_s);
        let sustained_s = found.sustained_s.expect("five good seconds follow");
        prop_assert!((expected_s..expected_s + 0.1).contains(&sustained_s), "{} {}", sustained_s, expected_s);
        // The defect passes this only where nothing was planted, or nothing but one outage at once.
        if !planted.outages.is_empty() {
            let defect_s = first_success_defect(counts, effect_s).expect("a success");
            prop_assert!(defect_s < expected_s, "the planted defect went unnoticed");
        }
    }

    #[test]
    fn honest_noise_is_neither_an_outage_nor_below(
        rate in 50..500_u64,
        spread_percent in 0..12_u64,
        draws in prop::collection::vec(0..=1_000_u64, 40..80),
    ) {
        let spread = rate * spread_percent / 100;
        let counts: Vec<u64> = draws.iter().map(|draw| rate - spread + 2 * spread * draw / 1_000).collect();
        let found = damage_between_from(&counts, 20);
        prop_assert_eq!(found.below_50_percent_s, Some(0.0));
        prop_assert_eq!(found.below_95_percent_s, Some(0.0));
        prop_assert_eq!(found.sustained_s, Some(0.0));
        prop_assert_eq!(found.is_interrupted, Some(false));
    }

    #[test]
    fn figures_are_never_negative_and_a_deeper_outage_never_looks_better(
        counts in prop::collection::vec(0..200_u64, 12..40),
        second in 6..40_usize,
    ) {
        let whole: Vec<u64> = [100, 103, 97, 100, 100].iter().chain(&counts).copied().collect();
        let mut deeper = whole.clone();
        let place = second.min(deeper.len() - 1);
        deeper[place] = 0;
        let (one, other) = (damage_between_from(&whole, 5), damage_between_from(&deeper, 5));
        prop_assert!(one.below_50_percent_s <= one.below_95_percent_s);
        prop_assert!(one.below_50_percent_s <= other.below_50_percent_s);
        prop_assert!(one.below_95_percent_s <= other.below_95_percent_s);
        prop_assert!(one.lost_operations <= other.lost_operations);
        prop_assert!(one.lost_operations >= Some(0.0));
        let wait_s = |damage: &Damage| damage.longest_wait.map(|wait| wait.length_s());
        prop_assert!(wait_s(&one) <= wait_s(&other).map(|wait_s| wait_s + 1e-9));
        if let (Some(one_s), Some(other_s)) = (one.sustained_s, other.sustained_s) {
            prop_assert!(one_s <= other_s);
        }
    }
}

/// With the baseline before `baseline_s`, and the fault at its end.
fn damage_between_from(counts: &[u64], baseline_s: usize) -> Damage {
    let (seconds, waits, effect_s) = (seconds(counts), waits_of(counts), baseline_s as f64);
    let record = LoadRecord {
        seconds: &seconds,
        waits: Some(&waits),
        baseline: Baseline::of(&series(counts), 0.0, effect_s),
        baseline_wait_s: longest_within(&waits, 0.0, effect_s).map(|wait| wait.length_s()),
    };
    damage(&record, &Window { asked_s: effect_s, effect_s, end_s: counts.len() as f64 })
}
