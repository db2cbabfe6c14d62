//! Recorded latencies through the time line and the files, against figures computed the plain way.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use history::ErrorClass;
use measure::{HlogWriter, Interval, Recorder, Timeline, TimelineError, TimelineRow, restore};
use proptest::prelude::*;

/// The interval of one second in which `operation` took these latencies.
fn interval(second: u64, operation: &str, latencies_us: &[u64], timeouts: u64) -> Interval {
    let mut recorder = Recorder::new("tpcb");
    let operation = recorder.operation(operation);
    for latency_us in latencies_us {
        recorder.record_ok(operation, Duration::from_micros(*latency_us));
    }
    for _ in 0..timeouts {
        recorder.record_error(operation, ErrorClass::Timeout, true);
    }
    recorder.take(second)
}

fn timeline(intervals: &[Interval]) -> Timeline {
    let mut timeline = Timeline::new();
    for interval in intervals {
        timeline.add(interval).unwrap();
    }
    timeline
}

/// Whether a figure is that of a sorted list at this share, within a thousandth or one microsecond.
fn is_percentile(figure_us: u64, sorted_us: &[u64], share: f64) -> bool {
    let rank = (share * sorted_us.len() as f64).ceil() as usize;
    // Where share times length is whole, rounding may put the rank one further.
    let near = [rank.max(1) - 1, rank.min(sorted_us.len() - 1)];
    near.iter().any(|rank| {
        let exact = sorted_us[*rank] as f64;
        (figure_us as f64 - exact).abs() <= exact / 1000.0 + 1.0
    })
}

proptest! {
    #[test]
    fn percentiles_are_those_of_the_sorted_latencies(
        seconds in prop::collection::vec(prop::collection::vec(1u64..100_000_000, 0..80), 1..6),
    ) {
        let intervals: Vec<_> =
            seconds.iter().zip(0..).map(|(latencies, second)| interval(second, "a", latencies, 0)).collect();
        let figures = timeline(&intervals).summarize("tpcb", 0.0, seconds.len() as f64).unwrap();
        let mut sorted = seconds.concat();
        sorted.sort_unstable();
        let measured = &figures.operations["a"];
        prop_assert_eq!(measured.count, sorted.len() as u64);
        prop_assert_eq!(figures.seconds, seconds.len() as u64);
        let latency = measured.latency;
        if sorted.is_empty() {
            prop_assert_eq!(latency, Default::default());
            return Ok(());
        }
        prop_assert!(is_percentile(latency.p50_us, &sorted, 0.5));
        prop_assert!(is_percentile(latency.p90_us, &sorted, 0.9));
        prop_assert!(is_percentile(latency.p95_us, &sorted, 0.95));
        prop_assert!(is_percentile(latency.p99_us, &sorted, 0.99));
        prop_assert!(is_percentile(latency.p99_9_us, &sorted, 0.999));
        prop_assert!(is_percentile(latency.max_us, &sorted, 1.0));
        let mean = sorted.iter().sum::<u64>() as f64 / sorted.len() as f64;
        prop_assert!((latency.mean_us - mean).abs() <= mean / 1000.0 + 1.0);
    }

    #[test]
    fn merging_is_the_same_as_recording_together(
        one in prop::collection::vec(1u64.., 0..80),
        other in prop::collection::vec(1u64..1000, 0..80),
        errors in (0u64..5, 0u64..5),
    ) {
        let apart = timeline(&[interval(3, "a", &one, errors.0), interval(3, "a", &other, errors.1)]);
        let together = timeline(&[interval(3, "a", &[one, other].concat(), errors.0 + errors.1)]);
        prop_assert_eq!(apart.summarize("tpcb", 3.0, 4.0).unwrap(), together.summarize("tpcb", 3.0, 4.0).unwrap());
        prop_assert_eq!(apart.throughput("tpcb", "a"), together.throughput("tpcb", "a"));
    }

    #[test]
    fn stretches_that_touch_share_no_second_and_lose_none(
        counts in prop::collection::vec(0usize..20, 1..20),
        boundary_s in -1.0f64..21.0,
    ) {
        let intervals: Vec<_> =
            counts.iter().zip(0..).map(|(count, second)| interval(second, "a", &vec![5; *count], 1)).collect();
        let timeline = timeline(&intervals);
        let end_s = counts.len() as f64;
        let parts = [timeline.summarize("tpcb", 0.0, boundary_s), timeline.summarize("tpcb", boundary_s, end_s.max(boundary_s))];
        let total: u64 = parts.iter().flatten().filter_map(|part| part.operations.get("a")).map(|a| a.count).sum();
        prop_assert_eq!(total, counts.iter().sum::<usize>() as u64);
    }
}

#[test]
fn a_boundary_a_little_off_takes_the_second_it_means() {
    let intervals: Vec<_> = (0..10).map(|second| interval(second, "a", &[second + 1], 0)).collect();
    let timeline = timeline(&intervals);
    for (from_s, to_s, count) in
        [(2.0, 5.0, 3), (2.004, 5.003, 3), (1.996, 4.998, 3), (5.0, 5.0, 0), (5.0, 2.0, 0)]
    {
        let figures = timeline.summarize("tpcb", from_s, to_s).unwrap();
        assert_eq!(figures.seconds, count, "{from_s}..{to_s}");
        assert_eq!(figures.operations.get("a").map_or(0, |a| a.count), count, "{from_s}..{to_s}");
    }
    for (from_s, to_s) in [(f64::NAN, f64::NAN), (f64::NEG_INFINITY, 0.0), (1e300, f64::INFINITY)] {
        assert!(timeline.summarize("tpcb", from_s, to_s).unwrap().operations.is_empty());
    }
}

#[test]
fn throughput_has_every_second_of_the_load_with_zeroes_where_nothing_happened() {
    let timeline =
        timeline(&[interval(2, "a", &[1, 2], 0), interval(5, "a", &[3], 1), interval(6, "b", &[], 0)]);
    assert_eq!(timeline.throughput("tpcb", "a"), [(2, 2), (3, 0), (4, 0), (5, 1), (6, 0)]);
    assert_eq!(timeline.throughput("tpcb", "b"), [(2, 0), (3, 0), (4, 0), (5, 0), (6, 0)]);
    assert!(timeline.throughput("tpcb", "c").is_empty());
    assert!(timeline.throughput("other", "a").is_empty());
    assert_eq!(timeline.span("tpcb"), Some((2, 6)));
    assert_eq!(timeline.loads().collect::<Vec<_>>(), ["tpcb"]);
}

#[test]
fn errors_are_summed_by_class() {
    let timeline = timeline(&[interval(0, "a", &[1], 2), interval(1, "a", &[1, 1], 3)]);
    let figures = timeline.summarize("tpcb", 0.0, 2.0).unwrap();
    assert_eq!(figures.operations["a"].errors_by_name(), BTreeMap::from([("timeout".to_owned(), 5)]));
    assert_eq!(figures.throughput_per_s("a"), 1.5);
    assert_eq!(figures.throughput_per_s("unknown"), 0.0);
}

#[test]
fn a_second_beyond_any_run_is_refused() {
    let refused = Timeline::new().add(&interval(u64::MAX, "a", &[1], 0));
    assert!(matches!(refused, Err(TimelineError::SecondBeyondRun { .. })));
}

#[test]
fn a_killed_run_is_restored_from_its_files_up_to_the_last_second() {
    let intervals: Vec<_> =
        (0..5).map(|second| interval(second, "a", &[100 + second, 90_000], second)).collect();
    let mut hlog = HlogWriter::new(Vec::new(), || UNIX_EPOCH);
    for interval in &intervals {
        hlog.write(interval).unwrap();
    }
    let hlog = hlog.into_inner();
    let row = |interval: &Interval| TimelineRow::of("tpcb", interval.second, "a", &interval.operations["a"]);
    let rows: Vec<TimelineRow> = intervals.iter().map(row).collect();
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 10);

    let whole = restore(hlog.as_slice(), &rows).unwrap();
    assert!(!whole.truncated);
    let figures = whole.timeline.summarize("tpcb", 0.0, 5.0).unwrap();
    let original = timeline(&intervals).summarize("tpcb", 0.0, 5.0).unwrap();
    assert_eq!(figures.operations["a"].latency, original.operations["a"].latency);
    assert_eq!(figures.operations["a"].errors_by_name(), BTreeMap::from([("unclassified".to_owned(), 10)]));

    let torn = restore(&hlog[..hlog.len() - 3], &rows[..rows.len() - 1]).unwrap();
    assert!(torn.truncated);
    assert_eq!(torn.timeline.throughput("tpcb", "a"), [(0, 2), (1, 2), (2, 2), (3, 2)]);
    let figures = torn.timeline.summarize("tpcb", 0.0, 4.0).unwrap();
    assert_eq!(figures.operations["a"].errors_unclassified, 6);

    assert!(restore(b"rubbish\n".as_slice(), &rows).is_err());
}
