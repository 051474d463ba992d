//! The receiver's window of 64 numbers (IEEE 802.11-2016 §10.24.7), in which packets that came early wait.
//!
//! Two records are kept apart, as in §10.24.7: one says what a block ACK tells, the other what waits for its place. A
//! hole is waited for no longer than the reorder timeout, as in Linux's mac80211. A packet that comes after that is
//! acknowledged and goes no further.

use hopwise_core::narrow::as_u32;
use hopwise_core::queue::Category;

use crate::phy::Rate;

/// The numbers that a block ACK tells of.
pub(super) const WINDOW: u32 = 64;

/// The numbers of packets say their category: the two highest bits are its index.
const CATEGORY_BIT: u32 = 30;

/// The category of a packet's number.
pub(crate) fn category_of(number: u32) -> Category {
    Category::of_index((number >> CATEGORY_BIT) as usize)
}

/// The number before a category's first one.
pub(super) fn before_first(category: Category) -> u32 {
    // Four categories have two bits.
    as_u32(category.index()) << CATEGORY_BIT
}

/// The packets of one sender at one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    /// The number that is passed up next.
    start: u32,
    /// The packets that have come and wait: bit 0 stands for `start`.
    came: u64,
    /// When they came, by the lowest bits of their numbers.
    came_at: [u64; WINDOW as usize],
    /// The greatest number that has come, and the 64 numbers up to it that have: bit 0 stands for `newest`.
    newest: u32,
    seen: u64,
}

/// The fate of a packet that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketFate {
    /// It came before.
    Old,
    /// It comes for the first time, and is no longer waited for.
    Late,
    /// It is passed up at once.
    InOrder,
    /// It waits for missing packets before it.
    Early,
}

impl Recipient {
    /// The window of a sender whose first packet has this number.
    pub(super) const fn from(first: u32) -> Recipient {
        Recipient { start: first, came: 0, came_at: [0; WINDOW as usize], newest: first - 1, seen: u64::MAX }
    }

    /// A packet has come. The numbers that wait no longer are added to `released`; the number of a packet in order
    /// ([`PacketFate::InOrder`]) is not among them.
    pub(super) fn take(&mut self, number: u32, now: u64, released: &mut Vec<u32>) -> PacketFate {
        let is_new = self.note(number);
        let Some(ahead) = number.checked_sub(self.start).filter(|_| is_new) else {
            return if is_new { PacketFate::Late } else { PacketFate::Old };
        };
        if ahead >= WINDOW {
            self.move_to(number - (WINDOW - 1), released);
        }
        let bit = 1_u64 << (number - self.start);
        if bit == 1 {
            self.start += 1;
            self.came >>= 1;
            self.release(released);
            return PacketFate::InOrder;
        }
        self.came |= bit;
        self.came_at[(number % WINDOW) as usize] = now;
        PacketFate::Early
    }

    /// Notes a number for block ACKs, and returns whether it comes for the first time.
    fn note(&mut self, number: u32) -> bool {
        let Some(back) = self.newest.checked_sub(number) else {
            let further = number - self.newest;
            self.seen = self.seen.checked_shl(further).unwrap_or(0) | 1;
            self.newest = number;
            return true;
        };
        let bit = 1_u64.checked_shl(back).unwrap_or(0);
        let is_new = bit & !self.seen != 0;
        self.seen |= bit;
        is_new
    }

    /// Waits for no packet before `start` any more.
    pub(super) fn move_to(&mut self, start: u32, released: &mut Vec<u32>) {
        while self.start < start {
            if self.came == 0 {
                self.start = start;
                return;
            }
            if self.came & 1 != 0 {
                released.push(self.start);
            }
            self.start += 1;
            self.came >>= 1;
        }
        self.release(released);
    }

    /// When the packets that wait are passed up whatever is missing before them.
    pub(super) fn due(&self, timeout_ns: u64) -> Option<u64> {
        let first = self.start + self.came.trailing_zeros();
        (self.came != 0).then(|| self.came_at[(first % WINDOW) as usize].saturating_add(timeout_ns))
    }

    /// Passes up the packets that have waited for the timeout, and packets that follow them without a hole. Returns how
    /// many missing packets are waited for no longer.
    pub(super) fn expire(&mut self, now: u64, timeout_ns: u64, released: &mut Vec<u32>) -> u32 {
        let mut skipped = 0;
        while self.due(timeout_ns).is_some_and(|due| due <= now) {
            let missing = self.came.trailing_zeros();
            self.start += missing;
            self.came >>= missing;
            skipped += missing;
            self.release(released);
        }
        skipped
    }

    fn release(&mut self, released: &mut Vec<u32>) {
        while self.came & 1 != 0 {
            released.push(self.start);
            self.start += 1;
            self.came >>= 1;
        }
    }

    /// The bitmap of a block ACK that starts with `first`. Older numbers than the last 64 count as come.
    pub(super) fn bitmap(&self, first: u32) -> u64 {
        let has = |number: u32| match self.newest.checked_sub(number) {
            None => false,
            Some(back) => back >= WINDOW || self.seen >> back & 1 != 0,
        };
        (0..WINDOW).filter(|ahead| has(first + ahead)).fold(0, |bits, ahead| bits | 1 << ahead)
    }
}

/// The numbers between two stations, in one category.
#[derive(Clone, Debug)]
pub(super) struct NumberSpace {
    pub(super) other: u32,
    /// Each category has numbers of its own.
    pub(super) category: Category,
    /// The number of the next packet for it.
    pub(super) next: u32,
    /// The packets that come from it.
    pub(super) recipient: Recipient,
    /// The rate and the power in watts of the last data frame from it.
    pub(super) heard: (Rate, f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fate of each number in turn, and the numbers that it lets go up.
    fn taken(recipient: &mut Recipient, numbers: &[u32]) -> Vec<(PacketFate, Vec<u32>)> {
        let take = |number: &u32| {
            let mut released = Vec::new();
            (recipient.take(*number, 0, &mut released), released)
        };
        numbers.iter().map(take).collect()
    }

    #[test]
    fn packets_go_up_in_order_and_once() {
        let mut recipient = Recipient::from(1);
        let wanted = [
            (PacketFate::InOrder, vec![]),
            (PacketFate::Early, vec![]),
            (PacketFate::Early, vec![]),
            (PacketFate::Old, vec![]),
            (PacketFate::Old, vec![]),
            (PacketFate::InOrder, vec![3, 4]),
            (PacketFate::InOrder, vec![]),
        ];
        assert_eq!(taken(&mut recipient, &[1, 3, 4, 3, 1, 2, 5]), wanted);
    }

    #[test]
    fn a_number_beyond_the_window_moves_it_and_what_is_missing_is_left_out() {
        let mut recipient = Recipient::from(1);
        assert_eq!(
            taken(&mut recipient, &[2, 3, 65]),
            [(PacketFate::Early, vec![]), (PacketFate::Early, vec![]), (PacketFate::Early, vec![2, 3]),]
        );
        assert_eq!(recipient.start, 4);
        assert_eq!(taken(&mut recipient, &[200]), [(PacketFate::Early, vec![65])]);
        assert_eq!(recipient.start, 137);
    }

    #[test]
    fn a_request_lets_go_up_what_waits_for_older_packets() {
        let (mut recipient, mut released) = (Recipient::from(1), Vec::new());
        taken(&mut recipient, &[3, 5, 6, 9]);
        recipient.move_to(5, &mut released);
        assert_eq!((released, recipient.start), (vec![3, 5, 6], 7));
        // It holds back nothing that it has passed.
        let mut released = Vec::new();
        recipient.move_to(2, &mut released);
        assert_eq!((released, recipient.start), (vec![], 7));
    }

    /// Each packet has its own time: one that came later waits longer, unless it follows without a hole.
    #[test]
    fn a_hole_is_waited_for_as_long_as_the_timeout_and_a_packet_that_comes_then_goes_no_further() {
        let (mut recipient, mut released) = (Recipient::from(1), Vec::new());
        for (number, now) in [(3, 10), (4, 90), (6, 50), (8, 95)] {
            assert_eq!(recipient.take(number, now, &mut released), PacketFate::Early);
        }
        assert_eq!((recipient.due(100), recipient.expire(109, 100, &mut released)), (Some(110), 0));
        assert_eq!((recipient.expire(110, 100, &mut released), &released[..]), (2, &[3, 4][..]));
        assert_eq!((recipient.due(100), recipient.expire(150, 100, &mut released)), (Some(150), 1));
        assert_eq!((&released[..], recipient.due(100)), (&[3, 4, 6][..], Some(195)));
        // The sender does not know: what it repeats is missing in block ACKs until it comes, and is of no use then.
        assert_eq!(recipient.bitmap(1), 0b1010_1100);
        assert_eq!(recipient.take(2, 160, &mut released), PacketFate::Late);
        assert_eq!(recipient.take(2, 170, &mut released), PacketFate::Old);
        assert_eq!(
            (recipient.bitmap(1), recipient.take(7, 180, &mut released)),
            (0b1010_1110, PacketFate::InOrder)
        );
        assert_eq!((&released[..], recipient.due(100)), (&[3, 4, 6, 8][..], None));
    }

    #[test]
    fn a_block_ack_tells_of_64_numbers_what_has_come_or_is_past() {
        let mut recipient = Recipient::from(1);
        taken(&mut recipient, &[1, 2, 4, 64]);
        assert_eq!(recipient.bitmap(1), 0b1011 | 1 << 63);
        assert_eq!(recipient.bitmap(3), 0b10 | 1 << 61);
        assert_eq!(recipient.bitmap(65), 0);
    }
}
