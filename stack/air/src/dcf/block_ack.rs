//! The receiver's half of an immediate block ACK (IEEE 802.11-2016 §10.24).
//!
//! An agreement holds from the beginning between any two stations, as if ADDBA had been exchanged. Each station has a
//! second deadline for the holes that it waits for, apart from the deadline of its exchange.

use hopwise_core::Cast;
use hopwise_core::narrow::as_u32;
use hopwise_core::queue::Category;

use super::Dcf;
use super::exchange::ReceivedFields;
use super::recipient::{NumberSpace, PacketFate, Recipient, before_first, category_of};
use super::station::{DcfStation, OwedAnswer, Reception, Wait};
use super::{DcfNews, FrameKind};
use crate::deadlines::NEVER;

impl DcfStation {
    pub(super) fn peer(&mut self, other: u32, category: Category) -> &mut NumberSpace {
        let known = self.peers.iter().position(|peer| peer.other == other && peer.category == category);
        let index = known.unwrap_or_else(|| {
            let next = before_first(category) + 1;
            let heard = (self.frame.rate, 0.0);
            self.peers.push(NumberSpace { other, category, next, recipient: Recipient::from(next), heard });
            self.peers.len() - 1
        });
        &mut self.peers[index]
    }

    /// The number that the next packet for that station will get.
    pub(super) fn next_for(&mut self, other: u32) -> u32 {
        self.peer(other, self.category).next
    }

    /// Numbers a packet for that station.
    pub(super) fn number_for(&mut self, other: u32) -> u32 {
        let peer = self.peer(other, self.category);
        peer.next += 1;
        peer.next - 1
    }
}

impl Dcf {
    /// A data frame for this station was understood, at least in part.
    #[inline(never)]
    pub(super) fn take_mpdus(&mut self, n: usize, heard: &Reception, frame: ReceivedFields) {
        let from = self.medium.links[heard.link as usize].from;
        let ReceivedFields { number: first, mpdus, .. } = frame;
        for nth in (0..usize::from(mpdus)).filter(|nth| heard.lost >> nth & 1 == 0) {
            let Some(mpdu) = self.stations[from as usize].mpdus.get(nth) else { continue };
            let number = mpdu.number;
            self.take_number(n, (from, number), heard);
        }
        self.await_holes(n);
        if mpdus == 1 {
            self.owe(n, heard, FrameKind::Ack, 0);
        } else {
            self.owe_block(n, heard, first);
        }
    }

    /// A request for a block ACK: what is older than its number will not come.
    #[inline(never)]
    pub(super) fn take_block_ack_request(&mut self, n: usize, heard: &Reception, frame: ReceivedFields) {
        let first = frame.number;
        let from = self.medium.links[heard.link as usize].from;
        let mut released = std::mem::take(&mut self.released);
        self.stations[n].peer(from, category_of(first)).recipient.move_to(first, &mut released);
        self.pass_up(n, from, &mut released);
        self.released = released;
        self.await_holes(n);
        self.owe_block(n, heard, first);
    }

    fn owe_block(&mut self, n: usize, heard: &Reception, first: u32) {
        let to = self.medium.links[heard.link as usize].from;
        let bitmap = self.stations[n].peer(to, category_of(first)).recipient.bitmap(first);
        let owed = OwedAnswer { kind: FrameKind::BlockAck, to, duration_ns: 0, block: (first, bitmap) };
        self.stations[n].owed = Some(owed);
        self.wait(n, Wait::ToAnswer, heard.until + self.times.sifs);
    }

    fn take_number(&mut self, n: usize, (from, number): (u32, u32), heard: &Reception) {
        let mut released = std::mem::take(&mut self.released);
        let before = released.len();
        let rate = self.stations[from as usize].frame.rate;
        let peer = self.stations[n].peer(from, category_of(number));
        peer.heard = (rate, heard.power_w);
        if self.mac.ampdu.is_none() {
            // Without an agreement no packet waits for a missing one.
            peer.recipient.move_to(number, &mut released);
        }
        let taken = peer.recipient.take(number, heard.until, &mut released);
        debug_assert_eq!(before, 0, "what was released is passed up");
        match taken {
            PacketFate::Old => {}
            PacketFate::Late => self.stats[n].reorder_late += 1,
            PacketFate::InOrder | PacketFate::Early => self.book_packet(n, from),
        }
        if taken == PacketFate::Early {
            self.news.push_back(DcfNews::Kept { from, to: as_u32(n), number });
        }
        if taken == PacketFate::InOrder {
            self.arrived(n, (from, number));
        }
        self.pass_up(n, from, &mut released);
        self.released = released;
    }

    fn pass_up(&mut self, n: usize, from: u32, released: &mut Vec<u32>) {
        for number in released.drain(..) {
            self.arrived(n, (from, number));
        }
    }

    fn arrived(&mut self, n: usize, (from, number): (u32, u32)) {
        let (rate, power_w) = self.stations[n].peer(from, category_of(number)).heard;
        let (to, cast) = (as_u32(n), Cast::ToUs);
        self.news.push_back(DcfNews::Arrived { from, to, number, cast, rate, power_w });
    }

    /// Waits until the first packet behind a hole has waited long enough.
    fn await_holes(&mut self, n: usize) {
        let Some(timeout_ns) = self.mac.reorder_ns.filter(|_| self.has_reorder_timeout()) else { return };
        let dues = self.stations[n].peers.iter().filter_map(|peer| peer.recipient.due(timeout_ns));
        // The deadline of a station's holes has a place behind the deadlines of all stations.
        let (due, place) = (dues.min().unwrap_or(NEVER), self.stations.len() + n);
        if self.deadlines.of(place) != due {
            self.deadlines.set(place, due);
        }
    }

    /// Packets have waited long enough for missing packets before them.
    #[inline(never)]
    pub(super) fn on_holes_due(&mut self, now: u64, n: usize) {
        let timeout_ns = self.mac.reorder_ns.unwrap_or(NEVER);
        let mut released = std::mem::take(&mut self.released);
        for nth in 0..self.stations[n].peers.len() {
            let peer = &mut self.stations[n].peers[nth];
            let (from, skipped) = (peer.other, peer.recipient.expire(now, timeout_ns, &mut released));
            self.stats[n].reorder_timeouts += u64::from(skipped);
            self.pass_up(n, from, &mut released);
        }
        self.released = released;
        self.await_holes(n);
    }
}
