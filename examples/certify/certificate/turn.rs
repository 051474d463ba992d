//! Closed forms of one access to the medium: the packets that a saturated station carries then, and the time.

use hopwise_core::queue::Category;

use hopwise_air::phy::{BLOCK_ACK_BYTES, BLOCK_ACK_REQ_BYTES, Phy};
use hopwise_air::saturated::PACKET;

/// The most packets that a block ACK tells of.
pub(super) const MOST_PACKETS: u8 = 64;
/// The longest PPDU, and the longest A-MPDUs of 802.11n and 802.11ac.
const LONGEST_PPDU_NS: u64 = 5_484_000;
const LONGEST_HT: u32 = 65_535;
const LONGEST_VHT: u32 = 1_048_575;

/// The frames from the end of a backoff to the next AIFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MediumTurn {
    /// The airtime of the first frame, which is lost in a collision.
    pub(super) first_ns: u64,
    /// The time of all frames, with the gaps between them and their propagation.
    pub(super) all_ns: u64,
    pub(super) packets: u32,
}

/// A saturated sender of a category, in aggregates or packet by packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnSender {
    pub(super) phy: Phy,
    pub(super) category: Category,
    pub(super) is_aggregated: bool,
    /// The time in which a frame crosses the air.
    pub(super) propagation_ns: u64,
}

impl TurnSender {
    fn psdu(&self, packets: u32) -> u32 {
        let mpdu = 4 + PACKET + self.phy.data_overhead;
        (packets - 1) * mpdu.next_multiple_of(4) + mpdu
    }

    fn data_ns(&self, packets: u32) -> u64 {
        if packets == 1 {
            return self.phy.data_ns(PACKET);
        }
        self.phy.airtime_ns(self.psdu(packets), self.phy.data)
    }

    /// The time of an exchange with this number of packets.
    fn exchange_ns(&self, packets: u32) -> u64 {
        self.data_ns(packets) + self.answer_ns(packets) + 2 * self.propagation_ns
    }

    /// SIFS and the answer. Several packets get a block ACK.
    fn answer_ns(&self, packets: u32) -> u64 {
        let block_ns = self.phy.airtime_ns(BLOCK_ACK_BYTES, self.phy.data.answer());
        self.phy.sifs_ns + if packets > 1 { block_ns } else { self.phy.ack_ns() }
    }

    /// The packets of one frame that may take so long with its answer.
    fn packets(&self, most_ns: Option<u64>) -> u32 {
        let most = if self.phy.is_vht() { LONGEST_VHT } else { LONGEST_HT };
        let fits = |packets: &u32| {
            let (bytes, ns) = (self.psdu(*packets), self.data_ns(*packets));
            let is_in_time = most_ns.is_none_or(|most| ns + self.answer_ns(2) <= most);
            bytes <= most && ns <= LONGEST_PPDU_NS && is_in_time
        };
        let most = if self.is_aggregated { u32::from(MOST_PACKETS) } else { 1 };
        (2..=most).take_while(fits).last().unwrap_or(1)
    }

    /// A turn that begins with data.
    pub(super) fn data(&self) -> MediumTurn {
        let limit = Some(self.phy.contention(self.category).txop_ns).filter(|limit| *limit > 0);
        let packets = self.packets(limit);
        let first_ns = self.data_ns(packets);
        self.with_more(MediumTurn { first_ns, all_ns: self.exchange_ns(packets), packets })
    }

    /// A turn that begins with the request of a block ACK that was missing.
    pub(super) fn request(&self) -> MediumTurn {
        let (phy, basic) = (&self.phy, self.phy.basic);
        let first_ns = phy.airtime_ns(BLOCK_ACK_REQ_BYTES, basic);
        let answer_ns = phy.sifs_ns + phy.airtime_ns(BLOCK_ACK_BYTES, basic);
        let all_ns = first_ns + answer_ns + 2 * self.propagation_ns;
        self.with_more(MediumTurn { first_ns, all_ns, packets: 0 })
    }

    /// Adds the exchanges for which the TXOP has room.
    fn with_more(&self, mut turn: MediumTurn) -> MediumTurn {
        let limit = self.phy.contention(self.category).txop_ns;
        loop {
            let begin = turn.all_ns + self.phy.sifs_ns;
            // A station that may aggregate leaves room for a block ACK.
            let least = self.data_ns(1) + self.answer_ns(if self.is_aggregated { 2 } else { 1 });
            if begin + least > limit {
                break;
            }
            let packets = self.packets(Some(limit - begin));
            turn.all_ns = begin + self.exchange_ns(packets);
            turn.packets += packets;
        }
        turn
    }
}
