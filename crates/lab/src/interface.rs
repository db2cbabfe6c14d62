//! The one network interface of a place: a TUN device made and configured in the calling thread's namespace.
//!
//! Sources: Linux `Documentation/networking/tuntap.rst`, netdevice(7).

use std::fs::OpenOptions;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Name of the interface inside every place.
pub const INTERFACE_NAME: &str = "eth0";

/// Bits of the lab's network: one flat network, whose distances are the fabric's business.
pub const PREFIX_BITS: u8 = 8;

const TUN_DEVICE: &str = "/dev/net/tun";
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETPERSIST: libc::c_ulong = 0x4004_54cb;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
/// Checksums and segmentation of TCP over IPv4 and IPv6, with ECN, left to the receiver.
const OFFLOADS_TCP: libc::c_ulong = 0x01 | 0x02 | 0x04 | 0x08;
/// Segmentation of UDP (Linux 6.2 and later).
const OFFLOADS_UDP: libc::c_ulong = 0x20 | 0x40;

/// What can go wrong with an interface.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// The TUN device cannot be opened.
    #[error("open {TUN_DEVICE}: {0}; `holdfast doctor` says how to allow it")]
    Open(#[source] io::Error),
    /// A step of the set-up was refused.
    #[error("{step} on {INTERFACE_NAME}: {source}")]
    SetUp {
        /// The step.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// `struct ifreq`: a name and 24 bytes whose meaning depends on the request.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    data: [u8; 24],
}

impl InterfaceRequest {
    fn new(name: &str) -> InterfaceRequest {
        let mut request = InterfaceRequest { name: [0; 16], data: [0; 24] };
        let length = name.len().min(15);
        request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
        request
    }

    fn with(mut self, offset: usize, bytes: &[u8]) -> InterfaceRequest {
        self.data[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn with_address(self, address: Ipv4Addr) -> InterfaceRequest {
        self.with(0, &(libc::AF_INET as u16).to_ne_bytes()).with(4, &address.octets())
    }

    fn send(
        mut self,
        socket: &OwnedFd,
        request: libc::c_ulong,
        step: &'static str,
    ) -> Result<(), InterfaceError> {
        // SAFETY: the descriptor is open and `self` is laid out as the kernel's `struct ifreq`.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, std::ptr::from_mut(&mut self)) };
        if result < 0 {
            Err(InterfaceError::SetUp { step, source: io::Error::last_os_error() })
        } else {
            Ok(())
        }
    }
}

/// Makes the place's TUN interface with `address` and brings it and the loopback up, in the network namespace of
/// the calling thread. The descriptor is non-blocking and carries frames with a virtio-net header.
///
/// # Errors
/// When the device cannot be opened or a step is refused.
pub fn make(address: Ipv4Addr, mtu_bytes: u32) -> Result<OwnedFd, InterfaceError> {
    let tun: OwnedFd = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(TUN_DEVICE)
        .map_err(InterfaceError::Open)?
        .into();
    let flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    InterfaceRequest::new(INTERFACE_NAME).with(0, &flags.to_ne_bytes()).send(&tun, TUNSETIFF, "TUNSETIFF")?;
    set_offloads(&tun)?;
    // Closing a device that is not persistent waits for a grace period of the kernel, tens of milliseconds each;
    // a persistent one goes with its namespace.
    flag(&tun, TUNSETPERSIST, 1, "TUNSETPERSIST")?;
    // The fabric speaks IPv4 so far; link-local IPv6 chatter would only be dropped there. A kernel without IPv6 has
    // no such file and nothing to turn off.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{INTERFACE_NAME}/disable_ipv6"), "1");

    let socket = control_socket()?;
    let mtu = i32::try_from(mtu_bytes).unwrap_or(i32::MAX);
    InterfaceRequest::new(INTERFACE_NAME).with(0, &mtu.to_ne_bytes()).send(
        &socket,
        libc::SIOCSIFMTU,
        "set MTU",
    )?;
    InterfaceRequest::new(INTERFACE_NAME).with_address(address).send(
        &socket,
        libc::SIOCSIFADDR,
        "set address",
    )?;
    let mask = Ipv4Addr::from(u32::MAX << (32 - PREFIX_BITS));
    InterfaceRequest::new(INTERFACE_NAME).with_address(mask).send(
        &socket,
        libc::SIOCSIFNETMASK,
        "set netmask",
    )?;
    bring_up(&socket, INTERFACE_NAME)?;
    bring_up(&socket, "lo")?;
    Ok(tun)
}

/// Brings the loopback interface up in the calling thread's network namespace.
///
/// # Errors
/// When the kernel refuses.
pub fn bring_up_loopback() -> Result<(), InterfaceError> {
    bring_up(&control_socket()?, "lo")
}

fn bring_up(socket: &OwnedFd, name: &str) -> Result<(), InterfaceError> {
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    InterfaceRequest::new(name).with(0, &flags.to_ne_bytes()).send(socket, libc::SIOCSIFFLAGS, "bring up")
}

fn set_offloads(tun: &OwnedFd) -> Result<(), InterfaceError> {
    flag(tun, TUNSETOFFLOAD, OFFLOADS_TCP | OFFLOADS_UDP, "TUNSETOFFLOAD")
        .or_else(|_| flag(tun, TUNSETOFFLOAD, OFFLOADS_TCP, "TUNSETOFFLOAD"))
}

fn flag(
    tun: &OwnedFd,
    request: libc::c_ulong,
    value: libc::c_ulong,
    step: &'static str,
) -> Result<(), InterfaceError> {
    // SAFETY: the descriptor is open; these requests take their argument by value.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), request, value) };
    if result < 0 { Err(InterfaceError::SetUp { step, source: io::Error::last_os_error() }) } else { Ok(()) }
}

fn control_socket() -> Result<OwnedFd, InterfaceError> {
    // SAFETY: socket(2) takes no pointers; a descriptor it returns is ours alone.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(InterfaceError::SetUp { step: "open socket", source: io::Error::last_os_error() });
        }
        Ok(OwnedFd::from_raw_fd(socket))
    }
}
