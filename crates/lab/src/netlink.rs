//! Requests to the kernel about interfaces, routes and neighbours.
//!
//! Owns what is asked for, not its bytes, which are those of the crate `netlink-packet-route`. The socket that takes requests is
//! `socket`'s business; why they are made is `routing`'s.
//! Sources: netlink(7), rtnetlink(7).

mod socket;

use std::net::IpAddr;
use std::os::fd::RawFd;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

pub(crate) use socket::Requests;

/// The address of a network card.
pub(crate) type HardwareAddress = [u8; 6];

/// One end of a veth pair.
#[derive(Debug, Clone)]
pub(crate) struct VethEnd<'a> {
    pub(crate) name: &'a str,
    /// Its card's address.
    pub(crate) address: HardwareAddress,
}

/// How a route leads to its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Straight over the interface with this number.
    Direct { interface: u32 },
    /// By a gateway on the link of an interface; what goes there comes from this address.
    By {
        gateway: IpAddr,
        interface: u32,
        /// The sender's address.
        source: IpAddr,
    },
}

/// One request, complete but for its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    message: RouteNetlinkMessage,
    flags: u16,
}

impl Request {
    /// A pair of interfaces: `here` in the socket's own namespace, `there` in that of an open descriptor.
    pub(crate) fn make_veth(
        here: &VethEnd<'_>,
        there: &VethEnd<'_>,
        namespace: RawFd,
        mtu_bytes: u32,
    ) -> Request {
        let end = |end: &VethEnd<'_>, last: LinkAttribute| {
            let mut link = LinkMessage::default();
            let (name, card) = (end.name.to_owned(), end.address.to_vec());
            link.attributes = vec![
                LinkAttribute::IfName(name),
                LinkAttribute::Address(card),
                LinkAttribute::Mtu(mtu_bytes),
                last,
            ];
            link
        };
        let peer = end(there, LinkAttribute::NetNsFd(namespace));
        let data = InfoData::Veth(InfoVeth::Peer(peer));
        let pair = LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(data)]);
        let message = RouteNetlinkMessage::NewLink(end(here, pair));
        Request { message, flags: NLM_F_CREATE | NLM_F_EXCL }
    }

    /// An interface up or down.
    pub(crate) fn set_up(interface: u32, is_up: bool) -> Request {
        let mut link = link(interface);
        link.header.flags = if is_up { LinkFlags::Up } else { LinkFlags::empty() };
        link.header.change_mask = LinkFlags::Up;
        Request { message: RouteNetlinkMessage::NewLink(link), flags: 0 }
    }

    /// An interface, told with its state.
    fn look_at(interface: u32) -> Request {
        Request { message: RouteNetlinkMessage::GetLink(link(interface)), flags: 0 }
    }

    /// A neighbour that is never asked for.
    pub(crate) fn put_neighbour(interface: u32, of: IpAddr, at: HardwareAddress) -> Request {
        let mut neighbour = NeighbourMessage::default();
        neighbour.header.family = family(of);
        neighbour.header.ifindex = interface;
        neighbour.header.state = NeighbourState::Permanent;
        neighbour.attributes = vec![
            NeighbourAttribute::Destination(of.into()),
            NeighbourAttribute::LinkLayerAddress(at.to_vec()),
        ];
        let message = RouteNetlinkMessage::NewNeighbour(neighbour);
        Request { message, flags: NLM_F_CREATE | NLM_F_REPLACE }
    }

    /// A route to one address, in the place of any other to it.
    pub(crate) fn put_route(to: IpAddr, hop: Hop) -> Request {
        let mut route = route_to(to);
        route.header.protocol = RouteProtocol::Static;
        route.header.kind = RouteType::Unicast;
        match hop {
            Hop::Direct { interface } => {
                // IPv6 knows no scopes of routes.
                route.header.scope = if to.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
                route.attributes.push(RouteAttribute::Oif(interface));
            }
            Hop::By { gateway, interface, source } => {
                // The gateway is on the link, whatever the other routes say.
                route.header.flags = RouteFlags::Onlink;
                route.attributes.extend([
                    RouteAttribute::Oif(interface),
                    RouteAttribute::Gateway(gateway.into()),
                    RouteAttribute::PrefSource(source.into()),
                ]);
            }
        }
        Request::replacing(route)
    }

    /// The route to one address over an interface, away.
    pub(crate) fn remove_route(to: IpAddr, interface: u32) -> Request {
        let mut route = route_to(to);
        // Whatever its scope and its kind.
        route.header.scope = RouteScope::NoWhere;
        route.attributes.push(RouteAttribute::Oif(interface));
        Request { message: RouteNetlinkMessage::DelRoute(route), flags: 0 }
    }

    /// What has no route vanishes, and nobody is told.
    pub(crate) fn put_black_hole(over_ipv6: bool) -> Request {
        let mut route = RouteMessage::default();
        route.header.address_family = if over_ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.kind = RouteType::BlackHole;
        Request::replacing(route)
    }

    fn replacing(route: RouteMessage) -> Request {
        Request { message: RouteNetlinkMessage::NewRoute(route), flags: NLM_F_CREATE | NLM_F_REPLACE }
    }

    /// As the kernel takes it, under this number.
    fn numbered(&self, number: u32) -> Vec<u8> {
        let mut header = NetlinkHeader::default();
        header.flags = self.flags | NLM_F_REQUEST | NLM_F_ACK;
        header.sequence_number = number;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(self.message.clone()));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }
}

fn link(interface: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = interface;
    link
}

/// A route of the main table to one address.
fn route_to(to: IpAddr) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family(to);
    route.header.destination_prefix_length = if to.is_ipv4() { 32 } else { 128 };
    route.header.table = RouteHeader::RT_TABLE_MAIN;
    route.attributes.push(RouteAttribute::Destination(to.into()));
    route
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_by_a_gateway_says_from_which_address() {
        let [to, gateway, source] = ["fd00::10:2:0:2", "fe80::1", "fd00::10:2:0:1"]
            .map(|text| text.parse::<IpAddr>().expect("an address"));
        let request = Request::put_route(to, Hop::By { gateway, interface: 3, source });
        let RouteNetlinkMessage::NewRoute(route) = request.message else { panic!("no route") };
        assert_eq!(route.header.destination_prefix_length, 128);
        assert_eq!(route.header.flags, RouteFlags::Onlink);
        assert!(route.attributes.contains(&RouteAttribute::PrefSource(source.into())));
    }

    #[test]
    fn a_route_over_a_link_has_the_links_scope_and_is_removed_whatever_its_scope() {
        let to = IpAddr::from([10, 2, 0, 2]);
        // struct rtmsg of rtnetlink(7): family, bits, -, -, table main, protocol static, scope link, unicast.
        let bytes = Request::put_route(to, Hop::Direct { interface: 3 }).numbered(7);
        assert_eq!(bytes[16..24], [2, 32, 0, 0, 254, 4, 253, 1]);
        let bytes = Request::remove_route(to, 3).numbered(7);
        assert_eq!(bytes[16..24], [2, 32, 0, 0, 254, 0, 255, 0]);
    }

    #[test]
    fn every_request_bears_its_number_and_fills_whole_words() {
        let end = |name| VethEnd { name, address: [2, 0, 0, 0, 0, 1] };
        let address = IpAddr::from([10, 2, 0, 2]);
        let requests = [
            Request::make_veth(&end("k1"), &end("eth1"), 7, 1500),
            Request::set_up(3, true),
            Request::look_at(3),
            Request::put_neighbour(3, address, [2, 0, 0, 0, 0, 1]),
            Request::put_black_hole(true),
        ];
        for request in requests {
            let bytes = request.numbered(7);
            assert_eq!(bytes[..4], (bytes.len() as u32).to_ne_bytes(), "{request:?}");
            assert_eq!(bytes[8..12], 7_u32.to_ne_bytes(), "{request:?}");
            // Several are sent at once, and each begins at a multiple of four bytes.
            assert!(bytes.len().is_multiple_of(4), "{request:?}");
        }
    }
}
