//! Doubts about a measurement, each with what to do about it.
//!
//! Owns the thresholds and the wording. Whether a doubt is shown, and where, is for others.

use crate::thousands::with_thousands;

/// Values that must lie beyond a percentile before it is more than chance.
pub const SAMPLES_BEYOND_MIN: u64 = 10;
/// Share of the machine's processor time beyond which everything waits for everything.
pub const CPU_BUSY_SHARE_MAX: f64 = 0.9;
/// Share of the processors' time below which other programs are not worth a word.
pub const OTHERS_SHARE_MIN: f64 = 0.05;
/// How far the halves of a baseline may differ.
pub const BASELINE_DRIFT_MAX: f64 = 0.2;
/// Whole seconds of baseline below which a trend cannot be told from chance.
pub const BASELINE_SECONDS_MIN: usize = 4;
/// Mean lateness of modelled syncs above which the machine was too busy for them, in microseconds.
pub const SYNC_LATE_US_MAX: f64 = 100.0;

/// Share of the median response time that the generator's own lateness may reach at its 99th percentile.
pub const LATENESS_SHARE_MAX: f64 = 0.1;
/// Lateness that is nobody's concern, microseconds.
pub const LATENESS_US_MIN: u64 = 200;

/// A percentile that is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// 95th.
    P95,
    /// 99th.
    P99,
    /// 99.9th.
    P99_9,
}

impl Percentile {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Percentile::P95 => "p95",
            Percentile::P99 => "p99",
            Percentile::P99_9 => "p99.9",
        }
    }

    /// One in how many values lies beyond it.
    fn one_in(self) -> u64 {
        match self {
            Percentile::P95 => 20,
            Percentile::P99 => 100,
            Percentile::P99_9 => 1000,
        }
    }

    /// How many values it takes for ten of them to lie beyond it.
    #[must_use]
    pub fn samples_needed(self) -> u64 {
        self.one_in() * SAMPLES_BEYOND_MIN
    }
}

/// A doubt about a measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt {
    /// A percentile rests on too few values.
    FewSamples {
        /// What was measured: `tpcb, phase fault`.
        what: String,
        percentile: Percentile,
        /// Values there are.
        samples: u64,
    },
    /// The machine was busy, so what was measured is in part its own queue.
    CpuSaturated {
        /// Busy share of all its processors, 0 to 1.
        busy_share: f64,
        /// Of that, what other programs than the run took; none where it was not measured.
        others_share: Option<f64>,
    },
    /// The baseline was still rising or falling.
    NotSettled {
        load: String,
        /// Mean throughput of its first half, a second.
        first_half_per_s: f64,
        second_half_per_s: f64,
    },
    /// The baseline is too short to tell whether it had settled.
    ShortBaseline {
        load: String,
        /// Its whole seconds.
        seconds: usize,
    },
    /// An open loop sent operations late though a connection was free: its own fault, and it stands in the response times.
    GeneratorLate {
        load: String,
        /// How late it was at its 99th percentile, microseconds.
        late_us_p99: u64,
        /// Its median response time, microseconds.
        response_us_p50: u64,
    },
    /// An open loop ended with operations that were due and had found no free connection.
    RateNotKept {
        load: String,
        /// How many.
        operations: u64,
    },
    /// Disks whose medium is described answered syncs later than that medium would.
    SyncsLate {
        /// How late, on average, microseconds.
        late_us_mean: f64,
        /// The latency asked for, microseconds.
        asked_us: u64,
    },
    /// Nothing succeeded in the baseline, so no recovery can be told.
    NoBaseline { load: String },
}

impl Doubt {
    fn says_the_same_as(&self, other: &Doubt) -> bool {
        match (self, other) {
            (Doubt::FewSamples { percentile, .. }, Doubt::FewSamples { percentile: other, .. }) => {
                percentile == other
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Where it is and with which figures, for a list of several.
    fn place_and_figures(&self) -> String {
        match self {
            Doubt::FewSamples { what, samples, .. } => format!("{what} ({})", with_thousands(*samples)),
            Doubt::NotSettled { load, first_half_per_s, second_half_per_s } => {
                format!("{load} ({first_half_per_s:.1}, then {second_half_per_s:.1})")
            }
            Doubt::ShortBaseline { load, seconds } => format!("{load} ({seconds} s)"),
            Doubt::NoBaseline { load } => load.clone(),
            other => other.what(),
        }
    }

    /// What is doubtful, one sentence with its figures.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Doubt::FewSamples { what, percentile, samples } => {
                let (samples, needed) =
                    (with_thousands(*samples), with_thousands(percentile.samples_needed()));
                let name = percentile.name();
                format!("too few samples for {name} of {what}: {samples} measured, {needed} needed")
            }
            Doubt::CpuSaturated { busy_share, others_share } => {
                let others = others_share
                    .filter(|share| *share > OTHERS_SHARE_MIN)
                    .map(|share| format!(", {:.0} % by other programs or the kernel", share * 100.0));
                format!(
                    "the machine's processors were {:.0} % busy{}: latencies include waiting for them",
                    busy_share * 100.0,
                    others.unwrap_or_default()
                )
            }
            Doubt::NotSettled { load, first_half_per_s, second_half_per_s } => format!(
                "load {load} was not steady: {first_half_per_s:.1} operations per second in the first half of the \
                 baseline, {second_half_per_s:.1} in the second"
            ),
            Doubt::ShortBaseline { load, seconds } => format!(
                "the baseline of load {load} has {seconds} whole seconds, too few to tell whether it was steady"
            ),
            Doubt::GeneratorLate { load, late_us_p99, response_us_p50 } => format!(
                "the generator of load {load} sent 1 % of its operations at least {:.1} ms late; the median response \
                 took {:.1} ms",
                *late_us_p99 as f64 / 1e3,
                *response_us_p50 as f64 / 1e3
            ),
            Doubt::RateNotKept { load, operations } => format!(
                "{operations} operations of load {load} were due but never sent: all its connections were busy"
            ),
            Doubt::SyncsLate { late_us_mean, asked_us } => format!(
                "the modelled disks answered syncs {late_us_mean:.0} us late on average; the configured latency is \
                 {asked_us} us"
            ),
            Doubt::NoBaseline { load } => {
                format!(
                    "no operation of load {load} succeeded in the baseline: its recovery cannot be measured"
                )
            }
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Doubt::FewSamples { .. } => "make the phase longer or raise the number of clients",
            Doubt::CpuSaturated { busy_share, others_share }
                if others_share.is_some_and(|others| others > busy_share / 2.0) =>
            {
                "end the other programs (`top` names them) and run again; a lower load alone does not help"
            }
            Doubt::CpuSaturated { .. } => {
                "lower the load, or run on a machine with more processors; compare runs of this machine \
                only with each other"
            }
            Doubt::NotSettled { .. } => "make the warm-up longer",
            Doubt::ShortBaseline { .. } => "make the baseline longer: ten seconds or more",
            Doubt::GeneratorLate { .. } => "lower the rate, or free processors for the generator",
            Doubt::RateNotKept { .. } => {
                "the database is slower than the rate: lower the rate, or allow more connections with `clients`"
            }
            Doubt::SyncsLate { .. } => {
                "lower the load, so that a processor is free when a sync is due, or configure a longer latency"
            }
            Doubt::NoBaseline { .. } => "look at the load's errors in the baseline first",
        }
    }
}

/// Doubts about the percentiles of this many latencies: for each percentile that has fewer than ten values
/// beyond it. None for no latencies at all, of which no percentile is reported.
#[must_use]
pub fn few_samples(what: &str, samples: u64) -> Vec<Doubt> {
    [Percentile::P95, Percentile::P99, Percentile::P99_9]
        .into_iter()
        .filter(|percentile| samples > 0 && samples < percentile.samples_needed())
        .map(|percentile| Doubt::FewSamples { what: what.to_owned(), percentile, samples })
        .collect()
}

/// A doubt when the machine's processors were busier than 90 %; `own_share` of them was the run's.
#[must_use]
pub fn cpu_saturated(busy_share: f64, own_share: Option<f64>) -> Option<Doubt> {
    let others_share = own_share.map(|own| (busy_share - own).max(0.0));
    (busy_share > CPU_BUSY_SHARE_MAX).then_some(Doubt::CpuSaturated { busy_share, others_share })
}

/// A doubt when modelled disks answered syncs later than asked by more than a tenth of the latency, and than 100 us: so long a
/// thread takes to be woken on a machine that is not busy.
#[must_use]
pub fn syncs_late(late_us_mean: f64, asked_us: u64) -> Option<Doubt> {
    let most = (asked_us as f64 / 10.0).max(SYNC_LATE_US_MAX);
    (late_us_mean > most).then_some(Doubt::SyncsLate { late_us_mean, asked_us })
}

/// Doubts in words, each with its remedy: those that say the same about several loads or phases are one.
#[must_use]
pub fn folded(doubts: &[Doubt]) -> Vec<(String, &'static str)> {
    let mut groups: Vec<Vec<&Doubt>> = Vec::new();
    for doubt in doubts {
        match groups.iter_mut().find(|group| group[0].says_the_same_as(doubt)) {
            Some(group) => group.push(doubt),
            None => groups.push(vec![doubt]),
        }
    }
    groups.into_iter().map(|group| (what_of_all(&group), group[0].remedy())).collect()
}

fn what_of_all(group: &[&Doubt]) -> String {
    let of_each = |detail: &dyn Fn(&Doubt) -> String| {
        group.iter().map(|doubt| detail(doubt)).collect::<Vec<_>>().join("; ")
    };
    match group {
        [Doubt::FewSamples { percentile, .. }, _, ..] => format!(
            "too few samples for {} ({} needed): {}",
            percentile.name(),
            with_thousands(percentile.samples_needed()),
            of_each(&Doubt::place_and_figures)
        ),
        [Doubt::NotSettled { .. }, _, ..] => format!(
            "loads were not steady; operations per second in the halves of the baseline: {}",
            of_each(&Doubt::place_and_figures)
        ),
        [Doubt::ShortBaseline { .. }, _, ..] => format!(
            "baselines have too few whole seconds to tell whether the loads were steady: {}",
            of_each(&Doubt::place_and_figures)
        ),
        [Doubt::NoBaseline { .. }, _, ..] => format!(
            "no operation succeeded in the baseline, so recovery cannot be measured: loads {}",
            of_each(&Doubt::place_and_figures)
        ),
        _ => of_each(&Doubt::what),
    }
}

/// A doubt when an open loop was later than is negligible beside what it measured.
#[must_use]
pub fn generator_late(load: &str, late_us_p99: u64, response_us_p50: u64) -> Option<Doubt> {
    let negligible = (response_us_p50 as f64 * LATENESS_SHARE_MAX).max(LATENESS_US_MIN as f64);
    (late_us_p99 as f64 > negligible).then(|| Doubt::GeneratorLate {
        load: load.to_owned(),
        late_us_p99,
        response_us_p50,
    })
}

/// A doubt when an open loop ended with more operations waiting than become due in a tenth of a second.
#[must_use]
pub fn rate_not_kept(load: &str, waiting: u64, rate_per_s: f64) -> Option<Doubt> {
    (waiting as f64 > rate_per_s * 0.1)
        .then(|| Doubt::RateNotKept { load: load.to_owned(), operations: waiting })
}

/// A doubt about a baseline, given successes in each of its whole seconds: none succeeded, too short, or its
/// halves differ by more than 20 % of the larger. Of an odd number of seconds the middle one is in neither
/// half.
#[must_use]
pub fn baseline_doubt(load: &str, counts: &[u64]) -> Option<Doubt> {
    let load = load.to_owned();
    if counts.iter().all(|count| *count == 0) {
        return Some(Doubt::NoBaseline { load });
    }
    if counts.len() < BASELINE_SECONDS_MIN {
        return Some(Doubt::ShortBaseline { load, seconds: counts.len() });
    }
    let half = counts.len() / 2;
    let mean = |counts: &[u64]| counts.iter().map(|count| *count as f64).sum::<f64>() / half as f64;
    let (first_half_per_s, second_half_per_s) = (mean(&counts[..half]), mean(&counts[counts.len() - half..]));
    let larger = first_half_per_s.max(second_half_per_s);
    ((first_half_per_s - second_half_per_s).abs() > BASELINE_DRIFT_MAX * larger)
        .then_some(Doubt::NotSettled { load, first_half_per_s, second_half_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_values_beyond_it() {
        let doubted = |samples| few_samples("x", samples).len();
        assert_eq!([0, 1, 199, 200, 999, 1000, 9999, 10_000].map(doubted), [0, 3, 3, 2, 2, 1, 1, 0]);
        let doubt = &few_samples("tpcb, phase fault", 150)[1];
        assert_eq!(doubt.what(), "too few samples for p99 of tpcb, phase fault: 150 measured, 1,000 needed");
        assert!(!doubt.remedy().is_empty());
    }

    #[test]
    fn a_busy_machine_is_doubted() {
        assert_eq!(cpu_saturated(0.9, None), None);
        assert_eq!(
            cpu_saturated(0.97, None).unwrap().what(),
            "the machine's processors were 97 % busy: latencies include waiting for them"
        );
        assert_eq!(cpu_saturated(f64::NAN, None), None);
    }

    #[test]
    fn a_machine_busy_with_other_programs_is_told_so_and_not_to_lower_the_load() {
        let others = cpu_saturated(0.98, Some(0.12)).expect("a doubt");
        assert!(
            others.what().contains("98 % busy, 86 % by other programs or the kernel"),
            "{}",
            others.what()
        );
        assert!(others.remedy().starts_with("end the other programs"), "{}", others.remedy());
        let own = cpu_saturated(0.98, Some(0.97)).expect("a doubt");
        assert!(
            !own.what().contains("outside") && own.remedy().starts_with("lower the load"),
            "{}",
            own.what()
        );
    }

    #[test]
    fn doubts_that_say_the_same_are_one_and_others_stay_apart() {
        let mut doubts = vec![cpu_saturated(0.97, None).expect("a doubt")];
        for (what, samples) in [("a, phase x", 500), ("a, phase y", 600), ("b, phase x", 150)] {
            doubts.extend(few_samples(what, samples).into_iter().take(2));
        }
        doubts.extend(baseline_doubt("a", &[0, 0]));
        let told: Vec<String> = folded(&doubts).into_iter().map(|(what, _)| what).collect();
        assert_eq!(
            told,
            [
                doubts[0].what().as_str(),
                "too few samples for p99 (1,000 needed): a, phase x (500); a, phase y (600); b, phase x (150)",
                "too few samples for p99.9 (10,000 needed): a, phase x (500); a, phase y (600)",
                "too few samples for p95 of b, phase x: 150 measured, 200 needed",
                "no operation of load a succeeded in the baseline: its recovery cannot be measured",
            ]
        );
    }

    #[test]
    fn a_late_generator_and_a_rate_that_is_not_kept_are_doubted() {
        assert_eq!(generator_late("l", 200, 300), None);
        assert_eq!(generator_late("l", 900, 10_000), None);
        let late = generator_late("l", 1_100, 10_000).expect("late");
        assert!(
            late.what().contains("1.1 ms late; the median response took 10.0 ms")
                && !late.remedy().is_empty(),
            "{}",
            late.what()
        );
        assert_eq!(rate_not_kept("l", 200, 2_000.0), None);
        let waiting = rate_not_kept("l", 201, 2_000.0).expect("not kept");
        assert!(waiting.what().starts_with("201 operations") && !waiting.remedy().is_empty());
    }

    #[test]
    fn a_baseline_is_doubted_when_it_drifts_is_short_or_empty() {
        let load = || "l".to_owned();
        assert_eq!(baseline_doubt("l", &[100, 100, 85, 95]), None);
        assert_eq!(baseline_doubt("l", &[80, 80, 0, 100, 100]), None);
        let rising = Doubt::NotSettled { load: load(), first_half_per_s: 79.0, second_half_per_s: 100.0 };
        assert_eq!(baseline_doubt("l", &[78, 80, 100, 100]), Some(rising));
        assert_eq!(
            baseline_doubt("l", &[100, 100, 100]),
            Some(Doubt::ShortBaseline { load: load(), seconds: 3 })
        );
        assert_eq!(baseline_doubt("l", &[0; 10]), Some(Doubt::NoBaseline { load: load() }));
        assert_eq!(baseline_doubt("l", &[]), Some(Doubt::NoBaseline { load: load() }));
    }
}
