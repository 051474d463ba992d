//! Seventh and eighth: the segment's data and its FIN; and what is urgent among it.

use std::time::Duration;

use super::{Arrived, Connection, Disposition, Step, segments_in};
use crate::Seq;
use crate::agent::{AckRequest, Class, Rule, Why};
use crate::tcp::connection::CloseReason;
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::ledger::{AckKind, Heard, Stretch};
use crate::tcp::recv_buffer::{InsertVerdict, Inserted};
use crate::tcp::timers::Timer;
use crate::trace::{DropReason, StateName, TraceKind};
use crate::wire::{Ecn, Flags, HopwiseOption, RateRequest, TcpView};

impl Connection {
    /// Sixth: URG. The data stays in line; the application learns how far it reaches (MUST-31, MUST-32).
    pub(super) fn take_urgent(&mut self, _: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::URG) || self.state.peer_has_closed() {
            return Step::Next;
        }
        // The pointer names the first octet that is not urgent any more (MUST-62).
        let end = segment.seq + u32::from(segment.urgent);
        let is_news = self.rcv.urgent_end.map_or(self.read_to() < end, |known| known < end);
        if is_news {
            self.rcv.urgent_end = Some(end);
            self.events.urgent = true;
        }
        Step::Next
    }

    pub(super) fn take_data(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        self.take_ecn_mark(cx, arrived);
        self.take_notes(segment);
        if segment.payload.is_empty() {
            return Step::Next;
        }
        let rtt = self.hear_echo(cx.now, segment);
        if self.state.peer_has_closed() {
            return Step::Drop(DropReason::DataAfterClose);
        }
        if self.rcv.is_deaf {
            return self.refuse_data(cx);
        }
        self.rcv.largest = self.rcv.largest.max(bytes_each(arrived) as u32);
        let (start, payload) = self.cut_to_window(segment);
        let is_beyond = payload.is_empty();
        if is_beyond {
            // A probe of a closed window, or data that we have: either way the peer has to hear where we are.
            self.note_old_duplicate(arrived);
            let reason =
                if self.rcv.edge <= self.rcv.nxt { DropReason::NoBuffer } else { DropReason::OutOfWindow };
            cx.dropped(reason);
            self.force_ack(cx, AckKind::Duplicate, Why::plain(Rule::Forced));
            return Step::Next;
        }
        let end = start.bytes_since(self.rcv.nxt) + payload.len() as u32;
        if cx.memory == Memory::Spent && self.rcv.buffer.grows_for(end) {
            cx.dropped(DropReason::NoMemory);
            self.force_ack(cx, AckKind::Duplicate, Why::plain(Rule::Forced));
            return Step::Next;
        }
        let inserted = self.rcv.buffer.insert(start.bytes_since(self.rcv.nxt), payload);
        self.note_inserted(cx, arrived, &inserted, payload.len() as u32);
        self.report_arrival(cx, arrived, &inserted, (payload.len() as u32, rtt));
        Step::Next
    }

    /// What of the payload is new and fits the window that was promised.
    fn cut_to_window<'a>(&self, segment: &TcpView<'a>) -> (Seq, &'a [u8]) {
        let start = first_byte(segment);
        let old = (self.rcv.nxt.bytes_since(start) as usize).min(segment.payload.len());
        let payload = &segment.payload[old..];
        let start = start.max(self.rcv.nxt);
        let room = self.rcv.edge.bytes_since(start) as usize;
        (start, &payload[..payload.len().min(room)])
    }

    /// Data for an application that has gone: it must not be acknowledged as though someone had it (SHLD-3).
    #[cold]
    fn refuse_data(&mut self, cx: &mut Cx<'_>) -> Step {
        cx.dropped(DropReason::DataAfterClose);
        self.urges.rst = true;
        self.finish(cx, CloseReason::Aborted);
        Step::End(Disposition::Done)
    }

    fn note_inserted(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>, inserted: &Inserted, len: u32) {
        let segment = arrived.segment;
        let count = u64::from(segments_in(len, arrived.segment_bytes));
        let nxt = self.rcv.nxt;
        self.rcv.nxt += inserted.advanced;
        if inserted.advanced > 0 {
            self.events.readable = true;
            self.stats.bytes_received += u64::from(inserted.advanced);
        }
        self.rcv.edge = self.rcv.edge.max(self.rcv.nxt);
        if self.opening.agreed().sack {
            let first = first_byte(segment);
            let old_part = nxt.bytes_since(first).min(segment.payload.len() as u32);
            if old_part > 0 {
                self.ledger.came_twice((first, first + old_part));
            } else if let Some((from, to)) = inserted.duplicate {
                self.ledger.came_twice((nxt + from, nxt + to));
            }
        }
        match inserted.verdict {
            InsertVerdict::TooManyHoles => cx.dropped(DropReason::TooManyHoles),
            InsertVerdict::NoRoom => cx.dropped(DropReason::NoBuffer),
            InsertVerdict::OutOfOrder => self.stats.segments_out_of_order += count,
            InsertVerdict::Duplicate => self.stats.segments_duplicate += count,
            InsertVerdict::InOrder | InsertVerdict::FillsHole => {
                self.stats.segments_in_order += count;
            }
        }
    }

    /// What the segment asks of our ACKs. Where it asks in both forms, the count of segments says more.
    fn ack_request_of(&mut self, segment: &TcpView<'_>) -> Option<AckRequest> {
        let rate = match segment.options.rate_request {
            Some(RateRequest::Ask(rate)) if self.opening.agreed().use_ack_rate => {
                Some(AckRequest::Rate(rate))
            }
            _ => None,
        };
        self.rcv.was_asked |= rate.is_some();
        match segment.options.hopwise {
            Some(HopwiseOption::Notes(notes)) if self.opening.agreed().use_ack_after() => {
                notes.ack_after.map(AckRequest::After).or(rate)
            }
            _ => rate,
        }
    }

    /// The receiver agent hears of it, once a segment. `len` counts the bytes that were looked at, and `rtt` came back
    /// with the first of them.
    fn report_arrival(
        &mut self,
        cx: &mut Cx<'_>,
        arrived: &Arrived<'_>,
        inserted: &Inserted,
        (len, rtt): (u32, Option<Duration>),
    ) {
        let segment = arrived.segment;
        let class = match inserted.verdict {
            InsertVerdict::InOrder => Class::InOrder,
            InsertVerdict::FillsHole => Class::FillsHole,
            InsertVerdict::OutOfOrder => Class::OutOfOrder,
            InsertVerdict::Duplicate => Class::Duplicate,
            InsertVerdict::TooManyHoles | InsertVerdict::NoRoom => {
                return self.force_ack(cx, AckKind::Duplicate, Why::plain(Rule::Forced));
            }
        };
        let ack_request = self.ack_request_of(segment);
        let (bytes, read) = match inserted.advanced {
            0 => (segment.payload.len() as u32, len),
            advanced => (advanced, advanced.min(len)),
        };
        let heard = Heard {
            class,
            bytes,
            each: arrived.segment_bytes.map_or(bytes, |each| u32::from(each).max(1)),
            push: segment.flags.contains(Flags::PSH),
            ce: arrived.ecn == Ecn::Ce,
            ack_request,
            rtt,
            timestamp: self.timestamp_of(cx, segment),
            part_of: self.stretch_of(segment.seq),
        };
        let count = segments_in(read, arrived.segment_bytes);
        let facts = super::super::facts(&self.rcv, &self.path, self.recv_mss());
        if class != Class::InOrder {
            cx.trace(TraceKind::Placed { class, stretches: facts.holes });
        }
        if let Some(number) = self.ledger.on_arrival(cx, &heard, count, &facts) {
            self.rcv.last_ack_decided = number;
            if number < self.rcv.nxt {
                // What is left of the read is the earliest that the next ACK acknowledges.
                self.take_timestamp(cx, segment);
            }
        }
    }

    /// The stretch above a hole that has this number, for SACK blocks.
    pub(in crate::tcp::connection) fn stretch_of(&self, number: Seq) -> Option<Stretch> {
        if !self.opening.agreed().sack || number <= self.rcv.nxt {
            return None;
        }
        let held = self.rcv.buffer.stretch_at(number.bytes_since(self.rcv.nxt));
        held.map(|(from, to)| (self.rcv.nxt + from, self.rcv.nxt + to))
    }

    /// RFC 3168 §6.1.3: a mark is echoed until the peer says that it slowed down.
    fn take_ecn_mark(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) {
        if !self.opening.agreed().ecn {
            return;
        }
        if arrived.segment.flags.contains(Flags::CWR) {
            self.rcv.ecn_echo = false;
        }
        if arrived.ecn == Ecn::Ce {
            self.rcv.ecn_echo = true;
            cx.trace(TraceKind::MarkSeen);
        }
    }

    fn take_notes(&mut self, segment: &TcpView<'_>) {
        if self.opening.agreed().use_cwnd()
            && let Some(HopwiseOption::Notes(notes)) = segment.options.hopwise
            && notes.cwnd.is_some()
        {
            self.rcv.peer_cwnd = notes.cwnd;
        }
    }

    /// Eighth: FIN, whether it stands in this segment or was waiting for the data before it.
    pub(super) fn take_fin(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if segment.flags.contains(Flags::FIN) && self.rcv.fin.is_none() {
            let at = segment.seq + (segment.sequence_len() - 1);
            // Its place must be within what we promised; else the data before it was cut, and it comes again.
            if at <= self.rcv.edge && self.rcv.nxt <= at {
                self.rcv.fin = Some(at);
            }
        }
        if self.rcv.fin != Some(self.rcv.nxt) || self.state.peer_has_closed() {
            self.answer_early_fin(cx, segment);
            return Step::Next;
        }
        self.rcv.nxt += 1;
        self.rcv.edge = self.rcv.edge.max(self.rcv.nxt);
        self.events.peer_closed = true;
        self.events.readable = true;
        self.unmet().trace_never_asked(cx);
        self.force_ack(cx, AckKind::InOrder, Why::plain(Rule::Forced));
        match self.state {
            StateName::FinWait1 => self.enter(cx, StateName::Closing),
            StateName::FinWait2 => self.enter_time_wait(cx),
            _ => self.enter(cx, StateName::CloseWait),
        }
        Step::Next
    }

    /// A FIN before the data in front of it is out of order, as data would be (RFC 5681 §4.2).
    fn answer_early_fin(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) {
        let is_bare_fin = segment.flags.contains(Flags::FIN) && segment.payload.is_empty();
        if is_bare_fin && self.rcv.nxt < segment.seq {
            self.force_ack(cx, AckKind::Duplicate, Why::plain(Rule::NotInOrder));
        }
    }

    /// Only 2 MSL are left to wait (MUST-13); the buffers are not needed for that.
    #[cold]
    pub(in crate::tcp::connection) fn enter_time_wait(&mut self, cx: &mut Cx<'_>) {
        self.enter(cx, StateName::TimeWait);
        for timer in Timer::ALL {
            self.timers.disarm(timer);
        }
        self.timers.arm(Timer::Linger, cx.now + 2 * self.config.msl);
        self.snd.buffer.relax();
        self.board.relax();
        self.ledger.relax();
        if self.closed.is_none() {
            self.events.closed = true;
        }
    }
}

/// The number of the payload: a SYN has one of its own before it.
pub(super) fn first_byte(segment: &TcpView<'_>) -> Seq {
    segment.seq + u32::from(segment.flags.contains(Flags::SYN))
}

/// Payload of one segment, of those that a read may carry.
fn bytes_each(arrived: &Arrived<'_>) -> usize {
    let len = arrived.segment.payload.len();
    arrived.segment_bytes.map_or(len, |each| len.min(each.into())).max(1)
}
