//! What each fault did: its receipt, the recovery after it, what it cost.
//!
//! Owns which lost write is laid to which fault. What a fault did to each load is [`damage`]'s business.

use faults::FaultRecord;
use faults::Finding;
use history::{Receipt, Verdict};
use measure::recovery::Window;
use results::{FaultLoadResult, FaultResult, RecoveryResult};

use super::damage;
use crate::conductor::Shown;
use crate::preparation::Prepared;

/// The writes that the run lost.
pub(super) struct Lost {
    /// How many, at least; absent where that could not be told.
    pub(super) count: Option<u64>,
    /// Those that are known one by one: all of them or none.
    pub(super) known: Vec<check::LostWrite>,
}

pub(super) fn fault_results(prepared: &Prepared, shown: &Shown, lost: &Lost) -> Vec<FaultResult> {
    let (series, windows) = (damage::series(prepared, shown), damage::windows(shown));
    let effects: Vec<Option<f64>> = shown.faults.iter().map(|fault| fault.took_effect_s).collect();
    let result = |(number, (fault, window)): (usize, (&FaultRecord, &Option<Window>))| {
        let loads = damage::by_load((number, fault), *window, &series, shown);
        FaultResult {
            kind: fault.kind.clone(),
            target: fault.target.clone(),
            hits: fault.hits.clone(),
            nodes: fault.vms.iter().map(|vm| scenario::node_name(*vm)).collect(),
            asked_s: fault.asked_s,
            took_effect_s: fault.took_effect_s,
            healed_s: fault.healed_s,
            receipt: whole_receipt(&fault.receipts, &fault.findings),
            lab_lost_synced: fault.findings.iter().any(|finding| finding.lab_lost_synced),
            gap_s: damage::worst(&loads, |load| load.gap_s),
            below_50_percent_s: damage::worst(&loads, |load| load.below_50_percent_s),
            below_95_percent_s: damage::worst(&loads, |load| load.below_95_percent_s),
            interrupted: is_interrupted(&loads),
            recovery_s: RecoveryResult {
                first_success: damage::worst(&loads, |load| load.recovery_s.first_success),
                back_to_95_percent: damage::worst(&loads, |load| load.recovery_s.back_to_95_percent),
                sustained: damage::worst(&loads, |load| load.recovery_s.sustained),
            },
            charged_until_s: window.map(|window| window.end_s),
            lost_operations: damage::sum(&loads, |load| load.lost_operations),
            lost_writes: lost.to_fault(number, &effects),
            throughput_ratio_during: damage::mean(&loads, |load| load.throughput_ratio_during),
            loads,
        }
    };
    shown.faults.iter().zip(&windows).enumerate().map(result).collect()
}

/// Whether any load was interrupted; that none was takes all of them to be known.
fn is_interrupted(loads: &[FaultLoadResult]) -> Option<bool> {
    let any = loads.iter().any(|load| load.interrupted == Some(true));
    let all_known = !loads.is_empty() && loads.iter().all(|load| load.interrupted.is_some());
    (any || all_known).then_some(any)
}

/// Evidence of effect, of what volumes lost and of healing together: as good as its weakest part, and unknown when a part is
/// missing. A finding that leaves doubt stands first.
fn whole_receipt(receipts: &[Receipt], findings: &[Finding]) -> Receipt {
    let verdicts = receipts.iter().map(|receipt| receipt.verdict);
    let verdicts = verdicts.chain(findings.iter().map(|finding| finding.verdict));
    let verdict = verdicts.fold(Verdict::Pass, Verdict::and);
    let of_receipts = receipts.iter().flat_map(|receipt| &receipt.evidence);
    let (shown, doubtful): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.verdict == Verdict::Pass);
    let (shown, doubtful) = (shown.iter(), doubtful.iter());
    let sentences = doubtful.map(|finding| &finding.sentence).chain(of_receipts);
    let mut evidence: Vec<String> =
        sentences.chain(shown.map(|finding| &finding.sentence)).cloned().collect();
    if receipts.len() < 2 && verdict == Verdict::Pass {
        evidence.push("there is no evidence that it healed".to_owned());
        return Receipt { verdict: Verdict::Unknown, evidence };
    }
    Receipt { verdict, evidence }
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
        assert_eq!(whole_receipt(std::slice::from_ref(&effect), &[]).verdict, Verdict::Unknown);
        assert_eq!(whole_receipt(&[effect.clone(), effect.clone()], &[]).verdict, Verdict::Pass);
        let not = Receipt { verdict: Verdict::Fail, evidence: vec!["not seen".into()] };
        assert_eq!(whole_receipt(&[effect, not], &[]).verdict, Verdict::Fail);
    }

    #[test]
    fn a_finding_counts_as_much_as_any_receipt_and_does_not_stand_in_for_one() {
        let seen = |what: &str| Receipt { verdict: Verdict::Pass, evidence: vec![what.into()] };
        let finding =
            |verdict, what: &str| Finding { verdict, sentence: what.into(), lab_lost_synced: false };
        let found = [finding(Verdict::Pass, "gone"), finding(Verdict::Fail, "still there")];
        let whole = whole_receipt(&[seen("off"), seen("on")], &found);
        assert_eq!(
            (whole.verdict, whole.evidence.join(", ")),
            (Verdict::Fail, "still there, off, on, gone".into())
        );
        assert_eq!(whole_receipt(&[seen("off")], &found[..1]).verdict, Verdict::Unknown);
    }
}
