//! Where the unsynced data of a volume was at two moments: whether it may have become durable in between without a sync.
//!
//! Owns the comparison. A component that catches up takes all it has as durable in the end (`disk::mirror`), and service may
//! move to such a one. A volume that has more to remember than its limits allow takes the oldest as durable (`disk::Limits`).

use std::collections::BTreeSet;

use disk::mirror::Standing;

use crate::mirrored::{ComponentState, Role};

/// Of a mirrored volume's components, by number; and of any volume how often the oldest became durable for want of room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    serving: Option<usize>,
    live: BTreeSet<usize>,
    copied_bytes: u64,
    written_back: u64,
}

impl Whereabouts {
    /// Of a volume that is not mirrored.
    pub(crate) fn of_one(written_back: u64) -> Whereabouts {
        Whereabouts { written_back, ..Whereabouts::default() }
    }

    /// Of a mirrored volume.
    pub(crate) fn of(states: &[ComponentState], written_back: u64) -> Whereabouts {
        let with = |is_such: fn(&Role) -> bool| {
            let all = states.iter().enumerate();
            all.filter(move |(_, state)| is_such(&state.role)).map(|(number, _)| number)
        };
        Whereabouts {
            serving: with(|role| *role == Role::Serving).next(),
            live: with(|role| *role == Role::Peer(Standing::Live)).collect(),
            copied_bytes: states.iter().map(|state| state.moved.copied_bytes).sum(),
            written_back,
        }
    }

    /// Whether what was unsynced then is so still, unless it was synced: the same component serves, none has caught up, and there was
    /// room for all.
    #[must_use]
    pub fn holds_still(&self, now: &Whereabouts) -> bool {
        self.serving == now.serving
            && self.copied_bytes == now.copied_bytes
            && now.live.is_subset(&self.live)
            && self.written_back == now.written_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whereabouts(serving: usize, live: &[usize], copied_bytes: u64) -> Whereabouts {
        let live = live.iter().copied().collect();
        Whereabouts { serving: Some(serving), live, copied_bytes, written_back: 0 }
    }

    #[test]
    fn a_component_may_go_and_none_may_come_or_catch_up_or_serve_instead() {
        let then = whereabouts(0, &[1, 2], 7);
        assert!(then.holds_still(&then) && then.holds_still(&whereabouts(0, &[2], 7)));
        for now in [whereabouts(1, &[2], 7), whereabouts(0, &[1, 2], 8), whereabouts(0, &[1, 2, 3], 7)] {
            assert!(!then.holds_still(&now), "{now:?}");
        }
        assert!(Whereabouts::default().holds_still(&Whereabouts::default()));
    }

    #[test]
    fn what_became_durable_for_want_of_room_holds_still_no_more() {
        let [then, now] = [3, 4].map(Whereabouts::of_one);
        assert!(then.holds_still(&then) && !then.holds_still(&now));
    }
}
