//! Packets leave their queue, for a link or for good.

use hopwise_core::queue::{Beside, Category, Queued, Spent};
use hopwise_core::{Cast, Instant, LinkId, Rx, Transmit};

use super::Node;
use crate::queue::{InterfaceQueue, WhenFull};

impl Node {
    /// From now on a link takes packets by category. Call it before there are any.
    pub fn divide(&mut self, link: LinkId) {
        if let Some(queue) = self.queue_mut(link) {
            queue.divide();
        }
    }

    /// Appends the next packet of a category to `out`, as [`Machine::poll_transmit`](hopwise_core::Machine) does. The
    /// link has `held` packets already.
    pub fn poll_in(
        &mut self,
        now: Instant,
        link: LinkId,
        (category, held): (Category, usize),
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.hand_over(now, link, out, |queue| queue.pop_in(now, category, held))
    }

    /// Appends to `out` the next packet for which the link has room, and returns its id. All leave in one frame.
    pub fn poll_beside(
        &mut self,
        now: Instant,
        link: LinkId,
        fits: &Beside,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        self.hand_over(now, link, out, |queue| queue.pop_beside(now, fits)).map(|left| left.id)
    }

    /// The link tells how much time a packet has taken. A link that tells it before a packet's fate makes queues of
    /// Linux share time in place of packets.
    pub fn on_spent(&mut self, link: LinkId, spent: &Spent) {
        if let Some(queue) = self.queue_mut(link) {
            queue.on_spent(spent);
        }
    }

    /// A packet that has come takes time of the station that sent it.
    #[inline]
    pub(super) fn note_heard(&mut self, rx: &Rx<'_>) {
        if self.has_fq_codel
            && let (Cast::ToUs, Some(from)) = (rx.cast, rx.from)
            && let Some(queue) = self.queue_mut(rx.link)
        {
            queue.on_heard(from, rx.packet);
        }
    }

    /// Traces what a queue has dropped.
    #[inline]
    pub(super) fn tell_lost(&mut self, now: Instant, link: LinkId) {
        if self.has_fq_codel {
            self.trace_lost(now, link);
        }
    }

    fn trace_lost(&mut self, now: Instant, link: LinkId) {
        while let Some(queue) = self.queue_mut(link)
            && let Some((lost, reason)) = queue.poll_lost()
        {
            self.dropped(now, lost.id, reason);
            self.spare.keep(lost.packet);
        }
    }

    /// The next packet that `pop` takes leaves its queue for the link.
    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        link: LinkId,
        out: &mut Vec<u8>,
        pop: impl FnOnce(&mut InterfaceQueue) -> Option<Queued>,
    ) -> Option<Transmit> {
        let queued = pop(self.queue_mut(link)?);
        self.tell_lost(now, link);
        let mut queued = queued?;
        let is_held = self
            .interfaces
            .iter()
            .any(|(interface, _)| interface.link == link && interface.when_full == WhenFull::Hold);
        self.queued_at = Some(queued.at);
        std::mem::swap(out, &mut queued.packet);
        self.spare.keep(queued.packet);
        if is_held {
            self.pull(now);
            self.obey_routing(now);
        }
        Some(Transmit { to: queued.to, class: queued.class, segment_bytes: None, id: queued.id })
    }
}
