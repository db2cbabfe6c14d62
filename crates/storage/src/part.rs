//! A node's volume, or a component of one, as what lies on a disk of a host.

use history::NodeId;

/// A volume, or a component of one, that lies on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumePart {
    /// Whose it is.
    pub vm: NodeId,
    /// Of a mirrored volume, which component, and its host.
    pub(crate) component: Option<(usize, String)>,
}

impl VolumePart {
    /// As a person would say it.
    #[must_use]
    pub fn in_words(&self) -> String {
        let node = self.vm;
        match &self.component {
            None => format!("the volume of {node}"),
            Some((_, host)) => format!("the component on {host} of the volume of {node}"),
        }
    }
}
