//! An agent's needs of the peer and of the path.

/// The needs that an agent announces on SYN. If the peer lacks one, that is traced once, and the agent follows its
/// written fallback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The peer sends its congestion window (for receiver agents), or we send ours (for sender agents).
    pub peer_cwnd: bool,
    /// A sender agent would send cwnd in the window field of data segments, if the peer agrees.
    pub cwnd_in_window: bool,
    /// ACKs carry the number of segments out of order since the last one in order.
    pub dup_count: bool,
    /// ACK requests of the form [`AckRequestForm::Rate`](super::AckRequestForm::Rate).
    pub ack_rate: bool,
    /// ACK requests of the form [`AckRequestForm::After`](super::AckRequestForm::After).
    pub ack_after: bool,
    /// The number of links to the peer, or from it.
    pub hops: bool,
    /// A measured round trip. A sender measures it with its first data, so only a receiver agent can lack it.
    pub rtt: bool,
}

impl Needs {
    /// The needs of both: a connection offers those of all its agents.
    #[must_use]
    pub fn union(self, other: Needs) -> Needs {
        Needs {
            peer_cwnd: self.peer_cwnd || other.peer_cwnd,
            cwnd_in_window: self.cwnd_in_window || other.cwnd_in_window,
            dup_count: self.dup_count || other.dup_count,
            ack_rate: self.ack_rate || other.ack_rate,
            ack_after: self.ack_after || other.ack_after,
            hops: self.hops || other.hops,
            rtt: self.rtt || other.rtt,
        }
    }
}
