//! The figures of a fault beside those of a cell, and how the one stand to the other.
//!
//! Owns which figures there are and what a word about them is based on. One run is told by its rank among the atlas' runs;
//! several are held against them as means with an interval, where all have the figure. Writes no sentences.

use ::atlas::{LoadFigures, Run};
use history::FaultId;
use measure::{Better, Distribution, Finding, Sampling};
use results::FaultResult;
use results::losses::LostWrites;
use scenario::Scenario;

use super::obstacles::Obstacles;
use super::{Ours, REPETITIONS_MIN};
use crate::compare::Quantity;
use crate::compare::distributions::Figure as Kind;

/// A figure of a fault, or of a load before it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::compare) struct Figure {
    /// The load; none where it is of the fault.
    pub(in crate::compare) load: Option<String>,
    pub(in crate::compare) kind: Kind,
    /// In each of our runs.
    pub(in crate::compare) ours: Vec<Seen>,
    /// In each run of the atlas.
    pub(in crate::compare) theirs: Vec<Seen>,
    pub(in crate::compare) stands: Stands,
}

/// A figure in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::compare) enum Seen {
    /// This.
    Value(f64),
    /// More than this: it had not come to its end when the run did. Of lost writes this, or more: not all could be told.
    MoreThan(f64),
    /// A time that did not come within a run of the atlas, which does not say how long that was.
    Never,
    /// The run does not say.
    Unknown,
}

/// How ours stand to the atlas'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::compare) enum Stands {
    /// The only one of ours, or the worst.
    Ranked(Rank),
    /// The means of several.
    Means(measure::Comparison),
    /// Something keeps the two from being compared.
    NotComparable,
    /// The cell has too few runs.
    TooFew,
    /// Not all of the runs say.
    Unsaid,
}

/// Among how many runs of the atlas how many are worse, and how many are better; the others are the same, or cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::compare) struct Rank {
    /// Ours is better than so many.
    pub(in crate::compare) better_than: usize,
    /// Ours is worse than so many.
    pub(in crate::compare) worse_than: usize,
    /// Of so many.
    pub(in crate::compare) of: usize,
}

impl Seen {
    fn of(value: Option<f64>) -> Seen {
        value.map_or(Seen::Unknown, Seen::Value)
    }

    pub(in crate::compare) fn value(self) -> Option<f64> {
        match self {
            Seen::Value(value) => Some(value),
            Seen::MoreThan(_) | Seen::Never | Seen::Unknown => None,
        }
    }
}

/// A time to recover of a run of the atlas.
fn published(time_s: Option<f64>, run: &Run) -> Seen {
    match time_s {
        None if run.never_recovered() => Seen::Never,
        time_s => Seen::of(time_s),
    }
}

impl Figure {
    /// Whether it depends on the machine as much as on the database.
    pub(in crate::compare) fn is_of_the_machine(&self) -> bool {
        self.load.is_some()
    }

    /// The atlas' values, those that there are.
    pub(in crate::compare) fn their_values(&self) -> Vec<f64> {
        self.theirs.iter().filter_map(|seen| seen.value()).collect()
    }

    /// The one of ours that is told: the worst of losses, else the one in the middle; the worst where one of them never came
    /// to its end.
    pub(in crate::compare) fn told(&self) -> Seen {
        if self.ours.contains(&Seen::Unknown) {
            return Seen::Unknown;
        }
        let values: Vec<f64> = self.ours.iter().filter_map(|seen| seen.value()).collect();
        let told = Distribution::of(&values, self.kind.better());
        match (told, self.kind) {
            (_, Kind::LostWrites) if values.len() < self.ours.len() => most_lost(&self.ours),
            _ if values.len() < self.ours.len() => worst(&self.ours, self.kind.better()),
            (Some(told), Kind::LostWrites) => Seen::Value(told.worst),
            (Some(told), _) => Seen::Value(told.median),
            (None, _) => Seen::Unknown,
        }
    }
}

/// Every figure, also those that no run has.
pub(super) fn all(
    ours: &[Ours<'_>],
    number: FaultId,
    theirs: &[&Run],
    cell: &Scenario,
    obstacles: &Obstacles,
) -> Vec<Figure> {
    let mut figures = of_fault(ours, number, theirs);
    // Other loads beside it change what a load can do.
    if obstacles.of_loads.is_empty() {
        figures.extend(of_loads(ours, theirs, cell));
    }
    for figure in &mut figures {
        figure.stands = stands(figure, obstacles);
    }
    figures
}

fn figure(load: Option<&str>, kind: Kind, ours: Vec<Seen>, theirs: Vec<Seen>) -> Figure {
    Figure { load: load.map(str::to_owned), kind, ours, theirs, stands: Stands::Unsaid }
}

fn of_fault(ours: &[Ours<'_>], number: FaultId, theirs: &[&Run]) -> Vec<Figure> {
    let of = |kind: Kind, here: fn(&FaultResult) -> Seen, there: fn(&Run) -> Seen| {
        let of_run =
            |run: &Ours<'_>| run.taken.run.result.faults.get(number.index()).map_or(Seen::Unknown, here);
        figure(None, kind, ours.iter().map(of_run).collect(), theirs.iter().map(|run| there(run)).collect())
    };
    vec![
        of(
            Kind::Measured(Quantity::Gap),
            |fault| gap(fault.gap_s, fault.interrupted, fault.loads.iter().any(|load| load.gap_is_open)),
            |run| gap(run.gap_s, run.interrupted, run.gap_is_open),
        ),
        of(
            Kind::Measured(Quantity::FirstSuccess),
            |fault| recovered(fault.recovery_s.first_success, fault),
            |run| published(run.first_success_s, run),
        ),
        of(
            Kind::Measured(Quantity::BackTo95Percent),
            |fault| recovered(fault.recovery_s.back_to_95_percent, fault),
            |run| published(run.back_to_95_percent_s, run),
        ),
        of(
            Kind::Measured(Quantity::Sustained),
            |fault| recovered(fault.recovery_s.sustained, fault),
            |run| published(run.sustained_s, run),
        ),
        of(Kind::LostWrites, |fault| lost(fault.lost()), |run| lost(run.lost())),
    ]
}

/// A wait as the baseline has it, too, is none: two of them differ by chance.
fn gap(gap_s: Option<f64>, interrupted: Option<bool>, is_open: bool) -> Seen {
    match (gap_s, interrupted) {
        (_, Some(false)) => Seen::Value(0.0),
        (Some(gap_s), _) if is_open => Seen::MoreThan(gap_s),
        (gap_s, _) => Seen::of(gap_s),
    }
}

/// Lost writes, or those that are known.
fn lost(lost: Option<LostWrites>) -> Seen {
    match lost {
        Some(LostWrites::Exactly(count)) => Seen::Value(count as f64),
        Some(LostWrites::AtLeast(count)) => Seen::MoreThan(count as f64),
        None => Seen::Unknown,
    }
}

/// A time to recover, or that there was none until the next fault or the end. Where the baseline is good for no comparison,
/// nobody knows.
fn recovered(time_s: Option<f64>, fault: &FaultResult) -> Seen {
    let is_known = !fault.loads.is_empty() && fault.loads.iter().all(|load| load.incomparable.is_none());
    match (time_s, fault.sustained_at_least_s()) {
        (Some(time_s), _) => Seen::Value(time_s),
        (None, Some(at_least_s)) if is_known => Seen::MoreThan(at_least_s),
        (None, _) => Seen::Unknown,
    }
}

/// Throughput and latency of each load in the baseline. Loads of the same settings in the same order have one another's
/// figures, whatever they are called.
fn of_loads(ours: &[Ours<'_>], theirs: &[&Run], cell: &Scenario) -> Vec<Figure> {
    let Some(first) = ours.first() else { return Vec::new() };
    let mut figures = Vec::new();
    for (here, there) in first.scenario.loads.iter().zip(&cell.loads) {
        let of_run = |run: &Ours<'_>| {
            let load = run.taken.run.result.loads.iter().find(|load| load.name == here.name)?;
            LoadFigures::of(load)
        };
        let ours: Vec<Option<LoadFigures>> = ours.iter().map(of_run).collect();
        let of_atlas = |run: &&Run| run.loads.iter().find(|load| load.name == there.name).cloned();
        let theirs: Vec<Option<LoadFigures>> = theirs.iter().map(of_atlas).collect();
        let mut of = |quantity: Quantity, value: fn(&LoadFigures) -> f64| {
            let seen = |runs: &[Option<LoadFigures>]| -> Vec<Seen> {
                runs.iter().map(|figures| Seen::of(figures.as_ref().map(value))).collect()
            };
            let kind = Kind::Measured(quantity);
            figures.push(figure(Some(&here.name), kind, seen(&ours), seen(&theirs)));
        };
        of(Quantity::Throughput, |figures| figures.throughput_per_s);
        of(Quantity::P50, |figures| figures.latency_p50_us as f64);
        of(Quantity::P99, |figures| figures.latency_p99_us as f64);
    }
    figures
}

fn stands(figure: &Figure, obstacles: &Obstacles) -> Stands {
    if !obstacles.of_all.is_empty() {
        return Stands::NotComparable;
    }
    let theirs: Vec<Seen> = figure.theirs.iter().copied().filter(|seen| *seen != Seen::Unknown).collect();
    if figure.theirs.len() < REPETITIONS_MIN {
        return Stands::TooFew;
    }
    let told = figure.told();
    if told == Seen::Unknown || theirs.len() < REPETITIONS_MIN {
        return Stands::Unsaid;
    }
    let values: Vec<f64> = figure.ours.iter().filter_map(|seen| seen.value()).collect();
    let their_values = figure.their_values();
    let all_have = values.len() == figure.ours.len() && their_values.len() == figure.theirs.len();
    if let (Kind::Measured(quantity), true, true) = (figure.kind, all_have, values.len() > 1) {
        let mut means = measure::compare(&their_values, &values, Sampling::Runs, quantity.resolution(), 0);
        let apart = quantity.mean(&values) - quantity.mean(&their_values);
        if means.finding != Finding::Unknown {
            if apart.abs() <= quantity.resolution() {
                means.finding = Finding::Noise;
            }
            return Stands::Means(means);
        }
    }
    let resolution = match figure.kind {
        Kind::Measured(quantity) => quantity.resolution(),
        Kind::LostWrites | Kind::Errors => 0.0,
    };
    Stands::Ranked(rank(told, &theirs, figure.kind.better(), resolution))
}

/// Where ours stands among theirs. What differs by no more than how it is measured is the same.
fn rank(ours: Seen, theirs: &[Seen], better: Better, resolution: f64) -> Rank {
    // How much worse the one is than the other, at least; none where that cannot be told.
    let worse_by = |one: Seen, other: Seen| match (one, other) {
        (Seen::Value(one) | Seen::MoreThan(one), Seen::Value(other)) => {
            Some(if better == Better::Smaller { one - other } else { other - one })
        }
        // The runs of a cell are as long as ours: it came in the one and not in the other.
        (Seen::Never, Seen::Value(_)) => Some(f64::INFINITY),
        _ => None,
    };
    let is_worse = |one: Seen, other: Seen| worse_by(one, other).is_some_and(|by| by > resolution);
    Rank {
        better_than: theirs.iter().filter(|theirs| is_worse(**theirs, ours)).count(),
        worse_than: theirs.iter().filter(|theirs| is_worse(ours, **theirs)).count(),
        of: theirs.len(),
    }
}

/// The worst of several.
fn worst(seen: &[Seen], better: Better) -> Seen {
    let is_open = seen.iter().any(|seen| matches!(seen, Seen::MoreThan(_)));
    let least = seen.iter().filter_map(|seen| match seen {
        Seen::Value(value) if !is_open => Some(*value),
        Seen::MoreThan(value) => Some(*value),
        Seen::Value(_) | Seen::Never | Seen::Unknown => None,
    });
    let worst = match better {
        Better::Smaller => least.reduce(f64::max),
        Better::Larger => least.reduce(f64::min),
    };
    match (worst, is_open) {
        (Some(value), true) => Seen::MoreThan(value),
        (value, _) => Seen::of(value),
    }
}

/// The most that are known to be lost, of runs of which not all could be told.
fn most_lost(seen: &[Seen]) -> Seen {
    let known = seen.iter().filter_map(|seen| match seen {
        Seen::Value(known) | Seen::MoreThan(known) => Some(*known),
        Seen::Never | Seen::Unknown => None,
    });
    known.reduce(f64::max).map_or(Seen::Unknown, Seen::MoreThan)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: [Seen; 3] = [Seen::Value(2.0), Seen::Value(3.0), Seen::Value(4.0)];

    #[track_caller]
    fn check(ours: Seen, theirs: &[Seen], better: Better, expected: (usize, usize)) {
        let Rank { better_than, worse_than, of } = rank(ours, theirs, better, 0.0);
        assert_eq!((better_than, worse_than, of), (expected.0, expected.1, theirs.len()));
    }

    #[test]
    fn a_value_is_ranked_by_what_is_shown_to_be_worse_and_better() {
        check(Seen::Value(5.0), &THEIRS, Better::Smaller, (0, 3));
        check(Seen::Value(3.0), &THEIRS, Better::Smaller, (1, 1));
        check(Seen::Value(5.0), &THEIRS, Better::Larger, (3, 0));
        // What had not ended after 2.5 s is worse than what took 2, and perhaps than the others.
        check(Seen::MoreThan(2.5), &THEIRS, Better::Smaller, (0, 1));
        check(Seen::MoreThan(9.0), &THEIRS, Better::Smaller, (0, 3));
        check(Seen::Value(1.0), &[Seen::MoreThan(2.0)], Better::Smaller, (1, 0));
        check(Seen::Value(3.0), &[Seen::MoreThan(2.0)], Better::Smaller, (0, 0));
        check(Seen::MoreThan(9.0), &[Seen::MoreThan(2.0)], Better::Smaller, (0, 0));
        // One that came is better than one that never did; of two that never did nobody knows.
        check(Seen::Value(40.0), &[Seen::Never, Seen::Value(3.0)], Better::Smaller, (1, 1));
        check(Seen::MoreThan(40.0), &[Seen::Never, Seen::Value(3.0)], Better::Smaller, (0, 1));
    }

    #[test]
    fn what_differs_by_less_than_it_is_measured_to_is_the_same() {
        let Rank { better_than, worse_than, .. } = rank(Seen::Value(3.5), &THEIRS, Better::Smaller, 1.0);
        assert_eq!((better_than, worse_than), (0, 1));
    }

    #[test]
    fn of_losses_that_may_be_more_the_most_that_are_known_are_told() {
        assert_eq!(most_lost(&[Seen::Value(90.0), Seen::MoreThan(1.0)]), Seen::MoreThan(90.0));
        assert_eq!(most_lost(&[Seen::Value(1.0), Seen::MoreThan(90.0)]), Seen::MoreThan(90.0));
    }

    #[test]
    fn of_several_the_one_that_never_came_to_its_end_is_told() {
        let seen = [Seen::Value(7.0), Seen::MoreThan(5.0), Seen::Value(1.0)];
        assert_eq!(worst(&seen, Better::Smaller), Seen::MoreThan(5.0));
        assert_eq!(worst(&seen[..1], Better::Smaller), Seen::Value(7.0));
        assert_eq!(worst(&[], Better::Smaller), Seen::Unknown);
    }
}
