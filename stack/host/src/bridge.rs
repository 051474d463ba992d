//! Two ports of a bridge as two links. A packet socket reads the TCP of mobiles on one port. It leaves by the other
//! port with the Ethernet addresses that it had. The kernel's bridge carries all other frames, and also this TCP when
//! no proxy runs.

pub(crate) mod addresses;
pub(crate) mod ports;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::ip::Prefix;
use hopwise_core::wire::bundle::Cutter;
use hopwise_core::{Instant, Transmit};
use parking_lot::Mutex;
use tun_rs::VIRTIO_NET_HDR_LEN;

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Arrived, Link, LinkError, LinkProperties, Received, Sent};
use crate::netlink::carrier::CarrierSocket;
use crate::raw::ethernet::Tag;
use crate::raw::ethernet::{ETHERNET, EthernetFrame, Mac, Protocol, header};
use crate::raw::socket::{Got, PacketSocket};
use crate::tun::check_ip;
use crate::vnet::read_header;

use addresses::{BridgedFlow, FlowDirection, LearnedAddresses, goes_on, tcp_ends};
use ports::BlockedPackets;
use ports::Bridge;

/// The ports, and the networks whose TCP is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// The port towards the wire.
    pub wire: String,
    /// The port towards the mobiles.
    pub radio: String,
    /// The networks of the mobiles.
    pub mobiles: Vec<Prefix>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BridgePort {
    Wire,
    Radio,
}

/// The packets that come in and leave by one port of a bridge.
pub struct Bridged {
    port: BridgePort,
    socket: PacketSocket,
    mtu: u16,
    mobiles: Vec<Prefix>,
    /// Frames to these addresses belong to the kernel.
    own: Vec<Mac>,
    shared: Arc<Mutex<BridgeState>>,
    /// The segments of a frame that the kernel had joined.
    pieces: Vec<u8>,
    lengths: Vec<usize>,
    frame: Vec<u8>,
    retry_at: Option<Instant>,
    look_at: Instant,
    tally: LinkTally,
}

/// The state of both ports.
struct BridgeState {
    learned: LearnedAddresses,
    block: BlockedPackets,
    bridge: Option<ChosenBridge>,
    news: CarrierSocket,
}

/// The bridge at the start, by which the carried and the blocked packets were chosen.
struct ChosenBridge {
    then: Bridge,
    /// The list of links has to be read: the last one could not be, or showed another bridge.
    is_due: bool,
    saw_another: bool,
}

impl ChosenBridge {
    /// Returns whether two looks in a row have found another bridge. One look may fail, because a list that changes
    /// while it is read is incomplete. The list is read only after news of a link: that takes a lock of the kernel's.
    fn is_another(
        &mut self,
        has_news: bool,
        look: impl FnOnce() -> io::Result<Option<Bridge>>,
    ) -> Option<Option<Bridge>> {
        self.is_due |= has_news;
        if !self.is_due {
            return None;
        }
        let Ok(now) = look() else { return None };
        let is_other = now.as_ref() != Some(&self.then);
        let was_other = std::mem::replace(&mut self.saw_another, is_other);
        self.is_due = is_other;
        (is_other && was_other).then_some(now)
    }
}

const RETRY: Duration = Duration::from_millis(1);
/// The interval of checks on the device, the block and the bridge.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Bridged {
    /// Opens the wire's side, then the radio's. The block that keeps the kernel from carrying their packets goes with
    /// them, also after a crash.
    pub fn open(config: &BridgeConfig) -> Result<[Bridged; 2], LinkError> {
        let BridgeConfig { wire, radio, mobiles } = config;
        let news = CarrierSocket::listen()
            .map_err(|error| LinkError::system("listen for changes of the bridge", wire, error))?;
        let (of_wire, about_wire) = PacketSocket::open(wire)?;
        let (of_radio, about_radio) = PacketSocket::open(radio)?;
        let bridge = find_bridge(config)?;
        let of_bridge = bridge.iter().flat_map(|bridge| &bridge.own).copied();
        let own: Vec<Mac> = [about_wire.mac, about_radio.mac].into_iter().chain(of_bridge).collect();
        let block = BlockedPackets::set(config, &own).map_err(|error| {
            LinkError::system("keep the kernel from carrying the same packets", wire, error)
        })?;
        let bridge = bridge.map(|then| ChosenBridge { then, is_due: false, saw_another: false });
        let shared =
            Arc::new(Mutex::new(BridgeState { learned: LearnedAddresses::default(), block, bridge, news }));
        let side = |port, socket, device: &String, mtu| Bridged {
            port,
            socket,
            mtu,
            mobiles: mobiles.clone(),
            own: own.clone(),
            shared: Arc::clone(&shared),
            pieces: Vec::new(),
            lengths: Vec::new(),
            frame: Vec::new(),
            retry_at: None,
            look_at: Instant::ZERO,
            tally: LinkTally::new(device),
        };
        Ok([
            side(BridgePort::Wire, of_wire, wire, about_wire.mtu),
            side(BridgePort::Radio, of_radio, radio, about_radio.mtu),
        ])
    }

    /// The flow of a packet that the block keeps from the kernel. `None` for packets that the kernel carries.
    fn flow(&self, frame: &EthernetFrame, packet: &[u8]) -> Option<BridgedFlow> {
        let flow = self.arriving().flow(tcp_ends(frame.protocol, packet)?);
        let is_ours = self.mobiles.iter().any(|network| network.contains(flow.mobile.0));
        (is_ours && !self.own.contains(&frame.to)).then_some(flow)
    }

    /// The direction of incoming packets. Outgoing ones have the other one.
    fn arriving(&self) -> FlowDirection {
        if self.port == BridgePort::Wire { FlowDirection::ToMobile } else { FlowDirection::FromMobile }
    }

    fn leaving(&self) -> FlowDirection {
        if self.port == BridgePort::Wire { FlowDirection::FromMobile } else { FlowDirection::ToMobile }
    }

    fn has_another_bridge(&self) -> bool {
        let mut shared = self.shared.lock();
        // News that cannot be read may be of the bridge.
        let has_news = shared.news.empty().unwrap_or(true);
        let Some(bridge) = &mut shared.bridge else { return false };
        let Some(now) = bridge.is_another(has_news, || ports::of(&self.tally.name)) else { return false };
        let (then, now) = (bridge.then.to_string(), now.map_or("none".to_owned(), |now| now.to_string()));
        tracing::error!(device = self.tally.name, then, now, "the bridge has changed: start the proxy again");
        true
    }

    fn take_frame(&mut self, bytes: usize, into: &mut [u8]) -> Received {
        let packet_at = VIRTIO_NET_HDR_LEN + ETHERNET;
        let (Some(vnet), Some(frame)) =
            (read_header(&into[..bytes]), EthernetFrame::parse(&into[VIRTIO_NET_HDR_LEN..bytes]))
        else {
            return self.tally.lost(LinkDrop::Truncated);
        };
        let Some(flow) = self.flow(&frame, &into[packet_at..bytes]) else { return Received::Dropped };
        let goes_on = goes_on(frame.protocol, &into[packet_at..bytes]);
        self.shared.lock().learned.learn(flow, self.arriving(), &frame, goes_on);
        into.copy_within(packet_at..bytes, 0);
        let bytes = bytes - packet_at;
        if vnet.gso_size == 0 && vnet.flags & NEEDS_CHECKSUM == 0 {
            return check_ip(&into[..bytes], &mut self.tally);
        }
        let segment_bytes = if vnet.gso_size > 0 { vnet.gso_size } else { u16::MAX };
        if !self.cut(&into[..bytes], segment_bytes) {
            // A frame without a whole segment is handed on as it is.
            return check_ip(&into[..bytes], &mut self.tally);
        }
        self.next_piece(into).unwrap_or(Received::Dropped)
    }

    /// Stores the segments of a joined frame, with the checksums that a device was to finish.
    fn cut(&mut self, packet: &[u8], segment_bytes: u16) -> bool {
        self.pieces.clear();
        let Ok(mut cutter) = Cutter::new(packet, segment_bytes) else { return false };
        let mut at = 0;
        while cutter.cut(packet, &mut self.pieces) {
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

/// The bridge of both ports, if they have one, and if no setting forbids a proxy to carry its packets.
fn find_bridge(config: &BridgeConfig) -> Result<Option<Bridge>, LinkError> {
    let BridgeConfig { wire, radio, .. } = config;
    let failed = |error| LinkError::system("look at the bridge", wire, error);
    let Some(bridge) = ports::of(wire).map_err(failed)? else {
        tracing::warn!(
            device = wire,
            "it is no port of a bridge: what is no TCP of the mobiles nobody carries"
        );
        return Ok(None);
    };
    match bridge.obstacle(wire, radio) {
        None => {
            say_filters(config);
            Ok(Some(bridge))
        }
        Some(obstacle) => {
            let error = io::Error::new(io::ErrorKind::Unsupported, obstacle);
            Err(LinkError::system("carry TCP beside the bridge", wire, error))
        }
    }
}

/// Warns of the administrator's filters, which the proxy's packets do not pass.
fn say_filters(config: &BridgeConfig) {
    let BridgeConfig { wire, radio, .. } = config;
    match ports::beside(&[wire, radio]) {
        Ok(tables) if tables.is_empty() => {}
        Ok(tables) => tracing::warn!(
            tables = tables.join(", "),
            "these filters of nft do not hold for TCP of the mobiles: it is read before they see it"
        ),
        Err(error) => tracing::warn!(%error, "filters of the bridge could not be listed"),
    }
}

impl Link for Bridged {
    fn properties(&self) -> LinkProperties {
        LinkProperties::plain(self.mtu)
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.descriptor())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        if self.tally.is_gone {
            return Received::Gone;
        }
        if let Some(piece) = self.next_piece(into) {
            return piece;
        }
        match self.socket.next(into) {
            // The kernel carries frames with a tag.
            Got::Frame { tag: Tag::Priority | Tag::Vlan, .. } => Received::Dropped,
            Got::Frame { bytes, .. } => self.take_frame(bytes, into),
            Got::Nothing | Got::Down => {
                let lost = self.socket.take_overruns();
                self.tally.dropped_many(LinkDrop::Overrun, lost);
                Received::Nothing
            }
            Got::Gone => self.tally.gone(),
        }
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, packet: &[u8]) -> Sent {
        let protocol =
            if packet.first().is_some_and(|first| first >> 4 == 6) { Protocol::Ipv6 } else { Protocol::Ipv4 };
        let direction = self.leaving();
        let known = tcp_ends(protocol, packet)
            .and_then(|ends| self.shared.lock().learned.of(direction.flow(ends), direction));
        let Some((to, from)) = known else { return self.tally.refused(LinkDrop::Unresolved) };
        self.frame.clear();
        self.frame.resize(VIRTIO_NET_HDR_LEN, 0);
        self.frame.extend_from_slice(&header(to, from, protocol));
        self.frame.extend_from_slice(packet);
        if !self.socket.put(&self.frame, &mut self.tally) {
            return Sent::Full;
        }
        self.tally.taken(packet.len())
    }

    fn flush(&mut self, now: Instant) {
        self.socket.flush(&mut self.tally);
        self.retry_at = (!self.socket.is_flushed()).then_some(now + RETRY);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let look_at = (!self.tally.is_gone).then_some(self.look_at);
        [self.retry_at, look_at].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.look_at <= now {
            self.look_at = now + LOOK_EVERY;
            // Without the block, the kernel would carry each packet a second time.
            self.tally.is_gone = !self.socket.has_device() || !self.shared.lock().block.stands();
            // One port checks for both.
            self.tally.is_gone |= self.port == BridgePort::Wire && self.has_another_bridge();
        }
        self.flush(now);
    }
}

hopwise_core::shown!(Bridged: tally);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_links_is_read_after_news_alone_and_until_two_lists_in_a_row_agree() {
        let of = |ports: &[&str]| Bridge::of_ports("br0", ports);
        let then = of(&["wire", "radio"]);
        let mut kept = ChosenBridge { then: then.clone(), is_due: false, saw_another: false };
        let mut looks = 0;
        let mut look = |has_news, found: io::Result<Option<Bridge>>| {
            let another = kept.is_another(has_news, || {
                looks += 1;
                found
            });
            (another.is_some(), looks)
        };
        let other = || Ok(Some(of(&["wire", "radio", "lan"])));
        assert_eq!(look(false, other()), (false, 0), "without news nothing is read");
        assert_eq!(look(true, Ok(Some(then.clone()))), (false, 1));
        assert_eq!(look(false, other()), (false, 1));
        // A list that could not be read, or shows another bridge, is followed by a second look.
        assert_eq!(look(true, Err(io::ErrorKind::TimedOut.into())), (false, 2));
        assert_eq!(look(false, other()), (false, 3));
        assert_eq!(look(false, Ok(Some(then.clone()))), (false, 4), "the list was not complete");
        assert_eq!(look(false, other()), (false, 4));
        assert_eq!(look(true, other()), (false, 5));
        assert_eq!(look(false, Ok(None)), (true, 6));
    }
}
