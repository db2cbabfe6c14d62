//! Whether what is seen may have happened earlier: the watch of its kind was interrupted, and this belongs to what was there when
//! it began again.

use std::collections::BTreeMap;

use crate::sightings::{Kind, Seen, Sighting};

/// For so long after the first sighting that follows a gap, others belong to the same list of what is there.
const LIST_S: f64 = 2.0;

/// When something was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) unix_s: f64,
    pub(super) after_gap: bool,
}

/// The gaps after which what is there was not yet listed, with the beginning of the list.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    open: BTreeMap<Kind, Option<f64>>,
}

impl Gaps {
    /// To be called of every sighting, in order.
    pub(super) fn moment(&mut self, sighting: &Sighting) -> Moment {
        let unix_s = sighting.unix_s;
        let kind = match &sighting.what {
            Seen::Gap { kind, .. } => {
                self.open.insert(*kind, None);
                return Moment { unix_s, after_gap: true };
            }
            Seen::Pod { .. } => Kind::Pods,
            Seen::Node { .. } => Kind::Nodes,
            Seen::Lease { .. } => Kind::Leases,
            Seen::Endpoints { .. } => Kind::EndpointSlices,
            Seen::Attachment { .. } => Kind::VolumeAttachments,
            Seen::Claim { .. } => Kind::Claims,
        };
        let after_gap = self.open.get_mut(&kind).is_some_and(|list| {
            let began = *list.get_or_insert(unix_s);
            unix_s - began <= LIST_S
        });
        if !after_gap {
            self.open.remove(&kind);
        }
        Moment { unix_s, after_gap }
    }
}
