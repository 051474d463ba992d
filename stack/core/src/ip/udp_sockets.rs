//! UDP for routing daemons: bind, receive with link and hop limit, send on a chosen link.
//!
//! The caller handles headers and checksums; here are only the sockets and their queues, all bounded.

mod error;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

pub use error::UdpError;

use super::is_unicast_destination;
use crate::trace::DropReason;
use crate::{LinkId, QueueClass};

/// A socket; numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpId(u64);

/// Limits of UDP. The queue limits hold for each direction of each socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpLimits {
    /// Open sockets; one more cannot be bound.
    pub sockets: usize,
    /// Addresses in [`UdpOptions::groups`].
    pub groups_per_socket: usize,
    /// Datagrams that may wait. One more is dropped on arrival, or refused by the call that sends it.
    pub queue_datagrams: usize,
    /// Bytes of their payload.
    pub queue_bytes: usize,
}

impl Default for UdpLimits {
    fn default() -> UdpLimits {
        UdpLimits { sockets: 64, groups_per_socket: 16, queue_datagrams: 64, queue_bytes: 128 * 1024 }
    }
}

/// Settings of a socket, fixed when it is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// More addresses whose datagrams are taken: multicast groups, or the broadcast address for a socket with a local
    /// address (one without takes broadcasts anyway).
    pub groups: Vec<IpAddr>,
    /// For all outgoing datagrams, to groups too; TTL in IPv4.
    pub hop_limit: u8,
    /// The endpoint also marks [`QueueClass::Routing`] with DSCP CS6 (RFC 4594 §3.2).
    pub class: QueueClass,
    /// The code point (DSCP) of all other outgoing datagrams, below 64.
    pub dscp: u8,
}

impl Default for UdpOptions {
    fn default() -> UdpOptions {
        UdpOptions { groups: Vec::new(), hop_limit: 64, class: QueueClass::Data, dscp: 0 }
    }
}

/// A datagram from the network; its checksum is verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpArrival<'a> {
    /// The sender.
    pub(crate) from: SocketAddr,
    /// Our address, a broadcast or a group, and the socket's port.
    pub(crate) to: SocketAddr,
    /// The link that it came over.
    pub(crate) link: LinkId,
    /// The value on arrival; TTL in IPv4.
    pub(crate) hop_limit: u8,
    /// Without the UDP header; it may be empty.
    pub(crate) payload: &'a [u8],
}

/// A datagram for the socket's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The sender, for answers.
    pub from: SocketAddr,
    /// Our address, a broadcast or a group.
    pub to: IpAddr,
    /// The link that it came over; an answer to a group's datagram names it.
    pub link: LinkId,
    /// The value on arrival: 255 proves that the sender is a neighbour (RFC 5082).
    pub hop_limit: u8,
    /// It may be empty.
    pub payload: Vec<u8>,
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutgoingDatagram {
    /// The sender's socket, which may have been closed since.
    pub(crate) socket: UdpId,
    /// `None`: the caller chooses the source.
    pub(crate) from: Option<IpAddr>,
    /// The port that the socket is bound to.
    pub(crate) from_port: u16,
    /// The destination; its port and its address are specified.
    pub(crate) to: SocketAddr,
    /// `None`: the routes decide.
    pub(crate) via: Option<LinkId>,
    /// [`UdpOptions::hop_limit`] of the socket.
    pub(crate) hop_limit: u8,
    /// [`UdpOptions::class`] of the socket.
    pub(crate) class: QueueClass,
    /// [`UdpOptions::dscp`] of the socket.
    pub(crate) dscp: u8,
    /// At most 65,507 bytes over IPv4, and 65,527 over IPv6.
    pub(crate) payload: Vec<u8>,
}

/// All UDP sockets of an endpoint.
///
/// 1. `by_port` has exactly one entry for each of `sockets`.
/// 2. A socket's `sending` counts its datagrams in `outgoing`.
#[derive(Debug)]
pub(crate) struct UdpSockets {
    limits: UdpLimits,
    next_id: u64,
    sockets: BTreeMap<UdpId, Socket>,
    by_port: BTreeMap<(u16, Option<IpAddr>), UdpId>,
    /// Datagrams of all sockets, in the order of sending.
    outgoing: VecDeque<OutgoingDatagram>,
}

#[derive(Debug)]
struct Socket {
    local: Option<IpAddr>,
    port: u16,
    options: UdpOptions,
    received: VecDeque<Datagram>,
    receiving: Load,
    sending: Load,
}

/// The amount of data in a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    datagrams: usize,
    bytes: usize,
}

impl Load {
    fn has_room(self, limits: UdpLimits, len: usize) -> bool {
        self.datagrams < limits.queue_datagrams && self.bytes + len <= limits.queue_bytes
    }

    fn add(&mut self, len: usize) {
        self.datagrams += 1;
        self.bytes += len;
    }

    fn remove(&mut self, len: usize) {
        self.datagrams -= 1;
        self.bytes -= len;
    }
}

impl Socket {
    fn takes_group(&self, group: IpAddr) -> bool {
        self.options.groups.contains(&group)
    }

    fn receive(&mut self, limits: UdpLimits, arrival: &UdpArrival<'_>) -> Result<(), DropReason> {
        if !self.receiving.has_room(limits, arrival.payload.len()) {
            return Err(DropReason::UdpQueueFull);
        }
        self.receiving.add(arrival.payload.len());
        self.received.push_back(Datagram {
            from: arrival.from,
            to: arrival.to.ip(),
            link: arrival.link,
            hop_limit: arrival.hop_limit,
            payload: arrival.payload.to_vec(),
        });
        Ok(())
    }
}

impl Default for UdpSockets {
    fn default() -> UdpSockets {
        UdpSockets::new(UdpLimits::default())
    }
}

impl UdpSockets {
    /// Begins without sockets.
    pub(crate) fn new(limits: UdpLimits) -> UdpSockets {
        UdpSockets {
            limits,
            next_id: 1,
            sockets: BTreeMap::new(),
            by_port: BTreeMap::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// `local: None` takes datagrams to any address of ours, of both families. A socket with an address and one without
    /// may share a port; the one with the address comes first.
    pub(crate) fn bind(
        &mut self,
        local: Option<IpAddr>,
        port: u16,
        options: UdpOptions,
    ) -> Result<UdpId, UdpError> {
        if port == 0 {
            return Err(UdpError::PortZero);
        }
        if local.is_some_and(|local| !is_unicast_destination(local)) {
            return Err(UdpError::LocalNotUnicast);
        }
        if options.groups.len() > self.limits.groups_per_socket {
            return Err(UdpError::TooManyGroups { most: self.limits.groups_per_socket });
        }
        if self.by_port.contains_key(&(port, local)) {
            return Err(UdpError::PortInUse { port });
        }
        if self.sockets.len() >= self.limits.sockets {
            return Err(UdpError::TooManySockets { most: self.limits.sockets });
        }
        let id = UdpId(self.next_id);
        self.next_id += 1;
        self.by_port.insert((port, local), id);
        let (receiving, sending) = (Load::default(), Load::default());
        let received = VecDeque::new();
        self.sockets.insert(id, Socket { local, port, options, received, receiving, sending });
        Ok(id)
    }

    /// Closes a socket: unread datagrams are lost, queued ones still leave.
    pub(crate) fn close(&mut self, id: UdpId) -> Result<(), UdpError> {
        let socket = self.sockets.remove(&id).ok_or(UdpError::Closed)?;
        self.by_port.remove(&(socket.port, socket.local));
        Ok(())
    }

    /// Returns whether some socket is a member of the group.
    pub(crate) fn is_member(&self, group: IpAddr) -> bool {
        self.sockets.values().any(|socket| socket.takes_group(group))
    }

    /// Delivers a datagram to the socket bound to its address, else to the one without an address. Each socket on the
    /// port that has joined the address gets it too. It is delivered if one socket took it.
    ///
    /// The caller has checked that the address is ours, a broadcast, or a group that [`is_member`](Self::is_member).
    pub(crate) fn deliver(&mut self, arrival: &UdpArrival<'_>) -> Result<(), DropReason> {
        let (to, port) = (arrival.to.ip(), arrival.to.port());
        let bound = self.by_port.get(&(port, Some(to))).or_else(|| self.by_port.get(&(port, None)));
        let bound = bound.copied().filter(|_| !to.is_multicast());
        let on_port = self.by_port.range((port, None)..).take_while(|((at, _), _)| *at == port);
        let mut outcome = Err(DropReason::UdpNoSocket);
        for (_, id) in on_port {
            let socket = self.sockets.get_mut(id).expect("invariant 1");
            if bound == Some(*id) || socket.takes_group(to) {
                let one = socket.receive(self.limits, arrival);
                outcome = if outcome.is_ok() { outcome } else { one };
            }
        }
        outcome
    }

    /// The oldest unread datagram.
    pub(crate) fn recv(&mut self, id: UdpId) -> Option<Datagram> {
        let socket = self.sockets.get_mut(&id)?;
        let datagram = socket.received.pop_front()?;
        socket.receiving.remove(datagram.payload.len());
        Some(datagram)
    }

    /// Queues a datagram.
    pub(crate) fn send(
        &mut self,
        id: UdpId,
        to: SocketAddr,
        via: Option<LinkId>,
        payload: &[u8],
    ) -> Result<(), UdpError> {
        let socket = self.sockets.get_mut(&id).ok_or(UdpError::Closed)?;
        check_send(socket.local, to, payload.len())?;
        if !socket.sending.has_room(self.limits, payload.len()) {
            return Err(UdpError::QueueFull);
        }
        socket.sending.add(payload.len());
        self.outgoing.push_back(OutgoingDatagram {
            socket: id,
            from: socket.local,
            from_port: socket.port,
            to,
            via,
            hop_limit: socket.options.hop_limit,
            class: socket.options.class,
            dscp: socket.options.dscp,
            payload: payload.to_vec(),
        });
        Ok(())
    }

    /// Returns whether a datagram waits to leave.
    pub(crate) fn is_sending(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// The oldest queued datagram that `may_leave` accepts: a full link does not block datagrams for another one.
    pub(crate) fn poll_send_if(
        &mut self,
        may_leave: &mut dyn FnMut(&OutgoingDatagram) -> bool,
    ) -> Option<OutgoingDatagram> {
        let at = self.outgoing.iter().position(may_leave)?;
        let datagram = self.outgoing.remove(at)?;
        if let Some(socket) = self.sockets.get_mut(&datagram.socket) {
            socket.sending.remove(datagram.payload.len());
        }
        Some(datagram)
    }
}

fn check_send(local: Option<IpAddr>, to: SocketAddr, len: usize) -> Result<(), UdpError> {
    if to.port() == 0 || to.ip().is_unspecified() {
        return Err(UdpError::NoDestination);
    }
    if local.is_some_and(|local| local.is_ipv4() != to.is_ipv4()) {
        return Err(UdpError::OtherFamily);
    }
    // 65,535 less the UDP header, and in IPv4 less its own header.
    let most = if to.is_ipv4() { 65_507 } else { 65_527 };
    if len > most { Err(UdpError::TooLong { most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
