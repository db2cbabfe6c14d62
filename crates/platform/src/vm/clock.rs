//! A VM's own wall clock, where it has one.

use engine::NodeError;
use lab::{ClockLook, NodeClock};

use super::Vm;

impl Vm {
    /// The clock, which the VM keeps from boot to boot.
    #[must_use]
    pub fn clock(&self) -> Option<&NodeClock> {
        self.clock.as_deref()
    }

    /// What programs on it see of the clock.
    ///
    /// # Errors
    /// When it has no power, or does not answer.
    pub fn look_at_clock(&self) -> Result<ClockLook, NodeError> {
        let (_, node) = self.boot_now()?;
        ClockLook::from_inside(&node).map_err(|error| self.told(error, "look at the clock"))
    }
}
