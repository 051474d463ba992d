//! Datagrams at intervals, or as many as leave; and the program that counts them.

use std::net::SocketAddr;
use std::time::Duration;

use hopwise_air::random::{Purpose, Stream};
use hopwise_core::Instant;
use hopwise_core::ip::{UdpId, UdpOptions};
use hopwise_mesh::Node;

use super::Tally;
use crate::sim::draw::Amount;
use crate::sim::names::RADIO;

/// The largest datagram's payload.
static PAYLOAD: [u8; 1 << 16] = [0; 1 << 16];
/// A saturated source keeps this many packets waiting.
const AHEAD: usize = 2;
/// A source that sends as much as leaves looks also this often: routing may have dropped all its datagrams.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Source {
    to: SocketAddr,
    bytes: u16,
    hop_limit: u8,
    every: Option<Amount>,
    gaps: Stream,
    next: Instant,
    stop: Instant,
    has_begun: bool,
    socket: Option<UdpId>,
    sent: u64,
}

impl Source {
    pub(super) fn new(
        to: SocketAddr,
        (bytes, hop_limit): (u16, u8),
        every: Option<Amount>,
        (start, stop): (Instant, Instant),
        (seed, index): (u64, u16),
    ) -> Source {
        let gaps = Stream::new(seed, u32::from(index), Purpose::ThinkTime);
        Source {
            to,
            bytes,
            hop_limit,
            every,
            gaps,
            next: start,
            stop,
            has_begun: false,
            socket: None,
            sent: 0,
        }
    }

    pub(super) fn open(&mut self, node: &mut Node, port: u16) {
        let options = UdpOptions { hop_limit: self.hop_limit, ..UdpOptions::default() };
        self.socket =
            node.with_endpoint(Instant::ZERO, |endpoint| endpoint.udp_bind(None, port, options)).ok();
    }

    pub(super) fn is_saturated(&self) -> bool {
        self.every.is_none()
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn next(&self) -> Instant {
        if self.socket.is_some() { self.next } else { Instant::FAR }
    }

    pub(super) fn begin(&mut self, now: Instant, node: &mut Node) {
        let gap = self.every.map(|every| Duration::from_nanos(every.draw(&mut self.gaps)));
        self.next = now + gap.unwrap_or(LOOKS_EVERY);
        if now >= self.stop {
            self.next = Instant::FAR;
            return;
        }
        if self.has_begun && self.is_saturated() {
            return self.refill(now, node);
        }
        self.has_begun = true;
        let count = if self.is_saturated() { AHEAD } else { 1 };
        (0..count).for_each(|_| self.send(now, node));
    }

    /// Sends a datagram. One that does not fit is lost, as in any queue.
    fn send(&mut self, now: Instant, node: &mut Node) {
        let Some(socket) = self.socket else { return };
        let payload = &PAYLOAD[..usize::from(self.bytes)];
        let sent = node.with_endpoint(now, |endpoint| endpoint.udp_send(socket, self.to, None, payload));
        self.sent += u64::from(sent.is_ok());
    }

    pub(super) fn refill(&mut self, now: Instant, node: &mut Node) {
        if !self.is_saturated() || !self.has_begun || self.socket.is_none() || now >= self.stop {
            return;
        }
        // A datagram may not come into the queue: routing keeps it while it looks for a route.
        for _ in 0..AHEAD {
            if node.queue(RADIO).is_none_or(|queue| queue.len() >= AHEAD || queue.is_full()) {
                return;
            }
            self.send(now, node);
        }
    }
}

#[derive(Debug)]
pub(super) struct Sink {
    socket: Option<UdpId>,
    pub(super) tally: Tally,
}

impl Sink {
    pub(super) fn new(tally: Tally) -> Sink {
        Sink { socket: None, tally }
    }

    pub(super) fn open(&mut self, node: &mut Node, port: u16) {
        self.socket = node
            .with_endpoint(Instant::ZERO, |endpoint| endpoint.udp_bind(None, port, UdpOptions::default()))
            .ok();
    }

    pub(super) fn read(&mut self, now: Instant, node: &mut Node) {
        let Some(socket) = self.socket else { return };
        node.with_endpoint(now, |endpoint| {
            while let Some(datagram) = endpoint.udp_recv(socket) {
                self.tally.add(now, datagram.payload.len() as u64);
            }
        });
    }
}
