//! `adw`: a byte window for ACKs that follows the sender's window and the gaps between segments.
//!
//! Source: TCP-ADW, the adaptive delay window of Al-Zubi, Krunz, Al-Sukkar, Hawa and Darabkh, *Packet Recycling
//! and Delayed ACK for Improving the Performance of TCP over MANETs*.
//!
//! Rule: an ACK leaves when the waiting in-order bytes reach a window w, which never exceeds the sender's window. It
//! also leaves when no segment has come in order for 3·(¾ base + ¼ gap), or for `hold` if that is shorter. Base is the
//! shortest gap so far; a gap counts as at least 50 µs. Before a gap is known the timer is `first`.
//! 1 − θ = gap/(3·base), at most 1, says how slowly the newest segment came.
//! When the sender's window rises, w grows by (1 − θ)·MSS, up to that window and our advertised one. When it falls, or
//! a segment comes out of order, w becomes `least`·MSS. When the timer runs out, w shrinks by (1 − θ)·MSS, but not
//! below `least`·MSS. Segments that are out of order, duplicate, or fill a hole are acknowledged at once.
//!
//! Deviations: while the sender does not report its window, w keeps its first value. Before a gap is known 1 − θ is 1,
//! and the timer is `first`.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRule, Arrival, Basis, Class, RecvView, Why};

use super::gaps::QuickGaps;
use super::hold::{Decision, Holds, LONGEST_MS, host};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// the window at first, after a loss, and the least that the timer leaves
    least: u32 = Form::count("segments", 1, 1_000).is(3),
    /// the timer before a gap is known
    first: Duration = Form::millis(1, LONGEST_MS).is(100),
    /// the longest timer
    hold: Duration = Form::millis(1, LONGEST_MS).is(LONGEST_MS),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "adw",
    rule: "acknowledges when a window of bytes waits that follows the sender's window and the gaps",
    source: "TCP-ADW (Al-Zubi et al.)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| host(Adw::new(args))),
};

#[derive(Debug)]
pub(crate) struct Adw {
    set: Params,
    /// w; `None` until the first segment shows the MSS.
    window_bytes: Option<u32>,
    last_cwnd: Option<u16>,
    gaps: QuickGaps,
}

impl Adw {
    fn new(args: &Args) -> Adw {
        Adw { set: Params::of(args), window_bytes: None, last_cwnd: None, gaps: QuickGaps::new(None) }
    }

    fn least_bytes(&self, view: &RecvView<'_>) -> u32 {
        self.set.least.saturating_mul(view.mss.max(1))
    }

    /// (1 − θ)·MSS.
    fn step(&self, view: &RecvView<'_>) -> u32 {
        self.gaps.slowness().map_or(view.mss, |slowness| slowness.of(view.mss))
    }

    /// Follows the sender's window, and returns w for this segment.
    fn follow(&mut self, view: &RecvView<'_>) -> u32 {
        let mut window = self.window_bytes.unwrap_or(self.least_bytes(view));
        let most = view.peer_cwnd.map(|cwnd| u32::from(cwnd.max(1)).saturating_mul(view.mss.max(1)));
        match (self.last_cwnd, view.peer_cwnd) {
            (Some(before), Some(cwnd)) if cwnd > before => {
                let most = most.unwrap_or(u32::MAX).min(view.advertised);
                window = window.saturating_add(self.step(view)).min(most);
            }
            (Some(before), Some(cwnd)) if cwnd < before => window = self.least_bytes(view),
            _ => {}
        }
        self.last_cwnd = view.peer_cwnd.or(self.last_cwnd);
        self.window_bytes = Some(window);
        window.min(most.unwrap_or(u32::MAX)).max(1)
    }
}

impl Holds for Adw {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        self.gaps.take(arrival.now, arrival.gap_in_order);
        let wanted = self.follow(view);
        let why = Why::new(AckRule::Window, view.owed.bytes, wanted);
        let wait = self.gaps.timer(arrival.gap_in_order).unwrap_or(self.set.first);
        Decision::counted_anew(why, arrival.now + wait.min(self.set.hold))
    }

    fn not_in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        if arrival.class == Class::OutOfOrder {
            self.window_bytes = Some(self.least_bytes(view));
        }
        Decision::AT_ONCE
    }

    fn ran_out(&mut self, view: &RecvView<'_>) {
        let window = self.window_bytes.unwrap_or(0).saturating_sub(self.step(view));
        self.window_bytes = Some(window.max(self.least_bytes(view)));
    }

    hopwise_core::needs!(peer_cwnd);

    /// `None` if `first` or `hold` ends the wait.
    fn basis(&self, due: Instant, now: Instant, _: &RecvView<'_>) -> Option<Basis> {
        self.gaps.basis().filter(|_| due < now + self.set.hold)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("ack_window_bytes", u64::from(self.window_bytes.unwrap_or(0)));
        self.gaps.gauge(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        three_segments_share_an_ack_while_the_sender_does_not_tell_its_window: "adw"
            "0ms  in -> hold (window 1000 of 3000)
             10ms in -> hold (window 2000 of 3000)
             20ms in -> ack 3 (window 3000 of 3000)
             900ms wait"

        /// Gaps of 10 ms: 1 − θ = 1/3. Each rise of the sender's window adds a third of a segment to w.
        the_window_grows_when_the_senders_does_by_less_the_faster_segments_come: "adw"
            "0ms  set cwnd=5
             0ms  in -> hold (window 1000 of 3000)
             10ms set cwnd=6
             10ms in -> hold (window 2000 of 3333)
             20ms set cwnd=7
             20ms in -> hold (window 3000 of 3666)
             35ms set cwnd=8
             35ms in -> hold (window 4000 of 4166)
             68750us timer -> ack 4 (deadline)
             900ms wait"

        the_window_is_never_above_the_senders_nor_what_we_advertise: "adw"
            "0ms set cwnd=1
             0ms in -> ack 1 (window 1000 of 1000)
             1ms set cwnd=2
             1ms in -> hold (window 1000 of 2000)
             2ms in -> ack 2 (window 2000 of 2000)
             2ms set cwnd=9 window=1500
             3ms in -> hold (window 1000 of 1500)
             4ms in -> ack 2 (window 2000 of 1500)
             900ms wait"

        a_window_that_fell_and_a_segment_out_of_order_leave_three_segments: "adw"
            "0ms  set cwnd=5
             0ms  in  -> hold (window 1000 of 3000)
             50ms set cwnd=6
             50ms in  -> hold (window 2000 of 3333)
             60ms set cwnd=5
             60ms in  -> ack 3 (window 3000 of 3000)
             60ms set cwnd=7
             70ms in  -> hold (window 1000 of 3333)
             71ms ooo -> ack 1 (not-in-order)
             72ms in  -> hold (window 1000 of 3000)
             73ms fill -> ack 2 (not-in-order)
             900ms wait"

        the_timer_leans_on_the_shortest_gap_and_ends_at_the_hold: "adw:hold=100ms"
            "0ms     in    -> hold (window 1000 of 3000)
             10ms    in    -> hold (window 2000 of 3000)
             40ms    timer -> ack 2 (deadline)
             50ms    in    -> hold (window 1000 of 3000)
             102500us timer -> ack 1 (deadline)
             500ms   in    -> hold (window 1000 of 3000)
             600ms   timer -> ack 1 (deadline)
             900ms   wait"

        when_the_timer_runs_out_the_window_shrinks_to_three_segments_at_least: "adw"
            "0ms   set cwnd=5
             0ms   in    -> hold (window 1000 of 3000)
             10ms  set cwnd=6
             10ms  in    -> hold (window 2000 of 3333)
             40ms  timer -> ack 2 (deadline)
             50ms  in    -> hold (window 1000 of 3000)
             102500us timer -> ack 1 (deadline)
             110ms wait"
    }
}
