//! Carries out the orders of a flow's agent.

use hopwise_core::agent::{AdvertisedWindow, Because, Order, Orders, Side};
use hopwise_core::trace::{DropReason, TraceKind};
use hopwise_core::wire::{Checksums, Flags, IpHeader, IpView, TcpHeader, TcpOptions, TcpView, protocol};
use hopwise_core::{Instant, Seq};

use super::ProxyFlow;
use crate::proxy::facts::NewestValues;
use crate::proxy::outbox::{Copies, LeavingNow, MOST_DUPLICATES, Outbox, TraceLabel};
use crate::proxy::read::{parse, pattern};
use crate::proxy::store::KeptPacket;

impl ProxyFlow {
    pub(super) fn obey(&mut self, now: Instant, orders: &Orders, out: &mut Outbox) {
        for order in orders.iter() {
            match order {
                Order::Release { of, packets, because } => self.release(now, of, packets, because, out),
                Order::Discard { of, reason } => self.discard(now, of, reason, out),
                Order::Forget { below } => {
                    while let Some(kept) = self.data.pop_below(below) {
                        out.spare.keep(kept.packet);
                    }
                }
                Order::Repeat { because } => self.repeat(now, because, out),
                Order::Duplicate { because } => self.duplicate(now, because, out),
                Order::Resend { seq, because } => self.resend(now, seq, because, out),
                Order::Acknowledge { number, window, copies } => {
                    self.acknowledge(now, number, window, copies, out);
                }
            }
        }
    }

    pub(super) fn release(
        &mut self,
        now: Instant,
        of: Side,
        packets: u32,
        because: Because,
        out: &mut Outbox,
    ) {
        let mut left = packets;
        while left > 0 {
            let Some(kept) = self.store(of).pop() else { return };
            let is_known = kept.len() > 0 && self.facts.acked.is_some_and(|acked| kept.end <= acked);
            if of == Side::Fixed && is_known {
                out.spare.keep(kept.packet);
                continue;
            }
            left -= 1;
            self.let_out(now, of, kept, because, out);
        }
    }

    pub(super) fn let_out(
        &mut self,
        now: Instant,
        of: Side,
        kept: KeptPacket,
        because: Because,
        out: &mut Outbox,
    ) {
        let label = TraceLabel { from: of, number: kept.number(), len: kept.len(), because };
        out.note(now, self.number, kept.id, label.released());
        if let (Side::Mobile, Some(ack)) = (of, kept.ack) {
            self.facts.note_passed(now, ack);
            if let Some((ip, tcp)) = parse(&kept.packet)
                && let Some(pattern) = pattern(&kept.packet, &ip)
            {
                self.remember(pattern, &tcp, Copies::said_behind(kept.duplicates));
            }
        }
        let KeptPacket { id, packet, .. } = kept;
        out.send(now, of.other(), LeavingNow { id, is_passing: false, replaceable: None, packet });
    }

    fn discard(&mut self, now: Instant, of: Side, reason: DropReason, out: &mut Outbox) {
        while let Some(kept) = self.store(of).pop() {
            out.dropped(now, self.number, kept.id, reason);
            out.spare.keep(kept.packet);
        }
    }

    /// P3. A late ACK is no new one, since written ACKs bear the newest clock. A repeated one is no new one, either.
    pub(super) fn remember(&mut self, pattern: &[u8], tcp: &TcpView<'_>, copies: Copies) {
        let says = tcp.options.timestamps.map(|told| (tcp.ack, tcp.window, told.value));
        let is_again = says.is_some() && says == self.pure_ack_says;
        if is_again || (!self.pure_ack.is_empty() && self.facts.newest.is_after(tcp)) {
            return;
        }
        self.pure_ack_says = says;
        self.pure_ack.clear();
        self.pure_ack.extend_from_slice(pattern);
        self.copies = copies;
    }

    /// P3.
    fn repeat(&mut self, now: Instant, because: Because, out: &mut Outbox) {
        let Some((_, tcp)) = parse(&self.pure_ack) else { return };
        // After data of the mobile the fixed end would take it for an old one, and it may not be altered.
        if !self.facts.newest.is(&tcp) || !self.copies.take_own() {
            return;
        }
        let number = tcp.ack;
        let id = out.next_id();
        let label = TraceLabel { from: Side::Mobile, number, len: 0, because };
        out.note(now, self.number, id, label.released());
        let packet = out.spare.copy(&self.pure_ack);
        out.send(now, Side::Fixed, LeavingNow { id, is_passing: false, replaceable: None, packet });
    }

    /// P3. It leaves ahead of the ACK that waits, so that no newer one has gone on before it.
    fn duplicate(&mut self, now: Instant, because: Because, out: &mut Outbox) {
        let Some(kept) = self.acks.front_mut() else { return };
        let Some(ack) = kept.ack.filter(|_| kept.len() == 0 && kept.duplicates < MOST_DUPLICATES) else {
            return;
        };
        kept.duplicates += 1;
        let label = TraceLabel { from: Side::Mobile, number: kept.number(), len: 0, because };
        let packet = out.spare.copy(&kept.packet);
        let id = out.next_id();
        out.note(now, self.number, id, label.released());
        self.facts.note_passed(now, ack);
        out.send(now, Side::Fixed, LeavingNow { id, is_passing: false, replaceable: None, packet });
    }

    fn resend(&mut self, now: Instant, seq: Seq, because: Because, out: &mut Outbox) {
        let Some(kept) = self.data.find(seq) else { return };
        let label = TraceLabel { from: Side::Fixed, number: kept.seq, len: kept.len(), because };
        let packet = out.spare.copy(&kept.packet);
        let id = out.next_id();
        out.note(now, self.number, id, label.released());
        out.send(now, Side::Mobile, LeavingNow { id, is_passing: false, replaceable: None, packet });
    }

    /// P2. Written from the mobile's newest pure ACK, with its latest values: data may have come since.
    fn acknowledge(
        &mut self,
        now: Instant,
        number: Seq,
        window: AdvertisedWindow,
        copies: u8,
        out: &mut Outbox,
    ) {
        let is_said = self.facts.acked.is_some_and(|acked| number <= acked);
        let Some((ip, tcp)) = parse(&self.pure_ack).filter(|_| is_said) else { return };
        let NewestValues { next, timestamps, window: as_before } = self.facts.newest;
        let copies = self.copies.take(copies, number, tcp.ack, window);
        if copies == 0 {
            return;
        }
        let window = match window {
            AdvertisedWindow::Zero => 0,
            AdvertisedWindow::AsBefore => as_before,
        };
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let header = TcpHeader {
            src_port: tcp.src_port,
            dst_port: tcp.dst_port,
            seq: next.unwrap_or(tcp.seq),
            ack: number,
            flags: Flags::ACK,
            window,
            urgent: 0,
            options: &options,
        };
        let packet = written(&ip, &header);
        let id = out.next_id();
        out.note(now, self.number, id, TraceKind::Said { number, window, copies });
        for _ in 0..copies {
            let packet = packet.clone();
            out.send(now, Side::Fixed, LeavingNow { id, is_passing: false, replaceable: None, packet });
        }
        self.facts.note_passed(now, number);
    }
}

/// A packet of these headers, without data.
fn written(ip: &IpView<'_>, header: &TcpHeader<'_>) -> Vec<u8> {
    let mut packet = Vec::new();
    let hop_limit = ip.hop_limit;
    IpHeader { hop_limit, ..IpHeader::plain(ip.src, ip.dst, protocol::TCP) }.emit(header.len(), &mut packet);
    header.emit(ip.src, ip.dst, (&[], &[]), Checksums::Verify, &mut packet);
    packet
}
