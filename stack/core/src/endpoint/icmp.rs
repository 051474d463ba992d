//! ICMP at the endpoint: it answers echo requests and passes errors to the quoted connection. It sends few errors of
//! its own (RFC 1122 §3.2.2, RFC 4443 §2.4, RFC 5927).

use std::net::{IpAddr, SocketAddr};

use super::Endpoint;
use super::input::Packet;
use crate::ip::{ErrorKind, Offender, Prefix, Taken, may_answer_with_error, plateau_below};
use crate::tcp::Flow;
use crate::tcp::connection::Connection;
use crate::trace::DropReason;
use crate::wire::{Fault, IcmpKind, IcmpView, IpHeader, IpView, QuotedTcp, icmp, protocol};
use crate::{Instant, LinkEvent, Rx};

/// Code 2 of "destination unreachable": the protocol is not supported.
const PROTOCOL_UNREACHABLE: u8 = 2;
/// ICMPv6 parameter problem, code 1: unrecognized next header.
const NEXT_HEADER_UNKNOWN: u8 = 1;
const REASSEMBLY_TIMEOUT: u8 = 1;

impl Endpoint {
    pub(super) fn take_icmp(&mut self, packet: &Packet<'_>) -> Result<(), DropReason> {
        let view = packet.view;
        match IcmpView::parse(view.src, view.dst, view.protocol, view.payload)? {
            IcmpView::EchoRequest { id, seq, data } => self.answer_echo(packet, (id, seq), data),
            IcmpView::Error { kind, quoted } => self.take_icmp_error(packet.now, kind, quoted),
            IcmpView::EchoReply { .. } | IcmpView::Other { .. } => Ok(()),
        }
    }

    /// Answers no group address: one packet could otherwise cause many (RFC 1122 §3.2.2.6 allows silence).
    fn answer_echo(
        &mut self,
        packet: &Packet<'_>,
        (id, seq): (u16, u16),
        data: &[u8],
    ) -> Result<(), DropReason> {
        let Packet { now, link, view, .. } = *packet;
        if !self.links.is_ours(view.dst) {
            return Err(DropReason::NotOurs);
        }
        if self.echoes.take(now) == Taken::Refused {
            return Err(DropReason::IcmpRateLimited);
        }
        let mut message = Vec::with_capacity(data.len() + 8);
        icmp::emit_echo_reply(view.dst, view.src, id, seq, data, &mut message);
        self.send_icmp(link, view.dst, view.src, &message)
    }

    fn send_icmp(&mut self, link: usize, src: IpAddr, dst: IpAddr, message: &[u8]) -> Result<(), DropReason> {
        let number = if dst.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        let plain = IpHeader::plain(src, dst, number);
        let ip = IpHeader { hop_limit: self.config.tcp.hop_limit, ..plain };
        if ip.len() + message.len() > usize::from(self.links.config(link).mtu) {
            return Err(DropReason::TooBig);
        }
        let mut packet = Vec::with_capacity(ip.len() + message.len());
        ip.emit(message.len(), &mut packet);
        packet.extend_from_slice(message);
        self.links.push_control(link, dst, packet)
    }

    /// Passes an error to the connection whose segment it quotes; the connection checks the number.
    fn take_icmp_error(&mut self, now: Instant, kind: IcmpKind, quoted: &[u8]) -> Result<(), DropReason> {
        let Some(tcp) = QuotedTcp::read(quoted) else { return Ok(()) };
        let slot = self.table.slot_of(&flow_of(&tcp).into()).ok_or(DropReason::IcmpUnverified)?;
        let lowered = lowered_mtu(kind, quoted);
        let before = self.table.get(slot).map(|entry| entry.conn.path_mtu());
        self.with(now, slot, |conn, cx| conn.handle_icmp(cx, kind, tcp.seq, lowered));
        let after = self.table.get(slot).map(|entry| entry.conn.path_mtu());
        // Only a size that the connection believed is remembered for the destination.
        if let (Some(after), true) = (after, after < before) {
            self.path_mtus.lower(now, tcp.dst, after);
        }
        Ok(())
    }

    pub(super) fn refuse_protocol(&mut self, packet: &Packet<'_>) {
        let kind = if packet.view.src.is_ipv4() {
            IcmpKind::Unreachable { code: PROTOCOL_UNREACHABLE }
        } else {
            let pointer = IpView::protocol_at(packet.rx.packet);
            IcmpKind::ParameterProblem { code: NEXT_HEADER_UNKNOWN, pointer }
        };
        self.send_error(packet, kind, ErrorKind::Other);
    }

    /// Answers headers that are not understood, as IPv6 demands.
    #[cold]
    pub(super) fn refuse_headers(&mut self, now: Instant, rx: &Rx<'_>, link: usize) {
        if let Some((view, fault)) = IpView::faulty(rx.packet)
            && self.check_addresses(link, &view).is_ok()
        {
            self.tell_of_fault(&Packet { now, rx, link, view: &view }, &fault);
        }
    }

    pub(super) fn tell_of_fault(&mut self, packet: &Packet<'_>, fault: &Fault) {
        let kind = IcmpKind::ParameterProblem { code: fault.code, pointer: fault.pointer };
        let error = match fault.reason {
            DropReason::FragmentInvalid => ErrorKind::Fragment,
            _ if fault.concerns_groups => ErrorKind::UnknownOption,
            _ => ErrorKind::Other,
        };
        self.send_error(packet, kind, error);
    }

    /// Sends an ICMP error about a packet, within the rules and the rate limit.
    pub(super) fn send_error(&mut self, packet: &Packet<'_>, kind: IcmpKind, error: ErrorKind) {
        let Packet { now, rx, link, view } = *packet;
        let fragment_offset_bytes = view.fragment.map_or(0, |fragment| fragment.offset);
        let subnets: Vec<Prefix> = self.links.subnets().copied().collect();
        let offender = Offender {
            src: view.src,
            dst: view.dst,
            cast: rx.cast,
            protocol: view.protocol,
            icmp_type: view.payload.first().copied().filter(|_| fragment_offset_bytes == 0),
            fragment_offset_bytes,
            subnets: &subnets,
            loopback: self.links.loopback(link),
        };
        if !may_answer_with_error(&offender, error) {
            return;
        }
        // One of our own addresses answers for a group.
        let own = Some(view.dst).filter(|dst| self.links.is_ours(*dst));
        if let Some(own) = own.or_else(|| self.links.source_for(link, view.src)) {
            self.emit_error(now, link, (own, view.src), kind, rx.packet);
        }
    }

    pub(super) fn emit_error(
        &mut self,
        now: Instant,
        link: usize,
        (src, dst): (IpAddr, IpAddr),
        kind: IcmpKind,
        quoted: &[u8],
    ) {
        if self.icmp_errors.take(now) == Taken::Refused {
            self.dropped(now, DropReason::IcmpRateLimited);
            return;
        }
        let mut message = Vec::new();
        icmp::emit_error(src, dst, kind, quoted, &mut message);
        if let Err(reason) = self.send_icmp(link, src, dst, &message) {
            self.dropped(now, reason);
        }
    }

    /// Drops datagrams whose fragments did not all come in time. The sender gets an error if the first fragment came.
    pub(super) fn expire_fragments(&mut self, now: Instant) {
        let mut expired = Vec::new();
        self.fragments.expire(now, &mut |key, quote| expired.push((key, quote.map(<[u8]>::to_vec))));
        for (key, quote) in expired {
            self.dropped(now, DropReason::FragmentTimeout);
            let (Some(quote), Some(link)) = (quote, self.links.towards(key.src)) else { continue };
            if self.links.is_ours(key.dst) {
                let kind = IcmpKind::TimeExceeded { code: REASSEMBLY_TIMEOUT };
                self.emit_error(now, link, (key.dst, key.src), kind, &quote);
            }
        }
    }

    /// Handles a packet without a neighbour as if by an ICMP error (RFC 4861 §7.2.2). Other link events concern mesh
    /// nodes only; a mesh node keeps its undelivered packets.
    pub(super) fn on_link_event(&mut self, now: Instant, event: &LinkEvent<'_>) {
        let LinkEvent::NotDelivered { packet, .. } = event else { return };
        let slot = QuotedTcp::read(packet).and_then(|tcp| self.table.slot_of(&flow_of(&tcp).into()));
        if let Some(slot) = slot {
            self.with(now, slot, Connection::handle_undelivered);
        }
    }
}

/// The flow of our quoted segment.
fn flow_of(tcp: &QuotedTcp) -> Flow {
    Flow { local: SocketAddr::new(tcp.src, tcp.src_port), remote: SocketAddr::new(tcp.dst, tcp.dst_port) }
}

/// The size that an ICMP message allows. Routers older than RFC 1191 omit it; the next plateau below the dropped
/// packet's size is then taken.
fn lowered_mtu(kind: IcmpKind, quoted: &[u8]) -> Option<u16> {
    let IcmpKind::PacketTooBig { mtu } = kind else { return None };
    if mtu > 0 {
        return Some(u16::try_from(mtu).unwrap_or(u16::MAX));
    }
    let total = quoted.get(2..4).map(|len| u16::from_be_bytes([len[0], len[1]]))?;
    Some(plateau_below(total))
}
