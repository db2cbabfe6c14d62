//! What of the nodes' volumes lies on which disks: whole volumes, and components of mirrored ones.

use std::collections::BTreeSet;

use disk::Met;

use super::NodeVolume;
use super::mirrored::MirroredDisk;
use crate::datacentre::node_name;

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

impl MirroredDisk {
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
