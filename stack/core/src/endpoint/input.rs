//! An arriving packet: IP first, then the layer above.

use std::net::SocketAddr;

use super::Endpoint;
use super::config::{AnswersFor, SourceRoutes};
use crate::ip::{FragmentKey, Loopback, is_unicast_destination, is_valid_source};
use crate::tcp::Flow;
use crate::tcp::connection::{Arrived, Disposition};
use crate::tcp::cx::Cx;
use crate::trace::DropReason;
use crate::wire::{Checksums, Flags, IpHeader, IpView, TcpBytes, TcpHeader, TcpOptions, TcpView, protocol};
use crate::{Cast, Instant, Rx, Seq};

/// A packet that came over a link.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) now: Instant,
    pub(super) rx: &'a Rx<'a>,
    pub(super) link: usize,
    pub(super) view: &'a IpView<'a>,
}

/// A segment and its connection.
#[derive(Clone, Copy)]
pub(super) struct Incoming<'a> {
    pub(super) now: Instant,
    pub(super) flow: Flow,
    pub(super) link: usize,
    pub(super) arrived: &'a Arrived<'a>,
    /// The end of the numbers of a connection that gives way to it.
    pub(super) above: Option<Seq>,
}

impl Endpoint {
    pub(super) fn take_packet(&mut self, now: Instant, rx: &Rx<'_>) -> Result<(), DropReason> {
        let link = self.links.index(rx.link).ok_or(DropReason::NoRoute)?;
        if rx.cast == Cast::Overheard {
            return Err(DropReason::NotOurs);
        }
        let view = IpView::parse(rx.packet).inspect_err(|_| self.refuse_headers(now, rx, link))?;
        if view.source_route.is_some() && self.config.source_routes == SourceRoutes::Refuse {
            return Err(DropReason::SourceRoute);
        }
        let packet = Packet { now, rx, link, view: &view };
        let Some(fragment) = view.fragment else {
            return self.take_datagram(&packet, self.links.help(link).checksums);
        };
        self.check_addresses(link, &view)?;
        if let Some(fault) = view.fault_of_fragment() {
            self.tell_of_fault(&packet, &fault);
            return Err(fault.reason);
        }
        let key = FragmentKey { src: view.src, dst: view.dst, protocol: view.protocol, id: fragment.id };
        let whole = self.fragments.insert(now, key, fragment.offset, fragment.more, view.payload, rx.packet);
        for _ in 0..self.fragments.take_gave_way() {
            self.dropped(now, DropReason::FragmentsFull);
        }
        match whole? {
            // No link verifies checksums of fragments.
            Some(datagram) => {
                let whole = Packet { view: &view.reassembled(&datagram)?, ..packet };
                self.take_datagram(&whole, self.config.checksums)
            }
            None => Ok(()),
        }
    }

    pub(super) fn check_addresses(&self, link: usize, view: &IpView<'_>) -> Result<(), DropReason> {
        // No host can answer a martian source (RFC 9293 MUST-63). Only a link within the host may bring packets from
        // our own address.
        let loopback = self.links.loopback(link);
        let comes_back = loopback == Loopback::Refused && self.links.is_ours(view.src);
        if !is_valid_source(view.src, loopback) || comes_back || self.links.is_broadcast(view.src) {
            return Err(DropReason::BadSource);
        }
        let stands_for_all =
            view.protocol == protocol::TCP && self.links.config(link).answers_for == AnswersFor::Everyone;
        let is_for_us = stands_for_all || self.links.is_ours(view.dst) || self.is_group_address(view.dst);
        if is_for_us { Ok(()) } else { Err(DropReason::NotOurs) }
    }

    fn is_group_address(&self, address: std::net::IpAddr) -> bool {
        !is_unicast_destination(address) || self.links.is_broadcast(address)
    }

    fn take_datagram(&mut self, packet: &Packet<'_>, checksums: Checksums) -> Result<(), DropReason> {
        let view = packet.view;
        if view.protocol == protocol::TCP {
            return self.take_tcp(packet, checksums);
        }
        self.check_addresses(packet.link, view)?;
        match (view.protocol, view.src.is_ipv4()) {
            (protocol::UDP, _) => self.take_udp(packet),
            (protocol::ICMP, true) | (protocol::ICMPV6, false) => self.take_icmp(packet),
            // Its octets are ignored, and nobody is told (RFC 8200 §4.7).
            (protocol::NO_NEXT_HEADER, false) => Err(DropReason::NoProtocol),
            _ => {
                self.refuse_protocol(packet);
                Err(DropReason::NoProtocol)
            }
        }
    }

    fn take_tcp(&mut self, packet: &Packet<'_>, checksums: Checksums) -> Result<(), DropReason> {
        let Packet { now, rx, link, view } = *packet;
        if rx.cast == Cast::ToAll {
            return Err(DropReason::TcpNotUnicast); // MUST-57: silently.
        }
        let checked = TcpBytes::check(view.src, view.dst, view.payload, checksums)?;
        let mut segment = TcpView::fixed(checked);
        segment.read_options(checked);
        let arrived = Arrived {
            segment: &segment,
            ecn: view.ecn,
            hop_limit: view.hop_limit,
            crossings: self.links.config(link).crossings,
            segment_bytes: rx.segment_bytes,
            source_route: view.source_route.as_deref(),
        };
        // A connection's addresses were checked when it was opened.
        if let Some(slot) =
            self.table.slot_of_packet((&view.src, segment.src_port), (&view.dst, segment.dst_port))
        {
            self.deliver_segment(now, slot, link, &arrived);
            return Ok(());
        }
        self.check_addresses(link, view)?;
        if self.is_group_address(view.dst) {
            return Err(DropReason::TcpNotUnicast);
        }
        let flow = Flow {
            local: SocketAddr::new(view.dst, segment.dst_port),
            remote: SocketAddr::new(view.src, segment.src_port),
        };
        self.take_stray(&Incoming { now, flow, link, arrived: &arrived, above: None })
    }

    /// Handles a segment without a connection.
    #[cold]
    fn take_stray(&mut self, incoming: &Incoming<'_>) -> Result<(), DropReason> {
        if let Some(listener) = self.listener_for(incoming.flow.local) {
            let id = listener.id;
            return self.handle_in_listen(incoming, id);
        }
        self.refuse(incoming)?;
        Err(DropReason::TcpNoConnection)
    }

    pub(super) fn deliver_segment(&mut self, now: Instant, slot: u32, link: usize, arrived: &Arrived<'_>) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let mut cx = Cx::new(now, entry.conn.number, self.packets_in, self.account.memory, &mut self.trace);
        let disposition = entry.conn.handle_segment(&mut cx, arrived);
        if disposition == Disposition::Done {
            return self.touch(now, slot);
        }
        let incoming = Incoming { now, flow: entry.conn.flow(), link, arrived, above: None };
        self.dispose(slot, &incoming, disposition);
    }

    #[cold]
    fn dispose(&mut self, slot: u32, incoming: &Incoming<'_>, disposition: Disposition) {
        let now = incoming.now;
        match disposition {
            Disposition::Done => self.touch(now, slot),
            // A program that holds it hears of its end first.
            Disposition::Forget if self.is_of_program(slot) => self.touch(now, slot),
            Disposition::Forget => self.forget(now, slot),
            Disposition::Refuse if self.is_cookie_of_half_open(slot, incoming) => {
                self.forget(now, slot);
                if let Err(reason) = self.take_stray(incoming) {
                    self.dropped(now, reason);
                }
            }
            Disposition::Refuse => {
                self.touch(now, slot);
                if let Err(reason) = self.refuse(incoming) {
                    self.dropped(now, reason);
                }
            }
            Disposition::Reopen => self.reopen(slot, incoming),
        }
    }

    /// Opens a connection for a SYN that is surely new and has ended TIME-WAIT.
    fn reopen(&mut self, slot: u32, incoming: &Incoming<'_>) {
        let above = self.table.get(slot).map(|entry| entry.conn.sent_up_to());
        self.touch(incoming.now, slot);
        if let Err(reason) = self.take_stray(&Incoming { above, ..*incoming }) {
            self.dropped(incoming.now, reason);
        }
    }

    /// Sends a RST for a segment without a connection (RFC 9293 §3.10.7.1), but never for a RST.
    #[cold]
    pub(super) fn refuse(&mut self, incoming: &Incoming<'_>) -> Result<(), DropReason> {
        let segment = &incoming.arrived.segment;
        if segment.flags.contains(Flags::RST) {
            return Ok(());
        }
        let (seq, ack, flags) = if segment.flags.contains(Flags::ACK) {
            (segment.ack, Seq(0), Flags::RST)
        } else {
            (Seq(0), segment.seq + segment.sequence_len(), Flags::RST | Flags::ACK)
        };
        let link = self.links.towards(incoming.flow.remote.ip()).unwrap_or(incoming.link);
        self.send_bare(&incoming.flow, link, (seq, ack), (flags, 0), &TcpOptions::default())
    }

    /// Sends a segment without a connection: a RST, or a SYN-ACK with a cookie.
    pub(super) fn send_bare(
        &mut self,
        flow: &Flow,
        link: usize,
        (seq, ack): (Seq, Seq),
        (flags, window): (Flags, u16),
        options: &TcpOptions,
    ) -> Result<(), DropReason> {
        let (src_port, dst_port) = (flow.local.port(), flow.remote.port());
        let header = TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent: 0, options };
        let ip = IpHeader {
            hop_limit: self.config.tcp.hop_limit,
            dscp: self.config.tcp.dscp,
            ..IpHeader::plain(flow.local.ip(), flow.remote.ip(), protocol::TCP)
        };
        let mut packet = Vec::with_capacity(ip.len() + header.len());
        ip.emit(header.len(), &mut packet);
        header.emit(ip.src, ip.dst, (&[], &[]), self.links.help(link).checksums, &mut packet);
        self.links.push_control(link, flow.remote.ip(), packet)
    }
}
