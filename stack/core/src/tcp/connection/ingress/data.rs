//! The last three steps of an arriving segment: urgent data, the segment's data, and its FIN.

use std::time::Duration;

use super::{Arrived, Disposition, Step};
use crate::Instant;
use crate::agent::{AckRule, Why};
use crate::tcp::connection::receiving::Around;
use crate::tcp::connection::{CloseReason, Connection};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::AckKind;
use crate::tcp::timers::Timer;
use crate::trace::{DropReason, StateName};
use crate::wire::{Flags, TcpView};

impl Connection {
    /// Sixth: URG.
    pub(super) fn take_urgent(&mut self, _: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if segment.flags.contains(Flags::URG) && !self.state.peer_has_closed() {
            self.events.urgent |= self.receiving.take_urgent(segment);
        }
        Step::Next
    }

    pub(in crate::tcp::connection) fn take_data(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        self.receiving.take_ecn_mark(cx, arrived, self.opening.agreed());
        self.receiving.take_notes(segment, self.opening.agreed());
        if segment.payload.is_empty() {
            return Step::Next;
        }
        let rtt = self.hear_echo(cx.now, segment);
        if self.state.peer_has_closed() {
            return Step::Drop(DropReason::DataAfterClose);
        }
        if self.receiving.is_deaf() {
            return self.refuse_data(cx);
        }
        let around = Around::new(&self.opening, &self.path, self.sending.mss());
        self.events.readable |= self.receiving.take_payload(cx, arrived, rtt, around, &mut self.stats);
        Step::Next
    }

    /// An end that only receives measures round trips by the echoes of its timestamps on data. Each sample contains the
    /// peer's waiting time, so only the minimum counts for the path. The receiver agent gets each sample while nothing
    /// of our own, which would measure better, is in flight.
    #[inline]
    fn hear_echo(&mut self, now: Instant, segment: &TcpView<'_>) -> Option<Duration> {
        let echo = self.receiving.new_echo(segment, self.opening.agreed())?;
        let rtt = self.opening.echoed_rtt(now, echo);
        self.path.rtt.min = [self.path.rtt.min, rtt].into_iter().flatten().min();
        rtt.filter(|_| self.loss.board().is_empty())
    }

    /// Refuses data for an application that has gone: an ACK would claim that the application has it (SHLD-3).
    #[cold]
    fn refuse_data(&mut self, cx: &mut Cx<'_>) -> Step {
        cx.dropped(DropReason::DataAfterClose);
        self.urges.set_reset(true);
        self.finish(cx, CloseReason::Aborted);
        Step::End(Disposition::Done)
    }

    /// Eighth: the FIN of this segment, or an earlier one that waited for the data before it.
    pub(in crate::tcp::connection) fn take_fin(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let around = Around::new(&self.opening, &self.path, self.sending.mss());
        self.receiving.place_fin(arrived.segment);
        if !self.receiving.is_fin_next() || self.state.peer_has_closed() {
            self.receiving.answer_early_fin(cx, arrived.segment, around);
            return Step::Next;
        }
        self.receiving.take_fin();
        self.events.peer_closed = true;
        self.events.readable = true;
        self.unmet().trace_never_asked(cx);
        self.force_ack(cx, AckKind::InOrder, Why::plain(AckRule::Forced));
        match self.state {
            StateName::FinWait1 => self.enter(cx, StateName::Closing),
            StateName::FinWait2 => self.enter_time_wait(cx),
            _ => self.enter(cx, StateName::CloseWait),
        }
        Step::Next
    }

    /// Only 2 MSL are left to wait (MUST-13), without need for the buffers.
    #[cold]
    pub(in crate::tcp::connection) fn enter_time_wait(&mut self, cx: &mut Cx<'_>) {
        self.enter(cx, StateName::TimeWait);
        for timer in Timer::ALL {
            self.timers.disarm(timer);
        }
        self.timers.arm(Timer::Linger, cx.now + 2 * self.config.msl);
        self.sending.relax();
        self.loss.relax_board();
        self.receiving.relax_ledger();
        if self.closed.is_none() {
            self.events.closed = true;
        }
    }
}
