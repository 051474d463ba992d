//! One network device as it is: its flags, MTU, addresses and routes, by rtnetlink (linux/rtnetlink.h).
//!
//! Addresses and routes are kept as the kernel told them. They come back with all that belongs to them, such as a
//! lifetime or a metric.
//!
//! The kernel's queue of an interface: how much waits there (linux/pkt_sched.h, linux/gen_stats.h).

use std::io;
use std::net::IpAddr;

use hopwise_core::ip::Prefix;

use super::ask::{KernelRefusal, ask, open, open_for_words, request};
use super::message::{DUMP, NetlinkMessage, NetlinkReply, attribute, attributes, word};
use super::own::HEADER;
use super::way::{family, octets, read_address};

/// Flags of a request: an entry is made, and it may not be there yet.
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;

/// A struct ifinfomsg: places of the number and of the flags, and the flag of a device that is up.
const INDEX: usize = 4;
const FLAGS: usize = 8;
const UP: u32 = 1;

/// A struct ifaddrmsg: its size, and the place of its scope.
const ADDRESS_HEADER: usize = 8;
const SCOPE: usize = 3;
/// No other host has the address: duplicates are not looked for, which would delay its first use.
const NODAD: u8 = 2;

/// A struct rtmsg: places of its protocol, type and flags, and the flag that is kept there.
const ROUTE_HEADER: usize = 12;
const PROTOCOL: usize = 5;
const ROUTE_TYPE: usize = 7;
const ROUTE_FLAGS: usize = 8;
const ON_LINK: u32 = 4;

/// A device's name and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedDevice {
    pub(crate) name: String,
    pub(crate) is_up: bool,
    pub(crate) mtu: u32,
    /// The packets that may wait in its queue (txqueuelen).
    pub(crate) queue: u32,
    /// The number of the bridge or of the device of batman-adv that has taken it in.
    pub(crate) master: Option<u32>,
}

/// An address of a device, with the kernel's message about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnAddress {
    pub(crate) prefix: Prefix,
    /// The kernel gives it to a device that comes up.
    pub(crate) is_of_kernel: bool,
    pub(crate) message: Vec<u8>,
}

/// The state of the device with that number.
pub(crate) fn device(index: u32) -> io::Result<NamedDevice> {
    let mut found = None;
    let question = NetlinkMessage::new(libc::RTM_GETLINK, 0, 0).fixed(&link_header(index, 0, 0));
    ask(open(None)?, question, |heard| {
        let Some(all) = heard.body.get(HEADER..).filter(|_| heard.kind == libc::RTM_NEWLINK) else { return };
        let name = attribute(all, libc::IFLA_IFNAME).map(|name| String::from_utf8_lossy(name));
        let name = name.map(|name| name.trim_end_matches('\0').to_owned());
        let number = |kind| attribute(all, kind).and_then(|value| word(value, 0));
        let (queue, master) = (number(libc::IFLA_TXQLEN).unwrap_or(0), number(libc::IFLA_MASTER));
        if let (Some(name), Some(mtu), Some(flags)) = (name, number(libc::IFLA_MTU), word(heard.body, FLAGS))
        {
            found = Some(NamedDevice { name, is_up: flags & UP != 0, mtu, queue, master });
        }
    })?;
    found.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn link_header(index: u32, flags: u32, changed: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[INDEX..INDEX + 4].copy_from_slice(&index.to_ne_bytes());
    header[FLAGS..FLAGS + 4].copy_from_slice(&flags.to_ne_bytes());
    header[FLAGS + 4..].copy_from_slice(&changed.to_ne_bytes());
    header
}

/// Sends a request for rtnetlink.
fn tell(message: NetlinkMessage) -> Result<(), KernelRefusal> {
    request(open_for_words(None)?, message, |_| {})
}

/// Takes a device up or down.
pub(crate) fn set_link(index: u32, is_up: bool) -> Result<(), KernelRefusal> {
    let flags = if is_up { UP } else { 0 };
    tell(NetlinkMessage::new(libc::RTM_NEWLINK, 0, 0).fixed(&link_header(index, flags, UP)))
}

/// Sets a number of a device: [`MTU`], or [`QUEUE`].
pub(crate) fn set_number(index: u32, kind: u16, value: u32) -> Result<(), KernelRefusal> {
    let message = NetlinkMessage::new(libc::RTM_NEWLINK, 0, 0).fixed(&link_header(index, 0, 0));
    tell(message.attribute(kind, &value.to_ne_bytes()))
}

/// The addresses of a device by its name, with their subnets.
pub fn addresses_of(device: &str) -> io::Result<Vec<Prefix>> {
    let index = super::index_of(device).map_err(io::Error::other)?;
    Ok(addresses(index)?.into_iter().map(|own| own.prefix).collect())
}

/// The addresses of a device, in the kernel's order.
pub(crate) fn addresses(index: u32) -> io::Result<Vec<OwnAddress>> {
    let mut found = Vec::new();
    each_address(|body| found.extend(of_device(body, index)))?;
    Ok(found)
}

/// The number of the device with that address.
pub(crate) fn device_with(address: IpAddr) -> io::Result<Option<u32>> {
    let mut found = None;
    each_address(|body| {
        let index = word(body, INDEX);
        let own = index.and_then(|index| of_device(body, index));
        if own.is_some_and(|own| own.prefix.address() == address) {
            found = index;
        }
    })?;
    Ok(found)
}

fn each_address(mut sink: impl FnMut(&[u8])) -> io::Result<()> {
    ask(open(None)?, NetlinkMessage::new(libc::RTM_GETADDR, DUMP, 0).fixed(&[0; ADDRESS_HEADER]), |heard| {
        if heard.kind == libc::RTM_NEWADDR {
            sink(heard.body);
        }
    })
}

fn of_device(body: &[u8], index: u32) -> Option<OwnAddress> {
    let prefix = prefix_in(body).filter(|_| word(body, INDEX) == Some(index))?;
    let is_of_kernel = prefix.address().is_ipv6() && body.get(SCOPE) == Some(&libc::RT_SCOPE_LINK);
    Some(OwnAddress { prefix, is_of_kernel, message: body.to_vec() })
}

/// The address with its subnet, in the kernel's message.
pub(crate) fn prefix_in(body: &[u8]) -> Option<Prefix> {
    let all = body.get(ADDRESS_HEADER..)?;
    let own = attribute(all, libc::IFA_LOCAL).or_else(|| attribute(all, libc::IFA_ADDRESS))?;
    Prefix::new(read_address(own)?, body[1]).ok()
}

/// The message for an address that a device gets.
pub(crate) fn new_address(index: u32, prefix: &Prefix) -> Vec<u8> {
    let own = octets(prefix.address());
    let flags = if prefix.address().is_ipv6() { NODAD } else { 0 };
    let mut header = [0; ADDRESS_HEADER];
    header[..3].copy_from_slice(&[family(prefix.address()), prefix.bits(), flags]);
    header[INDEX..].copy_from_slice(&index.to_ne_bytes());
    let mut message = NetlinkMessage::new(0, 0, 0).fixed(&header);
    message = message.attribute(libc::IFA_LOCAL, &own).attribute(libc::IFA_ADDRESS, &own);
    if let Some(broadcast) = prefix.broadcast() {
        message = message.attribute(libc::IFA_BROADCAST, &broadcast.octets());
    }
    message.finish().split_off(super::message::HEADER)
}

/// Adds an address; one that is there already is as good.
pub(crate) fn add_address(message: &[u8]) -> Result<(), KernelRefusal> {
    added(tell(NetlinkMessage::new(libc::RTM_NEWADDR, CREATE | EXCLUSIVE, 0).fixed(message)))
}

/// Removes an address; one that is gone already is as good.
pub(crate) fn remove_address(index: u32, prefix: &Prefix) -> Result<(), KernelRefusal> {
    let message = new_address(index, prefix);
    match tell(NetlinkMessage::new(libc::RTM_DELADDR, 0, 0).fixed(&message)) {
        Err(refused) if refused.is_one_of(&[libc::EADDRNOTAVAIL]) => Ok(()),
        done => done,
    }
}

/// The routes over a device that the kernel did not make itself, as it tells them. It takes them along with the
/// addresses, and when the device goes down.
pub(crate) fn routes(index: u32) -> io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    ask(open(None)?, NetlinkMessage::new(libc::RTM_GETROUTE, DUMP, 0).fixed(&[0; ROUTE_HEADER]), |heard| {
        if heard.kind == libc::RTM_NEWROUTE {
            found.extend(route_over(heard.body, index));
        }
    })?;
    Ok(found)
}

fn route_over(body: &[u8], index: u32) -> Option<Vec<u8>> {
    let all = body.get(ROUTE_HEADER..)?;
    let flags = word(body, ROUTE_FLAGS)?;
    let is_over = attribute(all, libc::RTA_OIF).and_then(|device| word(device, 0)) == Some(index);
    let is_made = body[PROTOCOL] != libc::RTPROT_KERNEL
        && body[ROUTE_TYPE] == libc::RTN_UNICAST
        && flags & libc::RTM_F_CLONED == 0;
    if !is_over || !is_made {
        return None;
    }
    // Other flags tell the state of the device, and the kernel takes none of them back; neither does it take ages.
    let mut message = NetlinkMessage::new(0, 0, 0).fixed(&body[..ROUTE_FLAGS]);
    message = message.fixed(&(flags & ON_LINK).to_ne_bytes());
    for (kind, value) in attributes(all).filter(|(kind, _)| *kind != libc::RTA_CACHEINFO) {
        message = message.attribute(kind, value);
    }
    Some(message.finish().split_off(super::message::HEADER))
}

/// Adds a route; one that is there already is as good.
pub(crate) fn add_route(message: &[u8]) -> Result<(), KernelRefusal> {
    added(tell(NetlinkMessage::new(libc::RTM_NEWROUTE, CREATE | EXCLUSIVE, 0).fixed(message)))
}

fn added(done: Result<(), KernelRefusal>) -> Result<(), KernelRefusal> {
    match done {
        Err(refused) if refused.is_one_of(&[libc::EEXIST]) => Ok(()),
        done => done,
    }
}

/// A struct tcmsg: family, index, handle, parent, info.
const QDISC_HEADER: usize = 20;
const INDEX_AT: usize = 4;
const PARENT_AT: usize = 12;
/// The outermost discipline of an interface (TC_H_ROOT), whose counts include the inner disciplines.
const ROOT: u32 = u32::MAX;
const STATS_QUEUE: u16 = 3;

/// Packets that wait in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuedPackets {
    /// Their number.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Packets that found the queue full since it was made.
    pub drops: u64,
}

/// The queue of the interface with that number; `None` if it has none, or does not count.
pub fn queued(index: u32) -> io::Result<Option<QueuedPackets>> {
    let mut found = None;
    ask(open(None)?, NetlinkMessage::new(libc::RTM_GETQDISC, DUMP, 0).fixed(&[0; QDISC_HEADER]), |heard| {
        found = found.or_else(|| queue(heard, index));
    })?;
    Ok(found)
}

fn queue(heard: &NetlinkReply<'_>, index: u32) -> Option<QueuedPackets> {
    let is_of = |at, wanted| word(heard.body, at) == Some(wanted);
    if heard.kind != libc::RTM_NEWQDISC || !is_of(INDEX_AT, index) || !is_of(PARENT_AT, ROOT) {
        return None;
    }
    let counts = attribute(attribute(heard.body.get(QDISC_HEADER..)?, libc::TCA_STATS2)?, STATS_QUEUE)?;
    let count = |nth: usize| word(counts, 4 * nth).map(u64::from);
    Some(QueuedPackets { packets: count(0)?, bytes: count(1)?, drops: count(2)? })
}

#[cfg(test)]
mod tests {
    use super::super::message::messages;
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a prefix")
    }

    #[test]
    fn an_address_that_is_written_is_read_again() {
        for text in ["10.0.0.1/24", "10.0.0.1/32", "fd00::1/64"] {
            let message = new_address(7, &prefix(text));
            let own = of_device(&message, 7).expect("an address");
            assert_eq!((own.prefix, own.is_of_kernel), (prefix(text), false));
            assert_eq!(of_device(&message, 8), None, "another device's");
        }
    }

    #[test]
    fn a_route_is_kept_without_the_state_of_its_device_and_the_kernel_s_own_is_not() {
        let route = |protocol: u8, flags: u32| {
            let mut header = [0; ROUTE_HEADER];
            (header[PROTOCOL], header[ROUTE_TYPE]) = (protocol, libc::RTN_UNICAST);
            header[ROUTE_FLAGS..].copy_from_slice(&flags.to_ne_bytes());
            let message =
                NetlinkMessage::new(0, 0, 0).fixed(&header).attribute(libc::RTA_OIF, &7_u32.to_ne_bytes());
            message.attribute(libc::RTA_CACHEINFO, &[1; 4]).finish().split_off(super::super::message::HEADER)
        };
        let kept = route_over(&route(4, ON_LINK | 16), 7).expect("a route of an administrator");
        assert_eq!(word(&kept, ROUTE_FLAGS), Some(ON_LINK));
        assert_eq!(attribute(&kept[ROUTE_HEADER..], libc::RTA_CACHEINFO), None);
        assert_eq!(route_over(&route(4, 0), 8), None, "over another device");
        assert_eq!(route_over(&route(libc::RTPROT_KERNEL, 0), 7), None);
        assert_eq!(route_over(&route(4, libc::RTM_F_CLONED), 7), None);
    }

    #[test]
    fn the_loopback_is_seen_with_its_address() {
        let Ok(device) = device(1) else {
            println!("skipped: the loopback as a device: there is none with number 1");
            return;
        };
        assert_eq!(device.name, "lo");
        let own = addresses(1).expect("the kernel answers");
        assert_eq!(device.is_up, own.iter().any(|own| own.prefix == prefix("127.0.0.1/8")));
        assert!(!device.is_up || device_with(own[0].prefix.address()).expect("it answers") == Some(1));
    }

    fn header(index: u32, parent: u32) -> Vec<u8> {
        [0, index, 1, parent, 0].iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn counts(all: [u32; 5]) -> Vec<u8> {
        let bytes: Vec<u8> = all.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let nested = NetlinkMessage::new(0, 0, 0).attribute(STATS_QUEUE, &bytes).finish();
        nested[super::super::message::HEADER..].to_vec()
    }

    #[test]
    fn the_outermost_queue_of_the_interface_counts() {
        let message = |index, parent| {
            let message = NetlinkMessage::new(libc::RTM_NEWQDISC, 0, 1).fixed(&header(index, parent));
            message.attribute(libc::TCA_STATS2, &counts([3, 4500, 7, 0, 0])).finish()
        };
        let read = |bytes: &[u8]| messages(bytes).find_map(|heard| queue(&heard, 4));
        assert_eq!(read(&message(4, ROOT)), Some(QueuedPackets { packets: 3, bytes: 4500, drops: 7 }));
        assert_eq!(read(&message(5, ROOT)), None);
        assert_eq!(read(&message(4, 1)), None);
    }

    #[test]
    fn the_loopback_has_nothing_waiting() {
        let index = crate::netlink::index_of("lo").expect("it is always there");
        let waiting = queued(index).expect("the kernel answers");
        assert!(waiting.is_none_or(|queue| queue.packets == 0), "{waiting:?}");
    }
}
