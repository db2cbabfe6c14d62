//! The network interface of a place: a TUN device made and configured in the calling thread's namespace.
//!
//! Sources: Linux `Documentation/networking/tuntap.rst` and `ip-sysctl.rst`, netdevice(7), ipv6(7), icmp(7).

use std::fs::OpenOptions;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use crate::addresses::Addresses;
use crate::ipv6::has_ipv6;

/// Name of the interface inside every place.
pub const INTERFACE_NAME: &str = "eth0";
/// Name of the second one, where the kernel's own path begins, in places that are joined to it.
pub const KERNEL_INTERFACE_NAME: &str = "eth1";

/// Bits of the lab's network: one flat network, whose distances are the fabric's business.
pub const PREFIX_BITS: u8 = 8;
/// The same for IPv6.
pub const PREFIX_BITS_V6: u8 = 64;
/// How long the kernel may take to put an IPv6 address or an interface into force, which it does on threads of its own.
pub(crate) const IN_FORCE_PATIENCE: Duration = Duration::from_secs(5);

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
        step: &'static str,
        /// What the operating system answered.
        source: io::Error,
    },
    /// An address was given and is not in force.
    #[error("{address} on {INTERFACE_NAME} is not in force after {} s", IN_FORCE_PATIENCE.as_secs())]
    NotInForce { address: Ipv6Addr },
}

/// `struct in6_ifreq`: an address for an interface, by its number.
#[repr(C)]
struct Ipv6Request {
    address: [u8; 16],
    prefix_bits: u32,
    interface: libc::c_int,
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
    ) -> Result<InterfaceRequest, InterfaceError> {
        // SAFETY: the descriptor is open and `self` is laid out as the kernel's `struct ifreq`.
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), request as libc::Ioctl, std::ptr::from_mut(&mut self)) };
        if result < 0 {
            Err(InterfaceError::SetUp { step, source: io::Error::last_os_error() })
        } else {
            Ok(self)
        }
    }
}

/// Makes the place's TUN interface with `addresses` (without the IPv6 one where the kernel knows none) and brings it and the loopback up, in the network namespace of
/// the calling thread. The descriptor is non-blocking and carries frames with a virtio-net header.
///
/// # Errors
/// When the device cannot be opened or a step is refused.
pub fn make(addresses: Addresses, mtu_bytes: u32) -> Result<OwnedFd, InterfaceError> {
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
    let ipv6 = has_ipv6();
    if ipv6 {
        quieten_ipv6()?;
    }
    allow_ping();

    let socket = control_socket(libc::AF_INET)?;
    let mtu = i32::try_from(mtu_bytes).unwrap_or(i32::MAX);
    InterfaceRequest::new(INTERFACE_NAME).with(0, &mtu.to_ne_bytes()).send(
        &socket,
        libc::SIOCSIFMTU,
        "set MTU",
    )?;
    InterfaceRequest::new(INTERFACE_NAME).with_address(addresses.ipv4()).send(
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
    if ipv6 {
        add_ipv6(addresses.ipv6())?;
    }
    Ok(tun)
}

/// Before the interface comes up: IPv6 on, whatever the machine's own default is, and nothing said that nobody asked
/// for. There is no router to solicit and nobody to have the same address; a link-local address would only be
/// announced to a network that carries nothing for it.
fn quieten_ipv6() -> Result<(), InterfaceError> {
    for (interface, name, value) in [
        ("lo", "disable_ipv6", "0"),
        (INTERFACE_NAME, "disable_ipv6", "0"),
        (INTERFACE_NAME, "addr_gen_mode", "1"),
        (INTERFACE_NAME, "accept_ra", "0"),
        (INTERFACE_NAME, "accept_dad", "0"),
    ] {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/{name}");
        // To write what is there already costs a round over all interfaces, under a lock of the whole machine.
        let set = std::fs::read_to_string(&path).is_ok_and(|present| present.trim() == value);
        if !set {
            std::fs::write(&path, value)
                .map_err(|source| InterfaceError::SetUp { step: "configure IPv6", source })?;
        }
    }
    Ok(())
}

/// Lets everybody in the namespace send echo requests, as distributions do: `ping` then works for a node's user. Of no
/// use to the lab itself, so that a kernel which refuses is none the worse. A namespace of a lab that an ordinary user
/// made has one group only.
fn allow_ping() {
    const PATH: &str = "/proc/sys/net/ipv4/ping_group_range";
    let _ = std::fs::write(PATH, "0 65535").or_else(|_| std::fs::write(PATH, "0 0"));
}

/// Gives the interface, which is up, its IPv6 address and returns when that is in force.
fn add_ipv6(address: Ipv6Addr) -> Result<(), InterfaceError> {
    let socket = control_socket(libc::AF_INET6)?;
    let refused = |source| InterfaceError::SetUp { step: "set IPv6 address", source };
    let number = nix::net::if_::if_nametoindex(INTERFACE_NAME).map_err(|error| refused(error.into()))?;
    let request = Ipv6Request {
        address: address.octets(),
        prefix_bits: PREFIX_BITS_V6.into(),
        interface: libc::c_int::try_from(number).map_err(|error| refused(io::Error::other(error)))?,
    };
    // SAFETY: the descriptor is open and `request` is laid out as the kernel's `struct in6_ifreq`.
    let result = unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR as libc::Ioctl, std::ptr::from_ref(&request))
    };
    if result < 0 {
        return Err(refused(io::Error::last_os_error()));
    }
    let deadline = Instant::now() + IN_FORCE_PATIENCE;
    while !is_in_force(address)? {
        if Instant::now() > deadline {
            return Err(InterfaceError::NotInForce { address });
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// Whether the kernel takes packets for the address as its own. It adds that route last, after the address can be
/// bound. To try it out with a packet would be wrong: before that route is there, the one to the whole network is, and
/// the packet would leave.
fn is_in_force(address: Ipv6Addr) -> Result<bool, InterfaceError> {
    // The calling thread's namespace is often not that of its process.
    let routes = std::fs::read_to_string("/proc/thread-self/net/ipv6_route")
        .map_err(|source| InterfaceError::SetUp { step: "read IPv6 routes", source })?;
    let whole = format!("{:032x} 80 ", u128::from(address));
    Ok(routes.lines().any(|route| route.starts_with(&whole)))
}

/// Brings the loopback interface up in the calling thread's network namespace.
///
/// # Errors
/// When the kernel refuses.
pub fn bring_up_loopback() -> Result<(), InterfaceError> {
    bring_up(&control_socket(libc::AF_INET)?, "lo")
}

fn bring_up(socket: &OwnedFd, name: &str) -> Result<(), InterfaceError> {
    let answer = InterfaceRequest::new(name).send(socket, libc::SIOCGIFFLAGS, "read flags")?;
    // The other flags must stay: without "no address resolution" the kernel announces the groups it would resolve
    // IPv6 addresses by.
    let flags = i16::from_ne_bytes([answer.data[0], answer.data[1]]) | libc::IFF_UP as i16;
    InterfaceRequest::new(name).with(0, &flags.to_ne_bytes()).send(socket, libc::SIOCSIFFLAGS, "bring up")?;
    Ok(())
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
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), request as libc::Ioctl, value) };
    if result < 0 { Err(InterfaceError::SetUp { step, source: io::Error::last_os_error() }) } else { Ok(()) }
}

fn control_socket(family: libc::c_int) -> Result<OwnedFd, InterfaceError> {
    // SAFETY: socket(2) takes no pointers; a descriptor it returns is ours alone.
    unsafe {
        let socket = libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(InterfaceError::SetUp { step: "open socket", source: io::Error::last_os_error() });
        }
        Ok(OwnedFd::from_raw_fd(socket))
    }
}
