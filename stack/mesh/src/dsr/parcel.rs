//! A packet with a DSR header, taken apart, the path in its source route, and the arrivals that it tells of.

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::IpView;

use super::options::{
    ArrivalsOption, DsrOption, NOTHING, OptionsHeader, ReadOptions, SourceRoute, has_repeats,
};
use super::{Dsr, PROTOCOL, RoutingOrder};
use crate::on_demand::ack_seq::Statement;
use crate::on_demand::is_host;
use crate::routing::Cx;
use crate::shim::{take_one_hop, with_header};

#[derive(Debug)]
pub(super) struct Parcel<'a> {
    /// The bytes up to the total length of its IP header.
    packet: &'a [u8],
    ip_len: usize,
    pub(super) src: Ipv4Addr,
    pub(super) dst: Ipv4Addr,
    pub(super) hop_limit: u8,
    pub(super) read: ReadOptions,
}

/// All nodes of a packet's path, and the index of the next receiver. The node before that one sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathWalk {
    pub(super) nodes: Vec<Ipv4Addr>,
    pub(super) to: usize,
    pub(super) salvage: u8,
}

impl PathWalk {
    pub(super) fn sender(&self) -> Ipv4Addr {
        self.nodes[self.to - 1]
    }

    pub(super) fn receiver(&self) -> Ipv4Addr {
        self.nodes[self.to]
    }

    /// The nodes before `at`, in reverse order.
    pub(super) fn back_from(&self, at: usize) -> Vec<Ipv4Addr> {
        self.nodes[..at].iter().rev().copied().collect()
    }
}

impl<'a> Parcel<'a> {
    /// `None` for a packet without that header.
    pub(super) fn read(packet: &'a [u8]) -> Result<Option<Parcel<'a>>, DropReason> {
        let view = IpView::parse(packet)?;
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (view.src, view.dst) else { return Ok(None) };
        if view.protocol != PROTOCOL {
            return Ok(None);
        }
        let read = OptionsHeader::parse(view.payload).map_err(|_| DropReason::RoutingMalformed)?;
        let packet = &packet[..view.header_len + view.payload.len()];
        let (ip_len, hop_limit) = (view.header_len, view.hop_limit);
        Ok(Some(Parcel { packet, ip_len, src, dst, hop_limit, read }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.read.header.next == NOTHING
    }

    pub(super) fn options(&self) -> &[DsrOption] {
        &self.read.header.options
    }

    pub(super) fn has_reply(&self) -> bool {
        self.options().iter().any(|option| matches!(option, DsrOption::Reply(_)))
    }

    pub(super) fn has_error(&self) -> bool {
        self.options().iter().any(|option| matches!(option, DsrOption::Error(_)))
    }

    /// The path of its source route. For a salvaged packet it begins with the node that salvaged it.
    pub(super) fn walk(&self) -> Result<Option<PathWalk>, DropReason> {
        let Some(route) = self.read.header.route() else { return Ok(None) };
        let visited = route.addresses.len() - usize::from(route.segments_left);
        let is_whole = route.salvage == 0;
        let mut nodes = Vec::with_capacity(route.addresses.len() + 2);
        nodes.extend(is_whole.then_some(self.src));
        nodes.extend_from_slice(&route.addresses);
        nodes.push(self.dst);
        let to = visited + usize::from(is_whole);
        // Requests and errors need hosts at both ends. The addresses between were checked when they were read.
        if to == 0 || has_repeats(&nodes) || !(is_host(nodes[0]) && is_host(self.dst)) {
            return Err(DropReason::RoutingMalformed);
        }
        Ok(Some(PathWalk { nodes, to, salvage: route.salvage }))
    }

    /// The packet without our header.
    pub(super) fn unwrapped(&self) -> Option<Vec<u8>> {
        with_header(self.packet, (self.ip_len, self.read.len), self.read.header.next, &[])
    }

    /// The packet as it leaves for the next node of its path: a segment and a hop less.
    pub(super) fn passed_on(&self) -> Vec<u8> {
        let mut packet = self.packet.to_vec();
        if let Some(at) = self.read.segments_at {
            // The six low bits, which are not zero before the last node.
            packet[self.ip_len + at] -= 1;
        }
        take_one_hop(&mut packet);
        packet
    }

    /// The packet with other options.
    pub(super) fn with_options(&self, options: Vec<DsrOption>) -> Option<Vec<u8>> {
        let header = OptionsHeader { next: self.read.header.next, options }.bytes();
        with_header(self.packet, (self.ip_len, self.read.len), PROTOCOL, &header)
    }

    /// The packet with another source route.
    pub(super) fn with_route(&self, route: SourceRoute) -> Option<Vec<u8>> {
        let is_other = |option: &&DsrOption| !matches!(option, DsrOption::Route(_));
        let others = self.options().iter().filter(is_other).cloned();
        self.with_options(std::iter::once(DsrOption::Route(route)).chain(others).collect())
    }
}

/// S1 of TCP-pgy over DSR: an option for one other node, with the arrivals at a node.
///
/// A request carries its origin's arrivals to its target, and the target's reply carries the target's. A node on the
/// route that replies from its cache hands the origin's option on to the target, as AODV's gratuitous RREP does. The
/// option is not signed: DSR runs in simulations alone.
impl Dsr {
    /// The arrivals option for a request or a reply to `peer`, if there is one to send.
    pub(super) fn arrivals_for(&mut self, cx: &Cx<'_>, peer: Ipv4Addr) -> Option<DsrOption> {
        let of = self.desk.own;
        match self.desk.ack_seqs.write(cx, of, peer)? {
            Statement::Open(flows) | Statement::Signed(flows) => {
                Some(DsrOption::Arrivals(ArrivalsOption { of, flows }))
            }
        }
    }

    /// Takes the arrivals at peers from a packet for this node.
    pub(super) fn believe(&mut self, now: Instant, parcel: &Parcel<'_>) {
        let own = self.desk.own;
        for ArrivalsOption { of, flows } in arrivals_in(parcel).filter(|said| said.of != own) {
            let said = self.desk.ack_seqs.read(own, *of, Some(flows), None);
            let hops = self.cache.hops(now, *of);
            self.desk.tell_arrivals(*of, said, hops);
        }
    }

    /// A packet that carries the arrivals at a request's origin to the target.
    pub(super) fn hand_on(&mut self, parcel: &Parcel<'_>, way: &[Ipv4Addr]) -> Option<RoutingOrder> {
        let said =
            arrivals_in(parcel).find(|said| said.of == parcel.src).filter(|_| self.settings.ack_seq)?;
        self.control(way, vec![DsrOption::Arrivals(said.clone())])
    }
}

fn arrivals_in<'a>(parcel: &'a Parcel<'_>) -> impl Iterator<Item = &'a ArrivalsOption> {
    parcel.options().iter().filter_map(|option| match option {
        DsrOption::Arrivals(said) => Some(said),
        _ => None,
    })
}
