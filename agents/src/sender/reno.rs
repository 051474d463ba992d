//! `reno`: the window of standard TCP before NewReno.
//!
//! Source: RFC 5681 for the window and for fast recovery, RFC 3465 for counting bytes.
//!
//! Rule: the window grows and shrinks as with `newreno`. Fast recovery ends with the first ACK of new data (RFC 5681
//! §3.2 step 6), whatever else was lost. A second loss in the same window needs three more duplicate ACKs, which halve
//! the window again, or a timeout. The connection carries this out.
//!
//! Deviations: those of `half.rs`. With SACK the connection recovers by RFC 6675, since RFC 5681 §3.2 is for those
//! without it. After a timeout duplicates count only once all data before it is acknowledged: RFC 5681 says nothing of
//! them, and ns-2's `bugFix_` has it so.

use hopwise_core::Instant;
use hopwise_core::agent::{
    Acked, Allowance, FastEnd, Loss, Needs, Recovered, Reduction, SendView, SenderAgent, Sent, Tunables,
};
use hopwise_core::ignores;

use super::half::{HALF, Half};
use super::window::{Growth, IW, Linear, SSTHRESH, VALIDATE, Window, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, OFF, Switch, params};

params! {
    /// count acknowledged bytes, at most two segments an ACK
    abc: Switch = Form::Switch.is(OFF),
    iw: u32 = IW,
    ssthresh: Option<u32> = SSTHRESH,
    half: Half = HALF,
    validate: Switch = VALIDATE,
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "reno",
    rule: "as newreno, but the first ACK of new data ends fast recovery",
    source: "RFC 5681, RFC 3465",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| Box::new(Reno::new(args))),
};

#[derive(Debug)]
pub(crate) struct Reno {
    window: Window,
    half: Half,
    growth: Linear,
}

impl Reno {
    fn new(args: &Args) -> Reno {
        let set = Params::of(args);
        let window = Window::new(set.iw, set.ssthresh, set.abc, set.validate);
        Reno { window, half: set.half, growth: Linear::default() }
    }
}

impl SenderAgent for Reno {
    ignores!(on_dup_ack, on_path, note);

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn tune(&self, tunables: &mut Tunables) {
        tunables.fast_end = FastEnd::NewAck;
    }

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.window.on_sent(sent, view);
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        if self.window.on_acked(acked, view) == Growth::Avoidance {
            self.growth.avoid(&mut self.window, acked.newly.bytes, mss_of(view));
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        self.growth.on_loss();
        let reduced = self.half.reduced(&self.window, loss, view);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{FastEnd, LossKind, Recovered};

    use crate::testkit::sender::Bench;

    #[test]
    fn it_ends_fast_recovery_by_the_first_ack_of_new_data_and_newreno_by_a_full_one() {
        let end = |spec: &str| Bench::new(spec).tunables().fast_end;
        assert_eq!((end("reno"), end("newreno")), (FastEnd::NewAck, FastEnd::FullAck));
    }

    #[test]
    fn each_loss_of_a_window_halves_it() {
        let mut bench = Bench::new("reno:iw=16,ssthresh=16").with_rtt(Duration::from_millis(100));
        bench.fill();
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 8_000);
        bench.ack(1);
        bench.recover(Recovered::Full);
        assert_eq!(bench.gauge("cwnd_bytes"), Some(8_000));
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 4_000);
    }
}
