//! The amounts of bounded resources.

use super::super::Endpoint;
use super::{Bounds, LruList};

/// The amounts that an endpoint holds because of its peers, or the most that it may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Connections that are not over. There are at most as many as the
    /// [table](super::super::EndpointConfig::most_connections) has room for.
    pub connections: usize,
    /// Connections that their program has left, without those in TIME-WAIT.
    pub orphans: usize,
    /// Bytes allocated for the buffers and scoreboards of these connections.
    pub orphan_bytes: u64,
    /// Connections in TIME-WAIT that their program has left.
    pub time_waits: usize,
    /// Bytes allocated for the send and receive buffers and the scoreboards of all connections.
    pub buffer_bytes: u64,
    /// Handshakes of all [listeners](super::super::ListenOptions::half_open).
    pub handshakes: usize,
    /// Incomplete datagrams.
    pub fragments: usize,
    /// Bytes of incomplete datagrams, with an overhead for each fragment.
    pub fragment_bytes: u64,
}

impl Endpoint {
    /// The amounts of all bounded resources.
    pub fn holds(&self) -> Held {
        let (orphans, orphan_bytes) = self.account.orphans();
        Held {
            connections: self.alive(),
            orphans,
            orphan_bytes,
            time_waits: self.account.row(LruList::TimeWait).count,
            buffer_bytes: self.account.bytes,
            handshakes: self.handshakes().map(|(half_open, _)| half_open).sum(),
            fragments: self.fragments.datagrams(),
            fragment_bytes: self.fragments.held_bytes() as u64,
        }
    }

    /// The most that it may hold of each. [`Bounds`] has some of them.
    pub fn may_hold(&self) -> Held {
        let Bounds { orphans, orphan_bytes, time_waits, buffer_bytes } = self.account.bounds;
        let fragments = self.config.fragments;
        Held {
            connections: self.config.most_connections,
            orphans,
            orphan_bytes,
            time_waits,
            buffer_bytes,
            handshakes: self.handshakes().map(|(_, most)| most).fold(0, usize::saturating_add),
            fragments: fragments.datagrams,
            fragment_bytes: fragments.bytes as u64,
        }
    }
}
