//! Scales and round ticks: how values and moments become places on an axis. Draws nothing.

/// How a value becomes a height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// From zero.
    Linear { top: f64 },
    /// From a positive value.
    Logarithmic { bottom: f64, top: f64 },
}

impl Scale {
    /// A scale from zero that ends on a round value at or above `highest`.
    pub(crate) fn linear(highest: f64) -> Scale {
        let highest = if highest > 0.0 && highest.is_finite() { highest.min(1e200) } else { 1.0 };
        let step = round_step(highest / 5.0);
        Scale::Linear { top: (highest / step - 1e-6).ceil().max(1.0) * step }
    }

    /// A scale for positive values: logarithmic when they span more than a factor of twenty.
    pub(crate) fn for_latencies(lowest: f64, highest: f64) -> Scale {
        if lowest <= 0.0 || highest / lowest <= 20.0 {
            return Scale::linear(highest);
        }
        Scale::Logarithmic { bottom: round_down(lowest), top: round_up(highest) }
    }

    /// Where a value lies, 0 at the bottom, 1 at the top.
    pub(crate) fn share(self, value: f64) -> f64 {
        let share = match self {
            Scale::Linear { top } => value / top,
            Scale::Logarithmic { bottom, top } => (value.max(bottom) / bottom).ln() / (top / bottom).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// The values that get a line and a number.
    pub(crate) fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear { top } => {
                let step = round_step(top / 5.0);
                (0..=5)
                    .map(|index| f64::from(index) * step)
                    .take_while(|tick| *tick <= top * 1.000_001)
                    .collect()
            }
            Scale::Logarithmic { bottom, top } => {
                let decades = (top / bottom).log10();
                let parts: &[f64] = if decades <= 2.4 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let first = bottom.log10().floor() as i32;
                let last = top.log10().ceil() as i32;
                (first..=last)
                    .flat_map(|power| parts.iter().map(move |part| part * 10_f64.powi(power)))
                    .filter(|tick| *tick >= bottom * 0.999_999 && *tick <= top * 1.000_001)
                    .collect()
            }
        }
    }

    pub(crate) fn is_logarithmic(self) -> bool {
        matches!(self, Scale::Logarithmic { .. })
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|part| part * power).find(|round| *round >= step * 0.999_999);
    step.unwrap_or(10.0 * power)
}

fn round_up(value: f64) -> f64 {
    round_step(value)
}

fn round_down(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [5.0, 2.0].into_iter().map(|part| part * power).find(|round| *round <= value * 1.000_001).unwrap_or(power)
}

/// Moments of the time axis that get a number, so many pixels apart at least; with their labels.
pub(crate) fn time_ticks(end_s: f64, width: f64) -> Vec<(f64, String)> {
    const STEPS: [f64; 18] = [
        1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14_400.0,
        28_800.0, 86_400.0, 172_800.0,
    ];
    let most = (width / 58.0).max(2.0);
    let step = STEPS.into_iter().find(|step| end_s / step <= most).unwrap_or(864_000.0);
    let (unit_s, unit) = match step {
        step if step >= 3600.0 => (3600.0, "h"),
        step if step >= 60.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    (0..)
        .map(|index| f64::from(index) * step)
        .take_while(|t_s| *t_s <= end_s + 1e-9)
        .map(|t_s| (t_s, if t_s == 0.0 { "0".to_owned() } else { format!("{} {unit}", t_s / unit_s) }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scale: Scale, expected_ticks: &[f64]) {
        let ticks = scale.ticks();
        assert_eq!(ticks.len(), expected_ticks.len(), "{ticks:?}");
        for (tick, expected) in ticks.iter().zip(expected_ticks) {
            assert!((tick - expected).abs() <= expected * 1e-9, "{ticks:?}");
        }
    }

    #[test]
    fn throughput_scales_start_at_zero_and_end_on_a_round_number() {
        check(Scale::linear(437.0), &[0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        check(Scale::linear(1000.0), &[0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        check(Scale::linear(7.0), &[0.0, 2.0, 4.0, 6.0, 8.0]);
        check(Scale::linear(0.0), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        check(Scale::linear(f64::NAN), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
    }

    #[test]
    fn wide_ranges_get_a_logarithmic_scale_and_narrow_ones_do_not() {
        check(Scale::for_latencies(800.0, 7_000.0), &[0.0, 2_000.0, 4_000.0, 6_000.0, 8_000.0]);
        check(Scale::for_latencies(800.0, 90_000.0), &[500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5]);
        check(Scale::for_latencies(800.0, 9_000_000.0), &[1e3, 1e4, 1e5, 1e6, 1e7]);
    }

    #[test]
    fn values_outside_a_scale_stay_inside_the_plot() {
        let scale = Scale::Logarithmic { bottom: 10.0, top: 1000.0 };
        assert!((scale.share(100.0) - 0.5).abs() < 1e-9);
        assert_eq!((scale.share(0.0), scale.share(1e9)), (0.0, 1.0));
    }

    #[test]
    fn time_ticks_never_crowd() {
        for end_s in [1.0, 7.0, 60.0, 333.0, 3_600.0, 86_400.0, 2_678_400.0] {
            for width in [300.0, 1000.0] {
                let ticks = time_ticks(end_s, width);
                assert!(
                    ticks.len() >= 2 && ticks.len() as f64 <= width / 58.0 + 1.0,
                    "{end_s} {width} {ticks:?}"
                );
            }
        }
    }
}
