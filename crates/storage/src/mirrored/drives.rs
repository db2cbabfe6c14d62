//! The drives under a mirrored volume's components: what they have in their caches when a node loses its power.

use super::MirroredDisk;

impl MirroredDisk {
    /// How often the oldest that was not durable became so on any component, because more was not than is remembered.
    pub(crate) fn written_back(&self) -> u64 {
        self.state().components.iter().map(|component| component.written_back()).sum()
    }

    /// The node is about to lose its power and the host whose component serves it is not: what was synced there is in its drive's
    /// cache at least.
    pub fn drive_keeps_its_power(&self) {
        let state = self.state();
        if let Some(serving) = &state.serving {
            state.components[serving.component].drive_keeps_its_power();
        }
    }
}
