//! Signals to the processes of a VM's database, which its init sends.
//!
//! What they are sent for, and whether they did what they should, is the business of faults.

use engine::NodeError;

use super::Vm;

impl Vm {
    /// Sends the processes of its database a signal, whoever started them.
    ///
    /// # Errors
    /// When it has no power.
    pub fn strike_processes(&self, strike: lab::Strike) -> Result<(), NodeError> {
        let (_, node) = self.boot_now()?;
        node.strike_processes(strike).map(drop).map_err(|_| NodeError::Down { node: self.name.clone() })
    }

    /// Lets those go on that such a signal has stopped. Without effect on a VM that is off.
    pub fn resume_processes(&self) {
        if let Ok((_, node)) = self.boot_now() {
            // One that loses its power now has nobody left to go on.
            let _ = node.resume_processes();
        }
    }
}
