//! The queue of an interface: drop-tail as in ns-2, or as Linux's mac80211 has it.

mod drop_tail;

use std::net::IpAddr;

use hopwise_core::queue::{Beside, Category, FqCodel, FqCodelConfig, Queued, Spent};
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, NextHop, QueueClass};

use crate::routing::Purged;
use drop_tail::DropTail;

/// The fate of the node's own packets when the queue is full. Forwarded ones are dropped in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is lost, as under ns-2, TUN and kernel radios.
    #[default]
    Drop,
    /// It stays in the sender until there is room.
    Hold,
}

/// The kind of a queue, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueConfig {
    /// At most this many packets, with the packets that the link holds. The next one is lost.
    DropTail {
        /// The length.
        packets: usize,
    },
    /// Linux's.
    FqCodel(FqCodelConfig),
}

/// The packets that wait for one link.
#[derive(Debug)]
pub struct InterfaceQueue {
    kind: QueueForm,
    /// Packets that were dropped under FQ-CoDel.
    fq_drops: u64,
}

#[derive(Debug)]
enum QueueForm {
    DropTail(DropTail),
    FqCodel(Box<FqCodel>),
}

impl InterfaceQueue {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> InterfaceQueue {
        let kind = match config {
            QueueConfig::DropTail { packets } => QueueForm::DropTail(DropTail::new(packets)),
            QueueConfig::FqCodel(config) => QueueForm::FqCodel(Box::new(FqCodel::new(config))),
        };
        InterfaceQueue { kind, fq_drops: 0 }
    }

    /// From now on the link takes packets by category. Call it before there are any.
    pub fn divide(&mut self) {
        match &mut self.kind {
            QueueForm::DropTail(queue) => queue.divide(),
            QueueForm::FqCodel(queue) => queue.divide(),
        }
    }

    /// Returns whether the next data packet finds no room, or costs another packet its place.
    pub fn is_full(&self) -> bool {
        match &self.kind {
            QueueForm::DropTail(queue) => queue.is_full(),
            QueueForm::FqCodel(queue) => queue.is_full(),
        }
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The packets that wait, without the packets that the link holds.
    pub fn len(&self) -> usize {
        match &self.kind {
            QueueForm::DropTail(queue) => queue.len(),
            QueueForm::FqCodel(queue) => queue.len(),
        }
    }

    /// The packets that the queue has dropped.
    pub fn drops(&self) -> u64 {
        match &self.kind {
            QueueForm::DropTail(queue) => queue.drops,
            QueueForm::FqCodel(_) => self.fq_drops,
        }
    }

    /// The packets that CoDel has marked; none under drop-tail.
    pub fn marks(&self) -> Option<u64> {
        match &self.kind {
            QueueForm::DropTail(_) => None,
            QueueForm::FqCodel(queue) => Some(queue.marks()),
        }
    }

    /// Returns the packet that found no room: a data packet itself, or the last in the queue for a routing packet.
    /// The drops of FQ-CoDel come by [`poll_lost`](Self::poll_lost).
    #[must_use]
    pub fn push(&mut self, now: Instant, queued: Queued) -> Option<Queued> {
        match &mut self.kind {
            QueueForm::DropTail(queue) => queue.push(queued),
            QueueForm::FqCodel(queue) => {
                queue.push(now, queued);
                None
            }
        }
    }

    /// Takes the packet that leaves next.
    pub fn pop(&mut self, now: Instant) -> Option<Queued> {
        match &mut self.kind {
            QueueForm::DropTail(queue) => queue.pop(),
            QueueForm::FqCodel(queue) => queue.pop(now),
        }
    }

    /// Takes the packet of a category that leaves next. It leaves beside the `held` packets that the link has.
    pub fn pop_in(&mut self, now: Instant, category: Category, held: usize) -> Option<Queued> {
        match &mut self.kind {
            QueueForm::DropTail(queue) => queue.pop_in(category, held),
            QueueForm::FqCodel(queue) => queue.pop_in(now, category),
        }
    }

    /// Takes the next packet that fits beside those that the link holds.
    pub fn pop_beside(&mut self, now: Instant, fits: &Beside) -> Option<Queued> {
        let Beside { category, to, bytes, held } = *fits;
        match &mut self.kind {
            QueueForm::DropTail(queue) => queue.pop_beside(category, (to, bytes), held),
            QueueForm::FqCodel(queue) => queue.pop_beside(now, category, (to, bytes)),
        }
    }

    /// A packet that FQ-CoDel has dropped, and the reason.
    pub fn poll_lost(&mut self) -> Option<(Queued, DropReason)> {
        let QueueForm::FqCodel(queue) = &mut self.kind else { return None };
        let lost = queue.poll_lost()?;
        self.fq_drops += 1;
        Some(lost)
    }

    /// The link has reported the fate of a packet that it held.
    pub fn on_gone(&mut self, id: u64) {
        match &mut self.kind {
            QueueForm::DropTail(queue) => queue.on_gone(),
            QueueForm::FqCodel(queue) => queue.on_gone(id),
        }
    }

    /// The link tells how much time a packet has taken. Its fate may follow.
    pub fn on_spent(&mut self, spent: &Spent) {
        if let QueueForm::FqCodel(queue) = &mut self.kind {
            queue.on_spent(spent);
        }
    }

    /// A packet has come over the link.
    pub fn on_heard(&mut self, from: IpAddr, packet: &[u8]) {
        if let QueueForm::FqCodel(queue) = &mut self.kind {
            queue.on_heard(from, packet);
        }
    }

    /// Removes every packet for this next hop that `unwanted` picks. A device below keeps the packets that it has.
    pub fn purge(
        &mut self,
        via: IpAddr,
        what: Purged,
        mut unwanted: impl FnMut(&[u8]) -> bool,
    ) -> Vec<Queued> {
        let is_meant = |queued: &Queued| {
            let is_meant = what == Purged::All || queued.class == QueueClass::Data;
            is_meant && queued.to == NextHop::Neighbour(via) && unwanted(&queued.packet)
        };
        match &mut self.kind {
            QueueForm::DropTail(queue) => queue.purge(is_meant),
            QueueForm::FqCodel(queue) => queue.purge(is_meant),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(id: u64, class: QueueClass, via: [u8; 4]) -> Queued {
        Queued { to: NextHop::Neighbour(via.into()), class, id, at: Instant::ZERO, packet: vec![id as u8] }
    }

    #[test]
    fn purging_takes_data_for_that_next_hop_alone() {
        let mut queue = InterfaceQueue::new(QueueConfig::DropTail { packets: 9 });
        for (id, class, last) in [
            (1, QueueClass::Data, 1),
            (2, QueueClass::Data, 2),
            (3, QueueClass::Routing, 1),
            (4, QueueClass::Data, 1),
        ] {
            assert!(queue.push(Instant::ZERO, queued(id, class, [10, 0, 0, last])).is_none());
        }
        let gone = queue.purge(IpAddr::from([10, 0, 0, 1]), Purged::Data, |packet| packet[0] != 4);
        assert_eq!(gone.iter().map(|queued| queued.id).collect::<Vec<_>>(), [1]);
        let all = queue.purge(IpAddr::from([10, 0, 0, 1]), Purged::All, |_| true);
        assert_eq!(all.iter().map(|queued| queued.id).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(queue.pop(Instant::ZERO).map(|queued| queued.id), Some(2));
        assert!(queue.is_empty());
    }
}
