//! The end of a lab whose volumes are to serve another run: its nodes lose their power, and it is told what of it is not as it
//! was at the start.
//!
//! The next run gets namespaces, a network, clocks and a supervisor of its own, so nothing but the volumes goes over to it.
//! Yet a lab in which something did not end or come back as it should is not understood, and what is not understood is not
//! used again.

use std::time::{Duration, Instant};

use history::{FaultId, Verdict};
use platform::Datacentre;
use results::{FaultResult, RunResult};

/// How long processes may take to be gone once their node has no power.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether they are.
const GLANCE: Duration = Duration::from_millis(10);

/// Something of a lab that is not as it was at the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LabDoubt {
    /// The run was broken off, whatever was under way.
    #[error("the run was interrupted")]
    Interrupted,
    /// The lab itself stood still.
    #[error("the lab stalled during the run")]
    Stalled,
    /// A fault was not shown to have taken effect and to have healed, or took what was synced.
    #[error("fault {} ({kind}) has no receipt", fault.ordinal())]
    NoReceipt {
        /// Which.
        fault: FaultId,
        kind: String,
    },
    /// What was not synced is in part still on a volume.
    #[error("{volume} could not be brought back to what was durable: {why}")]
    NotBroughtBack {
        /// The volume, or a component of it, in words.
        volume: String,
        /// Why, in words.
        why: String,
    },
    /// A host did not get its power back.
    #[error("host {host} is still without power")]
    HostOff {
        /// Its path.
        host: String,
    },
    /// A node's power could not be cut, or its volume not rolled back.
    #[error("{node} did not power off: {why}")]
    NodeOn {
        node: String,
        /// Why, in words.
        why: String,
    },
    /// Processes outlived their nodes.
    #[error("processes are left in the lab: {}", programs.join(", "))]
    ProcessesLeft { programs: Vec<String> },
    /// Nobody can tell which processes are left.
    #[error("the processes of the lab could not be listed: {why}")]
    Unlisted {
        /// Why, in words.
        why: String,
    },
}

/// Cuts the power of every node, and tells what is not as it was at the start.
pub(crate) fn end(result: &RunResult, was_interrupted: bool, datacentre: &Datacentre) -> Vec<LabDoubt> {
    let mut doubts = of_the_run(result, was_interrupted);
    let off = datacentre.hosts.iter().filter(|host| !host.is_on());
    doubts.extend(off.map(|host| LabDoubt::HostOff { host: host.name() }));
    for (node, vm) in datacentre.vms.numbered() {
        if let Err(error) = datacentre.power_off_vm(node) {
            doubts.push(LabDoubt::NodeOn { node: vm.name().to_owned(), why: error.to_string() });
        }
    }
    match processes_left() {
        Ok(programs) if programs.is_empty() => {}
        Ok(programs) => doubts.push(LabDoubt::ProcessesLeft { programs }),
        Err(error) => doubts.push(LabDoubt::Unlisted { why: error.to_string() }),
    }
    doubts
}

fn of_the_run(result: &RunResult, was_interrupted: bool) -> Vec<LabDoubt> {
    let interrupted = was_interrupted.then_some(LabDoubt::Interrupted);
    let stalled = (!result.lab.stalls.is_empty()).then_some(LabDoubt::Stalled);
    let is_unshown = |fault: &FaultResult| fault.receipt.verdict != Verdict::Pass || fault.lab_lost_synced;
    let unshown = FaultId::of_each(&result.faults).filter(|(_, fault)| is_unshown(fault));
    let unshown = unshown.map(|(id, fault)| LabDoubt::NoReceipt { fault: id, kind: fault.kind.clone() });
    let failed = result.lab.failed_rollbacks.iter();
    let failed =
        failed.map(|seen| LabDoubt::NotBroughtBack { volume: seen.volume.clone(), why: seen.why.clone() });
    interrupted.into_iter().chain(stalled).chain(unshown).chain(failed).collect()
}

/// The programs that still run when they have had time to end.
fn processes_left() -> std::io::Result<Vec<String>> {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let programs = lab::process_table::beside_the_supervisor()?;
        if programs.is_empty() || Instant::now() >= deadline {
            return Ok(programs);
        }
        std::thread::sleep(GLANCE);
    }
}

#[cfg(test)]
mod tests {
    use history::{LabPart, Receipt, RunFacts, Stall};
    use results::{FailedRollbackResult, LabResult};

    use super::*;

    fn fault(verdict: Verdict, lab_lost_synced: bool) -> FaultResult {
        let receipt = Receipt { verdict, evidence: Vec::new() };
        FaultResult { lab_lost_synced, receipt, ..FaultResult::asked("power-off", "", 1.0) }
    }

    fn check(faults: Vec<FaultResult>, stalls: usize, was_interrupted: bool, expected: &[&str]) {
        let stall = Stall::of(vec![LabPart::Fabric], 1.0, 2.0);
        let lab = LabResult { stalls: vec![stall; stalls], ..LabResult::default() };
        let result = RunResult { faults, lab, ..RunResult::blank(RunFacts::default()) };
        let told: Vec<String> =
            of_the_run(&result, was_interrupted).iter().map(LabDoubt::to_string).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn a_lab_is_in_doubt_after_a_stall_an_interrupt_and_a_fault_without_a_receipt_but_not_after_a_failure() {
        check(vec![fault(Verdict::Pass, false)], 0, false, &[]);
        check(Vec::new(), 2, false, &["the lab stalled during the run"]);
        check(Vec::new(), 0, true, &["the run was interrupted"]);
        let unshown = "fault 2 (power-off) has no receipt";
        check(vec![fault(Verdict::Pass, false), fault(Verdict::Unknown, false)], 0, false, &[unshown]);
        check(vec![fault(Verdict::Pass, false), fault(Verdict::Pass, true)], 0, false, &[unshown]);
    }

    #[test]
    fn a_lab_with_a_volume_that_could_not_be_brought_back_is_in_doubt() {
        let (node, volume, why) = ("n1".to_owned(), "the volume of n1".to_owned(), "EIO".to_owned());
        let failed_rollbacks = vec![FailedRollbackResult { t_s: 1.0, node, volume, why }];
        let lab = LabResult { failed_rollbacks, ..LabResult::default() };
        let result = RunResult { lab, ..RunResult::blank(RunFacts::default()) };
        let told: Vec<String> = of_the_run(&result, false).iter().map(LabDoubt::to_string).collect();
        assert_eq!(told, ["the volume of n1 could not be brought back to what was durable: EIO"]);
    }
}
