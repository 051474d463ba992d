//! `newreno`: the congestion window of RFC 5681, for the recovery of RFC 6582.
//!
//! Rule: below ssthresh each ACK adds a segment; above it a window of ACKs does. A loss halves what was in flight,
//! a timeout begins again with one segment. Which segment is sent again, and how many leave in fast recovery, is
//! the connection's. What all owners share is in `window.rs`.
//!
//! | parameter | unit | default | ns2 | meaning |
//! |---|---|---|---|---|
//! | abc | switch | off | | count acknowledged bytes, two segments an ACK at most (RFC 3465) |
//! | iw | segments | 10 | 2 | initial window (RFC 6928) |
//! | ssthresh | segments | unlimited | 2000 | slow-start threshold before the first loss |
//! | half | choice | flight | window | what a loss halves: what is in flight, or the window |
//! | validate | switch | on | off | do not grow a window that is not filled; begin anew after an idle time |
//!
//! Deviations: `half=window` is ns-2's: the least of cwnd, the receiver's window and what other agents let into
//! the network, in whole segments, and halved by every timeout of a series. RFC 5681 keeps ssthresh after the
//! first, as `half=flight` does. What is halved never exceeds cwnd, which leaves out the segments that limited
//! transmit added.

use hopwise_core::Instant;
use hopwise_core::agent::{
    Acked, Allowance, Loss, LossKind, Needs, Recovered, Reduction, SendView, SenderAgent, Sent,
};
use hopwise_core::ignores;

use super::window::{Counting, Growth, IW, SSTHRESH, VALIDATE, Window, mss_of};
use crate::param::{Args, Form, Param, Switch, Value};
use crate::registry::{Descriptor, Make};

pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "newreno",
    rule: "adds a segment per window, halves on a loss, begins again with one segment after a timeout",
    source: "RFC 5681, RFC 6582, RFC 3465",
    params: &[
        Param::new(
            "abc",
            Form::Switch,
            Value::Switch(Switch::Off),
            "count acknowledged bytes, at most two segments an ACK",
        ),
        IW,
        SSTHRESH,
        Param::new(
            "half",
            Form::Choice(&["flight", "window"]),
            Value::Choice("flight"),
            "what a loss halves: what is in flight, or the window",
        )
        .ns2(Value::Choice("window")),
        VALIDATE,
    ],
    shorthand: None,
    make: Make::Owner(|args| Box::new(NewReno::new(args))),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Flight,
    Window,
}

#[derive(Debug)]
pub struct NewReno {
    window: Window,
    half: Half,
    /// RFC 3465: acknowledged since cwnd last grew by counting bytes.
    counted_bytes: u64,
}

impl NewReno {
    fn new(args: &Args) -> NewReno {
        let half = if args.choice("half") == "window" { Half::Window } else { Half::Flight };
        NewReno { window: Window::new(args), half, counted_bytes: 0 }
    }

    /// RFC 5681 §3.1 eq. 3 for each ACK, or a segment for each window of bytes.
    fn avoid(&mut self, newly_bytes: u64, mss: u64) {
        let cwnd = self.window.cwnd(mss);
        match self.window.counting() {
            Counting::Acks => self.window.grow((newly_bytes.min(mss) * mss / cwnd).max(1), mss),
            Counting::Bytes => {
                self.counted_bytes = self.counted_bytes.saturating_add(newly_bytes);
                if self.counted_bytes >= cwnd {
                    self.counted_bytes -= cwnd;
                    self.window.grow(mss, mss);
                }
            }
        }
    }

    fn reduced(&self, loss: &Loss, view: &SendView<'_>) -> u64 {
        let mss = mss_of(view);
        match (self.half, loss.kind) {
            // RFC 5681 §3.1: a segment that timed out before says nothing new of the path.
            (Half::Flight, LossKind::Timeout { nth: 2.. }) => self.window.ssthresh(mss),
            (Half::Flight, _) => loss.flight_before.bytes.min(self.window.cwnd(mss)) / 2,
            (Half::Window, _) => {
                let window = self.window.filled(loss, mss).min(u64::from(view.snd_wnd));
                window / 2 / mss * mss
            }
        }
    }
}

impl SenderAgent for NewReno {
    ignores!(tune, on_dup_ack, on_path, note);

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.window.on_sent(sent, view);
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        if self.window.on_acked(acked, view) == Growth::Avoidance {
            self.avoid(acked.newly.bytes, mss_of(view));
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        self.counted_bytes = 0;
        let reduced = self.reduced(loss, view);
        Some(self.window.on_loss(loss, view, reduced))
    }

    fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        self.window.on_recovered(end, view);
    }

    fn narrow(&self, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        self.window.narrow(now, view, so_far)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.window.gauges(sink);
    }
}
