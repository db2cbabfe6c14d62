//! A node's mirrored volume: its components on their hosts, which of them serves, and what the others lack.
//!
//! Owns the roles and who may take them. What the components say to each other is in `conversation`; what is acknowledged
//! when, in `disk::mirror`.

mod component;
mod conversation;
mod doubt;
mod drives;
mod initiator;
mod moving;
mod on_hosts;
mod opening;
mod rebuild;
mod silence;
mod standing;
mod target;
#[cfg(test)]
mod test_mirror;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use disk::mirror::{Acknowledge, Differences, Dirt, Mirror, Policy, Standing, SyncTime};
use disk::{Disk, Files, FolderStore, Lost, Mount, OnDisk, Waits};
use history::{HostId, NodeId, PerHost};
use scenario::Storage;

use self::component::{Component, ComponentSettings};
use self::conversation::{Conversation, Speaker};
pub use self::opening::{OpenError, Opening};
use self::opening::{RemoteService, ServingReason};
use self::standing::in_words;
pub use self::standing::{ComponentState, Moved, Role};
use self::threads::Threads;
use crate::host_place::HostPlace;
use crate::rollback::PowerOffs;

/// Components listen from this port on: a volume's first at this plus its node's number times the step.
const PORT: u16 = 7_000;
const PORTS_PER_VOLUME: usize = 16;

/// What a mirrored volume is made from.
pub struct Plan<'a> {
    pub folder: &'a Path,
    pub node: NodeId,
    /// How it is mirrored.
    pub storage: &'a Storage,
    /// Every host of the site, in its order.
    pub hosts: PerHost<Arc<HostPlace>>,
    /// The user that owns it.
    pub user: u32,
    /// What power-offs do to it.
    pub power_offs: PowerOffs,
}

/// A mirrored volume.
#[derive(Debug)]
pub struct MirroredDisk {
    /// Itself, for those who find another component to serve.
    weak_self: Weak<MirroredDisk>,
    folder: PathBuf,
    node: NodeId,
    storage: Storage,
    hosts: PerHost<Arc<HostPlace>>,
    settings: ComponentSettings,
    policy: Policy,
    threads: Arc<Threads>,
    state: Mutex<State>,
    differences: Arc<Mutex<Differences>>,
}

#[derive(Debug, Default)]
struct State {
    components: Vec<Arc<Component>>,
    /// Components that were given up for another elsewhere.
    retired: BTreeSet<usize>,
    serving: Option<Serving>,
    /// Components that have all that was acknowledged, as far as can be known.
    current: BTreeSet<usize>,
    /// Components that could not be brought back at a power-off and have not caught up since, and why.
    in_doubt: BTreeMap<usize, String>,
    /// Each time that happened, by the component's number and host, of which nobody has been told yet.
    failed_rollbacks: Vec<((usize, String), String)>,
    /// How it was opened, boot by boot, as far as that is over.
    openings: Vec<Opening>,
    last_loss: Option<Result<Lost, String>>,
    news: Vec<String>,
    /// Where service has moved.
    moves: Vec<Move>,
    /// Of each component that is not up to date, what has been told: one whose disk is dead tries again and again.
    told: BTreeMap<usize, BTreeSet<&'static str>>,
    cpu_of_mounts: Duration,
    ended: BTreeMap<usize, Ended>,
    /// Components whose disk was given up, while they served, because it gave no sign: it is not waited for.
    silent: BTreeSet<usize>,
    /// When no component could be found that service could have moved to.
    stayed_at: Option<Instant>,
    moved: BTreeMap<usize, Moved>,
}

/// Service of a volume that has moved to another component while its node runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Path of the host whose component serves since.
    pub host: String,
    /// Why, for a person to read.
    pub why: String,
}

/// How a component stood when service ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    standing: Standing,
    /// What had not reached it.
    lag_bytes: u64,
    lag: Duration,
}

#[derive(Debug)]
struct Serving {
    component: usize,
    /// Where the node is.
    host: HostId,
    /// Where that is another than the component's host, the way between the two.
    remote_service: Option<RemoteService>,
    reason: ServingReason,
    mirror: Arc<Mirror<OnDisk<FolderStore>>>,
    /// The components that are its peers, in its order.
    peers: Vec<usize>,
    conversations: Vec<Conversation>,
}

impl MirroredDisk {
    /// An empty volume with all its components, on hosts with power.
    ///
    /// # Errors
    /// When a component's folder or listener cannot be made.
    pub fn make(plan: &Plan<'_>) -> io::Result<Arc<MirroredDisk>> {
        let Plan { storage, .. } = plan;
        let acknowledge = match storage.acknowledge {
            scenario::Acknowledge::Sync => Acknowledge::Sync,
            scenario::Acknowledge::Semi => Acknowledge::Semi,
            scenario::Acknowledge::Async => Acknowledge::Async,
        };
        let class = &storage.class;
        let policy = Policy { acknowledge, buffer_bytes: class.buffer_bytes, timeout: storage.timeout };
        let settings = ComponentSettings {
            user: plan.user,
            flush: class.flush,
            metadata_on_own_device: class.metadata_on_own_device,
            timeout: storage.timeout,
            answers_receipt: acknowledge == Acknowledge::Semi,
            power_offs: plan.power_offs,
        };
        let disk = Arc::new_cyclic(|weak_self| MirroredDisk {
            weak_self: weak_self.clone(),
            folder: plan.folder.to_owned(),
            node: plan.node,
            storage: (*storage).clone(),
            hosts: plan.hosts.clone(),
            settings,
            policy,
            threads: Arc::default(),
            state: Mutex::default(),
            differences: Arc::default(),
        });
        for host in storage.components.get(plan.node).into_iter().flatten() {
            let component = disk.component_on(*host)?;
            disk.state().components.push(Arc::new(component));
        }
        // All are empty and therefore equal.
        let mut state = disk.state();
        state.current = (0..state.components.len()).collect();
        drop(state);
        Ok(disk)
    }

    fn component_on(&self, host: HostId) -> io::Result<Component> {
        let number = self.state().components.len();
        let port = usize::from(PORT) + self.node.index() * PORTS_PER_VOLUME + number % PORTS_PER_VOLUME;
        let port = u16::try_from(port).map_err(|_| io::Error::other("more volumes than ports"))?;
        let place = (host, self.hosts[host].clone(), port);
        // Each has a chance of its own: what one tears another keeps.
        let own = |seed: u64| seed.wrapping_add((number as u64 + 1) << 32);
        let power_offs = self.settings.power_offs;
        let power_offs = PowerOffs { torn_by: power_offs.torn_by.map(own), ..power_offs };
        let settings = ComponentSettings { power_offs, ..self.settings };
        Component::make(&self.folder.join(number.to_string()), place, settings, self.threads.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless `is_given_up` comes to hold before it is to be had: whoever ends service holds it while requests
    /// under way come to their end.
    fn state_unless(&self, is_given_up: impl Fn() -> bool) -> Option<MutexGuard<'_, State>> {
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if is_given_up() => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn differences(&self) -> MutexGuard<'_, Differences> {
        self.differences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What its syncs wait for.
    #[must_use]
    pub fn acknowledges(&self) -> Acknowledge {
        self.policy.acknowledge
    }

    /// How it is mirrored.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    fn converse(&self, state: &State, serving: &mut Serving, other: usize) -> io::Result<()> {
        let conversation = Conversation::begin(Speaker {
            mirror: serving.mirror.clone(),
            peer: serving.peers.len(),
            from: state.components[serving.component].place.clone(),
            to: state.components[other].clone(),
            timeout: self.policy.timeout,
            differences: self.differences.clone(),
            number: other,
            threads: self.threads.clone(),
            round_trip_us: Arc::default(),
        })?;
        serving.peers.push(other);
        serving.conversations.push(conversation);
        Ok(())
    }

    /// The disk that the serving component stands on; the first one's while none serves.
    #[must_use]
    pub fn disk(&self) -> Option<Disk> {
        let state = self.state();
        let number = state.serving.as_ref().map_or(0, |serving| serving.component);
        state.components.get(number).map(|component| component.place.disk.clone())
    }

    /// The boot with this mount is over, and so are its processes: service ends, and every component with power carries out
    /// what has reached it and takes back what the node had not synced. On that of the node's own host `host_is_off` says
    /// that all stops.
    ///
    /// # Errors
    /// When a folder's file system refuses; then that component's content is in doubt.
    pub fn lose(&self, mount: &Mount) -> io::Result<()> {
        let mut state = self.state();
        let Some(mut serving) = state.serving.take() else { return Ok(()) };
        serving.mirror.stop_waiting();
        let opening = self.opening(&state, &serving);
        state.openings.push(opening);
        if let Some(mut remote_service) = serving.remote_service.take() {
            // What is being carried out for the node must not wait for a disk: it is as dead as the node.
            serving.mirror.interrupt(true);
            remote_service.target.close();
            serving.mirror.interrupt(false);
        }
        let others: Vec<usize> = serving.peers.clone();
        let mut cut_short = BTreeSet::new();
        for (peer, other) in others.iter().enumerate() {
            let drained = state.components[*other].drain();
            serving.mirror.heard_last(peer, drained.last);
            if !drained.is_whole {
                cut_short.insert(*other);
            }
        }
        self.note_ends(&mut state, &serving);
        // What it had received, and was acknowledged, went with its power, or its disk did not take it; or it could not be
        // brought back.
        let is_semi = self.policy.acknowledge == Acknowledge::Semi;
        let is_behind = |other: &usize| {
            let of = &state.components[*other];
            let has_no_power = !of.is_on();
            is_semi && (has_no_power || cut_short.contains(other))
                || has_no_power && matches!(of.last_loss(), Some(Err(_)))
        };
        let behind = others.iter().copied().filter(is_behind);
        let behind: BTreeSet<usize> = behind.collect();
        state.current.retain(|number| !behind.contains(number));
        let lacking = serving.mirror.end();
        drop(serving.conversations);
        self.differences().ended(others.iter().copied().zip(lacking));
        let mut first_error = None;
        let served = serving.component;
        for number in others.into_iter().chain([served]) {
            let component = state.components[number].clone();
            let mut dirt = Dirt::new();
            // Of the others those with power have what reached them whole; the one that serves is as the node's own disk.
            let lost = if number == served {
                component.lose(&mut dirt)
            } else {
                component.lose_with_its_node(&mut dirt)
            };
            self.differences().lost(number, &dirt);
            if number == served {
                state.last_loss = Some(lost.as_ref().copied().map_err(ToString::to_string));
            }
            if let Err(error) = lost {
                state.doubt(number, &error);
                first_error.get_or_insert(error);
            }
        }
        state.cpu_of_mounts += mount.cpu_time();
        first_error.map_or(Ok(()), Err)
    }

    fn note_ends(&self, state: &mut State, serving: &Serving) {
        for number in self.caught_up(state, serving) {
            state.in_doubt.remove(&number);
        }
        state.ended.clear();
        for (peer, number) in serving.peers.iter().enumerate() {
            let stood = serving.mirror.state(peer);
            let (lag_bytes, lag) = (stood.lag_bytes, stood.lag);
            state.ended.insert(*number, Ended { standing: stood.standing, lag_bytes, lag });
            let moved = state.moved.entry(*number).or_default();
            moved.replicated_bytes += stood.bytes_replicated;
            moved.copied_bytes += stood.bytes_copied;
            match self.policy.acknowledge {
                Acknowledge::Sync if stood.standing == Standing::Live => state.current.insert(*number),
                // What it had received and not carried out went with its power.
                Acknowledge::Semi if self.is_live(&serving.mirror, (peer, *number)) => {
                    state.current.insert(*number)
                }
                _ => state.current.remove(number),
            };
        }
        state.current.insert(serving.component);
    }

    /// A host has lost its power: its component, if it has one that does not serve, stops at once and loses what was not
    /// durable. One that serves ends with its node.
    ///
    /// # Errors
    /// When its folder's file system refuses; then its content is in doubt, and all of it is to be copied again.
    pub fn host_is_off(&self, host: HostId) -> io::Result<()> {
        let mut all_off = Ok(());
        for (number, component) in self.on(host) {
            let mut dirt = Dirt::new();
            let is_serving = self.state().serving.as_ref().is_some_and(|serving| serving.component == number);
            if is_serving {
                continue;
            }
            let lost = component.power_off(&mut dirt);
            self.differences().lost(number, &dirt);
            let is_semi = self.policy.acknowledge == Acknowledge::Semi;
            if let Err(error) = &lost {
                self.state().doubt(number, error);
            } else if is_semi && !dirt.is_empty() {
                self.state().current.remove(&number);
            }
            all_off = all_off.and(lost.map(drop));
        }
        all_off
    }

    /// A host has power again: its component can be reached.
    ///
    /// # Errors
    /// When it cannot be listened on.
    pub fn host_is_on(&self, host: HostId) -> io::Result<()> {
        self.on(host).into_iter().try_for_each(|(_, component)| component.power_on())
    }

    fn on(&self, host: HostId) -> Vec<(usize, Arc<Component>)> {
        let state = self.state();
        let components = state.components.iter().cloned().enumerate();
        let retired = &state.retired;
        components.filter(|(number, of)| of.host == host && !retired.contains(number)).collect()
    }

    /// Waits until all components are live and nothing is under way, for `patience` at most. Returns whether they are.
    #[must_use]
    pub fn settle(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let settled = {
                let state = self.state();
                state.serving.as_ref().is_none_or(|serving| {
                    (0..serving.peers.len()).all(|peer| {
                        let stands = serving.mirror.state(peer);
                        stands.standing == Standing::Live && stands.lag_bytes == 0
                    })
                })
            };
            if settled || Instant::now() >= deadline {
                return settled;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Takes everything on it as durable now, on all components.
    pub fn take_all_as_durable(&self) {
        for component in &self.state().components {
            component.volume.take_all_as_durable();
        }
    }

    /// What the last power-off took from the component that served.
    #[must_use]
    pub fn last_loss(&self) -> Option<Result<Lost, String>> {
        self.state().last_loss.clone()
    }

    /// What its threads work on.
    #[must_use]
    pub fn under_way(&self) -> &Waits {
        self.threads.under_way()
    }

    /// CPU time of its past mounts and of all that components say to each other.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.state().cpu_of_mounts + self.threads.cpu().total()
    }

    /// Where service has moved since this was last asked.
    #[must_use]
    pub fn take_moves(&self) -> Vec<Move> {
        std::mem::take(&mut self.state().moves)
    }

    /// Looks after it: gives up components that are silent, rebuilds elsewhere what has been missed for too long. Returns
    /// what has happened, in words.
    #[must_use]
    pub fn look_after(&self, is_on: &dyn Fn(HostId) -> bool) -> Vec<String> {
        self.give_up_a_silent_disk();
        self.clear_doubts();
        let mut told = std::mem::take(&mut self.state().news);
        let occurrences = {
            let mut state = self.state();
            let State { serving: Some(serving), components, told: known, .. } = &mut *state else {
                return told;
            };
            serving.mirror.give_up_the_silent();
            let occurrences = serving.mirror.take_occurrences();
            for occurrence in &occurrences {
                let component = &components[serving.peers[occurrence.peer]];
                let left = serving.mirror.state(occurrence.peer).bytes_left;
                let known = known.entry(serving.peers[occurrence.peer]).or_default();
                let mut is_new = |what| known.insert(what);
                let told_of = in_words(&component.place.name, occurrence, left);
                let trouble = component.take_trouble();
                match occurrence.standing {
                    Standing::Away => told.extend(told_of.filter(|_| is_new("out"))),
                    Standing::CatchingUp => told.extend(told_of.filter(|_| is_new("catches up"))),
                    Standing::Finishing(_) => {}
                    Standing::Live => {
                        known.clear();
                        told.extend(told_of);
                    }
                }
                if let Some(why) = trouble
                    && known.insert("refuses")
                {
                    let place = &component.place.name;
                    told.push(format!("the component on {place} reports an error: {why}"));
                }
            }
            occurrences
        };
        if !occurrences.is_empty() {
            self.note_current();
        }
        told.extend(self.rebuild_what_is_missed(is_on));
        told
    }

    fn note_current(&self) {
        let mut state = self.state();
        let Some(serving) = &state.serving else { return };
        let live = |(peer, _): &(usize, &usize)| serving.mirror.state(*peer).standing == Standing::Live;
        let is_known = self.policy.acknowledge != Acknowledge::Async;
        let current = serving.peers.iter().enumerate().filter(|of| is_known && live(of)).map(|of| *of.1);
        state.current = current.chain([serving.component]).collect();
    }

    /// How long the syncs took that were acknowledged since this was last asked, and the longest of the shortest round trips to
    /// the other components.
    #[must_use]
    pub fn take_sync_times(&self) -> (Vec<SyncTime>, Option<u64>) {
        let state = self.state();
        let Some(serving) = &state.serving else { return (Vec::new(), None) };
        let furthest = serving.conversations.iter().filter_map(Conversation::round_trip_us).max();
        (serving.mirror.take_sync_times(), furthest)
    }

    /// How every component stands.
    #[must_use]
    pub fn states(&self) -> Vec<ComponentState> {
        let state = self.state();
        let of = |(number, component): (usize, &Arc<Component>)| {
            let mut shown = ComponentState {
                host: component.place.name.clone(),
                role: if state.retired.contains(&number) { Role::Retired } else { Role::Idle },
                lag_bytes: 0,
                lag: Duration::ZERO,
                bytes_left: 0,
                moved: state.moved.get(&number).copied().unwrap_or_default(),
            };
            let Some(serving) = state.serving.as_ref().filter(|_| shown.role != Role::Retired) else {
                return shown;
            };
            if serving.component == number {
                shown.role = Role::Serving;
            } else if let Some(peer) = serving.peers.iter().position(|other| *other == number) {
                let stands = serving.mirror.state(peer);
                shown.role = Role::Peer(stands.standing);
                (shown.lag_bytes, shown.lag) = (stands.lag_bytes, stands.lag);
                shown.bytes_left = stands.bytes_left;
                shown.moved.replicated_bytes += stands.bytes_replicated;
                shown.moved.copied_bytes += stands.bytes_copied;
            }
            shown
        };
        state.components.iter().enumerate().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use disk::{Attributes, NewInode, ROOT, Scope, ask};
    use scenario::Promotion;

    use super::test_mirror::{A, B, test_mirror};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn what_has_been_told_of_a_component_is_remembered_while_nobody_serves() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 7, Promotion::UpToDate) else {
            return eprintln!("skipped: what_has_been_told: no network namespace may be entered");
        };
        let told = BTreeMap::from([(1, BTreeSet::from(["out"]))]);
        disk.state().told = told.clone();
        assert!(disk.look_after(&|_| true).is_empty());
        assert_eq!(disk.state().told, told);
    }

    #[test]
    fn a_copy_that_could_not_be_brought_back_counts_as_up_to_date_only_when_it_has_caught_up() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 6, Promotion::UpToDate) else {
            return eprintln!("skipped: a_copy_that_could_not: no network namespace may be entered");
        };
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        assert!(disk.settle(PATIENCE), "the other component is up to date");
        let first: Arc<dyn Files> = disk.state().serving.as_ref().expect("open").mirror.clone();
        let now = std::time::UNIX_EPOCH;
        let attributes = Attributes::new(0o644, 0, 0, now);
        let made = ask(first.as_ref(), |files| files.make(ROOT, "f".as_ref(), &NewInode::File, attributes));
        let file = made.expect("made").inode;
        let write = |content: &[u8]| {
            ask(first.as_ref(), |files| files.write(file, 0, content, None, false, now)).expect("written");
        };
        write(b"old");
        ask(first.as_ref(), |files| files.sync(file, Scope::All)).expect("synced");
        write(b"new");
        assert!(disk.settle(PATIENCE), "all of it is there");

        let content = folder.path().join("1").join("content").join(file.to_string());
        let aside = folder.path().join("aside");
        std::fs::rename(&content, &aside).expect("the content is moved away");
        assert!(disk.host_is_off(B).is_err());
        std::fs::rename(&aside, &content).expect("it is again");
        mount.power_off();
        disk.lose(&mount).expect("closed");
        assert_eq!(disk.state().current, BTreeSet::from([0]));

        disk.host_is_on(B).expect("on");
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        assert!(disk.settle(PATIENCE), "it catches up");
        let mut found = [0; 3];
        let copy = disk.state().components[1].volume.clone();
        assert_eq!(copy.read(file, 0, &mut found), Ok(3));
        assert_eq!(&found, b"old");
        mount.power_off();
        disk.lose(&mount).expect("closed");
        assert_eq!(disk.state().current, BTreeSet::from([0, 1]));
    }
}
