//! Requests to the kernel about interfaces, routes and neighbours, as bytes.
//!
//! Owns the words. The socket that takes them is `socket`'s business; what is asked for is `routing`'s.
//! Sources: netlink(7), rtnetlink(7); Linux `include/uapi/linux/`: `netlink.h`, `rtnetlink.h`, `if_link.h`, `veth.h`,
//! `neighbour.h`.

mod socket;

use std::net::IpAddr;

pub(crate) use socket::Requests;

/// Bytes of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Bytes of `struct ifinfomsg`.
const INTERFACE_BYTES: usize = 16;

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLA_F_NESTED: u16 = 0x8000;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_NEWNEIGH: u16 = 28;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_NOWHERE: u8 = 255;
const RTN_UNSPEC: u8 = 0;
const RTN_UNICAST: u8 = 1;
const RTN_BLACKHOLE: u8 = 6;
/// The gateway is on the link, whatever the other routes say.
const RTNH_F_ONLINK: u32 = 4;

const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;

const IFF_UP: u32 = 0x1;
const IF_OPER_UP: u8 = 6;

/// The address of a network card.
pub(crate) type HardwareAddress = [u8; 6];

/// One end of a veth pair.
#[derive(Debug, Clone)]
pub(crate) struct VethEnd<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its card's address.
    pub(crate) address: HardwareAddress,
}

/// How a route leads to its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Straight over the interface with this number.
    Direct {
        /// The interface.
        interface: u32,
    },
    /// By a gateway on the link of an interface; what goes there comes from this address.
    By {
        /// The gateway.
        gateway: IpAddr,
        /// The interface.
        interface: u32,
        /// The sender's address.
        source: IpAddr,
    },
}

/// One request, complete but for its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request(Vec<u8>);

impl Request {
    /// A pair of interfaces: `here` in the socket's own namespace, `there` in that of an open descriptor.
    pub(crate) fn make_veth(
        here: &VethEnd<'_>,
        there: &VethEnd<'_>,
        namespace: u32,
        mtu_bytes: u32,
    ) -> Request {
        let mut peer = no_interface();
        put_end(&mut peer, there, mtu_bytes);
        put(&mut peer, IFLA_NET_NS_FD, &namespace.to_ne_bytes());
        let mut data = Vec::new();
        put(&mut data, VETH_INFO_PEER | NLA_F_NESTED, &peer);
        let mut info = Vec::new();
        put(&mut info, IFLA_INFO_KIND, b"veth");
        put(&mut info, IFLA_INFO_DATA | NLA_F_NESTED, &data);
        let mut content = no_interface();
        put_end(&mut content, here, mtu_bytes);
        put(&mut content, IFLA_LINKINFO | NLA_F_NESTED, &info);
        Request::new(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &content)
    }

    /// An interface up or down.
    pub(crate) fn set_up(interface: u32, is_up: bool) -> Request {
        let flags = if is_up { IFF_UP } else { 0 };
        Request::new(RTM_NEWLINK, 0, &interface_content(interface, flags, IFF_UP))
    }

    /// An interface, told with its state.
    fn look_at(interface: u32) -> Request {
        Request::new(RTM_GETLINK, 0, &interface_content(interface, 0, 0))
    }

    /// A neighbour that is never asked for.
    pub(crate) fn put_neighbour(interface: u32, of: IpAddr, at: HardwareAddress) -> Request {
        let mut content = vec![family(of), 0, 0, 0];
        content.extend(interface.to_ne_bytes());
        content.extend(NUD_PERMANENT.to_ne_bytes());
        content.extend([0, 0]);
        put(&mut content, NDA_DST, &octets(of));
        put(&mut content, NDA_LLADDR, &at);
        Request::new(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &content)
    }

    /// A route to one address, in the place of any other to it.
    pub(crate) fn put_route(to: IpAddr, hop: Hop) -> Request {
        let (scope, flags) = match (hop, to) {
            (Hop::By { .. }, _) => (RT_SCOPE_UNIVERSE, RTNH_F_ONLINK),
            // IPv6 knows no scopes of routes.
            (Hop::Direct { .. }, IpAddr::V6(_)) => (RT_SCOPE_UNIVERSE, 0),
            (Hop::Direct { .. }, IpAddr::V4(_)) => (RT_SCOPE_LINK, 0),
        };
        let kind = (RTPROT_STATIC, scope, RTN_UNICAST);
        let mut content = route_content(family(to), prefix_bits(to), kind, flags);
        put(&mut content, RTA_DST, &octets(to));
        match hop {
            Hop::Direct { interface } => put(&mut content, RTA_OIF, &interface.to_ne_bytes()),
            Hop::By { gateway, interface, source } => {
                put(&mut content, RTA_OIF, &interface.to_ne_bytes());
                put(&mut content, RTA_GATEWAY, &octets(gateway));
                put(&mut content, RTA_PREFSRC, &octets(source));
            }
        }
        Request::new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &content)
    }

    /// The route to one address over an interface, away.
    pub(crate) fn remove_route(to: IpAddr, interface: u32) -> Request {
        let whichever = (0, RT_SCOPE_NOWHERE, RTN_UNSPEC);
        let mut content = route_content(family(to), prefix_bits(to), whichever, 0);
        put(&mut content, RTA_DST, &octets(to));
        put(&mut content, RTA_OIF, &interface.to_ne_bytes());
        Request::new(RTM_DELROUTE, 0, &content)
    }

    /// What has no route vanishes, and nobody is told.
    pub(crate) fn put_black_hole(over_ipv6: bool) -> Request {
        let family = if over_ipv6 { libc::AF_INET6 } else { libc::AF_INET };
        let kind = (RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_BLACKHOLE);
        Request::new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &route_content(family as u8, 0, kind, 0))
    }

    fn new(kind: u16, flags: u16, content: &[u8]) -> Request {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + content.len());
        bytes.extend(((HEADER_BYTES + content.len()) as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        // The number, which whoever sends it gives it, and the sender, which the kernel fills in.
        bytes.extend([0; 8]);
        bytes.extend_from_slice(content);
        Request(bytes)
    }
}

/// `struct ifinfomsg` of no interface yet.
fn no_interface() -> Vec<u8> {
    interface_content(0, 0, 0)
}

/// `struct ifinfomsg`.
fn interface_content(interface: u32, flags: u32, change: u32) -> Vec<u8> {
    let mut content = vec![0; 4];
    content.extend(interface.to_ne_bytes());
    content.extend(flags.to_ne_bytes());
    content.extend(change.to_ne_bytes());
    content
}

/// `struct rtmsg`.
fn route_content(family: u8, bits: u8, (protocol, scope, kind): (u8, u8, u8), flags: u32) -> Vec<u8> {
    let mut content = vec![family, bits, 0, 0, RT_TABLE_MAIN, protocol, scope, kind];
    content.extend(flags.to_ne_bytes());
    content
}

fn put_end(content: &mut Vec<u8>, end: &VethEnd<'_>, mtu_bytes: u32) {
    let name: Vec<u8> = end.name.bytes().chain([0]).collect();
    put(content, IFLA_IFNAME, &name);
    put(content, IFLA_ADDRESS, &end.address);
    put(content, IFLA_MTU, &mtu_bytes.to_ne_bytes());
}

/// Appends an attribute, filled up to a multiple of four bytes.
fn put(content: &mut Vec<u8>, kind: u16, value: &[u8]) {
    content.extend(((4 + value.len()) as u16).to_ne_bytes());
    content.extend(kind.to_ne_bytes());
    content.extend_from_slice(value);
    content.resize(content.len().next_multiple_of(4), 0);
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    family as u8
}

fn prefix_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Attributes by their kind, without the mark of nested ones.
    fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
        let mut found = Vec::new();
        while bytes.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
            let kind = u16::from_ne_bytes([bytes[2], bytes[3]]) & !NLA_F_NESTED;
            found.push((kind, &bytes[4..length]));
            bytes = &bytes[length.next_multiple_of(4)..];
        }
        assert!(bytes.is_empty(), "no half attribute");
        found
    }

    fn of<'a>(found: &[(u16, &'a [u8])], kind: u16) -> &'a [u8] {
        found.iter().find(|(there, _)| *there == kind).map(|(_, value)| *value).expect("the attribute")
    }

    #[test]
    fn a_pair_of_interfaces_is_asked_for_with_its_far_end_elsewhere() {
        let here = VethEnd { name: "k1", address: [2, 0, 0, 0, 0, 1] };
        let there = VethEnd { name: "eth1", address: [2, 0, 10, 2, 0, 1] };
        let Request(bytes) = Request::make_veth(&here, &there, 7, 1500);
        assert_eq!(bytes.len() as u32, u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let outer = attributes(&bytes[HEADER_BYTES + INTERFACE_BYTES..]);
        assert_eq!(of(&outer, IFLA_IFNAME), b"k1\0");
        assert_eq!(of(&outer, IFLA_MTU), 1500_u32.to_ne_bytes());
        let info = attributes(of(&outer, IFLA_LINKINFO));
        assert_eq!(of(&info, IFLA_INFO_KIND), b"veth");
        let data = attributes(of(&info, IFLA_INFO_DATA));
        let peer = attributes(&of(&data, VETH_INFO_PEER)[16..]);
        assert_eq!(of(&peer, IFLA_IFNAME), b"eth1\0");
        assert_eq!(of(&peer, IFLA_ADDRESS), there.address);
        assert_eq!(of(&peer, IFLA_NET_NS_FD), 7_u32.to_ne_bytes());
    }

    #[test]
    fn a_route_by_a_gateway_says_from_which_address() {
        let to = IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0x10, 2, 0, 2));
        let gateway = IpAddr::from(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));
        let source = IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0x10, 2, 0, 1));
        let Request(bytes) = Request::put_route(to, Hop::By { gateway, interface: 3, source });
        let route = &bytes[HEADER_BYTES..HEADER_BYTES + 12];
        assert_eq!(route[..2], [libc::AF_INET6 as u8, 128]);
        assert_eq!(route[4..8], [RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST]);
        assert_eq!(route[8..], RTNH_F_ONLINK.to_ne_bytes());
        let found = attributes(&bytes[HEADER_BYTES + 12..]);
        assert_eq!(of(&found, RTA_DST), octets(to));
        assert_eq!(of(&found, RTA_GATEWAY), octets(gateway));
        assert_eq!(of(&found, RTA_PREFSRC), octets(source));
        assert_eq!(of(&found, RTA_OIF), 3_u32.to_ne_bytes());
    }

    #[test]
    fn a_route_over_a_link_has_the_links_scope_and_is_removed_whatever_its_scope() {
        let to = IpAddr::from(Ipv4Addr::new(10, 2, 0, 2));
        let Request(bytes) = Request::put_route(to, Hop::Direct { interface: 3 });
        assert_eq!(bytes[HEADER_BYTES..HEADER_BYTES + 8], [2, 32, 0, 0, 254, 4, 253, 1]);
        let Request(bytes) = Request::remove_route(to, 3);
        assert_eq!(bytes[4..6], RTM_DELROUTE.to_ne_bytes());
        assert_eq!(bytes[HEADER_BYTES..HEADER_BYTES + 8], [2, 32, 0, 0, 254, 0, 255, 0]);
    }

    #[test]
    fn an_interface_is_asked_for_by_its_number() {
        let Request(bytes) = Request::look_at(3);
        assert_eq!(bytes[..8], [32, 0, 0, 0, RTM_GETLINK as u8, 0, (NLM_F_REQUEST | NLM_F_ACK) as u8, 0]);
        assert_eq!(bytes[HEADER_BYTES..], interface_content(3, 0, 0));
    }

    #[test]
    fn a_neighbour_is_permanent() {
        let Request(bytes) = Request::put_neighbour(3, IpAddr::from([169, 254, 0, 1]), [2, 0, 0, 0, 0, 1]);
        assert_eq!(bytes[HEADER_BYTES + 8..HEADER_BYTES + 10], NUD_PERMANENT.to_ne_bytes());
        let found = attributes(&bytes[HEADER_BYTES + 12..]);
        assert_eq!(of(&found, NDA_LLADDR), [2, 0, 0, 0, 0, 1]);
    }
}
