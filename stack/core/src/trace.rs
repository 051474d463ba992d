//! The single source of observations: a machine's actions and their reasons, as small integer events in a bounded ring.
//!
//! Text, CSV, plots, metrics and capture comments are made from this stream alone.

pub mod comments;
mod drop_reason;
mod names;
mod ring;
pub mod text;

pub use drop_reason::DropReason;
pub use ring::{Totals, TraceRing};

use crate::agent::{Basis, Because, By, Class, HopSource, LinkNews, Side, Why};
use crate::{Instant, Seq};

/// One fact. `conn` is 0 if no connection is involved. `packet` is the id of the transmit, or the running number of the
/// received packet (0: neither).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    pub now: Instant,
    pub conn: u32,
    pub packet: u64,
    pub kind: TraceKind,
}

/// One variant for each kind of fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A connection was given up because this resource was scarce.
    GaveWay(Scarce),
    /// The connection entered a state of RFC 9293 §3.3.2.
    State(StateName),
    /// A segment came in and was checked. `len` counts payload bytes, `flags` is the header's octet. A read that joined
    /// `segments` of them is one event.
    Received {
        seq: Seq,
        ack: Seq,
        len: u32,
        segments: u16,
        flags: u8,
    },
    /// A segment with data, SYN, FIN or RST left; a bundle of `segments` of them is one event. `flight` was in flight
    /// before it. `allowed` is the agents' allowance, `u32::MAX` if they were not consulted.
    Sent {
        seq: Seq,
        ack: Seq,
        len: u32,
        segments: u16,
        flags: u8,
        what: SentWhat,
        flight: u32,
        allowed: u32,
        /// The decision of the ACK that rides on it; 0 if none does.
        decision: u16,
    },
    /// A pure ACK left. `decided` is its number at the decision; with SACK blocks, `number` is the current one.
    AckSent {
        number: Seq,
        decided: Seq,
        repeat: bool,
        /// 0 if there was no decision.
        decision: u16,
    },
    /// An ACK of `number` was decided; it leaves as soon as the link has room. The connection numbers its decisions
    /// from 1 on, since several may have the same number; after 65535 comes 1.
    AckDecided {
        number: Seq,
        decision: u16,
        by: By,
        why: Why,
    },
    /// Data came that is not merely in order. `stretches` of data now lie above holes.
    Placed {
        class: Class,
        stretches: u32,
    },
    /// In-order data has no ACK yet. As far as known now, it gets one after `due_us` at the latest; `u32::MAX` if the
    /// trace is not kept.
    AckHeld {
        why: Why,
        due_us: u32,
        /// The agent's basis for that time.
        basis: Option<Basis>,
    },
    /// An ACK does not leave: another waiting one carries its news, or the queue was full. The decision `into` leaves
    /// for both.
    AckMerged {
        number: Seq,
        decision: u16,
        into: u16,
    },
    /// A second full-sized segment stayed unacknowledged, against RFC 9293 SHLD-19 (running count).
    SecondHeld {
        count: u32,
    },
    /// The action that a shadow agent would have taken.
    ShadowAck {
        seat: u8,
        why: Why,
    },
    ShadowHeld {
        seat: u8,
        why: Why,
    },
    /// A packet was dropped.
    Dropped(DropReason),
    /// The retransmission timer ran out for the `nth` time in a row.
    Timeout {
        nth: u32,
        rto_us: u32,
    },
    /// Segments were found to be lost. A timeout is an event of its own.
    Lost {
        segments: u32,
        by: LostBy,
    },
    /// Fast recovery began: a loss was found, and the window goes to `ssthresh`.
    RecoveryBegan {
        by: LostBy,
        ssthresh: u32,
        flight: u32,
        point: Seq,
    },
    RecoveryEnded,
    /// The loss was none; the value names the evidence.
    Undone(UndoneBy),
    /// The network marked a segment instead of dropping it; the window was reduced.
    Marked,
    /// A packet with a mark of the network came (RFC 3168): ACKs echo it until the peer confirms the echo.
    MarkSeen,
    /// A round trip was measured.
    Rtt {
        sample_us: u32,
        srtt_us: u32,
        rto_us: u32,
    },
    /// The sender agents' allowance has changed.
    Window {
        allowed: u32,
        flight: u32,
    },
    /// The largest packet size that the path carries.
    PathMtu {
        bytes: u16,
        how: MtuHow,
    },
    /// A connection got its agents; the value is the source of the choice.
    Agents(ChosenBy),
    /// An agent's need is not met by the peer: it follows its written fallback.
    Fallback(Lacking),
    /// An ICMP error came: advice only, never the end of a connection by itself.
    IcmpError {
        kind: u8,
        code: u8,
    },
    /// The number of links from the peer, and the source; None once the number is unknown again.
    Hops {
        from_peer: u8,
        source: Option<HopSource>,
    },
    /// The route failed: RTO and cwnd are frozen until an ACK comes.
    Frozen,
    Thawed,
    /// A routing message raised highest_ack.
    HighestAckRaised {
        to: Seq,
    },
    /// A base station got a report on the link to a mobile.
    LinkTold {
        news: LinkNews,
    },
    /// A base station keeps a packet, whole or as a copy. `number` is that of the data, or the one that a pure ACK
    /// acknowledges.
    Kept {
        from: Side,
        number: Seq,
        len: u32,
        because: Because,
    },
    /// A base station sends a packet that it had kept.
    Released {
        from: Side,
        number: Seq,
        len: u32,
        because: Because,
    },
    /// A base station repeats an ACK of the mobile, or sends one with this window in its name.
    Said {
        number: Seq,
        window: u16,
        copies: u8,
    },
}

/// The bounded resources of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    /// Places for connections that their program has left.
    Orphans,
    /// Memory for the buffers of these connections.
    OrphanBytes,
    /// Places in TIME-WAIT.
    TimeWaits,
    /// Memory for the buffers of all connections.
    BufferBytes,
    /// A listener's places for handshakes.
    Handshakes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentWhat {
    New,
    /// Retransmitted in fast recovery.
    Resent,
    /// Retransmitted after a timeout.
    AfterTimeout,
    /// A window probe, a keep-alive, or a probe of a frozen path.
    Probe,
    /// Sent early to find the loss of a window's tail (RFC 8985 §7).
    TailProbe,
    /// SYN, FIN or RST without data.
    Control,
}

/// The source of a choice of agents. For the agents that it names, a program or listener comes before every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    Program,
    /// The first rule that matched, counted from 0 in the order of the list.
    Rule(u16),
    Default,
}

/// The evidence for a lost segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostBy {
    /// The time since a later segment arrived (RFC 8985).
    Rack,
    /// SACKed data above it (RFC 6675).
    Sack,
    /// Duplicate ACKs (RFC 5681).
    DupAcks,
    /// A partial ACK (RFC 6582).
    PartialAck,
    /// A request of a sender agent.
    Agent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoneBy {
    Timestamps,
    Dsack,
    Frto,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuHow {
    Icmp,
    BlackHole,
    Probe,
    /// The timeouts that had lowered the size were needless.
    Undone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    PeerCwnd,
    /// cwnd goes in the option instead, or not at all.
    CwndInWindow,
    DupCount,
    AckAfter,
    RateRequest,
    /// The path's RTT has not been measured yet.
    Rtt,
    /// The length of the path is unknown.
    Hops,
    /// The handshake went through a SYN cookie, which has room for MSS, window scale and SACK only.
    OptionsUnderCookie,
    /// A flow without timestamps passes a base station untouched.
    Timestamps,
    /// A flow whose SYN exchange was not seen also passes, if an agent needs it.
    Beginning,
    /// A base station's memory has ended, and its held packets went on.
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateName {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl StateName {
    /// Both sides know each other's numbers.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, StateName::Closed | StateName::Listen | StateName::SynSent | StateName::SynReceived)
    }

    /// A SYN of ours is in flight.
    pub const fn is_opening(self) -> bool {
        matches!(self, StateName::SynSent | StateName::SynReceived)
    }

    /// New data may leave, since our FIN has not left.
    pub const fn may_send_data(self) -> bool {
        matches!(self, StateName::Established | StateName::CloseWait)
    }

    /// The peer's FIN was taken: no more data comes.
    pub const fn peer_has_closed(self) -> bool {
        matches!(
            self,
            StateName::CloseWait
                | StateName::Closing
                | StateName::LastAck
                | StateName::TimeWait
                | StateName::Closed
        )
    }
}
