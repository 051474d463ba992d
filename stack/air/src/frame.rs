//! A frame of 802.11, as the DCF sends it.

use crate::airtime::Load;
use crate::frames::Access;
use crate::phy::{ACK_BYTES, BLOCK_ACK_BYTES, BLOCK_ACK_REQ_BYTES, CTS_BYTES, Phy, RTS_BYTES, Rate};

/// The receiver of a frame that is for all stations.
pub const EVERYONE: u32 = u32::MAX;

/// The kinds of frames that the DCF exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Request to send: it announces a data frame.
    Rts,
    /// Clear to send: the answer to an RTS.
    Cts,
    /// A frame with a packet in it.
    Data,
    /// The acknowledgement of a data frame.
    Ack,
    /// The acknowledgement of an aggregate's packets, one by one.
    BlockAck,
    /// The request for a block ACK that did not come.
    BlockAckReq,
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
    /// The kind of the packet within; of a control frame, that of the packet which it serves.
    pub load: Load,
    /// An RTS of its sender has announced this data frame.
    pub is_announced: bool,
    /// The Retry bit: a data frame with this packet has been on the air before.
    pub is_repeat: bool,
    /// Access to the medium; `None` for a frame that answers another.
    pub access: Option<Access>,
    /// The packets within that a receiver acknowledges one by one; 0 without aggregation.
    pub mpdus: u8,
    /// The packets that a block ACK acknowledges, from `number` on.
    pub bitmap: u64,
}

impl Frame {
    /// A control frame, before its duration and the packet that it serves are known.
    pub(crate) const fn control(kind: FrameKind, to: u32, rate: Rate, airtime_ns: u64) -> Frame {
        Frame {
            kind,
            to,
            duration_ns: 0,
            airtime_ns,
            rate,
            bytes: 0,
            number: 0,
            load: Load::Other,
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
