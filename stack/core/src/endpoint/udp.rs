//! UDP at the endpoint: enough for routing daemons and name look-ups.

use std::net::{IpAddr, SocketAddr};

use super::Endpoint;
use super::input::Packet;
use crate::ip::{
    Datagram, ErrorKind, OutgoingDatagram, UdpArrival, UdpError, UdpId, UdpOptions, is_unicast_destination,
};
use crate::named::errors;
use crate::trace::DropReason;
use crate::wire::{IcmpKind, IpHeader, UdpView, protocol, udp};
use crate::{LinkId, QueueClass, Transmit};

const UDP_HEADER: usize = 8;

errors! {
    /// The reasons why a datagram was not taken.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    UdpSendError {
        /// The socket itself refused it.
        Socket(error: UdpError) = "{error}",
        /// No link has the given id, or no link and no route leads to the address.
        NoRoute(to: IpAddr) = "no route to {to}: name a link, or add a route",
        /// The datagram exceeds the link's MTU, and we do not fragment.
        TooBig {
            /// Bytes of payload that fit.
            most: usize
        } = "too long for the link: at most {most} bytes",
    }
}

impl Endpoint {
    /// Receives datagrams to `local`, or without it to any address of ours.
    pub fn udp_bind(
        &mut self,
        local: Option<IpAddr>,
        port: u16,
        options: UdpOptions,
    ) -> Result<UdpId, UdpError> {
        let is_foreign = |address: &IpAddr| is_unicast_destination(*address) && !self.links.is_ours(*address);
        if let Some(address) = local.filter(is_foreign) {
            return Err(UdpError::NotOurs { address });
        }
        self.udp.bind(local, port, options)
    }

    /// Closes a socket: unread datagrams are lost, queued ones still leave.
    pub fn udp_close(&mut self, id: UdpId) -> Result<(), UdpError> {
        self.udp.close(id)
    }

    /// The socket's oldest unread datagram. There is no event for it: the program asks until it gets None.
    pub fn udp_recv(&mut self, id: UdpId) -> Option<Datagram> {
        self.udp.recv(id)
    }

    /// Sends a datagram. `via` names a link if the address does not lead to one, as with groups.
    pub fn udp_send(
        &mut self,
        id: UdpId,
        to: SocketAddr,
        via: Option<LinkId>,
        payload: &[u8],
    ) -> Result<(), UdpSendError> {
        let link = match via {
            Some(via) => self.links.index(via),
            None => self.links.towards(to.ip()),
        };
        let link = link.ok_or(UdpSendError::NoRoute(to.ip()))?;
        let headers = UDP_HEADER + if to.is_ipv4() { 20 } else { 40 };
        let most = usize::from(self.links.config(link).mtu).saturating_sub(headers);
        if payload.len() > most {
            return Err(UdpSendError::TooBig { most });
        }
        self.udp.send(id, to, via, payload).map_err(UdpSendError::Socket)
    }

    pub(super) fn take_udp(&mut self, packet: &Packet<'_>) -> Result<(), DropReason> {
        let view = packet.view;
        let datagram = UdpView::parse(view.src, view.dst, view.payload)?;
        if !self.links.is_ours(view.dst)
            && !self.links.is_broadcast(view.dst)
            && !self.udp.is_member(view.dst)
        {
            let is_limited_broadcast = matches!(view.dst, IpAddr::V4(v4) if v4.is_broadcast());
            if !is_limited_broadcast {
                return Err(DropReason::NotOurs);
            }
        }
        let delivered = self.udp.deliver(&UdpArrival {
            from: SocketAddr::new(view.src, datagram.src_port),
            to: SocketAddr::new(view.dst, datagram.dst_port),
            link: packet.rx.link,
            hop_limit: view.hop_limit,
            payload: datagram.payload,
        });
        if delivered == Err(DropReason::UdpNoSocket) {
            self.send_error(packet, IcmpKind::port_unreachable(view.src), ErrorKind::Other);
        }
        delivered
    }

    pub(super) fn transmit_datagram(&mut self, link: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let links = &self.links;
        let goes_here = |datagram: &OutgoingDatagram| {
            let at = match datagram.via {
                Some(via) => links.index(via),
                None => links.towards(datagram.to.ip()),
            };
            at == Some(link)
        };
        let datagram = self.udp.poll_send_if(&mut |datagram| goes_here(datagram))?;
        let src = datagram.from.or_else(|| self.links.source_for(link, datagram.to.ip()))?;
        let dst = datagram.to.ip();
        let ip = IpHeader {
            hop_limit: datagram.hop_limit,
            dscp: if datagram.class == QueueClass::Routing { INTERNETWORK_CONTROL } else { datagram.dscp },
            ..IpHeader::plain(src, dst, protocol::UDP)
        };
        ip.emit(UDP_HEADER + datagram.payload.len(), out);
        udp::emit(src, dst, (datagram.from_port, datagram.to.port()), &datagram.payload, out);
        self.packets_out += 1;
        let transmit = self.links.transmit(link, dst, None, self.packets_out);
        Some(Transmit { class: datagram.class, ..transmit })
    }
}

/// The code point of routing protocols (RFC 4594 §3.2, CS6).
const INTERNETWORK_CONTROL: u8 = 48;
