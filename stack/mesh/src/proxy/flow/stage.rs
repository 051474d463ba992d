//! How far a flow has come: whether both ends speak, whether it has ended, and whether its ports are used again.

use hopwise_core::Instant;
use hopwise_core::agent::Side;
use hopwise_core::wire::{Flags, TcpView};

use super::Flow;
use crate::proxy::read::{Read, parse};

impl Flow {
    /// As far as can be told: one end may go on for as long as it likes after the other has said its last, and what is
    /// kept is still to be said.
    pub(in crate::proxy) fn has_ended(&self) -> bool {
        (self.was_reset || self.has_finished == [true; 2]) && self.kept_packets() == 0
    }

    /// Both sides were seen, and the agent can serve it.
    pub(in crate::proxy) fn earns_a_seat(&self) -> bool {
        self.has_spoken == [true; 2] && self.is_attended()
    }

    /// Both ends speak on it.
    pub(in crate::proxy) fn is_under_way(&self) -> bool {
        self.has_spoken == [true; 2] && !self.has_ended()
    }

    /// A SYN has come that may begin another connection with the same ports. It may be made up, too: the flow goes on
    /// until the other end answers it (RFC 5961 §4).
    pub(in crate::proxy) fn may_reopen(&mut self, from: Side, syn: &[u8]) {
        self.reopening = Some((from, syn.into()));
    }

    /// The SYN that this answers, where another connection begins with it.
    pub(in crate::proxy) fn reopens(&self, from: Side, tcp: &TcpView<'_>) -> Option<Box<[u8]>> {
        let (opener, packet) = self.reopening.as_ref()?;
        let (_, syn) = parse(packet)?;
        let is_answer = tcp.flags.contains(Flags::SYN | Flags::ACK) && tcp.ack == syn.seq + 1;
        (from == opener.other() && is_answer).then(|| packet.clone())
    }

    /// Its SYN has passed before.
    pub(in crate::proxy) fn begin(&mut self, now: Instant, from: Side, syn: &Read<'_>) {
        self.has_spoken[from as usize] |= self.facts.see(now, from, syn).is_some();
    }
}
