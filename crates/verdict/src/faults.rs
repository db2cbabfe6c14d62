//! What each fault did: its receipt, the recovery after it, what it cost.
//!
//! Owns which lost write is laid to which fault. What a fault did to each load is [`damage`]'s business.

use std::ops::Add;

use faults::{FaultRecord, Finding, ReceiptOf, Struck};
use history::{AgentFacts, Event, FaultId, NodeId, Receipt, Verdict};
use measure::recovery::Window;
use results::losses::LostWrites;
use results::{FaultLoadResult, FaultResult, RecoveryResult, of_all};

use crate::damage;
use crate::shown::{Planned, Shown};

/// The writes that the run lost.
pub(crate) struct Lost {
    /// How many; absent where that could not be told.
    pub(crate) count: Option<LostWrites>,
    /// Those that are known one by one: all of them or none.
    pub(crate) known: Vec<check::LostWrite>,
}

pub(crate) fn fault_results(
    (planned, shown): (&Planned<'_>, &Shown),
    agents: &[AgentFacts],
    lost: &Lost,
    events: &[Event],
) -> Vec<FaultResult> {
    let (series, windows) = (damage::series(planned, shown, agents), damage::windows(shown));
    let active: Vec<Option<Active>> = shown.faults.iter().map(Active::of).collect();
    let result = |(number, (fault, window)): (FaultId, (&FaultRecord, &Option<Window>))| {
        let loads = damage::by_load((number, fault), *window, &series, shown);
        let lost_writes = lost.to_fault(number, &active);
        FaultResult {
            kind: fault.kind.clone(),
            target: fault.target.clone(),
            hits: fault.hits.clone(),
            nodes: fault.vms.iter().map(NodeId::to_string).collect(),
            asked_s: fault.asked_s,
            took_effect_s: fault.took_effect_s,
            healed_s: fault.healed_s,
            receipt: whole_receipt(&fault.receipts, &fault.findings, &volumes_struck(fault)),
            lab_lost_synced: fault.findings.iter().any(|finding| finding.lab_lost_synced),
            gap_s: of_all(&loads, |load| load.gap_s, f64::max),
            below_50_percent_s: of_all(&loads, |load| load.below_50_percent_s, f64::max),
            below_95_percent_s: of_all(&loads, |load| load.below_95_percent_s, f64::max),
            interrupted: is_interrupted(&loads),
            recovery_s: RecoveryResult {
                first_success: of_all(&loads, |load| load.recovery_s.first_success, f64::max),
                back_to_95_percent: of_all(&loads, |load| load.recovery_s.back_to_95_percent, f64::max),
                sustained: of_all(&loads, |load| load.recovery_s.sustained, f64::max),
            },
            new_leader_s: window.and_then(|window| {
                results::new_leader_s(planned.facts, events, (window.effect_s, window.end_s))
            }),
            charged_until_s: window.map(|window| window.end_s),
            lost_operations: of_all(&loads, |load| load.lost_operations, f64::add),
            lost_writes: lost_writes.map(LostWrites::known),
            lost_writes_at_least: lost_writes.is_some_and(LostWrites::is_at_least),
            throughput_ratio_during: of_all(&loads, |load| load.throughput_ratio_during, f64::min),
            phases: shown.recoveries.get(&number).cloned().unwrap_or_default(),
            loads,
        }
    };
    FaultId::of_each(shown.faults.iter().zip(&windows)).map(result).collect()
}

/// Whether any load was interrupted; that none was takes all of them to be known.
fn is_interrupted(loads: &[FaultLoadResult]) -> Option<bool> {
    let any = loads.iter().any(|load| load.interrupted == Some(true));
    let all_known = !loads.is_empty() && loads.iter().all(|load| load.interrupted.is_some());
    (any || all_known).then_some(any)
}

/// Whose volumes' losses a fault has to show: those of the nodes that lost their power, on the hosts that were hit and on
/// others, where one of these served the volume. Such a volume loses what was not synced like any other, because the
/// component that served it did; nothing of it goes on.
fn volumes_struck(fault: &FaultRecord) -> Vec<String> {
    if !matches!(fault.struck, Struck::Hosts(_)) {
        return Vec::new();
    }
    fault.vms.iter().chain(&fault.vms_elsewhere).map(NodeId::to_string).collect()
}

/// The kinds of receipts without which a fault is not shown, and what of it then is not.
const NEEDED: [(ReceiptOf, &str); 2] =
    [(ReceiptOf::Effect, "that it took effect"), (ReceiptOf::Healing, "that it healed")];

/// Evidence of effect, of what volumes lost and of healing together: as good as its weakest part, and unknown when a part is
/// missing, however many there are of another kind. A finding that leaves doubt stands first. Copies on the same hosts have
/// findings of their own, which stand for no node's volume.
fn whole_receipt(receipts: &[(ReceiptOf, Receipt)], findings: &[Finding], volumes: &[String]) -> Receipt {
    let verdicts = receipts.iter().map(|(_, receipt)| receipt.verdict);
    let verdicts = verdicts.chain(findings.iter().map(|finding| finding.verdict));
    let verdict = verdicts.fold(Verdict::Pass, Verdict::and);
    let of_receipts = receipts.iter().flat_map(|(_, receipt)| &receipt.evidence);
    let (shown, doubtful): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.verdict == Verdict::Pass);
    let (shown, doubtful) = (shown.iter(), doubtful.iter());
    let sentences = doubtful.map(|finding| &finding.sentence).chain(of_receipts);
    let mut evidence: Vec<String> =
        sentences.chain(shown.map(|finding| &finding.sentence)).cloned().collect();
    let is_missing = |kind: ReceiptOf| receipts.iter().all(|(of, _)| *of != kind);
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(kind, _)| is_missing(*kind)).map(|(_, what)| *what).collect();
    if !missing.is_empty() && verdict == Verdict::Pass {
        evidence.extend(missing.iter().map(|what| format!("there is no evidence {what}")));
        return Receipt { verdict: Verdict::Unknown, evidence };
    }
    let is_shown = |node: &String| findings.iter().any(|finding| finding.node.as_ref() == Some(node));
    let not_shown: Vec<&str> = volumes.iter().filter(|node| !is_shown(node)).map(String::as_str).collect();
    if !not_shown.is_empty() && verdict == Verdict::Pass {
        let nodes = not_shown.join(", ");
        evidence.insert(0, format!("there is no evidence of what was lost from the volume of {nodes}"));
        return Receipt { verdict: Verdict::Unknown, evidence };
    }
    Receipt { verdict, evidence }
}

/// From when to when a fault was active.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Active {
    from_s: f64,
    to_s: f64,
}

impl Active {
    /// Nothing for a fault that is not shown to have taken effect; without an end for one that nobody healed.
    fn of(fault: &FaultRecord) -> Option<Active> {
        let to_s = fault.mended_s.or(fault.healed_s).unwrap_or(f64::INFINITY);
        fault.took_effect_s.map(|from_s| Active { from_s, to_s })
    }
}

impl Lost {
    /// The part that is laid to one fault that took effect: absent where the lost writes are not known one by one, so
    /// that several faults would have to share a count, and where none of the known ones is laid to it and there may be more.
    fn to_fault(&self, number: FaultId, active: &[Option<Active>]) -> Option<LostWrites> {
        let (count, _) = (self.count?, active.get(number.index()).copied().flatten()?);
        if count.known() != self.known.len() as u64 {
            return (active.iter().flatten().count() == 1).then_some(count);
        }
        match (lost_to(number, active, &self.known), count) {
            (share, LostWrites::Exactly(_)) => Some(LostWrites::Exactly(share)),
            (0, LostWrites::AtLeast(_)) => None,
            (share, LostWrites::AtLeast(_)) => Some(LostWrites::AtLeast(share)),
        }
    }
}

/// A lost write is laid to the fault that was active when it was acknowledged, of several to the latest. One acknowledged
/// while none was active is laid to the next, because a failover loses what was acknowledged just before it; one
/// acknowledged after all of them, to the last.
fn lost_to(number: FaultId, active: &[Option<Active>], lost: &[check::LostWrite]) -> u64 {
    let known: Vec<(FaultId, Active)> =
        FaultId::of_each(active).filter_map(|(number, active)| Some((number, (*active)?))).collect();
    let earlier = |a: &&(FaultId, Active), b: &&(FaultId, Active)| a.1.from_s.total_cmp(&b.1.from_s);
    let culprit = |at_s: f64| {
        let during = known.iter().filter(|(_, active)| active.from_s <= at_s && at_s <= active.to_s);
        let next = known.iter().filter(|(_, active)| active.from_s >= at_s);
        let found = during.max_by(earlier).or_else(|| next.min_by(earlier));
        found.or_else(|| known.iter().max_by(earlier)).map(|(number, _)| *number)
    };
    lost.iter().filter(|write| culprit(write.completed_s) == Some(number)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: FaultId = FaultId::new(1);

    fn lost(completed_s: f64) -> check::LostWrite {
        check::LostWrite { value: 1, load: "l".into(), client: 1, invoked_s: 0.0, completed_s, node: None }
    }

    fn active(from_s: f64, to_s: f64) -> Option<Active> {
        Some(Active { from_s, to_s })
    }

    #[test]
    fn a_lost_write_is_laid_to_the_fault_during_which_it_was_acknowledged() {
        let faults = [active(10.0, 15.0), None, active(20.0, f64::INFINITY)];
        let writes = [lost(10.0), lost(11.0), lost(15.0), lost(20.5), lost(30.0)];
        assert_eq!(lost_to(FaultId::FIRST, &faults, &writes), 3);
        assert_eq!(lost_to(SECOND, &faults, &writes), 0);
        assert_eq!(lost_to(FaultId::new(2), &faults, &writes), 2);
    }

    #[test]
    fn a_lost_write_of_no_fault_is_laid_to_the_next_or_to_the_last() {
        let faults = [active(10.0, 15.0), active(20.0, 25.0)];
        let writes = [lost(5.0), lost(9.9), lost(16.0), lost(26.0)];
        assert_eq!(lost_to(FaultId::FIRST, &faults, &writes), 2);
        assert_eq!(lost_to(SECOND, &faults, &writes), 2);
    }

    #[test]
    fn of_two_active_faults_the_later_one_has_the_lost_write() {
        let faults = [active(10.0, 30.0), active(20.0, 25.0)];
        let writes = [lost(12.0), lost(21.0), lost(26.0)];
        assert_eq!(lost_to(FaultId::FIRST, &faults, &writes), 2);
        assert_eq!(lost_to(SECOND, &faults, &writes), 1);
    }

    #[test]
    fn losses_that_are_only_counted_are_laid_to_the_only_fault_or_to_none() {
        let (first, second) = (active(10.0, 15.0), active(20.0, 25.0));
        let counted = Lost { count: Some(LostWrites::Exactly(7)), known: Vec::new() };
        assert_eq!(counted.to_fault(FaultId::FIRST, &[first, None]), Some(LostWrites::Exactly(7)));
        assert_eq!(counted.to_fault(SECOND, &[first, None]), None);
        assert_eq!(counted.to_fault(FaultId::FIRST, &[first, second]), None);
        let none = Lost { count: Some(LostWrites::Exactly(0)), known: Vec::new() };
        assert_eq!(none.to_fault(SECOND, &[first, second]), Some(LostWrites::Exactly(0)));
        let open = Lost { count: None, known: Vec::new() };
        assert_eq!(open.to_fault(FaultId::FIRST, &[first]), None);
    }

    #[test]
    fn of_losses_that_may_be_more_a_fault_has_at_least_its_share_and_never_none() {
        let (first, second) = (active(10.0, 15.0), active(20.0, 25.0));
        let counted = Lost { count: Some(LostWrites::AtLeast(7)), known: Vec::new() };
        assert_eq!(counted.to_fault(FaultId::FIRST, &[first, None]), Some(LostWrites::AtLeast(7)));
        assert_eq!(counted.to_fault(FaultId::FIRST, &[first, second]), None);
        let known = Lost { count: Some(LostWrites::AtLeast(1)), known: vec![lost(12.0)] };
        assert_eq!(known.to_fault(FaultId::FIRST, &[first, second]), Some(LostWrites::AtLeast(1)));
        assert_eq!(known.to_fault(SECOND, &[first, second]), None);
    }

    fn seen(of: ReceiptOf, what: &str) -> (ReceiptOf, Receipt) {
        (of, Receipt { verdict: Verdict::Pass, evidence: vec![what.to_owned()] })
    }

    fn off() -> (ReceiptOf, Receipt) {
        seen(ReceiptOf::Effect, "off")
    }

    fn on() -> (ReceiptOf, Receipt) {
        seen(ReceiptOf::Healing, "on")
    }

    fn finding(node: Option<&str>, verdict: Verdict, what: &str) -> Finding {
        let (node, sentence) = (node.map(str::to_owned), what.to_owned());
        Finding { node, verdict, sentence, lab_lost_synced: false }
    }

    #[test]
    fn a_receipt_without_healing_is_not_whole() {
        assert_eq!(whole_receipt(&[off()], &[], &[]).verdict, Verdict::Unknown);
        assert_eq!(whole_receipt(&[off(), on()], &[], &[]).verdict, Verdict::Pass);
        let not = Receipt { verdict: Verdict::Fail, evidence: vec!["not seen".into()] };
        let not = (ReceiptOf::Healing, not);
        assert_eq!(whole_receipt(&[off(), not], &[], &[]).verdict, Verdict::Fail);
    }

    #[test]
    fn no_receipt_stands_in_for_one_of_healing_or_of_effect_however_many_there_are() {
        let stood = seen(ReceiptOf::Standing, "stood");
        let clock = seen(ReceiptOf::GuestClock, "right again");
        let check = |receipts: &[(ReceiptOf, Receipt)], missing: &str| {
            let doubtful = whole_receipt(receipts, &[], &[]);
            let last = doubtful.evidence.last().map(String::as_str);
            assert_eq!((doubtful.verdict, last), (Verdict::Unknown, Some(missing)), "{receipts:?}");
        };
        // Two receipts, and nobody looked whether it healed.
        for beside in [&stood, &clock, &off()] {
            check(&[beside.clone(), off()], "there is no evidence that it healed");
        }
        check(&[stood.clone(), on()], "there is no evidence that it took effect");
        assert_eq!(whole_receipt(&[stood, off(), clock, on()], &[], &[]).verdict, Verdict::Pass);
    }

    #[test]
    fn a_finding_counts_as_much_as_any_receipt_and_does_not_stand_in_for_one() {
        let of_n1 = |verdict, what| finding(Some("n1"), verdict, what);
        let found = [of_n1(Verdict::Pass, "gone"), of_n1(Verdict::Fail, "still there")];
        let volumes = ["n1".to_owned()];
        let whole = whole_receipt(&[off(), on()], &found, &volumes);
        assert_eq!(
            (whole.verdict, whole.evidence.join(", ")),
            (Verdict::Fail, "still there, off, on, gone".into())
        );
        assert_eq!(whole_receipt(&[off()], &found[..1], &volumes).verdict, Verdict::Unknown);
    }

    #[test]
    fn a_power_off_without_a_finding_of_each_nodes_own_volume_is_not_shown_and_says_whose() {
        let receipts = [off(), on()];
        let gone = |node| finding(node, Verdict::Pass, "gone");
        let volumes = ["n1".to_owned(), "n3".to_owned()];
        let of = |findings: &[Finding]| whole_receipt(&receipts, findings, &volumes);
        assert_eq!(of(&[gone(Some("n1")), gone(Some("n3"))]).verdict, Verdict::Pass);
        // As many as there are nodes, and yet none of n3.
        for instead in [Some("n1"), Some("n2"), None] {
            let doubtful = of(&[gone(Some("n1")), gone(instead)]);
            let expected = "there is no evidence of what was lost from the volume of n3";
            assert_eq!((doubtful.verdict, doubtful.evidence[0].as_str()), (Verdict::Unknown, expected));
        }
        assert_eq!(of(&[]).evidence[0], "there is no evidence of what was lost from the volume of n1, n3");
        assert_eq!(whole_receipt(&receipts, &[], &[]).verdict, Verdict::Pass);
    }

    #[test]
    fn only_nodes_that_lost_their_power_have_losses_to_show() {
        let path = vec!["dc1".to_owned()];
        let struck = |struck| {
            volumes_struck(&FaultRecord {
                struck,
                vms: [0, 2].map(NodeId::new).to_vec(),
                ..FaultRecord::default()
            })
        };
        assert_eq!(struck(Struck::Hosts(vec![path.clone()])), ["n1", "n3"]);
        assert!(struck(Struck::Nodes(vec![path])).is_empty());
    }

    #[test]
    fn a_node_elsewhere_that_died_because_its_volume_was_served_from_a_struck_host_has_its_loss_to_show() {
        let struck = Struck::Hosts(vec![vec!["dc1".to_owned()]]);
        let fault = FaultRecord {
            struck,
            vms: vec![NodeId::FIRST],
            vms_elsewhere: vec![NodeId::new(1)],
            ..FaultRecord::default()
        };
        let volumes = volumes_struck(&fault);
        assert_eq!(volumes, ["n1", "n2"]);
        let receipts = [off(), on()];
        let own = finding(Some("n1"), Verdict::Pass, "gone");
        let doubtful = whole_receipt(&receipts, std::slice::from_ref(&own), &volumes);
        let expected = "there is no evidence of what was lost from the volume of n2";
        assert_eq!((doubtful.verdict, doubtful.evidence[0].as_str()), (Verdict::Unknown, expected));
        let both = [own, finding(Some("n2"), Verdict::Pass, "gone")];
        assert_eq!(whole_receipt(&receipts, &both, &volumes).verdict, Verdict::Pass);
    }
}
