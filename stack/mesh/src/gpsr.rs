//! GPSR (Karp and Kung 2000): a packet goes to the neighbour closest to its destination, and around where none is
//! closer.
//!
//! Nodes know their own position, and sources the position of their destinations. An oracle provides both at no cost,
//! as in the paper. A packet carries the positions of its destination and of its sender, so that each one is a beacon.
//! Two rules are not in the paper. A packet that a link gave up starts anew from here, in greedy mode and with a hop
//! less. A packet for a neighbour goes straight to it, wherever its source locates it.

mod forwarding;
pub mod header;
mod plane;

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::Path;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::IpView;
use hopwise_core::{Instant, LinkId, NextHop, QueueClass, Rx};

use crate::constants::{ConstantForm, ConstantValue, ON, Setting, constants};
use crate::on_demand::{Interface, Manners, Outbox, is_host, name_of, packet_of_header, path_of, v4};
use crate::protocol::{LiveRouter, PacketMark, RoutingProtocol, RoutingSetup};
use crate::routing::{
    ControlMessage, Cx, Hop, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered,
};
use crate::shim::{take_one_hop, with_header};
use forwarding::NeighbourPositions;
use forwarding::{Ground, NextStep};
use header::{Body, Header, NOTHING};

pub use plane::{Planar, Point};

/// A number for experiments (RFC 3692): GPSR has none of its own.
pub const PROTOCOL: u8 = 254;

/// Knows the positions of nodes.
pub trait Positions: Debug + Send {
    /// `now` never decreases.
    fn locate(&mut self, now: Instant, node: Ipv4Addr) -> Option<Point>;
}

/// No node's position is known.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Positions for Nowhere {
    fn locate(&mut self, _: Instant, _: Ipv4Addr) -> Option<Point> {
        None
    }
}

/// GPSR in the registry.
pub static DESCRIPTOR: RoutingProtocol = RoutingProtocol {
    name: "gpsr",
    summary: "GPSR; only in world sim, because it needs the positions of all nodes.",
    constants: Settings::CONSTANTS,
    subject: "GPSR",
    is_flat: false,
    mark: PacketMark::Header { number: PROTOCOL, read: behind },
    needs_positions: true,
    live: LiveRouter::Simulation,
    daemon: None,
    make: |constants, setup| Box::new(Gpsr::new(constants.into(), setup)),
};

fn behind(payload: &[u8]) -> Option<(u8, usize)> {
    Header::parse(payload).ok().map(|(header, len)| (header.next, len))
}

/// A node that forwards by positions: greedily, and around voids on a planar graph.
#[derive(Debug)]
pub struct Gpsr {
    settings: Settings,
    interfaces: Vec<Interface>,
    own: Ipv4Addr,
    positions: Box<dyn Positions>,
    neighbours: NeighbourPositions,
    outbox: Outbox,
    next_beacon: Instant,
    packets: u16,
    failures: u64,
}

/// A packet with our header, taken apart.
#[derive(Debug)]
struct Parcel<'a> {
    packet: &'a [u8],
    ip_len: usize,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    hop_limit: u8,
    header: Header,
    header_len: usize,
}

impl<'a> Parcel<'a> {
    /// `None` for a packet without that header.
    fn read(packet: &'a [u8]) -> Result<Option<Parcel<'a>>, DropReason> {
        let view = IpView::parse(packet)?;
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (view.src, view.dst) else { return Ok(None) };
        if view.protocol != PROTOCOL {
            return Ok(None);
        }
        let (header, header_len) = Header::parse(view.payload).map_err(|_| DropReason::RoutingMalformed)?;
        let packet = &packet[..view.header_len + view.payload.len()];
        let (ip_len, hop_limit) = (view.header_len, view.hop_limit);
        Ok(Some(Parcel { packet, ip_len, src, dst, hop_limit, header, header_len }))
    }

    /// The packet with one hop less and another header of ours.
    fn passed_on(&self, header: &Header) -> Option<Vec<u8>> {
        let with = with_header(self.packet, (self.ip_len, self.header_len), PROTOCOL, &header.bytes());
        with.inspect(|packet| debug_assert!(packet[8] > 1, "checked before")).map(|mut packet| {
            take_one_hop(&mut packet);
            packet
        })
    }
}

impl Gpsr {
    /// A node that knows no neighbour yet, at time 0.
    pub fn new(settings: Settings, setup: RoutingSetup) -> Gpsr {
        let RoutingSetup { interfaces, positions, seed, .. } = setup;
        // GPSR builds its own packets, so that the outbox needs no port.
        let mut outbox = Outbox::new(Manners { port: 0, everyone: Ipv4Addr::BROADCAST }, seed);
        Gpsr {
            own: name_of(&interfaces),
            interfaces,
            positions,
            neighbours: NeighbourPositions::new(settings.most_neighbours),
            next_beacon: Instant::ZERO + outbox.chance.up_to(settings.beacon_interval),
            outbox,
            packets: 0,
            failures: 0,
            settings,
        }
    }

    /// Puts the next beacon off by half of the beacon interval to three halves of it.
    fn put_beacon_off(&mut self, now: Instant) {
        let interval = self.settings.beacon_interval;
        self.next_beacon = now + interval / 2 + self.outbox.chance.up_to(interval);
    }

    fn send_beacon(&mut self, now: Instant) {
        self.put_beacon_off(now);
        let Some(sender) = self.positions.locate(now, self.own) else { return };
        let beacon = Header { next: NOTHING, sender, body: Body::Beacon }.bytes();
        self.packets = self.packets.wrapping_add(1);
        let ends = (self.own, Ipv4Addr::BROADCAST);
        let packet = packet_of_header(ends, PROTOCOL, 1, self.packets, &beacon);
        for interface in &self.interfaces {
            let (link, packet) = (interface.link, packet.clone());
            self.outbox.push(RoutingOrder::Send {
                link,
                to: NextHop::All,
                class: QueueClass::Routing,
                packet,
            });
        }
    }

    /// Finds a packet's next hop. `around` is its perimeter state on arrival, if it goes around.
    fn step(
        &mut self,
        now: Instant,
        to: (Ipv4Addr, Point),
        around: Option<(header::PerimeterState, Point)>,
    ) -> Option<(Point, NextStep)> {
        let here = self.positions.locate(now, self.own)?;
        self.neighbours.forget(now);
        let ground = Ground {
            own: self.own,
            here,
            neighbours: &self.neighbours,
            planar: self.settings.planar,
            has_perimeter: self.settings.perimeter,
        };
        ground.step(to, around).map(|step| (here, step))
    }

    /// The packet as it leaves, and its next hop.
    fn forward(
        &mut self,
        now: Instant,
        parcel: &Parcel<'_>,
        is_new: bool,
    ) -> Result<(Ipv4Addr, Vec<u8>), DropReason> {
        let Body::Data { destination, around } = parcel.header.body else {
            return Err(DropReason::RoutingMalformed);
        };
        if parcel.hop_limit <= 1 {
            return Err(DropReason::HopLimit);
        }
        let around = around.filter(|_| !is_new).map(|around| (around, parcel.header.sender));
        let step = self.step(now, (parcel.dst, destination), around);
        let (sender, NextStep { via, around }) = step.ok_or(DropReason::NoRoute)?;
        let body = Body::Data { destination, around };
        let header = Header { next: parcel.header.next, sender, body };
        let packet = parcel.passed_on(&header).ok_or(DropReason::TooBig)?;
        self.has_spoken(now);
        Ok((via, packet))
    }

    /// A data packet that neighbours overhear replaces a beacon.
    fn has_spoken(&mut self, now: Instant) {
        if self.settings.promiscuous {
            self.put_beacon_off(now);
        }
    }

    fn link_of(&self, neighbour: Ipv4Addr) -> LinkId {
        let first = self.interfaces.first().map_or(LinkId(0), |interface| interface.link);
        self.neighbours.link(neighbour).unwrap_or(first)
    }

    fn send(&mut self, via: Ipv4Addr, packet: Vec<u8>) {
        self.outbox.send((self.link_of(via), via), QueueClass::Data, packet);
    }

    /// Notes the position of the frame's sender.
    fn hear(&mut self, now: Instant, rx: &Rx<'_>, parcel: &Parcel<'_>) -> Result<(), DropReason> {
        let is_beacon = parcel.header.body == Body::Beacon;
        let from = rx.from.and_then(v4).ok_or(DropReason::RoutingRefused)?;
        let is_off_link = is_beacon && parcel.src != from;
        if is_off_link || from == self.own || !is_host(from) {
            return Err(DropReason::RoutingRefused);
        }
        let until = now + self.settings.neighbour_timeout();
        self.neighbours.heard(from, rx.link, parcel.header.sender, until);
        Ok(())
    }

    fn take_packet(&mut self, now: Instant, rx: &Rx<'_>) -> Result<Option<Vec<u8>>, DropReason> {
        let Some(parcel) = Parcel::read(rx.packet)? else { return Ok(None) };
        self.hear(now, rx, &parcel)?;
        if parcel.header.body == Body::Beacon {
            return Ok(None);
        }
        if parcel.dst == self.own {
            return Ok(with_header(
                parcel.packet,
                (parcel.ip_len, parcel.header_len),
                parcel.header.next,
                &[],
            ));
        }
        let (via, packet) = self.forward(now, &parcel, false)?;
        self.send(via, packet);
        Ok(None)
    }
}

impl Routing for Gpsr {
    fn header(&self) -> Option<u8> {
        Some(PROTOCOL)
    }

    fn route(&mut self, cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        let now = cx.now;
        let wrapped = match Parcel::read(packet.packet) {
            Ok(Some(parcel)) => self.forward(now, &parcel, true),
            Ok(None) => self.wrap(now, packet).ok_or(DropReason::NoRoute),
            Err(reason) => Err(reason),
        };
        match wrapped {
            Ok((via, packet)) => {
                let link = self.link_of(via);
                RoutingVerdict::Wrapped { link, via: NextHop::Neighbour(via.into()), packet }
            }
            Err(reason) => RoutingVerdict::Drop(reason),
        }
    }

    fn handle_control(&mut self, _cx: &Cx<'_>, _control: &ControlMessage<'_>) {}

    fn handle_wrapped(&mut self, cx: &Cx<'_>, rx: &Rx<'_>) -> Option<Vec<u8>> {
        self.take_packet(cx.now, rx).unwrap_or_else(|reason| {
            self.outbox.dropped(reason, 0);
            None
        })
    }

    fn on_overheard(&mut self, now: Instant, rx: &Rx<'_>) {
        if self.settings.promiscuous
            && let Ok(Some(parcel)) = Parcel::read(rx.packet)
        {
            let _ = self.hear(now, rx, &parcel);
        }
    }

    fn on_undelivered(&mut self, cx: &Cx<'_>, (link, to): Hop, packet: &RoutedPacket<'_>) -> Undelivered {
        let (now, Some(lost)) = (cx.now, v4(to)) else { return Undelivered::Drop };
        self.failures += 1;
        self.neighbours.lose(lost);
        if !self.settings.resend {
            return Undelivered::Drop;
        }
        let again = match Parcel::read(packet.packet) {
            Ok(Some(parcel)) => self.forward(now, &parcel, true).ok(),
            _ => None,
        };
        let outcome = match again {
            Some((via, packet)) => {
                self.send(via, packet);
                Undelivered::Kept
            }
            None => Undelivered::Drop,
        };
        self.outbox.push(RoutingOrder::Reroute { link, via: to });
        outcome
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        self.neighbours.forget(cx.now);
        if self.next_beacon <= cx.now {
            self.send_beacon(cx.now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let times = [self.outbox.next(), self.neighbours.next()];
        times.into_iter().flatten().chain([self.next_beacon]).min()
    }

    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder> {
        self.outbox.pop(now)
    }

    /// Only a neighbour is known without its position.
    fn next_hop(&self, _now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        let node = v4(dst)?;
        self.neighbours.link(node).map(|link| (link, dst))
    }

    fn path(&self, _peer: IpAddr) -> Path {
        path_of(None)
    }

    fn counts(&self) -> (u64, u64) {
        (0, self.failures)
    }
}

impl Gpsr {
    /// A packet of our own with its destination's position, and its first hop.
    fn wrap(&mut self, now: Instant, packet: &RoutedPacket<'_>) -> Option<(Ipv4Addr, Vec<u8>)> {
        let dst = v4(packet.dst)?;
        let destination = self.positions.locate(now, dst)?;
        let (sender, NextStep { via, around }) = self.step(now, (dst, destination), None)?;
        let view = IpView::parse(packet.packet).ok()?;
        let body = Body::Data { destination, around };
        let header = Header { next: view.protocol, sender, body }.bytes();
        let whole = &packet.packet[..view.header_len + view.payload.len()];
        let wrapped = with_header(whole, (view.header_len, 0), PROTOCOL, &header)?;
        self.has_spoken(now);
        Some((via, wrapped))
    }
}

#[cfg(test)]
mod tests;

// GPSR's constants (Karp and Kung 2000, §3), each a setting.

const MOST_NEIGHBOURS: u32 = 10_000;

constants! {
    /// Constants of GPSR, with the paper's defaults.
    Settings;
    /// Mean time between two beacons; each time is random, from 0.5 to 1.5 times the mean
    beacon_interval: Duration = ConstantForm::time(1).is(1_500),
    /// Any packet heard from a neighbour, also one for another node, counts as its beacon
    promiscuous: bool = ConstantForm::Switch.is(ON),
    /// Planar graph (without crossing links) that packets follow in perimeter mode
    planar: Planar = PLANAR.is(0),
    /// Packets use perimeter mode where no neighbour is closer to the destination; if false, they are dropped there
    perimeter: bool = ConstantForm::Switch.is(ON),
    /// Packets that could not be delivered to a neighbour are sent through another one
    resend: bool = ConstantForm::Switch.is(ON),
    /// Largest number of neighbours in the table
    most_neighbours: u32 = ConstantForm::count("neighbours", 1, MOST_NEIGHBOURS).is(1_024),
    /// Hop limit of data packets
    data_hop_limit: u8 = ConstantForm::count("hops", 1, 255).is(64),
}

const PLANAR: ConstantForm =
    ConstantForm::Choice(&[("gg", "Gabriel graph."), ("rng", "Relative neighbourhood graph.")]);

impl Setting for Planar {
    fn of(value: Option<ConstantValue>) -> Option<Planar> {
        match value? {
            ConstantValue::Choice("gg") => Some(Planar::Gabriel),
            ConstantValue::Choice("rng") => Some(Planar::RelativeNeighbourhood),
            _ => None,
        }
    }
}

impl Settings {
    /// The time without a beacon after which a neighbour is removed: 4.5 B, as in the paper.
    pub(crate) fn neighbour_timeout(&self) -> Duration {
        self.beacon_interval * 9 / 2
    }
}
