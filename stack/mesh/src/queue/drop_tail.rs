//! The queue of ns-2 and the papers: drop-tail, routing packets at the head, purged by next hop.
//!
//! For a link that takes packets by category each has its own length.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopwise_core::queue::{Category, Queued};
use hopwise_core::{NextHop, QueueClass};

/// The packets that wait for one link.
#[derive(Debug)]
pub(super) struct DropTail {
    waiting: VecDeque<Queued>,
    most: usize,
    /// The packets that the link holds, of those that it has reported to hold beside others.
    held: usize,
    /// While the link takes packets by category: how many of each wait.
    of_category: Option<[usize; 4]>,
    /// Packets that found no room.
    pub(super) drops: u64,
}

impl DropTail {
    /// A queue of `packets`, of which the link itself holds one or more.
    pub(super) fn new(packets: usize) -> DropTail {
        let most = packets.max(2);
        DropTail {
            waiting: VecDeque::with_capacity(most.min(64)),
            most,
            held: 1,
            of_category: None,
            drops: 0,
        }
    }

    /// From now on the link takes packets by category. Call it before there are any.
    pub(super) fn divide(&mut self) {
        self.of_category = Some([0; 4]);
    }

    fn count(&mut self, queued: &Queued, change: isize) {
        if let Some(counts) = &mut self.of_category {
            let count = &mut counts[Category::of_packet(&queued.packet).index()];
            *count = count.saturating_add_signed(change);
        }
    }

    /// Returns whether the next data packet finds no room; with categories, the next one of best effort.
    pub(super) fn is_full(&self) -> bool {
        self.is_full_for(|| Category::BestEffort)
    }

    fn is_full_for(&self, category: impl FnOnce() -> Category) -> bool {
        let waiting = self.of_category.map_or(self.waiting.len(), |counts| counts[category().index()]);
        waiting + self.held >= self.most
    }

    /// Makes room for a routing packet.
    fn push_out(&mut self, queued: &Queued) -> Option<Queued> {
        let category = Category::of_packet(&queued.packet);
        let is_divided = self.of_category.is_some();
        let is_of_it = |other: &Queued| !is_divided || Category::of_packet(&other.packet) == category;
        let last = self.waiting.iter().rposition(is_of_it)?;
        self.remove(last)
    }

    /// The packets that wait, without the one that the link holds.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the packet that found no room: a data packet itself, or the last in the queue for a routing packet.
    #[must_use]
    pub(super) fn push(&mut self, queued: Queued) -> Option<Queued> {
        let is_full = self.is_full_for(|| Category::of_packet(&queued.packet));
        self.drops += u64::from(is_full);
        if queued.class == QueueClass::Data {
            if is_full {
                return Some(queued);
            }
            self.count(&queued, 1);
            self.waiting.push_back(queued);
            return None;
        }
        let lost = if is_full { self.push_out(&queued) } else { None };
        self.count(&queued, 1);
        let behind = self.waiting.iter().take_while(|other| other.class == QueueClass::Routing).count();
        self.waiting.insert(behind, queued);
        lost
    }

    /// Takes the packet that leaves next. The link holds it alone.
    pub(super) fn pop(&mut self) -> Option<Queued> {
        self.held = 1;
        let next = self.waiting.pop_front();
        next.iter().for_each(|next| self.count(next, -1));
        next
    }

    /// Takes the packet of a category that leaves next, beside the packets that the link holds.
    pub(super) fn pop_in(&mut self, category: Category, held: usize) -> Option<Queued> {
        let next = self.next_in(category, |_| true)?;
        self.held = held + 1;
        self.remove(next)
    }

    /// Takes the next packet of a category for this neighbour, if it is no longer than `bytes`. It leaves beside the
    /// packets that the link holds; as a link may send several at once, they count with those that wait.
    pub(super) fn pop_beside(
        &mut self,
        category: Category,
        (to, bytes): (IpAddr, usize),
        held: usize,
    ) -> Option<Queued> {
        let next = self.next_in(category, |queued| queued.to == NextHop::Neighbour(to))?;
        if self.waiting[next].packet.len() > bytes {
            return None;
        }
        self.held = held + 1;
        self.remove(next)
    }

    /// The place of the first packet of a category that is meant; without categories, of the first that is meant.
    fn next_in(&self, category: Category, is_meant: impl Fn(&Queued) -> bool) -> Option<usize> {
        let Some(counts) = self.of_category else { return self.waiting.iter().position(is_meant) };
        let is_of_it = |queued: &Queued| Category::of_packet(&queued.packet) == category;
        if counts[category.index()] == 0 {
            return None;
        }
        self.waiting.iter().position(|queued| is_of_it(queued) && is_meant(queued))
    }

    fn remove(&mut self, place: usize) -> Option<Queued> {
        let queued = self.waiting.remove(place);
        queued.iter().for_each(|queued| self.count(queued, -1));
        queued
    }

    /// The link has reported the fate of a packet that it held.
    pub(super) fn on_gone(&mut self) {
        self.held = self.held.saturating_sub(1).max(1);
    }

    /// Removes every packet that `unwanted` picks.
    pub(super) fn purge(&mut self, mut unwanted: impl FnMut(&Queued) -> bool) -> Vec<Queued> {
        let (mut gone, mut kept) = (Vec::new(), VecDeque::with_capacity(self.waiting.len()));
        for queued in self.waiting.drain(..) {
            if unwanted(&queued) {
                gone.push(queued);
            } else {
                kept.push_back(queued);
            }
        }
        self.waiting = kept;
        gone.iter().for_each(|queued| self.count(queued, -1));
        gone
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::Instant;

    use super::*;

    fn queued(id: u64, class: QueueClass, via: [u8; 4]) -> Queued {
        Queued { to: NextHop::Neighbour(via.into()), class, id, at: Instant::ZERO, packet: vec![id as u8] }
    }

    fn data(id: u64) -> Queued {
        queued(id, QueueClass::Data, [10, 0, 0, 1])
    }

    fn ids(queue: &mut DropTail) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|queued| queued.id).collect()
    }

    #[test]
    fn a_queue_of_50_lets_49_wait_and_drops_the_next() {
        let mut queue = DropTail::new(50);
        let lost: Vec<_> = (0..51).filter_map(|id| queue.push(data(id))).map(|lost| lost.id).collect();
        assert_eq!((lost, queue.len(), queue.drops), (vec![49, 50], 49, 2));
    }

    #[test]
    fn packets_that_leave_beside_others_are_for_the_same_neighbour_and_count_until_they_are_gone() {
        let mut queue = DropTail::new(5);
        for (id, last) in [(1, 1), (2, 2), (3, 1), (4, 1)] {
            assert!(queue.push(queued(id, QueueClass::Data, [10, 0, 0, last])).is_none());
        }
        let to = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(queue.pop().map(|queued| queued.id), Some(1));
        let best = Category::BestEffort;
        assert!(queue.pop_beside(best, (to, 0), 1).is_none(), "it does not fit");
        assert_eq!(queue.pop_beside(best, (to, 1), 1).map(|queued| queued.id), Some(3));
        assert_eq!(queue.pop_beside(best, (to, 1), 2).map(|queued| queued.id), Some(4));
        // Three in the radio and one that waits: one finds room.
        assert!(queue.push(data(5)).is_none() && queue.push(data(6)).is_some());
        queue.on_gone();
        assert!(queue.push(data(7)).is_none() && queue.push(data(8)).is_some());
        (0..9).for_each(|_| queue.on_gone());
        assert_eq!((queue.len(), queue.is_full()), (3, false));
    }

    #[test]
    fn routing_packets_go_before_data_in_their_own_order_and_push_the_last_out() {
        let mut queue = DropTail::new(4);
        (0..3).for_each(|id| assert!(queue.push(data(id)).is_none()));
        let routing = |id| queued(id, QueueClass::Routing, [10, 0, 0, 2]);
        assert_eq!(queue.push(routing(7)).map(|lost| lost.id), Some(2));
        assert_eq!(queue.push(routing(8)).map(|lost| lost.id), Some(1));
        assert_eq!(ids(&mut queue), [7, 8, 0]);
    }

    #[test]
    fn each_category_has_its_own_order_and_its_own_length() {
        let mut queue = DropTail::new(3);
        queue.divide();
        let marked = |id: u64, traffic_class: u8| Queued { packet: vec![0x45, traffic_class], ..data(id) };
        for (id, traffic_class) in [(1, 0), (2, 0x88), (3, 0), (4, 0x88)] {
            assert!(queue.push(marked(id, traffic_class)).is_none());
        }
        assert_eq!(queue.push(marked(5, 0)).map(|lost| lost.id), Some(5));
        assert!(queue.is_full() && queue.push(marked(6, 0xc0)).is_none(), "voice has its own");
        let first = |queue: &mut DropTail, category| queue.pop_in(category, 0).map(|queued| queued.id);
        assert_eq!(first(&mut queue, Category::Voice), Some(6));
        assert_eq!(first(&mut queue, Category::Voice), None);
        assert_eq!(first(&mut queue, Category::Video), Some(2));
        assert_eq!(first(&mut queue, Category::BestEffort), Some(1));
        let to = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(queue.pop_beside(Category::Video, (to, 9), 1).map(|queued| queued.id), Some(4));
        // One of best effort waits, and the link holds two.
        assert!(queue.push(marked(7, 0)).is_some());
        let routing = |id| Queued { class: QueueClass::Routing, ..marked(id, 0) };
        assert_eq!(queue.push(routing(8)).map(|lost| lost.id), Some(3), "a routing packet pushes one out");
        assert_eq!(queue.purge(|queued| queued.id == 8).len(), 1);
        assert_eq!((first(&mut queue, Category::BestEffort), queue.len()), (None, 0));
    }
}
