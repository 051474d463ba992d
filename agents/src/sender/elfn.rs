//! `elfn`: stands still while there is no route.
//!
//! Source: Holland and Vaidya, *Analysis of TCP Performance over Mobile Ad Hoc Networks* (MobiCom 1999):
//! explicit link failure notification.
//!
//! Rule: when routing reports a failed route, the RTO and cwnd freeze and no new data leaves. The segment at snd_una
//! probes every `probe`, and at once when routing reports a new route. The first acceptable ACK thaws the connection,
//! with the RTO that it had.
//!
//! Deviations: with nothing in flight nothing freezes, since no timeout could punish the connection. Without reports
//! from routing the agent does nothing.

use std::time::Duration;

use hopwise_core::agent::{PathEvent, PathReaction, SendView, SenderAgent};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// time between two probes of a frozen path
    probe: Duration = Form::millis(10, 60_000).is(2_000),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "elfn",
    rule: "freezes RTO and window while there is no route, and probes every 2 s",
    source: "ELFN (Holland and Vaidya 1999)",
    params: Params::TABLE,
    shorthand: Some("probe"),
    make: Make::Narrower(|args| Box::new(Elfn::new(args))),
};

#[derive(Debug)]
pub(crate) struct Elfn {
    probe_every: Duration,
    failures: u64,
}

impl Elfn {
    fn new(args: &Args) -> Elfn {
        Elfn { probe_every: Params::of(args).probe, failures: 0 }
    }
}

impl SenderAgent for Elfn {
    ignores!(tune, on_sent, on_acked, on_dup_ack, on_loss, on_recovered, narrow, note);

    fn on_path(&mut self, event: &PathEvent, _: &SendView<'_>) -> PathReaction {
        match event {
            PathEvent::RouteFailed => {
                self.failures += 1;
                PathReaction::Freeze { probe_every: self.probe_every }
            }
            // The connection itself probes at once when it learns of a route.
            PathEvent::RouteFound | PathEvent::HopsChanged | PathEvent::AckSeq(_) => PathReaction::None,
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("route_failures", self.failures);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::Seq;
    use hopwise_core::agent::{PathEvent, PathReaction};

    use crate::testkit::sender::Bench;

    #[test]
    fn a_failed_route_freezes_and_is_probed_every_two_seconds() {
        let mut bench = Bench::new("[newreno, elfn]");
        bench.fill();
        let freeze = |s| [PathReaction::None, PathReaction::Freeze { probe_every: Duration::from_secs(s) }];
        assert_eq!(bench.path_event(&PathEvent::RouteFailed), freeze(2));
        assert_eq!(Bench::new("[newreno, elfn:5s]").path_event(&PathEvent::RouteFailed), freeze(5));
    }

    #[test]
    fn no_other_news_of_the_path_freezes_anything() {
        let mut bench = Bench::new("[newreno, elfn]");
        bench.fill();
        for event in [PathEvent::RouteFound, PathEvent::HopsChanged, PathEvent::AckSeq(Seq(7))] {
            assert_eq!(bench.path_event(&event), [PathReaction::None; 2]);
        }
        assert_eq!(bench.allowed_segments(), 10);
    }
}
