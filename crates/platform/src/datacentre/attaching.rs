//! A place's network namespace and its port on the fabric.

use std::os::fd::OwnedFd;

use fabric::{Fabric, PortId};
use lab::{Addresses, Attachment, Family};

use super::DatacentreError;
use crate::kernel_path::{self, Joining, KernelPath, WayPast};

/// A copy of an interface's descriptor, for the fabric.
///
/// # Errors
/// When descriptors are used up.
fn copy(tun: &OwnedFd, path: &[String]) -> Result<OwnedFd, DatacentreError> {
    tun.try_clone().map_err(|source| DatacentreError::Descriptor { place: path.join("/"), source })
}

/// A place's namespace, its port, and its end of the kernel's own path where there is one.
pub(super) type Attached = (Attachment, PortId, Option<WayPast>);

/// Makes a place's namespace and joins it to the network.
///
/// # Errors
/// When the kernel refuses the namespace or a second interface, or the fabric is gone.
pub(super) fn attach(
    (fabric, kernel_path): (&Fabric, &KernelPath),
    path: &[String],
    addresses: Addresses,
) -> Result<Attached, DatacentreError> {
    let attachment = Attachment::make(addresses)
        .map_err(|source| DatacentreError::Attachment { place: path.join("/"), source })?;
    let way_past = kernel_path
        .join(&attachment.namespace, addresses, None)
        .map_err(|source| DatacentreError::KernelPath { place: path.join("/"), source })?;
    let port = attach_again(fabric, path, &attachment, way_past.clone())?;
    Ok((attachment, port, way_past))
}

/// Joins a place to the network that has been off it.
///
/// # Errors
/// When descriptors are used up, or the fabric is gone.
pub(super) fn attach_again(
    fabric: &Fabric,
    path: &[String],
    attachment: &Attachment,
    way_past: Option<WayPast>,
) -> Result<PortId, DatacentreError> {
    let tun = copy(&attachment.tun, path)?;
    let addresses = attachment.addresses.all(Family::V4);
    Ok(kernel_path::attach(fabric, Joining { place: path.to_vec(), addresses, tun, way_past })?)
}
