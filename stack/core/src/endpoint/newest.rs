//! Figures of a connection that are cheap enough to be asked for after each packet.

use std::time::Duration;

use super::Endpoint;
use super::ids::ConnId;

impl Endpoint {
    /// The newest round trip that the connection has measured, and its number modulo 256. A caller that looks after
    /// each packet sees every one of them. None before the first.
    pub fn newest_rtt(&self, id: ConnId) -> Option<(Duration, u8)> {
        self.conn(id)?.newest_rtt()
    }

    /// The segments with data that the connection has sent, retransmissions included. It costs less than
    /// [`info`](Endpoint::info).
    pub fn segments_sent(&self, id: ConnId) -> Option<u64> {
        Some(self.conn(id)?.segments_sent())
    }
}
