//! Writes segments: the only place that builds a TCP header for a connection, ACKs included.

use super::Outbound;
use super::egress::{LinkHelp, SegmentPlan, What};
use super::opening::Wishes;
use super::receiving::Receiving;
use crate::agent::{AckNote, AckRequest, Allowance, DataNote};
use crate::narrow::as_u16;
use crate::tcp::cx::Cx;
use crate::tcp::ledger::DecidedAck;
use crate::trace::StateName;
use crate::wire::{
    Ecn, Flags, HopwiseOption, IpHeader, Notes, OfferFlags, RateRequest, TcpHeader, TcpOptions, Timestamps,
    protocol,
};
use crate::{Instant, Seq};

/// Writing a segment promises a window and uses up an identification.
impl Outbound {
    /// The ledger gives the ACK's number, timestamp echo and note. The window and SACK blocks are read now.
    pub(super) fn write_segment(
        &mut self,
        receiving: &mut Receiving,
        cx: &Cx<'_>,
        (plan, ack): (&SegmentPlan, Option<&DecidedAck>),
        allowed: Option<&Allowance>,
        link: &LinkHelp,
        out: &mut Vec<u8>,
    ) {
        let has_ack = plan.flags.contains(Flags::ACK);
        let data = self.data_note(plan, allowed);
        let mut options = TcpOptions::default();
        self.put_options(receiving, cx.now, (plan, ack), &data, &mut options);
        let (number, window) = match data.cwnd.filter(|_| plan.carries_cwnd(&self.opening)) {
            Some(cwnd) => (receiving.last_told, cwnd),
            None => {
                self.add_sack_blocks(receiving, plan, ack, &mut options);
                self.number_and_window(receiving, cx, plan, ack)
            }
        };
        let (urgent_flag, urgent) = self.urgent_for(plan);
        let mut flags = plan.flags | urgent_flag;
        if receiving.ecn_echo && has_ack && plan.what != What::Syn {
            flags |= Flags::ECE;
        }
        let header = TcpHeader {
            src_port: self.opening.ends.local.port,
            dst_port: self.opening.remote().port,
            seq: plan.seq,
            ack: number,
            flags,
            window,
            urgent,
            options: &options,
        };
        let id = self.next_identification(plan);
        let payload = self.sending.payload_at(plan.seq, plan.len);
        self.ip_header(plan, id).emit(header.len() + plan.len as usize, out);
        let (local, remote) = (self.opening.ends.local.ip, self.opening.remote().ip);
        if link.lends {
            header.emit_head(local, remote, plan.len as usize, out);
        } else {
            header.emit(local, remote, payload, link.checksums, out);
        }
    }

    fn number_and_window(
        &self,
        receiving: &mut Receiving,
        cx: &Cx<'_>,
        plan: &SegmentPlan,
        ack: Option<&DecidedAck>,
    ) -> (Seq, u16) {
        if !plan.flags.contains(Flags::ACK) {
            return (Seq(0), self.window_for(receiving, plan, Seq(0)));
        }
        let number = receiving.tell_number(cx.memory, ack.map(|ack| ack.number), self.around());
        (number, self.window_for(receiving, plan, number))
    }

    /// The notes that sender agents add to this segment.
    fn data_note(&self, plan: &SegmentPlan, allowed: Option<&Allowance>) -> DataNote {
        match allowed {
            Some(allowed) if plan.len > 0 && self.opening.agreed.tells_anything() => {
                self.senders.note(plan.seq, &self.send_view(), allowed)
            }
            _ => DataNote::default(),
        }
    }

    fn window_for(&self, receiving: &mut Receiving, plan: &SegmentPlan, number: Seq) -> u16 {
        match plan.what {
            What::Reset => 0,
            // Never scaled on a SYN (RFC 7323 §2.2); the receive buffer keeps the promise.
            What::Syn => u16::try_from(receiving.buffer.limit()).unwrap_or(u16::MAX),
            _ => receiving.promise_window(number, &self.opening.agreed),
        }
    }

    fn put_options(
        &self,
        receiving: &Receiving,
        now: Instant,
        (plan, ack): (&SegmentPlan, Option<&DecidedAck>),
        data: &DataNote,
        options: &mut TcpOptions,
    ) {
        if plan.what == What::Syn {
            *options = self.syn_options(receiving, now);
            return;
        }
        if self.opening.agreed.timestamps {
            let echo = ack.and_then(|ack| ack.echo).unwrap_or(receiving.ts_recent);
            options.timestamps = Some(Timestamps { value: self.opening.ts_now(now), echo });
        }
        if plan.what == What::Reset {
            return;
        }
        if self.opening.agreed.tells_anything() {
            self.add_notes(ack, data, options);
        }
    }

    #[cold]
    fn syn_options(&self, receiving: &Receiving, now: Instant) -> TcpOptions {
        let link_mtu = self.mtu.link;
        if self.state == StateName::SynReceived {
            self.opening.syn_ack_options(now, receiving.ts_recent, link_mtu, &self.config)
        } else {
            self.opening.syn_options(
                now,
                Wishes { receiver: receiving.ledger.needs(), senders: self.senders.needs() },
                link_mtu,
                &self.config,
            )
        }
    }

    #[inline(never)]
    fn add_notes(&self, ack: Option<&DecidedAck>, data: &DataNote, options: &mut TcpOptions) {
        let note: AckNote = ack.map_or_else(AckNote::default, |ack| ack.note);
        let asked = data.ack_request;
        let notes = Notes {
            cwnd: data.cwnd.filter(|_| {
                self.opening.agreed.has(OfferFlags::TELL_CWND)
                    && !self.opening.agreed.has(OfferFlags::TELL_IN_WINDOW)
            }),
            dup_count: note.dup_count.filter(|_| self.opening.agreed.has(OfferFlags::TELL_DUP_COUNT)),
            ack_after: match asked {
                Some(AckRequest::After(segments)) if self.opening.agreed.has(OfferFlags::TELL_ACK_AFTER) => {
                    Some(segments)
                }
                _ => None,
            },
        };
        if notes != Notes::default() {
            options.hopwise = Some(HopwiseOption::Notes(notes));
        }
        if let Some(AckRequest::Rate(rate)) = asked.filter(|_| self.opening.agreed.tell_ack_rate) {
            options.rate_request = Some(RateRequest::Ask(rate));
        }
    }

    /// SACK blocks give way on a segment that is full of data.
    fn add_sack_blocks(
        &self,
        receiving: &Receiving,
        plan: &SegmentPlan,
        ack: Option<&DecidedAck>,
        options: &mut TcpOptions,
    ) {
        let twice = ack.and_then(|ack| ack.twice);
        let is_told = !matches!(plan.what, What::Syn | What::Reset);
        if !is_told || !self.opening.agreed.sack || twice.is_none() && receiving.buffer.holes() == 0 {
            return;
        }
        let part_of = ack.and_then(|ack| ack.part_of);
        receiving.order_sack_blocks(twice, part_of, &self.opening.agreed, options);
        let most = self.opening.room_in(self.mtu.size()) as usize;
        while !options.sack.is_empty() && options.emitted_len() + plan.each as usize > most {
            options.sack.pop();
        }
    }

    /// Sets URG on segments that begin before the end of urgent data.
    fn urgent_for(&self, plan: &SegmentPlan) -> (Flags, u16) {
        match self.sending.urgent_end {
            Some(end) if plan.len > 0 && plan.seq < end => {
                (Flags::URG, u16::try_from(end - plan.seq).unwrap_or(u16::MAX))
            }
            _ => (Flags(0), 0),
        }
    }

    fn ip_header(&self, plan: &SegmentPlan, id: u16) -> IpHeader<'_> {
        let changed = self.changed_options.as_deref();
        IpHeader {
            src: self.opening.ends.local.ip,
            dst: self.opening.remote().ip,
            protocol: protocol::TCP,
            hop_limit: changed.map_or(self.config.hop_limit, |changed| changed.hop_limit),
            // Only new data may be marked as ECN-capable (RFC 3168 §6.1.4, 6.1.5).
            ecn: if plan.is_all_new(&self.sending) && self.opening.sends_ect() {
                Ecn::Ect0
            } else {
                Ecn::NotEct
            },
            dscp: changed.map_or(self.config.dscp, |changed| changed.dscp),
            dont_fragment: plan.forbids_cutting(&self.opening, &self.mtu),
            id,
            source_route: self.opening.source_route(),
        }
    }

    /// Each packet has its own identification; a bundle has one for each segment. RFC 6864 wants this for packets that
    /// may be fragmented. In the others it tells a retransmission from a copy that the network made.
    fn next_identification(&mut self, plan: &SegmentPlan) -> u16 {
        let first = self.opening.first_identification(self.sending.iss);
        first.wrapping_add(self.urges.count_packets(as_u16(plan.segments() as usize)))
    }
}
