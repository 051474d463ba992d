//! A routing protocol on a host whose kernel forwards. The kernel has the routes, and hands over packets for which it
//! has none.
//!
//! The router's own packets are the protocol's messages. Other packets, and the kernel's table, are its owner's work
//! after each mutation. The owner polls [`Router::poll_forward`], brings the table up to date with
//! [`OnDemand::changes`], and then sends the packet by it, until none is left. No message leaves before
//! [`Router::poll_forward`] was called, so that the kernel has a route before a neighbour hears of it.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::endpoint::PathSeam;
use hopwise_core::ip::Prefix;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{IpView, UdpView};
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};

use crate::on_demand::{OnDemand, v4};
use crate::routing::{ControlMessage, Cx, RoutedPacket, RoutingOrder, RoutingVerdict, Undelivered};

/// The configuration of a router, given at construction.
#[derive(Clone, Debug)]
pub struct RouterConfig {
    /// The address of this machine's messages.
    pub address: Ipv4Addr,
    /// Other addresses that live on this machine.
    pub serves: Vec<Ipv4Addr>,
    /// Messages from elsewhere are refused, and packets to elsewhere are left alone.
    pub network: Prefix,
    /// The link of packets without a route. All other links are the protocol's, for its messages.
    pub unrouted: LinkId,
}

/// A packet that the kernel should send to its next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The link to the next hop.
    pub link: LinkId,
    /// The address of the next hop.
    pub via: Ipv4Addr,
    /// The destination of the packet.
    pub dst: Ipv4Addr,
    /// It has waited for a route. It does not wait again: the protocol would give it its full time each time.
    pub has_waited: bool,
    /// The whole IP packet.
    pub packet: Vec<u8>,
}

/// `S` knows the arrivals at nodes on this machine, and takes news of paths.
#[derive(Debug)]
pub struct Router<S> {
    config: RouterConfig,
    protocol: Box<dyn OnDemand>,
    seam: S,
    /// Packets without a route, until the owner polls.
    unrouted: VecDeque<Vec<u8>>,
    messages: BTreeMap<LinkId, VecDeque<(NextHop, Vec<u8>)>>,
    drops: Drops,
}

impl<S: PathSeam> Router<S> {
    /// A router without routes; `protocol` has all that a node needs, and `seam` its connections.
    pub fn new(config: RouterConfig, protocol: Box<dyn OnDemand>, seam: S) -> Router<S> {
        let (unrouted, messages) = (VecDeque::new(), BTreeMap::new());
        Router { config, protocol, seam, unrouted, messages, drops: Drops::default() }
    }

    /// The protocol, with the changes that the kernel's table needs.
    pub fn protocol(&mut self) -> &mut dyn OnDemand {
        &mut *self.protocol
    }

    /// The path seam, for what its owner keeps there.
    pub fn seam(&mut self) -> &mut S {
        &mut self.seam
    }

    /// The owner counts packets here that the kernel does not take.
    pub fn drops(&mut self) -> &mut Drops {
        &mut self.drops
    }

    /// Returns whether packets without a route wait for [`poll_forward`](Router::poll_forward).
    pub fn has_unrouted(&self) -> bool {
        !self.unrouted.is_empty()
    }

    /// Carries out the protocol's orders. The next packet for the kernel, if there is one.
    pub fn poll_forward(&mut self, now: Instant) -> Option<Forward> {
        loop {
            while let Some(order) = self.protocol.poll_order(now) {
                let forward = self.obey(now, order);
                if forward.is_some() {
                    return forward;
                }
            }
            let packet = self.unrouted.pop_front()?;
            let forward = self.route(now, packet);
            if forward.is_some() {
                return forward;
            }
        }
    }

    /// The next hop of this packet does not hear us.
    pub fn lose(&mut self, now: Instant, forward: &Forward) {
        let Forward { link, via, has_waited, ref packet, .. } = *forward;
        if has_waited {
            self.protocol.lose(now, link, via);
            self.drops.count(DropReason::Undelivered);
        } else if let Some((routed, _)) = self.config.routed(packet) {
            let cx = Cx { now, endpoint: &self.seam };
            let _: Undelivered = self.protocol.on_undelivered(&cx, (link, via.into()), &routed);
        }
    }

    fn obey(&mut self, now: Instant, order: RoutingOrder) -> Option<Forward> {
        match order {
            RoutingOrder::Send { link, to, class: QueueClass::Routing, packet } => {
                self.messages.entry(link).or_default().push_back((to, packet));
            }
            RoutingOrder::Send { link, to: NextHop::Neighbour(via), packet, .. } => {
                return self.config.forward((link, via), true, packet);
            }
            RoutingOrder::Dropped { reason, .. } => self.drops.count(reason),
            RoutingOrder::Tell { peer, ports, event, path } => {
                self.seam.handle_path(now, peer, ports, &event, &path);
            }
            RoutingOrder::Send { .. } | RoutingOrder::Purge { .. } | RoutingOrder::Reroute { .. } => {}
        }
        None
    }

    fn route(&mut self, now: Instant, packet: Vec<u8>) -> Option<Forward> {
        let (routed, _) = self.config.routed(&packet).filter(|(_, dst)| self.config.covers(*dst))?;
        match self.protocol.route(&Cx { now, endpoint: &self.seam }, &routed) {
            RoutingVerdict::Forward { link, via: NextHop::Neighbour(via) } => {
                self.config.forward((link, via), false, packet)
            }
            RoutingVerdict::Keep => None,
            RoutingVerdict::Drop(reason) => {
                self.drops.count(reason);
                None
            }
            // No protocol on demand sends data to all neighbours, or with a header of its own.
            RoutingVerdict::Forward { .. } | RoutingVerdict::Wrapped { .. } => {
                self.drops.count(DropReason::NoRoute);
                None
            }
        }
    }

    /// Routers send from the port that they listen on, which a user of their machine cannot use.
    fn take_message(&mut self, now: Instant, rx: &Rx<'_>) -> Result<(), DropReason> {
        let ip = IpView::parse(rx.packet)?;
        let udp = UdpView::parse(ip.src, ip.dst, ip.payload)?;
        if ip.src == self.config.address {
            // A broadcast message comes back to its sender.
            return Ok(());
        }
        let is_routers = self.protocol.port() == Some(udp.src_port);
        if !is_routers || !self.config.network.contains(ip.src) {
            return Err(DropReason::RoutingRefused);
        }
        let Rx { link, from, cast, .. } = *rx;
        let (src, dst, hop_limit, message) = (ip.src, ip.dst, ip.hop_limit, udp.payload);
        let control = ControlMessage { link, from, cast, src, dst, hop_limit, message };
        self.protocol.handle_control(&Cx { now, endpoint: &self.seam }, &control);
        Ok(())
    }
}

impl RouterConfig {
    fn covers(&self, dst: Ipv4Addr) -> bool {
        self.network.contains(dst.into())
    }

    /// A packet as protocols see it, and its destination. Its source is its previous hop, unless it is this machine.
    fn routed<'p>(&self, packet: &'p [u8]) -> Option<(RoutedPacket<'p>, Ipv4Addr)> {
        let IpView { src, dst, hop_limit, .. } = IpView::parse(packet).ok()?;
        let is_own = v4(src).is_some_and(|src| src == self.address || self.serves.contains(&src));
        let from = (!is_own).then_some(src);
        Some((RoutedPacket { src, dst, from, hop_limit, id: 0, packet }, v4(dst)?))
    }

    fn forward(&self, (link, via): (LinkId, IpAddr), has_waited: bool, packet: Vec<u8>) -> Option<Forward> {
        let (_, dst) = self.routed(&packet)?;
        Some(Forward { link, via: v4(via)?, dst, has_waited, packet })
    }
}

impl<S: PathSeam> Machine for Router<S> {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        if rx.link == self.config.unrouted {
            self.unrouted.push_back(rx.packet.to_vec());
        } else if let Err(reason) = self.take_message(now, rx) {
            self.drops.count(reason);
        }
    }

    /// The link layer often knows first which neighbours frames do not reach.
    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        if let LinkEvent::Gone { peer } = event
            && let Some(neighbour) = v4(*peer)
        {
            self.protocol.lose(now, link, neighbour);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.protocol.handle_timeout(&Cx { now, endpoint: &self.seam });
    }

    fn poll_transmit(&mut self, _: Instant, link: LinkId, _: Payload, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, packet) = self.messages.get_mut(&link)?.pop_front()?;
        out.extend_from_slice(&packet);
        Some(Transmit { to, class: QueueClass::Routing, segment_bytes: None, id: 0 })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.protocol.poll_timeout()
    }
}

/// The messages and packets that one router refused, dropped or kept too long, by reason. The owner logs them at most
/// once a second.
#[derive(Debug, Default)]
pub struct Drops {
    /// For each reason the count, and the count at the last log line.
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl Drops {
    /// Counts one drop.
    pub fn count(&mut self, reason: DropReason) {
        self.counts.entry(reason.name()).or_default().0 += 1;
    }

    /// The reasons counted since the last call, with the sum since the start.
    pub fn news(&mut self) -> Vec<(&'static str, u64)> {
        let mut news = Vec::new();
        for (reason, (count, said)) in &mut self.counts {
            if count != said {
                news.push((*reason, *count));
                *said = *count;
            }
        }
        news
    }
}

#[cfg(test)]
mod tests;
