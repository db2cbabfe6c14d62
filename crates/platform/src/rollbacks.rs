//! Volumes that could not be brought back to what was durable when their nodes lost their power, whoever cut it: a fault of
//! the schedule, fencing, a migration that went wrong, a boot that failed.
//!
//! Owns that each is told once. What follows for the verdict is the run's business.

use history::EventKind;

use crate::platform::Platform;

impl Platform {
    /// Tells of every volume, or component of one, that could not be brought back since this was last asked.
    pub fn tell_failed_rollbacks(&self) {
        for (vm, of) in self.datacentre.vms.numbered() {
            for (part, why) in of.volume().take_failed_rollbacks(vm) {
                let (node, volume) = (vm.to_string(), part.in_words());
                self.events.say(EventKind::RollbackFailed { node, volume, why });
            }
        }
    }
}
