//! Frames of 802.11 as the DCF sends them, the rules for their exchange, and the counters of a station.

use crate::airtime::AirLoad;
use crate::frames::MediumAccess;
use crate::phy::{ACK_BYTES, BLOCK_ACK_BYTES, BLOCK_ACK_REQ_BYTES, CTS_BYTES, Phy, RTS_BYTES, Rate};

/// The receiver of a frame that is for all stations.
pub const EVERYONE: u32 = u32::MAX;

hopwise_core::named! {
    /// The kinds of frames that the DCF exchanges.
    pub enum FrameKind {
        /// Request to send: it announces a data frame.
        Rts = "rts",
        /// Clear to send: the answer to an RTS.
        Cts = "cts",
        /// A frame with a packet in it.
        Data = "data",
        /// The acknowledgement of a data frame.
        Ack = "ack",
        /// The acknowledgement of an aggregate's packets, one by one.
        BlockAck = "block-ack",
        /// The request for a block ACK that did not come.
        BlockAckReq = "block-ack-request",
    }
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The station that it is for, by its number, or [`EVERYONE`].
    pub to: u32,
    /// The value of its duration field.
    pub duration_ns: u64,
    /// The time from its first bit to its last, in nanoseconds.
    pub airtime_ns: u64,
    /// The rate of its bits.
    pub rate: Rate,
    /// Bytes of the packet within; 0 for control frames.
    pub bytes: u32,
    /// The number of the packet within, counted by its sender; of a block, the first.
    pub number: u32,
    /// The kind of the packet within; of a control frame, the kind of the packet that it serves.
    pub load: AirLoad,
    /// An RTS of its sender has announced this data frame.
    pub is_announced: bool,
    /// The Retry bit: a data frame with this packet has been on the air before.
    pub is_repeat: bool,
    /// Access to the medium; `None` for a frame that answers another.
    pub access: Option<MediumAccess>,
    /// The packets within that a receiver acknowledges one by one; 0 without aggregation.
    pub mpdus: u8,
    /// The packets that a block ACK acknowledges, from `number` on.
    pub bitmap: u64,
}

impl Frame {
    /// A frame of a kind, before its duration and the packet that it serves are known.
    pub(crate) const fn control(kind: FrameKind, to: u32, rate: Rate, airtime_ns: u64) -> Frame {
        Frame {
            kind,
            to,
            duration_ns: 0,
            airtime_ns,
            rate,
            bytes: 0,
            number: 0,
            load: AirLoad::Other,
            is_announced: false,
            is_repeat: false,
            access: None,
            mpdus: 0,
            bitmap: 0,
        }
    }

    /// The bytes on the air, with header and FCS.
    pub(crate) fn bytes_on_air(&self, phy: &Phy) -> u32 {
        match self.kind {
            FrameKind::Rts => RTS_BYTES,
            FrameKind::Cts => CTS_BYTES,
            FrameKind::Ack => ACK_BYTES,
            FrameKind::BlockAck => BLOCK_ACK_BYTES,
            FrameKind::BlockAckReq => BLOCK_ACK_REQ_BYTES,
            FrameKind::Data => self.bytes + phy.data_overhead,
        }
    }
}

/// Frames by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// The RTS frames.
    pub rts: u64,
    /// The CTS frames.
    pub cts: u64,
    /// The data frames, each transmission counted.
    pub data: u64,
    /// The ACKs of 802.11.
    pub ack: u64,
    /// The block ACKs, and the requests for one.
    pub block_ack: u64,
}

impl FrameCounts {
    /// The frames of all kinds.
    pub fn total(&self) -> u64 {
        self.rts + self.cts + self.data + self.ack + self.block_ack
    }
}

/// The counters of one station since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// The frames that it sent.
    pub frames_sent: FrameCounts,
    /// Sum of transmission times.
    pub airtime_ns: u64,
    /// The same by load: a packet's RTS, CTS and ACK count with it.
    pub airtime_ns_by_load: [u64; AirLoad::ALL.len()],
    /// Receptions of frames for this station that were lost to another frame.
    pub collisions: u64,
    /// Packets given up.
    pub retry_drops: u64,
    /// Missing packets for which the station waited no longer (the reorder timeout of a block ACK agreement).
    pub reorder_timeouts: u64,
    /// Those of them that came later, and were dropped.
    pub reorder_late: u64,
    /// Accesses that a category of the station itself left to a greater one (EDCA).
    pub internal_collisions: u64,
}

impl StationStats {
    #[inline]
    pub(super) fn on_sent(&mut self, (kind, load): (FrameKind, AirLoad), airtime_ns: u64) {
        let count = match kind {
            FrameKind::Rts => &mut self.frames_sent.rts,
            FrameKind::Cts => &mut self.frames_sent.cts,
            FrameKind::Data => &mut self.frames_sent.data,
            FrameKind::Ack => &mut self.frames_sent.ack,
            FrameKind::BlockAck | FrameKind::BlockAckReq => &mut self.frames_sent.block_ack,
        };
        *count += 1;
        self.airtime_ns += airtime_ns;
        self.airtime_ns_by_load[load as usize] += airtime_ns;
    }
}

/// The rules that a station follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MacRules {
    /// The rules of IEEE 802.11.
    #[default]
    Standard,
    /// The rules of ns-2, which differ in timeouts, captures and sizes of frames.
    Ns2,
}
