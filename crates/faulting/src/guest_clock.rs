//! The wall clock of a node that is moved, where it is the guest's own and not read from the host: it stands still during the
//! stun, and lags by that from then on until it is set right.
//!
//! What programs on the node see of it is looked at by `clock_looks`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clock::{Rate, Shift};
use history::{FaultId, Receipt, Verdict};
use lab::node_clock::machine_ns;
use platform::Vm;

use crate::clock_looks::{Before, Onlooker, WrongClock};

/// The clock. Dropping it sets it right.
pub(crate) struct GuestClock {
    onlooker: Onlooker,
    /// The fault that moves the node.
    fault: FaultId,
    state: Mutex<State>,
}

struct State {
    before: Option<Before>,
    goes: Goes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    /// As it would without the migration.
    Right,
    /// Not since this moment of the machine's clock.
    StandsStill { since_ns: i64 },
    /// On, but so much behind.
    Lags { by_ns: i64 },
    /// It was set right, and stays so.
    SetRight,
}

impl Goes {
    /// By how much programs must see it lag now; nothing where it was not to lag.
    fn lag_to_see(self) -> Option<Result<i64, Receipt>> {
        match self {
            Goes::Lags { by_ns } => Some(Ok(by_ns)),
            // The phase ended first: whoever set it right did not know whether anybody had looked.
            Goes::SetRight => {
                let what = "the guest clock was corrected before its lag was measured: lengthen the phase";
                Some(Err(Receipt { verdict: Verdict::Unknown, evidence: vec![what.to_owned()] }))
            }
            Goes::Right | Goes::StandsStill { .. } => None,
        }
    }
}

impl GuestClock {
    /// Of a node; another must stay as it is.
    pub(crate) fn new(vm: Arc<Vm>, other: Option<Arc<Vm>>, fault: FaultId) -> GuestClock {
        let onlooker = Onlooker { vm, other };
        let before = Some(onlooker.look_before(fault));
        GuestClock { onlooker, fault, state: Mutex::new(State { before, goes: Goes::Right }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn impose(&self, shift: Shift) {
        if let Some(clock) = self.onlooker.vm.clock() {
            clock.impose(self.fault.index(), shift);
        }
    }

    /// The node is stunned.
    pub(crate) fn stop(&self) {
        let (mut state, since_ns) = (self.state(), machine_ns());
        if state.goes == Goes::Right {
            self.impose(Shift::running_away(Rate::STANDING_STILL, since_ns));
            state.goes = Goes::StandsStill { since_ns };
        }
    }

    /// The node goes on.
    pub(crate) fn go_on(&self) {
        let mut state = self.state();
        if let Goes::StandsStill { since_ns } = state.goes {
            let by_ns = machine_ns() - since_ns;
            self.impose(Shift::jump(-by_ns));
            state.goes = Goes::Lags { by_ns };
        }
    }

    /// Whether programs on the node see it lag; nothing where it does not.
    pub(crate) fn look(&self) -> Option<Receipt> {
        let (wrong, before) = {
            let mut state = self.state();
            let by_ns = match state.goes.lag_to_see()? {
                Ok(by_ns) => by_ns,
                Err(receipt) => return Some(receipt),
            };
            (WrongClock { fault: self.fault, shift: Shift::jump(-by_ns) }, state.before.take()?)
        };
        Some(self.onlooker.look_at_effect(&wrong, before, &AtomicBool::new(false)))
    }

    /// Sets it right for good. Returns what looks whether programs see that; nothing where it did not lag.
    pub(crate) fn set_right(self: &Arc<Self>) -> Option<impl FnOnce() -> Receipt + Send + use<>> {
        let was = std::mem::replace(&mut self.state().goes, Goes::SetRight);
        self.lift();
        let Goes::Lags { by_ns } = was else { return None };
        let wrong = WrongClock { fault: self.fault, shift: Shift::jump(-by_ns) };
        let clock = self.clone();
        Some(move || clock.onlooker.look_at_healing(&wrong, -by_ns))
    }

    fn lift(&self) {
        if let Some(clock) = self.onlooker.vm.clock() {
            clock.lift(self.fault.index());
        }
    }
}

impl Drop for GuestClock {
    fn drop(&mut self) {
        self.lift();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_right_before_it_was_seen_to_lag_leaves_doubt() {
        assert_eq!(Goes::Lags { by_ns: 5 }.lag_to_see(), Some(Ok(5)));
        let doubt = Goes::SetRight.lag_to_see().and_then(Result::err).expect("a doubt");
        assert_eq!(doubt.verdict, Verdict::Unknown);
        assert!(doubt.evidence[0].contains("lengthen the phase"), "{doubt:?}");
        assert_eq!(Goes::Right.lag_to_see(), None);
    }
}
