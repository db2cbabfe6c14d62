//! Live migration: the platform moves a node to another host while it runs. What a look must see is in `migration_looks`.

use std::sync::Arc;
use std::time::Duration;

use faults::{ReceiptOf, Struck};
use history::{FaultId, MigrationFacts, NodeId, Receipt, Verdict};
use platform::{MigrationOrder, NotMigrated};
use scenario::{Fault, MigrationFault};

use super::{Faulting, StandingFault, lock};
use crate::guest_clock::GuestClock;
use crate::migration_looks::{CallOff, MigrationLooks};
use crate::process_looks::Onlooker;

/// How long it may take until the database is seen to answer on the other host.
const ANSWER_AFTER: Duration = Duration::from_secs(30);
/// How long a migration may go on after its phase, or the run, is over.
const FINISHED_WITHIN: Duration = Duration::from_secs(30);

/// A migration under way, which ends by itself; and a clock that lags until the fault is over.
struct StandingMigration {
    called_off: Arc<CallOff>,
    guest_clock: Option<Arc<GuestClock>>,
}

impl StandingFault for StandingMigration {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, in_a_hurry: bool) {
        self.called_off.after(if in_a_hurry { Duration::ZERO } else { FINISHED_WITHIN });
        if let Some(look) = self.guest_clock.and_then(|clock| clock.set_right()) {
            let records = faulting.records.clone();
            // Whoever is to look may get no thread, or not come to an end.
            take_of_clock(&mut lock(&records).of(number).receipts, not_looked_at());
            faulting.in_background(move || {
                let receipt = look();
                take_of_clock(&mut lock(&records).of(number).receipts, receipt);
            });
        }
    }

    fn give_up(&mut self) {
        self.called_off.after(Duration::ZERO);
    }
}

impl Faulting {
    /// Has a node moved.
    pub(super) fn strike_migration(&mut self, number: FaultId, fault: &Fault, action: &MigrationFault) {
        let to = action.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        let mut record = self.record(fault, format!("{}{to}", action.node));
        let vm = self.node_of(number, action.node);
        let called_off = Arc::<CallOff>::default();
        let guest_clock = vm.filter(|_| action.has_guest_clock).map(|vm| self.guest_clock(number, vm));
        let looks = vm.and_then(|vm| {
            let address = self.platform.client_address(vm);
            let onlooker = Onlooker::new(&self.datacentre, (vm, address), None, self.longest_delay)?;
            let shared = (self.network_changes.clone(), called_off.clone(), guest_clock.clone());
            MigrationLooks::new(&self.datacentre, onlooker, self.longest_delay, shared)
        });
        let (Some(vm), Some(looks)) = (vm, looks) else {
            self.enter(number, &record);
            return self.nothing_answers(number, &record);
        };
        let host = self.datacentre.host_of(vm);
        record.struck = Struck::Nodes(vec![host.path.clone()]);
        (record.hits, record.vms) = (vec![host.name()], vec![vm]);
        self.enter(number, &record);
        let to = action.to.as_ref();
        let order = MigrationOrder {
            vm,
            to: to.and_then(|to| self.datacentre.hosts.find(|host| host.path == to.path)),
            memory_bytes: action.memory_bytes,
            stun: action.stun,
            max_rounds: action.max_rounds,
            moves_anyway: action.moves_anyway,
        };
        let standing = StandingMigration { called_off, guest_clock: guest_clock.clone() };
        self.standing.insert(number, Box::new(standing));
        let (platform, is_prevented) = (self.platform.clone(), self.prevented);
        let (told, healed, records) = (self.teller(), self.healing_teller(), self.records.clone());
        self.in_background(move || {
            let moved = if is_prevented { None } else { Some(platform.migrate(&order, &looks)) };
            // One that was given up while it stood still.
            guest_clock.iter().for_each(|clock| clock.go_on());
            match moved {
                Some(Ok(facts)) => {
                    let mut receipt = looks.judge_move();
                    receipt.evidence.push(copied_in_words(&facts));
                    receipt.evidence.extend(connections_in_words(&facts));
                    lock(&records).of(number).mended_s = Some(facts.ended_s);
                    told(number, Some(facts.began_s), receipt);
                    healed(number, facts.ended_s, looks.judge_return(ANSWER_AFTER));
                }
                Some(Err(error)) => told(number, None, not_made(&error, looks.has_run_again())),
                None => told(number, None, looks.judge_move()),
            }
        });
    }
}

impl Faulting {
    fn guest_clock(&self, number: FaultId, vm: NodeId) -> Arc<GuestClock> {
        let other = self.datacentre.vms_on().into_iter().find(|other| *other != vm);
        let other = other.map(|other| self.datacentre.vms[other].clone());
        Arc::new(GuestClock::new(self.datacentre.vms[vm].clone(), other, number))
    }
}

/// The receipt of a guest's clock as long as nobody has looked whether it is right again.
fn not_looked_at() -> Receipt {
    let what = "the guest clock was not read after correction";
    Receipt { verdict: Verdict::Unknown, evidence: vec![what.to_owned()] }
}

/// Takes the receipt of a guest's clock in place of the one before.
fn take_of_clock(receipts: &mut Vec<(ReceiptOf, Receipt)>, receipt: Receipt) {
    receipts.retain(|(of, _)| *of != ReceiptOf::GuestClock);
    receipts.push((ReceiptOf::GuestClock, receipt));
}

/// A migration that was not made has shown nothing.
fn not_made(error: &NotMigrated, has_run_again: bool) -> Receipt {
    let where_it_is = if has_run_again { "after it had arrived" } else { "the node stays where it was" };
    Receipt {
        verdict: Verdict::Fail,
        evidence: vec![format!("the migration was aborted, {where_it_is}: {error}")],
    }
}

/// What was copied, and how long the node stood still for it.
fn copied_in_words(facts: &MigrationFacts) -> String {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let rounds = facts.rounds.len();
    let seconds: f64 = facts.rounds.iter().map(|round| round.seconds).sum();
    format!(
        "{rounds} {} and a last one of {:.1} MiB: {:.1} MiB in {seconds:.1} s at {:.1} MiB/s, dirtied at {:.1} MiB/s; stunned for \
         {:.0} ms",
        if rounds == 1 { "round" } else { "rounds" },
        mib(facts.last_bytes as f64),
        mib(facts.bytes() as f64),
        mib(facts.copied_bytes_per_s().unwrap_or(0.0)),
        mib(facts.dirty_bytes_per_s().unwrap_or(0.0)),
        facts.stun_s.unwrap_or(0.0) * 1e3
    )
}

fn connections_in_words(facts: &MigrationFacts) -> Option<String> {
    let connections = facts.connections?;
    Some(format!(
        "{} of the {} connections that its kernel listed when it was stopped survived; {} were cut off",
        connections.survived, connections.before, connections.cut_off
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_clock_that_nobody_looked_at_again_leaves_doubt_and_one_that_was_looked_at_has_one_receipt() {
        let seen = |what: &str| Receipt { verdict: Verdict::Pass, evidence: vec![what.to_owned()] };
        let mut receipts =
            vec![(ReceiptOf::Effect, seen("it moved")), (ReceiptOf::Healing, seen("it answers"))];
        take_of_clock(&mut receipts, not_looked_at());
        let verdict = |receipts: &[(ReceiptOf, Receipt)]| {
            receipts.iter().map(|(_, receipt)| receipt.verdict).fold(Verdict::Pass, Verdict::and)
        };
        assert_eq!(verdict(&receipts), Verdict::Unknown);
        assert!(receipts[2].1.evidence[0].ends_with("was not read after correction"), "{receipts:?}");
        take_of_clock(&mut receipts, seen("the clock is right again"));
        assert_eq!((verdict(&receipts), receipts.len()), (Verdict::Pass, 3));
    }
}
