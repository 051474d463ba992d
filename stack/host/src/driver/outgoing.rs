//! What the machine has given for a link: a packet, or a bundle that the link does not cut itself. Each segment is cut
//! when it leaves, into memory that is still warm from the segment before.

use hopwise_core::wire::bundle::Cutter;
use hopwise_core::{Instant, LinkId, Machine, Payload, Transmit};

use crate::link::{Gather, MAX_PACKET, Sent};

/// Allocated once; a single packet is written where it leaves from.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The instructions for all packets here.
    transmit: Option<Transmit>,
    /// The next packet.
    packet: Vec<u8>,
    bundle: Vec<u8>,
    /// Has the segments of the bundle that follow the next packet.
    cutter: Option<Cutter>,
}

impl Outgoing {
    pub(super) fn new() -> Outgoing {
        let packet = Vec::with_capacity(MAX_PACKET);
        Outgoing { transmit: None, packet, bundle: Vec::new(), cutter: None }
    }

    /// Returns whether all packets of the machine have left.
    pub(super) fn is_empty(&self) -> bool {
        self.transmit.is_none()
    }

    /// Fetches the next packet for a link that takes it in pieces. If the link is full, the packet is kept as a whole
    /// (D2).
    pub(super) fn gather(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        id: LinkId,
        link: &mut dyn Gather,
    ) -> Option<Sent> {
        self.packet.clear();
        let transmit = machine.poll_transmit(now, id, Payload::Lent, &mut self.packet)?;
        let (front, back) = machine.lent();
        let sent = link.transmit_pieces(&transmit, [&self.packet, front, back]);
        if sent == Sent::Full {
            self.packet.extend_from_slice(front);
            self.packet.extend_from_slice(back);
        }
        self.transmit = Some(transmit);
        Some(sent)
    }

    /// Fetches the next packet or bundle, once the last has left.
    pub(super) fn fill(&mut self, now: Instant, machine: &mut impl Machine, link: LinkId, link_cuts: bool) {
        if !self.is_empty() {
            return;
        }
        self.packet.clear();
        let Some(transmit) = machine.poll_transmit(now, link, Payload::Inline, &mut self.packet) else {
            return;
        };
        let cut = transmit.segment_bytes.filter(|_| !link_cuts);
        let is_cut = cut.is_some_and(|segment_bytes| self.cut(segment_bytes));
        self.transmit = Some(if is_cut { Transmit { segment_bytes: None, ..transmit } } else { transmit });
    }

    /// A bundle that cannot be cut stays whole. The link refuses and counts it.
    fn cut(&mut self, segment_bytes: u16) -> bool {
        self.cutter = Cutter::new(&self.packet, segment_bytes).ok();
        if self.cutter.is_none() {
            return false;
        }
        std::mem::swap(&mut self.bundle, &mut self.packet);
        self.cut_next()
    }

    /// Returns whether there was a segment.
    fn cut_next(&mut self) -> bool {
        self.packet.clear();
        self.cutter.as_mut().is_some_and(|cutter| cutter.cut(&self.bundle, &mut self.packet))
    }

    pub(super) fn next(&self) -> Option<(&Transmit, &[u8])> {
        Some((self.transmit.as_ref()?, &self.packet))
    }

    /// Drops the packet that has left, or was refused.
    pub(super) fn advance(&mut self) {
        if !self.cut_next() {
            (self.transmit, self.cutter) = (None, None);
        }
    }
}
