//! The receiver's half of an immediate block ACK (IEEE 802.11-2016 §10.24).
//!
//! An agreement holds from the beginning between any two stations, as if ADDBA had been exchanged.

use hopwise_core::Cast;
use hopwise_core::narrow::as_u32;
use hopwise_core::queue::Category;

use super::Dcf;
use super::exchange::Own;
use super::recipient::{Peer, Recipient, Taken, before_first, category_of};
use super::station::{Owed, Reception, Station, Wait};
use super::{FrameKind, News};

impl Station {
    fn peer(&mut self, other: u32, category: Category) -> &mut Peer {
        let known = self.peers.iter().position(|peer| peer.other == other && peer.category == category);
        let index = known.unwrap_or_else(|| {
            let next = before_first(category) + 1;
            self.peers.push(Peer { other, category, next, recipient: Recipient::from(next) });
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
    pub(super) fn take_mpdus(&mut self, n: usize, heard: &Reception, frame: Own) {
        let from = self.medium.links[heard.link as usize].from;
        let (first, mpdus) = (frame.number, frame.mpdus);
        for nth in (0..usize::from(mpdus)).filter(|nth| heard.lost >> nth & 1 == 0) {
            let Some(mpdu) = self.stations[from as usize].mpdus.get(nth) else { continue };
            let number = mpdu.number;
            self.take_number(n, (from, number), heard);
        }
        if mpdus == 1 {
            self.owe(n, heard, FrameKind::Ack, 0);
        } else {
            self.owe_block(n, heard, first);
        }
    }

    /// A request for a block ACK: what is older than its number will not come.
    pub(super) fn take_block_ack_request(&mut self, n: usize, heard: &Reception, first: u32) {
        let from = self.medium.links[heard.link as usize].from;
        let mut released = std::mem::take(&mut self.released);
        self.stations[n].peer(from, category_of(first)).recipient.move_to(first, &mut released);
        self.pass_up(n, from, heard, &mut released);
        self.released = released;
        self.owe_block(n, heard, first);
    }

    fn owe_block(&mut self, n: usize, heard: &Reception, first: u32) {
        let to = self.medium.links[heard.link as usize].from;
        let bitmap = self.stations[n].peer(to, category_of(first)).recipient.bitmap(first);
        let owed = Owed { kind: FrameKind::BlockAck, to, duration_ns: 0, block: (first, bitmap) };
        self.stations[n].owed = Some(owed);
        self.wait(n, Wait::ToAnswer, heard.until + self.times.sifs);
    }

    fn take_number(&mut self, n: usize, (from, number): (u32, u32), heard: &Reception) {
        let mut released = std::mem::take(&mut self.released);
        let before = released.len();
        let taken = self.stations[n].peer(from, category_of(number)).recipient.take(number, &mut released);
        debug_assert_eq!(before, 0, "what was released is passed up");
        if taken != Taken::Old {
            self.book_packet(n, from);
        }
        if taken == Taken::Early {
            self.news.push_back(News::Kept { from, to: as_u32(n), number });
        }
        if taken == Taken::InOrder {
            self.arrived(n, (from, number), heard);
        }
        self.pass_up(n, from, heard, &mut released);
        self.released = released;
    }

    fn pass_up(&mut self, n: usize, from: u32, heard: &Reception, released: &mut Vec<u32>) {
        for number in released.drain(..) {
            self.arrived(n, (from, number), heard);
        }
    }

    fn arrived(&mut self, n: usize, (from, number): (u32, u32), heard: &Reception) {
        let rate = self.stations[from as usize].frame.rate;
        let (to, power_w, cast) = (as_u32(n), heard.power_w, Cast::ToUs);
        self.news.push_back(News::Arrived { from, to, number, cast, rate, power_w });
    }
}
