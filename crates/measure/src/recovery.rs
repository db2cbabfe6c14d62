//! How throughput fell and came back: baseline, time to recover, operations lost.
//!
//! Owns these definitions. A series is `(second, successes)` in order of time without gaps, as
//! [`Timeline::throughput`](crate::Timeline::throughput) gives it; only seconds that were measured to their
//! end belong in it.

/// The share of the baseline at which throughput counts as back.
pub const RECOVERED_SHARE: f64 = 0.95;

/// Mean of successes a second over the seconds that lie wholly within `from_s..=to_s`; `None` when there is
/// no such second or nothing succeeded in any, for then there is nothing to compare with.
#[must_use]
pub fn baseline_per_s(series: &[(u64, u64)], from_s: f64, to_s: f64) -> Option<f64> {
    mean_within(series, from_s, to_s).filter(|mean| *mean > 0.0)
}

/// Seconds from the moment a fault took effect to the end of the first whole second, begun at or after that
/// moment, in which at least 95 % of the baseline succeeded.
///
/// `None` when that never happened in the series, or when there is no baseline (0, or not a number). A fault
/// that never pushed throughput below 95 % thus reads as between one and two seconds: the resolution of the
/// measure.
#[must_use]
pub fn back_to_95_percent(series: &[(u64, u64)], baseline_per_s: f64, took_effect_s: f64) -> Option<f64> {
    recovered_second(series, baseline_per_s, took_effect_s).map(|second| second as f64 + 1.0 - took_effect_s)
}

/// Operations that did not happen: the sum of what each second fell short of the baseline, from the second in
/// which the fault took effect to the one in which throughput was back at 95 %, both included, or to the end
/// of the series.
///
/// Seconds above the baseline make up for nothing, so it is never negative. The second of the fault itself
/// counts whole: what it lacks is put down to the fault, its beginning having run at the baseline's rate.
/// `None` when there is no baseline, or the series ends before the fault.
#[must_use]
pub fn lost_operations(series: &[(u64, u64)], baseline_per_s: f64, took_effect_s: f64) -> Option<f64> {
    if !is_baseline(baseline_per_s) || !took_effect_s.is_finite() {
        return None;
    }
    let last = recovered_second(series, baseline_per_s, took_effect_s).unwrap_or(u64::MAX);
    let mut after = series
        .iter()
        .filter(|(second, _)| *second as f64 + 1.0 > took_effect_s && *second <= last)
        .map(|(_, count)| (baseline_per_s - *count as f64).max(0.0))
        .peekable();
    after.peek()?;
    Some(after.sum())
}

/// Mean throughput over the seconds that lie wholly within `from_s..=to_s`, as a share of the baseline's.
/// `None` when there is no baseline or no such second.
#[must_use]
pub fn throughput_ratio_during(
    series: &[(u64, u64)],
    baseline_per_s: f64,
    from_s: f64,
    to_s: f64,
) -> Option<f64> {
    if !is_baseline(baseline_per_s) {
        return None;
    }
    mean_within(series, from_s, to_s).map(|mean| mean / baseline_per_s)
}

fn is_baseline(baseline_per_s: f64) -> bool {
    baseline_per_s.is_finite() && baseline_per_s > 0.0
}

fn mean_within(series: &[(u64, u64)], from_s: f64, to_s: f64) -> Option<f64> {
    let within = |second: u64| second as f64 >= from_s && second as f64 + 1.0 <= to_s;
    let counts: Vec<f64> =
        series.iter().filter(|(second, _)| within(*second)).map(|(_, count)| *count as f64).collect();
    if counts.is_empty() { None } else { Some(counts.iter().sum::<f64>() / counts.len() as f64) }
}

fn recovered_second(series: &[(u64, u64)], baseline_per_s: f64, took_effect_s: f64) -> Option<u64> {
    if !is_baseline(baseline_per_s) {
        return None;
    }
    let enough = |count: u64| count as f64 >= RECOVERED_SHARE * baseline_per_s;
    series
        .iter()
        .find(|(second, count)| *second as f64 >= took_effect_s && enough(*count))
        .map(|(second, _)| *second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run from second 0 with these successes a second.
    fn series(counts: &[u64]) -> Vec<(u64, u64)> {
        counts.iter().enumerate().map(|(second, count)| (second as u64, *count)).collect()
    }

    /// Checks time to recover and operations lost of a fault at `took_effect_s` against a baseline of 100 a
    /// second.
    fn check(counts: &[u64], took_effect_s: f64, back_s: Option<f64>, lost: Option<f64>) {
        let series = series(counts);
        assert_eq!(back_to_95_percent(&series, 100.0, took_effect_s), back_s, "{counts:?}");
        assert_eq!(lost_operations(&series, 100.0, took_effect_s), lost, "{counts:?}");
    }

    #[test]
    fn recovery_ends_with_the_first_whole_second_at_95_percent() {
        check(&[100, 100, 0, 0, 94, 95, 100], 2.0, Some(4.0), Some(211.0));
        check(&[100, 100, 0, 0, 100], 2.0, Some(3.0), Some(200.0));
        check(&[100, 100, 100], 2.0, Some(1.0), Some(0.0));
    }

    #[test]
    fn the_second_a_fault_strikes_in_cannot_be_the_recovery_but_its_lack_counts() {
        check(&[100, 100, 96, 0, 100], 2.25, Some(2.75), Some(104.0));
    }

    #[test]
    fn a_load_that_never_comes_back_has_no_recovery_and_loses_to_the_end() {
        check(&[100, 100, 0, 10, 20], 2.0, None, Some(270.0));
        check(&[100, 100], 2.0, None, None);
    }

    #[test]
    fn a_burst_above_the_baseline_makes_up_for_nothing() {
        check(&[100, 300, 0, 500], 1.5, Some(2.5), Some(100.0));
    }

    #[test]
    fn without_a_baseline_nothing_is_claimed() {
        let series = series(&[0, 0, 0, 5]);
        assert_eq!(baseline_per_s(&series, 0.0, 3.0), None);
        for baseline in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(back_to_95_percent(&series, baseline, 1.0), None);
            assert_eq!(lost_operations(&series, baseline, 1.0), None);
            assert_eq!(throughput_ratio_during(&series, baseline, 1.0, 3.0), None);
        }
        assert_eq!(lost_operations(&series, 100.0, f64::NAN), None);
        assert_eq!(back_to_95_percent(&series, 1.0, f64::NAN), None);
    }

    #[test]
    fn means_are_over_whole_seconds_only() {
        let series = series(&[10, 20, 30, 40, 50]);
        assert_eq!(baseline_per_s(&series, 0.5, 3.5), Some(25.0));
        assert_eq!(baseline_per_s(&series, 0.5, 1.4), None);
        assert_eq!(throughput_ratio_during(&series, 50.0, 2.0, 4.0), Some(0.7));
        assert_eq!(throughput_ratio_during(&series, 50.0, 2.1, 2.9), None);
    }
}
