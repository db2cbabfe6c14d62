//! The kernel's own path of a datacentre: what the lab's routing namespace is to the fabric.
//!
//! Owns joining a place to both. Which pairs go which way the fabric decides, whenever a rule, a count, a capture or a power
//! switch changes what is asked of them.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fabric::{Bypass, Fabric, FabricError, PortId, Ways};
use faults::{Lie, Planted};
use lab::routing::{Carried, RoutingError};
use lab::{Addresses, KernelEnd, RoutingNamespace};
use scenario::NetworkPath;

/// The routing namespace, where the scenario asks for one.
#[derive(Debug, Clone, Default)]
pub struct KernelPath {
    routing: Option<Arc<RoutingNamespace>>,
    /// A lie that tests plant: who goes by the kernel goes on so.
    kept_by: KeptBy,
}

/// Who keeps to it, whatever is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum KeptBy {
    #[default]
    Nobody,
    /// The node of this name.
    Node(&'static str),
    Everybody,
}

impl KeptBy {
    /// What tests have planted. The one node is none that is looked at first.
    fn of(planted: &Planted) -> KeptBy {
        match () {
            () if planted.contains(&Lie::PathKept) => KeptBy::Everybody,
            () if planted.contains(&Lie::PathKeptByOne) => KeptBy::Node("n3"),
            () => KeptBy::Nobody,
        }
    }
}

/// Which pairs went past the fabric, and what the kernel carried for them.
#[derive(Debug)]
pub struct KernelPathShown {
    /// Which way packets go now, and how often that has changed.
    pub ways: Ways,
    /// What the routing namespace counted. Nothing is known of single pairs or of links.
    pub carried: io::Result<Carried>,
}

/// What joins a place to the network.
pub(crate) struct Joining {
    pub(crate) place: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) tun: OwnedFd,
    pub(crate) way_past: Option<WayPast>,
}

/// A place's end of the kernel's own path, as the fabric's way past itself.
#[derive(Debug, Clone)]
pub(crate) struct WayPast {
    end: KernelEnd,
    is_kept: bool,
}

impl Bypass for WayPast {
    fn open(&mut self, to: &[IpAddr]) -> io::Result<()> {
        self.end.open(to)
    }

    fn close(&mut self, to: &[IpAddr]) -> io::Result<()> {
        if self.is_kept { Ok(()) } else { self.end.close(to) }
    }

    fn shut(&mut self) -> io::Result<()> {
        self.end.shut()
    }
}

impl KernelPath {
    /// That of a site.
    ///
    /// # Errors
    /// When the kernel refuses the routing namespace.
    pub(crate) fn of(path: NetworkPath, planted: &Planted) -> Result<KernelPath, RoutingError> {
        let routing = match path {
            NetworkPath::Fabric => None,
            NetworkPath::Kernel => Some(Arc::new(RoutingNamespace::make()?)),
        };
        Ok(KernelPath { routing, kept_by: KeptBy::of(planted) })
    }

    /// Joins a new network namespace to it, that of a node with its name; nothing where there is none.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn join(
        &self,
        namespace: &OwnedFd,
        addresses: Addresses,
        node: Option<&str>,
    ) -> Result<Option<WayPast>, RoutingError> {
        let Some(routing) = &self.routing else { return Ok(None) };
        let end = routing.join(namespace, addresses)?;
        let is_kept = match self.kept_by {
            KeptBy::Nobody => false,
            KeptBy::Node(name) => node == Some(name),
            KeptBy::Everybody => true,
        };
        Ok(Some(WayPast { end, is_kept }))
    }

    /// Whether there is one.
    pub(crate) fn is_used(&self) -> bool {
        self.routing.is_some()
    }

    /// What went that way; nothing where there is none. Where the fabric is gone, a place may have stayed on it.
    pub(crate) fn shown(&self, fabric: &Fabric) -> Option<KernelPathShown> {
        let routing = self.routing.as_ref()?;
        let nobody_knows = |_| Ways { places_unshut: 1, ..Ways::default() };
        let ways = fabric.ways().unwrap_or_else(nobody_knows);
        Some(KernelPathShown { ways, carried: routing.carried() })
    }
}

/// Gives a place its port on the fabric, and the fabric the place's way past it.
///
/// # Errors
/// When the fabric refuses, or is gone.
pub(crate) fn attach(fabric: &Fabric, joining: Joining) -> Result<PortId, FabricError> {
    let Joining { place, addresses, tun, way_past } = joining;
    match way_past {
        None => fabric.attach(place, addresses, tun),
        Some(way_past) => fabric.attach_with_bypass(place, addresses, tun, Box::new(way_past)),
    }
}
