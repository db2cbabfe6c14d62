//! What becomes of a component that is missed for too long: another takes its place on another host, from nothing.

use std::io;
use std::sync::Arc;

use history::HostId;

use super::MirroredDisk;
use super::standing::in_bytes;

impl MirroredDisk {
    /// Puts a component that has been missed for too long on another host with power, where there is one.
    pub(super) fn rebuild_what_is_missed(&self, is_on: &dyn Fn(HostId) -> bool) -> Vec<String> {
        let missed: Vec<(usize, usize)> = {
            let state = self.state();
            let Some(serving) = &state.serving else { return Vec::new() };
            let missed = |peer: usize| serving.mirror.missed_for(peer) >= Some(self.storage.rebuild_after);
            let peers = serving.peers.iter().copied().enumerate();
            peers.filter(|(peer, number)| !state.retired.contains(number) && missed(*peer)).collect()
        };
        let mut told = Vec::new();
        for (_, number) in missed {
            let Some(host) = self.host_for_rebuild(number, is_on) else { continue };
            match self.rebuild(number, host) {
                Ok(what) => told.push(what),
                Err(error) => {
                    told.push(format!(
                        "a component could not be rebuilt on {}: {error}",
                        self.hosts[host].name
                    ));
                }
            }
        }
        told
    }

    /// A host with power, apart from the components that stay as the scenario asks.
    fn host_for_rebuild(&self, missed: usize, is_on: &dyn Fn(HostId) -> bool) -> Option<HostId> {
        let state = self.state();
        let stay = (0..state.components.len()).filter(|of| *of != missed && !state.retired.contains(of));
        let stay: Vec<HostId> = stay.map(|of| state.components[of].host).collect();
        let rack = |host: HostId| self.hosts[host].name.rsplit_once('/').map(|(rack, _)| rack);
        let apart = |host: &HostId| match self.storage.apart {
            scenario::Apart::Hosts => !stay.contains(host),
            scenario::Apart::Racks => stay.iter().all(|other| rack(*other) != rack(*host)),
        };
        let missed_on = state.components[missed].host;
        self.hosts.ids().find(|host| *host != missed_on && is_on(*host) && apart(host))
    }

    fn rebuild(&self, missed: usize, host: HostId) -> io::Result<String> {
        let component = Arc::new(self.component_on(host)?);
        let mut state = self.state();
        let gone = state.components[missed].place.name.clone();
        let Some(mut serving) = state.serving.take() else {
            // Nobody to copy from: an empty one must not be taken for one that has all.
            return Ok(format!("nothing serves any more, so that the component on {gone} is kept"));
        };
        let number = state.components.len();
        state.components.push(component);
        state.retired.insert(missed);
        // The conversation with the one that is given up ends with it.
        if let Some(peer) = serving.peers.iter().position(|of| *of == missed) {
            serving.conversations[peer].stop();
        }
        let peer = serving.mirror.add_empty();
        debug_assert_eq!(peer, serving.peers.len());
        let begun = self.converse(&state, &mut serving, number);
        let bytes = serving.mirror.state(peer).bytes_left;
        state.serving = Some(serving);
        begun?;
        let place = &self.hosts[host].name;
        Ok(format!(
            "the component on {gone} has been missing for {} s and is abandoned; a new one is built on {place}: {} \
             to copy",
            self.storage.rebuild_after.as_secs_f64(),
            in_bytes(bytes)
        ))
    }
}
