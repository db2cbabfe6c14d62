//! Faults aimed at the leader or at a follower, while no node leads: they wait for a short time.
//!
//! Owns which faults wait, for how long, and what is said of it. Who leads is asked on a thread of its own, because silent nodes
//! take long to ask: other faults are struck meanwhile. How often the faults that wait are looked at is the caller's business.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use history::{FaultId, NodeId};
use scenario::Fault;

use super::Faulting;

/// How long a fault waits for a node to lead.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two times that it is asked who leads.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What is known of a fault whose target depends on who leads, at the moment it is struck.
pub(super) struct Aim {
    /// When it was asked for.
    pub(super) asked_s: f64,
    /// Who leads; with nobody, nothing is struck.
    leader: Option<NodeId>,
    /// How long it waited, if it did.
    pub(super) waited: Option<String>,
}

/// A fault that waits for a node to lead. Dropping it ends the asking.
pub(super) struct Waiting {
    fault: Fault,
    due_s: f64,
    since: Instant,
    asking: Arc<LeaderInquiry>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.asking.is_over.store(true, Ordering::Release);
    }
}

/// The question who leads, asked again and again.
#[derive(Default)]
struct LeaderInquiry {
    /// The last answer.
    leader: Mutex<Option<NodeId>>,
    is_over: AtomicBool,
}

impl LeaderInquiry {
    fn leader(&self) -> MutexGuard<'_, Option<NodeId>> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, mut who_leads: impl FnMut() -> Option<NodeId>, until: Instant) {
        while !self.is_over.load(Ordering::Acquire) && Instant::now() < until {
            let answer = who_leads();
            *self.leader() = answer;
            std::thread::sleep(ASK_EVERY);
        }
    }
}

impl Faulting {
    /// Strikes. A fault whose target depends on who leads waits while no node does, until [`Faulting::take_up`] or
    /// [`Faulting::call_off`] ends that.
    pub fn strike(&mut self, number: FaultId, fault: &Fault) {
        if !fault.action.depends_on_leader() {
            return self.strike_now(number, fault);
        }
        let asked_s = self.events.now_s();
        match self.platform.leader_by_asking() {
            Some(leader) => {
                self.strike_at(number, fault, Aim { asked_s, leader: Some(leader), waited: None });
            }
            None => self.wait_for_a_leader(number, fault, asked_s),
        }
    }

    /// Strikes the faults that waited for a node to lead, if one does now, and gives up those that have waited for long. Whether
    /// some still wait.
    pub fn take_up(&mut self) -> bool {
        let numbers: Vec<FaultId> = self.waiting.keys().copied().collect();
        for number in numbers {
            let Some(waiting) = self.waiting.get(&number) else { continue };
            // A fault struck just before may have cost it its power.
            let on = self.datacentre.vms_on();
            let leader = waiting.asking.leader().filter(|vm| on.contains(vm));
            if leader.is_some() || waiting.since.elapsed() >= PATIENCE {
                self.end_wait(number, leader);
            }
        }
        !self.waiting.is_empty()
    }

    /// The faults that wait for a node to lead wait no longer: nothing is done.
    pub fn call_off(&mut self) {
        let numbers: Vec<FaultId> = self.waiting.keys().copied().collect();
        for number in numbers {
            self.end_wait(number, None);
        }
    }

    /// Who leads, for the fault that is struck now.
    pub(super) fn leader(&self) -> Option<NodeId> {
        match &self.aim {
            Some(aim) => aim.leader,
            None => self.platform.leader_by_asking(),
        }
    }

    fn wait_for_a_leader(&mut self, number: FaultId, fault: &Fault, due_s: f64) {
        let kind = fault.action.kind_name();
        self.events.progress(format!("fault {} ({kind}) waits: no node leads", number.ordinal()));
        let (since, asking) = (Instant::now(), Arc::<LeaderInquiry>::default());
        let waiting = Waiting { fault: fault.clone(), due_s, since, asking: asking.clone() };
        self.waiting.insert(number, waiting);
        let platform = self.platform.clone();
        self.in_background(move || asking.ask(|| platform.leader_by_asking(), since + PATIENCE));
    }

    /// Ends a fault's waiting, if it waits: it is struck, or, where no node leads, its record says that nothing was done.
    pub(super) fn end_wait(&mut self, number: FaultId, leader: Option<NodeId>) {
        let Some(waiting) = self.waiting.remove(&number) else { return };
        let asked_s = self.events.now_s();
        let waited = waited_in_words(waiting.due_s, asked_s - waiting.due_s, leader.is_some());
        // What happened while it waited is not its doing, nor does it end the time of an earlier fault before it strikes.
        let aim = Aim { asked_s, leader, waited: Some(waited) };
        let mut fault = waiting.fault.clone();
        // It still ends when the schedule says: probes are paced for what is left.
        fault.length = fault.length.map(|length| length.saturating_sub(waiting.since.elapsed()));
        drop(waiting);
        self.strike_at(number, &fault, aim);
    }

    fn strike_at(&mut self, number: FaultId, fault: &Fault, aim: Aim) {
        self.aim = Some(aim);
        self.strike_now(number, fault);
        self.aim = None;
    }
}

fn waited_in_words(due_s: f64, waited_s: f64, is_led: bool) -> String {
    let none = if is_led { "" } else { "; none did" };
    format!("it was due at {due_s:.1} s and waited {waited_s:.1} s for a node to lead{none}")
}

#[cfg(test)]
mod tests {
    use scenario::{FaultAction, FaultTarget, Level, PowerOffFault};

    use super::*;

    /// What is known of the leader once these answers have come.
    fn known_after(answers: &[Option<NodeId>]) -> Option<NodeId> {
        let (asking, mut asked) = (LeaderInquiry::default(), 0);
        let next = || {
            asked += 1;
            asking.is_over.store(asked == answers.len(), Ordering::Release);
            answers[asked - 1]
        };
        asking.ask(next, Instant::now() + Duration::from_secs(3600));
        *asking.leader()
    }

    #[test]
    fn a_leader_elected_while_a_fault_waits_is_found_and_one_that_leads_no_more_is_not() {
        assert_eq!(known_after(&[None, None, Some(NodeId::new(2))]), Some(NodeId::new(2)));
        assert_eq!(known_after(&[Some(NodeId::new(2)), None]), None);
    }

    #[test]
    fn nobody_is_asked_for_a_fault_that_no_longer_waits() {
        let asking = Arc::<LeaderInquiry>::default();
        let action = FaultAction::PowerOff(PowerOffFault { target: FaultTarget::Leader(Level::Host) });
        let fault = Fault { action, at: Duration::ZERO, length: None, flap: None };
        drop(Waiting { fault, due_s: 0.0, since: Instant::now(), asking: asking.clone() });
        asking.ask(|| Some(NodeId::FIRST), Instant::now() + Duration::from_secs(3600));
        assert_eq!(*asking.leader(), None);
    }

    #[test]
    fn what_is_said_of_a_wait_tells_when_the_fault_was_due_and_whether_a_node_led() {
        let said = |is_led| waited_in_words(18.0, 2.34, is_led);
        assert_eq!(said(true), "it was due at 18.0 s and waited 2.3 s for a node to lead");
        assert_eq!(said(false), "it was due at 18.0 s and waited 2.3 s for a node to lead; none did");
    }
}
