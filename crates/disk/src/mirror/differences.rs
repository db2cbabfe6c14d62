//! What components lack of each other while none of them serves: from one that served to the next.
//!
//! Pure. A real component keeps this on its own device, in a bitmap and a log of extents being written.

use std::collections::BTreeMap;

use crate::dirt::Dirt;
use crate::store::Store;
use crate::volume::Volume;

/// The differences between a volume's components, which are told apart by number.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// What each lacks, or may lack, of the one that served last.
    lacking: BTreeMap<usize, Dirt>,
    /// What power-offs took back on each, of which the one that serves has not been told.
    lost: BTreeMap<usize, Dirt>,
    generation: u64,
}

impl Differences {
    /// A power-off took this back on a component.
    pub fn lost(&mut self, component: usize, dirt: &Dirt) {
        self.lost.entry(component).or_default().add(dirt);
    }

    /// What the one that serves must be told when a component connects; afterwards it has been told.
    #[must_use]
    pub fn take_lost(&mut self, component: usize) -> Dirt {
        self.lost.remove(&component).unwrap_or_default()
    }

    /// A connection could not be used after all: what it was told is to be told again.
    pub fn untold(&mut self, component: usize, dirt: &Dirt) {
        self.lost(component, dirt);
    }

    /// Whether power-offs took something back on a component of which the one that serves has not been told.
    #[must_use]
    pub fn is_untold(&self, component: usize) -> bool {
        self.lost.contains_key(&component)
    }

    /// Service ended: this is what others lack, or may lack, of the one that served.
    pub fn ended(&mut self, lacking: impl IntoIterator<Item = (usize, Dirt)>) {
        for (component, dirt) in lacking {
            self.lacking.entry(component).or_default().add(&dirt);
        }
    }

    /// How often a component has begun to serve.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What a component lacks of the one that served last, in bytes, going by the files on `volume`.
    #[must_use]
    pub fn bytes_lacking<S: Store>(&self, component: usize, volume: &Volume<S>) -> u64 {
        self.lacking.get(&component).map_or(0, |dirt| dirt.bytes(|number| volume.size_of(number)))
    }

    /// A component begins to serve. Returns what each of the others may lack of it: what it lacks of the one that served
    /// last, and what the new one does, on which the other may be ahead; the new one wins.
    #[must_use]
    pub fn serve_from(&mut self, serving: usize, others: &[usize]) -> Vec<Dirt> {
        self.generation += 1;
        let mut common = self.lacking.remove(&serving).unwrap_or_default();
        common.add(&self.take_lost(serving));
        let mut all = std::mem::take(&mut self.lacking);
        let of = |component: &usize| {
            let mut dirt = all.remove(component).unwrap_or_default();
            dirt.add(&common);
            dirt
        };
        others.iter().map(of).collect()
    }
}
