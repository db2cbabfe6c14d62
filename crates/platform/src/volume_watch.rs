//! Looks after the mirrored volumes while loads run: tells what happens to their components, and tells the platform which
//! volume is lost where it is open. What is kept of it is `storage`'s `Seen`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use history::{EventKind, EventSink, HostId, NodeId, PlatformAction};
use storage::{MirroredDisk, Move, Seen};

use crate::datacentre::Datacentre;
use crate::platform::Platform;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// The running watch. Dropping it ends it.
pub struct VolumeWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<BTreeMap<NodeId, Seen>>>,
}

impl VolumeWatch {
    /// Begins to look, if there is anything to look at.
    #[must_use]
    pub fn start(
        datacentre: Arc<Datacentre>,
        platform: Arc<Platform>,
        events: Arc<dyn EventSink>,
    ) -> VolumeWatch {
        if datacentre.vms.iter().all(|vm| vm.volume().mirrored().is_none()) {
            return VolumeWatch { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let told = events.clone();
        let watch = move || Watch { datacentre, platform, events, seen: BTreeMap::new() }.look(&stopped);
        let thread = std::thread::Builder::new().name("volumes".to_owned()).spawn(watch);
        if let Err(error) = &thread {
            told.warn(
                format!("mirrored volumes are not monitored: {error}"),
                "raise the limit of processes (`ulimit -u`)",
            );
        }
        VolumeWatch { stop: Some(stop), thread: thread.ok() }
    }

    /// Ends it, and says what was seen, by node.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<NodeId, Seen> {
        self.end()
    }

    fn end(&mut self) -> BTreeMap<NodeId, Seen> {
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
    events: Arc<dyn EventSink>,
    seen: BTreeMap<NodeId, Seen>,
}

impl Watch {
    fn look(mut self, stopped: &Receiver<()>) -> BTreeMap<NodeId, Seen> {
        let before = self.copied();
        // Those of the preparation.
        self.mirrored().for_each(|(_, disk)| drop(disk.take_sync_times()));
        while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            for vm in self.datacentre.vms.ids() {
                self.look_at(vm);
            }
        }
        for (vm, bytes) in self.copied() {
            let earlier = before.get(&vm).copied().unwrap_or_default();
            let seen = self.seen.entry(vm).or_default();
            seen.finish(bytes.saturating_sub(earlier));
        }
        self.seen
    }

    fn mirrored(&self) -> impl Iterator<Item = (NodeId, &MirroredDisk)> {
        self.datacentre.vms.numbered().filter_map(|(vm, of)| Some((vm, of.volume().mirrored()?)))
    }

    fn copied(&self) -> BTreeMap<NodeId, u64> {
        self.mirrored()
            .map(|(vm, disk)| (vm, disk.states().iter().map(|state| state.moved.copied_bytes).sum()))
            .collect()
    }

    fn look_at(&mut self, vm: NodeId) {
        let datacentre = self.datacentre.clone();
        let Some(disk) = datacentre.vms[vm].volume().mirrored() else { return };
        let is_on = |host: HostId| datacentre.hosts[host].is_on();
        for Move { host, why } in disk.take_moves() {
            self.events.say(EventKind::VolumeMoved { node: vm.to_string(), host, why });
        }
        for what in disk.look_after(&is_on) {
            let (action, node) = (PlatformAction::Volume, vm.to_string());
            self.events.say(EventKind::Platform { action, node, what });
        }
        if let Some(open) = disk.lost_where_open() {
            self.platform.volume_is_lost(vm, open);
        }
        let now_s = self.events.now_s();
        if now_s >= 0.0 {
            let seen = self.seen.entry(vm).or_default();
            seen.take(now_s, &disk.states());
            seen.syncs.take(disk.take_sync_times());
        }
    }
}
