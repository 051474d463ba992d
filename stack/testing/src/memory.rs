//! Two machines and a path in memory between them, in virtual time: without a simulator.
//!
//! The path delays, limits, loses, repeats, reorders and spoils packets as configured. Its choices come from a seed,
//! and a run can be repeated to the byte. It knows nothing of TCP.

mod path;
mod random;
mod router;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use path::{Bundles, Fate, Hop, LostTo, PathConfig};
pub use random::Random;

use hopwise_core::trace::TraceEvent;
use hopwise_core::wire::bundle::Cutter;
use hopwise_core::{Instant, LinkId, Machine, Payload, Rx};

use path::Direction;

/// The link that both ends have.
pub const LINK: LinkId = LinkId(0);

/// Which of the two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    A,
    B,
}

impl End {
    pub fn other(self) -> End {
        match self {
            End::A => End::B,
            End::B => End::A,
        }
    }
}

/// A packet on its way. Packets arrive in the order of time, then in the order of leaving.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    at: Instant,
    order: u64,
    to: End,
    packet: Vec<u8>,
    segment_bytes: Option<u16>,
}

/// Two machines, the path from A to B and the path from B to A.
pub struct TwoHosts<M: Machine> {
    pub a: M,
    pub b: M,
    now: Instant,
    directions: [Direction; 2],
    in_flight: BinaryHeap<Reverse<InFlight>>,
    order: u64,
    spare: Vec<Vec<u8>>,
    tap: Option<Tap>,
    events: u64,
}

/// Receives every packet that an end hands to the path: the time, the sender, the packet, and its fate.
pub type Tap = Box<dyn FnMut(Instant, End, &[u8], Fate)>;

impl<M: Machine> TwoHosts<M> {
    /// `to_b` and `to_a` are the two directions; both draw from `seed`, each from a stream of its own.
    pub fn new(a: M, b: M, to_b: PathConfig, to_a: PathConfig, seed: u64) -> TwoHosts<M> {
        TwoHosts {
            a,
            b,
            now: Instant::ZERO,
            directions: [
                Direction::new(to_b, Random::new(seed, 1).next_u64()),
                Direction::new(to_a, Random::new(seed, 2).next_u64()),
            ],
            in_flight: BinaryHeap::new(),
            order: 0,
            spare: Vec::new(),
            tap: None,
            events: 0,
        }
    }

    #[must_use]
    pub fn with_tap(mut self, tap: Tap) -> TwoHosts<M> {
        self.set_tap(tap);
        self
    }

    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// The number of packets and timeouts handled until now.
    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn machine(&mut self, end: End) -> &mut M {
        match end {
            End::A => &mut self.a,
            End::B => &mut self.b,
        }
    }

    /// Changes the path that leads away from an end, for packets that leave from now on.
    pub fn path_from(&mut self, end: End) -> &mut PathConfig {
        &mut self.directions[index(end)].config
    }

    /// The number of packets that the path from this end lost, to loss, a full queue or an outage.
    pub fn lost_from(&self, end: End) -> u64 {
        self.directions[index(end)].lost
    }

    /// Hands both machines' packets to the path. Call it after each change to a machine.
    pub fn flush(&mut self) {
        for end in [End::A, End::B] {
            self.flush_end(end);
        }
    }

    fn flush_end(&mut self, end: End) {
        loop {
            let mut packet = self.spare.pop().unwrap_or_default();
            packet.clear();
            let now = self.now;
            let machine = match end {
                End::A => &mut self.a,
                End::B => &mut self.b,
            };
            let Some(transmit) = machine.poll_transmit(now, LINK, Payload::Inline, &mut packet) else {
                self.spare.push(packet);
                return;
            };
            match transmit.segment_bytes {
                Some(segment_bytes) if self.path_from(end).bundles == Bundles::Cut => {
                    self.launch_segments(end, packet, segment_bytes);
                }
                segment_bytes => self.launch(end, packet, segment_bytes),
            }
        }
    }

    /// Cuts a bundle into segments, as a network card does.
    fn launch_segments(&mut self, from: End, bundle: Vec<u8>, segment_bytes: u16) {
        let mut cutter = Cutter::new(&bundle, segment_bytes).expect("only whole TCP packets are bundles");
        loop {
            let mut packet = self.spare.pop().unwrap_or_default();
            packet.clear();
            if !cutter.cut(&bundle, &mut packet) {
                self.spare.push(packet);
                break;
            }
            self.launch(from, packet, None);
        }
        self.spare.push(bundle);
    }

    fn launch(&mut self, from: End, mut packet: Vec<u8>, segment_bytes: Option<u16>) {
        let size = segment_bytes.map_or(packet.len(), |each| segment_size(&packet, each));
        let fate = self.directions[index(from)].decide(self.now, &mut packet, size);
        if let Some(tap) = &mut self.tap {
            tap(self.now, from, &packet, fate);
        }
        match fate {
            Fate::Lost(lost_to) => {
                self.answer(from, &packet, lost_to);
                self.spare.push(packet);
            }
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    let copy = packet.clone();
                    self.put(again, from.other(), copy, segment_bytes);
                }
                self.put(at, from.other(), packet, segment_bytes);
            }
        }
    }

    /// Lets a router answer a packet that goes no further.
    fn answer(&mut self, from: End, packet: &[u8], lost_to: LostTo) {
        let config = *self.path_from(from);
        if config.hop == Hop::Silent {
            return;
        }
        if let (LostTo::Size, Some(pieces)) = (lost_to, router::fragments(packet, config.mtu)) {
            for piece in pieces {
                self.launch(from, piece, None);
            }
        } else if let Some(error) = router::icmp_error(packet, lost_to, config.mtu) {
            let at = self.now + 2 * config.impairment.delay;
            self.put(at, from, error, None);
        }
    }

    fn put(&mut self, at: Instant, to: End, packet: Vec<u8>, segment_bytes: Option<u16>) {
        self.order += 1;
        self.in_flight.push(Reverse(InFlight { at, order: self.order, to, packet, segment_bytes }));
    }

    /// Gives a packet of the caller's making to a machine, at once.
    pub fn inject(&mut self, to: End, packet: &[u8]) {
        let now = self.now;
        self.machine(to).handle_packet(now, &Rx::new(LINK, packet));
        self.flush_end(to);
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        let arrival = self.in_flight.peek().map(|Reverse(flight)| flight.at);
        [arrival, self.a.poll_timeout(), self.b.poll_timeout()].into_iter().flatten().min()
    }

    /// Lets the next event happen and returns true. If that is after `until`, time goes on to `until` and the result is
    /// false. At one instant, packets that arrive go before timers that run out.
    pub fn step(&mut self, until: Instant) -> bool {
        self.flush();
        let Some(at) = self.next_at().filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(at);
        self.events += 1;
        if self.in_flight.peek().is_some_and(|Reverse(flight)| flight.at <= self.now) {
            self.deliver();
        } else {
            self.run_timers();
        }
        true
    }

    fn deliver(&mut self) {
        let Some(Reverse(flight)) = self.in_flight.pop() else { return };
        let now = self.now;
        let rx = Rx { segment_bytes: flight.segment_bytes, ..Rx::new(LINK, &flight.packet) };
        self.machine(flight.to).handle_packet(now, &rx);
        self.spare.push(flight.packet);
        self.flush_end(flight.to);
    }

    fn run_timers(&mut self) {
        for end in [End::A, End::B] {
            let now = self.now;
            let machine = self.machine(end);
            if machine.poll_timeout().is_some_and(|at| at <= now) {
                machine.handle_timeout(now);
                self.flush_end(end);
            }
        }
    }

    /// Steps until `done` returns true or `until` is reached; returns the last result of `done`. `done` is called
    /// before the first step and after each, and may act on the machines.
    pub fn run(&mut self, until: Instant, mut done: impl FnMut(&mut TwoHosts<M>) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step(until) {
                return done(self);
            }
        }
    }

    pub fn drain_trace(&mut self, end: End, sink: &mut dyn FnMut(&TraceEvent)) {
        self.machine(end).drain_trace(sink);
    }
}

/// The size of a bundle's first segment, with its headers.
fn segment_size(bundle: &[u8], segment_bytes: u16) -> usize {
    let mut segment = Vec::new();
    if let Ok(mut cutter) = Cutter::new(bundle, segment_bytes) {
        cutter.cut(bundle, &mut segment);
    }
    segment.len()
}

fn index(end: End) -> usize {
    match end {
        End::A => 0,
        End::B => 1,
    }
}

impl<M: Machine> std::fmt::Debug for TwoHosts<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TwoHosts")
            .field("now", &self.now)
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}
