//! The kernel's way to an address: the interface by which packets leave, and the Ethernet address that gets them first
//! (linux/rtnetlink.h, linux/neighbour.h). And whether a table of routing has a route over a device.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use hopwise_core::StationAddress;
use hopwise_core::narrow::as_u8;

use super::ask::{ask, open};
use super::message::{DUMP, NetlinkMessage, attribute, word};
use crate::sys;

/// The size of a struct rtmsg, and of a struct ndmsg.
const HEADER: usize = 12;
/// The places of the flags and of the subnet's length in a struct rtmsg.
const FLAGS: std::ops::Range<usize> = 8..12;
const SUBNET_BITS: usize = 1;

/// A route of the kernel's, as it would take it for one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteTo {
    /// The number of the interface.
    pub interface: u32,
    /// The host that gets the packets first: the destination itself, if it is on the link.
    pub next_hop: IpAddr,
    /// The bits of the route's subnet; 0 is the default route.
    pub bits: u8,
}

/// The kernel's route to an address; None if it has none. This takes no privileges.
pub fn route_to(to: IpAddr) -> Option<RouteTo> {
    WaySocket::open().ok()?.route(to)
}

/// A socket for questions about ways. It takes no privileges.
#[derive(Debug)]
pub(crate) struct WaySocket(OwnedFd);

/// The first link of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) interface: u32,
    pub(crate) next_hop: IpAddr,
}

impl WaySocket {
    pub(crate) fn open() -> io::Result<WaySocket> {
        open(None).map(WaySocket)
    }

    /// The first link to an address; None if the kernel knows no way.
    pub(crate) fn first(&self, to: IpAddr) -> Option<First> {
        self.asked(to, 0, |body| read_route(body, to))
    }

    fn route(&self, to: IpAddr) -> Option<RouteTo> {
        // The route as the table has it, with its subnet.
        self.asked(to, libc::RTM_F_FIB_MATCH, |body| {
            let First { interface, next_hop } = read_route(body, to)?;
            Some(RouteTo { interface, next_hop, bits: *body.get(SUBNET_BITS)? })
        })
    }

    fn asked<T>(&self, to: IpAddr, flags: u32, read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let bytes = octets(to);
        let mut header = [0; HEADER];
        (header[0], header[1]) = (family(to), as_u8(bytes.len() * 8));
        header[FLAGS].copy_from_slice(&flags.to_ne_bytes());
        let question =
            NetlinkMessage::new(libc::RTM_GETROUTE, 0, 0).fixed(&header).attribute(libc::RTA_DST, &bytes);
        let mut found = None;
        let asked = ask(self.0.as_fd(), question, |heard| {
            if heard.kind == libc::RTM_NEWROUTE {
                found = read(heard.body);
            }
        });
        asked.ok().and(found)
    }

    /// The Ethernet address of a neighbour, if the kernel has found it.
    pub(crate) fn station(&self, at: First) -> Option<StationAddress> {
        let mut header = [0; HEADER];
        header[0] = family(at.next_hop);
        header[4..8].copy_from_slice(&at.interface.to_ne_bytes());
        let question = NetlinkMessage::new(libc::RTM_GETNEIGH, 0, 0)
            .fixed(&header)
            .attribute(libc::NDA_DST, &octets(at.next_hop));
        let mut station = None;
        let asked = ask(self.0.as_fd(), question, |heard| {
            if heard.kind == libc::RTM_NEWNEIGH {
                station = read_neighbour(heard.body);
            }
        });
        asked.ok().and(station)
    }
}

pub(super) fn family(address: IpAddr) -> u8 {
    as_u8(if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as usize)
}

/// The bytes of an address, as messages of Netlink have them.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(super) fn read_address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|octets| Ipv4Addr::from(octets).into());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

/// A host on the link is its own next hop.
fn read_route(body: &[u8], to: IpAddr) -> Option<First> {
    let attributes = body.get(HEADER..)?;
    // A next hop of another family than the destination's.
    let via = attribute(attributes, libc::RTA_VIA).and_then(|via| via.get(2..));
    let next_hop = match attribute(attributes, libc::RTA_GATEWAY).or(via) {
        Some(bytes) => read_address(bytes)?,
        None => to,
    };
    Some(First { interface: word(attribute(attributes, libc::RTA_OIF)?, 0)?, next_hop })
}

fn read_neighbour(body: &[u8]) -> Option<StationAddress> {
    let address = attribute(body.get(HEADER..)?, libc::NDA_LLADDR)?;
    address.try_into().ok().map(StationAddress)
}

/// Makes the kernel choose the routes of a dump by the question's attributes.
const STRICT: (libc::c_int, libc::c_int) = (libc::SOL_NETLINK, libc::NETLINK_GET_STRICT_CHK);

/// Returns whether this table of IPv4, or of IPv6, has a route over the device with that number.
pub(super) fn leads_to(table: u32, is_v6: bool, device: u32) -> io::Result<bool> {
    let socket = open(None)?;
    sys::set_option(socket.as_fd(), STRICT, 1)?;
    let mut header = [0; HEADER];
    header[0] = as_u8(if is_v6 { libc::AF_INET6 } else { libc::AF_INET } as usize);
    let question = NetlinkMessage::new(libc::RTM_GETROUTE, DUMP, 0)
        .fixed(&header)
        .attribute(libc::RTA_TABLE, &table.to_ne_bytes());
    let mut is_there = false;
    let asked = ask(&socket, question, |heard| {
        let attributes = heard.body.get(HEADER..).unwrap_or_default();
        let is = |kind, wanted| attribute(attributes, kind).and_then(|value| word(value, 0)) == Some(wanted);
        is_there |=
            heard.kind == libc::RTM_NEWROUTE && is(libc::RTA_TABLE, table) && is(libc::RTA_OIF, device);
    });
    match asked {
        // There is no such table.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        asked => asked.map(|()| is_there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of a message with these attributes.
    fn body(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let message = NetlinkMessage::new(0, 0, 0).fixed(&[0; HEADER]);
        let message =
            attributes.iter().fold(message, |message, (kind, value)| message.attribute(*kind, value));
        message.finish()[super::super::message::HEADER..].to_vec()
    }

    #[test]
    fn a_way_leads_over_its_gateway_and_without_one_to_the_host_itself() {
        let to = IpAddr::from([10, 0, 0, 9]);
        let interface = 7_u32.to_ne_bytes();
        let first = |next_hop: IpAddr| Some(First { interface: 7, next_hop });
        assert_eq!(read_route(&body(&[(libc::RTA_OIF, &interface)]), to), first(to));
        let over = [(libc::RTA_OIF, &interface[..]), (libc::RTA_GATEWAY, &[10, 0, 0, 2])];
        assert_eq!(read_route(&body(&over), to), first([10, 0, 0, 2].into()));
        let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
        let via = [&[10, 0][..], &link_local.octets()].concat();
        assert_eq!(
            read_route(&body(&[(libc::RTA_OIF, &interface), (libc::RTA_VIA, &via)]), to),
            first(link_local.into())
        );
        assert_eq!(read_route(&body(&[]), to), None, "a route to nowhere has no interface");
        assert_eq!(read_route(&[0; 3], to), None);
    }

    #[test]
    fn a_neighbour_that_is_still_sought_has_no_station() {
        let found = body(&[(libc::NDA_DST, &[10, 0, 0, 2]), (libc::NDA_LLADDR, &[2, 0, 0, 0, 0, 1])]);
        assert_eq!(read_neighbour(&found), Some(StationAddress([2, 0, 0, 0, 0, 1])));
        assert_eq!(read_neighbour(&body(&[(libc::NDA_DST, &[10, 0, 0, 2])])), None);
    }

    #[test]
    fn the_kernel_leads_to_its_own_addresses_over_the_loopback() {
        let ways = WaySocket::open().expect("a socket");
        let own = IpAddr::from([127, 9, 9, 9]);
        let of_loopback = rustix::fs::stat("/sys/class/net/lo").is_ok();
        let first = ways.first(own);
        assert!(!of_loopback || first == Some(First { interface: 1, next_hop: own }), "{first:?}");
        let bits = route_to(own).map(|route| route.bits);
        assert!(!of_loopback || bits == Some(8), "the table has the whole subnet of the loopback: {bits:?}");
        assert_eq!(
            first.and_then(|first| ways.station(First { next_hop: [127, 0, 0, 77].into(), ..first })),
            None
        );
    }

    #[test]
    fn a_table_has_the_routes_that_the_kernel_lists() {
        // Each namespace whose loopback is up has its addresses in the table `local`.
        let is_up = super::super::is_own_address([127, 9, 9, 9].into())
            && std::fs::read_to_string("/sys/class/net/lo/operstate")
                .is_ok_and(|state| state.trim() != "down");
        let loopback = super::super::index_of("lo").expect("it is there");
        assert_eq!(leads_to(255, false, loopback).expect("the kernel answers"), is_up);
        assert!(!leads_to(255, false, u32::MAX).expect("the kernel answers"));
        assert!(!leads_to(87_654_321, false, loopback).expect("the kernel answers"));
    }
}
