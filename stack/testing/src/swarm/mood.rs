//! A driver in a bad mood around an endpoint: it calls late, early and twice, and its link has no room for a while. The
//! contract of machines allows all this. The driver checks that the endpoint keeps its half.

use std::time::Duration;

use hopwise_core::endpoint::Offload;
use hopwise_core::trace::TraceEvent;
use hopwise_core::wire::bundle::Cutter;
use hopwise_core::{Endpoint, Instant, LinkEvent, LinkId, Machine, Payload, Rx, Transmit};

use super::observer::{Observer, Sight};
use super::scenario::{Host, MoodPlan};
use crate::memory::Random;

/// The most packets at one instant: more than any window of the scenarios holds, even with tiny segments.
const MOST_AT_ONCE: u32 = 20_000;

#[derive(Debug)]
pub(super) struct Moody {
    pub(super) endpoint: Endpoint,
    plan: MoodPlan,
    random: Random,
    /// The delay of the next timeout.
    late: Duration,
    no_room_until: Option<Instant>,
    link_mtu: u16,
    offload: Offload,
    /// Packets that left at `left_at`.
    left: u32,
    left_at: Instant,
    observer: Option<Observer>,
}

impl Moody {
    /// Makes a driver; with `observes`, it judges the packets on the wire too.
    pub(super) fn new(endpoint: Endpoint, host: &Host, random: Random, observes: bool) -> Moody {
        let plan = host.mood;
        let comes_in_time = plan.late.is_zero() && plan.stall_ppm == 0;
        Moody {
            endpoint,
            plan,
            random,
            late: Duration::ZERO,
            no_room_until: None,
            link_mtu: host.link_mtu,
            offload: host.offload,
            left: 0,
            left_at: Instant::ZERO,
            observer: observes.then(|| Observer::new(comes_in_time)),
        }
    }

    /// Ends the bad mood: the driver does its work well from now on.
    pub(super) fn calm_down(&mut self) {
        self.plan.stall_ppm = 0;
        self.plan.late = Duration::ZERO;
        self.late = Duration::ZERO;
    }

    fn time_out(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        let next = self.endpoint.poll_timeout();
        assert!(
            next.is_none_or(|next| next > now),
            "contract: after handle_timeout({now}) the deadline is {next:?}"
        );
        assert_eq!(next, self.endpoint.poll_timeout(), "contract: poll_timeout is pure");
    }

    fn perhaps_stall(&mut self, now: Instant) {
        if self.random.per_million(self.plan.stall_ppm) {
            self.no_room_until = Some(now + self.plan.stall);
        }
    }

    fn has_room(&self, now: Instant) -> bool {
        self.no_room_until.is_none_or(|until| until <= now)
    }

    /// Checks that the link takes the bundle, and that each of its segments may leave.
    fn check_bundle(&mut self, now: Instant, bundle: &[u8], segment_bytes: u16) {
        let Offload::Cut { most_bytes } = self.offload else { panic!("a bundle for a link that cuts none") };
        let bytes = bundle.len();
        assert!(bytes <= most_bytes as usize, "{bytes} bytes for a link that takes {most_bytes}");
        let mut cutter = Cutter::new(bundle, segment_bytes).expect("contract: bundles are TCP packets");
        let mut segment = Vec::new();
        while cutter.cut(bundle, &mut segment) {
            self.check_transmit(now, &segment);
            segment.clear();
        }
    }

    fn check_transmit(&mut self, now: Instant, packet: &[u8]) {
        if self.left_at < now {
            (self.left, self.left_at) = (0, now);
        }
        self.left += 1;
        assert!(self.left < MOST_AT_ONCE, "contract: poll_transmit does not come to an end at {now}");
        assert!(
            !packet.is_empty() && packet.len() <= usize::from(self.link_mtu),
            "a packet of {} bytes for a link that takes {}",
            packet.len(),
            self.link_mtu
        );
        let seen = self.observer.as_mut().map_or(Ok(()), |observer| observer.on_sent(now, packet));
        judge(now, seen);
    }
}

fn judge(now: Instant, seen: Result<(), Sight>) {
    if let Err(sight) = seen {
        panic!("{sight} at {now}");
    }
}

impl Machine for Moody {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        if self.random.per_million(self.plan.early_ppm) {
            self.time_out(now);
        }
        let seen = self.observer.as_mut().map_or(Ok(()), |observer| observer.on_received(now, rx.packet));
        judge(now, seen);
        self.endpoint.handle_packet(now, rx);
        self.perhaps_stall(now);
    }

    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        self.endpoint.handle_link_event(now, link, event);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.has_room(now) {
            self.no_room_until = None;
        }
        self.time_out(now);
        if self.random.per_million(self.plan.twice_ppm) {
            self.time_out(now);
        }
        self.late = Duration::from_nanos(self.random.below(self.plan.late.as_nanos() as u64));
        self.perhaps_stall(now);
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        _: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if !self.has_room(now) {
            return None;
        }
        let transmit = self.endpoint.poll_transmit(now, link, Payload::Inline, out)?;
        match transmit.segment_bytes {
            None => self.check_transmit(now, out),
            Some(segment_bytes) => self.check_bundle(now, out, segment_bytes),
        }
        Some(transmit)
    }

    fn keep_trace(&mut self, is_kept: bool) {
        self.endpoint.keep_trace(is_kept);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let endpoint = self.endpoint.poll_timeout().map(|at| at + self.late);
        [endpoint, self.no_room_until].into_iter().flatten().min()
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.endpoint.drain_trace(sink);
    }
}
