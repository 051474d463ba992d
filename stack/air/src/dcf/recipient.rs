//! The receiver's window of 64 numbers (IEEE 802.11-2016 §10.24.7), in which packets that came early wait.

use hopwise_core::narrow::as_u32;
use hopwise_core::queue::Category;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    /// The number that is passed up next.
    start: u32,
    /// The packets that have come and wait: bit 0 stands for `start`.
    came: u64,
}

/// The fate of a packet that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It came before, or is no longer waited for.
    Old,
    /// It is passed up at once.
    InOrder,
    /// It waits for those before it.
    Early,
}

impl Recipient {
    /// The window of a sender whose first packet has this number.
    pub(super) const fn from(first: u32) -> Recipient {
        Recipient { start: first, came: 0 }
    }

    /// A packet has come. The numbers that wait no longer are added to `released`, without an [`Taken::InOrder`] one.
    pub(super) fn take(&mut self, number: u32, released: &mut Vec<u32>) -> Taken {
        let Some(ahead) = number.checked_sub(self.start) else { return Taken::Old };
        if ahead >= WINDOW {
            self.move_to(number - (WINDOW - 1), released);
        }
        let bit = 1_u64 << (number - self.start);
        if self.came & bit != 0 {
            return Taken::Old;
        }
        if bit == 1 {
            self.start += 1;
            self.came >>= 1;
            self.release(released);
            return Taken::InOrder;
        }
        self.came |= bit;
        Taken::Early
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

    fn release(&mut self, released: &mut Vec<u32>) {
        while self.came & 1 != 0 {
            released.push(self.start);
            self.start += 1;
            self.came >>= 1;
        }
    }

    /// The bitmap of a block ACK that starts with `first`.
    pub(super) fn bitmap(self, first: u32) -> u64 {
        let has = |number: u32| {
            number.checked_sub(self.start).is_none_or(|ahead| ahead < WINDOW && self.came >> ahead & 1 != 0)
        };
        (0..WINDOW).filter(|ahead| has(first + ahead)).fold(0, |bits, ahead| bits | 1 << ahead)
    }
}

/// The numbers between a station and another one, in one category.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) other: u32,
    /// Each category has numbers of its own.
    pub(super) category: Category,
    /// The number of the next packet for it.
    pub(super) next: u32,
    /// The packets that come from it.
    pub(super) recipient: Recipient,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fate of each number in turn, and the numbers that it lets go up.
    fn taken(recipient: &mut Recipient, numbers: &[u32]) -> Vec<(Taken, Vec<u32>)> {
        let take = |number: &u32| {
            let mut released = Vec::new();
            (recipient.take(*number, &mut released), released)
        };
        numbers.iter().map(take).collect()
    }

    #[test]
    fn packets_go_up_in_order_and_once() {
        let mut recipient = Recipient::from(1);
        let wanted = [
            (Taken::InOrder, vec![]),
            (Taken::Early, vec![]),
            (Taken::Early, vec![]),
            (Taken::Old, vec![]),
            (Taken::Old, vec![]),
            (Taken::InOrder, vec![3, 4]),
            (Taken::InOrder, vec![]),
        ];
        assert_eq!(taken(&mut recipient, &[1, 3, 4, 3, 1, 2, 5]), wanted);
    }

    #[test]
    fn a_number_beyond_the_window_moves_it_and_what_is_missing_is_left_out() {
        let mut recipient = Recipient::from(1);
        assert_eq!(
            taken(&mut recipient, &[2, 3, 65]),
            [(Taken::Early, vec![]), (Taken::Early, vec![]), (Taken::Early, vec![2, 3]),]
        );
        assert_eq!(recipient.start, 4);
        assert_eq!(taken(&mut recipient, &[200]), [(Taken::Early, vec![65])]);
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

    #[test]
    fn a_block_ack_tells_of_64_numbers_what_has_come_or_is_past() {
        let mut recipient = Recipient::from(1);
        taken(&mut recipient, &[1, 2, 4, 64]);
        assert_eq!(recipient.bitmap(1), 0b1011 | 1 << 63);
        assert_eq!(recipient.bitmap(3), 0b10 | 1 << 61);
        assert_eq!(recipient.bitmap(65), 0);
    }
}
