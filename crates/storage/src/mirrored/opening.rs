//! Opening a mirrored volume for a boot of its node: from the node's own host where that has a component that is up to date, else over
//! the network from another.
//!
//! Owns which component serves, who is refused, and what is told of it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use disk::mirror::{Mirror, Remote, Standing};
use disk::{Files, Mount, MountError, MountPoint};
use history::HostId;
use scenario::Promotion;

use super::component::Component;
use super::initiator::{Initiator, RequestFigures};
use super::standing::in_bytes;
use super::target::Target;
use super::{Ended, MirroredDisk, Serving, State};

/// Why a mirrored volume cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Two would write to it.
    #[error("the volume is open on {host}: {wanted} must not open it too, or both would write to it")]
    AlreadyOpen {
        /// Where it is open.
        host: String,
        /// Where it should be opened.
        wanted: String,
    },
    /// No component with power.
    #[error("no host with power holds a component of the volume")]
    NoComponent,
    /// What a power-off should have taken is in part still there.
    #[error(
        "after a power-off it could not be brought back to what was durable, so nothing starts from it: {why}"
    )]
    InDoubt {
        /// What the store answered.
        why: String,
    },
    /// The component lacks something, or may.
    #[error(
        "the component on {host} may lack acknowledged writes, so it is not promoted; write `promote: forced` to \
         start from it anyway"
    )]
    NotUpToDate { host: String },
    /// The network is down.
    #[error("{host} cannot reach the component on {component}")]
    Unreachable {
        /// Where it should be opened.
        host: String,
        /// Where the component is.
        component: String,
    },
    /// The other host cannot be listened on.
    #[error("serve the volume from {host}: {source}")]
    Target {
        /// Where the component is.
        host: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// No thread.
    #[error("start a thread of the mirror: {0}")]
    Thread(io::Error),
}

/// The way from a node's host to the one that serves.
#[derive(Debug)]
pub(super) struct RemoteService {
    pub(super) target: Target,
    pub(super) remote: Arc<Remote<Initiator>>,
}

/// Why a component serves that otherwise would not.
#[derive(Debug, Clone, Default)]
pub(super) struct ServingReason {
    /// What was given up, where it was promoted by force.
    pub(super) forced: Option<String>,
    /// Why service moved to it, where it did while the node ran.
    pub(super) moved: Option<String>,
}

/// How a volume was opened for one boot, or was served from some moment of it on.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// Path of the node's host.
    pub host: String,
    /// Path of the host of the component that served.
    pub component: String,
    /// What was asked over the network, by kind; nothing where both are the same.
    pub requests: Vec<RequestFigures>,
    /// How often a connection between the two broke, or could not be had.
    pub broken: u64,
    /// What was given up, where the component was promoted by force.
    pub forced: Option<String>,
    /// Why service moved to the component, where it did while the node ran.
    pub moved: Option<String>,
    /// How long the component's host had not been reached when the volume counted as lost on the node's; nothing where it
    /// did not.
    pub lost_after: Option<Duration>,
}

impl MirroredDisk {
    /// Hosts with power that hold a component from which the node may be started, the best first, and whether that is up to
    /// date.
    #[must_use]
    pub fn hosts_to_start(&self) -> Vec<(HostId, bool)> {
        let state = self.state();
        let usable = |number: &usize| {
            let may = state.current.contains(number) || self.promotes_by_force();
            may && is_usable(&state, *number)
        };
        let numbers = (0..state.components.len()).filter(usable).collect();
        let numbers = self.best_first(&state, numbers);
        let of = |number: usize| (state.components[number].host, state.current.contains(&number));
        numbers.into_iter().map(of).collect()
    }

    /// Whether a component that is behind may be promoted.
    #[must_use]
    pub fn promotes_by_force(&self) -> bool {
        self.storage.promote == Promotion::Forced
    }

    fn best_first(&self, state: &State, mut numbers: Vec<usize>) -> Vec<usize> {
        numbers.sort_by_key(|number| (!state.current.contains(number), self.lacking(state, *number)));
        numbers
    }

    /// The host of the component that serves.
    #[must_use]
    pub fn serving_host(&self) -> Option<HostId> {
        let state = self.state();
        state.serving.as_ref().map(|serving| state.components[serving.component].host)
    }

    /// What a component lacks of the one that served last, in bytes: going by the largest files anywhere.
    fn lacking(&self, state: &State, number: usize) -> u64 {
        let differences = self.differences();
        let by = |component: &Arc<Component>| differences.bytes_lacking(number, &component.volume);
        state.components.iter().map(by).max().unwrap_or(0)
    }

    /// Gets ready to be mounted for one boot on a host: one component serves from here on; where `may_force`, and the scenario
    /// allows it, one that is not up to date.
    ///
    /// # Errors
    /// When it is open already; when there is no component that can be reached; or when it may lack something and must not
    /// be forced.
    pub fn prepare(&self, host: HostId, may_force: bool) -> Result<(MountPoint, Mount), OpenError> {
        let reached = self.reached_from(host);
        let mut state = self.state();
        if let Some(serving) = &state.serving {
            let (host, wanted) = (self.hosts[serving.host].name.clone(), self.hosts[host].name.clone());
            return Err(OpenError::AlreadyOpen { host, wanted });
        }
        let number = self.choose(&state, (host, &reached), may_force)?;
        let forced = (!state.current.contains(&number)).then(|| self.loss_in_words(&state, number));
        state.news.extend(forced.clone());
        let files = self.serve(&mut state, number, host, ServingReason { forced, moved: None })?;
        let prepared = disk::prepare(files);
        if prepared.is_err() {
            state.serving = None;
        }
        if state.serving.as_ref().is_some_and(|serving| serving.remote_service.is_some()) {
            let (host, component) = (&self.hosts[host].name, state.components[number].place.name.clone());
            state.news.push(format!(
                "{host} has no component that is up to date: the volume is served from {component}, over the network"
            ));
        }
        Ok(prepared?)
    }

    /// Lets a component serve a node on a host. Returns what the node's mount is to ask.
    pub(super) fn serve(
        &self,
        state: &mut State,
        number: usize,
        host: HostId,
        reason: ServingReason,
    ) -> Result<Arc<dyn Files>, OpenError> {
        let peers: Vec<usize> = (0..state.components.len())
            .filter(|other| *other != number && !state.retired.contains(other))
            .collect();
        let (lacking, generation) = {
            let mut differences = self.differences();
            (differences.serve_from(number, &peers), differences.generation())
        };
        let component = state.components[number].clone();
        let extents = Some(component.extents.clone());
        let mirror =
            Arc::new(Mirror::new(component.volume.clone(), self.policy, lacking, generation, extents));
        let (weak_self, served) = (self.weak_self.clone(), Arc::downgrade(&mirror));
        mirror.set_mover(Box::new(move || weak_self.upgrade()?.move_from(&served.upgrade()?)));
        let begun = self.begin_to_serve(state, (number, host), (mirror.clone(), &peers), reason);
        if begun.is_err() {
            // Whoever serves next must know what they lack.
            self.differences().ended(peers.iter().copied().zip(mirror.end()));
        }
        begun
    }

    fn begin_to_serve(
        &self,
        state: &mut State,
        (number, host): (usize, HostId),
        (mirror, peers): (Arc<ServingMirror>, &[usize]),
        reason: ServingReason,
    ) -> Result<Arc<dyn Files>, OpenError> {
        let component = state.components[number].clone();
        let remote_service =
            (component.host != host).then(|| self.remote_service(&component, host, &mirror)).transpose()?;
        let files: Arc<dyn Files> = match &remote_service {
            None => mirror.clone(),
            Some(remote_service) => remote_service.remote.clone(),
        };
        let (speaks_to, conversations) = (Vec::new(), Vec::new());
        let mut serving = Serving {
            component: number,
            host,
            remote_service,
            reason,
            mirror,
            peers: speaks_to,
            conversations,
        };
        for other in peers {
            self.converse(state, &mut serving, *other).map_err(OpenError::Thread)?;
        }
        state.current = BTreeSet::from([number]);
        state.serving = Some(serving);
        Ok(files)
    }

    /// The component that is to serve a host: its own if that is up to date, else the first that is and can be reached;
    /// where none is up to date and force is allowed, the same among the others.
    fn choose(
        &self,
        state: &State,
        (host, reached): (HostId, &BTreeSet<usize>),
        may_force: bool,
    ) -> Result<usize, OpenError> {
        let usable: Vec<usize> =
            (0..state.components.len()).filter(|number| is_usable(state, *number)).collect();
        let Some(first) = usable.first().copied() else { return Err(state.why_none_serves()) };
        let of = |number: usize| state.components[number].host;
        let is_own = |number: &usize| of(*number) == host;
        let (current, lagging): (Vec<usize>, Vec<usize>) =
            usable.iter().partition(|number| state.current.contains(number));
        let forced = may_force && self.promotes_by_force();
        if current.is_empty() && !forced {
            let stale = usable.iter().copied().find(is_own).unwrap_or(first);
            return Err(OpenError::NotUpToDate { host: self.hosts[of(stale)].name.clone() });
        }
        let mut unreachable = first;
        for group in [current, if forced { lagging } else { Vec::new() }] {
            let group = self.best_first(state, group);
            let own = group.iter().copied().find(is_own);
            for number in own.into_iter().chain(group) {
                if is_own(&number) || reached.contains(&number) {
                    return Ok(number);
                }
                unreachable = number;
            }
        }
        let (host, component) = (self.hosts[host].name.clone(), self.hosts[of(unreachable)].name.clone());
        Err(OpenError::Unreachable { host, component })
    }

    /// The components that can be reached from a host without one that is up to date. Whoever looks after the volume
    /// meanwhile is not kept waiting.
    fn reached_from(&self, host: HostId) -> BTreeSet<usize> {
        let others: Vec<(usize, Arc<Component>)> = {
            let state = self.state();
            let own = |number: &usize| state.components[*number].host == host && is_usable(&state, *number);
            if state.serving.is_some() || state.current.iter().any(own) {
                return BTreeSet::new();
            }
            let all = state.components.iter().cloned().enumerate();
            all.filter(|(number, of)| of.host != host && is_usable(&state, *number)).collect()
        };
        others.into_iter().filter(|(_, of)| self.reaches(host, of)).map(|(number, _)| number).collect()
    }

    /// Whether a component's host can be reached from another: tried, over the network.
    pub(super) fn reaches(&self, from: HostId, component: &Component) -> bool {
        let listening = component.place.listen(0).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let Ok((address, listener)) = listening else { return false };
        let reached = self.hosts[from].connect(address, self.policy.timeout).is_ok();
        drop(listener);
        reached
    }

    fn remote_service(
        &self,
        component: &Component,
        host: HostId,
        mirror: &Arc<ServingMirror>,
    ) -> Result<RemoteService, OpenError> {
        let timeout = self.policy.timeout;
        let target = Target::open(&component.place, mirror.clone(), timeout, self.threads.clone())
            .map_err(|source| OpenError::Target { host: component.place.name.clone(), source })?;
        let initiator = Initiator::new(
            self.hosts[host].clone(),
            target.address(),
            (timeout, self.storage.unreachable_after),
        );
        let remote = Arc::new(Remote::new(initiator));
        Initiator::begin_to_beat(&remote, &self.threads).map_err(OpenError::Thread)?;
        Ok(RemoteService { target, remote })
    }

    fn loss_in_words(&self, state: &State, number: usize) -> String {
        let bytes = self.lacking(state, number);
        let place = &state.components[number].place.name;
        let lag = match state.ended.get(&number) {
            Some(Ended { standing: Standing::Live, lag_bytes, lag }) => format!(
                "the last {:.3} s of changes, {}, had not reached it",
                lag.as_secs_f64(),
                in_bytes(*lag_bytes)
            ),
            _ => "it was unreachable or had not caught up when the primary copy was lost".to_owned(),
        };
        format!(
            "the component on {place} is promoted by force: {lag}; changes that only other components have ({} of \
             blocks) are discarded and overwritten when they return",
            in_bytes(bytes)
        )
    }

    pub(super) fn opening(&self, state: &State, serving: &Serving) -> Opening {
        let initiator = serving.remote_service.as_ref().map(|remote_service| remote_service.remote.carrier());
        Opening {
            host: self.hosts[serving.host].name.clone(),
            component: state.components[serving.component].place.name.clone(),
            requests: initiator.map(Initiator::request_figures).unwrap_or_default(),
            broken: initiator.map_or(0, Initiator::broken),
            forced: serving.reason.forced.clone(),
            moved: serving.reason.moved.clone(),
            lost_after: initiator.and_then(Initiator::lost_after),
        }
    }

    /// How it is open, where it counts as lost on the host where it is.
    #[must_use]
    pub fn lost_where_open(&self) -> Option<Opening> {
        let state = self.state();
        let serving = state.serving.as_ref()?;
        let is_lost = serving.remote_service.as_ref()?.remote.carrier().lost_after().is_some();
        is_lost.then(|| self.opening(&state, serving))
    }

    /// How it was opened, boot by boot.
    #[must_use]
    pub fn openings(&self) -> Vec<Opening> {
        let state = self.state();
        let now = state.serving.as_ref().map(|serving| self.opening(&state, serving));
        state.openings.iter().cloned().chain(now).collect()
    }
}

pub(super) type ServingMirror = Mirror<disk::OnDisk<disk::FolderStore>>;

pub(super) fn is_usable(state: &State, number: usize) -> bool {
    let is_there = !state.retired.contains(&number) && state.components[number].is_on();
    is_there && !state.in_doubt.contains_key(&number)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mirrored::test_mirror::{A, B, C, test_mirror, that_acknowledges};

    fn where_open(disk: &MirroredDisk) -> Vec<(String, String)> {
        disk.openings().into_iter().map(|of| (of.host, of.component)).collect()
    }

    #[test]
    fn a_volume_that_is_open_is_not_opened_a_second_time_until_it_is_closed_even_by_force() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 0, Promotion::Forced) else {
            return eprintln!("skipped: a_volume_that_is_open: no network namespace may be entered");
        };
        let (_point, mount) = disk.prepare(A, true).expect("opened");
        for (second, name) in [(A, "a"), (B, "b"), (C, "c")] {
            let refused = disk.prepare(second, true).err().map(|error| error.to_string());
            let expected =
                format!("the volume is open on a: {name} must not open it too, or both would write to it");
            assert_eq!(refused, Some(expected));
        }
        assert!(disk.settle(Duration::from_secs(30)), "the other component is up to date");
        mount.power_off();
        disk.lose(&mount).expect("closed");
        let (_point, mount) = disk.prepare(C, true).expect("opened on a host without a component");
        let pairs = [("a", "a"), ("c", "a")].map(|(host, from)| (host.to_owned(), from.to_owned()));
        assert_eq!(where_open(&disk), pairs);
        assert!(disk.openings().iter().all(|of| of.forced.is_none()));
        mount.power_off();
        disk.lose(&mount).expect("closed");
    }

    #[test]
    fn without_its_own_component_a_host_opens_one_that_is_up_to_date_and_a_stale_one_by_force_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 1, Promotion::UpToDate) else {
            return eprintln!("skipped: without_its_own_component: no network namespace may be entered");
        };
        disk.host_is_off(B).expect("off");
        let (_point, mount) = disk.prepare(A, true).expect("opened");
        mount.power_off();
        disk.lose(&mount).expect("closed");
        disk.host_is_on(B).expect("on");
        // It has not been told of anything since it was gone.
        let (_point, mount) = disk.prepare(B, true).expect("opened from the other");
        assert_eq!(where_open(&disk)[1], ("b".to_owned(), "a".to_owned()));
        mount.power_off();
        disk.lose(&mount).expect("closed");
        disk.host_is_off(A).expect("off");
        let told = disk.hosts_to_start();
        let refused = disk.prepare(C, true).err().map(|error| error.to_string());
        if told.is_empty() {
            assert!(refused.expect("refused").contains("may lack acknowledged writes"));
        } else {
            // It caught up in time.
            assert_eq!((told, refused), (vec![(B, true)], None));
        }
    }

    #[test]
    fn a_copy_whose_disk_did_not_take_what_it_had_received_is_not_up_to_date() {
        for (first, is_stalled) in [(70, true), (71, false)] {
            let (folder, semi) = (tempfile::tempdir().expect("a folder"), scenario::Acknowledge::Semi);
            let Some(disk) = that_acknowledges(folder.path(), first, Promotion::UpToDate, semi) else {
                return eprintln!("skipped: a_copy_whose_disk: no network namespace may be entered");
            };
            let (_point, mount) = disk.prepare(A, false).expect("opened");
            assert!(disk.settle(Duration::from_secs(30)), "the other component is up to date");
            let mirror = disk.state().serving.as_ref().expect("open").mirror.clone();
            let stalled = is_stalled.then(|| disk.hosts[B].disk.impose(disk::Defect::Stall));
            let attributes = disk::Attributes::new(0o644, 0, 0, std::time::SystemTime::UNIX_EPOCH);
            let made =
                mirror.make(disk::ROOT, "f".as_ref(), &disk::NewInode::File, attributes).expect("made");
            mirror.sync(made.inode, disk::Scope::All).expect("acknowledged once it is received");
            mount.power_off();
            disk.lose(&mount).expect("closed");
            assert_eq!(disk.state().current.contains(&1), !is_stalled);
            drop(stalled);
        }
    }

    #[test]
    fn waiting_for_a_copy_that_does_not_answer_is_no_work_of_the_labs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 4, Promotion::UpToDate) else {
            return eprintln!("skipped: waiting_for_a_copy: no network namespace may be entered");
        };
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        assert!(disk.settle(Duration::from_secs(30)), "the other component is up to date");
        let mirror = disk.state().serving.as_ref().expect("open").mirror.clone();
        let stalled = disk.hosts[B].disk.impose(disk::Defect::Stall);
        let attributes = disk::Attributes::new(0o644, 0, 0, std::time::SystemTime::UNIX_EPOCH);
        let made = mirror.make(disk::ROOT, "f".as_ref(), &disk::NewInode::File, attributes).expect("made");
        std::thread::scope(|scope| {
            let synced = scope.spawn(|| {
                let _work = disk.threads.work();
                mirror.sync(made.inode, disk::Scope::All)
            });
            let met = || disk.state().components[1].volume.store().defect_effects().held_up;
            while met() == 0 || disk.under_way().longest() > Duration::ZERO {
                assert!(!synced.is_finished(), "it waits for the copy");
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(stalled);
            assert_eq!(synced.join().expect("no panic"), Ok(()));
        });
        mount.power_off();
        disk.lose(&mount).expect("closed");
    }

    #[test]
    fn a_copy_whose_disk_does_not_answer_loses_its_power_like_any_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 2, Promotion::UpToDate) else {
            return eprintln!(
                "skipped: a_copy_whose_disk_does_not_answer: no network namespace may be entered"
            );
        };
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        assert!(disk.settle(Duration::from_secs(30)), "the other component is up to date");
        let stalled = disk.hosts[B].disk.impose(disk::Defect::Stall);
        let mirror = disk.state().serving.as_ref().expect("open").mirror.clone();
        let attributes = disk::Attributes::new(0o644, 0, 0, std::time::SystemTime::UNIX_EPOCH);
        mirror.make(disk::ROOT, "f".as_ref(), &disk::NewInode::File, attributes).expect("made here");
        while disk.state().components[1].volume.store().defect_effects().held_up == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        disk.host_is_off(B).expect("off, although it waits for its disk");
        drop(stalled);
        disk.host_is_on(B).expect("on");
        assert!(disk.settle(Duration::from_secs(30)), "it catches up");
        mount.power_off();
        disk.lose(&mount).expect("closed");
    }

    #[test]
    fn a_volume_follows_its_node_to_a_host_with_a_component_and_to_one_without() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 5, Promotion::UpToDate) else {
            return eprintln!("skipped: a_volume_follows_its_node: no network namespace may be entered");
        };
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        let first: Arc<dyn Files> = disk.state().serving.as_ref().expect("open").mirror.clone();
        let attributes = disk::Attributes::new(0o644, 0, 0, std::time::SystemTime::UNIX_EPOCH);
        let make = |name: &str| {
            disk::ask(first.as_ref(), |files| {
                files.make(disk::ROOT, name.as_ref(), &disk::NewInode::File, attributes)
            })
        };
        let open = make("open").expect("made").inode;
        disk::ask(first.as_ref(), |files| files.open(open)).expect("opened");
        for (host, name, served) in [(C, "c", "a"), (B, "b", "b"), (C, "c", "b"), (A, "a", "a")] {
            assert!(disk.settle(Duration::from_secs(30)), "the other component is up to date");
            disk.may_follow(host).expect("it may");
            assert!(disk.follow(host), "{name}");
            assert_eq!(where_open(&disk).last(), Some(&(name.to_owned(), served.to_owned())));
            make(&format!("on {name} by {served}")).expect("made there");
            disk::ask(first.as_ref(), |files| files.write(open, 0, b"x", None, false, std::time::UNIX_EPOCH))
                .expect("what is open stays open");
            disk::ask(first.as_ref(), |files| files.sync(open, disk::Scope::All)).expect("synced");
        }
        let names = disk::ask(first.as_ref(), |files| files.list(disk::ROOT)).expect("a list");
        assert_eq!(names.len(), 2 + 5);
        mount.power_off();
        assert_eq!(make("late").map(drop), Err(disk::Refusal::EIO));
        disk.lose(&mount).expect("closed");
    }

    #[test]
    fn service_moves_to_the_other_host_when_the_disk_refuses_or_is_silent_and_home_again_when_that_one_does()
    {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 3, Promotion::UpToDate) else {
            return eprintln!(
                "skipped: service_moves_to_the_other_host: no network namespace may be entered"
            );
        };
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        let first: Arc<dyn Files> = disk.state().serving.as_ref().expect("open").mirror.clone();
        let attributes = disk::Attributes::new(0o644, 0, 0, std::time::SystemTime::UNIX_EPOCH);
        let make = |name: &str| {
            let made = disk::ask(first.as_ref(), |files| {
                files.make(disk::ROOT, name.as_ref(), &disk::NewInode::File, attributes)
            });
            made.map(drop)
        };
        for (host, name, served) in [(A, "x", "b"), (B, "y", "a"), (A, "z", "b")] {
            assert!(disk.settle(Duration::from_secs(30)), "the other component is up to date");
            let refuses = disk.hosts[host].disk.impose(disk::Defect::Fail);
            assert_eq!(make(name), Ok(()), "{name}");
            assert_eq!(make(name), Err(disk::Refusal::EEXIST), "done once");
            drop(refuses);
            assert_eq!(where_open(&disk).last(), Some(&("a".to_owned(), served.to_owned())));
        }
        let stalls = disk.hosts[B].disk.impose(disk::Defect::Stall);
        std::thread::scope(|scope| {
            let making = scope.spawn(|| make("slow"));
            while !making.is_finished() {
                // What the watch does while loads run.
                let _ = disk.look_after(&|_| true);
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(making.join().expect("no panic"), Ok(()));
        });
        drop(stalls);
        assert_eq!(where_open(&disk).last(), Some(&("a".to_owned(), "a".to_owned())));
        let both = [A, B].map(|host| disk.hosts[host].disk.impose(disk::Defect::Fail));
        assert_eq!(make("nowhere"), Err(disk::Refusal::EIO));
        drop(both);
        let names = disk::ask(first.as_ref(), |files| files.list(disk::ROOT)).expect("a list");
        assert_eq!(names.len(), 2 + 4);
        mount.power_off();
        assert_eq!(make("late"), Err(disk::Refusal::EIO));
        disk.lose(&mount).expect("closed");
        assert!(disk.openings()[1..].iter().all(|of| of.moved.is_some()));
    }
}
