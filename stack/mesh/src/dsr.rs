//! DSR (RFC 4728): each packet carries its whole route. Routes are found on demand and learned from all passing
//! packets.
//!
//! Links report the packets that they gave up (§8.3.1), so that nodes request no acknowledgement; a neighbour's request
//! gets one. Links carry frames in both directions or not at all, as 802.11 needs it. Routes are therefore learned and
//! used in reverse too. Not supported: flow state, external hops. A route error for a salvaged packet ends at the node
//! that salvaged it: the source learned of the loss then.

mod cache;
mod discovery;
mod maintenance;
pub mod options;
mod parcel;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::Path;
use hopwise_core::narrow::as_u8;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::IpView;
use hopwise_core::{Instant, LinkId, NextHop, QueueClass, Rx};

use crate::constants::{ConstantForm, MOST_PACKETS, OFF, ON, constants};
use crate::on_demand::ack_seq::AckSeqs;
use crate::on_demand::rank::Wish;
use crate::on_demand::rates::{EventRate, Origins};
use crate::on_demand::{BufferBounds, Desk, Manners, is_host, packet_of_header, path_of, v4};
use crate::protocol::{LiveRouter, PacketMark, RoutingProtocol, RoutingSetup};
use crate::routing::{
    ControlMessage, Cx, Hop, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered,
};
use crate::shim::with_header;
use cache::{Cache, RouteOrigin};
use discovery::SeenRequests;
use discovery::{Pending, RouteSearches};
use maintenance::SalvageResult;
use options::{DsrOption, NOTHING, OptionsHeader, RouteError, SourceRoute};
use parcel::{Parcel, PathWalk};

/// The IP protocol of DSR headers.
pub const PROTOCOL: u8 = 48;

/// The largest number of entries in each table of neighbours, peers and shortcuts.
const MOST: usize = 1_024;

/// The largest number of packets that wait for routes at a node.
const SEND_BUFFER_PACKETS: u32 = 64;
/// The largest number of route requests of one originator that are forwarded per second.
const RELAY_RATELIMIT: u32 = 20;
/// The largest numbers of route requests and of route errors that a node originates per second.
const RREQ_RATELIMIT: u32 = 10;
const RERR_RATELIMIT: u32 = 10;
/// The time for which requests of a neighbour behind a one-way link are ignored.
const BLACKLIST_TIMEOUT: Duration = Duration::from_secs(5);

/// DSR in the registry.
pub static DESCRIPTOR: RoutingProtocol = RoutingProtocol {
    name: "dsr",
    summary: "DSR (RFC 4728); only in world sim.",
    constants: Settings::CONSTANTS,
    subject: "DSR",
    is_flat: false,
    mark: PacketMark::Header { number: PROTOCOL, read: behind },
    needs_positions: false,
    live: LiveRouter::Simulation,
    daemon: None,
    make: |constants, setup| Box::new(Dsr::new(constants.into(), setup)),
};

fn behind(payload: &[u8]) -> Option<(u8, usize)> {
    OptionsHeader::parse(payload).ok().map(|read| (read.header.next, read.len))
}

/// A node that follows RFC 4728.
#[derive(Debug)]
pub struct Dsr {
    settings: Settings,
    desk: Desk,
    cache: Cache,
    searches: RouteSearches,
    requests: SeenRequests,
    relays: Origins,
    errors: EventRate,
    /// Replies from the cache that wait, so that a better one may come first.
    pending: Vec<Pending>,
    /// Sources that were informed of a shortcut by the packet of which sender, and until when that suffices.
    shortcuts: BTreeMap<(Ipv4Addr, Ipv4Addr), Instant>,
    /// Neighbours that did not take a reply: their frames arrive here, but ours may not arrive there.
    blacklist: BTreeMap<Ipv4Addr, Instant>,
    /// Links of the neighbours that are not on the first interface.
    links: BTreeMap<Ipv4Addr, LinkId>,
    /// Peers of connections here, and the hop count that these last got.
    peers: BTreeMap<Ipv4Addr, Option<u8>>,
    /// The route error that the next request carries.
    last_error: Option<RouteError>,
    /// The current loss (time and neighbour), and the sources informed of it.
    losing: Option<(Instant, Ipv4Addr, BTreeSet<Ipv4Addr>)>,
    request_id: u16,
    packets: u16,
}

impl Dsr {
    /// A node without routes, at time 0.
    pub fn new(settings: Settings, setup: RoutingSetup) -> Dsr {
        // DSR builds its own packets, so that the outbox needs no port.
        let manners = Manners { port: 0, everyone: Ipv4Addr::BROADCAST };
        let bounds = BufferBounds {
            packets: SEND_BUFFER_PACKETS,
            time: settings.send_buffer_timeout,
            is_shared: false,
        };
        let desk = Desk::new(setup, manners, bounds, AckSeqs::new(settings.ack_seq, None, 0));
        let (asked, overheard) = (settings.cache_asked, settings.cache_overheard);
        Dsr {
            cache: Cache::new(desk.own, asked, overheard, settings.route_cache_timeout),
            searches: RouteSearches::new(RREQ_RATELIMIT),
            requests: SeenRequests::new(settings.request_table_size, settings.request_table_ids),
            relays: Origins::default(),
            errors: EventRate::new(RERR_RATELIMIT),
            pending: Vec::new(),
            shortcuts: BTreeMap::new(),
            blacklist: BTreeMap::new(),
            links: BTreeMap::new(),
            peers: BTreeMap::new(),
            last_error: None,
            losing: None,
            request_id: 0,
            packets: 0,
            desk,
            settings,
        }
    }

    fn link_of(&self, neighbour: Ipv4Addr) -> LinkId {
        let first = self.desk.interfaces.first().map_or(LinkId(0), |interface| interface.link);
        self.links.get(&neighbour).copied().unwrap_or(first)
    }

    fn note_link(&mut self, neighbour: Ipv4Addr, link: LinkId) {
        let is_known = self.link_of(neighbour) == link;
        if !is_known && (self.links.len() < MOST || self.links.contains_key(&neighbour)) {
            self.links.insert(neighbour, link);
        }
    }

    /// A packet of our own with its whole route in it, and the first hop, if a route is known.
    fn wrap(&mut self, now: Instant, dst: Ipv4Addr, packet: &[u8]) -> Option<(Ipv4Addr, Vec<u8>)> {
        let view = IpView::parse(packet).ok()?;
        let route = self.cache.take(now, dst)?;
        let via = route[0];
        let header = OptionsHeader { next: view.protocol, options: vec![source_route(route)] }.bytes();
        let packet = &packet[..view.header_len + view.payload.len()];
        with_header(packet, (view.header_len, 0), PROTOCOL, &header).map(|wrapped| (via, wrapped))
    }

    /// A packet that carries options only, along this route to its last node.
    fn control(&mut self, route: &[Ipv4Addr], options: Vec<DsrOption>) -> Option<RoutingOrder> {
        let (via, dst) = (*route.first()?, *route.last()?);
        let options = std::iter::once(source_route(route)).chain(options).collect();
        let packet = self.packet(dst, self.settings.data_hop_limit, options);
        let to = NextHop::Neighbour(via.into());
        Some(RoutingOrder::Send { link: self.link_of(via), to, class: QueueClass::Routing, packet })
    }

    /// Sends options along this route.
    fn send_along(&mut self, route: &[Ipv4Addr], options: Vec<DsrOption>) {
        let order = self.control(route, options);
        order.into_iter().for_each(|order| self.desk.outbox.push(order));
    }

    fn packet(&mut self, dst: Ipv4Addr, hop_limit: u8, options: Vec<DsrOption>) -> Vec<u8> {
        let message = OptionsHeader { next: NOTHING, options }.bytes();
        self.packets = self.packets.wrapping_add(1);
        packet_of_header((self.desk.own, dst), PROTOCOL, hop_limit, self.packets, &message)
    }

    /// After changes of the cache: waiting packets leave, and connections learn of the new paths.
    fn use_news(&mut self, now: Instant) {
        if !self.cache.take_changed() {
            return;
        }
        for dst in self.searches.wanted() {
            if self.cache.find(now, dst).is_some() {
                self.searches.end(dst);
                self.release(now, dst);
            }
        }
        let peers: Vec<_> = self.peers.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.report_route(now, peer));
    }

    fn release(&mut self, now: Instant, dst: Ipv4Addr) {
        for waiting in self.desk.buffer.take(dst) {
            match self.wrap(now, dst, &waiting.packet) {
                Some((via, packet)) => self.send(via, QueueClass::Data, packet),
                None => self.desk.dropped(DropReason::NoRoute, waiting.id),
            }
        }
    }

    fn send(&mut self, via: Ipv4Addr, class: QueueClass, packet: Vec<u8>) {
        self.desk.outbox.send((self.link_of(via), via), class, packet);
    }

    fn report_route(&mut self, now: Instant, peer: Ipv4Addr) {
        let hops = self.cache.hops(now, peer);
        if let Some(reported) = self.peers.get_mut(&peer) {
            self.desk.outbox.report_route(peer, reported, hops);
        }
    }

    /// Takes a packet with our header. Returns one that is for this node itself.
    fn take_packet(&mut self, cx: &Cx<'_>, rx: &Rx<'_>) -> Result<Option<Vec<u8>>, DropReason> {
        let now = cx.now;
        let Some(parcel) = Parcel::read(rx.packet)? else { return Ok(None) };
        if !is_host(parcel.src) {
            return Err(DropReason::RoutingRefused);
        }
        if parcel.dst.is_broadcast() {
            return self.take_request(cx, rx, &parcel).map(|()| None);
        }
        let Some(walk) = parcel.walk()? else {
            // Straight from a neighbour. Packets for other nodes need a route.
            let is_ours = parcel.dst == self.desk.own;
            return if is_ours { Ok(self.take_own(now, &parcel)) } else { Err(DropReason::NoRoute) };
        };
        let is_off_link = rx.from.is_some_and(|from| from != IpAddr::V4(walk.sender()));
        if is_off_link || walk.receiver() != self.desk.own {
            return Err(DropReason::RoutingRefused);
        }
        self.refuse_options(now, &parcel, &walk)?;
        self.note_link(walk.sender(), rx.link);
        // Our frames reach the neighbour: it has got an answer to a frame of its own.
        self.blacklist.remove(&walk.sender());
        self.cache.add(now, &walk.nodes[walk.to + 1..], RouteOrigin::Overheard);
        self.cache.add(now, &walk.back_from(walk.to), RouteOrigin::Overheard);
        if parcel.dst == self.desk.own {
            return Ok(self.take_own(now, &parcel));
        }
        self.heed(now, &parcel);
        self.pass_on(&parcel, &walk)?;
        self.use_news(now);
        Ok(None)
    }

    /// Takes a packet that ends here.
    fn take_own(&mut self, now: Instant, parcel: &Parcel<'_>) -> Option<Vec<u8>> {
        self.heed(now, parcel);
        self.believe(now, parcel);
        self.acknowledge(parcel);
        self.use_news(now);
        if parcel.is_empty() { None } else { parcel.unwrapped() }
    }

    fn pass_on(&mut self, parcel: &Parcel<'_>, walk: &PathWalk) -> Result<(), DropReason> {
        if parcel.hop_limit <= 1 {
            return Err(DropReason::HopLimit);
        }
        let packet = parcel.passed_on();
        let class = if parcel.is_empty() { QueueClass::Routing } else { QueueClass::Data };
        let next = walk.nodes[walk.to + 1];
        let has_asked = self.acknowledge(parcel);
        if !has_asked && !parcel.read.has_removed {
            self.send(next, class, packet);
            return Ok(());
        }
        // Options that were for us alone go no further.
        let Some(passed) = Parcel::read(&packet)? else { return Ok(()) };
        let is_other = |option: &&DsrOption| !matches!(option, DsrOption::AckRequest { .. });
        let others = passed.options().iter().filter(is_other).cloned().collect();
        if let Some(packet) = passed.with_options(others) {
            self.send(next, class, packet);
        }
        Ok(())
    }
}

/// The route from here as a packet carries it: without its last node.
fn source_route(route: &[Ipv4Addr]) -> DsrOption {
    let addresses = route[..route.len() - 1].to_vec();
    let segments_left = as_u8(addresses.len());
    let (is_first_external, is_last_external) = (false, false);
    DsrOption::Route(SourceRoute {
        is_first_external,
        is_last_external,
        salvage: 0,
        segments_left,
        addresses,
    })
}

impl Routing for Dsr {
    fn header(&self) -> Option<u8> {
        Some(PROTOCOL)
    }

    fn route(&mut self, cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        let now = cx.now;
        let Some(dst) = v4(packet.dst) else { return RoutingVerdict::Drop(DropReason::NoRoute) };
        match Parcel::read(packet.packet) {
            Ok(Some(parcel)) => return self.reroute(cx, packet.id, &parcel),
            Ok(None) if packet.from.is_none() => {}
            Ok(None) => return RoutingVerdict::Drop(DropReason::NoRoute),
            Err(reason) => return RoutingVerdict::Drop(reason),
        }
        if self.peers.len() < MOST {
            self.peers.entry(dst).or_default();
        }
        let wrapped = self.wrap(now, dst, packet.packet);
        self.report_route(now, dst);
        if let Some((via, packet)) = wrapped {
            return RoutingVerdict::Wrapped {
                link: self.link_of(via),
                via: NextHop::Neighbour(via.into()),
                packet,
            };
        }
        self.desk.keep(now, (dst, Wish::SURE), packet);
        self.search(cx, dst);
        RoutingVerdict::Keep
    }

    fn handle_control(&mut self, _cx: &Cx<'_>, _control: &ControlMessage<'_>) {}

    fn handle_wrapped(&mut self, cx: &Cx<'_>, rx: &Rx<'_>) -> Option<Vec<u8>> {
        self.take_packet(cx, rx).unwrap_or_else(|reason| {
            self.desk.dropped(reason, 0);
            None
        })
    }

    fn on_overheard(&mut self, now: Instant, rx: &Rx<'_>) {
        if self.settings.promiscuous {
            self.overhear(now, rx);
            self.use_news(now);
        }
    }

    fn on_undelivered(&mut self, cx: &Cx<'_>, (link, to): Hop, packet: &RoutedPacket<'_>) -> Undelivered {
        let (now, Some(lost)) = (cx.now, v4(to)) else { return Undelivered::Drop };
        self.desk.failures += 1;
        self.cache.lose_link(self.desk.own, lost);
        let recovered = match Parcel::read(packet.packet) {
            Ok(Some(parcel)) => {
                if parcel.has_reply() && self.blacklist.len() < MOST {
                    self.blacklist.insert(lost, now + BLACKLIST_TIMEOUT);
                }
                self.recover(cx, packet.id, &parcel)
            }
            _ => SalvageResult::Lost,
        };
        // The other packets for that neighbour are routed again.
        let outcome = match recovered {
            SalvageResult::Sent { via, packet } => {
                self.send(via, QueueClass::Data, packet);
                Undelivered::Kept
            }
            SalvageResult::Kept => Undelivered::Kept,
            SalvageResult::Lost => Undelivered::Drop,
        };
        self.desk.outbox.push(RoutingOrder::Reroute { link, via: to });
        self.use_news(now);
        outcome
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        self.desk.drop_late(cx.now);
        self.go_on_searching(cx);
        self.send_pending(cx.now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let pending = self.pending.iter().map(|pending| pending.at).min();
        self.desk.next([self.searches.next(), pending])
    }

    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder> {
        self.desk.outbox.pop(now)
    }

    fn next_hop(&self, now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        let via = *self.cache.find(now, v4(dst)?)?.first()?;
        Some((self.link_of(via), via.into()))
    }

    fn path(&self, peer: IpAddr) -> Path {
        // An expired route is noticed when a packet needs it.
        path_of(v4(peer).and_then(|peer| self.cache.hops(Instant::ZERO, peer)))
    }

    fn counts(&self) -> (u64, u64) {
        (self.desk.discoveries, self.desk.failures)
    }
}

#[cfg(test)]
mod tests;

// DSR's constants (RFC 4728 §9), each a setting.

constants! {
    /// Constants of DSR, with the names and defaults of RFC 4728.
    Settings;
    /// Hop limit of a route request that crosses the network
    discovery_hop_limit: u8 = ConstantForm::count("hops", 1, 255).is(255),
    /// Largest random delay before a route request is forwarded
    broadcast_jitter: Duration = ConstantForm::time(0).is(10),
    /// Lifetime of a route in the cache
    route_cache_timeout: Duration = ConstantForm::time(1).is(300_000),
    /// Largest number of cached routes that the node itself has requested or used
    cache_asked: u32 = ConstantForm::count("routes", 1, MOST_PACKETS).is(30),
    /// Largest number of cached routes that the node has only overheard
    cache_overheard: u32 = ConstantForm::count("routes", 0, MOST_PACKETS).is(64),
    /// Longest time that a packet waits for a route
    send_buffer_timeout: Duration = ConstantForm::time(1).is(30_000),
    /// Largest number of nodes whose route requests are remembered
    request_table_size: u32 = ConstantForm::count("nodes", 1, MOST_PACKETS).is(64),
    /// Largest number of remembered route requests of each node
    request_table_ids: u32 = ConstantForm::count("requests", 1, MOST_PACKETS).is(16),
    /// Number of times that the request for a destination is repeated before the search is given up
    max_request_rexmt: u8 = ConstantForm::count("repeats", 0, 250).is(16),
    /// Time between the first two network-wide requests for a destination. It doubles with each further request
    request_period: Duration = ConstantForm::time(1).is(500),
    /// Longest time between two network-wide requests for a destination
    max_request_period: Duration = ConstantForm::time(1).is(10_000),
    /// The first request for a destination goes to neighbours only
    nonprop_request: bool = ConstantForm::Switch.is(ON),
    /// Time to wait for replies of neighbours before the request goes to the whole network
    nonprop_request_timeout: Duration = ConstantForm::time(1).is(30),
    /// Nodes on the way may answer a request from their cache
    reply_from_cache: bool = ConstantForm::Switch.is(ON),
    /// Nodes also read frames for other nodes, and learn routes, errors and shortcuts from them
    promiscuous: bool = ConstantForm::Switch.is(ON),
    /// Shortest time between two gratuitous replies with the same shorter route to the same source
    grat_reply_holdoff: Duration = ConstantForm::time(0).is(1_000),
    /// Largest number of times that a packet is salvaged: sent along another route after a broken link
    max_salvage_count: u8 = ConstantForm::count("times", 0, 15).is(15),
    /// A node's route requests and replies tell the node at the route's other end the RCV.NXT of their connections.
    /// Sender agent `pgy` uses it; only in world sim
    ack_seq: bool = ConstantForm::Switch.is(OFF),
    /// With `ack_seq`, replies of the destination itself carry RCV.NXT too. Requests always do
    ack_seq_in_replies: bool = ConstantForm::Switch.is(ON),
    /// Hop limit of data packets
    data_hop_limit: u8 = ConstantForm::count("hops", 1, 255).is(64),
}
