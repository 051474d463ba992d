//! A link with deliberate faults: it loses, delays, reorders, repeats, corrupts and slows packets of any link, by a
//! seed.
//!
//! It tests machines without a traffic-control discipline for it. Which packets it hits depends on the seed and on
//! their order alone; when they pass depends on the clock.

mod impaired;

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use hopwise_core::impairment::{Impairment, Passage, turn_over};
use hopwise_core::wire::Checksums;
use hopwise_core::{Instant, LinkEvent, StationAddress, Transmit};

use crate::counters::{LinkCounters, LinkDrop, LinkTally};
use crate::frames::{EthernetHeader, KeptFrame};
use crate::link::{Arrived, Link, LinkError, LinkProperties, Received, Sent};

use impaired::Impaired;

/// The time between two attempts of a due packet on a full link.
const RETRY: Duration = Duration::from_millis(1);

/// A link with faults.
#[derive(Debug)]
pub struct Fault {
    inner: Box<dyn Link>,
    incoming: Impaired<Arrived>,
    outgoing: Impaired<Transmit>,
    /// A copy of a packet that was corrupted on its way out; the driver's own packet stays as it is.
    spoilt: Vec<u8>,
    /// The decision for a packet that a full link refused. The driver offers it again before any other.
    held: Option<Passage>,
    /// A full link is not tried again until then.
    full_until: Instant,
}

impl Fault {
    /// Puts a link behind faults, one set for each direction. An error names a setting that cannot work.
    pub fn wrap(
        inner: Box<dyn Link>,
        incoming: Impairment,
        outgoing: Impairment,
        seed: u64,
    ) -> Result<Fault, LinkError> {
        for config in [&incoming, &outgoing] {
            config.check().map_err(|what| LinkError::Setting { device: inner.tally().name.clone(), what })?;
        }
        Ok(Fault {
            inner,
            incoming: Impaired::new(incoming, seed),
            outgoing: Impaired::new(outgoing, !seed),
            spoilt: Vec::new(),
            held: None,
            full_until: Instant::ZERO,
        })
    }

    /// The next packet whose time has come.
    fn due(&mut self, now: Instant, into: &mut [u8]) -> Option<Arrived> {
        let (packet, arrived) = self.incoming.due(now)?;
        into[..packet.len()].copy_from_slice(packet);
        let arrived = *arrived;
        self.incoming.drop_due();
        Some(arrived)
    }

    /// If the link vouches for checksums, no receiver could detect a corrupted packet.
    fn may_spoil(&self) -> bool {
        self.inner.properties().checksums == Checksums::Verify
    }

    fn release_outgoing(&mut self, now: Instant) {
        while now >= self.full_until
            && let Some((packet, transmit)) = self.outgoing.due(now)
        {
            if self.inner.transmit(now, transmit, packet) == Sent::Full {
                // It stays before later packets.
                self.full_until = now + RETRY;
            } else {
                self.outgoing.drop_due();
            }
        }
        self.inner.flush(now);
    }
}

impl Link for Fault {
    fn properties(&self) -> LinkProperties {
        self.inner.properties()
    }

    fn tally(&self) -> &LinkTally {
        self.inner.tally()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }

    fn receive(&mut self, now: Instant, into: &mut [u8]) -> Received {
        if let Some(arrived) = self.due(now, into) {
            return Received::Packet(arrived);
        }
        let received = self.inner.receive(now, into);
        let Received::Packet(arrived) = received else { return received };
        let packet = &mut into[..arrived.bytes];
        let Some(Passage { at, again, spoils, .. }) = self.incoming.decide(now, packet.len()) else {
            return Received::Dropped;
        };
        if let Some(bit) = spoils.filter(|_| self.may_spoil()) {
            turn_over(packet, bit);
        }
        if let Some(again) = again {
            self.incoming.put(again, packet, arrived);
        }
        if at <= now && !self.incoming.is_busy(now) {
            return Received::Packet(arrived);
        }
        self.incoming.put(at, packet, arrived);
        self.due(now, into).map_or(Received::Dropped, Received::Packet)
    }

    fn transmit(&mut self, now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent {
        if self.outgoing.is_busy(now) {
            self.release_outgoing(now);
        }
        let Some(passage) = self.held.take().or_else(|| self.outgoing.decide(now, packet.len())) else {
            return Sent::Taken;
        };
        let mut packet = packet;
        if let Some(bit) = passage.spoils.filter(|_| self.may_spoil()) {
            self.spoilt.clear();
            self.spoilt.extend_from_slice(packet);
            turn_over(&mut self.spoilt, bit);
            packet = &self.spoilt;
        }
        if let Some(again) = passage.again {
            self.outgoing.put(again, packet, *transmit);
        }
        if passage.at <= now && !self.outgoing.is_busy(now) {
            let sent = self.inner.transmit(now, transmit, packet);
            self.held = (sent == Sent::Full).then_some(Passage { again: None, ..passage });
            return if sent == Sent::Waits { Sent::Taken } else { sent };
        }
        self.outgoing.put(passage.at, packet, *transmit);
        Sent::Taken
    }

    fn flush(&mut self, now: Instant) {
        self.release_outgoing(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let outgoing = self.outgoing.next_at().map(|at| at.max(self.full_until));
        [self.incoming.next_at(), outgoing, self.inner.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.release_outgoing(now);
        if self.inner.poll_timeout().is_some_and(|at| at <= now) {
            self.inner.handle_timeout(now);
        }
    }

    fn drain_events(&mut self, sink: &mut dyn FnMut(&LinkEvent<'_>)) {
        self.inner.drain_events(sink);
    }

    fn ethernet_of(&self, transmit: &Transmit, packet: &[u8]) -> Option<EthernetHeader> {
        self.inner.ethernet_of(transmit, packet)
    }

    fn station_of(&self, neighbour: IpAddr) -> Option<StationAddress> {
        self.inner.station_of(neighbour)
    }

    fn keep_frames(&mut self, are_kept: bool) {
        self.inner.keep_frames(are_kept);
    }

    /// Drains the link's own frames alone: the machine's packets were shown when they were handed over.
    fn drain_frames(&mut self, sink: &mut dyn FnMut(&KeptFrame)) {
        self.inner.drain_frames(&mut |frame| {
            if frame.id.is_none() {
                sink(frame);
            }
        });
    }

    fn takes_back(&self) -> bool {
        self.inner.takes_back()
    }

    fn counters(&self) -> LinkCounters {
        let mut counters = self.inner.counters();
        for impaired in [self.incoming.lost(), self.outgoing.lost()] {
            for (reason, packets) in impaired {
                *counters.drops.entry(reason).or_default() += packets;
            }
        }
        counters.drops.retain(|_, packets| *packets > 0);
        counters
    }
}

/// The drops that an impaired direction counts.
type ImpairedDrops = [(LinkDrop, u64); 2];

#[cfg(test)]
mod tests;
