//! Packets leave their queue for a link.

use std::net::IpAddr;

use hopwise_core::{Instant, LinkId, Transmit};

use super::Node;
use crate::queue::{Queued, WhenFull};

impl Node {
    /// Appends the next packet for a neighbour, of at most `bytes`, to `out`, and returns its id. It leaves in one
    /// frame with the `held` packets for that neighbour that the link has already.
    pub fn poll_beside(
        &mut self,
        now: Instant,
        link: LinkId,
        (to, bytes, held): (IpAddr, usize, usize),
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        let (_, queue) = self.interfaces.iter_mut().find(|(interface, _)| interface.link == link)?;
        let queued = queue.pop_beside(to, bytes, held)?;
        Some(self.hand_over(now, link, queued, out).id)
    }

    /// A packet leaves its queue for the link.
    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        link: LinkId,
        mut queued: Queued,
        out: &mut Vec<u8>,
    ) -> Transmit {
        let is_held = self
            .interfaces
            .iter()
            .any(|(interface, _)| interface.link == link && interface.when_full == WhenFull::Hold);
        self.queued_at = Some(queued.at);
        std::mem::swap(out, &mut queued.packet);
        self.keep_buffer(queued.packet);
        if is_held {
            self.pull(now);
            self.obey_routing(now);
        }
        Transmit { to: queued.to, class: queued.class, segment_bytes: None, id: queued.id }
    }
}
