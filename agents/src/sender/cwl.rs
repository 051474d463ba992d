//! `cwl`: a window limit that follows the length of the path.
//!
//! Source: Chen, Xue and Nahrstedt, *On Setting TCP's Congestion Window Limit in Mobile Ad Hoc Networks* (ICC 2003).
//! They take a fifth of the hops there and back. Chen, Marsic and Miller (TCP-TDA) take a third to a half of the hops
//! there.
//!
//! Rule: at most ⌊(n + m)/5⌋ segments are in flight for n hops there and m hops back. With `of=third` the limit is
//! ⌈n/3⌉, and with `of=half` ⌊n/2⌋. The limit is never below `least`, and follows each change of the route. The agents
//! before it may allow less.
//!
//! Deviations: a direction of unknown length counts as long as the other one. While both are unknown nothing is
//! limited. A tail loss probe may be one segment beyond the limit, as it may be beyond cwnd (RFC 8985 §7.3). A receiver
//! that waits for more segments than the limit should get the limit from `tell-cwnd`.

use hopwise_core::Instant;
use hopwise_core::agent::{Allowance, Path, SendView, SenderAgent};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, choices, params};

choices! {
    Share { Fifth = "fifth", Third = "third", Half = "half" }
}

params! {
    /// which share of the path's hops may be in flight
    of: Share = Share::FORM.is(0),
    /// the limit of a short path
    least: u64 = Form::count("segments", 1, 255).is(2),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "cwl",
    rule: "allows a fifth of the hops there and back in flight, or a third or half of those there",
    source: "Chen, Xue, Nahrstedt 2003; TCP-TDA",
    params: Params::TABLE,
    shorthand: Some("of"),
    make: Make::Narrower(|args| Box::new(Cwl(Params::of(args)))),
};

#[derive(Debug)]
pub(crate) struct Cwl(Params);

impl Cwl {
    fn segments(&self, path: &Path) -> Option<u64> {
        let [there, back] =
            [path.hops_to_peer, path.hops_from_peer].map(|hops| hops.map(|(n, _)| u64::from(n)));
        let there = there.or(back)?;
        let limit = match self.0.of {
            Share::Fifth => (there + back.unwrap_or(there)) / 5,
            Share::Third => there.div_ceil(3),
            Share::Half => there / 2,
        };
        Some(limit.max(self.0.least))
    }
}

impl SenderAgent for Cwl {
    ignores!(tune, on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note);

    hopwise_core::needs!(hops);

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let Some(segments) = self.segments(view.path) else { return so_far };
        let most_bytes = segments * u64::from(view.mss.max(1));
        Allowance { flight_bytes: so_far.flight_bytes.min(most_bytes), ..so_far }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("least_segments", self.0.least);
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::{Allowance, HopSource, PathEvent};

    use crate::testkit::sender::Bench;

    fn allowed(spec: &str, there: Option<u8>, back: Option<u8>) -> u64 {
        let mut bench = Bench::new(&format!("[newreno:iw=100, {spec}]"));
        bench.path.hops_to_peer = there.map(|hops| (hops, HopSource::Routing));
        bench.path.hops_from_peer = back.map(|hops| (hops, HopSource::Routing));
        bench.allowed_segments()
    }

    #[test]
    fn a_fifth_of_the_way_there_and_back_may_be_in_flight() {
        for (there, back, expected) in
            [(1, 1, 2), (7, 7, 2), (7, 8, 3), (12, 13, 5), (29, 29, 11), (255, 255, 100)]
        {
            assert_eq!(allowed("cwl", Some(there), Some(back)), expected, "{there} and {back}");
        }
    }

    #[test]
    fn a_third_is_rounded_up_and_a_half_down() {
        for (there, third, half) in [(1, 2, 2), (5, 2, 2), (6, 2, 3), (7, 3, 3), (10, 4, 5), (29, 10, 14)] {
            assert_eq!(allowed("cwl:third", Some(there), Some(99)), third, "{there}");
            assert_eq!(allowed("cwl:half", Some(there), Some(99)), half, "{there}");
        }
    }

    #[test]
    fn the_way_back_stands_in_for_an_unknown_way_there_and_nothing_known_limits_nothing() {
        assert_eq!(allowed("cwl", None, Some(20)), 8);
        assert_eq!(allowed("cwl", Some(20), None), 8);
        assert_eq!(allowed("cwl:half", None, Some(20)), 10);
        assert_eq!(allowed("cwl", None, None), 100);
    }

    #[test]
    fn the_limit_follows_the_route_and_leaves_pacing_alone() {
        let mut bench = Bench::new("[newreno:iw=100, cwl:half]");
        for (hops, expected) in [(8, 4), (4, 2), (20, 10)] {
            bench.path.hops_to_peer = Some((hops, HopSource::Routing));
            bench.path_event(&PathEvent::HopsChanged);
            let so_far = Allowance { new_from: hopwise_core::Instant(7), ..Allowance::UNLIMITED };
            assert_eq!(bench.narrowed(so_far), Allowance { flight_bytes: expected * 1_000, ..so_far });
        }
    }
}
