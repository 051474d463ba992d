//! What an agent wants of the peer and of the path.

/// What an agent asks for on SYN. What the peer lacks is traced once, and the agent follows its written
/// fallback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The peer tells its congestion window (receiver agents), or we tell ours (sender agents).
    pub peer_cwnd: bool,
    /// A sender agent would tell it in the window field of data segments, where the peer agrees.
    pub cwnd_in_window: bool,
    /// ACKs carry the number of duplicate ACKs that this hole caused.
    pub dup_count: bool,
    /// ACK requests of the form [`AckRequestForm::Rate`](super::AckRequestForm::Rate).
    pub ack_rate: bool,
    /// ACK requests of the form [`AckRequestForm::After`](super::AckRequestForm::After).
    pub ack_after: bool,
    pub hops: bool,
    pub rtt: bool,
}

impl Needs {
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
