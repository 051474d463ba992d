//! `tell-cwnd`: reports to the receiver how many segments it can expect before it acknowledges.
//!
//! Source: Chen, Lee, Gerla and Sanadidi (TCP-DCA) and Chen, Marsic and Miller (TCP-TDA): a receiver that holds ACKs
//! for a whole window must know that window.
//!
//! Rule: each data segment reports max(1, ⌊min(allowance, receiver's window, in flight + ready to send)/MSS⌋) segments.
//! The allowance is what the whole list of senders leaves. The papers do not have the last term. Without it a receiver
//! would wait for 40 segments while only one is coming. Every exchange of single segments would then last until its
//! timer runs out. `raw` leaves the term out.
//!
//! Deviations: TCP-DCA always writes the number into the window field of data segments, which breaks a peer that does
//! not know of it. Here the number goes in our own TCP option. With `window` it goes in that field, if we opened the
//! connection and the peer agreed. ACKs then travel alone. Under Nagle's rule a peer that answers in single segments
//! waits for each of them, as long as our receiver agent holds it. The cwnd_ that ns-2 would report may exceed its
//! window_; `raw` reports what the whole list of senders allows.

use hopwise_core::agent::{Allowance, DataNote, Needs, SendView, SenderAgent};
use hopwise_core::{Seq, ignores};

use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, OFF, Switch, params};

params! {
    /// tell the window, however little there is to send
    raw: Switch = Form::Switch.is(OFF),
    /// tell it in the window field of data segments, where the peer agrees
    window: Switch = Form::Switch.is(OFF),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "tell-cwnd",
    rule: "tells the receiver how many segments it can expect",
    source: "TCP-DCA, TCP-TDA",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Narrower(|args| Box::new(TellCwnd(Params::of(args)))),
};

#[derive(Debug)]
pub(crate) struct TellCwnd(Params);

impl SenderAgent for TellCwnd {
    ignores!(tune, on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, narrow);

    fn needs(&self) -> Needs {
        let cwnd_in_window = self.0.window == Switch::On;
        Needs { peer_cwnd: true, cwnd_in_window, ..Needs::default() }
    }

    fn note(&self, _: Seq, view: &SendView<'_>, allowed: &Allowance, note: &mut DataNote) {
        let window = allowed.flight_bytes.min(u64::from(view.snd_wnd));
        let bytes = match self.0.raw {
            Switch::On => window,
            Switch::Off => window.min(view.flight.bytes.saturating_add(view.unsent.bytes)),
        };
        let segments = (bytes / u64::from(view.mss.max(1))).max(1);
        note.cwnd = Some(u16::try_from(segments).unwrap_or(u16::MAX));
    }

    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

#[cfg(test)]
mod tests {
    use crate::testkit::sender::Bench;

    #[test]
    fn the_window_is_told_that_the_whole_list_leaves() {
        for (list, expected) in [
            ("[newreno, tell-cwnd]", 10),
            ("[newreno, tell-cwnd, limit:4]", 4),
            ("[newreno, limit:4, tell-cwnd]", 4),
        ] {
            let mut bench = Bench::new(list);
            bench.unsent_bytes = 1_000_000;
            assert_eq!(bench.note().cwnd, Some(expected), "{list}");
        }
    }

    #[test]
    fn no_more_is_told_than_is_under_way_or_waits_to_be() {
        let mut bench = Bench::new("[newreno, tell-cwnd]");
        bench.unsent_bytes = 100;
        assert_eq!(bench.note().cwnd, Some(1), "one segment at least");
        bench.unsent_bytes = 3_000;
        assert_eq!(bench.note().cwnd, Some(3));
        bench.send(2);
        bench.unsent_bytes = 1_999;
        assert_eq!(bench.note().cwnd, Some(3), "2 in flight and 1.999 to come");
    }

    #[test]
    fn raw_tells_the_window_whatever_there_is_to_send() {
        let mut bench = Bench::new("[newreno, tell-cwnd:raw]");
        bench.unsent_bytes = 100;
        assert_eq!(bench.note().cwnd, Some(10));
    }

    #[test]
    fn the_receivers_window_and_the_field_bound_what_is_told() {
        let mut bench = Bench::new("[newreno:iw=1000, tell-cwnd:raw]");
        bench.snd_wnd = 3_500;
        assert_eq!(bench.note().cwnd, Some(3));
        bench.snd_wnd = 0;
        assert_eq!(bench.note().cwnd, Some(1));
        let mut bench = Bench::new("[newreno:iw=1000, tell-cwnd:raw]");
        bench.mss = 1;
        bench.snd_wnd = u32::MAX;
        assert_eq!(bench.note().cwnd, Some(1_000));
    }
}
