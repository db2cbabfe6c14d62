//! Which components of a mirrored volume lie on which disks and hosts, and what is on them.

use std::collections::BTreeSet;
use std::ffi::OsString;

use disk::mirror::Standing;
use disk::{DefectEffects, Kind, Lost, ROOT, Refusal};
use history::{HostId, NodeId};

use super::MirroredDisk;
use super::standing::Role;
use crate::part::VolumePart;

impl MirroredDisk {
    /// Components on these hosts that do not serve and did not last, with what their last power-off took.
    pub(crate) fn copies_on(&self, hosts: &[HostId]) -> Vec<((usize, String), Result<Lost, String>)> {
        let served = self.openings().pop().map(|last| last.component);
        let state = self.state();
        let components = state.components.iter().enumerate();
        let there = components.filter(|(number, of)| {
            hosts.contains(&of.host)
                && !state.retired.contains(number)
                && served.as_ref() != Some(&of.place.name)
        });
        there.filter_map(|(number, of)| Some(((number, of.place.name.clone()), of.last_loss()?))).collect()
    }

    /// Components on these hosts that are told by one that serves, each by number, in words, and whether it has all.
    #[must_use]
    pub fn peers_on(&self, vm: NodeId, hosts: &[HostId]) -> Vec<(usize, String, bool)> {
        let roles: Vec<Role> = self.states().into_iter().map(|state| state.role).collect();
        let state = self.state();
        let components = state.components.iter().enumerate().filter(|(_, of)| hosts.contains(&of.host));
        let told = components.filter_map(|(number, of)| match roles.get(number)? {
            Role::Peer(standing) if of.is_on() => {
                let part = VolumePart { vm, component: Some((number, of.place.name.clone())) };
                Some((number, part.in_words(), *standing == Standing::Live))
            }
            _ => None,
        });
        told.collect()
    }

    /// The names in a folder at the root of a component, and how a file there begins: as whoever started from it would read
    /// them. Nothing where there is no such folder.
    ///
    /// # Errors
    /// When it refuses.
    pub fn read_on(
        &self,
        component: usize,
        (folder, file): (&str, &str),
        bytes: usize,
    ) -> Result<(Vec<OsString>, Vec<u8>), Refusal> {
        let volume = self.state().components.get(component).map(|of| of.volume.clone());
        let volume = volume.ok_or(Refusal::ENODEV)?;
        let named = |entries: &[(OsString, u64, Kind)], name: &str| {
            entries.iter().find(|(entry, ..)| entry == name).map(|(_, number, _)| *number)
        };
        let Some(folder) = named(&volume.list(ROOT)?, folder) else { return Ok(Default::default()) };
        let entries = volume.list(folder)?;
        let mut content = vec![0; bytes];
        let read = named(&entries, file).map_or(Ok(0), |number| volume.look_at(number, 0, &mut content))?;
        content.truncate(read);
        Ok((entries.into_iter().map(|(name, ..)| name).collect(), content))
    }

    pub(crate) fn disks(&self) -> BTreeSet<String> {
        self.state().components.iter().map(|of| of.place.disk.name().to_owned()).collect()
    }

    /// Components that lie on one of these disks, each by number with its host.
    pub(crate) fn components_on(&self, disks: &BTreeSet<String>) -> Vec<(usize, String)> {
        let state = self.state();
        let components = state.components.iter().enumerate();
        let on_them = components
            .filter(|(number, of)| disks.contains(of.place.disk.name()) && !state.retired.contains(number));
        on_them.map(|(number, of)| (number, of.place.name.clone())).collect()
    }

    pub(crate) fn defect_effects_on(&self, component: usize) -> Option<DefectEffects> {
        self.state().components.get(component).map(|of| of.volume.store().defect_effects())
    }
}
