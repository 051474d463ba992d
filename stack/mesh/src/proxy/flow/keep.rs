//! The packets that a flow keeps, and their fate when memory is short.

use hopwise_core::Instant;
use hopwise_core::agent::{Because, Passing, Side};
use hopwise_core::narrow::as_u32;
use hopwise_core::trace::{DropReason, Lacking, TraceKind};

use super::{CurrentPacket, ProxyFlow};
use crate::proxy::outbox::{Outbox, TraceLabel};
use crate::proxy::read::ReadPacket;
use crate::proxy::store::{KeptPacket, PacketStore};

/// The largest number of packets that each side of a flow keeps, unless its memory holds more of [`LEAST_BYTES`].
const MOST_PACKETS: usize = 8_192;
/// The least mean size of packets in a flow that keeps more than [`MOST_PACKETS`].
const LEAST_BYTES: usize = 1_024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    Original,
    Copy,
}

impl ProxyFlow {
    pub(super) fn keep(
        &mut self,
        passing: &Passing<'_>,
        because: Because,
        keeps: Keeps,
        at_hand: CurrentPacket<'_>,
        out: &mut Outbox,
    ) {
        let (now, from) = (passing.now, passing.from);
        let is_here = passing.len > 0 && self.store(from).has(passing.seq, passing.end());
        match (is_here, keeps) {
            (true, Keeps::Original) => {
                return out.dropped(now, self.number, at_hand.id, DropReason::AlreadyKept);
            }
            (true, Keeps::Copy) => return self.forward(passing, at_hand, out),
            (false, _) => {}
        }
        if !self.fits(from, at_hand) {
            self.overflow(now, out);
            return self.forward(passing, at_hand, out);
        }
        let packet = at_hand.packet.to_vec();
        let kept = KeptPacket::new(at_hand.id, passing, packet, keeps == Keeps::Copy);
        let label = TraceLabel { from, number: kept.number(), len: kept.len(), because };
        out.note(now, self.number, at_hand.id, label.kept());
        self.store(from).put(kept);
        match keeps {
            Keeps::Copy => {
                out.copied += 1;
                self.forward(passing, at_hand, out);
            }
            Keeps::Original => {
                out.held += u64::from(from == Side::Mobile && passing.len == 0);
                self.facts.trips.pause();
            }
        }
    }

    /// Fails open: held packets of the mobile go on. The cache stays as it is, since its receiver is away.
    fn overflow(&mut self, now: Instant, out: &mut Outbox) {
        if self.overflowed.is_none() {
            self.overflowed = Some(now);
            out.overflows += 1;
            out.note(now, self.number, 0, TraceKind::Fallback(Lacking::Memory));
            self.agent.on_overflow(now);
        }
        // Whichever packet did not fit: the agent plans nothing more for the held ones.
        self.release(now, Side::Mobile, u32::MAX, Because::NoRoom, out);
    }

    /// Takes data back that the link gave up; returns whether it is kept.
    pub(in crate::proxy) fn take_back(
        &mut self,
        now: Instant,
        read: &ReadPacket<'_>,
        at_hand: CurrentPacket<'_>,
        out: &mut Outbox,
    ) -> bool {
        let tcp = &read.tcp;
        let end = tcp.seq + as_u32(tcp.payload.len());
        if !self.is_attended() || !self.agent.takes_back() || tcp.payload.is_empty() {
            return false;
        }
        if self.data.has(tcp.seq, end) || self.facts.acked.is_some_and(|acked| end <= acked) {
            return true;
        }
        if !self.fits(Side::Fixed, at_hand) {
            self.overflow(now, out);
            return false;
        }
        let packet = at_hand.packet.to_vec();
        let kept = KeptPacket {
            id: at_hand.id,
            seq: tcp.seq,
            end,
            ack: None,
            was_sent: false,
            duplicates: 0,
            packet,
        };
        let because = Because::Gone;
        let label = TraceLabel { from: Side::Fixed, number: tcp.seq, len: kept.len(), because };
        out.note(now, self.number, at_hand.id, label.kept());
        self.data.put(kept);
        true
    }

    fn fits(&self, of: Side, at_hand: CurrentPacket<'_>) -> bool {
        let own = match of {
            Side::Mobile => &self.acks,
            Side::Fixed => &self.data,
        };
        let most_packets = MOST_PACKETS.max(self.most_bytes / LEAST_BYTES);
        let fits_flow =
            own.bytes() + PacketStore::cost(at_hand.packet) <= self.most_bytes && own.len() < most_packets;
        self.overflowed.is_none() && fits_flow && at_hand.has_room
    }

    /// Releases all kept packets, because other mobiles need the memory. Copies already went on when they came.
    pub(in crate::proxy) fn make_room(&mut self, now: Instant, out: &mut Outbox) {
        out.pushed_out += self.kept_packets() as u64;
        self.overflow(now, out);
        while let Some(kept) = self.data.pop() {
            if kept.was_sent {
                out.spare.keep(kept.packet);
            } else {
                self.let_out(now, Side::Fixed, kept, Because::NoRoom, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hopwise_agents::StandardAgents;
    use hopwise_core::agent::BaseStationMaker;
    use hopwise_core::wire::{Checksums, Flags, TcpOptions};

    use super::*;
    use crate::proxy::read;
    use crate::proxy::tests::packet;

    const NOW: Instant = Instant::ZERO;

    fn flow() -> ProxyFlow {
        let agent = StandardAgents::default().base_station("none").expect("an agent that there is")();
        ProxyFlow::new(1, agent.agent(), 10_000, NOW)
    }

    fn ack() -> Vec<u8> {
        let [fixed, mobile] = ["[fd00::1]:5001", "[fd00::2]:40000"]
            .map(|end| end.parse::<SocketAddr>().expect("an address and a port"));
        packet(mobile, fixed, (1, 1_000), Flags::ACK, &TcpOptions::default(), &[])
    }

    /// A device may hand in more than the packet: Ethernet pads short frames.
    #[test]
    fn a_pattern_for_acks_has_nothing_that_comes_after_the_packet() {
        let (mut flow, mut out) = (flow(), Outbox::new(10, 0, 0));
        let mut longer = ack();
        longer.extend([0; 1_000]);
        let read = read::read(&longer, Side::Mobile, Checksums::Verify).expect("a segment");
        let at_hand = CurrentPacket::new(1, &longer, &read, None, true);
        flow.take(NOW, Side::Mobile, &read, at_hand, &mut out);
        assert_eq!(flow.pure_ack, ack());
    }

    #[test]
    fn an_ack_with_extension_headers_is_no_pattern_when_it_was_held_either() {
        let (mut flow, mut out) = (flow(), Outbox::new(10, 0, 0));
        let mut longer = ack();
        // Destination options: one that pads (RFC 8200 §4.2).
        let mut options = vec![0; 256];
        options[..4].copy_from_slice(&[longer[6], 31, 1, 252]);
        longer[6] = 60;
        let len = (longer.len() - 40 + options.len()) as u16;
        longer[4..6].copy_from_slice(&len.to_be_bytes());
        longer.splice(40..40, options);
        let read = read::read(&longer, Side::Mobile, Checksums::Verify).expect("a segment");
        let passing = flow.facts.see(NOW, Side::Mobile, &read).expect("it fits");
        flow.acks.put(KeptPacket::new(1, &passing, longer.clone(), false));
        flow.let_go(NOW, Because::NoRoom, &mut out);
        assert_eq!((flow.pure_ack.len(), out.queue(Side::Fixed).len()), (0, 1));
    }
}
