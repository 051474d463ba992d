//! Puts the packets of several shards into the order of their times.
//!
//! Each shard's packets come in order, but one shard may lag behind another by the length of an iteration. A packet
//! waits until the newest is so much newer, or until no shard sends any more.

use std::collections::BTreeMap;
use std::time::Duration;

use super::comments::Comment;
use hopwise_core::Instant;

use super::joiner::Commented;
use super::queue::PacketHead;

/// A packet is written when the newest is so much newer.
const LAG: Duration = Duration::from_millis(500);
/// The most bytes of packets that wait. Beyond them the oldest packets are written.
const MOST_BYTES: usize = 16 << 20;

#[derive(Default)]
pub(super) struct TimeOrder {
    /// By their times; packets of one time keep the order of their arrival.
    waiting: BTreeMap<(Instant, u64), HeldPacket>,
    bytes: usize,
    newest: Instant,
    count: u64,
}

struct HeldPacket {
    shard: u16,
    head: PacketHead,
    packet: Vec<u8>,
    comment: Comment,
    of_link: Option<String>,
}

impl TimeOrder {
    pub(super) fn push(&mut self, shard: u16, commented: &Commented<'_>, of_link: Option<String>) {
        let Commented { head, packet, comment } = commented;
        self.newest = self.newest.max(head.at);
        self.bytes += packet.len();
        self.count += 1;
        let (packet, comment) = (packet.to_vec(), (*comment).clone());
        let held = HeldPacket { shard, head: *head, packet, comment, of_link };
        self.waiting.insert((head.at, self.count), held);
    }

    /// Hands on packets that have waited long enough, or all.
    pub(super) fn release(
        &mut self,
        is_everything: bool,
        sink: &mut dyn FnMut(u16, &Commented<'_>, Option<String>),
    ) {
        while let Some(oldest) = self.waiting.first_entry() {
            let is_due = oldest.key().0 + LAG <= self.newest || self.bytes > MOST_BYTES;
            if !is_everything && !is_due {
                return;
            }
            let HeldPacket { shard, head, packet, comment, of_link } = oldest.remove();
            self.bytes -= packet.len();
            sink(shard, &Commented { head, packet: &packet, comment: &comment }, of_link);
        }
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::LinkId;

    use super::*;
    use crate::observer::Direction;

    fn push(order: &mut TimeOrder, ms: u64, packet: &[u8]) {
        let head = PacketHead {
            at: Instant::from_millis(ms),
            link: LinkId(0),
            direction: Direction::Out,
            id: ms,
            header_len: 0,
        };
        order.push(0, &Commented { head, packet, comment: &Comment::default() }, None);
    }

    fn released(order: &mut TimeOrder, is_everything: bool) -> Vec<u64> {
        let mut released = Vec::new();
        order.release(is_everything, &mut |_, packet, _| released.push(packet.head.id));
        released
    }

    #[test]
    fn what_comes_late_still_finds_its_place() {
        let mut order = TimeOrder::default();
        push(&mut order, 100, b"x");
        push(&mut order, 599, b"x");
        assert_eq!(released(&mut order, false), [], "it may be overtaken yet");
        push(&mut order, 90, b"x");
        push(&mut order, 600, b"x");
        assert_eq!(released(&mut order, false), [90, 100]);
        assert_eq!(released(&mut order, true), [599, 600]);
    }

    #[test]
    fn no_more_waits_than_there_is_room_for() {
        let mut order = TimeOrder::default();
        let large = vec![0; 1 << 20];
        for ms in 1..=17 {
            push(&mut order, ms, &large);
        }
        assert_eq!(released(&mut order, false), [1]);
        assert_eq!(order.bytes, 16 << 20);
    }
}
