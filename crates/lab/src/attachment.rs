//! A place's attachment to the network: a network namespace with one interface, and the descriptors of both.
//!
//! Hosts and client places are nothing but an attachment; a node has one per boot.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use nix::sched::{CloneFlags, setns, unshare};

use crate::addresses::Addresses;
use crate::interface::{self, InterfaceError};

/// Bytes of the largest packet on the lab's wires, as on Ethernet.
pub const MTU_BYTES: u32 = 1500;

/// What can go wrong with an attachment.
#[derive(Debug, thiserror::Error)]
pub enum AttachmentError {
    /// The kernel gives no new network namespace.
    #[error("new network namespace: {0}")]
    Namespace(#[source] io::Error),
    /// The namespace's interface could not be set up.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// What the caller wanted done in the new namespaces failed.
    #[error("its mounts: {0}")]
    Dress(#[source] io::Error),
    /// The thread that makes it could not be started or panicked.
    #[error("maker thread: {0}")]
    Thread(#[source] io::Error),
}

/// A network namespace and its interface. The namespace lives as long as this does.
#[derive(Debug)]
pub struct Attachment {
    pub addresses: Addresses,
    /// The namespace, to be entered with [`enter`].
    pub namespace: OwnedFd,
    /// The interface's other end, for the fabric.
    pub tun: OwnedFd,
}

impl Attachment {
    /// Makes one on a thread of its own, so that the caller stays in its namespace.
    ///
    /// # Errors
    /// When the kernel refuses the namespace or the interface.
    pub fn make(addresses: Addresses) -> Result<Attachment, AttachmentError> {
        on_own_thread(move || Attachment::make_here(addresses))?
    }

    /// Makes one and leaves the calling thread inside its namespace.
    ///
    /// # Errors
    /// When the kernel refuses the namespace or the interface.
    pub fn make_here(addresses: Addresses) -> Result<Attachment, AttachmentError> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| AttachmentError::Namespace(error.into()))?;
        let namespace = File::open("/proc/thread-self/ns/net").map_err(AttachmentError::Namespace)?.into();
        let tun = interface::make(addresses, MTU_BYTES)?;
        Ok(Attachment { addresses, namespace, tun })
    }
}

/// Moves the calling thread into a network namespace, for good.
///
/// # Errors
/// When the kernel refuses.
pub fn enter(namespace: &OwnedFd) -> io::Result<()> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
}

/// Runs `work` on a thread that ends with it: what it does to its namespaces touches nobody else.
///
/// # Errors
/// When no thread is to be had, or `work` panicked.
pub fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, AttachmentError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("maker".to_owned())
            .spawn_scoped(scope, work)
            .map_err(AttachmentError::Thread)?;
        thread.join().map_err(|_| AttachmentError::Thread(io::Error::other("panicked")))
    })
}
