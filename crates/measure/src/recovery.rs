//! What a fault did to a load: how long nothing succeeded, how long throughput was low, when it was back for good, and
//! how many operations did not happen.
//!
//! Owns these definitions. They take a load's successes by second and its waits ([`crate::waits`]); when faults took
//! effect is told by their receipts, and what several loads add up to is for others. Pure.
//!
//! **Window.** A fault is charged with all that happens from its effect until the next one that takes effect is asked for,
//! or until the loads are told to stop: its evidence comes a moment after it strikes. A fault that was asked for before
//! another had stood for [`SAME_MOMENT_S`] is no next one of it: nobody could tell the two apart, and they share one window.
//! Of a wait that began before the fault was asked for, only the part after that moment counts. A wait that was no
//! interruption yet when the next fault was asked for, and goes on, is the next one's: up to there it counts here.
//!
//! **Below.** Throughput is taken by whole seconds against the mean of the baseline's. A second is below 50 % when fewer
//! than half as many operations succeeded in it. It is below 95 % when fewer than 95 % succeeded *and* it is slower than
//! everything that the baseline's own spread explains: than its slowest second, and than its mean less
//! [`SPREAD_DEVIATIONS`] standard deviations. A second below 50 % is always below 95 %, too. A baseline that is shorter
//! than [`BASELINE_SECONDS_MIN`], or of which a second is itself below 50 %, supports no such judgement: the figures are
//! absent then, and [`Incomparable`] says why. Of a load at a rate the baseline is no more than what was due in it: operations
//! that were late from the warm-up are in no later second.
//!
//! **Sustained recovery.** The end of the last relapse in the window: of the last second below 50 %, of the last two
//! neighbouring seconds below 95 %, and of the last interruption, whichever is latest. A single second between 50 % and
//! 95 % is no relapse. At least [`SUSTAINED_SECONDS_MIN`] seconds of the window must follow it, the one in which it
//! lies among them.
//!
//! **Interruption.** A wait that is longer than [`INTERRUPTION_S`] and than [`INTERRUPTION_TIMES_BASELINE`] times the
//! longest of the baseline: a load with one slow client waits for each of its answers, and nothing is interrupted. A
//! baseline that itself had a wait of [`BASELINE_WAIT_S_MAX`] is no measure for a longer one that is less than that: whether
//! it was an interruption is unknown.

mod incomparable;

pub use incomparable::Incomparable;

use crate::waits::Wait;
use crate::warnings::BASELINE_SECONDS_MIN;

/// The share of the baseline at which throughput counts as back.
pub const RECOVERED_SHARE: f64 = 0.95;
/// The share of the baseline below which throughput counts as down.
pub const DOWN_SHARE: f64 = 0.5;
/// How many standard deviations of the baseline's seconds a second must lie below their mean to be below 95 %.
pub const SPREAD_DEVIATIONS: f64 = 4.0;
/// Seconds without a relapse that a sustained recovery takes at least.
pub const SUSTAINED_SECONDS_MIN: u64 = 3;
/// A wait that is no longer is no interruption, seconds.
pub const INTERRUPTION_S: f64 = 0.25;
/// Faults that are asked for so soon after another took effect strike at the same moment, seconds: in a shorter window
/// there is neither a whole second nor an interruption.
pub const SAME_MOMENT_S: f64 = INTERRUPTION_S;
/// How many times as long as the longest wait of the baseline an interruption is at least.
pub const INTERRUPTION_TIMES_BASELINE: f64 = 3.0;
/// A wait in the baseline from which on it is no measure for longer ones, seconds.
pub const BASELINE_WAIT_S_MAX: f64 = 1.0;

/// What succeeded in one whole second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// The second on the run's clock.
    pub second: u64,
    /// Transactions that succeeded in it.
    pub successes: u64,
    /// What was asked of the load in it, as a share of what was asked in the baseline: 1 for a load that does not
    /// change. None where the two cannot be compared, as with another number of clients.
    pub demand: Option<f64>,
}

impl Second {
    /// What the baseline would make of what is asked in it, above zero; none where the two cannot be compared.
    fn expected(&self, baseline_per_s: f64) -> Option<f64> {
        let expected = self.demand.filter(|_| is_baseline(baseline_per_s))? * baseline_per_s;
        (expected > 0.0).then_some(expected)
    }

    /// What succeeded in it as a share of that.
    fn share_of(&self, baseline_per_s: f64) -> Option<f64> {
        Some(self.successes as f64 / self.expected(baseline_per_s)?)
    }
}

/// Throughput of the seconds before any fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Mean of successes a second, above zero.
    pub per_s: f64,
    /// Successes a second below which a second is below 95 %, or why the baseline cannot tell.
    pub below_95_percent_per_s: Result<f64, Incomparable>,
}

impl Baseline {
    /// The baseline of the seconds that lie wholly within `from_s..=to_s`.
    ///
    /// # Errors
    /// When there is no such second or nothing succeeded in any, for then there is nothing to compare with.
    pub fn of(series: &[(u64, u64)], from_s: f64, to_s: f64) -> Result<Baseline, Incomparable> {
        let within = |second: u64| second as f64 >= from_s && second as f64 + 1.0 <= to_s;
        let counts: Vec<u64> =
            series.iter().filter(|(second, _)| within(*second)).map(|(_, count)| *count).collect();
        let slowest = counts.iter().copied().min().ok_or(Incomparable::NoBaseline)?;
        let (sum, number) = (counts.iter().sum::<u64>() as f64, counts.len() as f64);
        if sum <= 0.0 {
            return Err(Incomparable::IdleBaseline);
        }
        let per_s = sum / number;
        let squares: f64 = counts.iter().map(|count| (*count as f64 - per_s).powi(2)).sum();
        let deviation = (squares / (number - 1.0)).sqrt();
        let explained = (slowest as f64).min(per_s - SPREAD_DEVIATIONS * deviation);
        let below = explained.min(RECOVERED_SHARE * per_s).max(DOWN_SHARE * per_s);
        let below_95_percent_per_s = if counts.len() < BASELINE_SECONDS_MIN {
            let (seconds, needed) = (counts.len() as u64, BASELINE_SECONDS_MIN as u64);
            Err(Incomparable::ShortBaseline { seconds, needed })
        } else if (slowest as f64) < DOWN_SHARE * per_s {
            Err(Incomparable::UnevenBaseline { slowest, per_s })
        } else {
            Ok(below)
        };
        Ok(Baseline { per_s, below_95_percent_per_s })
    }

    /// The same where no more than this was due a second: what was done beyond that was late from before, and no later second
    /// has it to do again.
    #[must_use]
    pub fn at_most(self, due_per_s: f64) -> Baseline {
        let per_s = self.per_s.min(due_per_s);
        let below = self.below_95_percent_per_s.map(|below| below.min(RECOVERED_SHARE * per_s));
        Baseline { per_s, below_95_percent_per_s: below }
    }
}

/// The stretch of a run that one fault is charged with, seconds on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// When the fault was asked for.
    pub asked_s: f64,
    /// When it took effect.
    pub effect_s: f64,
    /// When the next one was asked for, or the loads were told to stop.
    pub end_s: f64,
}

/// When a fault was asked for, and when it took effect if it did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Struck {
    /// Asked for.
    pub asked_s: f64,
    /// Took effect.
    pub effect_s: Option<f64>,
}

/// The window of each fault, in their order; none for one that took no effect. `ended_s` is when the loads were told to
/// stop.
#[must_use]
pub fn windows(faults: &[Struck], ended_s: f64) -> Vec<Option<Window>> {
    let window = |fault: &Struck| {
        let effect_s = fault.effect_s?;
        let took_effect = faults.iter().filter(|other| other.effect_s.is_some());
        let later =
            took_effect.map(|other| other.asked_s).filter(|asked_s| *asked_s > effect_s + SAME_MOMENT_S);
        let end_s = later.fold(ended_s, f64::min).max(effect_s);
        Some(Window { asked_s: fault.asked_s, effect_s, end_s })
    };
    faults.iter().map(window).collect()
}

/// What is known of one load.
#[derive(Debug, Clone, Copy)]
pub struct LoadRecord<'a> {
    /// Its whole seconds, in order of time without gaps.
    pub seconds: &'a [Second],
    /// Its waits, in order of time; none where they were not recorded.
    pub waits: Option<&'a [Wait]>,
    /// Its baseline, or why there is none.
    pub baseline: Result<Baseline, Incomparable>,
    /// The longest wait in its baseline, seconds.
    pub baseline_wait_s: Option<f64>,
}

/// What a fault did to one load. What could not be told is absent, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Damage {
    /// The longest time without a success against what was due that overlaps the window, from when to when.
    pub longest_wait: Option<Wait>,
    /// Whether any wait was an interruption.
    pub is_interrupted: Option<bool>,
    /// Why the seconds below, and all that rests on them, are absent.
    pub incomparable: Option<Incomparable>,
    /// Whole seconds below 50 % of the baseline.
    pub below_50_percent_s: Option<f64>,
    /// Whole seconds below 95 % of the baseline.
    pub below_95_percent_s: Option<f64>,
    /// Whether the last whole second of the window is itself below 50 %, so that more may have followed.
    pub is_below_50_percent_at_end: bool,
    /// The same below 95 %.
    pub is_below_95_percent_at_end: bool,
    /// Seconds from the effect to sustained recovery, 0 where nothing relapsed; absent, too, where it did not recover.
    pub sustained_s: Option<f64>,
    /// Operations that did not happen: what the seconds below 95 % fell short of the baseline.
    pub lost_operations: Option<f64>,
}

/// What a fault did to a load in its window.
#[must_use]
pub fn damage(load: &LoadRecord, window: &Window) -> Damage {
    let waits = load.waits.map(|waits| overlapping(waits, window, load.baseline_wait_s));
    let longest_wait = waits.as_ref().and_then(|waits| longest(waits));
    let interruptions = waits.as_ref().map(|waits| {
        waits.iter().filter(|wait| is_interruption(wait.length_s(), load.baseline_wait_s)).collect::<Vec<_>>()
    });
    let mut damage = Damage {
        longest_wait,
        is_interrupted: waits.as_ref().and_then(|waits| any_interruption(waits, load.baseline_wait_s)),
        ..Damage::default()
    };
    let low = match LowSeconds::of(load, window) {
        Ok(low) => low,
        Err(why) => return Damage { incomparable: Some(why), ..damage },
    };
    damage.below_50_percent_s = Some(low.below_50_percent.len() as f64);
    damage.below_95_percent_s = Some(low.below_95_percent.len() as f64);
    damage.is_below_50_percent_at_end = low.below_50_percent.last() == Some(&low.last);
    damage.is_below_95_percent_at_end = low.below_95_percent.last() == Some(&low.last);
    damage.lost_operations = Some(low.missing);
    damage.sustained_s = interruptions.and_then(|interruptions| {
        let interrupted_until_s = interruptions.iter().map(|wait| wait.to_s).fold(window.effect_s, f64::max);
        let until_s =
            low.relapsed_until().map_or(interrupted_until_s, |until_s| until_s.max(interrupted_until_s));
        let followed_by_s = window.end_s.floor() - until_s.floor();
        let is_open = interruptions.iter().any(|wait| wait.is_open);
        (!is_open && followed_by_s >= SUSTAINED_SECONDS_MIN as f64)
            .then(|| (until_s - window.effect_s).max(0.0))
    });
    damage
}

/// Whether a wait of this length is more than this load has in its baseline anyway.
#[must_use]
pub fn is_interruption(wait_s: f64, baseline_wait_s: Option<f64>) -> bool {
    wait_s > INTERRUPTION_S && wait_s > INTERRUPTION_TIMES_BASELINE * baseline_wait_s.unwrap_or(0.0)
}

/// Whether any of these waits was an interruption; unknown where one may have been.
fn any_interruption(waits: &[Wait], baseline_wait_s: Option<f64>) -> Option<bool> {
    if waits.iter().any(|wait| is_interruption(wait.length_s(), baseline_wait_s)) {
        return Some(true);
    }
    let no_measure_s = baseline_wait_s.filter(|wait_s| *wait_s >= BASELINE_WAIT_S_MAX);
    let is_in_doubt = |wait: &Wait| no_measure_s.is_some_and(|wait_s| wait.length_s() > wait_s);
    (!waits.iter().any(is_in_doubt)).then_some(false)
}

/// The longest of these waits; of equal ones the first.
#[must_use]
pub fn longest(waits: &[Wait]) -> Option<Wait> {
    waits
        .iter()
        .copied()
        .reduce(|longest, wait| if wait.length_s() > longest.length_s() { wait } else { longest })
}

/// The longest part of a wait that lies within a stretch of the run.
#[must_use]
pub fn longest_within(waits: &[Wait], from_s: f64, to_s: f64) -> Option<Wait> {
    let cut = waits.iter().filter(|wait| wait.to_s > from_s && wait.from_s < to_s).map(|wait| Wait {
        from_s: wait.from_s.max(from_s),
        to_s: wait.to_s.min(to_s),
        is_open: wait.is_open || wait.to_s > to_s,
    });
    longest(&cut.collect::<Vec<_>>())
}

/// The waits a window is charged with: those that reach into it, without what lies before the fault was asked for, nor
/// what the next fault made of an ordinary wait.
fn overlapping(waits: &[Wait], window: &Window, baseline_wait_s: Option<f64>) -> Vec<Wait> {
    let reaches = |wait: &&Wait| wait.to_s > window.effect_s && wait.from_s < window.end_s;
    let cut = |wait: &Wait| {
        let from_s = wait.from_s.max(window.asked_s);
        let goes_on = wait.to_s > window.end_s;
        if goes_on && !is_interruption(window.end_s - from_s, baseline_wait_s) {
            return Wait { from_s, to_s: window.end_s, is_open: false };
        }
        Wait { from_s, ..*wait }
    };
    waits.iter().filter(reaches).map(cut).collect()
}

/// The seconds of a window in which throughput was low.
struct LowSeconds {
    below_50_percent: Vec<u64>,
    below_95_percent: Vec<u64>,
    missing: f64,
    /// The window's last whole second.
    last: u64,
}

impl LowSeconds {
    /// An error where the baseline cannot tell, or a second of the window is not there or cannot be compared.
    fn of(load: &LoadRecord, window: &Window) -> Result<LowSeconds, Incomparable> {
        let baseline = load.baseline?;
        let below_95_percent_per_s = baseline.below_95_percent_per_s?;
        let (first, end) = (window.effect_s.max(0.0).floor() as u64, window.end_s.max(0.0).floor() as u64);
        if first >= end {
            return Err(Incomparable::NoWholeSecond);
        }
        let (below_50_percent, below_95_percent) = (Vec::new(), Vec::new());
        let mut low = LowSeconds { below_50_percent, below_95_percent, missing: 0.0, last: end - 1 };
        let within = load.seconds.iter().filter(|second| (first..end).contains(&second.second));
        let mut seen = 0;
        for second in within {
            seen += 1;
            let demand = second.demand.ok_or(Incomparable::OtherDemand { second: second.second })?;
            let count = second.successes as f64;
            if count < DOWN_SHARE * baseline.per_s * demand {
                low.below_50_percent.push(second.second);
            }
            if count < below_95_percent_per_s * demand {
                low.below_95_percent.push(second.second);
                low.missing += baseline.per_s * demand - count;
            }
        }
        if seen == end - first { Ok(low) } else { Err(Incomparable::NotRecorded) }
    }

    /// The end of the last second below 50 % or of the last two neighbours below 95 %.
    fn relapsed_until(&self) -> Option<f64> {
        let neighbours = self.below_95_percent.windows(2).filter(|pair| pair[1] == pair[0] + 1);
        let last_pair = neighbours.map(|pair| pair[1]).max();
        let last = self.below_50_percent.last().copied().max(last_pair)?;
        Some(last as f64 + 1.0)
    }
}

/// Seconds from the moment a fault took effect to the end of the first whole second, begun at or after that
/// moment, in which at least 95 % of the baseline succeeded, whatever follows; of what the baseline would make of what is
/// asked in that second, where that changes.
///
/// `None` when that never happened in the series, when a second comes first that cannot be compared, or when there is no
/// baseline (0, or not a number). A fault that never pushed throughput below 95 % thus reads as between one and two
/// seconds: the resolution of the measure.
#[must_use]
pub fn back_to_95_percent(seconds: &[Second], baseline_per_s: f64, took_effect_s: f64) -> Option<f64> {
    for second in seconds.iter().filter(|second| second.second as f64 >= took_effect_s) {
        if second.share_of(baseline_per_s)? >= RECOVERED_SHARE {
            return Some(second.second as f64 + 1.0 - took_effect_s);
        }
    }
    None
}

/// Throughput in the slowest whole second, from that in which `from_s` lies to the last that ends by `to_s`, as a share of the
/// baseline's: the seconds of which those below 50 % are counted. `None` when there is no baseline or no such second, or one of them
/// cannot be compared.
#[must_use]
pub fn throughput_ratio_lowest(
    seconds: &[Second],
    baseline_per_s: f64,
    from_s: f64,
    to_s: f64,
) -> Option<f64> {
    let shares = within(seconds, from_s.floor(), to_s).map(|second| second.share_of(baseline_per_s));
    shares.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
}

/// Throughput over the seconds that lie wholly within `from_s..=to_s`, as a share of the baseline's: of what the baseline
/// would make of what is asked in them, where that changes. `None` when there is no baseline or no such second, or one of
/// them cannot be compared.
#[must_use]
pub fn throughput_ratio_during(
    seconds: &[Second],
    baseline_per_s: f64,
    from_s: f64,
    to_s: f64,
) -> Option<f64> {
    let (mut successes, mut expected) = (0.0, 0.0);
    for second in within(seconds, from_s, to_s) {
        successes += second.successes as f64;
        expected += second.expected(baseline_per_s)?;
    }
    (expected > 0.0).then(|| successes / expected)
}

/// The seconds that lie wholly within a stretch.
fn within(seconds: &[Second], from_s: f64, to_s: f64) -> impl Iterator<Item = &Second> {
    let is_within = move |second: u64| second as f64 >= from_s && second as f64 + 1.0 <= to_s;
    seconds.iter().filter(move |second| is_within(second.second))
}

fn is_baseline(baseline_per_s: f64) -> bool {
    baseline_per_s.is_finite() && baseline_per_s > 0.0
}

#[cfg(test)]
mod tests;
