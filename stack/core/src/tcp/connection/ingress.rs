//! A segment comes in: RFC 9293 §3.10.7 as a list of named steps.
//!
//! Each step looks at one thing and says whether the next one is due. What the peer acknowledges is digested in
//! `acks.rs`.

mod checks;
mod data;
mod syn_sent;

use super::Connection;
use crate::agent::Why;
use crate::tcp::cx::Cx;
use crate::tcp::ledger::AckKind;
use crate::trace::{DropReason, StateName, TraceKind};
use crate::wire::{Ecn, SourceRoute, TcpView};

/// A segment with what its packet said around it.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) segment: &'a TcpView<'a>,
    pub(crate) ecn: Ecn,
    /// As it was when the packet came here.
    pub(crate) hop_limit: u8,
    /// Of the link that it came over.
    pub(crate) crossings: u8,
    /// Payload bytes per segment when the link coalesced several.
    pub(crate) segment_bytes: Option<u16>,
    /// The way back, when the packet came by a source route.
    pub(crate) source_route: Option<&'a SourceRoute>,
}

impl Arrived<'_> {
    /// Segments that came as one; one without payload counts too.
    pub(super) fn segments(&self) -> u32 {
        segments_in(self.segment.payload.len() as u32, self.segment_bytes)
    }
}

pub(super) fn segments_in(bytes: u32, segment_bytes: Option<u16>) -> u32 {
    segment_bytes.map_or(1, |each| bytes.div_ceil(u32::from(each).max(1))).max(1)
}

/// What the endpoint has to do about the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Done,
    /// Answer it with a RST, as though there were no connection.
    Refuse,
    /// A passive open came to nothing: forget the connection (RFC 9293 MUST-11).
    Forget,
    /// A new connection begins in the place of one in TIME-WAIT, which is over: treat the SYN as new.
    Reopen,
}

/// What a step says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    Drop(DropReason),
    /// Dropped, and answered with an ACK of where we are.
    Answer(DropReason, Answer),
    End(Disposition),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Always,
    /// As often as [`Urges`](super::urges::Urges) allow: neither attackers nor two confused ends may start a storm
    /// (RFC 5961 §7).
    Limited,
}

type StepFn = fn(&mut Connection, &mut Cx<'_>, &Arrived<'_>) -> Step;

/// RFC 9293 §3.10.7.4, in its order.
const STEPS: [StepFn; 8] = [
    Connection::check_seq,
    Connection::check_rst,
    Connection::check_syn,
    Connection::check_ack,
    Connection::take_ack,
    Connection::take_urgent,
    Connection::take_data,
    Connection::take_fin,
];

impl Connection {
    pub(crate) fn handle_segment(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        let segment = arrived.segment;
        self.stats.segments_received += u64::from(arrived.segments());
        self.receiving.note_arrival(cx.now);
        self.arm_relax(cx);
        cx.trace(TraceKind::Received {
            seq: segment.seq,
            ack: segment.ack,
            len: segment.payload.len() as u32,
            segments: arrived.segments() as u16,
            flags: segment.flags.0,
        });
        let disposition = match self.state {
            StateName::Closed => Disposition::Refuse,
            StateName::SynSent => self.handle_in_syn_sent(cx, arrived),
            _ => self.handle_synchronized(cx, arrived),
        };
        self.check();
        disposition
    }

    fn handle_synchronized(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        for step in STEPS {
            match step(self, cx, arrived) {
                Step::Next => {}
                other => return self.conclude(cx, other),
            }
        }
        self.note_alive(cx);
        Disposition::Done
    }

    fn conclude(&mut self, cx: &mut Cx<'_>, step: Step) -> Disposition {
        match step {
            Step::Next => Disposition::Done,
            Step::Drop(reason) => {
                cx.dropped(reason);
                Disposition::Done
            }
            Step::Answer(reason, answer) => {
                cx.dropped(reason);
                self.answer(cx, answer);
                Disposition::Done
            }
            Step::End(disposition) => disposition,
        }
    }

    #[cold]
    fn answer(&mut self, cx: &mut Cx<'_>, answer: Answer) {
        if answer == Answer::Limited && !self.urges.pay_for_answer(cx.now) {
            cx.dropped(DropReason::AnswerRateLimited);
            return;
        }
        self.force_ack(cx, AckKind::Duplicate, Why::plain(crate::agent::Rule::Forced));
    }

    /// The peer lives: keep-alives begin anew.
    fn note_alive(&mut self, cx: &Cx<'_>) {
        let Some(keep_alive) = self.options().keep_alive else { return };
        self.urges.forget_keep_alives();
        if self.state == StateName::Established || self.state == StateName::CloseWait {
            self.arm_keep_alive(cx.now, keep_alive.idle);
        }
    }
}
