//! `raw`: an Ethernet device that the kernel also uses, with addresses of our own.
//!
//! A packet socket carries frames in batches. We find neighbours by our own ARP and NDP. Each frame has the header of
//! `tun-fast` before it: a packet socket, too, gives joined segments, and checksums that a device is still to finish. A
//! frame with the tag of a VLAN is for another device.
//!
//! A rule of nft keeps the kernel from answering for our addresses.

pub(crate) mod arp;
pub(crate) mod ethernet;
pub(crate) mod ndp;
mod neighbours;
mod own_mac;
mod probe;
mod resolution;
pub(crate) mod socket;

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use hopwise_core::endpoint::{Neighbours, Offload};
use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u16;
use hopwise_core::wire::Checksums;
use hopwise_core::{Cast, Instant, LinkEvent, NextHop, StationAddress, Transmit};
use tun_rs::VIRTIO_NET_HDR_LEN;

use crate::counters::{LinkDrop, LinkTally};
use crate::frames::{EthernetHeader, FrameLog, KeptFrame};
use crate::link::{Arrived, Link, LinkError, LinkProperties, Received, Sent};
use crate::nft::{self, OwnedTable, in_a_name};
use crate::observer::Direction;
use crate::own_file::{NameLock, lock_name};
use crate::tun::check_ip;
use crate::vnet::{IncomingBundle, WholePacket, finish, header_for, read_header, shifted};

use ethernet::Tag;
use ethernet::{ETHERNET, EthernetFrame, Mac, Protocol};
use neighbours::{NeighbourAnswer, NeighbourTable};
use own_mac::OwnMac;
use socket::PacketSocket;

pub use probe::holders;

/// An Ethernet device, and our addresses there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawConfig {
    /// The name of the device.
    pub device: String,
    /// Addresses of ours alone, or also of the kernel. For the latter, the kernel may not reset our connections, and we
    /// must not use ports that it has itself.
    pub addresses: Vec<Prefix>,
    /// True if the device may get bundles. Received bundles are taken in any case.
    pub offload: bool,
}

/// A link on an Ethernet device that the kernel uses too.
#[derive(Debug)]
pub struct Raw {
    // Dropped before the guard: until the socket is closed, the kernel must keep quiet.
    socket: PacketSocket,
    _guard: RawGuard,
    own: OwnMac,
    mtu: u16,
    offload: bool,
    addresses: Vec<IpAddr>,
    neighbours: NeighbourTable,
    incoming: IncomingBundle,
    incoming_from: Option<IpAddr>,
    incoming_header: Option<EthernetHeader>,
    /// The frame that is being sent.
    frame: Vec<u8>,
    /// The time of the next attempt for frames that the socket had no room for.
    retry_at: Option<Instant>,
    /// The time of the next check on a device that went down, and the number of checks left.
    look_at: Option<(Instant, u8)>,
    log: FrameLog,
    tally: LinkTally,
}

/// The kind in the names of its locks.
const KIND: &str = "raw";
/// The capabilities for the packet socket, and for nft.
const RIGHTS: &str = "CAP_NET_ADMIN and CAP_NET_RAW";
const RETRY: Duration = Duration::from_millis(1);
/// A device that is removed goes down first, and is still there for a moment.
const LOOK_AFTER: Duration = Duration::from_millis(50);
const LOOKS: u8 = 20;

impl Raw {
    /// Opens a packet socket, and guards the addresses that are ours.
    pub fn open(config: &RawConfig) -> Result<Raw, LinkError> {
        let device = &config.device;
        if config.addresses.is_empty() {
            return Err(LinkError::Setting { device: device.clone(), what: "it needs an address of ours" });
        }
        let addresses: Vec<IpAddr> = config.addresses.iter().map(Prefix::address).collect();
        let guard = RawGuard::set(device, &addresses)?;
        let (socket, about) = PacketSocket::open(device)?;
        Ok(Raw {
            socket,
            _guard: guard,
            own: OwnMac::new(about.mac),
            mtu: about.mtu,
            offload: config.offload,
            addresses,
            neighbours: NeighbourTable::default(),
            incoming: IncomingBundle::default(),
            incoming_from: None,
            incoming_header: None,
            log: FrameLog::default(),
            frame: Vec::new(),
            retry_at: None,
            look_at: None,
            tally: LinkTally::new(device),
        })
    }

    /// The nft table that keeps the kernel quiet while a device is open, and for a moment after its user was killed.
    pub fn table_of(device: &str) -> String {
        table_name(device)
    }

    /// Returns whether nft lists that table.
    pub fn has_table(device: &str) -> io::Result<bool> {
        let table = format!("table inet {}", table_name(device));
        Ok(nft::tables()?.lines().any(|line| line == table))
    }

    /// The name that /proc/net/unix shows, after an `@`, as long as a device has a user.
    pub fn lock_of(device: &str) -> String {
        lock_name(KIND, device)
    }

    /// Returns whether the device exists, and checks only when a check is due.
    fn is_there(&mut self, now: Instant) -> bool {
        let Some((at, looks)) = self.look_at.filter(|(at, _)| *at <= now) else { return true };
        self.look_at = (looks > 1).then(|| (at + LOOK_AFTER, looks - 1));
        self.socket.has_device()
    }

    fn on_gone(&mut self) -> Received {
        (self.tally.is_gone, self.look_at) = (true, None);
        Received::Gone
    }

    fn is_ours(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Parses a frame. A packet for the machine is written to `into`.
    fn take_frame(&mut self, now: Instant, bytes: usize, cast: Cast, into: &mut [u8]) -> Received {
        let Some(header) = read_header(&into[..bytes]) else { return self.tally.lost(LinkDrop::Truncated) };
        let Some(frame) = EthernetFrame::parse(&into[VIRTIO_NET_HDR_LEN..bytes]) else {
            return self.tally.lost(LinkDrop::Truncated);
        };
        self.doubt_mac(now, &frame, cast);
        let (from, protocol) = (frame.from, frame.protocol);
        let packet_at = VIRTIO_NET_HDR_LEN + ETHERNET;
        let Some(ethernet) = into[VIRTIO_NET_HDR_LEN..].first_chunk().copied() else {
            return self.tally.lost(LinkDrop::Truncated);
        };
        match protocol {
            Protocol::Arp => {
                self.keep(now, Direction::In, ethernet, &into[packet_at..bytes]);
                self.take_arp(now, &into[packet_at..bytes]);
            }
            Protocol::Ipv4 | Protocol::Ipv6 => {
                if protocol == Protocol::Ipv6 && self.take_ndp(now, ethernet, &into[packet_at..bytes]) {
                    return Received::Dropped;
                }
                into.copy_within(packet_at..bytes, 0);
                let about = Arrived { cast, ethernet: Some(ethernet), ..Arrived::new(bytes - packet_at) };
                return self.take_packet(now, &header, (about, from), into);
            }
            Protocol::Other => return self.tally.lost(LinkDrop::NotIp),
        }
        Received::Dropped
    }

    fn take_packet(
        &mut self,
        now: Instant,
        header: &tun_rs::VirtioNetHdr,
        (arrived, from): (Arrived, Mac),
        into: &mut [u8],
    ) -> Received {
        let bytes = arrived.bytes;
        let received = check_ip(&into[..bytes], &mut self.tally);
        let Received::Packet(_) = received else { return received };
        // The source of a packet exists, but may not be the neighbour that it claims to be.
        let source = self.neighbours.named(from);
        match finish(header, &mut into[..bytes], &mut self.incoming) {
            Ok(Some(whole)) => {
                if let Some(source) = source {
                    self.neighbours.confirm(now, source, from);
                }
                Received::Packet(Arrived { from: source, segment_bytes: WholePacket::get(whole), ..arrived })
            }
            Ok(None) => {
                (self.incoming_from, self.incoming_header) = (source, arrived.ethernet);
                self.next_piece(into).unwrap_or(Received::Dropped)
            }
            Err(reason) => self.tally.lost(reason),
        }
    }

    fn next_piece(&mut self, into: &mut [u8]) -> Option<Received> {
        let bytes = self.incoming.next(into)?;
        let (from, ethernet) = (self.incoming_from, self.incoming_header);
        Some(Received::Packet(Arrived { from, ethernet, ..Arrived::new(bytes) }))
    }

    /// Keeps a frame for observers.
    fn keep(&mut self, at: Instant, direction: Direction, header: EthernetHeader, packet: &[u8]) {
        self.log.keep(|| {
            let packet = packet.to_vec();
            Some(KeptFrame { at, direction, id: None, segment_bytes: None, header, packet })
        });
    }

    /// Keeps a packet that waited and leaves now.
    fn keep_packet(&mut self, at: Instant, to: Mac, transmit: &Transmit, packet: &[u8]) {
        let header = self.header_to(to, Protocol::of(packet));
        let (id, segment_bytes, direction) = (Some(transmit.id), transmit.segment_bytes, Direction::Out);
        self.log
            .keep(|| Some(KeptFrame { at, direction, id, segment_bytes, header, packet: packet.to_vec() }));
    }

    fn header_to(&self, to: Mac, protocol: Protocol) -> EthernetHeader {
        ethernet::header(to, self.own.mac, protocol)
    }

    fn put_frame(&mut self, now: Instant, to: Mac, protocol: Protocol, packet: &[u8]) {
        let header = self.header_to(to, protocol);
        self.keep(now, Direction::Out, header, packet);
        self.frame.clear();
        self.frame.extend_from_slice(&[0; VIRTIO_NET_HDR_LEN]);
        self.frame.extend_from_slice(&header);
        self.frame.extend_from_slice(packet);
        if !self.socket.put(&self.frame, &mut self.tally) {
            self.tally.dropped(LinkDrop::QueueFull);
        }
        self.socket.flush(&mut self.tally);
    }

    fn put_packet(&mut self, to: Mac, transmit: &Transmit, packet: &[u8]) -> Sent {
        let header = shifted(header_for(packet, transmit.segment_bytes), as_u16(ETHERNET));
        self.frame.resize(VIRTIO_NET_HDR_LEN, 0);
        if header.encode(&mut self.frame).is_err() {
            return self.tally.refused(LinkDrop::Refused);
        }
        let header = self.header_to(to, Protocol::of(packet));
        self.frame.extend_from_slice(&header);
        self.frame.extend_from_slice(packet);
        if !self.socket.put(&self.frame, &mut self.tally) {
            return Sent::Full;
        }
        self.tally.taken(packet.len())
    }
}

impl Link for Raw {
    fn properties(&self) -> LinkProperties {
        let neighbours = Neighbours::Named;
        let offload = if self.offload { Offload::Cut { most_bytes: 65_535 } } else { Offload::None };
        let checksums = Checksums::Trust;
        LinkProperties { neighbours, offload, checksums, ..LinkProperties::plain(self.mtu) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.descriptor())
    }

    fn receive(&mut self, now: Instant, into: &mut [u8]) -> Received {
        if let Some(piece) = self.next_piece(into) {
            return piece;
        }
        if !self.is_there(now) {
            return self.on_gone();
        }
        match self.socket.next(into) {
            // Another VLAN is another network: its ARP and NDP may not change our neighbours.
            socket::Got::Frame { tag: Tag::Vlan, .. } => self.tally.lost(LinkDrop::Vlan),
            socket::Got::Frame { bytes, cast, .. } => self.take_frame(now, bytes, cast, into),
            socket::Got::Nothing => {
                let lost = self.socket.take_overruns();
                self.tally.dropped_many(LinkDrop::Overrun, lost);
                Received::Nothing
            }
            socket::Got::Down => {
                self.look_at = Some((now + LOOK_AFTER, LOOKS));
                Received::Nothing
            }
            socket::Got::Gone => self.on_gone(),
        }
    }

    fn transmit(&mut self, now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent {
        let to = match transmit.to {
            NextHop::Neighbour(to) => to,
            NextHop::All => return self.put_packet(ethernet::everyone(packet), transmit, packet),
            NextHop::Link => return self.tally.refused(LinkDrop::Unresolved),
        };
        match self.neighbours.find(now, to) {
            NeighbourAnswer::At(mac) => self.put_packet(mac, transmit, packet),
            NeighbourAnswer::Sought => {
                if !self.neighbours.hold(now, to, transmit, packet) {
                    return self.tally.refused(LinkDrop::QueueFull);
                }
                self.work_on_neighbours(now);
                Sent::Waits
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        self.work_on_neighbours(now);
        self.socket.flush(&mut self.tally);
        self.retry_at = (!self.socket.is_flushed()).then_some(now + RETRY);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let look_at = self.look_at.map(|(at, _)| at);
        [self.neighbours.poll_timeout(), self.retry_at, look_at].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.neighbours.handle_timeout(now);
        self.flush(now);
    }

    /// The destination is zero while the neighbour's address is unknown.
    fn ethernet_of(&self, transmit: &Transmit, packet: &[u8]) -> Option<EthernetHeader> {
        let to = match transmit.to {
            NextHop::All => ethernet::everyone(packet),
            NextHop::Neighbour(to) => self.neighbours.address_of(to).unwrap_or_default(),
            NextHop::Link => Mac::default(),
        };
        Some(self.header_to(to, Protocol::of(packet)))
    }

    fn station_of(&self, neighbour: IpAddr) -> Option<StationAddress> {
        self.neighbours.address_of(neighbour).map(StationAddress)
    }

    fn keep_frames(&mut self, are_kept: bool) {
        self.log.turn(are_kept);
    }

    fn drain_frames(&mut self, sink: &mut dyn FnMut(&KeptFrame)) {
        self.log.drain(sink);
    }

    fn drain_events(&mut self, sink: &mut dyn FnMut(&LinkEvent<'_>)) {
        self.neighbours.drain_failures(|to, transmit, packet| {
            sink(&LinkEvent::NotDelivered { to, id: transmit.id, packet });
        });
    }
}

// Keeps the kernel from answering for our addresses, by an nft table whose name only Hopwise gives.
//
// Packets for addresses that are ours alone never reach the kernel's IP. If the kernel has the address, too, it must
// not reset connections that it does not know. The table belongs to this process, and goes with the link or when the
// process is killed.

#[derive(Debug)]
struct RawGuard {
    _table: OwnedTable,
    _lock: NameLock,
}

impl RawGuard {
    fn set(device: &str, addresses: &[IpAddr]) -> Result<RawGuard, LinkError> {
        let failed = |doing| move |error| LinkError::system(doing, device, error).taking(RIGHTS);
        let lock = NameLock::of(KIND, device)?;
        let table = format!("inet {}", table_name(device));
        // An address is shared if the kernel has it, too.
        let is_shared = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
        let table = OwnedTable::set(&table, &chains(device, addresses, is_shared))
            .map_err(failed("tell nft (package nftables) to keep the kernel quiet"))?;
        Ok(RawGuard { _table: table, _lock: lock })
    }
}

pub(crate) fn table_name(device: &str) -> String {
    format!("hopwise_{}", in_a_name(device))
}

fn chains(device: &str, addresses: &[IpAddr], is_shared: impl Fn(IpAddr) -> bool) -> String {
    let (mut arriving, mut leaving) = (String::new(), String::new());
    for address in addresses {
        let family = if address.is_ipv4() { "ip" } else { "ip6" };
        // Writing to a String does not fail.
        let _ = if is_shared(*address) {
            write!(leaving, "{family} saddr {address} tcp flags & rst == rst drop; ")
        } else {
            write!(arriving, "iifname \"{device}\" {family} daddr {address} drop; ")
        };
    }
    format!(
        "chain arriving {{ type filter hook prerouting priority raw; policy accept; {arriving}}}; \
         chain leaving {{ type filter hook output priority filter; policy accept; {leaving}}}; "
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ours_alone_is_kept_from_the_kernel_and_a_shared_one_from_resets() {
        let (ours, shared) = ("10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap());
        let rules = chains("eth0", &[ours, shared], |address| address == shared);
        assert!(rules.contains("iifname \"eth0\" ip daddr 10.0.0.1 drop"));
        assert!(rules.contains("ip6 saddr fd00::1 tcp flags & rst == rst drop"));
        assert!(!rules.contains("ip saddr 10.0.0.1") && !rules.contains("ip6 daddr"));
    }

    #[test]
    fn a_table_is_named_after_its_device_without_what_nft_does_not_take() {
        assert_eq!(table_name("wlan0"), "hopwise_wlan0");
        assert_eq!(table_name("wlan-0.1"), "hopwise_wlan_2d0_2e1");
        assert_ne!(table_name("br.1"), table_name("br_1"), "a node on one would take the other's");
        assert_ne!(table_name("br_2e1"), table_name("br.1"));
    }
}
