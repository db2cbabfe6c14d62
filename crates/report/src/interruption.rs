//! What a fault interrupted, in words: the longest gap, how long throughput was low, when recovery was sustained.
//!
//! Owns the phrases that headline, sentences, tables and terminal share. The figures are in the result.

use history::FaultId;

use crate::format;
use measure::recovery::{Incomparable, SUSTAINED_SECONDS_MIN};
use results::{FaultLoadResult, FaultResult, RunResult};

/// A load's gap after a fault.
#[derive(Clone, Copy)]
pub(crate) struct Gap<'r> {
    pub(crate) number: FaultId,
    pub(crate) fault: &'r FaultResult,
    pub(crate) load: &'r FaultLoadResult,
    pub(crate) gap_s: f64,
}

/// The longest gap of all faults and loads, as far as they are known; where a load is known to have been interrupted, of those
/// that were: a load with long pauses of its own may have a longer one.
pub(crate) fn longest(result: &RunResult) -> Option<Gap<'_>> {
    let are_some_interrupted = result.faults.iter().flat_map(|fault| &fault.loads).any(is_interrupted);
    let counts = move |load: &&FaultLoadResult| !are_some_interrupted || is_interrupted(load);
    let gaps = FaultId::of_each(&result.faults).flat_map(|(number, fault)| {
        let loads = fault.loads.iter().filter(counts);
        loads.filter_map(move |load| Some(Gap { number, fault, load, gap_s: load.gap_s? }))
    });
    gaps.max_by(|one, other| one.gap_s.total_cmp(&other.gap_s))
}

fn is_interrupted(load: &FaultLoadResult) -> bool {
    load.interrupted == Some(true)
}

/// Whether any fault is known to have interrupted a load; that none did takes every struck fault to be known.
pub(crate) fn any(result: &RunResult) -> Option<bool> {
    let mut struck = result.faults.iter().filter(|fault| fault.took_effect_s.is_some()).peekable();
    struck.peek()?;
    let known: Vec<Option<bool>> = struck.map(|fault| fault.interrupted).collect();
    if known.contains(&Some(true)) {
        return Some(true);
    }
    known.iter().all(Option::is_some).then_some(false)
}

/// The load of a fault that was without a success longest, of those that it interrupted where it did any; of an older result, or
/// one of which a load is not known, none.
fn worst_load(fault: &FaultResult) -> Option<&FaultLoadResult> {
    let are_some_interrupted = fault.loads.iter().any(is_interrupted);
    let counts = |load: &&FaultLoadResult| !are_some_interrupted || is_interrupted(load);
    let known = fault.loads.iter().filter(|load| load.gap_s.is_some()).filter(counts);
    known.max_by(|one, other| one.gap_s.unwrap_or(0.0).total_cmp(&other.gap_s.unwrap_or(0.0)))
}

/// How long a load was without a success: `7.31 s`, or `at least 7.31 s` where the run ended first.
pub(crate) fn gap(load: &FaultLoadResult) -> String {
    match load.gap_s {
        None => "unknown".to_owned(),
        Some(gap_s) if load.gap_is_open => format!("at least {}", format::seconds(gap_s)),
        Some(gap_s) => format::seconds(gap_s),
    }
}

/// What the baseline has of the kind, where a gap is so long that its reader would take it for an interruption.
fn as_before(load: &FaultLoadResult) -> String {
    let is_long = load.gap_s.is_some_and(|gap_s| gap_s >= 1.0);
    let before = load.baseline_gap_s.filter(|_| is_long);
    before.map_or_else(String::new, |before_s| format!(", {} in the baseline", format::seconds(before_s)))
}

/// Why it is unknown whether the loads were interrupted.
fn in_doubt(longest: &FaultLoadResult) -> String {
    match longest.baseline_gap_s.filter(|_| longest.interrupted.is_none()) {
        Some(before_s) => format!(
            "; whether that is an interruption is unknown: {} had none for {} in the baseline",
            longest.load,
            format::seconds(before_s)
        ),
        None => "; not every load's gaps are known".to_owned(),
    }
}

/// What a fault interrupted: clauses for a sentence, without a full stop. Nothing where gaps were not recorded. Why it is unknown how long
/// throughput was low is said once: `said` is what the sentence before said of it.
pub(crate) fn clauses(fault: &FaultResult, said: &mut Option<String>) -> Vec<String> {
    let Some(worst) = worst_load(fault) else { return Vec::new() };
    let mut clauses = Vec::new();
    if fault.interrupted == Some(false) {
        clauses.push(format!(
            "no interruption: longest gap {} ({}){}",
            gap(worst),
            worst.load,
            as_before(worst)
        ));
    } else {
        let from = worst.gap_from_s.map(|from_s| format!(" from {} on", format::seconds(from_s)));
        clauses.push(format!("{} had no success for {}{}", worst.load, gap(worst), from.unwrap_or_default()));
    }
    clauses.extend(below(fault));
    let back = back_for_good(fault);
    let is_said = is_unknown(fault) && said.as_ref() == Some(&back);
    *said = is_unknown(fault).then(|| back.clone());
    clauses.extend((!is_said && !back.is_empty()).then_some(back));
    clauses
}

/// How long throughput was low, and below what where the baseline's own spread leaves less than 95 % to be told; nothing where it was
/// not low and would have been seen, or is not known.
fn below(fault: &FaultResult) -> Option<String> {
    let below_95_s = fault.below_95_percent_s?;
    if below_95_s <= 0.0 {
        let (of, share) = lowered_limit(fault)?;
        return Some(format!(
            "throughput{of} was not below {share} of the baseline; a smaller loss cannot be told: {TOO_UNEVEN}"
        ));
    }
    let lowered = lowered_limit_of(fault, |load| load.below_95_percent_s == Some(below_95_s));
    let below_50_s = fault
        .below_50_percent_s
        .filter(|below_50_s| *below_50_s > 0.0 && lowered.is_none_or(|limit| limit > 0.5));
    let deeper = below_50_s
        .map_or_else(String::new, |below_50_s| format!(", {below_50_s:.0}\u{a0}s of it below 50\u{a0}%"));
    let (limit, in_doubt) = match lowered {
        Some(share) => (
            format::percent(share),
            format!("; for how long it was below 95\u{a0}% cannot be told: {TOO_UNEVEN}"),
        ),
        None => ("95\u{a0}%".to_owned(), String::new()),
    };
    Some(format!("throughput was below {limit} of the baseline for {below_95_s:.0}\u{a0}s{deeper}{in_doubt}"))
}

const TOO_UNEVEN: &str = "the baseline's own seconds differ that much";

/// The limit that stands in the place of 95 % for the loads of which this is so, where it does for each of them; the highest.
fn lowered_limit_of(fault: &FaultResult, is_meant: impl Fn(&FaultLoadResult) -> bool) -> Option<f64> {
    let meant = fault.loads.iter().filter(|load| is_meant(load));
    let limits: Option<Vec<f64>> = meant.map(FaultLoadResult::lowered_limit_share).collect();
    limits?.into_iter().reduce(f64::max)
}

/// The lowest limit of the loads of a fault that is no 95 %: whose it is where there are several, and its share of the baseline.
fn lowered_limit(fault: &FaultResult) -> Option<(String, String)> {
    let limits = fault.loads.iter().filter_map(|load| Some((load, load.lowered_limit_share()?)));
    let (load, share) = limits.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let of = if fault.loads.len() > 1 { format!(" of {}", load.load) } else { String::new() };
    Some((of, format::percent(share)))
}

/// Of a baseline that says too little nothing is known, which is not the same as not having come back.
fn is_unknown(fault: &FaultResult) -> bool {
    fault.recovery_s.sustained.is_none() && fault.below_95_percent_s.is_none()
}

/// When a load was back for good, as a clause; nothing where there was nothing to recover from.
fn back_for_good(fault: &FaultResult) -> String {
    match fault.recovery_s.sustained {
        Some(sustained_s) if sustained_s > 0.0 => {
            let after = format::seconds(sustained_s);
            match lowered_limit_of(fault, |load| load.recovery_s.sustained == Some(sustained_s)) {
                Some(share) => {
                    format!("after {after} it stayed at {} of the baseline or more", format::percent(share))
                }
                None => format!("recovery was sustained after {after}"),
            }
        }
        Some(_) => String::new(),
        None if is_unknown(fault) => {
            format!("how long throughput was low is unknown: {}", why_unknown(fault))
        }
        None => not_sustained(fault),
    }
}

/// Why it is unknown how long throughput was low, and what to change.
pub(crate) fn why_unknown(fault: &FaultResult) -> String {
    let mut known = fault.loads.iter().filter_map(|load| Some((load, load.incomparable.as_ref()?)));
    match known.next() {
        Some((load, why)) if fault.loads.len() > 1 => format!("{} ({})", incomparable(why), load.load),
        Some((_, why)) => incomparable(why),
        None => "there is nothing to compare with".to_owned(),
    }
}

/// Why a load's seconds cannot be compared with its baseline, and what to change.
pub fn incomparable(why: &Incomparable) -> String {
    match why {
        Incomparable::NoBaseline => {
            "there is no baseline of whole seconds: put a phase `baseline` of 10 s before the fault"
                .to_owned()
        }
        Incomparable::IdleBaseline => {
            "nothing succeeded in the baseline: make the warm-up longer, or read the first error".to_owned()
        }
        Incomparable::ShortBaseline { seconds, needed } => format!(
            "the baseline has {}, {needed} are needed: make it 10 s long",
            format::counted(*seconds, "whole second", "whole seconds")
        ),
        Incomparable::UnevenBaseline { slowest, per_s } => format!(
            "the baseline is too uneven, {} in its slowest second and {} on average: make the warm-up and the baseline longer",
            format::counted(*slowest, "success", "successes"),
            format::rate(*per_s)
        ),
        Incomparable::OtherDemand { second } => format!(
            "in second {second} the load had another number of clients than in the baseline, or was lowered to less than one operation a second: keep it the same after the fault"
        ),
        Incomparable::NoWholeSecond => {
            "no whole second passed before the next fault or the end of the run: make the phase longer"
                .to_owned()
        }
        Incomparable::NotRecorded => "the load's record ends early".to_owned(),
    }
}

/// What is known of a recovery that was not seen to last.
fn not_sustained(fault: &FaultResult) -> String {
    match fault.sustained_at_least_s() {
        _ if fault.gap_s.is_none() => "whether recovery was sustained is unknown".to_owned(),
        Some(least_s) if least_s > 0.0 => format!(
            "sustained recovery took at least {}: the next fault or the end of the run came before {SUSTAINED_SECONDS_MIN} s \
             without a relapse; make the phase longer",
            format::seconds(least_s)
        ),
        _ => format!(
            "whether recovery was sustained is unknown: the next fault or the end of the run came within \
             {SUSTAINED_SECONDS_MIN} s; make the phase longer"
        ),
    }
}

/// The headline: its value and what stands below it.
pub(crate) fn headline(result: &RunResult) -> (String, String) {
    let text = |value: &str, detail: &str| (value.to_owned(), detail.to_owned());
    if result.faults.is_empty() {
        return text("no fault", "no fault was injected");
    }
    if result.faults.iter().all(|fault| fault.took_effect_s.is_none()) {
        return text("unknown", "no fault is known to have taken effect");
    }
    let Some(longest) = longest(result) else {
        return text("unknown", "the times without a success were not recorded");
    };
    let of = if result.faults.len() > 1 {
        format!("fault {} of {}", longest.number.ordinal(), result.faults.len())
    } else {
        "the fault".to_owned()
    };
    let (load, kind) =
        (&longest.load.load, results::fault_name(&longest.fault.kind, " of ", &longest.fault.target));
    match any(result) {
        Some(false) => {
            let low_s = |fault: &FaultResult| fault.below_95_percent_s.unwrap_or(0.0);
            let slowest = result.faults.iter().max_by(|one, other| low_s(one).total_cmp(&low_s(other)));
            let slowed = slowest.and_then(below).map(|below| {
                let after = if result.faults.len() > 1 { "after the worst fault, " } else { "" };
                format!("; {after}{below}")
            });
            let (gap, slowed) = (gap(longest.load), slowed.unwrap_or_default());
            let before = as_before(longest.load);
            ("none".to_owned(), format!("no interruption: longest gap {gap} ({load}, {of}){before}{slowed}"))
        }
        any => {
            let mut detail = format!("no success of {load} after {of} ({kind})");
            if let Some(below) = below(longest.fault) {
                detail.push_str("; ");
                detail.push_str(&below);
            }
            let back = back_for_good(longest.fault);
            if !back.is_empty() {
                detail.push_str("; ");
                detail.push_str(&back);
            }
            if any.is_none() {
                detail.push_str(&in_doubt(longest.load));
            }
            (gap(longest.load), detail)
        }
    }
}
