//! What is known of one fault of a run: what was asked, what was hit, when, and what showed it.
//!
//! Facts alone. Whoever breaks and looks writes it; predictions and results read it.

use history::{FaultId, HostId, NodeId, Receipt, Verdict};

use crate::struck::Struck;

/// All that is known of one fault.
#[derive(Debug, Clone, Default)]
pub struct FaultRecord {
    /// The word of a scenario: `power-off`.
    pub kind: String,
    /// What it was aimed at, as written.
    pub target: String,
    /// What was hit.
    pub struck: Struck,
    /// Whether it is aimed at whoever leads.
    pub aims_at_leader: bool,
    /// Whether it comes and goes, so that it leaves no one state.
    pub comes_and_goes: bool,
    /// Hosts hit.
    pub hosts: Vec<HostId>,
    /// Paths of the hosts hit.
    pub hits: Vec<String>,
    /// VMs that ran there.
    pub vms: Vec<NodeId>,
    /// VMs that died with these hosts and were not among them: on other hosts where a component on one of these served
    /// their volume, or started there in the last moment.
    pub vms_elsewhere: Vec<NodeId>,
    /// Who led just before, where that decides what a partition leaves and somebody said so.
    pub leader: Option<NodeId>,
    /// When it was asked for.
    pub asked_s: f64,
    /// When it took effect, if a receipt shows that it did.
    pub took_effect_s: Option<f64>,
    /// When it was healed, if a receipt shows that it was.
    pub healed_s: Option<f64>,
    /// When its hosts were given power again, shown or not.
    pub mended_s: Option<f64>,
    /// The receipts so far, each with what it is of.
    pub receipts: Vec<(ReceiptOf, Receipt)>,
    /// What the marks on the volumes have shown so far.
    pub findings: Vec<Finding>,
}

/// The records of all faults asked for so far, in the order of the schedule.
#[derive(Debug, Default)]
pub struct FaultRecords(Vec<FaultRecord>);

impl FaultRecords {
    /// The record of a fault; a blank one where nothing is known of it yet.
    pub fn of(&mut self, fault: FaultId) -> &mut FaultRecord {
        if self.0.len() <= fault.index() {
            self.0.resize(fault.index() + 1, FaultRecord::default());
        }
        &mut self.0[fault.index()]
    }

    /// All of them: as many as there are faults up to the last that was asked for.
    #[must_use]
    pub fn all(&self) -> &[FaultRecord] {
        &self.0
    }
}

/// What a receipt of a fault is of. None stands in for one of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptOf {
    /// That it took effect.
    Effect,
    /// What it showed until it was lifted, where nothing had been told of its effect by then.
    Standing,
    /// That it healed; of processes that stay dead, that they are.
    Healing,
    /// That the clock of a node that was moved is right again. The move has a receipt of its healing beside it.
    GuestClock,
}

/// What the marks have shown after one power-off, or that a volume could not be brought back at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The node whose own volume its mark is on; none for a copy of one that went on, and without a mark.
    pub node: Option<String>,
    /// `Fail` when something stayed that was not synced; `Unknown` when what was synced is gone, or it could not be seen.
    pub verdict: Verdict,
    /// As a person would say it.
    pub sentence: String,
    /// Whether what was synced is gone although nothing explains that, or may be: the lab itself lost it, and whatever the
    /// database lacks may be the lab's doing.
    pub lab_lost_synced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_is_known_before_an_earlier_one_keeps_its_place() {
        let mut records = FaultRecords::default();
        records.of(FaultId::new(2)).kind = "partition".to_owned();
        records.of(FaultId::FIRST).kind = "power-off".to_owned();
        let kinds: Vec<&str> = records.all().iter().map(|record| record.kind.as_str()).collect();
        assert_eq!(kinds, ["power-off", "", "partition"]);
    }
}
