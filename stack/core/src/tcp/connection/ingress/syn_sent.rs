//! RFC 9293 §3.10.7.3: an answer to our SYN, or the peer's own SYN when both open at once.

use super::{Arrived, Connection, Disposition};
use crate::agent::{Count, LossKind, Rule, Why};
use crate::tcp::connection::CloseReason;
use crate::tcp::cx::Cx;
use crate::tcp::ledger::AckKind;
use crate::tcp::timers::Timer;
use crate::trace::{DropReason, StateName};
use crate::wire::{Flags, TcpView};

impl Connection {
    #[cold]
    pub(super) fn handle_in_syn_sent(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        let segment = arrived.segment;
        let has_ack = segment.flags.contains(Flags::ACK);
        let is_our_ack =
            has_ack && segment.ack == self.sending.nxt() && self.sending.nxt() != self.sending.iss();
        if segment.flags.contains(Flags::RST) {
            if is_our_ack {
                self.finish(cx, CloseReason::Refused);
            } else {
                cx.dropped(DropReason::RstNotExact);
            }
            return Disposition::Done;
        }
        if has_ack && !is_our_ack {
            cx.dropped(DropReason::AckOfUnsent);
            return Disposition::Refuse;
        }
        if !segment.flags.contains(Flags::SYN) {
            cx.dropped(DropReason::NoAck);
            return Disposition::Done;
        }
        self.take_syn(cx, segment);
        if is_our_ack {
            self.complete_open(cx, arrived);
        } else {
            // Both sides opened at once (MUST-10): our SYN goes again, now with an ACK.
            self.enter(cx, StateName::SynReceived);
            self.urges.set_syn(true);
        }
        Disposition::Done
    }

    fn complete_open(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) {
        self.establish(cx, arrived.segment);
        self.count_hops(cx, arrived);
        if arrived.segment.sequence_len() > 1 {
            self.take_data(cx, arrived);
            self.take_fin(cx, arrived);
        }
        // One ACK for the SYN and for what came with it, whatever the agent thinks of that.
        if arrived.segment.sequence_len() == 1 || !self.receiving.has_decided_all() {
            self.force_ack(cx, AckKind::InOrder, Why::plain(Rule::Forced));
        }
    }

    /// The handshake is over: our SYN is acknowledged.
    #[cold]
    pub(super) fn establish(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) {
        self.sending.open();
        self.timers.disarm(Timer::UserTimeout);
        self.timers.disarm(Timer::Retransmit);
        self.sample_handshake(cx, segment);
        self.unmet().trace_unmeasured(cx);
        self.begin_after_lost_syn(cx);
        self.enter(cx, StateName::Established);
        self.events.connected = true;
        self.urges.set_syn(false);
        self.sending.expect_window_of(segment);
        self.take_window(cx, segment);
        self.note_alive(cx);
    }

    /// A SYN that timed out leaves one segment to begin with (RFC 5681 §3.1). Agents are told now, when the size of a
    /// segment is known.
    fn begin_after_lost_syn(&mut self, cx: &Cx<'_>) {
        let nth = self.loss.take_syn_timeouts();
        if nth > 0 {
            self.ask_for_reduction(cx, LossKind::Timeout { nth }, Count::default());
        }
    }
}
