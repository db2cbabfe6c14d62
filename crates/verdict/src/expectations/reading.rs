//! What a result says of a quantity: a reading for each load, phase or fault that an expectation is about.
//!
//! Owns where each quantity stands in a result. Judges nothing.

use check::registry::KNOWING_EACH_WRITE;
use history::{ErrorClass, FaultId, WARM_UP};
use measure::recovery::Incomparable;
use measure::warnings::{Percentile, SAMPLES_BEYOND_MIN};
use results::losses::{self, LostWrites};
use results::{
    CheckResult, FaultLoadResult, FaultResult, LatencyUs, LeadershipResult, LoadFigures, LoadResult,
    PhaseResult, RunResult,
};
use scenario::quantity::{LatencyFigure, Quantity};
use scenario::{Expectation, Scenario, Within};

/// Operations that show a share of one percent.
const ERROR_RATE_NEEDS: u64 = 100;

/// How long operations are under way when nothing is wrong, at most: of an open loop, those of a stretch's last moment end behind it.
const UNDER_WAY_S: f64 = 0.1;

/// A quantity as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measured {
    /// It has this value.
    Value(f64),
    /// It is at least this: what it waits for had not happened when the run ended.
    Beyond(f64),
    /// It rests on fewer operations than it takes to tell it from chance.
    TooFew {
        /// How many there were.
        operations: u64,
        /// How many it takes.
        needed: u64,
    },
    /// It has this value, which rests on fewer operations than that takes: it can break a bound and not keep one.
    OfFew {
        value: f64,
        /// How many operations there were.
        operations: u64,
        /// How many it takes.
        needed: u64,
    },
    /// It cannot be compared with the baseline.
    Incomparable(Incomparable),
    /// The run does not tell.
    Untold,
}

impl Measured {
    fn of(value: Option<f64>) -> Measured {
        value.map_or(Measured::Untold, Measured::Value)
    }

    fn of_operations(value: f64, operations: u64, needed: u64) -> Measured {
        if operations < needed {
            Measured::OfFew { value, operations, needed }
        } else {
            Measured::Value(value)
        }
    }

    /// The same, off by so much where it is known.
    pub(super) fn moved(self, off: f64) -> Measured {
        match self {
            Measured::Value(value) => Measured::Value(value + off),
            Measured::OfFew { value, operations, needed } => {
                Measured::OfFew { value: value + off, operations, needed }
            }
            Measured::Beyond(least) => Measured::Beyond(least + off),
            unknown => unknown,
        }
    }

    /// The longer of two, of which one may not be known.
    fn or_longer(self, other: Measured) -> Measured {
        let least = |measured| match measured {
            Measured::Value(value) | Measured::Beyond(value) => value,
            Measured::OfFew { .. }
            | Measured::TooFew { .. }
            | Measured::Incomparable(_)
            | Measured::Untold => 0.0,
        };
        let longer = least(self).max(least(other));
        match (self, other) {
            (Measured::Value(_), Measured::Value(_)) => Measured::Value(longer),
            (Measured::Untold, Measured::Untold) => Measured::Untold,
            _ => Measured::Beyond(longer),
        }
    }
}

/// A measurement and where it was made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// `load tpcb, phase fault`.
    pub(super) place: String,
    /// What was measured.
    pub(super) measured: Measured,
}

/// Everything an expectation is about.
pub(super) fn readings(
    expectation: &Expectation,
    scenario: &Scenario,
    result: &RunResult,
    ended_s: f64,
) -> Vec<Reading> {
    let loads: Vec<&LoadResult> = {
        let named = |load: &&LoadResult| expectation.load.as_ref().is_none_or(|name| *name == load.name);
        result.loads.iter().filter(named).collect()
    };
    let of_run = |measured| vec![Reading { place: "the run".to_owned(), measured }];
    match expectation.quantity {
        Quantity::LostWrites | Quantity::InventedWrites if expectation.load.is_some() => {
            writes_of_loads(expectation.quantity, &loads)
        }
        Quantity::LostWrites => match &expectation.within {
            Within::Faults(numbers) => lost_to_faults(numbers, result),
            _ => {
                let counting = losses::counting_lost_writes(&result.checks);
                of_run(sum(counting.map(|check| check.lost)))
            }
        },
        Quantity::InventedWrites => {
            of_run(sum(checks_of(result, &KNOWING_EACH_WRITE).map(|check| check.invented)))
        }
        // A check in doubt has not seen all there is.
        Quantity::Anomalies => of_run(sum(checks_of(result, &[check::list_append::NAME]).map(|check| {
            let doubtful = check.verdict == history::Verdict::Unknown;
            let kinds = check.counts.get(check::list_append::ANOMALIES)?;
            u64::try_from(*kinds).ok().filter(|_| !doubtful)
        }))),
        Quantity::LeaderChanges => of_run(passings(result, |leadership| Some(leadership.changes))),
        Quantity::SplitBrains => of_run(passings(result, |leadership| leadership.split_brains)),
        Quantity::LabCpuShare => of_run(Measured::of(result.lab.cpu_share_of_lab)),
        Quantity::TpmC => figures_of_orders(result, &loads, ("tpmC", 1.0)),
        Quantity::Efficiency => figures_of_orders(result, &loads, ("efficiency_percent", 0.01)),
        Quantity::Errors | Quantity::ErrorsOf(_) => of_run(errors(expectation, scenario, result, &loads)),
        Quantity::ErrorRate | Quantity::Throughput | Quantity::Latency(_) => {
            by_phase(expectation, scenario, result, &loads)
        }
        Quantity::Recovery
        | Quantity::FirstSuccess
        | Quantity::Recovery95Percent
        | Quantity::RecoverySustained
        | Quantity::Gap
        | Quantity::Below50Percent
        | Quantity::Below95Percent
        | Quantity::LostOperations
        | Quantity::ThroughputRatioDuring => by_fault(expectation, scenario, result, ended_s),
    }
}

/// The lead may pass on and back unseen where it is not known for longer than this who leads, seconds. That takes two elections.
const UNSEEN_S: f64 = 2.0;

/// How often the lead passed on, or was with several; at least that often where it was not known for too long who leads.
fn passings(result: &RunResult, of: impl Fn(&LeadershipResult) -> Option<u64>) -> Measured {
    let Some(leadership) = &result.leadership else { return Measured::Untold };
    let Some(count) = of(leadership) else { return Measured::Untold };
    match leadership.longest_pause_s {
        Some(pause_s) if pause_s > UNSEEN_S => Measured::Beyond(count as f64),
        _ => Measured::Value(count as f64),
    }
}

/// What was found lost or invented of each of these loads by itself.
fn writes_of_loads(quantity: Quantity, loads: &[&LoadResult]) -> Vec<Reading> {
    let of_load = |load: &&LoadResult| {
        let count = if quantity == Quantity::LostWrites { load.lost_writes } else { load.invented_writes };
        Reading {
            place: format!("load {}", load.name),
            measured: Measured::of(count.map(|count| count as f64)),
        }
    };
    loads.iter().map(of_load).collect()
}

/// The lost writes that are laid to each of these faults.
fn lost_to_faults(numbers: &[usize], result: &RunResult) -> Vec<Reading> {
    let to_fault = |number: &usize| {
        let (fault, place) = named_fault(result, FaultId::new(*number));
        let measured = match fault.and_then(FaultResult::lost) {
            None => Measured::Untold,
            Some(LostWrites::Exactly(count)) => Measured::Value(count as f64),
            Some(LostWrites::AtLeast(count)) => Measured::Beyond(count as f64),
        };
        Reading { place, measured }
    };
    numbers.iter().map(to_fault).collect()
}

/// A fault, if the run has it, and what it is called: `fault 1 (power-off)`.
fn named_fault(result: &RunResult, number: FaultId) -> (Option<&FaultResult>, String) {
    let fault = result.faults.get(number.index());
    let kind = fault.map(|fault| format!(" ({})", fault.kind)).unwrap_or_default();
    (fault, format!("fault {}{kind}", number.ordinal()))
}

fn checks_of<'r>(result: &'r RunResult, names: &[&str]) -> impl Iterator<Item = &'r CheckResult> {
    result.checks.iter().filter(move |check| names.contains(&check.name.as_str()))
}

/// What several checks have counted together; at least that where one of them could not tell, and nothing where that leaves 0.
fn sum(counts: impl Iterator<Item = Option<u64>>) -> Measured {
    let counts: Vec<Option<u64>> = counts.collect();
    let known: u64 = counts.iter().flatten().sum();
    match counts.iter().all(Option::is_some) {
        true if !counts.is_empty() => Measured::Value(known as f64),
        _ if known > 0 => Measured::Beyond(known as f64),
        _ => Measured::Untold,
    }
}

/// From when on a load asked less than the scenario has it: what it did then says nothing of the database.
fn asked_less_from_s(result: &RunResult, load: &LoadResult) -> Option<f64> {
    RunResult::asked_less_from_s(&result.agents, &load.name)
}

/// A figure that the standard makes from the number of new orders, of each load that has it.
fn figures_of_orders(result: &RunResult, loads: &[&LoadResult], (name, factor): (&str, f64)) -> Vec<Reading> {
    let figure = |load: &&LoadResult| {
        let value = *load.measured.figures.get(name)? * factor;
        let orders = load.measured.new_orders();
        let measured = match asked_less_from_s(result, load) {
            None if result.ran_to_its_end() => Measured::of_operations(value, orders, SAMPLES_BEYOND_MIN),
            _ => Measured::Untold,
        };
        Some(Reading { place: format!("load {}", load.name), measured })
    };
    loads.iter().filter_map(figure).collect()
}

/// The one place in which a figure of a stretch of the run is taken for measured. `hung`: operations of the stretch failed after it.
fn of_figures(figures: &LoadFigures, quantity: Quantity, hung: bool) -> Measured {
    let errors: u64 = figures.errors.values().sum();
    let operations = operations(figures);
    match quantity {
        Quantity::Throughput => Measured::Value(figures.throughput_per_s),
        Quantity::ErrorRate if operations == 0 => Measured::Untold,
        Quantity::ErrorRate => {
            let rate = errors as f64 / operations as f64;
            match Measured::of_operations(rate, operations, ERROR_RATE_NEEDS) {
                Measured::Value(least) if hung => Measured::Beyond(least),
                measured => measured,
            }
        }
        // Where nothing succeeded nothing has a latency.
        Quantity::Latency(_) if figures.transactions == 0 => Measured::Untold,
        Quantity::Latency(figure) if figures.transactions < operations_needed(figure) => {
            Measured::TooFew { operations: figures.transactions, needed: operations_needed(figure) }
        }
        Quantity::Latency(figure) => {
            let value = latency(&figures.latency_us, figure);
            if is_beyond_the_answered(figures, figure) {
                Measured::Beyond(value)
            } else {
                Measured::Value(value)
            }
        }
        _ => Measured::Untold,
    }
}

/// Whether so many operations had no answer that the figure of all is larger than that of those which had one.
fn is_beyond_the_answered(figures: &LoadFigures, figure: LatencyFigure) -> bool {
    let answered = figures.transactions as f64;
    let timeouts = figures.errors.get(ErrorClass::Timeout.name()).copied().unwrap_or(0) as f64;
    if matches!(figure, LatencyFigure::Max | LatencyFigure::Mean) {
        // To these each operation counts.
        return timeouts > 0.0;
    }
    let seconds = answered / figures.throughput_per_s;
    let due = figures.rate_per_s.map_or(0.0, |rate_per_s| rate_per_s * seconds);
    // Those under way at the stretch's ends belong to its neighbours, and chance has some more or fewer fall due.
    let chance = figures.rate_per_s.map_or(0.0, |rate_per_s| rate_per_s * UNDER_WAY_S) + 3.0 * due.sqrt();
    let never_answered = (due - operations(figures) as f64 - chance).max(0.0);
    let unanswered = timeouts + never_answered;
    // As many are needed as have so many beyond the percentile.
    let share_beyond = SAMPLES_BEYOND_MIN as f64 / operations_needed(figure) as f64;
    unanswered > share_beyond * (answered + unanswered)
}

/// How many operations a figure takes to be more than chance: of a percentile, as many that 10 lie beyond it.
fn operations_needed(figure: LatencyFigure) -> u64 {
    match figure {
        LatencyFigure::Max => 1,
        LatencyFigure::Mean => SAMPLES_BEYOND_MIN,
        LatencyFigure::P50 => 2 * SAMPLES_BEYOND_MIN,
        LatencyFigure::P90 => 10 * SAMPLES_BEYOND_MIN,
        LatencyFigure::P95 => Percentile::P95.samples_needed(),
        LatencyFigure::P99 => Percentile::P99.samples_needed(),
        LatencyFigure::P99_9 => Percentile::P99_9.samples_needed(),
    }
}

fn latency(latency_us: &LatencyUs, figure: LatencyFigure) -> f64 {
    match figure {
        LatencyFigure::Mean => latency_us.mean,
        LatencyFigure::P50 => latency_us.p50 as f64,
        LatencyFigure::P90 => latency_us.p90 as f64,
        LatencyFigure::P95 => latency_us.p95 as f64,
        LatencyFigure::P99 => latency_us.p99 as f64,
        LatencyFigure::P99_9 => latency_us.p99_9 as f64,
        LatencyFigure::Max => latency_us.max as f64,
    }
}

/// The phases an expectation is about, by their places in the schedule: named ones, or all but warm-up.
fn phases<'s>(expectation: &Expectation, scenario: &'s Scenario) -> Vec<(usize, &'s str)> {
    let is_meant = |name: &str| match &expectation.within {
        Within::Phase(wanted) => name == wanted,
        _ => name != WARM_UP,
    };
    let phases = scenario.schedule.iter().map(|phase| phase.name.as_str()).enumerate();
    phases.filter(|(_, name)| is_meant(name)).collect()
}

/// Whether the end of the run has cut a phase off: what it would have come to as a whole nobody knows.
fn is_cut_off(result: &RunResult, load: &LoadResult, place: usize) -> bool {
    !result.ran_to_its_end() && load.phases.len() == place + 1
}

/// Whether operations were under way at the end of a phase that failed, or had no answer, after the load had ended.
fn hung_at_its_end(load: &LoadResult, place: usize) -> bool {
    load.errors_after_end > 0 && place + 1 == load.phases.len()
}

/// Whether anything of a phase was recorded: of one that the end of the run cut off within a second the figures are all 0.
fn has_a_second(phase: &PhaseResult) -> bool {
    phase.to_s - phase.from_s >= 1.0 || operations(&phase.measured) > 0
}

fn by_phase(
    expectation: &Expectation,
    scenario: &Scenario,
    result: &RunResult,
    loads: &[&LoadResult],
) -> Vec<Reading> {
    let mut readings = Vec::new();
    for load in loads {
        let asked_less_from_s = asked_less_from_s(result, load);
        if expectation.within == Within::WholeRun {
            let measured = match asked_less_from_s {
                None if result.ran_to_its_end() => {
                    of_figures(&load.measured, expectation.quantity, load.errors_after_end > 0)
                }
                _ => Measured::Untold,
            };
            readings.push(Reading { place: format!("load {}", load.name), measured });
            continue;
        }
        for (place, name) in phases(expectation, scenario) {
            // A phase that the run did not reach has no figures.
            let phase = load.phases.get(place).filter(|phase| phase.name == name);
            let measured = phase
                .filter(|phase| {
                    has_a_second(phase)
                        && !is_cut_off(result, load, place)
                        && asked_less_from_s.is_none_or(|from_s| from_s >= phase.to_s)
                })
                .map_or(Measured::Untold, |phase| {
                    of_figures(&phase.measured, expectation.quantity, hung_at_its_end(load, place))
                });
            readings.push(Reading { place: format!("load {}, phase {name}", load.name), measured });
        }
    }
    readings
}

/// Errors add up over loads and phases. Where no operation came to an end, none could fail; where the run was cut short, or
/// operations were still under way when the loads were told to stop, more may have.
fn errors(
    expectation: &Expectation,
    scenario: &Scenario,
    result: &RunResult,
    loads: &[&LoadResult],
) -> Measured {
    let (mut stretches, mut may_be_more): (Vec<&LoadFigures>, bool) = (Vec::new(), false);
    for load in loads {
        let asked_less_from_s = asked_less_from_s(result, load);
        if !matches!(expectation.within, Within::Phase(_)) {
            stretches.push(&load.measured);
            may_be_more |=
                !result.ran_to_its_end() || asked_less_from_s.is_some() || load.errors_after_end > 0;
            continue;
        }
        for (place, name) in phases(expectation, scenario) {
            let Some(phase) = load.phases.get(place).filter(|phase| phase.name == name) else {
                return Measured::Untold;
            };
            stretches.push(&phase.measured);
            // Operations that hang throughout a phase count in none.
            let is_to_operate = phase.measured.rate_per_s.is_none_or(|rate_per_s| rate_per_s > 0.0);
            may_be_more |= is_to_operate && operations(&phase.measured) == 0;
            may_be_more |= hung_at_its_end(load, place);
            may_be_more |= is_cut_off(result, load, place);
            may_be_more |= asked_less_from_s.is_some_and(|from_s| from_s < phase.to_s);
        }
    }
    if stretches.iter().all(|figures| operations(figures) == 0) {
        return Measured::Untold;
    }
    let count = |figures: &&LoadFigures| match expectation.quantity {
        Quantity::ErrorsOf(class) => figures.errors.get(class).copied().unwrap_or(0),
        _ => figures.errors.values().sum(),
    };
    let sum = stretches.iter().map(count).sum::<u64>() as f64;
    if may_be_more { Measured::Beyond(sum) } else { Measured::Value(sum) }
}

/// Operations that came to an end, one way or the other.
fn operations(figures: &LoadFigures) -> u64 {
    figures.transactions + figures.errors.values().sum::<u64>()
}

fn by_fault(
    expectation: &Expectation,
    scenario: &Scenario,
    result: &RunResult,
    ended_s: f64,
) -> Vec<Reading> {
    let scheduled = scenario.faults().count();
    let faults: Vec<FaultId> = match &expectation.within {
        Within::Faults(numbers) => numbers.iter().copied().map(FaultId::new).collect(),
        _ => (0..scheduled).map(FaultId::new).collect(),
    };
    let loads = scenario.loads.iter().map(|load| load.name.as_str());
    let loads: Vec<&str> =
        loads.filter(|load| expectation.load.as_deref().is_none_or(|name| name == *load)).collect();
    let mut readings = Vec::new();
    for number in faults {
        let (fault, fault_name) = named_fault(result, number);
        for load in &loads {
            // A fault that was not shown to take effect has no loads, and was not measured.
            let found =
                fault.and_then(|fault| Some((fault, fault.loads.iter().find(|of| of.load == *load)?)));
            let measured = found.map_or(Measured::Untold, |(fault, load)| {
                let until_s = comparable_until(result, fault, load).min(ended_s);
                after_fault(expectation.quantity, (fault, load), (ended_s, until_s))
            });
            let place = format!("load {load}, {fault_name}");
            readings.push(Reading { place, measured });
        }
    }
    readings
}

/// The first second after a fault in which something else was asked of the load than in its baseline; the windows of all
/// faults together tell, each of its own seconds.
fn comparable_until(result: &RunResult, fault: &FaultResult, load: &FaultLoadResult) -> f64 {
    let windows = result.faults.iter().flat_map(|fault| &fault.loads).filter(|of| of.load == load.load);
    let other_demand = windows.filter_map(|of| match of.incomparable {
        Some(Incomparable::OtherDemand { second }) => Some(second as f64),
        _ => None,
    });
    let from_s = fault.took_effect_s.map_or(0.0, f64::floor);
    other_demand.filter(|second| *second >= from_s).fold(f64::INFINITY, f64::min)
}

/// How long a load without a success after a fault waited for one, at least: time in which nothing was due is no wait. None
/// where its waits are not known.
fn waited_since(load: &FaultLoadResult, effect_s: f64) -> Option<f64> {
    let before_s = load.gap_from_s.map_or(0.0, |from_s| (effect_s - from_s).max(0.0));
    Some(load.gap_s? - before_s)
}

/// `until_s` is how long what succeeded can be compared with the baseline.
fn after_fault(
    quantity: Quantity,
    (fault, load): (&FaultResult, &FaultLoadResult),
    (ended_s, until_s): (f64, f64),
) -> Measured {
    let Some(effect_s) = fault.took_effect_s else { return Measured::Untold };
    let beyond = |least_s: f64| Measured::Beyond(least_s.max(0.0));
    let gap = match load.gap_s {
        Some(gap_s) if load.gap_is_open => beyond(gap_s),
        gap_s => Measured::of(gap_s),
    };
    let untold = load.incomparable.map_or(Measured::Untold, Measured::Incomparable);
    let beside_baseline = |figure: Option<f64>| figure.map_or(untold, Measured::Value);
    // What goes on up to the last second that counts is no longer counted after it.
    let counted = |figure: Option<f64>, goes_on: bool| match figure {
        Some(figure) if goes_on => Measured::Beyond(figure),
        figure => beside_baseline(figure),
    };
    // Two figures need only the baseline's mean, so they exist where no second can be compared. Of a bad baseline it is chance.
    let has_bad_baseline = matches!(
        load.incomparable,
        Some(Incomparable::ShortBaseline { .. } | Incomparable::UnevenBaseline { .. })
    );
    let unanswered = waited_since(load, effect_s)
        .map_or(Measured::Untold, |waited_s| beyond(waited_s.min(ended_s - effect_s)));
    let first_success = load.recovery_s.first_success.map_or(unanswered, Measured::Value);
    match quantity {
        Quantity::Recovery => first_success.or_longer(gap),
        Quantity::FirstSuccess => first_success,
        Quantity::Gap => gap,
        Quantity::Recovery95Percent | Quantity::ThroughputRatioDuring if has_bad_baseline => untold,
        Quantity::Recovery95Percent => match load.recovery_s.back_to_95_percent {
            // Without a baseline there is nothing to come back to.
            None if load.throughput_ratio_during.is_some() => beyond(until_s - effect_s),
            back_s => beside_baseline(back_s),
        },
        Quantity::RecoverySustained => match load.recovery_s.sustained {
            None if load.below_95_percent_s.is_some() && load.gap_s.is_some() => {
                fault.sustained_at_least_s().map_or(Measured::Untold, Measured::Beyond)
            }
            sustained_s => beside_baseline(sustained_s),
        },
        Quantity::Below50Percent => counted(load.below_50_percent_s, load.below_50_percent_at_end),
        Quantity::Below95Percent => counted(load.below_95_percent_s, load.below_95_percent_at_end),
        Quantity::LostOperations => counted(load.lost_operations, load.below_95_percent_at_end),
        Quantity::ThroughputRatioDuring => beside_baseline(load.throughput_ratio_during),
        _ => Measured::Untold,
    }
}
