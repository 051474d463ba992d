//! `reno`: the window of standard TCP before NewReno.
//!
//! Source: RFC 5681 for the window and for fast recovery, RFC 3465 for counting bytes.
//!
//! Rule: the window grows and shrinks as with `newreno`. Fast recovery ends with the first ACK of new data (RFC 5681
//! §3.2 step 6), whatever else was lost. A second loss in a window needs three more duplicate ACKs, which halve
//! the window again, or a timeout. The connection carries this out.
//!
//! Deviations: `half=window` is ns-2's rule (see `newreno`). With SACK the connection recovers by RFC 6675, since RFC
//! 5681 §3.2 is for connections without SACK. After a timeout duplicates count only once all data before it is
//! acknowledged: RFC 5681 says nothing of them, and ns-2's `bugFix_` has it so.

use hopwise_core::agent::FastEnd;

use super::newreno::{HALF, Half, Standard};
use super::window::{IW, SSTHRESH, VALIDATE, Window};
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
    make: Make::Owner(|args| Box::new(reno(args))),
};

fn reno(args: &Args) -> Standard {
    let set = Params::of(args);
    let window = Window::new(set.iw, set.ssthresh, set.abc, set.validate);
    Standard::new(window, set.half, FastEnd::NewAck)
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
