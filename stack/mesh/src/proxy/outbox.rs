//! The packets that leave a base station, in one queue for each side, the copies of ACKs, and the trace.

use std::collections::{BTreeMap, VecDeque};

use hopwise_core::agent::{AdvertisedWindow, Because, Side};
use hopwise_core::queue::SpareBuffers;
use hopwise_core::trace::{DropReason, TraceKind, TraceRing};
use hopwise_core::{Instant, Seq};

/// The bytes that may always wait for a link.
const LEAST_BYTES: usize = 16 << 20;

/// A packet that leaves as soon as its link is polled.
#[derive(Debug)]
pub(super) struct LeavingNow {
    pub(super) id: u64,
    /// It has not waited, and a router would put it even into a full queue.
    pub(super) is_passing: bool,
    /// Its flow, if a newer pure ACK of it may take this one's place.
    pub(super) replaceable: Option<u32>,
    pub(super) packet: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Outbox {
    to_fixed: LinkQueue,
    to_mobile: LinkQueue,
    /// The largest number of packets, and of their bytes, that wait for each link.
    most_queued: usize,
    most_bytes: usize,
    pub(super) trace: TraceRing,
    pub(super) spare: SpareBuffers<256>,
    ids: u64,
    /// Packets of followed flows that neither end can have sent.
    pub(super) unfit: u64,
    /// The mobiles' ACKs that were held back, and the packets of data of which a copy was kept.
    pub(super) held: u64,
    pub(super) copied: u64,
    /// The number of times that memory, or one flow's part of it, was too small.
    pub(super) overflows: u64,
    /// Waiting packets that gave way to packets of other mobiles.
    pub(super) pushed_out: u64,
}

impl Outbox {
    /// As many bytes as may be kept may wait for a link: all kept packets can leave at once.
    pub(super) fn new(most_queued: usize, most_kept_bytes: usize, trace_events: usize) -> Outbox {
        Outbox {
            to_fixed: LinkQueue::default(),
            to_mobile: LinkQueue::default(),
            most_queued,
            most_bytes: most_kept_bytes.max(LEAST_BYTES),
            trace: TraceRing::new(trace_events),
            spare: SpareBuffers::default(),
            ids: 0,
            unfit: 0,
            held: 0,
            copied: 0,
            overflows: 0,
            pushed_out: 0,
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn queue(&mut self, to: Side) -> &mut LinkQueue {
        match to {
            Side::Fixed => &mut self.to_fixed,
            Side::Mobile => &mut self.to_mobile,
        }
    }

    pub(super) fn send(&mut self, now: Instant, to: Side, leaving: LeavingNow) {
        let (most_queued, most_bytes) = (self.most_queued, self.most_bytes);
        let queue = self.queue(to);
        if queue.len() >= most_queued || queue.bytes() + leaving.packet.len() > most_bytes {
            self.dropped(now, 0, leaving.id, DropReason::QueueFull);
            self.spare.keep(leaving.packet);
            return;
        }
        self.queue(to).push(leaving);
    }

    /// Sends a packet untouched and at once.
    pub(super) fn pass(&mut self, now: Instant, to: Side, id: u64, packet: &[u8]) {
        let packet = self.spare.copy(packet);
        self.send(now, to, LeavingNow { id, is_passing: true, replaceable: None, packet });
    }

    /// Takes the place of the flow's last waiting pure ACK, or the end of the queue.
    pub(super) fn replace(&mut self, now: Instant, flow: u32, to: Side, id: u64, packet: &[u8]) {
        let mut packet = self.spare.copy(packet);
        if let Some(replaced) = self.queue(to).replace_last_of(flow, id, &mut packet) {
            self.dropped(now, flow, replaced, DropReason::Replaced);
            self.spare.keep(packet);
            return;
        }
        self.send(now, to, LeavingNow { id, is_passing: false, replaceable: Some(flow), packet });
    }

    pub(super) fn dropped(&mut self, now: Instant, flow: u32, id: u64, reason: DropReason) {
        self.trace.push(now, flow, id, TraceKind::Dropped(reason));
    }

    pub(super) fn note(&mut self, now: Instant, flow: u32, id: u64, kind: TraceKind) {
        self.trace.push(now, flow, id, kind);
    }
}

/// The trace's label for a packet that is kept or released.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceLabel {
    pub(super) from: Side,
    pub(super) number: Seq,
    pub(super) len: u32,
    pub(super) because: Because,
}

impl TraceLabel {
    pub(super) fn kept(self) -> TraceKind {
        let TraceLabel { from, number, len, because } = self;
        TraceKind::Kept { from, number, len, because }
    }

    pub(super) fn released(self) -> TraceKind {
        let TraceLabel { from, number, len, because } = self;
        TraceKind::Released { from, number, len, because }
    }
}

/// The largest number of copies of an ACK, the mobile's own included.
const MOST_COPIES: u8 = 2;
/// The largest number of duplicates that go ahead of an ACK that waits.
pub(super) const MOST_DUPLICATES: u8 = 2;

/// The number of times that an ACK has left, with its own window and with a closed one.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    open: u8,
    closed: u8,
}

/// Counts how often an ACK has left a base station (invariant P3): of each ACK at most two copies leave, and of a held
/// ACK that went out with its duplicates three. The fourth would show a loss (RFC 5681 §3.2). A newly written ACK is
/// counted by its number and window.
///
/// These are the copies of the mobile's newest pure ACK, and of the one written from it with the highest other number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    own: Times,
    another: Option<Seq>,
    of_another: Times,
}

impl Copies {
    /// The ACK went on once.
    pub(super) const SAID: Copies =
        Copies { own: Times { open: 1, closed: 0 }, another: None, of_another: Times { open: 0, closed: 0 } };

    /// The ACK went on, behind its duplicates.
    pub(super) fn said_behind(duplicates: u8) -> Copies {
        Copies { own: Times { open: 1 + duplicates, closed: 0 }, ..Copies::default() }
    }

    /// The number of `wanted` copies that may leave with this number; `own` is the number of the ACK itself. A window
    /// is closed only while the ACK that opens it again may leave, too.
    pub(super) fn take(&mut self, wanted: u8, number: Seq, own: Seq, window: AdvertisedWindow) -> u8 {
        let times = if number == own {
            &mut self.own
        } else {
            // The count of a number that was passed by is no longer known.
            if self.another.is_some_and(|another| number < another) {
                return 0;
            }
            if self.another != Some(number) {
                (self.another, self.of_another) = (Some(number), Times::default());
            }
            &mut self.of_another
        };
        if window == AdvertisedWindow::Zero && times.open >= MOST_COPIES {
            return 0;
        }
        let left = if window == AdvertisedWindow::Zero { &mut times.closed } else { &mut times.open };
        let taken = wanted.min(MOST_COPIES.saturating_sub(*left));
        *left += taken;
        taken
    }

    /// Returns whether it may leave once more as it is, and counts it.
    pub(super) fn take_own(&mut self) -> bool {
        let may_leave = self.own.open < MOST_COPIES;
        self.own.open += u8::from(may_leave);
        may_leave
    }
}

/// The packets that wait for one link, and the place of each flow's last pure ACK among them.
#[derive(Debug, Default)]
pub(in crate::proxy) struct LinkQueue {
    waiting: VecDeque<LeavingNow>,
    /// The bytes of these packets.
    bytes: usize,
    /// The number of packets that have left.
    gone: u64,
    /// By flow: how many packets came before the last replaceable one.
    replaceable: BTreeMap<u32, u64>,
}

impl LinkQueue {
    pub(in crate::proxy) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::proxy) fn front(&self) -> Option<&LeavingNow> {
        self.waiting.front()
    }

    fn push(&mut self, leaving: LeavingNow) {
        let before = self.gone + self.waiting.len() as u64;
        self.replaceable.extend(leaving.replaceable.map(|flow| (flow, before)));
        self.bytes += leaving.packet.len();
        self.waiting.push_back(leaving);
    }

    pub(in crate::proxy) fn pop(&mut self) -> Option<LeavingNow> {
        let leaving = self.waiting.pop_front()?;
        self.bytes -= leaving.packet.len();
        if let Some(flow) = leaving.replaceable
            && self.replaceable.get(&flow) == Some(&self.gone)
        {
            self.replaceable.remove(&flow);
        }
        self.gone += 1;
        Some(leaving)
    }

    /// Puts a packet in place of the last one of this flow that can be replaced; returns the id of that.
    fn replace_last_of(&mut self, flow: u32, id: u64, packet: &mut Vec<u8>) -> Option<u64> {
        let before = self.replaceable.get(&flow)? - self.gone;
        let last = self.waiting.get_mut(usize::try_from(before).ok()?)?;
        self.bytes = self.bytes - last.packet.len() + packet.len();
        std::mem::swap(&mut last.packet, packet);
        Some(std::mem::replace(&mut last.id, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bytes_wait_for_a_link_than_a_bound_and_the_other_link_has_its_own() {
        let (now, most) = (Instant::ZERO, LEAST_BYTES + 1_000);
        let mut out = Outbox::new(65_536, most, 10);
        for id in 0..1_000 {
            out.pass(now, Side::Mobile, id, &[0; 60_000]);
            assert!(out.queue(Side::Mobile).bytes() <= most);
        }
        let waiting = most / 60_000;
        assert_eq!(out.queue(Side::Mobile).len(), waiting);
        assert_eq!(out.trace.drops(DropReason::QueueFull), 1_000 - waiting as u64);
        out.pass(now, Side::Fixed, 1_000, &[0; 60_000]);
        assert_eq!(out.queue(Side::Fixed).len(), 1);
        // A packet that leaves makes room for one.
        assert!(out.queue(Side::Mobile).pop().is_some());
        out.pass(now, Side::Mobile, 1_001, &[0; 60_000]);
        assert_eq!(out.queue(Side::Mobile).len(), waiting);
    }

    fn leaving(id: u64, replaceable: Option<u32>) -> LeavingNow {
        LeavingNow { id, is_passing: false, replaceable, packet: vec![0; id as usize] }
    }

    proptest::proptest! {
        #[test]
        fn the_last_packet_of_a_flow_is_found_wherever_it_stands(
            flows in proptest::collection::vec(proptest::option::of(0u32..4), 0..100),
            pops in proptest::collection::vec(proptest::bool::ANY, 100),
        ) {
            let mut queue = LinkQueue::default();
            for ((id, flow), pops) in (0..).zip(flows).zip(pops) {
                queue.push(leaving(id, flow));
                if pops {
                    queue.pop();
                }
                for flow in 0..4 {
                    let last = queue.waiting.iter().rev().find(|other| other.replaceable == Some(flow));
                    let last = last.map(|leaving| leaving.id);
                    let mut other = vec![0; id as usize + 7];
                    proptest::prop_assert_eq!(queue.replace_last_of(flow, id, &mut other), last);
                }
                let bytes = queue.waiting.iter().map(|leaving| leaving.packet.len()).sum::<usize>();
                proptest::prop_assert_eq!(queue.bytes(), bytes);
            }
            while queue.pop().is_some() {}
            proptest::prop_assert!(queue.replaceable.is_empty());
        }
    }
}
