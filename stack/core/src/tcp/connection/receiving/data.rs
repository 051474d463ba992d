//! Takes arriving payload: cuts it to the window, inserts it and reports it to the receiver agent.

use std::time::Duration;

use super::{Around, Receiving};
use crate::Seq;
use crate::agent::{AckRequest, AckRule, Arrival, Class, Why};
use crate::narrow::as_u32;
use crate::tcp::connection::ConnectionStats;
use crate::tcp::connection::ingress::{Arrived, segments_in};
use crate::tcp::connection::opening::Negotiated;
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::ledger::{AckKind, Facts};
use crate::tcp::recv_buffer::Inserted;
use crate::trace::{DropReason, TraceKind};
use crate::wire::{Ecn, Flags, HopwiseOption, OfferFlags, RateRequest, TcpView};

impl Receiving {
    /// The four cases of RFC 9293 §3.4. ACK, RST and URG pass even a zero window (MUST-66). A segment that begins
    /// exactly at the expected number is therefore accepted, although its data finds no room.
    pub(crate) fn is_acceptable(&self, segment: &TcpView<'_>) -> bool {
        let (seq, len) = (segment.seq, segment.sequence_len());
        let (nxt, edge) = (self.nxt, self.edge);
        if seq == nxt {
            return true;
        }
        let in_window = |number: Seq| nxt <= number && number < edge;
        in_window(seq) || (len > 0 && in_window(seq + (len - 1)))
    }

    /// Notes data that has already arrived: the peer learns of it by D-SACK (RFC 2883).
    #[cold]
    pub(crate) fn note_old_duplicate(
        &mut self,
        arrived: &Arrived<'_>,
        agreed: &Negotiated,
        stats: &mut ConnectionStats,
    ) {
        let segment = arrived.segment;
        let len = as_u32(segment.payload.len());
        let first = first_byte(segment);
        let end = first + len;
        if len == 0 || end > self.nxt {
            return;
        }
        stats.segments_duplicate += u64::from(arrived.segments());
        if agreed.sack {
            self.ledger.twice = Some((first, end));
        }
    }

    /// Takes an urgent pointer. Returns whether the application should learn its new end (MUST-31, MUST-32).
    pub(crate) fn take_urgent(&mut self, segment: &TcpView<'_>) -> bool {
        // The pointer names the first octet that is no longer urgent (MUST-62).
        let end = segment.seq + u32::from(segment.urgent);
        let is_news = self.urgent_end.map_or(self.read_to() < end, |known| known < end);
        if is_news {
            self.urgent_end = Some(end);
        }
        is_news
    }

    /// Takes the new part of the payload that fits; the ledger decides which ACKs are owed. `rtt` is the sample of its
    /// echo. Returns whether there is more to read.
    pub(crate) fn take_payload(
        &mut self,
        cx: &mut Cx<'_>,
        arrived: &Arrived<'_>,
        rtt: Option<Duration>,
        around: Around<'_>,
        stats: &mut ConnectionStats,
    ) -> bool {
        self.largest = self.largest.max(as_u32(bytes_each(arrived)));
        let (start, payload) = self.cut_to_window(arrived.segment);
        let is_beyond = payload.is_empty();
        if is_beyond {
            // A probe of a closed window, or old data: either way the peer needs an ACK of the current state.
            self.note_old_duplicate(arrived, around.agreed, stats);
            let reason = if self.edge <= self.nxt { DropReason::NoBuffer } else { DropReason::OutOfWindow };
            self.refuse_payload(cx, reason, around);
            return false;
        }
        let offset = start.bytes_since(self.nxt);
        let looked_at = match cx.memory {
            Memory::Spent => self.buffer.fits_as_it_is(offset, as_u32(payload.len())),
            Memory::Plenty | Memory::Tight => as_u32(payload.len()),
        };
        if looked_at == 0 {
            self.refuse_payload(cx, DropReason::NoMemory, around);
            return false;
        }
        let inserted = self.buffer.insert(offset, &payload[..looked_at as usize]);
        self.note_inserted(arrived, &inserted, around.agreed);
        count(cx, &inserted, u64::from(segments_in(looked_at, arrived.segment_bytes)), stats);
        self.report_arrival(cx, arrived, &inserted, (looked_at, rtt), around);
        inserted.advanced > 0
    }

    fn refuse_payload(&mut self, cx: &mut Cx<'_>, reason: DropReason, around: Around<'_>) {
        cx.dropped(reason);
        self.force_ack(cx, AckKind::Duplicate, Why::plain(AckRule::Forced), around);
    }

    /// The part of the payload that is new and fits the promised window.
    fn cut_to_window<'a>(&self, segment: &TcpView<'a>) -> (Seq, &'a [u8]) {
        let start = first_byte(segment);
        let old = (self.nxt.bytes_since(start) as usize).min(segment.payload.len());
        let payload = &segment.payload[old..];
        let start = start.max(self.nxt);
        let room = self.edge.bytes_since(start) as usize;
        (start, &payload[..payload.len().min(room)])
    }

    fn note_inserted(&mut self, arrived: &Arrived<'_>, inserted: &Inserted, agreed: &Negotiated) {
        let segment = arrived.segment;
        let nxt = self.nxt;
        self.nxt += inserted.advanced;
        self.edge = self.edge.max(self.nxt);
        if agreed.sack {
            let first = first_byte(segment);
            let old_part = nxt.bytes_since(first).min(as_u32(segment.payload.len()));
            if old_part > 0 {
                self.ledger.twice = Some((first, first + old_part));
            } else if let Some((from, to)) = inserted.duplicate {
                self.ledger.twice = Some((nxt + from, nxt + to));
            }
        }
    }

    /// The segment's request for ACKs. If it has both forms, the count of segments wins.
    fn ack_request_of(&mut self, segment: &TcpView<'_>, agreed: &Negotiated) -> Option<AckRequest> {
        let rate = match segment.options.rate_request {
            Some(RateRequest::Ask(rate)) if agreed.use_ack_rate => Some(AckRequest::Rate(rate)),
            _ => None,
        };
        self.was_asked |= rate.is_some();
        match segment.options.hopwise {
            Some(HopwiseOption::Notes(notes)) if agreed.has(OfferFlags::USE_ACK_AFTER) => {
                notes.ack_after.map(AckRequest::After).or(rate)
            }
            _ => rate,
        }
    }

    /// Reports the arrival to the receiver agent, once a segment. `len` counts the bytes that were handled. `rtt` is
    /// the sample of the first segment.
    fn report_arrival(
        &mut self,
        cx: &mut Cx<'_>,
        arrived: &Arrived<'_>,
        inserted: &Inserted,
        (len, rtt): (u32, Option<Duration>),
        around: Around<'_>,
    ) {
        let (segment, agreed) = (arrived.segment, around.agreed);
        let Ok(class) = inserted.verdict else {
            return self.force_ack(cx, AckKind::Duplicate, Why::plain(AckRule::Forced), around);
        };
        let ack_request = self.ack_request_of(segment, agreed);
        let (bytes, read) = match inserted.advanced {
            0 => (as_u32(segment.payload.len()), len),
            advanced => (advanced, advanced.min(len)),
        };
        let arrival = Arrival {
            push: segment.flags.contains(Flags::PSH),
            ce: arrived.ecn == Ecn::Ce,
            ack_request,
            rtt,
            ..Arrival::new(cx.now, class, bytes)
        };
        let each = arrived.segment_bytes.map_or(bytes, |each| u32::from(each).max(1));
        let count = segments_in(read, arrived.segment_bytes);
        let facts = Facts {
            timestamp: self.timestamp_of(cx.now, segment, agreed),
            part_of: self.stretch_of(segment.seq, agreed),
            ..self.facts(around)
        };
        if class != Class::InOrder {
            cx.trace(TraceKind::Placed { class, stretches: facts.view.holes });
        }
        if let Some(number) = self.ledger.on_arrival(cx, &arrival, (count, each), &facts) {
            self.last_ack_decided = number;
            if number < self.nxt {
                // The rest of the read is the earliest data that the next ACK acknowledges.
                self.take_timestamp(cx.now, segment, agreed);
            }
        }
    }

    /// Notes the number of the peer's FIN.
    pub(crate) fn place_fin(&mut self, segment: &TcpView<'_>) {
        if segment.flags.contains(Flags::FIN) && self.fin.is_none() {
            let at = segment.seq + (segment.sequence_len() - 1);
            // The FIN must be within the promised window; else the data before it was cut, and it comes again.
            if at <= self.edge && self.nxt <= at {
                self.fin = Some(at);
            }
        }
    }

    /// Takes the FIN's number.
    pub(crate) fn take_fin(&mut self) {
        self.nxt += 1;
        self.edge = self.edge.max(self.nxt);
    }

    /// Answers a FIN that came before earlier data: it is out of order, as data would be (RFC 5681 §4.2).
    pub(crate) fn answer_early_fin(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>, around: Around<'_>) {
        let is_bare_fin = segment.flags.contains(Flags::FIN) && segment.payload.is_empty();
        if is_bare_fin && self.nxt < segment.seq {
            self.force_ack(cx, AckKind::Duplicate, Why::plain(AckRule::NotInOrder), around);
        }
    }
}

fn count(cx: &mut Cx<'_>, inserted: &Inserted, segments: u64, stats: &mut ConnectionStats) {
    stats.bytes_received += u64::from(inserted.advanced);
    match inserted.verdict {
        Err(reason) => cx.dropped(reason),
        Ok(Class::OutOfOrder) => stats.segments_out_of_order += segments,
        Ok(Class::Duplicate) => stats.segments_duplicate += segments,
        Ok(Class::InOrder | Class::FillsHole) => stats.segments_in_order += segments,
    }
}

/// The number of the first byte of payload; a SYN takes the number before it.
fn first_byte(segment: &TcpView<'_>) -> Seq {
    segment.seq + u32::from(segment.flags.contains(Flags::SYN))
}

/// Payload of each segment in the read.
fn bytes_each(arrived: &Arrived<'_>) -> usize {
    let len = arrived.segment.payload.len();
    arrived.segment_bytes.map_or(len, |each| len.min(each.into())).max(1)
}
