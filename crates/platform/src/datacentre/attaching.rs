//! A place's network namespace and its port on the fabric.

use std::os::fd::OwnedFd;

use fabric::{Fabric, PortId};
use lab::{Addresses, Attachment, Family};

use super::DatacentreError;

/// A copy of an interface's descriptor, for the fabric.
///
/// # Errors
/// When descriptors are used up.
pub(super) fn copy(tun: &OwnedFd, path: &[String]) -> Result<OwnedFd, DatacentreError> {
    tun.try_clone().map_err(|source| DatacentreError::Descriptor { place: path.join("/"), source })
}

/// Makes a place's namespace and joins it to the fabric.
///
/// # Errors
/// When the kernel refuses the namespace, or the fabric is gone.
pub(super) fn attach(
    fabric: &Fabric,
    path: &[String],
    addresses: Addresses,
) -> Result<(Attachment, PortId), DatacentreError> {
    let attachment = Attachment::make(addresses)
        .map_err(|source| DatacentreError::Attachment { place: path.join("/"), source })?;
    let tun = copy(&attachment.tun, path)?;
    let port = fabric.attach(path.to_vec(), addresses.all(Family::V4), tun)?;
    Ok((attachment, port))
}
