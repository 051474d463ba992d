//! Two ports of a bridge as two links: the TCP of mobiles that comes in on one is read from a packet socket and sent
//! by the other with the Ethernet addresses that it had. All else the kernel's own bridge carries, and that too, when
//! nobody is here.

mod block;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::Neighbours;
use hopwise_core::ip::Prefix;
use hopwise_core::wire::bundle::Cutter;
use hopwise_core::wire::protocol;
use hopwise_core::{Instant, LinkEvent, Transmit};
use parking_lot::Mutex;
use tun_rs::VIRTIO_NET_HDR_LEN;

use crate::counters::{LinkCounters, LinkDrop, Tally};
use crate::link::{Arrived, Link, LinkError, Received, Sent};
use crate::raw::ethernet::{ETHERNET, Frame, Mac, Protocol, header};
use crate::raw::socket::{Got, PacketSocket, Taken};
use crate::raw::tag::Tag;
use crate::tun::check_ip;
use crate::vnet::read_header;

use block::Block;

/// Which ports, and whose TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    pub wire: String,
    pub radio: String,
    pub mobiles: Vec<Prefix>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Wire,
    Radio,
}

/// What came in on a port of a bridge, and what leaves by it.
pub struct Bridged {
    port: Port,
    socket: PacketSocket,
    device: String,
    mtu: u16,
    mobiles: Vec<Prefix>,
    /// Frames to these are the kernel's.
    own: Vec<Mac>,
    shared: Arc<Mutex<Shared>>,
    /// Segments of a frame that the kernel had joined.
    pieces: Vec<u8>,
    lengths: Vec<usize>,
    frame: Vec<u8>,
    retry_at: Option<Instant>,
    look_at: Instant,
    tally: Tally,
    is_gone: bool,
}

/// What both ports know.
struct Shared {
    /// Who is written to by which Ethernet addresses: to and from. Each packet names those of both its ends.
    addresses: BTreeMap<IpAddr, (Mac, Mac)>,
    block: Block,
}

const MOST_ADDRESSES: usize = 16_384;
const RETRY: Duration = Duration::from_millis(1);
/// How often it is looked whether the device and the block are still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Bridged {
    /// The wire's side, then the radio's. What keeps the kernel from carrying the same packets goes with them, however
    /// they end.
    pub fn open(config: &BridgeConfig) -> Result<[Bridged; 2], LinkError> {
        let BridgeConfig { wire, radio, mobiles } = config;
        let (of_wire, about_wire) = PacketSocket::open(wire)?;
        let (of_radio, about_radio) = PacketSocket::open(radio)?;
        let own: Vec<Mac> = [about_wire.mac, about_radio.mac].into_iter().chain(of_bridge(wire)).collect();
        let block = Block::set(config, &own).map_err(|error| {
            LinkError::system("keep the kernel from carrying the same packets", wire, error)
        })?;
        let shared = Arc::new(Mutex::new(Shared { addresses: BTreeMap::new(), block }));
        let side = |port, socket, device: &String, mtu| Bridged {
            port,
            socket,
            device: device.clone(),
            mtu,
            mobiles: mobiles.clone(),
            own: own.clone(),
            shared: Arc::clone(&shared),
            pieces: Vec::new(),
            lengths: Vec::new(),
            frame: Vec::new(),
            retry_at: None,
            look_at: Instant::ZERO,
            tally: Tally::new(),
            is_gone: false,
        };
        Ok([
            side(Port::Wire, of_wire, wire, about_wire.mtu),
            side(Port::Radio, of_radio, radio, about_radio.mtu),
        ])
    }

    /// Exactly what the kernel is kept from carrying. `None`: it carries that itself.
    fn ends(&self, frame: &Frame, packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
        let (src, dst) = tcp_ends(frame.protocol, packet)?;
        let mobile = if self.port == Port::Wire { dst } else { src };
        let is_ours = self.mobiles.iter().any(|network| network.contains(mobile));
        (is_ours && !self.own.contains(&frame.to)).then_some((src, dst))
    }

    fn take_frame(&mut self, bytes: usize, into: &mut [u8]) -> Received {
        let packet_at = VIRTIO_NET_HDR_LEN + ETHERNET;
        let (Some(vnet), Some(frame)) =
            (read_header(&into[..bytes]), Frame::parse(&into[VIRTIO_NET_HDR_LEN..bytes]))
        else {
            self.tally.dropped(LinkDrop::Truncated);
            return Received::Dropped;
        };
        let Some((src, dst)) = self.ends(&frame, &into[packet_at..bytes]) else { return Received::Dropped };
        self.shared.lock().learn(src, dst, &frame);
        into.copy_within(packet_at..bytes, 0);
        let bytes = bytes - packet_at;
        if vnet.gso_size == 0 && vnet.flags & NEEDS_CHECKSUM == 0 {
            return check_ip(&into[..bytes], &mut self.tally);
        }
        let segment_bytes = if vnet.gso_size > 0 { vnet.gso_size } else { u16::MAX };
        if !self.cut(&into[..bytes], segment_bytes) {
            // No whole segment: as it is, it means nothing to anybody.
            return check_ip(&into[..bytes], &mut self.tally);
        }
        self.next_piece(into).unwrap_or(Received::Dropped)
    }

    /// Puts the segments of a joined frame by, with the checksums that a device was to finish.
    fn cut(&mut self, packet: &[u8], segment_bytes: u16) -> bool {
        self.pieces.clear();
        let Ok(mut cutter) = Cutter::new(packet, segment_bytes) else { return false };
        let mut at = 0;
        while cutter.cut(&mut self.pieces) {
            self.lengths.push(self.pieces.len() - at);
            at = self.pieces.len();
        }
        self.lengths.reverse();
        true
    }

    fn next_piece(&mut self, into: &mut [u8]) -> Option<Received> {
        let left: usize = self.lengths.iter().sum();
        let bytes = self.lengths.pop()?;
        let from = self.pieces.len() - left;
        into[..bytes].copy_from_slice(&self.pieces[from..from + bytes]);
        self.tally.received.count(bytes);
        Some(Received::Packet(Arrived::new(bytes)))
    }
}

const NEEDS_CHECKSUM: u8 = 1;

/// The Ethernet address of the bridge that a device is a port of.
fn of_bridge(device: &str) -> Option<Mac> {
    let text = fs::read_to_string(format!("/sys/class/net/{device}/master/address")).ok();
    if text.is_none() {
        tracing::warn!(device, "it is no port of a bridge: what is no TCP of the mobiles nobody carries");
    }
    text?.trim().parse().ok().map(|crate::nl80211::StationAddress(mac)| mac)
}

/// By the first header alone, as the kernel is told it.
fn tcp_ends(protocol: Protocol, packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let v4 = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    let v6 = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
    match protocol {
        Protocol::Ipv4 if *packet.get(9)? == protocol::TCP => Some((v4(12)?, v4(16)?)),
        Protocol::Ipv6 if *packet.get(6)? == protocol::TCP => Some((v6(8)?, v6(24)?)),
        _ => None,
    }
}

impl Shared {
    fn learn(&mut self, src: IpAddr, dst: IpAddr, frame: &Frame) {
        for (end, addresses) in [(dst, (frame.to, frame.from)), (src, (frame.from, frame.to))] {
            if self.addresses.len() >= MOST_ADDRESSES && !self.addresses.contains_key(&end) {
                // Whoever still sends is learned again by the next packet.
                self.addresses.pop_first();
            }
            self.addresses.insert(end, addresses);
        }
    }
}

impl Link for Bridged {
    fn name(&self) -> &str {
        &self.device
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn neighbours(&self) -> Neighbours {
        Neighbours::Implied
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.descriptor())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        if self.is_gone {
            return Received::Gone;
        }
        if let Some(piece) = self.next_piece(into) {
            return piece;
        }
        match self.socket.next(into) {
            // The kernel carries it, with its tag.
            Got::Frame { tag: Tag::Priority | Tag::Vlan, .. } => Received::Dropped,
            Got::Frame { bytes, .. } => self.take_frame(bytes, into),
            Got::Nothing | Got::Down => {
                let lost = self.socket.take_overruns();
                self.tally.dropped_many(LinkDrop::Overrun, lost);
                Received::Nothing
            }
            Got::Gone => {
                self.is_gone = true;
                Received::Gone
            }
        }
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, packet: &[u8]) -> Sent {
        let protocol =
            if packet.first().is_some_and(|first| first >> 4 == 6) { Protocol::Ipv6 } else { Protocol::Ipv4 };
        let known =
            tcp_ends(protocol, packet).and_then(|(_, dst)| self.shared.lock().addresses.get(&dst).copied());
        let Some((to, from)) = known else {
            self.tally.dropped(LinkDrop::Unresolved);
            return Sent::Refused(LinkDrop::Unresolved);
        };
        self.frame.clear();
        self.frame.resize(VIRTIO_NET_HDR_LEN, 0);
        self.frame.extend_from_slice(&header(to, from, protocol));
        self.frame.extend_from_slice(packet);
        match self.socket.put(&self.frame, &mut self.tally) {
            Taken::Yes => {
                self.tally.sent.count(packet.len());
                Sent::Taken
            }
            Taken::No => Sent::Full,
        }
    }

    fn flush(&mut self, now: Instant) {
        self.socket.flush(&mut self.tally);
        self.retry_at = (!self.socket.is_flushed()).then_some(now + RETRY);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let look_at = (!self.is_gone).then_some(self.look_at);
        [self.retry_at, look_at].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.look_at <= now {
            self.look_at = now + LOOK_EVERY;
            // Without the block the kernel would carry everything a second time.
            self.is_gone = !self.socket.has_device() || !self.shared.lock().block.stands();
        }
        self.flush(now);
    }

    fn drain_events(&mut self, _sink: &mut dyn FnMut(&LinkEvent<'_>)) {}

    fn counters(&self) -> LinkCounters {
        LinkCounters { is_gone: self.is_gone, ..self.tally.show(&self.device) }
    }
}

impl fmt::Debug for Bridged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridged").field("device", &self.device).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_is_known_by_its_first_header_and_nothing_else_is_taken() {
        let mut v4 = vec![0; 20];
        (v4[0], v4[9]) = (0x45, 6);
        v4[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 9, 0, 2]);
        let ends = Some((IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 9, 0, 2])));
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4), ends);
        assert_eq!(tcp_ends(Protocol::Arp, &v4), None);
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4[..19]), None);
        v4[9] = 17;
        assert_eq!(tcp_ends(Protocol::Ipv4, &v4), None);
        let mut v6 = vec![0; 40];
        (v6[0], v6[6]) = (0x60, 6);
        assert!(tcp_ends(Protocol::Ipv6, &v6).is_some());
        // A fragment, say: the kernel carries it.
        v6[6] = 44;
        assert_eq!(tcp_ends(Protocol::Ipv6, &v6), None);
    }
}
