//! The endpoint's links: the choice of a link and of the next hop, and the packets that wait for room.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::ConnId;
use super::config::{EndpointConfig, LinkConfig, Neighbours, Offload, Route};
use super::swept::Swept;
use crate::ip::{Loopback, Prefix, longest_match};
use crate::tcp::connection::LinkHelp;
use crate::trace::DropReason;
use crate::wire::Checksums;
use crate::{LinkId, NextHop, QueueClass, Transmit};

/// RSTs, SYN-ACKs with cookies and ICMP messages that may wait on one link. A driver may read as many packets before it
/// polls for the answers.
const CONTROL_QUEUE: usize = 500;

pub(super) struct Links {
    links: Vec<Link>,
    routes: Vec<Route>,
}

struct Link {
    config: LinkConfig,
    help: LinkHelp,
    /// Connections that may have a segment to send, as slot and generation. Each is in one of the two queues, once.
    opening: Swept<ConnId>,
    queued: Swept<ConnId>,
    control: VecDeque<Control>,
}

/// A whole packet without a connection.
struct Control {
    to: NextHop,
    packet: Vec<u8>,
}

impl Links {
    pub(super) fn new(config: &EndpointConfig) -> Links {
        let links = config.links.iter().map(|link| Link {
            config: link.clone(),
            help: help(config, link),
            opening: Swept::new(),
            queued: Swept::new(),
            control: VecDeque::new(),
        });
        Links { links: links.collect(), routes: config.routes.clone() }
    }

    pub(super) fn index(&self, id: LinkId) -> Option<usize> {
        self.links.iter().position(|link| link.config.id == id)
    }

    pub(super) fn config(&self, link: usize) -> &LinkConfig {
        &self.links[link].config
    }

    pub(super) fn is_ours(&self, address: IpAddr) -> bool {
        self.links.iter().any(|link| link.config.has_address(address))
    }

    /// A link stays within the host if it has a loopback address.
    pub(super) fn loopback(&self, link: usize) -> Loopback {
        let stays = self.config(link).addresses.iter().any(|prefix| prefix.address().is_loopback());
        if stays { Loopback::Allowed } else { Loopback::Refused }
    }

    /// All subnets of our addresses.
    pub(super) fn subnets(&self) -> impl Iterator<Item = &Prefix> {
        self.links.iter().flat_map(|link| &link.config.addresses)
    }

    pub(super) fn is_broadcast(&self, address: IpAddr) -> bool {
        self.subnets().any(|subnet| subnet.is_broadcast(address))
    }

    /// The link to an address, by its subnets and the routes; the longest prefix wins.
    pub(super) fn towards(&self, to: IpAddr) -> Option<usize> {
        let own =
            self.links.iter().enumerate().flat_map(|(index, link)| {
                link.config.addresses.iter().map(move |prefix| (prefix, Some(index)))
            });
        let routes = self.routes.iter().map(|route| (&route.to, self.index(route.link)));
        longest_match(own.chain(routes), to).and_then(|(_, link)| link)
    }

    /// The source address of a connection over this link (MUST-44).
    pub(super) fn source_for(&self, link: usize, to: IpAddr) -> Option<IpAddr> {
        let addresses = &self.links[link].config.addresses;
        let same_family = addresses.iter().filter(|prefix| prefix.address().is_ipv4() == to.is_ipv4());
        let in_subnet = same_family.clone().find(|prefix| prefix.contains(to));
        in_subnet.or_else(|| same_family.clone().next()).map(Prefix::address)
    }

    pub(super) fn next_hop(&self, link: usize, to: IpAddr) -> NextHop {
        let config = &self.links[link].config;
        if config.neighbours == Neighbours::Implied {
            return NextHop::Link;
        }
        if to.is_multicast() || self.is_everyone(to) {
            return NextHop::All;
        }
        let own = config.addresses.iter().map(|prefix| (prefix, NextHop::Neighbour(to)));
        let routes =
            self.routes.iter().filter(|route| route.link == config.id).map(|route| (&route.to, route.via));
        longest_match(own.chain(routes), to).map_or(NextHop::Neighbour(to), |(_, hop)| hop)
    }

    fn is_everyone(&self, to: IpAddr) -> bool {
        matches!(to, IpAddr::V4(v4) if v4.is_broadcast()) || self.is_broadcast(to)
    }

    /// The link's help with TCP segments.
    pub(super) fn help(&self, link: usize) -> &LinkHelp {
        &self.links[link].help
    }

    /// The help of a link that takes payloads in place. A checksum pass would copy the payload anyway.
    pub(super) fn lending(&self, link: usize) -> LinkHelp {
        let help = *self.help(link);
        LinkHelp { lends: help.checksums == Checksums::Trust, ..help }
    }

    /// The destination and size of a packet that the link carries now.
    #[inline]
    pub(super) fn transmit(&self, link: usize, to: IpAddr, segment_bytes: Option<u16>, id: u64) -> Transmit {
        let towards = |to| Transmit { to, class: QueueClass::Data, segment_bytes, id };
        match self.links[link].config.neighbours {
            Neighbours::Implied => towards(NextHop::Link),
            Neighbours::Named => towards(self.next_hop(link, to)),
        }
    }

    /// Queues a connection that may have a segment to send; the caller queues each at most once. Opening ones come
    /// first: their programs wait for nothing else, and they send one small packet.
    #[inline]
    pub(super) fn queue(
        &mut self,
        link: usize,
        id: ConnId,
        opens: bool,
        is_alive: impl FnMut(&ConnId) -> bool,
    ) {
        let link = &mut self.links[link];
        let queue = if opens { &mut link.opening } else { &mut link.queued };
        queue.push_back(id, is_alive);
    }

    /// Queues a connection that has just sent behind the others.
    pub(super) fn queue_again(&mut self, link: usize, id: ConnId) {
        self.links[link].queued.put_back(id);
    }

    pub(super) fn next_queued(&mut self, link: usize) -> Option<ConnId> {
        let link = &mut self.links[link];
        link.opening.pop_front().or_else(|| link.queued.pop_front())
    }

    pub(super) fn push_control(
        &mut self,
        link: usize,
        to: IpAddr,
        packet: Vec<u8>,
    ) -> Result<(), DropReason> {
        let to = self.next_hop(link, to);
        let queue = &mut self.links[link].control;
        if queue.len() >= CONTROL_QUEUE {
            return Err(DropReason::ControlQueueFull);
        }
        queue.push_back(Control { to, packet });
        Ok(())
    }
    #[inline]
    pub(super) fn next_control(&mut self, link: usize, id: &mut u64, out: &mut Vec<u8>) -> Option<Transmit> {
        let control = self.links[link].control.pop_front()?;
        out.extend_from_slice(&control.packet);
        *id += 1;
        Some(Transmit { to: control.to, class: QueueClass::Data, segment_bytes: None, id: *id })
    }
}

fn help(config: &EndpointConfig, link: &LinkConfig) -> LinkHelp {
    let is_trusted = config.checksums == Checksums::Trust || link.checksums == Checksums::Trust;
    LinkHelp {
        checksums: if is_trusted { Checksums::Trust } else { Checksums::Verify },
        lends: false,
        most_bytes: match link.offload {
            Offload::None => None,
            Offload::Cut { most_bytes } => Some(most_bytes),
        },
    }
}
