//! `ask-rate:r=n`: requests one ACK for every n segments.
//!
//! Source: the TCP ACK Rate Request option (draft-ietf-tcpm-ack-rate-request-10). The receiver agent `tarr` obeys it.
//!
//! Rule: the first data segment carries the request, and so does every `every`-th one after it. The next segment after
//! a retransmission carries it, too, since the retransmitted one may have carried it. This replaces a request that was
//! lost. n = 0 requests one ACK at once each time.
//!
//! Deviations: a peer that does not know the option gets no request. A peer that knows it but only sends requests gets
//! ours in vain: the option does not distinguish it from one that obeys.

use hopwise_core::agent::{AckRequest, Allowance, DataNote, SendView, SenderAgent, Sent, SentKind};
use hopwise_core::{Seq, ignores};

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// segments that are to share an ACK; 0 requests one ACK at once
    r: u8 = Form::count("segments", 0, 127).required(),
    /// segments from one request to the next
    every: u32 = Form::count("segments", 1, 65_535).is(32),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "ask-rate",
    rule: "asks the receiver for one ACK for every r segments",
    source: "draft-ietf-tcpm-ack-rate-request-10",
    params: Params::TABLE,
    shorthand: Some("r"),
    make: Make::Narrower(|args| Box::new(AskRate::new(args))),
};

#[derive(Debug)]
pub(crate) struct AskRate {
    set: Params,
    /// Segments that have left since the last request, its own included. `None` makes a request due.
    since_asked: Option<u32>,
}

impl AskRate {
    fn new(args: &Args) -> AskRate {
        AskRate { set: Params::of(args), since_asked: None }
    }

    fn is_due(&self) -> bool {
        self.since_asked.is_none_or(|segments| segments >= self.set.every)
    }
}

impl SenderAgent for AskRate {
    ignores!(tune, on_acked, on_dup_ack, on_loss, on_recovered, on_path, narrow);

    hopwise_core::needs!(ack_rate);

    fn on_sent(&mut self, sent: &Sent, _: &SendView<'_>) {
        if sent.carried.bytes == 0 {
            return;
        }
        let segments = sent.carried.segments;
        self.since_asked = match sent.kind {
            // The segment may have carried the request itself.
            SentKind::Resent | SentKind::AfterTimeout => None,
            SentKind::New | SentKind::Probe if self.is_due() => Some(segments),
            SentKind::New | SentKind::Probe => self.since_asked.map(|since| since.saturating_add(segments)),
        };
    }

    fn note(&self, _: Seq, _: &SendView<'_>, _: &Allowance, note: &mut DataNote) {
        if self.is_due() && note.ack_request.is_none() {
            note.ack_request = Some(AckRequest::Rate(self.set.r));
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("asked_segments", u64::from(self.set.r));
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::{AckRequest, SentKind};

    use crate::testkit::sender::Bench;

    #[test]
    fn the_first_segment_asks_and_every_32nd_after_it() {
        let mut bench = Bench::new("[newreno:iw=200, ask-rate:4]");
        let asked: Vec<_> = (1..=70)
            .filter(|_| {
                let asks = bench.note().ack_request == Some(AckRequest::Rate(4));
                bench.send(1);
                asks
            })
            .collect();
        assert_eq!(asked, [1, 33, 65]);
    }

    #[test]
    fn what_follows_something_sent_again_asks_again() {
        let mut bench = Bench::new("[newreno:iw=200, \"ask-rate:r=0,every=1000\"]");
        bench.send(1);
        assert_eq!(bench.note().ack_request, None);
        bench.sent(bench.count(1), SentKind::AfterTimeout);
        assert_eq!(bench.note().ack_request, Some(AckRequest::Rate(0)));
        bench.send(1);
        assert_eq!(bench.note().ack_request, None);
    }

    #[test]
    fn it_narrows_nothing() {
        assert_eq!(Bench::new("[newreno:iw=7, ask-rate:4]").allowed_segments(), 7);
    }
}
