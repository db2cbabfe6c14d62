//! What was seen of a mirrored volume while loads ran: how far its components were behind and what they had left to copy.

use disk::mirror::Standing;
use results::{LagResult, ResyncResult};

use crate::mirrored::{ComponentState, Role};
use crate::resync::{CatchUp, Resyncs};
use crate::syncs::SyncsSeen;

/// What was seen of one node's volume.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Bytes left to copy, while there were any, and the moments when there were none any more.
    pub resync: Vec<ResyncResult>,
    /// The furthest that any component was behind in each second.
    pub lag: Vec<LagResult>,
    /// Bytes copied to catch up while loads ran.
    pub copied_bytes: u64,
    /// Syncs that were acknowledged while loads ran.
    pub syncs: SyncsSeen,
    /// When components caught up.
    pub catch_ups: Vec<CatchUp>,
    resyncs: Resyncs,
}

impl Seen {
    /// Takes how the components stand at a moment.
    pub fn take(&mut self, t_s: f64, states: &[ComponentState]) {
        self.resyncs.take(t_s, states);
        let lacks = |state: &&ComponentState| matches!(state.role, Role::Peer(standing) if standing != Standing::Live);
        let bytes_left = states.iter().filter(lacks).map(|state| state.bytes_left).sum();
        let was_none = self.resync.last().is_none_or(|last| last.bytes_left == 0);
        if !(was_none && bytes_left == 0) {
            self.resync.push(ResyncResult { t_s, bytes_left });
        }
        let live = states.iter().filter(|state| state.role == Role::Peer(Standing::Live));
        let Some(furthest) = live.max_by_key(|state| state.lag) else { return };
        let (bytes, lag_s) = (furthest.lag_bytes, furthest.lag.as_secs_f64());
        match self.lag.last_mut().filter(|last| last.t_s.floor() == t_s.floor()) {
            Some(last) => {
                last.bytes = last.bytes.max(bytes);
                last.lag_s = last.lag_s.max(lag_s);
            }
            None => self.lag.push(LagResult { t_s, bytes, lag_s }),
        }
    }

    /// Nothing is seen any more: what caught up, and `copied_bytes` in all.
    pub fn finish(&mut self, copied_bytes: u64) {
        self.copied_bytes = copied_bytes;
        self.catch_ups = std::mem::take(&mut self.resyncs).finish();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mirrored::Moved;

    fn state(role: Role, bytes_left: u64, lag_ms: u64) -> ComponentState {
        let (lag, lag_bytes) = (Duration::from_millis(lag_ms), lag_ms * 10);
        ComponentState { host: "h".to_owned(), role, lag_bytes, lag, bytes_left, moved: Moved::default() }
    }

    #[test]
    fn what_is_left_is_kept_while_there_is_any_and_once_when_there_is_none_any_more() {
        let mut seen = Seen::default();
        for (t_s, standing, left) in [
            (0.1, Standing::Live, 0),
            (0.2, Standing::Away, 100),
            (0.3, Standing::CatchingUp, 40),
            (0.4, Standing::Live, 0),
            (0.5, Standing::Live, 0),
        ] {
            seen.take(t_s, &[state(Role::Peer(standing), left, 0), state(Role::Serving, 0, 0)]);
        }
        let kept: Vec<(f64, u64)> = seen.resync.iter().map(|of| (of.t_s, of.bytes_left)).collect();
        assert_eq!(kept, [(0.2, 100), (0.3, 40), (0.4, 0)]);
    }

    #[test]
    fn the_furthest_lag_of_a_second_is_kept() {
        let mut seen = Seen::default();
        for (t_s, lag_ms) in [(0.1, 5), (0.5, 20), (0.9, 1), (1.1, 2)] {
            seen.take(t_s, &[state(Role::Peer(Standing::Live), 0, lag_ms)]);
        }
        let kept: Vec<(u64, f64)> = seen.lag.iter().map(|of| (of.bytes, of.lag_s)).collect();
        assert_eq!(kept, [(200, 0.02), (20, 0.002)]);
    }
}
