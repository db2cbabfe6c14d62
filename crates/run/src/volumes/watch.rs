//! Looks after the mirrored volumes while loads run: tells what happens to their components, tells the platform which volume
//! is lost where it is open, and keeps what they lag and what they have left to copy, over time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use disk::mirror::Standing;
use history::EventKind;
use report::result::{LagResult, ResyncResult};
use scenario::node_name;

use super::mirrored::MirroredDisk;
use super::mirrored::Move;
use super::resync::{CatchUp, Resyncs};
use super::standing::{ComponentState, Role};
use super::syncs::SyncsSeen;
use crate::chronicle::Chronicle;
use crate::datacentre::Datacentre;
use crate::platform::Platform;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(100);

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

/// The running watch. Dropping it ends it.
pub struct VolumeWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<BTreeMap<usize, Seen>>>,
}

impl VolumeWatch {
    /// Begins to look, if there is anything to look at.
    #[must_use]
    pub fn start(
        datacentre: Arc<Datacentre>,
        platform: Arc<Platform>,
        chronicle: Arc<Chronicle>,
    ) -> VolumeWatch {
        if datacentre.vms.iter().all(|vm| vm.volume().mirrored().is_none()) {
            return VolumeWatch { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let told = chronicle.clone();
        let watch = move || Watch { datacentre, platform, chronicle, seen: BTreeMap::new() }.look(&stopped);
        let thread = std::thread::Builder::new().name("volumes".to_owned()).spawn(watch);
        if let Err(error) = &thread {
            told.warn(
                format!("nobody looks after the mirrored volumes: {error}"),
                "raise the limit of processes (`ulimit -u`)",
            );
        }
        VolumeWatch { stop: Some(stop), thread: thread.ok() }
    }

    /// Ends it, and says what was seen, by the node's number.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<usize, Seen> {
        self.end()
    }

    fn end(&mut self) -> BTreeMap<usize, Seen> {
        drop(self.stop.take());
        // Had it panicked, there would be nothing to show.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for VolumeWatch {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

struct Watch {
    datacentre: Arc<Datacentre>,
    platform: Arc<Platform>,
    chronicle: Arc<Chronicle>,
    seen: BTreeMap<usize, Seen>,
}

impl Watch {
    fn look(mut self, stopped: &Receiver<()>) -> BTreeMap<usize, Seen> {
        let before = self.copied();
        // Those of the preparation.
        self.mirrored().for_each(|(_, disk)| drop(disk.take_sync_times()));
        while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            for vm in 0..self.datacentre.vms.len() {
                self.look_at(vm);
            }
        }
        for (vm, bytes) in self.copied() {
            let earlier = before.get(&vm).copied().unwrap_or_default();
            let seen = self.seen.entry(vm).or_default();
            seen.copied_bytes = bytes.saturating_sub(earlier);
            seen.catch_ups = std::mem::take(&mut seen.resyncs).finish();
        }
        self.seen
    }

    fn mirrored(&self) -> impl Iterator<Item = (usize, &MirroredDisk)> {
        let vms = self.datacentre.vms.iter().enumerate();
        vms.filter_map(|(vm, of)| Some((vm, of.volume().mirrored()?)))
    }

    fn copied(&self) -> BTreeMap<usize, u64> {
        self.mirrored()
            .map(|(vm, disk)| (vm, disk.states().iter().map(|state| state.moved.copied_bytes).sum()))
            .collect()
    }

    fn look_at(&mut self, vm: usize) {
        let datacentre = self.datacentre.clone();
        let Some(disk) = datacentre.vms[vm].volume().mirrored() else { return };
        let is_on = |host: usize| datacentre.hosts[host].is_on();
        for Move { host, why } in disk.take_moves() {
            self.chronicle.say(EventKind::VolumeMoved { node: node_name(vm), host, why });
        }
        for what in disk.look_after(&is_on) {
            let (action, node) = ("volume".to_owned(), node_name(vm));
            self.chronicle.say(EventKind::Platform { action, node, what });
        }
        if let Some(open) = disk.lost_where_open() {
            self.platform.volume_is_lost(vm, open);
        }
        let now_s = self.chronicle.now_s();
        if now_s >= 0.0 {
            let seen = self.seen.entry(vm).or_default();
            seen.take(now_s, &disk.states());
            seen.syncs.take(disk.take_sync_times());
        }
    }
}

impl Seen {
    fn take(&mut self, t_s: f64, states: &[ComponentState]) {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volumes::standing::Moved;

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
