//! The packets that the machine has given for a link: one, or the segments of a bundle that the link does not cut
//! itself.

use hopwise_core::wire::bundle::Cutter;
use hopwise_core::{Instant, LinkId, Machine, Payload, Transmit};

use crate::link::{Gather, MAX_PACKET, Sent};

/// Allocated once; a single packet is written where it leaves from.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The instructions for all packets here.
    transmit: Option<Transmit>,
    bundle: Vec<u8>,
    /// Packets one after the other, all but the last as long as `each`.
    packets: Vec<u8>,
    each: usize,
    /// The offset of the next packet.
    at: usize,
}

impl Outgoing {
    pub(super) fn new() -> Outgoing {
        let packets = Vec::with_capacity(MAX_PACKET);
        Outgoing { transmit: None, bundle: Vec::new(), packets, each: 0, at: 0 }
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
        self.packets.clear();
        let transmit = machine.poll_transmit(now, id, Payload::Lent, &mut self.packets)?;
        let (front, back) = machine.lent();
        let sent = link.transmit_pieces(&transmit, [&self.packets, front, back]);
        if sent == Sent::Full {
            self.packets.extend_from_slice(front);
            self.packets.extend_from_slice(back);
        }
        (self.each, self.at) = (self.packets.len(), 0);
        self.transmit = Some(transmit);
        Some(sent)
    }

    /// Fetches the next packet or bundle, once the last has left.
    pub(super) fn fill(&mut self, now: Instant, machine: &mut impl Machine, link: LinkId, link_cuts: bool) {
        if !self.is_empty() {
            return;
        }
        self.packets.clear();
        let Some(transmit) = machine.poll_transmit(now, link, Payload::Inline, &mut self.packets) else {
            return;
        };
        (self.each, self.at) = (self.packets.len(), 0);
        let cut = transmit.segment_bytes.filter(|_| !link_cuts);
        let is_cut = cut.is_some_and(|segment_bytes| self.cut(segment_bytes));
        self.transmit = Some(if is_cut { Transmit { segment_bytes: None, ..transmit } } else { transmit });
    }

    /// A bundle that cannot be cut stays whole. The link refuses and counts it.
    fn cut(&mut self, segment_bytes: u16) -> bool {
        std::mem::swap(&mut self.bundle, &mut self.packets);
        let Ok(mut cutter) = Cutter::new(&self.bundle, segment_bytes) else {
            std::mem::swap(&mut self.bundle, &mut self.packets);
            return false;
        };
        self.packets.clear();
        cutter.cut(&mut self.packets);
        self.each = self.packets.len();
        while cutter.cut(&mut self.packets) {}
        true
    }

    pub(super) fn next(&self) -> Option<(&Transmit, &[u8])> {
        let end = (self.at + self.each).min(self.packets.len());
        Some((self.transmit.as_ref()?, &self.packets[self.at..end]))
    }

    /// Drops the packet that has left, or was refused.
    pub(super) fn advance(&mut self) {
        self.at += self.each;
        if self.at >= self.packets.len() {
            self.transmit = None;
        }
    }
}
