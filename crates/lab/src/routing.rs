//! The kernel's own path: one routing namespace, joined to every place by a pair of interfaces, that forwards and does nothing
//! else.
//!
//! A place's second interface carries what its own routes send there, address by address; without such a route a packet goes
//! to the first interface, whose other end the fabric has. Owns the namespace, the pairs and the routes; who goes which way
//! is the caller's business.
//! Sources: Linux `Documentation/networking/ip-sysctl.rst`, veth(4), ip-route(8).

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};

use crate::addresses::{Addresses, Family};
use crate::attachment::{MTU_BYTES, enter, on_own_thread};
use crate::interface::{self, IN_FORCE_PATIENCE, INTERFACE_NAME, KERNEL_INTERFACE_NAME};
use crate::interface_losses::dropped_sending_of_line;
use crate::ipv6::has_ipv6;
use crate::netlink::{HardwareAddress, Hop, Request, Requests, VethEnd};

/// The routing namespace's card, the same at the end of every pair: no two of them are on one wire.
const ROUTER_CARD: HardwareAddress = [0x02, 0, 0, 0, 0, 0x01];
/// Gateways of every place. Nobody has these addresses: the card behind them is told, never asked for.
const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 0, 1));
const GATEWAY_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));

/// What can go wrong with the kernel's own path.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// The routing namespace could not be made.
    #[error("the kernel's own path: routing namespace: {0}")]
    Namespace(#[source] io::Error),
    /// A place could not be joined to it.
    #[error("the kernel's own path: {step}: {source}")]
    Join {
        step: &'static str,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// A network namespace that forwards between places.
#[derive(Debug)]
pub struct RoutingNamespace {
    namespace: OwnedFd,
    requests: Arc<Requests>,
    /// Pairs made so far: a name is never used twice, because a place's interfaces go some time after the place.
    pairs: AtomicU32,
}

/// What the routing namespace has carried, by its own count. Frames are counted as they come: several packets that the kernel
/// handles in one piece are one. Nothing is known of single pairs of places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carried {
    /// Frames forwarded.
    pub frames: u64,
    /// Bytes received, IP headers included, those of a frame of several packets once.
    pub bytes: u64,
    /// Frames that a place's interface did not take; of interfaces that are there now.
    pub dropped_frames: u64,
}

/// A place's end of the kernel's own path, closed to begin with.
#[derive(Debug, Clone)]
pub struct KernelEnd {
    addresses: Addresses,
    /// In the place.
    near: Arc<Requests>,
    near_interface: u32,
    /// In the routing namespace.
    far: Arc<Requests>,
    far_interface: u32,
}

impl RoutingNamespace {
    /// Makes one that forwards to nobody yet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make() -> Result<RoutingNamespace, RoutingError> {
        let made = on_own_thread(RoutingNamespace::make_here);
        made.map_err(io::Error::other).and_then(|made| made).map_err(RoutingError::Namespace)
    }

    fn make_here() -> io::Result<RoutingNamespace> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let namespace = OwnedFd::from(File::open("/proc/thread-self/ns/net")?);
        interface::bring_up_loopback().map_err(io::Error::other)?;
        set("ipv4/ip_forward", "1")?;
        set("ipv4/conf/all/rp_filter", "0")?;
        let requests = Requests::open()?;
        requests.ask(Request::put_black_hole(false))?;
        if has_ipv6() {
            set("ipv6/conf/lo/disable_ipv6", "0")?;
            set("ipv6/conf/all/forwarding", "1")?;
            requests.ask(Request::put_black_hole(true))?;
        }
        Ok(RoutingNamespace { namespace, requests: Arc::new(requests), pairs: AtomicU32::new(0) })
    }

    /// Joins a place to it. Routes to the place are there from now on; the place's own are closed.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn join(&self, place: &OwnedFd, addresses: Addresses) -> Result<KernelEnd, RoutingError> {
        let fail = |step| move |source| RoutingError::Join { step, source };
        let far_name = format!("k{}", self.pairs.fetch_add(1, Ordering::Relaxed) + 1);
        let card = card_of(addresses);
        let far = VethEnd { name: &far_name, address: ROUTER_CARD };
        let near = VethEnd { name: KERNEL_INTERFACE_NAME, address: card };
        self.requests
            .ask(Request::make_veth(&far, &near, place.as_raw_fd(), MTU_BYTES))
            .map_err(fail("make a pair of interfaces"))?;
        let far_interface = inside(&self.namespace, || quieten(&far_name))
            .map_err(fail("configure the routing namespace's interface"))?;
        let (near_interface, near) =
            inside(place, near_end).map_err(fail("configure the place's interface"))?;
        let to_routers = gateways().map(|gateway| (near_interface, gateway, ROUTER_CARD));
        let to_place = addresses.all(Family::V4);
        let (near, far) = (Arc::new(near), self.requests.clone());
        near.ask(Request::set_up(near_interface, true)).map_err(fail("bring the place's interface up"))?;
        far.ask(Request::set_up(far_interface, true)).map_err(fail("bring its other end up"))?;
        in_force(&near, near_interface)
            .and_then(|()| in_force(&far, far_interface))
            .map_err(fail("wait for the interfaces"))?;
        let put = |(interface, of, at)| Request::put_neighbour(interface, of, at);
        near.ask_all(to_routers.map(put).collect(), |_| false)
            .map_err(fail("tell the place its neighbour"))?;
        let neighbours = to_place.iter().map(|address| put((far_interface, *address, card)));
        let hop = Hop::Direct { interface: far_interface };
        let routes = to_place.iter().map(|address| Request::put_route(*address, hop));
        far.ask_all(neighbours.chain(routes).collect(), |_| false)
            .map_err(fail("tell the way to the place"))?;
        Ok(KernelEnd { addresses, near, near_interface, far, far_interface })
    }

    /// What it has carried so far.
    ///
    /// # Errors
    /// When its counts cannot be read.
    pub fn carried(&self) -> io::Result<Carried> {
        inside(&self.namespace, || {
            let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
            let of_ipv6 = if has_ipv6() { read("snmp6")? } else { String::new() };
            Ok(carried(&read("snmp")?, &read("netstat")?, &of_ipv6, &read("dev")?))
        })
    }
}

impl KernelEnd {
    /// From now on what the place sends to these addresses goes by the kernel's own path.
    ///
    /// # Errors
    /// When the kernel refuses a route; others may be there then.
    pub fn open(&self, to: &[IpAddr]) -> io::Result<()> {
        let route = |to: &IpAddr| {
            let (gateway, family) =
                if to.is_ipv4() { (GATEWAY, Family::V4) } else { (GATEWAY_V6, Family::V6) };
            let source = self.addresses.in_family(family);
            Request::put_route(*to, Hop::By { gateway, interface: self.near_interface, source })
        };
        self.near.ask_all(to.iter().map(route).collect(), |_| false)
    }

    /// From now on what the place sends to these addresses goes to its first interface.
    ///
    /// # Errors
    /// When the kernel keeps a route.
    pub fn close(&self, to: &[IpAddr]) -> io::Result<()> {
        let route = |to: &IpAddr| Request::remove_route(*to, self.near_interface);
        // Without the interface its routes have gone before.
        let is_gone = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        self.near.ask_all(to.iter().map(route).collect(), is_gone)
    }

    /// From now on nothing goes by the kernel's own path, from the place or to it. For good.
    ///
    /// # Errors
    /// When the kernel does not take the place's interface down. Its other end is down all the same, if that can be: silence
    /// is nearer to the truth than packets of which nobody knows.
    pub fn shut(&self) -> io::Result<()> {
        let shut = match self.near.ask(Request::set_up(self.near_interface, false)) {
            // What is not there lets nothing through.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            shut => shut,
        };
        if shut.is_err() {
            // What went wrong first is what is told.
            let _ = self.far.ask(Request::set_up(self.far_interface, false));
        }
        shut
    }
}

/// Makes a pair of interfaces in the calling thread's network namespace: whether this kernel has them.
///
/// # Errors
/// When it has not, or refuses.
pub(crate) fn try_pair() -> io::Result<()> {
    let namespace = File::open("/proc/thread-self/ns/net")?;
    let end = |name: &'static str| VethEnd { name, address: ROUTER_CARD };
    let pair = Request::make_veth(&end("k1"), &end(KERNEL_INTERFACE_NAME), namespace.as_raw_fd(), MTU_BYTES);
    Requests::open()?.ask(pair)
}

/// The place's card, told apart by its address.
fn card_of(addresses: Addresses) -> HardwareAddress {
    let [a, b, c, d] = addresses.ipv4().octets();
    [0x02, 0, a, b, c, d]
}

fn gateways() -> impl Iterator<Item = IpAddr> {
    [GATEWAY, GATEWAY_V6].into_iter().filter(|gateway| gateway.is_ipv4() || has_ipv6())
}

/// Returns when an interface takes packets: what a place says before is dropped by its own kernel.
fn in_force(requests: &Requests, interface: u32) -> io::Result<()> {
    let deadline = Instant::now() + IN_FORCE_PATIENCE;
    while !requests.is_in_force(interface)? {
        if Instant::now() > deadline {
            let why = format!("it takes no packets after {} s", IN_FORCE_PATIENCE.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// In a place: its second interface made ready, and a socket for requests about it.
fn near_end() -> io::Result<(u32, Requests)> {
    let interface = quieten(KERNEL_INTERFACE_NAME)?;
    // The way there may be another than the way back.
    set("ipv4/conf/all/rp_filter", "0")?;
    set(&format!("ipv4/conf/{INTERFACE_NAME}/rp_filter"), "0")?;
    Ok((interface, Requests::open()?))
}

/// Before an interface comes up: it takes packets from wherever they come, and says nothing of its own accord. Its number.
fn quieten(name: &str) -> io::Result<u32> {
    set(&format!("ipv4/conf/{name}/rp_filter"), "0")?;
    if has_ipv6() {
        for (setting, value) in
            [("disable_ipv6", "0"), ("addr_gen_mode", "1"), ("accept_ra", "0"), ("accept_dad", "0")]
        {
            set(&format!("ipv6/conf/{name}/{setting}"), value)?;
        }
    }
    Ok(nix::net::if_::if_nametoindex(name)?)
}

/// Writes a setting of the calling thread's network namespace, unless it is so already.
fn set(name: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/{name}");
    // To write what is there already costs a round over all interfaces, under a lock of the whole machine.
    let is_set = fs::read_to_string(&path).is_ok_and(|present| present.trim() == value);
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
    if is_set { Ok(()) } else { fs::write(&path, value).map_err(told) }
}

/// Does `work` on a thread inside a namespace.
fn inside<T: Send>(namespace: &OwnedFd, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    on_own_thread(|| {
        enter(namespace)?;
        work()
    })
    .map_err(io::Error::other)?
}

/// Reads the kernel's counts: `snmp` and `netstat` of IPv4, `snmp6`, and those of the interfaces.
fn carried(snmp: &str, netstat: &str, snmp6: &str, interfaces: &str) -> Carried {
    let dropped = interfaces.lines().filter(|line| line.trim_start().starts_with('k'));
    Carried {
        frames: in_table(snmp, "Ip:", "ForwDatagrams") + in_list(snmp6, "Ip6OutForwDatagrams"),
        bytes: in_table(netstat, "IpExt:", "InOctets") + in_list(snmp6, "Ip6InOctets"),
        dropped_frames: dropped.filter_map(dropped_sending_of_line).sum(),
    }
}

/// The figure under a heading: a line of headings, and one of figures, both beginning with the table's name.
fn in_table(text: &str, table: &str, heading: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let (Some(headings), Some(figures)) = (lines.next(), lines.next()) else { return 0 };
    let mut columns = headings.split_whitespace().zip(figures.split_whitespace());
    columns.find(|(found, _)| *found == heading).and_then(|(_, figure)| figure.parse().ok()).unwrap_or(0)
}

/// The figure behind a name.
fn in_list(text: &str, name: &str) -> u64 {
    let mut rows = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    rows.find(|(found, _)| *found == name).and_then(|(_, figure)| figure.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_carried_is_read_from_the_kernels_tables() {
        let snmp = "Ip: Forwarding DefaultTTL ForwDatagrams\nIp: 1 64 12\nIcmp: InMsgs\nIcmp: 7\n";
        let netstat = "TcpExt: SyncookiesSent\nTcpExt: 3\nIpExt: InNoRoutes InOctets\nIpExt: 4 900\n";
        let snmp6 = "Ip6InReceives         \t5\nIp6OutForwDatagrams   \t3\nIp6InOctets \t100\n";
        let interfaces = "\
    lo:     100       1    2    3    4     5          6         7      200       8    9   10   11    12      13         14
    k1:     101      21   22   23   24    25         26        27      201      28   29   30   31    32      33         34
    k2:     101      21   22   23   24    25         26        27      201      28   29    4   31    32      33         34
";
        let expected = Carried { frames: 15, bytes: 1000, dropped_frames: 34 };
        assert_eq!(carried(snmp, netstat, snmp6, interfaces), expected);
        assert_eq!(carried("", "", "", ""), Carried::default());
    }

    #[test]
    fn cards_of_different_places_differ_and_none_is_the_routers() {
        let card = |last| card_of(Addresses::of(Ipv4Addr::new(10, 2, 0, last)));
        assert_eq!(card(1), [0x02, 0, 10, 2, 0, 1]);
        assert!(card(1) != card(2) && card(1) != ROUTER_CARD);
    }
}
