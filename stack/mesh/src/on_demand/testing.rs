//! A network of routers in memory: links that come and go in one or both directions, losses, and a log of all messages.

mod names;
mod protocol;
pub(crate) mod scenarios;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::wire::{IpHeader, IpView, UdpView};
use hopwise_core::{Cast, Instant, LinkId, NextHop, Rx, Seq};

use super::Interface;
use super::outbox::Chance;
use crate::protocol::RoutingSetup;
use crate::routing::{ControlMessage, Cx, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered};
use names::node_of;
pub(crate) use names::{address, behind, short};
pub(crate) use protocol::Protocol;

pub(crate) const LINK: LinkId = LinkId(0);

/// A node on the one link of the network.
pub(crate) fn setup(address: Ipv4Addr, seed: u64) -> RoutingSetup {
    RoutingSetup::new(vec![Interface { link: LINK, address }], seed)
}

/// The delay of a packet to a neighbour, and the time that a link layer tries.
const HOP: Duration = Duration::from_millis(2);
const TRIES: Duration = Duration::from_millis(9);
/// The bit rate of a link, unless it has its own.
pub(crate) const KBPS: u32 = 11_000;

/// An endpoint with no arrivals, or with the given ones.
#[derive(Debug, Default)]
pub(crate) struct Ends(pub(crate) Vec<(IpAddr, (u16, u16), Seq)>);

impl PathSeam for Ends {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        self.0.iter().filter(|(of, ..)| *of == peer).for_each(|(_, ports, seq)| sink(*ports, *seq));
    }
}

#[derive(Debug)]
enum Event {
    Arrive {
        from: usize,
        to: usize,
        packet: Vec<u8>,
        cast: Cast,
    },
    /// The link layer gave up the packet.
    GivenUp {
        from: usize,
        to: usize,
        packet: Vec<u8>,
    },
}

#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) routers: Vec<Box<dyn Routing>>,
    pub(crate) ends: Vec<Ends>,
    /// From, to.
    links: BTreeSet<(usize, usize)>,
    /// The bit rates of links that have their own.
    pub(crate) kbps: BTreeMap<(usize, usize), u32>,
    events: BTreeMap<(Instant, u64), Event>,
    filed: u64,
    chance: Chance,
    /// The number of lost frames among a thousand broadcast ones.
    pub(crate) lost_permille: u32,
    /// The link layer reports the packets that it gave up.
    pub(crate) tells: bool,
    protocol: Box<dyn Protocol>,
    seed: u64,
    /// Control messages as text, one a line.
    pub(crate) log: String,
    pub(crate) packets: Vec<Vec<u8>>,
    /// Delivered data: its source and the receiver.
    pub(crate) delivered: Vec<(usize, usize)>,
    pub(crate) path_events: Vec<(usize, IpAddr, PathEvent)>,
    pub(crate) controls: u64,
}

impl Net {
    /// The lines of the log with this part.
    pub(crate) fn lines<'a>(&'a self, part: &'a str) -> impl Iterator<Item = &'a str> {
        self.log.lines().filter(move |line| line.contains(part))
    }

    pub(crate) fn new(nodes: usize, protocol: &dyn Protocol, seed: u64) -> Net {
        let mut net = Net {
            now: Instant::ZERO,
            routers: Vec::new(),
            ends: Vec::new(),
            links: BTreeSet::new(),
            kbps: BTreeMap::new(),
            events: BTreeMap::new(),
            filed: 0,
            chance: Chance::new(seed),
            lost_permille: 0,
            tells: true,
            protocol: protocol.boxed(),
            seed,
            log: String::new(),
            packets: Vec::new(),
            delivered: Vec::new(),
            path_events: Vec::new(),
            controls: 0,
        };
        for node in 0..nodes {
            net.routers.push(net.router(node, Instant::ZERO));
            net.ends.push(Ends::default());
        }
        net
    }

    pub(crate) fn chain(nodes: usize, protocol: &dyn Protocol) -> Net {
        let mut net = Net::new(nodes, protocol, 1);
        (1..nodes).for_each(|node| net.connect(node - 1, node));
        net
    }

    fn router(&self, node: usize, wakes_at: Instant) -> Box<dyn Routing> {
        let (own, seed) = (address(node), self.seed.wrapping_mul(1_000) + node as u64);
        let (serves, counter) = (vec![behind(own)], self.now.0);
        self.protocol.router(RoutingSetup { serves, counter, wakes_at, ..setup(own, seed) })
    }

    /// Restarts the node without any state.
    pub(crate) fn reboot(&mut self, node: usize) {
        let wakes_at = self.now + self.protocol.rest();
        self.routers[node] = self.router(node, wakes_at);
    }

    pub(crate) fn connect(&mut self, a: usize, b: usize) {
        self.links.extend([(a, b), (b, a)]);
    }

    pub(crate) fn connect_one_way(&mut self, from: usize, to: usize) {
        self.links.insert((from, to));
    }

    pub(crate) fn cut(&mut self, a: usize, b: usize) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    pub(crate) fn isolate(&mut self, node: usize) {
        self.links.retain(|(a, b)| *a != node && *b != node);
    }

    pub(crate) fn clear_links(&mut self) {
        self.links.clear();
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.chance.up_to(Duration::from_nanos(bound as u64)).as_nanos() as usize
    }

    fn file(&mut self, after: Duration, event: Event) {
        self.filed += 1;
        self.events.insert((self.now + after, self.filed), event);
    }

    /// Sends a data packet of `from`.
    pub(crate) fn send(&mut self, from: usize, to: usize) {
        self.send_packet(from, address(to), 253, &[1, 2, 3, 4]);
    }

    /// Sends a packet of `from` to any address.
    pub(crate) fn send_packet(&mut self, from: usize, to: Ipv4Addr, protocol: u8, payload: &[u8]) {
        self.send_packet_of(from, address(from), to, &(protocol, payload.to_vec()));
    }

    /// Sends a packet of a router, or of a node behind it.
    pub(crate) fn send_packet_of(
        &mut self,
        from: usize,
        src: Ipv4Addr,
        to: Ipv4Addr,
        (protocol, payload): &(u8, Vec<u8>),
    ) {
        let header = IpHeader {
            hop_limit: self.protocol.data_hop_limit(),
            dont_fragment: true,
            ..IpHeader::plain(src.into(), to.into(), *protocol)
        };
        let mut packet = Vec::new();
        header.emit(payload.len(), &mut packet);
        packet.extend(payload);
        self.route(from, None, packet);
        self.obey(from);
    }

    fn route(&mut self, node: usize, from: Option<IpAddr>, packet: Vec<u8>) {
        let view = IpView::parse(&packet).expect("a packet of ours");
        let (src, dst, hop_limit) = (view.src, view.dst, view.hop_limit);
        let routed = RoutedPacket { src, dst, from, hop_limit, id: 1, packet: &packet };
        let cx = Cx { now: self.now, endpoint: &self.ends[node] };
        match self.routers[node].route(&cx, &routed) {
            RoutingVerdict::Forward { via: NextHop::Neighbour(via), .. } => self.put(node, via, packet),
            RoutingVerdict::Wrapped { via: NextHop::Neighbour(via), packet, .. } => {
                self.write_down(node, &packet);
                self.put(node, via, packet);
            }
            _ => {}
        }
    }

    fn put(&mut self, from: usize, via: IpAddr, packet: Vec<u8>) {
        let IpAddr::V4(via) = via else { return };
        let to = node_of(via);
        if self.protocol.header().is_some() {
            let near: Vec<_> = self.links.iter().filter(|(a, b)| *a == from && *b != to).copied().collect();
            for (_, other) in near {
                let (packet, cast) = (packet.clone(), Cast::Overheard);
                self.file(HOP, Event::Arrive { from, to: other, packet, cast });
            }
        }
        if self.links.contains(&(from, to)) && self.links.contains(&(to, from)) {
            self.file(HOP, Event::Arrive { from, to, packet, cast: Cast::ToUs });
        } else if self.links.contains(&(from, to)) {
            // It arrives, but its acknowledgement is lost.
            self.file(HOP, Event::Arrive { from, to, packet: packet.clone(), cast: Cast::ToUs });
            self.file(TRIES, Event::GivenUp { from, to, packet });
        } else {
            self.file(TRIES, Event::GivenUp { from, to, packet });
        }
    }

    fn obey(&mut self, node: usize) {
        while let Some(order) = self.routers[node].poll_order(self.now) {
            match order {
                RoutingOrder::Send { to, packet, .. } => self.send_order(node, to, packet),
                RoutingOrder::Tell { peer, event, .. } => self.path_events.push((node, peer, event)),
                RoutingOrder::Purge { .. } | RoutingOrder::Reroute { .. } | RoutingOrder::Dropped { .. } => {}
            }
        }
    }

    fn send_order(&mut self, node: usize, to: NextHop, packet: Vec<u8>) {
        self.write_down(node, &packet);
        match to {
            NextHop::Neighbour(via) => self.put(node, via, packet),
            NextHop::All | NextHop::Link => {
                let near: Vec<_> = self.links.iter().filter(|(a, _)| *a == node).map(|(_, b)| *b).collect();
                for to in near {
                    if self.below(1_000) >= self.lost_permille as usize {
                        let packet = packet.clone();
                        self.file(HOP, Event::Arrive { from: node, to, packet, cast: Cast::ToAll });
                    }
                }
            }
        }
    }

    fn write_down(&mut self, node: usize, packet: &[u8]) {
        let Some((view, message)) = self.message_of(packet) else { return };
        self.controls += 1;
        self.packets.push(packet.to_vec());
        let is_everyone = matches!(view.dst, IpAddr::V4(v4) if v4.is_broadcast() || v4.is_multicast());
        let to = if is_everyone { "all".to_owned() } else { short(view.dst) };
        let ms = self.now.as_millis();
        let what = self.protocol.describe(view.hop_limit, message);
        writeln!(self.log, "{ms:>6} {node} to {to}: {what}").expect("a string takes it");
    }

    fn message_of<'a>(&self, packet: &'a [u8]) -> Option<(IpView<'a>, &'a [u8])> {
        let view = IpView::parse(packet).ok()?;
        if self.protocol.header() == Some(view.protocol) {
            let payload = view.payload;
            return Some((view, payload));
        }
        control_of(packet, self.protocol.port())
    }

    /// Runs all events until then; `check` sees the net after each event.
    pub(crate) fn run(&mut self, until: Instant, check: &mut dyn FnMut(&Net)) {
        loop {
            let timer = self.routers.iter().filter_map(|router| router.poll_timeout()).min();
            let event = self.events.keys().next().map(|(at, _)| *at);
            let at = timer.into_iter().chain(event).min().unwrap_or(Instant::FAR);
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            if event.is_some_and(|event| event <= self.now) {
                let (_, event) = self.events.pop_first().expect("there is one");
                self.take(event);
            } else {
                let due = self.routers.iter().position(|r| r.poll_timeout().is_some_and(|at| at <= self.now));
                let node = due.expect("a timer is due");
                let cx = Cx { now: self.now, endpoint: &self.ends[node] };
                self.routers[node].handle_timeout(&cx);
                self.obey(node);
            }
            check(self);
        }
        self.now = until;
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run(self.now + time, &mut |_| {});
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Arrive { from, to, packet, cast } => {
                self.arrive(from, to, packet, cast);
                self.obey(to);
                if cast == Cast::ToUs && self.links.contains(&(to, from)) {
                    let kbps = self.kbps.get(&(from, to)).copied().unwrap_or(KBPS);
                    self.routers[from].on_delivered(self.now, LINK, address(to).into(), kbps);
                    self.obey(from);
                }
            }
            Event::GivenUp { from, to, packet } if self.tells => {
                let view = IpView::parse(&packet).expect("a packet of ours");
                let is_own = view.src == IpAddr::V4(address(from));
                let routed = RoutedPacket {
                    src: view.src,
                    dst: view.dst,
                    from: (!is_own).then_some(view.src),
                    hop_limit: view.hop_limit,
                    id: 1,
                    packet: &packet,
                };
                let cx = Cx { now: self.now, endpoint: &self.ends[from] };
                let _: Undelivered =
                    self.routers[from].on_undelivered(&cx, (LINK, address(to).into()), &routed);
                self.obey(from);
            }
            Event::GivenUp { .. } => {}
        }
    }

    fn arrive(&mut self, from: usize, to: usize, mut packet: Vec<u8>, cast: Cast) {
        let view = IpView::parse(&packet).expect("a packet of ours");
        let rx =
            Rx { link: LINK, from: Some(address(from).into()), cast, segment_bytes: None, packet: &packet };
        if cast == Cast::Overheard {
            self.routers[to].on_overheard(self.now, &rx);
        } else if self.protocol.header() == Some(view.protocol) {
            let cx = Cx { now: self.now, endpoint: &self.ends[to] };
            if let Some(own) = self.routers[to].handle_wrapped(&cx, &rx) {
                let view = IpView::parse(&own).expect("a packet without the header");
                let IpAddr::V4(src) = view.src else { return };
                self.delivered.push((node_of(src), to));
            }
        } else if let Some((_, message)) = control_of(&packet, self.protocol.port()) {
            let control = ControlMessage {
                link: LINK,
                from: Some(address(from).into()),
                cast,
                src: view.src,
                dst: view.dst,
                hop_limit: view.hop_limit,
                message,
            };
            let cx = Cx { now: self.now, endpoint: &self.ends[to] };
            self.routers[to].handle_control(&cx, &control);
        } else if view.dst == IpAddr::V4(address(to)) {
            let IpAddr::V4(src) = view.src else { return };
            self.delivered.push((node_of(src), to));
        } else if view.hop_limit > 1 && view.src != IpAddr::V4(address(to)) {
            crate::shim::take_one_hop(&mut packet);
            self.route(to, Some(address(from).into()), packet);
        }
    }
}

fn control_of(packet: &[u8], port: u16) -> Option<(IpView<'_>, &[u8])> {
    let view = IpView::parse(packet).ok()?;
    let udp = UdpView::parse(view.src, view.dst, view.payload).ok().filter(|_| view.protocol == 17)?;
    (udp.dst_port == port).then_some((view, udp.payload))
}
