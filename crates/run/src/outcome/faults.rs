//! What each fault did: its receipt, the recovery after it, what it cost.
//!
//! Owns which lost write is laid to which fault. How recovery is measured is `measure`'s business.

use history::{Receipt, Verdict};
use measure::{Timeline, recovery};
use report::result::{FaultResult, RecoveryResult};
use scenario::Scenario;

use crate::conductor::Shown;
use crate::faulting::FaultRecord;
use crate::preparation::Prepared;

/// The phase that recovery is measured against.
pub(crate) const BASELINE: &str = "baseline";

/// The writes that the run lost.
pub(super) struct Lost {
    /// How many, at least; absent where that could not be told.
    pub(super) count: Option<u64>,
    /// Those that are known one by one: all of them or none.
    pub(super) known: Vec<check::LostWrite>,
}

/// Throughput second by second of each load, and its baseline, for those that have one.
fn series_with_baseline(prepared: &Prepared, timeline: &Timeline) -> Vec<(Vec<(u64, u64)>, f64)> {
    let Some(baseline) = prepared.facts.phases.iter().find(|phase| phase.name == BASELINE) else {
        return Vec::new();
    };
    let loads = prepared.facts.loads.iter();
    loads
        .filter_map(|load| {
            let series = timeline.throughput(&load.name, &load.transaction);
            let per_s = recovery::baseline_per_s(&series, baseline.from_s, baseline.to_s)?;
            Some((series, per_s))
        })
        .collect()
}

pub(super) fn fault_results(
    scenario: &Scenario,
    prepared: &Prepared,
    shown: &Shown,
    lost: &Lost,
) -> Vec<FaultResult> {
    let series = series_with_baseline(prepared, &shown.recorded.timeline);
    let loads = scenario.loads.len();
    let effects: Vec<Option<f64>> = shown.faults.iter().map(|fault| fault.took_effect_s).collect();
    let result = |(number, fault): (usize, &FaultRecord)| {
        let during = fault.took_effect_s.map(|from_s| (from_s, fault.mended_s.unwrap_or(shown.ended_s)));
        FaultResult {
            kind: fault.kind.clone(),
            target: fault.target.clone(),
            hits: fault.hits.clone(),
            nodes: fault.vms.iter().map(|vm| crate::datacentre::node_name(*vm)).collect(),
            asked_s: fault.asked_s,
            took_effect_s: fault.took_effect_s,
            healed_s: fault.healed_s,
            receipt: whole_receipt(&fault.receipts),
            recovery_s: recovery_of(number, fault, shown, &series, loads),
            lost_operations: sum_over(&series, |series, per_s| {
                recovery::lost_operations(series, per_s, fault.took_effect_s?)
            }),
            lost_writes: lost.to_fault(number, &effects),
            throughput_ratio_during: during.and_then(|(from_s, to_s)| ratio_during(&series, from_s, to_s)),
        }
    };
    shown.faults.iter().enumerate().map(result).collect()
}

/// Evidence of effect and of healing together: as good as its weakest part, and unknown when a part is missing.
fn whole_receipt(receipts: &[Receipt]) -> Receipt {
    let verdict = receipts.iter().fold(Verdict::Pass, |verdict, receipt| verdict.and(receipt.verdict));
    let mut evidence: Vec<String> = receipts.iter().flat_map(|receipt| receipt.evidence.clone()).collect();
    if receipts.len() < 2 && verdict == Verdict::Pass {
        evidence.push("there is no evidence of its healing".to_owned());
        return Receipt { verdict: Verdict::Unknown, evidence };
    }
    Receipt { verdict, evidence }
}

/// With several loads the slowest to recover counts.
fn recovery_of(
    number: usize,
    fault: &FaultRecord,
    shown: &Shown,
    series: &[(Vec<(u64, u64)>, f64)],
    loads: usize,
) -> RecoveryResult {
    let Some(effect_s) = fault.took_effect_s else { return RecoveryResult::default() };
    let firsts: Vec<f64> =
        shown.recorded.first_success.iter().filter(|first| first.0 == number).map(|first| first.2).collect();
    let backs: Option<Vec<f64>> =
        series.iter().map(|(series, per_s)| recovery::back_to_95_percent(series, *per_s, effect_s)).collect();
    let slowest = |times: Vec<f64>| times.into_iter().reduce(f64::max);
    RecoveryResult {
        first_success: if firsts.len() == loads { slowest(firsts) } else { None },
        back_to_95_percent: backs.filter(|backs| backs.len() == loads).and_then(slowest),
    }
}

fn sum_over(
    series: &[(Vec<(u64, u64)>, f64)],
    part: impl Fn(&[(u64, u64)], f64) -> Option<f64>,
) -> Option<f64> {
    let parts: Option<Vec<f64>> = series.iter().map(|(series, per_s)| part(series, *per_s)).collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.iter().sum())
}

/// Of several loads the mean of their ratios, so that a fast load does not drown a slow one.
fn ratio_during(series: &[(Vec<(u64, u64)>, f64)], from_s: f64, to_s: f64) -> Option<f64> {
    let sum =
        sum_over(series, |series, per_s| recovery::throughput_ratio_during(series, per_s, from_s, to_s))?;
    Some(sum / series.len() as f64)
}

impl Lost {
    /// The part that is laid to one fault that took effect: absent where the lost writes are not known one by one, so
    /// that several faults would have to share a count.
    fn to_fault(&self, number: usize, effects: &[Option<f64>]) -> Option<u64> {
        let (count, _) = (self.count?, effects.get(number).copied().flatten()?);
        if count == self.known.len() as u64 {
            return Some(lost_to(number, effects, &self.known));
        }
        (effects.iter().flatten().count() == 1).then_some(count)
    }
}

/// A lost write is laid to the first fault that took effect after it was acknowledged; one acknowledged after all of
/// them, to the last.
fn lost_to(number: usize, effects: &[Option<f64>], lost: &[check::LostWrite]) -> u64 {
    let known: Vec<(usize, f64)> =
        effects.iter().enumerate().filter_map(|(number, effect)| Some((number, (*effect)?))).collect();
    let culprit = |completed_s: f64| {
        let next =
            known.iter().filter(|(_, effect)| *effect >= completed_s).min_by(|a, b| a.1.total_cmp(&b.1));
        next.or_else(|| known.iter().max_by(|a, b| a.1.total_cmp(&b.1))).map(|(number, _)| *number)
    };
    lost.iter().filter(|write| culprit(write.completed_s) == Some(number)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(completed_s: f64) -> check::LostWrite {
        check::LostWrite { value: 1, load: "l".into(), client: 1, invoked_s: 0.0, completed_s, node: None }
    }

    #[test]
    fn a_lost_write_is_laid_to_the_first_fault_after_its_acknowledgement() {
        let effects = [Some(10.0), None, Some(20.0)];
        let writes = [lost(5.0), lost(10.0), lost(11.0), lost(30.0)];
        assert_eq!(lost_to(0, &effects, &writes), 2);
        assert_eq!(lost_to(1, &effects, &writes), 0);
        assert_eq!(lost_to(2, &effects, &writes), 2);
    }

    #[test]
    fn losses_that_are_only_counted_are_laid_to_the_only_fault_or_to_none() {
        let counted = Lost { count: Some(7), known: Vec::new() };
        assert_eq!(counted.to_fault(0, &[Some(10.0), None]), Some(7));
        assert_eq!(counted.to_fault(1, &[Some(10.0), None]), None);
        assert_eq!(counted.to_fault(0, &[Some(10.0), Some(20.0)]), None);
        let none = Lost { count: Some(0), known: Vec::new() };
        assert_eq!(none.to_fault(1, &[Some(10.0), Some(20.0)]), Some(0));
        let open = Lost { count: None, known: Vec::new() };
        assert_eq!(open.to_fault(0, &[Some(10.0)]), None);
    }

    #[test]
    fn a_receipt_without_healing_is_not_whole() {
        let effect = Receipt { verdict: Verdict::Pass, evidence: vec!["seen".into()] };
        assert_eq!(whole_receipt(std::slice::from_ref(&effect)).verdict, Verdict::Unknown);
        assert_eq!(whole_receipt(&[effect.clone(), effect.clone()]).verdict, Verdict::Pass);
        let not = Receipt { verdict: Verdict::Fail, evidence: vec!["not seen".into()] };
        assert_eq!(whole_receipt(&[effect, not]).verdict, Verdict::Fail);
    }
}
