//! Service that moves while its node runs: to another component because the disk under the one that serves refuses, or gives no
//! sign; with the node when that goes on on another host.
//!
//! Owns which component takes over and what becomes of the one that served. That nothing is missing there is for
//! `disk::mirror`.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;

use disk::Files;
use history::HostId;

use super::component::Component;
use super::opening::{OpenError, RemoteService, ServingMirror, ServingReason, is_usable};
use super::{MirroredDisk, Move, Serving, State};

impl MirroredDisk {
    /// The disk under the component that serves has refused an operation: moves service to one that is live, the node's own
    /// host's first. Returns what the mount is to ask from here on; `None` when there is no such component.
    pub(super) fn move_from(&self, mirror: &Arc<ServingMirror>) -> Option<Arc<dyn Files>> {
        for (peer, number) in self.candidates(mirror)? {
            if !mirror.hand_over(peer) {
                continue;
            }
            let mut state = self.state_unless(|| mirror.is_over())?;
            if mirror.is_over() || !serves(&state, mirror) {
                return None;
            }
            let serving = state.serving.as_ref()?;
            let did = match state.silent.contains(&serving.component) {
                true => format!("did not answer for {} s", self.policy.timeout.as_secs_f64()),
                false => "refused an operation".to_owned(),
            };
            let from = &state.components[serving.component].place.name;
            let why = format!("the disk under the component on {from} {did}");
            let host = serving.host;
            return self.take_over(&mut state, (number, host), why);
        }
        let mut state = self.state_unless(|| mirror.is_over())?;
        state.stayed_at = Some(Instant::now());
        let serving =
            state.serving.as_ref().filter(|_| serves(&state, mirror)).map(|serving| serving.component);
        if let Some(number) = serving.filter(|number| state.silent.remove(number)) {
            // Where nobody else serves, the disk is waited for.
            state.components[number].volume.interrupt(false);
        }
        None
    }

    /// Whether the node could go on on another host: whether that has a component that is live, or reaches the one that serves.
    ///
    /// # Errors
    /// When it does not.
    pub fn may_follow(&self, host: HostId) -> Result<(), OpenError> {
        let Some((_, serving, own)) = self.seen_from(host) else { return Ok(()) };
        if own.is_some() || serving.host == host || self.reaches(host, &serving) {
            return Ok(());
        }
        let (host, component) = (self.hosts[host].name.clone(), serving.place.name.clone());
        Err(OpenError::Unreachable { host, component })
    }

    /// The node goes on on another host: its component serves from here on where there is one that is live, else the same as
    /// before, over the network where the two are on different hosts. Whether it is so; without effect while nothing is served.
    #[must_use]
    pub fn follow(&self, host: HostId) -> bool {
        let Some((mirror, _, own)) = self.seen_from(host) else { return true };
        mirror.move_with_node(|| {
            let own = own.filter(|(peer, _)| mirror.hand_over(*peer));
            if own.is_none() {
                mirror.hold_changes();
            }
            let mut state = self.state_unless(|| mirror.is_over())?;
            if mirror.is_over() || !serves(&state, &mirror) {
                return None;
            }
            let serving = state.serving.as_ref()?;
            let number = own.map_or(serving.component, |(_, number)| number);
            let why =
                format!("the node moved from {} to {}", self.hosts[serving.host].name, self.hosts[host].name);
            self.take_over(&mut state, (number, host), why)
        })
    }

    /// What serves, its component, and the live component of a host that does not serve, with its number among the peers.
    #[allow(clippy::type_complexity, reason = "taken apart where it is asked for")]
    fn seen_from(
        &self,
        host: HostId,
    ) -> Option<(Arc<ServingMirror>, Arc<Component>, Option<(usize, usize)>)> {
        let state = self.state();
        let serving = state.serving.as_ref()?;
        let is_own = |(peer, number): &(usize, usize)| {
            state.components[*number].host == host
                && is_usable(&state, *number)
                && self.is_live(&serving.mirror, (*peer, *number))
        };
        let own = serving.peers.iter().copied().enumerate().find(is_own);
        Some((serving.mirror.clone(), state.components[serving.component].clone(), own))
    }

    /// A disk that gives no sign for the timeout is given up like a component that gives none, where there is another to serve:
    /// what waits for it is refused, and moves service. Once it has moved, or the disk is sound, the disk is asked again.
    pub(super) fn give_up_a_silent_disk(&self) {
        let mut state = self.state();
        let Some(serving) = &state.serving else { return };
        let (serves, disk) = (serving.component, &state.components[serving.component].place.disk);
        let is_sound = disk.is_sound();
        let waits = state.components[serves].volume.store().longest_wait() >= self.policy.timeout;
        // How the others stand takes a walk over what they lack, and is asked ten times a second.
        let gives_up = waits && self.any_live(serving);
        let is_asked = |number: &usize| *number != serves || is_sound;
        let asked_again: Vec<usize> = state.silent.iter().copied().filter(is_asked).collect();
        for number in asked_again {
            state.silent.remove(&number);
            state.components[number].volume.interrupt(false);
        }
        if gives_up {
            state.components[serves].volume.interrupt(true);
            state.silent.insert(serves);
        }
    }

    fn any_live(&self, serving: &Serving) -> bool {
        serving.peers.iter().copied().enumerate().any(|of| self.is_live(&serving.mirror, of))
    }

    /// Components that are live and can be reached from the node's host, each with its number among the peers.
    fn candidates(&self, mirror: &Arc<ServingMirror>) -> Option<Vec<(usize, usize)>> {
        let (live, host) = {
            let state = self.state_unless(|| mirror.is_over())?;
            let serving = state.serving.as_ref().filter(|_| serves(&state, mirror))?;
            // Trying costs whoever waits the time in which a host that cannot be reached does not answer.
            let tried = state.stayed_at.is_some_and(|at| at.elapsed() < self.policy.timeout);
            let may = |(peer, number): &(usize, usize)| {
                is_usable(&state, *number) && self.is_live(mirror, (*peer, *number))
            };
            let numbered = serving.peers.iter().copied().enumerate();
            let live: Vec<_> = numbered.filter(may).filter(|_| !tried).collect();
            let components = live.iter().map(|(_, number)| state.components[*number].clone());
            (live.iter().copied().zip(components).collect::<Vec<_>>(), serving.host)
        };
        let mut found: Vec<_> = live
            .into_iter()
            .filter(|(_, component)| component.host == host || self.reaches(host, component))
            .collect();
        found.sort_by_key(|(_, component)| component.host != host);
        Some(found.into_iter().map(|(numbers, _)| numbers).collect())
    }

    /// Lets a component serve a node on a host in place of what serves now, which may be the same component.
    fn take_over(
        &self,
        state: &mut State,
        (number, host): (usize, HostId),
        moved: String,
    ) -> Option<Arc<dyn Files>> {
        let mut old = state.serving.take()?;
        let next = state.components[number].clone();
        let is_another = number != old.component;
        if is_another {
            // It has carried out all there was.
            let _ = next.drain();
        }
        self.note_ends(state, &old);
        let opening = self.opening(state, &old);
        let (lacking, refused) = old.mirror.end_handing_over();
        old.conversations.clear();
        let from = state.components[old.component].clone();
        {
            let mut differences = self.differences();
            differences.ended(old.peers.iter().copied().zip(lacking));
            differences.lost(old.component, &refused);
        }
        if is_another {
            next.volume.take_over_from(&from.volume);
            from.volume.let_go_of_all();
        }
        let reason = ServingReason { forced: None, moved: Some(moved.clone()) };
        match self.serve(state, number, host, reason) {
            Ok(files) => {
                state.openings.push(opening);
                state.moves.push(Move { host: next.place.name.clone(), why: moved });
                if let Some(remote_service) = old.remote_service.take() {
                    retire(remote_service, files.clone());
                }
                Some(files)
            }
            Err(error) => {
                let place = &next.place.name;
                state.news.push(format!("{moved}, and it could not be served from {place}: {error}"));
                old.mirror.stop_waiting();
                state.serving = Some(old);
                None
            }
        }
    }
}

fn serves(state: &State, mirror: &Arc<ServingMirror>) -> bool {
    let is_it = |serving: &Serving| Arc::ptr_eq(&serving.mirror, mirror);
    state.serving.as_ref().is_some_and(is_it)
}

/// What was asked over this way is asked of the next: what is being carried out there is answered, over the network or, where a
/// connection broke, from the answers that were kept, as what serves next has them; everything else was not carried out.
fn retire(remote_service: RemoteService, next: Arc<dyn Files>) {
    remote_service.remote.move_to(next);
    // On a thread of its own, which ends what this one may be a part of; so without a thread it must not be dropped either.
    let remote_service = ManuallyDrop::new(remote_service);
    let retire = move || {
        let mut remote_service = ManuallyDrop::into_inner(remote_service);
        let carrier = remote_service.remote.carrier();
        carrier.retire();
        carrier.answered_by(remote_service.target.retire());
    };
    let _ = std::thread::Builder::new().name("target".to_owned()).spawn(retire);
}
