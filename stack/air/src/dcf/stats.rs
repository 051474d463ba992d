//! The counters of each station.

use super::FrameKind;
use crate::airtime::Load;

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
    pub airtime_ns_by_load: [u64; Load::ALL.len()],
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
    pub(super) fn on_sent(&mut self, (kind, load): (FrameKind, Load), airtime_ns: u64) {
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
