//! What of the nodes' volumes lies on which disks and hosts: whole volumes, and components of mirrored ones.

use std::collections::BTreeSet;
use std::ffi::OsString;

use disk::mirror::Standing;
use disk::{Kind, Lost, Met, ROOT, Refusal};
use history::Verdict;
use scenario::node_name;

use super::NodeVolume;
use super::mirrored::MirroredDisk;
use super::standing::Role;

/// A volume, or a component of one, that lies on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lying {
    /// Whose it is, by number.
    pub vm: usize,
    /// Of a mirrored volume, which component, and its host.
    component: Option<(usize, String)>,
}

impl Lying {
    /// As a person would say it.
    #[must_use]
    pub fn in_words(&self) -> String {
        let node = node_name(self.vm);
        match &self.component {
            None => format!("the volume of {node}"),
            Some((_, host)) => format!("the component on {host} of the volume of {node}"),
        }
    }
}

impl NodeVolume {
    /// Names of the disks that it, or a component of it, lies on.
    #[must_use]
    pub fn disks(&self) -> BTreeSet<String> {
        match self {
            NodeVolume::Mirrored(mirrored) => mirrored.disks(),
            _ => self.disk().iter().map(|disk| disk.name().to_owned()).collect(),
        }
    }

    /// What of it lies on one of these disks. `vm` is whose it is.
    #[must_use]
    pub fn lying_on(&self, vm: usize, disks: &BTreeSet<String>) -> Vec<Lying> {
        let NodeVolume::Mirrored(mirrored) = self else {
            let is_there = self.disk().is_some_and(|under| disks.contains(under.name()));
            return is_there.then_some(Lying { vm, component: None }).into_iter().collect();
        };
        let components = mirrored.components_on(disks).into_iter();
        components.map(|component| Lying { vm, component: Some(component) }).collect()
    }

    /// What operations of it have met on its disk so far.
    #[must_use]
    pub fn met_by(&self, lying: &Lying) -> Option<Met> {
        match (self, &lying.component) {
            (NodeVolume::Directory, _) => None,
            (NodeVolume::Virtual(disk), _) => Some(disk.volume.store().met()),
            (NodeVolume::Mirrored(disk), component) => disk.met_by(component.as_ref()?.0),
        }
    }
}

impl NodeVolume {
    /// What the power-off of these hosts has just taken from components on them, as evidence; but for the one that served,
    /// of which the volume itself tells. `vm` is whose it is.
    #[must_use]
    pub fn losses_of_copies(&self, vm: usize, hosts: &[usize]) -> Vec<(Verdict, String)> {
        let copies =
            self.mirrored().map(|mirrored| mirrored.copies_on(hosts)).unwrap_or_default().into_iter();
        copies
            .map(|(lying, lost)| {
                super::loss_in_words(&Lying { vm, component: Some(lying) }.in_words(), &lost)
            })
            .collect()
    }
}

impl MirroredDisk {
    /// Components on these hosts that do not serve and did not last, with what their last power-off took.
    fn copies_on(&self, hosts: &[usize]) -> Vec<((usize, String), Result<Lost, String>)> {
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
    pub fn told_on(&self, vm: usize, hosts: &[usize]) -> Vec<(usize, String, bool)> {
        let roles: Vec<Role> = self.states().into_iter().map(|state| state.role).collect();
        let state = self.state();
        let components = state.components.iter().enumerate().filter(|(_, of)| hosts.contains(&of.host));
        let told = components.filter_map(|(number, of)| match roles.get(number)? {
            Role::Peer(standing) if of.is_on() => {
                let lying = Lying { vm, component: Some((number, of.place.name.clone())) };
                Some((number, lying.in_words(), *standing == Standing::Live))
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
        let read = named(&entries, file).map_or(Ok(0), |number| volume.read(number, 0, &mut content))?;
        content.truncate(read);
        Ok((entries.into_iter().map(|(name, ..)| name).collect(), content))
    }

    fn disks(&self) -> BTreeSet<String> {
        self.state().components.iter().map(|of| of.place.disk.name().to_owned()).collect()
    }

    /// Components that lie on one of these disks, each by number with its host.
    fn components_on(&self, disks: &BTreeSet<String>) -> Vec<(usize, String)> {
        let state = self.state();
        let components = state.components.iter().enumerate();
        let on_them = components
            .filter(|(number, of)| disks.contains(of.place.disk.name()) && !state.retired.contains(number));
        on_them.map(|(number, of)| (number, of.place.name.clone())).collect()
    }

    fn met_by(&self, component: usize) -> Option<Met> {
        self.state().components.get(component).map(|of| of.volume.store().met())
    }
}
